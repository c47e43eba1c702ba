"""Films a run while it goes on, and develops the film afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable

from roboyard.errors import RoboyardError
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.schema import VideoEntry
from roboyard.scenarios.video import Film, VideoSettings, write_video

_MOST_APART_NS = 50_000_000
"""States are kept at least this often [ns]; pictures between them are interpolated."""


class Filming:
    """Keeps a run's states as its clock moves; drawing them comes later and costs the run nothing.

    Args:
        run: Not started yet.
        entry: How the film shall look.
    """

    def __init__(self, run: Run, entry: VideoEntry) -> None:
        self._run, self._entry = run, entry
        self._film = Film()
        self._period_ns = min(_MOST_APART_NS, max(1, round(1e9 * entry.speed / entry.fps)))
        self._due_ns = 0
        run.bus.executor.on_advance(self._look)
        self._look(run.bus.now_ns)

    def _look(self, time_ns: int) -> None:
        if time_ns >= self._due_ns:
            self._due_ns = (time_ns // self._period_ns + 1) * self._period_ns
            self._film.snap(self._run.simulation)

    def write(self, folder: RunFolder, enough: Callable[[], bool], longest: float = math.inf) -> str:
        """Write the film into the run's folder.

        Args:
            folder: Of the run.
            longest: The film goes so much faster than the scenario says that it takes no longer than this [s].
            enough: Looked at after every picture; True ends the film there, and what there is can be played.

        Returns:
            Why there is no film, "" if there is one.
        """
        self._film.snap(self._run.simulation)
        entry = self._entry
        speed = max(entry.speed, self._run.bus.now_ns / 1e9 / longest)
        settings = VideoSettings(entry.width, entry.height, entry.fps, speed, entry.view)

        def told(done: int, wanted: int) -> None:
            if enough():
                raise _EnoughError

        robot = next((name for name in self._run.robots), None)
        try:
            write_video(folder.video, self._film.takes, robot=robot, settings=settings, progress=told)
        except _EnoughError:
            pass
        except RoboyardError as error:  # a film is a bonus: the run has been judged without it
            return f"no video: {error}"
        return ""


class _EnoughError(Exception):
    """Somebody does not want to wait for the rest."""
