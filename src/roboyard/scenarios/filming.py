"""Makes the video of a run: keeps its states, and draws them beside the run or after it."""

from __future__ import annotations

import math
from collections.abc import Callable

from roboyard.compute import count_usable_cores
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import RoboyardError, RunError
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.schema import VideoEntry
from roboyard.scenarios.video import Film, VideoSettings, write_video
from roboyard.scenarios.video.render_process import RenderOutcome, RenderProcess

_MAX_STATE_PERIOD_NS = 50_000_000
"""States are kept at least this often [ns]; pictures between them are interpolated."""


class Filming:
    """Keeps a run's states as its clock moves, and has them drawn.

    Beside the run a second process draws into a hidden file, which gets its name when it is complete.  The run never
    waits for it before its clock stands, and nothing of it reaches the run.  Where that process dies, the video is
    drawn after the run from the states, which are kept here, too.

    Args:
        run: Not started yet.
        entry: How the video shall look.
        folder: Of the run.
        concurrent: Draw during the run; needs a second core.
        max_duration: Longest video [s]: a longer run is shown faster than the scenario says.  Frames that are drawn
            during the run ignore it, since the run's end is not known yet.
    """

    def __init__(
        self, run: Run, entry: VideoEntry, folder: RunFolder, *, concurrent: bool, max_duration: float = math.inf
    ) -> None:
        self._run, self._entry, self._folder, self._max_duration = run, entry, folder, max_duration
        self._robot = next((name for name in run.robots), None)
        self._film = Film()
        self._period_ns = min(_MAX_STATE_PERIOD_NS, max(1, round(1e9 * entry.speed / entry.fps)))
        self._due_ns = 0
        self._process: RenderProcess | None = None
        self._note = ""
        if concurrent:
            try:
                if count_usable_cores() < 2:
                    raise RunError("drawing beside it needs a second core")
                self._process = RenderProcess(folder.video, self._robot, self._settings(entry.speed))
            except RoboyardError as error:
                self._note = f"the video was drawn after the run: {error}"
        run.bus.executor.on_advance(self._on_advance)
        self._on_advance(run.bus.now_ns)

    @property
    def is_concurrent(self) -> bool:
        """Whether frames are drawn during the run."""
        return self._process is not None

    def write(self, report: Callable[[str], None], is_stopped: Callable[[], bool]) -> list[str]:
        """Complete the video, and put it into the run's folder.

        Args:
            report: Called with a line about how far it is.
            is_stopped: Looked at after every frame; True ends the video there, and what there is can be played.

        Returns:
            Notes: why there is no video, or why it was not drawn beside the run.
        """
        self._film.snap(self._run.simulation)
        if self._process is not None:
            outcome, error = self._finish_concurrent(self._process, report, is_stopped)
            if outcome == "done":
                return []
            if outcome == "failed" or is_stopped():
                return [f"no video: {error}"]
            self._note = f"the video was drawn after the run: {error}"
        speed = max(self._entry.speed, self._run.bus.now_ns / 1e9 / self._max_duration)
        line = _ProgressLine(report)

        def report_frame(done: int, total: int) -> None:
            line.update(done, total)
            if is_stopped():
                raise _StopError

        notes = [self._note] if self._note else []
        try:
            write_video(
                self._folder.video,
                self._film.takes,
                robot=self._robot,
                settings=self._settings(speed),
                progress=report_frame,
            )
        except _StopError:
            pass
        except RoboyardError as error:  # the run has been judged without its video
            notes.append(f"no video: {error}")
        return notes

    def close(self) -> None:
        """End the process that draws, if it still runs, and remove what it has not completed."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _finish_concurrent(
        self, process: RenderProcess, report: Callable[[str], None], is_stopped: Callable[[], bool]
    ) -> tuple[RenderOutcome, str]:
        """How drawing beside the run ended, and why there is no video."""
        process.update(self._film)
        line, total = _ProgressLine(report), self._total()
        outcome = process.finish(lambda n_frames: line.update(n_frames, total), is_stopped)
        self.close()
        return outcome, process.error

    def _on_advance(self, time_ns: int) -> None:
        if time_ns >= self._due_ns:
            self._due_ns = (time_ns // self._period_ns + 1) * self._period_ns
            self._film.snap(self._run.simulation)
            if self._process is not None:
                self._process.update(self._film)

    def _settings(self, speed: float) -> VideoSettings:
        entry = self._entry
        return VideoSettings(entry.width, entry.height, entry.fps, speed, entry.view)

    def _total(self) -> int:
        segments = self._film.growing
        span = segments[-1].times[-1] - segments[0].times[0]
        return math.floor(span * self._entry.fps / self._entry.speed + 1e-9) + 1


class _ProgressLine:
    """Says how many frames are drawn, and how long the rest takes at the pace since the run's end."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._start: tuple[float, int] | None = None
        report("drawing the video")

    def update(self, n_frames: int, total: int) -> None:
        now = wall_seconds()
        if self._start is None:
            self._start = now, n_frames
        since, n_new = now - self._start[0], n_frames - self._start[1]
        left = f", about {since / n_new * (total - n_frames):.0f} s left" if n_new and since > 1.0 else ""
        self._report(f"drawing the video: frame {n_frames} of {total}{left}")


class _StopError(Exception):
    """The user does not want to wait for the remaining frames."""
