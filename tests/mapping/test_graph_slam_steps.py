"""Laws of the replaceable steps of graph SLAM: a scan matcher, a loop detector and an optimizer of the test's own."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.mapping.corridor_drive import drive, simulate_scans

from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.se2_arrays import relative
from roboyard.mapping import GraphSlam, GraphSlamConfig, LaserScan
from roboyard.mapping.graph_slam.local_matching import LocalMatcher, MotionHypothesis, ScanMatcher, ScanPlacement
from roboyard.mapping.graph_slam.loop_closure import LoopClosure, LoopClosureConfig, LoopDetector
from roboyard.mapping.graph_slam.submaps import Submap
from roboyard.mapping.pose_graph import GraphOptimizer, PoseGraphBuilder
from roboyard.mapping.scan import PreprocessedScan
from roboyard.mapping.scan_matching.point_to_line import RefinementConfig
from roboyard.mapping.scan_matching.surfel_map import SurfelMap


@pytest.fixture(scope="module")
def scans() -> list[LaserScan]:
    return list(simulate_scans(drive()))


@pytest.fixture(scope="module")
def mapped_graph(scans: list[LaserScan]) -> GraphSlam:
    return run(GraphSlam(), scans)


def run(slam: GraphSlam, scans: list[LaserScan]) -> GraphSlam:
    for scan in scans:
        slam.process(scan)
    slam.finish()
    return slam


class OdometryMatcher:
    """A scan matcher that ignores the scan and believes the first hypothesis."""

    def match(
        self,
        scan: PreprocessedScan,
        surfels: SurfelMap,
        submap_key: tuple[int, int],
        last_pose: SE2,
        hypotheses: list[MotionHypothesis],
    ) -> ScanPlacement:
        pose = last_pose @ hypotheses[0].motion
        return ScanPlacement(pose, hypotheses[0].information(pose.theta), None, hypotheses[0])


class RecordingMatcher(LocalMatcher):
    """The usual scan matcher, which also records the keys of submaps."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[tuple[int, int]] = []

    def match(
        self,
        scan: PreprocessedScan,
        surfels: SurfelMap,
        submap_key: tuple[int, int],
        last_pose: SE2,
        hypotheses: list[MotionHypothesis],
    ) -> ScanPlacement:
        self.keys.append(submap_key)
        return super().match(scan, surfels, submap_key, last_pose, hypotheses)


class NoLoopDetector(LoopDetector):
    """A loop detector that finds nothing."""

    def detect(
        self, graph: PoseGraphBuilder, submaps: list[Submap], finished: list[int], number: int
    ) -> list[LoopClosure]:
        return []


class DenseOptimizer:
    """An optimizer by Gauss-Newton on a dense matrix, without robust kernels."""

    def __init__(self) -> None:
        self.edges: dict[int, tuple[int, int, NDArray[np.float64], NDArray[np.float64]]] = {}
        self.n_added = self.n_solved = 0

    def add(
        self,
        first: int,
        second: int,
        measurement: SE2,
        information: NDArray[np.float64],
        is_loop: bool,
        is_long_range: bool = False,
    ) -> int:
        measured = np.array([measurement.x, measurement.y, measurement.theta])
        self.edges[self.n_added] = first, second, measured, information
        self.n_added += 1
        return self.n_added - 1

    def remove(self, edge: int) -> None:
        del self.edges[edge]

    def solve(self, poses: NDArray[np.float64]) -> NDArray[np.float64]:
        poses = poses.copy()
        for _ in range(6):
            hessian, gradient = np.zeros((3 * len(poses),) * 2), np.zeros(3 * len(poses))
            for i, j, measurement, information in self.edges.values():
                error = relative(poses[i], poses[j]) - measurement
                error[2] = wrap_angle(error[2])
                c, s = np.cos(poses[i, 2]), np.sin(poses[i, 2])
                dx, dy = poses[j, :2] - poses[i, :2]
                jacobian_i = np.array([[-c, -s, -s * dx + c * dy], [s, -c, -c * dx - s * dy], [0.0, 0.0, -1.0]])
                jacobian_j = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
                for a, jacobian_a in ((i, jacobian_i), (j, jacobian_j)):
                    gradient[3 * a : 3 * a + 3] += jacobian_a.T @ information @ error
                    for b, jacobian_b in ((i, jacobian_i), (j, jacobian_j)):
                        hessian[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += jacobian_a.T @ information @ jacobian_b
            hessian[:3, :3] += 1e12 * np.eye(3)
            poses -= np.linalg.solve(hessian, gradient).reshape(-1, 3)
        self.n_solved += 1
        return poses


def test_scan_matcher_decides_on_the_poses(scans: list[LaserScan]) -> None:
    matcher: ScanMatcher = OdometryMatcher()
    config = GraphSlamConfig(final_iterations=0)
    detector = NoLoopDetector(LoopClosureConfig(), RefinementConfig(), 45.0)
    slam = run(GraphSlam(config, scan_matcher=matcher, loop_detector=detector), scans[:80])
    last, first = scans[79].odometry, scans[0].odometry
    assert last is not None
    assert first is not None
    assert slam.trajectory().pose(-1).distance(first.inverse() @ last) < 0.05


def test_derived_scan_matcher_gives_equal_results(scans: list[LaserScan], mapped_graph: GraphSlam) -> None:
    matcher = RecordingMatcher()
    slam = run(GraphSlam(scan_matcher=matcher), scans)
    assert slam.trajectory().poses.tobytes() == mapped_graph.trajectory().poses.tobytes()
    assert len(matcher.keys) == len(scans) - 1
    assert {number for number, _ in matcher.keys} == set(range(max(matcher.keys)[0] + 1))


def test_loop_detector_decides_on_loop_closures(scans: list[LaserScan], mapped_graph: GraphSlam) -> None:
    half_size = mapped_graph.config.preprocessing.max_range + mapped_graph.config.submaps.margin
    detector = NoLoopDetector(LoopClosureConfig(), RefinementConfig(), half_size)
    slam = GraphSlam(GraphSlamConfig(final_iterations=0), loop_detector=detector)
    assert not run(slam, scans).graph().is_loop.any()
    assert mapped_graph.graph().is_loop.any()


def test_independent_optimizer_agrees_with_the_usual_one(scans: list[LaserScan], mapped_graph: GraphSlam) -> None:
    optimizer: GraphOptimizer = DenseOptimizer()
    slam = run(GraphSlam(optimizer=optimizer), scans)
    assert isinstance(optimizer, DenseOptimizer)
    assert optimizer.n_solved >= 3
    difference = slam.trajectory().poses[:, :2] - mapped_graph.trajectory().poses[:, :2]
    assert np.linalg.norm(difference, axis=1).max() < 0.03
