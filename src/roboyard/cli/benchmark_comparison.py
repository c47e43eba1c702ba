"""Comparison of benchmarks at two revisions on one machine: ``roboyard bench --against``.

The speed of a machine drifts with its load, so single times say little. Both revisions are measured in pairs, each in
a separate process: old, new, new, old, old, new, … The order changes from pair to pair, so that a steady drift affects
both equally. A first run of each, which compiles the kernels, is not counted. The ratio within each pair is evaluated.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, Literal

from roboyard.cli.benchmarks import find_benchmarks, format_number
from roboyard.cli.exit_codes import ExitCode
from roboyard.cli.revisions import Revision, find_repository, open_revision, open_working_tree
from roboyard.cli.terminal import print_heading, print_line, print_note, print_result, print_table
from roboyard.compute import count_usable_cores
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError

CONFIDENCE = 0.9
"""Probability with which the interval of a figure contains the median of all possible pairs."""
ComparisonResult = Literal["slower", "faster", "same", "unclear", "changed", "not measured"]
_TIME = re.compile(r"[nµum]?s( .*)?|% of a core")
_RATE = re.compile(r"(?!m/s|rad/s|°/s).*(/s|Hz)|[x×] real time")
_BOUND = re.compile(r"\s*([<>])=?\s*[-+.\deE]+\s*")
BenchmarkReport = Mapping[str, Any]
"""Output of ``roboyard bench --json``."""


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure at both revisions.

    Attributes:
        name: Name of the figure.
        unit: Unit of the values.
        is_speed: Whether it is a time, a rate or a fraction of a core; only these can be slower or faster.
        old: The old revision's values, one for each pair.
        new: The new revision's values.
        ratios: New by old in each pair, for rates old by new: above 1 means slower. Empty where a value is not
            positive.
    """

    name: str
    unit: str
    is_speed: bool
    old: tuple[float | None, ...]
    new: tuple[float | None, ...]
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """Median of the ratios."""
        return median(self.ratios) if self.ratios else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval of the median; see `median_interval`."""
        return median_interval(self.ratios) if self.ratios else None

    def classify(self, tolerance: float) -> ComparisonResult:
        """Classify the new revision.

        ``slower``: the whole interval lies above 1 + tolerance; ``faster``: it lies below 1 / (1 + tolerance);
        ``unclear``: the median lies above 1 + tolerance and the interval does not. A figure that is not a speed is
        ``changed`` or the ``same``.

        Args:
            tolerance: Fraction: 0.03 for 3 %.
        """
        if None in (*self.old, *self.new):
            return "not measured"
        interval, ratio = self.interval, self.ratio
        if not self.is_speed or interval is None or ratio is None:
            return "same" if self.old == self.new else "changed"
        if interval[0] > 1.0 + tolerance:
            return "slower"
        if interval[1] < 1.0 / (1.0 + tolerance):
            return "faster"
        return "unclear" if ratio > 1.0 + tolerance else "same"

    def to_dict(self, tolerance: float) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "unit": self.unit,
            "is_speed": self.is_speed,
            "old": self.old,
            "new": self.new,
            "ratios": self.ratios,
            "ratio": self.ratio,
            "interval": self.interval,
            "result": self.classify(tolerance),
        }


@dataclass(slots=True)
class BenchmarkComparison:
    """A benchmark at both revisions.

    Attributes:
        figures: Figures of both revisions.
        only: Names of figures of one revision only, by revision.
        errors: Reason why a revision could not be measured, by revision.
        skipped: Parts that were left out since a package is missing.
    """

    figures: list[FigureComparison] = field(default_factory=list)
    only: dict[str, list[str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Compute the interval of the median with probability `CONFIDENCE`, by order statistics.

    The k-th smallest and k-th largest of n values enclose the median with probability 1 − 2 P(B(n, ½) < k) for any
    distribution. The function uses the largest sufficient k. With fewer than five values no k suffices, and it
    returns the smallest and the largest value.

    Args:
        values: At least one.
    """
    ordered, n, k = sorted(values), len(values), 1
    while k < n - k and 1.0 - 2.0 * sum(math.comb(n, i) for i in range(k + 1)) / 2.0**n >= CONFIDENCE:
        k += 1
    return ordered[k - 1], ordered[n - k]


