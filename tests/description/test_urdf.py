"""URDF elements are read completely, and link poses agree with independently computed ones."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.descriptions import ARM_URDF, INERTIAL, check_model, urdf

from roboyard.description import (
    Box,
    Capsule,
    Cylinder,
    ImuSpec,
    LidarSpec,
    Mesh,
    Sphere,
    load_model,
)
from roboyard.description.names import to_topic_name
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3


def test_urdf_arm_is_read() -> None:
    arm = load_model(ARM_URDF)
    check_model(arm)
    assert arm.name == "arm"
    assert arm.mass == pytest.approx(3.0)
    assert [link.name for link in arm.roots] == ["base"]
    assert arm.canonical_link == "base"
    shoulder = arm.joint("shoulder")
    assert (shoulder.parent, shoulder.child, shoulder.type) == ("base", "upper", "revolute")
    limits = shoulder.axes[0].limits
    assert (limits.lower, limits.upper, limits.velocity, limits.effort) == (-1.0, 1.0, 2.0, 30.0)
    assert arm.joint("elbow").axes[0].xyz == (0.0, 0.0, 1.0)
    assert arm.joint("elbow").axes[0].limits.upper == math.inf
    assert not arm.warnings
    with pytest.raises(KeyError):
        arm.link("nobody")


def test_model_name_can_be_replaced() -> None:
    assert load_model(ARM_URDF, name="left").name == "left"


def compute_rotation_matrix(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Return the matrix of rotations around the fixed axes x, then y, then z."""
    (cx, sx), (cy, sy), (cz, sz) = ((math.cos(a), math.sin(a)) for a in (roll, pitch, yaw))
    X = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    Y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    Z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return Z @ Y @ X


NUMBERS = st.floats(-3.0, 3.0).map(lambda value: round(value, 3))
ORIGINS = st.lists(st.tuples(*[NUMBERS] * 6), min_size=1, max_size=6)


@given(ORIGINS, st.randoms(use_true_random=False))
def test_link_poses_of_a_chain_equal_matrix_products(origins: list[tuple[float, ...]], order: object) -> None:
    """The link poses of a serial chain, with elements in any order, equal products of matrices."""
    parts = [f'<link name="l{i}"/>' for i in range(len(origins) + 1)]
    T, expected = np.eye(4), {"l0": np.eye(4)}
    for i, (x, y, z, *rpy) in enumerate(origins):
        parts.append(
            f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{i + 1}"/>'
            f'<origin xyz="{x} {y} {z}" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/></joint>'
        )
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = compute_rotation_matrix(*rpy), (x, y, z)
        T = T @ step
        expected[f"l{i + 1}"] = T
    order.shuffle(parts)  # type: ignore[attr-defined]
    model = load_model(urdf("".join(parts)))
    check_model(model)
    for link in model.links:
        assert np.allclose(link.T_model_link.matrix(), expected[link.name], atol=1e-9)


def test_urdf_joint_details_are_read() -> None:
    model = load_model(
        urdf(f"""<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link><link name="c">{INERTIAL}</link>
        <joint name="slide" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 0 -3"/>
          <limit lower="-0.1" upper="0.2" effort="5" velocity="1"/><dynamics damping="0.3" friction="0.4"/>
          <safety_controller soft_lower_limit="-0.05" soft_upper_limit="0.1" k_position="20" k_velocity="3"/></joint>
        <joint name="follow" type="continuous"><parent link="b"/><child link="c"/>
          <mimic joint="slide" multiplier="-2" offset="0.5"/></joint>""")
    )
    slide, follow = model.joints
    assert slide.axes[0].xyz == (0.0, 0.0, -1.0)
    assert (slide.axes[0].dynamics.damping, slide.axes[0].dynamics.friction) == (0.3, 0.4)
    assert slide.safety is not None
    assert (slide.safety.soft_lower, slide.safety.k_position) == (-0.05, 20.0)
    assert follow.mimic is not None
    assert (follow.mimic.joint, follow.mimic.multiplier, follow.mimic.offset) == ("slide", -2.0, 0.5)


