"""Loops are found where the robot may be for all it knows, also after a turn that no scan saw."""

from __future__ import annotations

from tests.mapping.corridor_drive import PERIOD_NS, drive, simulate_scans

from roboyard.geometry import SE2
from roboyard.mapping import GraphSlam
from roboyard.mapping.graph_slam.loop_closure import LoopClosure
from roboyard.mapping.pose_graph import PoseGraphNode
from roboyard.mapping.scan import ScanPreprocessor


def test_loop_search_finds_a_robot_after_an_unobserved_rotation() -> None:
    true_poses = drive(1.5)
    scans = list(simulate_scans(true_poses))
    slam = GraphSlam()
    for scan in scans[:335]:
        slam.process(scan)
    pose_graph_map, detector, preprocess = slam.to_map(), slam._loop_detector, ScanPreprocessor().process
    origin, joint = true_poses[0].inverse(), pose_graph_map.nodes[-1].pose
    wrong = joint @ SE2(0.0, 0.0, 0.4) @ joint.inverse()
    loops: list[LoopClosure] = []
    for k in range(335, 420):
        pose, distance = (
            wrong @ origin @ true_poses[k],
            pose_graph_map.nodes[-1].distance + true_poses[k - 1].distance(true_poses[k]),
        )
        heading_uncertainty = 0.6 if k == 335 else 0.0
        pose_graph_map.nodes.append(
            PoseGraphNode(k * PERIOD_NS, pose, preprocess(scans[k]), distance, heading_uncertainty=heading_uncertainty)
        )
        loops += detector.detect(
            slam._graph_builder, pose_graph_map.submaps, slam._submap_builder.finished(), len(pose_graph_map.nodes) - 1
        )
    assert any(loop.is_window_search for loop in loops)
    for loop in loops:
        anchor, node = pose_graph_map.nodes[pose_graph_map.submaps[loop.submap].anchor], pose_graph_map.nodes[loop.node]
        true = origin @ true_poses[node.time_ns // PERIOD_NS]
        assert (anchor.pose @ loop.pose).distance(true) < 0.05
    assert node.pose.distance(true) > 1.0
