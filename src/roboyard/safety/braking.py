"""How near a base comes to each of the things about it, if it takes a command and then brakes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.geometry.planar_kernels import signed_distance

_STEP = 0.02
"""Step of the simulated motion [s]."""
_AT_ONCE = np.full(4, 1e9)
"""Accelerations of a base without ramps."""


class BrakingConfig(Config):
    """What the base does with a command, as far as one may rely on it."""

    acceleration: float = parameter(
        1.5, unit="m/s²", low=1e-3, high=1e3, doc="Largest acceleration of the drive; the larger, the more careful."
    )
    deceleration: float = parameter(
        1.5,
        unit="m/s²",
        low=1e-3,
        high=1e3,
        doc="Deceleration that braking surely reaches; the smaller, the more careful.",
    )
    turn_acceleration: float = parameter(
        4.0, unit="rad/s²", low=1e-3, high=1e3, doc="Largest angular acceleration of the drive."
    )
    turn_deceleration: float = parameter(
        3.0, unit="rad/s²", low=1e-3, high=1e3, doc="Angular deceleration that braking surely reaches."
    )
    latency: float = parameter(
        0.12, unit="s", low=0.0, high=10.0,
        doc="Time from what the sensors see to the base's reaction, the monitor's own period included.",
    )  # fmt: skip

    def reach(self, speed: float) -> float:
        """How far the base may come before it stands [m], from a speed [m/s] that it may still raise."""
        fastest = abs(speed) + self.acceleration * self.latency
        return fastest * self.latency + 0.5 * fastest * fastest / self.deceleration

    def clearances(
        self,
        corners: NDArray[np.float64],
        points: NDArray[np.float64],
        twist: PlanarTwist,
        command: PlanarTwist,
        enough: float,
    ) -> NDArray[np.float64]:
        """Least distance of each point on the way to a standstill (m,) [m].

        Of points that the base would run into: minus the speed with which it would [m/s].  Of points inside the outline
        from the beginning: minus the largest distance to the border [m].

        For the latency the base goes on from its twist towards the command, then it brakes.

        Args:
            corners: (n, 2) of the base's outline [m].
            points: (m, 2) about it [m], as seen from where it is now.
            twist: What it does now.
            command: What it is to do.
            enough: Larger distances do not matter and are this [m].
        """
        limits = np.array(
            [self.acceleration, self.deceleration, self.turn_acceleration, self.turn_deceleration], dtype=np.float64
        )
        least = np.full(len(points), enough)
        least_clearances(corners, points, np.array([*twist, *command]), limits, self.latency, _STEP, least)
        return least


def steady_clearances(
    corners: NDArray[np.float64], points: NDArray[np.float64], twist: PlanarTwist, duration: float, enough: float
) -> NDArray[np.float64]:
    """Return the smallest distance of each point during a motion at a constant twist (m,) [m].

    Args:
        corners: (n, 2) of the base's outline [m].
        points: (m, 2) about it [m], as seen from where it is now.
        twist: Of the base.
        duration: Of the motion [s]; the base stands before and after it.
        enough: Larger distances do not matter and are this [m].
    """
    least = np.full(len(points), enough)
    least_clearances(corners, points, np.array([*twist, *twist]), _AT_ONCE, duration, _STEP, least)
    return least


@kernel(
    examples=lambda: [
        (np.eye(3)[:, :2].copy(), np.zeros((2, 2)), np.zeros(6), np.ones(4), 0.1, 0.02, np.ones(2)),
    ]
)
def least_clearances(
    corners: NDArray[np.float64],
    points: NDArray[np.float64],
    ways: NDArray[np.float64],
    limits: NDArray[np.float64],
    latency: float,
    step: float,
    least: NDArray[np.float64],
) -> None:
    """See ``BrakingConfig.clearances``.

    Args:
        corners: (n, 2) of the outline, anticlockwise [m].
        points: (m, 2) about it [m].
        ways: (6,) vx, vy, wz of the base, then of the command.
        limits: (4,) acceleration and deceleration along the ground, the same of turning.
        latency: [s].
        step: [s].
        least: (m,) result [m]; holds at first what larger distances are to be.
    """
    radius = 0.0
    for k in range(len(corners)):
        radius = max(radius, math.hypot(corners[k, 0], corners[k, 1]))
    v = ways[:3].copy()
    touched = np.zeros(len(points), dtype=np.bool_)
    outside = np.ones(len(points), dtype=np.bool_)
    x, y, theta, time = 0.0, 0.0, 0.0, 0.0
    for _ in range(100_000):
        c, s = math.cos(theta), math.sin(theta)
        for k in range(len(points)):
            dx, dy = points[k, 0] - x, points[k, 1] - y
            bound = max(radius + least[k], 0.0)
            if touched[k] or dx * dx + dy * dy >= bound * bound:
                continue
            distance = signed_distance(corners, c * dx + s * dy, c * dy - s * dx)
            if time == 0.0:
                outside[k] = distance >= 0.0
            elif distance < 0.0 and outside[k]:
                # how deep it would be says nothing any more: it may come out at the other side
                touched[k] = True
                distance = -math.hypot(v[0], v[1]) - radius * abs(v[2])
            least[k] = min(least[k], distance)
        moving = abs(v[0]) + abs(v[1]) + abs(v[2]) > 1e-9
        taking = time < latency - 1e-9
        if not taking and not moving:
            break
        dt = min(step, latency - time) if taking else step
        before = v.copy()
        for axis in range(3):
            goal = ways[3 + axis] if taking else 0.0
            up, down = (limits[2], limits[3]) if axis == 2 else (limits[0], limits[1])
            v[axis] = ramp(v[axis], goal, dt, up, down)
        vx, vy, wz = 0.5 * (v[0] + before[0]), 0.5 * (v[1] + before[1]), 0.5 * (v[2] + before[2])
        middle = theta + 0.5 * wz * dt
        x += (vx * math.cos(middle) - vy * math.sin(middle)) * dt
        y += (vx * math.sin(middle) + vy * math.cos(middle)) * dt
        theta += wz * dt
        time += dt


@kernel(examples=lambda: [(0.0, 1.0, 0.1, 1.0, 2.0)])
def ramp(speed: float, goal: float, dt: float, up: float, down: float) -> float:
    """A speed ``dt`` later on its way to a goal; it grows by at most ``up`` and shrinks by ``down`` a second."""
    if speed * goal < 0.0:
        stop = abs(speed) / down
        if stop >= dt:
            return speed - math.copysign(down * dt, speed)
        speed, dt = 0.0, dt - stop
    change = (up if abs(goal) > abs(speed) else down) * dt
    return goal if abs(goal - speed) <= change else speed + math.copysign(change, goal - speed)
