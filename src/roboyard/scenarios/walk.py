"""Somebody who walks to and fro among robots."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.hardware.interface import VelocityBase
from roboyard.messages import msg
from roboyard.scenarios.planar import planar

_PERIOD = 0.05
_HASTE = 1.5
"""How fast a walker speeds up and stops [m/s²]."""
_NEAR = 0.02
"""A place is reached within this [m]."""


class WalkNodeConfig(Config):
    """Configuration of `WalkNode`."""

    route: tuple[float, ...] = parameter((), doc="Two or more places x, y in the world [m]; empty: the person stands.")
    speed: float = parameter(0.8, unit="m/s", low=0.05, high=3.0, runtime=True, doc="Mean speed.")
    rest: float = parameter(1.5, unit="s", low=0.0, high=1e3, runtime=True, doc="Longest time at each place.")
    spread: float = parameter(
        0.3, low=0.0, high=0.9, runtime=True, doc="Largest share by which the speed differs from leg to leg."
    )
    room: float = parameter(
        0.9, unit="m", low=0.0, high=10.0, runtime=True, doc="Distance between middles to those whom the person heeds."
    )
    patience: float = parameter(
        3.0, unit="s", low=0.1, high=1e4, runtime=True, doc="Time after which the person turns back."
    )
    heeds: tuple[str, ...] = parameter(
        ("/truth/rover/odom",), doc="Topics of the true poses of those into whom the person does not walk."
    )


class WalkNode(Node[WalkNodeConfig]):
    """Walks along a route, to its end and back, and gives way.

    in: its own truth, and that of whom it heeds   out: velocities to its base

    Of each leg speed and rest differ, by the run's seed.  It stops where it would come nearer than ``room`` to somebody
    whom it heeds, and turns back if the way stays blocked for ``patience``: so it never walks into one that stands.  It
    does not step aside, nor out of the way of one that runs into it.
    """

    base: VelocityBase = resource(VelocityBase)
    truth_topic: str = resource(str)

    state_fields = ("_place", "_others", "_next", "_step", "_pace", "_until", "_waited", "_now")

    def setup(self) -> None:
        """Connect, and rest first."""
        if (
            len(self.config.route) in (1, 2)
            or len(self.config.route) % 2
            or not all(map(math.isfinite, self.config.route))
        ):
            where = f"{self.full_name}, parameter 'route'"
            raise ConfigError(
                f"{len(self.config.route)} numbers",
                location=where,
                valid="x, y of two or more places, or none: it stands",
            )
        self._place: tuple[float, float, float] | None = None
        self._others: dict[str, tuple[float, float]] = {}
        self._next, self._step = 1, 1
        self._waited = self._now = 0.0
        self._set_out()
        self.subscribe(self.truth_topic, msg.Odometry, self._on_truth)
        for topic in self.config.heeds:
            self.subscribe(topic, msg.Odometry, partial(self._on_other, topic))
        self.timer(period=_PERIOD, callback=self._tick)

    def close(self) -> None:
        """Stand."""
        self.base.release()

    def _on_truth(self, message: Any) -> None:
        pose = planar(message.pose.pose)
        self._place = (pose.x, pose.y, pose.theta)

    def _on_other(self, topic: str, message: Any) -> None:
        pose = planar(message.pose.pose)
        self._others[topic] = (pose.x, pose.y)

    def _set_out(self) -> None:
        self._until = self.now + float(self.random.uniform(0.0, self.config.rest))
        self._pace = self.config.speed * float(self.random.uniform(1.0 - self.config.spread, 1.0 + self.config.spread))

    def _turn(self) -> None:
        """To the place after this one; at an end of the route back."""
        last = len(self.config.route) // 2 - 1
        if not 0 <= self._next + self._step <= last:
            self._step = -self._step
        self._next += self._step
        self._set_out()

    def _tick(self) -> None:
        if self._place is None or not self.config.route:
            return
        x, y, heading = self._place
        dx, dy = self.config.route[2 * self._next] - x, self.config.route[2 * self._next + 1] - y
        way = math.hypot(dx, dy)
        if way < _NEAR:
            self._turn()
            self._now = 0.0
            self.base.set_velocity((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
            return
        wanted = 0.0
        if self.now >= self._until:
            if self._is_free(x, y, dx / way, dy / way):
                wanted, self._waited = min(self._pace, math.sqrt(_HASTE * way)), 0.0
            else:
                self._waited += _PERIOD
                if self._waited > self.config.patience:
                    self._waited, self._step = 0.0, -self._step
                    self._turn()
        change = _HASTE * _PERIOD
        self._now = min(max(wanted, self._now - change), self._now + change)
        turn = math.atan2(dy, dx) - heading
        self.base.set_velocity((self._now * math.cos(turn), self._now * math.sin(turn), 0.0), (0.0, 0.0, 0.0))

    def _is_free(self, x: float, y: float, ux: float, uy: float) -> bool:
        """Whether going on in a direction brings it too near to nobody, the way that it needs to stop included."""
        reach = self.config.room + self._now * self._now / (2.0 * _HASTE)
        for ox, oy in self._others.values():
            ax, ay = ox - x, oy - y
            if math.hypot(ax, ay) < reach and ax * ux + ay * uy > 0.0:
                return False
        return True
