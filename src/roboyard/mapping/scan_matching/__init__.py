"""Scan matching: an exhaustive correlative search of a window, and a continuous point-to-line refinement."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.scan_matching.correlative import (
        CorrelativeMatch,
        LikelihoodPyramid,
        SearchWindow,
        match_correlative,
    )
    from roboyard.mapping.scan_matching.point_to_line import RefinementConfig, ScanMatch, match_covariance, refine_pose
    from roboyard.mapping.scan_matching.surfel_map import SurfelMap

__all__ = [
    "CorrelativeMatch",
    "LikelihoodPyramid",
    "RefinementConfig",
    "ScanMatch",
    "SearchWindow",
    "SurfelMap",
    "match_correlative",
    "match_covariance",
    "refine_pose",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "correlative": ("CorrelativeMatch", "LikelihoodPyramid", "SearchWindow", "match_correlative"),
    "point_to_line": ("RefinementConfig", "ScanMatch", "match_covariance", "refine_pose"),
    "surfel_map": ("SurfelMap",),
})  # fmt: skip
