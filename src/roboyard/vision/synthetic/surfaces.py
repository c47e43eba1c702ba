"""Backgrounds: what tables, floors and packages look like to a camera, as albedo from 0 to 1."""

from __future__ import annotations

import math

import numpy as np

from roboyard.geometry.arrays import F32
from roboyard.vision.opencv import opencv

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789&%@8OQDG"


def texture(rng: np.random.Generator, width: int, height: int, contrast: float) -> F32:
    """(height, width) of factors about 1: noise in octaves, drawn out along one direction as wood is at times.

    Args:
        rng: Draws it.
        width: [px].
        height: [px].
        contrast: Of the darkest to the lightest parts, roughly.
    """
    cv2 = opencv()
    total, size, weight = np.zeros((height, width), np.float32), 4, 1.0
    stretch = int(rng.choice([1, 1, 6]))
    weights = 0.0
    while size < 160:
        coarse = rng.uniform(-1.0, 1.0, (size * 3 // 4 + 2, size // stretch + 2)).astype(np.float32)
        total += np.float32(weight) * cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        weights += weight
        size, weight = size * 2, weight * 0.75
    return (1.0 + np.float32(0.5 * contrast / weights) * total * 2.0).astype(np.float32)


def tint(rng: np.random.Generator, low: float, high: float, colour: float) -> tuple[float, float, float]:
    """An albedo between two bounds whose channels differ by up to a share."""
    base = rng.uniform(low, high) * (1.0 + colour * rng.uniform(-1.0, 1.0, 3))
    r, g, b = np.clip(base, 0.01, 0.95)
    return float(r), float(g), float(b)


def clutter(rng: np.random.Generator, albedo: F32, count: int) -> None:
    """Lay boxes, bars, words and blobs over a picture (h, w, 3), in place."""
    if not count:
        return
    cv2 = opencv()
    height, width = albedo.shape[:2]
    bent = np.round(255.0 * np.sqrt(albedo)).astype(np.uint8)  # smooth edges and letters are drawn in bytes only
    for _ in range(count):
        colour = tuple(255.0 * math.sqrt(part) for part in tint(rng, 0.02, 0.8, 0.4))
        x, y = (int(rng.integers(0, width)), int(rng.integers(0, height)))
        kind = rng.integers(0, 4)
        if kind == 0:
            size = (float(rng.uniform(8, 90)), float(rng.uniform(8, 90)))
            box = cv2.boxPoints(((float(x), float(y)), size, float(rng.uniform(0, 90))))
            cv2.fillConvexPoly(bent, box.astype(np.int32), colour, cv2.LINE_AA)
        elif kind == 1:
            end = (x + int(rng.integers(-150, 150)), y + int(rng.integers(-150, 150)))
            cv2.line(bent, (x, y), end, colour, int(rng.integers(1, 7)), cv2.LINE_AA)
        elif kind == 2:
            word = "".join(rng.choice(list(_LETTERS), int(rng.integers(1, 9))))
            scale, weight = float(rng.uniform(0.3, 1.4)), int(rng.integers(1, 4))
            cv2.putText(bent, word, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, colour, weight, cv2.LINE_AA)
        else:
            long = int(rng.integers(6, 40))
            axes = (long, max(2, round(long * rng.uniform(0.2, 0.6))))
            cv2.ellipse(bent, (x, y), axes, float(rng.uniform(0, 180)), 0, 360, colour, -1, cv2.LINE_AA)
    albedo[:] = (bent.astype(np.float32) / np.float32(255.0)) ** 2
