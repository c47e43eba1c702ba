"""The pool in the test's process gives results, errors and interruptions as its test asks for."""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection

import pytest
from tests.harness.workers import InlinePool, end_of_process, forked_process

from roboyard.errors import RunError
from roboyard.scenarios.batch.worker import TrialJob, TrialResult


def _job(seed: int) -> TrialJob:
    return TrialJob("rover-drive", seed, (), False, "", "none")


def _failed(job: TrialJob) -> TrialResult:
    return TrialResult(job.seed, "failed", False, "as the test asks for")


def test_inline_pool_runs_jobs_at_once() -> None:
    pool = InlinePool()
    future = pool.submit(_failed, _job(3))
    assert future.done()
    assert future.result() == _failed(_job(3))
    assert pool.seeds == [3]
    assert pool.functions == [_failed]


def test_inline_pool_responds_dies_and_is_interrupted() -> None:
    pool = InlinePool(_failed, dying_seeds=(4,), stops_after=2)
    assert pool.submit(print, _job(3)).result().reason == "as the test asks for"
    with pytest.raises(RunError, match="exit code -9"):
        pool.submit(print, _job(4)).result()
    with pytest.raises(KeyboardInterrupt):
        pool.submit(print, _job(5))
    assert pool.seeds == [3, 4]


def _respond_once(factor: int, connection: Connection) -> None:
    connection.send(("roboyard.scenarios" in sys.modules, os.getpid()))
    connection.send(factor * connection.recv())
    connection.recv()


def test_forked_process_has_the_package_and_is_killed() -> None:
    with forked_process(_respond_once, 3) as (process, connection):
        imported, pid = connection.recv()
        assert (imported, pid) == (True, process.pid)
        connection.send(7)
        assert connection.recv() == 21
        with end_of_process(pid) as wait:
            with pytest.raises(AssertionError, match="did not end"):
                wait(0.0)
            process.kill()
            wait()
    assert process.exitcode == -9
