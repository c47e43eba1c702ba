"""A simulated robot with a laser, for tests of mapping: rooms of straight walls, and odometry that may lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.mapping import LaserScan

PERIOD_NS = 200_000_000


def box(x0: float, y0: float, x1: float, y1: float) -> list[tuple[float, float, float, float]]:
    return [(x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)]


def rooms() -> NDArray[np.float64]:
    """Walls (n, 4) of a ring of corridors with niches around a block, 14 m by 10 m."""
    walls = box(0.0, 0.0, 14.0, 10.0) + box(3.0, 3.0, 11.0, 7.0)
    walls += box(4.0, 0.0, 4.6, 0.5) + box(8.5, 0.0, 8.9, 0.9) + box(13.4, 3.0, 14.0, 3.7) + box(13.2, 6.2, 14.0, 6.5)
    walls += box(9.0, 9.3, 10.2, 10.0) + box(5.0, 9.6, 5.5, 10.0) + box(0.0, 4.0, 0.4, 5.1) + box(0.0, 7.5, 0.9, 7.8)
    return np.array(walls)


def simulate_ranges(
    pose: SE2, walls: NDArray[np.float64], angles: NDArray[np.float64], max_range: float
) -> NDArray[np.float64]:
    """Exact distances to walls."""
    directions = np.column_stack([np.cos(angles + pose.theta), np.sin(angles + pose.theta)])
    a, b = walls[:, :2] - pose.xy, walls[:, 2:] - walls[:, :2]
    cross = directions[:, None, 0] * b[None, :, 1] - directions[:, None, 1] * b[None, :, 0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        distance_along = (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])[None, :] / cross
        fraction = (a[None, :, 0] * directions[:, None, 1] - a[None, :, 1] * directions[:, None, 0]) / cross
    hit = (distance_along > 0.0) & (fraction >= 0.0) & (fraction <= 1.0)
    found = np.where(hit, distance_along, np.inf).min(axis=1)
    return np.asarray(np.where(found < max_range, found, np.inf))


def drive(laps: float = 1.2, speed: float = 0.6) -> list[SE2]:
    """Poses along the ring, five a second."""
    corners = [(1.5, 1.5), (12.3, 1.7), (12.4, 8.4), (1.6, 8.6)]
    length = int(laps * 4)
    waypoints = [corners[k % 4] for k in range(length + 1)]
    poses = [SE2(*waypoints[0], 0.0)]
    for x, y in waypoints[1:]:
        last_pose = poses[-1]
        heading = math.atan2(y - last_pose.y, x - last_pose.x)
        rotation = SE2(0.0, 0.0, heading).theta - last_pose.theta
        rotation = (rotation + math.pi) % (2.0 * math.pi) - math.pi
        steps = max(1, round(abs(rotation) / 0.16))
        poses += [SE2(last_pose.x, last_pose.y, last_pose.theta + rotation * k / steps) for k in range(1, steps + 1)]
        steps = max(1, round(math.hypot(x - last_pose.x, y - last_pose.y) / (speed * 0.2)))
        poses += [SE2(last_pose.x + (x - last_pose.x) * k / steps, last_pose.y + (y - last_pose.y) * k / steps, heading)
                  for k in range(1, steps + 1)]  # fmt: skip
    return poses


OdometryChange = Callable[[int, SE2], SE2]


def simulate_scans(
    poses: list[SE2],
    *,
    change_odometry: OdometryChange | None = None,
    beams: int = 181,
    field: float = math.pi,
    noise: float = 0.01,
    seed: int = 1,
    max_range: float = 12.0,
    odometry: bool = True,
) -> Iterator[LaserScan]:
    """Scans of a drive; ``change_odometry`` changes odometry's steps, ``T_last_base`` by number."""
    rng, walls = np.random.default_rng(seed), rooms()
    angles = np.linspace(-field / 2, field / 2, beams)
    odometry_pose = SE2()
    for k, pose in enumerate(poses):
        if k:
            step = poses[k - 1].inverse() @ pose
            step = step @ SE2(*(rng.normal(0.0, 1.0, 3) * [0.004, 0.002, 0.004]))
            odometry_pose = odometry_pose @ (change_odometry(k, step) if change_odometry else step)
        ranges = simulate_ranges(pose, walls, angles, max_range) + rng.normal(0.0, noise, beams)
        yield LaserScan(
            k * PERIOD_NS, ranges.astype(np.float32), float(angles[0]), float(angles[1] - angles[0]), 0.05, max_range,
            odometry=odometry_pose if odometry else None,
        )  # fmt: skip
