"""Nodes that connect localization to topics."""

from roboyard.localization.nodes.amcl import AmclNode
from roboyard.localization.nodes.kalman import EkfNode, UkfNode
from roboyard.localization.nodes.odometry import OdometryNode
from roboyard.localization.nodes.planar import AckermannOdometryNode, MecanumOdometryNode
from roboyard.localization.nodes.static_transform import StaticTransformNode
from roboyard.localization.nodes.truth_localization import TruthLocalizationNode
from roboyard.localization.nodes.truth_odometry import TruthOdometryNode

__all__ = [
    "AckermannOdometryNode",
    "AmclNode",
    "EkfNode",
    "MecanumOdometryNode",
    "OdometryNode",
    "StaticTransformNode",
    "TruthLocalizationNode",
    "TruthOdometryNode",
    "UkfNode",
]
