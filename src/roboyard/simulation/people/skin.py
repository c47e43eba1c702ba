"""What people look like: for each part of the body a smooth closed surface, turned round its bone."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Mesh
from roboyard.description.shapes import InlineArray
from roboyard.geometry.arrays import Array

SIDES = 20
"""Edges of a cross-section."""
FINER = 4
"""Rings between two stations of an outline."""

# Outlines from top to bottom: height along the bone, half depth, half width, and how far forward the middle lies, as
# shares of the stature, in the frame of the part.
OUTLINES: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "pelvis": (
        (0.070, 0.056, 0.080, 0.004), (0.040, 0.061, 0.090, 0.000), (0.005, 0.066, 0.098, -0.006),
        (-0.030, 0.062, 0.093, -0.006), (-0.058, 0.040, 0.062, 0.000),
    ),
    "abdomen": (
        (0.135, 0.058, 0.086, 0.002), (0.090, 0.058, 0.083, 0.005), (0.045, 0.057, 0.079, 0.006),
        (0.000, 0.057, 0.082, 0.004), (-0.025, 0.050, 0.076, 0.002),
    ),
    "chest": (
        (0.150, 0.030, 0.036, -0.006), (0.137, 0.038, 0.075, -0.004), (0.122, 0.046, 0.119, -0.002),
        (0.085, 0.064, 0.107, 0.003), (0.045, 0.067, 0.098, 0.004), (0.000, 0.060, 0.089, 0.003),
        (-0.030, 0.054, 0.082, 0.003),
    ),
    "neck": ((0.085, 0.032, 0.032, 0.010), (0.045, 0.032, 0.032, 0.006), (0.010, 0.035, 0.036, 0.000),
             (-0.020, 0.038, 0.044, -0.004)),
    "head": (
        (0.115, 0.016, 0.014, -0.008), (0.105, 0.042, 0.033, -0.006), (0.085, 0.056, 0.043, -0.002),
        (0.055, 0.058, 0.045, 0.002), (0.030, 0.054, 0.043, 0.006), (0.005, 0.042, 0.037, 0.014),
        (-0.012, 0.024, 0.024, 0.024),
    ),
    "upper_arm": (
        (0.026, 0.017, 0.016, 0.0), (0.010, 0.034, 0.031, 0.0), (-0.030, 0.033, 0.030, 0.0),
        (-0.090, 0.029, 0.026, 0.002), (-0.150, 0.025, 0.023, 0.0), (-0.198, 0.022, 0.021, 0.0),
    ),
    "forearm": (
        (0.014, 0.019, 0.019, 0.0), (-0.030, 0.025, 0.024, 0.0), (-0.070, 0.023, 0.021, 0.0),
        (-0.115, 0.018, 0.016, 0.0), (-0.150, 0.016, 0.014, 0.0),
    ),
    "hand": (
        (0.008, 0.014, 0.012, 0.0), (-0.020, 0.022, 0.012, 0.002), (-0.055, 0.024, 0.012, 0.002),
        (-0.085, 0.019, 0.009, 0.001), (-0.108, 0.008, 0.006, 0.0),
    ),
    "thigh": (
        (0.030, 0.044, 0.040, 0.0), (-0.010, 0.055, 0.051, 0.0), (-0.070, 0.053, 0.049, 0.003),
        (-0.150, 0.044, 0.040, 0.004), (-0.225, 0.034, 0.033, 0.002), (-0.258, 0.030, 0.031, 0.0),
    ),
    "shank": (
        (0.014, 0.030, 0.030, 0.002), (-0.030, 0.033, 0.030, -0.002), (-0.080, 0.036, 0.032, -0.008),
        (-0.140, 0.029, 0.026, -0.005), (-0.210, 0.020, 0.019, 0.0), (-0.250, 0.020, 0.019, 0.0),
    ),
}  # fmt: skip
# A foot's run from heel to toe: place ahead of the ankle, half height, half width, height of the middle.
FOOT = (
    (-0.034, 0.014, 0.018, -0.021), (-0.018, 0.025, 0.023, -0.012), (0.010, 0.027, 0.025, -0.011),
    (0.050, 0.020, 0.028, -0.019), (0.085, 0.014, 0.029, -0.025), (0.112, 0.008, 0.020, -0.031),
)  # fmt: skip


@lru_cache(maxsize=256)
def skin(segment: str, height: float, breadth: float = 1.0) -> Mesh:
    """The surface of a part of somebody's body, in the part's frame.

    Args:
        segment: The part without its side.
        height: Of the person [m].
        breadth: How much stouter than usual.
    """
    if segment == "foot":
        along = np.array(FOOT)
        rings = _rings(along) * [1.0, breadth, 1.0]
        places = np.stack([rings[..., 2], rings[..., 1], rings[..., 0]], axis=-1)
        faces = _faces(len(rings))  # mirrored, and from the other end
    else:
        along = np.array(OUTLINES[segment])
        places = _rings(along) * [breadth, breadth, 1.0]
        faces = _faces(len(places))
    vertices = np.concatenate([places.reshape(-1, 3), places[:1].mean(axis=1), places[-1:].mean(axis=1)]) * height
    values = np.ascontiguousarray(vertices, np.float32).tobytes()
    return Mesh(f"skin of {segment}", None, inline=InlineArray(values, np.ascontiguousarray(faces, np.int32).tobytes()))


def _rings(outline: Array) -> Array:
    """(rings, `SIDES`, 3) cross-sections of an outline that is rounded off at its ends."""
    first, last = outline[0].copy(), outline[-1].copy()
    way = np.sign(outline[0, 0] - outline[-1, 0])
    first[0] += way * 0.4 * min(first[1], first[2])
    last[0] -= way * 0.4 * min(last[1], last[2])
    first[1:3] *= 0.25
    last[1:3] *= 0.25
    stations = np.concatenate([[first], outline, [last]])
    fine = _smoothed(stations)
    angles = np.arange(SIDES) * (2.0 * math.pi / SIDES)
    x = fine[:, 3, None] + fine[:, 1, None] * np.cos(angles)
    y = fine[:, 2, None] * np.sin(angles)
    return np.stack([x, y, np.broadcast_to(fine[:, :1], x.shape)], axis=-1)


def _smoothed(stations: Array) -> Array:
    """Catmull and Rom's curve through the stations, `FINER` times as many."""
    padded = np.concatenate([2.0 * stations[:1] - stations[1:2], stations, 2.0 * stations[-1:] - stations[-2:-1]])
    s = (np.arange(FINER) / FINER)[:, None]
    curves = []
    for k in range(len(stations) - 1):
        a, b, c, d = padded[k : k + 4]
        curves.append(0.5 * (2.0 * b + (c - a) * s + (2.0 * a - 5.0 * b + 4.0 * c - d) * s**2
                             + (3.0 * (b - c) + d - a) * s**3))  # fmt: skip
    fine: Array = np.concatenate([*curves, stations[-1:]])
    fine[:, 1:3] = np.maximum(fine[:, 1:3], 1e-3)
    return fine


def _faces(rings: int) -> NDArray[np.int64]:
    """Triangles of rings that lie one below another, closed above and below; seen from outside counterclockwise."""
    side = np.arange(SIDES)
    after = (side + 1) % SIDES
    top, bottom = rings * SIDES, rings * SIDES + 1
    faces = []
    for k in range(rings - 1):
        one, two = k * SIDES, (k + 1) * SIDES
        faces += [
            np.stack([one + side, two + side, two + after], 1),
            np.stack([one + side, two + after, one + after], 1),
        ]
    faces.append(np.stack([np.full(SIDES, top), side, after], 1))
    last = (rings - 1) * SIDES
    faces.append(np.stack([np.full(SIDES, bottom), last + after, last + side], 1))
    return np.concatenate(faces)
