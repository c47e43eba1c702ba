"""A smooth way to a pose, heading included, for a base that cannot drive sideways.

The law of J. Park and B. Kuipers, "A smooth control law for graceful motion of differential wheeled mobile robots in 2D
environment", ICRA 2011: seen from the robot, the target lies at distance r; the line of sight makes the angle θ with
the target's heading and δ with the robot's.  Steering δ towards atan(-k1 θ) lets θ vanish with r, so that the robot
comes in along the target's own line.
"""

from __future__ import annotations

import math

from roboyard.geometry import SE2, wrap_angle


def lines_of_sight(pose: SE2, target: SE2) -> tuple[float, float, float]:
    """Distance r [m] and the angles θ and δ [rad] of target and robot against the line of sight."""
    sight = math.atan2(target.y - pose.y, target.x - pose.x)
    return pose.distance(target), wrap_angle(target.theta - sight), wrap_angle(pose.theta - sight)


def heading_error(theta: float, delta: float, k1: float) -> float:
    """By how much the robot looks off the heading that the law wants of it [rad]."""
    return wrap_angle(delta - math.atan(-k1 * theta))


def curvature(r: float, theta: float, delta: float, k1: float, k2: float) -> float:
    """Curvature to drive [1/m], equation 14 of the paper.

    Args:
        r: Distance of the target [m], more than 0.
        theta: Its heading against the line of sight [rad].
        delta: The robot's heading against it [rad].
        k1: How much faster θ vanishes than r.
        k2: How fast the robot turns to the wanted heading.
    """
    error = heading_error(theta, delta, k1)
    return -(k2 * error + (1.0 + k1 / (1.0 + (k1 * theta) ** 2)) * math.sin(delta)) / r


def turned_about(pose: SE2) -> SE2:
    """The same place, looking the other way: a robot that backs drives as if its tail were its nose."""
    return SE2(pose.x, pose.y, wrap_angle(pose.theta + math.pi))
