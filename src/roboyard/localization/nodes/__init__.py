"""Nodes that connect localization to topics."""

from roboyard.localization.nodes.odometry import OdometryNode

__all__ = ["OdometryNode"]
