"""Bring-up of external robots: their drives are found from plugins, ros2_control or bare wheels."""

from itertools import pairwise
from pathlib import Path

import pytest

from roboyard.bringup.derivation import derive_package, derive_package_from_model
from roboyard.bringup.robot_loader import load_robot_file
from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.description import Model, load_model
from roboyard.errors import ConfigError, DescriptionError, UnknownNameError
from roboyard.record import open_recording
from roboyard.scenarios import Run, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

URDF = """<robot name="cart">
  <link name="base"><collision><origin xyz="0 0 0.15"/><geometry><box size="0.4 0.3 0.1"/></geometry></collision>
    <inertial><origin xyz="0 0 0.1"/><mass value="5"/>
      <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  {wheels}
  <link name="caster"><collision><geometry><sphere radius="0.03"/></geometry></collision>
    <inertial><mass value="0.2"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="caster_joint" type="fixed"><parent link="base"/><child link="caster"/>
    <origin xyz="-0.15 0 0.03"/></joint>
  <gazebo reference="caster"><mu1>0.01</mu1><mu2>0.01</mu2></gazebo>
  {extra}
</robot>"""

WHEEL = """<link name="{name}"><collision><origin rpy="1.5707963 0 0"/>
      <geometry><cylinder radius="0.1" length="0.04"/></geometry></collision>
    <inertial><mass value="0.5"/><inertia ixx="2e-3" iyy="2.5e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}_joint" type="continuous"><parent link="base"/><child link="{name}"/>
    <origin xyz="0.1 {y} 0.1"/>
    <axis xyz="0 {axis} 0"/><limit effort="5" velocity="30"/></joint>"""


def cart(extra: str = "", axis: int = 1) -> str:
    wheels = WHEEL.format(name="left", y=0.2, axis=axis) + WHEEL.format(name="right", y=-0.2, axis=axis)
    return URDF.format(wheels=wheels, extra=extra)


PLUGIN = """<gazebo><plugin name="diff" filename="libgazebo_ros_diff_drive.so"><left_joint>left_joint</left_joint>
  <right_joint>right_joint</right_joint><wheel_separation>0.41</wheel_separation><wheel_diameter>0.2</wheel_diameter>
  <max_wheel_acceleration>1.5</max_wheel_acceleration><command_topic>move</command_topic>
  <odometry_frame>world_odom</odometry_frame><robot_base_frame>base</robot_base_frame><update_rate>30</update_rate></plugin></gazebo>"""

CONTROL = """<ros2_control name="c" type="system">{}</ros2_control>"""
JOINT = '<joint name="{}_joint"><command_interface name="velocity"/><state_interface name="position"/></joint>'


def test_drive_plugin_gives_all_parameters() -> None:
    package = derive_package_from_model(load_model(cart(PLUGIN)), Path("cart.urdf"))
    drive = package.config.drive
    assert isinstance(drive, DifferentialDriveConfig)
    assert (drive.left_joints, drive.right_joints) == (("left_joint",), ("right_joint",))
    assert (drive.track, drive.wheel_radius, package.config.limits.acceleration) == (0.41, 0.1, 1.5)
    assert package.config.nodes["drive"].parameters == {"angular_acceleration": pytest.approx(2 * 1.5 / 0.41)}
    odometry = package.config.nodes["odometry"].parameters
    assert (odometry["odom_frame"], odometry["base_frame"], odometry["rate"]) == ("world_odom", "base", 30.0)
    assert package.config.topics == {"cmd_vel": "move"}
    assert not package.findings


@pytest.mark.parametrize("extra", ["", CONTROL.format(JOINT.format("left") + JOINT.format("right"))])
def test_guessed_wheels_are_reported(extra: str) -> None:
    package = derive_package_from_model(load_model(cart(extra)), Path("cart.urdf"))
    drive = package.config.drive
    assert isinstance(drive, DifferentialDriveConfig)
    assert (drive.left_joints, drive.right_joints) == (("left_joint",), ("right_joint",))
    assert drive.track == pytest.approx(0.4)
    assert drive.wheel_radius == 0.1
    assert "guessed" in package.findings[0]


