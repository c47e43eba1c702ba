"""Render processes that a test can monitor, and runs that wait for the frames of these processes."""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection
from pathlib import Path

from roboyard.scenarios import load_scenario, run_scenario, video_recorder
from roboyard.scenarios.run_options import RunObserver, RunOptions, RunProgress
from roboyard.simulation.video.render_process import RenderProcess


class MonitoredRenderProcess(RenderProcess):
    """A render process that lets a test wait for its frames."""

    def __init__(self, *arguments: object) -> None:
        self._frames = threading.Condition()
        super().__init__(*arguments)  # type: ignore[arg-type]

    @property
    def n_frames(self) -> int:  # type: ignore[override]
        """Number of frames drawn so far."""
        return self._n_frames

    @n_frames.setter
    def n_frames(self, value: int) -> None:
        with self._frames:
            self._n_frames = value
            self._frames.notify_all()

    def wait_for_frames(self, count: int, timeout: float = 120.0) -> None:
        """Wait until that many frames are drawn; fails if they are not in time [s]."""
        with self._frames:
            assert self._frames.wait_for(lambda: self._n_frames >= count, timeout), f"{self._n_frames} of {count}"


def run_until_frames_are_drawn(scenario: Path, out: Path, count: int, connection: Connection) -> None:
    """Run a scenario, and send the number of the process that draws when it has drawn some frames; then hang."""
    processes: list[MonitoredRenderProcess] = []

    class RegisteredRenderProcess(MonitoredRenderProcess):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            processes.append(self)

    def hang(progress: RunProgress) -> None:
        if progress.time >= 1.0:
            processes[0].wait_for_frames(count)
            connection.send(processes[0].pid)
            connection.recv()

    video_recorder.RenderProcess = RegisteredRenderProcess  # type: ignore[misc]
    video_recorder.count_usable_cores = lambda: 2  # type: ignore[assignment]
    run_scenario(
        load_scenario(scenario),
        RunOptions(out=out, write_report=False, serve=False, video="always"),
        observer=RunObserver(on_progress=hang),
    )
