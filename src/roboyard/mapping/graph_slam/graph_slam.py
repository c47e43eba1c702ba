"""Graph SLAM: scans are matched in submaps as they come, loop closures connect submaps, and a pose graph is
optimized.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.grids.ray_casting import count_hits_and_misses
from roboyard.mapping.graph_slam.local_matching import (
    LocalMatcher,
    LocalMatcherConfig,
    MotionHypothesis,
    MotionPredictor,
    MotionPredictorConfig,
    ScanMatcher,
    ScanPlacement,
)
from roboyard.mapping.graph_slam.localization import LocalizationOnlySlam
from roboyard.mapping.graph_slam.loop_closure import (
    LoopClosure,
    LoopClosureConfig,
    LoopClosureDetector,
    LoopDetector,
    RelocalizationConfig,
)
from roboyard.mapping.graph_slam.map_file import PoseGraphMap, load_pose_graph_map, save_pose_graph_map
from roboyard.mapping.graph_slam.submaps import SubmapBuilder, SubmapConfig
from roboyard.mapping.pose_graph import (
    GraphOptimizer,
    PoseGraph,
    PoseGraphBuilder,
    PoseGraphEdge,
    PoseGraphNode,
    PoseGraphOptimizerConfig,
)
from roboyard.mapping.scan import LaserScan, PreprocessedScan, ScanPreprocessor, ScanPreprocessorConfig
from roboyard.mapping.scan_matching.point_to_line import RefinementConfig, pose_difference
from roboyard.mapping.slam import SlamAlgorithm, draw_occupancy_map
from roboyard.mapping.trajectory import PoseTrajectory

_SESSION_SEPARATION = 100.0
"""Distance that the robot may have moved between two sessions in one map [m]."""
_DISAGREEMENT_THRESHOLD = 4.0
"""Squared error of odometry, in variances, above which odometry and scan contradict each other."""
_REMAINING_UNCERTAINTY = 0.05
"""Fraction of such a contradiction that remains as uncertainty where the scan fits as well as usual."""
_MAX_WARNINGS = 10
_WEAK_INFORMATION = np.diag([1.0 / 3.0**2, 1.0 / 3.0**2, 1.0])
"""Information of the edge to an unconnected trajectory: standard deviations of 3 m and 1 rad."""


@dataclass(frozen=True, slots=True)
class _NodeCandidate:
    """A scan that becomes a node of the pose graph; without a placement no submap constrains it."""

    scan: LaserScan
    preprocessed: PreprocessedScan
    placement: ScanPlacement | None


class GraphSlam:
    """Graph SLAM, one scan at a time or for whole logs; it implements `roboyard.mapping.Slam`.

    ``process`` is the pipeline: preprocess, predict, match, insert, detect loops, optimize. The parts that match scans,
    detect loops and optimize the graph can be replaced by objects with the same methods.

    Args:
        config: Parameters of all steps.
        scan_matcher: Finds the pose of a scan in the open submap; None: `LocalMatcher`.
        loop_detector: Finds loop closures with finished submaps; None: `LoopDetector`.
        optimizer: Optimizes the poses of the graph; None: `PoseGraphOptimizer`.
    """

    def __init__(
        self,
        config: GraphSlamConfig | None = None,
        *,
        scan_matcher: ScanMatcher | None = None,
        loop_detector: LoopClosureDetector | None = None,
        optimizer: GraphOptimizer | None = None,
    ) -> None:
        expect_kernels(count_hits_and_misses)
        self.config = config or GraphSlamConfig()
        self._preprocessor = ScanPreprocessor(self.config.preprocessing)
        self._motion_predictor = MotionPredictor(self.config.motion)
        self._scan_matcher = scan_matcher or LocalMatcher(self.config.local_matching, self.config.refinement)
        self._submap_builder = SubmapBuilder(self.config.submaps, self.config.preprocessing.max_range)
        self._loop_detector = loop_detector or LoopDetector(
            self.config.loop_closure,
            self.config.refinement,
            self._submap_builder.half_size,
            self.config.relocalization,
        )
        self._graph_builder = PoseGraphBuilder(self.config.optimization, optimizer)
        # what was irregular in the scans
        self._warnings: list[str] = []
        self._warning_counts: dict[str, int] = {}
        self._beam_counts: dict[str, int] = {}
        self._last_times: dict[str, int] = {}
        self._n_lost_scans = 0
        self._n_backward_stamps = 0
        # a map that was loaded
        self._n_loaded_nodes = 0
        self._start_pose: SE2 | None = None  # given pose of the first scan in it
        self._first_pose: SE2 | None = None
        # an unconnected trajectory
        self._trajectory_id = 0
        self._is_disconnected = False
        self._last_search_distance = 0.0
        self._n_searches = 0
        # poses in the local frame, which no loop closure corrects
        self._T_local_base = SE2()
        self._T_local_node = SE2()
        self._last_node_poses: dict[str, SE2] = {}  # of each laser
        self._distance = 0.0
        self._accumulated_disagreement = 0.0
        self._position_variance = 0.0
        self._heading_uncertainty = 0.0
        # the trajectory: of each scan its time, a node, and T_node_base
        self._times: list[int] = []
        self._scan_anchors: list[tuple[int, SE2]] = []
        self._n_solved_nodes = 0
        self._has_unsolved_loops = False

    def process(self, scan: LaserScan) -> SE2:
        """Process the next scan by the steps of the pipeline; see ``Slam.process``."""
        if self._is_out_of_order(scan):
            return self._current_pose()
        preprocessed = self._preprocess(scan)
        hypotheses = self._predict(scan)
        candidate = self._match(scan, preprocessed, hypotheses)
        if candidate is not None:
            number = self._insert(candidate)
            loops = self._detect_loops(number)
            self._optimize(number, loops)
        self._record_pose(scan)
        return self._current_pose()

    # -- steps of the pipeline -----------------------------------------------------------------------------------------
    def _preprocess(self, scan: LaserScan) -> PreprocessedScan:
        """Reduce a scan to few, evenly spaced points with normals, since matching needs surfaces, not readings."""
        preprocessed = self._preprocessor.process(scan, self._motion_predictor.twist)
        self._check_scan(scan, preprocessed)
        return preprocessed

    def _predict(self, scan: LaserScan) -> list[MotionHypothesis]:
        """Predict the motion since the last scan, so that matching starts near the solution and resolves symmetries."""
        return self._motion_predictor.predict(scan.time_ns, scan.odometry)

    def _match(
        self, scan: LaserScan, preprocessed: PreprocessedScan, hypotheses: list[MotionHypothesis]
    ) -> _NodeCandidate | None:
        """Match a scan with the open submap, since recent scans bound the drift of odometry.

        Returns:
            The scan if it becomes a node: if it starts a trajectory, or if the robot moved far enough since the last.
        """
        target = self._submap_builder.matching_target
        if target is None or not hypotheses:
            return self._start_map(scan, preprocessed)
        T_anchor_last = target.T_local_anchor.inverse() @ self._T_local_base
        placement = self._scan_matcher.match(
            preprocessed, target.surfel_map, (target.submap_id, target.version), T_anchor_last, hypotheses
        )
        self._update_motion(scan, target.T_local_anchor @ placement.pose, placement, hypotheses)
        has_enough_points = len(preprocessed.points) >= self.config.local_matching.min_points
        if placement.match is None and not placement.hypothesis.is_odometry:
            self._n_lost_scans += has_enough_points
            if self._n_lost_scans < self.config.max_lost_scans:
                return None
            self._start_trajectory(scan)
            return _NodeCandidate(scan, preprocessed, None)
        self._n_lost_scans = 0
        is_node = has_enough_points and self._has_moved(scan.laser_name)
        return _NodeCandidate(scan, preprocessed, placement) if is_node else None

    def _insert(self, candidate: _NodeCandidate) -> int:
        """Insert a scan into graph and submaps: a node that local matching constrains; return its number."""
        graph, number, scan = self._graph_builder, len(self._graph_builder.nodes), candidate.scan
        pose, self._first_pose = self._current_pose(), None
        uncertainties = self._accumulated_disagreement, self._position_variance, self._heading_uncertainty
        graph.nodes.append(
            PoseGraphNode(scan.time_ns, pose, candidate.preprocessed, self._distance, self._trajectory_id,
                          *uncertainties)
        )  # fmt: skip
        self._heading_uncertainty = 0.0
        if candidate.placement is not None:
            self._add_local_constraints(number, candidate.placement)
        self._T_local_node = self._T_local_base
        self._last_node_poses[scan.laser_name] = self._T_local_base
        self._submap_builder.insert(
            number, candidate.preprocessed, self._T_local_base, self._distance, self._trajectory_id
        )
        return number

    def _detect_loops(self, number: int) -> list[LoopClosure]:
        """Detect loop closures of a node with finished submaps, since only they correct the accumulated drift."""
        submaps = self._submap_builder.submaps
        loops = self._loop_detector.detect(self._graph_builder, submaps, self._submap_builder.finished(), number)
        if self._is_disconnected and not any(loop.is_window_search for loop in loops):
            loops += self._relocalize(number)
        self._add_loop_closures(loops)
        if any(submaps[loop.submap].trajectory_id != self._trajectory_id for loop in loops):
            self._is_disconnected = False
        return loops

    def _optimize(self, number: int, loops: list[LoopClosure]) -> None:
        """Optimize the graph when it has grown by a fraction of its size, so that the cost per scan is bounded.

        A loop closure that a search of a window found is the exception: the graph is optimized at once.
        """
        n_new_nodes = number - self._n_solved_nodes
        has_grown = n_new_nodes >= max(10.0, self.config.solve_growth * number)
        if (self._has_unsolved_loops and has_grown) or any(loop.is_window_search for loop in loops):
            self._solve()

    def _record_pose(self, scan: LaserScan) -> None:
        """Record the pose of a scan relative to the last node, so that the trajectory follows later corrections."""
        if self._submap_builder.matching_target is None or (self._times and scan.time_ns <= self._times[-1]):
            return
        self._times.append(scan.time_ns)
        self._scan_anchors.append(
            (len(self._graph_builder.nodes) - 1, self._T_local_node.inverse() @ self._T_local_base)
        )

    # -- parts of the steps --------------------------------------------------------------------------------------------
    def _start_map(self, scan: LaserScan, preprocessed: PreprocessedScan) -> _NodeCandidate | None:
        """Start the map with the first scan that has enough points, or connect that scan with the loaded map."""
        if len(preprocessed.points) < self.config.local_matching.min_points:
            self._warn("scans dropped before the first scan with enough points")
            return None
        self._motion_predictor.update(scan.time_ns, scan.odometry, None, False, None)
        if self._n_loaded_nodes:
            self._start_in_loaded_map(preprocessed)
        return _NodeCandidate(scan, preprocessed, None)

    def _update_motion(
        self, scan: LaserScan, T_local_base: SE2, placement: ScanPlacement, hypotheses: list[MotionHypothesis]
    ) -> None:
        """Move the robot to its new pose, and update how far odometry is trusted and how uncertain the pose became."""
        motion = self._T_local_base.inverse() @ T_local_base
        self._T_local_base = T_local_base
        self._distance += float(np.hypot(motion.x, motion.y))
        odometry_motion = next((hypothesis.motion for hypothesis in hypotheses if hypothesis.is_odometry), None)
        error = placement.odometry_error
        if odometry_motion is not None and error is not None and error > _DISAGREEMENT_THRESHOLD:
            disagreement = min(odometry_motion.distance(motion), 1.0)
            self._accumulated_disagreement += disagreement
            fraction = _REMAINING_UNCERTAINTY if placement.is_typical_fit else 1.0
            self._position_variance += (disagreement * fraction) ** 2
        if placement.match is None:
            self._heading_uncertainty += placement.hypothesis.sigma_angle
        self._motion_predictor.update(scan.time_ns, scan.odometry, motion, placement.match is not None, error)

    def _start_trajectory(self, scan: LaserScan) -> None:
        """Start a new trajectory where the robot lost its pose; a loop closure may connect it with the others."""
        seconds = (scan.time_ns - self._graph_builder.nodes[0].time_ns) * 1e-9
        self._warnings.append(
            f"pose lost {seconds:.1f} s after the first scan: a new trajectory starts there, unconnected until a loop "
            "closure connects it"
        )
        self._submap_builder.finish_all()
        self._trajectory_id = max(node.trajectory_id for node in self._graph_builder.nodes) + 1
        self._n_lost_scans, self._is_disconnected = 0, True
        self._motion_predictor.reset(scan.time_ns, scan.odometry)
        number = len(self._graph_builder.nodes)
        self._graph_builder.add(
            PoseGraphEdge(number - 1, number, self._T_local_node.inverse() @ self._T_local_base, _WEAK_INFORMATION)
        )

    def _start_in_loaded_map(self, preprocessed: PreprocessedScan) -> None:
        """Connect the first scan with the loaded map, near its given pose or by relocalization.

        Without a match a new trajectory starts, which a loop closure may connect with the loaded map later.
        """
        graph, submaps, number = self._graph_builder, self._submap_builder.submaps, len(self._graph_builder.nodes)
        start_pose, self._start_pose = self._start_pose, None
        self._T_local_node = self._T_local_base = SE2()
        finished = self._submap_builder.finished()
        if start_pose is None:
            loop = self._loop_detector.relocalize(graph, submaps, finished, preprocessed, number)
        else:
            loop = self._loop_detector.match_near(graph, submaps, finished, preprocessed, start_pose, number)
        if loop is not None:
            submap = submaps[loop.submap]
            self._first_pose = graph.nodes[submap.anchor].pose @ loop.pose
            self._trajectory_id = submap.trajectory_id
            graph.add(PoseGraphEdge(submap.anchor, number, loop.pose, _inflate_covariance(loop.information)))
            return
        self._first_pose = start_pose or graph.nodes[0].pose
        self._is_disconnected = True
        graph.add(PoseGraphEdge(0, number, graph.nodes[0].pose.inverse() @ self._first_pose, _WEAK_INFORMATION))
        self._warnings.append(
            "the first scan matched nothing in the loaded map: a new trajectory starts, unconnected until a loop "
            "closure connects it"
        )

    def _current_pose(self) -> SE2:
        if self._first_pose is not None:
            return self._first_pose
        if not self._graph_builder.nodes:
            return self._T_local_base
        return self._graph_builder.nodes[-1].pose @ self._T_local_node.inverse() @ self._T_local_base

    def _is_out_of_order(self, scan: LaserScan) -> bool:
        last = self._last_times.get(scan.laser_name)
        if last is not None and scan.time_ns == last:
            self._warn("scans dropped: same time stamp as the scan before")
        elif self._last_times and scan.time_ns < max(self._last_times.values()):
            self._n_backward_stamps += 1
            if self._n_backward_stamps >= self.config.max_lost_scans:
                self._on_clock_reset(scan.time_ns)
                self._last_times = {scan.laser_name: scan.time_ns}
                return False
            self._warn("scans dropped: time stamp earlier than that of a scan before")
        else:
            self._last_times[scan.laser_name] = scan.time_ns
            self._n_backward_stamps = 0
            return False
        return True

    def _on_clock_reset(self, time_ns: int) -> None:
        """Accept stamps that stay behind the last one: the clock was set back, or one stamp lay in the future."""
        self._warn("resets of the clock; poses with later time stamps were removed from the trajectory")
        self._n_backward_stamps = 0
        while self._times and self._times[-1] >= time_ns:
            self._times.pop()
            self._scan_anchors.pop()
        self._motion_predictor.reset_clock(time_ns)

    def _check_scan(self, scan: LaserScan, preprocessed: PreprocessedScan) -> None:
        n_beams = self._beam_counts.setdefault(scan.laser_name, len(scan.ranges))
        if n_beams != len(scan.ranges):
            self._warn("scans with another number of beams than the first scan of the laser")
        if len(preprocessed.points) < self.config.local_matching.min_points:
            self._warn("scans with too few points to match; their motion is predicted")

    def _warn(self, warning: str) -> None:
        self._warning_counts[warning] = self._warning_counts.get(warning, 0) + 1

    @property
    def warnings(self) -> list[str]:
        """Return one sentence for each kind of irregularity in the scans so far, with its number and treatment."""
        n_omitted = len(self._warnings) - _MAX_WARNINGS
        remainder = [f"{n_omitted} more warnings of lost poses"] if n_omitted > 0 else []
        counted = [f"{count} {warning}" for warning, count in self._warning_counts.items()]
        return counted + self._warnings[:_MAX_WARNINGS] + remainder

    def finish(self) -> None:
        """Connect every node with all submaps that it overlaps, and optimize; see ``Slam.finish``."""
        if not self._graph_builder.nodes:
            return
        unfinished = self._submap_builder.snapshot()
        self._solve()
        for _ in range(self.config.final_iterations):
            self._add_overlap_constraints()
            self._solve()
        self._loop_detector.invalidate(unfinished)

    def to_map(self) -> PoseGraphMap:
        """Return nodes, edges and submaps of the map so far; they are not copied."""
        self._submap_builder.snapshot()
        edges = list(self._graph_builder.edges.values())
        return PoseGraphMap(
            self._graph_builder.nodes, edges, self._submap_builder.submaps, self._preprocessor.save_state()
        )

    def save_map(self, path: str | Path) -> Path:
        """Write the map so far into a file for ``resume_from`` and ``GraphLocalizer``.

        Raises:
            InputError: The file cannot be written.
        """
        return save_pose_graph_map(path, self.to_map())

    @classmethod
    def resume_from(
        cls, path: str | Path, config: GraphSlamConfig | None = None, start: SE2 | None = None
    ) -> GraphSlam:
        """Extend a saved map, perhaps days later and starting elsewhere in it.

        Args:
            path: The file.
            config: Parameters, which may differ from those of the saved map.
            start: ``T_map_base`` at the first scan, within some decimetres; None: the algorithm searches the whole map.
                While the first scan is not found, the robot maps a trajectory of its own.

        Raises:
            InputError: The file cannot be read, or holds no pose graph map.
        """
        pose_graph_map = load_pose_graph_map(path)
        slam = cls(config)
        slam._preprocessor.load_state(pose_graph_map.no_return_counts)
        slam._graph_builder.nodes = pose_graph_map.nodes
        for edge in pose_graph_map.edges:
            slam._graph_builder.add(edge)
        slam._submap_builder.submaps = pose_graph_map.submaps
        if pose_graph_map.nodes:
            slam._distance = max(node.distance for node in pose_graph_map.nodes) + _SESSION_SEPARATION
            slam._trajectory_id = max(node.trajectory_id for node in pose_graph_map.nodes) + 1
            slam._n_loaded_nodes, slam._start_pose = len(pose_graph_map.nodes), start
            slam._n_solved_nodes = len(pose_graph_map.nodes)
        return slam

    def trajectory(self) -> PoseTrajectory:
        """Return the current estimate of ``T_map_base`` for all scans; see ``Slam.trajectory``."""
        nodes = self._graph_builder.nodes
        poses = [nodes[number].pose @ T_node_base for number, T_node_base in self._scan_anchors]
        array = np.array([(pose.x, pose.y, pose.theta) for pose in poses]).reshape(-1, 3)
        return PoseTrajectory(np.array(self._times, dtype=np.int64), array)

    def graph(self) -> PoseGraph:
        """Return the pose graph as arrays; see ``Slam.graph``."""
        return self._graph_builder.pose_graph()

    def _has_moved(self, laser: str) -> bool:
        last_pose = self._last_node_poses.get(laser)
        if last_pose is None:
            return True
        distance, angle = pose_difference(last_pose, self._T_local_base)
        return distance >= self.config.node_distance or angle >= self.config.node_angle

    def _relocalize(self, number: int) -> list[LoopClosure]:
        """Search a node of an unconnected trajectory in submaps of the others, once per metre.

        A few submaps take turns, so that the cost of a scan does not grow with the map.
        """
        if self._distance - self._last_search_distance < 1.0:
            return []
        self._last_search_distance = self._distance
        submaps = self._submap_builder.submaps
        other_submaps = [k for k in self._submap_builder.finished() if submaps[k].trajectory_id != self._trajectory_id]
        n_searched = self.config.relocalization.submaps_per_search
        if len(other_submaps) > n_searched:
            first = self._n_searches * n_searched % len(other_submaps)
            other_submaps = (other_submaps + other_submaps)[first : first + n_searched]
        self._n_searches += 1
        scan = self._graph_builder.nodes[number].scan
        loop = self._loop_detector.relocalize(self._graph_builder, submaps, other_submaps, scan, number)
        return [] if loop is None else self._loop_detector.confirm(self._graph_builder, submaps, loop)

    def _add_local_constraints(self, number: int, placement: ScanPlacement) -> None:
        """Add the edges that a match with the open submap measured: from the submap's anchor and the last node."""
        target = self._submap_builder.matching_target
        if target is None:
            return
        nodes, anchor = self._graph_builder.nodes, self._submap_builder.submaps[target.submap_id].anchor
        position_variance = nodes[number].position_variance
        information = _inflate_covariance(placement.information, position_variance - nodes[anchor].position_variance)
        self._graph_builder.add(PoseGraphEdge(anchor, number, placement.pose, information))
        if anchor != number - 1:
            motion = self._T_local_node.inverse() @ self._T_local_base
            rotation = np.eye(3)
            rotation[:2, :2] = (self._T_local_node.inverse() @ target.T_local_anchor).matrix()[:2, :2]
            information = (
                rotation
                @ _inflate_covariance(placement.information, position_variance - nodes[number - 1].position_variance)
                @ rotation.T
            )
            self._graph_builder.add(PoseGraphEdge(number - 1, number, motion, 0.5 * information))

    def _add_loop_closures(self, loops: list[LoopClosure]) -> None:
        """Add an edge for each loop closure, from the anchor of its submap to its node."""
        for loop in loops:
            anchor = self._submap_builder.submaps[loop.submap].anchor
            self._graph_builder.add(
                PoseGraphEdge(
                    anchor, loop.node, loop.pose, _inflate_covariance(loop.information), True, loop.is_window_search
                )
            )
            self._has_unsolved_loops = True

    def _solve(self) -> None:
        self._graph_builder.solve()
        self._n_solved_nodes = len(self._graph_builder.nodes)
        self._has_unsolved_loops = False

    def _add_overlap_constraints(self) -> None:
        """Add edges between every node and the nearest submaps that it overlaps, where its scan matches them."""
        graph, submaps = self._graph_builder, self._submap_builder.submaps
        existing_edges = {(edge.first, edge.second) for edge in graph.edges.values()}
        centers = np.array([graph.nodes[submap.anchor].pose @ submap.center for submap in submaps])
        radii = np.array([s.radius for s in submaps])
        candidates: dict[int, list[int]] = {}
        for number, node in enumerate(graph.nodes):
            distances = np.linalg.norm(centers - node.pose.xy, axis=1)
            order = np.argsort(distances, kind="stable")
            overlapping = [int(k) for k in order if distances[k] < radii[k]][: 2 * self.config.max_constraints_per_node]
            overlapping = [
                k
                for k in overlapping
                if (submaps[k].anchor, number) not in existing_edges and number not in submaps[k].nodes
            ]
            for k in overlapping[: self.config.max_constraints_per_node]:
                candidates.setdefault(k, []).append(number)
        for k in sorted(candidates):
            anchor_pose = graph.nodes[submaps[k].anchor].pose
            for number in candidates[k]:
                node = graph.nodes[number]
                start = anchor_pose.inverse() @ node.pose
                match = self._loop_detector.refine(submaps, k, node, start)
                if match is not None and pose_difference(start, match.pose)[0] < 0.3:
                    self._add_loop_closures([LoopClosure(k, number, match.pose, match.information, False)])

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """Return the occupancy map of the scans of all nodes; see ``Slam.occupancy``."""
        nodes = self._graph_builder.nodes
        return draw_occupancy_map([node.pose for node in nodes], [node.scan for node in nodes], resolution)


