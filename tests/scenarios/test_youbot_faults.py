"""The youBot's loop with faults: how the benchmark judges it, and that it ends well."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.harness.workers import InlinePool

from roboyard.cli.figures import benchmarks, measure
from roboyard.scenarios import load_spec, run_scenario
from roboyard.scenarios.batch_worker import Job, Result, run_job

GOOD: dict[str, Any] = {
    "arm.at_rest": True, "arm.quiet_seconds": 3.0, "arm.collisions": 0, "arm.things_fallen": 0, "arm.things_lying": 0,
    "arm.things_astray": 0, "arm.lying_touched": 0, "arm.things_placed": 2, "arm.things_held": 0, "arm.ended_by": "",
    "arm.recover_seconds": 5.0, "arm.causes": "lost", "arm.places_ok": 2,
}  # fmt: skip


def measure_benchmark(monkeypatch, name: str, **found: Any) -> dict[str, float]:
    """Figures of a benchmark where every run ends with these metrics."""

    def end(job: Job) -> Result:
        assert load_spec(job.scenario, overrides=job.overrides).scenario.things["thing"].count >= 1
        return Result(job.seed, "done", True, metrics=found)

    pool = InlinePool(end)
    monkeypatch.setattr("roboyard.compute.ProcessPool", lambda *_, **__: pool)
    (path,) = benchmarks([name]).values()
    figures = {figure.name: figure.value for figure in measure(path, nightly=False, runs=1).figures}
    assert set(pool.functions) == {run_job}
    return figures


def judge_ends(monkeypatch, **changes: Any) -> dict[str, float]:
    """Figures of the benchmark where every run ends in this way."""
    changed = {f"arm.{name}": value for name, value in changes.items()}
    return measure_benchmark(monkeypatch, "youbot-faults", **{**GOOD, **changed})


def test_benchmark_shows_figures_beside_those_of_the_thesis(monkeypatch):
    found = measure_benchmark(
        monkeypatch, "youbot", picks=4, picks_ok=3, places=2, places_ok=2, place_error_mean_mm=0.2,
        place_error_p95_mm=0.5, objects_per_hour=90.0, collisions=1, recoveries=0, real_time_factor=3.5,
    )  # fmt: skip
    for whose in ("", "thesis: "):
        assert found[f"{whose}picked of those gone for"] == 0.75
        assert found[f"{whose}off the place, mean"] == pytest.approx(0.2)
        assert found[f"{whose}collisions"] == 1
    assert found["real-time factor, least"] == 3.5


def test_good_ends_are_judged_good(monkeypatch):
    assert judge_ends(monkeypatch)["recovered, put back or stopped"] == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"at_rest": False}, {"quiet_seconds": 100.0}, {"collisions": 1}, {"things_fallen": 1}, {"things_lying": 3},
        {"lying_touched": 3}, {"things_placed": 0, "places_ok": 0, "ended_by": "bad_goal"},
    ],
)  # fmt: skip
def test_bad_ends_are_judged_bad(monkeypatch, wrong):
    assert judge_ends(monkeypatch, **wrong)["recovered, put back or stopped"] == 0.0


def test_misplaced_things_count_except_on_belts(monkeypatch):
    assert 0.0 < judge_ends(monkeypatch, things_astray=1)["recovered, put back or stopped"] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "things", "ends"),
    [
        ({"what": "knock_over", "on": "align.turned"}, 2, ""),
        ({"what": "press", "on": "release.above", "later": 0.6}, 1, "cancelled"),
    ],
)
def test_loop_with_a_fault_ends_well(tmp_path, fault, things, ends):
    overrides = (f"faults={json.dumps([{'at': 0.0, **fault}])}", f"things.thing.count={things}",
                 "robots.arm.parameters.skills.loop=1")  # fmt: skip
    spec = load_spec("youbot-faults", overrides=overrides)
    spec = replace(spec, scenario=replace(spec.scenario, seed=1))
    metrics = run_scenario(spec, out=tmp_path / "run", report=False, serve=False).metrics
    assert metrics["success"], metrics["criteria"]
    assert metrics["ended_by"] == ends
    assert metrics["things_placed"] == (not ends)
