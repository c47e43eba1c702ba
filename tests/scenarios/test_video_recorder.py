"""A second process draws the video during the run: the same video and the same run, however either ends."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import mujoco
import numpy as np
import pytest
from tests.harness.scenarios import ScenarioBuilder
from tests.harness.workers import end_of_process, forked_process
from tests.scenarios.render_process_monitor import MonitoredRenderProcess, run_until_frames_are_drawn

from roboyard.scenarios import RunControl, RunResult, load_scenario, run_scenario, video_recorder
from roboyard.scenarios.run_options import RunObserver, RunOptions, RunProgress
from roboyard.simulation.video import VideoSettings, states_from_poses
from roboyard.simulation.video.render_video import FrameSequence
from roboyard.simulation.video.states import GrowingStateSequence, StateSequence

FRAMES = 16
"""Of 1.5 s, one at their beginning."""


def short_drive() -> ScenarioBuilder:
    """A rover that drives straight for 1.5 s, with a small video."""
    builder = ScenarioBuilder(duration=1.5).drive(0.5, duration=10.0).criterion("covers_distance", "path_length > 0.2")
    return builder.set(video={"width": 64, "height": 48, "fps": 10, "speed": 1})


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """The file of the short drive."""
    return short_drive().write(tmp_path)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[MonitoredRenderProcess]]:
    """Two cores whatever the machine has; gives the processes that were started."""
    started: list[MonitoredRenderProcess] = []

    class ListedRenderProcess(MonitoredRenderProcess):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            started.append(self)

    monkeypatch.setattr(video_recorder, "RenderProcess", ListedRenderProcess)
    monkeypatch.setattr(video_recorder, "count_usable_cores", lambda: 2)
    yield started
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)  # none is left, whatever happened


def run_quietly(
    path: Path, out: Path, *, control: RunControl | None = None, observer: RunObserver | None = None, **options: Any
) -> RunResult:
    """Run a scenario without a report and without a socket."""
    run_options = RunOptions(**{"out": out, "write_report": False, "serve": False, **options})
    return run_scenario(load_scenario(path), run_options, control=control, observer=observer)


def count_frames(path: Path) -> int:
    """Number of frames of a video."""
    return int(imageio_ffmpeg.count_frames_and_secs(str(path))[0])


def hidden_files(folder: Path) -> list[str]:
    """Names of files that begin with a dot."""
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_concurrent_video_equals_one_drawn_afterwards(
    scenario: Path, tmp_path: Path, processes: list[MonitoredRenderProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    concurrent = run_quietly(
        scenario, tmp_path / "concurrent", video="always", observer=RunObserver(on_stage=lines.append)
    )
    assert (len(processes), concurrent.notes) == (1, ())
    assert lines[-1] == f"drawing the video: frame {FRAMES} of {FRAMES}" or f"frame {FRAMES} of {FRAMES}," in lines[-1]
    monkeypatch.setattr(video_recorder, "count_usable_cores", lambda: 1)
    after = run_quietly(scenario, tmp_path / "after", video="always")
    assert len(processes) == 1
    assert [note for note in after.notes if "second core" in note] == list(after.notes) != []
    assert count_frames(concurrent.files["video"]) == FRAMES
    assert concurrent.files["video"].read_bytes() == after.files["video"].read_bytes()
    without_video = run_quietly(scenario, tmp_path / "without_video", video="never")
    recordings = {outcome.files["recording"].read_bytes() for outcome in (concurrent, after, without_video)}
    assert len(recordings) == 1
    assert not hidden_files(tmp_path / "concurrent")


def test_killed_rendering_costs_no_frame_and_is_reported(
    scenario: Path, tmp_path: Path, processes: list[MonitoredRenderProcess]
) -> None:
    def kill(progress: RunProgress) -> None:
        if progress.time >= 1.0 and processes:
            os.kill(processes[0].pid, signal.SIGKILL)

    outcome = run_quietly(scenario, tmp_path / "out", video="always", observer=RunObserver(on_progress=kill))
    assert outcome.success
    (note,) = outcome.notes
    assert "drawn after the run" in note
    assert "exit code -9" in note
    assert count_frames(outcome.files["video"]) == FRAMES
    assert not hidden_files(tmp_path / "out")


def test_stopped_run_leaves_a_playable_video(
    scenario: Path, tmp_path: Path, processes: list[MonitoredRenderProcess]
) -> None:
    control = RunControl()

    def stop(progress: RunProgress) -> None:
        if progress.time >= 1.0:
            processes[0].wait_for_frames(5)  # of ten that can be drawn by now
            control.stop()

    outcome = run_quietly(
        scenario, tmp_path / "out", video="always", observer=RunObserver(on_progress=stop), control=control
    )
    assert (outcome.state, outcome.notes) == ("interrupted", ())
    assert 5 <= count_frames(outcome.files["video"]) <= 11
    assert not hidden_files(tmp_path / "out")


@pytest.mark.parametrize(
    "script", ["exit 1", "echo 'out.mp4: No space left on device' >&2; exit 228"], ids=["silent", "full-disk"]
)
def test_failed_encoder_costs_only_the_video(
    scenario: Path,
    tmp_path: Path,
    processes: list[MonitoredRenderProcess],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
) -> None:
    encoder = tmp_path / "ffmpeg"
    encoder.write_text(f"#!/bin/sh\n{script}\n")
    encoder.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(encoder))
    outcome = run_quietly(scenario, tmp_path / "out", video="always")
    assert outcome.success
    assert len(processes) == 1
    (note,) = outcome.notes
    assert note.startswith("no video: ")
    assert ("No space left" in note) is ("space" in script)
    assert "video" not in outcome.files
    assert not hidden_files(tmp_path / "out")


def test_video_of_failures_is_drawn_after_the_run(
    scenario: Path, tmp_path: Path, processes: list[MonitoredRenderProcess]
) -> None:
    assert "video" not in run_quietly(scenario, tmp_path / "good", video="on_failure").files
    short_drive().criterion("covers_distance", "path_length > 20").write(tmp_path)
    assert "video" in run_quietly(scenario, tmp_path / "bad", video="on_failure").files
    assert processes == []


def test_killed_run_leaves_no_process_and_a_playable_video(scenario: Path, tmp_path: Path) -> None:
    with (
        forked_process(run_until_frames_are_drawn, scenario, tmp_path / "out", 5) as (process, connection),
        end_of_process(connection.recv()) as wait_for_end,
    ):
        process.kill()
        wait_for_end()
    assert count_frames(tmp_path / "out" / "video.mp4") >= 5
    assert not hidden_files(tmp_path / "out")


CART = """
<mujoco><worldbody>
  <geom name="ground::g" type="plane" size="0 0 1" rgba="0.5 0.6 0.5 1"/>{more}
  <body name="cart::base">
    <freejoint name="cart::free"/><geom name="cart::g" type="box" size=".2 .1 .1" rgba="1 .3 0 1"/>
  </body>
