"""Loop closure: bounds on the accumulated drift, detection of loops in older submaps, and global relocalization.

The number of submaps that are searched for a scan is bounded, so the cost of a scan does not grow with the map.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.mapping.graph_slam.local_matching import search_angle_step
from roboyard.mapping.graph_slam.submaps import Submap, SubmapIndex
from roboyard.mapping.pose_graph import PoseGraphBuilder, PoseGraphNode
from roboyard.mapping.scan import PreprocessedScan
from roboyard.mapping.scan_matching.correlative import LikelihoodPyramid, SearchWindow, match_correlative
from roboyard.mapping.scan_matching.point_to_line import RefinementConfig, ScanMatch, pose_difference, refine_pose
from roboyard.mapping.scan_matching.surfel_map import SurfelMap, fraction_through_surfaces


@dataclass(frozen=True, slots=True)
class DriftConfig:
    """Assumed drift of the trajectory.

    Attributes:
        relative_drift: Drift per distance driven.
        base_drift: Drift at any distance [m]; submaps within it are matched without a search.
        history_length: Number of recent loop closures that bound the drift.
    """

    relative_drift: float = 0.04
    base_drift: float = 0.35
    history_length: int = 60


@dataclass(frozen=True, slots=True)
class DriftBounds:
    """Upper bounds on the drift of positions (n,) relative to a node.

    Attributes:
        translation: Bound by the distance driven, and by disagreements of scans and odometry [m].
        lever_arm: Bound by heading errors that no scan observed, which grows with the distance [m].
        rotation: Bound of these heading errors [rad].
    """

    translation: NDArray[np.float64]
    lever_arm: NDArray[np.float64]
    rotation: NDArray[np.float64]


class DriftModel:
    """Bounds the drift between nodes by the distance driven, directly or over loop closures.

    Args:
        config: Assumed drift.
    """

    def __init__(self, config: DriftConfig) -> None:
        self.config = config
        # number, way and doubt of nodes that loops told the place of, and of the submaps' anchors
        self._loops: deque[tuple[int, float, float, int, float, float]] = deque(maxlen=config.history_length)
        self._heading_errors: list[
            tuple[int, int, float]
        ] = []  # nodes about which the rest may have swung: first, last, angle

    def add_node(self, number: int, node: PoseGraphNode) -> None:
        """Add the next node; over consecutive uninformative scans the errors of odometry add up linearly."""
        if node.heading_uncertainty <= 0.0:
            return
        continues_interval = bool(self._heading_errors) and self._heading_errors[-1][1] == number - 1
        first, _, angle = self._heading_errors.pop() if continues_interval else (number, number, 0.0)
        self._heading_errors.append((first, number, angle + node.heading_uncertainty))

    def add_loop(self, number: int, node: PoseGraphNode, anchor: int, anchor_node: PoseGraphNode) -> None:
        """Add a loop closure between a node and the submap with that anchor."""
        self._loops.append(
            (
                number,
                node.distance,
                node.accumulated_disagreement,
                anchor,
                anchor_node.distance,
                anchor_node.accumulated_disagreement,
            )
        )

    def bounds(self, graph: PoseGraphBuilder, number: int, submaps: SubmapIndex) -> DriftBounds:
        """Return the bounds on the positions of submaps relative to a node."""
        node = graph.nodes[number]
        current = number, node.distance, node.accumulated_disagreement
        loops = np.array([(*current, *current), *self._loops])  # the first: directly
        distances = (node.distance - loops[:, 1]) + np.abs(loops[:, 4] - submaps.distances[:, None])
        disagreements = (node.accumulated_disagreement - loops[:, 2]) + np.abs(
            loops[:, 5] - submaps.accumulated_disagreements[:, None]
        )
        blind_nodes = [interval[0] for interval in self._heading_errors]
        heading_errors = np.array([interval[2] for interval in self._heading_errors])
        lever_arms = np.array([graph.nodes[interval].pose.distance(node.pose) for interval in blind_nodes])
        error_counts = [
            np.searchsorted(blind_nodes, node_numbers, side="right")
            for node_numbers in (loops[:, 0], loops[:, 3], submaps.anchors)
        ]

        def accumulate_errors(errors: NDArray[np.float64]) -> NDArray[np.float64]:
            sums = np.concatenate([[0.0], np.cumsum(errors**2)])
            variance = (sums[-1] - sums[error_counts[0]]) + np.abs(
                sums[error_counts[1]] - sums[error_counts[2]][:, None]
            )
            return np.asarray(np.sqrt(variance))

        translation, lever_arm = (
            self.config.relative_drift * distances + disagreements,
            accumulate_errors(lever_arms * heading_errors),
        )
        best = np.argmin(translation + lever_arm, axis=1)[:, None]
        selected = [
            np.take_along_axis(each, best, axis=1)[:, 0]
            for each in (translation, lever_arm, accumulate_errors(heading_errors))
        ]
        return DriftBounds(self.config.base_drift + selected[0], selected[1], selected[2])


_MIN_POSITION_INFORMATION = 1.0 / 0.1**2
"""Minimum position information of a match in every direction [1/m²]."""
_CONFIRMATION_DISTANCE = 15.0
"""Distance within which loop closures confirm each other [m]."""
_INDEPENDENCE_DISTANCE = 2.0
"""Distance after which a scan is independent of the last one [m]."""


@dataclass(frozen=True, slots=True)
class LoopClosureConfig:
    """Limits of the search for loop closures, and conditions on them.

    Attributes:
        max_direct_matches: Largest number of submaps around a node that are matched without a search.
        max_window_searches: Largest number of submaps that are searched in a window for each node.
        far_searches_per_meter: Number of searched submaps per distance driven, where heading errors moved the node far
            [1/m].
        far_search_points: Smallest number of points of a scan for these searches; about as many points are used.
        far_min_score: Smallest mean likelihood of a result of these searches.
        drift: Assumed drift.
        max_window: Half the width of the largest window [m].
        max_window_angle: Half the range of headings of the largest window [rad].
        min_fit: Smallest fraction of points on surfaces.
        min_overlap: Smallest fraction of points near a surface.
        max_through_wall_fraction: Largest fraction of beams through surfaces.
        min_score: Smallest mean likelihood of a result of a search, before refinement.
        min_agreeing: Number of loop closures by searches that must agree.
        agreement_tolerance: Tolerance of this agreement [m], with five times the angle [rad] added.
        max_cached_pyramids: Number of submaps whose likelihood pyramids are kept.
    """

    max_direct_matches: int = 3
    max_window_searches: int = 1
    far_searches_per_meter: float = 2.0
    far_search_points: int = 50
    far_min_score: float = 0.6
    drift: DriftConfig = field(default_factory=DriftConfig)
    max_window: float = 6.0
    max_window_angle: float = 0.5
    min_fit: float = 0.5
    min_overlap: float = 0.6
    max_through_wall_fraction: float = 0.12
    min_score: float = 0.45
    min_agreeing: int = 3
    agreement_tolerance: float = 0.25
    max_cached_pyramids: int = 32


@dataclass(frozen=True, slots=True)
class RelocalizationConfig:
    """Conditions on a match without a prior pose.

    Attributes:
        min_fit: Smallest fraction of points on surfaces.
        min_overlap: Smallest fraction of points near a surface.
        max_through_wall_fraction: Largest fraction of beams through surfaces.
        min_score: Smallest mean likelihood of a result of the search, before refinement.
        min_margin: Smallest difference of the fit from that of a match at another pose.
        rival_distance: Distance above which a match counts as one at another pose [m].
        max_refinements: Largest number of poses that are refined.
        submaps_per_search: Number of submaps that are searched for a node of an unconnected trajectory.
    """

    min_fit: float = 0.62
    min_overlap: float = 0.75
    max_through_wall_fraction: float = 0.06
    min_score: float = 0.55
    min_margin: float = 0.06
    rival_distance: float = 0.7
    max_refinements: int = 12
    submaps_per_search: int = 8


@dataclass(frozen=True, slots=True)
class LoopClosure:
    """A scan found in a submap: ``T_anchor_base`` with its inverse covariance in the anchor's frame."""

    submap: int
    node: int
    pose: SE2
    information: NDArray[np.float64]
    is_window_search: bool


