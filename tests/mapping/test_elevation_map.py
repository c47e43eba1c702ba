"""Elevation maps: the truth within what they say of their errors, surer with each cloud, no ground where none is."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.mapping.depth_camera import EXACT, HeightFunction, add_depth_noise, camera_pose, render_cloud

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.mapping.elevation import ElevationMap, ElevationMapConfig, StructuredLightNoise

Array = NDArray[np.float64]

FINE = (180, 240)
"""Pixels of a picture."""


def waves(x: Array, y: Array) -> Array:
    return 0.05 * np.sin(4.0 * x) * np.cos(3.0 * y)


def step(x: Array, y: Array) -> Array:
    return np.where(x > 0.8, 0.1, 0.0)


def pit(x: Array, y: Array) -> Array:
    return np.where((x > 0.72) & (x < 0.92), -0.5, 0.0)


def level(x: Array, y: Array) -> Array:
    return np.zeros_like(x)


def cell_centers(map_: ElevationMap) -> tuple[Array, Array]:
    (rows, columns), cell, (x, y) = map_.config.shape, map_.config.resolution, map_.min_corner
    return np.meshgrid(x + (np.arange(columns) + 0.5) * cell, y + (np.arange(rows) + 0.5) * cell)


def exact() -> ElevationMap:
    return ElevationMap(ElevationMapConfig(sensor_processor=EXACT, min_variance=1e-7, resolution=0.04))


@pytest.mark.parametrize("ground", [waves, level])
def test_true_heights_lie_within_the_stated_variance(ground: HeightFunction) -> None:
    noise, random = StructuredLightNoise(), np.random.default_rng(4)
    map_ = ElevationMap(ElevationMapConfig(sensor_processor=noise))
    for k in range(8):
        T = camera_pose(0.02 * k, 0.0, 0.3)
        map_.insert(add_depth_noise(render_cloud(ground, T), noise, random), T)
    x, y = cell_centers(map_)
    is_known = np.isfinite(map_.elevation)
    off = (map_.elevation - ground(x, y))[is_known]
    assert is_known.sum() > 1000
    # within a cell the ground rises by as much as half its edge on its slope, 0.2 at most
    sigma = np.sqrt(map_.variance[is_known]) + 0.2 * 0.5 * map_.config.resolution
    assert (np.abs(off) < 3.0 * sigma).mean() > 0.99
    assert np.abs(off.mean()) < 0.002


def test_clouds_lower_the_variance_down_to_its_bound() -> None:
    map_, T = ElevationMap(), camera_pose(0.0, 0.0, 0.3)
    cloud = render_cloud(level, T)
    before = np.full(map_.config.shape, np.inf)
    for _ in range(5):
        map_.insert(cloud, T)
        now = np.where(np.isnan(map_.variance), np.inf, map_.variance)
        assert (now <= before).all()
        before = now
    is_known = np.isfinite(before)
    assert (before[is_known] >= map_.config.min_variance).all()


def test_height_errors_grow_with_distance() -> None:
    map_, T = ElevationMap(ElevationMapConfig(min_variance=1e-12)), camera_pose(0.0, 0.0, 0.5)
    one = render_cloud(level, T)
    for row, column in ((80, 60), (20, 60)):
        alone = np.full_like(one, np.nan)
        alone[row, column] = one[row, column]
        map_.insert(alone.reshape(-1, 3), T)
    variance = map_.layers.variance
    near_variance, far_variance = variance[np.isfinite(variance)][
        np.argsort(cell_centers(map_)[0][np.isfinite(variance)])
    ]
    assert far_variance > near_variance


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_elevation_is_independent_of_the_order_of_points(seed: int) -> None:
    random = np.random.default_rng(seed)
    noise = StructuredLightNoise()
    camera_poses = [camera_pose(0.05 * k, 0.0, 0.3) for k in range(3)]
    clouds = [add_depth_noise(render_cloud(waves, T, (30, 40)), noise, random).reshape(-1, 3) for T in camera_poses]
    # all heights fit each other, so that none is left out
    config = ElevationMapConfig(mahalanobis_distance_threshold=50.0, enable_visibility_cleanup=False)
    one, other = ElevationMap(config), ElevationMap(config)
    for k in range(3):
        one.insert(clouds[k], camera_poses[k])
    for k in random.permutation(3):
        other.insert(random.permutation(clouds[k]), camera_poses[k])
    np.testing.assert_allclose(one.elevation, other.elevation, atol=1e-12)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-9)


def test_elevation_keeps_edges() -> None:
    map_ = exact()
    for k in range(4):
        T = camera_pose(0.1 * k, 0.0, 0.35)
        map_.insert(render_cloud(step, T), T)
    x, y = cell_centers(map_)
    surely = np.isfinite(map_.elevation) & (map_.variance < 0.5 * map_.config.max_variance)
    assert (surely & (x > 0.8)).sum() > 60
    assert (surely & (x < 0.8)).sum() > 60
    np.testing.assert_allclose(map_.elevation[surely], step(x, y)[surely], atol=2e-3)
    # what its side shows is high, but no ground
    side = np.isfinite(map_.elevation) & ~surely
    assert side.any()
    assert (np.abs(x[side] - 0.8) < 0.04).all()


def test_unobserved_pit_stays_a_hole_with_a_height_bound() -> None:
    map_, T = exact(), camera_pose(0.0, 0.0, 0.3, down=0.6)
    map_.insert(render_cloud(pit, T), T)
    x, y = cell_centers(map_)
    is_inside = (x > 0.8) & (x < 0.84) & (np.abs(y) < 0.1)  # its far wall is seen, and nothing of its floor
    assert np.isnan(map_.elevation[is_inside]).all()
    assert (map_.ceiling[is_inside] < -0.01).mean() > 0.8  # rays may leave a cell out
    assert np.nanmin(map_.elevation[np.isfinite(map_.elevation)]) > -0.5


def test_removed_and_new_objects_update_the_elevation() -> None:
    def block(x: Array, y: Array) -> Array:
        return np.where((np.abs(x - 0.72) < 0.08) & (np.abs(y) < 0.08), 0.08, 0.0)

    map_, T = exact(), camera_pose(0.0, 0.0, 0.35)
    x, y = cell_centers(map_)
    on = (np.abs(x - 0.72) < 0.05) & (np.abs(y) < 0.05)
    with_block, without = render_cloud(block, T, FINE), render_cloud(level, T, FINE)
    for _ in range(3):
        map_.insert(with_block, T)
    np.testing.assert_allclose(map_.elevation[on], 0.08, atol=2e-3)
    map_.insert(without, T)
    cleared_heights = map_.elevation[on]
    assert np.isnan(cleared_heights).any() or (np.abs(cleared_heights) < 2e-3).all()
    assert not (cleared_heights > 0.01).any()
    map_.insert(without, T)
    np.testing.assert_allclose(map_.elevation[on], 0.0, atol=2e-3)
    for k in range(map_.config.max_contradictions):
        assert (map_.elevation[on] < 0.01).all(), k
        map_.insert(with_block, T)
    np.testing.assert_allclose(map_.elevation[on], 0.08, atol=2e-3)


def test_pose_uncertainty_raises_height_variance() -> None:
    map_, T = ElevationMap(), camera_pose(0.0, 0.0, 0.3)
    map_.insert(render_cloud(waves, T), T)
    is_known, x = np.isfinite(map_.variance), cell_centers(map_)[0]
    before, heights = map_.variance, map_.elevation
    map_.inflate_variance(SE3.identity(), np.diag([0.0, 0.0, 1e-5, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose((map_.variance - before)[is_known], 1e-5)
    before = map_.variance
    map_.inflate_variance(SE3.identity(), np.diag([0.0, 0.0, 0.0, 0.0, 1e-5, 0.0]))
    np.testing.assert_allclose((map_.variance - before)[is_known], 1e-5 * x[is_known] ** 2)
    before = map_.variance
    map_.inflate_variance(SE3.identity(), np.diag([1e-5, 1e-5, 0.0, 0.0, 0.0, 0.0]))
    flat = ElevationMap()
    flat.insert(render_cloud(level, T), T)
    flat_variance = flat.variance
    flat.inflate_variance(SE3.identity(), np.diag([1e-5, 1e-5, 0.0, 0.0, 0.0, 0.0]))
    assert (map_.variance > before)[is_known].mean() > 0.9  # on slopes
    np.testing.assert_allclose(flat.variance, flat_variance, atol=1e-12)  # on level ground a shift changes nothing
    np.testing.assert_array_equal(map_.elevation, heights)
    map_.inflate_variance(SE3.identity(), np.diag([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    assert np.isnan(map_.elevation).all()  # nothing is known any more
    with pytest.raises(InputError, match="covariance"):
        map_.inflate_variance(SE3.identity(), -np.eye(6))


def test_elevation_window_moves_and_keeps_its_overlap() -> None:
    map_, T = exact(), camera_pose(0.0, 0.0, 0.3)
    map_.insert(render_cloud(waves, T), T)

    def known_heights(one: ElevationMap) -> dict[tuple[float, float], float]:
        x, y = (np.round(part, 6) for part in cell_centers(one))
        is_known = np.isfinite(one.layers.height)
        return dict(
            zip(zip(x[is_known].tolist(), y[is_known].tolist(), strict=True), one.layers.height[is_known], strict=True)
        )

    before = known_heights(map_)
    map_.recenter(-0.7, 0.31)
    after = known_heights(map_)
    assert 0 < len(after) < len(before)
    assert all(before[position] == value for position, value in after.items())
    x, y = cell_centers(map_)
    inside = {position for position in before if (np.abs(np.array(position) - (x.mean(), y.mean())) < 1.6).all()}
    assert set(after) == inside
    map_.recenter(50.0, 0.0)
    assert not known_heights(map_)


def test_points_at_the_border_of_a_cell_do_not_suffice() -> None:
    map_ = exact()
    rim = np.column_stack([np.full(50, 0.401), np.linspace(0.001, 0.039, 50), np.full(50, -0.3)])
    T = SE3.from_xyz_rpy((0.0, 0.0, 0.3), (0.0, 0.0, 0.0))
    map_.insert(rim, T)
    assert np.isnan(map_.elevation).all()
    map_.insert(rim + np.array([0.02, 0.0, 0.0]), T)
    assert np.isfinite(map_.elevation).sum() == 1


def test_elevation_repeats_and_continues_bit_for_bit() -> None:
    camera_poses = [camera_pose(0.03 * k, 0.0, 0.3) for k in range(4)]
    clouds = [
        add_depth_noise(render_cloud(waves, T), StructuredLightNoise(), np.random.default_rng(k))
        for k, T in enumerate(camera_poses)
    ]
    one, other = ElevationMap(), ElevationMap()
    for k, (cloud, T) in enumerate(zip(clouds, camera_poses, strict=True)):
        one.insert(cloud, T)
        one.recenter(0.1 * k, 0.0)
    for k, (cloud, T) in enumerate(zip(clouds, camera_poses, strict=True)):
        if k == 2:
            state = other.save_state()
            other = ElevationMap()
            other.load_state(state)
        other.insert(cloud, T)
        other.recenter(0.1 * k, 0.0)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one.layers, other.layers, strict=True))


def test_elevation_insert_executes_no_line_of_python_per_point() -> None:
    map_, T = ElevationMap(), camera_pose(0.0, 0.0, 0.3)

    def count_lines(shape: tuple[int, int]) -> int:
        cloud, lines = render_cloud(waves, T, shape).astype(np.float32), 0

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            nonlocal lines
            lines += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            map_.insert(cloud, T)
        finally:
            sys.settrace(before)
        return lines

    count_lines((24, 32))  # kernels are loaded
    assert count_lines((240, 320)) == count_lines((24, 32)) < 1000


def test_invalid_clouds_and_settings_are_refused() -> None:
    with pytest.raises(InputError, match="shape"):
        ElevationMap().insert(np.zeros((3, 4)), SE3.identity())
    with pytest.raises(ConfigError, match="ascending"):
        ElevationMapConfig(min_variance=0.1, max_variance=0.01)
    with pytest.raises(ConfigError, match="ascending"):
        StructuredLightNoise(cutoff_min_depth=4.0)
    with pytest.raises(ConfigError, match="4 million"):
        ElevationMapConfig(resolution=0.002, length_in_x=100.0)
    assert ElevationMap().insert(np.full((4, 3), np.nan), SE3.identity()).n_points == 0
