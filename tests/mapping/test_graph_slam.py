"""Laws of graph SLAM, on a simulated robot whose way is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.mapping.corridor_drive import PERIOD_NS, OdometryChange, drive, rooms, simulate_scans

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import OCCUPIED
from roboyard.mapping import GraphSlam, LaserScan, PoseTrajectory, Slam


def run(scans: list[LaserScan]) -> GraphSlam:
    slam = GraphSlam()
    for scan in scans:
        slam.process(scan)
    slam.finish()
    return slam


def error(found: PoseTrajectory, truth: list[SE2]) -> float:
    """Worst distance [m] from the truth, which begins where the map does."""
    origin = truth[0].inverse()
    poses = [origin @ truth[time // PERIOD_NS] for time in found.times_ns.tolist()]
    return max(found.pose(k).distance(pose) for k, pose in enumerate(poses))


@pytest.fixture(scope="module")
def true_poses() -> list[SE2]:
    return drive()


@pytest.fixture(scope="module")
def mapped_graph(true_poses: list[SE2]) -> GraphSlam:
    return run(list(simulate_scans(true_poses)))


def test_graph_slam_finds_the_trajectory_and_closes_the_loop(mapped_graph: GraphSlam, true_poses: list[SE2]) -> None:
    slam: Slam = mapped_graph
    assert error(slam.trajectory(), true_poses) < 0.06
    assert len(slam.trajectory()) == len(true_poses)
    graph = slam.graph()
    assert graph.is_loop.any()
    assert not mapped_graph.warnings


def test_graph_slam_map_shows_the_true_walls(mapped_graph: GraphSlam, true_poses: list[SE2]) -> None:
    grid = mapped_graph.occupancy(0.05)
    occupied = true_poses[0] @ grid.geometry.cell_centers(np.argwhere(grid.cells > 0.7 * OCCUPIED))
    walls = rooms()
    low, high = np.minimum(walls[:, :2], walls[:, 2:]), np.maximum(walls[:, :2], walls[:, 2:])
    nearest = np.maximum(np.maximum(low[None] - occupied[:, None], occupied[:, None] - high[None]), 0.0)
    distances = np.linalg.norm(nearest, axis=2).min(axis=1)
    assert len(occupied) > 500
    assert distances.mean() < 0.03


LIES: dict[str, OdometryChange] = {
    "loses its sign": lambda k, step: SE2(-step.x, -step.y, step.theta) if k // 40 % 3 == 2 else step,
    "counts too little": lambda k, step: SE2(0.8 * step.x, 0.8 * step.y, step.theta),
    "turns too much": lambda k, step: SE2(step.x, step.y, 1.1 * step.theta + 0.02 * step.x),
    "freezes": lambda k, step: SE2() if k // 50 % 3 == 1 else step,
    "jumps": lambda k, step: step @ SE2(2.0, -1.0, 1.5) if k % 60 == 59 else step,
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_graph_slam_rejects_false_odometry(lie: str, true_poses: list[SE2]) -> None:
    slam = run(list(simulate_scans(true_poses, change_odometry=LIES[lie])))
    assert error(slam.trajectory(), true_poses) < 0.08


SPARSE_LIES: dict[str, OdometryChange] = {
    "stands still": lambda k, step: SE2() if k // 10 % 4 == 2 else step,
    "turns the other way": lambda k, step: SE2(step.x, step.y, -step.theta),
    "loses its sign": lambda k, step: SE2(-step.x, -step.y, step.theta) if k // 10 % 4 == 2 else step,
}


@pytest.mark.parametrize("lie", SPARSE_LIES)
def test_sparse_scans_survive_false_odometry(lie: str, true_poses: list[SE2]) -> None:
    sparse = true_poses[::8]
    scans = [
        replace(scan, time_ns=5 * scan.time_ns) for scan in simulate_scans(sparse, change_odometry=SPARSE_LIES[lie])
    ]
    found = run(scans).trajectory()
    assert error(replace(found, times_ns=found.times_ns // 5), sparse) < 0.06


def test_sparse_scans_survive_missing_odometry(true_poses: list[SE2]) -> None:
    sparse = true_poses[::8]
    scans = list(simulate_scans(sparse))
    stale = [
        replace(scan, time_ns=5 * scan.time_ns, odometry=scans[k - k % 2].odometry) for k, scan in enumerate(scans)
    ]
    found = run(stale).trajectory()
    assert error(replace(found, times_ns=found.times_ns // 5), sparse) < 0.06


def test_graph_slam_works_without_odometry(true_poses: list[SE2]) -> None:
    assert error(run(list(simulate_scans(true_poses, odometry=False))).trajectory(), true_poses) < 0.08


@pytest.mark.parametrize(("beams", "field"), [(361, math.pi), (682, math.radians(240.0)), (720, 2.0 * math.pi)])
def test_graph_slam_works_with_other_lasers(beams: int, field: float, true_poses: list[SE2]) -> None:
    slam = run(list(simulate_scans(true_poses[:200], beams=beams, field=field, max_range=6.0)))
    assert error(slam.trajectory(), true_poses) < 0.05


def test_graph_slam_repeats_bit_for_bit(mapped_graph: GraphSlam, true_poses: list[SE2]) -> None:
    repeated = run(list(simulate_scans(true_poses)))
    assert repeated.trajectory().poses.tobytes() == mapped_graph.trajectory().poses.tobytes()
    assert repeated.occupancy(0.1).cells.tobytes() == mapped_graph.occupancy(0.1).cells.tobytes()
    assert repeated.graph().information.tobytes() == mapped_graph.graph().information.tobytes()


def test_two_lasers_map_more_than_one(true_poses: list[SE2]) -> None:
    front_scans = list(simulate_scans(true_poses[:150]))
    # the rear laser sees what a robot that looks back would see
    back = simulate_scans([pose @ SE2(0.0, 0.0, math.pi) for pose in true_poses[:150]], seed=2)
    rear_pose = SE2(0.0, 0.0, math.pi)
    behind = [replace(scan, T_base_laser=rear_pose, laser_name="rear", odometry=front.odometry)
              for scan, front in zip(back, front_scans, strict=True)]  # fmt: skip
    both = run([scan for pair in zip(front_scans, behind, strict=True) for scan in pair])
    alone = run(front_scans)
    assert error(both.trajectory(), true_poses) < 0.06
    is_known = [(slam.occupancy(0.1).cells >= 0).sum() for slam in (alone, both)]
    assert is_known[1] > is_known[0]


def test_odometry_bridges_a_time_gap(true_poses: list[SE2]) -> None:
    scans = list(simulate_scans(true_poses))
    slam = run(scans[:100] + scans[125:])
    origin = true_poses[0].inverse()
    last = origin @ true_poses[-1]
    assert slam.trajectory().pose(-1).distance(last) < 0.06


@pytest.mark.slow
def test_kidnapped_robot_without_odometry_is_reported(true_poses: list[SE2]) -> None:
    scans = list(simulate_scans(true_poses, odometry=False))
    blank = [replace(scan, ranges=np.random.default_rng(k).uniform(0.5, 9.0, len(scan.ranges)).astype(np.float32))
             for k, scan in enumerate(scans[80:92])]  # fmt: skip
    slam = run(scans[:80] + blank + scans[200:300])
    assert any("lost" in warning for warning in slam.warnings)


def test_out_of_order_scans_are_dropped_and_counted(mapped_graph: GraphSlam, true_poses: list[SE2]) -> None:
    scans = list(simulate_scans(true_poses))
    disturbed = []
    for k, scan in enumerate(scans):
        disturbed.append(scan)
        if k % 50 == 20:
            disturbed += [scan, scans[k - 10]]
    slam = run(disturbed)
    assert slam.trajectory().poses.tobytes() == mapped_graph.trajectory().poses.tobytes()
    assert len(slam.warnings) == 2


def test_graph_slam_survives_empty_scans(true_poses: list[SE2]) -> None:
    scans = list(simulate_scans(true_poses[:200]))
    for k in range(60, 66):
        scans[k] = replace(scans[k], ranges=np.full(181, [np.nan, np.inf, 0.0][k % 3], dtype=np.float32))
    slam = run(scans)
    assert error(slam.trajectory(), true_poses) < 0.06
    assert any("too few points" in warning for warning in slam.warnings)


def test_number_of_beams_may_change(true_poses: list[SE2]) -> None:
    scans = list(simulate_scans(true_poses[:120]))
    scans[50:60] = [replace(scan, ranges=scan.ranges[:120]) for scan in scans[50:60]]
    slam = run(scans)
    assert error(slam.trajectory(), true_poses) < 0.05
    assert any("number of beams" in warning for warning in slam.warnings)


def test_one_scan_or_none_give_valid_maps() -> None:
    one = run(list(simulate_scans(drive()[:1])))
    assert len(one.trajectory()) == 1
    assert (one.occupancy(0.1).cells > 50).any()
    empty = run([])
    assert len(empty.trajectory()) == len(empty.graph().poses) == 0
    assert empty.occupancy(0.1).cells.max(initial=-1) == -1


def test_standing_robot_adds_no_scans(true_poses: list[SE2]) -> None:
    slam = run(list(simulate_scans([true_poses[0]] * 300)))
    assert len(slam.graph().poses) == 1
    assert error(slam.trajectory(), [true_poses[0]] * 300) < 0.02


def test_stamp_from_the_future_does_not_stop_mapping(true_poses: list[SE2]) -> None:
    scans = list(simulate_scans(true_poses))
    scans[100] = replace(scans[100], time_ns=10**15)
    slam = run(scans)
    assert error(slam.trajectory(), true_poses) < 0.08
    assert len(slam.trajectory()) > len(true_poses) - 10
    assert any("resets of the clock" in warning for warning in slam.warnings)


@pytest.mark.parametrize("resolution", [0.0, -0.1, math.nan, 1e-7])
def test_invalid_map_resolution_is_refused(resolution: float, mapped_graph: GraphSlam) -> None:
    with pytest.raises(InputError):
        mapped_graph.occupancy(resolution)
