"""Camera calibration: boards, detection of their corners, intrinsic calibration, and ROS's camera info files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from roboyard.config import load
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.fiducials import aruco_dictionary, fiducial_families
from roboyard.vision.opencv import opencv, to_gray

_BOARD_PATTERN = re.compile(r"(chessboard|charuco):(\d+)x(\d+):([\d.]+)mm(?::([\d.]+)mm)?(?::(\w+))?")
_VALID_BOARDS = (
    "chessboard:9x6:25mm (inner corners, square) or charuco:7x5:40mm:30mm:4x4_50 (squares, square, marker, family)"
)


@dataclass(frozen=True)
class CalibrationBoard:
    """A flat board with corners at known positions: a chessboard or a ChArUco board.

    Attributes:
        kind: ``chessboard`` or ``charuco``.
        columns: Inner corners along x of a chessboard; squares of a ChArUco board.
        rows: The same along y.
        square_size: Edge of a square [m].
        marker_size: Edge of a ChArUco board's marker [m].
        family: Family of these markers.
    """

    kind: Literal["chessboard", "charuco"]
    columns: int
    rows: int
    square_size: float
    marker_size: float = 0.0
    family: str = "4x4_50"

    def __post_init__(self) -> None:
        min_count = 3 if self.kind == "chessboard" else 2
        if min(self.columns, self.rows) < min_count or max(self.columns, self.rows) > 60 or not self.square_size > 0.0:
            raise InputError(
                f"a board of {self.columns} x {self.rows} at {self.square_size:g} m",
                location="board",
                valid=_VALID_BOARDS,
            )
        if self.kind == "charuco" and not 0.0 < self.marker_size < self.square_size:
            raise InputError(
                f"markers of {self.marker_size:g} m in squares of {self.square_size:g} m", location="board",
                valid="markers smaller than squares",
            )  # fmt: skip

    @classmethod
    def parse(cls, text: str) -> CalibrationBoard:
        """Create a board from a text such as ``chessboard:9x6:25mm`` or ``charuco:7x5:40mm:30mm:4x4_50``.

        Raises:
            InputError: The text does not have this form.
        """
        match = _BOARD_PATTERN.fullmatch(text)
        if (
            match is None
            or (match[1] == "chessboard" and (match[5] or match[6]))
            or (match[1] == "charuco" and not match[5])
        ):
            raise InputError(f"board {text!r}", location="board", valid=_VALID_BOARDS)
        square_size = 1e-3 * float(match[4])
        if match[1] == "chessboard":
            return cls("chessboard", int(match[2]), int(match[3]), square_size)
        family = match[6] or "4x4_50"
        if family not in fiducial_families():
            raise InputError(f"family {family!r}", location="board", valid=", ".join(fiducial_families()))
        return cls("charuco", int(match[2]), int(match[3]), square_size, 1e-3 * float(match[5]), family)

    @property
    def corners(self) -> Array:
        """All inner corners (n, 3) on the board [m], row by row."""
        columns, rows = (self.columns, self.rows) if self.kind == "chessboard" else (self.columns - 1, self.rows - 1)
        x, y = np.meshgrid(np.arange(columns), np.arange(rows))
        grid_points = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1).astype(np.float64)
        return (
            self.square_size * grid_points
            if self.kind == "chessboard"
            else self.square_size * (grid_points + np.array([1.0, 1.0, 0.0]))
        )

    def render(self, square_pixels: int = 40) -> tuple[U8, Array]:
        """Return an image of the board with a white margin of one square, and the pixel (2,) of its origin [px].

        Args:
            square_pixels: Edge length of a square [px].
        """
        if self.kind == "charuco":
            size = (self.columns * square_pixels + 2 * square_pixels, self.rows * square_pixels + 2 * square_pixels)
            image = _charuco_board(self).generateImage(size, marginSize=square_pixels, borderBits=1)
            return np.asarray(image), np.array([square_pixels - 0.5, square_pixels - 0.5])
        column, row = np.meshgrid(np.arange(self.columns + 1), np.arange(self.rows + 1))
        squares = np.where((column + row) % 2 == 0, 0, 255).astype(np.uint8)
        image = np.pad(
            np.kron(squares, np.ones((square_pixels, square_pixels), np.uint8)), square_pixels, constant_values=255
        )
        return image, np.array([2.0 * square_pixels - 0.5, 2.0 * square_pixels - 0.5])


def detect_board_corners(image: U8, calibration_board: CalibrationBoard) -> tuple[Array, Array] | None:
    """Return the board's detected corners: positions on the board (n, 3) [m] and pixels (n, 2); None without a board.

    Args:
        image: (h, w, 3) in RGB, or (h, w).
        calibration_board: The board; a chessboard must be completely visible, a ChArUco board need not.
    """
    cv2 = opencv()
    gray = to_gray(image)
    if calibration_board.kind == "chessboard":
        flags = cv2.CALIB_CB_ACCURACY | cv2.CALIB_CB_EXHAUSTIVE | cv2.CALIB_CB_NORMALIZE_IMAGE
        is_found, pixels = cv2.findChessboardCornersSB(
            gray, (calibration_board.columns, calibration_board.rows), flags=flags
        )
        return (calibration_board.corners, np.asarray(pixels, np.float64).reshape(-1, 2)) if is_found else None
    pixels, corner_ids, _, _ = cv2.aruco.CharucoDetector(_charuco_board(calibration_board)).detectBoard(gray)
    if corner_ids is None or len(corner_ids) < 6:
        return None
    return calibration_board.corners[np.asarray(corner_ids).ravel()], np.asarray(pixels, np.float64).reshape(-1, 2)


def _charuco_board(calibration_board: CalibrationBoard) -> Any:
    cv2 = opencv()
    return cv2.aruco.CharucoBoard(
        (calibration_board.columns, calibration_board.rows),
        calibration_board.square_size,
        calibration_board.marker_size,
        aruco_dictionary(calibration_board.family),
    )


MIN_IMAGES = 4
_MIN_TILT = math.radians(8.0)


@dataclass(frozen=True, eq=False)
class CameraCalibration:
    """Result of an intrinsic calibration.

    Attributes:
        camera_model: The calibrated camera model.
        parameter_std: Standard deviations of fx, fy, cx, cy [px], k1, k2, p1, p2, k3.
        reprojection_error: Root mean square distance of the corners from their projections [px].
        image_errors: The same for each used image [px].
        used_images: Indices of these images.
        undetected_images: Indices of the images in which no board was detected.
        image_coverage: Fraction of the image area within the bounds of all corners.
    """

    camera_model: CameraModel
    parameter_std: Array
    reprojection_error: float
    image_errors: Array
    used_images: tuple[int, ...]
    undetected_images: tuple[int, ...]
    image_coverage: float


def calibrate_camera(images: Sequence[U8], calibration_board: CalibrationBoard) -> CameraCalibration:
    """Estimate the intrinsics of a camera from images of a board (Z. Zhang, PAMI 2000, implemented by OpenCV).

    Args:
        images: (h, w, 3) in RGB or (h, w), all of one size.
        calibration_board: The board in the images.

    Raises:
        InputError: The sizes differ; or too few images show the board, or none a tilted one, so that focal length and
            distance cannot be separated.
    """
    sizes = {image.shape[:2] for image in images}
    if len(sizes) > 1:
        sizes_text = ", ".join(f"{w} x {h}" for h, w in sorted(sizes))
        raise InputError(
            f"images of {sizes_text} pixels", location="camera calibration", valid="one size, one camera, one zoom"
        )
    detections = [detect_board_corners(image, calibration_board) for image in images]
    used_images = [k for k, corners in enumerate(detections) if corners is not None]
    undetected_images = tuple(k for k, corners in enumerate(detections) if corners is None)
    if len(used_images) < MIN_IMAGES:
        raise InputError(
            f"the board is detected in {len(used_images)} of {len(images)} images", location="camera calibration",
            valid=f"at least {MIN_IMAGES} with the board whole, sharp and of the stated size; 10 to 20 are good",
        )  # fmt: skip
    corner_sets = [corners for corners in detections if corners is not None]
    object_points = [np.float32(corners[0]) for corners in corner_sets]
    image_points = [np.float32(corners[1]).reshape(-1, 1, 2) for corners in corner_sets]
    (height, width) = next(iter(sizes))
    cv2 = opencv()
    reprojection_error, K, distortion, rotations, _, parameter_std, _, image_errors = cv2.calibrateCameraExtended(
        object_points, image_points, (width, height), None, None
    )  # fmt: skip
    tilts = [math.acos(min(1.0, abs(float(cv2.Rodrigues(rotation)[0][2, 2])))) for rotation in rotations]
    if max(tilts) < _MIN_TILT:
        raise InputError(
            f"the board is tilted by {math.degrees(max(tilts)):.1f}° at most", location="camera calibration",
            valid="images with the board tilted by 20° to 50° in several directions",
        )  # fmt: skip
    k = [float(value) for value in np.ravel(distortion)[:5]]
    camera_model = CameraModel(
        width,
        height,
        float(K[0, 0]),
        float(K[1, 1]),
        float(K[0, 2]),
        float(K[1, 2]),
        "plumb_bob",
        (k[0], k[1], k[2], k[3], k[4]),
    )
    all_pixels = np.concatenate([corners[1] for corners in corner_sets])
    low, high = all_pixels.min(axis=0), all_pixels.max(axis=0)
    image_coverage = float(np.prod(high - low) / (width * height))
    return CameraCalibration(
        camera_model,
        np.ravel(parameter_std)[:9].astype(float),
        float(reprojection_error),
        np.ravel(image_errors).astype(float),
        tuple(used_images),
        undetected_images,
        image_coverage,
    )


@dataclass(frozen=True)
class MatrixEntry:
    """A matrix with its values row by row."""

    rows: int
    cols: int
    data: tuple[float, ...]


@dataclass(frozen=True)
class CameraInfoFile:
    """Content of a camera info file; the matrices for rectification and projection of stereo cameras are ignored."""

    image_width: int
    image_height: int
    camera_matrix: MatrixEntry
    distortion_coefficients: MatrixEntry
    camera_name: str = "camera"
    distortion_model: Literal["plumb_bob", "rational_polynomial", "equidistant"] = "plumb_bob"
    rectification_matrix: MatrixEntry | None = None
    projection_matrix: MatrixEntry | None = None


def format_camera_info(camera_model: CameraModel, camera_name: str = "camera") -> str:
    """Return the text of a camera info file, as ROS's camera_calibration writes it.

    Raises:
        InputError: The camera model is a fisheye.
    """
    if camera_model.model != "plumb_bob":
        raise InputError(f"camera model {camera_model.model}", location="camera file", valid="plumb_bob")
    K = camera_model.matrix
    entries: list[tuple[str, int, int, list[float]]] = [
        ("camera_matrix", 3, 3, K.ravel().tolist()),
        ("distortion_coefficients", 1, 5, list(camera_model.distortion)),
        ("rectification_matrix", 3, 3, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
        ("projection_matrix", 3, 4, [*K[0], 0.0, *K[1], 0.0, *K[2], 0.0]),
    ]
    lines = [
        f"image_width: {camera_model.width}",
        f"image_height: {camera_model.height}",
        f"camera_name: {camera_name}",
    ]
    for key, row_count, column_count, data in entries:
        if key == "distortion_coefficients":
            lines.append("distortion_model: plumb_bob")
        lines += [f"{key}:", f"  rows: {row_count}", f"  cols: {column_count}", f"  data: {_format_numbers(data)}"]
    return "\n".join(lines) + "\n"


def load_camera_info(path: str | Path) -> CameraModel:
    """Load a camera model from a camera info file.

    Raises:
        ConfigError: The file is unreadable, has another form, or describes a model other than ``plumb_bob``.
    """
    data = load(CameraInfoFile, path)
    if data.distortion_model != "plumb_bob":
        raise ConfigError(f"distortion_model {data.distortion_model}", location=str(path), valid="plumb_bob")
    for key, matrix, valid_counts in (
        ("camera_matrix", data.camera_matrix, (9,)),
        ("distortion_coefficients", data.distortion_coefficients, (4, 5)),
    ):
        if len(matrix.data) not in valid_counts:
            valid = " or ".join(map(str, valid_counts))
            raise ConfigError(f"{key}.data has {len(matrix.data)} numbers", location=str(path), valid=valid)
    fx, skew, cx, _, fy, cy = data.camera_matrix.data[:6]
    if not (fx > 0.0 and fy > 0.0 and abs(skew) < 1e-9):
        raise ConfigError(f"camera_matrix with focal lengths {fx:g}, {fy:g}, skew {skew:g}", location=str(path),
                          valid="focal lengths above 0, no skew")  # fmt: skip
    k = (*data.distortion_coefficients.data, 0.0)[:5]
    return CameraModel(data.image_width, data.image_height, fx, fy, cx, cy, "plumb_bob", (k[0], k[1], k[2], k[3], k[4]))


def _format_numbers(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{float(value):.10g}" for value in values) + "]"
