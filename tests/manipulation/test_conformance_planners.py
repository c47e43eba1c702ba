"""Every registered motion planner keeps the contract; planners that break one promise are found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.manipulation import MOTION_PLANNERS
from roboyard.manipulation.conformance import check_motion_planner
from roboyard.manipulation.errors import MotionBudgetExceededError, PlanningCancelledError, PlanningError
from roboyard.manipulation.planning import MotionPlanningProblem, PlannedPath, make_planner
from roboyard.manipulation.planning.motion_planners import RrtConnectPlanner
from roboyard.manipulation.planning.planner import StopCallback, supports_axis_constraint

SLOW_PLANNERS = ("ompl:RRTstar", "ompl:InformedRRTstar")
"""Planners that use their whole budget for every path."""
OMPL_NAMES = {
    "RRTConnect", "RRT", "RRTstar", "InformedRRTstar", "BITstar", "KPIECE1", "BKPIECE1", "LBKPIECE1", "FMT", "BFMT",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW_PLANNERS else ()) for name in MOTION_PLANNERS.names()],
)
def test_every_registered_planner_keeps_the_contract(name: str) -> None:
    check_motion_planner(make_planner(name))


def test_registry_holds_our_planner_and_those_of_ompl() -> None:
    assert set(MOTION_PLANNERS.names()) >= {"rrt_connect", *(f"ompl:{name}" for name in OMPL_NAMES)}
    with pytest.raises(UnknownNameError, match="did you mean 'rrt_connect'"):
        make_planner("rrt_conect")


@pytest.mark.parametrize("name", MOTION_PLANNERS.names())
def test_settings_of_planners_are_checked(name: str) -> None:
    with pytest.raises(ConfigError, match=f"planner {name}.*unknown key 'colour'"):
        make_planner(name, {"colour": 1})
    planner: Any = make_planner(name)
    for key, value in planner.to_data().items():
        with pytest.raises(ConfigError, match=key):
            make_planner(name, {key: -1})
        assert getattr(make_planner(name, {key: value}), key) == value


def test_settings_change_the_search() -> None:
    from roboyard.manipulation import conformance

    problem = conformance._make_problem(
        conformance._make_scene(conformance._LOW_WALL), np.array(conformance._START), [np.array(conformance._GOAL)]
    )
    default, short = (
        make_planner("rrt_connect", settings).solve(problem, np.random.default_rng(0), 2000, lambda: False)
        for settings in ({}, {"step": 0.1})
    )
    steps = np.linalg.norm(np.diff(short.points, axis=0) * problem.weights, axis=1)
    assert steps.max() <= 0.1 + 1e-9
    assert len(short.points) > len(default.points)


@dataclass
class BrokenPlanner:
    """RRT-Connect that breaks one promise of the contract."""

    violation: str
    supports_axis_constraint: bool = False
    n_calls: int = 0

    def solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> Any:
        self.n_calls += 1
        match self.violation:
            case "straight through the wall":
                return PlannedPath(np.stack([problem.start, problem.goals[0]]), 2)
            case "gives up":
                raise MotionBudgetExceededError("never")
            case "is not cancelled":
                poll = should_stop
                should_stop = lambda: poll() and False  # noqa: E731
            case "polls once":
                if should_stop():
                    raise PlanningCancelledError("the search was cancelled")
                should_stop = _never_stop
            case "ignores the generator":
                rng = np.random.default_rng()
            case "keeps a state":
                rng = np.random.default_rng(self.n_calls)
            case "another error":
                try:
                    return self._solve(problem, rng, max_states, should_stop)
                except MotionBudgetExceededError as error:
                    raise PlanningError("no path") from error
            case "ignores the constraint":
                problem = replace(problem, constraint=None)
            case "stops before the goal":
                path = self._solve(problem, rng, max_states, should_stop)
                return PlannedPath(np.concatenate([path.points[:-1], path.points[-1:] - 1e-9]), path.n_states)
            case "begins beside the start":
                path = self._solve(problem, rng, max_states, should_stop)
                return PlannedPath(path.points + 1e-9, path.n_states)
            case "leaves the limits":
                path = self._solve(problem, rng, max_states, should_stop)
                outside = path.points[-1] + np.array((0.0, 0.0, 0.0, 2.5))
                return PlannedPath(np.concatenate([path.points, [outside], path.points[-1:]]), path.n_states)
            case "changes the problem":
                path = self._solve(problem, rng, max_states, should_stop)
                problem.weights[:] *= 2.0
                return path
            case "changes the scene":
                path = self._solve(problem, rng, max_states, should_stop)
                problem.scene.collision_arrays.world_poses[:] += 1.0
                return path
            case "returns an array":
                return self._solve(problem, rng, max_states, should_stop).points
        return self._solve(problem, rng, max_states, should_stop)

    def _solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> PlannedPath:
        return RrtConnectPlanner().solve(problem, rng, max_states, should_stop)


def _never_stop() -> bool:
    return False


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        ("straight through the wall", "touches low wall"),
        ("is not cancelled", "when it is cancelled"),
        ("polls once", "times whether it shall stop"),
        ("ignores the generator", "another path for the same problem and seed"),
        ("keeps a state", "another path for the same problem and seed"),
        ("another error", "raises PlanningError instead of MotionBudgetExceededError"),
        ("stops before the goal", "does not end at a goal"),
        ("begins beside the start", "does not begin at the start"),
        ("leaves the limits", "beyond the joint limits"),
        ("changes the problem", "changes the problem or the scene"),
        ("changes the scene", "changes the problem or the scene"),
        ("returns an array", "returns ndarray instead of PlannedPath"),
    ],
)
def test_check_finds_each_violation(violation: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_motion_planner(BrokenPlanner(violation))
    assert message in str(caught.value)
    assert str(caught.value).startswith("BrokenPlanner: ")


def test_check_finds_a_violated_axis_constraint() -> None:
    check_motion_planner(BrokenPlanner("", supports_axis_constraint=True))
    with pytest.raises(InputError, match="tilts the tool by"):
        check_motion_planner(BrokenPlanner("ignores the constraint", supports_axis_constraint=True))


def test_check_passes_on_an_unfounded_failure() -> None:
    with pytest.raises(MotionBudgetExceededError):
        check_motion_planner(BrokenPlanner("gives up"))


def test_planner_without_the_attribute_supports_no_constraint() -> None:
    assert supports_axis_constraint(make_planner("rrt_connect"))
    assert not supports_axis_constraint(make_planner("ompl:RRT"))
    assert not supports_axis_constraint(object())  # type: ignore[arg-type]
