"""Trajectories in the format of the TUM benchmark, which evo and others read: ``time x y z qx qy qz qw``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from roboyard.errors import InputError
from roboyard.mapping.text_files import nanoseconds, numbers, read_lines, seconds, write_lines
from roboyard.mapping.trajectory import Trajectory

_COLUMNS: Final = "time x y z qx qy qz qw"


def write_tum(path: Path | str, trajectory: Trajectory) -> None:
    """Write a trajectory; times and positions come back exactly, directions to rounding.

    Raises:
        InputError: the file cannot be written.
    """

    def lines() -> Iterator[str]:
        yield f"# {_COLUMNS}"
        for time_ns, (x, y, theta) in zip(trajectory.times_ns.tolist(), trajectory.poses.tolist(), strict=True):
            z, w = math.sin(0.5 * theta), math.cos(0.5 * theta)
            yield f"{seconds(time_ns)} {x!r} {y!r} 0.0 0.0 0.0 {z!r} {w!r}"

    write_lines(path, lines())


def read_tum(path: Path | str) -> Trajectory:
    """Read a trajectory, gzipped or not; of poses in space the part in the plane is taken.

    Raises:
        InputError: it cannot be read, holds none, its times do not ascend, or a line is no pose (with its number).
    """
    times: list[int] = []
    poses: list[tuple[float, float, float]] = []
    for number, line in read_lines(path):
        words = line.replace(",", " ").split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{path}:{number}"
        _, x, y, _, qx, qy, qz, qw = numbers(words, 8, where, _COLUMNS)
        if not 0.5 < qx * qx + qy * qy + qz * qz + qw * qw < 2.0:
            raise InputError("the quaternion has not length 1", location=where, valid=_COLUMNS)
        time_ns = nanoseconds(words[0], where)
        if times and time_ns <= times[-1]:
            raise InputError("a time that is not after the one before", location=where, valid="ascending times")
        times.append(time_ns)
        poses.append((x, y, math.atan2(2.0 * (qw * qz + qx * qy), qw * qw + qx * qx - qy * qy - qz * qz)))
    if not times:
        raise InputError("holds no poses", location=str(path), valid=f"lines of {_COLUMNS}")
    return Trajectory(np.array(times, dtype=np.int64), np.array(poses))
