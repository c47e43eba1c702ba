"""Route graphs: shortest over the lanes by an independent method, closed edges, and bad files."""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.planners import load_route_graph, parse_route_graph

DATA = os.environ.get("ROBOYARD_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="ROBOYARD_DATA does not name the folder of data from outside")


def _node(number: int, x: float, y: float) -> dict:
    return {"type": "Feature", "properties": {"id": number}, "geometry": {"type": "Point", "coordinates": [x, y]}}


def _edge(number: int, start: int, end: int, line: list, **more) -> dict:
    properties = {"id": number, "startid": start, "endid": end, **more}
    return {"type": "Feature", "properties": properties,
            "geometry": {"type": "MultiLineString", "coordinates": [line]}}  # fmt: skip


def _text(*features: dict) -> str:
    return json.dumps({"type": "FeatureCollection", "features": list(features)})


SQUARE = [_node(0, 0, 0), _node(1, 10, 0), _node(2, 10, 10), _node(3, 0, 10)]
ROUND = [
    _edge(10, 0, 1, [[0, 0], [10, 0]], metadata={"speed_limit": 50.0}),
    _edge(11, 1, 2, [[10, 0], [10, 10]], metadata={"abs_speed_limit": 0.3}),
    _edge(12, 2, 3, [[10, 10], [0, 10]]),
    _edge(13, 3, 0, [[0, 10], [0, 0]]),
]


def test_route_starts_at_the_nearest_edge_and_keeps_directions() -> None:
    graph = parse_route_graph(_text(*SQUARE, *ROUND))
    route = graph.find_route(SE2(2.0, 1.0), SE2(4.0, 9.0))
    assert route.edges == (10, 11, 12)
    assert route.nodes == (1, 2)
    assert route.cost == pytest.approx(1.0 + 8.0 + 10.0 + 6.0 + 1.0)
    assert route.path.length == pytest.approx(route.cost)
    assert route.path.poses[0].tolist() == [2.0, 1.0, pytest.approx(-np.pi / 2)]
    assert route.path.poses[-1].tolist() == [4.0, 9.0, 0.0]
    forward = graph.find_route(SE2(2.0, 0.0), SE2(7.0, 0.0))
    assert (forward.edges, forward.cost) == ((10,), pytest.approx(5.0))
    backward = graph.find_route(SE2(7.0, 0.0), SE2(2.0, 0.0))
    assert backward.edges == (10, 11, 12, 13, 10)
    assert backward.cost == pytest.approx(35.0)
    both = parse_route_graph(_text(*SQUARE, *ROUND), two_way=True)
    assert both.find_route(SE2(7.0, 0.0), SE2(2.0, 0.0)).cost == pytest.approx(5.0)
    assert [edge.speed_limit(1.0) for edge in graph.edges[:3]] == [0.5, 0.3, 1.0]


def test_route_avoids_closed_edges() -> None:
    graph = parse_route_graph(_text(*SQUARE, *ROUND), two_way=True)
    start, goal = SE2(0.0, 1.0), SE2(10.0, 1.0)
    assert graph.find_route(start, goal).cost == pytest.approx(12.0)
    longer = graph.with_closed_edges([10])
    assert longer.find_route(start, goal).edges == (13, 12, 11)
    assert longer.with_open_edges([10]).find_route(start, goal).cost == pytest.approx(12.0)
    with pytest.raises(NoPathError):
        graph.with_closed_edges([10, 12]).find_route(start, goal)
    with pytest.raises(NoPathError):
        graph.with_closed_edges([10, 11, 12, 13]).find_route(start, goal)
    with pytest.raises(UnknownNameError):
        graph.with_closed_edges([99])
    with pytest.raises(InputError):
        graph.find_route(SE2(float("nan"), 0.0), goal)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.booleans())
