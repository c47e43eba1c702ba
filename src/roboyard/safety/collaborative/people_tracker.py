"""People from laser scans at the height of their legs: background subtraction, clusters, alpha-beta tracks.

Clusters as in K. Arras et al., "Using boosted features for the detection of people in 2D range data" (ICRA 2007), by
gaps alone; each person is tracked by an alpha-beta filter. Every moving object counts as a person, which is enough for
safety.
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


class PersonTrackingConfig(Config):
    """Configuration of the detection and tracking of people in scans."""

    background_learning_time: float = parameter(
        0.5,
        unit="s",
        low=0.0,
        high=600.0,
        doc="Time at the start in which everything measured is background; no person should be near then.",
    )
    foreground_threshold: float = parameter(
        0.1,
        unit="m",
        low=0.0,
        high=10.0,
        doc="Distance in front of the background from which a measurement is foreground.",
    )
    depth_noise_coefficient: float = parameter(
        0.0,
        unit="1/m",
        low=0.0,
        high=1.0,
        doc="Addition to the threshold per square of the distance, for depth cameras.",
    )
    edge_blur: int = parameter(
        0,
        low=0,
        high=16,
        doc="Number of neighboring beams or pixels whose background may be a beam's own: twice the jitter of edges.",
    )
    merge_distance: float = parameter(
        0.7, unit="m", low=0.01, high=5.0, doc="Largest distance between the legs of one person."
    )
    min_points: int = parameter(2, low=1, high=1000, doc="Smallest number of points of a leg.")
    association_gate: float = parameter(
        0.8,
        unit="m",
        low=0.01,
        high=10.0,
        doc="Largest distance between an expected and a measured position of the same person.",
    )
    track_timeout: float = parameter(
        0.6,
        unit="s",
        low=0.0,
        high=60.0,
        doc="Time for which the track of a person who is not measured is predicted.",
    )
    alpha: float = parameter(0.6, low=0.0, high=1.0, doc="Gain of the position's innovation.")
    beta: float = parameter(0.25, low=0.0, high=1.0, doc="Gain of the velocity's innovation.")


@dataclass(frozen=True, slots=True)
class PersonTrack:
    """Estimated position and velocity of a person.

    Attributes:
        track_id: Number of the track; later tracks have larger numbers.
        time: Time of the estimate [s].
        position: Center of the legs [m].
        velocity: Velocity [m/s].
        radius: Radius of a circle around the position that contains all measured points [m].
        observed_time: Time of the last measurement [s].
    """

    track_id: int
    time: float
    position: tuple[float, float]
    velocity: tuple[float, float]
    radius: float
    observed_time: float

    def predict_position(self, time: float) -> tuple[float, float]:
        """Return the expected position at a time [s]."""
        dt = time - self.time
        return self.position[0] + dt * self.velocity[0], self.position[1] + dt * self.velocity[1]


class BackgroundModel:
    """Background model: for each beam the minimum range while learning, raised when farther ranges are measured later.

    So a person who stood there at first is detected after moving away.
    """

    def __init__(self, config: PersonTrackingConfig) -> None:
        self._config = config
        self._ranges: Array | None = None
        self._start_time: float | None = None

    def foreground(self, time: float, ranges: Array) -> NDArray[np.bool_]:
        """Return which beams or pixels hit something in front of the background; none while it is learned.

        Args:
            time: Time of the scan [s].
            ranges: Ranges [m], of any shape; infinite: no echo; not a number: unknown.
        """
        if self._ranges is None or self._ranges.shape != ranges.shape:
            self._ranges, self._start_time = np.where(np.isnan(ranges), math.inf, ranges), time
        if time - (self._start_time or 0.0) <= self._config.background_learning_time:
            self._ranges = np.fmin(self._ranges, ranges)
            return np.zeros(ranges.shape, dtype=np.bool_)
        threshold = (
            self._config.foreground_threshold
            + self._config.depth_noise_coefficient * np.where(np.isfinite(ranges), ranges, 0.0) ** 2
        )
        self._ranges = np.where(ranges > self._ranges + threshold, ranges, self._ranges)
        is_foreground: NDArray[np.bool_] = ranges < _minimum_filter(self._ranges, self._config.edge_blur) - threshold
        return is_foreground

    def unknown_fraction(self, ranges: Array) -> float:
        """Return the fraction of the known background that is unknown in these ranges; 1 without a background."""
        is_known = np.zeros(0, np.bool_) if self._ranges is None else np.isfinite(self._ranges)
        return float(np.isnan(ranges[is_known]).mean()) if is_known.any() else 1.0

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"ranges": None if self._ranges is None else self._ranges.copy(), "began": self._start_time}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._ranges, self._start_time = state["ranges"], state["began"]


def _minimum_filter(ranges: Array, radius: int) -> Array:
    """Return the minimum within ``radius`` elements to either side, along each axis."""
    for axis in range(ranges.ndim) if radius else ():
        values = np.swapaxes(ranges, 0, axis).copy()
        minimum = values.copy()
        for k in range(1, min(radius, len(values) - 1) + 1):
            minimum[k:] = np.minimum(minimum[k:], values[:-k])
            minimum[:-k] = np.minimum(minimum[:-k], values[k:])
        ranges = np.swapaxes(minimum, 0, axis)
    return ranges


def cluster_points(points: Array, max_gap: float) -> list[NDArray[np.int64]]:
    """Return the row indices of clusters of points (n, 2): each point is at most ``max_gap`` [m] from another one."""
    is_adjacent = np.linalg.norm(points[:, None] - points[None], axis=2) <= max_gap
    is_unassigned, clusters = np.ones(len(points), dtype=np.bool_), []
    while is_unassigned.any():
        group = is_adjacent[int(np.argmax(is_unassigned))]
        while (extended := is_adjacent[group].any(axis=0)).sum() > group.sum():
            group = extended
        is_unassigned &= ~group
        clusters.append(np.flatnonzero(group))
    return clusters


class PeopleTracker:
    """Tracks people from scan to scan.

    Attributes:
        tracks: Present tracks.
        group_of_track: Index of the last group of points, by number of the track.
    """

    def __init__(self, config: PersonTrackingConfig) -> None:
        self._config = config
        self._count = 0
        self.tracks: tuple[PersonTrack, ...] = ()
        self.group_of_track: dict[int, int] = {}

    def update(self, time: float, points: Array) -> tuple[PersonTrack, ...]:
        """Return the tracks at ``time`` [s], updated with points (n, 2) on people [m]."""
        groups = [points[rows] for rows in cluster_points(points, self._config.merge_distance)]
        return self.update_from_groups(time, [one for one in groups if len(one) >= self._config.min_points])

    def update_from_groups(self, time: float, groups: Sequence[Array]) -> tuple[PersonTrack, ...]:
        """Return the tracks at ``time`` [s], updated with groups of points (n, 2), each on one person [m]."""
        centers = [0.5 * (one.min(axis=0) + one.max(axis=0)) for one in groups]
        unassigned = dict(enumerate(centers))
        pairs = sorted(
            (math.dist(track.predict_position(time), center), track.track_id, k)
            for track in self.tracks
            for k, center in enumerate(centers)
        )
        group_of_track: dict[int, int] = {}
        for distance, track_id, k in pairs:
            if distance <= self._config.association_gate and track_id not in group_of_track and k in unassigned:
                group_of_track[track_id] = k
                del unassigned[k]
        tracks = []
        for track in self.tracks:
            if track.track_id in group_of_track:
                k = group_of_track[track.track_id]
                tracks.append(self._update_track(track, time, centers[k], groups[k]))
            elif time - track.observed_time <= self._config.track_timeout:
                tracks.append(
                    PersonTrack(
                        track.track_id,
                        time,
                        track.predict_position(time),
                        track.velocity,
                        track.radius,
                        track.observed_time,
                    )
                )
        for k in unassigned:
            self._count += 1
            x, y = centers[k].tolist()
            tracks.append(
                PersonTrack(self._count, time, (x, y), (0.0, 0.0), _enclosing_radius(centers[k], groups[k]), time)
            )
            group_of_track[self._count] = k
        self.tracks, self.group_of_track = tuple(tracks), group_of_track
        return self.tracks

    def _update_track(self, track: PersonTrack, time: float, center: Array, group: Array) -> PersonTrack:
        expected, dt = np.array(track.predict_position(time)), max(time - track.time, 1e-6)
        innovation = center - expected
        x, y = (expected + self._config.alpha * innovation).tolist()
        u, v = (np.array(track.velocity) + self._config.beta / dt * innovation).tolist()
        return PersonTrack(track.track_id, time, (x, y), (u, v), _enclosing_radius(np.array([x, y]), group), time)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        rows = [(t.track_id, t.time, t.position, t.velocity, t.radius, t.observed_time) for t in self.tracks]
        return {"count": self._count, "tracks": rows}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._count = state["count"]
        self.tracks = tuple(PersonTrack(n, t, tuple(p), tuple(v), r, s) for n, t, p, v, r, s in state["tracks"])


def _enclosing_radius(center: Array, group: Array) -> float:
    return float(np.linalg.norm(group - center, axis=1).max())
