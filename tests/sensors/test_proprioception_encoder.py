"""Encoders count, and the hardware reads them."""

import math

import numpy as np
import pytest
from tests.harness.models import IDENTITY, RIDE_HEIGHT, ground_plane, make_pose, make_world, rover_model

from roboyard.description.sensors import EncoderSpec, Noise, Sensor
from roboyard.errors import DescriptionError
from roboyard.hardware import JointCommand
from roboyard.simulation import Simulation


def build(spec: EncoderSpec, seed: int = 0) -> Simulation:
    sensor = Sensor("encoders", "encoder", "base_link", IDENTITY, 50.0, "joint_states", "base_link", spec)
    sim = Simulation(make_world(ground_plane()), seed=seed)
    sim.add(rover_model(sensors=(sensor,)), "rover", make_pose(z=RIDE_HEIGHT))
    hardware = sim.hardware("rover")
    hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, 3.0)))
    sim.step(200)
    return sim


@pytest.mark.parametrize("resolution", [12, 1000, 4096])
def test_encoder_positions_are_the_last_whole_counts(resolution: int) -> None:
    sim = build(EncoderSpec((), resolution))
    counted, true = sim.hardware("rover").read().position, sim.world.data.qpos[7:11]
    step = 2 * math.pi / resolution
    np.testing.assert_allclose(counted / step, np.round(counted / step), atol=1e-6)
    assert ((true - counted >= -1e-12) & (true - counted < step)).all()


def test_encoder_counts_only_named_joints() -> None:
    sim = build(EncoderSpec(("fl_joint",), 12))
    counted, true = sim.hardware("rover").read().position, sim.world.data.qpos[7:11]
    assert counted[0] != true[0]
    np.testing.assert_array_equal(counted[1:], true[1:])
    with pytest.raises(DescriptionError, match="lidar_joint"):
        build(EncoderSpec(("lidar_joint",)))


def test_encoder_velocity_noise_is_drawn_once_per_instant() -> None:
    sim = build(EncoderSpec((), 0, Noise(stddev=0.1)), seed=2)
    hardware, errors = sim.hardware("rover"), []
    for _ in range(500):
        sim.step()
        first, second = hardware.read(), hardware.read()
        np.testing.assert_array_equal(first.velocity, second.velocity)
        np.testing.assert_array_equal(first.velocity, sim.sensors("rover")[0].read().velocity)
        errors.append(first.velocity - sim.world.data.qvel[6:10])
    assert np.std(errors) == pytest.approx(0.1, rel=0.05)
    assert first.time_ns == sim.time_ns
