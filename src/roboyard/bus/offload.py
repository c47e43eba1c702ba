"""Offloading: expensive functions run on worker threads, and each result is delivered at a declared simulated time.

The executor waits for the worker at that time, so that the run is parallel and deterministic.  Reports compare the
measured duration with the declared latency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

from roboyard.bus.callback_timer import NodeError
from roboyard.bus.executor import Executor
from roboyard.bus.services import Future
from roboyard.compute import Pool, ThreadPool
from roboyard.compute.wall_clock import perf_ns
from roboyard.errors import InputError


class OffloadedTask(Future):
    """Offloaded task: the future of its result, which can be canceled."""

    __slots__ = ("_on_cancel",)

    def __init__(self, description: str) -> None:
        super().__init__(description)
        self._on_cancel: Callable[[], None] = _no_op

    def cancel(self) -> None:
        """Discard the result; a function that has not started does not start."""
        if not self.done():
            self._on_cancel()


@dataclass(slots=True)
class OffloadStatistics:
    """Measured and declared duration of the offloaded tasks of one node and function [ns]."""

    node: str
    function: str
    latency_ns: int
    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    late_count: int = 0


class Offload:
    """Runs functions on a thread pool and delivers their results in simulated time.

    Attributes:
        statistics: Statistics by (node, function).
        pending: Number of results not delivered yet; zero at a barrier.
    """

    def __init__(self, executor: Executor, workers: int = 1) -> None:
        self._executor = executor
        self._workers = workers
        self._pool: Pool | None = None
        self.statistics: dict[tuple[str, str], OffloadStatistics] = {}
        self.pending = 0
        self._cancel_events: dict[Event | None, None] = {}

    def submit(
        self, node: str, latency: float, function: Callable[..., Any], *args: Any, cancel_event: Event | None = None
    ) -> OffloadedTask:
        """Run ``function(*args)`` on a worker; the future is resolved `latency` simulated seconds from now.

        As with messages, `args` must not be changed afterwards.  `cancel_event` is set when the task is canceled, or
        when the run ends before the result is available.

        Raises:
            InputError: `latency` is not a positive duration.
        """
        if not 0.0 < latency <= 1e9:
            raise InputError(
                f"latency of an offloaded task must be positive, got {latency} s",
                location=f"node {node}",
                valid="a positive duration",
            )
        if self._pool is None:
            self._pool = ThreadPool(self._workers)
        name = getattr(function, "__name__", type(function).__name__)
        latency_ns = round(latency * 1e9)
        self._statistics_for(node, name, latency_ns)
        task = OffloadedTask(f"result of {name}")
        pool_future = self._pool.submit(run_timed, function, args)
        self.pending += 1
        if cancel_event is not None:
            self._cancel_events[cancel_event] = None
        executor = self._executor

        def deliver_result() -> None:
            self.pending -= 1
            self._cancel_events.pop(cancel_event, None)
            try:
                result, spent_ns = pool_future.result()
            except (Exception, SystemExit) as error:
                raise NodeError(node, f"offloaded {name}", executor.now_ns, error) from error
            self.record_duration(node, name, latency_ns, spent_ns)
            task.set_result(result)

        event = executor.schedule(executor.now_ns + latency_ns, deliver_result)

        def cancel_task() -> None:
            if event.cancelled:
                return
            event.cancel()
            pool_future.cancel()
            self.pending -= 1
            if cancel_event is not None:
                self._cancel_events.pop(cancel_event, None)
                cancel_event.set()

        task._on_cancel = cancel_task
        return task

    def record_duration(self, node: str, function: str, latency_ns: int, spent_ns: int) -> None:
        """Record a task that took `spent_ns` [ns], with the declared `latency_ns`."""
        statistics = self._statistics_for(node, function, latency_ns)
        statistics.count += 1
        statistics.total_ns += spent_ns
        statistics.max_ns = max(statistics.max_ns, spent_ns)
        statistics.late_count += spent_ns > latency_ns

    def _statistics_for(self, node: str, function: str, latency_ns: int) -> OffloadStatistics:
        statistics = self.statistics.setdefault((node, function), OffloadStatistics(node, function, latency_ns))
        statistics.latency_ns = latency_ns
        return statistics

    def close(self) -> None:
        """Stop the workers; waiting tasks are dropped, and running ones get their cancel event."""
        for cancel_event in self._cancel_events:
            if cancel_event is not None:
                cancel_event.set()
        self._cancel_events.clear()
        if self._pool is not None:
            self._pool.close(now=True)
            self._pool = None


def _no_op() -> None:
    """Do nothing; there is nothing to cancel before the task is submitted."""


def run_timed(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, int]:
    """Call ``function(*args)``; return its result and its duration [ns]."""
    start_ns = perf_ns()
    return function(*args), perf_ns() - start_ns
