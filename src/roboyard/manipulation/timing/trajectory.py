"""Paths in time: where the joints are at any moment, and how they stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.control.topp_kernels import (
    PathEffortConstraint,
    PathSegments,
    stopping_profile,
    time_optimal_profile,
    unconstrained_efforts,
)
from roboyard.control.trajectory import JointSample, TrajectoryPoint
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.timing.efforts import EffortLimits
from roboyard.manipulation.timing.limits import JointLimits, checked_names

_INTERVALS = 400
"""Of the path, beside at least `_FEWEST` of each piece."""
_FEWEST = 10
_SOON = 1e-5
"""Points of a motion lie at least so far apart [s]."""
_TINY = 1e-10
"""What is left of an interval that is none: its acceleration, a difference of squares over it, would be rounding."""
_SAME = 1e-3
"""Accelerations that differ by such a share of the limits are one."""
_HALVINGS = 6
"""Of what lies between two points, at most."""


@dataclass(frozen=True, eq=False)
class Path:
    """Lines and parabolas through the space of the joints.

    Attributes:
        joints: (n) names.
        pieces: (p, 3, n) coefficients of the powers of the length along each piece.
        lengths: (p,).
        rests: (p + 1,) where it has a corner, or an end, and must be at rest.
    """

    joints: tuple[str, ...]
    pieces: Array
    lengths: Array
    rests: NDArray[np.bool_]

    @classmethod
    def of_pieces(cls, joints: tuple[str, ...], pieces: Array, lengths: Array) -> Path:
        """Finds the corners."""
        ends = pieces[:, 1] + 2.0 * lengths[:, None] * pieces[:, 2]
        corners = np.abs(ends[:-1] - pieces[1:, 1]).max(axis=1) > 1e-9
        return cls(joints, pieces, lengths, np.array([True, *corners.tolist(), True]))

    @classmethod
    def straight(cls, joints: tuple[str, ...], points: ArrayLike) -> Path:
        """Straight lines through points (k, n); points that repeat are left out.

        Raises:
            InputError: fewer than two, of another size, or not finite.
        """
        states = np.asarray(points, dtype=np.float64)
        if states.ndim != 2 or states.shape[1] != len(joints) or len(states) < 2 or not np.isfinite(states).all():
            raise InputError(
                f"way points of shape {states.shape}", valid=f"(2 or more, {len(joints)}), finite: {', '.join(joints)}"
            )
        steps = np.diff(states, axis=0)
        lengths = np.linalg.norm(steps, axis=1)
        kept = lengths > 1e-12
        if not kept.any():
            raise InputError("a path that goes nowhere", valid="way points that differ")
        pieces = np.zeros((int(kept.sum()), 3, len(joints)))
        pieces[:, 0], pieces[:, 1] = states[:-1][kept], steps[kept] / lengths[kept, None]
        return cls.of_pieces(joints, pieces, lengths[kept])

    @property
    def length(self) -> float:
        """In the space of the joints."""
        return float(self.lengths.sum())

    def points(self, spacing: float) -> Array:
        """(k, n) states along it, at most so far apart."""
        found = [self.pieces[0, 0][None]]
        for piece, length in zip(self.pieces, self.lengths.tolist(), strict=True):
            s = np.linspace(0.0, length, max(2, math.ceil(length / spacing) + 1))[1:, None]
            found.append(piece[0] + s * (piece[1] + s * piece[2]))
        return np.concatenate(found)

    def timed(self, limits: JointLimits, efforts: EffortLimits | None = None) -> Trajectory:
        """As fast as limits of velocity and acceleration allow, and of effort where they are given, from rest to rest.

        Raises:
            InputError: limits of other joints.
            EffortError: somewhere a joint cannot even be moved slowly.
        """
        checked_names(self.joints, limits)
        if efforts is not None:
            checked_names(efforts.dynamics.chain.joints, limits)
        if self.length == 0.0:
            return Trajectory(self, limits, efforts, np.zeros(1, np.int64), np.zeros(1), np.zeros(1), np.zeros(2))
        spacing = self.length / _INTERVALS
        counts = np.maximum(np.ceil(self.lengths / spacing).astype(np.int64), _FEWEST)
        piece = np.repeat(np.arange(len(counts)), counts)
        steps = (self.lengths / counts)[piece]
        begins = steps * (np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts))
        rests = np.zeros(len(piece) + 1, np.bool_)
        rests[np.cumsum([0, *counts])] = self.rests
        segments, needed = self.intervals(piece, begins, steps, efforts)
        x = time_optimal_profile(segments, steps, limits.velocity, limits.acceleration, rests, needed)
        return Trajectory(self, limits, efforts, piece, begins, steps, x)

    def intervals(
        self, piece: NDArray[np.int64], begins: Array, steps: Array, efforts: EffortLimits | None
    ) -> tuple[PathSegments, PathEffortConstraint]:
        """Return what `time_optimal_profile` takes of k intervals: their segments and efforts.

        Args:
            piece: (k,) that each is of.
            begins: (k,) where on the piece it begins.
            steps: (k,) its length.
            efforts: That count.

        Raises:
            EffortError: somewhere a joint cannot even be moved slowly.
        """
        c = self.pieces[piece]
        bend = 2.0 * c[:, 2]
        ends = np.stack([begins, begins + steps], axis=1)[:, :, None]
        slopes = c[:, None, 1] + ends * bend[:, None]
        needed = unconstrained_efforts(len(piece))
        if efforts is not None and efforts.bind:
            needed = efforts.along(c[:, None, 0] + ends * (c[:, None, 1] + ends * c[:, None, 2]), slopes, bend)
        return PathSegments(np.ascontiguousarray(slopes[:, 0]), np.ascontiguousarray(slopes[:, 1]), bend), needed


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A path that is followed in time, from 0 to `duration`.

    Between two places of the path the acceleration along it is constant, so that every moment is known exactly.

    Attributes:
        path: That is followed.
        limits: That are kept.
        efforts: That are kept, too.
        piece: (k,) the path's piece that each interval is of.
        begins: (k,) where on the piece it begins.
        steps: (k,) its length.
        squares: (k + 1,) squares of the speed along the path at the intervals' ends.
    """

    path: Path = field(repr=False)
    limits: JointLimits = field(repr=False)
    efforts: EffortLimits | None = field(repr=False)
    piece: NDArray[np.int64] = field(repr=False)
    begins: Array = field(repr=False)
    steps: Array = field(repr=False)
    squares: Array = field(repr=False)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names."""
        return self.path.joints

    @cached_property
    def times(self) -> Array:
        """(k + 1,) when each interval begins, and the end [s]."""
        speeds = np.sqrt(self.squares)
        both = speeds[:-1] + speeds[1:]
        spans = np.divide(2.0 * self.steps, both, out=np.zeros_like(both), where=both > 0.0)
        return np.concatenate([[0.0], np.cumsum(spans)])

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self.times[-1])

    @property
    def start(self) -> Array:
        """(n,) where the joints are at first."""
        return np.array(self.at([0.0]).position[0])

    @property
    def goal(self) -> Array:
        """(n,) where they are at last."""
        return np.array(self.at([self.duration]).position[0])

    def at(self, times: ArrayLike) -> JointSample:
        """Joints at moments (m,), in any order, (m, n) each; before the start and after the end they rest there.

        Raises:
            InputError: a time is not finite.
        """
        t = np.asarray(times, dtype=np.float64)
        if t.ndim != 1 or not np.isfinite(t).all():
            raise InputError(f"times of shape {t.shape}", valid="(m,), finite [s]")
        inside = np.clip(t, 0.0, self.duration)
        i = np.clip(np.searchsorted(self.times, inside, side="right") - 1, 0, len(self.steps) - 1)
        tau = inside - self.times[i]
        before = np.sqrt(self.squares[i])
        u = (self.squares[i + 1] - self.squares[i]) / np.where(self.steps[i] > 0.0, 2.0 * self.steps[i], 1.0)
        s = self.begins[i] + np.clip(tau * (before + 0.5 * u * tau), 0.0, self.steps[i])
        c = self.path.pieces[self.piece[i]]
        speed = np.maximum(before + u * tau, 0.0)[:, None]
        moving = ((t >= 0.0) & (t < self.duration))[:, None]
        slope = c[:, 1] + 2.0 * s[:, None] * c[:, 2]
        return JointSample(
            c[:, 0] + s[:, None] * (c[:, 1] + s[:, None] * c[:, 2]),
            np.where(moving, slope * speed, 0.0),
            np.where(moving, slope * u[:, None] + 2.0 * c[:, 2] * speed**2, 0.0),
        )

    def sample(self, time: float) -> JointSample:
        """Joints at a moment [s]. Raises InputError."""
        found = self.at([time])
        return JointSample(found.position[0], found.velocity[0], found.acceleration[0])

    def way_points(self, step: float = 0.02) -> list[TrajectoryPoint]:
        """Points in time for a controller that joins them by splines, at most ``step`` apart [s]. Raises InputError."""
        if not step > 0.0:
            raise InputError(f"points {step} s apart", valid="more than 0 s")
        count = max(1, math.ceil(self.duration / step))
        times = np.linspace(0.0, self.duration, count + 1)
        found = self.at(times)
        return [TrajectoryPoint(float(t), p, v, a) for t, p, v, a in zip(times, *found, strict=True)]

    def knots(self) -> list[TrajectoryPoint]:
        """Points with positions and velocities for a controller that joins them by cubics: it then keeps all limits.

        Points at even times do not: near a change of acceleration their splines take up to 1.75 times the limit.  These
        are where the acceleration changes, so that the cubics are the motion itself on lines, and nearly so in arcs.
        """
        middle = self.at((self.times[:-1] + self.times[1:]) / 2.0).acceleration / self.limits.acceleration
        times, since = [0.0], 0
        for k in range(1, len(middle)):
            time = float(self.times[k])
            changed = np.abs(middle[k] - middle[since]).max() > _SAME
            if changed and time - times[-1] > _SOON and self.duration - time > _SOON:
                times.append(time)
                since = k
        if self.duration > 0.0:
            times.append(self.duration)
        for _ in range(_HALVINGS):
            found = self.at(times)
            wide = self._bent(np.array(times), found)
            if not wide.any():
                break
            halves = (np.array(times)[:-1] + np.array(times)[1:]) / 2.0
            times = sorted([*times, *halves[wide].tolist()])
        # Whole nanoseconds, as messages have them: half of one more and a cubic of 0.1 ms bends by 0.3 rad/s² more.
        times[:-1] = [round(time, 9) for time in times[:-1]]
        found = self.at(times)
        velocity = found.velocity.copy()
        velocity[-1] = 0.0
        return [TrajectoryPoint(t, p, v) for t, p, v in zip(times, found.position, velocity, strict=True)]

    def _bent(self, times: Array, found: JointSample) -> NDArray[np.bool_]:
        """(k - 1,) between which of the times a cubic takes more acceleration than the motion may."""
        span = np.diff(times)[:, None]
        way = 6.0 * np.diff(found.position, axis=0) / span
        before, after = found.velocity[:-1], np.concatenate([found.velocity[1:-1], 0.0 * found.velocity[-1:]])
        first, last = (way - 4.0 * before - 2.0 * after) / span, (2.0 * before + 4.0 * after - way) / span
        most = (1.0 + _SAME) * self.limits.acceleration
        wide = (np.abs(first) > most).any(axis=1) | (np.abs(last) > most).any(axis=1)
        return np.asarray(wide & (span[:, 0] > 2.0 * _SOON))

    def stop(self, time: float) -> Trajectory:
        """The fastest stop on the path within the limits, begun at a moment [s]; its time begins anew at 0.

        Raises:
            InputError: the moment is not in the trajectory.
        """
        if not 0.0 <= time <= self.duration:
            raise InputError(f"a stop at {time} s", valid=f"0 to {self.duration:g} s")
        i = min(max(int(np.searchsorted(self.times, time, side="right")) - 1, 0), len(self.steps) - 1)
        tau = time - self.times[i]
        before = math.sqrt(self.squares[i])
        u = (self.squares[i + 1] - self.squares[i]) / (2.0 * self.steps[i]) if self.steps[i] > 0.0 else 0.0
        gone = min(max(tau * (before + 0.5 * u * tau), 0.0), self.steps[i])
        piece, begins, steps = self.piece[i:].copy(), self.begins[i:].copy(), self.steps[i:].copy()
        begins[0] += gone
        steps[0] -= gone
        if steps[0] <= _TINY and len(steps) > 1:
            piece, begins, steps = piece[1:], begins[1:], steps[1:]
        segments, needed = self.path.intervals(piece, begins, steps, self.efforts)
        speed = max(before + u * tau, 0.0)
        x, left = stopping_profile(segments, steps, self.limits.acceleration, speed**2, needed)
        count = len(left)
        return Trajectory(self.path, self.limits, self.efforts, piece[:count], begins[:count], left, x)
