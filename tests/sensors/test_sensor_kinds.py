"""Every kind of sensor against what it must measure by analysis."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.bus import check_snapshot_continues
from tests.harness.models import IDENTITY, box_inertia, free_box, ground_plane, make_pose, make_world, static_box
from tests.harness.simulations import SimulationHarness

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Box,
    Collision,
    GeodeticOrigin,
    Inertial,
    Joint,
    Link,
    Material,
    Model,
    PlacedModel,
    Visual,
)
from roboyard.description.sensors import (
    AltimeterSpec,
    BarometerSpec,
    EncoderSpec,
    ForceTorqueSpec,
    GnssSpec,
    LidarSpec,
    Noise,
    Outage,
    Sensor,
    SonarSpec,
    ThreeAxisSpec,
)
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.sensors.altitude import air_pressure
from roboyard.sensors.gnss import to_geodetic
from roboyard.simulation import Simulation
from roboyard.simulation.faults import Fault, SensorFault

NOISE = Noise(stddev=0.01, dynamic_bias_stddev=0.02, dynamic_bias_correlation_time=5.0)


def sensor(kind: str, spec: Any, T: SE3 = IDENTITY, **more: Any) -> Sensor:
    return Sensor(kind, kind, "body", T, 50.0, kind, "body", spec, **more)


def simulate_crate(one: Sensor, *others: PlacedModel, T: SE3 = IDENTITY, seed: int = 0, **options: Any) -> Simulation:
    """A crate that carries the sensor, hanging in the air unless there is gravity."""
    gravity = options.pop("gravity", 0.0)
    sim = Simulation(replace(make_world(*others, gravity=gravity), **options), seed=seed)
    sim.add(free_box(sensors=(one,)), "crate", T)
    return sim


def read(sim: Simulation) -> Any:
    return sim.sensors("crate")[0].read()


# -- three axes --------------------------------------------------------------------------------------------------------
def test_accelerometer_and_gyroscope_agree_with_the_imu() -> None:
    T = make_pose(0.1, 0.0, 0.02, 0.3, -0.2, 0.5)
    for kind, expected in (("accelerometer", T.inverse().rotation_matrix() @ [0, 0, 9.8]), ("gyroscope", np.zeros(3))):
        sim = simulate_crate(sensor(kind, ThreeAxisSpec(), T), ground_plane(), T=make_pose(z=0.1), gravity=-9.8)
        sim.step(500)
        np.testing.assert_allclose(read(sim).vector, expected, atol=1e-3)


@given(st.floats(-3, 3), st.floats(-1.5, 1.5), st.floats(-3, 3))
@settings(max_examples=20, deadline=None)
def test_magnetometer_field_turns_against_the_sensor(roll: float, pitch: float, yaw: float) -> None:
    field = (2e-5, -3e-6, 4e-5)
    pose = make_pose(roll=roll, pitch=pitch, yaw=yaw)
    measured = read(simulate_crate(sensor("magnetometer", ThreeAxisSpec()), T=pose, magnetic_field=field)).vector
    np.testing.assert_allclose(pose.rotation_matrix() @ measured, field, atol=1e-15)


# -- height ------------------------------------------------------------------------------------------------------------
def test_altimeter_and_barometer_follow_a_free_fall() -> None:
    sim = simulate_crate(sensor("altimeter", AltimeterSpec()), T=make_pose(z=100.0), gravity=-9.8)
    sim.step(500)
    reading = read(sim)
    assert reading.height == pytest.approx(-0.5 * 9.8, rel=3e-3)
    assert reading.vertical_velocity == pytest.approx(-9.8, rel=1e-6)
    assert reading.reference == pytest.approx(100.0)
    sim = simulate_crate(sensor("air_pressure", BarometerSpec(reference_altitude=500.0)), T=make_pose(z=100.0))
    assert read(sim).pressure == pytest.approx(air_pressure(600.0))


@given(st.floats(0, 10_000))
def test_air_pressure_is_in_hydrostatic_balance(altitude: float) -> None:
    """dp/dz = -rho g with the ideal gas law."""
    slope = (air_pressure(altitude + 0.5) - air_pressure(altitude - 0.5)) / 1.0
    density = air_pressure(altitude) * 0.0289644 / (8.31447 * (288.15 - 0.0065 * altitude))
    assert slope == pytest.approx(-density * 9.80665, rel=1e-5)


# -- satellites --------------------------------------------------------------------------------------------------------
def _ecef(latitude: float, longitude: float, height: float) -> np.ndarray:
    a, f = 6378137.0, 1 / 298.257223563
    e2 = f * (2 - f)
    n = a / math.sqrt(1 - e2 * math.sin(latitude) ** 2)
    return np.array(
        [
            (n + height) * math.cos(latitude) * math.cos(longitude),
            (n + height) * math.cos(latitude) * math.sin(longitude),
            (n * (1 - e2) + height) * math.sin(latitude),
        ]
    )


@given(
    st.floats(-1.5, 1.5), st.floats(-3, 3), st.floats(-100, 4000),
    st.lists(st.floats(-2000, 2000), min_size=3, max_size=3),
)  # fmt: skip
@settings(max_examples=60)
def test_geodetic_positions_survive_earth_centered_coordinates(
    latitude: float, longitude: float, elevation: float, offset: list[float]
) -> None:
    origin = GeodeticOrigin(latitude, longitude, elevation)
    position = _ecef(*to_geodetic(origin, np.array(offset)))
    displacement = position - _ecef(latitude, longitude, elevation)
    assert np.linalg.norm(displacement) == pytest.approx(np.linalg.norm(offset), abs=1e-5)
    up = np.array(
        [math.cos(latitude) * math.cos(longitude), math.cos(latitude) * math.sin(longitude), math.sin(latitude)]
    )
    assert displacement @ up == pytest.approx(offset[2], abs=1e-5)


def test_satellite_fix_needs_open_sky() -> None:
    one = sensor("navsat", GnssSpec())
    roof = static_box("roof", (20, 20, 0.2), make_pose(z=4.0))
    wall = static_box("wall", (0.2, 40, 3), make_pose(3.0, 0, 1.5))
    assert read(simulate_crate(one)).has_fix
    assert read(simulate_crate(one, wall)).has_fix
    indoors = read(simulate_crate(one, roof))
    assert not indoors.has_fix
    assert math.isnan(indoors.latitude)


def test_satellite_longitude_and_heading_follow_the_world_axes() -> None:
    origin = GeodeticOrigin(math.radians(50), math.radians(8), 100.0)
    reading = read(simulate_crate(sensor("navsat", GnssSpec()), T=make_pose(100.0, 0, 0), origin=origin))
    assert math.degrees(reading.latitude) == pytest.approx(50.0, abs=1e-6)
    assert math.degrees(reading.longitude) > 8.001
    rotated_origin = replace(origin, heading=math.pi / 2)
    reading = read(simulate_crate(sensor("navsat", GnssSpec()), T=make_pose(100.0, 0, 0), origin=rotated_origin))
    assert math.degrees(reading.longitude) == pytest.approx(8.0, abs=1e-6)
    assert math.degrees(reading.latitude) > 50.0008


# -- sonar -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("distance", [0.3, 1.0, 2.7, 4.5])
def test_sonar_measures_the_nearest_point_of_a_wall(distance: float) -> None:
    one = sensor("sonar", SonarSpec(), make_pose(0.21))
    wall = static_box("wall", (0.1, 6, 4), make_pose(distance + 0.05 + 0.21))
    assert read(simulate_crate(one, wall)).range == pytest.approx(distance, rel=2e-3)


def test_sonar_detects_objects_within_its_cone_only() -> None:
    for angle, is_detected in ((0.0, True), (0.2, True), (0.45, False)):
        post = static_box("post", (0.2, 0.2, 2), make_pose(2 * math.cos(angle), 2 * math.sin(angle), 0, yaw=angle))
        assert math.isfinite(read(simulate_crate(sensor("sonar", SonarSpec()), post)).range) is is_detected


def test_tilted_wall_reflects_sonar_away_but_its_edge_does_not() -> None:
    def tilted(angle: float, size: float) -> float:
        wall = static_box("wall", (0.1, size, size), make_pose(2.0, yaw=angle))
        return float(
            read(simulate_crate(sensor("sonar", SonarSpec(half_angle=0.2, max_incidence_angle=0.5)), wall)).range
        )

    assert tilted(0.3, 20.0) < 2.1
    assert math.isinf(tilted(0.9, 20.0))
    assert math.isfinite(tilted(0.9, 0.5))


def test_sonar_false_echoes_and_dropouts_have_their_rates() -> None:
    one = sensor("sonar", SonarSpec(false_echo_probability=0.2, dropout_probability=0.3))
    sim = simulate_crate(one, static_box("wall", (0.1, 6, 4), make_pose(3.05)), seed=4)
    found = []
    for _ in range(600):
        sim.step()
        found.append(read(sim).range)
    ranges = np.array(found)
    assert np.mean(np.isinf(ranges)) == pytest.approx(0.3 * 0.8, abs=0.05)
    assert np.mean(ranges < 2.9) == pytest.approx(0.2 * (0.7 * 2.9 / 3.0 + 0.3 * 2.9 / 5.0), abs=0.05)


# -- lidar -------------------------------------------------------------------------------------------------------------
def _panel(name: str, T: SE3, *, mirror: bool = False, alpha: float = 1.0) -> PlacedModel:
    shape = Box((0.02, 4.0, 4.0))
    material = Material(rgba=(1, 1, 1, alpha), mirror=mirror)
    link = Link(
        "link",
        IDENTITY,
        collisions=(Collision("c", shape, IDENTITY),),
        visuals=(Visual("v", shape, IDENTITY, material),),
    )
    return PlacedModel(name, Model(name, (link,), static=True), T)


def _beams(*angles: float) -> Sensor:
    low, high, count = angles[0], angles[-1], len(angles)
    return sensor("lidar", LidarSpec(samples=count, angle_min=low, angle_max=high, range_max=20.0), make_pose(z=0.5))


def test_lidar_sees_the_room_reflected_in_a_mirror() -> None:
    """By the law of reflection the beam's way is that to the mirror image of what it meets."""
    mirror = _panel("mirror", make_pose(2.01, 0, 0.5), mirror=True)
    target = static_box("target", (0.1, 0.1, 2), make_pose(0.5, 1.2, 0.5))
    image = np.array([2 * 2.0 - 0.5, 1.2])
    angle = math.atan2(image[1], image[0])
    sim = simulate_crate(_beams(angle, angle + 1e-3), mirror, target)
    assert read(sim).ranges[0, 0] == pytest.approx(np.linalg.norm(image) - 0.053, abs=0.01)


