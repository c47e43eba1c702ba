"""Checker of step plans: it shares no code with the planners, and finds every kind of damage to valid plans."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import check_plan_on, level_terrain, problem_on

from roboyard.grids.terrain import Terrain, generate_terrain
from roboyard.walking.errors import NoStepPlanError
from roboyard.walking.free_gait import plan_checker
from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, PlanCheckReport
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.replanning import committed_events
from roboyard.walking.free_gait.step_plan import StepPlan, Swing
from roboyard.walking.statics import tip_over_stability

GOAL = (1.25, 0.1)
COARSE_PERIOD = 0.05
"""Period of checks for damage of single swings [s]; the usual, shorter period finds the same damage."""
TERRAINS = {
    "flat": {},
    "blocks": {"height_range": 0.08},
    "stones": {"cell_size": 0.06, "height_range": 0.3, "fraction": 0.25},
    "slope": {"height_range": 0.08},
}


@cache
def planned(kind: str) -> tuple[StepPlanningProblem, Terrain, StepPlan]:
    """Return a valid plan, with its problem and terrain."""
    terrain = generate_terrain(kind, (0.6, 2.4), np.random.default_rng(2), corner=(0.34, -1.2), **TERRAINS[kind])
    problem = problem_on(terrain, GOAL)
    return problem, terrain, plan_steps(problem, budget=30_000, seed=1)


def check(kind: str, plan: StepPlan, rate: float = 1.0, period: float = PlanCheckLimits.period) -> PlanCheckReport:
    problem, terrain, _ = planned(kind)
    return check_plan_on(plan, problem, terrain, rate=rate, period=period)


def with_swing(plan: StepPlan, number: int, **changes: object) -> StepPlan:
    """Return the plan with one swing changed."""
    swings = list(plan.swings)
    swings[number] = replace(swings[number], **changes)
    return replace(plan, swings=tuple(swings))


def next_swing(plan: StepPlan, number: int) -> int | None:
    """Return the next swing of the same leg."""
    later = range(number + 1, len(plan.swings))
    return next((k for k in later if plan.swings[k].leg == plan.swings[number].leg), None)


def with_foothold(plan: StepPlan, number: int, offset: tuple[float, float, float]) -> StepPlan:
    """Return the plan with a foot that stands elsewhere between two of its swings."""
    position = tuple(np.add(plan.swings[number].target, offset).tolist())
    changed, after = with_swing(plan, number, target=position), next_swing(plan, number)
    return changed if after is None else with_swing(changed, after, source=position)


def with_duration_scale(plan: StepPlan, fraction: float) -> StepPlan:
    body_track = plan.body_track * (fraction, 1.0, 1.0, 1.0)
    swings = tuple(
        replace(
            swing,
            lift_off_time=fraction * swing.lift_off_time,
            touch_down_time=fraction * swing.touch_down_time,
            vertical_time=fraction * swing.vertical_time,
        )
        for swing in plan.swings
    )
    return replace(plan, body_track=body_track, swings=swings)


def with_body_offset(plan: StepPlan, x: float, y: float, z: float) -> StepPlan:
    return replace(plan, body_track=plan.body_track + np.array([0.0, x, y, z]))


def without_swing(plan: StepPlan, number: int) -> StepPlan:
    return replace(plan, swings=plan.swings[:number] + plan.swings[number + 1 :])


Damage = Callable[[StepPlan, int], StepPlan]
PLAN_DAMAGES: dict[str, tuple[Callable[[StepPlan], StepPlan], set[str]]] = {
    "all quicker": (lambda p: with_duration_scale(p, 0.85), {"speed"}),
    "body low": (lambda p: with_body_offset(p, 0.0, 0.0, -0.14), {"body_contact", "limb", "reach"}),
    "body high": (lambda p: with_body_offset(p, 0.0, 0.0, 0.2), {"reach"}),
    "body beside its feet": (lambda p: with_body_offset(p, 0.0, 0.2, 0.0), {"tipping", "reach"}),
    "body beside its goal": (lambda p: with_body_offset(p, 0.02, 0.0, 0.0), {"goal"}),
    "never down": (lambda p: with_swing(p, len(p.swings) - 1, touch_down_time=p.duration + 1.0), {"goal"}),
    "feet never lifted": (lambda p: replace(p, swings=()), {"reach"}),
    "all in the air": (
        lambda p: replace(
            p,
            swings=tuple(
                Swing(k, 0.0, 1.0, tuple(position), tuple(position), 0.1, 1.0)
                for k, position in enumerate(p.start_feet.tolist())
            ),
        ),
        {"tipping"},
    ),
    "start elsewhere": (lambda p: replace(p, start_feet=p.start_feet + np.array([0.01, 0.0, 0.0])), {"slip"}),
    "turned": (lambda p: replace(p, heading=0.6), {"reach", "order", "limb", "speed"}),
}
SWING_DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "foot in the air": (lambda p, k: with_foothold(p, k, (0.0, 0.0, 0.04)), {"foothold"}),
    "foot in the ground": (lambda p, k: with_foothold(p, k, (0.0, 0.0, -0.04)), {"foothold", "ground"}),
    "foot far away": (lambda p, k: with_foothold(p, k, (0.3, 0.0, 0.0)), {"reach", "order"}),
    "foot slides": (
        lambda p, k: with_swing(p, k, source=tuple(np.add(p.swings[k].source, (0.01, 0.0, 0.0)))),
        {"slip"},
    ),
    "foot too quick": (lambda p, k: with_swing(p, k, lift_off_time=p.swings[k].touch_down_time - 0.05), {"speed"}),
    "foot too low": (
        lambda p, k: with_swing(p, k, apex_height=min(p.swings[k].source[2], p.swings[k].target[2]) - 0.03),
        {"ground", "limb"},
    ),
    "back in time": (
        lambda p, k: with_swing(
            p, k, lift_off_time=p.swings[k].touch_down_time, touch_down_time=p.swings[k].lift_off_time
        ),
        {"slip"},
    ),
    "of another leg": (lambda p, k: with_swing(p, k, leg=(p.swings[k].leg + 1) % 6), {"slip"}),
    "foot forgotten": (lambda p, k: without_swing(p, k), {"slip", "reach", "order", "tipping"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TERRAINS)
def test_checker_finds_no_fault_in_valid_plans(kind: str) -> None:
    problem, _, plan = planned(kind)
    observed = check(kind, plan)
    assert not observed.faults
    assert (observed.min_stability_margin, observed.max_speed_fraction) >= (
        problem.robot_model.min_stability_margin - 1e-3,
        0.0,
    )
    assert observed.max_fk_error < 1e-9


KINDS = ["stones", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("flat", "blocks", "slope"))]


@pytest.mark.parametrize("damage", PLAN_DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_checker_finds_each_damage_of_whole_plans(kind: str, damage: str) -> None:
    _, _, plan = planned(kind)
    change, expected = PLAN_DAMAGES[damage]
    faults = {one.kind for one in check(kind, change(plan)).faults}
    assert faults & expected, faults


@pytest.mark.parametrize("damage", SWING_DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_checker_finds_each_damage_of_single_swings(kind: str, damage: str) -> None:
    _, _, plan = planned(kind)
    change, expected = SWING_DAMAGES[damage]
    for number in range(0, len(plan.swings), 1 + len(plan.swings) // 4):
        swing = plan.swings[number]
        if damage == "foot forgotten" and (next_swing(plan, number) is None or swing.source == swing.target):
            continue  # nothing shows that it should have come on
        faults = {swing.kind for swing in check(kind, change(plan, number), period=COARSE_PERIOD).faults}
        assert faults & expected, (number, plan.swings[number], faults)


@pytest.mark.slow
def test_checker_finds_feet_off_their_stones() -> None:
    _, terrain, plan = planned("stones")
    holes = 0
    for number, swing in enumerate(plan.swings):
        for offset in ((0.06, 0.0, 0.0), (-0.06, 0.0, 0.0), (0.0, 0.06, 0.0), (0.0, -0.06, 0.0)):
            if terrain.height_at(np.add(swing.target, offset)[None, :2])[0] < -0.1:
                holes += 1
                observed = check("stones", with_foothold(plan, number, offset), period=COARSE_PERIOD)
                assert "foothold" in {fault.kind for fault in observed.faults}
    assert holes > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blocks", "slope"])
def test_checker_tilt_agrees_with_tip_over(kind: str) -> None:
    """The checker computes it from SciPy's convex hull, `tip_over_stability` from the edges of the polygon."""
    _, _, plan = planned(kind)
    times = np.linspace(0.0, plan.duration, 400)[1:-1]
    (feet, in_stance), body = plan.foot_states(times), plan.body_positions(times)
    angles = [float(tip_over_stability(f[d], c).angle) for f, d, c in zip(feet, in_stance, body, strict=True)]
    np.testing.assert_allclose(plan_checker._stability_margins(feet, in_stance, body)[1], angles, atol=1e-9)
    tilt = check(kind, plan).min_tip_over_angle
    assert tilt <= min(angles) + 1e-9
    assert math.degrees(tilt) > 11.0


