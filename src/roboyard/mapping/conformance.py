"""Conformance test for SLAM algorithms of other packages: `check_slam`."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.mapping.scan import LaserScan
from roboyard.mapping.slam import SavesSlamState, Slam

_WALLS: Final = (-4.0, -3.0, 5.0, 4.0)
"""Walls of the simulated room: smallest x and y, largest x and y [m]."""
_PILLARS: Final = ((1.5, 2.2, 0.3), (-2.0, 1.0, 0.4), (3.0, -1.5, 0.25))
"""Center and radius of each pillar [m]."""
_PERIOD_NS: Final = 200_000_000
_N_SCANS: Final = 60
_MAX_POSITION_ERROR: Final = 0.15
"""Largest error of a position after the drive through the room [m]."""
_RESOLUTION: Final = 0.1


def check_slam(create: Callable[[], Slam]) -> None:
    """Run a SLAM algorithm on simulated scans of a small room, and check every rule of the contract `Slam`.

    Checks: poses are finite and close to the truth; the trajectory has increasing stamps, those of processed scans, and
    ends at the pose that ``process`` returned; scans that arrive out of order are dropped with a warning; scans without
    readings are accepted; ``finish`` may come before the first scan, twice, and between scans; scans are not changed;
    equal scans give equal bytes, also after ``save_state`` and ``load_state`` where the algorithm offers them.

    Args:
        create: Function that creates the algorithm with an empty map and the same configuration at each call.

    Raises:
        InputError: The algorithm breaks a rule; the message says which.
    """
    scans, truth = simulate_drive()
    _check_empty(create())
    reference = create()
    _check_drive(reference, scans, truth)
    _check_finish(reference)
    other = create()
    for scan in scans:
        other.process(scan)
    other.finish()
    other.finish()
    if _results(other) != _results(reference):
        _report_violation(other, "gives different results for equal scans")
    _check_out_of_order(create(), scans)
    _check_empty_scans(create(), scans)
    _check_state(create, scans)


def simulate_drive() -> tuple[list[LaserScan], list[SE2]]:
    """Simulate a drive through a room with pillars, with exact odometry; return the scans and ``T_map_base`` of each.

    The first pose is the origin of the map.
    """
    angles = np.linspace(-math.pi, math.pi, 240, endpoint=False)
    poses = [SE2()]
    for k in range(1, _N_SCANS):
        poses.append(poses[-1] @ SE2(0.06, 0.0, 0.04 if k % 30 < 20 else -0.05))
    scans = [
        LaserScan(
            k * _PERIOD_NS, _simulate_ranges(pose, angles).astype(np.float32), float(angles[0]),
            float(angles[1] - angles[0]), 0.05, 20.0, odometry=pose,
        )
        for k, pose in enumerate(poses)
    ]  # fmt: skip
    return scans, poses


def _simulate_ranges(pose: SE2, angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exact distances (n,) to walls and pillars [m]."""
    c, s = np.cos(angles + pose.theta), np.sin(angles + pose.theta)
    low_x, low_y, high_x, high_y = _WALLS
    with np.errstate(divide="ignore"):
        distance_x = (np.where(c > 0.0, high_x, low_x) - pose.x) / c
        distance_y = (np.where(s > 0.0, high_y, low_y) - pose.y) / s
    nearest = np.minimum(distance_x, distance_y)
    for x, y, radius in _PILLARS:
        along = c * (x - pose.x) + s * (y - pose.y)
        squared_gap = (x - pose.x) ** 2 + (y - pose.y) ** 2 - along**2
        is_hit = (along > 0.0) & (squared_gap < radius**2)
        entry = along - np.sqrt(np.maximum(radius**2 - squared_gap, 0.0))
        nearest = np.where(is_hit, np.minimum(nearest, entry), nearest)
    return np.asarray(nearest)


def _check_empty(slam: Slam) -> None:
    slam.finish()
    if len(slam.trajectory()) or len(slam.graph().poses):
        _report_violation(slam, "has a trajectory or a graph before the first scan")
    slam.occupancy(_RESOLUTION)


def _check_drive(slam: Slam, scans: list[LaserScan], truth: list[SE2]) -> None:
    ranges_before = [scan.ranges.copy() for scan in scans]
    for scan, true_pose in zip(scans, truth, strict=True):
        pose = slam.process(scan)
        _check_pose(slam, pose)
        if pose.distance(true_pose) > _MAX_POSITION_ERROR:
            error = pose.distance(true_pose)
            _report_violation(slam, f"is {error:.2f} m from the truth with exact odometry at {scan.time_ns} ns")
        last = slam.trajectory().pose(-1) if len(slam.trajectory()) else None
        if last is None or last.distance(pose) > 1e-6:
            _report_violation(slam, "returns another pose than the last one of its trajectory")
    if any(not np.array_equal(scan.ranges, ranges) for scan, ranges in zip(scans, ranges_before, strict=True)):
        _report_violation(slam, "changes the ranges of a scan")
    _check_trajectory(slam, {scan.time_ns for scan in scans})
    if not all(isinstance(warning, str) for warning in slam.warnings):
        _report_violation(slam, "has a warning that is no text")
    cells = slam.occupancy(_RESOLUTION).cells
    if not ((cells > 50).any() and ((cells >= 0) & (cells < 50)).any()):
        _report_violation(slam, "has a map without occupied or without free cells")


