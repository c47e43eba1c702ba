"""Nodes that connect localization to topics."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.nodes.amcl import AmclNode
    from roboyard.localization.nodes.ground_truth import GroundTruthLocalizationNode, GroundTruthOdometryNode
    from roboyard.localization.nodes.kalman import EkfNode, KalmanNode, UkfNode
    from roboyard.localization.nodes.odometry import (
        AckermannOdometryNode,
        DriveOdometryNode,
        MecanumOdometryNode,
        OdometryNode,
    )

__all__ = [
    "AckermannOdometryNode",
    "AmclNode",
    "DriveOdometryNode",
    "EkfNode",
    "GroundTruthLocalizationNode",
    "GroundTruthOdometryNode",
    "KalmanNode",
    "MecanumOdometryNode",
    "OdometryNode",
    "UkfNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "amcl": ("AmclNode",),
    "ground_truth": ("GroundTruthLocalizationNode", "GroundTruthOdometryNode"),
    "kalman": ("EkfNode", "KalmanNode", "UkfNode"),
    "odometry": ("AckermannOdometryNode", "DriveOdometryNode", "MecanumOdometryNode", "OdometryNode"),
})  # fmt: skip
