"""Loop detection: a scan is looked for in older submaps near where it is believed to be, and each find is doubted.

The number of submaps looked at for a scan is bounded, so the cost of a scan does not grow with the map.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.mapping.drift import Drift, DriftConfig, Off
from roboyard.mapping.growing_graph import GrowingGraph, PoseGraphNode
from roboyard.mapping.local import step_of
from roboyard.mapping.matching.cells import CellMap
from roboyard.mapping.matching.correlative import Tables, Window, search
from roboyard.mapping.matching.refine import Match, RefineConfig, apart, refine
from roboyard.mapping.matching.sight import seen_through
from roboyard.mapping.preparation import Prepared
from roboyard.mapping.submaps import Submap
from roboyard.mapping.whereabouts import Whereabouts

_TELLING = 1.0 / 0.1**2
"""How well a match has to tell the position in every direction [1/m²]."""
_TOGETHER = 15.0
"""Way within which finds speak for each other [m]."""
_ANOTHER = 2.0
"""Way after which a scan sees something else [m]."""


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """How loops are looked for, and what makes one credible.

    Attributes:
        near: Submaps whose believed place fits a scan at once are tried first, most so many for each scan.
        wide: Submaps searched in a whole window, most so many for each scan.
        far: Submaps searched for each metre of way, where the robot may be for turns that scans told nothing of.
        far_points: Points that a scan needs for that; of more, about so many are taken.
        far_score: Fit that such a search must find.
        drift: Drift that is reckoned with; while it is what is always reckoned with, the believed place is refined
            directly.
        farthest: Largest window [m], to each side.
        turn: Largest window [rad], to each side.
        fit: Share of points that must lie on surfaces.
        overlap: Share of points that must be near a surface.
        through: Largest share of beams that may pass through surfaces.
        score: Fit that a search must find before refinement.
        agreeing: Finds by a window count when so many of them agree with each other.
        agreement: And agree within so many metres, and radians times five.
        tables: Submaps whose search tables are kept.
    """

    near: int = 3
    wide: int = 1
    far: float = 2.0
    far_points: int = 50
    far_score: float = 0.6
    drift: DriftConfig = field(default_factory=DriftConfig)
    farthest: float = 6.0
    turn: float = 0.5
    fit: float = 0.5
    overlap: float = 0.6
    through: float = 0.12
    score: float = 0.45
    agreeing: int = 3
    agreement: float = 0.25
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
        self._drift = Drift(config.drift)
        self._off = Off(np.zeros(0), np.zeros(0), np.zeros(0))
        self._searched = 0.0  # way at which submaps were last searched for a robot that may be far away
        self._turn = 0

    def find(self, graph: GrowingGraph, submaps: list[Submap], finished: list[int], number: int) -> list[Loop]:
        """Loops from a node to finished submaps, those included that it confirms."""
        config, node = self.config, graph.nodes[number]
        self._drift.passed(number, node)
        near, wide, far = self._candidates(graph, submaps, finished, number)
        found = []
        for k in self._spread(near, config.near, number):
            loop = self._near(graph, submaps, k, number)
            if loop is not None:
                found.append(loop)
        telling = [loop for loop in found if _weakest(loop.information) > _TELLING]
        if not any(node.path - submaps[loop.submap].path > 20.0 for loop in telling):
            for k in self._spread(wide, config.wide, number):
                loop = self._wide(graph, submaps, k, number)
                confirmed = [] if loop is None else self.confirmed(graph, submaps, loop)
                telling += confirmed
                found += confirmed
            for k in self._by_turns(far, node):
                loop = self._wide(graph, submaps, k, number, far=True)
                if loop is not None:
                    self._look_back(graph, submaps, loop)
                confirmed = [] if loop is None else self.confirmed(graph, submaps, loop)
                telling += confirmed
                found += confirmed
        for loop in telling:
            submap = submaps[loop.submap]
            if node.path - submap.path > 20.0:
                self._drift.tied(number, node, submap.anchor, graph.nodes[submap.anchor])
        return found

    def _candidates(
        self, graph: GrowingGraph, submaps: list[Submap], finished: list[int], number: int
    ) -> tuple[list[int], list[int], list[int]]:
        """Submaps that the node believes to be in, those that it might be in for its drift, nearest first, and for the
        turns that scans told nothing of."""
        config, node = self.config, graph.nodes[number]
        at = self._whereabouts = self._whereabouts.of(graph, submaps, finished)
        away = np.hypot(at.middles[:, 0] - node.pose.x, at.middles[:, 1] - node.pose.y)
        off = self._off = self._drift.of(graph, number, at)
        foreign = at.parts != node.part
        window = np.where(foreign, config.farthest, np.minimum(off.drift, config.farthest))
        near = away < at.radii
        wide = (foreign | (off.drift > 2.0 * config.drift.sure)) & (away < at.radii + window)
        tells = len(node.scan.points) >= config.far_points
        far = tells & (off.swing > config.drift.sure) & (away < at.radii + window + off.swing)
        order = np.argsort(away, kind="stable")
        near_first, wide_first = (at.numbers[order[which[order]]].tolist() for which in (near, wide))
        return near_first, wide_first, at.numbers[far].tolist()

    def _by_turns(self, candidates: list[int], node: PoseGraphNode) -> list[int]:
        """As many as the way since the last time allows, and the next ones the next time."""
        count = int(self.config.far * (node.path - self._searched)) if candidates else 0
        if count or not candidates:
            self._searched = node.path
        first, self._turn = self._turn, self._turn + count
        return [candidates[k % len(candidates)] for k in range(first, first + min(count, len(candidates)))]

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

    def verify(self, surface: CellMap, node: PoseGraphNode, match: Match) -> bool:
        """Whether a match is credible: enough surfaces, and few beams through walls."""
        config = self.config
        if match.fit < config.fit or match.overlap < config.overlap:
            return False
        return seen_through(surface, node.scan, match.pose) <= config.through

    def refine(self, submaps: list[Submap], k: int, node: PoseGraphNode, start: SE2) -> Match | None:
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
        probe = PoseGraphNode(0, pose, scan, 0.0)
        best: tuple[float, Loop] | None = None
        for _, k in sorted(by_distance)[:4]:
            start = graph.nodes[submaps[k].anchor].pose.inverse() @ pose
            found = search(self.tables(submaps, k), scan.points, start, Window(1.0, 0.5, step_of(scan)))
            match = None if found is None else self.refine(submaps, k, probe, found.pose)
            if match is not None and (best is None or match.fit > best[0]):
                best = match.fit, Loop(k, number, match.pose, match.information, True)
        return None if best is None else best[1]

    def _near(self, graph: GrowingGraph, submaps: list[Submap], k: int, number: int) -> Loop | None:
        node = graph.nodes[number]
        start = graph.nodes[submaps[k].anchor].pose.inverse() @ node.pose
        match = self.refine(submaps, k, node, start)
        if match is None:
            return None
        away, turned = apart(start, match.pose)
        if away > 2.0 * self.config.drift.sure or turned > 0.2:
            return None
        return Loop(k, number, match.pose, match.information, False)

    def _wide(self, graph: GrowingGraph, submaps: list[Submap], k: int, number: int, far: bool = False) -> Loop | None:
        config, node, submap = self.config, graph.nodes[number], submaps[k]
        start = graph.nodes[submap.anchor].pose.inverse() @ node.pose
        points, step = node.scan.points, step_of(node.scan)
        row = int(np.searchsorted(self._whereabouts.numbers, k))
        drift, swing, turned = (float(each[row]) for each in (self._off.drift, self._off.swing, self._off.turned))
        across = min(drift, config.farthest)
        turn = min(0.15 + 0.05 * drift, config.turn)
        if submap.part != node.part:
            across, turn = config.farthest, np.pi
        elif far:  # anywhere in the submap, if need be
            turn = max(turn, turned)
            points, step = points[:: len(points) // config.far_points], 1.5 * step
            across += swing
            if across > submap.radius:
                across, start = submap.radius, SE2(submap.centre[0], submap.centre[1], start.theta)
        least = config.far_score if far else config.score
        best = search(self.tables(submaps, k), points, start, Window(across, turn, step), least)
        if best is None:
            return None
        match = self.refine(submaps, k, node, best.pose)
        if match is None or _weakest(match.information) < _TELLING:
            return None  # a corridor: the scan fits at many places along it
        return Loop(k, number, match.pose, match.information, True)

    def _look_back(self, graph: GrowingGraph, submaps: list[Submap], loop: Loop) -> None:
        """If a find is right, scans before it fit as well: those that do become finds."""
        nodes, last = graph.nodes, graph.nodes[loop.node]
        for number in range(loop.node - 1, -1, -1):
            node = nodes[number]
            if nodes[loop.node].path - node.path > _TOGETHER:
                break
            if last.path - node.path < _ANOTHER or len(node.scan.points) < self.config.far_points:
                continue
            last = node
            match = self.refine(submaps, loop.submap, node, loop.pose @ nodes[loop.node].pose.inverse() @ node.pose)
            if match is not None and _weakest(match.information) > _TELLING:
                self._pending.append(Loop(loop.submap, number, match.pose, match.information, True))

    def confirmed(self, graph: GrowingGraph, submaps: list[Submap], loop: Loop) -> list[Loop]:
        """The loop with those before that agree with it, once they are enough."""
        config = self.config
        node = graph.nodes[loop.node]

        def correction(item: Loop) -> SE2:
            return graph.nodes[submaps[item.submap].anchor].pose @ item.pose @ graph.nodes[item.node].pose.inverse()

        self._pending = [item for item in self._pending if node.path - graph.nodes[item.node].path < _TOGETHER]
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