def test_lidar_sees_glass_at_normal_incidence_only() -> None:
    pane, wall = (
        _panel("pane", make_pose(2.01, 0, 0.5), alpha=0.3),
        static_box("wall", (0.1, 20, 4), make_pose(5.05, 0, 0)),
    )
    sim = simulate_crate(_beams(0.0, 0.3), pane, wall)
    straight, aslant = read(sim).ranges[0]
    assert straight == pytest.approx(2.0, abs=1e-6)
    assert aslant == pytest.approx(5.0 / math.cos(0.3), abs=1e-3)


def test_lidar_dropouts_have_their_rate() -> None:
    spec = LidarSpec(
        samples=2000, angle_min=-0.5, angle_max=0.5, range_max=20.0, false_echo_probability=0.1, dropout_probability=0.2
    )
    sim = simulate_crate(sensor("lidar", spec), static_box("wall", (0.1, 20, 4), make_pose(5.05)), seed=3)
    ranges = read(sim).ranges[0]
    assert np.mean(np.isinf(ranges)) == pytest.approx(0.2 * 0.9, abs=0.03)
    assert np.mean(ranges < 4.9) == pytest.approx(0.1, abs=0.03)


# -- joints ------------------------------------------------------------------------------------------------------------
def _arm(one: Sensor, mass: float = 2.0) -> Model:
    rod = Box((0.4, 0.04, 0.04))
    links = (
        Link(
            "base",
            IDENTITY,
            Inertial(5.0, IDENTITY, box_inertia(5.0, (0.2, 0.2, 0.2))),
            (Collision("c", Box((0.2, 0.2, 0.2)), IDENTITY),),
        ),
        Link(
            "body",
            make_pose(0.1),
            Inertial(mass, make_pose(0.2), box_inertia(mass, rod.size)),
            (Collision("c", rod, make_pose(0.25)),),
        ),
    )
    joint = Joint(
        "hinge", "revolute", "base", "body", make_pose(0.1), IDENTITY, (Axis((0, 1, 0), AxisLimits(-3, 3, 50, 500)),)
    )
    anchor = Joint("anchor", "fixed", "world", "base", IDENTITY, IDENTITY)
    return Model("arm", links, (anchor, joint), (one,))


