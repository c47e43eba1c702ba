"""Pools of workers, threads or processes, behind one interface.

Results come back as futures in whatever order they get done. Whoever needs an order (and a deterministic run does)
takes the futures in the order they were submitted in.
"""

from __future__ import annotations

import os
import queue
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import util
from threading import Lock
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from roboyard.compute.worker import Worker
from roboyard.errors import InputError, RunError

_MAX_WORKERS = 1024

P = ParamSpec("P")
R = TypeVar("R")


def count_usable_cores() -> int:
    """Cores this process may use (a container or `taskset` may allow fewer than the machine has)."""
    return len(os.sched_getaffinity(0))


def resolve_worker_count(workers: int | None) -> int:
    """A number of workers; one for each usable core if none is given. Raises InputError for none that makes sense."""
    if workers is None:
        return count_usable_cores()
    if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= _MAX_WORKERS:
        raise InputError(f"{workers!r} workers", valid=f"a whole number from 1 to {_MAX_WORKERS}")
    return workers


class Pool(ABC):
    """Runs calls beside the caller. Use it in a `with` block: an exception or Ctrl-C inside ends the work at once."""

    workers: int
    has_separate_filesystem: bool = False
    """Whether its workers see other files than the caller does."""

    @abstractmethod
    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Queue a call; its result or exception comes with the future.

        Raises:
            RunError: The pool is closed.
        """

    @abstractmethod
    def close(self, *, now: bool = False) -> None:
        """Wait for what was submitted, then end the workers; with `now`, drop what has not begun and do not wait."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(now=kind is not None)


class ThreadPool(Pool):
    """Threads of this process: nothing is copied; parallel where the work releases the GIL (kernels, physics).

    A call that has begun cannot be ended: `close(now=True)` returns only after it.

    Raises:
        InputError: No sensible number of workers.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = resolve_worker_count(workers)
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="roboyard")

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Queue a call."""
        return _submit(self._threads, function, *args, **kwargs)

    def close(self, *, now: bool = False) -> None:
        """End the threads."""
        self._threads.shutdown(wait=True, cancel_futures=now)


class ProcessPool(Pool):
    """Processes that stay warm between calls: parallel for any Python; functions and values must pickle.

    A worker that dies takes only its own call with it (RunError from that future); another takes its place.

    Args:
        workers: How many; one for each usable core if not given.
        preload: Modules each worker imports as it starts, so that its first call finds them ready.

    Raises:
        InputError: No sensible number of workers.
    """

    def __init__(self, workers: int | None = None, *, preload: tuple[str, ...] = ()) -> None:
        self.workers = resolve_worker_count(workers)
        self._preload = preload
        self._workers = [Worker(preload) for _ in range(self.workers)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        # One thread stands for each process and waits for its answers.
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="roboyard-pool")
        self._is_closing = False
        self._workers_lock = Lock()  # of the workers: nobody replaces one while all are being ended
        # Where nobody closed the pool: before multiprocessing, at exit, waits for children that wait for us.
        self._finalizer = util.Finalize(self, _terminate, args=(self._workers,), exitpriority=100)

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Queue a call."""
        return _submit(self._threads, self._run_in_worker, function, args, kwargs)

    def _run_in_worker(self, function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        worker = self._idle.get()
        try:
            if not worker.is_alive:
                worker = self._replace(worker)
            result: R = worker.call(function, args, kwargs)
            return result
        finally:
            self._idle.put(worker)

    def _replace(self, dead: Worker) -> Worker:
        with self._workers_lock:
            if self._is_closing:
                return dead
            dead.stop(now=True)
            replacement = Worker(self._preload)
            self._workers[self._workers.index(dead)] = replacement
            return replacement

    def close(self, *, now: bool = False) -> None:
        """End the processes."""
        if now:
            self._threads.shutdown(wait=False, cancel_futures=True)
            with self._workers_lock:
                self._is_closing = True
                for worker in self._workers:
                    worker.process.terminate()
        self._threads.shutdown(wait=True)
        self._finalizer.cancel()
        for worker in self._workers:
            worker.stop(now=now)


def _terminate(workers: list[Worker]) -> None:
    for worker in workers:
        worker.process.terminate()


def _submit(threads: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    try:
        return threads.submit(function, *args, **kwargs)
    except RuntimeError as error:
        raise RunError("work was submitted to a pool that is closed") from error


def open_pool(
    kind: Literal["threads", "processes"], workers: int | None = None, *, preload: tuple[str, ...] = ()
) -> Pool:
    """A pool of the kind named; `preload` is for processes.

    Raises:
        InputError: No such kind, or no sensible number of workers.
    """
    if kind not in ("threads", "processes"):
        raise InputError(f"a pool of {kind!r}", valid="threads or processes")
    return ThreadPool(workers) if kind == "threads" else ProcessPool(workers, preload=preload)
