"""Detection of marked discs: candidates by radial symmetry, ellipses with subpixel accuracy, rejection scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.discs.ellipse import RAYS, fit_rough_ellipse, refine_ellipse, sample_bilinear
from roboyard.vision.discs.radial_symmetry import vote_radial_symmetry
from roboyard.vision.opencv import check_image, opencv

DiscPolarity = Literal["white", "black"]
DiscMode = Literal["single", "pair"]
POLARITIES: tuple[DiscPolarity, ...] = ("white", "black")
MODES: tuple[DiscMode, ...] = ("single", "pair")


class DiscConfig(Config):
    """Properties of the discs to be detected."""

    polarity: DiscPolarity = parameter(
        "white",
        choices=POLARITIES,
        doc="Brightness of the discs: white ones have a dark mark in their center, black ones a light mark.",
    )
    mode: DiscMode = parameter(
        "single", choices=MODES, doc="Single discs, or the midpoints of pairs of discs at a given distance."
    )
    diameter: float = parameter(0.020, unit="m", low=1e-4, high=10.0, doc="Diameter of the real disc.")
    diameter_tolerance: float = parameter(
        0.003, unit="m", low=0.0, high=10.0, doc="Largest error of the diameter, if depth is available."
    )
    pair_distance: float = parameter(
        0.052, unit="m", low=1e-4, high=10.0, doc="Distance between the centers of a pair."
    )
    pair_distance_tolerance: float = parameter(
        0.003, unit="m", low=0.0, high=10.0, doc="Largest error of that distance."
    )
    sensitivity: float = parameter(
        0.7,
        low=0.0,
        high=1.0,
        doc="Sensitivity of the detection, from 0 (only clear discs) to 1 (everything similar to a disc).",
    )
    require_mark: bool = parameter(True, doc="Require the mark in the center.")
    mark_contrast: float = parameter(
        0.08,
        low=0.0,
        high=1.0,
        doc="Smallest difference of mark and disc, as a fraction of the gray level of the lighter one.",
    )
    radius_min: float = parameter(
        6.0, low=3.0, high=500.0, doc="Smallest semi-major axis of a disc's ellipse in the image [px]."
    )
    radius_max: float = parameter(
        18.0, low=3.0, high=500.0, doc="Largest semi-major axis of a disc's ellipse in the image [px]."
    )
    tilt_max: float = parameter(
        math.radians(50.0),
        unit="rad",
        low=0.0,
        high=math.radians(75.0),
        doc="Largest angle between the disc's normal and the ray to the camera.",
    )

    def validate(self) -> None:
        """Check the order of the radii."""
        if self.radius_max < self.radius_min:
            raise ConfigError(f"radius_max = {self.radius_max:g} px", valid=f"radius_min or more, {self.radius_min:g}")


(
    EDGE_CONTRAST,
    RING_STD,
    MARK_CONTRAST,
    MARK_OFFSET_X,
    MARK_OFFSET_Y,
    MARK_SIZE,
    LIGHTER_FRACTION,
    OUTER_MARK_FRACTION,
    MARK_ASPECT_RATIO,
    RING_LEVEL,
) = range(10)
N_INTERIOR_FIELDS = 10
"""Number of values that `measure_interior` writes; the constants above are their indices."""
_RING_RANGE = 0.62, 0.86


_QUICK_SAMPLES = 12


def _quick_contrast_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), np.zeros(5), np.zeros(2))]


@kernel(examples=_quick_contrast_examples, error_model="numpy")
def measure_quick_contrast(image: U8, ellipse: Array, levels: Array) -> None:
    """Sample the level of an ellipse's ring and the lowest level near its center, a bound on the contrast of a mark.

    Args:
        image: Light where discs are.
        ellipse: (5,) center, semi-axes, angle.
        levels: (2,) written.
    """
    c, s = math.cos(ellipse[4]), math.sin(ellipse[4])
    total = 0.0
    for k in range(_QUICK_SAMPLES):
        sample_angle = 2.0 * math.pi * k / _QUICK_SAMPLES
        u, v = 0.72 * ellipse[2] * math.cos(sample_angle), 0.72 * ellipse[3] * math.sin(sample_angle)
        total += sample_bilinear(image, ellipse[0] + c * u - s * v, ellipse[1] + s * u + c * v)
    levels[0], levels[1] = total / _QUICK_SAMPLES, 255.0
    for j in range(-1, 2):
        for i in range(-1, 2):
            levels[1] = min(levels[1], sample_bilinear(image, ellipse[0] + i, ellipse[1] + j))


def _interior_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), np.zeros(5), np.zeros(RAYS), np.zeros(N_INTERIOR_FIELDS))]


@kernel(examples=_interior_examples, error_model="numpy")
def measure_interior(image: U8, ellipse: Array, weights: Array, interior: Array) -> None:
    """Measure the ring, the mark and the contrast of a disc.

    Args:
        image: Light where discs are.
        ellipse: (5,) center, semi-axes, angle.
        weights: (RAYS,) 0 where the outline has no edge: something may cover the ring there.
        interior: (N_INTERIOR_FIELDS,) written: contrast at the outline; contrast of the ring, as a standard deviation;
            contrast of the center to the ring; offset of the mark's centroid from the center [px], two numbers; size of
            the mark, as a fraction of the disc's; fraction of the visible outline at which the inside is lighter;
            weight of the mark near the ring, as a fraction; aspect ratio of the mark, its extent along the minor axis
            over that along the major axis; level of the ring.
    """
    x0, y0, a, b, angle = ellipse[0], ellipse[1], ellipse[2], ellipse[3], ellipse[4]
    c, s = math.cos(angle), math.sin(angle)
    height, width = image.shape
    left, right = max(int(x0 - a), 0), min(int(x0 + a) + 1, width - 1)
    top, bottom = max(int(y0 - a), 0), min(int(y0 + a) + 1, height - 1)
    ring_end = min(_RING_RANGE[1], 1.0 - 1.3 / b)
    ring_start = min(_RING_RANGE[0], ring_end - 0.15)
    ring_total, ring_squares, ring_count = 0.0, 0.0, 0
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            px, py = column - x0, row - y0
            u, v = (c * px + s * py) / a, (c * py - s * px) / b
            squared_radius = u * u + v * v
            if ring_start * ring_start <= squared_radius <= ring_end * ring_end:
                ray = int(math.atan2(v, u) * RAYS / (2.0 * math.pi) + RAYS + 0.5) % RAYS
                if not weights[ray] > 0.0:
                    continue
                value = float(image[row, column])
                ring_total += value
                ring_squares += value * value
                ring_count += 1
    if ring_count == 0:
        interior[:] = 0.0
        return
    ring_level = ring_total / ring_count
    ring_std = math.sqrt(max(ring_squares / ring_count - ring_level * ring_level, 0.0))
    weight, wx, wy, peak, outer_weight, muu, mvv = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    center_total, center_count = 0.0, 0
    center_radius = max(1.0, 0.12 * a)
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            px, py = column - x0, row - y0
            squared_radius = ((c * px + s * py) / a) ** 2 + ((c * py - s * px) / b) ** 2
            if squared_radius < ring_start * ring_start:
                w = ring_level - float(image[row, column])
                if px * px + py * py <= center_radius * center_radius:
                    center_total += w
                    center_count += 1
                w = max(w - 2.0 * ring_std, 0.0)
                weight += w
                wx += w * px
                wy += w * py
                peak = max(peak, w)
                muu += w * (c * px + s * py) ** 2
                mvv += w * (c * py - s * px) ** 2
                if squared_radius > (0.8 * ring_start) ** 2:
                    outer_weight += w
    interior[MARK_CONTRAST] = center_total / center_count if center_count > 0 else 0.0
    interior[MARK_OFFSET_X] = wx / weight if weight > 0.0 else 0.0
    interior[MARK_OFFSET_Y] = wy / weight if weight > 0.0 else 0.0
    interior[MARK_SIZE] = math.sqrt(weight / (peak * math.pi * a * b)) if peak > 0.0 else 0.0
    interior[OUTER_MARK_FRACTION] = outer_weight / weight if weight > 0.0 else 0.0
    interior[MARK_ASPECT_RATIO] = math.sqrt(mvv / muu) if muu > 0.0 else 0.0
    interior[RING_LEVEL] = ring_level
    contrasts, n_lighter, n_visible = np.empty(RAYS), 0, 0
    for k in range(RAYS):
        ray_angle = 2.0 * math.pi * k / RAYS
        u, v = math.cos(ray_angle), math.sin(ray_angle)
        inside_scale = max(1.0 - 2.0 / b, 0.5)
        outside_scale = 1.0 + 2.0 / b
        dx, dy = c * a * u - s * b * v, s * a * u + c * b * v
        contrast = sample_bilinear(image, x0 + inside_scale * dx, y0 + inside_scale * dy) - sample_bilinear(
            image, x0 + outside_scale * dx, y0 + outside_scale * dy
        )
        if weights[k] > 0.0:
            contrasts[n_visible] = contrast
            n_lighter += contrast > 0.0
            n_visible += 1
    interior[EDGE_CONTRAST] = np.median(contrasts[:n_visible])
    interior[RING_STD] = ring_std
    interior[LIGHTER_FRACTION] = n_lighter / n_visible


_MIN_EDGE_SUPPORT, _MIN_LIGHTER_FRACTION = 0.6, 0.9
_MARK_SIZE_RANGE = 0.10, 0.60
REJECTED = math.inf


class DiscLimits(NamedTuple):
    """Limits that a disc must satisfy.

    Attributes:
        radius_min: Smallest semi-major axis [px].
        radius_max: Largest semi-major axis [px].
        min_axis_ratio: Smallest ratio of semi-minor to semi-major axis.
        min_gradient: Smallest gradient of an edge [gray levels per pixel].
        min_contrast: Smallest contrast to the surroundings [gray levels].
        max_rejection: Largest rejection score.
        requires_mark: Whether a mark is required.
        min_mark_contrast: Smallest contrast of the mark, as a fraction of the lighter gray level.
        is_inverted: Whether the image was inverted, so that black discs are light.
        noise: Standard deviation of a pixel [gray levels].
    """

    radius_min: float
    radius_max: float
    min_axis_ratio: float
    min_gradient: float
    min_contrast: float
    max_rejection: float
    requires_mark: bool
    min_mark_contrast: float
    is_inverted: bool
    noise: float


def example_disc_limits() -> DiscLimits:
    """Return limits for the examples of kernels."""
    return DiscLimits(6.0, 18.0, 0.7, 1.0, 5.0, 1.0, True, 0.3, False, 1.0)


def _rejection_examples() -> list[tuple[object, ...]]:
    return [(np.zeros(5), np.zeros(3), np.zeros(N_INTERIOR_FIELDS), example_disc_limits())]


@kernel(examples=_rejection_examples, error_model="numpy")
def compute_rejection_score(ellipse: Array, fit: Array, interior: Array, limits: DiscLimits) -> float:
    """Compute the root of the sum of squared deviations from a marked disc; infinite beyond a limit.

    Other objects, such as the hole of a letter, a bolt or a bottle cap, deviate a little in several properties; a
    partly hidden or blurred disc deviates much in one. Therefore squared deviations are added, in units at which a
    single one would be accepted. The units were measured with images of `roboyard.vision.synthetic`.

    Args:
        ellipse: (5,) center, semi-axes, angle.
        fit: (3,) as `refine_ellipse` writes it.
        interior: (N_INTERIOR_FIELDS,) as `measure_interior` writes it.
        limits: Limits of a disc.
    """
    a, b, noise = ellipse[2], ellipse[3], limits.noise
    if not (limits.radius_min <= a <= limits.radius_max and b >= limits.min_axis_ratio * a):
        return REJECTED
    if (
        fit[0] < _MIN_EDGE_SUPPORT
        or interior[EDGE_CONTRAST] < limits.min_contrast
        or interior[LIGHTER_FRACTION] < _MIN_LIGHTER_FRACTION
    ):
        return REJECTED
    contrast = (
        max(interior[EDGE_CONTRAST], interior[MARK_CONTRAST]) if limits.requires_mark else interior[EDGE_CONTRAST]
    )
    # Width of the blur, from contrast and gradient; blur weakens small marks and makes the ring uneven.
    blur = interior[EDGE_CONTRAST] / (math.sqrt(2.0 * math.pi) * fit[2])
    # A mark with the gray level of the surroundings may be a hole; a hole has no third gray level.
    hole_similarity = (
        max(0.0, 1.0 - abs(interior[MARK_CONTRAST] / interior[EDGE_CONTRAST] - 1.0) / 0.4)
        if limits.requires_mark
        else 0.5
    )
    total = ((1.0 - fit[0]) / (0.29 - 0.11 * hole_similarity)) ** 2
    total += (max(0.0, fit[1] / (0.17 + 0.6 * noise / fit[2]) - 0.5) / 0.5) ** 2
    total += (interior[RING_STD] / ((0.07 + 0.25 * blur / b) * contrast + noise)) ** 2
    if limits.requires_mark:
        # Disc and mark are equally illuminated: the ratio of their levels does not depend on the illumination.
        lighter_level = (
            255.0 - interior[RING_LEVEL] + interior[MARK_CONTRAST] if limits.is_inverted else interior[RING_LEVEL]
        )
        mark_ratio = interior[MARK_CONTRAST] / max(lighter_level, 1.0)
        if mark_ratio < limits.min_mark_contrast or interior[MARK_CONTRAST] < 2.5 * noise:
            return REJECTED
        if not _MARK_SIZE_RANGE[0] <= interior[MARK_SIZE] <= _MARK_SIZE_RANGE[1]:
            return REJECTED
        blur_retention = 1.0 - math.exp(-0.5 * interior[MARK_SIZE] ** 2 * a * b / (blur * blur))
        total += (max(0.0, 0.5 - mark_ratio / max(blur_retention, 0.25)) / 0.3) ** 2
        total += (math.hypot(interior[MARK_OFFSET_X], interior[MARK_OFFSET_Y]) / (0.04 * a + 0.3)) ** 2
        total += (interior[OUTER_MARK_FRACTION] / (0.1 + 0.3 * blur / b)) ** 2
        mark_aspect_ratio = interior[MARK_ASPECT_RATIO]
        total += (max(0.0, 1.0 - mark_aspect_ratio * a / b) / 0.12) ** 2 + (
            max(0.0, mark_aspect_ratio - 1.03) / 0.08
        ) ** 2
        total += (hole_similarity * (0.7 + min(max(interior[MARK_SIZE] - 0.3, 0.0) / 0.1, 2.0))) ** 2
    return math.sqrt(total)


MAX_DISCS = 64
"""Largest number of discs in an image."""
DISC_RECORD_SIZE = 5 + 3 + N_INTERIOR_FIELDS + 1
"""Numbers of a disc: its ellipse, what `refine_ellipse` and what `measure_interior` write, and its rejection score."""
_MIN_ROUGH_SUPPORT = 0.45


def _validation_examples() -> list[tuple[object, ...]]:
    image = np.zeros((8, 8), np.uint8)
    return [
        (
            image,
            np.zeros((1, 2)),
            example_disc_limits(),
            np.zeros((MAX_DISCS, DISC_RECORD_SIZE)),
            np.zeros((MAX_DISCS, RAYS, 3)),
        )
    ]


@kernel(examples=_validation_examples, error_model="numpy")
def validate_candidates(image: U8, candidates: Array, limits: DiscLimits, records: Array, outlines: Array) -> int:
    """Validate candidates: write the records of the discs near them, each once, and return their number.

    Args:
        image: Image in which discs are light, slightly smoothed.
        candidates: (n, 2) positions near centers of discs [px].
        limits: Limits of a disc.
        records: (MAX_DISCS, DISC_RECORD_SIZE) written.
        outlines: (MAX_DISCS, RAYS, 3) edges and their weights, written.
    """
    ellipse, fit, interior = np.zeros(5), np.zeros(3), np.zeros(N_INTERIOR_FIELDS)
    points, weights = np.zeros((RAYS, 2)), np.zeros(RAYS)
    visited = np.zeros((len(candidates), 3))
    n_visited, count, levels = 0, 0, np.zeros(2)
    min_radius = limits.radius_min * limits.min_axis_ratio
    for index in range(len(candidates)):
        x, y = candidates[index, 0], candidates[index, 1]
        if (
            fit_rough_ellipse(image, x, y, min_radius, limits.radius_max, limits.min_gradient, ellipse)
            < _MIN_ROUGH_SUPPORT
        ):
            continue
        a, b = ellipse[2], ellipse[3]
        if a > 1.15 * limits.radius_max + 1.0 or a < 0.8 * limits.radius_min or b < 0.8 * limits.min_axis_ratio * a:
            continue
        if limits.requires_mark:
            measure_quick_contrast(image, ellipse, levels)
            contrast = levels[0] - levels[1]
            lighter = 255.0 - levels[1] if limits.is_inverted else levels[0]
            if contrast < max(1.5 * limits.noise, 0.7 * limits.min_mark_contrast * lighter):
                continue
        is_duplicate = False
        for k in range(n_visited):
            distance = math.hypot(visited[k, 0] - ellipse[0], visited[k, 1] - ellipse[1])
            is_duplicate = is_duplicate or (distance < 0.4 and abs(visited[k, 2] - a) < 0.4)
        if is_duplicate:
            continue
        visited[n_visited, 0], visited[n_visited, 1], visited[n_visited, 2] = ellipse[0], ellipse[1], a
        n_visited += 1
        if not refine_ellipse(image, limits.min_gradient, ellipse, points, weights, fit):
            continue
        measure_interior(image, ellipse, weights, interior)
        rejection_score = compute_rejection_score(ellipse, fit, interior, limits)
        if not rejection_score <= limits.max_rejection:
            continue
        slot = count
        for k in range(count):
            if math.hypot(records[k, 0] - ellipse[0], records[k, 1] - ellipse[1]) < 0.6 * max(
                ellipse[2], records[k, 2]
            ):
                slot = k
        if slot < count:  # of two overlapping discs the better one
            if rejection_score >= records[slot, DISC_RECORD_SIZE - 1]:
                continue
        elif count == MAX_DISCS:
            continue
        else:
            count += 1
        records[slot, :5], records[slot, 5:8], records[slot, 8:-1] = ellipse, fit, interior
        records[slot, -1] = rejection_score
        outlines[slot, :, :2], outlines[slot, :, 2] = points, weights
    return count


_MAX_CANDIDATES = 48
"""Number of candidates that are validated, for small and for large discs each."""
_RADIUS_TOLERANCE = 0.4
"""Tolerance of the bounds on radii: blur moves an outline by this length [px]."""
_MIN_GRADIENT, _MIN_GRADIENT_NOISE_RATIO = 2.5, 1.5
"""Smallest gradient of an edge that votes, per pixel of the half image: [gray levels], [std. deviations of noise]."""


@dataclass(frozen=True, eq=False)
class Disc:
    """A disc detected in an image.

    Attributes:
        polarity: White or black.
        center: Center of the ellipse (2,) [px]; the disc's own center has another projection: see `locate_disc`.
        axes: Semi-major and semi-minor axis [px].
        angle: Angle of the major axis, from the direction of columns to that of rows [rad].
        edge_support: Fraction of the outline that has an edge.
        residual: Root mean square distance of the edge points from the ellipse [px].
        contrast: Contrast to its surroundings [gray levels].
        mark_contrast: Contrast of the mark [gray levels].
        mark_offset: Offset of the mark's center from ``center`` (2,) [px].
        rejection_score: Deviation from a marked disc, 0 for none (`compute_rejection_score`).
        outline_points: Edge points of the ellipse (n, 2) [px].
    """

    polarity: DiscPolarity
    center: Array
    axes: tuple[float, float]
    angle: float
    edge_support: float
    residual: float
    contrast: float
    mark_contrast: float
    mark_offset: Array
    rejection_score: float
    outline_points: Array

    @property
    def radius(self) -> float:
        """Semi-major axis [px]."""
        return self.axes[0]

    @property
    def ellipse(self) -> Array:
        """Center, semi-axes and angle (5,)."""
        return np.array([*self.center, *self.axes, self.angle])


def extract_disc_channel(image: U8, polarity: DiscPolarity) -> U8:
    """Return a gray image (h, w) in which discs are light: the minimum of the channels, or the inverted maximum.

    Args:
        image: (h, w, 3) or (h, w) bytes.
        polarity: Polarity of the discs: white gives the minimum, black the inverted maximum.

    Raises:
        InputError: The image has another type or shape.
    """
    check_image(image)
    if min(image.shape[:2]) < 16:
        raise InputError(f"an image of {image.shape[1]} x {image.shape[0]} pixels", valid="16 x 16 at least")
    cv2 = opencv()
    if image.ndim == 2:
        return np.ascontiguousarray(image) if polarity == "white" else np.asarray(cv2.bitwise_not(image))
    first, second, third = cv2.split(image)
    if polarity == "white":
        return np.asarray(cv2.min(cv2.min(first, second), third))
    return np.asarray(cv2.bitwise_not(cv2.max(cv2.max(first, second), third)))


def estimate_noise(channel: U8) -> float:
    """Estimate the standard deviation of noise from the median difference of pixels two columns apart [gray levels]."""
    rows = channel[::7]
    differences = np.abs(rows[:, 2:].astype(np.int16) - rows[:, :-2])
    # The differences are whole numbers; the median is interpolated within its level.
    counts = np.bincount(differences.ravel(), minlength=256)[:256].cumsum()
    half = 0.5 * counts[-1]
    median_level = int(np.searchsorted(counts, half))
    below = float(counts[median_level - 1]) if median_level else 0.0
    median = median_level - 0.5 + (half - below) / max(float(counts[median_level]) - below, 1.0)
    return float(max(0.5, max(median, 0.0) / 0.954))


def detect_discs(image: U8, config: DiscConfig | None = None) -> list[Disc]:
    """Detect marked discs, sorted by rejection score; their distance need not be known.

    Candidates from radial symmetry votes (`vote_radial_symmetry`) are validated: edges along rays from there with
    subpixel accuracy, an ellipse through those that agree (`refine_ellipse`), a uniform ring and a mark in it
    (`measure_interior`).

    Args:
        image: (h, w, 3) or (h, w) bytes.
        config: Properties of the discs.

    Raises:
        InputError: The image has another type or shape.
    """
    config = config or DiscConfig()
    cv2 = opencv()
    channel = extract_disc_channel(image, config.polarity)
    noise = estimate_noise(channel)
    height, width = channel.shape
    half_image = cv2.resize(channel, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    candidates = _find_candidates(half_image, 0.5 * noise, config)
    smoothed = cv2.GaussianBlur(channel, (5, 5), 0.8)
    records, outlines = np.zeros((MAX_DISCS, DISC_RECORD_SIZE)), np.zeros((MAX_DISCS, RAYS, 3))
    count = validate_candidates(smoothed, candidates, _disc_limits(config, noise), records, outlines)
    order = np.argsort(records[:count, -1], kind="stable")
    return [_disc_from_record(records[k], outlines[k], config.polarity) for k in order]


def _find_candidates(half_image: U8, noise: float, config: DiscConfig) -> Array:
    min_radius, max_radius = 0.5 * config.radius_min * math.cos(config.tilt_max), 0.5 * config.radius_max + 0.5
    split_radius = math.sqrt(min_radius * max_radius)
    min_gradient = max(_MIN_GRADIENT, _MIN_GRADIENT_NOISE_RATIO * noise)
    radii = np.array([[min_radius, 1.15 * split_radius], [0.87 * split_radius, max_radius]])
    candidates, counts = np.zeros((2, _MAX_CANDIDATES, 3)), np.zeros(2, np.int64)
    vote_radial_symmetry(half_image, min_gradient, radii, candidates, counts)
    # pixel k of the half image covers pixels 2 k and 2 k + 1
    return 2.0 * np.concatenate([rows[:count, :2] for rows, count in zip(candidates, counts, strict=True)]) + 0.5


def _disc_limits(config: DiscConfig, noise: float) -> DiscLimits:
    return DiscLimits(
        radius_min=config.radius_min - _RADIUS_TOLERANCE,
        radius_max=config.radius_max + _RADIUS_TOLERANCE,
        min_axis_ratio=math.cos(config.tilt_max),
        min_gradient=max(1.0, 0.8 * noise),
        min_contrast=max(5.0, 2.5 * noise),
        max_rejection=0.05 + 1.5 * config.sensitivity,
        requires_mark=bool(config.require_mark),
        min_mark_contrast=float(config.mark_contrast),
        is_inverted=config.polarity == "black",
        noise=noise,
    )


def _disc_from_record(record: Array, outline_points: Array, polarity: DiscPolarity) -> Disc:
    return Disc(
        polarity,
        record[:2].copy(),
        (float(record[2]), float(record[3])),
        float(record[4]),
        float(record[5]),
        float(record[6]),
        float(record[8]),
        float(record[8 + MARK_CONTRAST]),
        record[8 + MARK_OFFSET_X : 8 + MARK_OFFSET_X + 2].copy(),
        float(record[-1]),
        outline_points[outline_points[:, 2] > 0.0, :2].copy(),
    )
