"""Laws of the contract of SLAM algorithms: every registered algorithm conforms, and every violation is reported."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.mapping import LaserScan, PoseGraph, PoseTrajectory, Slam
from roboyard.mapping.conformance import check_slam
from roboyard.mapping.scan import ScanPreprocessor
from roboyard.mapping.slam import SLAM_ALGORITHMS, draw_occupancy_map, find_slam_algorithm, make_slam


class OdometrySlam:
    """A SLAM algorithm of the test's own: it believes odometry."""

    def __init__(self) -> None:
        self.preprocessor = ScanPreprocessor()
        self.scans: list[LaserScan] = []
        self.poses: list[SE2] = []
        self.n_dropped = 0

    def process(self, scan: LaserScan) -> SE2:
        if self.scans and scan.time_ns <= self.scans[-1].time_ns:
            self.n_dropped += 1
        else:
            self.scans.append(scan)
            self.poses.append(self.estimate(scan))
        return self.poses[-1]

    def estimate(self, scan: LaserScan) -> SE2:
        return scan.odometry or SE2()

    def finish(self) -> None:
        pass

    @property
    def warnings(self) -> list[str]:
        return [f"{self.n_dropped} scans dropped"] if self.n_dropped else []

    def trajectory(self) -> PoseTrajectory:
        poses = np.array([(pose.x, pose.y, pose.theta) for pose in self.poses]).reshape(-1, 3)
        return PoseTrajectory(np.array([scan.time_ns for scan in self.scans], dtype=np.int64), poses)

    def graph(self) -> PoseGraph:
        trajectory = self.trajectory()
        return PoseGraph(
            trajectory.times_ns, trajectory.poses, np.zeros((0, 2), dtype=np.int64), np.zeros((0, 3)),
            np.zeros((0, 3, 3)), np.zeros(0, dtype=np.bool_),
        )  # fmt: skip

    def occupancy(self, resolution: float) -> OccupancyGrid:
        return draw_occupancy_map(self.poses, [self.preprocessor.process(scan) for scan in self.scans], resolution)


@pytest.mark.parametrize("name", SLAM_ALGORITHMS.names())
def test_registered_slam_algorithm_conforms(name: str) -> None:
    check_slam(find_slam_algorithm(name).create)


def test_slam_algorithm_of_another_package_conforms() -> None:
    check_slam(OdometrySlam)


class DivergingSlam(OdometrySlam):
    def estimate(self, scan: LaserScan) -> SE2:
        return SE2(0.05 * len(self.scans), -0.05 * len(self.scans), 0.0)


class NonFiniteSlam(OdometrySlam):
    def estimate(self, scan: LaserScan) -> SE2:
        return SE2(float("nan"), 0.0, 0.0) if len(self.scans) > 20 else super().estimate(scan)


class RaisingSlam(OdometrySlam):
    def process(self, scan: LaserScan) -> SE2:
        if self.scans and scan.time_ns <= self.scans[-1].time_ns:
            raise InputError("out of order")
        return super().process(scan)


class AcceptingSlam(OdometrySlam):
    def process(self, scan: LaserScan) -> SE2:
        time_ns = max([scan.time_ns, *(other.time_ns + 1 for other in self.scans)])
        self.scans.append(replace(scan, time_ns=time_ns))
        self.poses.append(self.estimate(scan))
        return self.poses[-1]


class SilentSlam(OdometrySlam):
    warnings: Any = ()


class WritingSlam(OdometrySlam):
    def estimate(self, scan: LaserScan) -> SE2:
        scan.ranges[:] = np.minimum(scan.ranges, 2.0)
        return super().estimate(scan)


class FailingOnEmptySlam(OdometrySlam):
    def estimate(self, scan: LaserScan) -> SE2:
        float(np.nanmin(scan.ranges))
        return super().estimate(scan)


class RandomSlam(OdometrySlam):
    random = np.random.default_rng(1)

    def estimate(self, scan: LaserScan) -> SE2:
        return super().estimate(scan) @ SE2(0.01 * self.random.random(), 0.0, 0.0)


class MovingOnFinishSlam(OdometrySlam):
    n_finished = 0

    def finish(self) -> None:
        self.n_finished += 1
        self.poses = [pose @ SE2(0.3 * (self.n_finished == 2 or self.n_finished == 3), 0.0, 0.0) for pose in self.poses]


class ForgettingSlam(OdometrySlam):
    def save_state(self) -> dict[str, Any]:
        return {"scans": list(self.scans)}

    def load_state(self, saved: dict[str, Any]) -> None:
        self.scans = list(saved["scans"])
        self.poses = [SE2() for _ in self.scans]


class EagerSlam(OdometrySlam):
    def trajectory(self) -> PoseTrajectory:
        return super().trajectory() if self.scans else PoseTrajectory(np.zeros(1, dtype=np.int64), np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (DivergingSlam, "from the truth"),
        (NonFiniteSlam, "finite"),
        (RaisingSlam, "raises an error"),
        (AcceptingSlam, "not later"),
        (SilentSlam, "no warning"),
        (WritingSlam, "changes the ranges"),
        (FailingOnEmptySlam, "without a valid reading"),
        (RandomSlam, "different results for equal scans"),
        (MovingOnFinishSlam, "finish"),
        (ForgettingSlam, "after save_state"),
        (EagerSlam, "before the first scan"),
    ],
)
def test_violation_of_the_slam_contract_is_reported(create: Callable[[], Slam], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_slam(create)


def test_unknown_slam_algorithm_error_lists_the_algorithms() -> None:
    with pytest.raises(UnknownNameError, match=r"grap.*graph.*graph, rbpf"):
        make_slam("grap")


def test_slam_algorithm_of_a_file_is_created_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from roboyard.mapping import GraphSlam\nfrom roboyard.mapping.slam import SlamAlgorithm\n"
        "MINE = SlamAlgorithm('my SLAM', GraphSlam)\nWRONG = GraphSlam\n"
    )
    assert type(make_slam(f"{file}:MINE")).__name__ == "GraphSlam"
    with pytest.raises(ConfigError, match="no SLAM algorithm"):
        make_slam(f"{file}:WRONG")


def test_slam_algorithm_without_map_files_rejects_a_map() -> None:
    with pytest.raises(InputError, match="rbpf has no pose graph maps.*graph"):
        make_slam("rbpf", resume_from=Path("pose_graph.npz"))
