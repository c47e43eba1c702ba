"""The promise: same scenario, seed, dependencies, CPU class and renderer give the same recording, byte for byte.

The same runs show that a run announces the kernels that it calls, so that they are compiled before its clock starts.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.processes import FreshProcesses
from tests.harness.scenarios import recording_digest

from roboyard.bringup.catalog import SCENARIOS
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest

QUICK = {"akrobat-free-gait", "rover-homing"}
"""One that walks and one that drives are tried with the quick tests; the others with the slow ones."""
NAMES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in sorted(SCENARIOS)]
ON_DEMAND = {"roboyard.grids.depth_registration._fill_cloud", "roboyard.grids.depth_registration._register"}
"""Kernels of cameras' point clouds: called when somebody subscribes, which nobody knows before."""


@pytest.fixture(scope="module")
def fresh_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshProcesses]:
    """Copies of one interpreter, which has imported everything and run nothing."""
    processes = FreshProcesses(tmp_path_factory.mktemp("home"))
    yield processes
    processes.close()


@pytest.mark.parametrize("name", NAMES)
def test_smoke_runs_repeat_and_announce_their_kernels(
    name: str, fresh_processes: FreshProcesses, tmp_path: Path
) -> None:
    """In a fresh process with other hash seed, folder, home and time zone, in this used one, and from the middle on."""
    fresh_processes.start(name, tmp_path / "fresh", smoke=True)
    spec = load_scenario(name, smoke=True)
    center = spec.config.duration / 2.0 + 0.0123
    state = tmp_path / "state"
    outcome = run_scenario(
        spec,
        RunOptions(out=tmp_path / "here", snapshots=(SnapshotRequest(center, state),), write_report=False, serve=False),
    )
    assert outcome.state == "done", outcome.error
    later = run_scenario(spec, RunOptions(out=tmp_path / "later", from_snapshot=state, write_report=False, serve=False))
    fresh_result = fresh_processes.wait()
    digests = {run: recording_digest(tmp_path / run) for run in ("fresh", "here", "later")}
    assert len(set(digests.values())) == 1, digests
    assert later.metrics["criteria"] == outcome.metrics["criteria"]
    assert set(fresh_result.unexpected_kernels) <= ON_DEMAND
    assert fresh_result.n_expected_kernels > 5


def test_seeds_give_different_recordings(tmp_path: Path) -> None:
    for seed in (0, 1):
        spec = load_scenario("rover-drive", smoke=True, overrides=["duration=0.2"]).with_seed(seed)
        run_scenario(spec, RunOptions(out=tmp_path / str(seed), write_report=False, serve=False))
    assert recording_digest(tmp_path / "0") != recording_digest(tmp_path / "1")
