"""A crowd on the bus: people who walk from place to place and keep out of each other's way."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.simulation.engine import Simulation
from roboyard.simulation.nodes.person import PersonNode
from roboyard.simulation.people.crowd import CrowdSettings, crowd_velocities
from roboyard.simulation.people.ways import Ways

THERE = 0.4
"""So near a place it counts as reached [m]."""


class CrowdNodeConfig(Config):
    """Configuration of `CrowdNode`."""

    crowd: CrowdSettings = parameter(factory=CrowdSettings)
    robot_radius: float = parameter(
        0.4, unit="m", low=0.0, high=5.0, doc="that people keep off robots' middles", runtime=True
    )
    rate: float = parameter(20.0, unit="Hz", low=2.0, high=200.0, doc="of decisions")


class CrowdNode(Node[CrowdNodeConfig]):
    """Steers people by the social force model: round their places, again and again, past each other, robots and walls.

    Who is steered is busy: goals for their actions are refused.
    """

    state_fields = ("_next", "_velocities")

    simulation: Simulation = resource(Simulation)
    people: tuple[PersonNode, ...] = resource(tuple)
    routes: tuple[tuple[tuple[float, float], ...], ...] = resource(tuple)
    ways: Ways = resource(Ways)

    def setup(self) -> None:
        """Begin."""
        self._next = [0] * len(self.people)
        self._velocities = [[0.0, 0.0] for _ in self.people]
        self.timer(rate=self.config.rate, callback=self._tick)

    def _tick(self) -> None:
        places = np.array([one.person.place[:2] for one in self.people])
        goals = np.empty_like(places)
        for k, route in enumerate(self.routes):
            if math.dist(places[k], route[self._next[k]]) < THERE:
                self._next[k] = (self._next[k] + 1) % len(route)
            goals[k] = route[self._next[k]]
        velocities = crowd_velocities(
            places, np.array(self._velocities), goals, self._others(places), 1.0 / self.config.rate, self.config.crowd
        )
        self._velocities = velocities.tolist()
        for one, (x, y) in zip(self.people, self._velocities, strict=True):
            one.person.steer((x, y))

    def _others(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """(k, 3) robots, and what each is nearest to."""
        found = []
        for name, handle in self.simulation.models.items():
            if handle.is_robot:
                x, y, _ = self.simulation.truth(name).pose.xyz
                found.append((float(x), float(y), self.config.robot_radius))
        for x, y in places.tolist():
            wall = self.ways.nearest((x, y))
            if wall is not None:
                found.append((*wall, 0.0))
        return np.array(found).reshape(-1, 3)
