"""Lookups of the transform buffer equal the composed poses; an error names the transform that is not available."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from roboyard.bus import TransformBuffer, TransformError
from roboyard.geometry import SE3

numbers = st.floats(-3.0, 3.0)
poses = st.builds(
    lambda x, y, z, r, p, w: SE3.from_xyz_rpy((x, y, z), (r, p, w)),
    numbers,
    numbers,
    numbers,
    numbers,
    numbers,
    numbers,
)


@given(st.lists(poses, min_size=3, max_size=3), st.lists(poses, min_size=2, max_size=2))
def test_lookup_equals_the_product_along_the_tree(left: list[SE3], right: list[SE3]) -> None:
    buffer = TransformBuffer()
    for index, pose in enumerate(left):
        buffer.insert(pose, f"l{index}" if index else "root", f"l{index + 1}", 0, static=index == 1)
    for index, pose in enumerate(right):
        buffer.insert(pose, f"r{index}" if index else "root", f"r{index + 1}", 0)
    expected = (
        np.linalg.inv(left[0].matrix() @ left[1].matrix() @ left[2].matrix()) @ right[0].matrix() @ right[1].matrix()
    )
    np.testing.assert_allclose(buffer.lookup("l3", "r2").matrix(), expected, atol=1e-9)
    T_l3_r2, T_r2_l3 = buffer.lookup("l3", "r2"), buffer.lookup("r2", "l3")
    assert (T_l3_r2 @ T_r2_l3).almost_equal(SE3.identity(), 1e-9)


@given(poses, poses, st.floats(0.0, 1.0))
def test_lookup_interpolates_between_samples(start: SE3, end: SE3, s: float) -> None:
    buffer = TransformBuffer()
    buffer.insert(start, "odom", "base", 1_000)
    buffer.insert(end, "odom", "base", 2_000)
    time_ns = 1_000 + round(s * 1_000)
    expected = start.interpolate(end, (time_ns - 1_000) / 1_000)
    assert buffer.lookup("odom", "base", time_ns).almost_equal(expected, 1e-9)


def test_samples_out_of_order_give_the_same_lookups() -> None:
    shuffled, ordered = TransformBuffer(), TransformBuffer()
    for index in (0, 5, 2, 4, 1, 3, 5):
        shuffled.insert(SE3.from_xyz_rpy((index, 0, 0)), "a", "b", index * 10)
    for index in range(6):
        ordered.insert(SE3.from_xyz_rpy((index, 0, 0)), "a", "b", index * 10)
    for time_ns in range(0, 51, 5):
        assert shuffled.lookup("a", "b", time_ns) == ordered.lookup("a", "b", time_ns)


def test_lookup_errors_name_frames_times_and_trees() -> None:
    buffer = TransformBuffer()
    buffer.insert(SE3.identity(), "odom", "base", 1_000_000_000)
    buffer.insert(SE3.identity(), "odom", "base", 2_000_000_000)
    buffer.insert(SE3.identity(), "map2", "other", 0, static=True)
    with pytest.raises(TransformError, match=r"'laser' is unknown \(known: base, map2, odom, other\)"):
        buffer.lookup("odom", "laser")
    with pytest.raises(TransformError, match="not connected.*'odom'.*'map2'"):
        buffer.lookup("base", "other")
    with pytest.raises(TransformError, match=r"3.000000 s, after what was received.*from 1.000000 to 2.000000 s"):
        buffer.lookup("odom", "base", 3_000_000_000)
    with pytest.raises(TransformError, match="before what was received"):
        buffer.lookup("odom", "base", 0)
    with pytest.raises(TransformError, match="close a loop"):
        buffer.insert(SE3.identity(), "base", "odom", 0)
    assert not buffer.can_lookup("base", "other")


def test_static_transforms_are_always_valid_and_old_samples_are_removed() -> None:
    buffer = TransformBuffer(cache_time=1.0)
    buffer.insert(SE3.from_xyz_rpy((1, 0, 0)), "base", "laser", 0, static=True)
    for index in range(1000):
        buffer.insert(SE3.from_xyz_rpy((index, 0, 0)), "odom", "base", index * 10_000_000)
    assert buffer.lookup("odom", "laser", 9_990_000_000).x == 1000
    first, last = buffer.time_range("base")
    assert last == 9_990_000_000
    assert 1.0 <= (last - first) / 1e9 <= 4.0


def test_saved_buffer_gives_the_same_lookups() -> None:
    buffer, restored = TransformBuffer(), TransformBuffer()
    buffer.insert(SE3.from_xyz_rpy((1, 2, 3), (0.1, 0.2, 0.3)), "a", "b", 5)
    buffer.insert(SE3.from_xyz_rpy((1, 0, 0)), "b", "c", 0, static=True)
    restored.load_state(buffer.save_state())
    assert restored.lookup("a", "c") == buffer.lookup("a", "c")
    assert restored.parents() == buffer.parents()


@given(poses, poses, st.lists(st.integers(0, 10**9), min_size=1, max_size=5))
def test_interpolation_agrees_with_scipys_slerp(start: SE3, end: SE3, times_ns: list[int]) -> None:
    """Positions lie on the straight line; orientations rotate by the shortest rotation at a constant rate."""
    from scipy.spatial.transform import Rotation, Slerp

    buffer = TransformBuffer()
    buffer.insert(SE3.from_xyz_rpy((1, 2, 3), (0.1, 0.2, 0.3)), "map", "odom", 0, static=True)
    buffer.insert(start, "odom", "base", 0)
    buffer.insert(end, "odom", "base", 10**9)
    angle = (
        Rotation.from_matrix(start.matrix()[:3, :3]).inv() * Rotation.from_matrix(end.matrix()[:3, :3])
    ).magnitude()
    assume(angle < 3.1)  # the shortest rotation is not unique at half a turn
    slerp = Slerp([0.0, 1.0], Rotation.from_matrix([start.matrix()[:3, :3], end.matrix()[:3, :3]]))
    for time_ns in times_ns:
        s = time_ns / 1e9
        expected = np.eye(4)
        expected[:3, :3] = slerp([s]).as_matrix()[0]
        expected[:3, 3] = (1.0 - s) * start.matrix()[:3, 3] + s * end.matrix()[:3, 3]
        T_map_base = buffer.lookup("map", "base", time_ns).matrix()
        np.testing.assert_allclose(T_map_base, buffer.lookup("map", "odom").matrix() @ expected, atol=1e-6)


def test_lookup_errors_name_the_requested_frames() -> None:
    buffer = TransformBuffer()
    buffer.insert(SE3.identity(), "odom", "base", 10**9)
    buffer.insert(SE3.identity(), "base", "laser", 0, static=True)
    buffer.insert(SE3.identity(), "map", "odom", 3 * 10**9)
    for time_ns in (2 * 10**9, None):
        with pytest.raises(
            TransformError, match="transform of 'laser' to 'map': '(base' in 'odom|odom' in 'map)' is not known at"
        ):
            buffer.lookup("map", "laser", time_ns)
