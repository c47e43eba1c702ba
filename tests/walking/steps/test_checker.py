"""The checker: it uses nothing of the planners, and finds every kind of harm that is done to plans that are right."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.walking.steps.step_problems import problem_on, verdict_of

from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.errors import NoPlan
from roboyard.walking.stability import tip_over
from roboyard.walking.steps import checker
from roboyard.walking.steps.checker import Limits, Verdict
from roboyard.walking.steps.past import settled
from roboyard.walking.steps.plan import StepPlan, Swing
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem

GOAL = (1.25, 0.1)
SELDOM = 0.05
"""Time between two looks for the damage of a single swing [s]: what these find, the usual ones find as well."""
GROUNDS = {
    "flat": {},
    "blocks": {"height_range": 0.08},
    "stones": {"cell_size": 0.06, "height_range": 0.3, "fraction": 0.25},
    "slope": {"height_range": 0.08},
}


@cache
def planned(kind: str) -> tuple[Problem, Terrain, StepPlan]:
    """A plan that is right, with its problem and terrain."""
    terrain = generate_terrain(kind, (0.6, 2.4), np.random.default_rng(2), corner=(0.34, -1.2), **GROUNDS[kind])
    problem = problem_on(terrain, GOAL)
    return problem, terrain, plan_steps(problem, budget=30_000, seed=1)


def check(kind: str, plan: StepPlan, rate: float = 1.0, period: float = Limits.period) -> Verdict:
    problem, terrain, _ = planned(kind)
    return verdict_of(plan, problem, terrain, rate=rate, period=period)


def with_swing(plan: StepPlan, number: int, **changes: object) -> StepPlan:
    """With one swing changed."""
    swings = list(plan.swings)
    swings[number] = replace(swings[number], **changes)
    return replace(plan, swings=tuple(swings))


def next_swing(plan: StepPlan, number: int) -> int | None:
    """The next swing of the same leg."""
    later = range(number + 1, len(plan.swings))
    return next((k for k in later if plan.swings[k].leg == plan.swings[number].leg), None)


def with_foothold(plan: StepPlan, number: int, away: tuple[float, float, float]) -> StepPlan:
    """With a foot that stands elsewhere between two of its swings."""
    place = tuple(np.add(plan.swings[number].target, away).tolist())
    changed, after = with_swing(plan, number, target=place), next_swing(plan, number)
    return changed if after is None else with_swing(changed, after, source=place)


def with_pace(plan: StepPlan, share: float) -> StepPlan:
    track = plan.track * (share, 1.0, 1.0, 1.0)
    swings = tuple(
        replace(one, lifts=share * one.lifts, lands=share * one.lands, quick=share * one.quick) for one in plan.swings
    )
    return replace(plan, track=track, swings=swings)


def with_body_offset(plan: StepPlan, x: float, y: float, z: float) -> StepPlan:
    return replace(plan, track=plan.track + np.array([0.0, x, y, z]))


def without_swing(plan: StepPlan, number: int) -> StepPlan:
    return replace(plan, swings=plan.swings[:number] + plan.swings[number + 1 :])


Damage = Callable[[StepPlan, int], StepPlan]
OF_WHOLE_PLANS: dict[str, tuple[Callable[[StepPlan], StepPlan], set[str]]] = {
    "all quicker": (lambda p: with_pace(p, 0.85), {"speed"}),
    "body low": (lambda p: with_body_offset(p, 0.0, 0.0, -0.14), {"belly", "limb", "reach"}),
    "body high": (lambda p: with_body_offset(p, 0.0, 0.0, 0.2), {"reach"}),
    "body beside its feet": (lambda p: with_body_offset(p, 0.0, 0.2, 0.0), {"tipping", "reach"}),
    "body beside its goal": (lambda p: with_body_offset(p, 0.02, 0.0, 0.0), {"goal"}),
    "never down": (lambda p: with_swing(p, len(p.swings) - 1, lands=p.duration + 1.0), {"goal"}),
    "feet never lifted": (lambda p: replace(p, swings=()), {"reach"}),
    "all in the air": (
        lambda p: replace(
            p, swings=tuple(Swing(k, 0.0, 1.0, tuple(at), tuple(at), 0.1, 1.0) for k, at in enumerate(p.feet.tolist()))
        ),
        {"tipping"},
    ),
    "start elsewhere": (lambda p: replace(p, feet=p.feet + np.array([0.01, 0.0, 0.0])), {"slide"}),
    "turned": (lambda p: replace(p, heading=0.6), {"reach", "order", "limb", "speed"}),
}  # fmt: skip
OF_SWINGS: dict[str, tuple[Damage, set[str]]] = {
    "foot in the air": (lambda p, k: with_foothold(p, k, (0.0, 0.0, 0.04)), {"foothold"}),
    "foot in the ground": (lambda p, k: with_foothold(p, k, (0.0, 0.0, -0.04)), {"foothold", "ground"}),
    "foot far away": (lambda p, k: with_foothold(p, k, (0.3, 0.0, 0.0)), {"reach", "order"}),
    "foot slides": (
        lambda p, k: with_swing(p, k, source=tuple(np.add(p.swings[k].source, (0.01, 0.0, 0.0)))), {"slide"},
    ),
    "foot too quick": (lambda p, k: with_swing(p, k, lifts=p.swings[k].lands - 0.05), {"speed"}),
    "foot too low": (
        lambda p, k: with_swing(p, k, top=min(p.swings[k].source[2], p.swings[k].target[2]) - 0.03), {"ground", "limb"},
    ),
    "back in time": (lambda p, k: with_swing(p, k, lifts=p.swings[k].lands, lands=p.swings[k].lifts), {"slide"}),
    "of another leg": (lambda p, k: with_swing(p, k, leg=(p.swings[k].leg + 1) % 6), {"slide"}),
    "foot forgotten": (lambda p, k: without_swing(p, k), {"slide", "reach", "order", "tipping"}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", GROUNDS)
def test_checker_finds_no_fault_in_valid_plans(kind: str) -> None:
    problem, _, plan = planned(kind)
    observed = check(kind, plan)
    assert not observed.faults
    assert (observed.margin, observed.rate) >= (problem.rig.margin - 1e-3, 0.0)
    assert observed.confirmed < 1e-9


KINDS = ["stones", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("flat", "blocks", "slope"))]


@pytest.mark.parametrize("damage", OF_WHOLE_PLANS)
@pytest.mark.parametrize("kind", KINDS)
def test_checker_finds_each_damage_of_whole_plans(kind: str, damage: str) -> None:
    _, _, plan = planned(kind)
    change, expected = OF_WHOLE_PLANS[damage]
    faults = {one.kind for one in check(kind, change(plan)).faults}
    assert faults & expected, faults


@pytest.mark.parametrize("damage", OF_SWINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_checker_finds_each_damage_of_single_swings(kind: str, damage: str) -> None:
    _, _, plan = planned(kind)
    change, expected = OF_SWINGS[damage]
    for number in range(0, len(plan.swings), 1 + len(plan.swings) // 4):
        one = plan.swings[number]
        if damage == "foot forgotten" and (next_swing(plan, number) is None or one.source == one.target):
            continue  # nothing shows that it should have come on
        faults = {one.kind for one in check(kind, change(plan, number), period=SELDOM).faults}
        assert faults & expected, (number, plan.swings[number], faults)


@pytest.mark.slow
def test_checker_finds_feet_beside_their_stones() -> None:
    _, terrain, plan = planned("stones")
    holes = 0
    for number, one in enumerate(plan.swings):
        for away in ((0.06, 0.0, 0.0), (-0.06, 0.0, 0.0), (0.0, 0.06, 0.0), (0.0, -0.06, 0.0)):
            if terrain.height_at(np.add(one.target, away)[None, :2])[0] < -0.1:
                holes += 1
                observed = check("stones", with_foothold(plan, number, away), period=SELDOM)
                assert "foothold" in {fault.kind for fault in observed.faults}
    assert holes > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blocks", "slope"])
def test_checker_tilt_agrees_with_tip_over(kind: str) -> None:
    """Two formulas, one with scipy's hull."""
    _, _, plan = planned(kind)
    times = np.linspace(0.0, plan.duration, 400)[1:-1]
    (feet, down), body = plan.feet_at(times), plan.body(times)
    angles = [float(tip_over(f[d], c).angle) for f, d, c in zip(feet, down, body, strict=True)]
    np.testing.assert_allclose(checker._margins(feet, down, body)[1], angles, atol=1e-9)
    tilt = check(kind, plan).tilt
    assert tilt <= min(angles) + 1e-9
    assert math.degrees(tilt) > 11.0


