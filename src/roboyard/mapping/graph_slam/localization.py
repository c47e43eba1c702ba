"""Localization in a finished pose graph map: the trajectory is estimated, the map does not change."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.mapping.graph_slam.local_matching import (
    LocalMatcher,
    LocalMatcherConfig,
    MotionPredictor,
    MotionPredictorConfig,
)
from roboyard.mapping.graph_slam.loop_closure import LoopClosureConfig, LoopDetector, RelocalizationConfig
from roboyard.mapping.graph_slam.map_file import PoseGraphMap, load_pose_graph_map
from roboyard.mapping.pose_graph import PoseGraph, PoseGraphBuilder
from roboyard.mapping.scan import LaserScan, ScanPreprocessor, ScanPreprocessorConfig
from roboyard.mapping.scan_matching.point_to_line import RefinementConfig
from roboyard.mapping.scan_matching.surfel_map import SurfelMap
from roboyard.mapping.slam import draw_occupancy_map
from roboyard.mapping.trajectory import PoseTrajectory


@dataclass(frozen=True, slots=True)
class GraphLocalizerConfig:
    """Parameters of the localization in a pose graph map.

    Attributes:
        preprocessing: Parameters of the preprocessing of scans.
        refinement: Parameters of the point-to-line refinement.
        motion: Parameters of the motion prediction.
        local_matching: Parameters of the scan matching.
        relocalization: Conditions on a match in the whole map.
        max_local_nodes: Largest number of nodes whose scans make the local map.
        local_map_radius: Distance after which the local map is made anew [m].
        max_lost_scans: Number of successive scans without a match, after which the whole map is searched.
    """

    preprocessing: ScanPreprocessorConfig = field(default_factory=ScanPreprocessorConfig)
    refinement: RefinementConfig = field(default_factory=RefinementConfig)
    motion: MotionPredictorConfig = field(default_factory=MotionPredictorConfig)
    local_matching: LocalMatcherConfig = field(default_factory=LocalMatcherConfig)
    relocalization: RelocalizationConfig = field(default_factory=RelocalizationConfig)
    max_local_nodes: int = 150
    local_map_radius: float = 4.0
    max_lost_scans: int = 8


class GraphLocalizer:
    """Localizes scans in a pose graph map, which does not change.

    Args:
        pose_graph_map: The map, or its file.
        start: ``T_map_base`` at the first scan, within some decimeters; None: the whole map is searched.
        config: Parameters.

    Raises:
        InputError: The file cannot be read, or holds no pose graph map.
    """

    def __init__(
        self,
        pose_graph_map: PoseGraphMap | str | Path,
        start: SE2 | None = None,
        config: GraphLocalizerConfig | None = None,
    ) -> None:
        self.config = config or GraphLocalizerConfig()
        self._pose_graph_map = (
            pose_graph_map if isinstance(pose_graph_map, PoseGraphMap) else load_pose_graph_map(pose_graph_map)
        )
        self._graph = PoseGraphBuilder()
        self._graph.nodes = self._pose_graph_map.nodes
        half_size = self.config.preprocessing.max_range + 15.0
        self._loop_detector = LoopDetector(
            LoopClosureConfig(max_cached_pyramids=len(self._pose_graph_map.submaps) + 1),
            self.config.refinement,
            half_size,
            self.config.relocalization,
        )
        self._preprocessor = ScanPreprocessor(self.config.preprocessing)
        self._preprocessor.load_state(self._pose_graph_map.no_return_counts)
        self._local_matcher = LocalMatcher(self.config.local_matching, self.config.refinement)
        self._motion_predictor = MotionPredictor(self.config.motion)
        self._surfel_map = SurfelMap(half_size)
        self._T_map_surfels: SE2 | None = None
        self._surfel_map_version = 0
        self._n_lost_scans = 0
        self._pose = start
        self._node_positions: NDArray[np.float64] = self._graph.poses()[:, :2]

    @property
    def pose(self) -> SE2 | None:
        """Return ``T_map_base`` at the last scan; None while it is unknown."""
        return self._pose

    def process(self, scan: LaserScan) -> SE2 | None:
        """Process the next scan; return ``T_map_base``, or None while it is unknown."""
        preprocessed = self._preprocessor.process(scan, self._motion_predictor.twist)
        hypotheses = self._motion_predictor.predict(scan.time_ns, scan.odometry)
        if self._pose is None or self._n_lost_scans >= self.config.max_lost_scans:
            submaps = self._pose_graph_map.submaps
            loop_closure = self._loop_detector.relocalize(self._graph, submaps, range(len(submaps)), preprocessed, -1)
            if loop_closure is not None:
                self._pose = (
                    self._graph.nodes[self._pose_graph_map.submaps[loop_closure.submap].anchor].pose @ loop_closure.pose
                )
                self._n_lost_scans = 0
                self._motion_predictor.reset(scan.time_ns, scan.odometry)
                return self._pose
            if self._pose is None:
                return None
        if not hypotheses:
            self._motion_predictor.update(scan.time_ns, scan.odometry, None, False, None)
            hypotheses = self._motion_predictor.predict(
                scan.time_ns + 500_000_000, None
            )  # a start is some decimetres right
        last_pose = self._pose
        T_map_surfels = self._update_surfel_map(last_pose)
        placement = self._local_matcher.match(
            preprocessed,
            self._surfel_map,
            (self._surfel_map_version, 0),
            T_map_surfels.inverse() @ last_pose,
            hypotheses,
        )
        self._pose = T_map_surfels @ placement.pose
        motion = last_pose.inverse() @ self._pose
        self._motion_predictor.update(
            scan.time_ns, scan.odometry, motion, placement.match is not None, placement.odometry_error
        )
        self._n_lost_scans = (
            0
            if placement.match is not None and placement.match.fit > self.config.local_matching.rescue_fit
            else self._n_lost_scans + 1
        )
        return self._pose

    def _update_surfel_map(self, pose: SE2) -> SE2:
        """Make the local map anew if the robot left it; return the pose of its frame in the map."""
        if self._T_map_surfels is None or self._T_map_surfels.distance(pose) > self.config.local_map_radius:
            self._T_map_surfels = SE2(pose.x, pose.y, 0.0)
            self._surfel_map.set_surfels(np.zeros((0, 5)))
            distances = np.linalg.norm(self._node_positions - pose.xy, axis=1)
            nearest = np.sort(np.argsort(distances, kind="stable")[: self.config.max_local_nodes])
            for number in nearest.tolist():
                node = self._graph.nodes[number]
                if distances[number] < self.config.preprocessing.max_range:
                    T_surfels_node = self._T_map_surfels.inverse() @ node.pose
                    self._surfel_map.insert(node.scan.points, node.scan.normals, T_surfels_node)
            self._surfel_map_version += 1
        return self._T_map_surfels


class LocalizationOnlySlam:
    """Localization in a pose graph map with the interface `roboyard.mapping.Slam`.

    Args:
        pose_graph_map: The map.
        start: ``T_map_base`` at the first scan, within some decimeters; None: the whole map is searched.

    Attributes:
        n_unlocalized_scans: Number of scans without a pose.
    """

    def __init__(self, pose_graph_map: PoseGraphMap, start: SE2 | None = None) -> None:
        self._pose_graph_map = pose_graph_map
        self._localizer = GraphLocalizer(pose_graph_map, start)
        self._times: list[int] = []
        self._poses: list[tuple[float, float, float]] = []
        self.n_unlocalized_scans = 0

    @property
    def warnings(self) -> list[str]:
        """Return the number of scans without a pose, as a sentence; nothing if all have one."""
        return [f"{self.n_unlocalized_scans} scans before the place was found"] if self.n_unlocalized_scans else []

    def process(self, scan: LaserScan) -> SE2:
        """Process the next scan; return the origin while the pose is unknown; see ``Slam.process``."""
        pose = self._localizer.process(scan)
        if pose is None:
            self.n_unlocalized_scans += 1
            return SE2()
        if not self._times or scan.time_ns > self._times[-1]:
            self._times.append(scan.time_ns)
            self._poses.append((pose.x, pose.y, pose.theta))
        return pose

    def finish(self) -> None:
        """Do nothing: no work is deferred."""

    def trajectory(self) -> PoseTrajectory:
        """Return the poses of all scans that were localized."""
        return PoseTrajectory(np.array(self._times, dtype=np.int64), np.array(self._poses).reshape(-1, 3))

    def graph(self) -> PoseGraph:
        """Return the pose graph of the map."""
        graph = PoseGraphBuilder()
        graph.nodes = self._pose_graph_map.nodes
        for edge in self._pose_graph_map.edges:
            graph.add(edge)
        return graph.pose_graph()

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """Return the occupancy map of the pose graph map."""
        nodes = self._pose_graph_map.nodes
        return draw_occupancy_map([node.pose for node in nodes], [node.scan for node in nodes], resolution)
