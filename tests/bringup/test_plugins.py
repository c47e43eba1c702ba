"""Simulator plugins of every generation become nodes, and everything unsupported is reported."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.bringup.derivation import derive_package_from_model
from roboyard.bringup.plugins.mapping import IMPLICIT_PLUGINS, PLUGIN_MAPPERS, map_plugins
from roboyard.bringup.plugins.reader import canonical_plugin_name, to_topic_name
from roboyard.bus.names import resolve
from roboyard.control.drive_config import DriveLimits
from roboyard.description import Model, load_model, load_world
from roboyard.description.model import Plugin, XmlElement
from roboyard.errors import DescriptionError
from roboyard.messages import msg
from roboyard.scenarios import Run

WHEEL = """<link name="{name}"><pose>{x} {y} 0.1 0 0 0</pose>
  <inertial><mass>0.5</mass><inertia><ixx>2e-3</ixx><iyy>2.5e-3</iyy><izz>2e-3</izz></inertia></inertial>
  <collision name="c"><pose>0 0 0 1.5707963 0 0</pose><geometry><cylinder><radius>0.1</radius><length>0.05</length>
  </cylinder></geometry></collision></link>
<joint name="{name}_joint" type="revolute"><parent>{parent}</parent><child>{name}</child>
  <axis><xyz>0 1 0</xyz></axis></joint>"""
PIN = """<link name="{name}"><pose>{x} {y} 0.1 0 0 0</pose>
  <inertial><mass>0.3</mass><inertia><ixx>3e-2</ixx><iyy>3e-2</iyy><izz>3e-2</izz></inertia></inertial></link>
