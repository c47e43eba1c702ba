"""Variants of one scenario side by side: a batch per variant, with the same seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from roboyard.compute import Pool
from roboyard.errors import InputError
from roboyard.evaluation.plugin import shown_metrics
from roboyard.scenarios.batch.options import BatchOptions
from roboyard.scenarios.batch.runner import BatchObserver, BatchResult, run_batch
from roboyard.scenarios.batch.sampling import split_list
from roboyard.scenarios.batch.statistics import UNCOMPARED_METRICS, Proportion, wilson_interval
from roboyard.scenarios.batch.worker import TrialResult
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.resolve import read_criteria
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder

SUMMARY: Final = "comparison.json"
REPORT: Final = "comparison.html"
_SUCCESS_METRICS: Final = (
    ("picks_succeeded", "pick_attempts"),
    ("places_succeeded", "place_attempts"),
    ("goals_reached", "navigation_goals"),
    ("arm_reached", "arm_goals"),
)
"""Metrics that count successes, each with the metric that counts the attempts."""


@dataclass(frozen=True, slots=True)
class VariantComparison:
    """Results of the same seeds under several variants of a scenario.

    Attributes:
        scenario: Name of the scenario.
        summary: One line on the scenario.
        folder: Folder of the batches and of the page.
        batches: Batch of each variant, by what varies: "method=own".
        compared_metrics: Metrics that the scenario wants to be compared, then those that summaries of runs show, as far
            as a variant measured them, and those of the criteria of any variant.
    """

    scenario: str
    summary: str
    folder: Path
    batches: dict[str, BatchResult]
    compared_metrics: tuple[str, ...]

    def success_rates(self) -> dict[str, dict[str, Proportion]]:
        """Return success rates over all runs of a variant, by name and variant; first that of the runs themselves."""
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
        """Return the comparison as plain data, for JSON."""
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
    options: BatchOptions,
    create_observer: Callable[[str], BatchObserver] | None = None,
    *,
    pool: Pool | None = None,
) -> VariantComparison:
    """Run a batch for each combination of the values that vary, and write comparison.json into their folder.

    The folders of the batches are named by what varies; a comparison that was stopped continues if ``options.out``
    names its folder again.  `batch.page_writer` also writes the pages.

    Args:
        scenario: Name or path of the scenario.
        vary: ``key.path=value,value``: name of an option, or any key that `--set` accepts.
        options: Options of each batch; ``out`` is the folder of all of them.
        create_observer: Function that returns the observer of a batch, by the name of its variant.
        pool: Workers to use instead of ``options.workers`` and ``options.cluster``; closed by whoever created them.

    Raises:
        InputError: There are fewer than two variants, a value is not valid, ``options.out`` holds something else than a
            comparison, or as for `run_batch`.
    """
    variants = {", ".join(assignments): assignments for assignments in product(*(_assignments(text) for text in vary))}
    if len(variants) < 2:
        raise InputError(
            "a comparison needs at least two variants",
            location="--vary",
            valid="at least two values: method=own,thesis",
        )
    loaded_variants = [
        load_scenario(scenario, overrides=(*options.overrides, *assignments)) for assignments in variants.values()
    ]
    loaded = loaded_variants[0]
    folder = (
        Path(options.out)
        if options.out is not None
        else create_numbered_folder(f"{loaded.name}-comparison", options.runs_folder).path
    )
    _check_folder(folder, [_folder_name(name) for name in variants])
    batches = {
        name: run_batch(
            scenario,
            replace(options, overrides=(*options.overrides, *assignments), out=folder / _folder_name(name)),
            None if create_observer is None else create_observer(name),
            pool=pool,
        )
        for name, assignments in variants.items()
    }
    criteria = [criterion for one in loaded_variants for criterion in read_criteria(one)[0].values()]
    measured = {name for batch in batches.values() for name in batch.metric_summaries} - UNCOMPARED_METRICS
    compared_metrics = dict.fromkeys(
        (
            *loaded.config.comparison_metrics,
            *(metric.name for metric in shown_metrics() if metric.name in measured),
            *(name for criterion in criteria for name in criterion.metric_names),
        )
    )
    comparison = VariantComparison(loaded.name, loaded.config.summary, folder, batches, tuple(compared_metrics))
    RunFolder(folder).write_json(folder / SUMMARY, comparison.to_dict())
    return comparison


def _assignments(text: str) -> list[str]:
    """Return ``key=a,b`` as key=a and key=b; commas within brackets do not separate values."""
    key, equals, values = text.partition("=")
    parts = split_list(values)
    if not equals or not key or not parts or len(set(parts)) != len(parts):
        raise InputError(
            f"{text!r} has no values to compare", location="--vary", valid="key=value,value with different values"
        )
    return [f"{key}={part}" for part in parts]


def _check_folder(folder: Path, batch_folders: Sequence[str]) -> None:
    """Accept a new or empty folder, and the folder of a comparison that was stopped or has ended.

    Raises:
        InputError: The path is that of a file, or the folder holds something else.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is no folder", location="--out", valid="a new or empty folder")
    entries = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if entries and entries.isdisjoint((SUMMARY, *batch_folders)):
        raise InputError(
            f"{folder} is not empty and holds no comparison",
            location="--out",
            valid="a new folder, or that of the comparison",
        )


def _folder_name(variant: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=,+-]+", "-", variant)


def _pooled_rate(results: Sequence[TrialResult], success_metric: str, attempt_metric: str) -> Proportion:
    pairs = [(result.metric(success_metric), result.metric(attempt_metric)) for result in results]
    measured_pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
    return wilson_interval(sum(int(a) for a, _ in measured_pairs), sum(int(b) for _, b in measured_pairs))
