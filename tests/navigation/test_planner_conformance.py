"""Every planner keeps the contract, and planners that break it are found out."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.navigation import Costmap, Footprint, GridSearch
from roboyard.navigation.errors import NoPath
from roboyard.navigation.path import Path
from roboyard.navigation.planning import check_planner
from roboyard.navigation.planning.choice import planner_named, planner_names

ROUND = Footprint.circle(0.15)


@pytest.mark.parametrize("name", ["astar", "dijkstra", "hybrid", "lattice", "navfn", "wave"])
def test_registered_planners_conform(name: str) -> None:
    assert name in planner_names()
    check_planner(planner_named(name, ROUND))


def test_unknown_planner_names_are_refused() -> None:
    with pytest.raises(UnknownNameError) as caught:
        planner_named("waves", ROUND)
    assert "wave" in str(caught.value)


@dataclass
class Broken:
    how: str

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        if self.how == "gives up":
            raise NoPath("never")
        path = GridSearch().plan(costmap, start, goal)
        if self.how == "changes":
            costmap.cells[0, 0] = 7
        if self.how == "does not lead":
            return replace(path, poses=path.poses[:-3])
        if self.how == "touches":
            return replace(path, poses=path.poses[[0, -1]])
        if self.how == "cost":
            return replace(path, cost=0.5 * path.length)
        if self.how == "clearance":
            return replace(path, clearance=0.0)
        if self.how == "another way":
            return replace(path, poses=np.repeat(path.poses, 1 + np.random.default_rng().integers(1, 1000), axis=0))
        return path


@pytest.mark.parametrize("how", ["changes", "does not lead", "touches", "cost", "clearance", "another way"])
def test_planner_check_finds_each_violation(how: str) -> None:
    with pytest.raises(InputError) as caught:
        check_planner(Broken(how))
    assert how in str(caught.value)
    with pytest.raises(NoPath):
        check_planner(Broken("gives up"))
