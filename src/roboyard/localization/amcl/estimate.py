"""The pose that the particles stand for: their best cluster, aligned to the map."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2, wrap_angle
from roboyard.localization.amcl.alignment import align
from roboyard.localization.amcl.clusters import Cluster
from roboyard.localization.amcl.sensing import Sensed, SensorModel
from roboyard.mapping import Scan

_FLOOR = np.diag([0.02**2, 0.02**2, math.radians(0.5) ** 2])
"""Least covariance of a cluster: few particles are never so sure."""
_GATE = 16.3
"""Chi-square of 3 degrees of freedom at 99.9 %: an alignment farther from its cluster went astray."""


@dataclass(frozen=True, slots=True)
class AmclEstimate:
    """Where the base is.

    Attributes:
        time_ns: Moment of the scan [ns].
        T_map_base: Pose.
        covariance: (3, 3) of x, y [m²], heading [rad²] in the map's axes.
        T_map_odom: What corrects the odometry.
        clusters: What the particles think, the heaviest first.
        explained: Share of the scan's hits that lie on a surface of the map.
        particles: How many there were.
        aligned: Whether the pose was aligned to the map.
    """

    time_ns: int
    T_map_base: SE2
    covariance: NDArray[np.float64]
    T_map_odom: SE2
    clusters: tuple[Cluster, ...]
    explained: float
    particles: int
    aligned: bool


def estimate(scan: Scan, found: list[Cluster], model: SensorModel, sensed: Sensed, particles: int) -> AmclEstimate:
    """The best cluster's pose; aligned, unless that is switched off or goes astray."""
    config, best = model.config, found[0]
    prior = np.asarray(np.linalg.inv(best.covariance + _FLOOR), dtype=np.float64)
    start = np.array([[best.pose.x, best.pose.y, best.pose.theta]])
    iterations = 12 if config.refine else 0
    points = sensed.some(config.refine_beams)
    ended = align(
        model.field, start, points, prior=prior[None], sigma=config.refine_sigma, reach=0.3, iterations=iterations
    )
    away = ended.poses[0] - start[0]
    away[2] = wrap_angle(away[2])
    aligned = config.refine and float(away @ prior @ away) < _GATE
    pose = SE2(*ended.poses[0]) if aligned else best.pose
    covariance = np.linalg.inv(ended.information[0]) if aligned else best.covariance
    odometry = SE2.identity() if scan.odometry is None else scan.odometry
    return AmclEstimate(
        scan.time_ns, pose, covariance, pose @ odometry.inverse(), tuple(found), float(ended.shares[0]), particles,
        aligned,
    )  # fmt: skip
