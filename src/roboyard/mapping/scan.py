"""Laser scans, and their preprocessing for matching: invalid readings removed, motion compensated, thinned, with
surface normals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.errors import InputError
from roboyard.geometry import SE2


@dataclass(frozen=True, slots=True)
class LaserScan:
    """One scan of a planar laser.

    Attributes:
        time_ns: Time of the first beam [ns].
        ranges: (n,) float32 [m]; NaN, infinite values and values outside of ``range_min`` to ``range_max`` are no
            returns.
        angle_min: Direction of the first beam in the laser's frame [rad].
        angle_increment: Difference of the directions of successive beams [rad]; negative for a laser that is upside
            down or turns clockwise.
        range_min: Smallest valid range [m].
        range_max: Smallest range that is no return any more [m].
        time_increment: Time between successive beams [s]; 0 if it is unknown.
        T_base_laser: Pose of the laser in the base's frame.
        odometry: ``T_odom_base`` at ``time_ns``; None without odometry.
        laser_name: Name of the laser: its topic or frame.

    Raises:
        InputError: Ranges have another shape, or angles or limits are not finite.
    """

    time_ns: int
    ranges: NDArray[np.float32]
    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float
    time_increment: float = 0.0
    T_base_laser: SE2 = field(default_factory=SE2.identity)
    odometry: SE2 | None = None
    laser_name: str = "scan"

    def __post_init__(self) -> None:
        if np.ndim(self.ranges) != 1:
            raise InputError(
                f"a scan with ranges of shape {np.shape(self.ranges)}", location=self.laser_name, valid="(n,)"
            )
        numbers = (self.angle_min, self.angle_increment, self.range_min, self.time_increment)
        if not all(math.isfinite(number) for number in numbers) or math.isnan(self.range_max):
            raise InputError(
                "a scan with angles or limits that are not finite", location=self.laser_name, valid="rad and m"
            )

    @property
    def angles(self) -> NDArray[np.float64]:
        """Return the directions (n,) of the beams in the laser's frame [rad]."""
        return np.asarray(self.angle_min + self.angle_increment * np.arange(len(self.ranges)), dtype=np.float64)

    @property
    def hit_mask(self) -> NDArray[np.bool_]:
        """Return which beams (n,) hit something."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.ranges > self.range_min) & (self.ranges < self.range_max) & (self.ranges > 0.0))

    def points(self) -> NDArray[np.float64]:
        """Return the ends (m, 2) of the beams that hit something, in the base's frame [m], without correction of the
        motion.
        """
        is_hit = self.hit_mask
        ranges, angles = self.ranges[is_hit].astype(np.float64), self.angles[is_hit]
        return self.T_base_laser @ np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles)])


_RANGE_TOLERANCE = 0.006
"""Readings that differ by less count as the same value [m]; lasers answer in steps of 1 or 10 mm."""


@dataclass(frozen=True, slots=True)
class ScanPreprocessorConfig:
    """Parameters of the preprocessing of scans.

    Attributes:
        max_range: Largest range of a reading that is used [m]; few beams hit a surface far away, and maps grow.
        min_range: Smallest range of a reading that is used [m]; shorter ones are reflections or the robot itself.
        spacing: Smallest distance of points [m].
        max_points: Largest number of points for matching; the spacing grows until no more are left.
        normal_window: Length of surface to either side from which the normal is estimated [m].
        max_gap: Distance of neighboring points, beyond what the angle between them explains, above which they belong to
            different surfaces [m].
    """

    max_range: float = 30.0
    min_range: float = 0.05
    spacing: float = 0.05
    max_points: int = 240
    normal_window: float = 0.12
    max_gap: float = 0.15


@dataclass(frozen=True, slots=True)
class PreprocessedScan:
    """A scan ready for matching, in the base's frame at the scan's time.

    Attributes:
        points: (n, 2) thinned points [m].
        normals: (n, 2) normals of the surface at the points, towards the laser; shorter than 1 where the direction is
            uncertain, 0 where it is unknown.
        ends: (m, 2) float32 ends of all usable beams, not thinned [m].
        origin: (2,) position of the laser [m].
        laser_name: Name of the laser.
    """

    points: NDArray[np.float64]
    normals: NDArray[np.float64]
    ends: NDArray[np.float32]
    origin: NDArray[np.float64]
    laser_name: str = "scan"


class ScanPreprocessor:
    """Preprocesses scans, and learns the values that a laser reports without a return.

    Lasers should report infinity, or more than their range, if nothing reflects. Some logs hold another value instead
    (16.29 m, an overflow of 81.83, in the Intel log). Many neighboring beams with the same reading would be an arc
    around the laser, so such a value is recognized.

    Args:
        config: Parameters.
    """

    def __init__(self, config: ScanPreprocessorConfig | None = None) -> None:
        expect_kernels(find_no_return_arc, project_scan, first_point_per_cell)
        self.config = config or ScanPreprocessorConfig()
        self._no_return_counts: dict[tuple[str, int], int] = {}  # how often an arc was seen, by laser and value [cm]

    def save_state(self) -> dict[str, int]:
        """Return how often each value without a return was seen, as plain data."""
        return {f"{laser_name}|{value}": count for (laser_name, value), count in sorted(self._no_return_counts.items())}

    def load_state(self, state: dict[str, int]) -> None:
        """Restore what ``save_state`` returned."""
        self._no_return_counts = {
            (key.rpartition("|")[0], int(key.rpartition("|")[2])): int(count) for key, count in state.items()
        }

    def process(self, scan: LaserScan, twist: NDArray[np.float64] | None = None) -> PreprocessedScan:
        """Preprocess one scan.

        Args:
            scan: The scan; readings may be NaN, infinite, zero or negative.
            twist: Velocity (vx, vy, omega) of the base during the scan [m/s, rad/s]; None: the base stands still.
        """
        config = self.config
        ranges = np.ascontiguousarray(scan.ranges, dtype=np.float64)
        max_range = min(scan.range_max, config.max_range)
        min_range = max(scan.range_min, config.min_range)
        is_usable = np.isfinite(ranges) & (ranges > min_range) & (ranges < max_range)
        self._drop_no_return_arcs(scan, ranges, is_usable)
        base_twist = np.zeros(3) if twist is None else np.asarray(twist, dtype=np.float64)
        T_base_laser = scan.T_base_laser
        laser = LaserGeometry(
            scan.angle_min, scan.angle_increment, scan.time_increment,
            np.array([T_base_laser.x, T_base_laser.y, T_base_laser.theta]),
        )  # fmt: skip
        points, normals = project_scan(ranges, is_usable, laser, base_twist, config.normal_window, config.max_gap)
        selected = first_point_per_cell(points, config.spacing)
        spacing = config.spacing
        while len(selected) > config.max_points:
            spacing *= max(1.1, min(2.0, math.sqrt(len(selected) / config.max_points)))
            selected = first_point_per_cell(points, spacing)
        return PreprocessedScan(
            np.ascontiguousarray(points[selected]), np.ascontiguousarray(normals[selected]), points.astype(np.float32),
            T_base_laser.xy, scan.laser_name,
        )  # fmt: skip

    def _drop_no_return_arcs(self, scan: LaserScan, ranges: NDArray[np.float64], is_usable: NDArray[np.bool_]) -> None:
        no_return_range = find_no_return_arc(ranges, is_usable, abs(scan.angle_increment), _RANGE_TOLERANCE)
        if no_return_range > 0.0:
            key = scan.laser_name, round(no_return_range * 100.0)
            self._no_return_counts[key] = self._no_return_counts.get(key, 0) + 1
        for (laser_name, centimeters), count in self._no_return_counts.items():
            if laser_name == scan.laser_name and (
                count >= 5 or abs(centimeters * 0.01 - no_return_range) < _RANGE_TOLERANCE
            ):
                is_usable &= ~(np.abs(ranges - centimeters * 0.01) < _RANGE_TOLERANCE)


def _example_arc() -> Iterable[tuple[Any, ...]]:
    yield np.ones(4), np.ones(4, dtype=np.bool_), 0.01, 0.006


@kernel(examples=_example_arc)
def find_no_return_arc(
    ranges: NDArray[np.float64], is_usable: NDArray[np.bool_], angle_increment: float, tolerance: float
) -> float:
    """Return the reading of neighboring beams on an arc around the laser, which no wall explains [m]; 0: none."""
    n = len(ranges)
    start = 0
    max_length, no_return_range = 0, 0.0
    for k in range(1, n + 1):
        if k < n and is_usable[k] and is_usable[start] and abs(ranges[k] - ranges[start]) < tolerance:
            continue
        length = k - start
        if length >= 6 and is_usable[start]:
            half_angle = 0.5 * (length - 1) * angle_increment
            sagitta = ranges[start] * (
                1.0 - math.cos(min(half_angle, 1.5))
            )  # how far a wall across would have left the arc
            if sagitta > 5.0 * tolerance and ranges[start] > 1.0 and length > max_length:
                max_length, no_return_range = length, ranges[start]
        start = k
    return no_return_range


class LaserGeometry(NamedTuple):
    """Geometry and timing of a laser's beams.

    Attributes:
        angle_min: Direction of the first beam in the laser's frame [rad].
        angle_increment: Difference of the directions of successive beams [rad].
        time_increment: Time between successive beams [s].
        pose: (3,) pose of the laser in the base's frame [m, rad].
    """

    angle_min: float
    angle_increment: float
    time_increment: float
    pose: NDArray[np.float64]


def _example_points() -> Iterable[tuple[Any, ...]]:
    laser = LaserGeometry(0.0, 0.01, 0.0, np.zeros(3))
    yield np.ones(4), np.ones(4, dtype=np.bool_), laser, np.zeros(3), 0.1, 0.1


@kernel(examples=_example_points)
def project_scan(
    ranges: NDArray[np.float64],
    is_usable: NDArray[np.bool_],
    laser: LaserGeometry,
    twist: NDArray[np.float64],
    normal_window: float,
    max_gap: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the points and normals of the usable beams, in the base's frame at the time of the first beam.

    Args:
        ranges: (n,) ranges [m].
        is_usable: (n,) whether a beam is used.
        laser: Geometry and timing of the beams.
        twist: Velocity of the base during the scan (vx, vy, omega) [m/s, rad/s].
        normal_window: Length of surface to either side from which the normal is estimated [m].
        max_gap: Gap between neighboring points above which they belong to different surfaces [m].

    Returns:
        Points (m, 2) [m] and normals (m, 2).
    """
    angle_min, angle_increment, time_increment = laser.angle_min, laser.angle_increment, laser.time_increment
    laser_pose = laser.pose
    n = len(ranges)
    count = 0
    for k in range(n):
        if is_usable[k]:
            count += 1
    points = np.empty((count, 2))
    normals = np.zeros((count, 2))
    origins = np.empty((count, 2))
    beams = np.empty(count, dtype=np.int64)
    c_laser, s_laser = math.cos(laser_pose[2]), math.sin(laser_pose[2])
    m = 0
    for k in range(n):
        if not is_usable[k]:
            continue
        angle = angle_min + angle_increment * k
        lx, ly = ranges[k] * math.cos(angle), ranges[k] * math.sin(angle)
        x = laser_pose[0] + c_laser * lx - s_laser * ly
        y = laser_pose[1] + s_laser * lx + c_laser * ly
        elapsed = time_increment * k
        rotation = twist[2] * elapsed
        c, s = math.cos(rotation), math.sin(rotation)
        points[m, 0] = c * x - s * y + twist[0] * elapsed
        points[m, 1] = s * x + c * y + twist[1] * elapsed
        origins[m, 0] = c * laser_pose[0] - s * laser_pose[1] + twist[0] * elapsed
        origins[m, 1] = s * laser_pose[0] + c * laser_pose[1] + twist[1] * elapsed
        beams[m] = k
        m += 1
    for i in range(count):
        sx, sy, sxx, sxy, syy, n_members = points[i, 0], points[i, 1], 0.0, 0.0, 0.0, 1
        first, last = i, i
        for direction in (-1, 1):
            j = i
            while True:
                next_point = j + direction
                if next_point < 0 or next_point >= count or abs(beams[next_point] - beams[j]) > 2:
                    break
                dx, dy = points[next_point, 0] - points[j, 0], points[next_point, 1] - points[j, 1]
                beam_spacing = abs(beams[next_point] - beams[j]) * abs(angle_increment) * ranges[beams[j]]
                if math.sqrt(dx * dx + dy * dy) > max_gap + 3.0 * beam_spacing:
                    break
                dx, dy = points[next_point, 0] - points[i, 0], points[next_point, 1] - points[i, 1]
                if math.sqrt(dx * dx + dy * dy) > normal_window and abs(next_point - i) > 2:
                    break
                j = next_point
                sx += points[j, 0]
                sy += points[j, 1]
                n_members += 1
            if direction < 0:
                first = j
            else:
                last = j
        if n_members < 3:
            continue
        mx, my = sx / n_members, sy / n_members
        for j in range(first, last + 1):
            dx, dy = points[j, 0] - mx, points[j, 1] - my
            sxx += dx * dx
            sxy += dx * dy
            syy += dy * dy
        scatter_difference = math.sqrt((sxx - syy) ** 2 + 4.0 * sxy * sxy)
        total_scatter = sxx + syy
        if total_scatter <= 0.0:
            continue
        wall_angle = 0.5 * math.atan2(2.0 * sxy, sxx - syy)
        nx, ny = -math.sin(wall_angle), math.cos(wall_angle)
        if nx * (origins[i, 0] - points[i, 0]) + ny * (origins[i, 1] - points[i, 1]) < 0.0:
            nx, ny = -nx, -ny
        straightness = scatter_difference / total_scatter  # 1 on a line, 0 in a round heap
        normals[i, 0], normals[i, 1] = nx * straightness, ny * straightness
    return points, normals


def _example_thin() -> Iterable[tuple[Any, ...]]:
    yield np.zeros((3, 2)), 0.05


@kernel(examples=_example_thin)
def first_point_per_cell(points: NDArray[np.float64], cell_size: float) -> NDArray[np.int64]:
    """Return the indices of the first point of each cell of side ``cell_size`` [m], in order."""
    n = len(points)
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    columns = np.empty(n, dtype=np.int64)
    rows = np.empty(n, dtype=np.int64)
    selected = np.empty(n, dtype=np.int64)
    count = 0
    for i in range(n):
        columns[i] = math.floor(points[i, 0] / cell_size)
        rows[i] = math.floor(points[i, 1] / cell_size)
        slot = ((columns[i] * 73856093) ^ (rows[i] * 19349663)) & (size - 1)
        while table[slot] >= 0:
            other = table[slot]
            if columns[other] == columns[i] and rows[other] == rows[i]:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = i
            selected[count] = i
            count += 1
    return selected[:count]
