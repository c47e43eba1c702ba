"""Time-tables of the tool: it is where it shall be at each moment, also beside something that moves, or says why."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import Box
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.kinematics.ik import solve_ik
from roboyard.manipulation.collision import Obstacle
from roboyard.manipulation.planning import GoalUnreachable, LineBlocked, PlanSettings, Station, plan_pursuit
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.timing import JointLimits, TooFastError

GROUPS = load_joint_groups("youbot_arm")
SCENE = PlanningScene.of(GROUPS)
CHAIN = SCENE.chain
OVER, LOW = 0.0, -0.05
TIMES = (0.8, 1.9, 2.6, 3.7)
HEIGHTS = (OVER, LOW, LOW, OVER)


def down(x: float, y: float, z: float) -> SE3:
    """The tool pointing down, in the chain's base."""
    return SE3.from_xyz_rpy((x, y, z), (math.pi, 0.0, math.pi / 2.0))


BEGIN = (0.13, 0.16, 0.02)
MIDDLE = 0.5 * (CHAIN.lower + CHAIN.upper)
START = min(solve_ik(CHAIN, down(*BEGIN)).solutions, key=lambda q: abs(q[4] - MIDDLE[4]))


def ride(speed: float) -> list[Station]:
    """Join something that moves along -x, go down to it, stay, go up."""
    x, y, z = BEGIN
    first = x + 0.5 * TIMES[0] * speed
    return [
        Station(t, down(first - speed * t, y, z + h), (-speed, 0.0, 0.0))
        for t, h in zip(TIMES, HEIGHTS, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("speed", [0.0, 0.02, 0.05])
def test_pursuit_passes_stations_at_their_times_and_speeds(speed):
    stations = ride(speed)
    motion = plan_pursuit(SCENE, START, stations).trajectory
    for station in stations:
        q = motion.at([station.time]).position[0]
        assert SE3.from_matrix(CHAIN.forward(q)).distance(station.pose) < 2e-5
        twist = CHAIN.jacobian(q) @ motion.at([station.time - 1e-6]).velocity[0]
        assert twist[:3] == pytest.approx(station.velocity, abs=1e-3)


@pytest.mark.parametrize("speed", [0.02, 0.05])
def test_pursuit_is_still_relative_to_a_moving_object(speed):
    motion = plan_pursuit(SCENE, START, ride(speed)).trajectory
    times = np.linspace(TIMES[1], TIMES[2], 60)
    tips = CHAIN.forward(motion.at(times).position)[:, :3, 3]
    beside = tips + np.outer(times - times[0], [speed, 0.0, 0.0])
    assert np.abs(beside - beside[0]).max() < 5e-5
    both = np.linspace(TIMES[0], TIMES[3], 200)
    tips = CHAIN.forward(motion.at(both).position)[:, :3, 3] + np.outer(both - both[0], [speed, 0.0, 0.0])
    assert np.abs(tips[:, :2] - tips[0, :2]).max() < 1e-4, "straight down and up, seen from there"


def test_pursuit_keeps_limits_and_is_deterministic():
    motion = plan_pursuit(SCENE, START, ride(0.05)).trajectory
    again = plan_pursuit(SCENE, START, ride(0.05)).trajectory
    assert np.array_equal(motion.positions, again.positions)
    assert np.array_equal(motion.velocities, again.velocities)
    found = motion.at(np.linspace(0.0, motion.duration, 500))
    limits = JointLimits.of(CHAIN)
    assert limits.exceeded(found.velocity, 0.0 * found.acceleration) <= 1.0
    rates = np.diff(motion.velocities, axis=0) / np.diff(motion.times)[:, None]
    assert (np.abs(rates) <= limits.acceleration).all()


def test_pursuit_that_cannot_be_followed_is_refused():
    with pytest.raises(GoalUnreachable, match="after [12]"):
        plan_pursuit(SCENE, START, ride(0.2))
    with pytest.raises(TooFastError, match="arm_joint_.*acceleration"):
        plan_pursuit(SCENE, START, ride(0.05), PlanSettings(acceleration=0.1))
    x, y, z = BEGIN
    hurried = [Station(0.05, down(x, y, z - 0.05))]
    with pytest.raises(TooFastError):
        plan_pursuit(SCENE, START, hurried)
    wall = SCENE.with_obstacles([Obstacle("wall", Box((0.02, 0.3, 0.3)), SE3(translation=(-0.08, 0.2, 0.0)))])
    with pytest.raises(LineBlocked, match="wall"):
        plan_pursuit(wall, START, ride(0.05))
    for times in ([], [0.0], [1.0, 1.0], [math.nan]):
        with pytest.raises(InputError, match="stations"):
            plan_pursuit(SCENE, START, [Station(t, down(*BEGIN)) for t in times])
