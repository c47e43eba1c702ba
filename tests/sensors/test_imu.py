"""Inertial unit at rest, falling, turning, driving."""

import numpy as np
import pytest
from tests.harness.models import (
    IDENTITY,
    NO_NOISE,
    free_box,
    ground_plane,
    imu_sensor,
    make_pose,
    make_world,
    rover_model,
)

from roboyard.description.sensors import ImuSpec, Noise, Sensor
from roboyard.geometry import SE3
from roboyard.sensors import ImuReading
from roboyard.simulation import Simulation


def unit(T: SE3 = IDENTITY, noise: Noise = NO_NOISE) -> Sensor:
    return Sensor("imu", "imu", "body", T, 100.0, "imu", "body", ImuSpec((noise,) * 3, (noise,) * 3))


def read(sim: Simulation, name: str = "crate") -> ImuReading:
    reading = next(s for s in sim.sensors(name) if s.sensor.kind == "imu").read()
    assert isinstance(reading, ImuReading)
    return reading


def test_imu_at_rest_measures_gravity_in_its_own_frame() -> None:
    T = make_pose(0.1, 0.05, 0.02, 0.3, -0.4, 0.5)
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(sensors=(unit(T),)), "crate", make_pose(z=0.1))
    sim.step(500)
    reading = read(sim)
    np.testing.assert_allclose(T.rotation_matrix() @ reading.linear_acceleration, [0, 0, 9.8], atol=1e-3)
    np.testing.assert_allclose(reading.angular_velocity, 0.0, atol=1e-6)
    assert reading.orientation is not None
    assert SE3(reading.orientation).almost_equal(SE3(T.rotation), 1e-5)


def test_imu_in_free_fall_measures_no_acceleration() -> None:
    sim = Simulation(make_world())
    sim.add(free_box(sensors=(unit(),)), "crate", make_pose(z=5.0))
    sim.step(100)
    np.testing.assert_allclose(read(sim).linear_acceleration, 0.0, atol=1e-9)


def test_rotating_imu_measures_centripetal_acceleration() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(free_box(sensors=(unit(make_pose(0.2)),)), "crate")
    sim.world.data.qvel[5] = 3.0
    sim.step(100)
    reading = read(sim)
    np.testing.assert_allclose(reading.angular_velocity, [0, 0, 3.0], atol=1e-6)
    np.testing.assert_allclose(reading.linear_acceleration, [-9.0 * 0.2, 0.0, 0.0], atol=1e-4)


def test_imu_sample_belongs_to_its_stamp() -> None:
    """The reading at an instant integrates to the velocity change of the step that follows it."""
    sim = Simulation(make_world(ground_plane()))
    sim.add(rover_model(sensors=(imu_sensor(),)), "rover", make_pose(z=0.13125))
    sim.step(200)
    for wheel in range(4):
        sim.world.data.qfrc_applied[6 + wheel] = 0.3
    sim.step(5)
    before = sim.ground_truth("rover").linear_velocity[0]
    reading = read(sim, "rover")
    assert reading.time_ns == sim.time_ns
    sim.step()
    change = (sim.ground_truth("rover").linear_velocity[0] - before) / 0.002
    assert reading.linear_acceleration[0] == pytest.approx(change, abs=0.02)
    assert change > 0.5


def test_reading_the_imu_changes_nothing() -> None:
    def run(is_read: bool) -> np.ndarray:
        sim = Simulation(make_world(ground_plane()))
        sim.add(rover_model(sensors=(imu_sensor(),)), "rover", make_pose(z=0.2, roll=0.1))
        for _ in range(300):
            sim.step()
            if is_read:
                read(sim, "rover")
                sim.ground_truth("rover")
                sim.hardware("rover").read()
        return np.concatenate([sim.world.data.qpos, sim.world.data.qvel])

    np.testing.assert_array_equal(run(True), run(False))


def test_imu_noise_has_its_statistics() -> None:
    noise = Noise(mean=0.5, stddev=0.2)
    sim = Simulation(make_world(gravity=0.0), seed=2)
    sim.add(free_box(sensors=(unit(noise=noise),)), "crate")
    samples = []
    for _ in range(2000):
        sim.step()
        samples.append(read(sim).angular_velocity)
    values = np.array(samples)
    np.testing.assert_allclose(values.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(values.std(axis=0), 0.2, rtol=0.06)
    assert abs(np.corrcoef(values[:, 0], values[:, 1])[0, 1]) < 0.08


def test_imu_bias_drift_keeps_deviation_and_correlation_time() -> None:
    noise = Noise(dynamic_bias_stddev=1.0, dynamic_bias_correlation_time=0.05)
    sim = Simulation(make_world(gravity=0.0), seed=5)
    sim.add(free_box(sensors=(unit(noise=noise),)), "crate")
    samples = []
    for _ in range(4000):
        sim.step(5)
        samples.append(read(sim).angular_velocity)
    values = np.array(samples)
    np.testing.assert_allclose(values.std(axis=0), 1.0, rtol=0.12)
    after = np.exp(-0.01 / 0.05)
    correlation = [np.corrcoef(values[:-1, i], values[1:, i])[0, 1] for i in range(3)]
    np.testing.assert_allclose(correlation, after, atol=0.06)
