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
from roboyard.manipulation import PlanConfig
from roboyard.manipulation.collision import Obstacle
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import CartesianPathBlockedError, GoalUnreachableError, VelocityLimitError
from roboyard.manipulation.planning import TimedPose, plan_timed_tool_path
from roboyard.manipulation.time_parameterization import JointLimits

GROUPS = load_joint_groups("youbot_arm")
SCENE = PlanningScene.create(GROUPS)
CHAIN = SCENE.chain
HIGH, LOW = 0.0, -0.05
TIMES = (0.8, 1.9, 2.6, 3.7)
HEIGHTS = (HIGH, LOW, LOW, HIGH)


def down(x: float, y: float, z: float) -> SE3:
    """The tool pointing down, in the chain's base."""
    return SE3.from_xyz_rpy((x, y, z), (math.pi, 0.0, math.pi / 2.0))


START_POSITION = (0.13, 0.16, 0.02)
MID_POSITIONS = 0.5 * (CHAIN.lower + CHAIN.upper)
START = min(solve_ik(CHAIN, down(*START_POSITION)).solutions, key=lambda q: abs(q[4] - MID_POSITIONS[4]))


def follow_object(speed: float) -> list[TimedPose]:
    """Join something that moves along -x, go down to it, stay, go up."""
    x, y, z = START_POSITION
    first = x + 0.5 * TIMES[0] * speed
    return [
        TimedPose(t, down(first - speed * t, y, z + h), (-speed, 0.0, 0.0))
        for t, h in zip(TIMES, HEIGHTS, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("speed", [0.0, 0.02, 0.05])
def test_tool_path_passes_poses_at_their_times_and_speeds(speed):
    timed_poses = follow_object(speed)
    motion = plan_timed_tool_path(SCENE, START, timed_poses).trajectory
    for timed_pose in timed_poses:
        q = motion.sample_at([timed_pose.time]).position[0]
        assert SE3.from_matrix(CHAIN.forward(q)).distance(timed_pose.pose) < 2e-5
        twist = CHAIN.jacobian(q) @ motion.sample_at([timed_pose.time - 1e-6]).velocity[0]
        assert twist[:3] == pytest.approx(timed_pose.velocity, abs=1e-3)


@pytest.mark.parametrize("speed", [0.02, 0.05])
def test_tool_is_stationary_relative_to_a_moving_object(speed):
    motion = plan_timed_tool_path(SCENE, START, follow_object(speed)).trajectory
    times = np.linspace(TIMES[1], TIMES[2], 60)
    tips = CHAIN.forward(motion.sample_at(times).position)[:, :3, 3]
    relative_tips = tips + np.outer(times - times[0], [speed, 0.0, 0.0])
    assert np.abs(relative_tips - relative_tips[0]).max() < 5e-5
    both = np.linspace(TIMES[0], TIMES[3], 200)
    tips = CHAIN.forward(motion.sample_at(both).position)[:, :3, 3] + np.outer(both - both[0], [speed, 0.0, 0.0])
    assert np.abs(tips[:, :2] - tips[0, :2]).max() < 1e-4, "straight down and up, seen from there"


def test_timed_tool_path_keeps_limits_and_is_deterministic():
    motion = plan_timed_tool_path(SCENE, START, follow_object(0.05)).trajectory
    repeated = plan_timed_tool_path(SCENE, START, follow_object(0.05)).trajectory
    assert np.array_equal(motion.positions, repeated.positions)
    assert np.array_equal(motion.velocities, repeated.velocities)
    found = motion.sample_at(np.linspace(0.0, motion.duration, 500))
    limits = JointLimits.from_chain(CHAIN)
    assert limits.utilization(found.velocity, 0.0 * found.acceleration) <= 1.0
    rates = np.diff(motion.velocities, axis=0) / np.diff(motion.times)[:, None]
    assert (np.abs(rates) <= limits.acceleration).all()


def test_infeasible_timed_tool_path_is_refused():
    with pytest.raises(GoalUnreachableError, match="after [12]"):
        plan_timed_tool_path(SCENE, START, follow_object(0.2))
    with pytest.raises(VelocityLimitError, match="arm_joint_.*acceleration"):
        plan_timed_tool_path(SCENE, START, follow_object(0.05), PlanConfig(acceleration_scaling=0.1))
    x, y, z = START_POSITION
    early_pose = [TimedPose(0.05, down(x, y, z - 0.05))]
    with pytest.raises(VelocityLimitError):
        plan_timed_tool_path(SCENE, START, early_pose)
    wall = SCENE.with_obstacles([Obstacle("wall", Box((0.02, 0.3, 0.3)), SE3(translation=(-0.08, 0.2, 0.0)))])
    with pytest.raises(CartesianPathBlockedError, match="wall"):
        plan_timed_tool_path(wall, START, follow_object(0.05))
    for times in ([], [0.0], [1.0, 1.0], [math.nan]):
        with pytest.raises(InputError, match="poses at"):
            plan_timed_tool_path(SCENE, START, [TimedPose(t, down(*START_POSITION)) for t in times])
