"""Batches on a real Ray cluster of several nodes: the same bytes, also when workers and nodes are killed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.scenarios import ScenarioBuilder

from roboyard.scenarios import BatchObserver, BatchOptions, run_batch_and_report
from roboyard.scenarios.batch.worker import TrialResult

pytestmark = pytest.mark.slow

NODE = '''
import os
import signal
from pathlib import Path

import roboyard as ry


class MarkConfig(ry.Config):
    marks: str = ry.parameter("")
    dies: str = ry.parameter("never")


class Mark(ry.Node[MarkConfig]):
    """Tells which node of the cluster and which process it is on, and ends that in mid-run: once, or always."""


    def setup(self) -> None:
        self.timer(0.2, self.on_time)

    def on_time(self) -> None:
        import ray

        marks, run = Path(self.config.marks), self.random.integers(1 << 62)
        if ray.is_initialized():
            (marks / f"node-{ray.get_runtime_context().get_node_id()}").touch()
        (marks / f"process-{os.getpid()}").touch()
        if self.config.dies == "always" or (self.config.dies == "once" and not (marks / f"dead-{run}").exists()):
            (marks / f"dead-{run}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
'''


class Nodes:
    """A head without processors, and two nodes with one each."""

    def __init__(self, utils: Any) -> None:
        node_options = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
        self.cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **node_options})
        self.workers = [self.cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20) for _ in range(2)]
        self.cluster.wait_for_nodes()
        self.address: str = self.cluster.address


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed (pip install 'roboyard[batch]')")
    found = Nodes(utils)
    yield found
    found.cluster.shutdown()


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "marks").mkdir()
    (tmp_path / "mark.py").write_text(NODE)
    mark = {"type": "mark.py:Mark", "parameters": {"marks": str(tmp_path / "marks"), "dies": "never"}}
    builder = ScenarioBuilder(duration=0.6).drive(0.5, duration=10.0).criterion("covers_distance", "path_length > 0.01")
    return str(builder.set(nodes={"mark": mark}).write(tmp_path))


def read_files(folder: Path) -> dict[str, bytes]:
    """Files of runs that do not depend on the wall clock."""
    names = ("recording.mcap", "scenario.yaml")
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for name in names for path in folder.rglob(name)}


def test_cluster_gives_the_same_recordings(scenario: str, tmp_path: Path, nodes: Nodes) -> None:
    local_batch = run_batch_and_report(
        scenario, BatchOptions(runs=5, out=tmp_path / "here", workers=1, stored_runs="all")
    )
    cluster_batch = run_batch_and_report(
        scenario, BatchOptions(runs=5, out=tmp_path / "there", cluster=nodes.address, stored_runs="all")
    )
    assert [r.reason for r in local_batch.results] == [""] * 5
    assert len(read_files(local_batch.folder)) == 10
    assert read_files(local_batch.folder) == read_files(cluster_batch.folder)
    marks = [path.name for path in (tmp_path / "marks").iterdir()]
    assert sum(name.startswith("node-") for name in marks) == 2  # both took part
    clocks = ("wall_time", "real_time_factor")
    for one, other in zip(local_batch.results, cluster_batch.results, strict=True):
        assert {k: v for k, v in one.metrics.items() if k not in clocks} == {
            k: v for k, v in other.metrics.items() if k not in clocks
        }
        assert Path(other.folder) == cluster_batch.folder / f"seed-{other.seed:06d}"
        assert {"report.html", "metrics.json"} <= {path.name for path in Path(other.folder).iterdir()}


def test_run_of_a_killed_cluster_worker_is_repeated_once(scenario: str, tmp_path: Path, nodes: Nodes) -> None:
    vary = ["nodes.mark.parameters.dies=never,once,always"]
    found = run_batch_and_report(
        scenario, BatchOptions(runs=1, out=tmp_path / "out", cluster=nodes.address, vary=tuple(vary), design="grid")
    )
    states = {r.varied_values["nodes.mark.parameters.dies"]: r.state for r in found.results}
    assert states == {"never": "done", "once": "done", "always": "lost"}
    assert all("worker of the cluster ended" in r.reason for r in found.failures)
    driven = {r.metrics["path_length"] for r in found.results if r.success}
    assert len(driven) == 1  # a second attempt comes to what the first would have


def test_runs_of_a_killed_cluster_node_go_to_others(scenario: str, tmp_path: Path, nodes: Nodes) -> None:
    marks, out = tmp_path / "marks", tmp_path / "out"
    killed: list[int] = []

    def kill_second_node(result: TrialResult, finished: int, total: int) -> None:
        if not killed and sum(path.name.startswith("node-") for path in marks.iterdir()) == 2:
            killed.append(nodes.workers[1].all_processes["raylet"][0].process.pid)
            os.kill(killed[0], signal.SIGKILL)

    found = run_batch_and_report(
        scenario,
        BatchOptions(runs=8, out=out, cluster=nodes.address, stored_runs="none", overrides=("duration=2",)),
        BatchObserver(on_result=kill_second_node),
    )
    assert killed
    assert [r.state for r in found.results] == ["done"] * 8
    assert len(json.loads((out / "batch.json").read_text())["results"]) == 8
