"""Getting to a pose: plan, follow, look for better ways, recover, and say why when it cannot be done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.geometry import SE2
from roboyard.navigation.controllers import Controller
from roboyard.navigation.costmap import LETHAL, UNKNOWN, Costmap
from roboyard.navigation.driving.approach import Approach
from roboyard.navigation.driving.behaviors import Body, Spin, Straight, Wait
from roboyard.navigation.driving.config import NavigatorSettings
from roboyard.navigation.driving.following import FollowPath
from roboyard.navigation.driving.reach import nearest_reachable
from roboyard.navigation.driving.room import MakeRoom
from roboyard.navigation.driving.situation import Remembering, Situation, Task
from roboyard.navigation.driving.surroundings import Surroundings
from roboyard.navigation.driving.ways import cost_of, is_blocked, plan_through
from roboyard.navigation.errors import (
    GoalInvalid,
    GoalOccupied,
    GoalOutsideMap,
    GoalUnknown,
    NavigationError,
    NoPath,
    StartOccupied,
)
from roboyard.navigation.path import Path
from roboyard.navigation.planning import GlobalPlanner, Traversal, explain, extent, no_path, traversal_of

_CAME_ON = 1.0
"""So far from where it last recovered, the robot may try all recovery steps again [m]."""
_MOST_RECOVERIES = 30
"""Of one goal, whatever way was made between them."""
_DETOUR, _ROUGH = 1.2, 0.05
"""A way so much longer than the straight line [m/m, m] leads round something: the line is not driven."""


@dataclass(frozen=True)
class Driver:
    """What a robot navigates with.

    Attributes:
        planner: Finds ways.
        controller: Follows them.
        body: Of the robot.
        surroundings: Its costmaps.
        settings: All the rest.
    """

    planner: GlobalPlanner
    controller: Controller
    body: Body
    surroundings: Surroundings
    settings: NavigatorSettings

    @property
    def traversal(self) -> Traversal:
        """What its planner pays for a metre."""
        return traversal_of(self.planner)

    def check_goal(self, goal: SE2) -> None:
        """Refuse a goal that no way can lead to, whatever the sensors see.

        Raises:
            NavigationError: it is no pose, or lies outside of the map, in one of its obstacles, or where the map knows
                nothing and the planner must not go.
        """
        x, y = goal.x, goal.y
        if not all(map(math.isfinite, (x, y, goal.theta))):
            raise GoalInvalid("the goal is not finite", valid="numbers")
        surroundings = self.surroundings
        frame = surroundings.world.frame
        if not frame.contains(frame.cells_of_points(goal.xy)):
            raise GoalOutsideMap(f"the goal ({x:.2f}, {y:.2f}) lies outside of the map", valid=extent(frame))
        if not surroundings.has_map:
            return
        cost = surroundings.static_cost(goal, self.body.footprint.inscribed_radius)
        if cost == LETHAL:
            raise GoalOccupied(
                f"the goal ({x:.2f}, {y:.2f}) lies in an obstacle of the map, or too near to one", valid="a free place"
            )
        if cost == UNKNOWN and not self.traversal.allow_unknown:
            raise GoalUnknown(
                f"the goal ({x:.2f}, {y:.2f}) lies where nobody has looked", valid="a known place, or allow_unknown"
            )


class Navigate(Remembering):
    """Brings the robot to a pose, by way of others.

    Args:
        driver: What it navigates with.
        goals: In the map, in order; those before the last are passed by.
        approach: Whether the robot shall come as near as it can when the last goal cannot be reached.
    """

    remembered = ("replans", "recoveries", "passed", "goal", "_tried", "_recovered_at", "_planned", "_blocked_since")

    def __init__(self, driver: Driver, goals: Sequence[SE2], *, approach: bool = False) -> None:
        self._driver, self.goals, self._approach = driver, tuple(goals), approach
        self.goal = _plain(self.goals[-1])
        self.replans = self.recoveries = self.passed = 0
        self._tried = 0
        self._recovered_at: tuple[float, float] | None = None
        self._planned = -math.inf
        self._blocked_since: float | None = None
        self._following: FollowPath | None = None
        self._last: Approach | None = None
        self._recovery: tuple[str, Task] | None = None

    # -- how it goes ---------------------------------------------------------------------------------------------------
    @property
    def path(self) -> Path | None:
        """The way it follows."""
        return None if self._following is None else self._following.path

    @property
    def left(self) -> float:
        """What is left of the way [m]; infinite while there is none."""
        return math.inf if self._following is None else self._following.left

    @property
    def doing(self) -> str:
        """For people: "planning", "following", "approaching", or the recovery step."""
        if self._recovery is not None:
            return self._recovery[0]
        if self._last is not None:
            return "approaching"
        return "planning" if self._following is None else "following"

    # -- each step -----------------------------------------------------------------------------------------------------
    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``."""
        if self._recovery is not None:
            twist = self._go_on_recovering(now, self._recovery[1])
            if twist is not None:
                return twist
        try:
            self._pass(now.pose)
            if self._last is not None:
                return self._last.step(now)
            if self._following is None:
                self._following = self._follow(self._plan(now))
            else:
                self._look(now, self._following)
            if self._is_near(now.pose, self._following):
                self._last = self._approaching()
                return self._last.step(now)
            return self._following.step(now)
        except NavigationError as error:
            return self._recover(now, error)

    def _pass(self, pose: SE2) -> None:
        radius = self._driver.settings.pass_radius
        while self.passed < len(self.goals) - 1 and pose.distance(self.goals[self.passed]) <= radius:
            self.passed += 1

    def _follow(self, path: Path) -> FollowPath:
        settings = self._driver.settings
        return FollowPath(path, self._driver.controller, settings.tolerance, settings.patience, settings.stuck_time)

    def _is_near(self, pose: SE2, following: FollowPath) -> bool:
        """Whether what is left is driven straight: the base can, and the way leads round nothing."""
        away, last = pose.distance(SE2(*self.goal)), self.passed == len(self.goals) - 1
        near = away <= self._driver.settings.approach.distance and following.left <= _DETOUR * away + _ROUGH
        return last and near and self._driver.body.limits.sideways > 0.0

    def _approaching(self) -> Approach:
        settings = self._driver.settings
        return Approach(self._driver.body, SE2(*self.goal), settings.tolerance, settings.approach)

    def _plan(self, now: Situation, costmap: Costmap | None = None) -> Path:
        driver, settings = self._driver, self._driver.settings
        costs = driver.surroundings.world_costs() if costmap is None else costmap
        goals = list(self.goals[self.passed :])
        if self._approach:
            near = nearest_reachable(
                costs, now.pose, goals[-1], settings.escape, unknown=driver.traversal.allow_unknown
            )
            goals[-1] = near or goals[-1]
        self._planned = now.time
        path = plan_through(driver.planner, costs, now.pose, goals, settings.escape)
        self.goal = _plain(goals[-1])
        return path

    def _look(self, now: Situation, following: FollowPath) -> None:
        """Plan anew when something stands on the way, or from time to time for a better way."""
        settings = self._driver.settings
        blocked = is_blocked(now.local, following.ahead(settings.look_ahead))
        age = now.time - self._planned
        if age < settings.replan_period * (0.25 if blocked else 1.0):
            return
        costs = self._driver.surroundings.world_costs()
        rest = following.ahead(math.inf)
        blocked = blocked or is_blocked(costs, rest)
        try:
            path = self._plan(now, costs)
        except NavigationError:
            if not blocked:
                return  # the old way is as good as it was
            self._blocked_since = now.time if self._blocked_since is None else self._blocked_since
            if now.time - self._blocked_since >= settings.stuck_time:
                raise
            return
        self._blocked_since = None
        if blocked or cost_of(costs, path.poses) < settings.better * cost_of(costs, rest):
            following.take(path)
            self.replans += 1

    # -- recovery ------------------------------------------------------------------------------------------------------
    def _go_on_recovering(self, now: Situation, step: Task) -> PlanarTwist | None:
        try:
            twist = step.step(now)
        except NavigationError:  # a step that fails makes way for planning, and that for the next step
            twist = None
        if twist is None:
            self._recovery = None
        return twist

    def _recover(self, now: Situation, error: NavigationError) -> PlanarTwist:
        """Take the next recovery step, or give up.

        Raises:
            NavigationError: all were tried, or none would help.
        """
        self._following, self._last, self._blocked_since = None, None, None
        if self._is_final(error):
            raise error
        if self._recovered_at is not None and math.dist(self._recovered_at, (now.pose.x, now.pose.y)) > _CAME_ON:
            self._tried = 0
        recovery = self._driver.settings.recovery
        order = recovery.order
        if isinstance(error, StartOccupied):
            order = ("back_up", *order)
        if self._tried >= len(order) * recovery.rounds or self.recoveries >= _MOST_RECOVERIES:
            raise self._explained(now, error)
        name = order[self._tried % len(order)]
        self._tried += 1
        self.recoveries += 1
        self._recovered_at = (now.pose.x, now.pose.y)
        self._start_recovery(name, now)
        return STANDSTILL

    def _explained(self, now: Situation, error: NavigationError) -> NavigationError:
        """The error with what is in the way, who marked it, and how wide the robot needs it."""
        surroundings, radius = self._driver.surroundings, self._driver.body.footprint.inscribed_radius
        unknown = self._driver.traversal.allow_unknown
        goal = SE2(*self.goal)
        if isinstance(error, NoPath):
            return no_path(surroundings.world, now.pose, goal, radius, allow_unknown=unknown)
        if isinstance(error, GoalOccupied | StartOccupied):
            return type(error)(str(explain(surroundings.world, now.pose, goal, radius, allow_unknown=unknown)))
        return error

    def _is_final(self, error: NavigationError) -> bool:
        """Whether forgetting and looking again cannot help."""
        if isinstance(error, GoalOutsideMap | GoalUnknown):
            return True
        surroundings, radius = self._driver.surroundings, self._driver.body.footprint.inscribed_radius
        return isinstance(error, GoalOccupied) and surroundings.static_cost(SE2(*self.goal), radius) == LETHAL

    def _start_recovery(self, name: str, now: Situation) -> None:
        recovery, around = self._driver.settings.recovery, self._driver.body.footprint.circumscribed_radius
        areas = {
            "clear_outside": (recovery.reset_distance, False),
            "clear_around": (around, True),
            "clear_beyond": (around, False),
            "clear_all": (math.inf, True),
        }
        if name in areas:
            half, inside = areas[name]
            self._driver.surroundings.forget(now.T_odom_base, now.T_map_odom, half, inside=inside)
            return
        self._recovery = (name, self._make_recovery(name))

    def _make_recovery(self, name: str) -> Task:
        recovery, body = self._driver.settings.recovery, self._driver.body
        if name == "spin":
            return Spin(body, recovery.spin_angle, recovery.allowance, 0.5 * body.limits.turn)
        if name == "wait":
            return Wait(recovery.wait)
        if name == "make_room":
            return MakeRoom(body, recovery.back_up_speed, recovery.allowance)
        backward = body.limits.backward > 0.0
        distance = -recovery.back_up if backward else recovery.back_up
        return Straight(body, distance, recovery.back_up_speed, recovery.allowance)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """See ``Task``; the surroundings and the controller are saved by whoever owns them."""
        following, recovery = self._following, self._recovery
        return super().save_state() | {
            "following": None if following is None else following.save_state(),
            "last": None if self._last is None else self._last.save_state(),
            "recovery": None if recovery is None else (recovery[0], recovery[1].save_state()),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Task``."""
        super().load_state(saved)
        if saved["following"] is not None:
            self._following = self._follow(Path(saved["following"]["_poses"]))
            self._following.load_state(saved["following"])
        if saved["last"] is not None:
            self._last = self._approaching()
            self._last.load_state(saved["last"])
        if saved["recovery"] is not None:
            name, state = saved["recovery"]
            task = self._make_recovery(name)
            task.load_state(state)
            self._recovery = (name, task)


def _plain(pose: SE2) -> tuple[float, float, float]:
    return pose.x, pose.y, pose.theta
