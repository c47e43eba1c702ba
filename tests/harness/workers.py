"""Workers of batches that are threads of the tests' own process."""

from __future__ import annotations

import pytest


@pytest.fixture
def thread_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let batches and suites run their jobs one after the other in a thread of the tests' process.

    That process has imported the package and loaded its kernels, which every worker process would do again. For tests
    of what a batch prints and writes; worker processes are tested in ``tests/compute`` and ``tests/scenarios``.
    """
    from roboyard.compute import ThreadPool
    from roboyard.compute.pools import checked_workers

    def make_pool(workers: int | None = None, *, preload: tuple[str, ...] = ()) -> ThreadPool:
        checked_workers(workers)
        return ThreadPool(1)

    for module in ("batch", "suite"):
        monkeypatch.setattr(f"roboyard.scenarios.{module}.ProcessPool", make_pool)
