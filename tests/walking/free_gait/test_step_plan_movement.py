"""Step plans as foot movements: equal feet at all times, also through the file, and the same walk in physics."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import problem_on

from roboyard.errors import DescriptionError, InputError
from roboyard.grids.terrain import generate_terrain
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.walking.foot_movement import TICK_PERIOD, format_movement, load_movement, play_movement
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan, to_foot_movement


@cache
def planned(robot: str, kind: str, heading: float, goal: tuple[float, float]) -> tuple[FreeGaitModel, StepPlan]:
    terrain = generate_terrain(kind, (1.0, 2.4), np.random.default_rng(1), corner=(0.3, -1.2), height_range=0.06)
    problem = problem_on(terrain, goal, robot, heading=heading)
    return problem.robot_model, plan_steps(problem, budget=20_000, seed=1)


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
    robot_model, plan = planned(robot, kind, heading, goal)
    movement = to_foot_movement(plan, robot_model.legged_robot)
    file = tmp_path / "walk.xml"
    file.write_text(format_movement(movement))
    read = load_movement(file)
    assert read.step_ticks == movement.step_ticks
    np.testing.assert_array_equal(read.foot_offsets, movement.foot_offsets)
    playback = play_movement(read, robot_model.legged_robot)
    assert (playback.step_ticks == 1).all(), "no joint is too fast at the speed of the plan"
    times = np.minimum(np.arange(len(playback.q)) * TICK_PERIOD, plan.duration)
    assert plan.duration <= playback.duration < plan.duration + TICK_PERIOD
    feet = robot_model.legged_robot.foot_positions(playback.q)
    np.testing.assert_allclose(feet, plan.foot_positions_in_body(times), atol=1e-9)
    # and between two periods, where whatever drives the joints goes straight
    mid_times = 0.5 * (times[:-1] + times[1:])
    mid_feet = robot_model.legged_robot.foot_positions(0.5 * (playback.q[:-1] + playback.q[1:]))
    tolerance = 1e-3 if robot == "akrobat" else 5e-3  # larger, and faster
    np.testing.assert_allclose(mid_feet, plan.foot_positions_in_body(mid_times), atol=tolerance)
    # horizontal motion is kept: feet that stand all the while carry the body as far as the plan does
    body_positions, in_stance = plan.body_positions(times), plan.foot_states(times)[1]
    stays_in_stance = in_stance[1:] & in_stance[:-1]
    c, s = math.cos(heading), math.sin(heading)
    forward = -(np.diff(feet[..., :2], axis=0) @ np.array([[c, s], [-s, c]]))[stays_in_stance]
    body = np.repeat(np.diff(body_positions[:, :2], axis=0)[:, None], len(robot_model.arrays.stance_feet), axis=1)[
        stays_in_stance
    ]
    np.testing.assert_allclose(forward, body, atol=1e-9)
    assert np.abs(body).sum() > 0.5


def test_slower_plan_is_the_same_movement_in_more_time() -> None:
    robot_model, plan = planned("akrobat", "flat", 0.0, (0.5, 0.2))
    full_speed, half_speed = (
        to_foot_movement(plan, robot_model.legged_robot, speed_scale=speed_scale) for speed_scale in (1.0, 0.5)
    )
    assert half_speed.n_steps == pytest.approx(2 * full_speed.n_steps, abs=2)
    np.testing.assert_allclose(
        half_speed.foot_offsets[:, ::2][:, :-1], full_speed.foot_offsets[:, : (half_speed.n_steps - 1) // 2], atol=1e-9
    )


@pytest.mark.slow
def test_played_plan_in_physics_reaches_its_goal(tmp_path: Path) -> None:
    """The movement is played without feedback from feet or body."""
    robot_model, plan = planned("akrobat", "flat", 0.0, (0.5, 0.2))
    file = tmp_path / "walk.xml"
    file.write_text(format_movement(to_foot_movement(plan, robot_model.legged_robot)))
    spec = load_scenario("akrobat-movement-file", overrides=[f"movement={file}", f"duration={plan.duration + 3.5:.1f}"])
    outcome = run_scenario(spec, RunOptions(write_files=False, write_report=False, serve=False))
    assert (outcome.metrics["movements"], outcome.metrics["falls"]) == (1, 0)
    assert math.dist((outcome.metrics["final_x"], outcome.metrics["final_y"]), (0.5, 0.2)) < 0.08


def test_movement_with_bad_speed_scale_or_ticks_is_refused(tmp_path: Path) -> None:
    robot_model, plan = planned("akrobat", "flat", 0.0, (0.5, 0.2))
    for speed_scale in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(InputError, match="up to 1"):
            to_foot_movement(plan, robot_model.legged_robot, speed_scale=speed_scale)
    with pytest.raises(InputError, match="up to 12000"):
        to_foot_movement(plan, robot_model.legged_robot, speed_scale=1e-3)
    text = format_movement(to_foot_movement(plan, robot_model.legged_robot, speed_scale=1.0))
    for ticks in ("0", "-1", "1.5", "many", "9" * 30):
        file = tmp_path / "bad.xml"
        file.write_text(text.replace('ticks="1"', f'ticks="{ticks}"'))
        with pytest.raises(DescriptionError, match=r"bad.xml:2: ticks .* \(1 to 10000\)"):
            load_movement(file)