class LoopClosureDetector(Protocol):
    """Detector of loop closures of graph SLAM: the part of the pipeline that a class of your own can replace.

    Every method gets the graph and all submaps; ``finished`` and ``searched`` are numbers of submaps that no longer
    change. A class that changes only one of these decisions derives from `LoopDetector`.
    """

    def detect(
        self, graph: PoseGraphBuilder, submaps: list[Submap], finished: list[int], number: int
    ) -> list[LoopClosure]:
        """Return the loop closures between a new node and finished submaps, and older ones that these confirm.

        Graph SLAM calls this once for each node, in order.
        """
        ...

    def match_near(
        self,
        graph: PoseGraphBuilder,
        submaps: list[Submap],
        finished: list[int],
        scan: PreprocessedScan,
        pose: SE2,
        number: int,
    ) -> LoopClosure | None:
        """Find a scan within a metre of a given pose (``T_map_base``); ``number`` is that of its node."""
        ...

    def relocalize(
        self,
        graph: PoseGraphBuilder,
        submaps: list[Submap],
        searched: Sequence[int],
        scan: PreprocessedScan,
        number: int,
    ) -> LoopClosure | None:
        """Find a scan in submaps without a prior pose; ``number`` is that of its node, -1 for none."""
        ...

    def confirm(self, graph: PoseGraphBuilder, submaps: list[Submap], loop: LoopClosure) -> list[LoopClosure]:
        """Return a loop closure with older ones that agree with it, or nothing while too few agree."""
        ...

    def refine(self, submaps: list[Submap], k: int, node: PoseGraphNode, start: SE2) -> ScanMatch | None:
        """Match a node with submap ``k`` near ``start`` (``T_anchor_base``); None: no match is credible."""
        ...

    def invalidate(self, numbers: list[int]) -> None:
        """Forget what was derived from submaps that still change."""
        ...


