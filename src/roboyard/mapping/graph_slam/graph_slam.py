"""Graph SLAM: scans are matched in submaps as they come, loop closures connect submaps, and a pose graph is
optimized.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

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
    ScanPlacement,
)
from roboyard.mapping.graph_slam.loop_closure import (
    LoopClosure,
    LoopClosureConfig,
    LoopDetector,
    RelocalizationConfig,
    relocalize,
)
from roboyard.mapping.graph_slam.map_file import PoseGraphMap, load_pose_graph_map, save_pose_graph_map
from roboyard.mapping.graph_slam.submaps import SubmapBuilder, SubmapConfig
from roboyard.mapping.pose_graph import (
    PoseGraph,
    PoseGraphBuilder,
    PoseGraphEdge,
    PoseGraphNode,
    PoseGraphOptimizerConfig,
)
from roboyard.mapping.scan import LaserScan, PreprocessedScan, ScanPreprocessor, ScanPreprocessorConfig
from roboyard.mapping.scan_matching.point_to_line import RefinementConfig, pose_difference
from roboyard.mapping.trajectory import PoseTrajectory

_SESSION_SEPARATION = 100.0
"""Way that may lie between two sessions in one map [m]."""
_DISAGREEMENT_THRESHOLD = 4.0
"""Squared error of odometry, in variances, from which it and the scan contradict each other."""
_REMAINING_UNCERTAINTY = 0.05
"""Share of such a contradiction that remains as uncertainty where the scan fits as well as ever."""
_MAX_WARNINGS = 10
_WEAK_INFORMATION = np.diag([1.0 / 3.0**2, 1.0 / 3.0**2, 1.0])
"""What is known about a part of the map that nothing ties to the rest: metres and a radian."""


class GraphSlam:
    """Graph SLAM, one scan at a time or whole logs; see ``roboyard.mapping.Slam``.

    Args:
        config: Settings.
    """

    def __init__(self, config: GraphSlamConfig | None = None) -> None:
        expect_kernels(count_hits_and_misses)
        self.config = config or GraphSlamConfig()
        self._warnings: list[str] = []
        self._warning_counts: dict[str, int] = {}
        self._beam_counts: dict[str, int] = {}
        self._last_times: dict[str, int] = {}
        self._n_lost_scans = 0
        self._n_backward_stamps = 0
        self._n_loaded_nodes = 0  # nodes of a map that was loaded
        self._start_pose: SE2 | None = None  # where the robot is said to begin in it
        self._first_pose: SE2 | None = None
        self._is_disconnected = False
        self._last_search_distance = 0.0
        self._n_searches = 0
        self._graph_builder = PoseGraphBuilder(self.config.optimization)
        self._submap_builder = SubmapBuilder(self.config.submaps, self.config.preprocessing.max_range)
        self._loop_detector = LoopDetector(
            self.config.loop_closure, self.config.refinement, self._submap_builder.half_size
        )
        self._preprocessor = ScanPreprocessor(self.config.preprocessing)
        self._local_matcher = LocalMatcher(self.config.local_matching, self.config.refinement)
        self._motion_predictor = MotionPredictor(self.config.motion)
        self._T_local_base = SE2()
        self._T_local_node = SE2()
        self._last_node_poses: dict[str, SE2] = {}  # where each laser last became a node, in the local frame
        self._distance = 0.0
        self._accumulated_disagreement = 0.0
        self._position_variance = 0.0
        self._heading_uncertainty = 0.0
        self._trajectory_id = 0
        self._times: list[int] = []
        self._scan_anchors: list[tuple[int, SE2]] = []  # of each scan: a node, and T_node_base
        self._n_solved_nodes = 0
        self._has_unsolved_loops = False

    def process(self, scan: LaserScan) -> SE2:
        """See ``Slam.process``.  A scan that repeats a stamp of its laser, or goes back in time, is left out."""
        if self._out_of_order(scan):
            return self._current_pose()
        preprocessed = self._preprocessor.process(scan, self._motion_predictor.twist)
        self._check_scan(scan, preprocessed)
        hypotheses = self._motion_predictor.predict(scan.time_ns, scan.odometry)
        target = self._submap_builder.matching_target
        if target is None or not hypotheses:
            if len(preprocessed.points) < self.config.local_matching.min_points:
                self._warn("scans before the first with enough points, left out")
                return self._current_pose()
            self._motion_predictor.update(scan.time_ns, scan.odometry, None, False, None)
            if self._n_loaded_nodes:
                self._start_in_loaded_map(preprocessed)
            self._add_node(scan, preprocessed, None)
        else:
            self._track(scan, preprocessed, hypotheses)
        if not self._times or scan.time_ns > self._times[-1]:
            self._times.append(scan.time_ns)
            self._scan_anchors.append(
                (len(self._graph_builder.nodes) - 1, self._T_local_node.inverse() @ self._T_local_base)
            )
        return self._current_pose()

    def _track(self, scan: LaserScan, preprocessed: PreprocessedScan, hypotheses: list[MotionHypothesis]) -> None:
        target = self._submap_builder.matching_target
        if target is None:
            return
        last_pose = self._T_local_base
        T_anchor_last = target.T_local_anchor.inverse() @ last_pose
        placement = self._local_matcher.match(
            preprocessed, target.surfel_map, (target.submap_id, target.version), T_anchor_last, hypotheses
        )
        self._T_local_base = target.T_local_anchor @ placement.pose
        motion = last_pose.inverse() @ self._T_local_base
        self._distance += float(np.hypot(motion.x, motion.y))
        odometry_motion = next((hypothesis.motion for hypothesis in hypotheses if hypothesis.is_odometry), None)
        if (
            odometry_motion is not None
            and placement.odometry_error is not None
            and placement.odometry_error > _DISAGREEMENT_THRESHOLD
        ):
            disagreement = min(odometry_motion.distance(motion), 1.0)
            self._accumulated_disagreement += disagreement
            self._position_variance += (
                disagreement * (1.0 if not placement.is_typical_fit else _REMAINING_UNCERTAINTY)
            ) ** 2
        if placement.match is None:
            self._heading_uncertainty += placement.hypothesis.sigma_angle
        self._motion_predictor.update(
            scan.time_ns, scan.odometry, motion, placement.match is not None, placement.odometry_error
        )
        has_enough_points = len(preprocessed.points) >= self.config.local_matching.min_points
        if placement.match is None and not placement.hypothesis.is_odometry:
            self._n_lost_scans += has_enough_points
            if self._n_lost_scans >= self.config.max_lost_scans:
                self._start_trajectory(scan, preprocessed)
            return
        self._n_lost_scans = 0
        if has_enough_points and self._has_moved(scan.laser_name):
            self._add_node(scan, preprocessed, placement)

    def _start_trajectory(self, scan: LaserScan, preprocessed: PreprocessedScan) -> None:
        """The robot does not know how it got here: a part of the map of its own, until a loop ties it to the others."""
        seconds = (scan.time_ns - self._graph_builder.nodes[0].time_ns) * 1e-9
        self._warnings.append(
            f"lost {seconds:.1f} s after the first scan: a part of the map begins there that nothing ties to the rest "
            "until a loop does"
        )
        self._submap_builder.finish_all()
        self._trajectory_id = max(node.trajectory_id for node in self._graph_builder.nodes) + 1
        self._n_lost_scans, self._is_disconnected = 0, True
        self._motion_predictor.reset(scan.time_ns, scan.odometry)
        number = len(self._graph_builder.nodes)
        self._graph_builder.add(
            PoseGraphEdge(number - 1, number, self._T_local_node.inverse() @ self._T_local_base, _WEAK_INFORMATION)
        )
        self._add_node(scan, preprocessed, None)

    def _start_in_loaded_map(self, preprocessed: PreprocessedScan) -> None:
        """Tie the first scan to the loaded map, where it is said to be or where it is found; else begin a part."""
        graph, submaps, number = self._graph_builder, self._submap_builder.submaps, len(self._graph_builder.nodes)
        start_pose, self._start_pose = self._start_pose, None
        self._T_local_node = self._T_local_base = SE2()
        loop = None
        if start_pose is None:
            loop = relocalize(
                self._loop_detector,
                graph,
                submaps,
                self._submap_builder.finished(),
                preprocessed,
                number,
                self.config.relocalization,
            )
        else:
            loop = self._loop_detector.match_near(
                graph, submaps, self._submap_builder.finished(), preprocessed, start_pose, number
            )
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
            "the first scan was not found in the loaded map: a part begins that nothing ties to it yet"
        )

    def _current_pose(self) -> SE2:
        if self._first_pose is not None:
            return self._first_pose
        if not self._graph_builder.nodes:
            return self._T_local_base
        return self._graph_builder.nodes[-1].pose @ self._T_local_node.inverse() @ self._T_local_base

    def _out_of_order(self, scan: LaserScan) -> bool:
        last = self._last_times.get(scan.laser_name)
        if last is not None and scan.time_ns == last:
            self._warn("scans with the stamp of the one before, left out")
        elif self._last_times and scan.time_ns < max(self._last_times.values()):
            self._n_backward_stamps += 1
            if self._n_backward_stamps >= self.config.max_lost_scans:
                self._on_clock_reset(scan.time_ns)
                self._last_times = {scan.laser_name: scan.time_ns}
                return False
            self._warn("scans whose stamps go back, left out")
        else:
            self._last_times[scan.laser_name] = scan.time_ns
            self._n_backward_stamps = 0
            return False
        return True

    def _on_clock_reset(self, time_ns: int) -> None:
        """Stamps stay behind: the clock was set back, or one stamp lay in the future."""
        self._warn("times the clock was set back; poses with later stamps were taken out of the trajectory")
        self._n_backward_stamps = 0
        while self._times and self._times[-1] >= time_ns:
            self._times.pop()
            self._scan_anchors.pop()
        self._motion_predictor.reset_clock(time_ns)

    def _check_scan(self, scan: LaserScan, preprocessed: PreprocessedScan) -> None:
        n_beams = self._beam_counts.setdefault(scan.laser_name, len(scan.ranges))
        if n_beams != len(scan.ranges):
            self._warn("scans with another number of beams than the laser's first; each is taken by its own angles")
        if len(preprocessed.points) < self.config.local_matching.min_points:
            self._warn("scans with too few points to be placed; the robot is believed to have moved as before")

    def _warn(self, warning: str) -> None:
        self._warning_counts[warning] = self._warning_counts.get(warning, 0) + 1

    @property
    def warnings(self) -> list[str]:
        """What was amiss with the scans so far, and what was done about it."""
        n_omitted = len(self._warnings) - _MAX_WARNINGS
        remainder = [f"{n_omitted} more of that kind"] if n_omitted > 0 else []
        counted = [f"{count} {warning}" for warning, count in self._warning_counts.items()]
        return counted + self._warnings[:_MAX_WARNINGS] + remainder

    def finish(self) -> None:
        """See ``Slam.finish``."""
        if not self._graph_builder.nodes:
            return
        unfinished = self._submap_builder.snapshot()
        self._solve()
        for _ in range(self.config.final_iterations):
            self._add_overlap_constraints()
            self._solve()
        self._loop_detector.invalidate(unfinished)

    def to_map(self) -> PoseGraphMap:
        """What was mapped so far, complete: nodes, edges and submaps; not a copy."""
        self._submap_builder.snapshot()
        edges = list(self._graph_builder.edges.values())
        return PoseGraphMap(
            self._graph_builder.nodes, edges, self._submap_builder.submaps, self._preprocessor.save_state()
        )

    def save_map(self, path: str | Path) -> Path:
        """Write what was mapped so far, for ``load`` and ``GraphLocalizer``.

        Raises:
            InputError: the file cannot be written.
        """
        return save_pose_graph_map(path, self.to_map())

    @classmethod
    def resume_from(
        cls, path: str | Path, config: GraphSlamConfig | None = None, start: SE2 | None = None
    ) -> GraphSlam:
        """Extend a saved map, perhaps days later and starting elsewhere in it.

        Args:
            path: The file.
            config: Settings, those of today.
            start: ``T_map_base`` at the first scan, some decimetres right; None searches the whole map for it.  Until
                the place is found the robot maps a part of its own.

        Raises:
            InputError: the file is none, or is damaged.
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
        """See ``Slam.trajectory``."""
        nodes = self._graph_builder.nodes
        poses = [nodes[number].pose @ T_node_base for number, T_node_base in self._scan_anchors]
        array = np.array([(pose.x, pose.y, pose.theta) for pose in poses]).reshape(-1, 3)
        return PoseTrajectory(np.array(self._times, dtype=np.int64), array)

    def graph(self) -> PoseGraph:
        """See ``Slam.graph``."""
        return self._graph_builder.pose_graph()

    def _has_moved(self, laser: str) -> bool:
        last_pose = self._last_node_poses.get(laser)
        if last_pose is None:
            return True
        distance, angle = pose_difference(last_pose, self._T_local_base)
        return distance >= self.config.node_distance or angle >= self.config.node_angle

    def _add_node(self, scan: LaserScan, preprocessed: PreprocessedScan, placement: ScanPlacement | None) -> None:
        graph, number = self._graph_builder, len(self._graph_builder.nodes)
        pose, self._first_pose = self._current_pose(), None
        uncertainties = self._accumulated_disagreement, self._position_variance, self._heading_uncertainty
        graph.nodes.append(
            PoseGraphNode(scan.time_ns, pose, preprocessed, self._distance, self._trajectory_id, *uncertainties)
        )
        self._heading_uncertainty = 0.0
        if placement is not None:
            self._add_local_constraint(number, placement)
        self._T_local_node = self._T_local_base
        self._last_node_poses[scan.laser_name] = self._T_local_base
        self._submap_builder.insert(number, preprocessed, self._T_local_base, self._distance, self._trajectory_id)
        submaps = self._submap_builder.submaps
        loops = self._loop_detector.detect(graph, submaps, self._submap_builder.finished(), number)
        if self._is_disconnected and not any(loop.is_window_search for loop in loops):
            loops += self._relocalize(number)
        self._add_loop_closures(loops)
        if any(submaps[loop.submap].trajectory_id != self._trajectory_id for loop in loops):
            self._is_disconnected = False
        n_new_nodes = number - self._n_solved_nodes
        if (self._has_unsolved_loops and n_new_nodes >= max(10.0, self.config.solve_growth * number)) or any(
            loop.is_window_search for loop in loops
        ):
            self._solve()

    def _relocalize(self, number: int) -> list[LoopClosure]:
        """While a part is tied to nothing: once a metre, look for it in all others."""
        if self._distance - self._last_search_distance < 1.0:
            return []
        self._last_search_distance = self._distance
        submaps = self._submap_builder.submaps
        other_submaps = [k for k in self._submap_builder.finished() if submaps[k].trajectory_id != self._trajectory_id]
        if (
            len(other_submaps) > self.config.relocalization.submaps_per_search
        ):  # by turns, so that no scan costs more in a larger map
            first = self._n_searches * self.config.relocalization.submaps_per_search % len(other_submaps)
            other_submaps = (other_submaps + other_submaps)[
                first : first + self.config.relocalization.submaps_per_search
            ]
        self._n_searches += 1
        scan = self._graph_builder.nodes[number].scan
        loop = relocalize(
            self._loop_detector, self._graph_builder, submaps, other_submaps, scan, number, self.config.relocalization
        )
        return [] if loop is None else self._loop_detector.confirm(self._graph_builder, submaps, loop)

    def _add_local_constraint(self, number: int, placement: ScanPlacement) -> None:
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
        """Tie every node to the submaps that it overlaps."""
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
        """See ``Slam.occupancy``."""
        from roboyard.mapping.slam import draw_occupancy_map

        nodes = self._graph_builder.nodes
        return draw_occupancy_map([node.pose for node in nodes], [node.scan for node in nodes], resolution)


