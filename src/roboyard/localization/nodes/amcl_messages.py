"""Messages of the amcl node: from scans, and to poses and clouds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3
from roboyard.localization.amcl import Amcl, AmclEstimate
from roboyard.localization.amcl.resampling import low_variance
from roboyard.localization.nodes.odometry import PLANAR
from roboyard.mapping import Scan
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.messages.time import to_nanoseconds

_LEVEL = math.cos(math.radians(10.0))


def scan_of(message: Any, laser: str, T_base_laser: SE3, T_odom_base: SE3) -> Scan:
    """A sensor_msgs/LaserScan as algorithms see it, with where the base was by its odometry.

    A laser that is mounted upside down turns the other way.

    Raises:
        InputError: the laser is tilted, or the message is no scan.
    """
    up = float(T_base_laser.rotation_matrix()[2, 2])
    if abs(up) < _LEVEL:
        raise InputError("a laser that does not lie level", location=laser, valid="tilted by less than 10 degrees")
    side = 1.0 if up > 0.0 else -1.0
    return Scan(
        to_nanoseconds(message.header.stamp),
        np.asarray(message.ranges, dtype=np.float32),
        side * float(message.angle_min),
        side * float(message.angle_increment),
        float(message.range_min),
        float(message.range_max),
        float(message.time_increment),
        SE2.from_se3(T_base_laser),
        SE2.from_se3(T_odom_base),
        laser,
    )


def pose_message(estimate: AmclEstimate, frame: str) -> Any:
    """geometry_msgs/PoseWithCovarianceStamped; z, roll and pitch are 0 and surely so, as Nav2 has it."""
    covariance = np.zeros(36)
    covariance[PLANAR] = estimate.covariance.reshape(9)
    pose = msg.PoseWithCovariance(pose=pose_to_msg(estimate.T_map_base), covariance=covariance)
    return msg.PoseWithCovarianceStamped(header=make_header(frame, estimate.time_ns), pose=pose)


def cloud_message(filter_: Amcl, frame: str, time_ns: int, limit: int) -> Any:
    """nav2_msgs/ParticleCloud of at most ``limit`` particles, drawn by their weights at equal distances."""
    particles, weights = filter_.particles, filter_.weights
    if len(particles) > limit:
        half = np.random.default_rng(time_ns)  # of its own: who looks on must not change what comes
        particles = particles[low_variance(weights, limit, half)]
        weights = np.full(limit, 1.0 / limit)
    shown = [
        msg.Particle(pose=pose_to_msg(SE2(*particle)), weight=weight)
        for particle, weight in zip(particles.tolist(), weights.tolist(), strict=True)
    ]
    return msg.ParticleCloud(header=make_header(frame, time_ns), particles=shown)
