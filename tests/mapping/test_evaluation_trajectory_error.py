"""Errors of trajectories: invariant under motions of the map, equal to closed forms and to independent methods."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.files import temporary_folder

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.geometry.se2_arrays import compose, invert, relative
from roboyard.mapping import PoseTrajectory
from roboyard.mapping.evaluation.trajectory_error import (
    ErrorStatistics,
    Relations,
    absolute_error,
    align,
    read_relations,
    relation_errors,
    relative_error,
    write_relations,
)
from roboyard.mapping.trajectory import format_seconds, parse_time_ns, read_tum, write_tum

seeds = st.integers(0, 2**32 - 1)
moves = st.builds(SE2, st.floats(-30, 30), st.floats(-30, 30), st.floats(-3.14, 3.14))


def drive(rng: np.random.Generator, n: int = 30) -> PoseTrajectory:
    """A curved way; seconds apart."""
    poses = [np.zeros(3)]
    for step in np.column_stack([rng.uniform(0, 1, n - 1), np.zeros(n - 1), rng.uniform(-0.6, 0.6, n - 1)]):
        poses.append(compose(poses[-1], step))
    return PoseTrajectory(np.cumsum(rng.integers(5e8, 2e9, n)), np.array(poses))


def transformed(track: PoseTrajectory, T: SE2) -> PoseTrajectory:
    return PoseTrajectory(track.times_ns, compose([T.x, T.y, T.theta], track.poses))


def some_relations(rng: np.random.Generator, track: PoseTrajectory, n: int = 20) -> Relations:
    first, second = rng.integers(0, len(track), (2, n))
    return Relations(track.times_ns[first], track.times_ns[second], relative(track.poses[first], track.poses[second]))


@given(seeds)
def test_vectorized_poses_equal_single_poses(seed: int) -> None:
    a, b = np.random.default_rng(seed).uniform(-3, 3, (2, 5, 3))
    for row, (p, q) in zip(compose(a, b), zip(a, b, strict=True), strict=True):
        assert SE2(*row).almost_equal(SE2(*p) @ SE2(*q), 1e-12)
    for row, p in zip(invert(a), a, strict=True):
        assert SE2(*row).almost_equal(SE2(*p).inverse(), 1e-12)
    assert np.allclose(compose(a, relative(a, b))[:, :2], b[:, :2], atol=1e-12)
    assert np.allclose(relative(a, b), compose(invert(a), b), atol=1e-12)


@given(seeds, moves)
def test_relations_of_a_trajectory_are_frame_independent(seed: int, T: SE2) -> None:
    rng = np.random.default_rng(seed)
    track = drive(rng)
    relations = some_relations(rng, track)
    errors = relation_errors(transformed(track, T), relations)
    assert (errors.n_used, errors.n_total) == (20, 20)
    assert errors.translational.maximum < 1e-9
    assert errors.rotational_deg.maximum < 1e-9


@given(seeds, st.floats(-2, 2), st.floats(-2, 2), st.floats(-3, 3))
def test_relation_error_equals_the_added_error(seed: int, dx: float, dy: float, rotation: float) -> None:
    rng = np.random.default_rng(seed)
    track = drive(rng)
    true = some_relations(rng, track)
    errors = relation_errors(
        track, Relations(true.first_ns, true.second_ns, true.relative_poses + np.array([dx, dy, rotation]))
    )
    assert np.allclose(errors.distances, math.hypot(dx, dy), atol=1e-9)
    assert np.allclose(np.abs(errors.angles), abs(rotation), atol=1e-9)
    assert errors.translational.mean == pytest.approx(math.hypot(dx, dy), abs=1e-9)
    assert errors.rotational_deg.mean == pytest.approx(math.degrees(abs(rotation)), abs=1e-7)
    assert errors.translational.std < 1e-9


def test_relations_count_within_the_time_tolerance() -> None:
    track = PoseTrajectory([0, 10**9, 5 * 10**9], [[0, 0, 0], [1, 0, 0], [5, 0, 0]])
    first, second = [0, 0, 0, 10**9], [1_300_000_000, 1_300_000_001, 5_300_000_000, 3 * 10**9]
    relations = Relations(first, second, [[1.3, 0, 0], [1.3, 0, 0], [5.0, 0, 0], [2.0, 0, 0]])
    errors = relation_errors(track, relations)
    assert errors.n_used == 2
    assert errors.translational.maximum < 1e-9  # straight on between poses, still beyond the last
    assert relation_errors(track, relations, tolerance_ns=2 * 10**9).n_used == 4


@given(seed=seeds)
def test_relations_and_trajectories_survive_their_files(seed: int) -> None:
    rng = np.random.default_rng(seed)
    track = drive(rng)
    relations = some_relations(rng, track)
    with temporary_folder() as folder:
        write_relations(folder / "r", relations)
        (folder / "r.gz").write_bytes(gzip.compress((folder / "r").read_bytes()))
        for path in (folder / "r", folder / "r.gz"):
            read_back = read_relations(path)
            assert np.array_equal(read_back.first_ns, relations.first_ns)
            assert np.array_equal(read_back.second_ns, relations.second_ns)
            assert np.allclose(read_back.relative_poses, relations.relative_poses, atol=1e-15)
        write_tum(folder / "t", track)
        read_trajectory = read_tum(folder / "t")
        assert np.array_equal(read_trajectory.times_ns, track.times_ns)
        assert np.array_equal(read_trajectory.poses[:, :2], track.poses[:, :2])
        assert np.allclose(read_trajectory.poses[:, 2], track.poses[:, 2], atol=1e-14)
        write_tum(folder / "again", read_trajectory)
        assert sorted(path.name for path in folder.iterdir()) == ["again", "r", "r.gz", "t"]


@given(st.integers(0, 9_000_000_000_000_000_000))
def test_times_in_seconds_are_exact(time_ns: int) -> None:
    assert parse_time_ns(format_seconds(time_ns), "here") == time_ns


@given(seeds, moves)
def test_alignment_equals_umeyama(seed: int, T: SE2) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 2)) * 5
    assert align(points, T @ points).almost_equal(T, 1e-9)
    noisy = T @ points + rng.normal(size=points.shape)
    a, b = points - points.mean(0), noisy - noisy.mean(0)
    U, _, Vt = np.linalg.svd(b.T @ a)
    R = U @ np.diag([1, np.linalg.det(U @ Vt)]) @ Vt
    found = align(points, noisy)
    assert np.allclose(found.matrix()[:2, :2], R, atol=1e-9)
    assert np.allclose(found.xy, noisy.mean(0) - R @ points.mean(0), atol=1e-9)


@given(seeds, moves)
def test_absolute_error_is_frame_independent(seed: int, T: SE2) -> None:
    rng = np.random.default_rng(seed)
    truth = drive(rng)
    believed = PoseTrajectory(truth.times_ns, truth.poses + rng.normal(size=truth.poses.shape) * 0.1)
    errors, transformed_errors = absolute_error(believed, truth), absolute_error(transformed(believed, T), truth)
    assert np.allclose(errors.distances, transformed_errors.distances, atol=1e-9)
    assert np.allclose(errors.angles, transformed_errors.angles, atol=1e-9)
    raw = absolute_error(believed, truth, aligned=False)
    assert errors.translational.rmse <= raw.translational.rmse + 1e-12  # the alignment is the best one
    assert np.allclose(raw.distances, np.hypot(*(believed.poses - truth.poses)[:, :2].T))
    perfect = absolute_error(transformed(truth, T), truth)
    assert perfect.translational.maximum < 1e-9
    assert perfect.T_true_map.almost_equal(T.inverse(), 1e-9)


@given(moves, st.floats(-0.2, 0.2))
def test_relative_error_of_a_drift_equals_the_drift(T: SE2, rate: float) -> None:
    times = np.arange(20) * 10**9
    truth = PoseTrajectory(times, np.column_stack([np.arange(20.0), np.zeros(20), np.zeros(20)]))
    believed = PoseTrajectory(times, truth.poses + rate * np.arange(20)[:, None] * [0.0, 1.0, 0.0])
    error = relative_error(transformed(believed, T), truth, 10**9)
    assert error.translational.count == 19
    assert error.translational.mean == pytest.approx(abs(rate), abs=1e-9)
    assert error.translational.std < 1e-9
    assert error.rotational_deg.maximum < 1e-9
    assert relative_error(believed, truth, 3 * 10**9).translational.mean == pytest.approx(3 * abs(rate), abs=1e-9)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=50))
def test_error_statistics_equal_numpy(values: list[float]) -> None:
    found = ErrorStatistics.from_errors(values)
    sizes = np.abs(values)
    assert found.mean <= found.rmse + 1e-9
    assert found.rmse**2 == pytest.approx(found.mean**2 + found.std**2, abs=1e-6)
    assert (found.median, found.maximum, found.count) == (np.median(sizes), sizes.max(), len(values))


LINE = "1.0 2.0 0.1 0.2 0 0 0 0.3\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no relations"),
        ("# only words\n", "holds no relations"),
        (LINE + "1 2 3\n", "r:2: 3 numbers in a line"),
        (LINE + LINE.replace("0.1", "x"), "r:2: .* are no numbers"),
        (LINE.replace("0.1", "nan"), "r:1: .* is not finite"),
        (LINE.replace("1.0", "1e30"), "r:1: '1e30' is no time"),
        ("\0\0\0", "is no text"),
        ("9" * 100_000, "is no text"),
    ],
)
def test_invalid_relation_files_are_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "r").write_text(text)
    with pytest.raises(InputError, match=words):
        read_relations(tmp_path / "r")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no poses"),
        ("1 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n", ":2: a time that is not after"),
        ("1 0 0 0 0 0 0 0\n", ":1: the quaternion has not length 1"),
        ("1 0 0 0 0 0 0\n", ":1: 7 numbers"),
        ("1 inf 0 0 0 0 0 1\n", "is not finite"),
    ],
)
def test_invalid_trajectories_are_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(InputError, match=words):
        read_tum(tmp_path / "t")


def test_missing_or_truncated_trajectory_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_relations(tmp_path / "none")
    with pytest.raises(InputError, match="is no file"):
        read_relations(tmp_path)
    content = gzip.compress((LINE * 5000).encode())
    (tmp_path / "cut.gz").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cut off"):
        read_relations(tmp_path / "cut.gz")
    with pytest.raises(InputError, match="cannot be written"):
        write_tum(tmp_path / "no" / "such", PoseTrajectory([0], np.zeros((1, 3))))


def test_trajectories_without_common_times_are_refused() -> None:
    one, other = (PoseTrajectory([t, t + 10], np.zeros((2, 3))) for t in (0, 10**12))
    for compare in (absolute_error, relative_error):
        with pytest.raises(InputError):
            compare(one, other)
    with pytest.raises(InputError, match="none of 1 relations"):
        relation_errors(one, Relations([10**12], [10**12], np.zeros((1, 3))))
    with pytest.raises(InputError):
        relative_error(one, one, 0)
    with pytest.raises(InputError):
        ErrorStatistics.from_errors([])
