"""Batches: the same runs in any pool, resumption after interruptions, summaries."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.harness.scenarios import ScenarioBuilder, recording_digest
from tests.harness.workers import InlinePool

from roboyard.config import schema_table
from roboyard.errors import InputError, RunError
from roboyard.scenarios import BatchObserver, BatchOptions, load_scenario, run_batch_and_report, run_scenario
from roboyard.scenarios.batch.runner import summarize_batch
from roboyard.scenarios.batch.worker import TrialJob, TrialResult, run_trial
from roboyard.scenarios.run_options import RunOptions


def short_drive() -> ScenarioBuilder:
    """A rover that drives straight for 0.4 s."""
    return ScenarioBuilder(duration=0.4).drive(0.5, duration=10.0).criterion("covers_distance", "path_length > 0.01")


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """The file of a rover's short drive."""
    return str(short_drive().write(tmp_path))


def test_batch_gives_results_and_summary_of_its_seeds(scenario: str, tmp_path: Path) -> None:
    reports: list[tuple[int, int, int]] = []
    observer = BatchObserver(on_result=lambda result, finished, total: reports.append((result.seed, finished, total)))
    options = BatchOptions(runs=3, first_seed=5, runs_folder=tmp_path)
    result = run_batch_and_report(scenario, options, observer, pool=InlinePool())
    assert [r.seed for r in result.results] == [5, 6, 7]
    assert reports == [(5, 1, 3), (6, 2, 3), (7, 3, 3)]
    assert str(result.success_rate).startswith("3 of 3 (100.0%, 95 % interval 43.9% to 100.0%)")
    assert result.exit_code == 0
    assert result.metric_summaries["path_length"].count == 3
    assert result.folder.name == "short-batch-001"
    assert sorted(p.name for p in result.folder.iterdir()) == ["batch.json", "report.html", "results.jsonl"]
    summary = json.loads((result.folder / "batch.json").read_text())["summary"]
    assert summary["successes"] == 3
    single = run_scenario(load_scenario(scenario).with_seed(6), RunOptions(write_files=False, serve=False))
    assert result.results[1].metrics["path_length"] == single.metrics["path_length"]


def test_failed_runs_are_kept_with_their_reason(scenario: str, tmp_path: Path) -> None:
    result = run_batch_and_report(
        scenario,
        BatchOptions(runs=2, runs_folder=tmp_path, overrides=("criteria.drives=path_length > 9",)),
        pool=InlinePool(),
    )
    assert result.success_rate.successes == 0
    assert result.exit_code == 1
    for failure in result.failures:
        assert failure.reason == "not held: drives (path_length > 9)"
        assert {"recording.mcap", "report.html", "metrics.json"} <= {p.name for p in Path(failure.folder).iterdir()}