def test_checker_uses_no_code_of_the_planners() -> None:
    tree = ast.parse(inspect.getsource(plan_checker))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roboyard_modules = {name for name in names if name and name.startswith("roboyard")}
    assert roboyard_modules == {
        "roboyard.geometry.arrays",
        "roboyard.walking.free_gait.step_plan",
        "roboyard.walking.legged_robot",
    }

    class Mute(StepPlan):
        def body_positions(self, times: object) -> np.ndarray:
            raise AssertionError("asked the plan where its body is")

        def foot_states(self, times: object) -> tuple[np.ndarray, np.ndarray]:
            raise AssertionError("asked the plan where its feet are")

    _, _, plan = planned("blocks")
    assert not check("blocks", Mute(plan.heading, plan.start_feet, plan.body_track, plan.swings)).faults


@pytest.mark.parametrize("kind", ["flat", pytest.param("blocks", marks=pytest.mark.slow)])
def test_replanned_steps_are_valid_within_a_tenth_of_speed(kind: str) -> None:
    """Feet in the air touch down as committed, for which joints may need a tenth more than their speed."""
    problem, _, plan = planned(kind)
    n_plans = 0
    for number, fraction in enumerate((0.1, 0.25, 0.4, 0.6)):
        committed = committed_events(plan, fraction * plan.duration)
        try:
            other = plan_steps(replace(problem, committed=committed), budget=6_000, seed=number)
        except NoStepPlanError:
            continue
        n_plans += 1
        assert not check(kind, other, rate=1.12).faults
        times = np.linspace(0.0, fraction * plan.duration, 50)
        np.testing.assert_allclose(
            other.body_positions(times), plan.body_positions(times), atol=3e-3
        )  # drawn anew, point by point
    assert n_plans > 0


