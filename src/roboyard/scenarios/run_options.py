"""How a run is executed (not what happens in it), and the functions that observe its progress."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from roboyard.config import parameter

if TYPE_CHECKING:
    from roboyard.bus.log import LogRecord

VideoMode: TypeAlias = Literal["as_configured", "always", "on_failure", "never"]
"""When a run makes a video; "as_configured": as the scenario's key `video` says."""
BridgeFactory: TypeAlias = Callable[[Any], AbstractContextManager[object]]
"""Opens a bridge to other programs for a `Run`; the context ends with the run."""


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """A snapshot to save at the first instant at or after a simulated time [s]."""

    time: float
    path: str | Path


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How `run_scenario` executes a scenario.

    The video is rendered by a second process during the run, or after the run where the machine has one core;
    "on_failure" renders the whole run as a video of at most 30 s, if the run did not succeed.

    Raises:
        ConfigError: A value is of the wrong type, or ``video`` is none of the modes.
    """

    out: str | Path | None = parameter(None, doc="folder of the run, new or empty; default: runs_folder/SCENARIO-NNN")
    runs_folder: str | Path = parameter("runs", doc="where new folders are created")
    write_files: bool = parameter(True, doc="leave a run folder; without it there is no recording and no report")
    write_report: bool = parameter(True, doc="write report.html")
    video: VideoMode = parameter("as_configured", doc="when a video is made")
    replay_inputs: str | Path | None = parameter(None, doc="repeat the external inputs of this recording or run folder")
    from_snapshot: str | Path | None = parameter(None, doc="continue from a snapshot that this scenario saved")
    snapshots: tuple[SnapshotRequest, ...] = parameter((), doc="snapshots to save during the run")
    serve: bool = parameter(True, doc="let other processes reach the run through its local socket")
    bridges: tuple[BridgeFactory, ...] = parameter((), doc="bridges to other programs, open while the run executes")

    def __post_init__(self) -> None:
        from roboyard.config import check

        check(self, skip=("snapshots", "bridges"))


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is: simulated time and duration [s], wall time [s]."""

    time: float
    duration: float
    wall_seconds: float

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per wall second so far."""
        return self.time / self.wall_seconds if self.wall_seconds > 0.0 else 0.0


def _ignore(_: Any) -> None:
    """Ignore an event that has no observer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObserver:
    """Functions that are called while a run is executed; each does nothing by default.

    Attributes:
        on_started: Called with the `Run` when it is built, before its clock starts.
        on_progress: Called every 0.1 simulated seconds.
        on_log: Called with every line of the run's log.
        on_stage: Called with a text about work besides the clock, as "drawing the video: frame 7 of 60".
    """

    on_started: Callable[[Any], None] = _ignore
    on_progress: Callable[[RunProgress], None] = _ignore
    on_log: Callable[[LogRecord], None] = _ignore
    on_stage: Callable[[str], None] = _ignore