@pytest.mark.parametrize("frame", ["child", "parent", "sensor"])
@pytest.mark.parametrize("direction", ["child_to_parent", "parent_to_child"])
def test_force_torque_sensor_measures_weight_and_lever(frame: str, direction: str) -> None:
    spec = ForceTorqueSpec("hinge", frame, direction)  # type: ignore[arg-type]
    T = make_pose(0.1, 0.05, 0, yaw=0.4)
    one = replace(sensor("force_torque", spec, T), link="body")
    sim = Simulation(make_world(gravity=-9.8))
    sim.add(_arm(one), "arm", make_pose(z=1.0))
    sim.hardware("arm").write(JointCommand("position", ("hinge",), np.array([0.0])))
    sim.step(3000)
    reading = sim.sensors("arm")[0].read()
    rotation = T.rotation_matrix() if frame == "sensor" else np.eye(3)
    sign = 1.0 if direction == "child_to_parent" else -1.0
    # The child pulls its parent down with its weight, 0.2 m in front of the joint.
    np.testing.assert_allclose(rotation @ reading.force, [0, 0, -sign * 2.0 * 9.8], atol=0.02)
    np.testing.assert_allclose(rotation @ reading.torque, [0, sign * 0.2 * 2.0 * 9.8, 0], atol=0.02)


