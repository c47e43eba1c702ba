"""How people walk among people: the social force model.

Everybody wants to walk towards a goal at a speed of their own, and is pushed away from others, the more the nearer they
are ahead, and from walls (D. Helbing, P. Molnár, "Social force model for pedestrian dynamics", Physical Review E 51,
1995, with the exponential forces of A. Johansson, D. Helbing, P. K. Shukla, Advances in Complex Systems 10, 2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.config import parameter
from roboyard.geometry.arrays import Array


@dataclass(frozen=True)
class CrowdSettings:
    """How people keep out of each other's way.

    Attributes:
        speed: That they like to walk at [m/s].
        fastest: That they walk at when pushed [m/s].
        relaxation: In which they come back to it [s].
        strength: Of the force between people who touch, by mass [m/s²].
        reach: Over which it falls to a third [m].
        radius: Of somebody, arms included [m].
        behind: How much of it those feel who are behind, 0 to 1.
        aside: Share of it that pushes to the right, so that people who meet head on know which way to go.
    """

    speed: float = parameter(1.2, unit="m/s", low=0.1, high=3.0, doc="that they like to walk at")
    fastest: float = parameter(1.6, unit="m/s", low=0.1, high=4.0, doc="that they walk at when pushed")
    relaxation: float = parameter(0.5, unit="s", low=0.05, high=5.0, doc="in which they come back to it")
    strength: float = parameter(6.0, unit="m/s^2", low=0.0, high=100.0, doc="of the force between people who touch")
    reach: float = parameter(0.35, unit="m", low=0.05, high=3.0, doc="over which it falls to a third")
    radius: float = parameter(0.27, unit="m", low=0.1, high=1.0, doc="of somebody, arms included")
    behind: float = parameter(0.2, low=0.0, high=1.0, doc="how much of it those feel who are behind")
    aside: float = parameter(0.3, low=0.0, high=1.0, doc="share of it that pushes to the right")


def crowd_velocities(
    places: Array, velocities: Array, goals: Array, others: Array, dt: float, settings: CrowdSettings
) -> Array:
    """(n, 2) velocities of everybody after a step [m/s].

    Args:
        places: (n, 2) where they are [m].
        velocities: (n, 2) how they walk [m/s].
        goals: (n, 2) where they want to go [m]; they slow down there.
        others: (k, 3) x, y and radius of what else is in the way, robots and posts [m].
        dt: Step [s].
        settings: Of the crowd.
    """
    s = settings
    return _step(
        places, velocities, goals, others, dt, s.speed, s.fastest, s.relaxation, s.strength, s.reach, s.radius,
        s.behind, s.aside,
    )  # fmt: skip


def _example() -> Iterable[tuple[Any, ...]]:
    two = np.zeros((1, 2))
    yield (two, two, two, np.zeros((1, 3)), 0.02, 1.2, 1.6, 0.5, 6.0, 0.35, 0.27, 0.2, 0.3)


@kernel(examples=_example, error_model="numpy")
def _step(
    places: Array, velocities: Array, goals: Array, others: Array, dt: float, speed: float, fastest: float,
    relaxation: float, strength: float, reach: float, radius: float, behind: float, aside: float,
) -> Array:  # fmt: skip
    n = len(places)
    out = np.empty((n, 2))
    for i in range(n):
        x, y = goals[i, 0] - places[i, 0], goals[i, 1] - places[i, 1]
        left = math.sqrt(x * x + y * y)
        wanted = min(speed, left / relaxation)
        ex, ey = (x / left, y / left) if left > 1e-9 else (0.0, 0.0)
        ax, ay = (wanted * ex - velocities[i, 0]) / relaxation, (wanted * ey - velocities[i, 1]) / relaxation
        for j in range(n + len(others)):
            if j == i:
                continue
            other = radius if j < n else others[j - n, 2]
            dx = places[i, 0] - (places[j, 0] if j < n else others[j - n, 0])
            dy = places[i, 1] - (places[j, 1] if j < n else others[j - n, 1])
            far = max(math.sqrt(dx * dx + dy * dy), 1e-6)
            dx, dy = dx / far, dy / far
            ahead = -(dx * ex + dy * ey)  # the cosine of the angle under which it is seen
            heed = behind + (1.0 - behind) * 0.5 * (1.0 + ahead)
            push = strength * heed * math.exp((radius + other - far) / reach)
            turn = aside * max(ahead, 0.0)
            ax += push * (dx + turn * ey)
            ay += push * (dy - turn * ex)
        vx, vy = velocities[i, 0] + dt * ax, velocities[i, 1] + dt * ay
        pace = math.sqrt(vx * vx + vy * vy)
        scale = min(1.0, fastest / pace) if pace > 0.0 else 1.0
        out[i, 0], out[i, 1] = scale * vx, scale * vy
    return out
