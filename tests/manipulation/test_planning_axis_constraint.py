"""Ways with a condition: the tool's axis keeps its direction, or the tool goes straight."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.manipulation import PlanConfig, box_obstacle, plan_cartesian_path, plan_motion
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import CartesianPathBlockedError, ConstraintViolatedError, PlanningCancelledError
from roboyard.manipulation.planning import AxisConstraint, CartesianPathConfig, JointGoal, MotionPlan, NamedGoal


@cache
def scene(robot: str = "scitos_arm") -> PlanningScene:
    return PlanningScene.create(load_joint_groups(robot))


def max_acceleration_ratio(found: MotionPlan) -> float:
    """Greatest acceleration of the cubics through a motion's knots, at whole nanoseconds, as a share of the limits."""
    points = found.trajectory.to_cubic_points()
    span = np.diff([1e-9 * round(1e9 * point.time) for point in points])[:, None]
    position_term = 6.0 * np.diff([point.position for point in points], axis=0) / span
    speeds = np.array([point.velocity for point in points])
    first, last = (
        position_term - 4.0 * speeds[:-1] - 2.0 * speeds[1:],
        2.0 * speeds[:-1] + 4.0 * speeds[1:] - position_term,
    )
    return float((np.abs([first, last]) / span / found.trajectory.limits.acceleration).max())


def level_state(first_joint: float) -> np.ndarray:
    """The Schunk arm with its tool level ahead, turned about the first joint."""
    q = scene().group.pose("ahead").copy()
    q[0] = first_joint
    return q


def upright_constraint() -> AxisConstraint:
    """The side of the tool that is up where it is level."""
    up = scene().chain.forward(level_state(0.0))[:3, :3].T @ (0.0, 0.0, 1.0)
    return AxisConstraint(axis=tuple(up), tolerance=0.15)


def test_constrained_axis_stays_upright_around_an_obstacle() -> None:
    a, b = level_state(-0.9), level_state(0.9)
    tip = scene().chain.forward(level_state(0.0))[:3, 3]
    pillar = box_obstacle("pillar", (0.6, 0.1, 0.3), (tip[0], 0.0, tip[2]))
    walled = scene().with_obstacles([pillar])
    found = plan_motion(walled, a, JointGoal(b), constraint=upright_constraint())
    states = found.trajectory.sample_at(np.linspace(0.0, found.trajectory.duration, 1500)).position
    assert upright_constraint().tilt_angle(walled.chain, states).max() <= 0.15 + 1e-3
    assert not any(walled.with_margin(2e-4).find_contacts(states))
    assert len(found.points) > 2
    repeated = plan_motion(walled, a, JointGoal(b), constraint=upright_constraint())
    assert repeated.points.tobytes() == found.points.tobytes()
    free = plan_motion(scene(), a, JointGoal(b), constraint=upright_constraint())
    assert len(free.points) == 2


def test_violated_axis_constraint_is_reported() -> None:
    with pytest.raises(ConstraintViolatedError, match="at the start"):
        plan_motion(
            scene(), scene().group.pose("folded"), NamedGoal("ahead"), constraint=AxisConstraint(tolerance=0.05)
        )
    with pytest.raises(ConstraintViolatedError, match="at the goal"):
        plan_motion(scene(), level_state(0.0), NamedGoal("upright"), constraint=upright_constraint())
    with pytest.raises(InputError, match="supports no axis constraint"):
        plan_motion(
            scene(),
            level_state(0.0),
            NamedGoal("ahead"),
            PlanConfig(planner="ompl:RRT"),
            constraint=upright_constraint(),
        )
    with pytest.raises(PlanningCancelledError):
        plan_motion(
            scene(),
            level_state(0.0),
            JointGoal(level_state(1.0)),
            constraint=upright_constraint(),
            should_stop=lambda: True,
        )
    for wrong in ({"axis": (0.0, 0.0, 0.0)}, {"direction": (math.nan, 0.0, 0.0)}, {"tolerance": 0.0}):
        with pytest.raises(InputError):
            AxisConstraint(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("robot", ["scitos_arm", "iisy", "youbot_arm"])
def test_cartesian_path_is_straight(robot: str) -> None:
    planning_scene = scene(robot)
    chain, rng = planning_scene.chain, np.random.default_rng(1)
    followed = 0
    for q in chain.sample_positions(rng, 60):
        if planning_scene.find_contact(q):
            continue
        first = SE3.from_matrix(chain.forward(q))
        # fewer than six joints keep a direction only along lines in the arm's plane, as that of the tool
        direction = first.rotation_matrix() @ planning_scene.group.tool_axis if chain.dof < 6 else rng.normal(size=3)
        last = SE3(first.rotation, first.translation - 0.06 * direction / np.linalg.norm(direction))
        try:
            found = plan_cartesian_path(planning_scene, q, [last])
        except CartesianPathBlockedError as error:
            assert 0.0 <= error.fraction < 1.0
            continue
        followed += 1
        tips = chain.forward(found.trajectory.sample_at(np.linspace(0.0, found.trajectory.duration, 200)).position)[
            :, :3, 3
        ]
        direction = last.translation - first.translation
        deviations = np.linalg.norm(np.cross(tips - first.translation, direction / np.linalg.norm(direction)), axis=1)
        assert deviations.max() < 2e-4
        np.testing.assert_allclose(tips[-1], last.translation, atol=1e-5)
        assert max_acceleration_ratio(found) < 1.001
        if followed == 5:
            break
    assert followed >= 3


def test_cartesian_path_ends_before_an_obstacle() -> None:
    q = level_state(0.0)
    first = SE3.from_matrix(scene().chain.forward(q))
    down = SE3(first.rotation, first.translation - np.array([0.0, 0.0, 0.2]))
    plate = box_obstacle("plate", (0.6, 0.6, 0.02), first.translation - np.array([0.0, 0.0, 0.18]))
    with pytest.raises(CartesianPathBlockedError, match="touches plate") as caught:
        plan_cartesian_path(scene().with_obstacles([plate]), q, [down])
    assert 0.1 < caught.value.fraction < 0.95
    with pytest.raises(CartesianPathBlockedError) as caught:
        plan_cartesian_path(scene(), q, [SE3(first.rotation, first.translation + np.array([2.0, 0.0, 0.0]))])
    assert caught.value.fraction < 0.6
    found = plan_cartesian_path(scene(), q, [down, first])
    np.testing.assert_allclose(found.goal, q, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"poses": []}, InputError, "without poses"),
        ({"frame": "moon"}, UnknownNameError, "moon"),
    ],
)
def test_cartesian_path_refuses_bad_requests(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        plan_cartesian_path(scene(), level_state(0.0), **{"poses": [SE3.identity()], **options})


@pytest.mark.parametrize(("key", "value"), [("spacing", 0.0), ("angle_step", math.nan), ("jump_threshold", -1.0)])
def test_interpolation_of_cartesian_paths_is_checked(key: str, value: float) -> None:
    with pytest.raises(InputError, match=key):
        CartesianPathConfig(**{key: value})


def test_cartesian_path_stops_before_a_jump_of_a_joint() -> None:
    q = level_state(0.0)
    first = SE3.from_matrix(scene().chain.forward(q))
    down = SE3(first.rotation, first.translation - np.array([0.0, 0.0, 0.1]))
    with pytest.raises(CartesianPathBlockedError, match="would jump"):
        plan_cartesian_path(scene(), q, [down], interpolation=CartesianPathConfig(spacing=0.05, jump_threshold=0.01))
    assert len(plan_cartesian_path(scene(), q, [down], interpolation=CartesianPathConfig(spacing=0.05)).points) <= 4