<joint name="{name}_joint" type="revolute"><parent>body</parent><child>{name}</child>
  <axis><xyz>0 0 1</xyz><limit><lower>-0.6</lower><upper>0.6</upper></limit></axis></joint>"""
BODY = """<link name="body"><inertial><pose>0 0 0.12 0 0 0</pose><mass>8</mass>
  <inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz></inertia></inertial>
  <collision name="c"><pose>0 0 0.17 0 0 0</pose>
  <geometry><box><size>0.5 0.25 0.1</size></box></geometry></collision></link>"""
WHEEL_POSITIONS = {"fl": (0.2, 0.2), "fr": (0.2, -0.2), "bl": (-0.2, 0.2), "br": (-0.2, -0.2)}


def car(plugin: str, steered: bool = False) -> str:
    parts = [BODY]
    for name, (x, y) in WHEEL_POSITIONS.items():
        parent = "body"
        if steered and x > 0:
            parent = f"{name}_pin"
            parts.append(PIN.format(name=parent, x=x, y=y * 0.8))
        parts.append(WHEEL.format(name=name, x=x, y=y, parent=parent))
    return f'<sdf version="1.9"><model name="car">{"".join(parts)}{plugin}</model></sdf>'


def package(plugin: str, steered: bool = False):
    return derive_package_from_model(load_model(car(plugin, steered)), Path("car.sdf"))


def plug(filename: str, inside: str, name: str = "p") -> str:
    return f'<plugin filename="{filename}" name="{name}">{inside}</plugin>'


WHEELS = "".join(f"<{side}_joint>{name}_joint</{side}_joint>" for side, names in
                 (("left", ("fl", "bl")), ("right", ("fr", "br"))) for name in names)  # fmt: skip
MECANUM = """<front_left_joint>fl_joint</front_left_joint><front_right_joint>fr_joint</front_right_joint>
<back_left_joint>bl_joint</back_left_joint><back_right_joint>br_joint</back_right_joint>"""
STEERING = f"""{WHEELS}<left_steering_joint>fl_pin_joint</left_steering_joint>
<right_steering_joint>fr_pin_joint</right_steering_joint><steering_limit>0.5</steering_limit>"""


@pytest.mark.parametrize(
    ("filename", "name", "kind"),
    [
        ("gz-sim-diff-drive-system", "gz::sim::systems::DiffDrive", "diff-drive"),
        ("libgz-sim7-diff-drive-system.so", "x", "diff-drive"),
        ("ignition-gazebo-diff-drive-system", "x", "diff-drive"),
        ("libignition-gazebo6-diff-drive-system.so", "x", "diff-drive"),
        ("", "ignition::gazebo::systems::DiffDrive", "diff-drive"),
        ("libgazebo_ros_diff_drive.so", "x", "diff-drive"),
        ("libDiffDrivePlugin.so", "x", "diff-drive"),
        ("libSkidSteerDrivePlugin.so", "x", "diff-drive"),
        ("libgazebo_ros_skid_steer_drive.so", "x", "diff-drive"),
        ("/opt/ros/lib/libgazebo_ros_ackermann_drive.so", "x", "ackermann-steering"),
        ("gz-sim-joint-position-controller-system", "x", "joint-position-controller"),
        ("libgazebo_ros_joint_state_publisher.so", "x", "joint-state-publisher"),
        ("libgazebo_ros_p3d.so", "x", "p3d"),
        ("libmy_own.so", "x", "my-own"),
    ],
)
def test_plugin_spellings_have_one_name(filename: str, name: str, kind: str) -> None:
    assert canonical_plugin_name(Plugin(name, filename, XmlElement("plugin"))) == kind


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_plugin_text_has_a_name(filename: str, name: str) -> None:
    assert isinstance(canonical_plugin_name(Plugin(name, filename, XmlElement("plugin"))), str)


@given(st.text(max_size=30) | st.from_regex(r"~?/?[a-z0-9:/ -]{0,20}", fullmatch=True))
def test_any_topic_text_becomes_a_valid_topic(text: str) -> None:
    name = to_topic_name(text)
    assert not name or resolve(name, "", "node").startswith("/")
    assert to_topic_name(name) == name
    assert to_topic_name("/model/foo/cmd_vel") == "/model/foo/cmd_vel"


def test_mapped_plugins_are_not_among_the_builtin_ones() -> None:
    assert not set(PLUGIN_MAPPERS) & IMPLICIT_PLUGINS


@pytest.mark.parametrize("tag", ["made_up", "wheel_torque", "tf_topic"])
@pytest.mark.parametrize(
    ("filename", "inside", "steered"),
    [
        ("gz-sim-diff-drive-system", WHEELS, False),
        ("gz-sim-mecanum-drive-system", MECANUM, False),
        ("gz-sim-ackermann-steering-system", STEERING, True),
        ("gz-sim-velocity-control-system", "", False),
        ("libgazebo_ros_planar_move.so", "", False),
        ("gz-sim-joint-state-publisher-system", "", False),
        ("gz-sim-joint-position-controller-system", "<joint_name>fl_joint</joint_name>", False),
        ("gz-sim-joint-trajectory-controller-system", "", False),
        ("gz-sim-odometry-publisher-system", "", False),
        ("libgazebo_ros_p3d.so", "", False),
    ],
)
def test_unsupported_plugin_elements_are_reported(filename: str, inside: str, steered: bool, tag: str) -> None:
    found = package(plug(filename, f"{inside}<{tag}>1</{tag}>"), steered).findings
    assert any(f"<{tag}>" in finding and "not followed" in finding for finding in found), found


def test_drive_limits_of_both_generations_are_read() -> None:
    text = f"""{WHEELS}<wheel_separation>0.4</wheel_separation><wheel_radius>0.1</wheel_radius>
    <min_linear_velocity>-0.5</min_linear_velocity><max_linear_velocity>1.5</max_linear_velocity>
    <min_linear_acceleration>-3</min_linear_acceleration><max_linear_acceleration>2</max_linear_acceleration>
    <max_angular_velocity>0.7</max_angular_velocity><max_angular_acceleration>4</max_angular_acceleration>
    <topic>/go</topic><odom_topic>/where</odom_topic><frame_id>map</frame_id><child_frame_id>body</child_frame_id>
    <odom_publish_frequency>20</odom_publish_frequency>"""
    file = package(plug("gz-sim-diff-drive-system", text)).config
    assert file.limits == DriveLimits(
        speed=1.5, reverse_speed=0.5, acceleration=2.0, deceleration=3.0, angular_speed=0.7, angular_acceleration=4.0
    )
    assert file.topics == {"cmd_vel": "/go", "odom": "/where"}
    assert file.nodes["odometry"].parameters["rate"] == 20.0
    both = package(plug("gz-sim-diff-drive-system", f"{WHEELS}<max_velocity>0.6</max_velocity>")).config.limits
    assert both.speed == both.angular_speed == 0.6


def test_first_of_two_drive_plugins_is_used() -> None:
    found = package(plug("gz-sim-diff-drive-system", WHEELS) + plug("libgazebo_ros_planar_move.so", "", "second"))
    assert found.config.nodes["drive"].type == "differential_drive"
    assert any("second" in finding and "a drive already" in finding for finding in found.findings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (plug("gz-sim-mecanum-drive-system", MECANUM.replace(">fl_joint<", ">gone<")), "no joint 'gone'"),
        (plug("gz-sim-mecanum-drive-system", "<front_left_joint>fl_joint</front_left_joint>"), "1 wheels"),
        (plug("gz-sim-mecanum-drive-system", MECANUM + "<wheel_radius>-1</wheel_radius>"), "radius"),
        (plug("gz-sim-ackermann-steering-system", WHEELS), "no joint that steers"),
        (plug("gz-sim-joint-position-controller-system", ""), "no joint_name"),
        (plug("gz-sim-velocity-control-system", "<initial_linear>1 2</initial_linear>"), "three numbers"),
        (plug("gz-sim-velocity-control-system", "<initial_linear>1 2 inf</initial_linear>"), "finite"),
        (plug("gz-sim-diff-drive-system", WHEELS + "<publish_odom>maybe</publish_odom>"), "true or false"),
    ],
)
def test_invalid_plugins_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message) as caught:
        package(text)
    assert "plugin p" in str(caught.value)


TAGS = ("topic", "left_joint", "right_joint", "joint_name", "wheel_radius", "max_velocity", "ros", "update_rate",
        "initial_position", "steering_limit", "dimensions")  # fmt: skip
TEXTS = ("1", "-1", "nan", "x", "", "fl_joint", "1e400")


@given(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TEXTS)), max_size=6),
    st.sampled_from(sorted(PLUGIN_MAPPERS)),
)
def test_any_plugin_content_is_mapped_or_refused(children: list[tuple[str, str]], kind: str) -> None:
    element = XmlElement("plugin", children=tuple(XmlElement(tag, text) for tag, text in children))
    model = Model(MODEL.name, MODEL.links, MODEL.joints, plugins=(Plugin("p", f"gz-sim-{kind}-system", element),))
    try:
        map_plugins(model)
    except DescriptionError:
        return


MODEL = load_model(car(""))


# -- driven ----------------------------------------------------------------------------------------------------------
def drive_for(text: str, tmp_path: Path, twist: tuple[float, float, float], seconds: float = 2.0):
    path = tmp_path / "car.sdf"
    path.write_text(text)
    run = Run("empty", record=False)
    robot = run.add_robot(path, pose=(0, 0, 0))
    run.run_for(0.4)
    vx, vy, wz = twist
    command = msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=wz))
    for _ in range(round(seconds / 0.1)):
        run.publish(robot.topics.command, command)
        run.run_for(0.1)
    return run, robot


def test_mecanum_base_moves_sideways_with_odometry(tmp_path: Path) -> None:
    text = car(plug("gz-sim-mecanum-drive-system", MECANUM + "<max_acceleration>4</max_acceleration>"))
    run, robot = drive_for(text, tmp_path, (0.2, 0.3, 0.0))
    with run:
        assert robot.truth.pose.y > 0.45
        assert robot.truth.pose.x == pytest.approx(robot.truth.pose.y * 2 / 3, rel=0.1)
        assert run.evaluation.metrics_by_robot()["car"]["odom_final_error"] < 0.03


def test_wheels_with_roller_friction_move_the_body(tmp_path: Path) -> None:
    """The same car with friction along the rollers only, as Gazebo's example has it: no base is driven."""
    text = car(plug("gz-sim-mecanum-drive-system", MECANUM + "<max_acceleration>4</max_acceleration>"))
    for name, (x, y) in WHEEL_POSITIONS.items():
        grip = f"1 {-1 if x * y > 0 else 1} 0"
        surface = f"""<surface><friction><ode><mu>1</mu><mu2>0</mu2><fdir1 gz:expressed_in="body">{grip}</fdir1></ode>
          </friction></surface>"""
        start = text.index(f'<link name="{name}">')
        end = text.index("</collision>", start)
        text = text[:end] + surface + text[end:]
        cylinder = "<cylinder><radius>0.1</radius><length>0.05</length>\n  </cylinder>"
        text = text[:start] + text[start:].replace(cylinder, "<sphere><radius>0.1</radius></sphere>", 1)
    assert derive_package_from_model(load_model(text), Path("car.sdf")).config.base_motion is None
    run, robot = drive_for(text, tmp_path, (0.2, 0.3, 0.0))
    with run:
        assert robot.truth.pose.y > 0.45
        assert robot.truth.pose.x == pytest.approx(robot.truth.pose.y * 2 / 3, rel=0.02)
        assert run.evaluation.metrics_by_robot()["car"]["odom_final_error"] < 0.01


