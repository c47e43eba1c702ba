"""Pools of worker threads or processes behind one interface.

Results arrive as futures in the order in which they finish. A caller that needs an order (a deterministic run does)
takes the futures in the order in which it submitted them.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from multiprocessing import util
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Lock
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from roboyard.compute.kernel_folders import KernelCacheWarning, divert_cache_warnings
from roboyard.errors import InputError, RunError, describe_exception

# Fresh interpreters: a forked child would inherit threads, locks and graphics contexts in whatever state they are.
_spawn = multiprocessing.get_context("spawn")


def _serve(connection: Connection, preload: tuple[str, ...]) -> None:
    """The child's whole life. Ctrl-C is the parent's to handle; the parent's death closes the pipe and ends us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from roboyard.compute.blas import limit_blas_threads

    limit_blas_threads(1)
    cache_warnings: list[str] = []  # the parent issues them, once for all of its workers
    divert_cache_warnings(cache_warnings.append)
    for module in preload:
        import_module(module)
    while True:
        try:
            function, arguments, keywords = connection.recv()
        except (EOFError, OSError):
            return
        except SystemExit as error:  # of a module that the call needs
            response: tuple[bool, Any] = (False, RunError(f"a module of the call {describe_exception(error)}"))
        except Exception as error:  # noqa: BLE001 - e.g. a module that cannot be imported here: the caller's to know
            response = (False, error)
        else:
            response = _call(function, arguments, keywords)
        try:
            while cache_warnings:
                connection.send_bytes(pickle.dumps((None, cache_warnings.pop(0))))
            _send(connection, response)
        except OSError:
            return


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, function(*arguments, **keywords)
    except SystemExit as error:  # it would end this process, and the caller's if it were raised there
        return False, RunError(f"{getattr(function, '__qualname__', function)} {describe_exception(error)}")
    except Exception as error:  # noqa: BLE001 - handed to the caller
        error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)).rstrip())
        return False, error


def _send(connection: Connection, response: tuple[bool, Any]) -> None:
    is_ok, value = response
    try:
        data = pickle.dumps(response)
        if not is_ok:
            pickle.loads(data)  # noqa: S301 - our own; some exceptions pickle well and fail on the way back
    except Exception as error:  # noqa: BLE001 - an object's own pickling may raise anything
        kind = "result" if is_ok else "exception"
        text = f"the {kind} of a worker process cannot be sent back: {type(value).__name__} {value!s:.200}: {error}"
        data = pickle.dumps((False, RunError(text)))
    connection.send_bytes(data)


class Worker:
    """One child process, as its parent sees it."""

    def __init__(self, preload: tuple[str, ...]) -> None:
        self._connection, child_end = _spawn.Pipe()
        self.process: SpawnProcess = _spawn.Process(target=_serve, args=(child_end, preload), name="roboyard-worker")
        # A child inherits the mask: Ctrl-C while it starts up leaves no traceback of its own.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        child_end.close()  # else a dead child would not be noticed

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run a call there and wait for it; its exception is raised here.

        Raises:
            RunError: The process ended before it answered (killed, out of memory, or it could not start).
        """
        try:
            self._connection.send((function, arguments, keywords))
            is_ok, value = self._receive()
            while is_ok is None:
                warnings.warn(value, KernelCacheWarning, stacklevel=1)  # from one line: Python shows it once
                is_ok, value = self._receive()
        except (EOFError, ConnectionError) as error:
            self.process.join()
            raise RunError(
                f"a worker process ended with exit code {self.process.exitcode} while it ran "
                f"{getattr(function, '__qualname__', function)}",
                valid="-9 often means that memory ran out; a script that starts workers needs "
                "`if __name__ == '__main__':` round its start",
            ) from error
        if is_ok:
            return value
        raise value

    def _receive(self) -> tuple[bool | None, Any]:
        """What the process sends: None and a warning, or whether the call succeeded and its result or exception."""
        response: tuple[bool | None, Any] = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - our own child
        return response

    @property
    def is_alive(self) -> bool:
        """Whether it can take a call."""
        return self.process.is_alive()

    def stop(self, *, now: bool) -> None:
        """End it: after its present call, or at once."""
        if now:
            self.process.terminate()
        else:
            self._connection.close()
        self.process.join()
        if now:
            self._connection.close()


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


CLOSED_POOL_TEXT = "work was submitted to a pool that is closed"
"""Text of the error of `Pool.submit` after `Pool.close`."""


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
        raise RunError(CLOSED_POOL_TEXT) from error


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
