"""The pool in the test's process gives results, errors and interruptions as its test asks for."""

from __future__ import annotations

import pytest
from tests.harness.workers import InlinePool

from roboyard.errors import RunError
from roboyard.scenarios.batch_worker import Job, Result


def _job(seed: int) -> Job:
    return Job("rover-drive", seed, (), False, "", "none")


def _failed(job: Job) -> Result:
    return Result(job.seed, "failed", False, "as the test asks for")


def test_inline_pool_runs_jobs_at_once() -> None:
    pool = InlinePool()
    future = pool.submit(_failed, _job(3))
    assert future.done()
    assert future.result() == _failed(_job(3))
    assert pool.seeds == [3]


def test_inline_pool_answers_dies_and_is_interrupted() -> None:
    pool = InlinePool(_failed, dying_seeds=(4,), stops_after=2)
    assert pool.submit(print, _job(3)).result().reason == "as the test asks for"
    with pytest.raises(RunError, match="exit code -9"):
        pool.submit(print, _job(4)).result()
    with pytest.raises(KeyboardInterrupt):
        pool.submit(print, _job(5))
    assert pool.seeds == [3, 4]
