"""A video is drawn by a second process while the run goes on: the same video, the same run, however either ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import mujoco
import numpy as np
import pytest

from roboyard.scenarios import Control, Outcome, filming, load_spec, run_scenario
from roboyard.scenarios.clock import Progress
from roboyard.scenarios.video import VideoSettings, states_from_poses
from roboyard.scenarios.video.film import GrowingTake, Take
from roboyard.scenarios.video.render_process import RenderProcess
from roboyard.scenarios.video.shoot import FrameSequence

SCENARIO = """\
world: empty
robots: {rover: {model: rover}}
operator: [{drive: {v: 0.5, for: 10}}]
duration: 2
criteria: {drives: path_length > 0.2}
video: {width: 64, height: 48, fps: 10, speed: 1}
"""
FRAMES = 21


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RenderProcess]]:
    """Two cores whatever the machine has; gives the processes that were started."""
    made: list[RenderProcess] = []

    class Watched(RenderProcess):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(filming, "RenderProcess", Watched)
    monkeypatch.setattr(filming, "usable_cores", lambda: 2)
    yield made
    for process in made:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)  # none is left, whatever happened


def quiet(path: Path, out: Path, **options: object) -> Outcome:
    return run_scenario(load_spec(path), out=out, report=False, serve=False, **options)  # type: ignore[arg-type]


def frames_of(path: Path) -> int:
    return int(imageio_ffmpeg.count_frames_and_secs(str(path))[0])


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_the_video_is_that_of_a_run_that_is_drawn_afterwards(
    scenario: Path, tmp_path: Path, processes: list[RenderProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    beside = quiet(scenario, tmp_path / "beside", video=True, stage=said.append)
    assert (len(processes), beside.notes) == (1, ())
    assert said[-1] == f"drawing the video: frame {FRAMES} of {FRAMES}" or f"frame {FRAMES} of {FRAMES}," in said[-1]
    monkeypatch.setattr(filming, "usable_cores", lambda: 1)
    after = quiet(scenario, tmp_path / "after", video=True)
    assert len(processes) == 1
    assert [note for note in after.notes if "second core" in note] == list(after.notes) != []
    assert frames_of(beside.files["video"]) == FRAMES
    assert beside.files["video"].read_bytes() == after.files["video"].read_bytes()
    none = quiet(scenario, tmp_path / "none", video=False)
    recordings = {outcome.files["recording"].read_bytes() for outcome in (beside, after, none)}
    assert len(recordings) == 1
    assert not hidden(tmp_path / "beside")


def test_a_process_that_is_killed_costs_no_frame_and_is_reported_once(
    scenario: Path, tmp_path: Path, processes: list[RenderProcess]
) -> None:
    def kill(progress: Progress) -> None:
        if progress.time >= 1.0 and processes:
            os.kill(processes[0].pid, signal.SIGKILL)

    outcome = quiet(scenario, tmp_path / "out", video=True, progress=kill)
    assert outcome.success
    (note,) = outcome.notes
    assert "drawn after the run" in note
    assert "exit code -9" in note
    assert frames_of(outcome.files["video"]) == FRAMES
    assert not hidden(tmp_path / "out")


def test_a_run_that_is_stopped_leaves_a_video_that_plays(
    scenario: Path, tmp_path: Path, processes: list[RenderProcess]
) -> None:
    control = Control()

    def stop(progress: Progress) -> None:
        if progress.time >= 1.0:
            while processes[0].n_frames < 5:  # of ten that can be drawn by now
                assert processes[0]._outcome is None
                time.sleep(0.01)
            control.stop()

    outcome = quiet(scenario, tmp_path / "out", video=True, progress=stop, control=control)
    assert (outcome.state, outcome.notes) == ("interrupted", ())
    assert 5 <= frames_of(outcome.files["video"]) <= 11
    assert not hidden(tmp_path / "out")


@pytest.mark.parametrize("script", ["exit 1", "echo 'out.mp4: No space left on device' >&2; exit 228"])
def test_an_encoder_that_fails_costs_the_video_alone(
    scenario: Path, tmp_path: Path, processes: list[RenderProcess], monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    encoder = tmp_path / "ffmpeg"
    encoder.write_text(f"#!/bin/sh\n{script}\n")
    encoder.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(encoder))
    outcome = quiet(scenario, tmp_path / "out", video=True)
    assert outcome.success
    assert len(processes) == 1
    (note,) = outcome.notes
    assert note.startswith("no video: ")
    assert ("No space left" in note) is ("space" in script)
    assert "video" not in outcome.files
    assert not hidden(tmp_path / "out")


def test_where_only_failures_get_a_video_nothing_is_drawn_before_the_end(
    scenario: Path, tmp_path: Path, processes: list[RenderProcess]
) -> None:
    assert "video" not in quiet(scenario, tmp_path / "good", video="failed").files
    scenario.write_text(SCENARIO.replace("> 0.2", "> 20"))
    assert "video" in quiet(scenario, tmp_path / "bad", video="failed").files
    assert processes == []


def test_a_run_that_is_killed_leaves_no_process_and_a_video_that_plays(scenario: Path, tmp_path: Path) -> None:
    program = f"""
        import time
        from roboyard.scenarios import filming, load_spec, run_scenario
        from roboyard.scenarios.video.render_process import RenderProcess
        made = []
        class Watched(RenderProcess):
            def __init__(self, *arguments):
                super().__init__(*arguments)
                made.append(self)
        filming.RenderProcess, filming.usable_cores = Watched, lambda: 2
        def wait(progress):
            if progress.time >= 1.0:
                while made[0].n_frames < 5:
                    time.sleep(0.01)
                print(made[0].pid, flush=True)
                time.sleep(600)
        run_scenario(load_spec({str(scenario)!r}), out={str(tmp_path / "out")!r}, video=True, progress=wait)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    while is_alive(pid):  # it ends by itself
        time.sleep(0.01)
    assert frames_of(tmp_path / "out" / "video.mp4") >= 5
    assert not hidden(tmp_path / "out")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may stand in the table until somebody asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


