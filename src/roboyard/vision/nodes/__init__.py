"""Nodes that detect discs and fiducials in the images of a camera and publish them."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.vision.nodes.disc_detector import DiscDetectorNode
    from roboyard.vision.nodes.fiducial_detector import FiducialDetectorNode

__all__ = ["DiscDetectorNode", "FiducialDetectorNode"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "disc_detector": ("DiscDetectorNode",),
    "fiducial_detector": ("FiducialDetectorNode",),
})  # fmt: skip
