"""What is known about submaps at a glance is what they say themselves, also after the graph moved."""

from __future__ import annotations

import numpy as np

from roboyard.geometry import SE2
from roboyard.mapping.graph_slam.submaps import Submap, SubmapIndex
from roboyard.mapping.pose_graph import PoseGraphBuilder, PoseGraphEdge, PoseGraphNode
from roboyard.mapping.scan import LaserScan, ScanPreprocessor


def _graph(count: int) -> tuple[PoseGraphBuilder, list[Submap]]:
    rng = np.random.default_rng(2)
    scan = ScanPreprocessor().process(LaserScan(0, np.full(9, 2.0, np.float32), -1.0, 0.25, 0.1, 9.0), None)
    graph = PoseGraphBuilder()
    for k in range(count):
        x, y, theta = rng.normal(size=3).tolist()
        graph.nodes.append(PoseGraphNode(k, SE2(x, y, theta), scan, float(k), k % 2, 0.1 * k))
        if k:
            graph.add(PoseGraphEdge(k - 1, k, SE2(1.0, 0.1, 0.2), np.eye(3)))
    submaps = [Submap(k, float(k), k % 2, np.zeros((0, 5)), [k], rng.normal(size=2), 1.0 + k) for k in range(count)]
    return graph, submaps


def _agrees(index: SubmapIndex, graph: PoseGraphBuilder, submaps: list[Submap], finished: list[int]) -> None:
    assert index.ids.tolist() == finished
    for row, k in enumerate(finished):
        node = graph.nodes[submaps[k].anchor]
        np.testing.assert_allclose(index.centers[row], node.pose @ submaps[k].center)
        assert index.radii[row] == submaps[k].radius
        assert (index.distances[row], index.accumulated_disagreements[row], index.trajectory_ids[row]) == (
            submaps[k].distance,
            node.accumulated_disagreement,
            submaps[k].trajectory_id,
        )


def test_submap_index_follows_changes_of_the_graph() -> None:
    graph, submaps = _graph(6)
    index = SubmapIndex().updated(graph, submaps, [0, 1, 2])
    _agrees(index, graph, submaps, [0, 1, 2])
    assert index.updated(graph, submaps, [0, 1, 2]) is index
    extended = index.updated(graph, submaps, [0, 1, 2, 3])
    _agrees(extended, graph, submaps, [0, 1, 2, 3])
    before = extended.centers.copy()
    graph.solve()
    solved = extended.updated(graph, submaps, [0, 1, 2, 3])
    _agrees(solved, graph, submaps, [0, 1, 2, 3])
    assert np.abs(solved.centers - before).max() > 0.1


def test_submap_index_without_submaps_is_empty() -> None:
    graph, submaps = _graph(1)
    index = SubmapIndex().updated(graph, submaps, [])
    assert index.centers.shape == (0, 2)
    assert len(index.ids) == 0
