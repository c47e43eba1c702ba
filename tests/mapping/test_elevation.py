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
from tests.mapping.seen import EXACT, Heights, looking, noisy, seen

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.mapping.elevation import ElevationConfig, ElevationMap, SensorProcessor

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


def middles(map_: ElevationMap) -> tuple[Array, Array]:
    (rows, columns), cell, (x, y) = map_.config.shape, map_.config.resolution, map_.corner
    return np.meshgrid(x + (np.arange(columns) + 0.5) * cell, y + (np.arange(rows) + 0.5) * cell)


def exact() -> ElevationMap:
    return ElevationMap(ElevationConfig(sensor_processor=EXACT, min_variance=1e-7, resolution=0.04))


@pytest.mark.parametrize("ground", [waves, level])
def test_true_heights_lie_within_the_stated_variance(ground: Heights) -> None:
    noise, random = SensorProcessor(), np.random.default_rng(4)
    map_ = ElevationMap(ElevationConfig(sensor_processor=noise))
    for k in range(8):
        T = looking(0.02 * k, 0.0, 0.3)
        map_.insert(noisy(seen(ground, T), noise, random), T)
    x, y = middles(map_)
    known = np.isfinite(map_.elevation)
    off = (map_.elevation - ground(x, y))[known]
    assert known.sum() > 1000
    # within a cell the ground rises by as much as half its edge on its slope, 0.2 at most
    sigma = np.sqrt(map_.variance[known]) + 0.2 * 0.5 * map_.config.resolution
    assert (np.abs(off) < 3.0 * sigma).mean() > 0.99
    assert np.abs(off.mean()) < 0.002


def test_clouds_lower_the_variance_down_to_its_bound() -> None:
    map_, T = ElevationMap(), looking(0.0, 0.0, 0.3)
    cloud = seen(level, T)
    before = np.full(map_.config.shape, np.inf)
    for _ in range(5):
        map_.insert(cloud, T)
        now = np.where(np.isnan(map_.variance), np.inf, map_.variance)
        assert (now <= before).all()
        before = now
    known = np.isfinite(before)
    assert (before[known] >= map_.config.min_variance).all()


def test_height_errors_grow_with_distance() -> None:
    map_, T = ElevationMap(ElevationConfig(min_variance=1e-12)), looking(0.0, 0.0, 0.5)
    one = seen(level, T)
    for row, column in ((80, 60), (20, 60)):
        alone = np.full_like(one, np.nan)
        alone[row, column] = one[row, column]
        map_.insert(alone.reshape(-1, 3), T)
    variance = map_.layers.variance
    near, far = variance[np.isfinite(variance)][np.argsort(middles(map_)[0][np.isfinite(variance)])]
    assert far > near


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_elevation_is_independent_of_the_order_of_points(seed: int) -> None:
    random = np.random.default_rng(seed)
    noise = SensorProcessor()
    looks = [looking(0.05 * k, 0.0, 0.3) for k in range(3)]
    clouds = [noisy(seen(waves, T, (30, 40)), noise, random).reshape(-1, 3) for T in looks]
    # all heights fit each other, so that none is left out
    config = ElevationConfig(mahalanobis_distance_threshold=50.0, enable_visibility_cleanup=False)
    one, other = ElevationMap(config), ElevationMap(config)
    for k in range(3):
        one.insert(clouds[k], looks[k])
    for k in random.permutation(3):
        other.insert(random.permutation(clouds[k]), looks[k])
    np.testing.assert_allclose(one.elevation, other.elevation, atol=1e-12)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-9)


def test_elevation_keeps_edges() -> None:
    map_ = exact()
    for k in range(4):
        T = looking(0.1 * k, 0.0, 0.35)
        map_.insert(seen(step, T), T)
    x, y = middles(map_)
    surely = np.isfinite(map_.elevation) & (map_.variance < 0.5 * map_.config.max_variance)
    assert (surely & (x > 0.8)).sum() > 60
    assert (surely & (x < 0.8)).sum() > 60
    np.testing.assert_allclose(map_.elevation[surely], step(x, y)[surely], atol=2e-3)
    # what its side shows is high, but no ground
    side = np.isfinite(map_.elevation) & ~surely
    assert side.any()
    assert (np.abs(x[side] - 0.8) < 0.04).all()


def test_unseen_pit_stays_a_hole_with_a_height_bound() -> None:
    map_, T = exact(), looking(0.0, 0.0, 0.3, down=0.6)
    map_.insert(seen(pit, T), T)
    x, y = middles(map_)
    inside = (x > 0.8) & (x < 0.84) & (np.abs(y) < 0.1)  # its far wall is seen, and nothing of its floor
    assert np.isnan(map_.elevation[inside]).all()
    assert (map_.ceiling[inside] < -0.01).mean() > 0.8  # rays may leave a cell out
    assert np.nanmin(map_.elevation[np.isfinite(map_.elevation)]) > -0.5


