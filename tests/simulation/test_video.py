"""Videos hold the frames that were written, also after an interruption."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import imageio_ffmpeg
import mujoco
import numpy as np
import pytest

from roboyard.description import load_world
from roboyard.errors import ConfigError, RunError, UnknownNameError
from roboyard.simulation import ModelOptions, Simulation
from roboyard.simulation.video import (
    Mp4Writer,
    StateRecorder,
    StateSequence,
    VideoSettings,
    states_from_poses,
    write_video,
)
from roboyard.simulation.video.render_video import draw_caption

CART = """
<mujoco><worldbody>
  <geom name="ground::g" type="plane" size="0 0 1" rgba="0.5 0.6 0.5 1"/>
  <body name="cart::base">
    <freejoint name="cart::free"/><geom name="cart::g" type="box" size=".2 .1 .1" rgba="1 .3 0 1"/>
    <body name="cart::arm" pos="0 0 .1"><joint name="cart::turn" axis="0 0 1"/><geom name="cart::a" size=".04"/></body>
  </body>
</worldbody></mujoco>"""
SMALL = VideoSettings(width=96, height=64, fps=10.0)


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(CART)


def straight_path_states(model, seconds=1.0, speed=1.0, count=11):
    times = np.linspace(0, seconds, count)
    poses = np.tile([0.0, 0, 0.2, 1, 0, 0, 0], (count, 1))
    poses[:, 0] = speed * times
    return states_from_poses(model, times, {"cart": (times, poses)})


def decode_video(path, width=96, height=64) -> np.ndarray:
    """Return all frames of a file, decoded by ffmpeg."""
    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-loglevel",
        "error",
        "-i",
        str(path),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    process = subprocess.run(command, capture_output=True, check=True)
    return np.frombuffer(process.stdout, np.uint8).reshape(-1, height, width, 3)


def test_video_colors_survive_writing(tmp_path):
    colors = [(200, 30, 30), (30, 180, 60), (40, 60, 210)]
    with Mp4Writer(tmp_path / "a.mp4", 64, 48, 5) as writer:
        for color in np.repeat(colors, 5, axis=0):
            writer.add(np.full((48, 64, 3), color, np.uint8))
    frames = decode_video(tmp_path / "a.mp4", 64, 48)
    assert len(frames) == 15
    for frame, color in zip(frames[2::5], colors, strict=True):
        assert np.abs(frame.astype(int).mean((0, 1)) - color).max() < 8


def test_video_has_a_frame_for_each_moment(tmp_path, model):
    progress = []
    count = write_video(
        tmp_path / "b.mp4",
        [straight_path_states(model)],
        robot="cart",
        settings=SMALL,
        on_progress=lambda n_done, of: progress.append((n_done, of)),
    )
    assert count == 11
    assert progress == [(k, 11) for k in range(1, 12)]
    assert len(decode_video(tmp_path / "b.mp4")) == 11


@pytest.mark.parametrize("view", ["chase", "overview", "top"])
def test_robot_is_within_the_video_frame(tmp_path, model, view):
    settings = VideoSettings(width=160, height=96, fps=4.0, view=view, caption=False)
    write_video(tmp_path / "c.mp4", [straight_path_states(model)], robot="cart", settings=settings)
    for frame in decode_video(tmp_path / "c.mp4", 160, 96).astype(int):
        assert ((frame[..., 0] > 130) & (frame[..., 0] > 1.5 * frame[..., 2])).sum() > 20


def test_speed_factor_shortens_the_video(tmp_path, model):
    settings = VideoSettings(width=96, height=64, fps=10.0, speed=2.0)
    assert write_video(tmp_path / "d.mp4", [straight_path_states(model, 2.0)], robot="cart", settings=settings) == 11


def test_video_states_are_interpolated_along_shorter_arcs(model):
    times = np.array([0.0, 1.0])
    poses = np.array([[0.0, 0, 0, np.cos(1.5), 0, 0, np.sin(1.5)], [2.0, 0, 0, np.cos(-1.5), 0, 0, np.sin(-1.5)]])
    sequence = states_from_poses(model, times, {"cart": (times, poses)}, {"cart": {"turn": (times, [0.0, 0.4])}})
    midpoint = sequence.interpolate(0.5).joint_positions
    assert midpoint[:3] == pytest.approx([1, 0, 0])
    assert abs(midpoint[3]) == pytest.approx(0.0, abs=1e-9)  # yaw π, not 0
    assert midpoint[7] == pytest.approx(0.2)
    assert sequence.interpolate(-5.0).joint_positions == pytest.approx(sequence.states[0])
    assert sequence.interpolate(9.0).joint_positions == pytest.approx(sequence.states[1])


def test_unknown_video_names_are_refused_with_valid_ones(tmp_path, model):
    with pytest.raises(UnknownNameError, match="cart"):
        write_video(tmp_path / "e.mp4", [straight_path_states(model)], robot="tractor", settings=SMALL)
    with pytest.raises(UnknownNameError, match="turn"):
        states_from_poses(model, [0.0], {}, {"cart": {"twist": ([0.0], [0.0])}})


def test_video_without_states_is_refused(tmp_path):
    with pytest.raises(RunError, match="the video has no states"):
        write_video(tmp_path / "f.mp4", [])


@pytest.mark.parametrize(("width", "height", "fps"), [(63, 48, 5), (64, 0, 5), (64, 48, 0), (64, 48, float("nan"))])
def test_impossible_video_sizes_are_refused(tmp_path, width, height, fps):
    with pytest.raises(ConfigError):
        Mp4Writer(tmp_path / "g.mp4", width, height, fps)


def test_missing_video_folder_is_named(tmp_path):
    with pytest.raises(RunError, match="nowhere"):
        Mp4Writer(tmp_path / "nowhere" / "h.mp4", 64, 48, 5)


def test_missing_ffmpeg_is_an_error_with_what_to_install(tmp_path, monkeypatch):
    def raise_missing():
        raise RuntimeError("No ffmpeg exe could be found")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", raise_missing)
    with pytest.raises(ConfigError, match="imageio-ffmpeg"):
        Mp4Writer(tmp_path / "i.mp4", 64, 48, 5)


def test_unwritable_video_file_is_an_error_with_its_name(tmp_path):
    (tmp_path / "folder.mp4").mkdir()
    writer = Mp4Writer(tmp_path / "folder.mp4", 64, 48, 5)

    def fill():
        for _ in range(6000):
            writer.add(np.zeros((48, 64, 3), np.uint8))
            time.sleep(0.01)

    with pytest.raises(RunError, match=re.escape("folder.mp4")):
        fill()
    with pytest.raises(RunError, match="closed"):
        writer.add(np.zeros((48, 64, 3), np.uint8))


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_video_can_be_played(tmp_path, end):
    path = tmp_path / "j.mp4"
    script = f"""
        import signal, time, numpy as np
        from roboyard.simulation.video import Mp4Writer
        signal.signal(signal.SIGINT, signal.default_int_handler)  # else ignored where the tests run in the background
        with Mp4Writer({str(path)!r}, 64, 48, 20) as writer:
            for k in range(100000):
                writer.add(np.full((48, 64, 3), k % 255, np.uint8))
                if k == 60:
                    print("going", flush=True)
                time.sleep(0.002)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        os.killpg(process.pid, end)  # as a terminal does with Ctrl-C: the whole group
        process.wait()
    for _ in range(1200):  # ffmpeg completes the file by itself
        try:
            frames = decode_video(path, 64, 48)
            break
        except subprocess.CalledProcessError:
            time.sleep(0.05)
    assert len(frames) >= 60


