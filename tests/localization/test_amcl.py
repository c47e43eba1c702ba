"""Monte Carlo localization: its parts against independent methods, the whole against the truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.localization.simulated_scans import drive, make_room_map, scan_at

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.localization.amcl import (
    Amcl,
    AmclConfig,
    cluster_particles,
    make_laser_model,
    make_motion_model,
    prepare_scan,
    search_poses,
)
from roboyard.localization.amcl.config import LASER_MODELS
from roboyard.localization.amcl.laser_model import compute_visibility_scores, drop_short_beams, scan_consistency
from roboyard.localization.amcl.particles import (
    KldParameters,
    bin_keys,
    effective_sample_size,
    kld_sample_size,
    low_variance_indices,
    pose_bins,
    required_particles,
)
from roboyard.localization.amcl.pose_refinement import FreeSpace, align_poses

SEEDS = st.integers(0, 2**32 - 1)
START = SE2(3.0, 1.5, 0.4)
SMALL_COVARIANCE = np.diag([0.01, 0.01, 0.01])


def pose_row(pose: SE2) -> np.ndarray:
    return np.array([[pose.x, pose.y, pose.theta]])


# -- motion ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", ["diff", "diff-corrected", "omni", "omni-corrected"])
@pytest.mark.parametrize("step", [SE2(0.3, 0.05, 0.2), SE2(0.2, -0.1, -0.3)])
def test_motion_samples_follow_the_models_density(model: str, step: SE2) -> None:
    """A histogram of samples over cells of x, y and heading equals the sum of the density over each cell."""
    motion_model = make_motion_model(AmclConfig(robot_model_type=model))
    samples = motion_model.sample(np.zeros((40_000, 3)), step, np.random.default_rng(1))
    edges = [np.linspace(*np.quantile(samples[:, axis], [0.1, 0.9]), 4) for axis in range(3)]
    counts, _ = np.histogramdd(samples, bins=edges)
    centers = np.stack(np.meshgrid(*[np.linspace(e[0], e[-1], 37)[:-1] + (e[-1] - e[0]) / 72 for e in edges],
                                   indexing="ij"), axis=-1)  # fmt: skip
    volume = np.prod([(e[-1] - e[0]) / 36 for e in edges])
    dense = motion_model.density(centers.reshape(-1, 3), step).reshape(36, 36, 36) * volume
    expected = dense.reshape(3, 12, 3, 12, 3, 12).sum(axis=(1, 3, 5)) * len(samples)
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected.max())


def test_motion_without_noise_is_exact() -> None:
    no_noise = dict.fromkeys(("alpha1", "alpha2", "alpha3", "alpha4", "alpha5"), 0.0)
    start, step = SE2(1.0, 2.0, 0.5), SE2(0.3, 0.1, 0.4)
    for model in ("diff", "omni"):
        motion_model = make_motion_model(AmclConfig(robot_model_type=model, **no_noise))
        end = motion_model.sample(pose_row(start), step, np.random.default_rng(0))
        assert SE2(*end[0]).almost_equal(start @ step)


def test_reversing_has_the_noise_of_driving_forward() -> None:
    motion_model = make_motion_model(AmclConfig())
    back = motion_model.sample(np.zeros((2000, 3)), SE2(-0.3, 0.0, 0.0), np.random.default_rng(0))
    forward = motion_model.sample(np.zeros((2000, 3)), SE2(0.3, 0.0, 0.0), np.random.default_rng(0))
    assert back.std(axis=0) == pytest.approx(forward.std(axis=0), rel=0.15)


# -- resampling --------------------------------------------------------------------------------------------------------
@given(SEEDS, st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_low_variance_resampling_follows_the_weights(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.random(30) ** 3
    counts = np.bincount(low_variance_indices(weights, count, rng), minlength=30)
    expected = weights / weights.sum() * count
    assert counts.sum() == count
    assert (np.abs(counts - expected) < 1 + 1e-9).all()


def test_kld_bound_equals_the_chi_square_quantile() -> None:
    """2 n ε is chi-square distributed with k - 1 degrees of freedom; 0.99 is the 83.9 % quantile of the normal one."""
    for count in (2, 10, 100, 1000):
        exact = stats.chi2.ppf(stats.norm.cdf(0.99), count - 1) / (2 * 0.05)
        assert kld_sample_size(count, 0.05, 0.99) == pytest.approx(exact, rel=0.02, abs=1.5)
    assert kld_sample_size(1, 0.05, 0.99) == 1


def test_spread_particles_need_more_samples() -> None:
    rng = np.random.default_rng(0)
    even = np.full(3000, 1 / 3000)
    counts = [
        required_particles(
            rng.normal(0, spread, (3000, 3)), even, KldParameters(50, 3000, 0.05, 0.99), np.random.default_rng(0)
        )
        for spread in (0.01, 0.5, 2.0, 20.0)
    ]
    assert counts[0] < 200
    assert counts == sorted(counts)
    assert counts[-1] == 3000


@given(st.lists(st.tuples(*[st.floats(-1e4, 1e4)] * 3), min_size=2, max_size=20))
@settings(max_examples=40, deadline=None)
def test_bin_keys_are_unique_and_ordered(poses: list[tuple[float, float, float]]) -> None:
    cells = pose_bins(np.array(poses))
    rows, by_row = np.unique(cells, axis=0, return_inverse=True)
    numbers, by_key = np.unique(bin_keys(cells), return_inverse=True)
    assert len(rows) == len(numbers)
    assert (by_row.reshape(-1) == by_key).all()


def test_effective_sample_size_of_extreme_weights() -> None:
    assert effective_sample_size(np.full(10, 0.1)) == pytest.approx(10)
    assert effective_sample_size(np.eye(10)[0]) == pytest.approx(1)


def test_clusters_are_separated_and_headings_wrap() -> None:
    rng = np.random.default_rng(0)
    one = np.column_stack([rng.normal(0, 0.1, (300, 2)), wrap_angle(rng.normal(math.pi, 0.05, 300))])
    two = np.column_stack([rng.normal(5, 0.1, (100, 2)), rng.normal(0, 0.05, 100)])
    found = cluster_particles(np.concatenate([one, two]), np.full(400, 1 / 400))
    assert [round(c.weight, 2) for c in found] == [0.75, 0.25]
    assert abs(wrap_angle(found[0].pose.theta - math.pi)) < 0.02
    assert found[0].covariance == pytest.approx(np.cov(one[:, 0]) * np.diag([1, 1, 0.25]), abs=3e-3)


# -- the map -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", LASER_MODELS.names())
@pytest.mark.parametrize("origin", [SE2(-1.0, -2.0, 0.0), SE2(4.0, 1.0, 2.1)])
def test_scan_is_most_likely_at_its_true_pose(model: str, origin: SE2) -> None:
    grid = make_room_map(origin)
    pose = origin @ SE2(4.0, 3.5, 0.4)
    laser_model = make_laser_model(grid, AmclConfig(laser_model_type=model))
    rng = np.random.default_rng(0)
    around = pose_row(pose) + rng.uniform(-1, 1, (300, 3)) * [1.0, 1.0, 0.6]
    around = around[np.linalg.norm((around - pose_row(pose)) / [0.3, 0.3, 0.15], axis=1) > 1.0]
    total, _ = laser_model.log_weights(
        np.concatenate([pose_row(pose), around]), prepare_scan(scan_at(grid, pose), laser_model.config)
    )
    assert np.argmax(total) == 0


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_alignment_recovers_the_true_pose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grid = make_room_map(SE2(*rng.uniform(-9, 9, 2), rng.uniform(-3, 3)))
    pose = grid.geometry.T_map_grid @ SE2(4.0 + rng.uniform(-0.3, 0.3), 3.5, rng.uniform(-3, 3))
    laser_model = make_laser_model(grid, AmclConfig())
    points = prepare_scan(scan_at(grid, pose), laser_model.config).points
    start_poses = pose_row(pose) + rng.uniform(-1, 1, (1, 3)) * [0.15, 0.15, 0.08]
    aligned = align_poses(laser_model.field, start_poses, points)
    assert SE2(*aligned.poses[0]).distance(pose) < 0.03
    assert abs(wrap_angle(aligned.poses[0, 2] - pose.theta)) < 0.015
    assert aligned.inlier_fractions[0] > 0.9


def test_alignment_in_a_corridor_keeps_the_longitudinal_prior() -> None:
    cells = np.zeros((60, 400), np.int8)
    cells[:3], cells[-3:] = 100, 100
    grid = OccupancyGrid(cells, GridGeometry(0.05, cells.shape))
    laser_model, pose = make_laser_model(grid, AmclConfig()), SE2(10.0, 1.5, 0.1)
    scan = scan_at(grid, pose)
    points = prepare_scan(scan, laser_model.config).points
    points = points[np.abs(points[:, 0]) < 3.0]
    aligned = align_poses(
        laser_model.field, pose_row(SE2(10.4, 1.55, 0.08)), points, prior=np.diag([100.0, 0.0, 0.0])[None]
    )
    assert aligned.poses[0, 0] == pytest.approx(10.4, abs=0.01)
    assert aligned.poses[0, 1] == pytest.approx(1.5, abs=0.02)
    covariance = np.linalg.inv(aligned.information[0])
    assert covariance[0, 0] == pytest.approx(0.01, rel=0.05)
    assert covariance[1, 1] < 0.001


def test_beams_through_walls_lower_the_visibility_score() -> None:
    grid = make_room_map()
    laser_model = make_laser_model(grid, AmclConfig())
    measurement = prepare_scan(scan_at(grid, START), laser_model.config)
    at_pose, at_wrong_pose = compute_visibility_scores(
        laser_model, np.concatenate([pose_row(START), pose_row(SE2(1.0, 0.5, 0.4))]), measurement
    )
    assert at_pose > 0.9
    assert at_wrong_pose < 0.2
    blocked = scan_at(grid, START)
    ranges = np.where(np.arange(121) < 40, 0.5, blocked.ranges)  # somebody stands there: no contradiction
    score = compute_visibility_scores(
        laser_model,
        pose_row(START),
        prepare_scan(scan_at(grid, START, ranges=ranges.astype(np.float32)), laser_model.config),
    )
    assert score[0] == pytest.approx(2 / 3, abs=0.06)


def test_scan_consistency_falls_for_beams_through_walls_not_short_ones() -> None:
    assert scan_consistency(1.0, 0.0) == 1.0
    assert scan_consistency(0.5, 0.0) > 0.9
    assert scan_consistency(0.9, 0.1) < 0.85


def test_global_search_finds_the_pose_of_a_scan() -> None:
    grid = make_room_map()
    laser_model, free_space = make_laser_model(grid, AmclConfig()), FreeSpace(grid)
    for pose in (START, SE2(0.5, 2.5, -2.0), SE2(5.5, 0.0, 1.5)):
        found = search_poses(
            laser_model, free_space, prepare_scan(scan_at(grid, pose), laser_model.config), np.random.default_rng(0)
        )
        assert SE2(*found.poses[0]).distance(pose) < 0.05


# -- the whole ---------------------------------------------------------------------------------------------------------
def run_amcl(seed: int = 0, steps: int = 80, jump: SE2 | None = None, is_global: bool = False, **config: object):
    grid = make_room_map()
    tested = Amcl(AmclConfig(**config), np.random.default_rng(seed))
    tested.set_map(grid)
    if is_global:
        tested.start_global_localization()
    else:
        tested.set_initial_pose(START, SMALL_COVARIANCE)
    errors, last = [], None
    for pose, scan in drive(grid, START, steps, seed, jump):
        last = tested.process(scan) or last
        errors.append((last.T_map_odom @ scan.odometry).distance(pose))
    return np.array(errors), tested, last


@pytest.mark.parametrize("model", LASER_MODELS.names())
def test_amcl_tracks_the_pose_while_driving(model: str) -> None:
    errors, _, last = run_amcl(laser_model_type=model)
    assert np.median(errors[10:]) < 0.03
    assert last.inlier_fraction > 0.9


def test_amcl_localizes_globally_and_after_kidnapping() -> None:
    assert run_amcl(seed=1, is_global=True)[0][20:].max() < 0.1
    assert run_amcl(seed=2, steps=160, jump=SE2(0.5, 2.3, -2.0))[0][-20:].max() < 0.1


def test_amcl_is_not_misled_by_people_around_the_robot() -> None:
    """Two fifths of the beams end on something that goes along with the base."""
    grid, tested = make_room_map(), Amcl(rng=np.random.default_rng(0))
    tested.set_map(grid)
    tested.set_initial_pose(START, SMALL_COVARIANCE)
    errors = []
    for k, (pose, scan) in enumerate(drive(grid, START, 120, 0)):
        ranges = scan.ranges.copy()
        if k > 10:
            ranges[20:68] = np.minimum(ranges[20:68], 0.7)
        found = tested.process(replace(scan, ranges=ranges))
        if found is not None:
            errors.append(found.T_map_base.distance(pose))
    assert max(errors) < 0.15
    assert np.median(errors) < 0.04


def test_beams_of_unmapped_obstacles_are_dropped() -> None:
    grid = make_room_map()
    laser_model, scan = make_laser_model(grid, AmclConfig()), scan_at(grid, START)
    ranges = scan.ranges.copy()
    ranges[:30] = 0.3
    ranges[30:33] = np.inf
    measurement = prepare_scan(replace(scan, ranges=ranges), laser_model.config)
    remaining = drop_short_beams(laser_model, START, measurement, 0.5)
    assert len(remaining.ranges) == 91
    assert len(remaining.points) == 88
    all_short = prepare_scan(replace(scan, ranges=np.full(121, 0.3, np.float32)), laser_model.config)
    assert drop_short_beams(laser_model, START, all_short, 0.5) is all_short


def test_amcl_repeats_and_continues_bit_for_bit() -> None:
    grid = make_room_map()
    scans = [scan for _, scan in drive(grid, START, 30, 0)]
    ends = []
    for kind in ("whole", "again", "saved"):
        rng = np.random.default_rng(5)
        tested = Amcl(rng=rng)
        tested.set_map(grid)
        tested.set_initial_pose(START, SMALL_COVARIANCE)
        for k, scan in enumerate(scans):
            if kind == "saved" and k == 15:
                state = tested.save_state()
                tested = Amcl(rng=rng)
                tested.set_map(grid)
                tested.load_state(state)
            tested.process(scan)
        ends.append((tested.particles, tested.weights))
    for particles, weights in ends[1:]:
        assert (particles == ends[0][0]).all()
        assert (weights == ends[0][1]).all()


def test_stationary_robot_needs_no_update_and_does_not_drift() -> None:
    """Forced updates as of an hour of standing, once every half minute, with the laser's noise each time."""
    grid, rng = make_room_map(), np.random.default_rng(3)
    tested = Amcl(rng=np.random.default_rng(3))
    tested.set_map(grid)
    tested.set_initial_pose(START, SMALL_COVARIANCE)
    poses = []
    for k in range(120):
        scan = scan_at(grid, START, k, rng=rng)
        assert k == 0 or tested.process(scan) is None  # nothing moved: nothing to do
        tested.request_update()
        poses.append(tested.process(scan).T_map_base)
    assert max(pose.distance(poses[5]) for pose in poses[5:]) < 0.02
    assert max(pose.distance(START) for pose in poses[5:]) < 0.02


