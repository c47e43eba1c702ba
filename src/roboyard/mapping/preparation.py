"""A raw scan made ready for matching: without what is no measurement, motion undone, thinned, surfaces' directions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.mapping.scan import Scan

_EQUAL = 0.006
"""Readings that differ by less count as the same value [m]; lasers answer in steps of 1 or 10 mm."""


@dataclass(frozen=True, slots=True)
class PreparationConfig:
    """How scans are prepared.

    Attributes:
        reach: Longer readings are left out [m]: the farther, the fewer beams on a wall, and grids grow.
        closest: Shorter readings are left out [m]: reflections and the robot itself.
        spacing: Of two points nearer to each other one is left out [m].
        points: Most points kept for matching; the spacing widens until they are no more.
        smoothing: Length of wall from which a surface's direction is taken, to either side [m].
        jump: Neighbouring beams whose ends lie farther apart, beyond what the angle explains, hit two things [m].
    """

    reach: float = 30.0
    closest: float = 0.05
    spacing: float = 0.05
    points: int = 240
    smoothing: float = 0.12
    jump: float = 0.15


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scan ready for matching, in the base's frame at the scan's time.

    Attributes:
        points: (n, 2) where beams hit, thinned [m].
        normals: (n, 2) direction of the surface there, towards the laser; shorter than 1 where it is uncertain, 0
            where nothing is known.
        ends: (m, 2) float32, where all usable beams hit, not thinned [m].
        origin: (2,) the laser's place [m].
        laser: Name of the laser.
    """

    points: NDArray[np.float64]
    normals: NDArray[np.float64]
    ends: NDArray[np.float32]
    origin: NDArray[np.float64]
    laser: str = "scan"


class Preparation:
    """Prepares scans.  What it knows about a laser grows: values that this laser gives when it sees nothing.

    Lasers that see nothing should say infinity, or more than their range.  Some logs hold another value instead
    (16.29 m, an overflow of 81.83, in the Intel log).  It gives itself away: many neighbouring beams with the same
    reading would be an arc around the laser.

    Args:
        config: Limits.
    """

    def __init__(self, config: PreparationConfig | None = None) -> None:
        expect_kernels(find_arc, scan_points, thin)
        self.config = config or PreparationConfig()
        self._nothing: dict[tuple[str, int], int] = {}  # how often an arc was seen, by laser and value [cm]

    def save_state(self) -> dict[str, int]:
        """What was learnt about lasers, as plain data."""
        return {f"{laser}|{value}": count for (laser, value), count in sorted(self._nothing.items())}

    def load_state(self, state: dict[str, int]) -> None:
        """Take up what ``state`` gave."""
        self._nothing = {
            (key.rpartition("|")[0], int(key.rpartition("|")[2])): int(count) for key, count in state.items()
        }

    def prepare(self, scan: Scan, twist: NDArray[np.float64] | None = None) -> Prepared:
        """Prepare one scan.

        Args:
            scan: The scan; readings may be NaN, infinite, zero or negative.
            twist: (vx, vy, omega) of the base during the turn [m/s, rad/s], or None for standing still.
        """
        config = self.config
        ranges = np.ascontiguousarray(scan.ranges, dtype=np.float64)
        far = min(scan.range_max, config.reach)
        near = max(scan.range_min, config.closest)
        usable = np.isfinite(ranges) & (ranges > near) & (ranges < far)
        self._leave_out_arcs(scan, ranges, usable)
        motion = np.zeros(3) if twist is None else np.asarray(twist, dtype=np.float64)
        laser = scan.T_base_laser
        points, normals = scan_points(
            ranges, usable, scan.angle_min, scan.angle_increment, scan.time_increment, motion,
            np.array([laser.x, laser.y, laser.theta]), config.smoothing, config.jump,
        )  # fmt: skip
        chosen = thin(points, config.spacing)
        spacing = config.spacing
        while len(chosen) > config.points:
            spacing *= max(1.1, min(2.0, math.sqrt(len(chosen) / config.points)))
            chosen = thin(points, spacing)
        return Prepared(
            np.ascontiguousarray(points[chosen]), np.ascontiguousarray(normals[chosen]), points.astype(np.float32),
            laser.xy, scan.laser,
        )  # fmt: skip

    def _leave_out_arcs(self, scan: Scan, ranges: NDArray[np.float64], usable: NDArray[np.bool_]) -> None:
        value = find_arc(ranges, usable, abs(scan.angle_increment), _EQUAL)
        if value > 0.0:
            key = scan.laser, round(value * 100.0)
            self._nothing[key] = self._nothing.get(key, 0) + 1
        for (laser, centimetres), count in self._nothing.items():
            if laser == scan.laser and (count >= 5 or abs(centimetres * 0.01 - value) < _EQUAL):
                usable &= ~(np.abs(ranges - centimetres * 0.01) < _EQUAL)


def _example_arc() -> Iterable[tuple[Any, ...]]:
    yield np.ones(4), np.ones(4, dtype=np.bool_), 0.01, 0.006


@kernel(examples=_example_arc)
def find_arc(ranges: NDArray[np.float64], usable: NDArray[np.bool_], increment: float, equal: float) -> float:
    """The reading of neighbouring beams that lie on an arc around the laser, where a wall would have shown; or 0."""
    n = len(ranges)
    start = 0
    best, value = 0, 0.0
    for k in range(1, n + 1):
        if k < n and usable[k] and usable[start] and abs(ranges[k] - ranges[start]) < equal:
            continue
        length = k - start
        if length >= 6 and usable[start]:
            half = 0.5 * (length - 1) * increment
            bulge = ranges[start] * (1.0 - math.cos(min(half, 1.5)))  # how far a wall across would have left the arc
            if bulge > 5.0 * equal and ranges[start] > 1.0 and length > best:
                best, value = length, ranges[start]
        start = k
    return value


