"""The youBot's loop with faults: how the benchmark judges it, and that it ends well."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.harness.workers import InlinePool

from roboyard.cli.benchmarks import find_benchmarks, run_benchmark
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.batch.worker import TrialJob, TrialResult, run_trial
from roboyard.scenarios.run_options import RunOptions

GOOD: dict[str, Any] = {
    "arm.at_rest": True,
    "arm.max_skill_silence": 3.0,
    "arm.collisions": 0,
    "arm.objects_fallen": 0,
    "arm.objects_lying": 0,
    "arm.objects_astray": 0,
    "arm.fallen_object_contacts": 0,
    "arm.objects_placed": 2,
    "arm.objects_held": 0,
    "arm.end_cause": "",
    "arm.recovery_time": 5.0,
    "arm.failure_causes": "lost",
    "arm.places_succeeded": 2,
}


def measure_benchmark(monkeypatch, name: str, **found: Any) -> dict[str, float]:
    """Figures of a benchmark where every run ends with these metrics."""

    def end(job: TrialJob) -> TrialResult:
        assert load_scenario(job.scenario, overrides=job.overrides).config.objects["object"].count >= 1
        return TrialResult(job.seed, "done", True, metrics=found)

    pool = InlinePool(end)
    monkeypatch.setattr("roboyard.compute.ProcessPool", lambda *_, **__: pool)
    (path,) = find_benchmarks([name]).values()
    figures = {figure.name: figure.value for figure in run_benchmark(path, nightly=False, runs=1).figures}
    assert set(pool.functions) == {run_trial}
    return figures


def evaluate_ends(monkeypatch, **changes: Any) -> dict[str, float]:
    """Figures of the benchmark where every run ends in this way."""
    changed = {f"arm.{name}": value for name, value in changes.items()}
    return measure_benchmark(monkeypatch, "youbot-faults", **{**GOOD, **changed})


def test_benchmark_shows_figures_next_to_those_of_the_thesis(monkeypatch):
    found = measure_benchmark(
        monkeypatch,
        "youbot",
        pick_attempts=4,
        picks_succeeded=3,
        place_attempts=2,
        places_succeeded=2,
        place_error_mean_mm=0.2,
        place_error_p95_mm=0.5,
        objects_per_hour=90.0,
        collisions=1,
        recoveries=0,
        real_time_factor=3.5,
    )
    for prefix in ("", "thesis: "):
        assert found[f"{prefix}picked of those gone for"] == 0.75
        assert found[f"{prefix}off the place, mean"] == pytest.approx(0.2)
        assert found[f"{prefix}collisions"] == 1
    assert found["real-time factor, least"] == 3.5


def test_good_ends_are_successes(monkeypatch):
    assert evaluate_ends(monkeypatch)["recovered, put back or stopped"] == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"at_rest": False}, {"max_skill_silence": 100.0}, {"collisions": 1}, {"objects_fallen": 1},
        {"objects_lying": 3}, {"fallen_object_contacts": 3},
        {"objects_placed": 0, "places_succeeded": 0, "end_cause": "bad_goal"},
    ],
)  # fmt: skip
def test_bad_ends_are_failures(monkeypatch, wrong):
    assert evaluate_ends(monkeypatch, **wrong)["recovered, put back or stopped"] == 0.0


def test_misplaced_objects_count_except_on_belts(monkeypatch):
    assert 0.0 < evaluate_ends(monkeypatch, objects_astray=1)["recovered, put back or stopped"] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "n_objects", "ends"),
    [
        ({"type": "knock_over", "trigger": "align.rotate"}, 2, ""),
        ({"type": "call_service", "trigger": "release.move_above", "trigger_delay": 0.6}, 1, "cancelled"),
    ],
)
def test_loop_with_a_fault_ends_well(tmp_path, fault, n_objects, ends):
    overrides = (f"faults={json.dumps([{'time': 0.0, **fault}])}", f"objects.object.count={n_objects}",
                 "robots.arm.parameters.skills.loop=1")  # fmt: skip
    spec = load_scenario("youbot-faults", overrides=overrides)
    spec = replace(spec, config=replace(spec.config, seed=1))
    metrics = run_scenario(spec, RunOptions(out=tmp_path / "run", write_report=False, serve=False)).metrics
    assert metrics["success"], metrics["criteria"]
    assert metrics["end_cause"] == ends
    assert metrics["objects_placed"] == (not ends)
