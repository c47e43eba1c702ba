"""SLAM by particles: better than odometry, the same bits each time, shared maps that behave like separate ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping.worlds import FRAME, drive, rooms

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OccupancyGrid
from roboyard.mapping import Scan, Trajectory, absolute_error
from roboyard.mapping.rbpf import RbpfConfig, RbpfSlam
from roboyard.mapping.rbpf_match import curvature, fit
from roboyard.mapping.rbpf_paths import Paths
from roboyard.mapping.rbpf_tiles import HITS, SEEN, SIDE, TileMaps, resampled

seeds = st.integers(0, 2**32 - 1)
FEW = RbpfConfig(particles=8)


def believed(scans: list[Scan]) -> Trajectory:
    poses = [(s.odometry.x, s.odometry.y, s.odometry.theta) for s in scans if s.odometry is not None]
    return Trajectory([s.time_ns for s in scans], np.array(poses))


def slam(scans: list[Scan], config: RbpfConfig = FEW) -> RbpfSlam:
    result = RbpfSlam(config)
    for scan in scans:
        result.process(scan)
    result.finish()
    return result


@pytest.fixture(scope="module")
def driven() -> tuple[list[Scan], Trajectory, RbpfSlam]:
    scans, truth = drive()
    return scans, truth, slam(scans)


def test_rbpf_trajectory_is_better_than_odometry(driven) -> None:
    scans, truth, made = driven
    error = absolute_error(made.trajectory(), truth).translational
    odometry = absolute_error(believed(scans), truth).translational
    assert error.rmse < 0.05
    assert error.rmse < 0.3 * odometry.rmse
    assert made.resampled > 0
    assert len(made.trajectory()) == len(scans)


def test_rbpf_map_equals_the_true_rooms(driven) -> None:
    _, _, made = driven
    grid = made.occupancy(0.05)
    blocked, start = rooms(), SE2(2.5, 2.0, np.arctan2(3.5, 3.5))
    for value in (0, 1):
        cells = np.argwhere(grid.cells > 50) if value else np.argwhere((grid.cells >= FREE) & (grid.cells < 30))
        world = FRAME.cells_of_points(start @ grid.geometry.cell_centers(cells))
        near = np.zeros(len(world), dtype=bool)
        for d_row in range(-6, 7):  # 12 cm about
            for d_column in range(-6, 7):
                rows, columns = np.clip(world + np.array([d_row, d_column]), 0, [599, 799]).T
                near |= blocked[rows, columns] == bool(value)
        assert near.mean() > 0.97
        assert len(cells) > 300


def test_rbpf_repeats_per_seed_bit_for_bit(driven) -> None:
    scans, _, _ = driven
    config = RbpfConfig(particles=4)
    first, again = slam(scans[:60], config), slam(scans[:60], config)
    other = slam(scans[:60], replace(config, seed=2))
    assert first.resampled > 0
    assert np.array_equal(again.trajectory().poses, first.trajectory().poses)
    assert np.array_equal(again.occupancy(0.05).cells, first.occupancy(0.05).cells)
    assert not np.array_equal(other.trajectory().poses, first.trajectory().poses)


def test_saved_rbpf_continues_unchanged(driven) -> None:
    scans, _, _ = driven
    half = slam(scans[:40])
    other = RbpfSlam(FEW)
    other.load_state(half.save_state())
    for scan in scans[40:60]:
        assert half.process(scan) == other.process(scan)
    assert np.array_equal(half.occupancy(0.05).cells, other.occupancy(0.05).cells)


def test_rbpf_without_odometry_follows_the_walls() -> None:
    scans, truth = drive(100, odometry=False)
    error = absolute_error(slam(scans).trajectory(), truth, aligned=False).translational
    assert error.rmse < 0.15


def test_rbpf_memory_grows_with_the_map_only(driven) -> None:
    scans, _, made = driven
    area = 16.0 * 12.0 / (SIDE * 0.05) ** 2
    assert made.tiles < 2.0 * area * FEW.particles
    assert made._paths.branched < len(scans)
    one = slam(scans[:80], RbpfConfig(particles=1))
    assert one.tiles < 2.0 * area
    standing = RbpfSlam(FEW)
    for k in range(300):
        scan = scans[0]
        standing.process(Scan(k * 10**8, scan.ranges, scan.angle_min, scan.angle_increment, 0.05, 12.0, 0.0,
                              scan.T_base_laser, SE2()))  # fmt: skip
    assert standing.matched < 20
    assert np.abs(standing.trajectory().poses).max() < 0.05


@settings(max_examples=20)
@given(seeds)
def test_shared_particle_maps_equal_separate_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 4
    shared = TileMaps(count, 0.1)
    separate = [TileMaps(1, 0.1) for _ in range(count)]
    for maps in (shared, *separate):
        maps.cover(np.array([-5.0, -5.0]), np.array([5.0, 5.0]))
    history: list[list[tuple]] = [[] for _ in range(count)]
    for _ in range(6):
        for k in range(count):
            n = int(rng.integers(1, 5))
            beams = (rng.uniform(-5, 5, (n, 2)), rng.uniform(-5, 5, (n, 2)), rng.random(n) < 0.7)
            shared.write(k, *beams)
            history[k].append(beams)
        chosen = rng.integers(0, count, count)
        shared.choose(chosen)
        history = [list(history[k]) for k in chosen]
    for k in range(count):
        for beams in history[k]:
            separate[k].write(0, *beams)
        one, other = shared.occupancy(k, 0.1), separate[k].occupancy(0, 0.1)
        assert np.array_equal(one.cells, other.cells)
        assert one.geometry == other.geometry
    shown = shared.table[shared.table >= 0]
    assert np.array_equal(shared.users, np.bincount(shown, minlength=len(shared.users)))


@settings(max_examples=30)
@given(seeds)
def test_beam_counts_each_cell_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    maps = TileMaps(1, 0.1)
    start, end = rng.uniform(-8, 8, (2, 1, 2))
    maps.cover(np.minimum(start, end)[0], np.maximum(start, end)[0])
    maps.write(0, start, end, np.ones(1, bool))
    used = maps.tiles[maps.users > 0]
    steps = np.abs(np.floor(end / 0.1) - np.floor(start / 0.1)).sum() + 1
    assert used[..., SEEN].sum() == steps
    assert used[..., SEEN].max() == 1
    assert used[..., HITS].sum() == 1


@settings(max_examples=20)
@given(seeds)
def test_trajectory_tree_gives_each_particle_its_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 5
    paths, plain = Paths(count), [[] for _ in range(count)]
    for _ in range(int(rng.integers(1, 200))):
        poses = rng.normal(size=(count, 3))
        paths.add(poses)
        plain = [[*way, pose] for way, pose in zip(plain, poses, strict=True)]
        if rng.random() < 0.5:
            chosen = rng.integers(0, count, count)
            paths.choose(chosen)
            plain = [list(plain[k]) for k in chosen]
    for k in range(count):
        assert np.array_equal(paths.of(k), np.array(plain[k]))
    assert len(paths) == len(plain[0])


def test_scan_likelihood_peaks_at_the_true_pose() -> None:
    maps = TileMaps(1, 0.05)
    along = np.linspace(-3, 3, 400)
    wall = np.column_stack([along, np.full(400, 1.02)])
    maps.cover(np.array([-4.0, -1.0]), np.array([4.0, 2.0]))
    maps.write(0, np.zeros((400, 2)), wall, np.ones(400, bool))
    points = wall[::5].copy()
    arguments = (maps.tiles, maps.table[0], maps.corner, points)
    here = fit(*arguments, np.zeros(3), 0.05, 0.05, 1)
    for axis, off in ((1, 0.03), (1, -0.03), (2, 0.05), (2, -0.05)):
        pose = np.zeros(3)
        pose[axis] = off
        assert fit(*arguments, pose, 0.05, 0.05, 1) < here
    sharp = curvature(*arguments, np.zeros(3), 0.05, 0.05, 1)
    assert np.allclose(sharp, sharp.T)
    assert sharp[1, 1] > 10.0 * abs(sharp[0, 0])  # the wall says nothing about the way along it


def test_resampled_map_keeps_walls(driven) -> None:
    _, _, made = driven
    fine, coarse = made.occupancy(0.05), made.occupancy(0.1)
    assert coarse.geometry.resolution == 0.1
    walls = np.argwhere(fine.cells > 60)
    cells = coarse.geometry.cells_of_points(fine.geometry.cell_centers(walls))
    assert (coarse.cells[cells[:, 0], cells[:, 1]] > 60).all()
    finer = resampled(fine, 0.025)
    middle = fine.geometry.cells_of_points(finer.geometry.cell_centers(np.argwhere(finer.cells > 60)))
    assert (fine.cells[middle[:, 0], middle[:, 1]] > 60).all()


def test_rbpf_refuses_invalid_and_accepts_poor_input() -> None:
    scans, _ = drive(3)
    made = slam(scans[:2])
    with pytest.raises(InputError, match="later scans"):
        made.process(scans[1])
    with pytest.raises(InputError):
        RbpfConfig(particles=0)
    blind = Scan(10**9, np.full(10, np.inf, np.float32), 0.0, 0.1, 0.0, 5.0)
    assert slam([blind]).process(Scan(2 * 10**9, np.zeros(0, np.float32), 0.0, 0.1, 0.0, 5.0)) == SE2()
    assert isinstance(slam([]).occupancy(0.05), OccupancyGrid)
    assert len(slam([]).trajectory()) == 0
    assert len(made.graph().pairs) == 1
