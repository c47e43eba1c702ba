"""The hand on a run's clock: pause, resume, single steps, pace, stop; from any thread, and by Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from roboyard.bus import Bus, Executor


class Control:
    """Steers a run that goes on in another thread or further down the stack.

    Args:
        paused: Begin paused.
        pace: Simulated seconds per wall second; 0 as fast as possible.

    Attributes:
        stopping: True once ``stop`` was called.
        resetting: True once ``reset`` was called; whoever began the run begins it anew.
    """

    def __init__(self, *, paused: bool = False, pace: float = 0.0) -> None:
        self._paused = paused
        self._pace = pace
        self._steps: deque[float] = deque()
        self._executor: Executor | None = None
        self._saves: deque[tuple[int, Path, bool]] = deque()
        self.stopping = False
        self.resetting = False

    def bind(self, bus: Bus) -> None:
        """Take hold of a run's clock; the runner calls it."""
        self._executor = bus.executor
        bus.executor.paused = self._paused
        bus.executor.pacer.real_time_factor = self._pace

    def pause(self) -> None:
        """Stand still after the present instant."""
        self._set(paused=True)

    def resume(self) -> None:
        """Go on."""
        self._set(paused=False)

    def _set(self, *, paused: bool) -> None:
        self._paused = paused
        if self._executor is not None:
            self._executor.paused = paused
            self._executor.wake.set()

    def step(self, seconds: float = 0.0) -> None:
        """While paused, run that much simulated time [s]; 0: one instant that has events."""
        self._steps.append(seconds)
        if self._executor is not None:
            self._executor.wake.set()

    def save(self, path: Path, time: float = 0.0, *, must: bool = True) -> None:
        """Save the run's state at the first instant at or after ``time`` [s] (now, if that has passed).

        If it cannot be saved the run fails, or says so in its log where it is no ``must``.
        """
        self._saves.append((round(time * 1e9), path, must))
        if self._executor is not None:
            self._executor.wake.set()

    def stop(self) -> None:
        """End the run in order."""
        self.stopping = True
        if self._executor is not None:
            self._executor.wake.set()

    def reset(self) -> None:
        """End the run in order and ask for it to be begun anew, in a folder of its own."""
        self.resetting = True
        self.stop()

    def wanted(self) -> bool:
        """Whether the runner should look here; it asks whenever an instant is complete."""
        return self.stopping or bool(self._steps) or (bool(self._saves) and self._is_due())

    def _is_due(self) -> bool:
        now_ns = self._executor.now_ns if self._executor is not None else 0
        return any(item[0] <= now_ns for item in tuple(self._saves))

    def next_save(self) -> tuple[Path, bool] | None:
        """Where to save the state now, and whether it must be; None if nobody wants it.

        The runner calls it between two instants.
        """
        now_ns = self._executor.now_ns if self._executor is not None else 0
        for item in tuple(self._saves):
            if item[0] <= now_ns:
                self._saves.remove(item)
                return item[1], item[2]
        return None

    def next_step(self) -> float | None:
        """The step to take next [s], None if none is wanted; the runner calls it."""
        return self._steps.popleft() if self._steps else None


@contextmanager
def interruptible(control: Control) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the run in order; a second Ctrl-C while it does not react raises KeyboardInterrupt.

    Outside the main thread signals are left as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if control.stopping and number == signal.SIGINT:
            raise KeyboardInterrupt
        control.stopping = True  # no more: waking the clock takes a lock that this very thread may hold

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
