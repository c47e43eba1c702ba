"""Controllers of ros2_control and ros_control files: read with their lines, mapped to nodes, and driven."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roboyard.bringup.derivation import derive_package
from roboyard.bringup.plugins.controller_files import InvalidControllerFileError, flatten_yaml, read_controllers
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bus import Node
from roboyard.control.drive_config import AckermannDriveConfig, DifferentialDriveConfig, MecanumDriveConfig
from roboyard.description import load_model
from roboyard.errors import DescriptionError
from roboyard.messages import action, msg
from roboyard.scenarios import Run

BODY = """<link name="{name}"><collision><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{shape}</geometry></collision>
  <inertial><origin xyz="{xyz}"/><mass value="{mass}"/><inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>"""
PLUGIN = """<gazebo><plugin name="control" filename="libgz_ros2_control-system.so">
  <parameters>{}</parameters></plugin></gazebo>"""


def body(name: str, shape: str, mass: float, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    return BODY.format(name=name, shape=shape, mass=mass, xyz=xyz, rpy=rpy, i=0.01 * mass)


def wheel(name: str, x: float, y: float, parent: str = "base", z: float = 0.1) -> str:
    shape = '<cylinder radius="0.1" length="0.04"/>'
    return body(f"{name}_link", shape, 0.5, rpy="1.5707963 0 0") + (
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{name}_link"/>'
        f'<origin xyz="{x} {y} {z}"/><axis xyz="0 1 0"/><limit effort="8" velocity="40"/></joint>'
    )


def pin(name: str, x: float, y: float) -> str:
    return body(f"{name}_link", '<sphere radius="0.01"/>', 0.3) + (
        f'<joint name="{name}" type="revolute"><parent link="base"/><child link="{name}_link"/>'
        f'<origin xyz="{x} {y} 0.1"/><axis xyz="0 0 1"/>'
        f'<limit lower="-0.9" upper="0.9" effort="20" velocity="4"/></joint>'
    )


def interfaces(**modes: str) -> str:
    joints = "".join(
        f'<joint name="{name}"><command_interface name="{mode}"/><state_interface name="position"/></joint>'
        for name, mode in modes.items()
    )
    return f'<ros2_control name="all" type="system">{joints}</ros2_control>'


CASTER = body("caster", '<sphere radius="0.05"/>', 0.2) + (
    '<joint name="caster_joint" type="fixed"><parent link="base"/><child link="caster"/>'
    '<origin xyz="-0.2 0 0.05"/></joint><gazebo reference="caster"><mu1>0.01</mu1><mu2>0.01</mu2></gazebo>'
)
BASE = body("base", '<box size="0.5 0.3 0.1"/>', 6.0, xyz="0 0 0.15")
TWO = (
    BASE + wheel("left", 0.1, 0.2) + wheel("right", 0.1, -0.2) + CASTER + interfaces(left="velocity", right="velocity")
)
DIFF = """controller_manager:
  ros__parameters:
    update_rate: 100
    states: {type: joint_state_broadcaster/JointStateBroadcaster}
    base_controller:
      type: diff_drive_controller/DiffDriveController
/**/base_controller:
  ros__parameters:
    left_wheel_names: [left]
    right_wheel_names: [right]
    wheel_separation: 0.4
    wheel_radius: 0.1
    wheel_separation_multiplier: 1.1
    publish_rate: 25.0
    odom_frame_id: world_odom
    base_frame_id: base
    enable_odom_tf: false
    cmd_vel_timeout: 0.3
    linear.x.max_velocity: 0.7
    linear: {x: {max_acceleration: 1.25}}
    angular.z.max_velocity: 1.5
    angular.z.has_velocity_limits: false
    sparkle: 3
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A package with its folders."""
    for folder in ("cart/urdf", "cart/config", "cart_control/config"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("cart", "cart_control"):
        (tmp_path / name / "package.xml").write_text(f"<package><name>{name}</name></package>")
    return tmp_path


def package(
    home: Path, robot: str, yaml: str, plugin: str = PLUGIN.format("package://cart/config/c.yaml")
) -> RobotPackage:
    (home / "cart" / "config" / "c.yaml").write_text(yaml)
    path = home / "cart" / "urdf" / "cart.urdf"
    path.write_text(f'<robot name="cart">{robot}{plugin}</robot>')
    return derive_package(path, {})


# -- reading -----------------------------------------------------------------------------------------------------------
def test_all_spellings_of_a_controller_file_are_equal(tmp_path: Path) -> None:
    """Namespaces, wild cards, dotted keys and ROS 1's flat form."""
    inner = "{left_wheel_names: [a], linear.x.max_velocity: 1.5}"
    texts = {
        "plain": f"m: {{ros__parameters: {{c: {{type: d/DiffDriveController}}}}}}\nc: {{ros__parameters: {inner}}}",
        "wild": "/**: {m: {ros__parameters: {c: {type: d/DiffDriveController}}}, "
        f"c: {{ros__parameters: {inner}}}}}",
        "space": f"/r/m: {{ros__parameters: {{c.type: d/DiffDriveController}}}}\n/r/c: {{ros__parameters: {inner}}}",
        "own": f"c: {{ros__parameters: {{type: d/DiffDriveController, {inner[1:-1]}}}}}",
        "ros1": "c: {type: d/DiffDriveController, left_wheel_names: [a], linear: {x: {max_velocity: 1.5}}}",
    }
    for name, text in texts.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        (one,) = read_controllers([path])
        assert (one.name, one.class_name, one.ros1) == ("c", "DiffDriveController", name == "ros1")
        assert {key: found.value for key, found in one.settings.items()} == {
            "left_wheel_names": ["a"],
            "linear.x.max_velocity": 1.5,
        }


