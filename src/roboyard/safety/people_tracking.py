"""People from scans at the height of their legs: what is not background, legs that belong together, followed in time.

Clusters as in K. Arras et al., "Using boosted features for the detection of people in 2D range data" (ICRA 2007), by
gaps alone; each person by an alpha-beta filter.  Whatever moves counts as a person: safety asks no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array


class TrackingConfig(Config):
    """How people are made out."""

    learn: float = parameter(
        0.5,
        unit="s",
        low=0.0,
        high=600.0,
        doc="Time at the start in which everything that is seen is background; nobody should be near then.",
    )
    clearance: float = parameter(
        0.1,
        unit="m",
        low=0.0,
        high=10.0,
        doc="Distance before the background beyond which something is not background.",
    )
    grain: float = parameter(
        0.0,
        unit="1/m",
        low=0.0,
        high=1.0,
        doc="Addition to the clearance per square of the distance, for depth cameras.",
    )
    blur: int = parameter(
        0,
        low=0,
        high=16,
        doc="Number of neighboring beams or pixels whose background may be a beam's own: twice the jitter of edges.",
    )
    stride: float = parameter(0.7, unit="m", low=0.01, high=5.0, doc="Largest distance between the legs of one person.")
    least_points: int = parameter(2, low=1, high=1000, doc="Smallest number of points of a leg.")
    gate: float = parameter(
        0.8,
        unit="m",
        low=0.01,
        high=10.0,
        doc="Largest distance between an expected and a measured position of the same person.",
    )
    keep: float = parameter(
        0.6,
        unit="s",
        low=0.0,
        high=60.0,
        doc="Time for which somebody who is not seen is kept where they were expected.",
    )
    alpha: float = parameter(0.6, low=0.0, high=1.0, doc="Share of the innovation of a position that is used.")
    beta: float = parameter(0.25, low=0.0, high=1.0, doc="Share of the innovation of a velocity that is used.")


@dataclass(frozen=True, slots=True)
class Track:
    """Somebody, as far as is known.

    Attributes:
        number: Of the track; later ones have larger numbers.
        time: When [s].
        place: Middle of the legs [m].
        velocity: [m/s].
        radius: Of a circle about the place that holds all of the points that were seen [m].
        seen: When last [s].
    """

    number: int
    time: float
    place: tuple[float, float]
    velocity: tuple[float, float]
    radius: float
    seen: float

    def at(self, time: float) -> tuple[float, float]:
        """Where they are expected at a time [s]."""
        dt = time - self.time
        return self.place[0] + dt * self.velocity[0], self.place[1] + dt * self.velocity[1]


class Background:
    """What stands still: for each beam the least range of the first moments, or what was seen farther off since.

    So somebody who stood there at first is seen as soon as they have moved.
    """

    def __init__(self, config: TrackingConfig) -> None:
        self._config = config
        self._ranges: Array | None = None
        self._began: float | None = None

    def foreground(self, time: float, ranges: Array) -> NDArray[np.bool_]:
        """Which beams, or pixels, meet something before the background; none while it is learnt.

        Args:
            time: Of the scan [s].
            ranges: [m], of any shape; infinite: met nothing; not a number: nobody knows.
        """
        if self._ranges is None or self._ranges.shape != ranges.shape:
            self._ranges, self._began = np.where(np.isnan(ranges), math.inf, ranges), time
        if time - (self._began or 0.0) <= self._config.learn:
            self._ranges = np.fmin(self._ranges, ranges)
            return np.zeros(ranges.shape, dtype=np.bool_)
        clearance = self._config.clearance + self._config.grain * np.where(np.isfinite(ranges), ranges, 0.0) ** 2
        self._ranges = np.where(ranges > self._ranges + clearance, ranges, self._ranges)
        nearer: NDArray[np.bool_] = ranges < _least_beside(self._ranges, self._config.blur) - clearance
        return nearer

    def lost(self, ranges: Array) -> float:
        """Share of what is known of the background where nobody knows now; 1 where nothing is known."""
        known = np.zeros(0, np.bool_) if self._ranges is None else np.isfinite(self._ranges)
        return float(np.isnan(ranges[known]).mean()) if known.any() else 1.0

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {"ranges": None if self._ranges is None else self._ranges.copy(), "began": self._began}

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._ranges, self._began = state["ranges"], state["began"]


def _least_beside(ranges: Array, reach: int) -> Array:
    """The least within so many places to either side, along each axis."""
    for axis in range(ranges.ndim) if reach else ():
        beside = np.swapaxes(ranges, 0, axis).copy()
        least = beside.copy()
        for k in range(1, min(reach, len(beside) - 1) + 1):
            least[k:] = np.minimum(least[k:], beside[:-k])
            least[:-k] = np.minimum(least[:-k], beside[k:])
        ranges = np.swapaxes(least, 0, axis)
    return ranges


def clusters(points: Array, apart: float) -> list[NDArray[np.int64]]:
    """Rows of points (n, 2) in groups, each of whose points is at most ``apart`` [m] from another one of it."""
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= apart
    left, found = np.ones(len(points), dtype=np.bool_), []
    while left.any():
        group = near[int(np.argmax(left))]
        while (grown := near[group].any(axis=0)).sum() > group.sum():
            group = grown
        left &= ~group
        found.append(np.flatnonzero(group))
    return found


class PeopleTracker:
    """Follows people from scan to scan.

    Attributes:
        tracks: Who is where.
        met: By number of a track, which of the last groups was theirs.
    """

    def __init__(self, config: TrackingConfig) -> None:
        self._config = config
        self._count = 0
        self.tracks: tuple[Track, ...] = ()
        self.met: dict[int, int] = {}

    def update(self, time: float, points: Array) -> tuple[Track, ...]:
        """Who is where at ``time`` [s], by points (n, 2) on people [m]."""
        groups = [points[rows] for rows in clusters(points, self._config.stride)]
        return self.follow(time, [one for one in groups if len(one) >= self._config.least_points])

    def follow(self, time: float, groups: Sequence[Array]) -> tuple[Track, ...]:
        """The same by groups, each of them points (n, 2) on one person [m]."""
        middles = [0.5 * (one.min(axis=0) + one.max(axis=0)) for one in groups]
        left = dict(enumerate(middles))
        pairs = sorted(
            (math.dist(track.at(time), middle), track.number, k)
            for track in self.tracks
            for k, middle in enumerate(middles)
        )
        met: dict[int, int] = {}
        for distance, number, k in pairs:
            if distance <= self._config.gate and number not in met and k in left:
                met[number] = k
                del left[k]
        tracks = []
        for track in self.tracks:
            if track.number in met:
                k = met[track.number]
                tracks.append(self._followed(track, time, middles[k], groups[k]))
            elif time - track.seen <= self._config.keep:
                tracks.append(Track(track.number, time, track.at(time), track.velocity, track.radius, track.seen))
        for k in left:
            self._count += 1
            x, y = middles[k].tolist()
            tracks.append(Track(self._count, time, (x, y), (0.0, 0.0), _radius(middles[k], groups[k]), time))
            met[self._count] = k
        self.tracks, self.met = tuple(tracks), met
        return self.tracks

    def _followed(self, track: Track, time: float, middle: Array, group: Array) -> Track:
        expected, dt = np.array(track.at(time)), max(time - track.time, 1e-6)
        surprise = middle - expected
        x, y = (expected + self._config.alpha * surprise).tolist()
        u, v = (np.array(track.velocity) + self._config.beta / dt * surprise).tolist()
        return Track(track.number, time, (x, y), (u, v), _radius(np.array([x, y]), group), time)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        rows = [(t.number, t.time, t.place, t.velocity, t.radius, t.seen) for t in self.tracks]
        return {"count": self._count, "tracks": rows}

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._count = state["count"]
        self.tracks = tuple(Track(n, t, tuple(p), tuple(v), r, s) for n, t, p, v, r, s in state["tracks"])


def _radius(middle: Array, group: Array) -> float:
    return float(np.linalg.norm(group - middle, axis=1).max())
