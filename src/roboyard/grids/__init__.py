"""Grids over the plane: where their cells lie, what they hold, and the kernels that mapping, localisation and
navigation share.

A grid's array has shape (rows, columns): rows go along y, columns along x of the grid's own frame, whose origin is the
corner of cell (0, 0).
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.grids.casting import cast_scans
    from roboyard.grids.distance import distance_to, surface
    from roboyard.grids.evidence import BeamModel, Evidence
    from roboyard.grids.frame import GridFrame
    from roboyard.grids.likelihood import LikelihoodField
    from roboyard.grids.occupancy import FREE, OCCUPIED, UNKNOWN, OccupancyGrid
    from roboyard.grids.rays import add_evidence, cast_rays
    from roboyard.grids.thinning import Thinned, thin

__all__ = [
    "FREE",
    "OCCUPIED",
    "UNKNOWN",
    "BeamModel",
    "Evidence",
    "GridFrame",
    "LikelihoodField",
    "OccupancyGrid",
    "Thinned",
    "add_evidence",
    "cast_rays",
    "cast_scans",
    "distance_to",
    "surface",
    "thin",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "casting": ("cast_scans",),
    "distance": ("distance_to", "surface"),
    "evidence": ("BeamModel", "Evidence"),
    "frame": ("GridFrame",),
    "likelihood": ("LikelihoodField",),
    "occupancy": ("FREE", "OCCUPIED", "UNKNOWN", "OccupancyGrid"),
    "rays": ("add_evidence", "cast_rays"),
    "thinning": ("Thinned", "thin"),
})  # fmt: skip
