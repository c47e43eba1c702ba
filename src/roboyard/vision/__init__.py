"""Camera perception: detection of fiducials and marked discs, intrinsic and hand-eye calibration.

The names that most users need: `detect_fiducials`, `render_marker`, `calibrate_camera`, `CalibrationBoard`,
`load_camera_info`, `calibrate_hand_eye`, `detect_discs`, `DiscConfig`, `locate_discs`, `track_discs`.

    markers = ry.vision.detect_fiducials(image, "apriltag_36h11")

These modules take arrays.  The nodes in ``roboyard.vision.nodes`` connect them to topics.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.vision.calibration.camera_calibration import (
        CalibrationBoard,
        CameraCalibration,
        calibrate_camera,
        load_camera_info,
    )
    from roboyard.vision.calibration.hand_eye import HandEyeCalibration, HandEyeError, calibrate_hand_eye
    from roboyard.vision.discs.annotation import draw_discs
    from roboyard.vision.discs.disc_detector import Disc, DiscConfig, detect_discs
    from roboyard.vision.discs.disc_pose import (
        DiscPair,
        LocatedDisc,
        find_disc_pairs,
        locate_disc,
        locate_discs,
        project_center,
    )
    from roboyard.vision.discs.disc_tracking import ConsensusDetection, DiscTrack, find_consensus, track_discs
    from roboyard.vision.discs.reference_detectors import (
        ThesisCamera,
        ThesisDisc,
        detect_discs_hough,
        detect_discs_thesis,
    )
    from roboyard.vision.fiducials import Fiducial, detect_fiducials, fiducial_families, render_marker

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "detect_fiducials",
    "render_marker",
    "calibrate_camera",
    "CalibrationBoard",
    "load_camera_info",
    "calibrate_hand_eye",
    "detect_discs",
    "DiscConfig",
    "locate_discs",
    "track_discs",
    "CameraCalibration",
    "ConsensusDetection",
    "Disc",
    "DiscPair",
    "DiscTrack",
    "Fiducial",
    "HandEyeCalibration",
    "HandEyeError",
    "LocatedDisc",
    "ThesisCamera",
    "ThesisDisc",
    "detect_discs_hough",
    "detect_discs_thesis",
    "draw_discs",
    "fiducial_families",
    "find_consensus",
    "find_disc_pairs",
    "locate_disc",
    "project_center",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "calibration.camera_calibration": ("CalibrationBoard", "CameraCalibration", "calibrate_camera",
        "load_camera_info"),
    "calibration.hand_eye": ("HandEyeCalibration", "HandEyeError", "calibrate_hand_eye"),
    "discs.annotation": ("draw_discs",),
    "discs.disc_detector": ("Disc", "DiscConfig", "detect_discs"),
    "discs.disc_pose": ("DiscPair", "LocatedDisc", "find_disc_pairs", "locate_disc", "locate_discs",
        "project_center"),
    "discs.disc_tracking": ("ConsensusDetection", "DiscTrack", "find_consensus", "track_discs"),
    "discs.reference_detectors": ("ThesisCamera", "ThesisDisc", "detect_discs_hough", "detect_discs_thesis"),
    "fiducials": ("Fiducial", "detect_fiducials", "fiducial_families", "render_marker"),
})  # fmt: skip
