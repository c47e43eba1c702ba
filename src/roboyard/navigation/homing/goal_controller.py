"""Goal controller: sends one homing order after the other as a navigation goal, monitors it, and reports its outcome.

A goal that fails is sent again after a delay.  If an obstacle occupies it, the robot drives to an equivalent pose next
to it instead.  If there is none, or all attempts have failed, the robot drives once to the reachable pose nearest to
the target, if that is closer than its present pose, and the report states the remaining distance.  An order without a
target, or with another one, cancels the goal in the same call.
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
    """Purpose of the present goal."""

    NO_GOAL = "none"
    ORDERED_POINT = "point"
    SUBSTITUTE = "nearest"
    RETRY_PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class OrderReport:
    """Outcome of an order.

    Attributes:
        number: Number of the order.
        outcome: Outcome.
        distance: Distance of the robot from the target of the order [m].
        reason: Reason of the failure; "" if the target was reached.
    """

    number: int
    outcome: OrderOutcome
    distance: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SendGoalCommand:
    """Command to send a goal; ``token`` identifies the goal when it ends."""

    token: int
    pose: SE2


@dataclass(frozen=True, slots=True)
class CancelGoalCommand:
    """Command to cancel the goal ``token``."""

    token: int


@dataclass(frozen=True, slots=True)
class CancelGoalsBeforeCommand:
    """Command to cancel all goals that were accepted before a time [ns]: they belong to an earlier goal controller."""

    time_ns: int


@dataclass(frozen=True, slots=True)
class PublishReportCommand:
    """Command to publish a report to the homing tracker."""

    report: OrderReport


GoalControllerCommand = SendGoalCommand | CancelGoalCommand | CancelGoalsBeforeCommand | PublishReportCommand
FindSubstitute = Callable[[SE2], SE2 | None]
"""Function that returns the reachable pose nearest to a target; None if it is unknown."""


class GoalControllerConfig(Config):
    """Configuration of the goal controller."""

    max_attempts: int = parameter(2, low=1, high=100, doc="Maximum number of attempts to reach a target.")
    retry_delay: float = parameter(1.0, unit="s", low=0.01, high=600.0, doc="Time between two attempts.")
    stuck_timeout: float = parameter(
        60.0, unit="s", low=0.1, high=3600.0, doc="Time without motion after which a goal has failed."
    )
    min_improvement: float = parameter(
        0.2, unit="m", low=0.01, high=100.0,
        doc="Minimum improvement of the distance to the target for which the robot drives to a substitute pose.",
    )  # fmt: skip


_STANDSTILL_RADIUS = 0.2
"""Radius within which a robot has made no progress [m]."""


class GoalController:
    """State machine that executes orders.  Every method returns the commands to execute, in order.

    Args:
        config: Number of attempts and timeouts.
        find_substitute: Function that finds a pose to drive to instead of a target that cannot be reached.

    Attributes:
        order: Present or last order.
        goal_kind: Purpose of the present goal.
        reason: Reason of the last failure of a goal.
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
        """Token of the present goal; None without one."""
        return self._token if self.goal_kind in (GoalKind.ORDERED_POINT, GoalKind.SUBSTITUTE) else None

    def set_order(self, order: HomingOrder, now_ns: int) -> list[GoalControllerCommand]:
        """Process an order; one that is not newer than the present one is ignored."""
        if self.order is not None and order.number <= self.order.number:
            return []
        is_orphaned = self.order is None and order.returning
        self.order = order
        if order.target is None:
            return [CancelGoalsBeforeCommand(order.number)] if is_orphaned else self._cancel_goal()
        self._attempt = 1
        return self._send(order.target, GoalKind.ORDERED_POINT, now_ns)  # the navigator drops the previous goal

    def on_goal_finished(
        self, token: int, now_ns: int, *, succeeded: bool, reason: str = "", was_attempted: bool = True
    ) -> list[GoalControllerCommand]:
        """Process the end of a goal.

        Args:
            token: Token of the goal; the end of a goal that is not the present one is ignored.
            now_ns: Time [ns].
            succeeded: Whether the robot has reached the goal.
            reason: Reason of the failure.
            was_attempted: False if there was no navigator to accept the goal: this is no attempt, and the goal is sent
                again.
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
        """Process the time and the pose of the robot in the frame of the orders."""
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
            reason = f"no progress for {self.config.stuck_timeout:g} s"
            return [CancelGoalCommand(token), *self.on_goal_finished(token, now_ns, succeeded=False, reason=reason)]
        return []

    def on_costmap(self, now_ns: int) -> list[GoalControllerCommand]:
        """Process a new costmap: a goal that an obstacle occupies is replaced."""
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
        self.reason = "an obstacle occupies the goal"
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
        """Return the distance from the target of the order [m]."""
        target = self.order.target if self.order is not None else None
        return math.inf if pose is None or target is None else pose.distance(target)

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without the order, which its sender keeps."""
        poses = (self._pose, self._last_progress_pose, self._goal_pose)
        return {
            "goal": self.goal_kind.value,
            "reason": self.reason,
            "counts": (self._token, self._attempt),
            "times": (self._resume_ns, self._last_progress_ns),
            "places": tuple(None if pose is None else pose.to_tuple() for pose in poses),
        }

    def load_state(self, saved: dict[str, Any], order: HomingOrder | None) -> None:
        """Restore a state that `save_state` returned, with the order at that time."""
        self.order = order
        self.goal_kind, self.reason = GoalKind(saved["goal"]), saved["reason"]
        self._token, self._attempt = saved["counts"]
        self._resume_ns, self._last_progress_ns = saved["times"]
        self._pose, self._last_progress_pose, self._goal_pose = (
            None if pose is None else SE2.from_tuple(pose) for pose in saved["places"]
        )


@dataclass(frozen=True, slots=True)
class HomingOrder:
    """The target that the robot is to drive to on its own, or none.

    Attributes:
        number: Number of the order, larger than those of all earlier orders; at least the time of the order [ns], so
            that this holds across restarts too.
        target: Pose to drive to; None: the goal of an earlier order is to be canceled.
        is_home: Whether the target is home.
        returning: Without a target: whether the robot was returning, so that a goal may still be active.
    """

    number: int
    target: SE2 | None = None
    is_home: bool = False
    returning: bool = False