def compare_benchmark(
    measure: Callable[[str], BenchmarkReport | str], name: str, pairs: int, progress: Callable[[str], None]
) -> BenchmarkComparison:
    """Measure a benchmark in pairs.

    Args:
        measure: Measures the benchmark at a revision, "old" or "new"; returns its output, or the reason of a failure.
        name: Name of the benchmark.
        pairs: Number of counted pairs.
        progress: Called with lines about the progress.
    """
    found = BenchmarkComparison()
    runs: dict[str, list[Sequence[BenchmarkReport]]] = {"old": [], "new": []}
    start = wall_seconds()
    for pair in range(pairs + 1):  # the first is not counted
        elapsed = wall_seconds() - start
        remaining = f", about {elapsed * (pairs + 1 - pair) / pair:.0f} s left" if pair else ""
        progress(f"measuring {name}: {f'pair {pair} of {pairs}' if pair else 'uncounted first run'}{remaining} …")
        for side in ("new", "old") if pair and pair % 2 == 0 else ("old", "new"):
            report = measure(side)
            if isinstance(report, str):
                found.errors[side] = report
                continue
            if pair:
                runs[side].append(report["figures"][name])
            else:
                found.skipped += [f"{side}: {_describe_skipped(item)}" for item in report.get("skipped", ())]
        if found.errors:
            return found
    old, new = (_collect_series(runs[side]) for side in ("old", "new"))
    found.figures, found.only = _match_figures(old, new)
    return found


def _describe_skipped(item: Mapping[str, str]) -> str:
    """Return the name of a skipped part and the reason; older revisions print them under other keys."""
    return f"{item.get('part', item.get('what'))}: {item.get('reason', item.get('why'))}"


@dataclass(frozen=True, slots=True)
class _Series:
    """One figure in all runs of a revision."""

    name: str
    unit: str
    target: str
    values: tuple[float | None, ...]


def _collect_series(runs: Sequence[Sequence[BenchmarkReport]]) -> list[_Series]:
    """Collect the figures of several runs by index, since a name may contain a measured value; else by name."""
    if len({len(run) for run in runs}) == 1:
        columns: Iterable[Sequence[BenchmarkReport]] = zip(*runs, strict=True)
    else:
        tables = [{one["name"]: one for one in run} for run in runs]
        columns = [[table[name] for table in tables] for name in tables[0] if all(name in table for table in tables)]
    return [
        _Series(
            column[0]["name"],
            column[0].get("unit") or "",
            column[0].get("target") or "",
            tuple(one.get("value") for one in column),
        )
        for column in columns
    ]


def _match_figures(old: list[_Series], new: list[_Series]) -> tuple[list[FigureComparison], dict[str, list[str]]]:
    """Match the figures of both revisions: by name and unit, else by position if their numbers agree."""
    pairs: dict[int, _Series] = {}
    unused = list(old)
    for index, series in enumerate(new):
        same = next((one for one in unused if (one.name, one.unit) == (series.name, series.unit)), None)
        if same is not None:
            unused.remove(same)
            pairs[index] = same
    unmatched = [index for index in range(len(new)) if index not in pairs]
    by_index = list(zip(unmatched, unused, strict=False))
    if len(unmatched) == len(unused) and all(new[index].unit == one.unit for index, one in by_index):
        pairs.update(by_index)
        unmatched, unused = [], []
    found = [_compare_figure(pairs[index], series) for index, series in enumerate(new) if index in pairs]
    only = {"old": [one.name for one in unused], "new": [new[index].name for index in unmatched]}
    return found, {side: names for side, names in only.items() if names}


def _compare_figure(old: _Series, new: _Series) -> FigureComparison:
    is_speed, more_is_faster = classify_unit(new.unit, new.target)
    values = list(zip(old.values, new.values, strict=True))
    ratios: tuple[float, ...] = ()
    if all(a is not None and b is not None and a > 0.0 and b > 0.0 for a, b in values):
        ratios = tuple((a / b if more_is_faster else b / a) for a, b in values if a is not None and b is not None)
    return FigureComparison(new.name, new.unit, is_speed, old.values, new.values, ratios)


def classify_unit(unit: str, target: str = "") -> tuple[bool, bool]:
    """Return whether a figure of this unit is a speed, and whether a larger value is faster.

    Args:
        unit: E.g. "ms", "1/s", "x real time".
        target: Target of the value, e.g. ">= 30"; its direction has priority over the unit.
    """
    is_time, is_rate = _TIME.fullmatch(unit) is not None, _RATE.fullmatch(unit) is not None
    bounds = {match[1] for part in target.split(",") if (match := _BOUND.fullmatch(part))}
    more_is_faster = bounds == {">"} if bounds in ({">"}, {"<"}) else is_rate
    return is_time or is_rate, more_is_faster


