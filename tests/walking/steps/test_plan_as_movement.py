"""Plans as movements: the same feet at all times, through the file and back, and the same walk in physics."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.walking.steps.step_problems import problem_on

from roboyard.errors import DescriptionError, InputError
from roboyard.grids.terrain import generate_terrain
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.walking.movement import PERIOD, play
from roboyard.walking.movement_file import load_movement, movement_text
from roboyard.walking.steps.as_movement import movement_of
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.rig import Rig


@cache
def planned(robot: str, kind: str, heading: float, goal: tuple[float, float]) -> tuple[Rig, StepPlan]:
    terrain = generate_terrain(kind, (1.0, 2.4), np.random.default_rng(1), corner=(0.3, -1.2), height_range=0.06)
    problem = problem_on(terrain, goal, robot, heading=heading)
    return problem.rig, plan_steps(problem, budget=20_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "kind", "heading", "goal"),
    [
        ("akrobat", "flat", 0.0, (0.5, 0.2)),
        ("akrobat", "blocks", 0.0, (1.0, 0.0)),
        ("akrobat", "flat", 0.8, (-0.2, 0.4)),
        ("lauron", "flat", 0.0, (0.8, 0.0)),
    ],
)
def test_played_plan_has_the_feet_of_the_plan(
    tmp_path: Path, robot: str, kind: str, heading: float, goal: tuple[float, float]
) -> None:
    rig, plan = planned(robot, kind, heading, goal)
    movement = movement_of(plan, rig.walker)
    file = tmp_path / "walk.xml"
    file.write_text(movement_text(movement))
    read = load_movement(file)
    assert read.ticks == movement.ticks
    np.testing.assert_array_equal(read.steps, movement.steps)
    played = play(read, rig.walker)
    assert (played.ticks == 1).all(), "no joint is too fast for the plan's own pace"
    times = np.minimum(np.arange(len(played.q)) * PERIOD, plan.duration)
    assert plan.duration <= played.duration < plan.duration + PERIOD
    feet = rig.walker.feet(played.q)
    np.testing.assert_allclose(feet, plan.local_feet(times), atol=1e-9)
    # and between two periods, where whatever drives the joints goes straight
    between = 0.5 * (times[:-1] + times[1:])
    halfway = rig.walker.feet(0.5 * (played.q[:-1] + played.q[1:]))
    within = 1e-3 if robot == "akrobat" else 5e-3  # larger, and faster
    np.testing.assert_allclose(halfway, plan.local_feet(between), atol=within)
    # horizontal motion is kept: feet that stand all the while carry the body as far as the plan does
    where, down = plan.body(times), plan.feet_at(times)[1]
    stands = down[1:] & down[:-1]
    c, s = math.cos(heading), math.sin(heading)
    forward = -(np.diff(feet[..., :2], axis=0) @ np.array([[c, s], [-s, c]]))[stands]
    body = np.repeat(np.diff(where[:, :2], axis=0)[:, None], len(rig.rows.home), axis=1)[stands]
    np.testing.assert_allclose(forward, body, atol=1e-9)
    assert np.abs(body).sum() > 0.5


def test_slower_pace_is_the_same_movement_in_more_time() -> None:
    rig, plan = planned("akrobat", "flat", 0.0, (0.5, 0.2))
    whole, half = (movement_of(plan, rig.walker, pace=pace) for pace in (1.0, 0.5))
    assert half.count == pytest.approx(2 * whole.count, abs=2)
    np.testing.assert_allclose(half.steps[:, ::2][:, :-1], whole.steps[:, : (half.count - 1) // 2], atol=1e-9)


@pytest.mark.slow
def test_played_plan_in_physics_reaches_its_goal(tmp_path: Path) -> None:
    """Open loop: nobody looks where feet and body are."""
    rig, plan = planned("akrobat", "flat", 0.0, (0.5, 0.2))
    file = tmp_path / "walk.xml"
    file.write_text(movement_text(movement_of(plan, rig.walker)))
    spec = load_scenario("akrobat-movement-file", overrides=[f"movement={file}", f"duration={plan.duration + 3.5:.1f}"])
    ran = run_scenario(spec, RunOptions(write_files=False, write_report=False, serve=False))
    assert (ran.metrics["movements"], ran.metrics["falls"]) == (1, 0)
    assert math.dist((ran.metrics["final_x"], ran.metrics["final_y"]), (0.5, 0.2)) < 0.08


def test_movement_with_bad_pace_or_ticks_is_refused(tmp_path: Path) -> None:
    rig, plan = planned("akrobat", "flat", 0.0, (0.5, 0.2))
    for pace in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(InputError, match="up to 1"):
            movement_of(plan, rig.walker, pace=pace)
    with pytest.raises(InputError, match="up to 12000"):
        movement_of(plan, rig.walker, pace=1e-3)
    text = movement_text(movement_of(plan, rig.walker, pace=1.0))
    for ticks in ("0", "-1", "1.5", "many", "9" * 30):
        file = tmp_path / "bad.xml"
        file.write_text(text.replace('ticks="1"', f'ticks="{ticks}"'))
        with pytest.raises(DescriptionError, match=r"bad.xml:2: ticks .* \(1 to 10000\)"):
            load_movement(file)
