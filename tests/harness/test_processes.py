"""Fresh processes: they run what this process runs, and say what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.processes import FreshProcesses
from tests.harness.scenarios import recording_digest, run_cached, short_scenario


@pytest.fixture(scope="module")
def fresh_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshProcesses]:
    processes = FreshProcesses(tmp_path_factory.mktemp("home"))
    yield processes
    processes.close()


def test_fresh_process_runs_the_same_scenario(fresh_processes: FreshProcesses, tmp_path: Path) -> None:
    scenario = short_scenario().write(tmp_path)
    run = fresh_processes.run(scenario, tmp_path / "run")
    assert (run.state, run.reason, run.unexpected_kernels) == ("done", "", [])
    assert run.n_expected_kernels > 0
    assert recording_digest(tmp_path / "run") == recording_digest(run_cached().path)


def test_fresh_process_reports_failures_and_goes_on(fresh_processes: FreshProcesses, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no file nowhere"):
        fresh_processes.run("nowhere.yaml", tmp_path / "none")
    scenario = short_scenario().criterion("moves", "path_length > 100").write(tmp_path)
    fresh_processes.start(scenario, tmp_path / "nobody_waits")
    run = fresh_processes.run(scenario, tmp_path / "run")
    assert (run.state, run.reason) == ("done", "not held: moves (path_length > 100)")