def test_urdf_shapes_and_materials_are_read() -> None:
    model = load_model(
        urdf("""<material name="sky"><color rgba="0.1 0.2 0.3 0.5"/></material>
        <link name="a">
          <collision name="c"><origin xyz="1 2 3"/><geometry><box size="1 2 3"/></geometry></collision>
          <collision><geometry><cylinder radius="1" length="2"/></geometry></collision>
          <collision><geometry><capsule radius="1" length="2"/></geometry></collision>
          <visual name="v"><geometry><sphere radius="2"/></geometry><material name="sky"/></visual>
          <visual name="v"><geometry><sphere radius="2"/></geometry><material name="Gazebo/Red"/></visual>
          <visual><geometry><mesh filename="package://no/where.stl" scale="1 -1 1"/></geometry>
            <material name="gone"/></visual>
        </link>""")
    )
    link = model.links[0]
    assert [type(item.geometry) for item in link.collisions] == [Box, Cylinder, Capsule]
    assert link.collisions[0].T_link_geom.almost_equal(SE3.from_xyz_rpy((1, 2, 3)), 1e-12)
    assert len({item.name for item in (*link.collisions, *link.visuals)}) == 6
    assert isinstance(link.visuals[0].geometry, Sphere)
    assert link.visuals[0].material.rgba == (0.1, 0.2, 0.3, 0.5)
    assert link.visuals[1].material.rgba == (1.0, 0.0, 0.0, 1.0)
    mesh = link.visuals[2].geometry
    assert isinstance(mesh, Mesh)
    assert mesh.file is None
    assert mesh.scale == (1.0, -1.0, 1.0)
    assert link.inertial is None
    messages = [warning.message for warning in model.warnings]
    assert any("where.stl" in item and "placeholder" in item for item in messages)
    assert any("'gone' is not defined" in item for item in messages)


def test_gazebo_blocks_are_read() -> None:
    model = load_model(
        urdf(f"""<link name="a">{INERTIAL}
          <collision><geometry><sphere radius="1"/></geometry></collision>
          <visual><geometry><sphere radius="1"/></geometry></visual></link>
        <link name="b">{INERTIAL}</link>
        <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
        <gazebo reference="a"><mu1>0.3</mu1><mu2 value="0.2"/><kp>1e5</kp><kd>10</kd><fdir1>1 0 0</fdir1>
          <material>Gazebo/Orange</material><turnGravityOff>true</turnGravityOff><selfCollide>1</selfCollide>
          <sensor name="eye" type="gpu_lidar"><pose>0.1 0 0.2 0 0 0</pose><update_rate>12</update_rate>
            <topic>/scan</topic><lidar><scan><horizontal><samples>90</samples><min_angle>-1</min_angle>
            <max_angle>1</max_angle></horizontal></scan><range><min>0.2</min><max>8</max></range>
            <noise><type>gaussian</type><stddev>0.02</stddev></noise></lidar></sensor></gazebo>
        <gazebo reference="b"><sensor name="imu" type="imu"><update_rate>200</update_rate><imu><angular_velocity>
            <z><noise type="gaussian"><stddev>0.001</stddev></noise></z></angular_velocity></imu></sensor></gazebo>
        <gazebo reference="j"><springStiffness>3</springStiffness><springReference>0.5</springReference></gazebo>
        <gazebo><static>false</static><plugin name="drive" filename="libdrive.so"><wheel>j</wheel></plugin></gazebo>
        <gazebo reference="nobody"><mu1>1</mu1></gazebo>
        <gazebo reference="a"><frobnicate>1</frobnicate></gazebo>""")
    )
    check_model(model)
    a = model.link("a")
    surface = a.collisions[0].surface
    assert (surface.friction, surface.friction2, surface.friction_direction) == (0.3, 0.2, (1.0, 0.0, 0.0))
    assert (surface.stiffness, surface.damping) == (1e5, 10.0)
    assert a.visuals[0].material.rgba == (1.0, 0.5088, 0.0468, 1.0)
    assert not a.gravity
    assert a.self_collide
    eye, imu = model.sensors
    assert (eye.kind, eye.topic, eye.update_rate, eye.frame) == ("lidar", "scan", 12.0, "eye")
    assert isinstance(eye.spec, LidarSpec)
    assert (eye.spec.samples, eye.spec.range_min, eye.spec.range_max, eye.spec.noise.stddev) == (90, 0.2, 8.0, 0.02)
    assert (imu.link, imu.frame, imu.topic) == ("b", "b", "imu")
    assert isinstance(imu.spec, ImuSpec)
    assert [noise.stddev for noise in imu.spec.angular_velocity] == [0.0, 0.0, 0.001]
    dynamics = model.joint("j").axes[0].dynamics
    assert (dynamics.stiffness, dynamics.reference) == (3.0, 0.5)
    (plugin,) = model.plugins
    assert (plugin.name, plugin.filename, plugin.link) == ("drive", "libdrive.so", None)
    wheel = plugin.element.find("wheel")
    assert wheel is not None
    assert wheel.text == "j"
    messages = [str(warning) for warning in model.warnings]
    assert [message for message in messages if "'nobody'" in message]
    assert [message for message in messages if "<frobnicate>" in message and message.startswith("<text>:")]