def test_ackermann_car_drives_the_commanded_circle(tmp_path: Path) -> None:
    text = car(plug("gz-sim-ackermann-steering-system", STEERING + "<max_acceleration>4</max_acceleration>"), True)
    run, robot = drive_for(text, tmp_path, (0.5, 0.0, 0.4), 5.0)
    with run:
        truth = robot.truth
        speed = float(truth.linear_velocity[0])
        assert speed == pytest.approx(0.5, abs=0.03)
        assert float(truth.angular_velocity[2]) / speed == pytest.approx(0.8, rel=0.08)
        names, angles = robot.hardware.joint_names, robot.hardware.read().position
        steering = [angles[names.index(f"{pin}_pin_joint")] for pin in ("fl", "fr")]
        # the two axes meet with the rear axle's, 1.25 m to the left
        assert np.tan(steering) == pytest.approx([0.4 / (1.25 - 0.16), 0.4 / (1.25 + 0.16)], rel=0.05)
        assert run.evaluation.metrics_by_robot()["car"]["odom_final_heading_error"] < 0.1


def test_planar_move_plugin_moves_the_body(tmp_path: Path) -> None:
    text = car(plug("libgazebo_ros_planar_move.so", "<odometryFrame>home</odometryFrame>"))
    run, robot = drive_for(text, tmp_path, (0.1, -0.3, 0.0))
    with run:
        assert robot.truth.pose.y == pytest.approx(-0.6, abs=0.05)
        assert robot.nodes["odometry_truth"].health.text.startswith("ground truth")
        assert run.evaluation.metrics_by_robot()["car"]["odom_final_error"] < 1e-6


