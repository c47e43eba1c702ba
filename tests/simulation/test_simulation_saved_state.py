"""Saved and loaded, rerun, renamed: bits agree where they must and differ where they must."""

import json
from typing import Any

import numpy as np
import pytest
from tests.harness.models import (
    IDENTITY,
    RIDE_HEIGHT,
    free_box,
    ground_plane,
    imu_sensor,
    lidar_sensor,
    make_pose,
    make_world,
    room_walls,
    rover_model,
)

from roboyard.description.sensors import EncoderSpec, Noise, Sensor
from roboyard.errors import InputError
from roboyard.hardware import JointCommand
from roboyard.simulation import Simulation

DRIFTING = Noise(stddev=0.02, bias_stddev=0.1, dynamic_bias_stddev=0.1, dynamic_bias_correlation_time=0.3)


def build(seed: int = 0, name: str = "rover") -> Simulation:
    encoder = Sensor(
        "enc", "encoder", "base_link", IDENTITY, 50.0, "j", "base_link", EncoderSpec((), 1000, Noise(stddev=0.05))
    )
    sim = Simulation(make_world(ground_plane(), *room_walls()), seed=seed)
    sim.add(
        rover_model(sensors=(lidar_sensor(noise=Noise(stddev=0.03)), imu_sensor(DRIFTING), encoder)),
        name,
        make_pose(z=RIDE_HEIGHT),
    )
    sim.add(free_box(), "crate", make_pose(1.0, 0.1, 0.1))
    return sim


def drive(sim: Simulation, steps: int, name: str = "rover") -> list[np.ndarray]:
    """Drive into the crate with a changing command, reading everything."""
    log = []
    hardware = sim.hardware(name)
    for k in range(steps):
        phase = sim.time_ns * 1e-9
        wheels = 6.0 + np.array([1.0, -1.0, 1.0, -1.0]) * np.sin(5 * phase)
        if k % 10 == 0:
            hardware.write(JointCommand("velocity", hardware.joint_names, wheels))
        sim.step()
        if k % 5 == 0:
            scan, imu_reading, _ = (sensor.read() for sensor in sim.sensors(name))
            joints = hardware.read()
            log.append(
                np.concatenate(
                    [
                        sim.world.data.qpos,
                        sim.world.data.qvel,
                        scan.ranges.ravel(),
                        imu_reading.angular_velocity,
                        imu_reading.linear_acceleration,
                        joints.position,
                        joints.velocity,
                        joints.effort,
                    ]
                )
            )
    return log


def assert_equal_logs(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    np.testing.assert_array_equal(np.array(one), np.array(other))


def test_equal_seeds_give_equal_bits() -> None:
    assert_equal_logs(drive(build(3), 200), drive(build(3), 200))


def test_other_seed_or_name_gives_other_noise() -> None:
    ranges = [next(iter(sim.sensors(name))).read().ranges for sim, name in ((build(3), "rover"), (build(4), "rover"))]
    renamed = build(3, "other")
    ranges.append(next(iter(renamed.sensors("other"))).read().ranges)
    for i in range(3):
        for j in range(i):
            assert not np.array_equal(ranges[i], ranges[j])


def test_loaded_state_continues_bit_for_bit_through_contact() -> None:
    sim = build()
    drive(sim, 300)
    saved = json.loads(json.dumps(sim.save_state()))  # plain data
    expected, episodes = drive(sim, 300), sim.contact_episodes()
    assert episodes
    assert_equal_logs(drive_from(saved, build()), expected)
    used = build()
    drive(used, 77)
    assert_equal_logs(drive_from(saved, used), expected)
    assert used.contact_episodes() == episodes
    assert used.save_state() == sim.save_state()


def drive_from(saved: dict, sim: Simulation) -> list[np.ndarray]:
    sim.load_state(saved)
    return drive(sim, 300)


def test_reading_at_the_saved_instant_repeats() -> None:
    sim = build()
    drive(sim, 41)
    reading = sim.sensors("rover")[0].read()
    other = build()
    other.load_state(sim.save_state())
    np.testing.assert_array_equal(other.sensors("rover")[0].read().ranges, reading.ranges)


def test_state_of_another_world_is_refused() -> None:
    saved = build().save_state()
    with pytest.raises(InputError, match="models"):
        Simulation(make_world(ground_plane())).load_state(saved)
    with pytest.raises(InputError, match="step"):
        build().load_state({**saved, "timestep_ns": 1})
    with pytest.raises(InputError, match="version"):
        build().load_state({})


@pytest.mark.parametrize(
    "change",
    [
        {"world": {"physics": [0.0]}},
        {"world": {"physics": ["x"]}},
        {"world": {"servos": []}},
        {"world": {"servo_modes": [1, 2]}},
        {"world": {"steps": "soon"}},
        {"sensors": {}},
        {"world": {"contact_episodes": [[1]]}},
        {"models": None},
        {"timestep_ns": None},
    ],
)
def test_unreadable_state_changes_nothing(change: dict[str, Any]) -> None:
    def after(load_invalid: bool) -> Any:
        sim = build()
        drive(sim, 50)
        if load_invalid:
            state = sim.save_state()
            world_state = {**state["world"], **change.get("world", {})}
            with pytest.raises(InputError, match="saved state"):
                sim.load_state({**state, **change, "world": world_state})
        return drive(sim, 50)

    assert_equal_logs(after(True), after(False))


@pytest.mark.parametrize("saved", [None, 7, [], "state"])
def test_invalid_states_are_refused(saved: Any) -> None:
    with pytest.raises(InputError, match="version"):
        build().load_state(saved)
