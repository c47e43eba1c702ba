"""What has changed since a baseline: the same runs of two batches in pairs, with significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from roboyard.errors import InputError
from roboyard.scenarios.batch_folder import RESULTS, SUMMARY, read_header, read_results
from roboyard.scenarios.batch_worker import Result, run_key
from roboyard.scenarios.provenance import compare_with_here, lock_hash
from roboyard.scenarios.statistics import Rate, wilson
from roboyard.scenarios.varied import Trial

LEVEL: Final = 0.05
"""What is less likely than this by chance counts as a change."""
RELEVANT: Final = 0.01
"""What changed by less than this share of what it was does not matter, however surely it did."""
_NOTHING: Final = 1e-9
"""Nor does what is smaller than this, in units of the metric: rounding."""
_RESAMPLES: Final = 2000
_BOOKKEEPING: Final = ("smoke", "success", "recorded", "messages", "sim_seconds", "wall_seconds", "real_time_factor")
"""Metrics that say nothing about the robot."""

Verdict = Literal["worse", "better", "other", "same"]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A stored batch.

    Attributes:
        path: Where it was read.
        results: Of runs that came to an end.
        notes: In what it differs, besides what it measured.
    """

    path: Path
    results: tuple[Result, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One metric, in pairs of runs.

    Attributes:
        name: Of the metric.
        pairs: How many runs both batches measured it in.
        before: Mean of the baseline.
        after: Mean of this batch.
        difference: Mean of after - before.
        low: Of the 95 % interval of that (bootstrap over the pairs).
        high: Likewise.
        p: Of Wilcoxon's signed-rank test: how likely differences like these are by chance.
        q: The same with all metrics that were looked at taken into account (Benjamini and Hochberg).
        verdict: "worse" or "better" where a criterion says which way is good, else "other"; "same" if it may be by
            chance, or is less than a hundredth.
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
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Against:
    """This batch beside its baseline.

    Attributes:
        baseline: Where that lies.
        before: Its successes, in the runs that both have.
        after: Successes of this batch in the same runs.
        broken: Runs that succeeded and do no more.
        mended: Runs that did not succeed and now do.
        p: Of McNemar's exact test over these two.
        changes: Of metrics, those most surely changed first.
        notes: In what the batches differ, besides what they measured.
    """

    baseline: Path
    before: Rate
    after: Rate
    broken: tuple[str, ...]
    mended: tuple[str, ...]
    p: float
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[str, ...]:
        """What got worse, and is not so by chance."""
        rate = ("success",) if self.p < LEVEL and len(self.broken) > len(self.mended) else ()
        return (*rate, *(change.name for change in self.changes if change.verdict == "worse"))

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "baseline": str(self.baseline),
            "pairs": self.after.total,
            "successes_before": self.before.successes,
            "successes_after": self.after.successes,
            "broken": list(self.broken),
            "mended": list(self.mended),
            "p": self.p,
            "regressions": list(self.regressions),
            "changes": [asdict(change) for change in self.changes],
            "notes": list(self.notes),
        }


def read_baseline(
    path: str | Path, scenario: str, smoke: bool, trials: Sequence[Trial], overrides: Sequence[str] = ()
) -> Baseline:
    """A stored batch: its folder, or its batch.json alone.

    Raises:
        InputError: it is none, is of another format, scenario or variant, or has no run in common with ``trials``.
    """
    given = Path(path)
    file = given / SUMMARY if given.is_dir() else given
    if not file.is_file():
        raise InputError(f"there is no batch at {given}", location="--against", valid=f"a batch's folder or {SUMMARY}")
    header = read_header(file)
    if header["scenario"] != scenario:
        raise InputError(
            f"the baseline {given} is of the scenario {header['scenario']}",
            location="--against",
            valid=f"one of {scenario}",
        )
    if bool(header.get("smoke")) != smoke:
        words = ("the whole scenario", "the smoke variant")
        raise InputError(
            f"the baseline {given} is of {words[not smoke]}", location="--against", valid=f"one of {words[smoke]}"
        )
    results = [result for result in _results(header, file) if result.finished]
    known = {result.key for result in results}
    if not any(run_key(trial.seed, trial.plain) in known for trial in trials):
        seeds = sorted(result.seed for result in results)
        there = f"has seeds {seeds[0]} to {seeds[-1]}" if seeds else "has no finished run"
        also = " with the same --vary" if any(r.varied for r in results) or any(t.varied for t in trials) else ""
        raise InputError(
            f"the baseline {given} {there}, and none in common with this batch", location="--against",
            valid=f"a batch with the same --seed{also}",
        )  # fmt: skip
    other = compare_with_here(header.get("made", {}))
    notes = [other or "other versions of packages"] if other or header.get("lock") != lock_hash() else []
    if list(header.get("overrides", ())) != list(overrides):
        then, now = (" ".join(f"--set {one}" for one in given) for given in (header.get("overrides", ()), overrides))
        notes.append(f"{then or 'no --set'} then, {now or 'none'} now")
    return Baseline(given, tuple(results), tuple(notes))