def test_checker_finds_faults_of_a_changed_plan() -> None:
    terrain = level_terrain()
    problem = problem_on(terrain, (0.5, 0.0))
    plan = plan_steps(problem, budget=20_000, seed=1)

    def fault_kinds(changed: StepPlan, checked_terrain: Terrain = terrain) -> set[str]:
        return {swing.kind for swing in check_plan_on(changed, problem, checked_terrain).faults}

    assert not fault_kinds(plan)
    fast_track = plan.body_track.copy()
    fast_track[:, 0] *= 0.5
    swings = tuple(
        replace(swing, lift_off_time=0.5 * swing.lift_off_time, touch_down_time=0.5 * swing.touch_down_time)
        for swing in plan.swings
    )
    assert "speed" in fault_kinds(replace(plan, body_track=fast_track, swings=swings))
    x, y, z = plan.swings[0].target
    assert "foothold" in fault_kinds(
        replace(plan, swings=(replace(plan.swings[0], target=(x, y, z + 0.05)), *plan.swings[1:]))
    )
    assert "slip" in fault_kinds(
        replace(plan, swings=(replace(plan.swings[0], target=(x + 0.01, y, z)), *plan.swings[1:]))
    )
    offset_track = plan.body_track.copy()
    offset_track[:, 2] += 0.2
    assert {"tipping", "goal"} <= fault_kinds(replace(plan, body_track=offset_track))
    high_track = plan.body_track.copy()
    high_track[:, 3] += 0.2
    assert "reach" in fault_kinds(replace(plan, body_track=high_track))
    low = replace(plan, swings=tuple(replace(swing, apex_height=-0.02) for swing in plan.swings))
    assert "ground" in fault_kinds(low)
    step = generate_terrain(
        "wall", (0.3, 3.0), np.random.default_rng(0), corner=(0.1, -1.5), height_range=0.12, fraction=1.0
    )
    assert {"foothold", "body_contact"} <= fault_kinds(plan, step)