def _inflate_covariance(information: NDArray[np.float64], extra_variance: float = 0.0) -> NDArray[np.float64]:
    """With the errors that no single match knows of: of the surfaces themselves, of the stamps, and
    ``extra_variance`` [m²].
    """
    floor = np.diag([1e-3, 1e-3, 1e-3])
    added_covariance = np.diag([0.01**2 + extra_variance, 0.01**2 + extra_variance, 0.003**2 + 0.02 * extra_variance])
    result = np.linalg.inv(np.linalg.inv(information + floor) + added_covariance)
    return np.asarray(0.5 * (result + result.T))


@dataclass(frozen=True, slots=True)
class GraphSlamConfig:
    """All that can be set; one set serves very different logs.

    Attributes:
        preprocessing: Of scans.
        refinement: Of matches.
        motion: What is believed about motion.
        local_matching: Placing scans in submaps.
        submaps: Their size.
        loop_closure: Finding loops.
        optimization: Solving the graph.
        node_distance: Way after which a scan becomes a node [m].
        node_angle: Turn after which it does [rad].
        relocalization: Finding a scan in a whole map.
        solve_growth: The graph is solved anew when it has grown by this share since, so that solving costs the same
            for each
            scan, however large the map.
        final_iterations: Times that ``finish`` ties all submaps that overlap and solves.
        max_constraints_per_node: Submaps tied to a node then, at most.
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
