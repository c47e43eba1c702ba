"""Route graphs in GeoJSON, as Nav2's route server reads them.

Nodes are features of type Point with a property ``id``, edges those of type LineString or MultiLineString with ``id``,
``startid`` and ``endid``; they run one way.  ``cost`` and ``metadata`` are optional; so is ``two_way``, which is ours.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.navigation.planning.route_graph import RouteEdge, RouteGraph, RouteNode

_LARGEST = 64_000_000
"""Bytes: a file beyond that is none that people drew."""


def load_route_graph(path: Path | str, *, two_way: bool = False) -> RouteGraph:
    """Load a graph.

    Args:
        path: The file.
        two_way: Whether all edges may be driven both ways.

    Raises:
        InputError: the file cannot be read, is no such graph, or contradicts itself; names the feature.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _LARGEST:
            raise InputError(f"has {file.stat().st_size / 1e6:.0f} MB", location=str(path), valid="at most 64 MB")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", location=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("is no text", location=str(path), valid="GeoJSON in UTF-8") from error
    return parse_route_graph(text, two_way=two_way, where=str(path))


def parse_route_graph(text: str, *, two_way: bool = False, where: str = "route graph") -> RouteGraph:
    """The same from a file's text."""
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}", location=where, valid="GeoJSON") from error
    features = data.get("features") if isinstance(data, dict) else None
    if not isinstance(features, list):
        raise InputError("holds no list of features", location=where, valid="a GeoJSON FeatureCollection")
    nodes: dict[int, RouteNode] = {}
    edges: list[RouteEdge] = []
    joined: set[tuple[int, int, int]] = set()
    lines = []
    for number, feature in enumerate(features):
        place = f"{where}: feature {number}"
        kind, coordinates, properties = _parts(feature, place)
        if kind == "Point":
            node = RouteNode(
                _identity(properties, "id", place), *_point(coordinates, place), _metadata(properties, place)
            )
            if node.id in nodes:
                raise InputError(f"a second node {node.id}", location=place, valid="each id once")
            nodes[node.id] = node
        elif kind in ("LineString", "MultiLineString"):
            lines.append((place, kind, coordinates, properties))
        else:
            raise InputError(
                f"a geometry of type {kind!r}", location=place, valid="Point, LineString or MultiLineString"
            )
    for place, kind, coordinates, properties in lines:
        edge = _edge(place, kind, coordinates, properties, nodes, two_way)
        if (edge.id, edge.start, edge.end) in joined:
            raise InputError(
                f"a second edge {edge.id} from {edge.start} to {edge.end}", location=place, valid="each once"
            )
        joined.add((edge.id, edge.start, edge.end))
        edges.append(edge)
    if not nodes:
        raise InputError("holds no node", location=where, valid="features of type Point")
    return RouteGraph(nodes, tuple(edges))


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _parts(feature: Any, place: str) -> tuple[str, Any, dict[str, Any]]:
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    if not isinstance(geometry, dict) or not isinstance(geometry.get("type"), str):
        raise InputError("has no geometry", location=place, valid="type and coordinates")
    properties = feature.get("properties")
    return geometry["type"], geometry.get("coordinates"), properties if isinstance(properties, dict) else {}


def _identity(properties: dict[str, Any], key: str, place: str) -> int:
    value = properties.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{key} is {str(value)[:60]!r}", location=place, valid="a whole number, 0 or more")
    return value


def _point(coordinates: Any, place: str) -> tuple[float, float]:
    if not isinstance(coordinates, list) or len(coordinates) not in (2, 3):
        raise InputError("coordinates are no point", location=place, valid="[x, y] [m]")
    for value in coordinates:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e9:
            raise InputError(f"coordinate {str(value)[:60]}", location=place, valid="finite metres")
    return float(coordinates[0]), float(coordinates[1])


def _metadata(properties: dict[str, Any], place: str) -> dict[str, Any]:
    found = properties.get("metadata", {})
    if not isinstance(found, dict):
        raise InputError("metadata is no mapping", location=place, valid="names and values")
    return found


def _edge(
    place: str, kind: str, coordinates: Any, properties: dict[str, Any], nodes: dict[int, RouteNode], two_way: bool
) -> RouteEdge:
    identity = _identity(properties, "id", place)
    start, end = (_identity(properties, key, place) for key in ("startid", "endid"))
    for key, value in (("startid", start), ("endid", end)):
        if value not in nodes:
            raise InputError(f"{key} {value} is no node of the graph", location=f"{place}, edge {identity}")
    parts = coordinates if kind == "MultiLineString" else [coordinates]
    if not isinstance(parts, list) or not all(isinstance(part, list) for part in parts):
        raise InputError("coordinates are no line", location=place, valid="points [x, y]")
    line = np.array([_point(point, place) for part in parts for point in part]).reshape(-1, 2)
    metadata = _metadata(properties, place)
    limit = metadata.get("speed_limit", metadata.get("abs_speed_limit"))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < 1e6):
        raise InputError(f"speed_limit {str(limit)[:60]}", location=place, valid="a positive number")
    cost = properties.get("cost", 0.0)
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0.0 <= cost < math.inf:
        raise InputError(f"cost {str(cost)[:60]}", location=place, valid="a number, 0 or more; 0: its length")
    both = properties.get("two_way", two_way)
    if not isinstance(both, bool):
        raise InputError(f"two_way {str(both)[:60]}", location=place, valid="true or false")
    return RouteEdge(identity, start, end, _joined(line, nodes[start], nodes[end]), float(cost), both, metadata)


def _joined(line: NDArray[np.float64], start: RouteNode, end: RouteNode) -> NDArray[np.float64]:
    """The line from node to node, points between them kept."""
    between = line[1:-1]
    return np.concatenate([[[start.x, start.y]], between, [[end.x, end.y]]])
