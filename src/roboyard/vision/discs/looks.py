"""Several looks at the same things: what one look gets wrong does not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array


@dataclass(frozen=True, eq=False)
class Steady:
    """What was seen at one place.

    Attributes:
        mean: (d,) of the looks that agree.
        spread: (d,) their standard deviation.
        seen: How many looks saw something there.
        kept: How many of them agree.
    """

    mean: Array
    spread: Array
    seen: int
    kept: int


def steady(looks: Sequence[ArrayLike], *, reach: float = 0.01, within: float = 0.001, least: int = 3) -> list[Steady]:
    """Places that several looks agree on, those seen most often first.

    Sightings of other looks within ``reach`` of one are of the same thing; of these, those count that lie within
    ``within`` of the median (thesis, "PosMinDis": 5 looks, 1 mm), and their mean is taken.

    Args:
        looks: For each look its sightings (n, d); the first three numbers are the place [m].
        reach: [m].
        within: [m].
        least: Looks that must agree.

    Raises:
        InputError: no bounds above 0, or more looks must agree than there are.
    """
    if not (reach > 0.0 and within > 0.0 and 1 <= least <= max(len(looks), 1)):
        raise InputError(
            f"reach {reach:g} m, within {within:g} m, least {least} of {len(looks)} looks",
            valid="reach and within above 0, at least 1 look and at most as many as there are",
        )
    rows = [np.atleast_2d(np.asarray(look, dtype=np.float64)) for look in looks]
    rows = [row for row in rows if row.size]
    if not rows:
        return []
    every = np.concatenate(rows)
    owner = np.concatenate([np.full(len(row), k) for k, row in enumerate(rows)])
    free = np.ones(len(every), dtype=bool)
    found: list[Steady] = []
    while free.any():
        # begin where most others are near
        apart = np.linalg.norm(every[:, None, :3] - every[None, :, :3], axis=2)
        near = (apart <= reach) & free[None, :] & free[:, None]
        start = int(np.argmax(near.sum(axis=1)))
        group = np.array(
            [members[np.argmin(apart[start, members])] for look in np.unique(owner[near[start]])
             for members in [np.flatnonzero(near[start] & (owner == look))]]
        )  # fmt: skip
        free[near[start]] = False
        sightings = every[group]
        kept = np.linalg.norm(sightings[:, :3] - np.median(sightings[:, :3], axis=0), axis=1) <= within
        if kept.sum() >= least:
            good = sightings[kept]
            found.append(Steady(good.mean(axis=0), good.std(axis=0), len(group), int(kept.sum())))
    return sorted(found, key=lambda one: -one.kept)
