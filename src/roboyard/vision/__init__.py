"""What cameras tell: marked discs, fiducials, and the calibration of cameras and of where arms carry them.

Everything here works on arrays; the nodes that connect it to topics are in ``roboyard.vision.nodes``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.vision.boards import Board
    from roboyard.vision.camera_file import read_camera
    from roboyard.vision.discs.config import DiscConfig
    from roboyard.vision.discs.detect import Disc, find_discs
    from roboyard.vision.discs.drawing import draw_discs
    from roboyard.vision.discs.hough import find_discs_hough
    from roboyard.vision.discs.looks import Steady, steady
    from roboyard.vision.discs.pairs import DiscPair, disc_pairs
    from roboyard.vision.discs.place import PlacedDisc, centre_of, place_disc, place_discs
    from roboyard.vision.discs.thesis import ThesisCamera, ThesisDisc, thesis_discs
    from roboyard.vision.fiducials import Fiducial, find_fiducials
    from roboyard.vision.hand_eye import HandEye, HandEyeError, calibrate_hand_eye
    from roboyard.vision.intrinsics import Intrinsics, calibrate_camera

# Kernels and OpenCV are imported when something of theirs is asked for.
_HOMES = {
    "Board": "boards",
    "Disc": "discs.detect",
    "DiscConfig": "discs.config",
    "DiscPair": "discs.pairs",
    "Fiducial": "fiducials",
    "HandEye": "hand_eye",
    "HandEyeError": "hand_eye",
    "Intrinsics": "intrinsics",
    "PlacedDisc": "discs.place",
    "Steady": "discs.looks",
    "ThesisCamera": "discs.thesis",
    "ThesisDisc": "discs.thesis",
    "calibrate_camera": "intrinsics",
    "calibrate_hand_eye": "hand_eye",
    "centre_of": "discs.place",
    "disc_pairs": "discs.pairs",
    "draw_discs": "discs.drawing",
    "find_discs": "discs.detect",
    "find_discs_hough": "discs.hough",
    "find_fiducials": "fiducials",
    "place_disc": "discs.place",
    "place_discs": "discs.place",
    "read_camera": "camera_file",
    "steady": "discs.looks",
    "thesis_discs": "discs.thesis",
}

__all__ = [
    "Board",
    "Disc",
    "DiscConfig",
    "DiscPair",
    "Fiducial",
    "HandEye",
    "HandEyeError",
    "Intrinsics",
    "PlacedDisc",
    "Steady",
    "ThesisCamera",
    "ThesisDisc",
    "calibrate_camera",
    "calibrate_hand_eye",
    "centre_of",
    "disc_pairs",
    "draw_discs",
    "find_discs",
    "find_discs_hough",
    "find_fiducials",
    "place_disc",
    "place_discs",
    "read_camera",
    "steady",
    "thesis_discs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'roboyard.vision' has no attribute '{name}'")
    value = getattr(import_module(f"roboyard.vision.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
