"""Cameras in runs: topics, latency, what is recorded, counts of what never came, states, and the same bytes again."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import roboyard as ry
from roboyard.messages import serialize
from roboyard.messages.convert import cloud_to_arrays, image_to_array
from roboyard.record import open_recording
from roboyard.scenarios import Run
from roboyard.scenarios.depth_looks import look_again
from roboyard.simulation.faults import SensorFault
from roboyard.simulation.render.opening import available_backend

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


class Listener(ry.Node):
    def setup(self):
        self.heard = {}
        for topic, kind in OUTPUTS.items():
            self.subscribe(topic, kind, lambda message, topic=topic: self.take(topic, message))

    def take(self, topic, message):
        self.heard.setdefault(topic, []).append((self.now_ns, message))


def start(tmp_path, more="", listen=True, **options):
    file = tmp_path / "seer.sdf"
    file.write_text(SEER.format(more=more))
    run = Run("arena", seed=5, **{"record": False, **options})
    run.add(file, at=(0, 0, 0.3, 0, 0, 0.4), nodes="none")
    listener = run.add_node(Listener(), "listener") if listen else None
    return run, listener


def test_every_output_comes_at_its_rate_after_its_latency_with_its_frame(tmp_path):
    run, listener = start(tmp_path)
    with run:
        run.run_for(0.65)
    heard = listener.heard
    assert set(heard) == set(OUTPUTS)
    for topic, messages in heard.items():
        assert len(messages) == 6
        for now_ns, message in messages:
            stamp = message.header.stamp
            assert now_ns - (stamp.sec * 10**9 + stamp.nanosec) == 40_000_000
        frame = messages[0][1].header.frame_id
        apart = topic.startswith(("/head/depth/", "/head/ir/"))
        assert frame == ("eye_depth_optical_frame" if apart else "eye_optical_frame")
    image = heard["/head/image"][0][1]
    assert (image.encoding, image.width, image.height) == ("rgb8", 64, 48)
    depth, registered = (heard[topic][0][1] for topic in ("/head/depth/image", "/head/depth_registered/image"))
    assert depth.encoding == registered.encoding == "32FC1"
    info = heard["/head/camera_info"][0][1]
    assert info.distortion_model == "plumb_bob"
    assert info.k[0] == pytest.approx(64 / 2 / np.tan(0.5))
    cloud = heard["/head/points"][0][1]
    assert (cloud.width, cloud.height, [f.name for f in cloud.fields]) == (64, 48, ["x", "y", "z", "rgb"])
    # Points are what the registered depth and camera_info say.
    z = image_to_array(registered)
    points = cloud_to_arrays(cloud)
    known = np.isfinite(z)
    assert known.mean() > 0.3
    assert np.array_equal(points["z"].reshape(48, 64)[known], z[known])
    u = np.arange(64)[None, :].repeat(48, 0)
    assert np.allclose(points["x"].reshape(48, 64)[known], ((u - info.k[2]) / info.k[0] * z)[known], atol=1e-5)
    # Without colours, they are what the depth camera's own picture says.
    bare = heard["/head/depth/points"][0][1]
    assert [f.name for f in bare.fields] == ["x", "y", "z"]
    own = image_to_array(depth)
    known = np.isfinite(own)
    assert np.array_equal(cloud_to_arrays(bare)["z"].reshape(48, 64)[known], own[known])


def test_nobody_looks_nothing_is_drawn(tmp_path):
    run, _ = start(tmp_path, listen=False)
    with run:
        run.run_for(0.5)
        assert run.simulation.looks._studio is None
        assert run.bus.topics["/head/camera_info"].count == 4
        assert run.bus.topics["/head/image"].count == 0


def test_recordings_hold_compressed_pictures_at_the_rate_asked_for_and_no_raw_ones(tmp_path):
    run, listener = start(tmp_path, record=True, out=tmp_path / "run", cameras=2.0)
    with run:
        run.run_for(1.1)
        report = run.report()
    with open_recording(report.parent / "recording.mcap") as recording:
        messages = [(m.topic, m.message) for m in recording.messages()]
    topics = {topic for topic, _ in messages}
    assert "/head/image/compressed" in topics
    assert not topics & {"/head/image", "/head/depth/image", "/head/points"}
    kept = {topic: [m for t, m in messages if t == topic] for topic in topics}
    assert len(kept["/head/image/compressed"]) == 2
    live = {m.header.stamp.nanosec: m for _, m in listener.heard["/head/image"]}
    first = kept["/head/image/compressed"][0]
    picture = np.asarray(Image.open(io.BytesIO(bytes(first.data))))
    assert np.abs(picture.astype(int) - image_to_array(live[first.header.stamp.nanosec])).mean() < 12
    depths = {m.header.stamp.nanosec: m for _, m in listener.heard["/head/depth/image"]}
    first = kept["/head/depth/image/compressed"][0]
    millimetres = np.asarray(Image.open(io.BytesIO(bytes(first.data))))
    true = image_to_array(depths[first.header.stamp.nanosec])
    assert millimetres.dtype == np.uint16
    assert np.allclose(millimetres / 1000.0, np.where(np.isfinite(true), true, 0.0), atol=6e-4)
    assert json.loads((tmp_path / "run/metrics.json").read_text())["provenance"]["renderer"] == available_backend()


def test_batches_record_no_pictures(tmp_path):
    run, _ = start(tmp_path, listen=False, record=True, out=tmp_path / "run", cameras=0.0)
    with run:
        run.run_for(0.5)
        assert not any(topic.endswith("/compressed") for topic in run.bus.topics)


def test_no_picture_goes_missing_without_a_count(tmp_path):
    run, listener = start(tmp_path, more="<outage><every>0.5</every><lasts>0.3</lasts></outage>")
    with run:
        run.run_for(1.0)
        run.simulation.faults.begin("blind", SensorFault("seer", "eye", "silent"))
        run.run_for(1.0)
        run.simulation.faults.end("blind")
        run.run_for(0.92)
        frames = run.simulation_node.frames()["seer"]["eye"]
    assert frames.due == 29
    assert frames.delivered == len(listener.heard["/head/image"])
    assert frames.outage > 0
    assert frames.fault > 3
    assert frames.due == frames.delivered + frames.missed + frames.under_way
    assert frames.under_way <= 1


def test_noise_faults_reach_pictures_clouds_and_all(tmp_path):
    run, listener = start(tmp_path)
    with run:
        run.run_for(0.3)
        run.simulation.faults.begin("noise", SensorFault("seer", "eye", "noisy", 0.5))
        run.run_for(0.3)
    before, after = (image_to_array(listener.heard["/head/depth/image"][k][1]) for k in (0, -1))
    both = np.isfinite(before) & np.isfinite(after)
    assert np.std((after - before)[both]) > 0.3


def messages_of(run):
    seen = []
    run.bus.tap(lambda topic, message, node, time_ns: seen.append((time_ns, topic.name, serialize(message))))
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("moment_ns", [210_000_000, 500_000_000])
def test_a_run_with_a_picture_under_way_goes_on_from_a_saved_state(tmp_path, moment_ns):
    run, _ = start(tmp_path)
    whole = messages_of(run)
    with run:
        run.bus.executor.run_until(800_000_000)
    first, _ = start(tmp_path)
    with first:
        first.bus.executor.run_until(moment_ns)
        saved = pickle.loads(pickle.dumps(first.bus.save()))
    second, _ = start(tmp_path)
    seen = messages_of(second)
    with second:
        seen.clear()
        second.bus.load(saved)
        second.bus.executor.run_until(800_000_000)
        assert second.simulation_node.frames()["seer"]["eye"].due == 8
    assert seen == [item for item in whole if item[0] > moment_ns]


_CHILD = """
import sys
from roboyard.scenarios import Run
from roboyard.scenarios.depth_looks import look_again
with Run("corridor", seed=3, out=sys.argv[2], cameras=5.0) as run:
    run.add(sys.argv[1], at=(2, 0, 0.5, 0, 0, 0.2), nodes="none")
    run.run_for(0.6)
