"""Laws of graph SLAM, on a simulated robot whose way is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.mapping.simulated import PERIOD_NS, Lie, drive, log, rooms

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import OCCUPIED
from roboyard.mapping import GraphSlam, Scan, Slam, Trajectory


def run(scans: list[Scan]) -> GraphSlam:
    slam = GraphSlam()
    for scan in scans:
        slam.process(scan)
    slam.finish()
    return slam


def error(found: Trajectory, truth: list[SE2]) -> float:
    """Worst distance [m] from the truth, which begins where the map does."""
    origin = truth[0].inverse()
    poses = [origin @ truth[time // PERIOD_NS] for time in found.times_ns.tolist()]
    return max(found.pose(k).distance(pose) for k, pose in enumerate(poses))


@pytest.fixture(scope="module")
def way() -> list[SE2]:
    return drive()


@pytest.fixture(scope="module")
def plain(way: list[SE2]) -> GraphSlam:
    return run(list(log(way)))


def test_graph_slam_finds_the_trajectory_and_closes_the_loop(plain: GraphSlam, way: list[SE2]) -> None:
    slam: Slam = plain
    assert error(slam.trajectory(), way) < 0.06
    assert len(slam.trajectory()) == len(way)
    graph = slam.graph()
    assert graph.loops.any()
    assert not plain.warnings


def test_graph_slam_map_shows_the_true_walls(plain: GraphSlam, way: list[SE2]) -> None:
    grid = plain.occupancy(0.05)
    occupied = way[0] @ grid.geometry.cell_centers(np.argwhere(grid.cells > 0.7 * OCCUPIED))
    walls = rooms()
    low, high = np.minimum(walls[:, :2], walls[:, 2:]), np.maximum(walls[:, :2], walls[:, 2:])
    nearest = np.maximum(np.maximum(low[None] - occupied[:, None], occupied[:, None] - high[None]), 0.0)
    away = np.linalg.norm(nearest, axis=2).min(axis=1)
    assert len(occupied) > 500
    assert away.mean() < 0.03


LIES: dict[str, Lie] = {
    "loses its sign": lambda k, step: SE2(-step.x, -step.y, step.theta) if k // 40 % 3 == 2 else step,
    "counts too little": lambda k, step: SE2(0.8 * step.x, 0.8 * step.y, step.theta),
    "turns too much": lambda k, step: SE2(step.x, step.y, 1.1 * step.theta + 0.02 * step.x),
    "freezes": lambda k, step: SE2() if k // 50 % 3 == 1 else step,
    "jumps": lambda k, step: step @ SE2(2.0, -1.0, 1.5) if k % 60 == 59 else step,
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_graph_slam_rejects_false_odometry(lie: str, way: list[SE2]) -> None:
    slam = run(list(log(way, lie=LIES[lie])))
    assert error(slam.trajectory(), way) < 0.08


SPARSE_LIES: dict[str, Lie] = {
    "stands still": lambda k, step: SE2() if k // 10 % 4 == 2 else step,
    "turns the other way": lambda k, step: SE2(step.x, step.y, -step.theta),
    "loses its sign": lambda k, step: SE2(-step.x, -step.y, step.theta) if k // 10 % 4 == 2 else step,
}


@pytest.mark.parametrize("lie", SPARSE_LIES)
def test_sparse_scans_survive_false_odometry(lie: str, way: list[SE2]) -> None:
    sparse = way[::8]
    scans = [replace(scan, time_ns=5 * scan.time_ns) for scan in log(sparse, lie=SPARSE_LIES[lie])]
    found = run(scans).trajectory()
    assert error(replace(found, times_ns=found.times_ns // 5), sparse) < 0.06


def test_sparse_scans_survive_missing_odometry(way: list[SE2]) -> None:
    sparse = way[::8]
    scans = list(log(sparse))
    stale = [
        replace(scan, time_ns=5 * scan.time_ns, odometry=scans[k - k % 2].odometry) for k, scan in enumerate(scans)
    ]
    found = run(stale).trajectory()
    assert error(replace(found, times_ns=found.times_ns // 5), sparse) < 0.06


def test_graph_slam_works_without_odometry(way: list[SE2]) -> None:
    assert error(run(list(log(way, odometry=False))).trajectory(), way) < 0.08


@pytest.mark.parametrize(("beams", "field"), [(361, math.pi), (682, math.radians(240.0)), (720, 2.0 * math.pi)])
def test_graph_slam_works_with_other_lasers(beams: int, field: float, way: list[SE2]) -> None:
    slam = run(list(log(way[:200], beams=beams, field=field, reach=6.0)))
    assert error(slam.trajectory(), way) < 0.05


def test_graph_slam_repeats_bit_for_bit(plain: GraphSlam, way: list[SE2]) -> None:
    again = run(list(log(way)))
    assert again.trajectory().poses.tobytes() == plain.trajectory().poses.tobytes()
    assert again.occupancy(0.1).cells.tobytes() == plain.occupancy(0.1).cells.tobytes()
    assert again.graph().information.tobytes() == plain.graph().information.tobytes()


def test_two_lasers_map_more_than_one(way: list[SE2]) -> None:
    ahead = list(log(way[:150]))
    # the rear laser sees what a robot that looks back would see
    back = log([pose @ SE2(0.0, 0.0, math.pi) for pose in way[:150]], seed=2)
    turned = SE2(0.0, 0.0, math.pi)
    behind = [replace(scan, T_base_laser=turned, laser="rear", odometry=front.odometry)
              for scan, front in zip(back, ahead, strict=True)]  # fmt: skip
    both = run([scan for pair in zip(ahead, behind, strict=True) for scan in pair])
    alone = run(ahead)
    assert error(both.trajectory(), way) < 0.06
    known = [(slam.occupancy(0.1).cells >= 0).sum() for slam in (alone, both)]
    assert known[1] > known[0]


def test_odometry_bridges_a_time_gap(way: list[SE2]) -> None:
    scans = list(log(way))
    slam = run(scans[:100] + scans[125:])
    origin = way[0].inverse()
    last = origin @ way[-1]
    assert slam.trajectory().pose(-1).distance(last) < 0.06


@pytest.mark.slow
def test_kidnapped_robot_without_odometry_is_reported(way: list[SE2]) -> None:
    scans = list(log(way, odometry=False))
    blank = [replace(scan, ranges=np.random.default_rng(k).uniform(0.5, 9.0, len(scan.ranges)).astype(np.float32))
             for k, scan in enumerate(scans[80:92])]  # fmt: skip
    slam = run(scans[:80] + blank + scans[200:300])
    assert any("lost" in warning for warning in slam.warnings)


def test_out_of_order_scans_are_dropped_and_counted(plain: GraphSlam, way: list[SE2]) -> None:
    scans = list(log(way))
    disturbed = []
    for k, scan in enumerate(scans):
        disturbed.append(scan)
        if k % 50 == 20:
            disturbed += [scan, scans[k - 10]]
    slam = run(disturbed)
    assert slam.trajectory().poses.tobytes() == plain.trajectory().poses.tobytes()
    assert len(slam.warnings) == 2


def test_graph_slam_survives_empty_scans(way: list[SE2]) -> None:
    scans = list(log(way[:200]))
    for k in range(60, 66):
        scans[k] = replace(scans[k], ranges=np.full(181, [np.nan, np.inf, 0.0][k % 3], dtype=np.float32))
    slam = run(scans)
    assert error(slam.trajectory(), way) < 0.06
    assert any("too few points" in warning for warning in slam.warnings)


def test_number_of_beams_may_change(way: list[SE2]) -> None:
    scans = list(log(way[:120]))
    scans[50:60] = [replace(scan, ranges=scan.ranges[:120]) for scan in scans[50:60]]
    slam = run(scans)
    assert error(slam.trajectory(), way) < 0.05
    assert any("number of beams" in warning for warning in slam.warnings)


def test_one_scan_or_none_give_valid_maps() -> None:
    one = run(list(log(drive()[:1])))
    assert len(one.trajectory()) == 1
    assert (one.occupancy(0.1).cells > 50).any()
    empty = run([])
    assert len(empty.trajectory()) == len(empty.graph().poses) == 0
    assert empty.occupancy(0.1).cells.max(initial=-1) == -1


def test_standing_robot_adds_no_scans(way: list[SE2]) -> None:
    slam = run(list(log([way[0]] * 300)))
    assert len(slam.graph().poses) == 1
    assert error(slam.trajectory(), [way[0]] * 300) < 0.02


def test_stamp_from_the_future_does_not_stop_mapping(way: list[SE2]) -> None:
    scans = list(log(way))
    scans[100] = replace(scans[100], time_ns=10**15)
    slam = run(scans)
    assert error(slam.trajectory(), way) < 0.08
    assert len(slam.trajectory()) > len(way) - 10
    assert any("set back" in warning for warning in slam.warnings)


@pytest.mark.parametrize("resolution", [0.0, -0.1, math.nan, 1e-7])
def test_invalid_map_resolution_is_refused(resolution: float, plain: GraphSlam) -> None:
    with pytest.raises(InputError):
        plain.occupancy(resolution)
