"""The laws that every registered kind of sensor obeys, with noise and without."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.harness.models import (
    IDENTITY,
    box_inertia,
    free_box,
    ground_plane,
    make_pose,
    make_world,
    static_box,
)
from tests.harness.simulations import SimulationHarness

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Box,
    Collision,
    Inertial,
    Joint,
    Link,
    Material,
    Model,
    Visual,
)
from roboyard.description.sensors import (
    AltimeterSpec,
    BarometerSpec,
    CameraSpec,
    ContactSpec,
    CustomSensorSpec,
    DepthNoise,
    EncoderSpec,
    ForceTorqueSpec,
    GnssSpec,
    GroundTruthSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    Outage,
    Sensor,
    SonarSpec,
    ThreeAxisSpec,
    camera_topics,
)
from roboyard.geometry import CameraModel
from roboyard.messages import msg
from roboyard.sensors.registry import SENSORS
from roboyard.sensors.sensor import SimulatedSensor
from roboyard.simulation import Simulation
from roboyard.simulation.nodes.sensor_messages import make_converter
from roboyard.simulation.sensor_contract import SensorContractError, check_sensor, reading_to_bytes

NOISE = Noise(stddev=0.01, dynamic_bias_stddev=0.02, dynamic_bias_correlation_time=5.0)
LENS = CameraModel.from_field_of_view(16, 12, 1.0)
NOISY_SPECS: dict[str, Any] = {
    "lidar": LidarSpec(samples=60, noise=Noise(stddev=0.01), false_echo_probability=0.05, dropout_probability=0.05),
    "sonar": SonarSpec(noise=NOISE, false_echo_probability=0.1, dropout_probability=0.1),
    "imu": ImuSpec((NOISE,) * 3, (NOISE,) * 3),
    "accelerometer": ThreeAxisSpec((NOISE,) * 3),
    "gyroscope": ThreeAxisSpec((NOISE,) * 3),
    "magnetometer": ThreeAxisSpec((NOISE,) * 3),
    "altimeter": AltimeterSpec(NOISE, NOISE),
    "air_pressure": BarometerSpec(NOISE),
    "navsat": GnssSpec(NOISE, NOISE, NOISE, NOISE, min_sky_fraction=0.0),
    "encoder": EncoderSpec(resolution=100, noise=NOISE, miscount_probability=0.1),
    "force_torque": ForceTorqueSpec("hinge", force=(NOISE,) * 3, torque=(NOISE,) * 3),
    "contact": ContactSpec(),
    "ground_truth": GroundTruthSpec(),
    "camera": CameraSpec(color=LENS, noise=NOISE),
    "depth_camera": CameraSpec(depth=LENS, depth_noise=DepthNoise("gaussian", NOISE)),
    "rgbd_camera": CameraSpec(color=LENS, depth=LENS, depth_noise=DepthNoise("khoshelham", baseline=0.075)),
    "stereo_camera": CameraSpec(
        color=LENS, depth=LENS, baseline=0.1, depth_noise=DepthNoise("stereo", disparity_stddev=0.2)
    ),
}
EXACT_SPECS: dict[str, Any] = {
    "lidar": LidarSpec(samples=60),
    "sonar": SonarSpec(),
    "imu": ImuSpec(),
    "accelerometer": ThreeAxisSpec(),
    "gyroscope": ThreeAxisSpec(),
    "magnetometer": ThreeAxisSpec(),
    "altimeter": AltimeterSpec(),
    "air_pressure": BarometerSpec(),
    "navsat": GnssSpec(min_sky_fraction=0.0),
    "encoder": EncoderSpec(),
    "force_torque": ForceTorqueSpec("hinge"),
    "contact": ContactSpec(),
    "ground_truth": GroundTruthSpec(),
    "camera": CameraSpec(color=LENS),
    "depth_camera": CameraSpec(depth=LENS),
    "rgbd_camera": CameraSpec(color=LENS, depth=LENS),
    "stereo_camera": CameraSpec(color=LENS, depth=LENS, baseline=0.1),
}
KINDS = sorted(SENSORS.names())
KINDS_WITHOUT_RANDOMNESS = ("contact", "ground_truth")
RANDOM_KINDS = [kind for kind in KINDS if kind not in KINDS_WITHOUT_RANDOMNESS]
T_LINK_SENSOR = make_pose(0.25, 0.05, 0.3, 0.1, 0.0, 0.2)


def make_sensor(kind: str, specs: dict[str, Any], **more: Any) -> Sensor:
    return Sensor(kind, kind, "arm", T_LINK_SENSOR, 50.0, kind, "arm", specs[kind], **more)


def make_robot(sensor: Sensor) -> Model:
    """A box with a hinged arm that carries the sensor."""
    base, arm = Box((0.4, 0.3, 0.2)), Box((0.3, 0.04, 0.04))
    green = Material("green", (0.2, 0.7, 0.2, 1.0))
    links = (
        Link(
            "base",
            IDENTITY,
            Inertial(5.0, IDENTITY, box_inertia(5.0, base.size)),
            (Collision("c", base, IDENTITY),),
            (Visual("v", base, IDENTITY, green),),
        ),
        Link(
            "arm",
            make_pose(z=0.15),
            Inertial(0.5, IDENTITY, box_inertia(0.5, arm.size)),
            (Collision("c", arm, IDENTITY),),
            (Visual("v", arm, IDENTITY, green),),
        ),
    )
    axis = Axis((0.0, 0.0, 1.0), AxisLimits(-2.0, 2.0, 5.0, 5.0))
    return Model(
        "probe", links, (Joint("hinge", "revolute", "base", "arm", make_pose(z=0.15), IDENTITY, (axis,)),), (sensor,)
    )


def simulate(sensor: Sensor, seed: int = 0, *, is_moving: bool = False) -> Simulation:
    """The robot before a wall; it rests on the ground, or falls while its arm swings."""
    simulation = Simulation(
        make_world(ground_plane(), static_box("wall", (0.2, 6.0, 3.0), make_pose(2.5, 0.0, 1.5))), seed=seed
    )
    simulation.add(make_robot(sensor), "probe", make_pose(z=0.6 if is_moving else 0.1))
    if is_moving:
        simulation.world.data.qvel[-1] = 1.5
        simulation.world.mark_changed()
    return simulation


def get_sensor(simulation: Simulation) -> SimulatedSensor[Any]:
    (sensor,) = simulation.sensors("probe")
    return sensor


def collect_readings(simulation: Simulation, count: int = 12, steps: int = 9) -> list[bytes]:
    readings = []
    for _ in range(count):
        simulation.step(steps)
        readings.append(reading_to_bytes(get_sensor(simulation).read()))
    return readings


def find_arrays(value: Any) -> Iterator[np.ndarray]:
    """All arrays of a reading, also those inside tuples and records."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from find_arrays(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from find_arrays(getattr(value, field.name))