def test_stopped_batch_resumes(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "batch"
    with pytest.raises(KeyboardInterrupt):
        run_batch_and_report(scenario, BatchOptions(runs=4, out=out), pool=InlinePool(stops_after=3))
    with (out / "results.jsonl").open("a") as file:
        file.write('{"seed": 3, "sta')  # the line that the kill tore
    before = [json.loads(line)["seed"] for line in (out / "results.jsonl").read_text().splitlines()[:-1]]
    pool = InlinePool()
    result = run_batch_and_report(scenario, BatchOptions(runs=4, out=out), pool=pool)
    assert sorted(before + pool.seeds) == [0, 1, 2, 3]
    assert result.resumed_count == len(before) > 0
    assert [r.seed for r in result.results] == [0, 1, 2, 3]
    more = run_batch_and_report(scenario, BatchOptions(runs=5, out=out), pool=pool)
    assert (more.resumed_count, len(more.results)) == (4, 5)


def test_finished_but_uncounted_run_is_not_repeated(scenario: str, tmp_path: Path) -> None:
    """Killed between a run's last file and its line in the results."""
    out = tmp_path / "batch"
    complete = run_batch_and_report(scenario, BatchOptions(runs=2, out=out, stored_runs="all"), pool=InlinePool())
    lines = (out / "results.jsonl").read_text().splitlines()
    (out / "results.jsonl").write_text(lines[0] + "\n" + lines[1].replace('"done"', '"interrupted"') + "\n")
    pool = InlinePool()
    repeated = run_batch_and_report(scenario, BatchOptions(runs=2, out=out, stored_runs="all"), pool=pool)
    assert (repeated.resumed_count, pool.seeds) == (2, [])
    assert repeated.results == complete.results


def test_run_of_a_dead_worker_is_lost_and_repeated(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "batch"
    result = run_batch_and_report(scenario, BatchOptions(runs=3, out=out), pool=InlinePool(dying_seeds=(1,)))
    assert [r.state for r in result.results] == ["done", "lost", "done"]
    assert "exit code -9" in result.failures[0].reason
    pool = InlinePool()
    assert run_batch_and_report(scenario, BatchOptions(runs=3, out=out), pool=pool).success_rate.successes == 3
    assert pool.seeds == [1]


class FailingVideoPool(InlinePool):
    """Ends while the video of the second run is drawn: its metrics are there, its video and report are not.

    Args:
        dies: The worker dies; else the user presses Ctrl-C.
    """

    def __init__(self, *, dies: bool) -> None:
        super().__init__()
        self._dies = dies

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a job, and lose the second one."""
        future = super().submit(function, *args, **kwargs)
        if len(self.jobs) == 2:
            folder = Path(args[0].folder)
            (folder / "report.html").unlink()
            (folder / "video.mp4").write_bytes(b"half a video")
            if not self._dies:
                raise KeyboardInterrupt
            future = Future()
            future.set_exception(RunError("a worker process ended with exit code -9"))
        return future


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True])
def test_run_is_not_lost_with_its_video(scenario: str, tmp_path: Path, dies: bool) -> None:
    out, bad = tmp_path / "batch", ["criteria.drives=path_length > 9"]
    with suppress(KeyboardInterrupt):
        run_batch_and_report(
            scenario,
            BatchOptions(runs=3, out=out, overrides=tuple(bad), video=False),
            pool=FailingVideoPool(dies=dies),
        )
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    by_seed = {row["seed"]: row for row in rows}
    assert by_seed[1]["reason"] == "not held: drives (path_length > 9)"
    assert by_seed[1]["metrics"]["path_length"] > 0.01
    left = {path.name for path in (out / "seed-000001").iterdir()}
    assert {"recording.mcap", "metrics.json", "report.html"} <= left  # what is left can be read,
    assert "video.mp4" not in left  # and what was torn is gone
    assert "of 3" in (out / "report.html").read_text() or not dies
    pool = InlinePool()
    run_batch_and_report(scenario, BatchOptions(runs=3, out=out, overrides=tuple(bad)), pool=pool)
    assert 1 not in pool.seeds


@pytest.mark.slow
def test_varied_values_reach_their_runs_and_the_report(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "batch"
    vary = ["duration=0.2,0.4", "criteria.drives=path_length > 0,path_length > 9"]
    pool = InlinePool()
    result = run_batch_and_report(
        scenario, BatchOptions(runs=2, out=out, vary=tuple(vary), design="grid", first_seed=4), pool=pool
    )
    assert len(result.results) == 8
    assert sorted(pool.seeds) == [4, 4, 4, 4, 5, 5, 5, 5]
    for one in result.results:
        assert one.metrics["sim_time"] == pytest.approx(one.varied_values["duration"])
        assert one.success == (one.varied_values["criteria.drives"] == "path_length > 0")
    repeated = run_batch_and_report(
        scenario, BatchOptions(runs=2, out=out, vary=tuple(vary), design="grid", first_seed=4), pool=pool
    )
    assert (repeated.resumed_count, repeated.results, len(pool.jobs)) == (8, result.results, 8)
    page = (out / "report.html").read_text()
    assert "Success rate over the varied values" in page
    assert "point-001-seed-000004/report.html" in page
    with pytest.raises(InputError, match="ran with vary"):
        run_batch_and_report(
            scenario, BatchOptions(runs=2, out=out, vary=tuple(vary[:1]), design="grid", first_seed=4), pool=pool
        )
    with pytest.raises(InputError, match="ran with points"):
        run_batch_and_report(
            scenario, BatchOptions(runs=3, out=out, vary=tuple(vary), design="grid", first_seed=4), pool=pool
        )
    with pytest.raises(InputError, match="ran with vary"):
        run_batch_and_report(scenario, BatchOptions(runs=2, out=out, first_seed=4), pool=pool)


def test_varied_values_are_checked_before_any_run(scenario: str, tmp_path: Path) -> None:
    for vary in (["duratoin=uniform:1,2"], ["duration=uniform:-2,-1"], ["duration=0.1,soon"]):
        with pytest.raises(InputError, match="durat"):
            run_batch_and_report(
                scenario, BatchOptions(runs=3, out=tmp_path / "none", vary=tuple(vary)), pool=InlinePool()
            )
    with pytest.raises(InputError, match="design"):
        run_batch_and_report(scenario, BatchOptions(runs=3, out=tmp_path / "none", design="lhs"), pool=InlinePool())
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_baseline_shows_what_got_worse(scenario: str, tmp_path: Path) -> None:
    base = run_batch_and_report(scenario, BatchOptions(runs=8, out=tmp_path / "base"), pool=InlinePool())
    slow = ["operator=[{drive: {linear: 0.2, duration: 10}}]"]
    now = run_batch_and_report(
        scenario,
        BatchOptions(runs=8, out=tmp_path / "now", overrides=tuple(slow), baseline=base.folder),
        pool=InlinePool(),
    )
    assert now.baseline_comparison is not None
    assert now.baseline_comparison.regressions == ("path_length",)
    assert (now.exit_code, len(now.failures)) == (1, 0)
    assert "worse than the baseline" in (now.folder / "report.html").read_text()
    one_file = tmp_path / "baseline.json"
    one_file.write_bytes((base.folder / "batch.json").read_bytes())
    same = run_batch_and_report(
        scenario, BatchOptions(runs=8, out=tmp_path / "same", baseline=one_file), pool=InlinePool()
    )
    assert same.baseline_comparison is not None
    assert (same.baseline_comparison.regressions, same.baseline_comparison.notes, same.exit_code) == ((), (), 0)


def test_unreachable_cluster_leaves_no_folder(scenario: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no response"):
        run_batch_and_report(scenario, BatchOptions(runs=2, out=tmp_path / "none", cluster="127.0.0.1:1"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("runs", [0, -3, 1.5, True])
def test_invalid_number_of_runs_is_refused(scenario: str, runs: Any) -> None:
    with pytest.raises(InputError, match="at least 1"):
        run_batch_and_report(scenario, BatchOptions(runs=runs))


def test_folders_of_other_batches_are_refused(scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "batch"
    run_batch_and_report(scenario, BatchOptions(runs=1, out=out), pool=InlinePool())
    with pytest.raises(InputError, match="ran with overrides"):
        run_batch_and_report(scenario, BatchOptions(runs=1, out=out, overrides=("duration=0.3",)), pool=InlinePool())
    with pytest.raises(InputError, match="holds no batch"):
        run_batch_and_report(scenario, BatchOptions(runs=1, out=tmp_path), pool=InlinePool())


def test_run_that_cannot_start_is_a_failed_result(scenario: str, tmp_path: Path) -> None:
    result = run_batch_and_report(
        scenario, BatchOptions(runs=1, runs_folder=tmp_path, overrides=("robots.rover.model=rovre",)), pool=InlinePool()
    )
    assert result.results[0].state == "failed"
    assert "did you mean 'rover'" in result.results[0].reason


def test_aborted_runs_count_as_failures_without_metrics() -> None:
    """What was measured until then looks good beside whole runs: little time to err in."""
    complete = [TrialResult(k, "done", True, "", {"error_m": 0.1 + 0.01 * k, "hits": 8, "tries": 9}) for k in range(3)]
    broken = [TrialResult(k, state, False, "x", {"error_m": 0.0, "hits": 0, "tries": 1})
              for k, state in enumerate(("failed", "interrupted"), 3)]  # fmt: skip
    summed = summarize_batch("s", Path(), [*complete, *broken])
    assert (summed.success_rate.successes, summed.success_rate.total) == (3, 5)
    assert summed.metric_summaries["error_m"].minimum == pytest.approx(0.1)
    assert summed.metric_summaries == summarize_batch("s", Path(), complete).metric_summaries


def test_summary_omits_unmeasured_metrics() -> None:
    results = [TrialResult(1, "done", True, "", {"a": 1.0, "b": None}), TrialResult(0, "done", False, "x", {"a": 3.0})]
    summed = summarize_batch("s", Path(), results)
    assert [r.seed for r in summed.results] == [0, 1]
    assert set(summed.metric_summaries) == {"a"}
    assert summed.metric_summaries["a"].mean == 2.0


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_worker_processes_give_the_same_recordings(scenario: str, tmp_path: Path) -> None:
    inline_batch = run_batch_and_report(
        scenario, BatchOptions(runs=3, runs_folder=tmp_path, stored_runs="all"), pool=InlinePool()
    )
    process_batch = run_batch_and_report(
        scenario, BatchOptions(runs=3, runs_folder=tmp_path, workers=2, stored_runs="all")
    )
    for a, b in zip(inline_batch.results, process_batch.results, strict=True):
        assert recording_digest(Path(a.folder)) == recording_digest(Path(b.folder))


DEADLY = '''
import os
import signal

import roboyard as ry


class DeadlyConfig(ry.Config):
    dies: bool = ry.parameter(False)


class Deadly(ry.Node[DeadlyConfig]):
    """Ends its process in mid-run, as the kernel does when memory runs out."""


    def setup(self) -> None:
        self.timer(0.2, self.on_time)

    def on_time(self) -> None:
        if self.config.dies:
            os.kill(os.getpid(), signal.SIGKILL)
'''


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_killed_worker_process_loses_only_its_run(scenario: str, tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    short_drive().set(nodes={"deadly": {"type": "deadly.py:Deadly"}}).write(tmp_path)
    vary = ["nodes.deadly.parameters.dies=false,true"]
    out = tmp_path / "out"
    found = run_batch_and_report(scenario, BatchOptions(runs=2, out=out, workers=1, vary=tuple(vary), design="grid"))
    assert [(r.varied_values["nodes.deadly.parameters.dies"], r.state) for r in found.results] == [
        ("false", "done"), ("true", "lost"), ("false", "done"), ("true", "lost"),
    ]  # fmt: skip
    assert all("exit code -9" in r.reason and "memory" in r.reason for r in found.failures)
    assert "lost because their workers died" in (out / "report.html").read_text()


@pytest.mark.parametrize("scenario", ["scenario.yaml", "nowhere.yaml"])
def test_run_that_keeps_nothing_leaves_folders_unchanged(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_drive().write(tmp_path / "scenario.yaml")
    monkeypatch.chdir(tmp_path)
    for folder in ("", ".", str(tmp_path)):
        result = run_trial(TrialJob(scenario, 1, (), False, folder, "none"))
        assert (result.state == "done") == (scenario == "scenario.yaml")
        assert [path.name for path in tmp_path.iterdir()] == ["scenario.yaml"]


def test_reference_page_lists_the_options_of_batches() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "batches.md"
    assert schema_table(BatchOptions) in page.read_text("utf-8")
