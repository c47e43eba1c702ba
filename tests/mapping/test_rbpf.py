"""SLAM by particles: better than odometry, the same bits each time, shared maps that behave like separate ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping.room_drive import GRID, drive, rooms

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OccupancyGrid
from roboyard.mapping import LaserScan, PoseTrajectory, absolute_error
from roboyard.mapping.rbpf.particle_maps import (
    HITS,
    TILE_SIZE,
    VISITS,
    TiledParticleMaps,
    negative_score_hessian,
    resample_grid,
    score_pose,
)
from roboyard.mapping.rbpf.rbpf import ParticleTrajectories, RbpfConfig, RbpfSlam

seeds = st.integers(0, 2**32 - 1)
SMALL_CONFIG = RbpfConfig(particles=8)


def believed(scans: list[LaserScan]) -> PoseTrajectory:
    poses = [(s.odometry.x, s.odometry.y, s.odometry.theta) for s in scans if s.odometry is not None]
    return PoseTrajectory([s.time_ns for s in scans], np.array(poses))


def run_rbpf(scans: list[LaserScan], config: RbpfConfig = SMALL_CONFIG) -> RbpfSlam:
    result = RbpfSlam(config)
    for scan in scans:
        result.process(scan)
    result.finish()
    return result


@pytest.fixture(scope="module")
def driven_log() -> tuple[list[LaserScan], PoseTrajectory, RbpfSlam]:
    scans, truth = drive()
    return scans, truth, run_rbpf(scans)


def test_rbpf_trajectory_is_better_than_odometry(driven_log) -> None:
    scans, truth, mapper = driven_log
    error = absolute_error(mapper.trajectory(), truth).translational
    odometry = absolute_error(believed(scans), truth).translational
    assert error.rmse < 0.05
    assert error.rmse < 0.3 * odometry.rmse
    assert mapper.n_resamplings > 0
    assert len(mapper.trajectory()) == len(scans)


def test_rbpf_map_equals_the_true_rooms(driven_log) -> None:
    _, _, mapper = driven_log
    grid = mapper.occupancy(0.05)
    blocked, start = rooms(), SE2(2.5, 2.0, np.arctan2(3.5, 3.5))
    for value in (0, 1):
        cells = np.argwhere(grid.cells > 50) if value else np.argwhere((grid.cells >= FREE) & (grid.cells < 30))
        world = GRID.cells_of_points(start @ grid.geometry.cell_centers(cells))
        is_near = np.zeros(len(world), dtype=bool)
        for d_row in range(-6, 7):  # 12 cm about
            for d_column in range(-6, 7):
                rows, columns = np.clip(world + np.array([d_row, d_column]), 0, [599, 799]).T
                is_near |= blocked[rows, columns] == bool(value)
        assert is_near.mean() > 0.97
        assert len(cells) > 300


def test_rbpf_repeats_per_seed_bit_for_bit(driven_log) -> None:
    scans, _, _ = driven_log
    config = RbpfConfig(particles=4)
    first, repeated = run_rbpf(scans[:60], config), run_rbpf(scans[:60], config)
    other = run_rbpf(scans[:60], replace(config, seed=2))
    assert first.n_resamplings > 0
    assert np.array_equal(repeated.trajectory().poses, first.trajectory().poses)
    assert np.array_equal(repeated.occupancy(0.05).cells, first.occupancy(0.05).cells)
    assert not np.array_equal(other.trajectory().poses, first.trajectory().poses)


def test_saved_rbpf_continues_unchanged(driven_log) -> None:
    scans, _, _ = driven_log
    half = run_rbpf(scans[:40])
    other = RbpfSlam(SMALL_CONFIG)
    other.load_state(half.save_state())
    for scan in scans[40:60]:
        assert half.process(scan) == other.process(scan)
    assert np.array_equal(half.occupancy(0.05).cells, other.occupancy(0.05).cells)


def test_rbpf_without_odometry_follows_the_walls() -> None:
    scans, truth = drive(100, odometry=False)
    error = absolute_error(run_rbpf(scans).trajectory(), truth, aligned=False).translational
    assert error.rmse < 0.15


def test_rbpf_memory_grows_with_the_map_only(driven_log) -> None:
    scans, _, mapper = driven_log
    area = 16.0 * 12.0 / (TILE_SIZE * 0.05) ** 2
    assert mapper.n_tiles < 2.0 * area * SMALL_CONFIG.particles
    assert mapper._trajectories.n_branched_steps < len(scans)
    one = run_rbpf(scans[:80], RbpfConfig(particles=1))
    assert one.n_tiles < 2.0 * area
    standing = RbpfSlam(SMALL_CONFIG)
    for k in range(300):
        scan = scans[0]
        standing.process(LaserScan(k * 10**8, scan.ranges, scan.angle_min, scan.angle_increment, 0.05, 12.0, 0.0,
                              scan.T_base_laser, SE2()))  # fmt: skip
    assert standing.n_matched_scans < 20
    assert np.abs(standing.trajectory().poses).max() < 0.05


@settings(max_examples=20)
@given(seeds)
def test_shared_particle_maps_equal_separate_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 4
    shared = TiledParticleMaps(count, 0.1)
    separate = [TiledParticleMaps(1, 0.1) for _ in range(count)]
    for maps in (shared, *separate):
        maps.allocate(np.array([-5.0, -5.0]), np.array([5.0, 5.0]))
    history: list[list[tuple]] = [[] for _ in range(count)]
    for _ in range(6):
        for k in range(count):
            n = int(rng.integers(1, 5))
            beams = (rng.uniform(-5, 5, (n, 2)), rng.uniform(-5, 5, (n, 2)), rng.random(n) < 0.7)
            shared.write(k, *beams)
            history[k].append(beams)
        ancestors = rng.integers(0, count, count)
        shared.resample(ancestors)
        history = [list(history[k]) for k in ancestors]
    for k in range(count):
        for beams in history[k]:
            separate[k].write(0, *beams)
        one, other = shared.occupancy(k, 0.1), separate[k].occupancy(0, 0.1)
        assert np.array_equal(one.cells, other.cells)
        assert one.geometry == other.geometry
    referenced = shared.tile_index[shared.tile_index >= 0]
    assert np.array_equal(shared.reference_counts, np.bincount(referenced, minlength=len(shared.reference_counts)))


@settings(max_examples=30)
@given(seeds)
def test_beam_counts_each_cell_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    maps = TiledParticleMaps(1, 0.1)
    start, end = rng.uniform(-8, 8, (2, 1, 2))
    maps.allocate(np.minimum(start, end)[0], np.maximum(start, end)[0])
    maps.write(0, start, end, np.ones(1, bool))
    used = maps.tiles[maps.reference_counts > 0]
    steps = np.abs(np.floor(end / 0.1) - np.floor(start / 0.1)).sum() + 1
    assert used[..., VISITS].sum() == steps
    assert used[..., VISITS].max() == 1
    assert used[..., HITS].sum() == 1


@settings(max_examples=20)
@given(seeds)
def test_trajectory_tree_gives_each_particle_its_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 5
    paths, plain = ParticleTrajectories(count), [[] for _ in range(count)]
    for _ in range(int(rng.integers(1, 200))):
        poses = rng.normal(size=(count, 3))
        paths.add(poses)
        plain = [[*poses_so_far, pose] for poses_so_far, pose in zip(plain, poses, strict=True)]
        if rng.random() < 0.5:
            ancestors = rng.integers(0, count, count)
            paths.resample(ancestors)
            plain = [list(plain[k]) for k in ancestors]
    for k in range(count):
        assert np.array_equal(paths.trajectory(k), np.array(plain[k]))
    assert len(paths) == len(plain[0])


def test_scan_likelihood_peaks_at_the_true_pose() -> None:
    maps = TiledParticleMaps(1, 0.05)
    wall_x = np.linspace(-3, 3, 400)
    wall = np.column_stack([wall_x, np.full(400, 1.02)])
    maps.allocate(np.array([-4.0, -1.0]), np.array([4.0, 2.0]))
    maps.write(0, np.zeros((400, 2)), wall, np.ones(400, bool))
    points = wall[::5].copy()
    arguments = (maps.arrays(0), points)
    true_score = score_pose(*arguments, np.zeros(3), 0.05, 1)
    for axis, off in ((1, 0.03), (1, -0.03), (2, 0.05), (2, -0.05)):
        pose = np.zeros(3)
        pose[axis] = off
        assert score_pose(*arguments, pose, 0.05, 1) < true_score
    information = negative_score_hessian(*arguments, np.zeros(3), 0.05, 1)
    assert np.allclose(information, information.T)
    assert information[1, 1] > 10.0 * abs(information[0, 0])  # the wall says nothing about the way along it


def test_resampled_map_keeps_walls(driven_log) -> None:
    _, _, mapper = driven_log
    fine, coarse = mapper.occupancy(0.05), mapper.occupancy(0.1)
    assert coarse.geometry.resolution == 0.1
    walls = np.argwhere(fine.cells > 60)
    cells = coarse.geometry.cells_of_points(fine.geometry.cell_centers(walls))
    assert (coarse.cells[cells[:, 0], cells[:, 1]] > 60).all()
    finer = resample_grid(fine, 0.025)
    center_cells = fine.geometry.cells_of_points(finer.geometry.cell_centers(np.argwhere(finer.cells > 60)))
    assert (fine.cells[center_cells[:, 0], center_cells[:, 1]] > 60).all()


def test_rbpf_refuses_invalid_and_accepts_poor_input() -> None:
    scans, _ = drive(3)
    mapper = run_rbpf(scans[:2])
    mapper.process(scans[1])
    assert mapper.warnings == ["1 scans dropped: time stamp not later than that of the scan before"]
    with pytest.raises(InputError):
        RbpfConfig(particles=0)
    blind = LaserScan(10**9, np.full(10, np.inf, np.float32), 0.0, 0.1, 0.0, 5.0)
    assert run_rbpf([blind]).process(LaserScan(2 * 10**9, np.zeros(0, np.float32), 0.0, 0.1, 0.0, 5.0)) == SE2()
    assert isinstance(run_rbpf([]).occupancy(0.05), OccupancyGrid)
    assert len(run_rbpf([]).trajectory()) == 0
    assert len(mapper.graph().edges) == 1
