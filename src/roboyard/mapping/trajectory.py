"""Trajectories: poses in the plane over time, and the TUM format that evo and others read."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config import atomic_path
from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle


@dataclass(frozen=True, slots=True)
class PoseTrajectory:
    """Poses in the plane at ascending times.

    Attributes:
        times_ns: (n,) int64, strictly ascending [ns].
        poses: (n, 3): x, y [m] and theta [rad], in the map.

    Raises:
        InputError: unequal lengths, times that do not ascend, or numbers that are not finite.
    """

    times_ns: NDArray[np.int64]
    poses: NDArray[np.float64]

    def __post_init__(self) -> None:
        times = np.asarray(self.times_ns, dtype=np.int64)
        poses = np.asarray(self.poses, dtype=np.float64).reshape(-1, 3)
        if times.ndim != 1 or len(times) != len(poses):
            raise InputError(f"{times.shape} times for poses of shape {np.shape(self.poses)}", valid="(n,) and (n, 3)")
        if (np.diff(times) <= 0).any():
            raise InputError("the times of a trajectory do not ascend", valid="each later than the one before")
        if not np.isfinite(poses).all():
            raise InputError("a pose of a trajectory is not finite", valid="metres and radians")
        object.__setattr__(self, "times_ns", times)
        object.__setattr__(self, "poses", poses)

    def __len__(self) -> int:
        return len(self.times_ns)

    def pose(self, index: int) -> SE2:
        """Return the pose of an index."""
        return SE2(*self.poses[index])

    def interpolate(
        self, times_ns: ArrayLike, *, max_extrapolation_ns: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the poses at other times, interpolated between neighbors: linear positions, and angles by the shorter
        rotation.

        Args:
            times_ns: (m,) [ns].
            max_extrapolation_ns: So much before the first and after the last pose, that pose still counts [ns].

        Returns:
            (m, 3) poses, and (m,) which of them the trajectory knows.
        """
        requested = np.atleast_1d(np.asarray(times_ns, dtype=np.int64))
        if not len(self):
            return np.zeros((len(requested), 3)), np.zeros(len(requested), dtype=np.bool_)
        is_covered = (requested >= self.times_ns[0] - max_extrapolation_ns) & (
            requested <= self.times_ns[-1] + max_extrapolation_ns
        )
        clipped = np.clip(requested, self.times_ns[0], self.times_ns[-1])
        after = np.clip(np.searchsorted(self.times_ns, clipped, side="left"), min(1, len(self) - 1), None)
        before = np.maximum(after - 1, 0)
        span = np.maximum(self.times_ns[after] - self.times_ns[before], 1)
        fraction = ((clipped - self.times_ns[before]) / span)[:, None]
        start, end = self.poses[before], self.poses[after]
        step = end - start
        step[:, 2] = wrap_angle(step[:, 2])
        poses = start + fraction * step
        poses[:, 2] = wrap_angle(poses[:, 2])
        return poses, is_covered

    @property
    def length(self) -> float:
        """Return the length of the path [m]."""
        return float(np.linalg.norm(np.diff(self.poses[:, :2], axis=0), axis=1).sum())


MAX_LINE: Final = 1 << 16
MAX_LINES: Final = 20_000_000


