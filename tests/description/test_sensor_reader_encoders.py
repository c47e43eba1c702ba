"""Encoders and ground-truth sensors are read from Gazebo blocks, links, joints and parameters of drivers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.descriptions import INERTIAL, check_model, sdf_model, urdf

from roboyard.description import World, load_model
from roboyard.description.sensors import EncoderSpec, GroundTruthSpec, Noise
from roboyard.errors import DescriptionError
from roboyard.simulation import Simulation

BODIES = "".join(f'<link name="{name}">{INERTIAL}</link>' for name in "abc")
JOINTS = "".join(
    f'<joint name="{name}" type="continuous"><parent link="a"/><child link="{child}"/></joint>'
    for name, child in (("left", "b"), ("right", "c"))
)
SDF_BODIES = '<link name="a"/><link name="b"/><link name="c"/>'
SDF_JOINT = (
    '<joint name="{}" type="revolute"><parent>a</parent><child>{}</child><axis><xyz>0 0 1</xyz></axis>{}</joint>'
)


def write_encoder(content: str, name: str = "e") -> str:
    return f'<sensor name="{name}" type="encoder"><encoder>{content}</encoder></sensor>'


def write_gazebo_block(reference: str, content: str) -> str:
    return f'<gazebo reference="{reference}">{content}</gazebo>'


def write_driver(counts: str, joints: tuple[str, ...] = ("left", "right")) -> str:
    return (
        '<ros2_control name="base" type="system"><hardware><plugin>diffdrive_arduino/DiffDriveArduinoHardware</plugin>'
        f'<param name="enc_counts_per_rev">{counts}</param></hardware>'
        + "".join(f'<joint name="{joint}"><state_interface name="position"/></joint>' for joint in joints)
        + "</ros2_control>"
    )


@pytest.mark.parametrize("form", ["urdf", "sdf"])
def test_encoder_joints_resolution_and_noise_are_read(form: str) -> None:
    noise = '<noise type="gaussian"><stddev>0.1</stddev><bias_mean>0.2</bias_mean></noise>'
    sensor = write_encoder(f"<joint>right</joint><joint> left </joint><resolution>4096</resolution>{noise}")
    if form == "urdf":
        model = load_model(urdf(BODIES + JOINTS + write_gazebo_block("a", sensor)))
    else:
        links = f'<link name="a">{sensor}</link><link name="b"/><link name="c"/>'
        model = load_model(sdf_model(links + SDF_JOINT.format("left", "b", "") + SDF_JOINT.format("right", "c", "")))
    check_model(model)
    (encoder,) = model.sensors
    assert (encoder.name, encoder.kind, encoder.link, encoder.frame) == ("e", "encoder", "a", "a")
    assert encoder.spec == EncoderSpec(("right", "left"), 4096, Noise(stddev=0.1, bias_mean=0.2))
    assert model.warnings == ()


@pytest.mark.parametrize("form", ["urdf", "sdf"])
def test_encoder_in_a_joint_measures_that_joint(form: str) -> None:
    if form == "urdf":
        model = load_model(
            urdf(BODIES + JOINTS + write_gazebo_block("left", write_encoder("<resolution>12</resolution>")))
        )
    else:
        sensor = write_encoder("<resolution>12</resolution>")
        model = load_model(
            sdf_model(SDF_BODIES + SDF_JOINT.format("left", "b", sensor) + SDF_JOINT.format("right", "c", ""))
        )
    (encoder,) = model.sensors
    assert (encoder.link, encoder.spec) == ("b", EncoderSpec(("left",), 12))


def test_encoder_without_joints_measures_its_whole_model() -> None:
    model = load_model(urdf(BODIES + JOINTS + write_gazebo_block("a", '<sensor name="e" type="encoder"/>')))
    assert model.sensors[0].spec == EncoderSpec()
    sensor = write_encoder("<resolution>9</resolution>")
    inner = f'<model name="in"><link name="a">{sensor}</link><link name="b"/>{{}}</model>'
    outer = '<link name="base"/><joint name="j" type="revolute"><parent>base</parent><child>in::a</child></joint>'
    model = load_model(sdf_model(outer + inner.format(SDF_JOINT.format("left", "b", ""))))
    assert model.sensors[0].spec == EncoderSpec(("in::left",), 9)


def test_encoder_joint_names_include_the_nested_model() -> None:
    inner = SDF_BODIES.replace('<link name="a"/>', f'<link name="a">{write_encoder("<joint>left</joint>")}</link>')
    joints = SDF_JOINT.format("left", "b", "") + SDF_JOINT.format("right", "c", "")
    model = load_model(sdf_model(f'<model name="in">{inner}{joints}</model>'))
    assert model.sensors[0].spec == EncoderSpec(("in::left",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<joint>lift</joint>", "encoder 'e': 'lift' is not a revolute or prismatic joint (left, right)"),
        ("<joint>still</joint>", "'still' is not a revolute or prismatic joint"),
        ("<resolution>-1</resolution>", "encoder 'e' has -1 steps per revolution"),
        ("<resolution>4096.5</resolution>", "<resolution>"),
        ("<noise><stddev>-1</stddev></noise>", "<stddev>"),
    ],
)
def test_invalid_encoders_are_refused(content: str, message: str) -> None:
    fixed_joint = '<link name="d"/><joint name="still" type="fixed"><parent link="a"/><child link="d"/></joint>'
    with pytest.raises(DescriptionError) as caught:
        load_model(urdf(BODIES + JOINTS + fixed_joint + write_gazebo_block("a", write_encoder(content))))
    assert message in str(caught.value)
    assert str(caught.value).startswith("<text>:")


def test_driver_parameters_give_encoder_counts() -> None:
    model = load_model(urdf(BODIES + JOINTS + write_driver("3436")))
    (sensor,) = model.sensors
    assert (sensor.name, sensor.link, sensor.spec) == ("base_encoders", "b", EncoderSpec(("left", "right"), 3436))
    assert model.warnings == ()


def test_stated_encoder_overrides_driver_counts() -> None:
    stated = write_gazebo_block("a", write_encoder("<joint>left</joint><resolution>12</resolution>"))
    model = load_model(urdf(BODIES + JOINTS + write_driver("3436") + stated))
    assert [sensor.spec for sensor in model.sensors] == [EncoderSpec(("left",), 12), EncoderSpec(("right",), 3436)]
    encoder_of_all_joints = write_gazebo_block("a", '<sensor name="e" type="encoder"/>')
    assert len(load_model(urdf(BODIES + JOINTS + write_driver("3436") + encoder_of_all_joints)).sensors) == 1


@pytest.mark.parametrize("counts", ["0", "-5", "many", "1.5"])
def test_driver_counts_must_be_positive_integers(counts: str) -> None:
    with pytest.raises(DescriptionError, match="enc_counts_per_rev"):
        load_model(urdf(BODIES + JOINTS + write_driver(counts)))


def test_ground_truth_sensor_is_read() -> None:
    sensor = '<sensor name="t" type="ground_truth"><update_rate>20</update_rate><topic>where</topic></sensor>'
    model = load_model(urdf(BODIES + JOINTS + write_gazebo_block("b", sensor)))
    (truth_sensor,) = model.sensors
    assert (truth_sensor.kind, truth_sensor.link, truth_sensor.topic, truth_sensor.update_rate) == (
        "ground_truth",
        "b",
        "where",
        20.0,
    )
    assert truth_sensor.spec == GroundTruthSpec()
    assert model.warnings == ()


@given(steps=st.integers(1, 1 << 20))
def test_encoder_resolution_quantizes_the_joint_position(steps: int) -> None:
    """The simulated hardware reports whole encoder steps, less than one step below the joint position."""
    text = write_encoder(f"<joint>left</joint><resolution>{steps}</resolution>")
    simulation = Simulation(World("nowhere"))
    simulation.add(load_model(urdf(BODIES + JOINTS + write_gazebo_block("a", text))), "r")
    simulation.world.data.qpos[-2:] = 2.345
    simulation.world.mark_changed()
    left, right = simulation.hardware("r").read().position
    step = 2 * np.pi / steps
    assert right == 2.345
    assert left / step == pytest.approx(round(left / step), abs=1e-6)
    assert 0.0 <= 2.345 - left < step + 1e-9
