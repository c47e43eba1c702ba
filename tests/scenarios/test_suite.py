"""Batches of many scenarios: each as it would be alone, one page, and nobody kept from running by another."""

import json
from concurrent.futures import Future
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from roboyard.compute import Pool
from roboyard.errors import InputError
from roboyard.scenarios import suite
from roboyard.scenarios.batch_export import write_junit
from roboyard.scenarios.batch_worker import Result
from roboyard.scenarios.catalog import scenarios
from roboyard.scenarios.suite import run_suite

SOME = ["rover-drive", "arm-reach", "akrobat-stand"]


class Paper(Pool):
    """Runs nothing: arms reach nothing, all else succeeds; stops before a scenario if asked to."""

    workers = 2

    def __init__(self, stops_at: str = "") -> None:
        self.ran: list[tuple[str, int]] = []
        self._stops_at = stops_at

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        job = args[0]
        if job.scenario == self._stops_at:
            raise KeyboardInterrupt
        self.ran.append((job.scenario, job.seed))
        future: Future[Any] = Future()
        good = not job.scenario.startswith("arm")
        future.set_result(Result(job.seed, "done", good, "" if good else "not held: arrives", {"wall_seconds": 2.0}))
        return future

    def close(self, *, now: bool = False) -> None:
        pass


def test_each_scenario_has_its_batch_and_all_one_page(tmp_path: Path) -> None:
    found = run_suite(2, only=SOME, out=tmp_path / "all", pool=Paper(), smoke=True)
    assert list(found.batches) == SOME
    assert (found.successes, found.runs, found.exit_code) == (4, 6, 1)
    page = found.report.read_text()
    assert 'href="arm-reach/report.html"' in page
    assert "2 ×: not held: arrives" in page
    assert "4 of 6 runs succeeded" in page
    assert scenarios()["rover-drive"].about in unescape(page)
    told = json.loads((found.folder / "suite.json").read_text())
    assert told["scenarios"]["rover-drive"]["successes"] == 2
    suites = ElementTree.parse(write_junit(list(found.batches.values()), tmp_path / "j.xml")).getroot()
    assert [(one.get("name"), one.get("failures")) for one in suites] == [
        (n, "2" if n == "arm-reach" else "0") for n in SOME
    ]


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "all"
    with pytest.raises(KeyboardInterrupt):
        run_suite(1, only=SOME, out=out, pool=Paper(stops_at="arm-reach"), smoke=True)
    page = (out / "report.html").read_text()
    assert "1 of 1 runs succeeded; 2 scenarios to come" in page
    pool = Paper()
    assert run_suite(1, only=SOME, out=out, pool=pool, smoke=True).runs == 3
    assert [name for name, _ in pool.ran] == SOME[1:]


def test_one_that_cannot_begin_keeps_nobody_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_suite(1, only=["rover-drvie", "rover-drive"], out=tmp_path / "all", pool=Paper(), smoke=True)
    assert "did you mean 'rover-drive'" in found.refused["rover-drvie"]
    assert (found.runs, found.exit_code) == (1, 1)
    assert "not begun" in found.report.read_text()


def test_all_of_them_is_every_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: scenarios()[name] for name in SOME}
    monkeypatch.setattr(suite, "scenarios", lambda: few)
    assert list(run_suite(1, out=tmp_path / "all", pool=Paper(), smoke=True).batches) == sorted(SOME)


def test_a_suite_beside_one_before(tmp_path: Path) -> None:
    run_suite(6, only=SOME[:1], out=tmp_path / "before", pool=Paper(), smoke=True)
    now = run_suite(6, only=SOME, out=tmp_path / "now", pool=Paper(), smoke=True, against=tmp_path / "before")
    assert [batch.against is not None for batch in now.batches.values()] == [True, False, False]
    with pytest.raises(InputError, match="--against|no suite"):
        run_suite(1, only=SOME, out=tmp_path / "again", pool=Paper(), against=tmp_path)


@pytest.mark.parametrize("runs", [0, -1, True])
def test_no_runs(tmp_path: Path, runs: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        run_suite(runs, only=SOME, out=tmp_path / "all", pool=Paper())


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(InputError, match="something else"):
        run_suite(1, only=SOME, out=tmp_path, pool=Paper())
