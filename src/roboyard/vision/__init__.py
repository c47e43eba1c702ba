"""What cameras tell: marked discs, fiducials, and the calibration of cameras and of where arms carry them.

Everything here works on arrays; the nodes that connect it to topics are in ``roboyard.vision.nodes``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.vision.discs.config import DiscConfig
    from roboyard.vision.discs.detect import Disc, find_discs
    from roboyard.vision.discs.drawing import draw_discs
    from roboyard.vision.discs.hough import find_discs_hough
    from roboyard.vision.discs.looks import Steady, steady
    from roboyard.vision.discs.pairs import DiscPair, disc_pairs
    from roboyard.vision.discs.place import PlacedDisc, centre_of, place_disc, place_discs
    from roboyard.vision.discs.thesis import ThesisDisc, thesis_discs

# Kernels and OpenCV are imported when something of theirs is asked for.
_HOMES = {
    "Disc": "discs.detect",
    "DiscConfig": "discs.config",
    "DiscPair": "discs.pairs",
    "PlacedDisc": "discs.place",
    "Steady": "discs.looks",
    "ThesisDisc": "discs.thesis",
    "centre_of": "discs.place",
    "disc_pairs": "discs.pairs",
    "draw_discs": "discs.drawing",
    "find_discs": "discs.detect",
    "find_discs_hough": "discs.hough",
    "place_disc": "discs.place",
    "place_discs": "discs.place",
    "steady": "discs.looks",
    "thesis_discs": "discs.thesis",
}

__all__ = [
    "Disc",
    "DiscConfig",
    "DiscPair",
    "PlacedDisc",
    "Steady",
    "ThesisDisc",
    "centre_of",
    "disc_pairs",
    "draw_discs",
    "find_discs",
    "find_discs_hough",
    "place_disc",
    "place_discs",
    "steady",
    "thesis_discs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'roboyard.vision' has no attribute '{name}'")
    value = getattr(import_module(f"roboyard.vision.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
