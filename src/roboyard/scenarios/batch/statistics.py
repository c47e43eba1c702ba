"""Statistics of batches: success rates with confidence intervals, metric summaries, and comparison with a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from roboyard.errors import InputError
from roboyard.evaluation.plugin import RUN_METRICS, preferred_direction
from roboyard.scenarios.batch.folder import RESULTS, SUMMARY, read_header, read_results
from roboyard.scenarios.batch.sampling import Trial
from roboyard.scenarios.batch.worker import TrialResult, trial_key
from roboyard.scenarios.provenance import describe_changes_since, installed_versions_hash

Z_95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Proportion:
    """A proportion with its confidence interval."""

    successes: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """Observed proportion; NaN without trials."""
        return self.successes / self.total if self.total else math.nan

    def __str__(self) -> str:
        if not self.total:
            return "no runs"
        return f"{self.successes} of {self.total} ({self.value:.1%}, 95 % interval {self.low:.1%} to {self.high:.1%})"


def wilson_interval(successes: int, total: int, z: float = Z_95) -> Proportion:
    """Return Wilson's score interval of a proportion.

    Args:
        successes: Number of successes.
        total: Number of trials; 0 gives the interval (0, 1).
        z: Normal quantile of the confidence level.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    if total == 0:
        return Proportion(0, 0, 0.0, 1.0)
    proportion = successes / total
    scale = 1.0 + z * z / total
    center = (proportion + z * z / (2 * total)) / scale
    half = z * math.sqrt(proportion * (1.0 - proportion) / total + z * z / (4.0 * total * total)) / scale
    low = 0.0 if successes == 0 else max(0.0, center - half)  # exactly: rounding must not leave a sliver
    high = 1.0 if successes == total else min(1.0, center + half)
    return Proportion(successes, total, low, high)


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """Distribution of one metric over runs."""

    count: int
    mean: float
    standard_deviation: float
    minimum: float
    median: float
    maximum: float