class LoopDetector:
    """Detector of loop closures by scan matching; it implements `LoopClosureDetector`.

    A new node is refined in the submaps around its pose, or searched in one of them in a window as large as the drift
    may be. The number of searches for each node is bounded.

    Args:
        config: Limits of the search, and conditions on loop closures.
        refinement_config: Parameters of the point-to-line refinement.
        half_size: Half the side of a submap [m].
        relocalization: Conditions on a match without a prior pose.
    """

    def __init__(
        self,
        config: LoopClosureConfig,
        refinement_config: RefinementConfig,
        half_size: float,
        relocalization: RelocalizationConfig | None = None,
    ) -> None:
        self.config = config
        self.relocalization = relocalization or RelocalizationConfig()
        self.refinement_config = refinement_config
        self._surfel_map = SurfelMap(half_size)
        self._loaded_submap = -1
        self._submap_index = SubmapIndex()
        self._pyramids: OrderedDict[int, LikelihoodPyramid] = OrderedDict()
        self._pending: list[LoopClosure] = []
        self._drift_model = DriftModel(config.drift)
        self._drift_bounds = DriftBounds(np.zeros(0), np.zeros(0), np.zeros(0))
        self._last_search_distance = 0.0  # way at which submaps were last searched for a robot that may be far away
        self._round_robin_position = 0

    def detect(
        self, graph: PoseGraphBuilder, submaps: list[Submap], finished: list[int], number: int
    ) -> list[LoopClosure]:
        """Return the loop closures of a node with finished submaps, and older ones that they confirm."""
        config, node = self.config, graph.nodes[number]
        self._drift_model.add_node(number, node)
        direct_candidates, window_candidates, far_candidates = self._candidates(graph, submaps, finished, number)
        loops = []
        for k in self._rotate_candidates(direct_candidates, config.max_direct_matches, number):
            loop = self._match_direct(graph, submaps, k, number)
            if loop is not None:
                loops.append(loop)
        informative = [
            loop for loop in loops if _min_position_information(loop.information) > _MIN_POSITION_INFORMATION
        ]
        if not any(node.distance - submaps[loop.submap].distance > 20.0 for loop in informative):
            for k in self._rotate_candidates(window_candidates, config.max_window_searches, number):
                loop = self._search_window(graph, submaps, k, number)
                confirmed_loops = [] if loop is None else self.confirm(graph, submaps, loop)
                informative += confirmed_loops
                loops += confirmed_loops
            for k in self._limit_rate(far_candidates, node):
                loop = self._search_window(graph, submaps, k, number, is_far_search=True)
                if loop is not None:
                    self._propagate_back(graph, submaps, loop)
                confirmed_loops = [] if loop is None else self.confirm(graph, submaps, loop)
                informative += confirmed_loops
                loops += confirmed_loops
        for loop in informative:
            submap = submaps[loop.submap]
            if node.distance - submap.distance > 20.0:
                self._drift_model.add_loop(number, node, submap.anchor, graph.nodes[submap.anchor])
        return loops

    def _candidates(
        self, graph: PoseGraphBuilder, submaps: list[Submap], finished: list[int], number: int
    ) -> tuple[list[int], list[int], list[int]]:
        """Return the submaps around the node's pose, those within its drift, nearest first, and those within its
        heading
        errors.
        """
        config, node = self.config, graph.nodes[number]
        index = self._submap_index = self._submap_index.updated(graph, submaps, finished)
        distances = np.hypot(index.centers[:, 0] - node.pose.x, index.centers[:, 1] - node.pose.y)
        bounds = self._drift_bounds = self._drift_model.bounds(graph, number, index)
        is_other_trajectory = index.trajectory_ids != node.trajectory_id
        window_sizes = np.where(
            is_other_trajectory, config.max_window, np.minimum(bounds.translation, config.max_window)
        )
        is_near = distances < index.radii
        is_in_window = (is_other_trajectory | (bounds.translation > 2.0 * config.drift.base_drift)) & (
            distances < index.radii + window_sizes
        )
        has_enough_points = len(node.scan.points) >= config.far_search_points
        is_far_candidate = (
            has_enough_points
            & (bounds.lever_arm > config.drift.base_drift)
            & (distances < index.radii + window_sizes + bounds.lever_arm)
        )
        order = np.argsort(distances, kind="stable")
        direct_candidates, window_candidates = (
            index.ids[order[selection[order]]].tolist() for selection in (is_near, is_in_window)
        )
        return direct_candidates, window_candidates, index.ids[is_far_candidate].tolist()

    def _limit_rate(self, candidates: list[int], node: PoseGraphNode) -> list[int]:
        """Return as many candidates as the distance driven since the last search allows; the others take turns."""
        count = (
            int(self.config.far_searches_per_meter * (node.distance - self._last_search_distance)) if candidates else 0
        )
        if count or not candidates:
            self._last_search_distance = node.distance
        first, self._round_robin_position = self._round_robin_position, self._round_robin_position + count
        return [candidates[k % len(candidates)] for k in range(first, first + min(count, len(candidates)))]

    @staticmethod
    def _rotate_candidates(candidates: list[int], count: int, round_index: int) -> list[int]:
        """Return the nearest candidates; the last of them takes turns with the others, so every submap is tried."""
        if len(candidates) <= count:
            return candidates
        first = max(count - 1, 0)
        others = candidates[first:]
        return [*candidates[:first], others[round_index % len(others)]]

    def invalidate(self, numbers: list[int]) -> None:
        """Forget surfels and likelihood pyramids of submaps that still change."""
        self._loaded_submap = -1
        for number in numbers:
            self._pyramids.pop(number, None)

    def load_surfels(self, submaps: list[Submap], number: int) -> SurfelMap:
        """Return the surfel map of a finished submap, which holds until the next call."""
        cells = submaps[number].surfels
        if self._loaded_submap != number and cells is not None:
            self._surfel_map.set_surfels(cells)
            self._loaded_submap = number
        return self._surfel_map

    def likelihood_pyramid(self, submaps: list[Submap], number: int) -> LikelihoodPyramid:
        """Return the likelihood pyramid of a finished submap."""
        if number in self._pyramids:
            self._pyramids.move_to_end(number)
        else:
            self._pyramids[number] = LikelihoodPyramid.from_points(self.load_surfels(submaps, number).means)
            if len(self._pyramids) > self.config.max_cached_pyramids:
                self._pyramids.popitem(last=False)
        return self._pyramids[number]

    def is_credible(self, surfels: SurfelMap, node: PoseGraphNode, match: ScanMatch) -> bool:
        """Return whether a match has enough points on surfaces and few beams through surfaces."""
        config = self.config
        if match.fit < config.min_fit or match.overlap < config.min_overlap:
            return False
        return fraction_through_surfaces(surfels, node.scan, match.pose) <= config.max_through_wall_fraction

    def refine(self, submaps: list[Submap], k: int, node: PoseGraphNode, start: SE2) -> ScanMatch | None:
        """Return a credible match near ``start`` (``T_anchor_base``), or None."""
        surfels = self.load_surfels(submaps, k)
        match = refine_pose(surfels, node.scan, start, self.refinement_config)
        return match if self.is_credible(surfels, node, match) else None

    def match_near(
        self,
        graph: PoseGraphBuilder,
        submaps: list[Submap],
        finished: list[int],
        scan: PreprocessedScan,
        pose: SE2,
        number: int,
    ) -> LoopClosure | None:
        """Find a scan within a metre of a given pose (``T_map_base``), in the four nearest submaps."""
        by_distance = []
        for k in finished:
            anchor = graph.nodes[submaps[k].anchor].pose
            by_distance.append((float(np.hypot(*(anchor @ submaps[k].center - pose.xy))), k))
        probe = PoseGraphNode(0, pose, scan, 0.0)
        best: tuple[float, LoopClosure] | None = None
        for _, k in sorted(by_distance)[:4]:
            start = graph.nodes[submaps[k].anchor].pose.inverse() @ pose
            coarse_match = match_correlative(
                self.likelihood_pyramid(submaps, k), scan.points, start, SearchWindow(1.0, 0.5, search_angle_step(scan))
            )
            match = None if coarse_match is None else self.refine(submaps, k, probe, coarse_match.pose)
            if match is not None and (best is None or match.fit > best[0]):
                best = match.fit, LoopClosure(k, number, match.pose, match.information, True)
        return None if best is None else best[1]

    def relocalize(
        self,
        graph: PoseGraphBuilder,
        submaps: list[Submap],
        searched: Sequence[int],
        scan: PreprocessedScan,
        number: int,
    ) -> LoopClosure | None:
        """Find a scan in submaps at all positions and headings, without a prior pose.

        Args:
            graph: Graph of the submaps.
            submaps: All submaps.
            searched: Numbers of the submaps that are searched.
            scan: The scan.
            number: Number of the scan's node, for the result; -1 for none.

        Returns:
            The loop closure, or None if no pose fits well or several distant poses do.
        """
        config = self.relocalization
        if len(scan.points) < 20:
            return None
        points = scan.points[:: max(1, len(scan.points) // 100)]
        coarse_matches = []
        for k in searched:
            submap = submaps[k]
            center = SE2(submap.center[0], submap.center[1], 0.0)
            window = SearchWindow(submap.radius, np.pi, 1.5 * search_angle_step(scan))
            coarse_match = match_correlative(
                self.likelihood_pyramid(submaps, k), points, center, window, config.min_score
            )
            if coarse_match is not None:
                coarse_matches.append((-coarse_match.score, k, coarse_match.pose))
        coarse_matches.sort(key=lambda item: item[:2])
        candidates: list[tuple[float, SE2, LoopClosure]] = []
        probe = PoseGraphNode(0, SE2(), scan, 0.0)
        for _, k, pose in coarse_matches[: config.max_refinements]:
            match = self.refine(submaps, k, probe, pose)
            if match is None or match.overlap < config.min_overlap:
                continue
            score = match.fit - fraction_through_surfaces(self.load_surfels(submaps, k), scan, match.pose)
            pose_in_map = graph.nodes[submaps[k].anchor].pose @ match.pose
            candidates.append((score, pose_in_map, LoopClosure(k, number, match.pose, match.information, True)))
        if not candidates:
            return None
        score, pose_in_map, loop = max(candidates, key=lambda item: item[0])
        surfels = self.load_surfels(submaps, loop.submap)
        if (
            score < config.min_fit
            or fraction_through_surfaces(surfels, scan, loop.pose) > config.max_through_wall_fraction
        ):
            return None
        for other_score, other_pose, _ in candidates:
            distance, angle = pose_difference(pose_in_map, other_pose)
            if (distance > config.rival_distance or angle > 0.3) and other_score > score - config.min_margin:
                return None
        return loop

    def _match_direct(self, graph: PoseGraphBuilder, submaps: list[Submap], k: int, number: int) -> LoopClosure | None:
        node = graph.nodes[number]
        start = graph.nodes[submaps[k].anchor].pose.inverse() @ node.pose
        match = self.refine(submaps, k, node, start)
        if match is None:
            return None
        distance, angle = pose_difference(start, match.pose)
        if distance > 2.0 * self.config.drift.base_drift or angle > 0.2:
            return None
        return LoopClosure(k, number, match.pose, match.information, False)

    def _search_window(
        self, graph: PoseGraphBuilder, submaps: list[Submap], k: int, number: int, is_far_search: bool = False
    ) -> LoopClosure | None:
        config, node, submap = self.config, graph.nodes[number], submaps[k]
        start = graph.nodes[submap.anchor].pose.inverse() @ node.pose
        points, angle_step = node.scan.points, search_angle_step(node.scan)
        index_row = int(np.searchsorted(self._submap_index.ids, k))
        translation, lever_arm, rotation = (
            float(bound[index_row])
            for bound in (self._drift_bounds.translation, self._drift_bounds.lever_arm, self._drift_bounds.rotation)
        )
        half_width = min(translation, config.max_window)
        half_angle = min(0.15 + 0.05 * translation, config.max_window_angle)
        if submap.trajectory_id != node.trajectory_id:
            half_width, half_angle = config.max_window, np.pi
        elif is_far_search:  # anywhere in the submap, if need be
            half_angle = max(half_angle, rotation)
            points, angle_step = points[:: len(points) // config.far_search_points], 1.5 * angle_step
            half_width += lever_arm
            if half_width > submap.radius:
                half_width, start = submap.radius, SE2(submap.center[0], submap.center[1], start.theta)
        min_score = config.far_min_score if is_far_search else config.min_score
        best = match_correlative(
            self.likelihood_pyramid(submaps, k),
            points,
            start,
            SearchWindow(half_width, half_angle, angle_step),
            min_score,
        )
        if best is None:
            return None
        match = self.refine(submaps, k, node, best.pose)
        if match is None or _min_position_information(match.information) < _MIN_POSITION_INFORMATION:
            return None  # a corridor: the scan fits at many places along it
        return LoopClosure(k, number, match.pose, match.information, True)

    def _propagate_back(self, graph: PoseGraphBuilder, submaps: list[Submap], loop: LoopClosure) -> None:
        """Match older scans at the poses that a loop closure implies; if it is correct, they match, and confirm it."""
        nodes, last_node = graph.nodes, graph.nodes[loop.node]
        for number in range(loop.node - 1, -1, -1):
            node = nodes[number]
            if nodes[loop.node].distance - node.distance > _CONFIRMATION_DISTANCE:
                break
            if (
                last_node.distance - node.distance < _INDEPENDENCE_DISTANCE
                or len(node.scan.points) < self.config.far_search_points
            ):
                continue
            last_node = node
            match = self.refine(submaps, loop.submap, node, loop.pose @ nodes[loop.node].pose.inverse() @ node.pose)
            if match is not None and _min_position_information(match.information) > _MIN_POSITION_INFORMATION:
                self._pending.append(LoopClosure(loop.submap, number, match.pose, match.information, True))

    def confirm(self, graph: PoseGraphBuilder, submaps: list[Submap], loop: LoopClosure) -> list[LoopClosure]:
        """Return a loop closure with older ones that agree with it, once there are enough."""
        config = self.config
        node = graph.nodes[loop.node]

        def correction(item: LoopClosure) -> SE2:
            return graph.nodes[submaps[item.submap].anchor].pose @ item.pose @ graph.nodes[item.node].pose.inverse()

        self._pending = [
            item for item in self._pending if node.distance - graph.nodes[item.node].distance < _CONFIRMATION_DISTANCE
        ]
        corrected_pose = correction(loop) @ node.pose
        agreeing = []
        for item in self._pending:
            distance, angle = pose_difference(correction(item) @ node.pose, corrected_pose)
            if distance + 5.0 * angle < 2.0 * config.agreement_tolerance and item.node != loop.node:
                agreeing.append(item)
        if len(agreeing) + 1 >= config.min_agreeing:
            self._pending = [item for item in self._pending if all(item is not other for other in agreeing)]
            return [*agreeing, loop]
        self._pending.append(loop)
        return []


def _min_position_information(information: NDArray[np.float64]) -> float:
    """Return the smallest eigenvalue of the position information of a match [1/m²]."""
    return float(np.linalg.eigvalsh(information[:2, :2])[0])
