"""Variants of one scenario side by side: a batch per variant, with the same seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from roboyard.errors import InputError
from roboyard.scenarios.batch.runner import BatchResult, run_batch
from roboyard.scenarios.batch.sampling import split_list
from roboyard.scenarios.batch.statistics import Proportion, wilson_interval
from roboyard.scenarios.batch.worker import TrialResult
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.resolve import read_criteria
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder

SUMMARY: Final = "comparison.json"
_SUCCESS_METRICS: Final = (
    ("picks_succeeded", "pick_attempts"),
    ("places_succeeded", "place_attempts"),
    ("goals_reached", "navigation_goals"),
    ("arm_reached", "arm_goals"),
)
"""Metrics that count what went well, and of how many."""


@dataclass(frozen=True, slots=True)
class VariantComparison:
    """What came of each way.

    Attributes:
        scenario: Its name.
        summary: One line on it.
        folder: Where the batches and the page lie.
        batches: By what was varied: "method=own".
        asked: Metrics that the scenario wants to be compared, and those that criteria of any way ask for.
    """

    scenario: str
    summary: str
    folder: Path
    batches: dict[str, BatchResult]
    compared_metrics: tuple[str, ...]

    def success_rates(self) -> dict[str, dict[str, Proportion]]:
        """Of what was tried in all runs of a way, how much went well: by name, by way; runs' success first."""
        rates_by_name = {"success": {name: batch.success_rate for name, batch in self.batches.items()}}
        for success_metric, attempt_metric in _SUCCESS_METRICS:
            rates = {
                name: _pooled_rate(batch.results, success_metric, attempt_metric)
                for name, batch in self.batches.items()
            }
            if any(rate.total for rate in rates.values()):
                rates_by_name[attempt_metric] = rates
        return rates_by_name

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        rates_by_name = {
            name: {
                variant: {"successes": r.successes, "total": r.total, "low": r.low, "high": r.high}
                for variant, r in rates.items()
            }
            for name, rates in self.success_rates().items()
        }
        batches = {name: batch.to_dict() for name, batch in self.batches.items()}
        return {"scenario": self.scenario, "success_rates": rates_by_name, "batches": batches}


def compare_variants(
    scenario: str,
    vary: Sequence[str],
    runs: int,
    *,
    overrides: Sequence[str] = (),
    out: str | Path | None = None,
    base: str | Path = "runs",
    progress: Callable[[str], Callable[[TrialResult, int, int], None]] | None = None,
    **batch_options: Any,
) -> VariantComparison:
    """Run a batch for each combination of the values that are varied, and write a page with all of them.

    Batches lie in folders called by what was varied; a comparison that was stopped goes on where it was when ``out``
    names its folder again.

    Args:
        scenario: Name or path.
        varied: ``key.path=value,value``: an option's name, or any key that `--set` takes.
        runs: Of each, with the same seeds.
        overrides: ``key.path=value`` for all.
        out: Folder; None: a new one, ``<base>/<scenario>-comparison-<NNN>``.
        base: Where new folders are made.
        progress: Called with the name of each batch, gives what `run_batch` tells.
        batch: Further arguments of `run_batch`.

    Raises:
        InputError: nothing or one value is varied, a value is not right, or as `run_batch` says.
    """
    from roboyard.scenarios.report.batch_pages import comparison_page

    variants = {", ".join(assignments): assignments for assignments in product(*(_assignments(text) for text in vary))}
    if len(variants) < 2:
        raise InputError(
            "there is nothing to compare", location="--vary", valid="at least two values: method=own,thesis"
        )
    specs = {
        name: load_scenario(scenario, overrides=(*overrides, *variant_overrides))
        for name, variant_overrides in variants.items()
    }
    spec = next(iter(specs.values()))
    folder = Path(out) if out is not None else create_numbered_folder(f"{spec.name}-comparison", base).path
    batches = {
        name: run_batch(
            scenario, runs, overrides=(*overrides, *variant_overrides), out=folder / _folder_name(name),
            progress=progress(name) if progress is not None else None, **batch_options,
        )
        for name, variant_overrides in variants.items()
    }  # fmt: skip
    criteria = [criterion for one in specs.values() for criterion in read_criteria(one)[0].values()]
    compared_metrics = tuple(
        dict.fromkeys(
            (*spec.config.comparison_metrics, *(name for criterion in criteria for name in criterion.metric_names))
        )
    )
    comparison = VariantComparison(spec.name, spec.config.summary, folder, batches, compared_metrics)
    run_folder = RunFolder(folder)
    run_folder.write_json(folder / SUMMARY, comparison.to_dict())
    run_folder.write_text(folder / "comparison.html", comparison_page(comparison))
    return comparison


def _assignments(text: str) -> list[str]:
    """``key=a,b`` as key=a and key=b; commas in brackets part nothing."""
    key, equals, values = text.partition("=")
    parts = split_list(values)
    if not equals or not key or not parts or len(set(parts)) != len(parts):
        raise InputError(f"{text!r} varies nothing", location="--vary", valid="key=value,value with different values")
    return [f"{key}={part}" for part in parts]


def _folder_name(variant: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=,+-]+", "-", variant)


def _pooled_rate(results: Sequence[TrialResult], success_metric: str, attempt_metric: str) -> Proportion:
    pairs = [(result.metric(success_metric), result.metric(attempt_metric)) for result in results]
    measured_pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
    return wilson_interval(sum(int(a) for a, _ in measured_pairs), sum(int(b) for _, b in measured_pairs))
