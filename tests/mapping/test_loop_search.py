"""Loops are found where the robot may be for all it knows, also after a turn that no scan saw."""

from __future__ import annotations

from tests.mapping.simulated import PERIOD_NS, drive, log

from roboyard.geometry import SE2
from roboyard.mapping import GraphSlam
from roboyard.mapping.growing_graph import PoseGraphNode
from roboyard.mapping.loops import Loop
from roboyard.mapping.preparation import Preparation


def test_loop_search_finds_a_robot_after_an_unseen_turn() -> None:
    way = drive(1.5)
    scans = list(log(way))
    slam = GraphSlam()
    for scan in scans[:335]:
        slam.process(scan)
    place, finder, prepare = slam.place(), slam._finder, Preparation().prepare
    origin, joint = way[0].inverse(), place.nodes[-1].pose
    wrong = joint @ SE2(0.0, 0.0, 0.4) @ joint.inverse()
    found: list[Loop] = []
    for k in range(335, 420):
        pose, path = wrong @ origin @ way[k], place.nodes[-1].path + way[k - 1].distance(way[k])
        blind = 0.6 if k == 335 else 0.0
        place.nodes.append(PoseGraphNode(k * PERIOD_NS, pose, prepare(scans[k]), path, blind=blind))
        found += finder.find(slam._graph, place.submaps, slam._chain.finished(), len(place.nodes) - 1)
    assert any(loop.wide for loop in found)
    for loop in found:
        anchor, node = place.nodes[place.submaps[loop.submap].anchor], place.nodes[loop.node]
        true = origin @ way[node.time_ns // PERIOD_NS]
        assert (anchor.pose @ loop.pose).distance(true) < 0.05
    assert node.pose.distance(true) > 1.0
