"""Leaves that detect discs and find objects: goals, positions, and the reasons of failures."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import Abort, FakeActionServer, Succeed
from tests.harness.missions import MissionHarness

from roboyard.geometry import SE3
from roboyard.messages import action, msg
from roboyard.messages.convert.detections import make_detection, make_detection_array

T_BASE_CAMERA = SE3.from_xyz_rpy((0.1, 0.0, 1.1), (-1.9, 0.0, -1.6))


def marker(x: float, y: float, z: float, yaw: float) -> SE3:
    """The pose of a marker on a side of an object: its z axis points out of it, level."""
    return SE3.from_xyz_rpy((x, y, z), (0.0, 0.0, yaw)) @ SE3.from_xyz_rpy((0, 0, 0), (0.0, 0.5 * math.pi, 0.0))


SCREWS = ("screws", marker(0.6, -0.3, 0.9, 3.0))


class MarkerMission(MissionHarness):
    """A mission for a robot whose camera detects markers at 10 Hz.

    Args:
        folder: Where the tree's file is written.
        body: What the tree consists of.
        markers: (name, T_base_marker) that the camera detects.
    """

    def __init__(self, folder: Path, body: str, *markers: tuple[str, SE3]) -> None:
        super().__init__(folder, body, start=0.5)
        self.publish_transforms((T_BASE_CAMERA, "base_link", "camera"), static=True)
        self._markers = markers
        for k in range(20):
            self.at(0.1 * k, self._publish_detections)

    def _publish_detections(self) -> None:
        found = [
            make_detection("camera", self.now_ns, T_BASE_CAMERA.inverse() @ T, (0.04, 0.04, 0.0), name, 1.0)
            for name, T in self._markers
        ]
        self.publish("/fiducials", make_detection_array("camera", self.now_ns, found))


@pytest.mark.parametrize("yaw", [3.1, 2.0, -2.5])
def test_find_object_places_the_center_behind_the_marker(tmp_path: Path, yaw: float) -> None:
    center = np.array([0.7, 0.1, 0.85])
    on_side = marker(center[0] + 0.025 * math.cos(yaw), center[1] + 0.025 * math.sin(yaw), 0.85, yaw)
    body = '<FindObject object_id="tea" depth_offset="0.025" position="{at}"/>'
    mission = MarkerMission(tmp_path, body, SCREWS, ("tea", on_side))
    assert mission.run_to_end(4.0) == "SUCCESS"
    np.testing.assert_allclose(mission.entry("at"), center, atol=1e-9)


def test_find_object_fails_by_timeout_and_names_the_object(tmp_path: Path) -> None:
    mission = MarkerMission(tmp_path, '<FindObject object_id="tea" timeout="1" position="{at}"/>', SCREWS)
    assert mission.run_to_end(4.0) == "FAILURE"
    assert mission.mission._tree.root.failure_reason == "tea is not detected"


def camera_server(*positions: tuple[float, float, float]) -> FakeActionServer:
    """A detector of discs at these positions; it fails if there are none."""
    if not positions:
        return FakeActionServer(
            "look", action.LookForDiscs, Abort(0.0, "no disc", "nothing", action.LookForDiscs.Result())
        )
    result = action.LookForDiscs.Result(positions=[msg.Point(*position) for position in positions])
    return FakeActionServer("look", action.LookForDiscs, Succeed(result=result))


def test_detect_discs_sends_its_ports_and_outputs_the_detections(tmp_path: Path) -> None:
    body = '<DetectDiscs polarity="white" frame="base_link" count="{count}" positions="{places}"/>'
    mission = MissionHarness(tmp_path, body, camera_server((0.3, 0.1, 0.02), (0.5, 0.0, 0.02)))
    assert mission.run_to_end(3.0) == "SUCCESS"
    assert [(goal.polarity, goal.frame_id) for goal in mission.robot.goals] == [("white", "base_link")]
    assert mission.entry("count") == 2
    assert mission.entry("places")[0] == (0.3, 0.1, 0.02)


def test_detect_discs_without_detections_fails_with_the_reason(tmp_path: Path) -> None:
    mission = MissionHarness(tmp_path, '<DetectDiscs error_msg="{why}"/>', camera_server())
    assert mission.run_to_end(1.0) == "FAILURE"
    assert "no disc" in mission.entry("why")
