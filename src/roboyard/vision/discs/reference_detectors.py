"""Reference detectors to compare with: OpenCV's Hough circles, MATLAB's imfindcircles and a thesis's detector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import F32, I64, U8, Array
from roboyard.vision.discs.annotation import RED, draw_text
from roboyard.vision.discs.disc_detector import Disc, DiscConfig
from roboyard.vision.opencv import opencv, to_gray

_CANNY_THRESHOLD = 100.0
"""Upper threshold of Canny's edge detector."""
_TYPICAL_PERIMETER = 2.0 * math.pi * 12.0
"""Perimeter of a circle in the middle of the thesis's range, 6 to 18 px: the largest number of votes [px]."""


def detect_circles_hough(image: U8, config: DiscConfig) -> NDArray[np.float64]:
    """Detect circles: columns, rows, radii (n, 3) [px], the most votes first; of any polarity, with or without mark.

    Args:
        image: (h, w, 3) in RGB, or (h, w).
        config: Radii and sensitivity: the fraction of a circle's edge that may be missing.
    """
    cv2, gray = opencv(), to_gray(image)
    min_votes = max(4.0, (1.0 - config.sensitivity) * _TYPICAL_PERIMETER)
    circles = cv2.HoughCircles(
        gray, cv2.HOUGH_GRADIENT, dp=1.0, minDist=config.radius_min, param1=_CANNY_THRESHOLD, param2=min_votes,
        minRadius=math.floor(config.radius_min), maxRadius=math.ceil(config.radius_max),
    )  # fmt: skip
    return np.zeros((0, 3)) if circles is None else np.asarray(circles, dtype=np.float64).reshape(-1, 3)


def detect_discs_hough(image: U8, config: DiscConfig) -> list[Disc]:
    """Detect circles of the right polarity with a mark, by gray levels in the center, in the ring and outside."""
    gray = to_gray(image)
    sign = 1.0 if config.polarity == "white" else -1.0
    discs = []
    for x, y, radius in detect_circles_hough(image, config):
        angles = np.linspace(0.0, 2.0 * math.pi, 32, endpoint=False)
        levels = []
        for fraction in (0.0, 0.75, 1.3):
            columns = np.clip(np.round(x + fraction * radius * np.cos(angles)).astype(int), 0, gray.shape[1] - 1)
            rows = np.clip(np.round(y + fraction * radius * np.sin(angles)).astype(int), 0, gray.shape[0] - 1)
            levels.append(float(np.mean(gray[rows, columns])))
        center_level, ring_level, outside_level = levels
        contrast, mark = sign * (ring_level - outside_level), sign * (ring_level - center_level)
        if contrast <= 0.0 or (config.require_mark and mark < config.mark_contrast * max(center_level, ring_level)):
            continue
        outline_points = np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)
        center, axes = np.array([x, y]), (float(radius), float(radius))
        discs.append(
            Disc(config.polarity, center, axes, 0.0, 1.0, 0.0, contrast, mark, np.zeros(2), 0.0, outline_points)
        )
    return discs


_RADIUS_STEP = 0.5
"""Step between the radii of the votes [px]."""
_RADIUS_MARGIN = 1.0
"""Margin around the range of radii [px]: edges are several pixels wide, and both of their sides vote."""
_MIN_PEAK_HEIGHT = 1e-6
"""Smallest fraction of a circle's votes that makes a peak."""


