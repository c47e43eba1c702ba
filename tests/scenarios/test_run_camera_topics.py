"""Cameras in runs: topics, latency, recordings, counts of missing images, and saved states."""

import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.harness.bus import BusHarness, Traffic
from tests.harness.scenarios import recording_digest

import roboyard as ry
from roboyard.messages.convert import cloud_to_arrays, image_to_array
from roboyard.record import open_recording
from roboyard.rendering.backends import available_backend
from roboyard.scenarios import RecordConfig, Run
from roboyard.scenarios.ground_truth import compare_depth_images
from roboyard.simulation.faults import SensorFault

SEER = """<sdf version="1.11"><model name="seer"><link name="base"><gravity>0</gravity>
  <inertial><mass>1</mass></inertial>
  <sensor name="eye" type="rgbd_camera"><pose>0 0 0.5 0 0.3 0</pose><update_rate>10</update_rate><topic>head</topic>
  <latency>0.04</latency>{more}<camera><horizontal_fov>1.0</horizontal_fov><image><width>64</width><height>48</height>
  </image><clip><near>0.05</near><far>20</far></clip><infrared>true</infrared>
  <depth><pose>0 -0.025 0 0 0 0</pose></depth><noise><type>gaussian</type><stddev>0.01</stddev></noise>
  <depth_noise><model>khoshelham</model><baseline>0.075</baseline></depth_noise></camera></sensor></link></model></sdf>"""
OUTPUTS = {
    "/head/image": ry.msg.Image, "/head/depth/image": ry.msg.Image, "/head/depth_registered/image": ry.msg.Image,
    "/head/ir/image": ry.msg.Image, "/head/points": ry.msg.PointCloud2, "/head/camera_info": ry.msg.CameraInfo,
    "/head/depth/camera_info": ry.msg.CameraInfo, "/head/depth/points": ry.msg.PointCloud2,
}  # fmt: skip


class CameraRun:
    """A robot that is a camera hangs in the arena.

    Args:
        folder: For its description.
        more: Elements of its sensor.
        subscribed: Whether a node subscribes to every output.
        options: Of the run.

    Attributes:
        run: The run, to be closed by the test.
        harness: Its bus.
        received: What came on each output.
    """

    def __init__(self, folder: Path, more: str = "", *, subscribed: bool = True, **options: Any) -> None:
        file = folder / "seer.sdf"
        file.write_text(SEER.format(more=more))
        self.run = Run("arena", seed=5, **{"record": False, **options})
        self.run.add_robot(file, pose=(0, 0, 0.3, 0, 0, 0.4), nodes="none")
        self.harness = BusHarness(bus=self.run.bus)
        self.received: dict[str, Traffic] = {}
        if subscribed:
            self.received = {topic: self.harness.record(topic, kind) for topic, kind in OUTPUTS.items()}


def test_outputs_have_rate_latency_and_frame(tmp_path: Path) -> None:
    camera = CameraRun(tmp_path)
    with camera.run as run:
        run.run_for(0.65)
    for topic, traffic in camera.received.items():
        assert len(traffic) == 6
        for item in traffic:
            stamp = item.message.header.stamp
            assert item.time_ns - (stamp.sec * 10**9 + stamp.nanosec) == 40_000_000
        frame = traffic[0].message.header.frame_id
        separation = topic.startswith(("/head/depth/", "/head/ir/"))
        assert frame == ("eye_depth_optical_frame" if separation else "eye_optical_frame")
    first = {topic: traffic[0].message for topic, traffic in camera.received.items()}
    image = first["/head/image"]
    assert (image.encoding, image.width, image.height) == ("rgb8", 64, 48)
    depth, registered = (first[topic] for topic in ("/head/depth/image", "/head/depth_registered/image"))
    assert depth.encoding == registered.encoding == "32FC1"
    info = first["/head/camera_info"]
    assert info.distortion_model == "plumb_bob"
    assert info.k[0] == pytest.approx(64 / 2 / np.tan(0.5))
    cloud = first["/head/points"]
    assert (cloud.width, cloud.height, [f.name for f in cloud.fields]) == (64, 48, ["x", "y", "z", "rgb"])
    # Points are what the registered depth and camera_info say.
    z = image_to_array(registered)
    points = cloud_to_arrays(cloud)
    is_known = np.isfinite(z)
    assert is_known.mean() > 0.3
    assert np.array_equal(points["z"].reshape(48, 64)[is_known], z[is_known])
    u = np.arange(64)[None, :].repeat(48, 0)
    assert np.allclose(points["x"].reshape(48, 64)[is_known], ((u - info.k[2]) / info.k[0] * z)[is_known], atol=1e-5)
    # Without colours, they are what the depth camera's own image says.
    bare = first["/head/depth/points"]
    assert [f.name for f in bare.fields] == ["x", "y", "z"]
    depth_values = image_to_array(depth)
    is_known = np.isfinite(depth_values)
    assert np.array_equal(cloud_to_arrays(bare)["z"].reshape(48, 64)[is_known], depth_values[is_known])


def test_nothing_is_rendered_without_subscribers(tmp_path: Path) -> None:
    camera = CameraRun(tmp_path, subscribed=False)
    with camera.run as run:
        run.run_for(0.5)
        assert run.simulation.renderer._render_thread is None
        assert run.bus.topics["/head/camera_info"].count == 4
        assert run.bus.topics["/head/image"].count == 0


