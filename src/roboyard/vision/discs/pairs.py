"""Middles between two discs that lie a given distance apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.vision.discs.config import DiscConfig
from roboyard.vision.discs.place import PlacedDisc


@dataclass(frozen=True, eq=False)
class DiscPair:
    """Two discs.

    Attributes:
        first: One.
        second: The other.
        position: Middle between them (3,), in the camera's optical frame [m].
        distance: Between their middles [m].
        diameter: Mean of theirs [m].
    """

    first: PlacedDisc
    second: PlacedDisc
    position: Array
    distance: float
    diameter: float


def disc_pairs(discs: Sequence[PlacedDisc], config: DiscConfig) -> list[DiscPair]:
    """Pairs whose distance fits, the best first."""
    found = []
    for one, two in combinations(discs, 2):
        distance = float(np.linalg.norm(one.position - two.position))
        if abs(distance - config.distance) <= config.distance_tolerance:
            middle = 0.5 * (one.position + two.position)
            found.append(DiscPair(one, two, middle, distance, 0.5 * (one.diameter + two.diameter)))
    return sorted(found, key=lambda pair: abs(pair.distance - config.distance))
