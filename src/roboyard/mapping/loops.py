"""Loop detection: a scan is looked for in older submaps near where it is believed to be, and each find is doubted.

The number of submaps looked at for a scan is bounded, so the cost of a scan does not grow with the map.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry import SE2
from roboyard.mapping.growing_graph import GrowingGraph, Node
from roboyard.mapping.local import step_of
from roboyard.mapping.matching.cells import CellMap
from roboyard.mapping.matching.correlative import Tables, Window, search
from roboyard.mapping.matching.refine import Match, RefineConfig, apart, refine
from roboyard.mapping.matching.sight import seen_through
from roboyard.mapping.preparation import Prepared
from roboyard.mapping.submaps import Submap
from roboyard.mapping.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """How loops are looked for, and what makes one credible.

    Attributes:
        near: Submaps whose believed place fits a scan at once are tried first, most so many for each scan.
        wide: Submaps searched in a whole window, most so many for each scan.
        drift: Drift that is reckoned with, in proportion to the way between scan and submap.
        sure: Drift that is always reckoned with [m]; while it is no more, the believed place is refined directly.
        farthest: Largest window [m], to each side.
        turn: Largest window [rad], to each side.
        fit: Share of points that must lie on surfaces.
        overlap: Share of points that must be near a surface.
        through: Largest share of beams that may pass through surfaces.
        score: Fit that a search must find before refinement.
        agreeing: Finds by a window count when so many of them agree with each other.
        agreement: And agree within so many metres, and radians times five.
        ties: Loops of late that drift is reckoned over.
        tables: Submaps whose search tables are kept.
    """

    near: int = 3
    wide: int = 1
    drift: float = 0.04
    sure: float = 0.35
    farthest: float = 6.0
    turn: float = 0.5
    fit: float = 0.5
    overlap: float = 0.6
    through: float = 0.12
    score: float = 0.45
    agreeing: int = 3
    agreement: float = 0.25
    ties: int = 60
    tables: int = 32


@dataclass(frozen=True, slots=True)
class Loop:
    """A scan found in a submap: ``T_anchor_base`` with its inverse covariance in the anchor's frame."""

    submap: int
    node: int
    pose: SE2
    information: NDArray[np.float64]
    wide: bool


