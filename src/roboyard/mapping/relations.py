"""The error of a trajectory against relations between its poses that people checked by hand.

Source: R. Kümmerle, B. Steder, C. Dornhege, M. Ruhnke, G. Grisetti, C. Stachniss, A. Kleiner, "On measuring the
accuracy of SLAM algorithms", Autonomous Robots 27 (2009), 387-407.  A relation is the pose at one time seen from the
pose at another, so that an error made once counts once, wherever in the log it was made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import wrap_angle
from roboyard.geometry.se2_arrays import relative
from roboyard.mapping.statistics import ErrorStatistics
from roboyard.mapping.text_files import nanoseconds, numbers, read_lines, seconds, write_lines
from roboyard.mapping.trajectory import Trajectory

TOLERANCE_NS: Final = 300_000_000
"""A relation counts when the trajectory has a pose this near to both of its times [ns]."""
_COLUMNS: Final = "t1 t2 dx dy dz roll pitch yaw"


@dataclass(frozen=True, slots=True)
class Relations:
    """Where the robot was at one time, seen from where it was at another.

    Attributes:
        first_ns: (n,) time of the pose that sees [ns].
        second_ns: (n,) time of the pose that is seen [ns].
        motions: (n, 3) ``T_first_second``: x, y [m], theta [rad].

    Raises:
        InputError: arrays that do not fit each other, or motions that are not finite.
    """

    first_ns: NDArray[np.int64]
    second_ns: NDArray[np.int64]
    motions: NDArray[np.float64]

    def __post_init__(self) -> None:
        first, second = (np.asarray(times, dtype=np.int64) for times in (self.first_ns, self.second_ns))
        motions = np.asarray(self.motions, dtype=np.float64).reshape(-1, 3)
        if first.shape != second.shape or first.shape != (len(motions),):
            raise InputError(
                f"relations between {first.shape} and {second.shape} times with {len(motions)} motions", valid="(n,)"
            )
        if not np.isfinite(motions).all():
            raise InputError("a relation is not finite", valid="metres and radians")
        for name, value in (("first_ns", first), ("second_ns", second), ("motions", motions)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.first_ns)


@dataclass(frozen=True, slots=True)
class RelationErrors:
    """How well a trajectory keeps relations.

    Attributes:
        translational: Lengths of the errors in position [m].
        rotational_deg: Sizes of the errors in direction [degrees].
        used: Number of relations whose times the trajectory knows.
        total: Number of relations.
        times_ns: (used,) the later time of each relation used [ns].
        distances: (used,) error in position of each [m].
        turns: (used,) error in direction of each, with sign [rad].
    """

    translational: ErrorStatistics
    rotational_deg: ErrorStatistics
    used: int
    total: int
    times_ns: NDArray[np.int64]
    distances: NDArray[np.float64]
    turns: NDArray[np.float64]


def relation_errors(trajectory: Trajectory, relations: Relations, tolerance_ns: int = TOLERANCE_NS) -> RelationErrors:
    """How well a trajectory keeps relations.

    Args:
        trajectory: Where the robot is believed to have been; between its poses it went straight.
        relations: Where it was.
        tolerance_ns: A relation counts when the trajectory has a pose this near to both of its times [ns].

    Raises:
        InputError: no relation counts: trajectory and relations are of different logs.
    """
    known = _near(trajectory, relations.first_ns, tolerance_ns) & _near(trajectory, relations.second_ns, tolerance_ns)
    if not known.any():
        raise InputError(
            f"none of {len(relations)} relations is of times at which the trajectory has poses",
            location=_spans(trajectory, relations),
            valid="relations of the same log",
        )
    first = trajectory.at(relations.first_ns[known], beyond_ns=tolerance_ns)[0]
    second = trajectory.at(relations.second_ns[known], beyond_ns=tolerance_ns)[0]
    wrong = relative(first, second) - relations.motions[known]
    distances, turns = np.hypot(wrong[:, 0], wrong[:, 1]), np.asarray(wrap_angle(wrong[:, 2]))
    return RelationErrors(
        ErrorStatistics.of(distances),
        ErrorStatistics.of(np.degrees(turns)),
        int(known.sum()),
        len(relations),
        np.maximum(relations.first_ns, relations.second_ns)[known],
        distances,
        turns,
    )


def read_relations(path: Path | str) -> Relations:
    """Read a file of relations, gzipped or not: lines ``t1 t2 dx dy dz roll pitch yaw`` [s, m, rad].

    Raises:
        InputError: it cannot be read, holds none, or a line is no relation (with its number).
    """
    first, second, motions = [], [], []
    for number, line in read_lines(path):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{path}:{number}"
        values = numbers(words, 8, where, _COLUMNS)
        first.append(nanoseconds(words[0], where))
        second.append(nanoseconds(words[1], where))
        motions.append((values[2], values[3], _yaw(values[5], values[6], values[7])))
    if not motions:
        raise InputError("holds no relations", location=str(path), valid=f"lines of {_COLUMNS}")
    return Relations(np.array(first, dtype=np.int64), np.array(second, dtype=np.int64), np.array(motions))


def write_relations(path: Path | str, relations: Relations) -> None:
    """Write what ``read_relations`` reads; every number comes back as it was.

    Raises:
        InputError: the file cannot be written.
    """

    def lines() -> Iterator[str]:
        rows = zip(relations.first_ns.tolist(), relations.second_ns.tolist(), relations.motions.tolist(), strict=True)
        for first, second, (x, y, theta) in rows:
            yield f"{seconds(first)} {seconds(second)} {x!r} {y!r} 0.0 0.0 0.0 {theta!r}"

    write_lines(path, lines())


def _near(trajectory: Trajectory, times_ns: NDArray[np.int64], tolerance_ns: int) -> NDArray[np.bool_]:
    """At which times (n,) the trajectory has a pose within the tolerance."""
    own = trajectory.times_ns
    if not len(own):
        return np.zeros(len(times_ns), dtype=np.bool_)
    after = np.clip(np.searchsorted(own, times_ns), 0, len(own) - 1)
    before = np.maximum(after - 1, 0)
    distance = np.minimum(np.abs(own[after] - times_ns), np.abs(own[before] - times_ns))
    return np.asarray(distance <= tolerance_ns)


def _yaw(roll: float, pitch: float, yaw: float) -> float:
    """Direction of the turned x axis in the plane; turns about the other axes are near none on a flat floor."""
    return yaw if roll == pitch == 0.0 else math.atan2(math.sin(yaw) * math.cos(pitch), math.cos(yaw) * math.cos(pitch))


def _spans(trajectory: Trajectory, relations: Relations) -> str:
    times = np.concatenate([relations.first_ns, relations.second_ns])
    own = trajectory.times_ns
    poses = f"{seconds(own[0])} to {seconds(own[-1])} s" if len(own) else "never"
    return f"poses from {poses}, relations from {seconds(times.min())} to {seconds(times.max())} s"