def measure_at(revision: Revision, name: str, words: Sequence[str]) -> BenchmarkReport | str:
    """Run a benchmark at a revision in a separate process; return its output, or the reason of a failure."""
    process = subprocess.run(  # noqa: S603 - our own command
        revision.command(["bench", name, *words, "--json"]),
        cwd=revision.root,
        env=dict(revision.environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report = json.loads(process.stdout.splitlines()[-1])
        if report["figures"][name]:
            return dict(report)
        return "it gives no figures"
    except (IndexError, KeyError, TypeError, ValueError):
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        message = next((line for line in lines if line.startswith("error:")), (lines or [""])[-1])
        return message.removeprefix("error:").strip() or f"it ended with exit code {process.returncode}"


def load_warning() -> str | None:
    """Return a warning if other processes load this machine."""
    load, cores = os.getloadavg()[0], count_usable_cores()
    if load < 0.5:
        return None
    return f"other processes load this machine ({load:.1f} on {cores} cores): ratios are reliable, times are not"


def check_tolerance(percent: float) -> float:
    """Convert a tolerance from percent to a fraction.

    Raises:
        InputError: The tolerance is negative or not finite.
    """
    if not 0.0 <= percent < math.inf:
        raise InputError(f"--tolerance {percent:g}", valid="percent, 0 or more")
    return percent / 100.0


def compare_with_revision(
    revision: str, names: Sequence[str], words: Sequence[str], pairs: int, percent: float, *, as_json: bool
) -> int:
    """Measure benchmarks at this and another revision, print the comparison, and return the exit code.

    Args:
        revision: The other revision: commit, branch or tag.
        names: Names of benchmarks; all if empty.
        words: More arguments of ``roboyard bench``.
        pairs: Number of counted pairs.
        percent: Accepted slowdown [%].
        as_json: Print one JSON object instead of tables.

    Raises:
        InputError: There is no such revision, benchmark or repository.
    """
    tolerance, found = check_tolerance(percent), find_benchmarks(names)
    folder = next(iter(found.values())).resolve().parent.parent
    repository = find_repository(folder)
    if repository.resolve() != folder:
        raise InputError(f"{folder} is not the root of a git repository", valid="a clone of Roboyard's repository")
    results: dict[str, BenchmarkComparison] = {}
    with ExitStack() as stack:
        sides = {
            "old": stack.enter_context(open_revision(repository, revision)),
            "new": stack.enter_context(open_working_tree(repository)),
        }
        load_text = load_warning()
        if load_text is not None:
            print_note(load_text)
        quiet_or_note = (lambda _: None) if as_json else print_note
        for name in found:
            measure = partial(lambda name, side: measure_at(sides[side], name, words), name)
            results[name] = compare_benchmark(measure, name, pairs, quiet_or_note)
            if not as_json:
                _print_comparison(name, results[name], tolerance)
        labels = {side: one.label for side, one in sides.items()}
    slower = [f"{name}: {one.name}" for name, result in results.items() for one in _slower_figures(result, tolerance)]
    failed = {name: result.errors for name, result in results.items() if result.errors}
    data = {
        "revisions": labels,
        "pairs": pairs,
        "tolerance": tolerance,
        "load_warning": load_text,
        "figures": {name: [one.to_dict(tolerance) for one in result.figures] for name, result in results.items()},
        "only": {name: result.only for name, result in results.items() if result.only},
        "skipped": {name: result.skipped for name, result in results.items() if result.skipped},
        "failed": failed,
        "slower": slower,
    }
    print_result(data, as_json, lambda _: _print_conclusion(labels, pairs, percent, slower, failed))
    return ExitCode.FAILURE if slower or failed else ExitCode.SUCCESS


def _slower_figures(result: BenchmarkComparison, tolerance: float) -> list[FigureComparison]:
    return [one for one in result.figures if one.classify(tolerance) == "slower"]


def _print_comparison(name: str, result: BenchmarkComparison, tolerance: float) -> None:
    print_heading(name)
    for side, reason in result.errors.items():
        print_line(f"  the {side} revision could not be measured: {reason}")
    rows = [
        (
            one.name,
            _format_median(one.old),
            _format_median(one.new),
            one.unit,
            *_format_ratio(one),
            one.classify(tolerance),
        )
        for one in result.figures
    ]
    if rows:
        print_table(
            ("figure", "old", "new", "unit", "ratio", "interval", "result"), rows, right=("old", "new", "ratio")
        )
    for side, names in result.only.items():
        print_line(f"  only at the {side} revision: {', '.join(names)}")
    for line in result.skipped:
        print_note(f"skipped {line}")


def _format_median(values: Sequence[float | None]) -> str:
    measured = [value for value in values if value is not None]
    return format_number(median(measured) if measured else None)


def _format_ratio(one: FigureComparison) -> tuple[str, str]:
    """Return the median of the ratios, and its interval."""
    if one.ratio is None or one.interval is None:
        return "-", ""
    return f"{one.ratio:.3f}", f"{one.interval[0]:.3f} … {one.interval[1]:.3f}"


def _print_conclusion(
    labels: Mapping[str, str], pairs: int, percent: float, slower: Sequence[str], failed: Mapping[str, object]
) -> None:
    print_line()
    print_line(f"old: {labels['old']}; new: {labels['new']}; {pairs} pairs; a ratio above 1 means slower")
    if pairs < 5:
        print_line("fewer than 5 pairs: the interval is the smallest and the largest ratio, which says little")
    if failed:
        print_line(f"not measured at both revisions: {', '.join(failed)}")
    if slower:
        print_line(f"slower by more than {percent:g} %, with the whole interval: {'; '.join(slower)}")
    else:
        print_line(f"no figure is slower by more than {percent:g} % with its whole interval")