class LoopFinder:
    """Finds loops.

    Args:
        config: How.
        refining: How matches are refined.
        half: Half the side of a submap [m].
    """

    def __init__(self, config: LoopConfig, refining: RefineConfig, half: float) -> None:
        self.config = config
        self.refining = refining
        self._surface = CellMap(half)
        self._loaded = -1
        self._whereabouts = Whereabouts()
        self._tables: OrderedDict[int, Tables] = OrderedDict()
        self._pending: list[Loop] = []
        # way and doubt at nodes that loops told the place of, and at the submaps' beginnings
        self._ties: deque[tuple[float, float, float, float]] = deque(maxlen=config.ties)

    def find(self, graph: GrowingGraph, submaps: list[Submap], finished: list[int], number: int) -> list[Loop]:
        """Loops from a node to finished submaps, those included that it confirms."""
        config, node = self.config, graph.nodes[number]
        near, wide = self._candidates(graph, submaps, finished, node)
        found = []
        for k in self._spread(near, config.near, number):
            loop = self._near(graph, submaps, k, number)
            if loop is not None:
                found.append(loop)
        telling = [loop for loop in found if _weakest(loop.information) > 1.0 / 0.1**2]
        if not any(node.path - submaps[loop.submap].path > 20.0 for loop in telling):
            for k in self._spread(wide, config.wide, number):
                loop = self._wide(graph, submaps, k, number)
                confirmed = [] if loop is None else self.confirmed(graph, submaps, loop)
                telling += confirmed
                found += confirmed
        for loop in telling:
            submap = submaps[loop.submap]
            if node.path - submap.path > 20.0:
                self._ties.append((node.path, node.doubt, submap.path, graph.nodes[submap.anchor].doubt))
        return found

    def _candidates(
        self, graph: GrowingGraph, submaps: list[Submap], finished: list[int], node: Node
    ) -> tuple[list[int], list[int]]:
        """Submaps that the node believes to be in, and those that it might be in for all it knows; nearest first."""
        config = self.config
        at = self._whereabouts = self._whereabouts.of(graph, submaps, finished)
        away = np.hypot(at.middles[:, 0] - node.pose.x, at.middles[:, 1] - node.pose.y)
        drift = self._drift(at.paths, at.doubts, node)
        foreign = at.parts != node.part
        window = np.where(foreign, config.farthest, np.minimum(drift, config.farthest))
        near = away < at.radii
        wide = (foreign | (drift > 2.0 * config.sure)) & (away < at.radii + window)
        order = np.argsort(away, kind="stable")
        return at.numbers[order[near[order]]].tolist(), at.numbers[order[wide[order]]].tolist()

    @staticmethod
    def _spread(candidates: list[int], count: int, turn: int) -> list[int]:
        """The nearest, and the others by turns: over the scans of a place every submap there is tried."""
        if len(candidates) <= count:
            return candidates
        first = max(count - 1, 0)
        others = candidates[first:]
        return [*candidates[:first], others[turn % len(others)]]

    def forget(self, numbers: list[int]) -> None:
        """Submaps that will still change."""
        self._loaded = -1
        for number in numbers:
            self._tables.pop(number, None)

    def load(self, submaps: list[Submap], number: int) -> CellMap:
        """The surfaces of a finished submap."""
        cells = submaps[number].cells
        if self._loaded != number and cells is not None:
            self._surface.load(cells)
            self._loaded = number
        return self._surface

    def tables(self, submaps: list[Submap], number: int) -> Tables:
        """The search tables of a finished submap."""
        if number in self._tables:
            self._tables.move_to_end(number)
        else:
            self._tables[number] = Tables.of(self.load(submaps, number).means)
            if len(self._tables) > self.config.tables:
                self._tables.popitem(last=False)
        return self._tables[number]

    def verify(self, surface: CellMap, node: Node, match: Match) -> bool:
        """Whether a match is credible: enough surfaces, and few beams through walls."""
        config = self.config
        if match.fit < config.fit or match.overlap < config.overlap:
            return False
        return seen_through(surface, node.scan, match.pose) <= config.through

    def refine(self, submaps: list[Submap], k: int, node: Node, start: SE2) -> Match | None:
        """A credible match near ``start`` (``T_anchor_base``), or None."""
        surface = self.load(submaps, k)
        match = refine(surface, node.scan, start, self.refining)
        return match if self.verify(surface, node, match) else None

    def around(
        self, graph: GrowingGraph, submaps: list[Submap], finished: list[int], scan: Prepared, pose: SE2, number: int
    ) -> Loop | None:
        """A scan that is said to be at ``pose`` (``T_map_base``), searched a metre around in the nearest submaps."""
        by_distance = []
        for k in finished:
            anchor = graph.nodes[submaps[k].anchor].pose
            by_distance.append((float(np.hypot(*(anchor @ submaps[k].centre - pose.xy))), k))
        probe = Node(0, pose, scan, 0.0)
        best: tuple[float, Loop] | None = None
        for _, k in sorted(by_distance)[:4]:
            start = graph.nodes[submaps[k].anchor].pose.inverse() @ pose
            found = search(self.tables(submaps, k), scan.points, start, Window(1.0, 0.5, step_of(scan)))
            match = None if found is None else self.refine(submaps, k, probe, found.pose)
            if match is not None and (best is None or match.fit > best[0]):
                best = match.fit, Loop(k, number, match.pose, match.information, True)
        return None if best is None else best[1]

    def _drift(self, paths: ArrayLike, doubts: ArrayLike, node: Node) -> NDArray[np.float64]:
        """How far off submaps' believed places may be, seen from a node [m]: by the way there, or over a loop.

        Args:
            paths: (n,) way at which each begins [m].
            doubts: (n,) doubt there [m].
            node: Who sees them.
        """
        share, paths, doubts = self.config.drift, np.atleast_1d(paths), np.atleast_1d(doubts)
        least = share * (node.path - paths) + node.doubt - doubts
        if self._ties:
            ties = np.array(self._ties)
            way = (node.path - ties[:, 0]) + np.abs(ties[:, 2] - paths[:, None])
            over = share * way + (node.doubt - ties[:, 1]) + np.abs(ties[:, 3] - doubts[:, None])
            least = np.minimum(least, over.min(axis=1))
        return np.asarray(self.config.sure + least)

    def _near(self, graph: GrowingGraph, submaps: list[Submap], k: int, number: int) -> Loop | None:
        node = graph.nodes[number]
        start = graph.nodes[submaps[k].anchor].pose.inverse() @ node.pose
        match = self.refine(submaps, k, node, start)
        if match is None:
            return None
        away, turned = apart(start, match.pose)
        if away > 2.0 * self.config.sure or turned > 0.2:
            return None
        return Loop(k, number, match.pose, match.information, False)

    def _wide(self, graph: GrowingGraph, submaps: list[Submap], k: int, number: int) -> Loop | None:
        config, node = self.config, graph.nodes[number]
        tables = self.tables(submaps, k)
        anchor = graph.nodes[submaps[k].anchor]
        start = anchor.pose.inverse() @ node.pose
        drift = float(self._drift(submaps[k].path, anchor.doubt, node)[0])
        across = min(drift, config.farthest)
        turn = min(0.15 + 0.05 * drift, config.turn)
        if submaps[k].part != node.part:
            across, turn = config.farthest, np.pi
        points = node.scan.points
        best = search(tables, points, start, Window(across, turn, step_of(node.scan)), config.score)
        if best is None:
            return None
        match = self.refine(submaps, k, node, best.pose)
        if match is None or _weakest(match.information) < 1.0 / 0.1**2:
            return None  # a corridor: the scan fits at many places along it
        return Loop(k, number, match.pose, match.information, True)

    def confirmed(self, graph: GrowingGraph, submaps: list[Submap], loop: Loop) -> list[Loop]:
        """The loop with those before that agree with it, once they are enough."""
        config = self.config
        node = graph.nodes[loop.node]

        def correction(item: Loop) -> SE2:
            return graph.nodes[submaps[item.submap].anchor].pose @ item.pose @ graph.nodes[item.node].pose.inverse()

        self._pending = [item for item in self._pending if node.path - graph.nodes[item.node].path < 15.0]
        here = correction(loop) @ node.pose
        agreeing = []
        for item in self._pending:
            away, turned = apart(correction(item) @ node.pose, here)
            if away + 5.0 * turned < 2.0 * config.agreement and item.node != loop.node:
                agreeing.append(item)
        if len(agreeing) + 1 >= config.agreeing:
            self._pending = [item for item in self._pending if all(item is not other for other in agreeing)]
            return [*agreeing, loop]
        self._pending.append(loop)
        return []


def _weakest(information: NDArray[np.float64]) -> float:
    """How well a match tells the position in the direction that it tells worst [1/m²]."""
    return float(np.linalg.eigvalsh(information[:2, :2])[0])
