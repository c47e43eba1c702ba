"""Batches of many scenarios: each as it would be alone, one page, and independent failures."""

import json
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.harness.workers import InlinePool

from roboyard.bringup.catalog import SCENARIOS
from roboyard.errors import InputError
from roboyard.scenarios import BatchOptions, run_suite_and_report
from roboyard.scenarios.batch import suite
from roboyard.scenarios.batch.export import write_junit
from roboyard.scenarios.batch.worker import TrialJob, TrialResult

SOME = ["rover-drive", "arm-reach", "akrobat-stand-up"]


def run_on_paper(job: TrialJob) -> TrialResult:
    """Arms reach nothing, everything else succeeds; nothing is simulated."""
    good = not job.scenario.startswith("arm")
    return TrialResult(job.seed, "done", good, "" if good else "not held: arrives", {"wall_time": 2.0})


def paper_pool(stops_after: int | None = None) -> InlinePool:
    """A pool of two workers that simulates nothing; the user presses Ctrl-C after some jobs."""
    return InlinePool(run_on_paper, stops_after=stops_after, workers=2)


def test_suite_has_a_batch_per_scenario_and_one_page(tmp_path: Path) -> None:
    found = run_suite_and_report(BatchOptions(runs=2, out=tmp_path / "all", smoke=True), SOME, pool=paper_pool())
    assert list(found.batches) == SOME
    assert (found.successes, found.runs, found.exit_code) == (4, 6, 1)
    page = found.report.read_text()
    assert 'href="arm-reach/report.html"' in page
    assert "2 ×: not held: arrives" in page
    assert "4 of 6 runs succeeded" in page
    assert SCENARIOS["rover-drive"].summary in unescape(page)
    document = json.loads((found.folder / "suite.json").read_text())
    assert document["scenarios"]["rover-drive"]["successes"] == 2
    suites = ElementTree.parse(write_junit(list(found.batches.values()), tmp_path / "j.xml")).getroot()
    assert [(one.get("name"), one.get("failures")) for one in suites] == [
        (n, "2" if n == "arm-reach" else "0") for n in SOME
    ]


def test_stopped_suite_resumes(tmp_path: Path) -> None:
    out = tmp_path / "all"
    with pytest.raises(KeyboardInterrupt):
        run_suite_and_report(BatchOptions(runs=1, out=out, smoke=True), SOME, pool=paper_pool(stops_after=1))
    page = (out / "report.html").read_text()
    assert "1 of 1 runs succeeded; 2 scenarios not yet run" in page
    pool = paper_pool()
    assert run_suite_and_report(BatchOptions(runs=1, out=out, smoke=True), SOME, pool=pool).runs == 3
    assert [job.scenario for job in pool.jobs] == SOME[1:]


def test_invalid_scenario_does_not_stop_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_suite_and_report(
        BatchOptions(runs=1, out=tmp_path / "all", smoke=True), ["rover-drvie", "rover-drive"], pool=paper_pool()
    )
    assert "did you mean 'rover-drive'" in found.start_errors["rover-drvie"]
    assert (found.runs, found.exit_code) == (1, 1)
    assert "could not start" in found.report.read_text()


def test_suite_runs_every_installed_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    selection = {name: SCENARIOS[name] for name in SOME}
    monkeypatch.setattr(suite, "SCENARIOS", selection)
    assert list(
        run_suite_and_report(BatchOptions(runs=1, out=tmp_path / "all", smoke=True), pool=paper_pool()).batches
    ) == sorted(SOME)


def test_suite_is_compared_with_a_baseline(tmp_path: Path) -> None:
    run_suite_and_report(BatchOptions(runs=6, out=tmp_path / "before", smoke=True), SOME[:1], pool=paper_pool())
    now = run_suite_and_report(
        BatchOptions(runs=6, out=tmp_path / "now", smoke=True, baseline=tmp_path / "before"), SOME, pool=paper_pool()
    )
    assert [batch.baseline_comparison is not None for batch in now.batches.values()] == [True, False, False]
    with pytest.raises(InputError, match="--baseline|no suite"):
        run_suite_and_report(BatchOptions(runs=1, out=tmp_path / "again", baseline=tmp_path), SOME, pool=paper_pool())


@pytest.mark.parametrize("runs", [0, -1, True])
def test_invalid_number_of_runs_is_refused(tmp_path: Path, runs: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        run_suite_and_report(BatchOptions(runs=runs, out=tmp_path / "all"), SOME, pool=paper_pool())


def test_other_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(InputError, match="holds no suite"):
        run_suite_and_report(BatchOptions(runs=1, out=tmp_path), SOME, pool=paper_pool())
