"""Ways over a graph of lanes that people drew."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.navigation.errors import NoPath
from roboyard.navigation.path import Path


@dataclass(frozen=True, slots=True)
class RouteNode:
    """A place.

    Attributes:
        id: Its number.
        x: In the map [m].
        y: In the map [m].
        metadata: What else was said of it.
    """

    id: int
    x: float
    y: float
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RouteEdge:
    """A lane from node to node.

    Attributes:
        id: Its number.
        start: Node it begins at.
        end: Node it ends at.
        line: (n, 2) its points in the map, those of both nodes included [m].
        cost: What driving it costs; 0: its length.
        two_way: Whether it may be driven from end to start, too.
        metadata: What else was said of it.
    """

    id: int
    start: int
    end: int
    line: NDArray[np.float64]
    cost: float = 0.0
    two_way: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def length(self) -> float:
        """Of its line [m]."""
        return float(np.linalg.norm(np.diff(self.line, axis=0), axis=1).sum())

    @property
    def price(self) -> float:
        """What driving all of it costs."""
        return self.cost or self.length

    def speed(self, highest: float) -> float:
        """The speed allowed on it [m/s]: ``abs_speed_limit`` in m/s, ``speed_limit`` in per cent, as Nav2 has them."""
        limit = self.metadata.get("abs_speed_limit", math.inf)
        return min(highest, float(limit), highest * float(self.metadata.get("speed_limit", 100.0)) / 100.0)


@dataclass(frozen=True, slots=True)
class Route:
    """A way over a graph.

    Attributes:
        path: From pose to pose, straight to the graph and from it.
        edges: Numbers of the edges, in order.
        nodes: Numbers of the nodes passed, in order.
        cost: Of the edges, partly driven ones in part, and of the metres beside the graph.
        starts: (m,) index of the first pose on each of the edges.
    """

    path: Path
    edges: tuple[int, ...]
    nodes: tuple[int, ...]
    cost: float
    starts: tuple[int, ...]


@dataclass(frozen=True)
class RouteGraph:
    """Lanes between places.

    Attributes:
        nodes: By number.
        edges: In the file's order.  Several may share a number, as in graphs of Nav2; they are closed together.
        closed: Numbers of edges that must not be driven now.
    """

    nodes: Mapping[int, RouteNode]
    edges: tuple[RouteEdge, ...]
    closed: frozenset[int] = frozenset()

    def closing(self, edges: Iterable[int]) -> RouteGraph:
        """The graph with edges closed as well.

        Raises:
            UnknownNameError: an edge that is none.
        """
        return replace(self, closed=self.closed | self._known(edges))

    def opening(self, edges: Iterable[int]) -> RouteGraph:
        """The graph with edges open again; raises as ``closing``."""
        return replace(self, closed=self.closed - self._known(edges))

    def route(self, start: SE2, goal: SE2) -> Route:
        """The cheapest way from the graph's place nearest to the start to that nearest to the goal.

        Raises:
            InputError: a pose that is not finite.
            NoPath: no open edge, or none of them leads there.
        """
        if not np.isfinite([start.x, start.y, start.theta, goal.x, goal.y, goal.theta]).all():
            raise InputError("a pose that is not finite", location="route", valid="metres and radians")
        first, last = self._nearest(start.xy), self._nearest(goal.xy)
        if first is None or last is None:
            raise NoPath("no edge of the graph is open", valid="an open edge")
        pieces = self._cheapest(first, last)
        if pieces is None:
            raise NoPath(
                f"no open edges lead from edge {self.edges[first[0]].id} to edge {self.edges[last[0]].id}",
                valid=f"{len(self.closed)} edges are closed" if self.closed else "edges that join them",
            )
        return self._drawn(pieces, start, goal)

    def _known(self, edges: Iterable[int]) -> frozenset[int]:
        numbers = frozenset(edges)
        known = {edge.id for edge in self.edges}
        unknown = sorted(numbers - known)
        if unknown:
            raise UnknownNameError(f"no edge {unknown[0]}", location="route graph", valid=_some(sorted(known)))
        return numbers

    def _open(self) -> list[int]:
        return [number for number, edge in enumerate(self.edges) if edge.id not in self.closed]

    def _nearest(self, point: NDArray[np.float64]) -> tuple[int, float] | None:
        """The open edge nearest to a point, and at which share of its length."""
        best, found = math.inf, None
        for number in self._open():
            line = self.edges[number].line
            steps = np.diff(line, axis=0)
            lengths = np.linalg.norm(steps, axis=1)
            along = ((point - line[:-1]) * steps).sum(axis=1) / np.maximum(lengths**2, 1e-12)
            shares = np.clip(along, 0.0, 1.0)
            away = np.linalg.norm(line[:-1] + shares[:, None] * steps - point, axis=1)
            k = int(np.argmin(away))
            if away[k] < best - 1e-12:
                before = lengths[:k].sum() + shares[k] * lengths[k]
                best, found = float(away[k]), (number, float(before / max(lengths.sum(), 1e-12)))
        return found

    def _cheapest(self, first: tuple[int, float], last: tuple[int, float]) -> list[tuple[int, float, float]] | None:
        """Pieces of edges: number, and from which share to which; None if there are none."""
        edge, share = self.edges[first[0]], first[1]
        goal, end = self.edges[last[0]], last[1]
        best, pieces = math.inf, None
        if first[0] == last[0] and (end >= share or edge.two_way):
            best, pieces = abs(end - share) * edge.price, [(first[0], share, end)]
        # how to come to the goal's place from the nodes of its edge
        arrivals = {goal.start: (goal.price * end, (last[0], 0.0, end))}
        if goal.two_way and goal.price * (1.0 - end) < arrivals.get(goal.end, (math.inf,))[0]:
            arrivals[goal.end] = goal.price * (1.0 - end), (last[0], 1.0, end)
        leaving: dict[int, list[tuple[int, int, bool]]] = {}
        for number in self._open():
            other = self.edges[number]
            leaving.setdefault(other.start, []).append((other.end, number, True))
            if other.two_way:
                leaving.setdefault(other.end, []).append((other.start, number, False))
        queue: list[tuple[float, int]] = []
        came: dict[int, tuple[float, int | None, tuple[int, float, float]]] = {}

        def reach(node: int, cost: float, before: int | None, piece: tuple[int, float, float]) -> None:
            if node not in came or cost < came[node][0]:
                came[node] = cost, before, piece
                heapq.heappush(queue, (cost, node))

        reach(edge.end, edge.price * (1.0 - share), None, (first[0], share, 1.0))
        if edge.two_way:
            reach(edge.start, edge.price * share, None, (first[0], share, 0.0))
        elif share == 0.0:
            reach(edge.start, 0.0, None, (first[0], 0.0, 0.0))
        done: set[int] = set()
        while queue:
            cost, node = heapq.heappop(queue)
            if node in done:
                continue
            done.add(node)
            if cost >= best:
                break
            if node in arrivals and cost + arrivals[node][0] < best:
                best = cost + arrivals[node][0]
                pieces = [*self._back(came, node), arrivals[node][1]]
            for there, number, ahead in leaving.get(node, ()):
                piece = (number, 0.0, 1.0) if ahead else (number, 1.0, 0.0)
                reach(there, cost + self.edges[number].price, node, piece)
        return pieces

    @staticmethod
    def _back(
        came: Mapping[int, tuple[float, int | None, tuple[int, float, float]]], node: int
    ) -> list[tuple[int, float, float]]:
        pieces = []
        here: int | None = node
        while here is not None:
            _, before, piece = came[here]
            pieces.append(piece)
            here = before
        return pieces[::-1]

    def _drawn(self, pieces: list[tuple[int, float, float]], start: SE2, goal: SE2) -> Route:
        lines, edges, nodes, starts, cost, count = [start.xy[None]], [], [], [], 0.0, 1
        for number, here, there in pieces:
            edge = self.edges[number]
            if here == there and len(pieces) > 1:
                continue
            points = _part(edge.line, here, there)
            lines.append(points)
            edges.append(edge.id)
            starts.append(count)
            count += len(points)
            cost += abs(there - here) * edge.price
            if there in (0.0, 1.0):
                nodes.append(edge.end if there == 1.0 else edge.start)
        lines.append(goal.xy[None])
        way = np.concatenate(lines)
        cost += float(np.linalg.norm(way[1] - way[0]) + np.linalg.norm(way[-1] - way[-2]))
        steps = np.diff(way, axis=0)
        headings = np.arctan2(steps[:, 1], steps[:, 0])
        moving = np.linalg.norm(steps, axis=1) > 1e-9
        for k in range(len(headings)):
            if not moving[k]:
                headings[k] = headings[k - 1] if k else start.theta
        poses = np.column_stack([way, np.append(headings, goal.theta)])
        return Route(Path(poses, cost), tuple(edges), tuple(nodes), cost, tuple(starts))


def _part(line: NDArray[np.float64], here: float, there: float) -> NDArray[np.float64]:
    """Points of a line from one share of its length to another."""
    if there < here:
        return _part(line, there, here)[::-1]
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    low, high = here * along[-1], there * along[-1]
    places = np.concatenate([[low], along[(along > low + 1e-9) & (along < high - 1e-9)], [high]])
    return np.column_stack([np.interp(places, along, line[:, k]) for k in range(2)])


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:20])) + (", …" if len(numbers) > 20 else "")
