"""Sensors that plugins make without a <sensor>, as older simulators have them; plugins that let joints follow."""

from __future__ import annotations

import pytest

from roboyard.description import Model, load_model
from roboyard.description.sensors import AltimeterSpec, ForceTorqueSpec, GnssSpec, ImuSpec, ThreeAxisSpec
from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins import map_plugins

ROBOT = """<robot name="r">
  <link name="base"><inertial><mass value="5"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.4 0.4 0.2"/></geometry></collision></link>
  {arms}
  {blocks}</robot>"""
ARM = """<link name="{0}"><inertial><mass value="0.5"/>
    <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{0}_joint" type="revolute"><parent link="base"/><child link="{0}"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/></joint>"""


def read(blocks: str, reference: str = "") -> Model:
    around = f'<gazebo reference="{reference}">' if reference else "<gazebo>"
    return load_model(ROBOT.format(arms=ARM.format("left") + ARM.format("right"), blocks=f"{around}{blocks}</gazebo>"))


def plugin(file: str, inside: str) -> str:
    return f'<plugin name="one" filename="libhector_gazebo_ros_{file}.so">{inside}</plugin>'


IMU = plugin(
    "imu",
    """<updateRate>40</updateRate><bodyName>base</bodyName><topicName>/imu/data</topicName><frameId>imu_frame</frameId>
    <accelGaussianNoise>0.1 0.2 0.3</accelGaussianNoise><accelDrift>0.01 0.01 0.01</accelDrift>
    <rateGaussianNoise>0.5</rateGaussianNoise><xyzOffset>0.1 0 0.2</xyzOffset>""",
)


def test_plugin_imu_has_its_noise_and_pose() -> None:
    model = read(IMU)
    (one,) = model.sensors
    assert (one.name, one.kind, one.link, one.topic, one.update_rate) == ("one", "imu", "base", "imu/data", 40.0)
    assert tuple(one.T_link_sensor.xyz) == (0.1, 0.0, 0.2)
    assert isinstance(one.spec, ImuSpec)
    assert [axis.stddev for axis in one.spec.linear_acceleration] == [0.1, 0.2, 0.3]
    assert [axis.dynamic_bias_stddev for axis in one.spec.linear_acceleration] == [0.01] * 3
    assert [axis.stddev for axis in one.spec.angular_velocity] == [0.5] * 3
    assert not [said for said in map_plugins(model).findings if "left out" in said]


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
    (one,) = read(plugin(file, body + "<gaussianNoise>1 1 1</gaussianNoise>"), reference).sensors
    assert (one.kind, one.link) == (kind, "left")
    assert isinstance(one.spec, spec)


def test_plugin_force_sensor_is_on_its_joint() -> None:
    text = '<plugin name="ft" filename="libgazebo_ros_ft_sensor.so"><jointName>left_joint</jointName></plugin>'
    (one,) = read(text).sensors
    assert isinstance(one.spec, ForceTorqueSpec)
    assert (one.spec.joint, one.link) == ("left_joint", "left")


def test_missing_plugin_links_are_findings_and_bad_numbers_errors() -> None:
    model = read(plugin("imu", "<bodyName>tail</bodyName>"))
    assert not model.sensors
    assert any("'tail'" in found.message for found in model.warnings)
    assert any("left out" in said for said in map_plugins(model).findings)
    with pytest.raises(DescriptionError, match="accelGaussianNoise"):
        read(IMU.replace("0.1 0.2 0.3", "0.1 loud 0.3"))


def test_mimic_plugins_couple_joints() -> None:
    text = """<plugin name="m" filename="libroboticsgroup_gazebo_mimic_joint_plugin.so"><joint>{}</joint>
      <mimicJoint>right_joint</mimicJoint><multiplier>-2</multiplier><offset>0.1</offset></plugin>"""
    mimic = read(text.format("left_joint")).joint("right_joint").mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("left_joint", -2.0, 0.1)
    assert read(text.format("right_joint")).joint("right_joint").mimic is None
