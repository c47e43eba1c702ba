"""The operator's hand: turns a script's actions into twists, open loop, by odometry or by sight.  Pure: no bus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from roboyard.geometry import SE2, wrap_angle
from roboyard.scenarios.script import Action, Follow, Hold, Wander
from roboyard.scenarios.wander import Sight, Wanderer

TURN_FIRST = math.radians(60.0)
"""Heading error beyond which the pilot turns on the spot before it drives on."""
BLIND_AFTER = 2.0
"""Time without any scan after which a wandering operator drives without looking [s]."""
_SLOWING = 1.0
"""Speed per distance left to the last point [1/s]."""


@dataclass(frozen=True, slots=True)
class Output:
    """What the operator does now: a twist (v, w), nothing (None), and whether the script is over."""

    twist: tuple[float, float] | None
    over: bool = False


class Pilot:
    """Walks through the actions of a script.

    Args:
        actions: What to do.
        radius: Of the robot [m], for wandering.

    Attributes:
        index: Action under way.
        since: When it began [s]; None before the first update.
        leg: Of a ``Follow``, the point driven to.
    """

    def __init__(self, actions: tuple[Action, ...], radius: float = 0.3) -> None:
        self.actions = actions
        self.radius = radius
        self.wanderer = Wanderer()
        self.index = 0
        self.since: float | None = None
        self.leg = 0
        self._start: tuple[float, float] | None = None

    def update(self, time: float, pose: SE2 | None, sight: Sight | None = None) -> Output:
        """What to send at ``time`` [s], given pose by odometry and newest scan (None while there is none)."""
        if self.since is None:
            self.since = time
        while self.index < len(self.actions):
            action = self.actions[self.index]
            if isinstance(action, Follow):
                if time - self.since < action.timeout:
                    twist = self._follow(action, pose)
                    if twist is not None:
                        return Output(twist)
                self._next(time)
            elif time - self.since < action.seconds - 1e-9:
                return Output(action.twist if isinstance(action, Hold) else self._wander(action, time, sight))
            else:
                self._next(self.since + action.seconds)  # the script's own time: no drift from the sending rate
        return Output((0.0, 0.0), over=True)

    def _next(self, time: float) -> None:
        self.index, self.since, self.leg, self._start = self.index + 1, time, 0, None

    def blind(self, time: float, sight: Sight | None) -> bool:
        """Whether it wanders at ``time`` [s] without having seen anything for long enough to think the robot blind."""
        wandering = self.index < len(self.actions) and isinstance(self.actions[self.index], Wander)
        return wandering and sight is None and self.since is not None and time - self.since > BLIND_AFTER

    def _wander(self, action: Wander, time: float, sight: Sight | None) -> tuple[float, float]:
        speed = min(action.speed, 2.0 * self.radius)
        if self.blind(time, sight):
            # Round a circle beside the place that it was put at: nothing tells where there is more room.
            circle = self.radius + action.margin
            turn = min(action.turn, 0.5 * speed / circle)
            return turn * circle, turn
        return self.wanderer.update(time, sight, self.radius + action.margin, speed, action.turn)

    def _follow(self, action: Follow, pose: SE2 | None) -> tuple[float, float] | None:
        """Drive the arc to the point ``lookahead`` ahead on the line; None when the last point is reached.

        Pure pursuit: curvature 2 sin(error) / distance (R. C. Coulter, CMU-RI-TR-92-01).
        """
        if pose is None:
            return 0.0, 0.0
        if self._start is None:
            self._start = (pose.x, pose.y)
        points = (self._start, *action.points)
        while self.leg < len(action.points):
            a, b = points[self.leg], points[self.leg + 1]
            along, left = _project(a, b, (pose.x, pose.y))
            last = self.leg == len(action.points) - 1
            reach = action.tolerance if last else action.lookahead
            if math.hypot(b[0] - pose.x, b[1] - pose.y) > reach and not (left <= 0.0 and not last):
                break
            self.leg += 1
        else:
            return None
        aim = _ahead(points, self.leg, along, action.lookahead)
        error = wrap_angle(math.atan2(aim[1] - pose.y, aim[0] - pose.x) - pose.theta)
        if abs(error) > TURN_FIRST:
            return 0.0, math.copysign(action.turn, error)
        speed = min(
            action.speed, max(0.1 * action.speed, _SLOWING * _left(points, self.leg, along, action.speed / _SLOWING))
        )
        reach = max(math.hypot(aim[0] - pose.x, aim[1] - pose.y), 0.1)
        turn = 2.0 * speed * math.sin(error) / reach
        if abs(turn) > action.turn:
            speed, turn = speed * action.turn / abs(turn), math.copysign(action.turn, turn)
        return speed, turn

    def save_state(self) -> dict[str, Any]:
        """The state as plain data."""
        return {"index": self.index, "since": self.since, "leg": self.leg, "start": self._start,
                "turning": self.wanderer.turning}  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.index, self.since, self.leg = state["index"], state["since"], state["leg"]
        self.wanderer.turning = state["turning"]
        self._start = None if state["start"] is None else tuple(state["start"])


def _project(a: tuple[float, float], b: tuple[float, float], p: tuple[float, float]) -> tuple[float, float]:
    """Distance of p's projection from a along a→b, and what is left of the leg [m]."""
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    if length == 0.0:
        return 0.0, 0.0
    along = ((p[0] - a[0]) * (b[0] - a[0]) + (p[1] - a[1]) * (b[1] - a[1])) / length
    return max(along, 0.0), length - along


def _left(points: tuple[tuple[float, float], ...], leg: int, along: float, enough: float) -> float:
    """Way left along the polyline, or anything above ``enough``."""
    way = -along
    for index in range(leg, len(points) - 1):
        a, b = points[index], points[index + 1]
        way += math.hypot(b[0] - a[0], b[1] - a[1])
        if way > enough:
            break
    return way


def _ahead(points: tuple[tuple[float, float], ...], leg: int, along: float, distance: float) -> tuple[float, float]:
    """The point ``distance`` further along the polyline."""
    wanted = along + distance
    for a, b in zip(points[leg:], points[leg + 1 :], strict=False):
        length = math.hypot(b[0] - a[0], b[1] - a[1])
        if wanted <= length:
            s = wanted / length if length else 0.0
            return a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1])
        wanted -= length
    return points[-1]
