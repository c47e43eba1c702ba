"""Detector nodes: positions of discs and fiducials in a requested frame, or the cause of a failure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness, Goal

from roboyard.bus import NodeError
from roboyard.geometry import SE3, CameraModel
from roboyard.messages import action, msg
from roboyard.messages.convert import camera_info_to_msg, image_to_msg
from roboyard.vision.calibration.hand_eye import calibrate_hand_eye, format_hand_eye_calibration
from roboyard.vision.fiducials import render_marker
from roboyard.vision.nodes import DiscDetectorNode, FiducialDetectorNode
from roboyard.vision.synthetic.disc_scenes import plane_pose
from roboyard.vision.synthetic.rendering import disc_coverage, expose

CAMERA = CameraModel(320, 240, 265.0, 265.0, 159.5, 119.5)
START = 10**9
T_BASE_CAMERA = SE3.from_xyz_rpy((0.2, 0.0, 0.5), (math.pi, 0.0, 0.0))
POSES = [plane_pose(np.array([x, 0.01, 0.3]), 0.0, 0.0) for x in (-0.026, 0.026)]


def render(seed: int = 1, noise: float = 1.5) -> np.ndarray:
    albedo = np.full((240, 320, 3), 0.35, np.float32)
    for T in POSES:
        for fraction, color in ((1.0, 0.85), (0.3, 0.04)):
            patch = disc_coverage(CAMERA, T, fraction * 0.01)
            assert patch is not None
            patch.paint(albedo, (color,) * 3)
    return expose(albedo, np.random.default_rng(seed), blur=0.5, noise=noise)


class DetectorHarness(BusHarness):
    """A bus with a disc detector, and a camera whose messages a test publishes."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(start_ns=START)
        self.node = self.add(DiscDetectorNode(**parameters), "disc_detector")

    def start_detection(self, **goal: Any) -> Goal:
        """Send a goal to the action ``look``."""
        return self.start_goal("/look", action.LookForDiscs, **goal)

    def publish_images(
        self,
        count: int,
        *,
        depth: float | None = 0.3,
        encoding: str | None = None,
        tf: bool = True,
        info: bool = True,
        frames: Any = ((T_BASE_CAMERA, "base", "camera"),),
    ) -> None:
        """Publish ``count`` images at 10 Hz with their camera info, transforms and depth."""
        start_ns = self.now_ns
        for k in range(count):
            time_ns = start_ns + (k + 1) * 100_000_000
            self.bus.executor.run_until(time_ns)
            if info:
                self.publish("/camera_info", camera_info_to_msg(320, 240, CAMERA.matrix, "camera", time_ns))
            if tf:
                self.publish_transforms(*frames)
            image = image_to_msg(render(k), "camera", time_ns)
            if encoding is not None:
                image.encoding = encoding
            self.publish("/image", image)
            if depth is not None:
                depths = np.full((240, 320), depth, np.float32)
                self.publish("/depth_registered/image", image_to_msg(depths, "camera", time_ns))
        self.run_for(0.01)


def result_of(goal: Goal) -> Any:
    assert goal.done(), "the action has not ended"
    return goal.result


def test_result_is_in_the_requested_frame() -> None:
    harness = DetectorHarness()
    goal = harness.start_detection(polarity="white", frame_id="base", num_images=5)
    harness.publish_images(6)
    result = result_of(goal)
    assert result.error_code == ""
    assert result.num_images == 5
    assert result.header.frame_id == "base"
    found = np.array([[p.x, p.y, p.z] for p in result.positions])
    truth = np.array([T_BASE_CAMERA @ T.translation for T in POSES])
    assert len(found) == 2
    for point in truth:
        assert np.linalg.norm(found - point, axis=1).min() < 1e-3
    assert np.allclose(result.diameters, 0.02, atol=1e-3)
    assert list(result.is_measured) == [True, True]
    assert all(n.z > 0.9 for n in result.normals)  # the camera looks down, discs look up


def test_calibrated_camera_mount_corrects_positions(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    T_flange_camera = SE3.from_xyz_rpy((0.06, 0.0, 0.03), (0.1, math.pi - 0.05, 0.4))
    T_mount_error = SE3.exp(
        [0.002, -0.001, 0.002, *(math.radians(1.0) * np.array([0.6, 0.64, 0.48]))]
    )  # 3 mm and 1 degree
    T_base_target = SE3.from_xyz_rpy((0.3, 0.1, 0.0), (0.0, 0.0, 0.3))
    arm = [SE3.exp([*rng.uniform(-0.3, 0.3, 3), *rng.uniform(-0.8, 0.8, 3)]) for _ in range(15)]
    observed = [
        (T @ T_flange_camera).inverse() @ T_base_target @ SE3.exp([*rng.normal(0, 2e-4, 3), *rng.normal(0, 1e-3, 3)])
        for T in arm
    ]
    file = tmp_path / "mount.yaml"
    file.write_text(format_hand_eye_calibration(calibrate_hand_eye(arm, observed)))
    frames = [
        (T_BASE_CAMERA @ T_flange_camera.inverse(), "base", "flange"),
        (T_flange_camera @ T_mount_error, "flange", "camera"),
    ]
    truth = np.array([T_BASE_CAMERA @ T.translation for T in POSES])

    def errors(**parameters: str) -> np.ndarray:
        harness = DetectorHarness(**parameters)
        goal = harness.start_detection(polarity="white", frame_id="base", num_images=5)
        harness.publish_images(6, frames=frames)
        found = np.array([[p.x, p.y, p.z] for p in result_of(goal).positions])
        return np.array([np.linalg.norm(found - point, axis=1).min() for point in truth])

    assert errors().min() > 0.003
    assert errors(camera_mount_file=str(file), camera_mount_frame="flange").max() < 0.001


def test_incomplete_hand_eye_parameters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="both or none"):
        DetectorHarness(camera_mount_file="mount.yaml")
    with pytest.raises(NodeError, match="cannot be read"):
        DetectorHarness(camera_mount_file=str(tmp_path / "none.yaml"), camera_mount_frame="flange")


