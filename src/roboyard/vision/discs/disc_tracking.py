"""Consensus of detections over several images, and tracks of discs that move at constant velocity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array


@dataclass(frozen=True, eq=False)
class ConsensusDetection:
    """Detections of several images that agree on a position.

    Attributes:
        mean: (d,) mean of the detections that agree.
        spread: (d,) standard deviation of these detections.
        n_detected: Number of images with a detection there.
        n_agreeing: Number of images whose detections agree.
    """

    mean: Array
    spread: Array
    n_detected: int
    n_agreeing: int


def find_consensus(
    detections: Sequence[ArrayLike],
    *,
    association_distance: float = 0.01,
    outlier_distance: float = 0.001,
    min_agreeing: int = 3,
) -> list[ConsensusDetection]:
    """Find positions on which detections of several images agree, those with the most images first.

    Detections of other images within ``association_distance`` belong to the same object.  Those within
    ``outlier_distance`` of their median (thesis, "PosMinDis": 5 images, 1 mm) agree, and their mean is returned.

    Args:
        detections: Detections (n, d) of each image; the first three numbers are the position [m].
        association_distance: [m].
        outlier_distance: [m].
        min_agreeing: Number of images that must agree.

    Raises:
        InputError: A distance is not above 0, or more images must agree than there are.
    """
    if not (association_distance > 0.0 and outlier_distance > 0.0 and 1 <= min_agreeing <= max(len(detections), 1)):
        raise InputError(
            f"association_distance {association_distance:g} m, outlier_distance {outlier_distance:g} m, "
            f"{min_agreeing} of {len(detections)} images must agree",
            valid="distances above 0, at least 1 image and at most as many as there are",
        )
    rows = [np.atleast_2d(np.asarray(image, dtype=np.float64)) for image in detections]
    rows = [row for row in rows if row.size]
    if not rows:
        return []
    all_detections = np.concatenate(rows)
    image_index = np.concatenate([np.full(len(row), k) for k, row in enumerate(rows)])
    is_free = np.ones(len(all_detections), dtype=bool)
    consensus: list[ConsensusDetection] = []
    while is_free.any():
        # start with the detection that has the most neighbors
        distances = np.linalg.norm(all_detections[:, None, :3] - all_detections[None, :, :3], axis=2)
        is_neighbor = (distances <= association_distance) & is_free[None, :] & is_free[:, None]
        start = int(np.argmax(is_neighbor.sum(axis=1)))
        group = np.array(
            [members[np.argmin(distances[start, members])] for image in np.unique(image_index[is_neighbor[start]])
             for members in [np.flatnonzero(is_neighbor[start] & (image_index == image))]]
        )  # fmt: skip
        is_free[is_neighbor[start]] = False
        group_detections = all_detections[group]
        is_inlier = (
            np.linalg.norm(group_detections[:, :3] - np.median(group_detections[:, :3], axis=0), axis=1)
            <= outlier_distance
        )
        if is_inlier.sum() >= min_agreeing:
            inliers = group_detections[is_inlier]
            consensus.append(
                ConsensusDetection(inliers.mean(axis=0), inliers.std(axis=0), len(group), int(is_inlier.sum()))
            )
    return sorted(consensus, key=lambda one: -one.n_agreeing)


@dataclass(frozen=True, eq=False)
class DiscTrack:
    """An object detected in several images, on a horizontal straight line at constant velocity.

    Attributes:
        mean: (d,) mean of the detections; the first two numbers are the position at the last image [m].
        velocity: (2,) in the frame's x-y plane [m/s].
        spread: (3,) standard deviation of the positions from the line [m].
        n_agreeing: Number of images that agree.
    """

    mean: Array
    velocity: Array
    spread: Array
    n_agreeing: int


@dataclass(eq=False)
class _TrackCandidate:
    times: list[float] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)

    def predict(self, time: float) -> Array:
        if len(self.times) < 2:
            return np.asarray(self.rows[-1][:3])
        first = max(0, len(self.times) - 4)
        span = self.times[-1] - self.times[first]
        speed = (self.rows[-1][:3] - self.rows[first][:3]) / span
        return np.asarray(self.rows[-1][:3] + speed * (time - self.times[-1]))


def track_discs(
    detections: Sequence[ArrayLike],
    times: Sequence[float],
    *,
    max_speed: float = 0.2,
    association_distance: float = 0.01,
    outlier_distance: float = 0.001,
    min_agreeing: int = 3,
) -> list[DiscTrack]:
    """Track objects that several images agree on, at rest or moving, those with the most images first.

    A detection belongs to the object whose predicted position is nearest: its last position, or, from the second image
    on, the extrapolated one.  A line is fitted by least squares; detections farther than ``outlier_distance`` from it
    are left out, the farthest first.

    Args:
        detections: Detections (n, d) of each image; the first three numbers are the position [m].
        times: Increasing times of the images [s].
        max_speed: Largest speed of an object [m/s].
        association_distance: Largest distance of a detection from the predicted position [m].
        outlier_distance: [m].
        min_agreeing: Number of images that must agree.

    Raises:
        InputError: The times do not increase or their number is wrong, or a bound is not above 0.
    """
    image_times = np.asarray(times, dtype=np.float64)
    if len(image_times) != len(detections) or not np.isfinite(image_times).all() or (np.diff(image_times) <= 0.0).any():
        raise InputError(
            f"{len(image_times)} times of {len(detections)} images",
            valid="one finite time per image, each later than the one before",
        )
    if not (max_speed > 0.0 and association_distance > 0.0 and outlier_distance > 0.0 and min_agreeing >= 1):
        raise InputError(
            f"max_speed {max_speed:g} m/s, association_distance {association_distance:g} m, "
            f"outlier_distance {outlier_distance:g} m, min_agreeing {min_agreeing}",
            valid="all above 0",
        )
    candidates: list[_TrackCandidate] = []
    for time, image_detections in zip(image_times.tolist(), detections, strict=True):
        rows = np.asarray(image_detections, dtype=np.float64)
        rows = rows.reshape(-1, rows.shape[-1] if rows.ndim == 2 else max(rows.size, 1))
        _associate_detections(candidates, time, rows, max_speed, association_distance)
    tracks = [
        track
        for candidate in candidates
        if (track := _fit_track(candidate, float(image_times[-1]), outlier_distance, min_agreeing)) is not None
    ]
    return sorted(tracks, key=lambda one: -one.n_agreeing)


def _associate_detections(
    candidates: list[_TrackCandidate], time: float, rows: Array, max_speed: float, association_distance: float
) -> None:
    """Assign each detection (n, d) to a candidate, the nearest pairs first; the others start new candidates."""
    pairs = []
    for k, candidate in enumerate(candidates):
        distances = np.linalg.norm(rows[:, :3] - candidate.predict(time), axis=1)
        max_distance = (
            association_distance
            if len(candidate.times) > 1
            else max(association_distance, max_speed * (time - candidate.times[-1]))
        )
        pairs += [(float(distances[i]), k, i) for i in np.flatnonzero(distances <= max_distance).tolist()]
    used_candidates: set[int] = set()
    used_rows: set[int] = set()
    for _, k, i in sorted(pairs):
        if k not in used_candidates and i not in used_rows:
            used_candidates.add(k)
            used_rows.add(i)
            candidates[k].times.append(time)
            candidates[k].rows.append(rows[i])
    candidates += [_TrackCandidate([time], [rows[i]]) for i in range(len(rows)) if i not in used_rows]


def _fit_track(
    candidate: _TrackCandidate, last_time: float, outlier_distance: float, min_agreeing: int
) -> DiscTrack | None:
    times, rows = np.array(candidate.times) - last_time, np.array(candidate.rows)
    is_inlier = np.ones(len(times), dtype=bool)
    while is_inlier.sum() >= max(min_agreeing, 2):
        basis = np.stack([np.ones(int(is_inlier.sum())), times[is_inlier]], axis=1)
        mean = rows[is_inlier].mean(axis=0)
        line, *_ = np.linalg.lstsq(basis, rows[is_inlier, :2], rcond=None)
        mean[:2] = line[0]
        residuals = rows[:, :3] - mean[:3]
        residuals[:, :2] -= times[:, None] * line[1]
        distances = np.linalg.norm(residuals, axis=1)
        worst = int(np.argmax(np.where(is_inlier, distances, -1.0)))
        if distances[worst] > outlier_distance:
            is_inlier[worst] = False
            continue
        return DiscTrack(mean, line[1], np.sqrt(np.mean(residuals[is_inlier] ** 2, axis=0)), int(is_inlier.sum()))
    return None