def test_recording_holds_compressed_images_at_its_rate(tmp_path: Path) -> None:
    camera = CameraRun(tmp_path, record=True, out=tmp_path / "run")
    with camera.run as run:
        run.run_for(1.1)
        report = run.report()
    with open_recording(report.parent / "recording.mcap") as recording:
        messages = [(m.topic, m.message) for m in recording.messages()]
    topics = {topic for topic, _ in messages}
    assert "/head/image/compressed" in topics
    assert not topics & {"/head/image", "/head/depth/image", "/head/points"}
    recorded = {topic: [m for t, m in messages if t == topic] for topic in topics}
    assert len(recorded["/head/image/compressed"]) == 2
    live = {m.header.stamp.nanosec: m for m in camera.received["/head/image"].messages}
    first = recorded["/head/image/compressed"][0]
    decoded_image = np.asarray(Image.open(io.BytesIO(bytes(first.data))))
    assert np.abs(decoded_image.astype(int) - image_to_array(live[first.header.stamp.nanosec])).mean() < 12
    depths = {m.header.stamp.nanosec: m for m in camera.received["/head/depth/image"].messages}
    first = recorded["/head/depth/image/compressed"][0]
    millimetres = np.asarray(Image.open(io.BytesIO(bytes(first.data))))
    true = image_to_array(depths[first.header.stamp.nanosec])
    assert millimetres.dtype == np.uint16
    assert np.allclose(millimetres / 1000.0, np.where(np.isfinite(true), true, 0.0), atol=6e-4)
    assert json.loads((tmp_path / "run/metrics.json").read_text())["provenance"]["renderer"] == available_backend()


def test_batches_record_no_images(tmp_path: Path) -> None:
    camera = CameraRun(tmp_path, subscribed=False, record=RecordConfig(camera_rate=0.0), out=tmp_path / "run")
    with camera.run as run:
        run.run_for(0.5)
        assert not any(topic.endswith("/compressed") for topic in run.bus.topics)


def test_missing_images_are_counted(tmp_path: Path) -> None:
    camera = CameraRun(tmp_path, more="<outage><every>0.5</every><lasts>0.3</lasts></outage>")
    with camera.run as run:
        run.run_for(1.0)
        run.simulation.faults.start("blind", SensorFault("seer", "eye", "silent"))
        run.run_for(1.0)
        run.simulation.faults.end("blind")
        run.run_for(0.92)
        frames = run.simulation_node.camera_frames()["seer"]["eye"]
    assert frames.requested == 29
    assert frames.delivered == len(camera.received["/head/image"])
    assert frames.outage > 0
    assert frames.fault > 3
    assert frames.requested == frames.delivered + frames.dropped + frames.in_flight
    assert frames.in_flight <= 1


def test_noise_fault_reaches_depth_images(tmp_path: Path) -> None:
    camera = CameraRun(tmp_path)
    with camera.run as run:
        run.run_for(0.3)
        run.simulation.faults.start("noise", SensorFault("seer", "eye", "noisy", 0.5))
        run.run_for(0.3)
    before, after = (image_to_array(camera.received["/head/depth/image"][k].message) for k in (0, -1))
    both = np.isfinite(before) & np.isfinite(after)
    assert np.std((after - before)[both]) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("moment_ns", [210_000_000, 500_000_000], ids=["image-in-transit", "between-images"])
def test_run_with_an_image_in_transit_continues_from_a_state(tmp_path: Path, moment_ns: int) -> None:
    complete = CameraRun(tmp_path)
    with complete.run:
        complete.harness.run_until(0.8)
    first = CameraRun(tmp_path)
    with first.run:
        first.harness.run_until(moment_ns * 1e-9)
        saved = pickle.loads(pickle.dumps(first.run.bus.save_state()))
    second = CameraRun(tmp_path)
    with second.run:
        second.run.bus.load_state(saved)
        second.harness.run_until(0.8)
        assert second.run.simulation_node.camera_frames()["seer"]["eye"].requested == 8
    expected = complete.harness.wire(after_ns=moment_ns)
    assert expected
    assert second.harness.wire(after_ns=moment_ns) == expected


_CHILD = """
import sys
from roboyard.scenarios import RecordConfig, Run
with Run("corridor", seed=3, out=sys.argv[2], record=RecordConfig(camera_rate=5.0)) as run:
    run.add_robot(sys.argv[1], pose=(2, 0, 0.5, 0, 0, 0.2), nodes="none")
    run.run_for(0.6)
"""


@pytest.mark.slow
@pytest.mark.parametrize("gl", ["", "disabled"], ids=["opengl", "rays"])
def test_recordings_with_images_are_byte_identical(tmp_path: Path, gl: str) -> None:
    file = tmp_path / "seer.sdf"
    file.write_text(SEER.format(more=""))
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "MUJOCO_GL": gl}
        subprocess.run(
            [sys.executable, "-c", _CHILD, str(file), str(tmp_path / f"run{seed}")], check=True, env=environment,
            capture_output=True, timeout=240,
        )  # fmt: skip
        found.append(recording_digest(tmp_path / f"run{seed}"))
    assert found[0] == found[1]


def test_depth_error_is_measured_only_with_subscribers(tmp_path: Path) -> None:
    camera = CameraRun(tmp_path)
    with camera.run as run:
        run.run_for(0.5)
        run.finish()
        found = run.evaluation.metrics_by_robot()["seer"]
        comparison = compare_depth_images(run.simulation)[0]
    # Khoshelham's noise grows with the square of depth; the median of |N(0, σ)| is 0.67 σ.
    true = comparison.truth[np.isfinite(comparison.truth)]
    spread = 0.5 * 2.85e-3 * np.median(true) ** 2
    assert 0.2 * spread < found["depth_error"] < 3.0 * spread
    assert found["depth_error_ideal"] < 1e-4
    assert 0.3 < found["depth_coverage"] <= 1.0
    camera = CameraRun(tmp_path, subscribed=False)
    with camera.run as run:
        run.run_for(0.3)
        run.finish()
        assert "depth_error" not in run.evaluation.metrics_by_robot()["seer"]