def test_action_finds_pairs_of_discs() -> None:
    harness = DetectorHarness()
    goal = harness.start_detection(mode="pair", num_images=3)
    harness.publish_images(4)
    result = result_of(goal)
    assert len(result.positions) == 1
    assert result.distances[0] == pytest.approx(0.052, abs=5e-4)
    assert result.positions[0].x == pytest.approx(0.0, abs=5e-4)
    assert result.header.frame_id == "camera"


@pytest.mark.parametrize(
    ("publish_options", "goal_fields", "cause"),
    [
        ({}, {"polarity": "black"}, "view_empty"),
        ({"depth": math.nan}, {}, "depth_unknown"),
        ({"depth": None}, {}, "depth_silent"),
        ({"info": False}, {}, "camera_info_silent"),
        ({"encoding": "bayer_rggb8"}, {}, "wrong_encoding"),
        ({"tf": False}, {"frame_id": "base"}, "no_transform"),
        ({"frame": "nowhere"}, {"frame_id": "nowhere"}, "no_transform"),
    ],
)
def test_failed_detection_gives_its_cause(
    publish_options: dict[str, Any], goal_fields: dict[str, Any], cause: str
) -> None:
    harness = DetectorHarness(timeout=0.8)
    goal = harness.start_detection(num_images=3, **goal_fields)
    publish_options.pop("frame", None)
    harness.publish_images(10, **publish_options)
    result = result_of(goal)
    assert result.error_code == cause
    assert result.message
    if cause != "depth_unknown":
        assert not result.positions


def test_detection_without_camera_ends_camera_silent() -> None:
    harness = DetectorHarness(timeout=0.5)
    goal = harness.start_detection()
    harness.run_for(1.0)
    assert result_of(goal).error_code == "camera_silent"


def test_detection_without_depth_assumes_the_diameter() -> None:
    harness = DetectorHarness(depth_topic="")
    goal = harness.start_detection(num_images=3)
    harness.publish_images(4, depth=None)
    result = result_of(goal)
    assert result.error_code == ""
    assert not any(result.is_measured)


def test_action_refuses_bad_options() -> None:
    harness = DetectorHarness()
    goal = harness.start_detection(polarity="grey")
    harness.run_for(0.1)
    assert goal.done()
    assert not goal.succeeded
    assert "white, black" in goal.error_message


def test_detection_can_be_canceled() -> None:
    harness = DetectorHarness()
    goal = harness.start_detection(num_images=50)
    harness.publish_images(3)
    goal.cancel()
    harness.run_for(0.1)
    assert result_of(goal).error_code == "canceled"


def test_discs_are_published_as_detections_and_images() -> None:
    harness = DetectorHarness(rate=5.0)
    discs = harness.record("/discs", msg.vision_msgs.Detection3DArray)
    images = harness.record("/discs/image", msg.Image)
    harness.publish_images(6)
    assert 2 <= len(discs) <= 4
    first = discs.messages[0]
    assert len(first.detections) == 2
    assert first.header.frame_id == "camera"
    assert first.detections[0].results[0].hypothesis.class_id == "white_disc"
    assert images.messages[0].encoding == "rgb8"


def test_fiducials_are_published_with_pose_and_covariance(harness: BusHarness) -> None:
    node = harness.add(FiducialDetectorNode(tag_size=0.06), "fiducials")
    fiducials = harness.record("/fiducials", msg.vision_msgs.Detection3DArray)
    sheet = np.full((240, 320), 255, np.uint8)
    sheet[60:160, 110:210] = render_marker("apriltag_36h11", 7, 100)
    harness.run_until(1.0)
    harness.publish("/camera_info", camera_info_to_msg(320, 240, CAMERA.matrix, "camera", START))
    harness.publish("/image", image_to_msg(sheet, "camera", START))
    harness.run_for(0.1)
    (detection,) = fiducials.messages[0].detections
    assert detection.id == "7"
    assert detection.bbox.center.position.z == pytest.approx(0.06 * 265.0 / 100.0, rel=0.02)
    assert np.asarray(detection.results[0].pose.covariance)[0] > 0.0
    harness.run_for(4.9)
    assert node.health.level == "warn"
    assert "/image" in node.health.text


def test_named_fiducials_are_searched_only_when_subscribed(harness: BusHarness) -> None:
    harness.add(FiducialDetectorNode(tag_size=0.06, tag_names=("tea", "screws")), "fiducials")
    images = harness.bus.publisher("/image", msg.Image, "/test")
    harness.run_until(1.0)
    assert not images.topic.subscriptions
    fiducials = harness.record("/fiducials", msg.vision_msgs.Detection3DArray)
    harness.run_for(0.1)
    assert images.topic.subscriptions
    sheet = np.full((240, 320), 255, np.uint8)
    sheet[20:100, 20:100] = render_marker("apriltag_36h11", 1, 80)
    sheet[120:200, 120:200] = render_marker("apriltag_36h11", 7, 80)
    harness.publish("/camera_info", camera_info_to_msg(320, 240, CAMERA.matrix, "camera", harness.now_ns))
    images.publish(image_to_msg(sheet, "camera", harness.now_ns))
    harness.run_for(0.1)
    assert sorted(one.id for one in fiducials.messages[0].detections) == ["7", "screws"]