</worldbody></mujoco>"""


def make_states(times: np.ndarray, more: str = "") -> StateSequence:
    """A cart that weaves along x."""
    model = mujoco.MjModel.from_xml_string(CART.format(more=more))
    poses = np.tile([0.0, 0, 0.2, 1, 0, 0, 0], (len(times), 1))
    poses[:, 0], poses[:, 1] = times, np.sin(3 * times)
    return states_from_poses(model, times, {"cart": (times, poses)})


@pytest.mark.parametrize("view", ["chase", "overview"])
@pytest.mark.parametrize("seed", range(4))
def test_frames_do_not_depend_on_arrival_of_states(view: str, seed: int) -> None:
    # States at the times of frames and between them; a take may begin at the time of the last state before it.
    random = np.random.default_rng(seed)
    times = np.unique(np.concatenate([np.arange(0, 2.01, 0.1), random.uniform(0, 2, 9)]))
    at_frames = np.flatnonzero(np.abs(10 * times - np.round(10 * times)) < 1e-9)
    first, second = sorted(random.choice(at_frames[2:-1], 2, replace=False))
    column = '<geom name="column::g" type="cylinder" size=".1 1" pos="1 {} 0" rgba="0 0 1 1"/>'
    segments = [
        make_states(times[: first + seed % 2]),
        make_states(times[first : second + seed // 2], column.format(1)),
        make_states(times[second:], column.format(-1)),
    ]
    settings = VideoSettings(48, 32, 10.0, 1.0, view)  # type: ignore[arg-type]
    with FrameSequence("cart", settings) as complete:
        complete.sequences.extend(segments)
        complete.is_complete = True
        expected = []
        while complete.is_ready():
            expected.append(complete.draw())
    early = 0
    with FrameSequence("cart", settings) as growing:
        drawn_frames = []
        for segment in segments:
            grown = GrowingStateSequence(segment.model)
            for time_, posture in ((t, segment.interpolate(t)) for t in segment.times):
                grown.add(float(time_), posture)
                if len(grown.times) == 1:
                    growing.add_sequence(grown)
                while growing.is_ready() and random.random() < 0.9:
                    drawn_frames.append(growing.draw())
        early = len(drawn_frames)
        growing.is_complete = True
        while growing.is_ready():
            drawn_frames.append(growing.draw())
    assert len(expected) == growing.total == 21
    assert early >= (5 if view == "chase" else 1)  # a fixed view waits for the end of a take alone
    for number, (one, other) in enumerate(zip(drawn_frames, expected, strict=True)):
        assert (one == other).all(), f"frame {number}"
