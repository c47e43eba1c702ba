"""Submaps: parts of the trajectory short enough to be free of drift, each a rigid local map; and their estimated poses
as arrays.

Two submaps are open at any time; the younger starts when the older is half full. A scan is matched against the older
and inserted into both, so no scan meets an empty map, and neighboring submaps share scans.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry import SE2
from roboyard.mapping.pose_graph import PoseGraphBuilder
from roboyard.mapping.scan import PreprocessedScan
from roboyard.mapping.scan_matching.surfel_map import SurfelMap, insert_points


@dataclass(frozen=True, slots=True)
class SubmapConfig:
    """Size of submaps.

    Attributes:
        nodes_per_submap: Number of nodes in the newest submap, after which the next one starts; the oldest open one is
            finished then.
        distance_per_submap: Distance driven since the start of the newest submap, after which the next one starts [m].
        margin: Space that a submap has beyond the range of the laser [m]; more than twice ``distance_per_submap``.
    """

    nodes_per_submap: int = 24
    distance_per_submap: float = 6.0
    margin: float = 15.0


@dataclass(slots=True)
class Submap:
    """A rigid local map, in the frame of its anchor.

    Attributes:
        anchor: Number of the node with which it started.
        distance: Distance driven until then [m].
        trajectory_id: Number of the connected trajectory that it belongs to.
        surfels: (n, 5) surfels, once it is finished.
        nodes: Numbers of the nodes whose scans are in it.
        center: (2,) median of its surfaces in the anchor's frame [m].
        radius: Radius around the center that contains 95 % of the surfaces [m].
    """

    anchor: int
    distance: float
    trajectory_id: int = 0
    surfels: NDArray[np.float64] | None = None
    nodes: list[int] = field(default_factory=list)
    center: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    radius: float = 0.0

    def finish(self, surfel_map: SurfelMap) -> None:
        """Store the surfels of the map, without unused space."""
        self.surfels = surfel_map.surfels.copy()
        self.update_extent()

    def update_extent(self) -> None:
        """Compute center and radius of the surfaces."""
        if self.surfels is None or not len(self.surfels):
            return
        means = self.surfels[:, 1:3] / self.surfels[:, :1]
        self.center = np.median(means, axis=0)
        self.radius = float(np.percentile(np.linalg.norm(means - self.center, axis=1), 95.0))


@dataclass(slots=True)
class _OpenSubmap:
    submap_id: int
    surfel_map: SurfelMap
    T_local_anchor: SE2
    version: int = 0


class SubmapBuilder:
    """Builds submaps from scans; the last two submaps are open.

    Args:
        config: Size of submaps.
        max_range: Largest range of the laser [m].
    """

    def __init__(self, config: SubmapConfig, max_range: float) -> None:
        expect_kernels(insert_points)
        self.config = config
        self.half_size = max_range + config.margin
        self.submaps: list[Submap] = []
        self._open_submaps: list[_OpenSubmap] = []
        self._free_surfel_maps: list[SurfelMap] = []
        self._no_surfels: NDArray[np.float64] = np.zeros((0, 5))

    @property
    def matching_target(self) -> _OpenSubmap | None:
        """Return the submap that scans are matched with: the oldest open one."""
        return self._open_submaps[0] if self._open_submaps else None

    def finished(self) -> list[int]:
        """Return the numbers of the submaps that no longer change."""
        open_ids = {open_submap.submap_id for open_submap in self._open_submaps}
        return [submap_id for submap_id in range(len(self.submaps)) if submap_id not in open_ids]

    def snapshot(self) -> list[int]:
        """Store the present surfels of the open submaps in them; return their numbers."""
        for open_submap in self._open_submaps:
            self.submaps[open_submap.submap_id].finish(open_submap.surfel_map)
        return [open_submap.submap_id for open_submap in self._open_submaps]

    def insert(
        self, node: int, scan: PreprocessedScan, T_local_base: SE2, distance: float, trajectory_id: int
    ) -> list[int]:
        """Insert the scan of a node, and start and finish submaps as they fill; return the numbers of those that were
        finished.
        """
        finished_ids: list[int] = []
        newest = self.submaps[self._open_submaps[-1].submap_id] if self._open_submaps else None
        if (
            newest is None
            or len(newest.nodes) >= self.config.nodes_per_submap
            or distance - newest.distance >= self.config.distance_per_submap
        ):
            if len(self._open_submaps) == 2:
                finished_ids.append(self._finish(0))
            surfel_map = self._free_surfel_maps.pop() if self._free_surfel_maps else SurfelMap(self.half_size)
            self._open_submaps.append(_OpenSubmap(len(self.submaps), surfel_map, T_local_base))
            self.submaps.append(Submap(node, distance, trajectory_id))
        for open_submap in self._open_submaps:
            open_submap.surfel_map.insert(
                scan.points, scan.normals, open_submap.T_local_anchor.inverse() @ T_local_base
            )
            open_submap.version += 1
            self.submaps[open_submap.submap_id].nodes.append(node)
        return finished_ids

    def finish_all(self) -> list[int]:
        """Finish the open submaps, so that the next scan starts a new one; return their numbers."""
        finished_ids = []
        while self._open_submaps:
            finished_ids.append(self._finish(0))
        return finished_ids

    def _finish(self, position: int) -> int:
        open_submap = self._open_submaps.pop(position)
        self.submaps[open_submap.submap_id].finish(open_submap.surfel_map)
        open_submap.surfel_map.set_surfels(self._no_surfels)
        self._free_surfel_maps.append(open_submap.surfel_map)
        return open_submap.submap_id


def _empty_array() -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class SubmapIndex:
    """Estimated poses of finished submaps as (n,) arrays, for vectorized selection of candidates.

    Attributes:
        ids: Numbers of the submaps.
        anchors: Numbers of their anchors.
        centers: (n, 2) centers of their surfaces in the map [m].
        radii: Radii of their surfaces around the centers [m].
        distances: Distance driven until the start of each [m].
        accumulated_disagreements: Sum of the disagreements of odometry and scans until then [m].
        trajectory_ids: Number of the connected trajectory of each.
        solve_count: Number of optimizations of the graph so far.
    """

    ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    anchors: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    centers: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    radii: NDArray[np.float64] = field(default_factory=_empty_array)
    distances: NDArray[np.float64] = field(default_factory=_empty_array)
    accumulated_disagreements: NDArray[np.float64] = field(default_factory=_empty_array)
    trajectory_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    solve_count: int = -1

    def updated(self, graph: PoseGraphBuilder, submaps: list[Submap], finished: list[int]) -> SubmapIndex:
        """Return this index while it is valid: while the graph was not optimized and no submap was finished; otherwise
        a
        new one.

        A submap finishes after metres of way, and the graph is solved when it has grown by a share of itself.
        """
        if self.solve_count == graph.solve_count and len(finished) == len(self.ids):
            return self
        anchors = [graph.nodes[submaps[k].anchor] for k in finished]
        centers = [node.pose @ submaps[k].center for node, k in zip(anchors, finished, strict=True)]
        return SubmapIndex(
            ids=np.array(finished, dtype=np.int64),
            anchors=np.array([submaps[k].anchor for k in finished], dtype=np.int64),
            centers=np.array(centers, dtype=np.float64).reshape(-1, 2),
            radii=np.array([submaps[k].radius for k in finished], dtype=np.float64),
            distances=np.array([submaps[k].distance for k in finished], dtype=np.float64),
            accumulated_disagreements=np.array([node.accumulated_disagreement for node in anchors], dtype=np.float64),
            trajectory_ids=np.array([submaps[k].trajectory_id for k in finished], dtype=np.int64),
            solve_count=graph.solve_count,
        )