def find_numbers(value: Any) -> Iterator[float]:
    """All numbers of a reading except those of its description."""
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if isinstance(item, float):
            yield item
        elif field.name != "spec":
            for array in find_arrays(item):
                yield from np.asarray(array, float).ravel().tolist()


def test_suite_has_a_description_of_every_registered_kind() -> None:
    assert set(NOISY_SPECS) == set(EXACT_SPECS) == set(KINDS)


# -- the contract ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_sensor_kinds_keep_the_contract(kind: str) -> None:
    assert len(check_sensor(make_sensor(kind, NOISY_SPECS, outage=Outage(0.1, 0.1)))) == 5


class ViolatingSensor(SimulatedSensor[Any]):
    """Breaks the contract in a way that its description chooses."""

    kind = "wild"

    def measure(self, time_ns: int, elapsed_ns: int) -> Any:
        from roboyard.sensors.imu import ThreeAxisReading

        violation = self.sensor.topic
        if violation == "raises":
            raise ZeroDivisionError("no light")
        if violation == "moves":
            self.context.world.data.qvel[0] += 0.01
        value = np.zeros(3) if violation != "chance" else np.random.default_rng().random(3)
        value.flags.writeable = violation == "open"
        return ThreeAxisReading(time_ns + (violation == "late"), value)


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        ("moves", "changes"),
        ("chance", "seed"),
        ("open", "written"),
        ("late", "time_ns"),
        ("raises", "ZeroDivisionError: no light"),
    ],
)
def test_sensor_contract_violations_are_reported(violation: str, message: str) -> None:
    sensor = Sensor("wild", "wild", "arm", IDENTITY, 50.0, violation, "arm", CustomSensorSpec())
    with pytest.raises(SensorContractError, match=message):
        check_sensor(sensor, ViolatingSensor)


# -- readings ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("specs", [NOISY_SPECS, EXACT_SPECS], ids=["noisy", "exact"])
def test_readings_are_records_of_read_only_arrays(kind: str, specs: dict[str, Any]) -> None:
    simulation = simulate(make_sensor(kind, specs))
    simulation.step(3)
    reading = get_sensor(simulation).read()
    assert reading.time_ns == simulation.time_ns
    assert get_sensor(simulation).read() is reading
    with pytest.raises(dataclasses.FrozenInstanceError):
        reading.time_ns = 0
    assert not any(array.flags.writeable for array in find_arrays(reading))