def test_robot_without_drive_is_reported() -> None:
    package = derive_package_from_model(load_model(cart().replace("continuous", "fixed")), Path("cart.urdf"))
    assert package.config.autostart == ("robot_state",)
    one = load_model(cart().replace('name="right_joint" type="continuous"', 'name="right_joint" type="fixed"'))
    assert "no drive was found" in derive_package_from_model(one, Path("cart.urdf")).findings[0]


def test_invalid_plugins_are_refused() -> None:
    def of(model: Model) -> object:
        return derive_package_from_model(model, Path("cart.urdf"))

    with pytest.raises(DescriptionError, match=r"no joint 'lift'.*left_joint"):
        of(load_model(cart(PLUGIN.replace(">left_joint<", ">lift<"))))
    with pytest.raises(DescriptionError, match="not a number"):
        of(load_model(cart(PLUGIN.replace("0.41", "wide"))))
    with pytest.raises(DescriptionError, match="positive"):
        of(load_model(cart(PLUGIN.replace("0.41", "-0.4"))))


def test_wheels_with_reversed_axis_are_not_guessed() -> None:
    package = derive_package_from_model(load_model(cart(axis=-1)), Path("cart.urdf"))
    assert "drive" not in package.config.nodes
    assert "turn backwards" in package.findings[0]


