"""Goal controller: sends one homing order after the other as a navigation goal, monitors it, and reports its outcome.

A goal that fails is sent again after a delay.  If an obstacle occupies it, the robot drives to an equivalent pose
next to
it instead; if there is none, or the goal fails finally, it drives once to the nearest reachable pose, if that is
nearer,
and the report gives the remaining distance.  An order without a target, or with another one, cancels the goal in the
same
call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from roboyard.config import Config, parameter
from roboyard.geometry import SE2


class OrderOutcome(Enum):
    """Outcome of an order."""

    REACHED = "reached"
    NEARBY = "nearby"
    SKIPPED = "skipped"


class GoalKind(Enum):
    """What the goal under way is for."""

    NO_GOAL = "none"
    ORDERED_POINT = "point"
    SUBSTITUTE = "nearest"
    RETRY_PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class OrderReport:
    """What became of the order ``number``: how far from its point the robot is [m], and why not nearer."""

    number: int
    outcome: OrderOutcome
    distance: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SendGoalCommand:
    """Send a goal; ``token`` identifies it when it ends."""

    token: int
    pose: SE2


@dataclass(frozen=True, slots=True)
class CancelGoalCommand:
    """Cancel the goal ``token``."""

    token: int


@dataclass(frozen=True, slots=True)
class CancelGoalsBeforeCommand:
    """Cancel whatever goals were taken on before a time [ns]: they are those of a controller that is no more."""

    time_ns: int


@dataclass(frozen=True, slots=True)
class PublishReportCommand:
    """Publish a report to the homing tracker."""

    report: OrderReport


GoalControllerCommand = SendGoalCommand | CancelGoalCommand | CancelGoalsBeforeCommand | PublishReportCommand
FindSubstitute = Callable[[SE2], SE2 | None]
"""Function that returns the reachable pose nearest to a point; None if unknown."""


class GoalControllerConfig(Config):
    """How persistently an order is carried out."""

    max_attempts: int = parameter(2, low=1, high=100, doc="Largest number of attempts to reach a point.")
    retry_delay: float = parameter(1.0, unit="s", low=0.01, high=600.0, doc="Time between two attempts.")
    stuck_timeout: float = parameter(
        60.0, unit="s", low=0.1, high=3600.0, doc="Time without motion after which a goal has failed."
    )
    min_improvement: float = parameter(
        0.2, unit="m", low=0.01, high=100.0,
        doc="Distance by which a place instead of the point must be nearer to it; within it a place is as good.",
    )  # fmt: skip


_STANDSTILL_RADIUS = 0.2
"""Within this a robot has not moved on [m]."""


class GoalController:
    """Carries out orders.  Pure: every call gives what is to be done, in this order.

    Args:
        config: Number of attempts, and timeouts.
        find_substitute: Asked where to go instead of a point that cannot be reached.

    Attributes:
        order: Under way, or the last one.
        goal_kind: What the goal under way is for.
        reason: Why the last goal failed.
    """

    def __init__(
        self, config: GoalControllerConfig | None = None, find_substitute: FindSubstitute | None = None
    ) -> None:
        self.config = config or GoalControllerConfig()
        self.order: HomingOrder | None = None
        self.goal_kind = GoalKind.NO_GOAL
        self.reason = ""
        self._find_substitute: FindSubstitute = find_substitute or (lambda _: None)
        self._token = 0
        self._goal_pose: SE2 | None = None
        self._attempt = 0
        self._resume_ns = 0
        self._pose: SE2 | None = None
        self._last_progress_pose: SE2 | None = None
        self._last_progress_ns = 0

    @property
    def token(self) -> int | None:
        """Of the goal under way; None if there is none."""
        return self._token if self.goal_kind in (GoalKind.ORDERED_POINT, GoalKind.SUBSTITUTE) else None

    def set_order(self, order: HomingOrder, now_ns: int) -> list[GoalControllerCommand]:
        """An order came; one that is no newer than the present one does nothing."""
        if self.order is not None and order.number <= self.order.number:
            return []
        is_orphaned = self.order is None and order.returning
        self.order = order
        if order.target is None:
            return [CancelGoalsBeforeCommand(order.number)] if is_orphaned else self._cancel_goal()
        self._attempt = 1
        return self._send(order.target, GoalKind.ORDERED_POINT, now_ns)  # the navigator lets the goal before it go

    def on_goal_finished(
        self, token: int, now_ns: int, *, succeeded: bool, reason: str = "", was_attempted: bool = True
    ) -> list[GoalControllerCommand]:
        """A goal ended.

        Args:
            token: Of the goal; the end of one that is not under way any more is passed over.
            now_ns: Time [ns].
            succeeded: Whether the robot is there.
            reason: Why not.
            was_attempted: False if no navigator accepted the goal, which is no attempt: it is sent again.
        """
        if token != self.token or self.order is None or self.order.target is None:
            return []
        if succeeded:
            return self._report(
                OrderOutcome.REACHED if self.goal_kind is GoalKind.ORDERED_POINT else OrderOutcome.NEARBY
            )
        if self.goal_kind is GoalKind.ORDERED_POINT or not was_attempted:
            self.reason = reason
        if not was_attempted or (self.goal_kind is GoalKind.ORDERED_POINT and self._attempt < self.config.max_attempts):
            self._attempt += was_attempted
            self.goal_kind, self._resume_ns = GoalKind.RETRY_PAUSE, now_ns + round(self.config.retry_delay * 1e9)
            return []
        if self.goal_kind is GoalKind.ORDERED_POINT:
            substitute = self._find_substitute(self.order.target)
            if substitute is not None and self._distance_from_target(
                substitute
            ) + self.config.min_improvement <= self._distance_from_target(self._pose):
                return self._send(substitute, GoalKind.SUBSTITUTE, now_ns)
        return self._report(OrderOutcome.NEARBY if self.goal_kind is GoalKind.SUBSTITUTE else OrderOutcome.SKIPPED)

    def set_pose(self, pose: SE2, now_ns: int) -> list[GoalControllerCommand]:
        """Time passes; the robot is at ``pose``, in the orders' frame."""
        self._pose = pose
        if (
            self.goal_kind is GoalKind.RETRY_PAUSE
            and now_ns >= self._resume_ns
            and self.order is not None
            and self.order.target
        ):
            return self._send(self.order.target, GoalKind.ORDERED_POINT, now_ns)
        token = self.token
        if token is None:
            return []
        if self._last_progress_pose is None or self._last_progress_pose.distance(pose) > _STANDSTILL_RADIUS:
            self._last_progress_pose, self._last_progress_ns = pose, now_ns
        elif now_ns - self._last_progress_ns >= round(self.config.stuck_timeout * 1e9):
            reason = f"no way made in {self.config.stuck_timeout:g} s"
            return [CancelGoalCommand(token), *self.on_goal_finished(token, now_ns, succeeded=False, reason=reason)]
        return []

    def on_costmap(self, now_ns: int) -> list[GoalControllerCommand]:
        """The surroundings are known anew: a place where something stands is not driven at any longer."""
        if (
            self.goal_kind is not GoalKind.ORDERED_POINT
            or self._goal_pose is None
            or self.order is None
            or self.order.target is None
        ):
            return []
        if self._find_substitute(self._goal_pose) in (self._goal_pose, None):
            return []
        substitute = self._find_substitute(self.order.target)
        if substitute is None:
            return []
        if self._distance_from_target(substitute) < self.config.min_improvement:
            return self._send(substitute, GoalKind.ORDERED_POINT, now_ns)
        self.reason = "something stands there"
        if self._distance_from_target(substitute) + self.config.min_improvement <= self._distance_from_target(
            self._pose
        ):
            return self._send(substitute, GoalKind.SUBSTITUTE, now_ns)
        return [CancelGoalCommand(self._token), *self._report(OrderOutcome.NEARBY)]

    def _send(self, pose: SE2, goal_kind: GoalKind, now_ns: int) -> list[GoalControllerCommand]:
        self._token += 1
        self.goal_kind, self._goal_pose = goal_kind, pose
        self._last_progress_pose, self._last_progress_ns = self._pose, now_ns
        return [SendGoalCommand(self._token, pose)]

    def _cancel_goal(self) -> list[GoalControllerCommand]:
        token, self.goal_kind = self.token, GoalKind.NO_GOAL
        return [] if token is None else [CancelGoalCommand(token)]

    def _report(self, outcome: OrderOutcome) -> list[GoalControllerCommand]:
        self.goal_kind = GoalKind.NO_GOAL
        number = self.order.number if self.order is not None else 0
        reason = "" if outcome is OrderOutcome.REACHED else self.reason
        return [PublishReportCommand(OrderReport(number, outcome, self._distance_from_target(self._pose), reason))]

    def _distance_from_target(self, pose: SE2 | None) -> float:
        """From the order's point [m]."""
        target = self.order.target if self.order is not None else None
        return math.inf if pose is None or target is None else pose.distance(target)

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data, without the order: whoever gave it holds it."""
        poses = (self._pose, self._last_progress_pose, self._goal_pose)
        return {
            "goal": self.goal_kind.value,
            "reason": self.reason,
            "counts": (self._token, self._attempt),
            "times": (self._resume_ns, self._last_progress_ns),
            "places": tuple(None if pose is None else (pose.x, pose.y, pose.theta) for pose in poses),
        }

    def load_state(self, saved: dict[str, Any], order: HomingOrder | None) -> None:
        """Take back what ``save`` gave, with the order that was under way."""
        self.order = order
        self.goal_kind, self.reason = GoalKind(saved["goal"]), saved["reason"]
        self._token, self._attempt = saved["counts"]
        self._resume_ns, self._last_progress_ns = saved["times"]
        self._pose, self._last_progress_pose, self._goal_pose = (
            None if pose is None else SE2(*pose) for pose in saved["places"]
        )


@dataclass(frozen=True, slots=True)
class HomingOrder:
    """What shall be done now.

    Attributes:
        number: Larger than that of every order before; never smaller than the time it was given at [ns], so that this
            holds across restarts too.
        target: Where to go; None: nowhere, and whatever was ordered before is to be cancelled.
        is_home: The target is home itself.
        returning: For no target: the robot was on its way, and a goal may still be under way.
    """

    number: int
    target: SE2 | None = None
    is_home: bool = False
    returning: bool = False
