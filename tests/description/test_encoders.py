"""Encoders, and sensors of the truth, as files write them: in blocks, links, joints and drivers' parameters."""

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


def encoder(inside: str, name: str = "e") -> str:
    return f'<sensor name="{name}" type="encoder"><encoder>{inside}</encoder></sensor>'


def block(reference: str, inside: str) -> str:
    return f'<gazebo reference="{reference}">{inside}</gazebo>'


def driver(counts: str, joints: tuple[str, ...] = ("left", "right")) -> str:
    return (
        '<ros2_control name="base" type="system"><hardware><plugin>diffdrive_arduino/DiffDriveArduinoHardware</plugin>'
        f'<param name="enc_counts_per_rev">{counts}</param></hardware>'
        + "".join(f'<joint name="{joint}"><state_interface name="position"/></joint>' for joint in joints)
        + "</ros2_control>"
    )


@pytest.mark.parametrize("form", ["urdf", "sdf"])
def test_encoder_joints_resolution_and_noise_are_read(form: str) -> None:
    noise = '<noise type="gaussian"><stddev>0.1</stddev><bias_mean>0.2</bias_mean></noise>'
    sensor = encoder(f"<joint>right</joint><joint> left </joint><resolution>4096</resolution>{noise}")
    if form == "urdf":
        read = load_model(urdf(BODIES + JOINTS + block("a", sensor)))
    else:
        links = f'<link name="a">{sensor}</link><link name="b"/><link name="c"/>'
        read = load_model(sdf_model(links + SDF_JOINT.format("left", "b", "") + SDF_JOINT.format("right", "c", "")))
    check_model(read)
    (found,) = read.sensors
    assert (found.name, found.kind, found.link, found.frame) == ("e", "encoder", "a", "a")
    assert found.spec == EncoderSpec(("right", "left"), 4096, Noise(stddev=0.1, bias_mean=0.2))
    assert read.warnings == ()


@pytest.mark.parametrize("form", ["urdf", "sdf"])
def test_encoder_in_a_joint_measures_that_joint(form: str) -> None:
    if form == "urdf":
        read = load_model(urdf(BODIES + JOINTS + block("left", encoder("<resolution>12</resolution>"))))
    else:
        sensor = encoder("<resolution>12</resolution>")
        read = load_model(
            sdf_model(SDF_BODIES + SDF_JOINT.format("left", "b", sensor) + SDF_JOINT.format("right", "c", ""))
        )
    (found,) = read.sensors
    assert (found.link, found.spec) == ("b", EncoderSpec(("left",), 12))


def test_encoder_without_joints_measures_its_whole_model() -> None:
    read = load_model(urdf(BODIES + JOINTS + block("a", '<sensor name="e" type="encoder"/>')))
    assert read.sensors[0].spec == EncoderSpec()
    inner = (
        f'<model name="in"><link name="a">{encoder("<resolution>9</resolution>")}</link><link name="b"/>{{}}</model>'
    )
    outer = '<link name="base"/><joint name="j" type="revolute"><parent>base</parent><child>in::a</child></joint>'
    read = load_model(sdf_model(outer + inner.format(SDF_JOINT.format("left", "b", ""))))
    assert read.sensors[0].spec == EncoderSpec(("in::left",), 9)


def test_encoder_joint_names_follow_a_nested_model() -> None:
    inner = SDF_BODIES.replace('<link name="a"/>', f'<link name="a">{encoder("<joint>left</joint>")}</link>')
    joints = SDF_JOINT.format("left", "b", "") + SDF_JOINT.format("right", "c", "")
    read = load_model(sdf_model(f'<model name="in">{inner}{joints}</model>'))
    assert read.sensors[0].spec == EncoderSpec(("in::left",))


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("<joint>lift</joint>", "encoder 'e' names 'lift', which is no joint that turns or slides (left, right)"),
        ("<joint>still</joint>", "names 'still'"),
        ("<resolution>-1</resolution>", "encoder 'e' has -1 steps per revolution"),
        ("<resolution>4096.5</resolution>", "<resolution>"),
        ("<noise><stddev>-1</stddev></noise>", "<stddev>"),
    ],
)
def test_invalid_encoders_are_refused(inside: str, said: str) -> None:
    still = '<link name="d"/><joint name="still" type="fixed"><parent link="a"/><child link="d"/></joint>'
    with pytest.raises(DescriptionError) as caught:
        load_model(urdf(BODIES + JOINTS + still + block("a", encoder(inside))))
    assert said in str(caught.value)
    assert str(caught.value).startswith("<text>:")


def test_driver_parameters_give_encoder_counts() -> None:
    read = load_model(urdf(BODIES + JOINTS + driver("3436")))
    (found,) = read.sensors
    assert (found.name, found.link, found.spec) == ("base_encoders", "b", EncoderSpec(("left", "right"), 3436))
    assert read.warnings == ()


def test_stated_encoder_overrides_driver_counts() -> None:
    stated = block("a", encoder("<joint>left</joint><resolution>12</resolution>"))
    read = load_model(urdf(BODIES + JOINTS + driver("3436") + stated))
    assert [sensor.spec for sensor in read.sensors] == [EncoderSpec(("left",), 12), EncoderSpec(("right",), 3436)]
    of_all = block("a", '<sensor name="e" type="encoder"/>')
    assert len(load_model(urdf(BODIES + JOINTS + driver("3436") + of_all)).sensors) == 1


@pytest.mark.parametrize("counts", ["0", "-5", "many", "1.5"])
def test_driver_counts_must_be_positive_integers(counts: str) -> None:
    with pytest.raises(DescriptionError, match="enc_counts_per_rev"):
        load_model(urdf(BODIES + JOINTS + driver(counts)))


def test_truth_sensors_are_read() -> None:
    sensor = '<sensor name="t" type="truth"><update_rate>20</update_rate><topic>where</topic></sensor>'
    read = load_model(urdf(BODIES + JOINTS + block("b", sensor)))
    (found,) = read.sensors
    assert (found.kind, found.link, found.topic, found.update_rate) == ("truth", "b", "where", 20.0)
    assert found.spec == GroundTruthSpec()
    assert read.warnings == ()


@given(steps=st.integers(1, 1 << 20))
def test_encoder_counts_as_its_description_says(steps: int) -> None:
    """Through the simulation: the hardware's positions are whole steps, at most one behind the joint's."""
    text = encoder(f"<joint>left</joint><resolution>{steps}</resolution>")
    simulation = Simulation(World("nowhere"))
    simulation.add(load_model(urdf(BODIES + JOINTS + block("a", text))), "r")
    simulation.data.qpos[-2:] = 2.345
    simulation.instant.moved()
    left, right = simulation.hardware("r").read().position
    step = 2 * np.pi / steps
    assert right == 2.345
    assert left / step == pytest.approx(round(left / step), abs=1e-6)
    assert 0.0 <= 2.345 - left < step + 1e-9
