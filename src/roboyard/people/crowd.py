"""Walking in a crowd: the social force model.

Each person accelerates towards a goal at a desired speed and is repelled by other people, most by those ahead, and by
obstacles (D. Helbing, P. Molnár, "Social force model for pedestrian dynamics", Physical Review E 51, 1995, with the
exponential forces of A. Johansson, D. Helbing, P. K. Shukla, Advances in Complex Systems 10, 2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.config import parameter
from roboyard.geometry.arrays import Array


class ForceParameters(NamedTuple):
    """The numbers of `CrowdSettings`, in the units given there, as the compiled model takes them."""

    desired_speed: float
    max_speed: float
    relaxation_time: float
    repulsion_acceleration: float
    repulsion_range: float
    person_radius: float
    rear_weight: float
    sideways_fraction: float


@dataclass(frozen=True)
class CrowdSettings:
    """Parameters of the social force model.

    Attributes:
        desired_speed: Speed without obstacles [m/s].
        max_speed: Maximum speed [m/s].
        relaxation_time: Time constant of the approach to the desired speed [s].
        repulsion_acceleration: Repulsion of people in contact [m/s²].
        repulsion_range: Distance over which the repulsion falls to a third [m].
        person_radius: Radius of a person, arms included [m].
        rear_weight: Fraction of the repulsion for people behind, 0 to 1.
        sideways_fraction: Fraction of the repulsion that acts to the right, so that people pass who meet head on.
    """

    desired_speed: float = parameter(1.2, unit="m/s", low=0.1, high=3.0, doc="speed without obstacles")
    max_speed: float = parameter(1.6, unit="m/s", low=0.1, high=4.0, doc="maximum speed")
    relaxation_time: float = parameter(
        0.5, unit="s", low=0.05, high=5.0, doc="time constant of the approach to the desired speed"
    )
    repulsion_acceleration: float = parameter(
        6.0, unit="m/s^2", low=0.0, high=100.0, doc="repulsion of people in contact"
    )
    repulsion_range: float = parameter(
        0.35, unit="m", low=0.05, high=3.0, doc="distance over which the repulsion falls to a third"
    )
    person_radius: float = parameter(0.27, unit="m", low=0.1, high=1.0, doc="radius of a person, arms included")
    rear_weight: float = parameter(0.2, low=0.0, high=1.0, doc="fraction of the repulsion for people behind")
    sideways_fraction: float = parameter(0.3, low=0.0, high=1.0, doc="fraction of the repulsion that acts to the right")

    @cached_property
    def force_parameters(self) -> ForceParameters:
        """The settings as an argument of the compiled model."""
        return ForceParameters(*(float(getattr(self, name)) for name in ForceParameters._fields))


def compute_crowd_velocities(
    positions: Array, velocities: Array, goals: Array, obstacles: Array, dt: float, settings: CrowdSettings
) -> Array:
    """Return (n, 2) velocities of the people after a step [m/s].

    Args:
        positions: (n, 2) of the people [m].
        velocities: (n, 2) of the people [m/s].
        goals: (n, 2) of the people [m]; they slow down there.
        obstacles: (k, 3) x, y and radius of other obstacles: robots and posts [m].
        dt: Step [s].
        settings: Parameters of the model.
    """
    return _compute_velocities(positions, velocities, goals, obstacles, dt, settings.force_parameters)


def _example_compute_velocities() -> Iterable[tuple[Any, ...]]:
    two = np.zeros((1, 2))
    yield (two, two, two, np.zeros((1, 3)), 0.02, CrowdSettings().force_parameters)


@kernel(examples=_example_compute_velocities, error_model="numpy")
def _compute_velocities(
    positions: Array, velocities: Array, goals: Array, obstacles: Array, dt: float, parameters: ForceParameters
) -> Array:
    desired_speed, max_speed, relaxation_time, repulsion_acceleration = parameters[:4]
    repulsion_range, person_radius, rear_weight, sideways_fraction = parameters[4:]
    n = len(positions)
    new_velocities = np.empty((n, 2))
    for i in range(n):
        x, y = goals[i, 0] - positions[i, 0], goals[i, 1] - positions[i, 1]
        goal_distance = math.sqrt(x * x + y * y)
        target_speed = min(desired_speed, goal_distance / relaxation_time)
        ex, ey = (x / goal_distance, y / goal_distance) if goal_distance > 1e-9 else (0.0, 0.0)
        ax, ay = (
            (target_speed * ex - velocities[i, 0]) / relaxation_time,
            (target_speed * ey - velocities[i, 1]) / relaxation_time,
        )
        for j in range(n + len(obstacles)):
            if j == i:
                continue
            other_radius = person_radius if j < n else obstacles[j - n, 2]
            dx = positions[i, 0] - (positions[j, 0] if j < n else obstacles[j - n, 0])
            dy = positions[i, 1] - (positions[j, 1] if j < n else obstacles[j - n, 1])
            distance = max(math.sqrt(dx * dx + dy * dy), 1e-6)
            dx, dy = dx / distance, dy / distance
            cosine = -(dx * ex + dy * ey)  # of the angle between the direction to the goal and the other
            weight = rear_weight + (1.0 - rear_weight) * 0.5 * (1.0 + cosine)
            repulsion = (
                repulsion_acceleration * weight * math.exp((person_radius + other_radius - distance) / repulsion_range)
            )
            sideways = sideways_fraction * max(cosine, 0.0)
            ax += repulsion * (dx + sideways * ey)
            ay += repulsion * (dy - sideways * ex)
        vx, vy = velocities[i, 0] + dt * ax, velocities[i, 1] + dt * ay
        speed = math.sqrt(vx * vx + vy * vy)
        scale = min(1.0, max_speed / speed) if speed > 0.0 else 1.0
        new_velocities[i, 0], new_velocities[i, 1] = scale * vx, scale * vy
    return new_velocities