def compare_with(baseline: Baseline, results: Sequence[Result], senses: Mapping[str, int]) -> Against:
    """Pair runs by seed and what is varied, and test what differs.

    Args:
        baseline: From `read_baseline`.
        results: Of this batch; runs that were lost are left out.
        senses: Metrics of criteria, wanted small (-1), great (+1) or neither (0).

    Source of the tests: McNemar, Psychometrika 12 (1947), exact; Wilcoxon, Biometrics 1 (1945); Benjamini, Hochberg,
    J. R. Stat. Soc. B 57 (1995); bootstrap with percentiles.
    """
    from scipy.stats import binomtest

    earlier = {result.key: result for result in baseline.results}
    pairs = [(before, after) for after in results if after.finished and (before := earlier.get(after.key)) is not None]
    broken = tuple(after.label for before, after in pairs if before.success and not after.success)
    mended = tuple(after.label for before, after in pairs if after.success and not before.success)
    odd = len(broken) + len(mended)
    return Against(
        baseline.path,
        wilson(sum(before.success for before, _ in pairs), len(pairs)),
        wilson(sum(after.success for _, after in pairs), len(pairs)),
        broken,
        mended,
        float(binomtest(len(broken), odd).pvalue) if odd else 1.0,
        _changes(pairs, senses),
        baseline.notes,
    )


def _changes(pairs: Sequence[tuple[Result, Result]], senses: Mapping[str, int]) -> tuple[Change, ...]:
    from scipy.stats import false_discovery_control

    names = dict.fromkeys((*senses, *(name for before, _ in pairs for name in before.metrics)))
    found: list[tuple[str, np.ndarray, np.ndarray, float]] = []
    for name in names:
        if name in _BOOKKEEPING or ("." in name and name not in senses):
            continue
        both = [(before.measured(name), after.measured(name)) for before, after in pairs]
        numbers = [(a, b) for a, b in both if a is not None and b is not None]
        if numbers:
            before, after = np.array(numbers).T
            found.append((name, before, after, _wilcoxon(after - before)))
    if not found:
        return ()
    rates = false_discovery_control([p for *_, p in found])
    changes = [
        Change(
            name, len(before), float(before.mean()), float(after.mean()), float((after - before).mean()),
            *_interval(after - before), p, float(q), _verdict(before, after, q, senses.get(name, 0)),
        )
        for (name, before, after, p), q in zip(found, rates, strict=True)
    ]  # fmt: skip
    return tuple(sorted(changes, key=lambda change: (change.q, -abs(senses.get(change.name, 0)), change.name)))


def _wilcoxon(differences: np.ndarray) -> float:
    from scipy.stats import wilcoxon

    if not differences.any():
        return 1.0
    return float(wilcoxon(differences).pvalue)


def _interval(differences: np.ndarray) -> tuple[float, float]:
    """95 % of the mean difference."""
    from scipy.stats import bootstrap

    if len(differences) < 2 or not np.ptp(differences):
        return float(differences.mean()), float(differences.mean())
    found = bootstrap(
        (differences,), np.mean, n_resamples=_RESAMPLES, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return float(found.low), float(found.high)


def _verdict(before: np.ndarray, after: np.ndarray, q: float, sense: int) -> Verdict:
    difference = float((after - before).mean())
    if q >= LEVEL or abs(difference) <= max(_NOTHING, RELEVANT * float(np.abs(before).mean())):
        return "same"
    if sense == 0:
        return "other"
    return "better" if difference * sense > 0.0 else "worse"


def _results(header: Mapping[str, Any], file: Path) -> list[Result]:
    """From the file itself, or from the lines beside it where the batch was not summed up."""
    try:
        if "results" in header:
            return [Result(**one) for one in header["results"]]
        return list(read_results(file.with_name(RESULTS)))
    except TypeError as error:
        raise InputError(f"holds no results: {error}", location=str(file), valid=f"the {SUMMARY} of a batch") from error
