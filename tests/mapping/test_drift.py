"""How far off a place may be: what was driven, what was doubted, and what was turned unseen, unless a loop tells."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.geometry import SE2
from roboyard.mapping.drift import Drift, DriftConfig
from roboyard.mapping.growing_graph import GrowingGraph, PoseGraphNode
from roboyard.mapping.preparation import Preparation
from roboyard.mapping.scan import Scan
from roboyard.mapping.submaps import Submap
from roboyard.mapping.whereabouts import Whereabouts

CONFIG = DriftConfig(share=0.1, sure=0.5)


def straight(blind: dict[int, float]) -> tuple[Drift, GrowingGraph]:
    """Twenty nodes, a metre apart on a line, some of them after a turn that no scan saw [rad]."""
    seen = Preparation().prepare(Scan(0, np.full(9, 2.0, np.float32), -1.0, 0.25, 0.1, 9.0), None)
    graph, drift = GrowingGraph(), Drift(CONFIG)
    for k in range(20):
        graph.nodes.append(PoseGraphNode(k, SE2(k, 0.0, 0.0), seen, float(k), doubt=0.01 * k, blind=blind.get(k, 0.0)))
        drift.passed(k, graph.nodes[k])
    return drift, graph


def submaps(graph: GrowingGraph, *anchors: int) -> Whereabouts:
    begun = [Submap(anchor, float(anchor)) for anchor in anchors]
    return Whereabouts().of(graph, begun, list(range(len(begun))))


def test_drift_grows_with_distance_and_uncertainty() -> None:
    drift, graph = straight({})
    off = drift.of(graph, 19, submaps(graph, 19, 9))
    np.testing.assert_allclose(off.drift, [0.5, 0.5 + 1.0 + 0.1])
    assert not off.swing.any()
    assert not off.turned.any()


def test_unseen_turn_rotates_earlier_poses() -> None:
    drift, graph = straight({7: 0.3})
    off = drift.of(graph, 19, submaps(graph, 2, 6, 7, 12))
    np.testing.assert_allclose(off.swing, [0.3 * 12.0, 0.3 * 12.0, 0.0, 0.0])
    np.testing.assert_allclose(off.turned, [0.3, 0.3, 0.0, 0.0])


def test_consecutive_turns_add_up_and_others_in_quadrature() -> None:
    drift, graph = straight({4: 0.1, 5: 0.2, 6: 0.1, 12: 0.3})
    turned = drift.of(graph, 19, submaps(graph, 0)).turned
    assert turned == pytest.approx(np.hypot(0.4, 0.3))


def test_loop_closure_reveals_an_unseen_turn() -> None:
    drift, graph = straight({7: 0.3})
    drift.tied(18, graph.nodes[18], 1, graph.nodes[1])
    off = drift.of(graph, 19, submaps(graph, 1, 3, 12))
    assert not off.swing.any()
    np.testing.assert_allclose(off.drift, [0.5 + 0.1 + 0.01, 0.5 + 0.3 + 0.03, 0.5 + 0.7 + 0.07])