def imfindcircles(gray: U8, config: DiscConfig) -> Array:
    """Detect circles as MATLAB's function of this name: columns, rows, radii (n, 3) [px], the most votes first.

    Every edge votes for the centers that its gradient points at, at all radii of a range. Centers are votes, as
    fractions of a complete circle's, with enough prominence; the radius is where the mean gradient is largest
    (MathWorks's description of the function; T. J. Atherton, D. J. Kerbyson, Image and Vision Computing 17, 1999;
    H. K. Yuen and others, Image and Vision Computing 8, 1990).

    Args:
        gray: (h, w).
        config: Polarity, radii, and sensitivity: the fraction of a circle's votes that may be missing.
    """
    cv2 = opencv()
    down, across = (
        cv2.Sobel(gray, cv2.CV_32F, dx, dy, ksize=3, borderType=cv2.BORDER_REPLICATE) for dx, dy in ((0, 1), (1, 0))
    )
    gradient = cv2.magnitude(across, down)
    votes = _circle_votes(gradient, across, down, config)
    centers = _find_peaks(votes, 1.0 - config.sensitivity)
    rows = [(x, y, _estimate_radius(gradient, x, y, config)) for x, y in centers]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _circle_votes(gradient: F32, across: F32, down: F32, config: DiscConfig) -> F32:
    """Votes (h, w) for each pixel as a center: 1 where the edge of a complete circle votes for it."""
    height, width = gradient.shape
    rows, columns = np.nonzero(gradient > _otsu_threshold(gradient))
    inward = 1.0 if config.polarity == "white" else -1.0
    length = gradient[rows, columns]
    u, v = inward * across[rows, columns] / length, inward * down[rows, columns] / length
    radii = np.arange(
        config.radius_min - _RADIUS_MARGIN,
        config.radius_max + _RADIUS_MARGIN + 0.5 * _RADIUS_STEP,
        _RADIUS_STEP,
        dtype=np.float32,
    )
    x = np.rint(columns[:, None] + u[:, None] * radii).astype(np.intp)
    y = np.rint(rows[:, None] + v[:, None] * radii).astype(np.intp)
    vote_weights = np.broadcast_to(1.0 / (2.0 * math.pi * radii), x.shape)
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    vote_sums = np.bincount((y * width + x)[inside], weights=vote_weights[inside], minlength=height * width)
    return vote_sums.reshape(height, width).astype(np.float32)


def _otsu_threshold(gradient: F32) -> float:
    """Threshold that separates weak from strong gradients best (N. Otsu, IEEE SMC 9, 1979), in 256 levels."""
    top = float(gradient.max())
    if top <= 0.0:
        return 0.0
    levels = opencv().convertScaleAbs(gradient, alpha=255.0 / top)
    level, _ = opencv().threshold(levels, 0, 255, opencv().THRESH_OTSU)
    return float(level) / 255.0 * top


def _find_peaks(votes: F32, min_height: float) -> list[tuple[float, float]]:
    """Columns and rows of peaks that reach ``min_height`` and have that prominence, the highest first."""
    smooth = opencv().medianBlur(votes, 5).ravel()
    positive = np.flatnonzero(smooth > 0.0)
    order = positive[np.argsort(-smooth[positive], kind="stable")]
    peaks = _prominent_peaks(smooth, votes.ravel(), order, votes.shape[1], max(min_height, _MIN_PEAK_HEIGHT))
    return [(float(x), float(y)) for _, x, y in peaks[np.argsort(-peaks[:, 0], kind="stable")]]


def _peak_examples() -> list[tuple[object, ...]]:
    flat = np.zeros(12, dtype=np.float32)
    return [(flat, flat, np.zeros(0, dtype=np.int64), 4, 0.3)]


@kernel(examples=_peak_examples, error_model="numpy")
def _prominent_peaks(smooth: F32, votes: F32, order: I64, width: int, min_prominence: float) -> Array:
    """Return height, column and row (n, 3) of each peak whose prominence is at least ``min_prominence``.

    Pixels are visited in decreasing ``order``, and each joins the peaks of its neighbors. Where two peaks meet, the
    lower one is discarded unless it is prominent. The position of a peak is the centroid of the votes down to
    ``min_prominence`` below it.
    """
    size = smooth.size
    parent = np.full(size, -1, dtype=np.int64)
    top = np.zeros(size)
    sums = np.zeros((size, 3))
    peaks = np.zeros((order.size, 3))
    count = 0
    for p in order:
        level = float(smooth[p])
        row, column = p // width, p % width
        parent[p], top[p] = p, level
        sums[p, 0], sums[p, 1], sums[p, 2] = votes[p], votes[p] * column, votes[p] * row
        for step in range(9):
            y, x = row + step // 3 - 1, column + step % 3 - 1
            q = y * width + x
            if x < 0 or x >= width or q < 0 or q >= size or parent[q] < 0:
                continue
            while parent[q] != q:
                parent[q] = parent[parent[q]]
                q = parent[q]
            root = p
            while parent[root] != root:
                root = parent[root]
            if q == root:
                continue
            high, low = (q, root) if top[q] >= top[root] else (root, q)
            if top[low] - level >= min_prominence and sums[low, 0] > 0.0:
                peaks[count] = top[low], sums[low, 1] / sums[low, 0], sums[low, 2] / sums[low, 0]
                count += 1
            elif top[high] - level <= min_prominence:
                sums[high] += sums[low]
            parent[low] = high
    for p in order:
        if parent[p] == p and top[p] >= min_prominence and sums[p, 0] > 0.0:
            peaks[count] = top[p], sums[p, 1] / sums[p, 0], sums[p, 2] / sums[p, 0]
            count += 1
    return peaks[:count]


