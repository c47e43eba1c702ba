"""A drive through a place that was mapped before, with the face of a SLAM algorithm: poses anew, the map as it was."""

from __future__ import annotations

import numpy as np

from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.mapping.graph_file import MappedPlace
from roboyard.mapping.graph_localizer import GraphLocalizer
from roboyard.mapping.growing_graph import GrowingGraph
from roboyard.mapping.occupancy import draw
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.scan import Scan
from roboyard.mapping.trajectory import Trajectory


class LocatedDrive:
    """Localises scans in a mapped place; see ``roboyard.mapping.Slam``.

    Args:
        place: The mapped place.
        start: ``T_map_base`` at the first scan, some decimetres right; None searches the whole map.

    Attributes:
        unknown: Number of scans whose place was not known; they have no pose.
    """

    def __init__(self, place: MappedPlace, start: SE2 | None = None) -> None:
        self._place = place
        self._localizer = GraphLocalizer(place, start)
        self._times: list[int] = []
        self._poses: list[tuple[float, float, float]] = []
        self.unknown = 0

    @property
    def warnings(self) -> list[str]:
        """What was amiss."""
        return [f"{self.unknown} scans before the place was found"] if self.unknown else []

    def process(self, scan: Scan) -> SE2:
        """See ``Slam.process``; the origin while the place is not known."""
        pose = self._localizer.process(scan)
        if pose is None:
            self.unknown += 1
            return SE2()
        if not self._times or scan.time_ns > self._times[-1]:
            self._times.append(scan.time_ns)
            self._poses.append((pose.x, pose.y, pose.theta))
        return pose

    def finish(self) -> None:
        """Nothing is put off."""

    def trajectory(self) -> Trajectory:
        """Of the scans whose place is known."""
        return Trajectory(np.array(self._times, dtype=np.int64), np.array(self._poses).reshape(-1, 3))

    def graph(self) -> PoseGraph:
        """Of the mapped place."""
        graph = GrowingGraph()
        graph.nodes = self._place.nodes
        for edge in self._place.edges:
            graph.add(edge)
        return graph.pose_graph()

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """Of the mapped place."""
        nodes = self._place.nodes
        return draw([node.pose for node in nodes], [node.scan for node in nodes], resolution)
