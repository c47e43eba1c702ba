"""Displays of a run and of a batch in progress: a progress line on a terminal, else lines at intervals."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from roboyard.cli import terminal
from roboyard.cli.key_input import KeyInput
from roboyard.compute.wall_clock import wall_seconds

if TYPE_CHECKING:
    from roboyard.bus import Bus
    from roboyard.bus.log import LogRecord
    from roboyard.scenarios.batch.worker import TrialResult


_REFRESH_RATE = 5
"""Refresh rate of the line [Hz]; each refresh takes a few milliseconds of the run."""
_QUIET_PERIOD = 10.0
"""Wall time between two lines where the terminal cannot be redrawn [s]."""
_LONG_STEP_SECONDS = 0.1
_WINDOW = 2.0
"""Window over which the real-time factor is measured [wall s]."""


class RunControls(Protocol):
    """Controls of a run that the keys use."""

    def pause(self) -> None:
        """Pause the run."""

    def resume(self) -> None:
        """Resume the run."""

    def step(self, seconds: float = 0.0) -> None:
        """Advance the run by some time [s], or to the next event."""

    def stop(self) -> None:
        """Stop the run and let it write its files."""


class RunDisplay:
    """Displays the time and the real-time factor of a run, and lets keys control it; a context manager.

    Args:
        name: Name of the run.
        duration: Simulated duration [s]; None if it is not known.
        controls: Controls that the keys use.
        quiet: Show only errors of nodes.
    """

    def __init__(self, name: str, duration: float | None, controls: RunControls, *, quiet: bool = False) -> None:
        self._name = name
        self._duration = duration
        self._controls = controls
        self._quiet = quiet
        self._is_interactive = not quiet and terminal.is_interactive()
        self._bus: Bus | None = None
        self._phase = "assembling"
        self._stack = ExitStack()
        self._keys: KeyInput | None = None
        self._console: Any = None
        self._real_time_factor = _RealTimeFactor()
        self._start_ns = 0
        self._next_line_at = 0.0

    def __enter__(self) -> RunDisplay:
        self._keys = self._stack.enter_context(KeyInput(self._on_key, self._on_signal))
        if self._is_interactive:
            from roboyard.cli.terminal import draw_progress

            self._console = self._stack.enter_context(draw_progress(self._line, self._fraction, _REFRESH_RATE))
        self._next_line_at = wall_seconds() + _QUIET_PERIOD
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def signal(self) -> int | None:
        """The first signal that requested the end."""
        numbers = self._keys.signals if self._keys else []
        return next((n for n in numbers if n in (signal.SIGINT, signal.SIGTERM)), None)

    # -- events of the run ----------------------------------------------------------------------------------------
    def start(self, bus: Bus) -> None:
        """Show that the run starts."""
        self._bus = bus
        self._start_ns = bus.now_ns
        self._phase = "running"
        self._real_time_factor.update(bus.now_ns)

    def show_phase(self, phase: str) -> None:
        """Show a phase before or after the simulation, e.g. "writing the report".

        "drawing the video: frame 7 of 60" continues "drawing the video". Where the terminal cannot be redrawn, such a
        line is written at intervals.
        """
        continues = ":" in phase and phase.partition(":")[0] == self._phase.partition(":")[0]
        self._phase = phase
        if self._is_interactive or self._quiet or (continues and wall_seconds() < self._next_line_at):
            return
        self._next_line_at = wall_seconds() + _QUIET_PERIOD
        terminal.print_note(f"{self._name}: {phase}")

    def tick(self) -> None:
        """Show that the run continues: where the terminal cannot be redrawn, write a line at intervals."""
        if not self._is_interactive and not self._quiet and wall_seconds() >= self._next_line_at:
            self._next_line_at = wall_seconds() + _QUIET_PERIOD
            terminal.print_note(self._line())

    def warn(self, text: str) -> None:
        """Show a line above the one that is redrawn."""
        if self._console is not None:
            self._console.print(f"warning: {text}", style="yellow", markup=False, highlight=False)
        elif not self._quiet:
            terminal.print_note(f"warning: {text}")

    def log(self, record: LogRecord) -> None:
        """Show warnings and errors of nodes."""
        if record.level in ("debug", "info") or (self._quiet and record.level == "warn"):
            return
        line = f"{record.time_ns * 1e-9:9.3f} s  {record.level}  {record.node}: {record.text}"
        if self._console is not None:
            self._console.print(
                line, style="red" if record.level != "warn" else "yellow", markup=False, highlight=False
            )
        else:
            terminal.print_note(line)

    # -- keys and signals --------------------------------------------------------------------------------------------
    def _on_key(self, key: str) -> None:
        bus = self._bus
        if bus is None:
            return
        paused = bus.executor.paused
        if key == " ":
            self._controls.resume() if paused else self._controls.pause()
        elif key in "s\n\r":
            self._controls.step() if paused else self._controls.pause()
        elif key == "S" and paused:
            self._controls.step(_LONG_STEP_SECONDS)
        elif key == "q":
            self._phase = "ending"
            self._controls.stop()

    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGTERM) and self._phase != "ending":
            self._phase = "ending"
            if not self._is_interactive and not self._quiet:
                terminal.print_note(f"{self._name}: stopping (Ctrl-C again aborts)")

    # -- the line --------------------------------------------------------------------------------------------------
    def _fraction(self) -> float | None:
        """Return the finished fraction of the run, 0 to 1; None if it is not known."""
        if self._bus is None or not self._duration:
            return None
        return min((self._bus.now_ns - self._start_ns) * 1e-9 / self._duration, 1.0)

    def _line(self) -> str:
        if self._bus is None:
            return f"{self._name}: {self._phase}"
        now_ns, paused = self._bus.now_ns, self._bus.executor.paused
        elapsed = (now_ns - self._start_ns) * 1e-9
        time = f"{elapsed:.3f}" if paused else f"{elapsed:.1f}"
        total = f" of {self._duration:g} s" if self._duration else " s"
        if self._phase not in ("running", "ending"):
            return f"{self._name}: {self._phase}"
        if self._phase == "ending":
            return f"{self._name}: {time}{total}  stopping (Ctrl-C again aborts)"
        if paused:
            keys = "  [space] resume  [s] step  [q] stop" if self._is_interactive else ""
            return f"{self._name}: {time}{total}  paused{keys}"
        real_time_factor = self._real_time_factor.update(now_ns)
        keys = "  [space] pause  [q] stop" if self._is_interactive else ""
        return (
            f"{self._name}: {time}{total}"
            + (f"  {real_time_factor:.3g} × real time" if real_time_factor else "")
            + keys
        )


class _RealTimeFactor:
    """Simulated seconds per wall second over the last two seconds."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, int]] = []

    def update(self, now_ns: int) -> float | None:
        wall = wall_seconds()
        self._samples.append((wall, now_ns))
        while len(self._samples) > 2 and self._samples[0][0] < wall - _WINDOW:
            self._samples.pop(0)
        first_wall, first_ns = self._samples[0]
        return (now_ns - first_ns) * 1e-9 / (wall - first_wall) if wall - first_wall > 0.1 else None


