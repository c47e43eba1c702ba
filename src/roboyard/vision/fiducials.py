"""Fiducials: square markers that tell who they are, ArUco's and AprilTag's, by OpenCV; and how they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.opencv import opencv
from roboyard.vision.quads import sharpen_quad

_FAMILIES = (
    "4x4_50", "4x4_100", "4x4_250", "4x4_1000", "5x5_50", "5x5_100", "5x5_250", "5x5_1000", "6x6_50", "6x6_100",
    "6x6_250", "6x6_1000", "7x7_50", "7x7_100", "7x7_250", "7x7_1000", "aruco_original", "apriltag_16h5",
    "apriltag_25h9", "apriltag_36h10", "apriltag_36h11",
)  # fmt: skip
_SIGMA = 0.5
"""Least standard deviation of a corner that a covariance assumes: blur makes black smaller by so much [px]."""
_CLEAR = 2.0
"""A pose is clear if the other one's corners are off by so many times as much."""


@dataclass(frozen=True, eq=False)
class Fiducial:
    """A marker in a picture.

    Attributes:
        family: Which set it is of.
        id: Its number.
        corners: (4, 2) clockwise from its upper left one [px].
        centre: Projection of its middle (2,): where the diagonals meet [px].
        size: Edge [m]; 0 if not known, and then no pose either.
        T_camera_tag: Pose in the optical frame: x right, y up, z out of the marker.
        other: The pose that looks nearly the same (Collins and Bartoli, "Infinitesimal plane-based pose estimation",
            IJCV 2014); None if there is none.
        error: Root mean square distance of the corners from the pose's [px].
        ambiguity: That error over the other pose's, 0 to 1; near 1 the two cannot be told apart.
        covariance: (6, 6) of the pose: translation [m], then rotation [rad], in the tag's frame.
    """

    family: str
    id: int
    corners: Array
    centre: Array
    size: float = 0.0
    T_camera_tag: SE3 | None = None
    other: SE3 | None = None
    error: float = 0.0
    ambiguity: float = 0.0
    covariance: Array | None = None

    @property
    def clear(self) -> bool:
        """Whether one of the two poses fits much better."""
        return self.T_camera_tag is not None and self.ambiguity * _CLEAR <= 1.0


def families() -> tuple[str, ...]:
    """Names of the sets that can be found."""
    return _FAMILIES


def dictionary(family: str) -> Any:
    """OpenCV's dictionary of a family.

    Raises:
        InputError: unknown; lists the known ones.
    """
    if family not in _FAMILIES:
        raise InputError(f"family {family!r}", location="fiducials", valid=", ".join(_FAMILIES))
    aruco = opencv().aruco
    return aruco.getPredefinedDictionary(getattr(aruco, f"DICT_{family.upper()}"))


def marker_picture(family: str, number: int, pixels: int = 200) -> U8:
    """A marker to print, (pixels, pixels), without a margin; it needs a white one.

    Raises:
        InputError: unknown family, or it has no such number.
    """
    known = dictionary(family)
    count = len(known.bytesList)
    if not 0 <= number < count:
        raise InputError(f"marker {number} of {family}", location="fiducials", valid=f"0 to {count - 1}")
    return np.asarray(opencv().aruco.generateImageMarker(known, number, pixels))


