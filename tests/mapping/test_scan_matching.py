"""Laws of scan matching."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping.corridor_drive import rooms, simulate_ranges

from roboyard.geometry import SE2
from roboyard.mapping import LaserScan
from roboyard.mapping.scan import ScanPreprocessor
from roboyard.mapping.scan_matching import (
    LikelihoodPyramid,
    RefinementConfig,
    SearchWindow,
    SurfelMap,
    match_correlative,
    match_covariance,
    refine_pose,
)
from roboyard.mapping.scan_matching.correlative import MAX_SCORE
from roboyard.mapping.scan_matching.surfel_map import fraction_through_surfaces

ANGLES = np.linspace(-math.pi / 2, math.pi / 2, 181)


def simulate_scan(pose: SE2, walls: np.ndarray, noise: float = 0.0) -> LaserScan:
    ranges = simulate_ranges(pose, walls, ANGLES, 20.0) + np.random.default_rng(0).normal(0.0, noise, len(ANGLES))
    return LaserScan(0, ranges.astype(np.float32), ANGLES[0], ANGLES[1] - ANGLES[0], 0.0, 20.0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_branch_and_bound_equals_exhaustive_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walls = rng.uniform(-4.0, 4.0, (50, 2))
    pyramid = LikelihoodPyramid.from_points(walls)
    scan = SE2(*rng.uniform(-0.5, 0.5, 2), rng.uniform(-0.3, 0.3)).inverse() @ walls[:30]
    cells, n_angles, step = int(rng.integers(1, 14)), int(rng.integers(0, 6)), 0.06
    found = match_correlative(pyramid, scan, SE2(), SearchWindow(cells * 0.1, n_angles * step, step))
    _, rows, columns = (int(value) for value in pyramid.shapes[0])
    table = pyramid.values[: rows * columns].reshape(rows, columns).astype(np.int64)
    best = 0
    for angle_index in range(-n_angles, n_angles + 1):
        cell_indices = (
            np.floor((SE2(0.0, 0.0, angle_index * step) @ scan - pyramid.origin) / pyramid.resolution).astype(int) + 1
        )
        for dx in range(-cells, cells + 1):
            for dy in range(-cells, cells + 1):
                row, column = cell_indices[:, 1] + dy, cell_indices[:, 0] + dx
                inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
                best = max(best, int(table[row[inside], column[inside]].sum()))
    assert found is not None
    assert round(found.score * MAX_SCORE * len(scan)) == best


def test_search_with_unreachable_score_finds_nothing() -> None:
    pyramid = LikelihoodPyramid.from_points(np.zeros((1, 2)))
    assert match_correlative(pyramid, np.full((5, 2), 50.0), SE2(), SearchWindow(1.0, 0.1, 0.1)) is None
    assert match_correlative(pyramid, np.zeros((0, 2)), SE2(), SearchWindow(1.0, 0.1, 0.1)) is None


@settings(max_examples=30, deadline=None)
@given(st.floats(1.2, 2.2), st.floats(1.0, 2.4), st.floats(-math.pi, math.pi), st.integers(0, 10**6))
def test_refinement_finds_the_pose_within_a_centimeter(x: float, y: float, theta: float, seed: int) -> None:
    rng, walls = np.random.default_rng(seed), rooms()
    surfel_map, preprocess = SurfelMap(30.0), ScanPreprocessor().process
    for view_index in range(8):
        pose = SE2(x, y, theta + view_index * math.pi / 4)
        scan = preprocess(simulate_scan(pose, walls))
        surfel_map.insert(scan.points, scan.normals, pose)
    truth = SE2(x + 0.1, y - 0.05, theta + 0.2)
    start = SE2(*(np.array([truth.x, truth.y, truth.theta]) + rng.uniform(-1.0, 1.0, 3) * [0.12, 0.12, 0.08]))
    match = refine_pose(surfel_map, preprocess(simulate_scan(truth, walls)), start, RefinementConfig())
    assert match.pose.distance(truth) < 0.015
    assert abs(match.pose.theta - truth.theta) < 0.006
    assert match.fit > 0.8
    assert fraction_through_surfaces(surfel_map, preprocess(simulate_scan(truth, walls)), match.pose) < 0.05


def test_covariance_shows_the_direction_of_a_corridor() -> None:
    walls = np.array([(-50.0, 1.0, 50.0, 1.0), (-50.0, -1.0, 50.0, -1.0)])
    surfel_map, preprocess = SurfelMap(30.0), ScanPreprocessor().process
    for x in np.linspace(-3.0, 3.0, 11):
        scan = preprocess(simulate_scan(SE2(x, 0.0, 0.0), walls, 0.005))
        surfel_map.insert(scan.points, scan.normals, SE2(x, 0.0, 0.0))
    scan = preprocess(simulate_scan(SE2(0.37, 0.0, 0.0), walls, 0.005))
    match = refine_pose(surfel_map, scan, SE2(0.35, 0.03, 0.01), RefinementConfig())
    spread = match_covariance(match.information, (1.0, 1.0, 0.5))
    assert spread[1, 1] < 0.02**2  # across the corridor
    assert spread[0, 0] > 10.0 * spread[1, 1]  # along it
    assert np.allclose(match.information, match.information.T)


def test_sides_of_a_thin_wall_stay_separate() -> None:
    surfel_map = SurfelMap(10.0)
    y = np.linspace(-2.0, 2.0, 200)
    left, right = np.column_stack([np.full(200, 0.02), y]), np.column_stack([np.full(200, 0.08), y])
    surfel_map.insert(left, np.tile([-1.0, 0.0], (200, 1)), SE2())
    surfel_map.insert(right, np.tile([1.0, 0.0], (200, 1)), SE2())
    columns = np.round(surfel_map.means[:, 0], 3)
    assert set(columns) == {0.02, 0.08}


def test_alternating_submaps_hold_their_scans() -> None:
    rng = np.random.default_rng(2)
    scratch, first, second = SurfelMap(10.0), SurfelMap(10.0), SurfelMap(10.0)
    for surfel_map in (first, second):
        surfel_map.insert(rng.uniform(-9.0, 9.0, (900, 2)), rng.normal(0.0, 0.5, (900, 2)), SE2())
    for surfel_map in (first, second, first):
        scratch.set_surfels(surfel_map.surfels)
        assert np.array_equal(scratch.surfels, surfel_map.surfels)
        indices = scratch.index[scratch.index >= 0]
        assert len(np.unique(indices)) == len(indices) >= 0.99 * surfel_map.n_used


@pytest.mark.parametrize("increment", [math.radians(1.0), math.radians(-0.5)])
def test_no_return_range_value_is_detected(increment: float) -> None:
    ranges = np.full(180, 16.29, dtype=np.float32)
    ranges[:60] = 3.0 / np.cos(np.linspace(-0.5, 0.5, 60))
    scan = LaserScan(0, ranges, -increment * 90, increment, 0.0, 80.0)
    prepared = ScanPreprocessor().process(scan)
    assert len(prepared.ends) == 60
    assert np.linalg.norm(prepared.ends, axis=1).max() < 4.0


def test_straight_wall_is_not_taken_for_an_arc() -> None:
    scan = simulate_scan(SE2(), np.array([(5.0, -30.0, 5.0, 30.0)]))
    assert len(ScanPreprocessor().process(scan).ends) == int(scan.hit_mask.sum())


def test_invalid_ranges_are_dropped_and_others_kept() -> None:
    scan = simulate_scan(SE2(1.5, 1.5, 0.3), rooms())
    complete_scan = ScanPreprocessor().process(scan)
    ranges = scan.ranges.copy()
    ranges[10:40:6] = [np.nan, np.inf, -np.inf, 0.0, -1.0]
    broken = ScanPreprocessor().process(LaserScan(0, ranges, scan.angle_min, scan.angle_increment, 0.0, 20.0))
    assert len(broken.ends) == len(complete_scan.ends) - 5
    assert np.isfinite(broken.points).all()
    assert np.isfinite(broken.normals).all()


@settings(max_examples=20, deadline=None)
@given(st.floats(-1.0, 1.0), st.floats(-1.5, 1.5))
def test_undistortion_compensates_a_turn(speed: float, turning: float) -> None:
    twist, walls, start = np.array([speed, 0.0, turning]), rooms(), SE2(1.6, 1.4, 0.4)
    seconds = 0.1 / len(ANGLES)
    poses = [start @ SE2(*(twist * seconds * k)) for k in range(len(ANGLES))]
    ranges = [simulate_ranges(pose, walls, ANGLES[k : k + 1], 20.0) for k, pose in enumerate(poses)]
    scan = LaserScan(0, np.concatenate(ranges).astype(np.float32), ANGLES[0], ANGLES[1] - ANGLES[0], 0.0, 20.0, seconds)
    ends = ScanPreprocessor().process(scan, twist).ends
    low, high = np.minimum(walls[:, :2], walls[:, 2:]), np.maximum(walls[:, :2], walls[:, 2:])
    points = (start @ ends.astype(np.float64))[:, None]
    off = np.linalg.norm(np.maximum(np.maximum(low - points, points - high), 0.0), axis=2)
    assert off.min(axis=1).max() < 1e-4
