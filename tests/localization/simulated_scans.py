"""A room, scans of it, and a base that drives in circles through it with imperfect odometry."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from roboyard.control import DifferentialDrive
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid, simulate_scans
from roboyard.localization import FaultyEncoders, OdometryErrorModel, WheelOdometry
from roboyard.mapping import LaserScan

ANGLES = np.linspace(-math.pi / 2, math.pi / 2, 121)
MOUNT = SE2(0.1, 0.0, 0.0)
DRIVE = DifferentialDrive(wheel_radius=0.1, track=0.35)
ERRORS = OdometryErrorModel(
    radius_scale=1.01, diameter_ratio=1.004, track_scale=1.02, encoder_resolution=4096, slip_std=0.01
)


def make_room_map(origin: SE2 = SE2(-1.0, -2.0, 0.0)) -> OccupancyGrid:
    """A map of 8 × 6 m with a niche, a pillar and a cupboard; cells of 5 cm."""
    cells = np.zeros((120, 160), np.int8)
    cells[:3], cells[-3:], cells[:, :3], cells[:, -3:] = 100, 100, 100, 100
    cells[3:40, 100:104] = 100
    cells[70:80, 50:62] = 100
    cells[100:117, 20:30] = 100
    cells[60:66, 130:157] = 100
    cells[30:34, 3:20] = 100
    return OccupancyGrid(cells, GridGeometry(0.05, cells.shape, origin))


def scan_at(
    grid: OccupancyGrid, pose: SE2, time_ns: int = 0, odometry: SE2 | None = None, rng=None, **fields
) -> LaserScan:
    """What the laser of a base measures from a pose; ``fields`` replace those of the scan."""
    laser = pose @ MOUNT
    ranges = simulate_scans(grid.cells >= 65, grid.geometry, [laser.x, laser.y, laser.theta], ANGLES, 20.0)[0]
    # the map has the surface in the middle of a cell
    ranges = ranges + 0.5 * grid.geometry.resolution
    if rng is not None:
        ranges = ranges + rng.normal(0.0, 0.01, len(ranges))
    scan = {"ranges": ranges.astype(np.float32), "angle_min": float(ANGLES[0]),
            "angle_increment": float(ANGLES[1] - ANGLES[0]), "range_min": 0.1, "range_max": 20.0,
            "T_base_laser": MOUNT, "odometry": pose if odometry is None else odometry}  # fmt: skip
    return LaserScan(time_ns, **(scan | fields))


def circle_poses(start: SE2, steps: int) -> Iterator[SE2]:
    """Poses on a circle, 5 cm apart."""
    pose = start
    for _ in range(steps):
        yield pose
        pose = pose @ SE2.exp([0.05, 0.0, 0.05])


def drive(
    grid: OccupancyGrid, start: SE2, steps: int, seed: int, jump: SE2 | None = None
) -> Iterator[tuple[SE2, LaserScan]]:
    """True poses with scans of imperfect odometry; halfway the base may be moved to ``jump``."""
    rng = np.random.default_rng(seed)
    encoders, odometry = FaultyEncoders(DRIVE, ERRORS, rng), WheelOdometry(DRIVE)
    poses = list(circle_poses(start, steps))
    if jump is not None:
        poses[steps // 2 :] = circle_poses(jump, steps - steps // 2)
    for k, pose in enumerate(poses):
        if k and not (jump is not None and k == steps // 2):
            length, _, rotation = (poses[k - 1].inverse() @ pose).log().tolist()
            encoders.advance(length, rotation)
        odometry.update(k * 100_000_000, *encoders.read(k * 100_000_000))
        yield pose, scan_at(grid, pose, k * 100_000_000, odometry.T_odom_base, rng)
