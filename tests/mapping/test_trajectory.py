"""Trajectories, grid frames and scans: inverses, and what no such thing is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.mapping import LaserScan, PoseGraph, PoseTrajectory

finite = st.floats(-50.0, 50.0)


@given(st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_trajectory_interpolates_through_its_poses(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(2, 1000, n)) * 2
    poses = np.column_stack([rng.normal(size=(n, 2)), rng.uniform(-math.pi, math.pi, n)])
    trajectory = PoseTrajectory(times, poses)
    interpolated, is_covered = trajectory.interpolate(times)
    assert is_covered.all()
    assert np.allclose(interpolated, poses, atol=1e-12)
    between, is_covered = trajectory.interpolate((times[:-1] + times[1:]) // 2)
    assert is_covered.all()
    assert np.allclose(between[:, :2], 0.5 * (poses[:-1] + poses[1:])[:, :2], atol=1e-9)
    rotation = np.angle(np.exp(1j * (poses[1:, 2] - poses[:-1, 2])))
    assert np.allclose(np.angle(np.exp(1j * (between[:, 2] - poses[:-1, 2] - 0.5 * rotation))), 0.0, atol=1e-9)
    assert trajectory.interpolate([times[0] - 1, times[-1] + 1])[1].tolist() == [False, False]
    assert trajectory.interpolate([times[0] - 1, times[-1] + 1], max_extrapolation_ns=1)[1].all()


@given(finite, finite, st.floats(-math.pi, math.pi), st.floats(0.01, 1.0), st.integers(0, 99), st.integers(0, 49))
def test_grid_cells_and_points_are_inverses(x, y, theta, resolution, row, column) -> None:
    frame = GridGeometry(resolution, (100, 50), SE2(x, y, theta))
    assert frame.cells_of_points(frame.cell_centers([row, column])).tolist() == [row, column]
    assert frame.contains([row, column])
    assert not frame.contains([row + 100, column])


@given(finite, finite, st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.floats(0.02, 0.5))
def test_grid_around_a_box_contains_it_tightly(x, y, width, height, resolution) -> None:
    frame = GridGeometry.covering((x, y), (x + width, y + height), resolution)
    low, size = frame.T_map_grid.xy, np.array(frame.extent)
    assert (low <= np.array([x, y]) + 1e-6).all()
    assert (low + size >= np.array([x + width, y + height]) - 1e-6).all()
    assert (size <= np.array([width, height]) + 2.001 * resolution).all()


def test_scan_points_exclude_beams_without_hit() -> None:
    ranges = np.array([1.0, 0.0, np.nan, np.inf, 30.0, 2.0], dtype=np.float32)
    scan = LaserScan(0, ranges, 0.0, math.pi / 2, 0.05, 30.0, T_base_laser=SE2(1.0, 0.0, math.pi / 2))
    assert scan.hit_mask.tolist() == [True, False, False, False, False, True]
    assert np.allclose(scan.points(), [[1.0, 1.0], [-1.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PoseTrajectory([0, 0], np.zeros((2, 3))),
        lambda: PoseTrajectory([0, 1], np.zeros((3, 3))),
        lambda: PoseTrajectory([0], np.full((1, 3), np.nan)),
        lambda: GridGeometry(0.0, (1, 1)),
        lambda: GridGeometry(0.1, (1, -1)),
        lambda: OccupancyGrid(np.zeros((2, 2), np.int8), GridGeometry(0.1, (2, 3))),
        lambda: OccupancyGrid(np.full((2, 2), 101), GridGeometry(0.1, (2, 2))),
        lambda: OccupancyGrid(np.zeros((2, 2)), GridGeometry(0.1, (2, 2))),
        lambda: LaserScan(0, np.zeros((2, 2), np.float32), 0.0, 0.1, 0.0, 1.0),
        lambda: LaserScan(0, np.zeros(2, np.float32), math.nan, 0.1, 0.0, 1.0),
        lambda: PoseGraph(
            np.zeros(1, np.int64), np.zeros((1, 3)), np.array([[0, 1]]), np.zeros((1, 3)), np.zeros((1, 3, 3)),
            np.zeros(1, bool),
        ),
    ],
)  # fmt: skip
def test_invalid_trajectory_input_is_refused(make) -> None:
    with pytest.raises(InputError):
        make()
