"""Discs and fiducials in a live run: where they are in a named frame, or one word for why nobody knows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roboyard.bus import Bus, Node, NodeError
from roboyard.geometry import SE3, Lens
from roboyard.messages import action, msg
from roboyard.messages.convert import camera_info_to_msg, image_to_msg, tf_message
from roboyard.vision.fiducials import marker_picture
from roboyard.vision.hand_eye import calibrate_hand_eye
from roboyard.vision.hand_eye_file import result_text
from roboyard.vision.nodes import DiscFinderNode, FiducialFinderNode
from roboyard.vision.synthetic.coverage import disc_patch
from roboyard.vision.synthetic.exposure import expose
from roboyard.vision.synthetic.pictures import facing

LENS = Lens(320, 240, 265.0, 265.0, 159.5, 119.5)
START = 10**9
T_BASE_CAMERA = SE3.from_xyz_rpy((0.2, 0.0, 0.5), (math.pi, 0.0, 0.0))
PLACES = [facing(np.array([x, 0.01, 0.3]), 0.0, 0.0) for x in (-0.026, 0.026)]


def picture(seed: int = 1, noise: float = 1.5) -> np.ndarray:
    albedo = np.full((240, 320, 3), 0.35, np.float32)
    for T in PLACES:
        for share, colour in ((1.0, 0.85), (0.3, 0.04)):
            patch = disc_patch(LENS, T, share * 0.01)
            assert patch is not None
            patch.paint(albedo, (colour,) * 3)
    return expose(albedo, np.random.default_rng(seed), blur=0.5, noise=noise)


class Desk:
    """A bus with a disc finder and a camera that is played to it."""

    def __init__(self, **parameters: Any) -> None:
        self.bus = Bus()
        self.node = self.bus.add(DiscFinderNode(**parameters), "disc_finder")
        self.images = self.bus.publisher("/image", msg.Image, "/test")
        self.depths = self.bus.publisher("/depth_registered/image", msg.Image, "/test")
        self.infos = self.bus.publisher("/camera_info", msg.CameraInfo, "/test")
        self.tf = self.bus.publisher("/tf", msg.TFMessage, "/test")
        self.client = self.bus.add(Asker(), "asker")
        self.bus.executor.run_until(START)

    def ask(self, **wishes: Any) -> Any:
        return self.client.look.send(action.LookForDiscs.Goal(**wishes))

    def play(
        self,
        count: int,
        *,
        depth: float | None = 0.3,
        encoding: str | None = None,
        tf: bool = True,
        info: bool = True,
        frames: Any = ((T_BASE_CAMERA, "base", "camera"),),
    ) -> None:
        now = self.bus.executor.now_ns
        for k in range(count):
            time_ns = now + (k + 1) * 100_000_000
            self.bus.executor.run_until(time_ns)
            if info:
                self.infos.publish(camera_info_to_msg(320, 240, LENS.matrix, "camera", time_ns))
            if tf:
                self.tf.publish(tf_message(frames, time_ns))
            image = image_to_msg(picture(k), "camera", time_ns)
            if encoding is not None:
                image.encoding = encoding
            self.images.publish(image)
            if depth is not None:
                self.depths.publish(image_to_msg(np.full((240, 320), depth, np.float32), "camera", time_ns))
        self.bus.executor.run_until(self.bus.executor.now_ns + 10_000_000)


class Asker(Node):
    """Asks for looks."""

    def setup(self) -> None:
        self.look = self.action_client("look", action.LookForDiscs)


def result_of(future: Any) -> Any:
    assert future.done, "the look hangs"
    return future.result


def test_a_look_answers_in_the_frame_that_was_asked_for() -> None:
    desk = Desk()
    asked = desk.ask(polarity="white", frame_id="base", looks=5)
    desk.play(6)
    result = result_of(asked)
    assert result.cause == ""
    assert result.looks == 5
    assert result.header.frame_id == "base"
    found = np.array([[p.x, p.y, p.z] for p in result.positions])
    truth = np.array([T_BASE_CAMERA @ T.translation for T in PLACES])
    assert len(found) == 2
    for point in truth:
        assert np.linalg.norm(found - point, axis=1).min() < 1e-3
    assert np.allclose(result.diameters, 0.02, atol=1e-3)
    assert list(result.measured) == [True, True]
    assert all(n.z > 0.9 for n in result.normals)  # the camera looks down, discs look up


def test_a_camera_that_sits_elsewhere_is_right_once_it_is_calibrated(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    T_flange_camera = SE3.from_xyz_rpy((0.06, 0.0, 0.03), (0.1, math.pi - 0.05, 0.4))
    T_off = SE3.exp([0.002, -0.001, 0.002, *(math.radians(1.0) * np.array([0.6, 0.64, 0.48]))])  # 3 mm and 1 degree
    T_base_target = SE3.from_xyz_rpy((0.3, 0.1, 0.0), (0.0, 0.0, 0.3))
    arm = [SE3.exp([*rng.uniform(-0.3, 0.3, 3), *rng.uniform(-0.8, 0.8, 3)]) for _ in range(15)]
    seen = [
        (T @ T_flange_camera).inverse() @ T_base_target @ SE3.exp([*rng.normal(0, 2e-4, 3), *rng.normal(0, 1e-3, 3)])
        for T in arm
    ]
    file = tmp_path / "mount.yaml"
    file.write_text(result_text(calibrate_hand_eye(arm, seen)))
    frames = [
        (T_BASE_CAMERA @ T_flange_camera.inverse(), "base", "flange"),
        (T_flange_camera @ T_off, "flange", "camera"),
    ]
    truth = np.array([T_BASE_CAMERA @ T.translation for T in PLACES])

    def errors(**parameters: str) -> np.ndarray:
        desk = Desk(**parameters)
        asked = desk.ask(polarity="white", frame_id="base", looks=5)
        desk.play(6, frames=frames)
        found = np.array([[p.x, p.y, p.z] for p in result_of(asked).positions])
        return np.array([np.linalg.norm(found - point, axis=1).min() for point in truth])

    assert errors().min() > 0.003
    assert errors(hand_eye=str(file), hand_eye_link="flange").max() < 0.001


def test_a_mount_without_its_link_or_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="both or none"):
        Desk(hand_eye="mount.yaml")
    with pytest.raises(NodeError, match="cannot be read"):
        Desk(hand_eye=str(tmp_path / "none.yaml"), hand_eye_link="flange")


def test_pairs() -> None:
    desk = Desk()
    asked = desk.ask(mode="pair", looks=3)
    desk.play(4)
    result = result_of(asked)
    assert len(result.positions) == 1
    assert result.distances[0] == pytest.approx(0.052, abs=5e-4)
    assert result.positions[0].x == pytest.approx(0.0, abs=5e-4)
    assert result.header.frame_id == "camera"


@pytest.mark.parametrize(
    ("played", "wishes", "cause"),
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
def test_causes(played: dict[str, Any], wishes: dict[str, Any], cause: str) -> None:
    desk = Desk(timeout=0.8)
    asked = desk.ask(looks=3, **wishes)
    played.pop("frame", None)
    desk.play(10, **played)
    result = result_of(asked)
    assert result.cause == cause
    assert result.text
    if cause != "depth_unknown":
        assert not result.positions


def test_a_silent_camera() -> None:
    desk = Desk(timeout=0.5)
    asked = desk.ask()
    desk.bus.executor.run_until(START + 10**9)
    assert result_of(asked).cause == "camera_silent"


def test_without_depth_the_diameter_is_assumed() -> None:
    desk = Desk(depth_topic="")
    asked = desk.ask(looks=3)
    desk.play(4, depth=None)
    result = result_of(asked)
    assert result.cause == ""
    assert not any(result.measured)


def test_bad_options_are_refused() -> None:
    desk = Desk()
    asked = desk.ask(polarity="grey")
    desk.bus.executor.run_until(START + 10**8)
    assert asked.done
    assert not asked.succeeded
    assert "white, black" in asked.reason


def test_a_look_can_be_cancelled() -> None:
    desk = Desk()
    asked = desk.ask(looks=50)
    desk.play(3)
    asked.cancel()
    desk.bus.executor.run_until(desk.bus.executor.now_ns + 10**8)
    assert result_of(asked).cause == "canceled"


class Listener(Node):
    """Keeps what it hears."""

    def setup(self) -> None:
        self.heard: dict[str, list[Any]] = {"discs": [], "discs/image": [], "fiducials": []}
        for topic, kept in self.heard.items():
            kind = msg.Image if topic.endswith("image") else msg.vision_msgs.Detection3DArray
            self.subscribe(topic, kind, kept.append)


def test_topics_tell_what_is_seen() -> None:
    desk = Desk(rate=5.0)
    heard = desk.bus.add(Listener(), "listener").heard
    desk.play(6)
    assert 2 <= len(heard["discs"]) <= 4
    assert len(heard["discs"][0].detections) == 2
    assert heard["discs"][0].header.frame_id == "camera"
    assert heard["discs"][0].detections[0].results[0].hypothesis.class_id == "white_disc"
    assert heard["discs/image"][0].encoding == "rgb8"


def test_fiducials() -> None:
    bus = Bus()
    node = bus.add(FiducialFinderNode(size=0.06), "fiducials")
    images, infos = bus.publisher("/image", msg.Image, "/test"), bus.publisher("/camera_info", msg.CameraInfo, "/test")
    heard = bus.add(Listener(), "listener").heard["fiducials"]
    sheet = np.full((240, 320), 255, np.uint8)
    sheet[60:160, 110:210] = marker_picture("apriltag_36h11", 7, 100)
    bus.executor.run_until(START)
    infos.publish(camera_info_to_msg(320, 240, LENS.matrix, "camera", START))
    images.publish(image_to_msg(sheet, "camera", START))
    bus.executor.run_until(START + 10**8)
    (one,) = heard[0].detections
    assert one.id == "7"
    assert one.bbox.center.position.z == pytest.approx(0.06 * 265.0 / 100.0, rel=0.02)
    assert np.asarray(one.results[0].pose.covariance)[0] > 0.0
    bus.executor.run_until(START + 5 * 10**9)
    assert node.health.level == "warn"
    assert "/image" in node.health.text


def test_fiducials_have_names_and_nobody_looks_for_them_until_they_are_asked_for() -> None:
    bus = Bus()
    bus.add(FiducialFinderNode(size=0.06, names=("tea", "screws")), "fiducials")
    bus.executor.run_until(START)
    pictures = bus.publisher("/image", msg.Image, "/test")
    assert not pictures.topic.subscriptions
    heard = bus.add(Listener(), "listener").heard["fiducials"]
    bus.executor.run_until(START + 10**8)
    assert pictures.topic.subscriptions
    infos = bus.publisher("/camera_info", msg.CameraInfo, "/test")
    sheet = np.full((240, 320), 255, np.uint8)
    sheet[20:100, 20:100] = marker_picture("apriltag_36h11", 1, 80)
    sheet[120:200, 120:200] = marker_picture("apriltag_36h11", 7, 80)
    infos.publish(camera_info_to_msg(320, 240, LENS.matrix, "camera", START + 10**8))
    pictures.publish(image_to_msg(sheet, "camera", START + 10**8))
    bus.executor.run_until(START + 2 * 10**8)
    assert sorted(one.id for one in heard[0].detections) == ["7", "screws"]