def find_fiducials(image: U8, family: str, lens: CameraModel | None = None, size: float = 0.0) -> list[Fiducial]:
    """Markers of a family, by number; with poses where the lens and their size are known.

    Args:
        image: (h, w, 3) in RGB, or (h, w).
        family: One of `families`.
        lens: Of the camera, a pinhole with or without distortion.
        size: Edge of the markers [m]; 0: not known.

    Raises:
        InputError: unknown family, a fisheye, or a size below 0.
    """
    if not (math.isfinite(size) and size >= 0.0):
        raise InputError(f"size {size:g} m", location="fiducials", valid="0 (not known) or more")
    if lens is not None and lens.model != "plumb_bob":
        raise InputError(f"lens {lens.model}", location="fiducials", valid="plumb_bob")
    cv2 = opencv()
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else np.ascontiguousarray(image)
    corners, numbers, _ = cv2.aruco.ArucoDetector(dictionary(family)).detectMarkers(grey)
    # OpenCV's own refinements are misled by a marker's cells where these are small (corner by corner), or lie half a
    # pixel off (AprilTag's).
    light = cv2.bitwise_not(cv2.GaussianBlur(grey, (3, 3), 0.5))
    found = []
    for points, number in zip(corners, [] if numbers is None else np.ravel(numbers), strict=True):
        square = sharpen_quad(light, np.asarray(points, dtype=np.float64).reshape(4, 2))
        plain = Fiducial(family, int(number), square, _crossing(square, lens))
        found.append(plain if lens is None or size == 0.0 else _posed(plain, lens, size))
    return sorted(found, key=lambda one: (one.id, *one.centre.tolist()))


def _crossing(corners: Array, lens: CameraModel | None) -> Array:
    """Where the diagonals meet: straight lines stay straight only without distortion."""
    bent = lens is not None and not lens.is_undistorted
    points = corners
    if lens is not None and bent:
        rays = lens.rays(corners)
        points = rays[:, :2] / rays[:, 2:]
    (a, b, c, d) = points
    along, across = c - a, d - b
    cross = along[0] * across[1] - along[1] * across[0]
    gap = b - a
    middle = a + (gap[0] * across[1] - gap[1] * across[0]) / cross * along
    return lens.project(np.array([*middle, 1.0])) if lens is not None and bent else np.asarray(middle)


def _posed(plain: Fiducial, lens: CameraModel, size: float) -> Fiducial:
    cv2 = opencv()
    half = 0.5 * size
    square = np.array([[-half, half, 0.0], [half, half, 0.0], [half, -half, 0.0], [-half, -half, 0.0]])
    distortion = np.array(lens.distortion)
    _, turns, places, errors = cv2.solvePnPGeneric(
        square, plain.corners.reshape(4, 1, 2), lens.matrix, distortion, flags=cv2.SOLVEPNP_IPPE_SQUARE
    )
    known = [k for k, turn in enumerate(turns) if np.isfinite(turn).all() and np.isfinite(places[k]).all()]
    if not known:  # seen exactly squarely: that closed form divides by zero, and there is one pose only
        _, turns, places, errors = cv2.solvePnPGeneric(
            square, plain.corners.reshape(4, 1, 2), lens.matrix, distortion, flags=cv2.SOLVEPNP_SQPNP
        )
        known = list(range(len(turns)))[:1]
        if not known:
            return plain
    poses = [SE3.from_rotation_matrix(cv2.Rodrigues(turns[k])[0], np.ravel(places[k])) for k in known]
    off = np.ravel(errors).astype(float)[known]
    order = np.argsort(off, kind="stable")
    best, error = poses[order[0]], float(off[order[0]])
    other, worse = (poses[order[1]], float(off[order[1]])) if len(order) > 1 else (None, math.inf)
    covariance = _covariance(best, square, lens, max(error, _SIGMA))
    ambiguity = max(error, 1e-3) / max(worse, 1e-3) if math.isfinite(worse) else 0.0
    return Fiducial(plain.family, plain.id, plain.corners, plain.centre, size, best, other, error, min(ambiguity, 1.0),
                    covariance)  # fmt: skip


def _covariance(T: SE3, square: Array, lens: CameraModel, sigma: float) -> Array:
    """Of a pose, to first order, from corners that are off by ``sigma`` [px] along each axis."""
    J = np.empty((8, 6))
    step = 1e-6
    for k in range(6):
        twist = np.zeros(6)
        twist[k] = step
        ahead, back = (lens.project((T @ SE3.exp(sign * twist)) @ square) for sign in (1.0, -1.0))
        J[:, k] = (ahead - back).ravel() / (2.0 * step)
    return np.asarray(sigma**2 * np.linalg.pinv(J.T @ J))
