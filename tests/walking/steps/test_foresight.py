"""Ground that was seen in part: what was seen stays, holes stay holes, and what is far goes on as it is near."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from tests.walking.steps.step_problems import rig_of

from roboyard.grids.height_map import HeightMap
from roboyard.walking.steps.foresight import Foresight
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.replanning import footholds_gone, footing_at

Array = NDArray[np.float64]
NONE = np.zeros((0, 3))
FORESIGHT = Foresight(horizon=0.9, begun=(-0.4, 0.0, 0.0), about=0.5)


def middles(given: HeightMap) -> tuple[Array, Array]:
    rows, columns = given.heights.shape
    x, y = (given.corner[k] + (np.arange(n) + 0.5) * given.resolution for k, n in ((0, columns), (1, rows)))
    return np.meshgrid(x, y)


def seen(low: float = 0.2, high: float = 1.5, height: float = 0.1) -> HeightMap:
    """Ground of one height that was seen between two x [m]."""
    empty = HeightMap(np.full((100, 120), np.nan), (-0.6, -1.0), 0.02)
    x, _ = middles(empty)
    known = (x > low) & (x < high)
    heights, variance = np.where(known, height, np.nan), np.where(known, 1e-5, np.nan)
    return HeightMap(heights, empty.corner, empty.resolution, variance, np.full(heights.shape, np.inf))


def complete(given: HeightMap, *, feet: Array = NONE, footholds: Array = NONE) -> HeightMap:
    return FORESIGHT.complete(given, (0.0, 0.0), [[2.0, 0.0]], feet, footholds, 0.5)


def test_completed_map_keeps_seen_ground_and_holds_the_goal() -> None:
    given = seen()
    out = complete(given)
    x, y = middles(given)
    places = np.column_stack([x.ravel(), y.ravel()])
    known = np.isfinite(given.heights_at(places))
    np.testing.assert_array_equal(out.heights_at(places)[known], given.heights_at(places)[known])
    assert np.isfinite(out.heights_at(np.array([[2.4, 0.4]])))


def test_unseen_ground_is_a_hole_nearby_and_continues_far_away() -> None:
    out = complete(seen())
    x, y = middles(out)
    near, begun = np.hypot(x, y) < 0.88, np.hypot(x + 0.4, y) <= 0.5
    unseen = (x < 0.18) | (x > 1.52)
    assert np.isnan(out.heights[unseen & near & ~begun]).all()
    np.testing.assert_array_equal(out.heights[begun & (x < 0.18)], 0.0)
    np.testing.assert_array_equal(out.heights[x > 1.52], 0.1)


def test_ground_below_passed_rays_is_absent() -> None:
    given = seen()
    x, y = middles(given)
    assert given.ceiling is not None
    given.ceiling[(x > 1.6) & (x < 1.7)] = 0.05
    given.ceiling[np.hypot(x + 0.4, y) < 0.1] = -0.2  # a pit where it began
    out = complete(given)
    x, y = middles(out)
    assert np.isnan(out.heights[(x > 1.6) & (x < 1.7) & (np.abs(y) < 0.5)]).all()
    assert np.isnan(out.heights[np.hypot(x + 0.4, y) < 0.09]).all()


def test_far_ground_continues_as_ground_and_not_as_pits() -> None:
    given = seen()
    x, _ = middles(given)
    given.heights[(x > 1.42) & (x < 1.5)] = -0.3
    out = complete(given)
    x, _ = middles(out)
    np.testing.assert_array_equal(out.heights[x > 1.52], 0.1)


def test_single_gaps_are_bridged_between_equal_heights() -> None:
    given = seen(height=0.0)
    x, y = middles(given)
    row = int(np.argmin(np.abs(y[:, 0])))
    alike, edge = int(np.argmin(np.abs(x[0] - 0.51))), int(np.argmin(np.abs(x[0] - 0.71)))
    given.heights[:, edge + 1 :] += 0.1
    given.heights[row, alike] = given.heights[:, edge] = math.nan
    out = complete(given)
    assert out.heights_at(np.array([[x[0, alike], y[row, 0]]]))[0] == 0.0
    assert np.isnan(out.heights_at(np.array([[x[0, edge], y[row, 0]]]))).all()


def test_completed_map_has_ground_under_feet_and_footholds() -> None:
    foot = np.array([[0.03, -0.51, 0.02]])
    held, wrong = np.array([[0.61, 0.01, 0.095]]), np.array([[0.81, 0.01, 0.05]])
    out = complete(seen(), feet=foot, footholds=np.vstack([held, wrong]))
    assert out.heights_at(foot)[0] == 0.02
    assert out.heights_at(held)[0] == 0.095  # was 0.1
    assert out.heights_at(wrong)[0] == 0.1  # as the map says: the foothold is another
    assert np.isnan(complete(seen()).heights_at(foot)).all()


def test_true_map_is_left_unchanged() -> None:
    truth = HeightMap(np.zeros((40, 40)), (-0.4, -0.4), 0.02)
    out = complete(truth)
    x, y = middles(out)
    inside = (np.abs(x) < 0.4) & (np.abs(y) < 0.4)
    np.testing.assert_array_equal(out.heights[inside], 0.0)
    assert np.isnan(out.heights[~inside]).all()


def test_body_height_is_joined_after_a_map_change() -> None:
    ground = Ground.of_map(HeightMap(np.zeros((120, 160)), (-1.0, -1.2), 0.02), rig_of("akrobat"))
    rows = ground.rows
    before = body_height(rows.body, rows.x, rows.y, rows.cell, 0.3, 0.1)
    for off in (0.04, -0.03):
        joined = ground.joined([0.3, 0.1, before + off]).rows
        assert math.isclose(body_height(joined.body, joined.x, joined.y, joined.cell, 0.3, 0.1), before + off)
        assert body_height(joined.body, joined.x, joined.y, joined.cell, 0.8, 0.1) == before
        assert np.nanmax(np.abs(np.diff(joined.body, axis=1))) <= 0.6 * rows.cell + 1e-9  # as steep as ground may be
        np.testing.assert_array_equal(np.isnan(joined.body), np.isnan(rows.body))


def test_footholds_are_gone_on_higher_or_uncertain_ground() -> None:
    rig = rig_of("akrobat")
    flat = HeightMap(np.zeros((120, 160)), (-1.0, -1.2), 0.02, np.zeros((120, 160)))
    ground = Ground.of_map(flat, rig)
    plan = plan_steps(Problem.of(rig, ground, (0.0, 0.0), (0.4, 0.0)), budget=6_000, seed=3)
    assert footholds_gone(plan, 0.0, ground) == []
    swing = max(range(len(plan.swings)), key=lambda k: plan.swings[k].lands)
    lifts, (px, py, _) = plan.swings[swing].lifts, plan.swings[swing].target
    x, y = middles(flat)
    about = np.hypot(x - px, y - py) < 0.05
    unsure = Ground.of_map(replace(flat, variance=np.where(about, 1.0, 0.0)), rig)
    assert swing in footholds_gone(plan, 0.0, unsure)
    assert swing not in footholds_gone(plan, lifts + 1e-6, unsure)
    higher = Ground.of_map(replace(flat, heights=np.where(about, 0.05, 0.0)), rig)
    assert swing in footholds_gone(plan, lifts + 1e-6, higher)
    assert footholds_gone(plan, plan.duration, higher) == []
    np.testing.assert_array_equal(footing_at(plan, 0.0), plan.feet)
    np.testing.assert_array_equal(footing_at(plan, plan.duration)[plan.swings[swing].leg], plan.swings[swing].target)