_BATCH_REFRESH_RATE = 4
"""Refresh rate of the line of a batch [Hz]."""


class BatchDisplay:
    """Displays the number of finished and of failed runs; a context manager.

    Args:
        name: Name of the scenario.
        runs: Number of runs.
        quiet: Show nothing.
    """

    def __init__(self, name: str, runs: int, *, quiet: bool = False) -> None:
        self._name = name
        self._runs = runs
        self._quiet = quiet
        self._is_interactive = not quiet and terminal.is_interactive()
        self._console: Any = None
        self._phase = ""
        self._folder: Path | None = None
        self._stack = ExitStack()
        self._n_finished = self._n_new = self._n_failed = 0
        self._start = self._last_line_at = wall_seconds()

    def __enter__(self) -> BatchDisplay:
        if self._is_interactive:
            from roboyard.cli.terminal import draw_progress

            self._console = self._stack.enter_context(
                draw_progress(self._line, lambda: self._n_finished / self._runs, _BATCH_REFRESH_RATE)
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if isinstance(error, KeyboardInterrupt) and self._folder is not None and not self._quiet:
            progress = f"{self._n_finished} of {self._runs} runs"
            terminal.print_note(f"stopped after {progress}; the same command with --out {self._folder} continues")

    def set_folder(self, folder: Path, runs: int) -> None:
        """Set the folder of the batch and the number of runs."""
        self._folder, self._runs = folder, runs

    def show_phase(self, phase: str) -> None:
        """Show a phase before the first run; where the terminal cannot be redrawn, at once and then at intervals."""
        is_due = not self._phase or wall_seconds() - self._last_line_at > _QUIET_PERIOD
        self._phase = phase
        if not self._is_interactive and not self._quiet and is_due:
            self._last_line_at = wall_seconds()
            terminal.print_note(f"{self._name}: {phase}")

    def add_result(self, result: TrialResult, n_finished: int, n_runs: int) -> None:
        """Count a finished run, and show its failure."""
        self._n_finished, self._runs = n_finished, n_runs
        self._n_new += 1
        self._phase = ""
        if not result.success:
            self._n_failed += 1
            line = f"{result.label}: {result.reason or result.state}"
            if self._console is not None:
                self._console.print(line, style="red", markup=False, highlight=False)
            elif not self._quiet:
                terminal.print_note(line)
        if not self._is_interactive and not self._quiet and wall_seconds() - self._last_line_at > _QUIET_PERIOD:
            self._last_line_at = wall_seconds()
            terminal.print_note(self._line())

    def _line(self) -> str:
        if self._phase:
            return f"{self._name}: {self._phase}"
        text = f"{self._name}: {self._n_finished} of {self._runs} runs"
        if self._n_failed:
            text += f", {self._n_failed} failed"
        if self._n_new and self._n_finished < self._runs:
            remaining = (wall_seconds() - self._start) / self._n_new * (self._runs - self._n_finished)
            text += f", about {remaining:.0f} s to go" if remaining < 120 else f", about {remaining / 60:.0f} min to go"
        return text
