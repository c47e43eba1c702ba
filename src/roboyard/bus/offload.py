"""Heavy work beside the simulation: runs on a worker, and its result arrives at a declared simulated moment.

The executor waits for the worker when that moment comes, so the run is parallel and deterministic.  A report compares
what a job really took with what its node declared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from roboyard.bus.futures import Future
from roboyard.bus.meter import NodeError
from roboyard.bus.pacing import perf_ns
from roboyard.compute import Pool, ThreadPool
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus


class Work(Future):
    """A piece of offloaded work: the future of its result, which may be given up."""

    __slots__ = ("_give_up",)

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._give_up: Callable[[], None] = _nothing

    def cancel(self) -> None:
        """Want the result no more: it does not arrive, and what has not begun does not begin."""
        if not self.done():
            self._give_up()


@dataclass(slots=True)
class Job:
    """What offloaded work of one node and function took, against what it declared [ns]."""

    node: str
    what: str
    latency_ns: int
    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    late: int = 0


class Offload:
    """Hands work to a pool and brings results back in simulated time.

    Attributes:
        jobs: Statistics by (node, function).
        pending: Results not delivered yet; zero at a barrier.
    """

    def __init__(self, bus: Bus, workers: int = 1) -> None:
        self._bus = bus
        self._workers = workers
        self._pool: Pool | None = None
        self.jobs: dict[tuple[str, str], Job] = {}
        self.pending = 0
        self._stops: dict[Event | None, None] = {}

    def submit(
        self, node: str, latency: float, function: Callable[..., Any], *args: Any, stop: Event | None = None
    ) -> Work:
        """Run ``function(*args)`` on a worker; the future is resolved ``latency`` simulated seconds from now.

        ``args`` must not be changed afterwards by anybody, as with messages.  ``stop`` is set when the result is
        given up, or the run ends before it is there.

        Raises:
            InputError: ``latency`` is not a positive time.
        """
        if not 0.0 < latency <= 1e9:
            raise InputError(f"latency {latency} s of offloaded work", where=f"node {node}", valid="a positive time")
        if self._pool is None:
            self._pool = ThreadPool(self._workers)
        name = getattr(function, "__name__", type(function).__name__)
        latency_ns = round(latency * 1e9)
        self._job(node, name, latency_ns)
        work = Work(f"result of {name}")
        running = self._pool.submit(timed, function, args)
        self.pending += 1
        if stop is not None:
            self._stops[stop] = None
        executor = self._bus.executor

        def arrive() -> None:
            self.pending -= 1
            self._stops.pop(stop, None)
            try:
                result, spent_ns = running.result()
            except (Exception, SystemExit) as error:
                raise NodeError(node, f"offloaded {name}", executor.now_ns, error) from error
            self.note(node, name, latency_ns, spent_ns)
            work.resolve(result)

        event = executor.at(executor.now_ns + latency_ns, arrive)

        def give_up() -> None:
            if event.cancelled:
                return
            event.cancel()
            running.cancel()
            self.pending -= 1
            if stop is not None:
                self._stops.pop(stop, None)
                stop.set()

        work._give_up = give_up
        return work

    def note(self, node: str, what: str, latency_ns: int, spent_ns: int) -> None:
        """Count a piece of work that took ``spent_ns`` [ns] of the ``latency_ns`` that were declared."""
        job = self._job(node, what, latency_ns)
        job.count += 1
        job.total_ns += spent_ns
        job.max_ns = max(job.max_ns, spent_ns)
        job.late += spent_ns > latency_ns

    def _job(self, node: str, what: str, latency_ns: int) -> Job:
        job = self.jobs.setdefault((node, what), Job(node, what, latency_ns))
        job.latency_ns = latency_ns
        return job

    def close(self) -> None:
        """Stop the workers; waiting work is dropped, and what runs is told to stop."""
        for stop in self._stops:
            if stop is not None:
                stop.set()
        self._stops.clear()
        if self._pool is not None:
            self._pool.close(now=True)
            self._pool = None


def _nothing() -> None:
    """What there is to give up before the work is under way."""


def timed(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, int]:
    """What ``function(*args)`` gives, and how long it took [ns]."""
    start = perf_ns()
    return function(*args), perf_ns() - start