def _example_points() -> Iterable[tuple[Any, ...]]:
    yield np.ones(4), np.ones(4, dtype=np.bool_), 0.0, 0.01, 0.0, np.zeros(3), np.zeros(3), 0.1, 0.1


@kernel(examples=_example_points)
def scan_points(
    ranges: NDArray[np.float64],
    usable: NDArray[np.bool_],
    angle_min: float,
    increment: float,
    time_increment: float,
    twist: NDArray[np.float64],
    laser: NDArray[np.float64],
    smoothing: float,
    jump: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and normals of the usable beams, in the base's frame at the first beam's time.

    Args:
        ranges: (n,) [m].
        usable: (n,).
        angle_min: Direction of the first beam [rad].
        increment: From beam to beam [rad].
        time_increment: From beam to beam [s].
        twist: Motion of the base (vx, vy, omega) [m/s, rad/s].
        laser: Pose of the laser in the base's frame.
        smoothing: Length of wall to either side that gives the direction [m].
        jump: Gap between neighbours beyond which they hit different things [m].

    Returns:
        (m, 2) points [m] and (m, 2) normals.
    """
    n = len(ranges)
    count = 0
    for k in range(n):
        if usable[k]:
            count += 1
    points = np.empty((count, 2))
    normals = np.zeros((count, 2))
    origins = np.empty((count, 2))
    beams = np.empty(count, dtype=np.int64)
    c_laser, s_laser = math.cos(laser[2]), math.sin(laser[2])
    m = 0
    for k in range(n):
        if not usable[k]:
            continue
        angle = angle_min + increment * k
        lx, ly = ranges[k] * math.cos(angle), ranges[k] * math.sin(angle)
        x = laser[0] + c_laser * lx - s_laser * ly
        y = laser[1] + s_laser * lx + c_laser * ly
        after = time_increment * k
        turned = twist[2] * after
        c, s = math.cos(turned), math.sin(turned)
        points[m, 0] = c * x - s * y + twist[0] * after
        points[m, 1] = s * x + c * y + twist[1] * after
        origins[m, 0] = c * laser[0] - s * laser[1] + twist[0] * after
        origins[m, 1] = s * laser[0] + c * laser[1] + twist[1] * after
        beams[m] = k
        m += 1
    for i in range(count):
        sx, sy, sxx, sxy, syy, members = points[i, 0], points[i, 1], 0.0, 0.0, 0.0, 1
        first, last = i, i
        for direction in (-1, 1):
            j = i
            while True:
                following = j + direction
                if following < 0 or following >= count or abs(beams[following] - beams[j]) > 2:
                    break
                dx, dy = points[following, 0] - points[j, 0], points[following, 1] - points[j, 1]
                apart = abs(beams[following] - beams[j]) * abs(increment) * ranges[beams[j]]
                if math.sqrt(dx * dx + dy * dy) > jump + 3.0 * apart:
                    break
                dx, dy = points[following, 0] - points[i, 0], points[following, 1] - points[i, 1]
                if math.sqrt(dx * dx + dy * dy) > smoothing and abs(following - i) > 2:
                    break
                j = following
                sx += points[j, 0]
                sy += points[j, 1]
                members += 1
            if direction < 0:
                first = j
            else:
                last = j
        if members < 3:
            continue
        mx, my = sx / members, sy / members
        for j in range(first, last + 1):
            dx, dy = points[j, 0] - mx, points[j, 1] - my
            sxx += dx * dx
            sxy += dx * dy
            syy += dy * dy
        spread = math.sqrt((sxx - syy) ** 2 + 4.0 * sxy * sxy)
        total = sxx + syy
        if total <= 0.0:
            continue
        along = 0.5 * math.atan2(2.0 * sxy, sxx - syy)
        nx, ny = -math.sin(along), math.cos(along)
        if nx * (origins[i, 0] - points[i, 0]) + ny * (origins[i, 1] - points[i, 1]) < 0.0:
            nx, ny = -nx, -ny
        straight = spread / total  # 1 on a line, 0 in a round heap
        normals[i, 0], normals[i, 1] = nx * straight, ny * straight
    return points, normals


def _example_thin() -> Iterable[tuple[Any, ...]]:
    yield np.zeros((3, 2)), 0.05


@kernel(examples=_example_thin)
def thin(points: NDArray[np.float64], spacing: float) -> NDArray[np.int64]:
    """Indices of the first point of each cell of that side [m], in order."""
    n = len(points)
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    columns = np.empty(n, dtype=np.int64)
    rows = np.empty(n, dtype=np.int64)
    chosen = np.empty(n, dtype=np.int64)
    count = 0
    for i in range(n):
        columns[i] = math.floor(points[i, 0] / spacing)
        rows[i] = math.floor(points[i, 1] / spacing)
        slot = ((columns[i] * 73856093) ^ (rows[i] * 19349663)) & (size - 1)
        while table[slot] >= 0:
            other = table[slot]
            if columns[other] == columns[i] and rows[other] == rows[i]:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = i
            chosen[count] = i
            count += 1
    return chosen[:count]
