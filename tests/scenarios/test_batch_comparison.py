"""Comparison of variants of a scenario: the same seeds for each, pooled shares, one page."""

import json
from pathlib import Path

import pytest
from tests.harness.scenarios import ScenarioBuilder
from tests.harness.workers import InlinePool

from roboyard.errors import ConfigError, InputError
from roboyard.scenarios import BatchOptions, compare_and_report, load_scenario, run_batch_and_report
from roboyard.scenarios.batch.comparison import VariantComparison
from roboyard.scenarios.batch.runner import summarize_batch
from roboyard.scenarios.batch.worker import TrialJob, TrialResult
from roboyard.scenarios.report.batch_pages import comparison_page


def drive_on_paper(job: TrialJob) -> TrialResult:
    """The rover drives as far as the scenario's duration lets it, without being simulated."""
    spec = load_scenario(job.scenario, overrides=job.overrides, smoke=job.smoke)
    length = 0.5 * spec.config.duration - 0.07 + 0.001 * job.seed
    return TrialResult(job.seed, "done", length > 0.05, metrics={"path_length": length, "seed": job.seed})


def paper_pool() -> InlinePool:
    """A pool that simulates nothing."""
    return InlinePool(drive_on_paper)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """The file of a rover's short drive."""
    builder = ScenarioBuilder(duration=0.4).drive(0.5, duration=10.0).criterion("covers_distance", "path_length > 0.05")
    return str(builder.set(comparison_metrics=["cycles"]).write(tmp_path))


def test_compared_variants_equal_their_single_batches(scenario: str, tmp_path: Path) -> None:
    vary = ["duration=0.2,0.6"]
    found = compare_and_report(
        scenario, vary, BatchOptions(runs=2, first_seed=3, out=tmp_path / "both", stored_runs="none"), pool=paper_pool()
    )
    assert list(found.batches) == ["duration=0.2", "duration=0.6"]
    alone = run_batch_and_report(
        scenario,
        BatchOptions(runs=2, first_seed=3, out=tmp_path / "one", overrides=("duration=0.6",), stored_runs="none"),
        pool=paper_pool(),
    )
    both = [r.metrics["path_length"] for r in found.batches["duration=0.6"].results]
    assert both == [r.metrics["path_length"] for r in alone.results]
    success = found.success_rates()["success"]
    assert [(one.successes, one.total) for one in success.values()] == [(0, 2), (2, 2)]
    assert found.compared_metrics == ("cycles", "path_length")
    document = json.loads((found.folder / "comparison.json").read_text())
    assert document["success_rates"]["success"]["duration=0.6"]["successes"] == 2
    page = (found.folder / "comparison.html").read_text()
    assert "duration=0.2" in page
    assert "34.2% to 100.0%" in page  # Wilson's interval of 2 of 2
    assert "<svg" in page
    repeated = compare_and_report(
        scenario, vary, BatchOptions(runs=2, first_seed=3, out=tmp_path / "both", stored_runs="none"), pool=paper_pool()
    )
    assert all(batch.resumed_count == 2 for batch in repeated.batches.values())


def test_metrics_that_summaries_show_are_compared_before_those_of_criteria(scenario: str, tmp_path: Path) -> None:
    options = BatchOptions(
        runs=1, runs_folder=tmp_path, stored_runs="none", overrides=("criteria.covers_distance=final_x > -9",)
    )
    found = compare_and_report(scenario, ["duration=0.2,0.6"], options, pool=paper_pool())
    assert found.compared_metrics == ("cycles", "path_length", "final_x")


def test_metrics_of_all_criteria_are_compared(scenario: str, tmp_path: Path) -> None:
    vary = ["criteria.drives=path_length > 0,final_x > -9"]
    found = compare_and_report(
        scenario, vary, BatchOptions(runs=1, runs_folder=tmp_path, stored_runs="none"), pool=paper_pool()
    )
    assert found.compared_metrics == ("cycles", "path_length", "final_x")
    page = (found.folder / "comparison.html").read_text()
    assert page.index("Compared metrics") < page.index("<code>path_length</code>") < page.index("<h2>Runs</h2>")
    with pytest.raises(ConfigError, match=r"cycle.*comparison_metrics|comparison_metrics.*cycle"):
        compare_and_report(
            scenario,
            ["duration=0.1,0.2"],
            BatchOptions(runs=1, overrides=("comparison_metrics=[cycle]",), runs_folder=tmp_path),
            pool=paper_pool(),
        )


def test_several_varied_keys_give_all_combinations(scenario: str, tmp_path: Path) -> None:
    vary = ["duration=0.1,0.2", "robots.rover.pose=[0, 0, 0],[1, 0, 0]"]
    found = compare_and_report(
        scenario, vary, BatchOptions(runs=1, runs_folder=tmp_path, stored_runs="none"), pool=paper_pool()
    )
    assert len(found.batches) == 4
    assert "duration=0.2, robots.rover.pose=[1, 0, 0]" in found.batches


def test_success_rates_are_pooled_over_runs() -> None:
    def result(seed: int, good: int | None, attempts: int | None) -> TrialResult:
        return TrialResult(seed, "done", True, metrics={"places_succeeded": good, "place_attempts": attempts})

    batches = {
        "a": summarize_batch("x", Path(), [result(1, 3, 4), result(2, 5, 5), result(3, None, None)]),
        "b": summarize_batch("x", Path(), [result(1, 0, 0)]),
    }
    found = VariantComparison("x", "", Path(), batches, ("place_attempts",))
    fractions = found.success_rates()
    assert (fractions["place_attempts"]["a"].successes, fractions["place_attempts"]["a"].total) == (8, 9)
    assert fractions["place_attempts"]["b"].total == 0
    assert "pick_attempts" not in fractions
    assert "8 of 9" in comparison_page(found)


@pytest.mark.parametrize("vary", [["duration=0.2"], ["duration"], ["duration="], ["=1,2"], ["duration=1,1"]])
def test_invalid_variations_are_refused(scenario: str, tmp_path: Path, vary: list[str]) -> None:
    with pytest.raises(InputError, match="--vary"):
        compare_and_report(scenario, vary, BatchOptions(runs=1, out=tmp_path / "none"), pool=paper_pool())
    assert not (tmp_path / "none").exists()
