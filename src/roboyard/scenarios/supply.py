"""Somebody who keeps an arm busy: takes things off from where it has put them, and lays them out anew."""

from __future__ import annotations

import math

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.scenarios.scatter import Sector, scatter
from roboyard.simulation import Simulation
from roboyard.simulation.carrying import free_base, put
from roboyard.simulation.truth import link_pose

_PERIOD = 0.5
_SLOW = 0.005
"""Of a thing that rests [m/s]."""


class SupplyNodeConfig(Config):
    """Configuration of `SupplyNode`."""

    things: tuple[str, ...] = parameter((), doc="Names of the things, or beginnings of names.")
    source: tuple[float, ...] = parameter(
        (), doc="Source: x, y, inner and outer radius [m], first and last angle [rad]."
    )
    target: tuple[float, ...] = parameter(
        (), doc="Target: x, y, inner and outer radius [m], first and last angle [rad]."
    )
    rest: float = parameter(
        4.0, unit="s", low=0.0, high=1e6, runtime=True, doc="Time in the source after which a thing is taken."
    )
    apart: float = parameter(
        0.06, unit="m", low=0.0, high=10.0, runtime=True, doc="Distance between the middles of things in the target."
    )
    robot: str = parameter("", doc="Robot whose hand must be away; empty: none.")
    hand: str = parameter("gripper_palm", doc="Link of its hand.")
    turn: float = parameter(
        math.pi, unit="rad", low=0.0, high=math.pi, doc="Largest turn in the target, to either side."
    )
    lift: float = parameter(0.0, unit="m", low=-10.0, high=10.0, doc="Height of the target above the source.")
    away: float = parameter(
        0.2, unit="m", low=0.0, high=10.0, runtime=True, doc="Horizontal distance of the hand from both places."
    )
    clear: float = parameter(
        0.3, unit="m", low=0.0, high=10.0, runtime=True, doc="Horizontal distance of people's joints from both places."
    )


class SupplyNode(Node[SupplyNodeConfig]):
    """Moves things from one sector to another, by a hand that nobody feels.

    What has rested in ``source`` for ``rest`` is put upright somewhere in ``target``, drawn by the run's seed, with
    room on all sides, as soon as the robot's hand is farther than ``away`` from both places, and nobody is within
    ``clear`` of them.
    """

    simulation: Simulation = resource(Simulation)

    state_fields = ("_since",)

    def setup(self) -> None:
        """Begin."""
        self._source, self._target = (self._sector(name) for name in ("source", "target"))
        self._names = movable(self.simulation, self.config.things, f"{self.full_name}, parameter 'things'")
        self._since: dict[str, float] = {}
        self.timer(period=_PERIOD, callback=self._tick)

    def _sector(self, name: str) -> Sector:
        given = getattr(self.config, name)
        if len(given) != 6 or not all(map(math.isfinite, given)) or given[2] > given[3] or given[4] > given[5]:
            where, valid = f"{self.full_name}, parameter {name!r}", "x, y, inner, outer radius, from, to"
            raise ConfigError(f"{list(given)}", location=where, valid=valid)
        return Sector((given[0], given[1]), (given[2], given[3]), (given[4], given[5]))

    def _tick(self) -> None:
        truths = {name: self.simulation.truth(name) for name in self._names if name in self.simulation.models}
        places = {name: (float(one.T_world_base.x), float(one.T_world_base.y)) for name, one in truths.items()}
        for name, truth in truths.items():
            rests = float(np.abs(truth.linear_velocity).max()) < _SLOW
            if not (rests and _inside(self._source, *places[name])):
                self._since.pop(name, None)
            elif self.now - self._since.setdefault(name, self.now) >= self.config.rest and self._move(name, places):
                self._since.pop(name)

    def _move(self, name: str, places: dict[str, tuple[float, float]]) -> bool:
        hand = self._hand()
        if (hand is not None and math.dist(hand, places[name]) < self.config.away) or self._peopled(places[name]):
            return False
        others = [place for other, place in places.items() if other != name]
        try:
            (pose,) = scatter(self.random, self._target, 1, self.config.apart, others, self.config.turn)
        except InputError:  # no room now
            return False
        if (hand is not None and math.dist(hand, (pose.x, pose.y)) < self.config.away) or self._peopled(
            (pose.x, pose.y)
        ):
            return False
        first, _ = free_base(self.simulation, name)
        height = float(self.simulation.data.qpos[first + 2]) + self.config.lift
        put(self.simulation, name, SE2(pose.x, pose.y, pose.theta).to_se3(max(height, 0.0) + 1e-4))
        places[name] = (pose.x, pose.y)
        self.log.info(f"{name} was laid out anew at {pose.x:.3f}, {pose.y:.3f}")
        return True

    def _peopled(self, place: tuple[float, float]) -> bool:
        """Whether somebody is at a place, with a hand above all."""
        flesh = self.simulation.flesh
        rows = [row for links in flesh.rows.values() for row in links.values()]
        return any(math.dist(place, (x, y)) < self.config.clear for x, y, _ in flesh.places[rows].tolist())

    def _hand(self) -> tuple[float, float] | None:
        if not self.config.robot or self.config.robot not in self.simulation.models:
            return None
        x, y, _ = link_pose(
            self.simulation.data, self.simulation.placement(self.config.robot).links[self.config.hand]
        ).translation
        return float(x), float(y)


def movable(simulation: Simulation, beginnings: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Names of things that are not static and begin with one of ``beginnings``.

    Raises:
        ConfigError: there are none; ``where`` is who asks.
    """
    models = simulation.models
    names = tuple(name for name in models if name.startswith(beginnings) and not models[name].model.static)
    if not beginnings or not names:
        raise ConfigError(
            f"nothing that can be moved is called {list(beginnings)}", location=where, valid=", ".join(models)
        )
    return names


def _inside(sector: Sector, x: float, y: float) -> bool:
    dx, dy = x - sector.about[0], y - sector.about[1]
    turn = (math.atan2(dy, dx) - sector.bearing[0]) % math.tau
    return sector.radius[0] <= math.hypot(dx, dy) <= sector.radius[1] and turn <= sector.bearing[1] - sector.bearing[0]