def _inflate_covariance(information: NDArray[np.float64], extra_variance: float = 0.0) -> NDArray[np.float64]:
    """Add the errors that a single match cannot see, of surfaces, time stamps and ``extra_variance`` [m²].

    Returns:
        The information (3, 3) of the match with these errors.
    """
    floor = np.diag([1e-3, 1e-3, 1e-3])
    added_covariance = np.diag([0.01**2 + extra_variance, 0.01**2 + extra_variance, 0.003**2 + 0.02 * extra_variance])
    result = np.linalg.inv(np.linalg.inv(information + floor) + added_covariance)
    return np.asarray(0.5 * (result + result.T))


@dataclass(frozen=True, slots=True)
class GraphSlamConfig:
    """Parameters of graph SLAM; the defaults serve indoor and outdoor logs of very different lasers.

    Attributes:
        preprocessing: Parameters of the preprocessing of scans.
        refinement: Parameters of the point-to-line refinement.
        motion: Parameters of the motion prediction.
        local_matching: Parameters of the scan matching in the open submap.
        submaps: Size of submaps.
        loop_closure: Parameters of the loop closure detection.
        optimization: Parameters of the optimization.
        relocalization: Conditions on a match in a whole map.
        node_distance: Distance from the last node after which a scan becomes a node [m].
        node_angle: Rotation from the last node after which a scan becomes a node [rad].
        solve_growth: Growth of the graph since the last optimization, as a fraction of its nodes, after which new loop
            closures lead to an optimization.
        final_iterations: Number of times that ``finish`` connects overlapping submaps and optimizes.
        max_constraints_per_node: Largest number of submaps that ``finish`` connects with a node, each time.
        max_lost_scans: Number of successive scans without a match and without odometry, after which a new trajectory
            starts.
    """

    preprocessing: ScanPreprocessorConfig = field(default_factory=ScanPreprocessorConfig)
    refinement: RefinementConfig = field(default_factory=RefinementConfig)
    motion: MotionPredictorConfig = field(default_factory=MotionPredictorConfig)
    local_matching: LocalMatcherConfig = field(default_factory=LocalMatcherConfig)
    submaps: SubmapConfig = field(default_factory=SubmapConfig)
    loop_closure: LoopClosureConfig = field(default_factory=LoopClosureConfig)
    optimization: PoseGraphOptimizerConfig = field(default_factory=PoseGraphOptimizerConfig)
    relocalization: RelocalizationConfig = field(default_factory=RelocalizationConfig)
    node_distance: float = 0.2
    node_angle: float = 0.15
    solve_growth: float = 0.1
    final_iterations: int = 2
    max_constraints_per_node: int = 5
    max_lost_scans: int = 5


ALGORITHM: Final = SlamAlgorithm(
    title="graph SLAM",
    create=GraphSlam,
    resume=GraphSlam.resume_from,
    localize=lambda path: LocalizationOnlySlam(load_pose_graph_map(path)),
)
