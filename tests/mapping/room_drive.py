"""A small world for tests of SLAM: rooms drawn in cells, a robot that drives through them, and what it sees."""

from __future__ import annotations

import math

import numpy as np

from roboyard.geometry import SE2
from roboyard.geometry.se2_arrays import compose
from roboyard.grids import GridGeometry, cast_rays
from roboyard.mapping import LaserScan, PoseTrajectory

GRID = GridGeometry(0.02, (600, 800))
"""16 by 12 m."""


def rooms() -> np.ndarray:
    """Two rooms with a door between them, pillars and a niche."""
    blocked = np.zeros(GRID.shape, dtype=bool)
    blocked[:20], blocked[-20:], blocked[:, :20], blocked[:, -20:] = True, True, True, True
    blocked[:240, 390:405], blocked[320:, 390:405] = True, True
    for row, column in ((150, 200), (420, 150), (430, 620), (180, 560)):
        blocked[row : row + 20, column : column + 25] = True
    blocked[450:, 700:], blocked[20:90, 300:330] = True, True
    return blocked


def make_path(n: int) -> np.ndarray:
    """Poses (n, 3): from one room into the other and back."""
    waypoints = [(2.5, 2.0), (6.0, 5.5), (10.0, 5.6), (13.0, 3.0), (14.0, 7.5)]
    corners = np.array([*waypoints, (9.5, 5.6), (6.0, 5.6), (2.0, 6.5)])
    legs = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    distances = np.concatenate([[0.0], np.cumsum(legs)])
    s = np.linspace(0.0, distances[-1], n)
    xy = np.column_stack([np.interp(s, distances, corners[:, 0]), np.interp(s, distances, corners[:, 1])])
    for _ in range(60):  # round the corners
        xy[1:-1] = 0.25 * xy[:-2] + 0.5 * xy[1:-1] + 0.25 * xy[2:]
    heading = np.arctan2(*np.gradient(xy, axis=0).T[::-1])
    return np.column_stack([xy, heading])


def drive(n: int = 150, *, seed: int = 0, noise: float = 0.01, drift: float = 0.03, odometry: bool = True,
          beams: int = 180) -> tuple[list[LaserScan], PoseTrajectory]:  # fmt: skip
    """Scans at 5 Hz with odometry that drifts, and the truth with the first pose as its origin."""
    rng, blocked, poses = np.random.default_rng(seed), rooms(), make_path(n)
    laser, times = SE2(0.2, 0.0, 0.0), np.arange(n) * 200_000_000
    angles = np.linspace(-0.75 * math.pi, 0.75 * math.pi, beams)
    odometry_pose, scans = np.zeros(3), []
    for k in range(n):
        if k:
            step = SE2(*poses[k - 1]).inverse() @ SE2(*poses[k])
            wrong = drift * rng.normal(size=3) * [abs(step.x), abs(step.x), 0.3 * abs(step.x) + abs(step.theta)]
            rotation = step.theta * (1.0 + drift) + wrong[2]  # it always turns a little less than it thinks
            odometry_pose = compose(odometry_pose, [step.x + wrong[0], step.y + wrong[1], rotation])
        T_world_laser = SE2(*poses[k]) @ laser
        rays = np.column_stack(
            [
                np.full(beams, T_world_laser.x) / 0.02,
                np.full(beams, T_world_laser.y) / 0.02,
                T_world_laser.theta + angles,
            ]
        )
        ranges = cast_rays(blocked, rays, 1000.0) * 0.02 + noise * rng.normal(size=beams)
        scans.append(
            LaserScan(
                int(times[k]), ranges.astype(np.float32), angles[0], float(angles[1] - angles[0]), 0.05, 12.0,
                T_base_laser=laser, odometry=SE2(*odometry_pose) if odometry else None,
            )
        )  # fmt: skip
    first = SE2(*poses[0]).inverse()
    return scans, PoseTrajectory(times, compose([first.x, first.y, first.theta], poses))
