"""Errors of a trajectory: absolute and relative errors against ground truth (ATE, RPE), and errors of verified
relations.

Sources: J. Sturm, N. Engelhard, F. Endres, W. Burgard, D. Cremers, "A benchmark for the evaluation of RGB-D SLAM
systems", IROS 2012 (ATE and RPE); S. Umeyama, "Least-squares estimation of transformation parameters between two point
patterns", PAMI 13 (1991) (the alignment, here in the plane and without scale); R. Kümmerle, B. Steder, C. Dornhege, M.
Ruhnke, G. Grisetti, C. Stachniss, A. Kleiner, "On measuring the accuracy of SLAM algorithms", Autonomous Robots 27
(2009), 387-407 (relations: the pose at one time relative to the pose at another, so that an error counts once, wherever
in the log it is).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.se2_arrays import compose, relative
from roboyard.mapping.trajectory import (
    PoseTrajectory,
    format_seconds,
    parse_numbers,
    parse_time_ns,
    read_numbered_lines,
    write_lines,
)


@dataclass(frozen=True, slots=True)
class ErrorStatistics:
    """Statistics of the absolute values of errors.

    Attributes:
        mean: Mean.
        std: Standard deviation.
        median: Median.
        rmse: Root of the mean of the squares.
        maximum: Maximum.
        count: Number of errors.
    """

    mean: float
    std: float
    median: float
    rmse: float
    maximum: float
    count: int

    @classmethod
    def from_errors(cls, errors: ArrayLike) -> ErrorStatistics:
        """Compute the statistics of errors (n,), at least one.

        Raises:
            InputError: There is no error, or one is not finite.
        """
        sizes = np.abs(np.asarray(errors, dtype=np.float64).ravel())
        if not len(sizes):
            raise InputError("no errors to make statistics of", valid="at least one")
        if not np.isfinite(sizes).all():
            raise InputError("an error is not finite", valid="numbers")
        rmse = float(np.sqrt(np.mean(sizes**2)))
        return cls(
            float(sizes.mean()), float(sizes.std()), float(np.median(sizes)), rmse, float(sizes.max()), len(sizes)
        )

    def as_dict(self) -> dict[str, float | int]:
        """Return the numbers by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AbsoluteError:
    """Absolute error of a trajectory (ATE).

    Attributes:
        translational: Statistics of the distances [m].
        rotational_deg: Statistics of the heading errors [degrees].
        T_true_map: Transform that aligns the poses with the true ones.
        times_ns: (n,) times at which both are known [ns].
        distances: (n,) distance at each time [m].
        angles: (n,) heading error at each time, with sign [rad].
    """

    translational: ErrorStatistics
    rotational_deg: ErrorStatistics
    T_true_map: SE2
    times_ns: NDArray[np.int64]
    distances: NDArray[np.float64]
    angles: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RelativeError:
    """Relative error of a trajectory (RPE): errors of the motions over a fixed time.

    Attributes:
        translational: Statistics of the errors of translations [m].
        rotational_deg: Statistics of the errors of rotations [degrees].
        interval_ns: Duration of each motion [ns].
    """

    translational: ErrorStatistics
    rotational_deg: ErrorStatistics
    interval_ns: int


def align(points: ArrayLike, true_points: ArrayLike) -> SE2:
    """Compute the rigid transform that aligns points (n, 2) with true ones (n, 2) with the least sum of squared
    distances.

    Where points leave the direction open (a single one, or all at one place), it does not turn.

    Raises:
        InputError: no points, or other numbers of them.
    """
    p, q = (np.asarray(values, dtype=np.float64).reshape(-1, 2) for values in (points, true_points))
    if len(p) != len(q) or not len(p):
        raise InputError(f"{len(p)} points to lay on {len(q)}", valid="as many, at least one")
    p_mean, q_mean = p.mean(axis=0), q.mean(axis=0)
    a, b = p - p_mean, q - q_mean
    # in the plane the best turn has a closed form: no singular values, and never a mirror image
    sine, cosine = float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()), float((a * b).sum())
    min_magnitude = 1e-18 * max(1.0, float((p**2).sum() + (q**2).sum()))
    theta = math.atan2(sine, cosine) if math.hypot(sine, cosine) > min_magnitude else 0.0
    rotated_mean = SE2(0.0, 0.0, theta) @ p_mean
    return SE2(q_mean[0] - rotated_mean[0], q_mean[1] - rotated_mean[1], theta)