def test_absolute_encoder_wraps_and_incremental_one_counts() -> None:
    for absolute in (False, True):
        one = replace(sensor("encoder", EncoderSpec(resolution=4096, absolute=absolute)), link="body")
        sim = Simulation(make_world(gravity=0.0))
        sim.add(_spinner(one), "arm", make_pose(z=1.0))
        sim.world.data.qvel[-1] = 4.0
        sim.step(2000)
        angle, encoder_position = float(sim.world.data.qpos[-1]), float(sim.sensors("arm")[0].read().position[0])
        assert angle > 7.0
        assert encoder_position == pytest.approx(angle % math.tau if absolute else angle, abs=math.tau / 4096)
        hardware_position = float(
            sim.hardware("arm").read().position[-1]
        )  # whoever reads it all the time counts its turns
        assert hardware_position == pytest.approx(angle, abs=math.tau / 4096)


def _spinner(one: Sensor) -> Model:
    model = _arm(one)
    joint = replace(model.joints[1], type="continuous", axes=(Axis((0, 1, 0), AxisLimits(effort=5.0)),))
    return replace(model, joints=(model.joints[0], joint))


def test_encoder_miscounts_add_up_to_a_random_walk() -> None:
    """After n steps the spread is step · sqrt(n · p)."""
    step, p = math.tau / 1000, 0.05
    errors = []
    for seed in range(60):
        one = replace(sensor("encoder", EncoderSpec(resolution=1000, miscount_probability=p)), link="body")
        sim = Simulation(make_world(gravity=0.0), seed=seed)
        sim.add(_spinner(one), "arm", make_pose(z=1.0))
        sim.world.data.qvel[-1] = 20.0
        for _ in range(40):
            sim.step(25)
            encoder_position = float(sim.sensors("arm")[0].read().position[0])
        errors.append(encoder_position - float(sim.world.data.qpos[-1]))
    steps = float(sim.world.data.qpos[-1]) / step
    assert np.std(errors) == pytest.approx(step * math.sqrt(steps * p), rel=0.35)
    assert abs(np.mean(errors)) < 4 * step * math.sqrt(steps * p / 60) + step