_TEXT = st.recursive(
    st.sampled_from(["1", "-2.5e3", "true", "~", "[]", "[a, b]", "d/DiffDriveController", "'x'", ".nan", "&a 1", "*a"]),
    lambda inner: st.lists(
        st.tuples(st.sampled_from(["type", "ros__parameters", "c", "/**", "a.b", "1", "<<"]), inner), max_size=4
    ).map(lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=_TEXT | st.text(max_size=60))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        for one in read_controllers([path]):
            assert one.line >= 1
    except InvalidControllerFileError:
        pass


def test_exponential_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    names = "abcdefghijklmnop"
    lines = ["a: &a {x: 1, y: 2}"]
    lines += [f"{new}: &{new} {{l: *{old}, m: *{old}, n: *{old}, o: *{old}}}" for old, new in pairwise(names)]
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidControllerFileError, match="too much"):
        list(flatten_yaml(path))
    path.write_text("[" * 5000)
    with pytest.raises(InvalidControllerFileError):
        list(flatten_yaml(path))


# -- drives ------------------------------------------------------------------------------------------------------------
def test_differential_drive_controller_gives_its_settings(home: Path) -> None:
    found = package(home, TWO, DIFF)
    drive, limits = found.config.drive, found.config.limits
    assert isinstance(drive, DifferentialDriveConfig)
    assert (drive.left_joints, drive.right_joints) == (("left",), ("right",))
    assert (drive.track, drive.wheel_radius, drive.slip_factor) == (0.4, 0.1, 1.1)
    assert (limits.speed, limits.acceleration) == (0.7, 1.25)
    assert limits.angular_speed is None  # its limit is switched off
    assert found.config.nodes["drive"].parameters["timeout"] == 0.3
    odometry = found.config.nodes["odometry"].parameters
    assert (odometry["odom_frame"], odometry["base_frame"], odometry["rate"]) == ("world_odom", "base", 25.0)
    assert odometry["publish_tf"] is False
    findings_text = "\n".join(found.findings)
    assert "c.yaml:6, controller base_controller: sparkle not followed" in findings_text
    assert "guessed" not in findings_text


def test_controller_files_of_other_packages_are_found(home: Path) -> None:
    """Without a plugin the file whose joints are the robot's is taken, also from the package for its control."""
    (home / "cart_control" / "config" / "a_other.yaml").write_text(DIFF.replace("[left]", "[wheel_7]"))
    (home / "cart_control" / "config" / "z_right.yaml").write_text(DIFF)
    found = package(home, TWO, "# nothing\n", plugin="")
    assert found.config.drive.slip_factor == 1.1
    assert "z_right.yaml" in found.findings[0] or any("z_right.yaml: no plugin names" in one for one in found.findings)


