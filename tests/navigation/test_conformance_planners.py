"""Every planner keeps the contract, and planners that break it are found out."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.navigation import Costmap, Footprint, GridSearchPlanner
from roboyard.navigation.conformance import check_planner
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.path import Path
from roboyard.navigation.plugins import PLANNERS

ROUND = Footprint.circle(0.15)


@pytest.mark.parametrize("name", ["a_star", "dijkstra", "fast_marching", "hybrid_a_star", "navfn", "state_lattice"])
def test_registered_planners_conform(name: str) -> None:
    assert name in PLANNERS.names()
    check_planner(PLANNERS[name](ROUND))


def test_unknown_planner_names_are_refused() -> None:
    with pytest.raises(UnknownNameError) as caught:
        PLANNERS["fast_march"](ROUND)
    assert "fast_marching" in str(caught.value)


@dataclass
class BrokenPlanner:
    violation: str

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        if self.violation == "gives up":
            raise NoPathError("never")
        path = GridSearchPlanner().plan(costmap, start, goal)
        if self.violation == "changes":
            costmap.cells[0, 0] = 7
        if self.violation == "does not lead":
            return replace(path, poses=path.poses[:-3])
        if self.violation == "touches":
            return replace(path, poses=path.poses[[0, -1]])
        if self.violation == "cost":
            return replace(path, cost=0.5 * path.length)
        if self.violation == "clearance":
            return replace(path, clearance=0.0)
        if self.violation == "another way":
            return replace(path, poses=np.repeat(path.poses, 1 + np.random.default_rng().integers(1, 1000), axis=0))
        return path


@pytest.mark.parametrize("violation", ["changes", "does not lead", "touches", "cost", "clearance", "another way"])
def test_planner_check_finds_each_violation(violation: str) -> None:
    with pytest.raises(InputError) as caught:
        check_planner(BrokenPlanner(violation))
    assert violation in str(caught.value)
    with pytest.raises(NoPathError):
        check_planner(BrokenPlanner("gives up"))