@pytest.mark.parametrize("extra", ["", PLUGIN])
def test_cart_follows_velocity_commands(extra: str, tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(cart(extra))
    with Run("empty", record=False) as run:
        robot = run.add_robot(path, pose=(0, 0, 0))
        run.run_for(0.5)
        robot.drive(0.4, 0.0)
        run.run_for(3.0)
        assert robot.truth.pose.x == pytest.approx(1.15, abs=0.15)
        robot.drive(0.0, 1.0)
        yaw = robot.truth.pose.yaw
        run.run_for(2.0)
        assert robot.truth.pose.yaw - yaw == pytest.approx(1.85, abs=0.3)
        assert run.evaluation.metrics_by_robot()["cart"]["odom_final_error"] < 0.1
        assert run.evaluation.metrics_by_robot()["cart"]["max_tilt"] < 0.15


def test_added_nodes_use_the_frames_of_the_robot(tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(cart(PLUGIN))
    with Run("empty", record=False) as run:
        robot = run.add_robot(path, pose=(0, 0, 0))
        nodes = {name: robot.add_node(name, name) for name in ("amcl", "navigator", "slam")}
        frames = {
            getattr(node.config, name)
            for node in nodes.values()
            for name in ("base_frame", "base_frame_id", "base_link_frame")
            if name in type(node).parameters_declared()
        }
        assert frames == {"base"}, "not base_link, which it does not have"
    chain = derive_package_from_model(load_model(cart(PLUGIN)), path).command_chain_remaps(
        {"arbiter", "collision_monitor", "velocity_smoother"}
    )
    assert chain["arbiter"]["cmd_vel_out"] == chain["velocity_smoother"]["cmd_vel_in"]
    assert chain["velocity_smoother"]["cmd_vel_out"] == chain["collision_monitor"]["cmd_vel_in"]


def test_smoother_keeps_the_limits_of_the_drive(tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(cart(PLUGIN))
    package = derive_package_from_model(load_model(path.read_text()), path)
    speeds = []
    with Run("empty", record=False) as run:
        robot = run.add_robot(path, pose=(0, 0, 0), nodes=(*package.config.autostart, "velocity_smoother"))
        run.bus.add_message_observer(
            lambda topic, message, *_: speeds.append(message.linear.x) if topic.name == "/cmd_vel_out" else None
        )
        robot.drive(100.0)
        run.run_for(2.0)
    steps = [b - a for a, b in pairwise(speeds)]
    assert max(steps) == pytest.approx(package.config.limits.acceleration / 20.0)


def test_scenario_parameters_are_merged_with_the_package() -> None:
    package = derive_package_from_model(load_model(cart(PLUGIN)), Path("cart.urdf"))
    base_parameters = {
        "velocity_limits": {"forward": 1.0, "angular": 2.0},
        "controller": {"type": "regulated_pure_pursuit", "settings": {"a": 1}},
    }
    package = package.with_overrides({"navigator": base_parameters}, {})
    over = {"velocity_limits": {"forward": 0.5}, "controller": {"type": "mppi", "settings": {"b": 2}}, "rate": 5.0}
    assert package.with_overrides({"navigator": over}, {}).node("navigator").parameters == {
        "velocity_limits": {"forward": 0.5, "angular": 2.0},
        "controller": {"type": "mppi", "settings": {"b": 2}},
        "rate": 5.0,
    }
    assert package.node("navigator").parameters == base_parameters, "the package itself stays as it is"


@pytest.mark.parametrize("name", ["drive", "navigatr", "joint_trajectory"])
def test_unavailable_nodes_are_refused(name: str) -> None:
    package = derive_package_from_model(load_model(cart().replace("continuous", "fixed")), Path("cart.urdf"))
    with pytest.raises(UnknownNameError, match=f"no node '{name}'"):
        package.node(name)


def test_robot_files_are_checked(tmp_path: Path) -> None:
    (tmp_path / "cart.urdf").write_text(cart())
    path = tmp_path / "cart.yaml"

    def write(text: str) -> Path:
        path.write_text(text)
        return path

    good = "description: cart.urdf\nnodes: {drive: {type: differential_drive, parameters: {track: 0.4}}}\n"
    good += "autostart: [drive]\n"
    package = load_robot_file(write(good))
    assert package.select_nodes("default") == ("drive",)
    assert package.with_overrides({"drive": {"track": 0.5}}, {}).node("drive").parameters == {"track": 0.5}
    for change, message in (
        (("cart.urdf", "gone.urdf"), "no file gone.urdf"),
        (("autostart: [drive]", "autostart: [fly]"), "no node 'fly'"),
        (("nodes:", "noddes:"), "unknown key"),
        (("autostart:", "footprint: [[0, 0]]\nautostart:"), "1 corners"),
        (("autostart:", "drive: {type: differentail}\nautostart:"), "did you mean 'differential'"),
        (("autostart:", "drive: {left_joints: [left_joint]}\nautostart:"), "drive"),
        (
            ("autostart:", "drive: {type: differential, left_joints: [], right_joints: []}\nautostart:"),
            "wheel_radius",
        ),
        (("autostart:", "drive: {type: planar, track: 0.3 m}\nautostart:"), "unknown key 'track'"),
        (("autostart:", "limits: {speed: 1 m/s, min_speed: 2 m/s}\nautostart:"), "limits.min_speed.*at most speed"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_robot_file(write(good.replace(*change)))


def test_turtlebot3_drive_is_derived_from_its_files(external_data: Path) -> None:
    folder = external_data / "descriptions" / "turtlebot3_burger"
    models = folder / "turtlebot3_gazebo" / "models" / "turtlebot3_burger"
    urdf = folder / "turtlebot3_description" / "urdf" / "turtlebot3_burger.urdf"
    for file in (models / "model.sdf", models / "model-1_4.sdf", urdf):
        drive = derive_package(file, {}).config.drive
        assert isinstance(drive, DifferentialDriveConfig)
        assert drive.left_joints == ("wheel_left_joint",)
        assert drive.wheel_radius == pytest.approx(0.033)
        assert drive.track == pytest.approx(0.16)


@pytest.mark.slow
def test_turtlebot3_drives_in_its_own_world(external_data: Path, tmp_path: Path) -> None:
    """Somebody else's robot in somebody else's world, through the scenario that was made for the rover."""
    folder = external_data / "descriptions"
    spec = load_scenario(
        "rover-drive",
        robot=str(folder / "turtlebot3_burger/turtlebot3_gazebo/models/turtlebot3_burger/model.sdf"),
        world=str(folder / "turtlebot3_worlds_a/turtlebot3_gazebo/worlds/turtlebot3_world.world"),
        overrides=["duration=30 s"],
    )
    outcome = run_scenario(spec, RunOptions(out=tmp_path / "run", serve=False))
    assert outcome.success, outcome.failure_reason
    assert outcome.metrics["odom_final_error"] < 1.0
    with open_recording(tmp_path / "run") as recording:
        assert recording.topics["/scan"].count == 150
        assert recording.topics["/imu"].count == 6000