def _estimate_radius(gradient: F32, x: float, y: float, config: DiscConfig) -> float:
    """Radius at which the mean gradient over the circle is largest [px]."""
    low, high = math.floor(config.radius_min), math.ceil(config.radius_max)
    left, top = max(math.floor(x) - high, 0), max(math.floor(y) - high, 0)
    window = gradient[top : math.floor(y) + high + 2, left : math.floor(x) + high + 2]
    rows, columns = np.indices(window.shape)
    distances = np.rint(np.hypot(columns + left - x, rows + top - y)).astype(np.intp)
    sums = np.bincount(distances.ravel(), weights=window.ravel(), minlength=high + 1)[: high + 1]
    radii = np.arange(low, high + 1)
    return float(radii[np.argmax(sums[low:] / (2.0 * math.pi * radii))])


_WHITE_BELOW, _BLACK_ABOVE = 200, 201  # gray level in the center of a white, of a black disc
_DEPTH_WINDOW, _PAIR_DEPTH_WINDOW, _PIXEL_STEP = 5, 3, 2  # [px] of depth that is averaged
_PAIR_DISTANCE_OFFSET = 2.0  # [mm] that the thesis's code adds to the distance of a pair


@dataclass(frozen=True)
class ThesisCamera:
    """The thesis's conversion of pixels to positions in its arm frame; the numbers hold for its own camera and mount.

    Positions are in the thesis's arm frame: x to the right, y forward of the axis of its first joint, z up from the
    ground.

    Attributes:
        focal: Focal length that converts pixels to millimeters [px].
        origin_mm: Position x, y of the camera in the arm's frame, and its height [mm].
        depth_pixel_map: a, b, c, d of the depth pixel u' = u + a u + b, v' = v + c v + d of a pixel u, v [px]; the
            thesis writes 0.1 (u - 130) and 0.1 (v - 60).
    """

    focal: float = 530.0
    origin_mm: tuple[float, float, float] = (-12.0, 95.0, 564.0)
    depth_pixel_map: tuple[float, float, float, float] = (0.1, -13.0, 0.1, -6.0)

    def __post_init__(self) -> None:
        if not (
            math.isfinite(self.focal)
            and self.focal > 0.0
            and np.isfinite([*self.origin_mm, *self.depth_pixel_map]).all()
        ):
            raise InputError(
                "the numbers of the camera are not finite, or its focal length is not positive",
                location="the thesis's camera",
                valid="focal > 0",
            )

    def depth_pixel(self, x: float, y: float) -> tuple[int, int]:
        """Return the column and row in the depth image for a pixel of the color image [px]."""
        a, b, c, d = self.depth_pixel_map
        return round(x + a * x + b), round(y + c * y + d)

    def locate_pixel(self, x: float, y: float, z: float) -> Array:
        """Return the position (3,) in the arm's frame [mm] of a pixel at a distance [mm]."""
        scale = z / self.focal
        return np.array(
            [self.origin_mm[0] - (320.0 - x) * scale, self.origin_mm[1] + (240.0 - y) * scale, self.origin_mm[2] - z]
        )


THESIS_CAMERA: Final = ThesisCamera()


@dataclass(frozen=True, eq=False)
class ThesisDisc:
    """A disc, or the midpoint of a pair, as the thesis measures it.

    Attributes:
        pixel: (2,) [px].
        radius: [px].
        position: (3,) in its arm frame [m].
        diameter: [m].
        distance: Of a pair, with the code's 2 mm [m]; 0 of a single disc.
    """

    pixel: Array
    radius: float
    position: Array
    diameter: float
    distance: float = 0.0