def test_route_between_nodes_equals_scipy(seed, count, two_way) -> None:
    rng = np.random.default_rng(seed)
    positions = rng.uniform(-9.0, 9.0, (count, 2))
    edge_pairs = [pair for pair in itertools.permutations(range(count), 2) if rng.random() < 0.35]
    if not edge_pairs:
        return
    costs = rng.choice([0.0, 2.0, 30.0], len(edge_pairs))
    nodes = [_node(k, *map(float, position)) for k, position in enumerate(positions)]
    edges = [
        _edge(100 + k, a, b, [positions[a].tolist(), positions[b].tolist()], cost=float(costs[k]))
        for k, (a, b) in enumerate(edge_pairs)
    ]
    graph = parse_route_graph(_text(*nodes, *edges), two_way=two_way)
    weights = np.zeros((count, count))
    for (a, b), cost in zip(edge_pairs, costs, strict=True):
        edge_cost = cost or np.linalg.norm(positions[a] - positions[b])
        for edge_start, edge_end in ((a, b), (b, a)) if two_way else ((a, b),):
            weights[edge_start, edge_end] = min(weights[edge_start, edge_end] or np.inf, edge_cost)
    expected = dijkstra(csr_array(weights))
    used = sorted({k for pair in edge_pairs for k in pair})
    a, b = (used[int(rng.integers(len(used)))] for _ in range(2))
    start, goal = SE2(*positions[a]), SE2(*positions[b])
    try:
        route = graph.find_route(start, goal)
    except NoPathError:
        return  # the edge that is nearest to a node may leave, or enter, at its other end only
    assert route.cost >= expected[a, b] - 1e-9
    assert np.linalg.norm(np.diff(route.path.poses[:, :2], axis=0), axis=1).sum() == pytest.approx(route.path.length)
    if two_way:
        assert route.cost == pytest.approx(expected[a, b])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "no JSON"),
        ("[]", "features"),
        ('{"features": [1]}', "geometry"),
        (_text(_node(0, 0, 0), _node(0, 1, 1)), "second node 0"),
        (_text(*SQUARE, ROUND[0], ROUND[0]), "second edge 10"),
        (_text(*SQUARE, _edge(5, 0, 77, [[0, 0], [1, 1]])), "77"),
        (_text(*SQUARE, _edge(5, 0, 1, [[0, 0], [1, 1]], cost=-1.0)), "cost"),
        (_text(*SQUARE, _edge(5, 0, 1, [[0, 0], [1, 1]], metadata={"speed_limit": "fast"})), "speed_limit"),
        (_text(*SQUARE, _edge(5, 0, 1, [[0, 0], [1]])), "point"),
        (_text(_node(0, 0, 0)).replace("[0, 0]", "[NaN, 0]"), "NaN"),
        (_text(_node(0, 0, 0)).replace("[0, 0]", "[1e400, 0]"), "finite"),
        (_text(_node(-1, 0, 0)), "id"),
        (_text(), "no node"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_bad_route_files_are_refused_with_the_reason(text, word) -> None:
    with pytest.raises(InputError) as caught:
        parse_route_graph(text)
    assert word in str(caught.value)


def test_unreadable_route_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        load_route_graph(tmp_path / "nothing.geojson")
    huge = tmp_path / "huge.geojson"
    with huge.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(InputError) as caught:
        load_route_graph(huge)
    assert "100 MB" in str(caught.value)
    noise = tmp_path / "noise.geojson"
    noise.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError):
        load_route_graph(noise)


@needs_data
@pytest.mark.parametrize("name", ["depot", "turtlebot3", "warehouse"])
def test_nav2_route_graphs_are_read_and_connected(name: str) -> None:
    graph = load_route_graph(Path(str(DATA)) / "nav2_maps" / f"{name}_graph.geojson", two_way=True)
    nodes = list(graph.nodes.values())
    first = nodes[0]
    for node in nodes[:: max(len(nodes) // 8, 1)]:
        route = graph.find_route(SE2(first.x, first.y), SE2(node.x, node.y))
        assert route.path.length >= np.hypot(node.x - first.x, node.y - first.y) - 1e-6