def test_caption_changes_only_its_corner():
    image = np.full((180, 320, 3), 120, np.uint8)
    draw_caption(image, "rover", "00:01.0   0.50 m/s")
    assert (image[:120] == 120).all()
    assert (image[:, 200:] == 120).all()
    assert image[130:175, 8:120].max() > 200
    tiny = np.full((8, 12, 3), 9, np.uint8)
    draw_caption(tiny, "rover", "")
    assert (tiny == 9).all()


BOX = """<model name="box"><pose>0 0 {z} 0 0 0</pose><link name="l"><inertial><mass>1</mass></inertial>
  <collision name="c"><geometry><box><size>.2 .2 .2</size></box></geometry></collision>
  <visual name="v"><geometry><box><size>.2 .2 .2</size></box></geometry></visual></link></model>"""


def test_video_continues_when_models_are_added(tmp_path):
    from roboyard.description import load_model
    from roboyard.geometry import SE3

    simulation = Simulation(load_world(f'<sdf version="1.9"><world name="w">{BOX.format(z=2)}</world></sdf>'))
    recorder = StateRecorder()
    for step in range(6):
        if step == 3:
            text = f'<sdf version="1.9">{BOX.format(z=0)}</sdf>'
            simulation.add(load_model(text), name="second", T_world_model=SE3.from_xyz_rpy((1, 0, 1)))
        recorder.capture(simulation)
        recorder.capture(simulation)
        simulation.step(50)
    assert [len(sequence.times) for sequence in recorder.sequences] == [3, 3]
    assert all(
        isinstance(sequence, StateSequence) and sequence.states.shape[1] == sequence.model.nq
        for sequence in recorder.sequences
    )
    assert recorder.sequences[0].states[-1, 2] < 2.0
    assert write_video(tmp_path / "k.mp4", recorder.sequences, robot="box", settings=SMALL) == 6