"""


@pytest.mark.slow
@pytest.mark.parametrize("gl", ["", "disabled"])
def test_recordings_are_byte_identical(tmp_path, gl):
    file = tmp_path / "seer.sdf"
    file.write_text(SEER.format(more=""))
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "MUJOCO_GL": gl}
        subprocess.run(
            [sys.executable, "-c", _CHILD, str(file), str(tmp_path / f"run{seed}")], check=True, env=environment,
            capture_output=True, timeout=240,
        )  # fmt: skip
        found.append(hashlib.sha256((tmp_path / f"run{seed}/recording.mcap").read_bytes()).hexdigest())
    assert found[0] == found[1]


def test_depth_is_judged_against_exact_rays_where_somebody_looked(tmp_path):
    run, _ = start(tmp_path)
    with run:
        run.run_for(0.5)
        run.finish()
        found = run.evaluation.by_robot()["seer"]
        look = look_again(run.simulation)[0]
    # Khoshelham's noise grows with the square of depth; the median of |N(0, σ)| is 0.67 σ.
    true = look.truth[np.isfinite(look.truth)]
    spread = 0.5 * 2.85e-3 * np.median(true) ** 2
    assert 0.2 * spread < found["depth_error"] < 3.0 * spread
    assert found["depth_error_ideal"] < 1e-4
    assert 0.3 < found["depth_coverage"] <= 1.0
    run, _ = start(tmp_path, listen=False)
    with run:
        run.run_for(0.3)
        run.finish()
        assert run.evaluation.by_robot()["seer"]["depth_error"] is None
