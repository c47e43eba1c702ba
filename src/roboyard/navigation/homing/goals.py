"""The goal controller: makes one order after the other a goal of the navigator, watches it, and says what became of it.

A goal that fails is tried again after a pause.  If something is seen to stand where it lies, a place next to it that is
as good is driven to in its stead; if there is none, or it fails for good, the robot goes to the nearest place it can
reach, once, if that brings it nearer, and says how near it came.
An order that names nothing, or something else, cancels the goal in the same call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from roboyard.config import Config, parameter
from roboyard.geometry import SE2

if TYPE_CHECKING:
    from roboyard.navigation.homing.tracker import Order


class Outcome(Enum):
    """What became of an order."""

    REACHED = "reached"
    NEARBY = "nearby"
    SKIPPED = "skipped"


class Goal(Enum):
    """What the goal under way is for."""

    NONE = "none"
    POINT = "point"
    NEAREST = "nearest"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the order ``number``: how far from its point the robot is [m], and why not nearer."""

    number: int
    outcome: Outcome
    distance: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a goal; its end is told with ``token``."""

    token: int
    pose: SE2


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel the goal ``token``."""

    token: int


@dataclass(frozen=True, slots=True)
class CancelBefore:
    """Cancel whatever goals were taken on before a time [ns]: they are those of a controller that is no more."""

    time_ns: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the tracker."""

    report: Report


Act = Send | Cancel | CancelBefore | Tell
Nearest = Callable[[SE2], SE2 | None]
"""The reachable place nearest to a point, None if nobody knows."""


class GoalConfig(Config):
    """How persistently an order is carried out."""

    attempts: int = parameter(2, low=1, high=100, doc="Largest number of attempts to reach a point.")
    pause: float = parameter(1.0, unit="s", low=0.01, high=600.0, doc="Time between two attempts.")
    patience: float = parameter(
        60.0, unit="s", low=0.1, high=3600.0, doc="Time without motion after which a goal has failed."
    )
    gain: float = parameter(
        0.2, unit="m", low=0.01, high=100.0,
        doc="Distance by which a place instead of the point must be nearer to it; within it a place is as good.",
    )  # fmt: skip


_STILL = 0.2
"""Within this a robot has not moved on [m]."""


class GoalController:
    """Carries out orders.  Pure: every call gives what is to be done, in this order.

    Args:
        config: How stubbornly.
        nearest: Asked where to go instead of a point that cannot be reached.

    Attributes:
        order: Under way, or the last one.
        goal: What the goal under way is for.
        reason: Why the last goal failed.
    """

    def __init__(self, config: GoalConfig | None = None, nearest: Nearest | None = None) -> None:
        self.config = config or GoalConfig()
        self.order: Order | None = None
        self.goal = Goal.NONE
        self.reason = ""
        self._nearest: Nearest = nearest or (lambda _: None)
        self._token = 0
        self._aim: SE2 | None = None
        self._attempt = 0
        self._resume_ns = 0
        self._pose: SE2 | None = None
        self._anchor: SE2 | None = None
        self._anchor_ns = 0

    @property
    def token(self) -> int | None:
        """Of the goal under way; None if there is none."""
        return self._token if self.goal in (Goal.POINT, Goal.NEAREST) else None

    def take(self, order: Order, now_ns: int) -> list[Act]:
        """An order came; one that is no newer than the present one does nothing."""
        if self.order is not None and order.number <= self.order.number:
            return []
        orphaned = self.order is None and order.returning
        self.order = order
        if order.target is None:
            return [CancelBefore(order.number)] if orphaned else self._drop()
        self._attempt = 1
        return self._send(order.target, Goal.POINT, now_ns)  # the navigator lets the goal before it go

    def ended(self, token: int, now_ns: int, *, succeeded: bool, reason: str = "", tried: bool = True) -> list[Act]:
        """A goal ended.

        Args:
            token: Of the goal; the end of one that is not under way any more is passed over.
            now_ns: Time [ns].
            succeeded: Whether the robot is there.
            reason: Why not.
            tried: False if nobody took the goal on, which is no attempt: it is sent again.
        """
        if token != self.token or self.order is None or self.order.target is None:
            return []
        if succeeded:
            return self._tell(Outcome.REACHED if self.goal is Goal.POINT else Outcome.NEARBY)
        if self.goal is Goal.POINT or not tried:
            self.reason = reason
        if not tried or (self.goal is Goal.POINT and self._attempt < self.config.attempts):
            self._attempt += tried
            self.goal, self._resume_ns = Goal.PAUSE, now_ns + round(self.config.pause * 1e9)
            return []
        if self.goal is Goal.POINT:
            place = self._nearest(self.order.target)
            if place is not None and self._distance(place) + self.config.gain <= self._distance(self._pose):
                return self._send(place, Goal.NEAREST, now_ns)
        return self._tell(Outcome.NEARBY if self.goal is Goal.NEAREST else Outcome.SKIPPED)

    def at(self, pose: SE2, now_ns: int) -> list[Act]:
        """Time passes; the robot is at ``pose``, in the orders' frame."""
        self._pose = pose
        if self.goal is Goal.PAUSE and now_ns >= self._resume_ns and self.order is not None and self.order.target:
            return self._send(self.order.target, Goal.POINT, now_ns)
        token = self.token
        if token is None:
            return []
        if self._anchor is None or self._anchor.distance(pose) > _STILL:
            self._anchor, self._anchor_ns = pose, now_ns
        elif now_ns - self._anchor_ns >= round(self.config.patience * 1e9):
            reason = f"no way made in {self.config.patience:g} s"
            return [Cancel(token), *self.ended(token, now_ns, succeeded=False, reason=reason)]
        return []

    def look(self, now_ns: int) -> list[Act]:
        """The surroundings are known anew: a place where something stands is not driven at any longer."""
        if self.goal is not Goal.POINT or self._aim is None or self.order is None or self.order.target is None:
            return []
        if self._nearest(self._aim) in (self._aim, None):
            return []
        place = self._nearest(self.order.target)
        if place is None:
            return []
        if self._distance(place) < self.config.gain:
            return self._send(place, Goal.POINT, now_ns)
        self.reason = "something stands there"
        if self._distance(place) + self.config.gain <= self._distance(self._pose):
            return self._send(place, Goal.NEAREST, now_ns)
        return [Cancel(self._token), *self._tell(Outcome.NEARBY)]

    def _send(self, pose: SE2, goal: Goal, now_ns: int) -> list[Act]:
        self._token += 1
        self.goal, self._aim = goal, pose
        self._anchor, self._anchor_ns = self._pose, now_ns
        return [Send(self._token, pose)]

    def _drop(self) -> list[Act]:
        token, self.goal = self.token, Goal.NONE
        return [] if token is None else [Cancel(token)]

    def _tell(self, outcome: Outcome) -> list[Act]:
        self.goal = Goal.NONE
        number = self.order.number if self.order is not None else 0
        reason = "" if outcome is Outcome.REACHED else self.reason
        return [Tell(Report(number, outcome, self._distance(self._pose), reason))]

    def _distance(self, place: SE2 | None) -> float:
        """From the order's point [m]."""
        target = self.order.target if self.order is not None else None
        return math.inf if place is None or target is None else place.distance(target)

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data, without the order: whoever gave it holds it."""
        places = (self._pose, self._anchor, self._aim)
        return {
            "goal": self.goal.value,
            "reason": self.reason,
            "counts": (self._token, self._attempt),
            "times": (self._resume_ns, self._anchor_ns),
            "places": tuple(None if place is None else (place.x, place.y, place.theta) for place in places),
        }

    def load_state(self, saved: dict[str, Any], order: Order | None) -> None:
        """Take back what ``save`` gave, with the order that was under way."""
        self.order = order
        self.goal, self.reason = Goal(saved["goal"]), saved["reason"]
        self._token, self._attempt = saved["counts"]
        self._resume_ns, self._anchor_ns = saved["times"]
        self._pose, self._anchor, self._aim = (None if place is None else SE2(*place) for place in saved["places"])
