"""Where the finished submaps are believed to be, as arrays, so that a scan need not go through them one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.mapping.growing_graph import GrowingGraph
from roboyard.mapping.submaps import Submap


def _none() -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The finished submaps at a glance; (n,) arrays.

    Attributes:
        numbers: Which, in order.
        anchors: The nodes that they began with.
        middles: (n, 2) of their surfaces in the map [m].
        radii: Of their surfaces about the middle [m].
        paths: Way driven until each began [m].
        doubts: By how much odometry and scans had disagreed until then [m].
        parts: Of the map that each belongs to.
        solved: How often the graph had been solved.
    """

    numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    anchors: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    middles: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    radii: NDArray[np.float64] = field(default_factory=_none)
    paths: NDArray[np.float64] = field(default_factory=_none)
    doubts: NDArray[np.float64] = field(default_factory=_none)
    parts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    solved: int = -1

    def of(self, graph: GrowingGraph, submaps: list[Submap], finished: list[int]) -> Whereabouts:
        """The same while the graph was not solved and no submap finished since; else made anew.

        A submap finishes after metres of way, and the graph is solved when it has grown by a share of itself.
        """
        if self.solved == graph.solved and len(finished) == len(self.numbers):
            return self
        anchors = [graph.nodes[submaps[k].anchor] for k in finished]
        middles = [node.pose @ submaps[k].centre for node, k in zip(anchors, finished, strict=True)]
        return Whereabouts(
            numbers=np.array(finished, dtype=np.int64),
            anchors=np.array([submaps[k].anchor for k in finished], dtype=np.int64),
            middles=np.array(middles, dtype=np.float64).reshape(-1, 2),
            radii=np.array([submaps[k].radius for k in finished], dtype=np.float64),
            paths=np.array([submaps[k].path for k in finished], dtype=np.float64),
            doubts=np.array([node.doubt for node in anchors], dtype=np.float64),
            parts=np.array([submaps[k].part for k in finished], dtype=np.int64),
            solved=graph.solved,
        )