def test_each_laser_is_weighed_after_its_own_motion() -> None:
    """Each of two lasers is weighed when the base has moved since that laser's own last time."""
    grid = make_room_map()
    tested = Amcl()
    tested.set_map(grid)
    tested.set_initial_pose(START, SMALL_COVARIANCE)
    for pose in (START, START @ SE2(0.3, 0.0, 0.0)):
        for laser in ("front", "rear"):
            mount = SE2(0.1, 0.0, 0.0 if laser == "front" else math.pi)
            laser_pose = pose @ mount @ SE2(-0.1, 0.0, 0.0)
            scan = scan_at(grid, laser_pose, odometry=pose, T_base_laser=mount, laser_name=laser)
            found = tested.process(scan)
            assert found is not None
            assert tested.process(scan) is None
    assert found.T_map_base.distance(pose) < 0.05


def test_invalid_ranges_are_ignored() -> None:
    grid = make_room_map()
    tested = Amcl()
    tested.set_map(grid)
    tested.set_initial_pose(START, SMALL_COVARIANCE)
    ranges = scan_at(grid, START).ranges.copy()
    ranges[::4] = [np.nan, np.inf, -np.inf, 0.0, -1.0, 0.05] * 5 + [np.nan]
    found = tested.process(scan_at(grid, START, ranges=ranges))
    assert found.T_map_base.distance(START) < 0.03
    for invalid_ranges in (np.full(121, np.nan), np.full(121, np.inf), np.zeros(121), np.zeros(0)):
        tested.request_update()
        assert tested.process(scan_at(grid, START, ranges=invalid_ranges.astype(np.float32))) is None
    tested.request_update()  # and another number of beams
    sparse = scan_at(grid, START)
    assert tested.process(
        scan_at(grid, START, ranges=sparse.ranges[::3], angle_increment=3 * sparse.angle_increment)
    ).T_map_base.distance(START) < 0.03  # fmt: skip


def test_missing_and_invalid_input_is_refused() -> None:
    tested, scan = Amcl(), scan_at(make_room_map(), START)
    with pytest.raises(InputError, match="no map"):
        tested.process(scan)
    with pytest.raises(InputError, match="no occupied cell"):
        tested.set_map(OccupancyGrid(np.zeros((5, 5), np.int8), GridGeometry(0.1, (5, 5))))
    tested.set_map(make_room_map())
    with pytest.raises(InputError, match="no initial pose"):
        tested.process(scan)
    for bad in (np.eye(2), np.full((3, 3), np.nan), -np.eye(3)):
        with pytest.raises(InputError, match="covariance"):
            tested.set_initial_pose(START, bad)
    tested.start_global_localization()
    with pytest.raises(InputError, match="without odometry"):
        tested.process(scan_at(make_room_map(), START).__class__(0, scan.ranges, 0.0, 0.01, 0.1, 20.0))
    for bad in ({"max_particles": 10}, {"laser_model_type": "x"}, {"robot_model_type": "x"}, {"alpha1": -1.0},
                {"z_hit": 0.0, "z_rand": 0.0}, {"sigma_hit": math.nan}):  # fmt: skip
        with pytest.raises(ConfigError):
            AmclConfig(**bad)
