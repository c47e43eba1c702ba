"""How well a robot on legs walked its plans of steps."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from roboyard.geometry import SE3
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.walking import Legged

_WELL = 0.02
"""A foot comes down well no farther from its place in the plan, seen from above [m]."""
_THERE = 0.05
"""A body that stands so near to its goal is there [m]."""


class Stepping(Collector):
    """By truth and joint states, of what the steps node tells.

    ``step_plans`` that were walked, of which ``step_replans`` took over while it walked; ``plan_cost`` [s] of the last;
    ``touchdowns``, and ``touchdown_share`` of them where the foot truly was no farther from its place in the plan than
    20 mm, seen from above; ``touchdown_error_p95`` and ``touchdown_error_max`` [m]; ``touchdowns_early`` and
    ``touchdowns_late``; ``footholds_lost`` where a foot found no ground; ``goal_distance`` [m] of the body's middle,
    seen from above; ``at_goal``: it stands no farther than 50 mm from it.
    """

    names = (
        "step_plans", "step_replans", "plan_cost", "touchdowns", "touchdown_share", "touchdown_error_p95",
        "touchdown_error_max", "touchdowns_early", "touchdowns_late", "footholds_lost", "goal_distance", "at_goal",
    )  # fmt: skip

    def __init__(self, truth_topic: str, namespace: str, legged: Legged | None) -> None:
        self._topic, self._namespace, self._legged = truth_topic, namespace, legged
        self._pose: tuple[tuple[float, ...], tuple[float, ...]] | None = None
        self._goal: tuple[float, float] | None = None
        self._plans = self._replans = 0
        self._cost: float | None = None
        self._waiting: list[tuple[int, float, float]] = []
        self._errors: list[float] = []
        self._how = {"planned": 0, "early": 0, "late": 0, "none": 0}
        self._stands = False

    def handlers(self) -> Mapping[str, Handler]:
        """Nothing, without legs."""
        if self._legged is None:
            return {}
        own = f"{self._namespace}/"
        return {
            self._topic: self._on_truth, f"{own}joint_states": self._on_joints, f"{own}steps/plan": self._on_plan,
            f"{own}steps/touchdown": self._on_touchdown, f"{own}gait/state": self._on_state,
        }  # fmt: skip

    def _on_truth(self, message: Any, time_ns: int) -> None:
        p, q = message.pose.pose.position, message.pose.pose.orientation
        self._pose = (q.w, q.x, q.y, q.z), (p.x, p.y, p.z)

    def _on_plan(self, message: Any, time_ns: int) -> None:
        self._plans += 1
        self._replans += message.reason in ("better", "ground")
        self._cost, self._goal = float(message.cost), (message.goal.x, message.goal.y)

    def _on_touchdown(self, message: Any, time_ns: int) -> None:
        legs = [] if self._legged is None else [leg.name for leg in self._legged.walker.legs]
        self._how[message.kind] = self._how.get(message.kind, 0) + 1
        if message.leg in legs and message.kind != "none":
            self._waiting.append((legs.index(message.leg), message.planned.x, message.planned.y))

    def _on_joints(self, message: Any, time_ns: int) -> None:
        if not self._waiting or self._legged is None or self._pose is None:
            return
        walker, names = self._legged.walker, list(message.name)
        q = np.array([message.position[names.index(joint)] for joint in walker.joints]).reshape(-1, 3)
        feet = walker.feet(q)
        for leg, x, y in self._waiting:
            place = SE3(*self._pose) @ feet[leg]
            self._errors.append(math.hypot(float(place[0]) - x, float(place[1]) - y))
        self._waiting.clear()

    def _on_state(self, state: Any, time_ns: int) -> None:
        twist = state.twist
        self._stands = bool(np.all(state.in_stance)) and not (twist.linear.x or twist.linear.y or twist.angular.z)

    def _away(self) -> float | None:
        if self._goal is None or self._pose is None:
            return None
        return math.hypot(self._pose[1][0] - self._goal[0], self._pose[1][1] - self._goal[1])

    def save_state(self) -> dict[str, Any]:
        """All it knows; legs are no data."""
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_legged"})

    def result(self) -> dict[str, Value]:
        """All None of a robot that walked no plan, but for ``at_goal`` and the counts."""
        errors, away = np.array(self._errors), self._away()
        some = len(errors) > 0
        return {
            "step_plans": self._plans,
            "step_replans": self._replans,
            "plan_cost": self._cost,
            "touchdowns": len(errors),
            "touchdown_share": float((errors <= _WELL).mean()) if some else None,
            "touchdown_error_p95": float(np.percentile(errors, 95)) if some else None,
            "touchdown_error_max": float(errors.max()) if some else None,
            "touchdowns_early": self._how["early"],
            "touchdowns_late": self._how["late"],
            "footholds_lost": self._how["none"],
            "goal_distance": away,
            "at_goal": away is not None and away < _THERE and self._stands and some,
        }
