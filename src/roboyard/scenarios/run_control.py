"""Control of a run from any thread: pause, resume, single steps, real-time factor, snapshots, stop; the clock loop that
follows it; Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from roboyard.bus import Bus, Executor

PROGRESS_PERIOD_NS: Final = 100_000_000
"""Period at which a clock loop reports its progress [ns of the clock]."""


class RunControl:
    """Controls a run that executes in another thread or further down the stack.

    Args:
        paused: Begin paused.
        real_time_factor: Simulated seconds per wall second; 0 as fast as possible.

    Attributes:
        is_stopping: True once ``stop`` was called.
        is_resetting: True once ``reset`` was called; whoever began the run begins it anew.
    """

    def __init__(self, *, paused: bool = False, real_time_factor: float = 0.0) -> None:
        self._paused = paused
        self._real_time_factor = real_time_factor
        self._step_requests: deque[float] = deque()
        self._executor: Executor | None = None
        self._snapshot_requests: deque[tuple[int, Path, bool]] = deque()
        self.is_stopping = False
        self.is_resetting = False

    def bind(self, bus: Bus) -> None:
        """Take hold of a run's clock; the runner calls it."""
        self._executor = bus.executor
        bus.executor.paused = self._paused
        bus.executor.pacer.real_time_factor = self._real_time_factor

    def pause(self) -> None:
        """Stand still after the present instant."""
        self._set_paused(paused=True)

    def resume(self) -> None:
        """Resume."""
        self._set_paused(paused=False)

    def _set_paused(self, *, paused: bool) -> None:
        self._paused = paused
        if self._executor is not None:
            self._executor.paused = paused
            self._executor.wake.set()

    def step(self, duration: float = 0.0) -> None:
        """While paused, run that much simulated time [s]; 0: one instant that has events."""
        self._step_requests.append(duration)
        if self._executor is not None:
            self._executor.wake.set()

    def request_snapshot(self, path: Path, time: float = 0.0, *, is_required: bool = True) -> None:
        """Save the run's state at the first instant at or after ``time`` [s] (now, if that has passed).

        If it cannot be saved the run fails, or says so in its log where it is no ``is_required``.
        """
        self._snapshot_requests.append((round(time * 1e9), path, is_required))
        if self._executor is not None:
            self._executor.wake.set()

    def stop(self) -> None:
        """End the run in order."""
        self.is_stopping = True
        if self._executor is not None:
            self._executor.wake.set()

    def reset(self) -> None:
        """End the run in order and ask for it to be begun anew, in a folder of its own."""
        self.is_resetting = True
        self.stop()

    def has_request(self) -> bool:
        """Whether the runner should look here; it asks whenever an instant is complete."""
        return (
            self.is_stopping
            or bool(self._step_requests)
            or (bool(self._snapshot_requests) and self._has_due_snapshot())
        )

    def _has_due_snapshot(self) -> bool:
        now_ns = self._executor.now_ns if self._executor is not None else 0
        return any(request[0] <= now_ns for request in tuple(self._snapshot_requests))

    def pop_snapshot_request(self) -> tuple[Path, bool] | None:
        """Remove the next request that is due, and return its path and whether it is required; None without a request.

        The runner calls it between two instants.
        """
        now_ns = self._executor.now_ns if self._executor is not None else 0
        for request in tuple(self._snapshot_requests):
            if request[0] <= now_ns:
                self._snapshot_requests.remove(request)
                return request[1], request[2]
        return None

    def pop_step_request(self) -> float | None:
        """Remove the next requested step, and return its duration [s]; None without a request; the runner calls it."""
        return self._step_requests.popleft() if self._step_requests else None


def run_in_slices(
    executor: Executor,
    control: RunControl,
    end_ns: int,
    *,
    advance: Callable[[int, Callable[[], bool]], object] | None = None,
    is_finished: Callable[[], bool] | None = None,
) -> Iterator[None]:
    """Run the clock to its end, and yield every 0.1 s of the clock, after every step of a paused run, and at requests.

    It ends early when ``control`` or another process, through the socket, stops the run.

    Args:
        executor: Executor whose clock runs.
        control: Control whose requests it follows; requests for snapshots are left to the caller.
        end_ns: Time at which it ends [ns].
        advance: Function that runs the clock to a time [ns] or until a condition holds; None: the executor's.
        is_finished: Condition that ends it; None: the clock has reached ``end_ns``.
    """
    run_until = advance or executor.run_until
    while not (executor.now_ns >= end_ns if is_finished is None else is_finished()) and not control.is_stopping:
        step_duration = control.pop_step_request()
        if step_duration is not None:
            _run_step(executor, step_duration, end_ns, run_until)
        else:
            target_ns = min((executor.now_ns // PROGRESS_PERIOD_NS + 1) * PROGRESS_PERIOD_NS, end_ns)
            run_until(target_ns, control.has_request)
            if executor.now_ns < target_ns and not control.has_request():
                control.stop()  # another process stopped the executor through the socket
        yield


def _run_step(
    executor: Executor, duration: float, end_ns: int, run_until: Callable[[int, Callable[[], bool]], object]
) -> None:
    """Run one step of a paused run: ``duration`` [s], or one instant if that is 0."""
    if duration <= 0.0:
        executor.step()
        return
    paused, executor.paused = executor.paused, False
    try:
        run_until(min(executor.now_ns + round(duration * 1e9), end_ns), lambda: False)
    finally:
        executor.paused = paused


@contextmanager
def handle_interrupts(control: RunControl) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the run in order; a second Ctrl-C while it does not react raises KeyboardInterrupt.

    Outside the main thread signals are left as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if control.is_stopping and number == signal.SIGINT:
            raise KeyboardInterrupt
        control.is_stopping = True  # no more: waking the clock takes a lock that this very thread may hold

    previous_handlers = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
