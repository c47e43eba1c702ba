"""How a batch looks while it goes on."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roboyard.cli import terminal
from roboyard.compute.wall_clock import wall_seconds

if TYPE_CHECKING:
    from roboyard.scenarios.batch_worker import Result

_REDRAWS = 4
_QUIET_PERIOD = 10.0
"""Wall time between two lines where nothing can be redrawn [s]."""


class BatchDisplay:
    """Shows how many runs are done and how many failed; a context manager.

    Args:
        name: Of the scenario.
        runs: How many are wanted.
        quiet: Show nothing.
    """

    def __init__(self, name: str, runs: int, *, quiet: bool = False) -> None:
        self._name = name
        self._runs = runs
        self._quiet = quiet
        self._drawn = not quiet and terminal.interactive()
        self._console: Any = None
        self._phase = ""
        self._folder: Path | None = None
        self._stack = ExitStack()
        self._done = self._fresh = self._failed = 0
        self._start = self._last = wall_seconds()

    def __enter__(self) -> BatchDisplay:
        if self._drawn:
            from roboyard.cli.progress_line import draw

            self._console = self._stack.enter_context(draw(self._line, lambda: self._done / self._runs, _REDRAWS))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if isinstance(error, KeyboardInterrupt) and self._folder is not None and not self._quiet:
            of = f"{self._done} of {self._runs} runs"
            terminal.note(f"stopped after {of}; the same command with --out {self._folder} goes on")

    def opened(self, folder: Path, runs: int) -> None:
        """The batch has its folder, and so many runs are wanted."""
        self._folder, self._runs = folder, runs

    def show_phase(self, phase: str) -> None:
        """Say what is done before the first run; where nothing can be redrawn, at once and then at intervals."""
        is_due = not self._phase or wall_seconds() - self._last > _QUIET_PERIOD
        self._phase = phase
        if not self._drawn and not self._quiet and is_due:
            self._last = wall_seconds()
            terminal.note(f"{self._name}: {phase}")

    def finished(self, result: Result, done: int, wanted: int) -> None:
        """A run has ended."""
        self._done, self._runs = done, wanted
        self._fresh += 1
        self._phase = ""
        if not result.success:
            self._failed += 1
            line = f"{result.label}: {result.reason or result.state}"
            if self._console is not None:
                self._console.print(line, style="red", markup=False, highlight=False)
            elif not self._quiet:
                terminal.note(line)
        if not self._drawn and not self._quiet and wall_seconds() - self._last > _QUIET_PERIOD:
            self._last = wall_seconds()
            terminal.note(self._line())

    def _line(self) -> str:
        if self._phase:
            return f"{self._name}: {self._phase}"
        text = f"{self._name}: {self._done} of {self._runs} runs"
        if self._failed:
            text += f", {self._failed} failed"
        if self._fresh and self._done < self._runs:
            left = (wall_seconds() - self._start) / self._fresh * (self._runs - self._done)
            text += f", about {left:.0f} s to go" if left < 120 else f", about {left / 60:.0f} min to go"
        return text