def test_video_shows_people_live_and_from_recorded_poses():
    from roboyard.people import BodyDimensions, make_person_model
    from roboyard.people.skeleton import PARTS, REST_POSE_ROTATIONS

    body = make_person_model(BodyDimensions.from_percentile(50, "female"))
    simulation = Simulation(load_world('<sdf version="1.9"><world name="w"/></sdf>'))
    simulation.add(body.model, "anna", options=ModelOptions(compliant_parts=body.compliant_parts))
    recorder, recorded_poses = StateRecorder(), []
    for x in (0.0, 1.0, 2.0):
        positions, rotations = body.skeleton.compute_part_poses(
            np.array([x, 0.0, body.skeleton.offsets[0][2]]), REST_POSE_ROTATIONS
        )
        simulation.world.compliant_bodies.move_to("anna", positions, rotations, 0.02)
        simulation.step(50)
        recorder.capture(simulation)
        recorded_poses.append(np.concatenate([positions, rotations], axis=1))
    (sequence,) = recorder.sequences
    mocap_poses = {part: (sequence.times, [poses[k] for poses in recorded_poses]) for k, part in enumerate(PARTS)}
    rebuilt = states_from_poses(sequence.model, sequence.times, {}, mocap_poses={"anna": mocap_poses})
    for moment in np.linspace(sequence.times[0], sequence.times[-1], 7):
        expected = np.interp(moment, sequence.times, [0.0, 1.0, 2.0])
        for scene_state in (sequence.interpolate(moment), rebuilt.interpolate(moment)):
            assert scene_state.mocap_positions[:, 0].mean() == pytest.approx(expected, abs=0.05)
        assert rebuilt.interpolate(moment).mocap_positions == pytest.approx(
            sequence.interpolate(moment).mocap_positions, abs=1e-6
        )
    with pytest.raises(UnknownNameError, match="tail"):
        states_from_poses(sequence.model, sequence.times, {}, mocap_poses={"anna": {"tail": mocap_poses["head"]}})


@pytest.mark.parametrize("letter", "×·°µ²/:-ä")
def test_captions_have_a_glyph_for_each_character(letter: str) -> None:
    from roboyard.simulation.video.render_video import _font

    font = _font(20)
    missing = bytes(font.getmask("\U0010ffff"))
    assert bytes(font.getmask(letter)) != missing