def absolute_error(
    trajectory: PoseTrajectory, truth: PoseTrajectory, *, aligned: bool = True, max_extrapolation_ns: int = 0
) -> AbsoluteError:
    """Compute the absolute error of a trajectory (ATE), at the times of the trajectory.

    Args:
        trajectory: Where the robot is believed to have been.
        truth: The true trajectory, interpolated linearly between its poses.
        aligned: First lay the one over the other by the best motion of the plane (maps have no common origin);
            otherwise compare as they are.
        max_extrapolation_ns: So much before the first and after the last true pose, that pose still counts [ns].

    Raises:
        InputError: the two have no time in common.
    """
    true_poses, is_covered = truth.interpolate(trajectory.times_ns, max_extrapolation_ns=max_extrapolation_ns)
    poses, true_poses = trajectory.poses[is_covered], true_poses[is_covered]
    if not len(poses):
        raise InputError("the trajectory and the true one have no time in common", valid="of the same run")
    T_true_map = align(poses[:, :2], true_poses[:, :2]) if aligned else SE2.identity()
    aligned_poses = compose([T_true_map.x, T_true_map.y, T_true_map.theta], poses)
    distances = np.hypot(*(aligned_poses - true_poses)[:, :2].T)
    angles = np.asarray(wrap_angle(aligned_poses[:, 2] - true_poses[:, 2]))
    return AbsoluteError(
        ErrorStatistics.from_errors(distances),
        ErrorStatistics.from_errors(np.degrees(angles)),
        T_true_map,
        trajectory.times_ns[is_covered],
        distances,
        angles,
    )


def relative_error(
    trajectory: PoseTrajectory, truth: PoseTrajectory, interval_ns: int = 1_000_000_000
) -> RelativeError:
    """Compute the relative error of a trajectory (RPE): the errors of its motions over a fixed time.

    One motion starts at each pose of the trajectory and ends ``interval_ns`` later; both ends lie between the first
    and the
    last pose of both.

    Raises:
        InputError: no such motion, or a time that is not positive.
    """
    if interval_ns <= 0:
        raise InputError(f"motions over {interval_ns} ns", valid="more than 0")
    starts = trajectory.times_ns
    ends = starts + interval_ns
    samples = [
        each_trajectory.interpolate(times) for each_trajectory in (trajectory, truth) for times in (starts, ends)
    ]
    is_covered = np.logical_and.reduce([mask for _, mask in samples])
    if not is_covered.any():
        raise InputError(f"no motion over {interval_ns * 1e-9:g} s lies in both trajectories", valid="a shorter time")
    first, second, true_first, true_second = (poses[is_covered] for poses, _ in samples)
    errors = relative(relative(true_first, true_second), relative(first, second))
    return RelativeError(
        ErrorStatistics.from_errors(np.hypot(errors[:, 0], errors[:, 1])),
        ErrorStatistics.from_errors(np.degrees(errors[:, 2])),
        interval_ns,
    )


TOLERANCE_NS: Final = 300_000_000
"""A relation counts when the trajectory has a pose this near to both of its times [ns]."""
_RELATION_COLUMNS: Final = "t1 t2 dx dy dz roll pitch yaw"


@dataclass(frozen=True, slots=True)
class Relations:
    """Verified relative poses of the robot at pairs of times.

    Attributes:
        first_ns: (n,) time of the first pose [ns].
        second_ns: (n,) time of the second pose [ns].
        relative_poses: (n, 3) ``T_first_second``: x, y [m], theta [rad].

    Raises:
        InputError: Shapes of arrays do not match, or relative poses are not finite.
    """

    first_ns: NDArray[np.int64]
    second_ns: NDArray[np.int64]
    relative_poses: NDArray[np.float64]

    def __post_init__(self) -> None:
        first, second = (np.asarray(times, dtype=np.int64) for times in (self.first_ns, self.second_ns))
        relative_poses = np.asarray(self.relative_poses, dtype=np.float64).reshape(-1, 3)
        if first.shape != second.shape or first.shape != (len(relative_poses),):
            raise InputError(
                f"relations between {first.shape} and {second.shape} times with {len(relative_poses)} motions",
                valid="(n,)",
            )
        if not np.isfinite(relative_poses).all():
            raise InputError("a relation is not finite", valid="metres and radians")
        for name, value in (("first_ns", first), ("second_ns", second), ("relative_poses", relative_poses)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.first_ns)


@dataclass(frozen=True, slots=True)
class RelationErrors:
    """Errors of a trajectory in verified relations.

    Attributes:
        translational: Statistics of the position errors [m].
        rotational_deg: Statistics of the heading errors [degrees].
        n_used: Number of relations for whose times the trajectory has poses.
        n_total: Number of relations.
        times_ns: (used,) later time of each relation used [ns].
        distances: (used,) position error of each [m].
        angles: (used,) heading error of each, with sign [rad].
    """

    translational: ErrorStatistics
    rotational_deg: ErrorStatistics
    n_used: int
    n_total: int
    times_ns: NDArray[np.int64]
    distances: NDArray[np.float64]
    angles: NDArray[np.float64]