def test_invalid_settings_are_refused_with_file_and_line(home: Path) -> None:
    with pytest.raises(DescriptionError, match=r"no joint 'lift'.*") as caught:
        package(home, TWO, DIFF.replace("[left]", "[lift]"))
    assert "c.yaml:9" in str(caught.value)
    with pytest.raises(DescriptionError, match="not a number"):
        package(home, TWO, DIFF.replace("wheel_separation: 0.4", "wheel_separation: wide"))
    with pytest.raises(DescriptionError, match="positive"):
        package(home, TWO, DIFF.replace("wheel_radius: 0.1", "wheel_radius: -0.1"))
    unknown = package(home, TWO, DIFF + "dancer:\n  ros__parameters:\n    type: dance/DanceController\n")
    assert any(
        f"c.yaml:{len(DIFF.splitlines()) + 3}, controller dancer: nothing here does what" in one
        for one in unknown.findings
    )
    missing = package(home, TWO, DIFF, plugin=PLUGIN.format("package://nowhere/config/d.yaml"))
    assert any("package or model 'nowhere' not found" in one for one in missing.findings)
    torn = package(home, TWO, "a: [1,\n")
    assert any("no valid YAML" in one for one in torn.findings)


CAR = (
    body("base", '<box size="0.7 0.3 0.1"/>', 8.0, xyz="0.25 0 0.15")
    + wheel("rl", 0.0, 0.2) + wheel("rr", 0.0, -0.2)
    + pin("sl", 0.5, 0.2) + pin("sr", 0.5, -0.2)
    + wheel("fl", 0.0, 0.0, "sl_link", 0.0) + wheel("fr", 0.0, 0.0, "sr_link", 0.0)
    + interfaces(rl="velocity", rr="velocity", sl="position", sr="position")
)  # fmt: skip
ACKERMANN = """car:
  ros__parameters:
    type: ackermann_steering_controller/AckermannSteeringController
    wheelbase: 0.5
    traction_track_width: 0.4
    steering_track_width: 0.4
    traction_wheels_radius: 0.1
    traction_joints_names: [rr, rl]
    steering_joints_names: [sr, sl]
"""
OLD_ACKERMANN = """car:
  ros__parameters:
    type: ackermann_steering_controller/AckermannSteeringController
    front_steering: true
    wheelbase: 0.5
    front_wheel_track: 0.4
    rear_wheel_track: 0.4
    rear_wheels_radius: 0.1
    front_wheels_radius: 0.1
    rear_wheels_names: [rl, rr]
    front_wheels_names: [sl, sr]
"""
TRICYCLE = (
    body("base", '<box size="0.7 0.3 0.1"/>', 8.0, xyz="0.2 0 0.15")
    + wheel("rl", 0.0, 0.2) + wheel("rr", 0.0, -0.2) + pin("steer", 0.5, 0.0)
    + wheel("pull", 0.0, 0.0, "steer_link", 0.0) + interfaces(pull="velocity", steer="position")
)  # fmt: skip
PULLED = """three:
  ros__parameters:
    type: tricycle_controller/TricycleController
    traction_joint_name: pull
    steering_joint_name: steer
    wheel_radius: 0.1
    wheelbase: 0.5
    cmd_vel_timeout: 500
    steering: {max_position: 0.8, max_velocity: 3.0}
"""


def test_both_ackermann_controller_generations_are_equal(home: Path) -> None:
    """Order within the lists does not matter: left is where a joint lies."""
    first, second = (package(home, CAR, text).config for text in (ACKERMANN, OLD_ACKERMANN))
    assert (first.drive, first.nodes["drive"]) == (second.drive, second.nodes["drive"])
    assert isinstance(first.drive, AckermannDriveConfig)
    assert (first.drive.left_joints, first.drive.left_steering_joints) == (("rl",), ("sl",))
    assert first.drive.steering_limit == pytest.approx(0.9)  # the joints' own


@pytest.mark.parametrize(
    ("robot", "yaml"), [(TWO, DIFF), (CAR, ACKERMANN), (TRICYCLE, PULLED)], ids=["differential", "car", "tricycle"]
)
def test_robots_with_controllers_follow_velocity_commands(home: Path, robot: str, yaml: str) -> None:
    """Straight on by v·t, then an arc of radius v/ω; odometry agrees with the truth."""
    package(home, robot, yaml.replace("wheel_separation_multiplier: 1.1", "wheel_separation_multiplier: 1.0"))
    with Run("empty", record=False) as run:
        placed = run.add_robot(home / "cart" / "urdf" / "cart.urdf", pose=(0, 0, 0))
        run.run_for(0.5)
        placed.drive(0.5, 0.0)
        run.run_for(2.0)
        start = placed.truth.pose
        placed.drive(0.5, 0.0)
        run.run_for(2.0)
        assert placed.truth.pose.x - start.x == pytest.approx(1.0, abs=0.1)
        assert abs(placed.truth.pose.yaw) < 0.05
        placed.drive(0.5, 0.5)
        run.run_for(1.0)
        yaw = placed.truth.pose.yaw
        run.run_for(2.0)
        assert placed.truth.pose.yaw - yaw == pytest.approx(1.0, rel=0.1)
        assert run.evaluation.metrics_by_robot()["cart"]["odom_final_error"] < 0.1