def detect_discs_thesis(
    image: U8, depth: F32, config: DiscConfig, camera: ThesisCamera = THESIS_CAMERA
) -> list[ThesisDisc]:
    """Detect discs, or midpoints of pairs, according to ``config.mode``, as a bachelor's thesis did.

    The method (Westfälische Hochschule 2017): circles by `imfindcircles` at a fixed scale, a mark by its gray level,
    depth at pixels shifted by a fixed rule, millimeters by one focal length.

    Args:
        image: (480, 640, 3) in RGB.
        depth: (480, 640) depth in the depth camera's pixels, not registered [m].
        config: Polarity, mode, diameter, pair distance, their tolerances, sensitivity, radii.
        camera: Conversion of pixels to the arm frame.

    Raises:
        InputError: The images have another size, for which the constants do not hold.
    """
    if image.shape[:2] != (480, 640) or depth.shape != (480, 640):
        raise InputError(
            f"images of {image.shape[:2]} and {depth.shape} for the thesis's method", valid="480 rows, 640 columns"
        )
    gray = to_gray(image)
    discs = []
    for x, y, radius in imfindcircles(gray, config):
        center_level = int(gray[min(round(y), 479), min(round(x), 639)])
        if not (center_level < _WHITE_BELOW if config.polarity == "white" else center_level > _BLACK_ABOVE):
            continue
        column, row = camera.depth_pixel(x, y)
        if not (_DEPTH_WINDOW < column < 640 - _DEPTH_WINDOW and _DEPTH_WINDOW < row < 480 - _DEPTH_WINDOW):
            continue
        z = _mean_depth(depth, column, row, _DEPTH_WINDOW)
        radius_mm = round(radius * z / camera.focal, 2)
        if not abs(2.0 * radius_mm - 1e3 * config.diameter) < 1e3 * config.diameter_tolerance:
            continue
        discs.append(ThesisDisc(np.array([x, y]), radius, 1e-3 * camera.locate_pixel(x, y, z), 2e-3 * radius_mm))
    return discs if config.mode == "single" else _find_pairs(discs, depth, config, camera)


def _mean_depth(depth: F32, column: int, row: int, window: int) -> float:
    """Mean depth of every second pixel in a window [mm]; NaN if none is valid."""
    window_depth = depth[
        row - window : row + window + 1 : _PIXEL_STEP, column - window : column + window + 1 : _PIXEL_STEP
    ]
    valid = window_depth[np.isfinite(window_depth)]
    return 1e3 * float(valid.mean(dtype=np.float64)) if valid.size else math.nan


def _find_pairs(discs: list[ThesisDisc], depth: F32, config: DiscConfig, camera: ThesisCamera) -> list[ThesisDisc]:
    pairs = []
    for one, two in combinations(discs, 2):
        distance = float(np.hypot(*(one.position - two.position)[:2])) + 1e-3 * _PAIR_DISTANCE_OFFSET
        if not abs(distance - config.pair_distance) < config.pair_distance_tolerance:
            continue
        pair = replace(
            one, pixel=0.5 * (one.pixel + two.pixel), radius=0.5 * (one.radius + two.radius), distance=distance,
            position=0.5 * (one.position + two.position), diameter=0.5 * (one.diameter + two.diameter),
        )  # fmt: skip
        column, row = (
            round(0.5 * (a + b))
            for a, b in zip(camera.depth_pixel(*one.pixel), camera.depth_pixel(*two.pixel), strict=True)
        )
        pair.position[2] = 1e-3 * (camera.origin_mm[2] - _mean_depth(depth, column, row, _PAIR_DEPTH_WINDOW))
        pairs.append(pair)
    return pairs


def draw_thesis_discs(image: U8, discs: Sequence[ThesisDisc]) -> U8:
    """Return a copy (h, w, 3) with red circles, diameters and pair distances in mm, as the thesis's program."""
    out = image.copy() if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    for one in discs:
        x, y = (round(float(value)) for value in one.pixel)
        opencv().circle(out, (x, y), round(one.radius), RED, 1, opencv().LINE_AA)
        distance_text = f" {1e3 * one.distance:.1f}" if one.distance else ""
        draw_text(out, f"{1e3 * one.diameter:.1f}{distance_text}", (x + 10, y + 4), 0.4, RED)
    return out
