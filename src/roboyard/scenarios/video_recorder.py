"""Records the video of a run: captures its states, and renders them in a second process or after the run."""

from __future__ import annotations

import math
from collections.abc import Callable

from roboyard.compute import count_usable_cores
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import RoboyardError, RunError
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.schema import VideoConfig
from roboyard.simulation.video import StateRecorder, VideoSettings, write_video
from roboyard.simulation.video.render_process import RenderOutcome, RenderProcess

_MAX_STATE_PERIOD_NS = 50_000_000
"""Longest period between stored states [ns]; frames between them are interpolated."""


class VideoRecorder:
    """Stores the states of a run as its clock advances, and renders them into a video.

    During the run a second process renders into a hidden file, which gets its name when it is complete.  The run does
    not wait for this process before its end, and the process does not affect the run.  If the process dies, the video
    is rendered after the run from the stored states.

    Args:
        run: Run that has not started yet.
        config: Settings of the video.
        folder: Folder of the run.
        concurrent: Whether to render during the run; needs a second core.
        max_duration: Longest video [s]: a longer run is shown faster than the scenario says.  Frames that are rendered
            during the run ignore it, since the end of the run is not known yet.
    """

    def __init__(
        self, run: Run, config: VideoConfig, folder: RunFolder, *, concurrent: bool, max_duration: float = math.inf
    ) -> None:
        self._run, self._config, self._folder, self._max_duration = run, config, folder, max_duration
        self._robot = next((name for name in run.robots), None)
        self._state_recorder = StateRecorder()
        self._period_ns = min(_MAX_STATE_PERIOD_NS, max(1, round(1e9 * config.speed / config.fps)))
        self._due_ns = 0
        self._process: RenderProcess | None = None
        self._note = ""
        if concurrent:
            try:
                if count_usable_cores() < 2:
                    raise RunError("drawing beside it needs a second core")
                self._process = RenderProcess(folder.video, self._robot, self._settings(config.speed))
            except RoboyardError as error:
                self._note = f"the video was drawn after the run: {error}"
        run.bus.executor.on_advance(self._on_advance)
        self._on_advance(run.bus.now_ns)

    @property
    def is_concurrent(self) -> bool:
        """Whether frames are rendered during the run."""
        return self._process is not None

    def write(self, on_stage: Callable[[str], None], is_stopped: Callable[[], bool]) -> list[str]:
        """Complete the video, and move it into the folder of the run.

        Args:
            on_stage: Function that receives a line about the progress.
            is_stopped: Condition that is checked after every frame; True ends the video there, and it can be played.

        Returns:
            Notes: why there is no video, or why it was not rendered during the run.
        """
        self._state_recorder.capture(self._run.simulation)
        if self._process is not None:
            outcome, error = self._finish_concurrent(self._process, on_stage, is_stopped)
            if outcome == "done":
                return []
            if outcome == "failed" or is_stopped():
                return [f"no video: {error}"]
            self._note = f"the video was drawn after the run: {error}"
        speed = max(self._config.speed, self._run.bus.now_ns / 1e9 / self._max_duration)
        line = _ProgressLine(on_stage)

        def report_frame(n_frames: int, total: int) -> None:
            line.update(n_frames, total)
            if is_stopped():
                raise _StopError

        notes = [self._note] if self._note else []
        try:
            write_video(
                self._folder.video,
                self._state_recorder.sequences,
                robot=self._robot,
                settings=self._settings(speed),
                on_progress=report_frame,
            )
        except _StopError:
            pass
        except RoboyardError as error:  # the run has been judged without its video
            notes.append(f"no video: {error}")
        return notes

    def close(self) -> None:
        """End the rendering process if it still runs, and remove an incomplete video."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _finish_concurrent(
        self, process: RenderProcess, on_stage: Callable[[str], None], is_stopped: Callable[[], bool]
    ) -> tuple[RenderOutcome, str]:
        """Return how the rendering process ended, and why there is no video."""
        process.update(self._state_recorder)
        line, total = _ProgressLine(on_stage), self._count_frames()
        outcome = process.finish(lambda n_frames: line.update(n_frames, total), is_stopped)
        self.close()
        return outcome, process.error

    def _on_advance(self, time_ns: int) -> None:
        if time_ns >= self._due_ns:
            self._due_ns = (time_ns // self._period_ns + 1) * self._period_ns
            self._state_recorder.capture(self._run.simulation)
            if self._process is not None:
                self._process.update(self._state_recorder)

    def _settings(self, speed: float) -> VideoSettings:
        config = self._config
        return VideoSettings(config.width, config.height, config.fps, speed, config.view)

    def _count_frames(self) -> int:
        segments = self._state_recorder.growing_sequences
        span = segments[-1].times[-1] - segments[0].times[0]
        return math.floor(span * self._config.fps / self._config.speed + 1e-9) + 1


class _ProgressLine:
    """Reports how many frames are rendered, and the remaining time at the rate since the end of the run."""

    def __init__(self, on_stage: Callable[[str], None]) -> None:
        self._on_stage = on_stage
        self._start: tuple[float, int] | None = None
        on_stage("drawing the video")

    def update(self, n_frames: int, total: int) -> None:
        now = wall_seconds()
        if self._start is None:
            self._start = now, n_frames
        elapsed, n_new = now - self._start[0], n_frames - self._start[1]
        remaining_text = f", about {elapsed / n_new * (total - n_frames):.0f} s left" if n_new and elapsed > 1.0 else ""
        self._on_stage(f"drawing the video: frame {n_frames} of {total}{remaining_text}")


class _StopError(Exception):
    """The user stopped the rendering of the remaining frames."""
