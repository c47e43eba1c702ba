"""Gazebo Classic plugins that create sensors without a <sensor> element, and plugins that couple joints, are read."""

from __future__ import annotations

import pytest

from roboyard.bringup.plugins.mapping import map_plugins
from roboyard.description import Model, load_model
from roboyard.description.sensors import AltimeterSpec, ForceTorqueSpec, GnssSpec, ImuSpec, ThreeAxisSpec
from roboyard.errors import DescriptionError

ROBOT = """<robot name="r">
  <link name="base"><inertial><mass value="5"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.4 0.4 0.2"/></geometry></collision></link>
  {arms}
  {blocks}</robot>"""
ARM = """<link name="{0}"><inertial><mass value="0.5"/>
    <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{0}_joint" type="revolute"><parent link="base"/><child link="{0}"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/></joint>"""


def load_robot(blocks: str, reference: str = "") -> Model:
    opening_tag = f'<gazebo reference="{reference}">' if reference else "<gazebo>"
    return load_model(
        ROBOT.format(arms=ARM.format("left") + ARM.format("right"), blocks=f"{opening_tag}{blocks}</gazebo>")
    )


def write_plugin(file: str, content: str) -> str:
    return f'<plugin name="one" filename="libhector_gazebo_ros_{file}.so">{content}</plugin>'


IMU = write_plugin(
    "imu",
    """<updateRate>40</updateRate><bodyName>base</bodyName><topicName>/imu/data</topicName><frameId>imu_frame</frameId>
    <accelGaussianNoise>0.1 0.2 0.3</accelGaussianNoise><accelDrift>0.01 0.01 0.01</accelDrift>
    <rateGaussianNoise>0.5</rateGaussianNoise><xyzOffset>0.1 0 0.2</xyzOffset>""",
)


def test_plugin_imu_has_its_noise_and_pose() -> None:
    model = load_robot(IMU)
    (sensor,) = model.sensors
    assert (sensor.name, sensor.kind, sensor.link, sensor.topic, sensor.update_rate) == (
        "one",
        "imu",
        "base",
        "imu/data",
        40.0,
    )
    assert tuple(sensor.T_link_sensor.xyz) == (0.1, 0.0, 0.2)
    assert isinstance(sensor.spec, ImuSpec)
    assert [axis.stddev for axis in sensor.spec.linear_acceleration] == [0.1, 0.2, 0.3]
    assert [axis.dynamic_bias_stddev for axis in sensor.spec.linear_acceleration] == [0.01] * 3
    assert [axis.stddev for axis in sensor.spec.angular_velocity] == [0.5] * 3
    assert not [finding for finding in map_plugins(model).findings if "left out" in finding]


@pytest.mark.parametrize("reference", ["", "left"])
@pytest.mark.parametrize(
    ("file", "kind", "spec"),
    [
        ("gps", "navsat", GnssSpec),
        ("magnetic", "magnetometer", ThreeAxisSpec),
        ("baro", "altimeter", AltimeterSpec),
        ("imu", "imu", ImuSpec),
    ],
)
def test_plugin_sensors_are_on_the_link_they_name(file: str, kind: str, spec: type, reference: str) -> None:
    body = "" if reference else "<bodyName>left</bodyName>"
    (sensor,) = load_robot(write_plugin(file, body + "<gaussianNoise>1 1 1</gaussianNoise>"), reference).sensors
    assert (sensor.kind, sensor.link) == (kind, "left")
    assert isinstance(sensor.spec, spec)


def test_plugin_force_sensor_is_on_its_joint() -> None:
    text = '<plugin name="ft" filename="libgazebo_ros_ft_sensor.so"><jointName>left_joint</jointName></plugin>'
    (sensor,) = load_robot(text).sensors
    assert isinstance(sensor.spec, ForceTorqueSpec)
    assert (sensor.spec.joint, sensor.link) == ("left_joint", "left")


def test_missing_plugin_link_is_a_warning_and_invalid_number_an_error() -> None:
    model = load_robot(write_plugin("imu", "<bodyName>tail</bodyName>"))
    assert not model.sensors
    assert any("'tail'" in warning.message for warning in model.warnings)
    assert any("left out" in finding for finding in map_plugins(model).findings)
    with pytest.raises(DescriptionError, match="accelGaussianNoise"):
        load_robot(IMU.replace("0.1 0.2 0.3", "0.1 loud 0.3"))


def test_mimic_plugin_couples_joints() -> None:
    text = """<plugin name="m" filename="libroboticsgroup_gazebo_mimic_joint_plugin.so"><joint>{}</joint>
      <mimicJoint>right_joint</mimicJoint><multiplier>-2</multiplier><offset>0.1</offset></plugin>"""
    mimic = load_robot(text.format("left_joint")).joint("right_joint").mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("left_joint", -2.0, 0.1)
    assert load_robot(text.format("right_joint")).joint("right_joint").mimic is None
