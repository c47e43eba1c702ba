"""How far off a scan's believed place may be, seen from another part of the map: what loops have to be looked for."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.mapping.growing_graph import GrowingGraph, PoseGraphNode
from roboyard.mapping.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class DriftConfig:
    """What drift is reckoned with.

    Attributes:
        share: In proportion to the way.
        sure: Always [m].
        ties: Loops of late that it is reckoned over.
    """

    share: float = 0.04
    sure: float = 0.35
    ties: int = 60


@dataclass(frozen=True, slots=True)
class Off:
    """How far off places (n,) may be.

    Attributes:
        drift: For the way, and where scans and odometry contradicted each other [m].
        swing: For headings that scans told nothing of: a place far away is far off [m].
        turned: And by how much that is turned [rad].
    """

    drift: NDArray[np.float64]
    swing: NDArray[np.float64]
    turned: NDArray[np.float64]


class Drift:
    """What is known about drift, by the way driven: directly, or over loops that were found.

    Args:
        config: What is reckoned with.
    """

    def __init__(self, config: DriftConfig) -> None:
        self.config = config
        # number, way and doubt of nodes that loops told the place of, and of the submaps' anchors
        self._ties: deque[tuple[int, float, float, int, float, float]] = deque(maxlen=config.ties)
        self._joints: list[tuple[int, int, float]] = []  # nodes about which the rest may have swung: first, last, angle

    def passed(self, number: int, node: PoseGraphNode) -> None:
        """The next node: where scans in a row tell nothing odometry errs in the same manner all along."""
        if node.blind <= 0.0:
            return
        goes_on = bool(self._joints) and self._joints[-1][1] == number - 1
        first, _, angle = self._joints.pop() if goes_on else (number, number, 0.0)
        self._joints.append((first, number, angle + node.blind))

    def tied(self, number: int, node: PoseGraphNode, anchor: int, at: PoseGraphNode) -> None:
        """A loop ties a node to the submap with that anchor."""
        self._ties.append((number, node.path, node.doubt, anchor, at.path, at.doubt))

    def of(self, graph: GrowingGraph, number: int, submaps: Whereabouts) -> Off:
        """How far off the believed places of submaps may be, seen from a node."""
        node = graph.nodes[number]
        here = number, node.path, node.doubt
        ties = np.array([(*here, *here), *self._ties])  # the first: directly
        way = (node.path - ties[:, 1]) + np.abs(ties[:, 4] - submaps.paths[:, None])
        doubt = (node.doubt - ties[:, 2]) + np.abs(ties[:, 5] - submaps.doubts[:, None])
        joints = [joint[0] for joint in self._joints]
        turned = np.array([joint[2] for joint in self._joints])
        away = np.array([graph.nodes[joint].pose.distance(node.pose) for joint in joints])
        at = [np.searchsorted(joints, which, side="right") for which in (ties[:, 0], ties[:, 3], submaps.anchors)]

        def unseen(errors: NDArray[np.float64]) -> NDArray[np.float64]:
            sums = np.concatenate([[0.0], np.cumsum(errors**2)])
            variance = (sums[-1] - sums[at[0]]) + np.abs(sums[at[1]] - sums[at[2]][:, None])
            return np.asarray(np.sqrt(variance))

        drift, swing = self.config.share * way + doubt, unseen(away * turned)
        best = np.argmin(drift + swing, axis=1)[:, None]
        pick = [np.take_along_axis(each, best, axis=1)[:, 0] for each in (drift, swing, unseen(turned))]
        return Off(self.config.sure + pick[0], pick[1], pick[2])
