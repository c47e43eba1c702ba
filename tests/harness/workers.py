"""Worker processes that start in a fraction of a second."""

from __future__ import annotations

import multiprocessing
from functools import cache
from typing import Any

import pytest


@cache
def _fork_server() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["roboyard.scenarios", "roboyard.scenarios.batch_worker"])
    return context


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers of process pools be copies of a process that has imported the package and done nothing.

    For tests of what workers do; how the pools' own fresh interpreters start and end is tested in ``tests/compute``.
    The copies have the environment variables of the first use.
    """
    monkeypatch.setattr("roboyard.compute.worker._spawn", _fork_server())