CART = """
<mujoco><worldbody>
  <geom name="ground::g" type="plane" size="0 0 1" rgba="0.5 0.6 0.5 1"/>{more}
  <body name="cart::base">
    <freejoint name="cart::free"/><geom name="cart::g" type="box" size=".2 .1 .1" rgba="1 .3 0 1"/>
  </body>
</worldbody></mujoco>"""


def take_of(times: np.ndarray, more: str = "") -> Take:
    model = mujoco.MjModel.from_xml_string(CART.format(more=more))
    poses = np.tile([0.0, 0, 0.2, 1, 0, 0, 0], (len(times), 1))
    poses[:, 0], poses[:, 1] = times, np.sin(3 * times)
    return states_from_poses(model, times, {"cart": (times, poses)})


@pytest.mark.parametrize("view", ["chase", "overview"])
@pytest.mark.parametrize("seed", range(4))
def test_frames_do_not_depend_on_when_the_states_come(view: str, seed: int) -> None:
    # States at the times of frames and between them; a take may begin at the time of the last state before it.
    random = np.random.default_rng(seed)
    times = np.unique(np.concatenate([np.arange(0, 2.01, 0.1), random.uniform(0, 2, 9)]))
    at_frames = np.flatnonzero(np.abs(10 * times - np.round(10 * times)) < 1e-9)
    first, second = sorted(random.choice(at_frames[2:-1], 2, replace=False))
    column = '<geom name="column::g" type="cylinder" size=".1 1" pos="1 {} 0" rgba="0 0 1 1"/>'
    takes = [
        take_of(times[: first + seed % 2]),
        take_of(times[first : second + seed // 2], column.format(1)),
        take_of(times[second:], column.format(-1)),
    ]
    settings = VideoSettings(96, 64, 10.0, 1.0, view)  # type: ignore[arg-type]
    with FrameSequence("cart", settings) as whole:
        whole.takes.extend(takes)
        whole.is_complete = True
        expected = []
        while whole.is_ready():
            expected.append(whole.draw())
    early = 0
    with FrameSequence("cart", settings) as growing:
        drawn = []
        for take in takes:
            grown = GrowingTake(take.model)
            for time_, posture in ((t, take.at(t)) for t in take.times):
                grown.add(float(time_), posture)
                if len(grown.times) == 1:
                    growing.add_take(grown)
                while growing.is_ready() and random.random() < 0.9:
                    drawn.append(growing.draw())
        early = len(drawn)
        growing.is_complete = True
        while growing.is_ready():
            drawn.append(growing.draw())
    assert len(expected) == growing.total == 21
    assert early >= (5 if view == "chase" else 1)  # a fixed view waits for the end of a take alone
    for number, (one, other) in enumerate(zip(drawn, expected, strict=True)):
        assert (one == other).all(), f"frame {number}"