def _check_finish(slam: Slam) -> None:
    slam.finish()
    first = slam.trajectory()
    slam.finish()
    second = slam.trajectory()
    if not np.array_equal(first.times_ns, second.times_ns):
        _report_violation(slam, "changes the stamps of its trajectory in a second call of finish")
    if np.abs(first.poses[:, :2] - second.poses[:, :2]).max(initial=0.0) > _MAX_POSITION_ERROR:
        _report_violation(slam, "moves its trajectory in a second call of finish")


def _check_out_of_order(slam: Slam, scans: list[LaserScan]) -> None:
    """Check that a repeated and an earlier stamp are dropped with a warning, and that the next scan is processed."""
    for scan in scans[:10]:
        slam.process(scan)
    for late in (scans[9], scans[5]):
        before, n_warnings = slam.trajectory(), len("".join(slam.warnings))
        try:
            pose = slam.process(late)
        except InputError as error:
            _report_violation(slam, f"raises an error for a scan that is not later than the last: {error}")
        _check_pose(slam, pose)
        if not np.array_equal(slam.trajectory().times_ns, before.times_ns):
            _report_violation(slam, "adds a pose for a scan that is not later than the last")
        if len("".join(slam.warnings)) <= n_warnings and late is scans[9]:
            _report_violation(slam, "has no warning for a scan that is not later than the last")
    slam.process(scans[10])
    if slam.trajectory().times_ns[-1] != scans[10].time_ns:
        _report_violation(slam, "does not go on after a scan that is not later than the last")


def _check_empty_scans(slam: Slam, scans: list[LaserScan]) -> None:
    """Check scans without beams and without a valid reading, before, between and after others."""
    invalid = np.full(len(scans[0].ranges), np.nan, dtype=np.float32)
    for k, scan in enumerate(scans[:15]):
        if k in (0, 7):
            changed = replace(scan, ranges=np.zeros(0, dtype=np.float32))
        elif k in (1, 8, 14):
            changed = replace(scan, ranges=invalid)
        else:
            changed = scan
        try:
            pose = slam.process(changed)
        except (RoboyardError, ValueError, LookupError, ArithmeticError, RuntimeError) as error:
            _report_violation(slam, f"raises {type(error).__name__} for a scan without a valid reading: {error}")
        _check_pose(slam, pose)
    slam.finish()
    _check_trajectory(slam, {scan.time_ns for scan in scans[:15]})


def _check_state(create: Callable[[], Slam], scans: list[LaserScan]) -> None:
    """Check that an algorithm with a saved state gives the same bytes as the original for the remaining scans."""
    original = create()
    if not isinstance(original, SavesSlamState):
        return
    half = len(scans) // 2
    for scan in scans[:half]:
        original.process(scan)
    saved = copy.deepcopy(original.save_state())
    restored = create()
    if not isinstance(restored, SavesSlamState):
        _report_violation(restored, "does not always offer save_state and load_state")
    restored.load_state(saved)
    for scan in itertools.islice(scans, half, None):
        original.process(scan)
        restored.process(scan)
    if _results(original) != _results(restored):
        _report_violation(original, "gives different results after save_state and load_state")


def _check_pose(slam: Slam, pose: SE2) -> None:
    if not (isinstance(pose, SE2) and all(math.isfinite(value) for value in (pose.x, pose.y, pose.theta))):
        _report_violation(slam, f"returns {pose!r}, which is no pose of finite numbers")


def _check_trajectory(slam: Slam, stamps: set[int]) -> None:
    trajectory, graph = slam.trajectory(), slam.graph()
    if not (np.isfinite(trajectory.poses).all() and np.isfinite(graph.poses).all()):
        _report_violation(slam, "has a pose that is not finite")
    if (np.diff(trajectory.times_ns) <= 0).any():
        _report_violation(slam, "has a trajectory whose stamps do not increase")
    if not set(trajectory.times_ns.tolist()) <= stamps:
        _report_violation(slam, "has a pose at a time without a scan")


def _results(slam: Slam) -> tuple[bytes, ...]:
    trajectory, graph, grid = slam.trajectory(), slam.graph(), slam.occupancy(_RESOLUTION)
    arrays = (trajectory.times_ns, trajectory.poses, graph.poses, graph.edges, graph.measurements, grid.cells)
    return tuple(array.tobytes() for array in arrays)


def _report_violation(slam: Slam, problem: str) -> NoReturn:
    raise InputError(f"{type(slam).__name__} {problem}", valid="the contract roboyard.mapping.Slam")