FOUR = BASE + "".join(
    wheel(f"{end}{side}", x, y) for end, x in (("f", 0.2), ("r", -0.2)) for side, y in (("l", 0.2), ("r", -0.2))
)
MECANUM = """m:
  ros__parameters:
    type: mecanum_drive_controller/MecanumDriveController
    front_left_wheel_command_joint_name: fl
    front_right_wheel_command_joint_name: fr
    rear_left_wheel_command_joint_name: rl
    rear_right_wheel_command_joint_name: rr
    kinematics: {wheels_radius: 0.1, sum_of_robot_center_projection_on_X_Y_axis: 0.4}
    reference_timeout: 0.4
"""


def test_mecanum_controller_gives_the_sum_of_lengths(home: Path) -> None:
    config = package(home, FOUR, MECANUM).config
    assert isinstance(config.drive, MecanumDriveConfig)
    assert config.drive.joints == ("fl", "fr", "rl", "rr")
    assert 0.5 * (config.drive.wheelbase + config.drive.track) == pytest.approx(0.4)
    assert config.nodes["drive"].parameters["timeout"] == 0.4


# -- joints ------------------------------------------------------------------------------------------------------------
ARM = (
    body("base", '<box size="0.3 0.3 0.1"/>', 20.0, xyz="0 0 0.05")
    + "".join(
        body(f"l{k}", '<box size="0.02 0.02 0.1"/>', 0.2, xyz="0 0 0.05")
        + f'<joint name="j{k}" type="revolute"><parent link="{"base" if k == 1 else f"l{k - 1}"}"/><child link="l{k}"/>'
        f'<origin xyz="0 0 0.1"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="30" velocity="3"/></joint>'
        for k in (1, 2)
    )
    + interfaces(j1="position", j2="position")
)
ARMS = """controller_manager:
  ros__parameters:
    arm: {type: joint_trajectory_controller/JointTrajectoryController}
    forward: {type: position_controllers/JointGroupPositionController}
arm:
  ros__parameters:
    joints: [j1, j2]
    command_interfaces: [position]
    constraints: {goal_time: 2.5, j1: {goal: 0.03, trajectory: 0.2}, j2: {goal: 0.03}}
forward: {ros__parameters: {joints: [j1, j2]}}
"""


def test_first_controller_claims_the_joints(home: Path) -> None:
    found = package(home, ARM, ARMS)
    arm: dict[str, Any] = found.config.nodes["arm"].parameters
    assert (arm["joints"], arm["goal_time"], arm["goal_tolerance"], arm["path_tolerance"]) == (
        ["j1", "j2"],
        2.5,
        0.03,
        0.2,
    )
    assert "arm" in found.config.autostart
    assert "forward" in found.config.nodes
    assert "forward" not in found.config.autostart
    assert any("controller forward: it stays down: arm has its joints" in one for one in found.findings)


def test_ros1_joint_controller_follows_its_topic(home: Path) -> None:
    """``NAME/command`` moves the joint, as ros_control's controllers do."""
    text = "arm:\n  lift: {type: position_controllers/JointPositionController, joint: j1, pid: {p: 100.0}}\n"
    found = package(home, ARM, text)
    assert found.config.nodes["lift"].parameters["topics"] == ["lift/command"]
    assert any("gains are not followed" in one for one in found.findings)
    with Run("empty", record=False) as run:
        placed = run.add_robot(home / "cart" / "urdf" / "cart.urdf", pose=(0, 0, 0))
        run.run_for(0.1)
        placed.publish("lift/command", msg.Float64(data=0.5))
        run.run_for(2.0)
        state = placed.hardware.read()
        names = list(placed.hardware.joint_names)
        assert np.asarray(state.position)[names.index("j1")] == pytest.approx(0.5, abs=0.05)


