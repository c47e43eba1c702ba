"""Localization over a whole log of laser scans, without a run: the estimates of AMCL, and the trajectory they give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.localization.amcl import Amcl, AmclConfig, AmclEstimate
from roboyard.mapping import LaserScan, PoseTrajectory, ScanLog, load_map, read_log

INITIAL_COVARIANCE = np.diag([0.25, 0.25, 0.068])
"""Covariance of an initial pose whose own is not stated, as RViz sends it: x, y [m²], heading [rad²]."""


@dataclass(frozen=True, slots=True)
class LocalizationResult:
    """Poses of the robot in a map during a log.

    Attributes:
        trajectory: ``T_map_base`` at each scan since the first estimate: the odometry, corrected by the latest one.
        estimates: Estimates of the particle filter at the scans that updated it.
        n_scans: Number of scans in the log.
    """

    trajectory: PoseTrajectory
    estimates: tuple[AmclEstimate, ...]
    n_scans: int


def localize(
    log: Path | str | ScanLog | Iterable[LaserScan],
    map: Path | str | OccupancyGrid,
    initial_pose: SE2 | Sequence[float] | None = None,
    *,
    initial_covariance: ArrayLike = INITIAL_COVARIANCE,
    config: AmclConfig | None = None,
    seed: int = 0,
) -> LocalizationResult:
    """Localize a robot in a map over a log, by adaptive Monte Carlo localization (AMCL).

    Args:
        log: File or folder of a recording (CARMEN log, MCAP file, ROS 1 or ROS 2 bag, folder of a run), a log that
            `read_log` has read, or scans with odometry in the order of their times.
        map: Occupancy map, or the YAML file of one as map_server writes it.
        initial_pose: ``T_map_base`` at the first scan: an `SE2` or (x, y, theta) [m, rad]; None: unknown, so that the
            filter searches the whole map.
        initial_covariance: (3, 3) covariance of the initial pose: x, y [m²], heading [rad²].
        config: Configuration of the particle filter.
        seed: Seed of all random numbers.

    Raises:
        RecordingError: The log cannot be read or holds no scan that can be used.
        InputError: The map cannot be read or has no occupied cell, the log has no odometry, or the initial pose or its
            covariance cannot be used.
    """
    if not isinstance(map, (str, Path, OccupancyGrid)):
        raise InputError(
            f"an object of type {type(map).__name__} is no map", location="map", valid="an OccupancyGrid or a YAML file"
        )
    grid = map if isinstance(map, OccupancyGrid) else load_map(map)
    amcl = Amcl(config, np.random.default_rng(seed))
    amcl.set_map(grid)
    if initial_pose is None:
        amcl.start_global_localization()
    else:
        amcl.set_initial_pose(_as_pose(initial_pose), initial_covariance)
    if isinstance(log, (str, Path)):
        log = read_log(log)
    elif not isinstance(log, ScanLog):
        log = ScanLog.from_scans(log)
    scans = [scan for scan in log if scan.odometry is not None]
    if not scans:
        raise InputError("there is no odometry", location=str(log.path), valid="scans with the pose of the base")
    estimates: list[AmclEstimate] = []
    times, poses = [], []
    for scan in scans:
        estimate = amcl.process(scan)
        if estimate is not None:
            estimates.append(estimate)
        if estimates and scan.odometry is not None:
            pose = estimates[-1].T_map_odom @ scan.odometry
            times.append(scan.time_ns)
            poses.append((pose.x, pose.y, pose.theta))
    trajectory = PoseTrajectory(np.array(times, dtype=np.int64), np.array(poses, dtype=np.float64).reshape(-1, 3))
    return LocalizationResult(trajectory, tuple(estimates), len(log))


def _as_pose(pose: SE2 | Sequence[float]) -> SE2:
    if isinstance(pose, SE2):
        return pose
    try:
        numbers = np.asarray(pose, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise InputError(f"{pose!r} is no pose", location="initial_pose", valid="SE2, or finite (x, y, theta) [m, rad]")
    return SE2(*numbers.tolist())