def test_sensor_frame_with_another_pose_is_replaced_with_a_warning() -> None:
    text = '<gazebo reference="a"><sensor name="s" type="imu"><pose>0 0 1 0 0 0</pose><frame_id>a</frame_id></sensor>'
    model = load_model(urdf(f'<link name="a">{INERTIAL}</link>{text}</gazebo>'))
    assert model.sensors[0].frame == "s"
    assert any("has the frame 'a'" in warning.message for warning in model.warnings)


def test_sensors_of_equal_name_get_unique_names() -> None:
    links = f'<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link>'
    joint = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
    blocks = "".join(f'<gazebo reference="{link_name}"><sensor name="s" type="imu"/></gazebo>' for link_name in "ab")
    model = load_model(urdf(links + joint + blocks))
    assert [sensor.name for sensor in model.sensors] == ["s", "b_s"]
    assert len({sensor.topic for sensor in model.sensors}) == 2


def test_ros2_control_interfaces_are_read() -> None:
    model = load_model(
        urdf(f"""<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link><link name="c">{INERTIAL}</link>
        <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
        <joint name="k" type="continuous"><parent link="a"/><child link="c"/></joint>
        <ros2_control name="sys" type="system"><hardware><plugin>some/System</plugin></hardware>
          <joint name="j"><command_interface name="velocity"><param name="min">-3</param><param name="max">3</param>
            </command_interface><state_interface name="position"><param name="initial_value">0.4</param>
            </state_interface><state_interface name="velocity"/><param name="mimic">k</param></joint>
          <joint name="ghost"/></ros2_control>
        <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
          <joint name="k"><hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>
          <actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>""")
    )
    j, k = model.interfaces
    assert j.commands == (("velocity", -3.0, 3.0),)
    assert j.states == ("position", "velocity")
    assert j.initial == (("position", 0.4),)
    assert j.parameters == (("mimic", "k"),)
    assert (k.joint, k.commands, k.reduction) == ("k", (("effort", -math.inf, math.inf),), 50.0)
    assert (model.plugins[0].name, model.plugins[0].filename) == ("sys", "some/System")
    assert any("'ghost'" in warning.message for warning in model.warnings)


def test_root_link_named_world_is_the_world_frame() -> None:
    model = load_model(
        urdf(f"""<link name="world"/><link name="a">{INERTIAL}</link>
        <joint name="j" type="fixed"><parent link="world"/><child link="a"/><origin xyz="0 0 1"/></joint>""")
    )
    check_model(model)
    assert [link.name for link in model.links] == ["a"]
    assert model.joints[0].parent == "world"
    assert model.roots == ()


def test_missing_limits_cause_a_warning() -> None:
    model = load_model(ARM_URDF.replace('<limit lower="-1" upper="1" velocity="2" effort="30"/>', ""))
    assert model.joint("shoulder").axes[0].limits.upper == math.inf
    assert ["has no <limit>" in warning.message for warning in model.warnings] == [True]


@pytest.mark.parametrize(
    ("limit", "state", "initial", "expected"),
    [
        ('lower="-1" upper="2"', "position", "9", 2.0),
        ('lower="-1" upper="2"', "position", "-1e300", -1.0),
        ('lower="-1" upper="2"', "position", "1.5", 1.5),
        ('lower="1" upper="2"', "position", "0", 1.0),
        ('lower="-1" upper="2" velocity="3"', "velocity", "-4", -3.0),
        ('lower="-1" upper="2"', "velocity", "1e200", 1e6),
    ],
)
def test_initial_joint_position_is_clamped_to_its_limits(limit: str, state: str, initial: str, expected: float) -> None:
    text = urdf(
        f"""<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link>
        <joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit effort="1" {limit}/></joint>
        <ros2_control name="c" type="system"><joint name="j"><state_interface name="{state}">
        <param name="initial_value">{initial}</param></state_interface></joint></ros2_control>"""
    )
    model = load_model(text)
    assert model.interfaces[0].initial == ((state, expected),)
    warnings = [warning for warning in model.warnings if "starts at" in warning.message]
    assert bool(warnings) == (float(initial) != expected)


