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

from roboyard.grids.terrain import Terrain
from roboyard.grids.terrain_kinds import make_terrain
from roboyard.scenarios.robot_steps import find_rig
from roboyard.walking.errors import NoPlan
from roboyard.walking.stability import tip_over
from roboyard.walking.steps import checker
from roboyard.walking.steps.checker import Limits, Verdict, check_plan
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.past import settled
from roboyard.walking.steps.plan import StepPlan, Swing
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem

GOAL = (1.25, 0.1)
GROUNDS = {
    "flat": {},
    "blocks": {"relief": 0.08},
    "stones": {"cell": 0.06, "relief": 0.3, "share": 0.25},
    "slope": {"relief": 0.08},
}


@cache
def found(kind: str) -> tuple[Problem, Terrain, StepPlan]:
    rig = find_rig("akrobat")
    terrain = make_terrain(kind, (0.6, 2.4), np.random.default_rng(2), corner=(0.34, -1.2), **GROUNDS[kind])
    ground = Ground.of_terrain(terrain, rig, [(0.0, 0.0), GOAL])
    problem = Problem.of(rig, ground, (0.0, 0.0), GOAL)
    return problem, terrain, plan_steps(problem, budget=30_000, seed=1)


def looked_at(kind: str, plan: StepPlan, rate: float = 1.0) -> Verdict:
    problem, terrain, _ = found(kind)
    rig = problem.rig
    return check_plan(plan, rig.walker, rig.body, terrain.height, GOAL, Limits(margin=rig.margin, rate=rate))


def swung(plan: StepPlan, number: int, **changes: object) -> StepPlan:
    """With one swing changed."""
    swings = list(plan.swings)
    swings[number] = replace(swings[number], **changes)
    return replace(plan, swings=tuple(swings))


def next_of(plan: StepPlan, number: int) -> int | None:
    """The next swing of the same leg."""
    later = range(number + 1, len(plan.swings))
    return next((k for k in later if plan.swings[k].leg == plan.swings[number].leg), None)


def stood(plan: StepPlan, number: int, away: tuple[float, float, float]) -> StepPlan:
    """With a foot that stands elsewhere between two of its swings."""
    place = tuple(np.add(plan.swings[number].target, away).tolist())
    changed, after = swung(plan, number, target=place), next_of(plan, number)
    return changed if after is None else swung(changed, after, source=place)


def quicker(plan: StepPlan, share: float) -> StepPlan:
    track = plan.track * (share, 1.0, 1.0, 1.0)
    swings = tuple(
        replace(one, lifts=share * one.lifts, lands=share * one.lands, quick=share * one.quick) for one in plan.swings
    )
    return replace(plan, track=track, swings=swings)


def moved(plan: StepPlan, x: float, y: float, z: float) -> StepPlan:
    return replace(plan, track=plan.track + np.array([0.0, x, y, z]))


def without(plan: StepPlan, number: int) -> StepPlan:
    return replace(plan, swings=plan.swings[:number] + plan.swings[number + 1 :])


