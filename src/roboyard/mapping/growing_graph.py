"""The pose graph while it grows: nodes with their scans, edges, and its solution from time to time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.mapping.optimise import OptimiseConfig, Optimiser, edge_errors
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.preparation import Prepared


@dataclass(slots=True)
class PoseGraphNode:
    """A scan that is part of the map.

    Attributes:
        time_ns: Of the scan [ns].
        pose: ``T_map_base`` as it is believed now.
        scan: What was seen.
        path: Way driven until then [m].
        part: Number of the part of the map it was taken in.
        doubt: By how much odometry and scans disagreed on the way, in all [m]: who was wrong is not known.
        slack: Variance that this adds to the way, in all [m²].
        blind: By how much the heading may have gone wrong since the node before, while scans told nothing [rad].
    """

    time_ns: int
    pose: SE2
    scan: Prepared
    path: float
    part: int = 0
    doubt: float = 0.0
    slack: float = 0.0
    blind: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """``T_first_second`` as measured, with its inverse covariance (3, 3) in the frame of ``first``.

    ``far`` marks a loop that was confirmed by others and may bend the map much.
    """

    first: int
    second: int
    measured: SE2
    information: NDArray[np.float64]
    loop: bool = False
    far: bool = False


class GrowingGraph:
    """Nodes and edges.

    Args:
        config: How it is solved.
    """

    def __init__(self, config: OptimiseConfig | None = None) -> None:
        self.config = config or OptimiseConfig()
        self.nodes: list[PoseGraphNode] = []
        self.edges: dict[int, Edge] = {}
        self.solved = 0  # how often
        self._optimiser = Optimiser(self.config)

    def add(self, edge: Edge) -> int:
        """Add an edge; returns its number."""
        number = self._optimiser.add(edge.first, edge.second, edge.measured, edge.information, edge.loop, edge.far)
        self.edges[number] = edge
        return number

    def poses(self) -> NDArray[np.float64]:
        """(n, 3) of the nodes."""
        return np.array([(node.pose.x, node.pose.y, node.pose.theta) for node in self.nodes]).reshape(-1, 3)

    def solve(self) -> int:
        """Move the nodes to where they agree best with the edges; returns how many loops were thrown out on the way."""
        if not self.edges:
            return 0
        poses = self._optimiser.solve(self.poses())
        graph, numbers = self._arrays(poses)
        errors = edge_errors(poses, graph.pairs, graph.measurements, graph.information)
        false = [number for k, number in enumerate(numbers) if graph.loops[k] and errors[k] > self.config.outlier]
        for number in false:
            self._optimiser.drop(number)
            del self.edges[number]
        if false:
            poses = self._optimiser.solve(poses)
        for node, pose in zip(self.nodes, poses.tolist(), strict=True):
            node.pose = SE2(*pose)
        self.solved += 1
        return len(false)

    def pose_graph(self) -> PoseGraph:
        """As arrays."""
        return self._arrays(self.poses())[0]

    def _arrays(self, poses: NDArray[np.float64]) -> tuple[PoseGraph, list[int]]:
        edges = list(self.edges.values())
        measured = [(edge.measured.x, edge.measured.y, edge.measured.theta) for edge in edges]
        graph = PoseGraph(
            times_ns=np.array([node.time_ns for node in self.nodes], dtype=np.int64),
            poses=poses,
            pairs=np.array([(edge.first, edge.second) for edge in edges], dtype=np.int64).reshape(-1, 2),
            measurements=np.array(measured, dtype=np.float64).reshape(-1, 3),
            information=np.array([edge.information for edge in edges], dtype=np.float64).reshape(-1, 3, 3),
            loops=np.array([edge.loop for edge in edges], dtype=np.bool_),
        )
        return graph, list(self.edges)