def test_removed_and_new_objects_update_the_elevation() -> None:
    def block(x: Array, y: Array) -> Array:
        return np.where((np.abs(x - 0.72) < 0.08) & (np.abs(y) < 0.08), 0.08, 0.0)

    map_, T = exact(), looking(0.0, 0.0, 0.35)
    x, y = middles(map_)
    on = (np.abs(x - 0.72) < 0.05) & (np.abs(y) < 0.05)
    with_block, without = seen(block, T, FINE), seen(level, T, FINE)
    for _ in range(3):
        map_.insert(with_block, T)
    np.testing.assert_allclose(map_.elevation[on], 0.08, atol=2e-3)
    map_.insert(without, T)
    gone = map_.elevation[on]
    assert np.isnan(gone).any() or (np.abs(gone) < 2e-3).all()
    assert not (gone > 0.01).any()
    map_.insert(without, T)
    np.testing.assert_allclose(map_.elevation[on], 0.0, atol=2e-3)
    for k in range(map_.config.patience):
        assert (map_.elevation[on] < 0.01).all(), k
        map_.insert(with_block, T)
    np.testing.assert_allclose(map_.elevation[on], 0.08, atol=2e-3)


def test_pose_uncertainty_raises_height_variance() -> None:
    map_, T = ElevationMap(), looking(0.0, 0.0, 0.3)
    map_.insert(seen(waves, T), T)
    known, x = np.isfinite(map_.variance), middles(map_)[0]
    before, heights = map_.variance, map_.elevation
    map_.grow(SE3.identity(), np.diag([0.0, 0.0, 1e-5, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose((map_.variance - before)[known], 1e-5)
    before = map_.variance
    map_.grow(SE3.identity(), np.diag([0.0, 0.0, 0.0, 0.0, 1e-5, 0.0]))
    np.testing.assert_allclose((map_.variance - before)[known], 1e-5 * x[known] ** 2)
    before = map_.variance
    map_.grow(SE3.identity(), np.diag([1e-5, 1e-5, 0.0, 0.0, 0.0, 0.0]))
    flat = ElevationMap()
    flat.insert(seen(level, T), T)
    was = flat.variance
    flat.grow(SE3.identity(), np.diag([1e-5, 1e-5, 0.0, 0.0, 0.0, 0.0]))
    assert (map_.variance > before)[known].mean() > 0.9  # on slopes
    np.testing.assert_allclose(flat.variance, was, atol=1e-12)  # on level ground a shift changes nothing
    np.testing.assert_array_equal(map_.elevation, heights)
    map_.grow(SE3.identity(), np.diag([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    assert np.isnan(map_.elevation).all()  # nothing is known any more
    with pytest.raises(InputError, match="covariance"):
        map_.grow(SE3.identity(), -np.eye(6))


def test_elevation_window_moves_and_keeps_its_overlap() -> None:
    map_, T = exact(), looking(0.0, 0.0, 0.3)
    map_.insert(seen(waves, T), T)

    def known(one: ElevationMap) -> dict[tuple[float, float], float]:
        x, y = (np.round(part, 6) for part in middles(one))
        here = np.isfinite(one.layers.height)
        return dict(zip(zip(x[here].tolist(), y[here].tolist(), strict=True), one.layers.height[here], strict=True))

    before = known(map_)
    map_.move(-0.7, 0.31)
    after = known(map_)
    assert 0 < len(after) < len(before)
    assert all(before[place] == value for place, value in after.items())
    x, y = middles(map_)
    inside = {place for place in before if (np.abs(np.array(place) - (x.mean(), y.mean())) < 1.6).all()}
    assert set(after) == inside
    map_.move(50.0, 0.0)
    assert not known(map_)


def test_points_at_the_border_of_a_cell_do_not_suffice() -> None:
    map_ = exact()
    rim = np.column_stack([np.full(50, 0.401), np.linspace(0.001, 0.039, 50), np.full(50, -0.3)])
    T = SE3.from_xyz_rpy((0.0, 0.0, 0.3), (0.0, 0.0, 0.0))
    map_.insert(rim, T)
    assert np.isnan(map_.elevation).all()
    map_.insert(rim + np.array([0.02, 0.0, 0.0]), T)
    assert np.isfinite(map_.elevation).sum() == 1


def test_elevation_repeats_and_continues_bit_for_bit() -> None:
    looks = [looking(0.03 * k, 0.0, 0.3) for k in range(4)]
    clouds = [noisy(seen(waves, T), SensorProcessor(), np.random.default_rng(k)) for k, T in enumerate(looks)]
    one, other = ElevationMap(), ElevationMap()
    for k, (cloud, T) in enumerate(zip(clouds, looks, strict=True)):
        one.insert(cloud, T)
        one.move(0.1 * k, 0.0)
    for k, (cloud, T) in enumerate(zip(clouds, looks, strict=True)):
        if k == 2:
            kept = other.save_state()
            other = ElevationMap()
            other.load_state(kept)
        other.insert(cloud, T)
        other.move(0.1 * k, 0.0)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one.layers, other.layers, strict=True))


def test_elevation_insert_executes_no_line_of_python_per_point() -> None:
    map_, T = ElevationMap(), looking(0.0, 0.0, 0.3)

    def count_lines(shape: tuple[int, int]) -> int:
        cloud, lines = seen(waves, T, shape).astype(np.float32), 0

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
        ElevationConfig(min_variance=0.1, max_variance=0.01)
    with pytest.raises(ConfigError, match="ascending"):
        SensorProcessor(cutoff_min_depth=4.0)
    with pytest.raises(ConfigError, match="4 million"):
        ElevationConfig(resolution=0.002, length_in_x=100.0)
    assert ElevationMap().insert(np.full((4, 3), np.nan), SE3.identity()).points == 0
