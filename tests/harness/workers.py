"""Pools of workers for tests: processes that start in a fraction of a second, and none at all."""

from __future__ import annotations

import multiprocessing
import os
import select
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

import pytest

from roboyard.compute import Pool, ThreadPool
from roboyard.compute.pools import resolve_worker_count
from roboyard.errors import RunError
from roboyard.scenarios.batch.worker import TrialJob, TrialResult


@cache
def _fork_server() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["roboyard.scenarios", "roboyard.scenarios.batch.worker"])
    return context


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers of process pools be copies of a process that has imported the package and done nothing.

    For tests of what workers do; how the pools' own fresh interpreters start and end is tested in ``tests/compute``.
    The copies have the environment variables of the first use.
    """
    monkeypatch.setattr("roboyard.compute.pools._spawn", _fork_server())


@pytest.fixture
def thread_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let batches and suites run their jobs one after the other in a thread of the tests' process.

    That process has imported the package and loaded its kernels, which every worker process would do again.  For tests
    of what a batch prints and writes; worker processes are tested in ``tests/compute`` and ``tests/scenarios``.
    """

    def make_pool(workers: int | None = None, *, preload: tuple[str, ...] = ()) -> ThreadPool:
        resolve_worker_count(workers)
        return ThreadPool(1)

    for module in ("batch.runner", "batch.suite"):
        monkeypatch.setattr(f"roboyard.scenarios.{module}.ProcessPool", make_pool)


class InlinePool(Pool):
    """Runs the jobs of a batch in this process, at once.

    Args:
        respond: Gives the result of a job instead of running it.
        dying_seeds: Jobs with these seeds fail as if their worker process had died.
        stops_after: Number of jobs after which the user presses Ctrl-C.
        workers: Number of workers that it claims to have.

    Attributes:
        jobs: The jobs so far.
        functions: The functions that the caller wanted to run for them.
    """

    def __init__(
        self,
        respond: Callable[[TrialJob], TrialResult] | None = None,
        *,
        dying_seeds: Collection[int] = (),
        stops_after: int | None = None,
        workers: int = 1,
    ) -> None:
        self.jobs: list[TrialJob] = []
        self.functions: list[Callable[..., Any]] = []
        self.workers = workers
        self._respond, self._dying_seeds, self._stops_after = respond, dying_seeds, stops_after

    @property
    def seeds(self) -> list[int]:
        """Seeds of the jobs so far."""
        return [job.seed for job in self.jobs]

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a job, and return its result or error as a future that is done."""
        if self._stops_after is not None and len(self.jobs) >= self._stops_after:
            raise KeyboardInterrupt
        (job,) = args
        self.jobs.append(job)
        self.functions.append(function)
        future: Future[Any] = Future()
        if job.seed in self._dying_seeds:
            future.set_exception(RunError("a worker process ended with exit code -9"))
        elif self._respond is not None:
            future.set_result(self._respond(job))
        else:
            future.set_result(function(job, **kwargs))
        return future

    def close(self, *, now: bool = False) -> None:
        """Do nothing: every job has ended."""


@contextmanager
def forked_process(function: Callable[..., object], *args: object) -> Iterator[tuple[Any, Connection]]:
    """Call a function in a process that is a copy of one which has imported the package and done nothing.

    Args:
        function: Of a module that can be imported; it gets the other end of the connection as its last argument.
        args: Its other arguments, which can be pickled.

    Yields:
        The process, as of `multiprocessing`, and this end of the connection.  The process is killed in the end.
    """
    connection, child_connection = _fork_server().Pipe()
    process = _fork_server().Process(target=function, args=(*args, child_connection))
    process.start()
    child_connection.close()
    try:
        yield process, connection
    finally:
        process.kill()
        process.join()
        connection.close()


@contextmanager
def end_of_process(pid: int) -> Iterator[Callable[[], None]]:
    """Gives a function that waits until a process that runs now has ended; it need not be a child of this one."""
    descriptor = os.pidfd_open(pid)
    try:

        def wait(timeout: float = 60.0) -> None:
            ready, _, _ = select.select([descriptor], [], [], timeout)
            assert ready, f"process {pid} did not end within {timeout} s"

        yield wait
    finally:
        os.close(descriptor)
