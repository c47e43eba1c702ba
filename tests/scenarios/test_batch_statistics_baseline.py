"""Comparison of a batch with its baseline: exact tests, symmetry, and no difference between equal batches."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.scenarios.batch.sampling import Trial
from roboyard.scenarios.batch.statistics import Baseline, BaselineComparison, compare_to_baseline, read_baseline
from roboyard.scenarios.batch.worker import TrialResult
from roboyard.scenarios.criteria import Criterion
from roboyard.scenarios.provenance import installed_versions_hash

TRIALS = [Trial(seed) for seed in range(10)]


def results(successes: list[bool], errors: list[float] | None = None) -> list[TrialResult]:
    trial_errors = errors or [1.0] * len(successes)
    return [
        TrialResult(k, "done", won, "", {"error": e})
        for k, (won, e) in enumerate(zip(successes, trial_errors, strict=True))
    ]


def compare(before: list[TrialResult], after: list[TrialResult], sense: int = -1) -> BaselineComparison:
    return compare_to_baseline(Baseline(Path("b"), tuple(before), ()), after, {"error": sense})


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_success_is_compared_by_mcnemars_exact_test(pairs: list[tuple[bool, bool]]) -> None:
    found = compare(results([a for a, _ in pairs]), results([b for _, b in pairs]))
    worse, better = pairs.count((True, False)), pairs.count((False, True))
    assert (len(found.newly_failed), len(found.newly_passed)) == (worse, better)
    odd = worse + better
    tail = sum(math.comb(odd, k) for k in range(min(worse, better) + 1)) / 2**odd
    assert found.p == pytest.approx(min(1.0, 2.0 * tail))
    assert ("success" in found.regressions) == (found.p < 0.05 and worse > better)


@given(shift=st.floats(0.05, 2.0), count=st.integers(8, 30), seed=st.integers(0, 99))
def test_shift_of_a_metric_is_found_in_both_directions(shift: float, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    errors = rng.uniform(0.5, 1.5, count)
    shifted = errors + shift * rng.uniform(0.5, 1.0, count)
    before, after = results([True] * count, errors.tolist()), results([True] * count, shifted.tolist())
    forward, back = compare(before, after), compare(after, before)
    assert forward.regressions == ("error",)
    assert forward.changes[0].low > 0.0
    assert back.regressions == ()
    assert back.changes[0].kind == "improved"
    assert back.changes[0].difference == pytest.approx(-forward.changes[0].difference)
    assert compare(before, after, sense=0).changes[0].kind == "changed"
    assert compare(before, after, sense=1).changes[0].kind == "improved"


@pytest.mark.parametrize(
    ("name", "criterion", "kind"),
    [
        ("odom_rmse", None, "regressed"),
        ("odom_rmse", 0, "regressed"),  # a criterion that prefers no direction, as odom_rmse == 1
        ("odom_rmse", 1, "improved"),
        ("goals_reached", None, "improved"),
        ("goals_reached", -1, "regressed"),
        ("rover.odom_rmse", 0, "regressed"),
        ("path_length", None, "changed"),
        ("path_length", -1, "regressed"),
        ("frames_missed", None, "regressed"),
        ("of_a_package_that_is_gone", None, "changed"),
    ],
)
def test_declaration_decides_where_no_criterion_does(name: str, criterion: int | None, kind: str) -> None:
    before = [TrialResult(k, "done", True, "", {name: 1.0 + 0.01 * k}) for k in range(20)]
    after = [TrialResult(k, "done", True, "", {name: 2.0 + 0.02 * k}) for k in range(20)]
    directions = {} if criterion is None else {name: criterion}
    (change,) = compare_to_baseline(Baseline(Path("b"), tuple(before), ()), after, directions).changes
    assert (change.name, change.kind) == (name, kind)


@pytest.mark.parametrize("name", ["sim_time", "wall_time", "real_time_factor", "messages"])
def test_metrics_of_the_simulation_are_not_compared(name: str) -> None:
    before = [TrialResult(k, "done", True, "", {name: 1.0 + k}) for k in range(20)]
    after = [TrialResult(k, "done", True, "", {name: 3.0 + k}) for k in range(20)]
    assert compare_to_baseline(Baseline(Path("b"), tuple(before), ()), after, {name: -1}).changes == ()


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30))
def test_equal_batches_show_no_change(errors: list[float]) -> None:
    runs = results([e > 0 for e in errors], errors)
    found = compare(runs, runs)
    assert (found.p, found.regressions, found.newly_failed, found.newly_passed) == (1.0, (), (), ())
    assert {change.kind for change in found.changes} == {"unchanged"}


def test_significant_but_small_change_does_not_count() -> None:
    before = results([True] * 20, [1.0 + 0.1 * k for k in range(20)])
    after = results([True] * 20, [1.001 + 0.1 * k for k in range(20)])
    found = compare(before, after)
    assert found.changes[0].q < 0.05
    assert found.changes[0].kind == "unchanged"


def test_runs_are_paired_by_seed_and_varied_values() -> None:
    def one(seed: int, relief: float, state: str = "done") -> TrialResult:
        return TrialResult(seed, state, state == "done", varied_values={"relief": relief})

    before = [one(1, 0.1), one(1, 0.2), one(2, 0.1)]
    after = [one(1, 0.1, "lost"), one(1, 0.2, "failed"), one(3, 0.1)]
    found = compare(before, after)
    assert (found.before.total, found.newly_failed) == (1, ("seed 1, relief=0.2",))


def test_criteria_give_the_preferred_direction_of_metrics() -> None:
    def senses(text: str) -> dict[str, int]:
        return Criterion(text).preferred_directions()

    assert senses("path_length > 25 and contacts == 0") == {"path_length": 1}
    assert senses("abs(drift) < 0.1 or rover2.contacts <= 0") == {"rover2.contacts": -1}
    assert senses("3 > a + b - c") == {"a": -1, "b": -1, "c": 1}
    assert senses("0 < a < b") == {"b": 1}  # a shall be great and small at once
    assert senses("not a < 3 and 2 * b < 3") == {}


def store(path: Path, **changed: object) -> Path:
    document = {
        "format": 2, "scenario": "s", "smoke": False, "overrides": [], "lock": installed_versions_hash(),
        "results": [{"seed": 3, "state": "done", "success": True}],
    }  # fmt: skip
    path.write_text(json.dumps({**document, **changed}))
    return path


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scenario": "changed"}, "is of the scenario changed.*one of s"),
        ({"smoke": True}, "smoke variant.*the whole"),
        ({"format": 9}, "format 9.*formats 1 to 2"),
        ({"scenario": None}, "is not the summary of a batch"),
        ({"results": []}, "no finished run"),
        ({"results": [{"seed": 99, "state": "done", "success": True}]}, "seeds 99 to 99, and none in common.*--seed"),
        ({"results": [{"seed": 3, "state": "lost", "success": False}]}, "no finished run"),
        ({"results": [{"nonsense": 3}]}, "holds no results"),
    ],
)
def test_invalid_baselines_are_refused(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_baseline(store(tmp_path / "b.json", **changed), "s", False, TRIALS)


def test_missing_or_torn_baselines_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="--baseline.*no batch"):
            read_baseline(folder, "s", False, TRIALS)
    (tmp_path / "torn.json").write_text('{"scenario": "s", "resu')
    with pytest.raises(InputError, match="cannot be read"):
        read_baseline(tmp_path / "torn.json", "s", False, TRIALS)


def test_baselines_of_other_packages_are_noted(tmp_path: Path) -> None:
    baseline = read_baseline(store(tmp_path / "b.json", lock="older", overrides=["a=1"]), "s", False, TRIALS)
    assert baseline.notes == ("other versions of packages", "--set a=1 then, none now")
    assert read_baseline(store(tmp_path / "c.json"), "s", False, TRIALS).notes == ()
    # a batch that was stopped, or of the first format, has its results beside it
    (tmp_path / "batch.json").write_text(
        json.dumps({"scenario": "s", "smoke": False, "lock": installed_versions_hash()})
    )
    (tmp_path / "results.jsonl").write_text('{"seed": 4, "state": "done", "success": true}\n{"seed": 5, "st')
    assert [r.seed for r in read_baseline(tmp_path, "s", False, TRIALS).results] == [4]
