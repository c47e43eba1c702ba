"""Lets a run's clock go, under somebody's hand, until it ends one way or another."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from roboyard.errors import RoboyardError, describe_exception
from roboyard.scenarios.control import Control
from roboyard.scenarios.document import State, totals
from roboyard.scenarios.expressions import Criterion
from roboyard.scenarios.run import Run

_SLICE_NS = 100_000_000
"""How often progress is told and ``until`` is looked at [ns of simulated time]."""


_PATIENCE_NS = 10_000_000_000
"""How long saving a state waits for offloaded work [ns of simulated time]."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: simulated time and duration [s], wall time [s]."""

    time: float
    duration: float
    wall_seconds: float

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per wall second so far."""
        return self.time / self.wall_seconds if self.wall_seconds > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How the clock came to stand: ``unexpected`` is a fault of the program, not of a node or file."""

    state: State
    error: str | None = None
    trace: str = ""
    unexpected: BaseException | None = None


def let_run(
    run: Run,
    duration: float,
    control: Control,
    until: Criterion | None = None,
    progress: Callable[[Progress], None] | None = None,
    save: Callable[[Path], None] | None = None,
) -> Ending:
    """Run to the end, or until somebody stops it, something fails, or ``until`` holds.

    Args:
        run: Assembled.
        duration: Simulated time at which it ends [s].
        control: The hand on the clock.
        until: Ends it early.
        progress: Called every 0.1 simulated seconds.
        save: Saves the run's state to a file when ``control`` wants it.
    """
    end_ns = round(duration * 1e9)
    try:
        while run.bus.now_ns < end_ns and not control.stopping:
            if save is not None and (wanted := control.next_save()) is not None:
                _drain(run, control, end_ns)
                _save(run, save, *wanted)
                continue
            step = control.next_step()
            if step is not None:
                _step(run, step, end_ns)
            else:
                target_ns = min((run.bus.now_ns // _SLICE_NS + 1) * _SLICE_NS, end_ns)
                run.advance(target_ns, control.wanted)
                if run.bus.now_ns < target_ns and not control.wanted():
                    control.stop()  # another process said so through the socket
            if progress is not None:
                progress(Progress(run.time, duration, run.wall_seconds))
            if until is not None and until.judge(run.evaluation.flat(totals(run), until.names)).passed:
                break
        while save is not None and (wanted := control.next_save()) is not None:
            _save(run, save, *wanted)
    except KeyboardInterrupt:
        return Ending("interrupted")
    except RoboyardError as error:
        return Ending("failed", str(error), "".join(traceback.format_exception(error)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what was recorded is saved first, then it is raised again
        return Ending("failed", describe_exception(error), "".join(traceback.format_exception(error)), error)
    return Ending("interrupted" if control.stopping else "done")


def _drain(run: Run, control: Control, end_ns: int) -> None:
    """Go on to the first instant at which no offloaded work is under way, if there is one soon."""
    until_ns = min(run.bus.now_ns + _PATIENCE_NS, end_ns)
    run.advance(until_ns, lambda: control.stopping or not run.bus.offload.pending)


def _save(run: Run, save: Callable[[Path], None], path: Path, must: bool) -> None:
    try:
        save(path)
    except RoboyardError as error:
        if must:
            raise
        run.bus.log.error(f"the state was not saved: {error}")


def _step(run: Run, seconds: float, end_ns: int) -> None:
    """Run one step of a paused run: ``seconds`` of simulated time, or one instant if that is 0."""
    executor = run.bus.executor
    if seconds <= 0.0:
        executor.step()
        return
    paused, executor.paused = executor.paused, False
    try:
        run.advance(min(run.bus.now_ns + round(seconds * 1e9), end_ns))
    finally:
        executor.paused = paused


def finish(run: Run, ending: Ending) -> Ending:
    """Close everything; an error in that counts unless there was one before."""
    try:
        run.finish()
    except RoboyardError as error:
        if ending.error is None:
            return Ending("failed", str(error), "".join(traceback.format_exception(error)))
    return ending
