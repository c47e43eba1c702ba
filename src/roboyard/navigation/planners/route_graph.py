"""Route graph of nodes and edges: its GeoJSON format (as of Nav2's route server), route search, and a planner.

Nodes are features of type Point with a property ``id``; edges are features of type LineString or MultiLineString with
``id``, ``startid`` and ``endid``, and are one-way.  ``cost`` and ``metadata`` are optional, and so is ``two_way``, an
extension of the format.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.config import check, parameter
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.path import Path, resample_polyline
from roboyard.navigation.planners.fast_marching import FastMarchingPlanner
from roboyard.navigation.planners.planner import TraversalCosts, evaluate_path


@dataclass(frozen=True, slots=True)
class RouteNode:
    """A node of a route graph.

    Attributes:
        id: Number of the node.
        x: Position in the map [m].
        y: Position in the map [m].
        metadata: Further values of the file.
    """

    id: int
    x: float
    y: float
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RouteEdge:
    """An edge of a route graph: a lane from node to node.

    Attributes:
        id: Number of the edge.
        start: Id of the node at which it starts.
        end: Id of the node at which it ends.
        polyline: (n, 2) points in the map, those of both nodes included [m].
        explicit_cost: Cost of the edge; 0: its length.
        two_way: Whether robots may also drive from the end to the start.
        metadata: Further values of the file.
    """

    id: int
    start: int
    end: int
    polyline: NDArray[np.float64]
    explicit_cost: float = 0.0
    two_way: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def length(self) -> float:
        """Length of the polyline [m]."""
        return float(np.linalg.norm(np.diff(self.polyline, axis=0), axis=1).sum())

    @property
    def cost(self) -> float:
        """Cost of driving the whole edge."""
        return self.explicit_cost or self.length

    def speed_limit(self, robot_max_speed: float) -> float:
        """Return the speed limit [m/s]: of ``abs_speed_limit`` in m/s and ``speed_limit`` in percent, as in Nav2."""
        limit = self.metadata.get("abs_speed_limit", math.inf)
        return min(
            robot_max_speed, float(limit), robot_max_speed * float(self.metadata.get("speed_limit", 100.0)) / 100.0
        )


@dataclass(frozen=True, slots=True)
class Route:
    """A route over a graph.

    Attributes:
        path: Poses from the start straight to the graph, over its edges, and straight to the goal.
        edges: Ids of the edges, in order.
        nodes: Ids of the passed nodes, in order.
        cost: Cost of the edges, in proportion of partly driven ones, and of the distances beside the graph.
        edge_start_indices: (m,) index of the first pose on each of the edges.
    """

    path: Path
    edges: tuple[int, ...]
    nodes: tuple[int, ...]
    cost: float
    edge_start_indices: tuple[int, ...]


@dataclass(frozen=True)
class RouteGraph:
    """Nodes and edges over which robots drive.

    Attributes:
        nodes: Nodes by id.
        edges: Edges in the order of the file.  Several may share an id, as in graphs of Nav2; they close together.
        closed: Ids of edges that robots must not drive at present.
    """

    nodes: Mapping[int, RouteNode]
    edges: tuple[RouteEdge, ...]
    closed: frozenset[int] = frozenset()

    def with_closed_edges(self, edges: Iterable[int]) -> RouteGraph:
        """Return the graph with further edges closed.

        Raises:
            UnknownNameError: There is no edge of an id.
        """
        return replace(self, closed=self.closed | self._require_edges(edges))

    def with_open_edges(self, edges: Iterable[int]) -> RouteGraph:
        """Return the graph with edges open again.

        Raises:
            UnknownNameError: There is no edge of an id.
        """
        return replace(self, closed=self.closed - self._require_edges(edges))

    def find_route(self, start: SE2, goal: SE2) -> Route:
        """Find the cheapest route from the point of the graph nearest to the start to that nearest to the goal.

        Raises:
            InputError: A pose is not finite.
            NoPathError: No edge is open, or no open edges connect the two points.
        """
        if not np.isfinite([start.x, start.y, start.theta, goal.x, goal.y, goal.theta]).all():
            raise InputError("a pose that is not finite", location="route", valid="metres and radians")
        first, last = self._nearest_edge(start.xy), self._nearest_edge(goal.xy)
        if first is None or last is None:
            raise NoPathError("no edge of the graph is open", valid="an open edge")
        pieces = self._find_edge_parts(first, last)
        if pieces is None:
            raise NoPathError(
                f"no open edges lead from edge {self.edges[first[0]].id} to edge {self.edges[last[0]].id}",
                valid=f"{len(self.closed)} edges are closed" if self.closed else "edges that join them",
            )
        return self._make_route(pieces, start, goal)

    def _require_edges(self, edges: Iterable[int]) -> frozenset[int]:
        edge_ids = frozenset(edges)
        existing_ids = {edge.id for edge in self.edges}
        missing_ids = sorted(edge_ids - existing_ids)
        if missing_ids:
            raise UnknownNameError(
                f"no edge {missing_ids[0]}", location="route graph", valid=_list_some(sorted(existing_ids))
            )
        return edge_ids

    def _open_edges(self) -> list[int]:
        return [number for number, edge in enumerate(self.edges) if edge.id not in self.closed]

    def _nearest_edge(self, point: NDArray[np.float64]) -> tuple[int, float] | None:
        """Return the index of the open edge nearest to a point, and the fraction of its length there."""
        best, nearest = math.inf, None
        for number in self._open_edges():
            line = self.edges[number].polyline
            steps = np.diff(line, axis=0)
            lengths = np.linalg.norm(steps, axis=1)
            along = ((point - line[:-1]) * steps).sum(axis=1) / np.maximum(lengths**2, 1e-12)
            fractions = np.clip(along, 0.0, 1.0)
            distances = np.linalg.norm(line[:-1] + fractions[:, None] * steps - point, axis=1)
            k = int(np.argmin(distances))
            if distances[k] < best - 1e-12:
                before = lengths[:k].sum() + fractions[k] * lengths[k]
                best, nearest = float(distances[k]), (number, float(before / max(lengths.sum(), 1e-12)))
        return nearest

    def _find_edge_parts(
        self, first: tuple[int, float], last: tuple[int, float]
    ) -> list[tuple[int, float, float]] | None:
        """Return the parts of edges of the route: index, and first and last fraction; None if there is no route."""
        edge, start_fraction = self.edges[first[0]], first[1]
        goal, goal_fraction = self.edges[last[0]], last[1]
        best, parts = math.inf, None
        if first[0] == last[0] and (goal_fraction >= start_fraction or edge.two_way):
            best, parts = abs(goal_fraction - start_fraction) * edge.cost, [(first[0], start_fraction, goal_fraction)]
        # costs of the last part of the route, from each node of the goal's edge
        arrivals = {goal.start: (goal.cost * goal_fraction, (last[0], 0.0, goal_fraction))}
        if goal.two_way and goal.cost * (1.0 - goal_fraction) < arrivals.get(goal.end, (math.inf,))[0]:
            arrivals[goal.end] = goal.cost * (1.0 - goal_fraction), (last[0], 1.0, goal_fraction)
        leaving: dict[int, list[tuple[int, int, bool]]] = {}
        for number in self._open_edges():
            other = self.edges[number]
            leaving.setdefault(other.start, []).append((other.end, number, True))
            if other.two_way:
                leaving.setdefault(other.end, []).append((other.start, number, False))
        queue: list[tuple[float, int]] = []
        predecessors: dict[int, tuple[float, int | None, tuple[int, float, float]]] = {}

        def relax(node: int, cost: float, before: int | None, piece: tuple[int, float, float]) -> None:
            if node not in predecessors or cost < predecessors[node][0]:
                predecessors[node] = cost, before, piece
                heapq.heappush(queue, (cost, node))

        relax(edge.end, edge.cost * (1.0 - start_fraction), None, (first[0], start_fraction, 1.0))
        if edge.two_way:
            relax(edge.start, edge.cost * start_fraction, None, (first[0], start_fraction, 0.0))
        elif start_fraction == 0.0:
            relax(edge.start, 0.0, None, (first[0], 0.0, 0.0))
        closed_nodes: set[int] = set()
        while queue:
            cost, node = heapq.heappop(queue)
            if node in closed_nodes:
                continue
            closed_nodes.add(node)
            if cost >= best:
                break
            if node in arrivals and cost + arrivals[node][0] < best:
                best = cost + arrivals[node][0]
                parts = [*self._trace_parts(predecessors, node), arrivals[node][1]]
            for neighbor, number, is_forward in leaving.get(node, ()):
                piece = (number, 0.0, 1.0) if is_forward else (number, 1.0, 0.0)
                relax(neighbor, cost + self.edges[number].cost, node, piece)
        return parts

    @staticmethod
    def _trace_parts(
        predecessors: Mapping[int, tuple[float, int | None, tuple[int, float, float]]], node: int
    ) -> list[tuple[int, float, float]]:
        parts = []
        current: int | None = node
        while current is not None:
            _, before, piece = predecessors[current]
            parts.append(piece)
            current = before
        return parts[::-1]

    def _make_route(self, parts: list[tuple[int, float, float]], start: SE2, goal: SE2) -> Route:
        polylines, edges, nodes, edge_start_indices, cost, count = [start.xy[None]], [], [], [], 0.0, 1
        for number, start_fraction, end_fraction in parts:
            edge = self.edges[number]
            if start_fraction == end_fraction and len(parts) > 1:
                continue
            points = _cut_polyline(edge.polyline, start_fraction, end_fraction)
            polylines.append(points)
            edges.append(edge.id)
            edge_start_indices.append(count)
            count += len(points)
            cost += abs(end_fraction - start_fraction) * edge.cost
            if end_fraction in (0.0, 1.0):
                nodes.append(edge.end if end_fraction == 1.0 else edge.start)
        polylines.append(goal.xy[None])
        polyline = np.concatenate(polylines)
        cost += float(np.linalg.norm(polyline[1] - polyline[0]) + np.linalg.norm(polyline[-1] - polyline[-2]))
        steps = np.diff(polyline, axis=0)
        headings = np.arctan2(steps[:, 1], steps[:, 0])
        moving = np.linalg.norm(steps, axis=1) > 1e-9
        for k in range(len(headings)):
            if not moving[k]:
                headings[k] = headings[k - 1] if k else start.theta
        poses = np.column_stack([polyline, np.append(headings, goal.theta)])
        return Route(Path(poses, cost), tuple(edges), tuple(nodes), cost, tuple(edge_start_indices))


def _cut_polyline(polyline: NDArray[np.float64], start_fraction: float, end_fraction: float) -> NDArray[np.float64]:
    """Return the points of a polyline from one fraction of its length to another."""
    if end_fraction < start_fraction:
        return _cut_polyline(polyline, end_fraction, start_fraction)[::-1]
    arc_lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(polyline, axis=0), axis=1))])
    low, high = start_fraction * arc_lengths[-1], end_fraction * arc_lengths[-1]
    distances = np.concatenate([[low], arc_lengths[(arc_lengths > low + 1e-9) & (arc_lengths < high - 1e-9)], [high]])
    return np.column_stack([np.interp(distances, arc_lengths, polyline[:, k]) for k in range(2)])


def _list_some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:20])) + (", …" if len(numbers) > 20 else "")


_MAX_FILE_SIZE = 64_000_000
"""Size from which a file is rejected [bytes]."""


def load_route_graph(path: FilePath | str, *, two_way: bool = False) -> RouteGraph:
    """Load a graph from a GeoJSON file.

    Args:
        path: The file.
        two_way: Whether all edges may be driven in both directions.

    Raises:
        InputError: The file cannot be read, is no such graph, or contradicts itself; the error names the feature.
    """
    graph_file = FilePath(path)
    try:
        if graph_file.stat().st_size > _MAX_FILE_SIZE:
            raise InputError(f"has {graph_file.stat().st_size / 1e6:.0f} MB", location=str(path), valid="at most 64 MB")
        text = graph_file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", location=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("is no text", location=str(path), valid="GeoJSON in UTF-8") from error
    return parse_route_graph(text, two_way=two_way, location=str(path))


def parse_route_graph(text: str, *, two_way: bool = False, location: str = "route graph") -> RouteGraph:
    """Parse a graph in GeoJSON; arguments and errors are those of `load_route_graph`, ``location`` names the text."""
    try:
        data = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}", location=location, valid="GeoJSON") from error
    features = data.get("features") if isinstance(data, dict) else None
    if not isinstance(features, list):
        raise InputError("holds no list of features", location=location, valid="a GeoJSON FeatureCollection")
    nodes: dict[int, RouteNode] = {}
    edges: list[RouteEdge] = []
    edge_keys: set[tuple[int, int, int]] = set()
    edge_features = []
    for number, feature in enumerate(features):
        feature_location = f"{location}: feature {number}"
        geometry_type, coordinates, properties = _split_feature(feature, feature_location)
        if geometry_type == "Point":
            node = RouteNode(
                _parse_id(properties, "id", feature_location),
                *_parse_point(coordinates, feature_location),
                _parse_metadata(properties, feature_location),
            )
            if node.id in nodes:
                raise InputError(f"a second node {node.id}", location=feature_location, valid="each id once")
            nodes[node.id] = node
        elif geometry_type in ("LineString", "MultiLineString"):
            edge_features.append((feature_location, geometry_type, coordinates, properties))
        else:
            raise InputError(
                f"a geometry of type {geometry_type!r}",
                location=feature_location,
                valid="Point, LineString or MultiLineString",
            )
    for feature_location, geometry_type, coordinates, properties in edge_features:
        edge = _parse_edge(feature_location, geometry_type, coordinates, properties, nodes, two_way)
        if (edge.id, edge.start, edge.end) in edge_keys:
            raise InputError(
                f"a second edge {edge.id} from {edge.start} to {edge.end}", location=feature_location, valid="each once"
            )
        edge_keys.add((edge.id, edge.start, edge.end))
        edges.append(edge)
    if not nodes:
        raise InputError("holds no node", location=location, valid="features of type Point")
    return RouteGraph(nodes, tuple(edges))


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _split_feature(feature: Any, location: str) -> tuple[str, Any, dict[str, Any]]:
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    if not isinstance(geometry, dict) or not isinstance(geometry.get("type"), str):
        raise InputError("has no geometry", location=location, valid="type and coordinates")
    properties = feature.get("properties")
    return geometry["type"], geometry.get("coordinates"), properties if isinstance(properties, dict) else {}


def _parse_id(properties: dict[str, Any], key: str, location: str) -> int:
    value = properties.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{key} is {str(value)[:60]!r}", location=location, valid="a whole number, 0 or more")
    return value


def _parse_point(coordinates: Any, location: str) -> tuple[float, float]:
    if not isinstance(coordinates, list) or len(coordinates) not in (2, 3):
        raise InputError("coordinates are no point", location=location, valid="[x, y] [m]")
    for value in coordinates:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e9:
            raise InputError(f"coordinate {str(value)[:60]}", location=location, valid="finite metres")
    return float(coordinates[0]), float(coordinates[1])


def _parse_metadata(properties: dict[str, Any], location: str) -> dict[str, Any]:
    metadata = properties.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InputError("metadata is no mapping", location=location, valid="names and values")
    return metadata


def _parse_edge(
    location: str,
    geometry_type: str,
    coordinates: Any,
    properties: dict[str, Any],
    nodes: dict[int, RouteNode],
    two_way: bool,
) -> RouteEdge:
    edge_id = _parse_id(properties, "id", location)
    start, end = (_parse_id(properties, key, location) for key in ("startid", "endid"))
    for key, value in (("startid", start), ("endid", end)):
        if value not in nodes:
            raise InputError(f"{key} {value} is no node of the graph", location=f"{location}, edge {edge_id}")
    parts = coordinates if geometry_type == "MultiLineString" else [coordinates]
    if not isinstance(parts, list) or not all(isinstance(part, list) for part in parts):
        raise InputError("coordinates are no line", location=location, valid="points [x, y]")
    polyline = np.array([_parse_point(point, location) for part in parts for point in part]).reshape(-1, 2)
    metadata = _parse_metadata(properties, location)
    limit = metadata.get("speed_limit", metadata.get("abs_speed_limit"))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < 1e6):
        raise InputError(f"speed_limit {str(limit)[:60]}", location=location, valid="a positive number")
    cost = properties.get("cost", 0.0)
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0.0 <= cost < math.inf:
        raise InputError(f"cost {str(cost)[:60]}", location=location, valid="a number, 0 or more; 0: its length")
    is_two_way = properties.get("two_way", two_way)
    if not isinstance(is_two_way, bool):
        raise InputError(f"two_way {str(is_two_way)[:60]}", location=location, valid="true or false")
    return RouteEdge(
        edge_id, start, end, _connect_to_nodes(polyline, nodes[start], nodes[end]), float(cost), is_two_way, metadata
    )


def _connect_to_nodes(polyline: NDArray[np.float64], start: RouteNode, end: RouteNode) -> NDArray[np.float64]:
    """Return the polyline with its first and last point moved to the nodes."""
    between = polyline[1:-1]
    return np.concatenate([[[start.x, start.y]], between, [[end.x, end.y]]])


_POSE_SPACING = 0.05
"""Distance between poses on an edge [m]."""


@dataclass(frozen=True)
class RoutePlanner:
    """Planner over a route graph, with free paths from the start to the nearest edge and from the last one to the goal.

    Edges on which an obstacle stands are closed for the plan, and the planner searches for another route.

    Attributes:
        graph: GeoJSON file, see `load_route_graph`.
        two_way: Whether all edges may be driven in both directions.
        traversal: Traversal costs of the free paths.
    """

    graph: str = parameter(
        "", aliases=("graph_filepath",), doc="GeoJSON file of the route graph; required, though it has a default."
    )
    two_way: bool = parameter(False, doc="Drive all edges in both directions.")
    traversal: TraversalCosts = parameter(
        factory=TraversalCosts, doc="Traversal costs of the paths between start, graph and goal."
    )

    def __post_init__(self) -> None:
        check(self, "RoutePlanner")

    @cached_property
    def route_graph(self) -> RouteGraph:
        """Graph of the file, read once.  Raises ConfigError without a file, InputError if it cannot be read."""
        if not self.graph:
            raise ConfigError("no route graph", location="planner route", valid="graph: a GeoJSON file")
        return load_route_graph(FilePath(self.graph), two_way=self.two_way)

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """Plan a path over the graph; see the contract in `GlobalPlanner.plan`."""
        free_planner, route_graph = FastMarchingPlanner(self.traversal), self.route_graph
        closed_edges: set[int] = set()
        while True:
            try:
                route = route_graph.with_closed_edges(closed_edges).find_route(start, goal)
            except NoPathError as error:
                blocked_edges = (
                    f"; obstacles stand on {', '.join(map(str, sorted(closed_edges)))}" if closed_edges else ""
                )
                raise NoPathError(f"{error.message}{blocked_edges}", valid=error.valid) from None
            newly_blocked = _blocked_edges(costmap, route)
            if not newly_blocked:
                break
            closed_edges |= newly_blocked
        route_poses = route.path.poses[1:-1]
        if not len(route_poses):
            return free_planner.plan(costmap, start, goal)
        route_poses = _resample_poses(route_poses)
        access_poses = free_planner.plan(costmap, start, SE2(*route_poses[0])).poses
        exit_poses = free_planner.plan(costmap, SE2(*route_poses[-1]), goal).poses
        return evaluate_path(costmap, np.concatenate([access_poses[:-1], route_poses, exit_poses[1:]]), self.traversal)


def _blocked_edges(costmap: Costmap, route: Route) -> set[int]:
    """Return the ids of the route's edges on which the origin of the base cannot be."""
    blocked = set()
    poses = route.path.poses
    ends = [*route.edge_start_indices[1:], len(poses) - 2]  # the last pose is the goal, beside the graph
    for edge, first, last in zip(route.edges, route.edge_start_indices, ends, strict=True):
        cells = costmap.geometry.cells_of_points(_resample_poses(poses[first : last + 1])[:, :2])
        inside = costmap.geometry.contains(cells)
        values = costmap.cells[cells[inside, 0], cells[inside, 1]]
        if ((values >= INSCRIBED) & (values <= LETHAL)).any():
            blocked.add(edge)
    return blocked


def _resample_poses(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Insert poses between those (n, 3) of a polyline, and let each point to the next one."""
    if len(poses) < 2:
        return poses
    steps = np.diff(poses[:, :2], axis=0)
    headings = np.arctan2(steps[:, 1], steps[:, 0])
    return resample_polyline(np.column_stack([poses[:, :2], [*headings, headings[-1]]]), _POSE_SPACING)