def read_numbered_lines(path: Path | str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, gzipped or not, with their numbers from 1.

    Raises:
        InputError: it cannot be read, is cut off, or is no text of lines.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a pipe would let us wait for ever
            raise InputError("is no file", location=str(path))
        with path.open("rb") as raw:
            is_gzipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if is_gzipped else raw
            with io.TextIOWrapper(file, encoding="utf-8", errors="replace") as text:
                for line_number in range(1, MAX_LINES + 1):
                    line = text.readline(MAX_LINE)
                    if not line:
                        return
                    if len(line) >= MAX_LINE or "\0" in line:
                        raise InputError("is no text", location=f"{path}:{line_number}", valid="lines of numbers")
                    yield line_number, line
        raise InputError(f"has more than {MAX_LINES} lines", location=str(path))
    except EOFError as error:
        raise InputError("the gzipped file is cut off", location=str(path)) from error
    except (OSError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", location=str(path)) from error


def write_lines(path: Path | str, lines: Iterable[str]) -> None:
    """Write lines; the file is there whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    path = Path(path)
    try:
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error


def parse_numbers(words: list[str], count: int, location: str, valid: str) -> list[float]:
    """Return the first ``count`` words as numbers.

    Raises:
        InputError: there are fewer, or one is no finite number.
    """
    if len(words) < count:
        raise InputError(f"{len(words)} numbers in a line", location=location, valid=valid)
    try:
        values = [float(word) for word in words[:count]]
    except ValueError as error:
        raise InputError(f"'{' '.join(words)[:60]}' are no numbers", location=location, valid=valid) from error
    if not all(math.isfinite(value) for value in values):
        raise InputError(f"'{' '.join(words)[:60]}' is not finite", location=location, valid=valid)
    return values


def parse_time_ns(text: str, location: str) -> int:
    """Return a time in seconds as exact nanoseconds; a float has too few digits for times of today with microseconds.

    Raises:
        InputError: no time, or one beyond what 64 bits hold.
    """
    integer_digits, _, fraction = text.removeprefix("-").partition(".")
    if (
        integer_digits.isdecimal()
        and integer_digits.isascii()
        and len(integer_digits) < 10 + 1
        and (fraction.isdecimal() or not fraction)
    ):
        size = int(integer_digits) * 10**9 + int(fraction[:9].ljust(9, "0") or "0")
        return -size if text.startswith("-") else size
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) < 9e9:
        raise InputError(f"'{text[:40]}' is no time", location=location, valid="seconds")
    return round(value * 1e9)


def format_seconds(time_ns: int) -> str:
    """Return a time [ns] as text in seconds, exact to the nanosecond."""
    whole_seconds, remaining_ns = divmod(abs(int(time_ns)), 10**9)
    return f"{'-' if time_ns < 0 else ''}{whole_seconds}.{remaining_ns:09d}"


_TUM_COLUMNS: Final = "time x y z qx qy qz qw"


def write_tum(path: Path | str, trajectory: PoseTrajectory) -> None:
    """Write a trajectory; times and positions come back exactly, directions to rounding.

    Raises:
        InputError: the file cannot be written.
    """

    def lines() -> Iterator[str]:
        yield f"# {_TUM_COLUMNS}"
        for time_ns, (x, y, theta) in zip(trajectory.times_ns.tolist(), trajectory.poses.tolist(), strict=True):
            z, w = math.sin(0.5 * theta), math.cos(0.5 * theta)
            yield f"{format_seconds(time_ns)} {x!r} {y!r} 0.0 0.0 0.0 {z!r} {w!r}"

    write_lines(path, lines())


def read_tum(path: Path | str) -> PoseTrajectory:
    """Read a trajectory, gzipped or not; of poses in space the part in the plane is taken.

    Raises:
        InputError: it cannot be read, holds none, its times do not ascend, or a line is no pose (with its number).
    """
    times: list[int] = []
    poses: list[tuple[float, float, float]] = []
    for line_number, line in read_numbered_lines(path):
        words = line.replace(",", " ").split()
        if not words or words[0].startswith("#"):
            continue
        location = f"{path}:{line_number}"
        _, x, y, _, qx, qy, qz, qw = parse_numbers(words, 8, location, _TUM_COLUMNS)
        if not 0.5 < qx * qx + qy * qy + qz * qz + qw * qw < 2.0:
            raise InputError("the quaternion has not length 1", location=location, valid=_TUM_COLUMNS)
        time_ns = parse_time_ns(words[0], location)
        if times and time_ns <= times[-1]:
            raise InputError("a time that is not after the one before", location=location, valid="ascending times")
        times.append(time_ns)
        poses.append((x, y, math.atan2(2.0 * (qw * qz + qx * qy), qw * qw + qx * qx - qy * qy - qz * qz)))
    if not times:
        raise InputError("holds no poses", location=str(path), valid=f"lines of {_TUM_COLUMNS}")
    return PoseTrajectory(np.array(times, dtype=np.int64), np.array(poses))
