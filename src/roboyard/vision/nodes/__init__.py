"""What connects vision to topics."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.vision.nodes.disc_finder import DiscFinderNode
    from roboyard.vision.nodes.fiducial_finder import FiducialFinderNode

__all__ = ["DiscFinderNode", "FiducialFinderNode"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "disc_finder": ("DiscFinderNode",),
    "fiducial_finder": ("FiducialFinderNode",),
})  # fmt: skip
