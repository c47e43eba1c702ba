"""Node that moves a crowd: people walk between waypoints and avoid each other, robots and walls."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.people.crowd import CrowdSettings, compute_crowd_velocities
from roboyard.simulation.nodes.person import PersonNode
from roboyard.simulation.simulation import Simulation
from roboyard.simulation.walking_map import SimulationWalkingMap

ARRIVAL_DISTANCE = 0.4
"""Distance at which a waypoint is reached [m]."""


class CrowdNodeConfig(Config):
    """Configuration of `CrowdNode`."""

    crowd: CrowdSettings = parameter(factory=CrowdSettings)
    robot_radius: float = parameter(
        0.4, unit="m", low=0.0, high=5.0, doc="distance that people keep from the centers of robots", runtime=True
    )
    rate: float = parameter(20.0, unit="Hz", low=2.0, high=200.0, doc="rate of the velocities")


class CrowdNode(Node[CrowdNodeConfig]):
    """Moves people by the social force model: repeatedly between waypoints, around each other, robots and walls.

    These people are busy: goals for their actions are rejected.
    """

    state_fields = ("_next_waypoints", "_velocities")

    simulation: Simulation = resource(Simulation)
    people: tuple[PersonNode, ...] = resource(tuple)
    waypoints: tuple[tuple[tuple[float, float], ...], ...] = resource(tuple)
    walking_map: SimulationWalkingMap = resource(SimulationWalkingMap)

    def setup(self) -> None:
        """Begin."""
        self._next_waypoints = [0] * len(self.people)
        self._velocities = [[0.0, 0.0] for _ in self.people]
        self.timer(rate=self.config.rate, callback=self._step)

    def _step(self) -> None:
        positions = np.array([node.person.pose[:2] for node in self.people])
        goals = np.empty_like(positions)
        for k, person_waypoints in enumerate(self.waypoints):
            if math.dist(positions[k], person_waypoints[self._next_waypoints[k]]) < ARRIVAL_DISTANCE:
                self._next_waypoints[k] = (self._next_waypoints[k] + 1) % len(person_waypoints)
            goals[k] = person_waypoints[self._next_waypoints[k]]
        velocities = compute_crowd_velocities(
            positions,
            np.array(self._velocities),
            goals,
            self._find_obstacles(positions),
            1.0 / self.config.rate,
            self.config.crowd,
        )
        self._velocities = velocities.tolist()
        for node, (x, y) in zip(self.people, self._velocities, strict=True):
            node.person.set_walking_velocity((x, y))

    def _find_obstacles(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """(k, 3) robots, and the nearest obstacle of each person."""
        obstacles = []
        for name, handle in self.simulation.models.items():
            if handle.is_robot:
                x, y, _ = self.simulation.ground_truth(name).pose.xyz
                obstacles.append((float(x), float(y), self.config.robot_radius))
        walking_map = self.walking_map.walking_map
        for x, y in positions.tolist():
            wall = walking_map.nearest_obstacle((x, y))
            if wall is not None:
                obstacles.append((*wall, 0.0))
        return np.array(obstacles).reshape(-1, 3)