# -- latency, outage ---------------------------------------------------------------------------------------------------
def message_times(
    one: Sensor, seconds: float, seed: int = 0, faults: dict[str, Fault] | None = None
) -> list[tuple[int, int]]:
    """(published, stamped) [ns] of the sensor's messages."""
    sim = simulate_crate(one, seed=seed)
    for name, fault in (faults or {}).items():
        sim.faults.start(name, fault)
    with SimulationHarness(sim) as harness:
        harness.run_for(seconds)
        return [
            (item.time_ns, item.message.header.stamp.sec * 10**9 + item.message.header.stamp.nanosec)
            for item in harness.published("/gyroscope")
        ]


def test_sensor_latency_delays_publishing_not_the_stamp() -> None:
    found = message_times(sensor("gyroscope", ThreeAxisSpec(), latency=0.033), 1.0)
    assert len(found) >= 47
    assert {published - stamped for published, stamped in found} == {33_000_000}


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(1, 300_000_000), min_size=1, max_size=3), st.sampled_from((0.0, 0.033)))
def test_sensor_fault_delay_and_latency_add_up_exactly(delays: list[int], latency: float) -> None:
    """No matter how a delay and the sensor's period of 20 ms go together; silence on the way is silence."""
    late: dict[str, Fault] = {
        f"late{k}": SensorFault("crate", "gyroscope", "delayed", d * 1e-9) for k, d in enumerate(delays)
    }
    one = sensor("gyroscope", ThreeAxisSpec(), latency=latency)
    found = message_times(one, 1.2, faults=late)
    assert {published - stamped for published, stamped in found} == {sum(delays) + round(latency * 1e9)}
    assert len(found) == pytest.approx((1.2e9 - sum(delays) - latency * 1e9) / 20e6, abs=2)
    noisy: dict[str, Fault] = {"noise": SensorFault("crate", "gyroscope", "noisy", 0.1)}
    assert message_times(one, 1.2, faults={**late, **noisy}) == found
    assert message_times(one, 1.2, faults={**late, "silence": SensorFault("crate", "gyroscope", "silent")}) == []


def test_sensor_outages_have_their_fraction_of_time() -> None:
    quiet = sensor("gyroscope", ThreeAxisSpec(), outage=Outage(mean_interval=2.0, mean_duration=1.0))
    working_fractions = [len(message_times(quiet, 60.0, seed)) / 3000 for seed in range(6)]
    assert np.mean(working_fractions) == pytest.approx(2 / 3, abs=0.08)
    assert len(message_times(sensor("gyroscope", ThreeAxisSpec()), 2.0)) == 100


def test_delayed_samples_are_saved_and_arrive_when_due() -> None:
    one = sensor("gyroscope", ThreeAxisSpec((NOISE,) * 3), latency=0.033, outage=Outage(0.2, 0.1))

    def make() -> SimulationHarness:
        return SimulationHarness(simulate_crate(one, seed=1), seed=1)

    check_snapshot_continues(make, [0.31], 1.01)
    with make() as harness:
        harness.run_for(1.01)
        assert len(harness.published("/gyroscope")) > 20
