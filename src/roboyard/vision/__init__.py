"""What cameras tell: marked discs, fiducials, and the calibration of cameras and of where arms carry them.

Everything here works on arrays; the nodes that connect it to topics are in ``roboyard.vision.nodes``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

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

__getattr__, __dir__ = lazy_exports(__name__, {
    "boards": ("Board",),
    "camera_file": ("read_camera",),
    "discs.config": ("DiscConfig",),
    "discs.detect": ("Disc", "find_discs"),
    "discs.drawing": ("draw_discs",),
    "discs.hough": ("find_discs_hough",),
    "discs.looks": ("Steady", "steady"),
    "discs.pairs": ("DiscPair", "disc_pairs"),
    "discs.place": ("PlacedDisc", "centre_of", "place_disc", "place_discs"),
    "discs.thesis": ("ThesisCamera", "ThesisDisc", "thesis_discs"),
    "fiducials": ("Fiducial", "find_fiducials"),
    "hand_eye": ("HandEye", "HandEyeError", "calibrate_hand_eye"),
    "intrinsics": ("Intrinsics", "calibrate_camera"),
})  # fmt: skip
