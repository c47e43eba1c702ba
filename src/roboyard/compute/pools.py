"""Pools of worker threads or processes behind one interface, and the number of threads of linear algebra.

Results arrive as futures in the order in which they finish. A caller that needs an order (a deterministic run does)
processes the futures in the order in which it submitted them. Worker processes compute linear algebra in one thread.
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

# New interpreters: a forked child would inherit threads, locks and graphics contexts in an undefined state.
_spawn = multiprocessing.get_context("spawn")
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def _serve(connection: Connection, preload: tuple[str, ...]) -> None:
    """Run the worker loop. The parent handles Ctrl-C; a closed pipe (the parent has ended) ends the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
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
        except SystemExit as error:  # raised by a module that the call imports
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
    except SystemExit as error:  # it would end this process, or the caller's if it were raised there
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
        text = f"cannot send the {kind} of a worker process: {type(value).__name__} {value!s:.200}: {error}"
        data = pickle.dumps((False, RunError(text)))
    connection.send_bytes(data)


class Worker:
    """Child process, on the side of its parent."""

    def __init__(self, preload: tuple[str, ...]) -> None:
        self._connection, child_end = _spawn.Pipe()
        self.process: SpawnProcess = _spawn.Process(target=_serve, args=(child_end, preload), name="roboyard-worker")
        # The child inherits the mask: Ctrl-C during its start-up prints no traceback.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        child_end.close()  # otherwise the end of the child would not be noticed

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run a call in the process and wait for it; its exception is raised here.

        Raises:
            RunError: The process ended before it returned (killed, out of memory, or it could not start).
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
                f"a worker process ended with exit code {self.process.exitcode} while running "
                f"{getattr(function, '__qualname__', function)}",
                valid="-9 often means that memory ran out; a script that starts workers needs "
                "`if __name__ == '__main__':` around its start",
            ) from error
        if is_ok:
            return value
        raise value

    def _receive(self) -> tuple[bool | None, Any]:
        """Receive the next message: None and a warning, or whether the call succeeded and its result or exception."""
        response: tuple[bool | None, Any] = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - our own child
        return response

    @property
    def is_alive(self) -> bool:
        """Return whether the process can accept a call."""
        return self.process.is_alive()

    def stop(self, *, now: bool) -> None:
        """Stop the process: after its present call, or immediately."""
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
    """Return the number of cores this process may use (a container or `taskset` may restrict the machine's)."""
    return len(os.sched_getaffinity(0))


def resolve_worker_count(workers: int | None) -> int:
    """Return a number of workers; by default one per usable core. Raises InputError for an invalid number."""
    if workers is None:
        return count_usable_cores()
    if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= _MAX_WORKERS:
        raise InputError(f"invalid number of workers {workers!r}", valid=f"an integer from 1 to {_MAX_WORKERS}")
    return workers


CLOSED_POOL_TEXT = "cannot submit work: the pool is closed"
"""Error message of `Pool.submit` after `Pool.close`."""


class Pool(ABC):
    """Runs calls concurrently. In a `with` block, an exception or Ctrl-C cancels pending work."""

    workers: int
    has_separate_filesystem: bool = False
    """Whether its workers have other files than the caller."""

    @abstractmethod
    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submit a call; the future has its result or exception.

        Raises:
            RunError: The pool is closed.
        """

    @abstractmethod
    def close(self, *, now: bool = False) -> None:
        """Wait for submitted calls, then stop the workers; with `now`, drop calls that have not started and do not
        wait.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(now=kind is not None)


class ThreadPool(Pool):
    """Pool of threads of this process: values are not copied; parallel if the work releases the GIL (kernels, physics).

    A running call cannot be stopped: `close(now=True)` returns only after it.

    Raises:
        InputError: The number of workers is invalid.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = resolve_worker_count(workers)
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="roboyard")

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submit a call."""
        return _submit(self._threads, function, *args, **kwargs)

    def close(self, *, now: bool = False) -> None:
        """Stop the threads."""
        self._threads.shutdown(wait=True, cancel_futures=now)


class ProcessPool(Pool):
    """Pool of processes that stay alive between calls: parallel for all Python code; functions and values must be
    picklable.

    If a worker dies, only its own call fails (RunError from that future); a new worker replaces it.

    Args:
        workers: Number of workers; one per usable core by default.
        preload: Modules that each worker imports at its start, before its first call.

    Raises:
        InputError: The number of workers is invalid.
    """

    def __init__(self, workers: int | None = None, *, preload: tuple[str, ...] = ()) -> None:
        self.workers = resolve_worker_count(workers)
        self._preload = preload
        self._workers = [Worker(preload) for _ in range(self.workers)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        # One thread per process waits for its results.
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="roboyard-pool")
        self._is_closing = False
        self._workers_lock = Lock()  # guards the workers: none is replaced while all are being stopped
        # If the pool was not closed: before multiprocessing, at exit, waits for children that wait for this process.
        self._finalizer = util.Finalize(self, _terminate, args=(self._workers,), exitpriority=100)

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submit a call."""
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
        """Stop the processes."""
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
    """Open a pool of the given kind; `preload` applies to processes.

    Raises:
        InputError: The kind is unknown, or the number of workers is invalid.
    """
    if kind not in ("threads", "processes"):
        raise InputError(f"unknown pool kind {kind!r}", valid="threads or processes")
    return ThreadPool(workers) if kind == "threads" else ProcessPool(workers, preload=preload)


def limit_blas_threads(count: int = 1) -> None:
    """Limit all BLAS libraries of this process, loaded already or later, to `count` threads.

    A BLAS library splits sums among its threads, so the last bits of `np.linalg.solve` differ between one and two
    threads. A run that guarantees identical recordings therefore uses one; complete tasks run in parallel instead.

    Libraries read the environment once, when they are loaded; libraries that are already loaded (numpy was imported
    first) are set through their own interface. Repeated calls are allowed. Child processes inherit the setting.
    """
    for name in _BLAS_VARIABLES:
        os.environ[name] = str(count)
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=count, user_api="blas")