def write_imu_urdf(rate: str = "10", topic: str = "scan", noise: str = "0") -> str:
    return urdf(
        f"""<link name="a"/><gazebo reference="a"><sensor name="s" type="imu"><update_rate>{rate}</update_rate>
        <topic>{topic}</topic><imu><angular_velocity><x><noise type="gaussian"><stddev>{noise}</stddev></noise></x>
        </angular_velocity></imu></sensor></gazebo>"""
    )


@pytest.mark.parametrize(("rate", "message"), [("1e-300", "0.001"), ("1e-9", "0.001"), ("-1", "at least 0")])
def test_too_low_sensor_rate_is_refused(rate: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        load_model(write_imu_urdf(rate=rate))


def test_sensor_rate_above_that_of_physics_is_limited_with_a_warning() -> None:
    model = load_model(write_imu_urdf(rate="1e300"))
    assert model.sensors[0].update_rate == 10_000.0
    assert any("10000 Hz is used" in warning.message for warning in model.warnings)


def test_excessive_sensor_noise_is_refused() -> None:
    with pytest.raises(DescriptionError, match="stddev.*1e\\+300"):
        load_model(write_imu_urdf(noise="1e300"))


@given(st.text(st.characters(codec="utf-8", exclude_characters="<>&", exclude_categories=("C",)), max_size=20))
def test_any_topic_is_converted_to_a_valid_ros_topic(topic: str) -> None:
    topic_name = to_topic_name(topic)
    assert re.fullmatch(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", topic_name, re.ASCII)
    assert to_topic_name(topic_name) == topic_name
    model = load_model(write_imu_urdf(topic=topic))
    assert to_topic_name(model.sensors[0].topic) == model.sensors[0].topic


def test_valid_topic_is_kept_and_invalid_one_causes_a_warning() -> None:
    for topic in ("scan", "front/scan_2", "_x"):
        model = load_model(write_imu_urdf(topic=topic))
        assert model.sensors[0].topic == topic
        assert not any("topic" in warning.message for warning in model.warnings)
    model = load_model(write_imu_urdf(topic="front-left/2 d"))
    assert model.sensors[0].topic == "front_left/_2_d"
    assert any("not a valid topic name" in warning.message for warning in model.warnings)


@pytest.mark.parametrize(
    ("safety", "expected"),
    [
        ('soft_lower_limit="-1" soft_upper_limit="1" k_velocity="3"', "k_position is 0"),
        ('k_position="5" k_velocity="3"', "they are both 0"),
        ('k_velocity="3"', ""),
        ('soft_lower_limit="-1" soft_upper_limit="1" k_position="5" k_velocity="0"', ""),
    ],
)
def test_soft_limits_without_effect_cause_a_warning(safety: str, expected: str) -> None:
    text = f"""<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="revolute"><parent link="a"/>
      <child link="b"/><limit lower="-2" upper="2" velocity="1" effort="1"/><calibration rising="0.1"/>
      <safety_controller {safety}/></joint></robot>"""
    messages = [warning.message for warning in load_model(text).warnings]
    assert any("<calibration>" in message and "no effect" in message for message in messages)
    limit_messages = [message for message in messages if "soft limits" in message]
    assert [expected in message for message in limit_messages] == ([True] if expected else [])
    with pytest.raises(DescriptionError, match="k_velocity -1"):
        load_model(text.replace("<safety_controller", '<safety_controller k_velocity="-1"').replace(safety, ""))


def test_reversed_command_ranges_are_refused_or_repaired() -> None:
    text = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1"/></inertial></link>
      <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
      <ros2_control name="c" type="system"><joint name="j"><command_interface name="velocity">
      <param name="min">3</param><param name="max">-3</param></command_interface></joint></ros2_control></robot>"""
    with pytest.raises(DescriptionError, match="velocity commands of joint 'j' have min 3 above max -3"):
        load_model(text)
    repaired = load_model(text, repair=True)
    assert repaired.interfaces[0].commands == (("velocity", -3.0, 3.0),)
    assert len(repaired.repairs) == 1
