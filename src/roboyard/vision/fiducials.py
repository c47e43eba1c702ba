"""Detection of ArUco and AprilTag markers with OpenCV, refinement of their corners, and estimation of their poses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.discs.ellipse import EdgeRay, EdgeSearch, find_falling_edge
from roboyard.vision.opencv import opencv, to_gray

_FAMILIES = (
    "4x4_50", "4x4_100", "4x4_250", "4x4_1000", "5x5_50", "5x5_100", "5x5_250", "5x5_1000", "6x6_50", "6x6_100",
    "6x6_250", "6x6_1000", "7x7_50", "7x7_100", "7x7_250", "7x7_1000", "aruco_original", "apriltag_16h5",
    "apriltag_25h9", "apriltag_36h10", "apriltag_36h11",
)  # fmt: skip
_MIN_CORNER_STD = 0.5
"""Smallest standard deviation of a corner in a covariance: blur shrinks black areas by about this length [px]."""
_MIN_ERROR_RATIO = 2.0
"""A pose is unambiguous if the alternative pose has a reprojection error that is larger by this factor."""


@dataclass(frozen=True, eq=False)
class Fiducial:
    """A marker detected in an image.

    Attributes:
        family: Family of the marker.
        id: Number of the marker in its family.
        corners: (4, 2) clockwise from its upper left one [px].
        center: Projection of its center (2,): the intersection of its diagonals [px].
        size: Edge length [m]; 0 if unknown: then there is no pose.
        T_camera_tag: Pose in the optical frame: x right, y up, z out of the marker.
        alternative_pose: The second pose that fits the corners (Collins and Bartoli, "Infinitesimal plane-based pose
            estimation", IJCV 2014); None if there is none.
        reprojection_error: Root mean square distance of the corners from the pose's [px].
        ambiguity: Ratio of that error to the alternative pose's, 0 to 1; near 1 the poses are indistinguishable.
        covariance: (6, 6) of the pose: translation [m], then rotation [rad], in the tag's frame.
    """

    family: str
    id: int
    corners: Array
    center: Array
    size: float = 0.0
    T_camera_tag: SE3 | None = None
    alternative_pose: SE3 | None = None
    reprojection_error: float = 0.0
    ambiguity: float = 0.0
    covariance: Array | None = None

    @property
    def is_unambiguous(self) -> bool:
        """Whether one of the two poses has a much smaller error."""
        return self.T_camera_tag is not None and self.ambiguity * _MIN_ERROR_RATIO <= 1.0


def fiducial_families() -> tuple[str, ...]:
    """Return the names of the families that can be detected."""
    return _FAMILIES


def aruco_dictionary(family: str) -> Any:
    """Return OpenCV's dictionary of a family.

    Raises:
        InputError: The family is unknown; the message lists the known ones.
    """
    if family not in _FAMILIES:
        raise InputError(f"family {family!r}", location="fiducials", valid=", ".join(_FAMILIES))
    aruco = opencv().aruco
    return aruco.getPredefinedDictionary(getattr(aruco, f"DICT_{family.upper()}"))


def render_marker(family: str, marker_id: int, pixels: int = 200) -> U8:
    """Render a marker for printing, (pixels, pixels), without the white margin that it needs.

    Raises:
        InputError: The family is unknown or has no such number.
    """
    marker_dictionary = aruco_dictionary(family)
    count = len(marker_dictionary.bytesList)
    if not 0 <= marker_id < count:
        raise InputError(f"marker {marker_id} of {family}", location="fiducials", valid=f"0 to {count - 1}")
    return np.asarray(opencv().aruco.generateImageMarker(marker_dictionary, marker_id, pixels))


def detect_fiducials(
    image: U8, family: str, camera_model: CameraModel | None = None, size: float = 0.0
) -> list[Fiducial]:
    """Detect markers of a family, sorted by number; with poses if the camera model and their size are known.

    Args:
        image: (h, w, 3) in RGB, or (h, w).
        family: One of `fiducial_families`.
        camera_model: Camera model of the image: a pinhole with or without distortion.
        size: Edge length of the markers [m]; 0: unknown.

    Raises:
        InputError: The family is unknown, the camera model is a fisheye, the size is negative, or the image has another
            type or shape.
    """
    if not (math.isfinite(size) and size >= 0.0):
        raise InputError(f"size {size:g} m", location="fiducials", valid="0 (not known) or more")
    if camera_model is not None and camera_model.model != "plumb_bob":
        raise InputError(f"camera model {camera_model.model}", location="fiducials", valid="plumb_bob")
    cv2 = opencv()
    gray = to_gray(image)
    corners, marker_ids, _ = cv2.aruco.ArucoDetector(aruco_dictionary(family)).detectMarkers(gray)
    # OpenCV's own refinements are disturbed by small cells of a marker (corner by corner), or are biased by half a
    # pixel off (AprilTag's).
    inverted = cv2.bitwise_not(cv2.GaussianBlur(gray, (3, 3), 0.5))
    fiducials = []
    for points, marker_id in zip(corners, [] if marker_ids is None else np.ravel(marker_ids), strict=True):
        refined = refine_quad_corners(inverted, np.asarray(points, dtype=np.float64).reshape(4, 2))
        fiducial = Fiducial(family, int(marker_id), refined, _intersect_diagonals(refined, camera_model))
        fiducials.append(
            fiducial if camera_model is None or size == 0.0 else _estimate_pose(fiducial, camera_model, size)
        )
    return sorted(fiducials, key=lambda one: (one.id, *one.center.tolist()))


def _intersect_diagonals(corners: Array, camera_model: CameraModel | None) -> Array:
    """Intersect the diagonals, in undistorted coordinates: distortion bends straight lines."""
    is_distorted = camera_model is not None and not camera_model.is_undistorted
    points = corners
    if camera_model is not None and is_distorted:
        rays = camera_model.rays(corners)
        points = rays[:, :2] / rays[:, 2:]
    (a, b, c, d) = points
    first_diagonal, second_diagonal = c - a, d - b
    cross = first_diagonal[0] * second_diagonal[1] - first_diagonal[1] * second_diagonal[0]
    offset = b - a
    center = a + (offset[0] * second_diagonal[1] - offset[1] * second_diagonal[0]) / cross * first_diagonal
    return (
        camera_model.project(np.array([*center, 1.0]))
        if camera_model is not None and is_distorted
        else np.asarray(center)
    )


def _estimate_pose(fiducial: Fiducial, camera_model: CameraModel, size: float) -> Fiducial:
    cv2 = opencv()
    half = 0.5 * size
    object_points = np.array([[-half, half, 0.0], [half, half, 0.0], [half, -half, 0.0], [-half, -half, 0.0]])
    distortion = np.array(camera_model.distortion)
    _, rotations, translations, errors = cv2.solvePnPGeneric(
        object_points,
        fiducial.corners.reshape(4, 1, 2),
        camera_model.matrix,
        distortion,
        flags=cv2.SOLVEPNP_IPPE_SQUARE,
    )
    valid = [
        k for k, rotation in enumerate(rotations) if np.isfinite(rotation).all() and np.isfinite(translations[k]).all()
    ]
    if not valid:  # exactly frontal view: the closed form divides by zero, and there is one pose only
        _, rotations, translations, errors = cv2.solvePnPGeneric(
            object_points, fiducial.corners.reshape(4, 1, 2), camera_model.matrix, distortion, flags=cv2.SOLVEPNP_SQPNP
        )
        valid = list(range(len(rotations)))[:1]
        if not valid:
            return fiducial
    poses = [SE3.from_rotation_matrix(cv2.Rodrigues(rotations[k])[0], np.ravel(translations[k])) for k in valid]
    valid_errors = np.ravel(errors).astype(float)[valid]
    order = np.argsort(valid_errors, kind="stable")
    best, error = poses[order[0]], float(valid_errors[order[0]])
    alternative, alternative_error = (
        (poses[order[1]], float(valid_errors[order[1]])) if len(order) > 1 else (None, math.inf)
    )
    covariance = _pose_covariance(best, object_points, camera_model, max(error, _MIN_CORNER_STD))
    ambiguity = max(error, 1e-3) / max(alternative_error, 1e-3) if math.isfinite(alternative_error) else 0.0
    return Fiducial(
        fiducial.family,
        fiducial.id,
        fiducial.corners,
        fiducial.center,
        size,
        best,
        alternative,
        error,
        min(ambiguity, 1.0),
        covariance,
    )


def _pose_covariance(T: SE3, object_points: Array, camera_model: CameraModel, sigma: float) -> Array:
    """Covariance of a pose, to first order, for corners with standard deviation ``sigma`` [px] along each axis."""
    J = np.empty((8, 6))
    delta = 1e-6
    for k in range(6):
        twist = np.zeros(6)
        twist[k] = delta
        forward, backward = (camera_model.project((T @ SE3.exp(sign * twist)) @ object_points) for sign in (1.0, -1.0))
        J[:, k] = (forward - backward).ravel() / (2.0 * delta)
    return np.asarray(sigma**2 * np.linalg.pinv(J.T @ J))


_SAMPLES_PER_SIDE = 16
_END_MARGIN = 0.12
"""Fraction of a side that is left out at each end, where the adjacent side blurs it."""
_SEARCH_RANGE = 1.6
"""Smallest distance from the first estimate within which edges are searched [px]; a twentieth of a long side."""
_MAX_LINE_DISTANCE = 0.5


def refine_quad_corners(image: U8, corners: Array) -> Array:
    """Refine the corners (4, 2) of a square that is light in ``image`` [px]; a side without a clear edge: as given.

    Args:
        image: (h, w), inverted for dark squares.
        corners: (4, 2) within a pixel or two, in their order around the square in either direction.
    """
    center = corners.mean(axis=0)
    lines = []
    for k in range(4):
        line = _fit_side_line(image, corners[k], corners[(k + 1) % 4], center)
        if line is None:
            return corners
        lines.append(line)
    refined = np.empty((4, 2))
    for k in range(4):
        # corner k lies on the side that ends there and on the one that begins there
        refined[k] = np.linalg.solve(
            np.array([lines[k - 1][:2], lines[k][:2]]), -np.array([lines[k - 1][2], lines[k][2]])
        )
    is_close = np.abs(refined - corners).max() < 3.0
    return refined if is_close else corners


def _fit_side_line(image: U8, start: Array, end: Array, center: Array) -> Array | None:
    """Fit a line (3,), a x + b y + c = 0 with a normal of length 1, through the edge points of a side."""
    side = end - start
    length = float(np.linalg.norm(side))
    normal = np.array([side[1], -side[0]]) / length
    if normal @ (center - start) > 0.0:
        normal = -normal
    search_range = max(_SEARCH_RANGE, 0.05 * length)
    search = EdgeSearch(-search_range, search_range, 0.25, 1.0)
    samples, points = np.zeros(200), []
    for fraction in np.linspace(_END_MARGIN, 1.0 - _END_MARGIN, _SAMPLES_PER_SIDE):
        x, y = (float(value) for value in start + fraction * side)
        ray = EdgeRay(x, y, float(normal[0]), float(normal[1]))
        position, gradient = find_falling_edge(image, ray, search, samples)
        if gradient > 1.0:
            points.append([x + position * normal[0], y + position * normal[1]])
    if len(points) < _SAMPLES_PER_SIDE // 2:
        return None
    inliers = np.array(points)
    for _ in range(3):
        centroid = inliers.mean(axis=0)
        direction = np.linalg.svd(inliers - centroid)[2][0]
        line_normal = np.array([-direction[1], direction[0]])
        distances = np.abs((inliers - centroid) @ line_normal)
        if distances.max() <= _MAX_LINE_DISTANCE or len(inliers) < 6:
            break
        inliers = inliers[distances <= max(_MAX_LINE_DISTANCE, float(np.median(distances)))]
    return np.array([*line_normal, -float(line_normal @ centroid)])
