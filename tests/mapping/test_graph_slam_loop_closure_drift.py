"""How far off a place may be: what was driven, what was doubted, and what was turned unseen, unless a loop tells."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.geometry import SE2
from roboyard.mapping.graph_slam.loop_closure import DriftConfig, DriftModel
from roboyard.mapping.graph_slam.submaps import Submap, SubmapIndex
from roboyard.mapping.pose_graph import PoseGraphBuilder, PoseGraphNode
from roboyard.mapping.scan import LaserScan, ScanPreprocessor

CONFIG = DriftConfig(relative_drift=0.1, base_drift=0.5)


def straight(heading_uncertainties: dict[int, float]) -> tuple[DriftModel, PoseGraphBuilder]:
    """Twenty nodes, a metre apart on a line, some of them after a turn that no scan saw [rad]."""
    scan = ScanPreprocessor().process(LaserScan(0, np.full(9, 2.0, np.float32), -1.0, 0.25, 0.1, 9.0), None)
    graph, drift = PoseGraphBuilder(), DriftModel(CONFIG)
    for k in range(20):
        graph.nodes.append(
            PoseGraphNode(
                k,
                SE2(k, 0.0, 0.0),
                scan,
                float(k),
                accumulated_disagreement=0.01 * k,
                heading_uncertainty=heading_uncertainties.get(k, 0.0),
            )
        )
        drift.add_node(k, graph.nodes[k])
    return drift, graph


def submaps(graph: PoseGraphBuilder, *anchors: int) -> SubmapIndex:
    started = [Submap(anchor, float(anchor)) for anchor in anchors]
    return SubmapIndex().updated(graph, started, list(range(len(started))))


def test_drift_grows_with_distance_and_uncertainty() -> None:
    drift, graph = straight({})
    bounds = drift.bounds(graph, 19, submaps(graph, 19, 9))
    np.testing.assert_allclose(bounds.translation, [0.5, 0.5 + 1.0 + 0.1])
    assert not bounds.lever_arm.any()
    assert not bounds.rotation.any()


def test_unobserved_rotation_rotates_earlier_poses() -> None:
    drift, graph = straight({7: 0.3})
    off = drift.bounds(graph, 19, submaps(graph, 2, 6, 7, 12))
    np.testing.assert_allclose(off.lever_arm, [0.3 * 12.0, 0.3 * 12.0, 0.0, 0.0])
    np.testing.assert_allclose(off.rotation, [0.3, 0.3, 0.0, 0.0])


def test_consecutive_turns_add_up_and_others_in_quadrature() -> None:
    drift, graph = straight({4: 0.1, 5: 0.2, 6: 0.1, 12: 0.3})
    rotation = drift.bounds(graph, 19, submaps(graph, 0)).rotation
    assert rotation == pytest.approx(np.hypot(0.4, 0.3))


def test_loop_closure_bounds_an_unobserved_rotation() -> None:
    drift, graph = straight({7: 0.3})
    drift.add_loop(18, graph.nodes[18], 1, graph.nodes[1])
    off = drift.bounds(graph, 19, submaps(graph, 1, 3, 12))
    assert not off.lever_arm.any()
    np.testing.assert_allclose(off.translation, [0.5 + 0.1 + 0.01, 0.5 + 0.3 + 0.03, 0.5 + 0.7 + 0.07])