def test_velocity_control_starts_with_its_initial_velocity(tmp_path: Path) -> None:
    path = tmp_path / "car.sdf"
    path.write_text(car(plug("gz-sim-velocity-control-system", "<initial_linear>0.3 0 0</initial_linear>")))
    with Run("empty", record=False) as run:
        robot = run.add_robot(path)
        run.run_for(1.0)
        assert robot.truth.pose.x == pytest.approx(0.3, abs=0.02)


def test_joint_position_topics_respect_limits(tmp_path: Path) -> None:
    path = tmp_path / "car.sdf"
    inside = "<joint_name>{n}_pin_joint</joint_name><topic>{n}</topic><initial_position>0.1</initial_position>"
    kind = "gz-sim-joint-position-controller-system"
    pins = "".join(plug(kind, inside.format(n=n), n) for n in ("fl", "fr"))
    path.write_text(car(pins, steered=True))
    with Run("empty", record=False) as run:
        robot = run.add_robot(path)
        columns = [robot.hardware.joint_names.index(f"{n}_pin_joint") for n in ("fl", "fr")]
        run.run_for(0.5)
        assert robot.hardware.read().position[columns] == pytest.approx([0.1, 0.1], abs=0.02)
        run.publish("/fl", msg.Float64(data=-0.3))
        run.publish("/fr", msg.Float64(data=9.0))
        run.run_for(1.0)
        assert robot.hardware.read().position[columns] == pytest.approx([-0.3, 0.6], abs=0.02)
        run.publish("/joint_position/commands", msg.Float64MultiArray(data=np.array([0.2, -0.2])))
        run.publish("/fr", msg.Float64(data=math.nan))
        run.run_for(1.0)
        assert robot.hardware.read().position[columns] == pytest.approx([0.2, -0.2], abs=0.02)