HUNG = (
    '<link name="world"/><joint name="fixed" type="fixed"><parent link="world"/><child link="base"/></joint>'
    + body("base", '<box size="0.1 0.1 0.1"/>', 1.0)
    + body("l1", '<sphere radius="0.05"/>', 2.0, xyz="0.4 0 0")
    + '<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/><origin xyz="0 0 1"/>'
    '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="60" velocity="9"/></joint>'
)
BY_EFFORT = HUNG + interfaces(j1="effort")
GAZEBO = (
    '<gazebo><plugin name="lift" filename="gz-sim-joint-position-controller-system">'
    "<joint_name>j1</joint_name><topic>lift/command</topic><p_gain>80</p_gain><i_gain>{i}</i_gain><d_gain>9</d_gain>"
    "</plugin></gazebo>"
)
ONE = "robot:\n  lift: {{type: {}, joint: j1, pid: {{p: 80, i: {}, d: 9}}}}"
GROUP = "robot:\n  lift: {{type: {}, joints: [j1], j1: {{pid: {{p: 80, i: {}, d: 9}}}}}}"
PIDS = {
    "effort_controllers/JointPositionController": ONE,
    "unitree_legged_control/UnitreeJointController": ONE,
    "effort_controllers/JointGroupPositionController": GROUP,
    "gazebo": "",
}


@pytest.mark.parametrize("integral", [0.0, 200.0])
@pytest.mark.parametrize("kind", PIDS)
def test_effort_gains_of_joint_controllers_are_used(home: Path, kind: str, integral: float) -> None:
    """Without an integral a weight hangs lower by its torque over p; with one it does not."""
    robot = HUNG + GAZEBO.format(i=integral) if kind == "gazebo" else BY_EFFORT
    found = package(home, robot, PIDS[kind].format(kind, integral))
    assert found.config.gains["j1"]["pos_kp"] == 80.0
    with Run("empty", record=False) as run:
        placed = run.add_robot(found)
        run.run_for(0.1)
        array_message = msg.Float64MultiArray(data=np.array([-0.2]))
        placed.publish("lift/command", array_message if PIDS[kind] == GROUP else msg.Float64(data=-0.2))
        run.run_for(4.0)
        position = float(placed.hardware.read().position[0])
    sag = 2.0 * 9.8 * 0.4 * np.cos(position) / 80.0
    assert position == pytest.approx(-0.2 + (0.0 if integral else sag), abs=1e-3)


def test_effort_gains_of_trajectory_controllers_are_used(home: Path) -> None:
    text = """robot:
  arm: {type: effort_controllers/JointTrajectoryController, joints: [j1], gains: {j1: {p: 80, i: 0, d: 9}}}
"""
    found = package(home, BY_EFFORT, text)
    assert found.config.nodes["arm"].parameters["mode"] == "position"
    assert "arm" in found.config.autostart
    assert found.config.gains == {"j1": {"pos_kp": 80.0, "pos_ki": 0.0, "pos_kd": 9.0}}


def test_invalid_gains_are_reported(home: Path) -> None:
    text = "arm:\n  lift: {type: effort_controllers/JointPositionController, joint: j1, pid: {p: -80}}\n"
    found = package(home, BY_EFFORT, text)
    assert not found.config.gains
    assert any("c.yaml:2, controller lift: the gains of joint j1 are not followed" in one for one in found.findings)


def test_gripper_action_moves_its_joint(home: Path) -> None:
    text = """controller_manager:
  ros__parameters:
    hand: {type: position_controllers/GripperActionController}
hand: {ros__parameters: {joint: j1, goal_tolerance: 0.02, stall_timeout: 3.0, max_effort: 5.0}}
"""
    found = package(home, HUNG + interfaces(j1="position"), text)
    assert "hand" in found.config.autostart
    assert any("controller hand: max_effort not followed" in one for one in found.findings)
    with Run("empty", record=False) as run:
        placed = run.add_robot(found)
        client = run.bus.add(Node(), "client").action_client("/hand/gripper_cmd", action.GripperCommand)
        goal = client.send(action.GripperCommand.Goal(command=msg.GripperCommand(position=0.7)))
        run.run_for(3.0)
        assert goal.succeeded
        assert float(placed.hardware.read().position[0]) == pytest.approx(0.7, abs=0.02)


def test_reading_controllers_twice_gives_the_same(home: Path) -> None:
    """Reading is a function of the files: again is the same."""
    assert package(home, TWO, DIFF) == package(home, TWO, DIFF)
    model = load_model(home / "cart" / "urdf" / "cart.urdf")
    assert model.interfaces
