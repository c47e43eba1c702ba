"""A shared simulation is, to the last bit, one that was compiled anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.models import RIDE_HEIGHT, free_box, ground_plane, make_pose, make_world, rover_model
from tests.harness.simulations import rover_in_room, shared_simulation

from roboyard.description.sensors import EncoderSpec, Noise, Sensor
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.physics.compiled_world import FrictionPatch
from roboyard.simulation import Simulation
from roboyard.simulation.faults import GroundFault, JointFault, PowerFault, SensorFault


def noisy_rover() -> Simulation:
    """A rover whose sensors draw random numbers and keep biases, beside a crate."""
    drift = Noise(stddev=0.02, bias_stddev=0.1, dynamic_bias_stddev=0.1, dynamic_bias_correlation_time=0.3)
    identity = SE3.identity()
    encoder = Sensor("e", "encoder", "base_link", identity, 50.0, "j", "base_link", EncoderSpec((), 1000, drift))
    simulation = Simulation(make_world(ground_plane()), seed=5)
    sensors = (*(sensor for sensor in rover_model().sensors if sensor.kind != "encoder"), encoder)
    simulation.add(rover_model(sensors=sensors), "rover", make_pose(z=RIDE_HEIGHT))
    simulation.add(free_box(), "crate", make_pose(0.5, 0.1, 0.1))
    return simulation


def trajectory(simulation: Simulation) -> list[bytes]:
    """Everything that can be read of a drive into the crate, as bytes."""
    hardware, rows = simulation.hardware("rover"), []
    hardware.write(JointCommand("velocity", hardware.joint_names, np.array([6.0, 4.0, 6.0, 4.0])))
    for _ in range(40):
        simulation.step(7)
        readings = hardware.read()
        rows += [simulation.world.data.qpos.tobytes(), simulation.world.data.qvel.tobytes(), readings.effort.tobytes()]
        rows += [readings.position.tobytes(), readings.velocity.tobytes()]
        rows += [repr(sensor.read()).encode() for sensor in simulation.sensors("rover")]
    return [*rows, repr(simulation.contact_episodes()).encode(), repr(simulation.ground_truth("crate")).encode()]


def disturb(simulation: Simulation, kind: str, steps: int) -> None:
    """What a test may do before the next one gets the simulation."""
    hardware = simulation.hardware("rover")
    if kind == "drive":
        hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, 9.0)))
    elif kind == "turn":
        hardware.write(JointCommand("velocity", hardware.joint_names[:2], np.array([5.0, -5.0])))
    elif kind == "faults":
        simulation.faults.start("wheel", JointFault("rover", hardware.joint_names[0], "blocked"))
        simulation.faults.start("weak", JointFault("rover", hardware.joint_names[1], "weak", 0.3))
        simulation.faults.start("late", SensorFault("rover", "imu", "delayed", 0.05))
        simulation.faults.start("ice", GroundFault(FrictionPatch(0.0, 0.0, 0.0, 2.0, 2.0, 0.1)))
    elif kind == "power":
        simulation.faults.start("battery", PowerFault("rover"))
    elif kind == "throw":
        simulation.world.data.qvel[:] = 0.3
    for _ in range(steps):
        simulation.step(7)
        for sensor in simulation.sensors("rover"):
            sensor.read()


@pytest.mark.parametrize("make", [rover_in_room, noisy_rover])
@given(
    kinds=st.lists(st.sampled_from(["drive", "turn", "faults", "power", "throw", "rest"]), max_size=2, unique=True),
    steps=st.integers(1, 30),
)
@settings(max_examples=6, deadline=None)
def test_shared_simulation_moves_as_a_fresh_one(make: Callable[[], Simulation], kinds: list[str], steps: int) -> None:
    simulation = shared_simulation(make)
    for kind in kinds:
        disturb(simulation, kind, steps)
    again = shared_simulation(make)
    assert again is simulation
    assert trajectory(again) == trajectory(make())


def test_shared_simulation_finds_changed_models() -> None:
    def make() -> Simulation:
        return Simulation(make_world(ground_plane()))

    shared_simulation(make).add(free_box(), "crate", make_pose(z=1.0))
    with pytest.raises(AssertionError, match="a test changed the models of make"):
        shared_simulation(make)
