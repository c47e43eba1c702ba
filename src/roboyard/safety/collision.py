"""Collision monitor: no command brings the robot so near to something that it could not stop before.

Zones are those of Nav2's collision monitor.  What it adds: a command is judged together with the way that the base
needs to stop after it, and a command that leads away from things always passes, so that a robot gets out of every place
that it got into.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.safety.braking import BrakingConfig, least_clearances, steady_clearances
from roboyard.safety.zones import Action, Zone, outline

_HALVINGS = 8
"""Of the share of a command that passes: to 0.4 %."""
_SAME = 1e-9
"""Distances this near to each other are one [m]."""


@dataclass(frozen=True)
class MonitorConfig:
    """What the robot is, and how careful to be.

    Attributes:
        footprint: (n, 2) its outline in the base's frame [m].
        margin: What stays between it and everything else [m].
        braking: How it stops.
        zones: Further rules, all of which hold.

    Raises:
        ConfigError: a number out of range, an outline that is none, or two zones of one name.
    """

    footprint: NDArray[np.float64]
    margin: float = 0.05
    braking: BrakingConfig = field(default_factory=BrakingConfig)
    zones: tuple[Zone, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "footprint", outline(self.footprint, "footprint"))
        if not 0.0 <= self.margin <= 10.0:
            raise ConfigError(f"margin = {self.margin}", location="collision monitor", valid="0 to 10 m")
        names = [zone.name for zone in self.zones]
        if len(set(names)) != len(names):
            raise ConfigError(f"zones named {', '.join(names)}", location="collision monitor", valid="each name once")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a command.

    Attributes:
        twist: What the base may do.
        action: What was done to the command.
        zone: Because of which zone; ``footprint``: because the robot itself would come too near.
        share: Of the command's speed that is left.
        reason: In words; empty if it passed.
    """

    twist: PlanarTwist
    action: Action = Action.NONE
    zone: str = ""
    share: float = 1.0
    reason: str = ""


class CollisionMonitor:
    """Judges commands by what the sensors see.

    Args:
        config: What the robot is, and how careful to be.
    """

    def __init__(self, config: MonitorConfig) -> None:
        expect_kernels(least_clearances)
        self.config = config
        self._radius = float(np.hypot(*config.footprint.T).max())

    def judge(self, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]) -> Verdict:
        """What becomes of a command.

        Args:
            command: What somebody wants.
            twist: What the base does now.
            points: (n, 2) where something is, in the base's frame now [m].
        """
        verdict = Verdict(command)
        if not any(command):
            return verdict  # nothing is safer than braking
        for zone in self.config.zones:
            if zone.holds_for(command.vx, command.wz):
                verdict = _slower(verdict, self._in_zone(zone, command, twist, points))
        return _slower(verdict, self._approach(verdict.twist, command, twist, points))

    def _in_zone(self, zone: Zone, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]) -> Verdict:
        if zone.action is Action.APPROACH:
            return self._keep_time(zone, command, points)
        found = zone.inside(points)
        if not len(found):
            return Verdict(command)
        if self._leads_away(command, twist, found):
            return Verdict(command)
        if zone.action is Action.STOP:
            share = 0.0
        elif zone.action is Action.SLOWDOWN:
            share = zone.ratio
        else:
            share = min(
                1.0,
                zone.linear_limit / max(math.hypot(command.vx, command.vy), 1e-9),
                zone.angular_limit / max(abs(command.wz), 1e-9),
            )
        return _verdict(command, share, zone.action, zone.name, f"{len(found)} points in zone {zone.name}")

    def _leads_away(self, command: PlanarTwist, twist: PlanarTwist, found: NDArray[np.float64]) -> bool:
        """Whether, with the command, the outline comes no nearer to any of the points than braking takes it."""
        braking, outline_ = self.config.braking, self.config.footprint
        best = braking.clearances(outline_, found, twist, PlanarTwist(), math.inf)
        return bool((braking.clearances(outline_, found, twist, command, math.inf) >= best - _SAME).all())

    def _keep_time(self, zone: Zone, command: PlanarTwist, points: NDArray[np.float64]) -> Verdict:
        """Slow down so that the zone's outline touches the points no earlier than its time."""
        here = steady_clearances(zone.corners, points, PlanarTwist(), zone.time, 1e-6)

        def is_free(seconds: float) -> bool:
            part = PlanarTwist(*(speed * seconds / zone.time for speed in command))
            return bool((steady_clearances(zone.corners, points, part, zone.time, 1e-6) >= here - _SAME).all())

        if len(points) < zone.min_points or zone.time == 0.0 or is_free(zone.time):
            return Verdict(command)
        low, high = 0.0, zone.time
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_free(middle) else (low, middle)
        reason = f"{low:.2f} s from touching what zone {zone.name} sees"
        return _verdict(command, low / zone.time, Action.APPROACH, zone.name, reason)

    def _approach(
        self, wanted: PlanarTwist, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]
    ) -> Verdict:
        """The largest share of a command after which the base can still stop at the margin.

        To what braking at once takes it nearer than the margin, no command may take it nearer than that: so what leads
        away passes, and no point that is too near already hides another one.
        """
        braking, footprint, margin = self.config.braking, self.config.footprint, self.config.margin
        fastest = max(math.hypot(twist.vx, twist.vy), math.hypot(wanted.vx, wanted.vy))
        near = points[np.hypot(*points.T) <= self._radius + margin + braking.reach(fastest)]
        if not len(near):
            return Verdict(command)
        allowed = braking.clearances(footprint, near, twist, PlanarTwist(), margin) - _SAME

        def is_safe(share: float) -> bool:
            part = PlanarTwist(*(share * speed for speed in wanted))
            return bool((braking.clearances(footprint, near, twist, part, margin) >= allowed).all())

        if is_safe(1.0):
            return Verdict(command)
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_safe(middle) else (low, middle)
        action = Action.APPROACH if low else Action.STOP
        share = low * _share(wanted, command)
        return _verdict(command, share, action, "footprint", f"something would be nearer than {margin:g} m")


def _share(part: PlanarTwist, whole: PlanarTwist) -> float:
    return next((p / w for p, w in zip(part, whole, strict=True) if w), 1.0)


def _verdict(command: PlanarTwist, share: float, action: Action, zone: str, reason: str) -> Verdict:
    if share >= 1.0:
        return Verdict(command)
    twist = PlanarTwist(*(share * speed for speed in command))
    return Verdict(twist, action, zone, share, reason)


def _slower(first: Verdict, second: Verdict) -> Verdict:
    return second if second.share < first.share else first
