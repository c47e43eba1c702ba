"""Localisation in a saved pose graph: the map stays as it is, the robot is placed in it scan by scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.mapping.anywhere import AnywhereConfig, find_anywhere
from roboyard.mapping.graph_file import MappedPlace, read_place
from roboyard.mapping.growing_graph import GrowingGraph
from roboyard.mapping.local import LocalConfig, LocalMatcher
from roboyard.mapping.loops import LoopConfig, LoopFinder
from roboyard.mapping.matching.cells import CellMap
from roboyard.mapping.matching.refine import RefineConfig
from roboyard.mapping.motion import Motion, MotionConfig
from roboyard.mapping.preparation import Preparation, PreparationConfig
from roboyard.mapping.scan import Scan


@dataclass(frozen=True, slots=True)
class GraphLocalizerConfig:
    """How the robot is placed.

    Attributes:
        preparation: Of scans.
        refining: Of matches.
        motion: What is believed about motion.
        local: Placing scans.
        anywhere: Searching the whole map.
        around: Nodes whose scans make the surroundings, at most.
        renew: Way after which the surroundings are put together anew [m].
        patience: Scans in a row that fit nowhere, after which the whole map is searched.
    """

    preparation: PreparationConfig = field(default_factory=PreparationConfig)
    refining: RefineConfig = field(default_factory=RefineConfig)
    motion: MotionConfig = field(default_factory=MotionConfig)
    local: LocalConfig = field(default_factory=LocalConfig)
    anywhere: AnywhereConfig = field(default_factory=AnywhereConfig)
    around: int = 150
    renew: float = 4.0
    patience: int = 8


class GraphLocalizer:
    """Places scans in a mapped place.

    Args:
        place: The mapped place, or the file it is in.
        start: ``T_map_base`` at the first scan, some decimetres right; None searches the whole map.
        config: How.

    Raises:
        InputError: the file is none, or is damaged.
    """

    def __init__(
        self, place: MappedPlace | str | Path, start: SE2 | None = None, config: GraphLocalizerConfig | None = None
    ) -> None:
        self.config = config or GraphLocalizerConfig()
        self._place = place if isinstance(place, MappedPlace) else read_place(place)
        self._graph = GrowingGraph()
        self._graph.nodes = self._place.nodes
        half = self.config.preparation.reach + 15.0
        self._finder = LoopFinder(LoopConfig(tables=len(self._place.submaps) + 1), self.config.refining, half)
        self._preparation = Preparation(self.config.preparation)
        self._preparation.load_state(self._place.nothing)
        self._local = LocalMatcher(self.config.local, self.config.refining)
        self._motion = Motion(self.config.motion)
        self._surface = CellMap(half)
        self._middle: SE2 | None = None
        self._version = 0
        self._lost = 0
        self._where = start
        self._positions: NDArray[np.float64] = self._graph.poses()[:, :2]

    @property
    def pose(self) -> SE2 | None:
        """``T_map_base`` at the last scan; None while it is not known."""
        return self._where

    def process(self, scan: Scan) -> SE2 | None:
        """Take the next scan; returns ``T_map_base``, or None while it is not known."""
        prepared = self._preparation.prepare(scan, self._motion.twist)
        beliefs = self._motion.beliefs(scan.time_ns, scan.odometry)
        if self._where is None or self._lost >= self.config.patience:
            found = find_anywhere(
                self._finder, self._graph, self._place.submaps, range(len(self._place.submaps)), prepared, -1,
                self.config.anywhere,
            )  # fmt: skip
            if found is not None:
                self._where = self._graph.nodes[self._place.submaps[found.submap].anchor].pose @ found.pose
                self._lost = 0
                self._motion.forget(scan.time_ns, scan.odometry)
                return self._where
            if self._where is None:
                return None
        if not beliefs:
            self._motion.learn(scan.time_ns, scan.odometry, None, False, None)
            beliefs = self._motion.beliefs(scan.time_ns + 500_000_000, None)  # a start is some decimetres right
        last = self._where
        middle = self._surroundings(last)
        placed = self._local.place(prepared, self._surface, (self._version, 0), middle.inverse() @ last, beliefs)
        self._where = middle @ placed.pose
        step = last.inverse() @ self._where
        self._motion.learn(scan.time_ns, scan.odometry, step, placed.match is not None, placed.error)
        self._lost = 0 if placed.match is not None and placed.match.fit > self.config.local.rescue else self._lost + 1
        return self._where

    def _surroundings(self, pose: SE2) -> SE2:
        """Pose of the frame in which the surroundings are kept; put together anew when the robot has left them."""
        if self._middle is None or self._middle.distance(pose) > self.config.renew:
            self._middle = SE2(pose.x, pose.y, 0.0)
            self._surface.load(np.zeros((0, 5)))
            away = np.linalg.norm(self._positions - pose.xy, axis=1)
            nearest = np.sort(np.argsort(away, kind="stable")[: self.config.around])
            for number in nearest.tolist():
                node = self._graph.nodes[number]
                if away[number] < self.config.preparation.reach:
                    T_middle_node = self._middle.inverse() @ node.pose
                    self._surface.insert(node.scan.points, node.scan.normals, T_middle_node)
            self._version += 1
        return self._middle