def test_plugins_of_gazebo_worlds_are_mapped(external_data: Path) -> None:
    """Each model of Gazebo's worlds that has a plugin of the table is mapped, or refused with a place."""
    folder, observed = external_data / "descriptions" / "gz_sim_test_worlds" / "test" / "worlds", set()
    for file in ("ackermann_steering_limited_joints_pub", "mecanum_drive", "diff_drive_skid", "velocity_control",
                 "joint_position_controller", "joint_trajectory_controller", "odometry_publisher"):  # fmt: skip
        path = folder / f"{file}.sdf"
        if not path.is_file():
            continue
        for placed in load_world(path).models:
            if placed.model.plugins:
                found = derive_package_from_model(placed.model, path)
                assert not any("nothing here does what gz-sim" in finding for finding in found.findings)
                observed |= {canonical_plugin_name(plugin) for plugin in placed.model.plugins}
    assert {"ackermann-steering", "mecanum-drive"} <= observed


@pytest.mark.slow
def test_external_models_with_known_plugins_come_up(external_data: Path) -> None:
    """All nodes that are derived find their joints, topics and modes; what is refused says where."""
    driven, rejected = 0, []
    for file in sorted((external_data / "descriptions").glob("gz_sim*/**/*.sdf")):
        if "<plugin" not in file.read_text(errors="replace"):
            continue
        try:
            models = [placed.model for placed in load_world(file).models]
        except DescriptionError:
            continue
        for model in models:
            if not any(canonical_plugin_name(plugin) in PLUGIN_MAPPERS for plugin in model.plugins):
                continue
            try:
                with Run("empty", record=False) as run:
                    run.add_robot(model, "robot")
                    run.run_for(0.1)
                driven += 1
            except DescriptionError as error:
                assert "plugin" in str(error)
                rejected.append(file.stem)
    assert rejected == ["joint_controller_invalid"]
    assert driven >= 40


@pytest.mark.parametrize("angle", [0.3, -0.2, 9.0])
def test_steering_only_turns_both_wheels_around_one_point(tmp_path: Path, angle: float) -> None:
    """The axes of the steered wheels meet on the unsteered axle, where that of a wheel midway would."""
    path = tmp_path / "car.sdf"
    only = STEERING.replace(WHEELS, "") + "<steering_only>true</steering_only><wheel_base>0.6</wheel_base>"
    path.write_text(car(plug("gz-sim-ackermann-steering-system", only), steered=True))
    with Run("empty", record=False) as run:
        placed = run.add_robot(path)
        assert list(placed.package.config.nodes) == ["joint_states", "robot_state", "steering"]
        placed.publish("steering_angle", msg.Float64(data=angle))
        run.run_for(4.0)
        position, names = placed.hardware.read().position, list(placed.hardware.joint_names)
    left, right = (float(position[names.index(f"{side}_pin_joint")]) for side in ("fl", "fr"))
    half = 0.5 * placed.package.config.nodes["steering"].parameters["kingpin_width"]
    from_left, from_right = 0.6 / math.tan(left) + half, 0.6 / math.tan(right) - half
    assert from_left == pytest.approx(from_right, rel=0.03)
    if angle < 1.0:
        assert from_left == pytest.approx(0.6 / math.tan(angle), rel=0.03)
    else:
        assert max(abs(left), abs(right)) == pytest.approx(0.5, abs=0.01)


def test_plugins_in_urdf_sensors_and_visuals_are_reported(tmp_path: Path) -> None:
    """With the line where they stand, unless the sensor around them is all that they are for."""
    path = tmp_path / "foot.urdf"
    path.write_text("""<robot name="r"><link name="foot"/><gazebo reference="foot">
      <sensor name="s" type="contact"><contact><collision>c</collision></contact>
        <plugin name="known" filename="libgazebo_ros_bumper.so"/>
        <plugin name="strange" filename="libstrange.so"/></sensor>
      <visual>
        <plugin name="arrows" filename="libarrows.so"/></visual></gazebo></robot>""")
    model = load_model(path)
    found = derive_package_from_model(model, path).findings
    assert [one for one in found if "known" in one] == []
    assert [one for one in found if one.startswith(f"{path}:4, plugin strange: nothing here does")]
    assert [one.line for one in model.warnings if "'arrows' of a <visual> has no effect" in one.message] == [6]


def test_car_without_plugin_is_no_differential_drive() -> None:
    """Its wheels steer: driven at different speeds they would only slip. Without pins the same wheels are a drive."""
    found = package("", steered=True)
    assert "drive" not in found.config.nodes
    assert any("no drive is guessed: it is a car: fl_pin_joint steers fl_joint" in one for one in found.findings)
    assert "drive" in package("").config.nodes
