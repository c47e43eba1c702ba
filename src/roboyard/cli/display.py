"""How a run looks while it goes on: one live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from roboyard.cli import terminal
from roboyard.cli.keys import Keys
from roboyard.compute.wall_clock import wall_seconds

if TYPE_CHECKING:
    from roboyard.bus import Bus
    from roboyard.bus.log import LogRecord

_REDRAWS = 5
"""Times a second; each takes a few milliseconds from the run."""
_QUIET_PERIOD = 10.0
"""Wall time between two lines where nothing can be redrawn [s]."""
_LONG_STEP = 0.1
_WINDOW = 2.0
"""Over which the pace is measured [wall s]."""


class Hand(Protocol):
    """What the keys steer."""

    def pause(self) -> None:
        """Stand still."""

    def resume(self) -> None:
        """Go on."""

    def step(self, seconds: float = 0.0) -> None:
        """Go a little further."""

    def stop(self) -> None:
        """End in order."""


class Display:
    """Shows a run's time and pace, and lets keys steer it; a context manager.

    Args:
        name: Of the run.
        duration: Simulated time it takes [s]; None if nobody knows.
        hand: What the keys steer.
        quiet: Show nothing but errors of nodes.
    """

    def __init__(self, name: str, duration: float | None, hand: Hand, *, quiet: bool = False) -> None:
        self._name = name
        self._duration = duration
        self._hand = hand
        self._quiet = quiet
        self._drawn = not quiet and terminal.interactive()
        self._bus: Bus | None = None
        self._stage = "assembling"
        self._stack = ExitStack()
        self._keys: Keys | None = None
        self._console: Any = None
        self._pace = _Pace()
        self._start_ns = 0
        self._due = 0.0

    def __enter__(self) -> Display:
        self._keys = self._stack.enter_context(Keys(self._on_key, self._on_signal))
        if self._drawn:
            from roboyard.cli.progress_line import draw

            self._console = self._stack.enter_context(draw(self._line, self._share, _REDRAWS))
        self._due = wall_seconds() + _QUIET_PERIOD
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def signal(self) -> int | None:
        """The first signal that asked for the end."""
        numbers = self._keys.signals if self._keys else []
        return next((n for n in numbers if n in (signal.SIGINT, signal.SIGTERM)), None)

    # -- what the run tells ----------------------------------------------------------------------------------------
    def started(self, bus: Bus) -> None:
        """Time begins to pass."""
        self._bus = bus
        self._start_ns = bus.now_ns
        self._stage = "running"
        self._pace.look(bus.now_ns)

    def stage(self, what: str) -> None:
        """Say what goes on besides the clock, e.g. "writing the report".

        "drawing the video: frame 7 of 60" goes on with "drawing the video"; where nothing can be redrawn, such a line
        is written now and then.
        """
        continues = ":" in what and what.partition(":")[0] == self._stage.partition(":")[0]
        self._stage = what
        if self._drawn or self._quiet or (continues and wall_seconds() < self._due):
            return
        self._due = wall_seconds() + _QUIET_PERIOD
        terminal.note(f"{self._name}: {what}")

    def tick(self) -> None:
        """Show that the run continues: where the terminal cannot be redrawn, write a line at intervals."""
        if not self._drawn and not self._quiet and wall_seconds() >= self._due:
            self._due = wall_seconds() + _QUIET_PERIOD
            terminal.note(self._line())

    def warn(self, text: str) -> None:
        """Show a line above the one that is redrawn."""
        if self._console is not None:
            self._console.print(f"warning: {text}", style="yellow", markup=False, highlight=False)
        elif not self._quiet:
            terminal.note(f"warning: {text}")

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
            terminal.note(line)

    # -- what people do --------------------------------------------------------------------------------------------
    def _on_key(self, key: str) -> None:
        bus = self._bus
        if bus is None:
            return
        paused = bus.executor.paused
        if key == " ":
            self._hand.resume() if paused else self._hand.pause()
        elif key in "s\n\r":
            self._hand.step() if paused else self._hand.pause()
        elif key == "S" and paused:
            self._hand.step(_LONG_STEP)
        elif key == "q":
            self._stage = "ending"
            self._hand.stop()

    def _on_signal(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGTERM) and self._stage != "ending":
            self._stage = "ending"
            if not self._drawn and not self._quiet:
                terminal.note(f"{self._name}: ending in order (Ctrl-C again aborts)")

    # -- the line --------------------------------------------------------------------------------------------------
    def _share(self) -> float | None:
        """How much of the run is done, 0 to 1; None if nobody knows."""
        if self._bus is None or not self._duration:
            return None
        return min((self._bus.now_ns - self._start_ns) * 1e-9 / self._duration, 1.0)

    def _line(self) -> str:
        if self._bus is None:
            return f"{self._name}: {self._stage}"
        now_ns, paused = self._bus.now_ns, self._bus.executor.paused
        done = (now_ns - self._start_ns) * 1e-9
        time = f"{done:.3f}" if paused else f"{done:.1f}"
        whole = f" of {self._duration:g} s" if self._duration else " s"
        if self._stage not in ("running", "ending"):
            return f"{self._name}: {self._stage}"
        if self._stage == "ending":
            return f"{self._name}: {time}{whole}  ending in order (Ctrl-C again aborts)"
        if paused:
            keys = "  [space] go on  [s] step  [q] end" if self._drawn else ""
            return f"{self._name}: {time}{whole}  paused{keys}"
        pace = self._pace.look(now_ns)
        keys = "  [space] pause  [q] end" if self._drawn else ""
        return f"{self._name}: {time}{whole}" + (f"  {pace:.3g} × real time" if pace else "") + keys


class _Pace:
    """Simulated seconds per wall second over the last moments."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def look(self, now_ns: int) -> float | None:
        wall = wall_seconds()
        self._seen.append((wall, now_ns))
        while len(self._seen) > 2 and self._seen[0][0] < wall - _WINDOW:
            self._seen.pop(0)
        first_wall, first_ns = self._seen[0]
        return (now_ns - first_ns) * 1e-9 / (wall - first_wall) if wall - first_wall > 0.1 else None