def relation_errors(
    trajectory: PoseTrajectory, relations: Relations, tolerance_ns: int = TOLERANCE_NS
) -> RelationErrors:
    """Compute the errors of a trajectory in verified relations.

    Args:
        trajectory: Where the robot is believed to have been; between its poses it went straight.
        relations: The verified relative poses.
        tolerance_ns: A relation counts when the trajectory has a pose this near to both of its times [ns].

    Raises:
        InputError: no relation counts: trajectory and relations are of different logs.
    """
    is_covered = _has_pose_near(trajectory, relations.first_ns, tolerance_ns) & _has_pose_near(
        trajectory, relations.second_ns, tolerance_ns
    )
    if not is_covered.any():
        raise InputError(
            f"none of {len(relations)} relations is of times at which the trajectory has poses",
            location=_describe_overlap(trajectory, relations),
            valid="relations of the same log",
        )
    first = trajectory.interpolate(relations.first_ns[is_covered], max_extrapolation_ns=tolerance_ns)[0]
    second = trajectory.interpolate(relations.second_ns[is_covered], max_extrapolation_ns=tolerance_ns)[0]
    errors = relative(first, second) - relations.relative_poses[is_covered]
    distances, angles = np.hypot(errors[:, 0], errors[:, 1]), np.asarray(wrap_angle(errors[:, 2]))
    return RelationErrors(
        ErrorStatistics.from_errors(distances),
        ErrorStatistics.from_errors(np.degrees(angles)),
        int(is_covered.sum()),
        len(relations),
        np.maximum(relations.first_ns, relations.second_ns)[is_covered],
        distances,
        angles,
    )


def read_relations(path: Path | str) -> Relations:
    """Read a file of relations, gzipped or not: lines ``t1 t2 dx dy dz roll pitch yaw`` [s, m, rad].

    Raises:
        InputError: it cannot be read, holds none, or a line is no relation (with its number).
    """
    first, second, relative_poses = [], [], []
    for line_number, line in read_numbered_lines(path):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        location = f"{path}:{line_number}"
        values = parse_numbers(words, 8, location, _RELATION_COLUMNS)
        first.append(parse_time_ns(words[0], location))
        second.append(parse_time_ns(words[1], location))
        relative_poses.append((values[2], values[3], _yaw(values[5], values[6], values[7])))
    if not relative_poses:
        raise InputError("holds no relations", location=str(path), valid=f"lines of {_RELATION_COLUMNS}")
    return Relations(np.array(first, dtype=np.int64), np.array(second, dtype=np.int64), np.array(relative_poses))


def write_relations(path: Path | str, relations: Relations) -> None:
    """Write what ``read_relations`` reads; every number comes back as it was.

    Raises:
        InputError: the file cannot be written.
    """

    def lines() -> Iterator[str]:
        rows = zip(
            relations.first_ns.tolist(), relations.second_ns.tolist(), relations.relative_poses.tolist(), strict=True
        )
        for first, second, (x, y, theta) in rows:
            yield f"{format_seconds(first)} {format_seconds(second)} {x!r} {y!r} 0.0 0.0 0.0 {theta!r}"

    write_lines(path, lines())


def _has_pose_near(trajectory: PoseTrajectory, times_ns: NDArray[np.int64], tolerance_ns: int) -> NDArray[np.bool_]:
    """Return at which times (n,) the trajectory has a pose within the tolerance."""
    pose_times = trajectory.times_ns
    if not len(pose_times):
        return np.zeros(len(times_ns), dtype=np.bool_)
    after = np.clip(np.searchsorted(pose_times, times_ns), 0, len(pose_times) - 1)
    before = np.maximum(after - 1, 0)
    distance = np.minimum(np.abs(pose_times[after] - times_ns), np.abs(pose_times[before] - times_ns))
    return np.asarray(distance <= tolerance_ns)


def _yaw(roll: float, pitch: float, yaw: float) -> float:
    """Return the heading of the rotated x axis in the plane [rad]; rotations about other axes are small on a flat
    floor.
    """
    return yaw if roll == pitch == 0.0 else math.atan2(math.sin(yaw) * math.cos(pitch), math.cos(yaw) * math.cos(pitch))


def _describe_overlap(trajectory: PoseTrajectory, relations: Relations) -> str:
    times = np.concatenate([relations.first_ns, relations.second_ns])
    pose_times = trajectory.times_ns
    poses = f"{format_seconds(pose_times[0])} to {format_seconds(pose_times[-1])} s" if len(pose_times) else "never"
    return f"poses from {poses}, relations from {format_seconds(times.min())} to {format_seconds(times.max())} s"
