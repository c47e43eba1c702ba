"""Twists of messages and of the plane."""

from __future__ import annotations

from typing import Any

from roboyard.control import PlanarTwist
from roboyard.messages import msg


def planar_twist(message: Any) -> PlanarTwist:
    """What of a geometry_msgs/Twist lies in the plane."""
    return PlanarTwist(float(message.linear.x), float(message.linear.y), float(message.angular.z))


def twist_message(twist: PlanarTwist) -> Any:
    """geometry_msgs/Twist."""
    return msg.Twist(linear=msg.Vector3(x=twist.vx, y=twist.vy), angular=msg.Vector3(z=twist.wz))
