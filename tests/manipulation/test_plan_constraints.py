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
from roboyard.manipulation.collision import box_obstacle
from roboyard.manipulation.planning import (
    Cancelled,
    ConstraintBroken,
    JointGoal,
    KeepAxis,
    LineBlocked,
    NamedGoal,
    Plan,
    PlanSettings,
    plan,
    plan_line,
)
from roboyard.manipulation.scene import PlanningScene


@cache
def scene(robot: str = "scitos_arm") -> PlanningScene:
    return PlanningScene.of(load_joint_groups(robot))


def greatest_bend(found: Plan) -> float:
    """Greatest acceleration of the cubics through a motion's knots, at whole nanoseconds, as a share of the limits."""
    knots = found.trajectory.knots()
    span = np.diff([1e-9 * round(1e9 * knot.time) for knot in knots])[:, None]
    way = 6.0 * np.diff([knot.position for knot in knots], axis=0) / span
    speeds = np.array([knot.velocity for knot in knots])
    first, last = way - 4.0 * speeds[:-1] - 2.0 * speeds[1:], 2.0 * speeds[:-1] + 4.0 * speeds[1:] - way
    return float((np.abs([first, last]) / span / found.trajectory.limits.acceleration).max())


def level(turn: float) -> np.ndarray:
    """The Schunk arm with its tool level ahead, turned about the first joint."""
    q = scene().group.pose("ahead").copy()
    q[0] = turn
    return q


def kept() -> KeepAxis:
    """The side of the tool that is up where it is level."""
    up = scene().chain.forward(level(0.0))[:3, :3].T @ (0.0, 0.0, 1.0)
    return KeepAxis(axis=tuple(up), tolerance=0.15)


def test_kept_axis_stays_upright_round_an_obstacle() -> None:
    a, b = level(-0.9), level(0.9)
    tip = scene().chain.forward(level(0.0))[:3, 3]
    pillar = box_obstacle("pillar", (0.6, 0.1, 0.3), (tip[0], 0.0, tip[2]))
    walled = scene().with_obstacles([pillar])
    found = plan(walled, a, JointGoal(b), keep=kept())
    along = found.trajectory.at(np.linspace(0.0, found.trajectory.duration, 1500)).position
    assert kept().lean(walled.chain, along).max() <= 0.15 + 1e-3
    assert not any(walled.with_margin(2e-4).contacts(along))
    assert len(found.points) > 2
    again = plan(walled, a, JointGoal(b), keep=kept())
    assert again.points.tobytes() == found.points.tobytes()
    free = plan(scene(), a, JointGoal(b), keep=kept())
    assert len(free.points) == 2


def test_axis_that_cannot_be_kept_is_reported() -> None:
    with pytest.raises(ConstraintBroken, match="at the start"):
        plan(scene(), scene().group.pose("folded"), NamedGoal("ahead"), keep=KeepAxis(tolerance=0.05))
    with pytest.raises(ConstraintBroken, match="at the goal"):
        plan(scene(), level(0.0), NamedGoal("upright"), keep=kept())
    with pytest.raises(InputError, match="keeps no axis"):
        plan(scene(), level(0.0), NamedGoal("ahead"), PlanSettings(planner="ompl:RRT"), keep=kept())
    with pytest.raises(Cancelled):
        plan(scene(), level(0.0), JointGoal(level(1.0)), keep=kept(), cancelled=lambda: True)
    for wrong in ({"axis": (0.0, 0.0, 0.0)}, {"direction": (math.nan, 0.0, 0.0)}, {"tolerance": 0.0}):
        with pytest.raises(InputError):
            KeepAxis(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("robot", ["scitos_arm", "iisy", "youbot_arm"])
def test_planned_line_keeps_the_tool_straight(robot: str) -> None:
    asked = scene(robot)
    chain, rng = asked.chain, np.random.default_rng(1)
    followed = 0
    for q in chain.sample_positions(rng, 60):
        if asked.contact(q):
            continue
        first = SE3.from_matrix(chain.forward(q))
        # fewer than six joints keep a direction only along lines in the arm's plane, as that of the tool
        way = first.rotation_matrix() @ asked.group.axis if chain.dof < 6 else rng.normal(size=3)
        last = SE3(first.rotation, first.translation - 0.06 * way / np.linalg.norm(way))
        try:
            found = plan_line(asked, q, [last])
        except LineBlocked as error:
            assert 0.0 <= error.share < 1.0
            continue
        followed += 1
        tips = chain.forward(found.trajectory.at(np.linspace(0.0, found.trajectory.duration, 200)).position)[:, :3, 3]
        way = last.translation - first.translation
        off = np.linalg.norm(np.cross(tips - first.translation, way / np.linalg.norm(way)), axis=1)
        assert off.max() < 2e-4
        np.testing.assert_allclose(tips[-1], last.translation, atol=1e-5)
        assert greatest_bend(found) < 1.001
        if followed == 5:
            break
    assert followed >= 3


def test_planned_line_ends_before_an_obstacle() -> None:
    q = level(0.0)
    first = SE3.from_matrix(scene().chain.forward(q))
    down = SE3(first.rotation, first.translation - np.array([0.0, 0.0, 0.2]))
    plate = box_obstacle("plate", (0.6, 0.6, 0.02), first.translation - np.array([0.0, 0.0, 0.18]))
    with pytest.raises(LineBlocked, match="touches plate") as caught:
        plan_line(scene().with_obstacles([plate]), q, [down])
    assert 0.1 < caught.value.share < 0.95
    with pytest.raises(LineBlocked) as caught:
        plan_line(scene(), q, [SE3(first.rotation, first.translation + np.array([2.0, 0.0, 0.0]))])
    assert caught.value.share < 0.6
    found = plan_line(scene(), q, [down, first])
    np.testing.assert_allclose(found.goal, q, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"poses": []}, InputError, "without poses"),
        ({"spacing": 0.0}, InputError, "spacing"),
        ({"turn": math.nan}, InputError, "turn"),
        ({"jump": -1.0}, InputError, "jump"),
        ({"frame": "moon"}, UnknownNameError, "moon"),
    ],
)
def test_plan_line_refuses_bad_requests(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        plan_line(scene(), level(0.0), **{"poses": [SE3.identity()], **options})
