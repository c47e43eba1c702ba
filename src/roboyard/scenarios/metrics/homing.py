"""How a robot came home when nobody was heard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value

_ACTIVE = (1, 2, 3)
"""Accepted, executing, canceling (action_msgs/GoalStatus)."""
_HEARD = ("connected", "recovering")
NEAR = 0.3
"""So near home the robot counts as returned [m]."""


class Homing(Collector):
    """What the tracker says of itself, beside the truth and what navigator and arbiter say.

    ``blackouts``: how often the link was lost, short relapses left out.  ``returned``: at the end of the last silence,
    or now while it lasts, the robot is through with its way home and truly within 0.3 m of where the operator had
    begun.  ``home_error`` [m]: how far it then is.  ``homecoming_seconds`` [s]:
    from the loss to the last point.  ``cancel_latency`` [s]: longest time from an operator's message, with which the
    arbiter gave him the drive or which was a heartbeat, to the end of the goal that was under way.
    ``points_skipped``: stored points that were not reached.
    """

    names = ("blackouts", "returned", "home_error", "homecoming_seconds", "cancel_latency", "points_skipped")

    def __init__(self, truth_topic: str, namespace: str = "") -> None:
        self._truth_topic, self._namespace = truth_topic, namespace
        self._at: tuple[float, float] | None = None
        self._home: tuple[float, float] | None = None
        self._link = self._phase = ""
        self._counts: tuple[int, int] | None = None
        self._lost_ns = 0
        self._taken = 0.0
        self._end: tuple[bool, float] | None = None
        self._goal = False
        self._called_ns: int | None = None
        self._latency: float | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """Truth, the tracker, and who drives."""
        own = f"{self._namespace}/"
        return {
            self._truth_topic: self._on_truth,
            f"{own}homing/status": self._on_status,
            f"{own}navigate_to_pose/_action/status": self._on_goals,
            f"{own}arbiter/owner": self._on_owner,
            f"{own}teleop/heartbeat": self._on_call,
            f"{own}joy": self._on_call,
        }

    def _on_truth(self, message: Any, time_ns: int) -> None:
        place = message.pose.pose.position
        self._at = place.x, place.y

    def _on_status(self, status: Any, time_ns: int) -> None:
        before, self._link = self._link, status.link
        if self._home is None and status.stored:
            self._home = self._at
        if status.link == "lost" and before == "connected":
            self._lost_ns = time_ns
        if status.phase == "home" and self._phase != "home":
            self._taken = (time_ns - self._lost_ns) * 1e-9
        if before == "lost" and status.link in _HEARD:
            self._end = self._now()
        self._phase, self._counts = status.phase, (status.outages, status.skipped)

    def _now(self) -> tuple[bool, float] | None:
        """Whether the robot is through with its way home, and how far from home it is [m]."""
        if self._home is None or self._at is None:
            return None
        return self._phase == "home", math.dist(self._home, self._at)

    def _on_owner(self, owner: Any, time_ns: int) -> None:
        if owner.data and not owner.data.endswith("/navigator"):
            self._on_call(owner, time_ns)

    def _on_call(self, _: Any, time_ns: int) -> None:
        if self._link == "lost" and self._goal and self._called_ns is None:
            self._called_ns = time_ns

    def _on_goals(self, status: Any, time_ns: int) -> None:
        self._goal = any(goal.status in _ACTIVE for goal in status.status_list)
        if not self._goal and self._called_ns is not None:
            self._latency = max(self._latency or 0.0, (time_ns - self._called_ns) * 1e-9)
            self._called_ns = None

    def finish(self, time_ns: int) -> None:
        """An operator who was not obeyed waited until the end [ns]."""
        if self._called_ns is not None:
            self._latency = max(self._latency or 0.0, (time_ns - self._called_ns) * 1e-9)

    def result(self) -> dict[str, Value]:
        """All None of a robot without a tracker."""
        if self._counts is None:
            return dict.fromkeys(self.names)
        through, error = (self._now() if self._link == "lost" else self._end) or (False, None)
        returned = None if error is None else through and error <= NEAR
        taken = self._taken if through else None
        return dict(
            zip(self.names, (self._counts[0], returned, error, taken, self._latency, self._counts[1]), strict=True)
        )