Harm = Callable[[StepPlan, int], StepPlan]
HARMS: dict[str, tuple[Harm, set[str]]] = {
    "all quicker": (lambda p, k: quicker(p, 0.85), {"speed"}),
    "body low": (lambda p, k: moved(p, 0.0, 0.0, -0.14), {"belly", "limb", "reach"}),
    "body high": (lambda p, k: moved(p, 0.0, 0.0, 0.2), {"reach"}),
    "body beside its feet": (lambda p, k: moved(p, 0.0, 0.2, 0.0), {"tipping", "reach"}),
    "body beside its goal": (lambda p, k: moved(p, 0.02, 0.0, 0.0), {"goal"}),
    "foot in the air": (lambda p, k: stood(p, k, (0.0, 0.0, 0.04)), {"foothold"}),
    "foot in the ground": (lambda p, k: stood(p, k, (0.0, 0.0, -0.04)), {"foothold", "ground"}),
    "foot far away": (lambda p, k: stood(p, k, (0.3, 0.0, 0.0)), {"reach", "order"}),
    "foot slides": (lambda p, k: swung(p, k, source=tuple(np.add(p.swings[k].source, (0.01, 0.0, 0.0)))), {"slide"}),
    "foot too quick": (lambda p, k: swung(p, k, lifts=p.swings[k].lands - 0.05), {"speed"}),
    "foot too low": (
        lambda p, k: swung(p, k, top=min(p.swings[k].source[2], p.swings[k].target[2]) - 0.03), {"ground", "limb"},
    ),
    "back in time": (lambda p, k: swung(p, k, lifts=p.swings[k].lands, lands=p.swings[k].lifts), {"slide"}),
    "of another leg": (lambda p, k: swung(p, k, leg=(p.swings[k].leg + 1) % 6), {"slide"}),
    "never down": (lambda p, k: swung(p, len(p.swings) - 1, lands=p.duration + 1.0), {"goal"}),
    "foot forgotten": (lambda p, k: without(p, k), {"slide", "reach", "order", "tipping"}),
    "feet never lifted": (lambda p, k: replace(p, swings=()), {"reach"}),
    "all in the air": (
        lambda p, k: replace(
            p, swings=tuple(Swing(k, 0.0, 1.0, tuple(at), tuple(at), 0.1, 1.0) for k, at in enumerate(p.feet.tolist()))
        ),
        {"tipping"},
    ),
    "start elsewhere": (lambda p, k: replace(p, feet=p.feet + np.array([0.01, 0.0, 0.0])), {"slide"}),
    "turned": (lambda p, k: replace(p, heading=0.6), {"reach", "order", "limb", "speed"}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", GROUNDS)
def test_checker_finds_no_fault_in_valid_plans(kind: str) -> None:
    problem, _, plan = found(kind)
    seen = looked_at(kind, plan)
    assert not seen.faults
    assert (seen.margin, seen.rate) >= (problem.rig.margin - 1e-3, 0.0)
    assert seen.confirmed < 1e-9


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize(
    "kind", ["stones", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("flat", "blocks", "slope"))]
)
def test_checker_finds_each_kind_of_damage(kind: str, harm: str) -> None:
    _, _, plan = found(kind)
    do, kinds = HARMS[harm]
    for number in range(0, len(plan.swings), 1 + len(plan.swings) // 4):
        one = plan.swings[number]
        if harm == "foot forgotten" and (next_of(plan, number) is None or one.source == one.target):
            continue  # nothing shows that it should have come on
        faults = {one.kind for one in looked_at(kind, do(plan, number)).faults}
        assert faults & kinds, (number, plan.swings[number], faults)


@pytest.mark.slow
def test_checker_finds_feet_beside_their_stones() -> None:
    _, terrain, plan = found("stones")
    holes = 0
    for number, one in enumerate(plan.swings):
        for away in ((0.06, 0.0, 0.0), (-0.06, 0.0, 0.0), (0.0, 0.06, 0.0), (0.0, -0.06, 0.0)):
            if terrain.height(np.add(one.target, away)[None, :2])[0] < -0.1:
                holes += 1
                assert "foothold" in {fault.kind for fault in looked_at("stones", stood(plan, number, away)).faults}
    assert holes > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blocks", "slope"])
def test_checker_tilt_agrees_with_tip_over(kind: str) -> None:
    """Two formulas, one with scipy's hull."""
    _, _, plan = found(kind)
    times = np.linspace(0.0, plan.duration, 400)[1:-1]
    (feet, down), body = plan.feet_at(times), plan.body(times)
    angles = [float(tip_over(f[d], c).angle) for f, d, c in zip(feet, down, body, strict=True)]
    np.testing.assert_allclose(checker._margins(feet, down, body)[1], angles, atol=1e-9)
    assert looked_at(kind, plan).tilt <= min(angles) + 1e-9
    assert math.degrees(looked_at(kind, plan).tilt) > 11.0


def test_checker_uses_no_code_of_the_planners() -> None:
    tree = ast.parse(inspect.getsource(checker))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in names if name and name.startswith("roboyard")}
    assert ours == {"roboyard.walking.steps.plan", "roboyard.walking.walker"}

    class Mute(StepPlan):
        def body(self, times: object) -> np.ndarray:
            raise AssertionError("asked the plan where its body is")

        def feet_at(self, times: object) -> tuple[np.ndarray, np.ndarray]:
            raise AssertionError("asked the plan where its feet are")

    _, _, plan = found("blocks")
    assert not looked_at("blocks", Mute(plan.heading, plan.feet, plan.track, plan.swings)).faults


@pytest.mark.parametrize("kind", ["flat", pytest.param("blocks", marks=pytest.mark.slow)])
def test_replanned_steps_are_valid_within_a_tenth_of_speed(kind: str) -> None:
    """Feet that are in the air already come down when they should, and may have to hurry."""
    problem, _, plan = found(kind)
    taken = 0
    for number, share in enumerate((0.1, 0.25, 0.4, 0.6)):
        past = settled(plan, share * plan.duration)
        try:
            other = plan_steps(replace(problem, past=past), budget=6_000, seed=number)
        except NoPlan:
            continue
        taken += 1
        assert not looked_at(kind, other, rate=1.12).faults
        gone = np.linspace(0.0, share * plan.duration, 50)
        np.testing.assert_allclose(other.body(gone), plan.body(gone), atol=3e-3)  # drawn anew, point by point
    assert taken > 0
