"""What is known about submaps at a glance is what they say themselves, also after the graph moved."""

from __future__ import annotations

import numpy as np

from roboyard.geometry import SE2
from roboyard.mapping.growing_graph import Edge, GrowingGraph, PoseGraphNode
from roboyard.mapping.preparation import Preparation
from roboyard.mapping.scan import Scan
from roboyard.mapping.submaps import Submap
from roboyard.mapping.whereabouts import Whereabouts


def _graph(count: int) -> tuple[GrowingGraph, list[Submap]]:
    rng = np.random.default_rng(2)
    seen = Preparation().prepare(Scan(0, np.full(9, 2.0, np.float32), -1.0, 0.25, 0.1, 9.0), None)
    graph = GrowingGraph()
    for k in range(count):
        x, y, theta = rng.normal(size=3).tolist()
        graph.nodes.append(PoseGraphNode(k, SE2(x, y, theta), seen, float(k), k % 2, 0.1 * k))
        if k:
            graph.add(Edge(k - 1, k, SE2(1.0, 0.1, 0.2), np.eye(3)))
    submaps = [Submap(k, float(k), k % 2, np.zeros((0, 5)), [k], rng.normal(size=2), 1.0 + k) for k in range(count)]
    return graph, submaps


def _agrees(at: Whereabouts, graph: GrowingGraph, submaps: list[Submap], finished: list[int]) -> None:
    assert at.numbers.tolist() == finished
    for row, k in enumerate(finished):
        node = graph.nodes[submaps[k].anchor]
        np.testing.assert_allclose(at.middles[row], node.pose @ submaps[k].centre)
        assert at.radii[row] == submaps[k].radius
        assert (at.paths[row], at.doubts[row], at.parts[row]) == (submaps[k].path, node.doubt, submaps[k].part)


def test_submap_index_follows_changes_of_the_graph() -> None:
    graph, submaps = _graph(6)
    at = Whereabouts().of(graph, submaps, [0, 1, 2])
    _agrees(at, graph, submaps, [0, 1, 2])
    assert at.of(graph, submaps, [0, 1, 2]) is at
    more = at.of(graph, submaps, [0, 1, 2, 3])
    _agrees(more, graph, submaps, [0, 1, 2, 3])
    before = more.middles.copy()
    graph.solve()
    solved = more.of(graph, submaps, [0, 1, 2, 3])
    _agrees(solved, graph, submaps, [0, 1, 2, 3])
    assert np.abs(solved.middles - before).max() > 0.1


def test_submap_index_without_submaps_is_empty() -> None:
    graph, submaps = _graph(1)
    at = Whereabouts().of(graph, submaps, [])
    assert at.middles.shape == (0, 2)
    assert len(at.numbers) == 0
