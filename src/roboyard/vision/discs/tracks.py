"""Looks at things that move: straight lines in time through what pictures show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array


@dataclass(frozen=True, eq=False)
class Track:
    """Something that was seen again and again, on a straight level way at a constant speed.

    Attributes:
        mean: (d,) of the looks that agree; the first two numbers are where it is at the last look [m].
        velocity: (2,) in the frame's x-y plane [m/s].
        spread: (3,) standard deviation of the places from the line [m].
        kept: How many looks agree.
    """

    mean: Array
    velocity: Array
    spread: Array
    kept: int


@dataclass(eq=False)
class _Trail:
    times: list[float] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)

    def expected(self, time: float) -> Array:
        if len(self.times) < 2:
            return np.asarray(self.rows[-1][:3])
        first = max(0, len(self.times) - 4)
        span = self.times[-1] - self.times[first]
        speed = (self.rows[-1][:3] - self.rows[first][:3]) / span
        return np.asarray(self.rows[-1][:3] + speed * (time - self.times[-1]))


def tracked(
    looks: Sequence[ArrayLike],
    times: Sequence[float],
    *,
    fastest: float = 0.2,
    reach: float = 0.01,
    within: float = 0.001,
    least: int = 3,
) -> list[Track]:
    """Things that several looks agree on, standing or on their way, those seen most often first.

    A sighting belongs to the thing that is expected nearest to it: where that was, or, from the second look on, where
    its way leads.  Through its sightings goes the level line of least squares; those farther than ``within`` from it do
    not count, the farthest first.

    Args:
        looks: For each look its sightings (n, d); the first three numbers are the place [m].
        times: When each was taken, growing [s].
        fastest: Nothing moves faster [m/s].
        reach: So far from where it is expected a thing may be seen, beside what it can move until its way is known [m].
        within: [m].
        least: Looks that must agree.

    Raises:
        InputError: times that do not grow, or are not as many as looks; a bound that is not above 0.
    """
    moments = np.asarray(times, dtype=np.float64)
    if len(moments) != len(looks) or not np.isfinite(moments).all() or (np.diff(moments) <= 0.0).any():
        raise InputError(f"{len(moments)} times of {len(looks)} looks", valid="as many, each later than the one before")
    if not (fastest > 0.0 and reach > 0.0 and within > 0.0 and least >= 1):
        raise InputError(f"fastest {fastest:g}, reach {reach:g}, within {within:g}, least {least}", valid="all above 0")
    trails: list[_Trail] = []
    for time, look in zip(moments.tolist(), looks, strict=True):
        rows = np.asarray(look, dtype=np.float64)
        rows = rows.reshape(-1, rows.shape[-1] if rows.ndim == 2 else max(rows.size, 1))
        _extend(trails, time, rows, fastest, reach)
    found = [track for trail in trails if (track := _fitted(trail, float(moments[-1]), within, least)) is not None]
    return sorted(found, key=lambda one: -one.kept)


def _extend(trails: list[_Trail], time: float, rows: Array, fastest: float, reach: float) -> None:
    """Give each sighting (n, d) to the trail that expects it, the nearest pairs first; what is left begins its own."""
    pairs = []
    for k, trail in enumerate(trails):
        gap = np.linalg.norm(rows[:, :3] - trail.expected(time), axis=1)
        allowed = reach if len(trail.times) > 1 else max(reach, fastest * (time - trail.times[-1]))
        pairs += [(float(gap[i]), k, i) for i in np.flatnonzero(gap <= allowed).tolist()]
    used_trails: set[int] = set()
    used_rows: set[int] = set()
    for _, k, i in sorted(pairs):
        if k not in used_trails and i not in used_rows:
            used_trails.add(k)
            used_rows.add(i)
            trails[k].times.append(time)
            trails[k].rows.append(rows[i])
    trails += [_Trail([time], [rows[i]]) for i in range(len(rows)) if i not in used_rows]


def _fitted(trail: _Trail, last: float, within: float, least: int) -> Track | None:
    times, rows = np.array(trail.times) - last, np.array(trail.rows)
    kept = np.ones(len(times), dtype=bool)
    while kept.sum() >= max(least, 2):
        basis = np.stack([np.ones(int(kept.sum())), times[kept]], axis=1)
        mean = rows[kept].mean(axis=0)
        line, *_ = np.linalg.lstsq(basis, rows[kept, :2], rcond=None)
        mean[:2] = line[0]
        gaps = rows[:, :3] - mean[:3]
        gaps[:, :2] -= times[:, None] * line[1]
        off = np.linalg.norm(gaps, axis=1)
        worst = int(np.argmax(np.where(kept, off, -1.0)))
        if off[worst] > within:
            kept[worst] = False
            continue
        return Track(mean, line[1], np.sqrt(np.mean(gaps[kept] ** 2, axis=0)), int(kept.sum()))
    return None
