"""Nodes that connect localization to topics."""

from roboyard.localization.nodes.odometry import OdometryNode
from roboyard.localization.nodes.planar import AckermannOdometryNode, MecanumOdometryNode
from roboyard.localization.nodes.truth_odometry import TruthOdometryNode

__all__ = ["AckermannOdometryNode", "MecanumOdometryNode", "OdometryNode", "TruthOdometryNode"]
