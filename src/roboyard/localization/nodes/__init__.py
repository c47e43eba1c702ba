"""Nodes that connect localization to topics."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.nodes.amcl import AmclNode
    from roboyard.localization.nodes.kalman import EkfNode, UkfNode
    from roboyard.localization.nodes.odometry import AckermannOdometryNode, MecanumOdometryNode, OdometryNode
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

__getattr__, __dir__ = lazy_exports(__name__, {
    "amcl": ("AmclNode",),
    "kalman": ("EkfNode", "UkfNode"),
    "odometry": ("AckermannOdometryNode", "MecanumOdometryNode", "OdometryNode"),
    "static_transform": ("StaticTransformNode",),
    "truth_localization": ("TruthLocalizationNode",),
    "truth_odometry": ("TruthOdometryNode",),
})  # fmt: skip