def summarize_metric(values: Sequence[float]) -> MetricSummary | None:
    """Return mean, sample standard deviation, extremes and median; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(ordered)
    mean = math.fsum(ordered) / count
    variance = math.fsum((value - mean) ** 2 for value in ordered) / (count - 1) if count > 1 else 0.0
    median = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2.0
    return MetricSummary(count, mean, math.sqrt(variance), ordered[0], median, ordered[-1])


SIGNIFICANCE_LEVEL: Final = 0.05
"""Probability by chance below which a difference counts as a change."""
MIN_RELATIVE_CHANGE: Final = 0.01
"""Least relative difference that counts as a change, however significant it is."""
_MIN_ABSOLUTE_CHANGE: Final = 1e-9
"""Least absolute difference that counts as a change, above rounding errors, in the unit of the metric."""
_BOOTSTRAP_RESAMPLES: Final = 2000
UNCOMPARED_METRICS: Final = frozenset(metric.name for metric in RUN_METRICS if not metric.better)
"""Metrics of the simulation, not of a robot."""

ChangeKind = Literal["regressed", "improved", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A stored batch.

    Attributes:
        path: File from which it was read.
        results: Results of the runs that came to an end.
        notes: Differences from this batch other than its results.
    """

    path: Path
    results: tuple[TrialResult, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricChange:
    """Change of one metric between pairs of runs.

    Attributes:
        name: Name of the metric.
        pairs: Number of runs in which both batches measured it.
        before: Mean in the baseline.
        after: Mean in this batch.
        difference: Mean of after - before.
        low: Lower end of the 95 % interval of the difference (bootstrap over the pairs).
        high: Upper end of this interval.
        p: p-value of Wilcoxon's signed-rank test.
        q: The same corrected for the number of metrics (Benjamini and Hochberg).
        kind: "regressed" or "improved" where a criterion, or else the metric's declaration, says which direction is
            better, else "changed"; "unchanged" if the difference may be by chance, or is less than 1 %.
    """

    name: str
    pairs: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float
    q: float
    kind: ChangeKind


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """Comparison of a batch with its baseline.

    Attributes:
        baseline: Path of the baseline.
        before: Successes of the baseline in the runs that both have.
        after: Successes of this batch in the same runs.
        newly_failed: Labels of runs that succeeded before and do not now.
        newly_passed: Labels of runs that did not succeed before and do now.
        p: p-value of McNemar's exact test.
        changes: Changes of metrics, the most significant first.
        notes: Differences between the batches other than their results.
    """

    baseline: Path
    before: Proportion
    after: Proportion
    newly_failed: tuple[str, ...]
    newly_passed: tuple[str, ...]
    p: float
    changes: tuple[MetricChange, ...]
    notes: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[str, ...]:
        """What is significantly worse than in the baseline."""
        rate = ("success",) if self.p < SIGNIFICANCE_LEVEL and len(self.newly_failed) > len(self.newly_passed) else ()
        return (*rate, *(change.name for change in self.changes if change.kind == "regressed"))

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, for JSON."""
        return {
            "baseline": str(self.baseline),
            "pairs": self.after.total,
            "successes_before": self.before.successes,
            "successes_after": self.after.successes,
            "newly_failed": list(self.newly_failed),
            "newly_passed": list(self.newly_passed),
            "p": self.p,
            "regressions": list(self.regressions),
            "changes": [asdict(change) for change in self.changes],
            "notes": list(self.notes),
        }


def read_baseline(
    path: str | Path, scenario: str, smoke: bool, trials: Sequence[Trial], overrides: Sequence[str] = ()
) -> Baseline:
    """Read a stored batch from its folder, or from its batch.json alone.

    Raises:
        InputError: The path is no batch, is of another format, scenario or variant, or has no run in common with
            ``trials``.
    """
    source = Path(path)
    file = source / SUMMARY if source.is_dir() else source
    if not file.is_file():
        raise InputError(
            f"there is no batch at {source}", location="--baseline", valid=f"a batch's folder or {SUMMARY}"
        )
    header = read_header(file)
    if header["scenario"] != scenario:
        raise InputError(
            f"the baseline {source} is of the scenario {header['scenario']}",
            location="--baseline",
            valid=f"one of {scenario}",
        )
    if bool(header.get("smoke")) != smoke:
        words = ("the whole scenario", "the smoke variant")
        raise InputError(
            f"the baseline {source} is of {words[not smoke]}", location="--baseline", valid=f"one of {words[smoke]}"
        )
    results = [result for result in _stored_results(header, file) if result.is_finished]
    keys = {result.key for result in results}
    if not any(trial_key(trial.seed, trial.parsed_values) in keys for trial in trials):
        seeds = sorted(result.seed for result in results)
        contents = f"has seeds {seeds[0]} to {seeds[-1]}" if seeds else "has no finished run"
        vary_hint = (
            " with the same --vary"
            if any(r.varied_values for r in results) or any(t.varied_values for t in trials)
            else ""
        )
        raise InputError(
            f"the baseline {source} {contents}, and none in common with this batch", location="--baseline",
            valid=f"a batch with the same --seed{vary_hint}",
        )  # fmt: skip
    version_difference = describe_changes_since(header.get("made", {}))
    notes = (
        [version_difference or "other versions of packages"]
        if version_difference or header.get("lock") != installed_versions_hash()
        else []
    )
    if list(header.get("overrides", ())) != list(overrides):
        stored_overrides, current_overrides = (
            " ".join(f"--set {one}" for one in source) for source in (header.get("overrides", ()), overrides)
        )
        notes.append(f"{stored_overrides or 'no --set'} then, {current_overrides or 'none'} now")
    return Baseline(source, tuple(results), tuple(notes))


def compare_to_baseline(
    baseline: Baseline, results: Sequence[TrialResult], preferred_directions: Mapping[str, int]
) -> BaselineComparison:
    """Pair runs by seed and varied values, and test the differences.

    Args:
        baseline: Baseline from `read_baseline`.
        results: Results of this batch; runs that were lost are left out.
        preferred_directions: Metrics of criteria: whether small (-1) or large (+1) values are better, or neither (0):
            then, and for all other metrics, `Metric.better` says so.

    Source of the tests: McNemar, Psychometrika 12 (1947), exact; Wilcoxon, Biometrics 1 (1945); Benjamini, Hochberg,
    J. R. Stat. Soc. B 57 (1995); bootstrap with percentiles.
    """
    from scipy.stats import binomtest

    earlier = {result.key: result for result in baseline.results}
    pairs = [
        (before, after) for after in results if after.is_finished and (before := earlier.get(after.key)) is not None
    ]
    newly_failed = tuple(after.label for before, after in pairs if before.success and not after.success)
    newly_passed = tuple(after.label for before, after in pairs if after.success and not before.success)
    n_changed = len(newly_failed) + len(newly_passed)
    return BaselineComparison(
        baseline.path,
        wilson_interval(sum(before.success for before, _ in pairs), len(pairs)),
        wilson_interval(sum(after.success for _, after in pairs), len(pairs)),
        newly_failed,
        newly_passed,
        float(binomtest(len(newly_failed), n_changed).pvalue) if n_changed else 1.0,
        _metric_changes(pairs, preferred_directions),
        baseline.notes,
    )


def _metric_changes(
    pairs: Sequence[tuple[TrialResult, TrialResult]], preferred_directions: Mapping[str, int]
) -> tuple[MetricChange, ...]:
    from scipy.stats import false_discovery_control

    names = dict.fromkeys((*preferred_directions, *(name for before, _ in pairs for name in before.metrics)))
    samples: list[tuple[str, np.ndarray, np.ndarray, float]] = []
    for name in names:
        if name in UNCOMPARED_METRICS or ("." in name and name not in preferred_directions):
            continue
        pairs_of_values = [(before.metric(name), after.metric(name)) for before, after in pairs]
        numbers = [(a, b) for a, b in pairs_of_values if a is not None and b is not None]
        if numbers:
            before, after = np.array(numbers).T
            samples.append((name, before, after, _wilcoxon_p_value(after - before)))
    if not samples:
        return ()
    adjusted = false_discovery_control([p for *_, p in samples])
    changes = [
        MetricChange(
            name,
            len(before),
            float(before.mean()),
            float(after.mean()),
            float((after - before).mean()),
            *_mean_interval(after - before),
            p,
            float(q),
            _classify_change(before, after, q, preferred_directions.get(name, 0) or preferred_direction(name)),
        )
        for (name, before, after, p), q in zip(samples, adjusted, strict=True)
    ]
    return tuple(
        sorted(changes, key=lambda change: (change.q, -abs(preferred_directions.get(change.name, 0)), change.name))
    )


def _wilcoxon_p_value(differences: np.ndarray) -> float:
    from scipy.stats import wilcoxon

    if not differences.any():
        return 1.0
    return float(wilcoxon(differences).pvalue)


def _mean_interval(differences: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean difference."""
    from scipy.stats import bootstrap

    if len(differences) < 2 or not np.ptp(differences):
        return float(differences.mean()), float(differences.mean())
    interval = bootstrap(
        (differences,), np.mean, n_resamples=_BOOTSTRAP_RESAMPLES, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return float(interval.low), float(interval.high)


def _classify_change(before: np.ndarray, after: np.ndarray, q: float, preferred_direction: int) -> ChangeKind:
    difference = float((after - before).mean())
    if q >= SIGNIFICANCE_LEVEL or abs(difference) <= max(
        _MIN_ABSOLUTE_CHANGE, MIN_RELATIVE_CHANGE * float(np.abs(before).mean())
    ):
        return "unchanged"
    if preferred_direction == 0:
        return "changed"
    return "improved" if difference * preferred_direction > 0.0 else "regressed"


def _stored_results(header: Mapping[str, Any], file: Path) -> list[TrialResult]:
    """Return the results of the file, or of results.jsonl beside it if the batch was not summarized."""
    try:
        if "results" in header:
            return [TrialResult(**one) for one in header["results"]]
        return list(read_results(file.with_name(RESULTS)))
    except TypeError as error:
        raise InputError(f"holds no results: {error}", location=str(file), valid=f"the {SUMMARY} of a batch") from error