@pytest.mark.parametrize("kind", KINDS)
def test_exact_sensor_measures_without_chance_and_without_unknown_values(kind: str) -> None:
    first, second = (simulate(make_sensor(kind, EXACT_SPECS), seed, is_moving=True) for seed in (1, 2))
    assert not get_sensor(first).is_random
    assert collect_readings(first) == collect_readings(second)
    assert not any(math.isnan(number) for number in find_numbers(get_sensor(first).read()))


@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_noisy_sensor_repeats_its_noise_with_the_seed_alone(kind: str) -> None:
    first, repeated, other = (
        collect_readings(simulate(make_sensor(kind, NOISY_SPECS), seed, is_moving=True)) for seed in (1, 1, 2)
    )
    assert first == repeated
    assert first != other


@pytest.mark.parametrize("kind", KINDS)
def test_sensor_continues_from_a_saved_state_in_another_simulation(kind: str) -> None:
    sensor = make_sensor(kind, NOISY_SPECS, outage=Outage(0.02, 0.02))
    simulation = simulate(sensor, 3, is_moving=True)
    collect_readings(simulation, 5)
    saved = simulation.save_state()

    def continue_from(continued: Simulation) -> list[tuple[bool, bytes]]:
        found = []
        for _ in range(8):
            continued.step(9)
            twin = get_sensor(continued)
            found.append((twin.has_outage(), reading_to_bytes(twin.read())))
        return found

    expected = continue_from(simulation)
    restored = simulate(sensor, 3)
    restored.load_state(saved)
    assert continue_from(restored) == expected
    assert {is_silent for is_silent, _ in expected} == {True, False}


@pytest.mark.parametrize("kind", KINDS)
def test_sensor_finds_its_place_again_when_models_come_and_go(kind: str) -> None:
    """A model far away and behind the sensor changes nothing that the sensor measures."""
    simulation, undisturbed = (simulate(make_sensor(kind, EXACT_SPECS)) for _ in range(2))
    for change in (
        lambda: simulation.add(free_box("far"), "far", make_pose(-60.0, 0.0, 0.1)),
        lambda: simulation.add(free_box("farther"), "farther", make_pose(-70.0, 0.0, 0.1)),
        lambda: simulation.remove("far"),
        lambda: simulation.remove("farther"),
    ):
        change()
        for each in (simulation, undisturbed):
            each.step(5)
        expected, found = (list(find_numbers(get_sensor(each).read())) for each in (undisturbed, simulation))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "encoder"])  # encoders are in joints
def test_pose_of_the_sensor_is_that_of_its_link_and_mounting(kind: str) -> None:
    simulation = simulate(make_sensor(kind, EXACT_SPECS), is_moving=True)
    simulation.step(80)
    sensor, world = get_sensor(simulation), simulation.world
    T_world_link = world.link_ground_truth(world.addresses("probe").links["arm"]).T_world_base
    assert sensor.T_world_sensor().almost_equal(T_world_link @ T_LINK_SENSOR, 1e-9)


# -- messages ----------------------------------------------------------------------------------------------------------
def find_topic(sensor: Sensor) -> tuple[str, type]:
    """Topic and type of the sensor's first output."""
    if isinstance(sensor.spec, CameraSpec):
        topics = camera_topics(sensor, sensor.spec)
        return f"/{topics['image' if sensor.spec.has_color else 'depth']}", msg.Image
    converter = make_converter(get_sensor(simulate(sensor)), "arm")
    assert converter is not None
    return f"/{sensor.topic}", converter[0]


def publishing_times(sensor: Sensor, seconds: float) -> tuple[list[int], list[int]]:
    """When messages of the sensor were published, and their stamps [ns]."""
    topic, message_type = find_topic(sensor)
    with SimulationHarness(simulate(sensor, 5)) as harness:
        harness.record(topic, message_type)
        harness.run_for(seconds)
        published = harness.published(topic)
        stamps = [item.message.header.stamp for item in published]
        return [item.time_ns for item in published], [stamp.sec * 10**9 + stamp.nanosec for stamp in stamps]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "encoder"])  # hardware reads encoders
def test_messages_have_the_declared_rate_and_latency(kind: str) -> None:
    published, stamps = publishing_times(make_sensor(kind, EXACT_SPECS, latency=0.033), 0.5)
    assert len(stamps) >= 22
    assert set(np.diff(stamps)) == {20_000_000}
    assert {sent - stamp for sent, stamp in zip(published, stamps, strict=True)} == {33_000_000}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "encoder"])
def test_outages_omit_messages_and_change_none(kind: str) -> None:
    sensor = make_sensor(kind, EXACT_SPECS)
    _, all_stamps = publishing_times(sensor, 0.5)
    _, stamps = publishing_times(replace(sensor, outage=Outage(0.1, 0.1)), 0.5)
    assert set(stamps) < set(all_stamps)
    assert 3 <= len(stamps) <= 22
