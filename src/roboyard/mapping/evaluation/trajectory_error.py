"""The error of a trajectory against a true one: absolute, after laying one over the other, and relative.

Sources: J. Sturm, N. Engelhard, F. Endres, W. Burgard, D. Cremers, "A benchmark for the evaluation of RGB-D SLAM
systems", IROS 2012 (both errors); S. Umeyama, "Least-squares estimation of transformation parameters between two point
patterns", PAMI 13 (1991) (the alignment, here in the plane and without scale).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.se2_arrays import compose, relative
from roboyard.mapping.statistics import ErrorStatistics
from roboyard.mapping.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class AbsoluteError:
    """How far a trajectory is from the true one (ATE).

    Attributes:
        translational: Distances [m].
        rotational_deg: Sizes of the errors in direction [degrees].
        T_true_map: What was put before the poses to lay them over the true ones.
        times_ns: (n,) times at which both are known [ns].
        distances: (n,) distance at each [m].
        turns: (n,) error in direction at each, with sign [rad].
    """

    translational: ErrorStatistics
    rotational_deg: ErrorStatistics
    T_true_map: SE2
    times_ns: NDArray[np.int64]
    distances: NDArray[np.float64]
    turns: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RelativeError:
    """How far motions over a fixed time are from the true ones (RPE).

    Attributes:
        translational: Of the motions [m].
        rotational_deg: Of the motions [degrees].
        over_ns: Length of each motion in time [ns].
    """

    translational: ErrorStatistics
    rotational_deg: ErrorStatistics
    over_ns: int


def align(points: ArrayLike, true_points: ArrayLike) -> SE2:
    """The motion that lays points (n, 2) on true ones (n, 2) with the least sum of squared distances.

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
    level = 1e-18 * max(1.0, float((p**2).sum() + (q**2).sum()))
    theta = math.atan2(sine, cosine) if math.hypot(sine, cosine) > level else 0.0
    moved = SE2(0.0, 0.0, theta) @ p_mean
    return SE2(q_mean[0] - moved[0], q_mean[1] - moved[1], theta)


def absolute_error(
    trajectory: Trajectory, truth: Trajectory, *, aligned: bool = True, beyond_ns: int = 0
) -> AbsoluteError:
    """How far a trajectory is from the true one, at the trajectory's own times.

    Args:
        trajectory: Where the robot is believed to have been.
        truth: Where it was; between its poses it went straight.
        aligned: First lay the one over the other by the best motion of the plane (maps have no common origin);
            otherwise compare as they are.
        beyond_ns: So much before the first and after the last true pose, that pose still counts [ns].

    Raises:
        InputError: the two have no time in common.
    """
    true, known = truth.at(trajectory.times_ns, beyond_ns=beyond_ns)
    poses, true = trajectory.poses[known], true[known]
    if not len(poses):
        raise InputError("the trajectory and the true one have no time in common", valid="of the same run")
    T_true_map = align(poses[:, :2], true[:, :2]) if aligned else SE2.identity()
    laid = compose([T_true_map.x, T_true_map.y, T_true_map.theta], poses)
    distances = np.hypot(*(laid - true)[:, :2].T)
    turns = np.asarray(wrap_angle(laid[:, 2] - true[:, 2]))
    return AbsoluteError(
        ErrorStatistics.of(distances),
        ErrorStatistics.of(np.degrees(turns)),
        T_true_map,
        trajectory.times_ns[known],
        distances,
        turns,
    )


def relative_error(trajectory: Trajectory, truth: Trajectory, over_ns: int = 1_000_000_000) -> RelativeError:
    """How far the trajectory's motions over a fixed time are from the true ones.

    One motion starts at each pose of the trajectory and ends ``over_ns`` later; both ends lie between the first and the
    last pose of both.

    Raises:
        InputError: no such motion, or a time that is not positive.
    """
    if over_ns <= 0:
        raise InputError(f"motions over {over_ns} ns", valid="more than 0")
    starts = trajectory.times_ns
    ends = starts + over_ns
    found = [track.at(times) for track in (trajectory, truth) for times in (starts, ends)]
    known = np.logical_and.reduce([mask for _, mask in found])
    if not known.any():
        raise InputError(f"no motion over {over_ns * 1e-9:g} s lies in both trajectories", valid="a shorter time")
    first, second, true_first, true_second = (poses[known] for poses, _ in found)
    wrong = relative(relative(true_first, true_second), relative(first, second))
    return RelativeError(
        ErrorStatistics.of(np.hypot(wrong[:, 0], wrong[:, 1])), ErrorStatistics.of(np.degrees(wrong[:, 2])), over_ns
    )