def test_checker_uses_no_code_of_the_planners() -> None:
    tree = ast.parse(inspect.getsource(checker))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in names if name and name.startswith("roboyard")}
    assert ours == {"roboyard.geometry.arrays", "roboyard.walking.steps.plan", "roboyard.walking.walker"}

    class Mute(StepPlan):
        def body(self, times: object) -> np.ndarray:
            raise AssertionError("asked the plan where its body is")

        def feet_at(self, times: object) -> tuple[np.ndarray, np.ndarray]:
            raise AssertionError("asked the plan where its feet are")

    _, _, plan = planned("blocks")
    assert not check("blocks", Mute(plan.heading, plan.feet, plan.track, plan.swings)).faults


@pytest.mark.parametrize("kind", ["flat", pytest.param("blocks", marks=pytest.mark.slow)])
def test_replanned_steps_are_valid_within_a_tenth_of_speed(kind: str) -> None:
    """Feet that are in the air already come down when they should, and may have to hurry."""
    problem, _, plan = planned(kind)
    taken = 0
    for number, share in enumerate((0.1, 0.25, 0.4, 0.6)):
        past = settled(plan, share * plan.duration)
        try:
            other = plan_steps(replace(problem, past=past), budget=6_000, seed=number)
        except NoPlan:
            continue
        taken += 1
        assert not check(kind, other, rate=1.12).faults
        gone = np.linspace(0.0, share * plan.duration, 50)
        np.testing.assert_allclose(other.body(gone), plan.body(gone), atol=3e-3)  # drawn anew, point by point
    assert taken > 0
