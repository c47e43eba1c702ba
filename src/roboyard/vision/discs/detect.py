"""Marked discs in a picture, wherever they are: their ellipses to hundredths of a pixel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.discs.candidates import vote
from roboyard.vision.discs.config import DiscConfig, Polarity
from roboyard.vision.discs.doubts import Limits
from roboyard.vision.discs.inside import MARK, OFF_X
from roboyard.vision.discs.outline import RAYS
from roboyard.vision.discs.search import FOUND, MOST, search
from roboyard.vision.opencv import opencv

_PLACES = 48
"""That are looked at, for small and for large discs each."""
_SLACK = 0.4
"""Of the bounds on radii: blur moves an outline by so much [px]."""
_EDGE, _EDGE_NOISE = 2.5, 1.5
"""Slope of an edge that votes, a pixel of the half picture: in grey levels, and in standard deviations of the noise."""


@dataclass(frozen=True, eq=False)
class Disc:
    """A disc in a picture.

    Attributes:
        polarity: White or black.
        centre: Middle of the ellipse (2,) [px]; the disc's own middle is seen a little beside it: see `place_disc`.
        axes: Longer and shorter half axis [px].
        angle: Of the longer axis, from the columns' direction towards the rows' [rad].
        support: Share of the outline that is seen.
        residual: Root mean square distance of its edges from the ellipse [px].
        contrast: To its surroundings [grey levels].
        mark: Contrast of the mark [grey levels].
        mark_offset: The mark's middle from ``centre`` (2,) [px].
        doubt: What speaks against it, 0 for nothing (`doubts`).
        outline: Edges that make the ellipse (n, 2) [px].
    """

    polarity: Polarity
    centre: Array
    axes: tuple[float, float]
    angle: float
    support: float
    residual: float
    contrast: float
    mark: float
    mark_offset: Array
    doubt: float
    outline: Array

    @property
    def radius(self) -> float:
        """Longer half axis [px]."""
        return self.axes[0]

    @property
    def ellipse(self) -> Array:
        """(5,) middle, half axes, angle."""
        return np.array([*self.centre, *self.axes, self.angle])


def lightness(image: U8, polarity: Polarity) -> U8:
    """(h, w) in which discs of this polarity are light: white is what is light in every colour, black what is in none.

    Args:
        image: (h, w, 3) or (h, w) bytes.
        polarity: Of the discs.

    Raises:
        InputError: no such picture.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
        raise InputError(f"a picture of {image.dtype} {image.shape}", valid="bytes (h, w) or (h, w, 3)")
    if min(image.shape[:2]) < 16:
        raise InputError(f"a picture of {image.shape[1]} x {image.shape[0]} pixels", valid="16 x 16 at least")
    cv2 = opencv()
    if image.ndim == 2:
        return np.ascontiguousarray(image) if polarity == "white" else np.asarray(cv2.bitwise_not(image))
    first, second, third = cv2.split(image)
    if polarity == "white":
        return np.asarray(cv2.min(cv2.min(first, second), third))
    return np.asarray(cv2.bitwise_not(cv2.max(cv2.max(first, second), third)))


def noise_of(light: U8) -> float:
    """Standard deviation of a picture's noise [grey levels]: the median of differences between pixels two apart."""
    part = light[::7]
    apart = np.abs(part[:, 2:].astype(np.int16) - part[:, :-2])
    # Between pixels whose values are whole numbers, the median is too; the mean of the lower half is not.
    counts = np.bincount(apart.ravel(), minlength=256)[:256].cumsum()
    half = 0.5 * counts[-1]
    level = int(np.searchsorted(counts, half))
    below = float(counts[level - 1]) if level else 0.0
    median = level - 0.5 + (half - below) / max(float(counts[level]) - below, 1.0)
    return float(max(0.5, max(median, 0.0) / 0.954))


def find_discs(image: U8, config: DiscConfig | None = None) -> list[Disc]:
    """Marked discs, the surest first; nothing needs to be known about their distance.

    Places that edges vote for (`candidates`) are looked at more closely: edges along rays from there, to parts of a
    pixel, an ellipse through those that agree (`outline`), an even ring and a mark in it (`inside`).

    Args:
        image: (h, w, 3) or (h, w) bytes.
        config: What is looked for.

    Raises:
        InputError: no such picture.
    """
    config = config or DiscConfig()
    cv2 = opencv()
    light = lightness(image, config.polarity)
    noise = noise_of(light)
    height, width = light.shape
    half = cv2.resize(light, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    places = _places(half, 0.5 * noise, config)
    smooth = cv2.GaussianBlur(light, (5, 5), 0.8)
    found, outlines = np.zeros((MOST, FOUND)), np.zeros((MOST, RAYS, 3))
    count = search(smooth, places, _limits(config, noise), found, outlines)
    order = np.argsort(found[:count, -1], kind="stable")
    return [_disc(found[k], outlines[k], config.polarity) for k in order]


def _places(half: U8, noise: float, config: DiscConfig) -> Array:
    low, high = 0.5 * config.radius_min * math.cos(config.tilt_max), 0.5 * config.radius_max + 0.5
    between = math.sqrt(low * high)
    edge = max(_EDGE, _EDGE_NOISE * noise)
    radii = np.array([[low, 1.15 * between], [0.87 * between, high]])
    out, counts = np.zeros((2, _PLACES, 3)), np.zeros(2, np.int64)
    vote(half, edge, radii, out, counts)
    # pixel k of the half picture covers 2 k and 2 k + 1
    return 2.0 * np.concatenate([found[:count, :2] for found, count in zip(out, counts, strict=True)]) + 0.5


def _limits(config: DiscConfig, noise: float) -> Limits:
    return Limits(
        radius_min=config.radius_min - _SLACK,
        radius_max=config.radius_max + _SLACK,
        flattest=math.cos(config.tilt_max),
        steepness=max(1.0, 0.8 * noise),
        contrast=max(5.0, 2.5 * noise),
        doubt=0.05 + 1.5 * config.sensitivity,
        with_mark=bool(config.mark),
        mark_contrast=float(config.mark_contrast),
        inverted=config.polarity == "black",
        noise=noise,
    )


def _disc(found: Array, outline: Array, polarity: Polarity) -> Disc:
    return Disc(
        polarity, found[:2].copy(), (float(found[2]), float(found[3])), float(found[4]), float(found[5]),
        float(found[6]), float(found[8]), float(found[8 + MARK]), found[8 + OFF_X : 8 + OFF_X + 2].copy(),
        float(found[-1]), outline[outline[:, 2] > 0.0, :2].copy(),
    )  # fmt: skip
