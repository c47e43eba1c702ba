"""Somebody at the beginning of a belt: lays things on it, one after the other, and takes them off where belts end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.description.model import Box
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.scenarios.supply import movable
from roboyard.simulation import Simulation
from roboyard.simulation.carrying import put
from roboyard.simulation.furniture import FILENAME, furniture_of

_RATE = 10.0
_NEAR = 0.01
"""What is lower or higher than a belt's surface by more is not on it [m]."""


@dataclass(frozen=True)
class Lane:
    """The surface of a belt.

    Attributes:
        T_world_lane: Its middle, x the way that it carries.
        length: Along x [m].
        width: Along y [m].
    """

    T_world_lane: SE3
    length: float
    width: float

    def along(self, point: np.ndarray) -> float | None:
        """How far a place (3,) is from the belt's beginning [m]; None: it is not on the belt."""
        x, y, z = (self.T_world_lane.inverse() @ point).tolist()
        on = abs(x) <= 0.5 * self.length and abs(y) <= 0.5 * self.width and abs(z) <= _NEAR
        return x + 0.5 * self.length if on else None


def lanes_of(simulation: Simulation) -> dict[str, Lane]:
    """Surfaces of all straight belts, by the names of their models: boxes that carry along one of their edges."""
    found = {}
    for name, handle in simulation.models.items():
        kinds = [plugin for plugin in handle.model.plugins if plugin.filename == FILENAME]
        furniture = furniture_of(handle.model) if kinds else None
        if furniture is None or furniture.kind != "conveyor":
            continue
        link = next(one for one in handle.model.links if one.name == furniture.part)
        box = next((one for one in link.collisions if isinstance(one.geometry, Box)), None)
        if box is None or not isinstance(box.geometry, Box) or abs(abs(furniture.direction[0]) - 1.0) > 1e-6:
            continue
        length, width, height = box.geometry.size
        top = SE3.from_xyz_rpy((0.0, 0.0, 0.5 * height), (0.0, 0.0, 0.0 if furniture.direction[0] > 0.0 else math.pi))
        T_world = simulation.truth(name).T_world_base
        found[name] = Lane(T_world @ link.T_model_link @ box.T_link_geom @ top, length, width)
    return found


class FeederNodeConfig(Config):
    """Configuration of `FeederNode`."""

    belt: str = parameter("", doc="Name of the belt in the world.")
    things: tuple[str, ...] = parameter((), doc="Names of the things, or beginnings of names.")
    gap: tuple[float, ...] = parameter((0.1, 0.2), unit="m", doc="Smallest and largest distance between their middles.")
    aside: float = parameter(
        0.0, unit="m", low=0.0, high=1.0, doc="Largest distance from the belt's middle, to either side."
    )
    turn: float = parameter(math.pi, unit="rad", low=0.0, high=math.pi, doc="Largest turn, to either side.")
    yaw: float = parameter(0.0, unit="rad", low=-math.pi, high=math.pi, doc="Heading about which they are turned.")
    begin: float = parameter(
        0.05,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Distance from the belt's beginning at which things are laid.",
    )
    end: float = parameter(
        0.05,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Distance from the belt's end at which things are taken off.",
    )
    robot: str = parameter("", doc="Robot to which things are left; empty: none.")
    away: float = parameter(
        0.5,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Distance from its base beyond which things are not its own.",
    )


class FeederNode(Node[FeederNodeConfig]):
    """Keeps a belt supplied, by a hand that nobody feels.

    The thing that waits longest is laid upright on the beginning of ``belt`` as soon as what was laid there before has
    gone as far as a gap that is drawn by the run's seed.  What waits: things on no belt, farther than ``away`` from
    the robot.  What comes to the last ``end`` of any belt is brought back to where it was at first.
    """

    simulation: Simulation = resource(Simulation)

    state_fields = ("_last", "_gap", "_queue")

    def setup(self) -> None:
        """Begin."""
        self._lanes = lanes_of(self.simulation)
        if self.config.belt not in self._lanes:
            where, known = f"{self.full_name}, parameter 'belt'", ", ".join(self._lanes) or "none: add one to furniture"
            raise ConfigError(f"{self.config.belt!r} is no belt of this run", location=where, valid=known)
        self._names = movable(self.simulation, self.config.things, f"{self.full_name}, parameter 'things'")
        if len(self.config.gap) != 2 or not 0.0 < self.config.gap[0] <= self.config.gap[1] < math.inf:
            where = f"{self.full_name}, parameter 'gap'"
            raise ConfigError(f"{list(self.config.gap)}", location=where, valid="least and greatest, above 0")
        self._homes = {name: self.simulation.truth(name).T_world_base for name in self._names}
        self._last, self._gap = "", 0.0
        self._queue = list(self._names)
        self.timer(rate=_RATE, callback=self._tick)

    def _tick(self) -> None:
        for name in self._names:
            if self._ends(name):
                put(self.simulation, name, self._homes[name])
        there = {name: np.array(self.simulation.truth(name).T_world_base.translation) for name in self._names}
        waiting = [name for name in self._names if self._waits(there[name])]
        self._queue = [name for name in self._queue if name in waiting]
        self._queue += [name for name in waiting if name not in self._queue]
        gone = self._lanes[self.config.belt].along(there[self._last]) if self._last else None
        if self._queue and (gone is None or gone >= self.config.begin + self._gap):
            self._lay(self._queue.pop(0))

    def _ends(self, name: str) -> bool:
        point = np.array(self.simulation.truth(name).T_world_base.translation)
        return any(
            gone is not None and gone >= lane.length - self.config.end
            for lane in self._lanes.values() for gone in [lane.along(point)]
        )  # fmt: skip

    def _waits(self, point: np.ndarray) -> bool:
        if any(lane.along(point) is not None for lane in self._lanes.values()):
            return False
        if not self.config.robot:
            return True
        base = self.simulation.truth(self.config.robot).T_world_base.translation
        return math.dist(point[:2], base[:2]) >= self.config.away

    def _lay(self, name: str) -> None:
        lane = self._lanes[self.config.belt]
        aside, turn = (
            self.random.uniform(-self.config.aside, self.config.aside),
            self.random.uniform(-self.config.turn, self.config.turn),
        )
        self._gap = float(self.random.uniform(self.config.gap[0], self.config.gap[1]))
        place = SE3.from_xyz_rpy(
            (self.config.begin - 0.5 * lane.length, aside, 1e-4), (0.0, 0.0, self.config.yaw + turn)
        )
        put(self.simulation, name, lane.T_world_lane @ place)
        self._last = name
        self.log.info(f"{name} was laid on {self.config.belt}")
