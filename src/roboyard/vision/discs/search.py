"""From places where discs may be to those where discs are."""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.discs.doubts import Limits, doubts, example_limits
from roboyard.vision.discs.inside import TOLD, glance, look_inside
from roboyard.vision.discs.outline import RAYS, fine_outline, rough_outline

MOST = 64
"""Discs of a picture at most."""
FOUND = 5 + 3 + TOLD + 1
"""Numbers of a disc: its ellipse, what `fine_outline` and what `look_inside` tell, its doubts."""
_ROUGH_SUPPORT = 0.45


def _examples() -> list[tuple[object, ...]]:
    image = np.zeros((8, 8), np.uint8)
    return [(image, np.zeros((1, 2)), example_limits(), np.zeros((MOST, FOUND)), np.zeros((MOST, RAYS, 3)))]


@kernel(examples=_examples, error_model="numpy")
def search(image: U8, places: Array, limits: Limits, found: Array, outlines: Array) -> int:
    """Discs near these places, each once; returns how many.

    Args:
        image: Light where discs are, smoothed a little.
        places: (n, 2) near middles [px].
        limits: What a disc may be.
        found: (MOST, FOUND) written.
        outlines: (MOST, RAYS, 3) edges and their weights, written.
    """
    ellipse, fit, inside = np.zeros(5), np.zeros(3), np.zeros(TOLD)
    points, weights = np.zeros((RAYS, 2)), np.zeros(RAYS)
    seen = np.zeros((len(places), 3))
    looked, count, levels = 0, 0, np.zeros(2)
    shortest = limits.radius_min * limits.flattest
    for place in range(len(places)):
        x, y = places[place, 0], places[place, 1]
        if rough_outline(image, x, y, shortest, limits.radius_max, limits.steepness, ellipse) < _ROUGH_SUPPORT:
            continue
        a, b = ellipse[2], ellipse[3]
        if a > 1.15 * limits.radius_max + 1.0 or a < 0.8 * limits.radius_min or b < 0.8 * limits.flattest * a:
            continue
        if limits.with_mark:
            glance(image, ellipse, levels)
            contrast = levels[0] - levels[1]
            lighter = 255.0 - levels[1] if limits.inverted else levels[0]
            if contrast < max(1.5 * limits.noise, 0.7 * limits.mark_contrast * lighter):
                continue
        known = False
        for k in range(looked):
            near = math.hypot(seen[k, 0] - ellipse[0], seen[k, 1] - ellipse[1])
            known = known or (near < 0.4 and abs(seen[k, 2] - a) < 0.4)
        if known:
            continue
        seen[looked, 0], seen[looked, 1], seen[looked, 2] = ellipse[0], ellipse[1], a
        looked += 1
        if not fine_outline(image, limits.steepness, ellipse, points, weights, fit):
            continue
        look_inside(image, ellipse, weights, inside)
        doubt = doubts(ellipse, fit, inside, limits)
        if not doubt <= limits.doubt:
            continue
        spot = count
        for k in range(count):
            if math.hypot(found[k, 0] - ellipse[0], found[k, 1] - ellipse[1]) < 0.6 * max(ellipse[2], found[k, 2]):
                spot = k
        if spot < count:  # of two about one place the better one
            if doubt >= found[spot, FOUND - 1]:
                continue
        elif count == MOST:
            continue
        else:
            count += 1
        found[spot, :5], found[spot, 5:8], found[spot, 8:-1] = ellipse, fit, inside
        found[spot, -1] = doubt
        outlines[spot, :, :2], outlines[spot, :, 2] = points, weights
    return count
