"""Benchmarks at two revisions in turn on one machine, and how their figures compare: ``roboyard bench --against``.

A machine's pace drifts while others use it, so single times say little.  Both revisions are measured in pairs, each in
a process of its own: old, new, new, old, old, new, … (the order changes from pair to pair, so that a steady drift falls
on both alike), after a run of each that is not counted and compiles what is to be compiled.  What counts is the ratio
within each pair.
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
from roboyard.cli.revisions import Revision, find_repository, open_revision, open_working_tree
from roboyard.cli.terminal import print_heading, print_json, print_line, print_note, print_table
from roboyard.compute import count_usable_cores
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError

CONFIDENCE = 0.9
"""The median of all pairs that could be measured lies within a figure's interval with at least this probability."""
ComparisonResult = Literal["slower", "faster", "same", "unclear", "changed", "not measured"]
_TIME = re.compile(r"[nµum]?s( .*)?|% of a core")
_RATE = re.compile(r"(?!m/s|rad/s|°/s).*(/s|Hz)|[x×] real time")
_BOUND = re.compile(r"\s*([<>])=?\s*[-+.\deE]+\s*")
BenchmarkReport = Mapping[str, Any]
"""What ``roboyard bench --json`` prints."""


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure at both revisions.

    Attributes:
        name: What was measured.
        unit: Of the values.
        is_speed: Whether it is a time, a rate or a share of a core: only those can be slower or faster.
        old: The old revision's values, one for each pair.
        new: The new one's.
        ratios: New by old in each pair, for rates old by new: above 1 means slower. Empty where a value is no
            positive number.
    """

    name: str
    unit: str
    is_speed: bool
    old: tuple[float | None, ...]
    new: tuple[float | None, ...]
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """Median of the pairs."""
        return median(self.ratios) if self.ratios else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between what the median lies; see `median_interval`."""
        return median_interval(self.ratios) if self.ratios else None

    def classify(self, tolerance: float) -> ComparisonResult:
        """How the new revision compares.

        ``slower`` means that the whole interval lies above 1 + tolerance, ``faster`` that it lies below 1 / (1 +
        tolerance), ``unclear`` that the median is above 1 + tolerance and the interval is not.  A figure that is no
        speed has ``changed`` or is the ``same``.

        Args:
            tolerance: A part of 1: 0.03 for 3 %.
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
        """As plain data."""
        return {
            "name": self.name,
            "unit": self.unit,
            "is_speed": self.is_speed,
            "old": self.old,
            "new": self.new,
            "ratios": self.ratios,
            "ratio": self.ratio,
            "interval": self.interval,
            "verdict": self.classify(tolerance),
        }


@dataclass(slots=True)
class BenchmarkComparison:
    """A benchmark at both revisions.

    Attributes:
        figures: Those that both have.
        only: Figures that one side has alone, by side.
        errors: Why a side could not be measured, by side.
        skipped: What a side left out, since a package is missing.
    """

    figures: list[FigureComparison] = field(default_factory=list)
    only: dict[str, list[str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Between what the median of all possible values lies with `CONFIDENCE`: an order-statistic interval.

    The k-th smallest and k-th largest of n values enclose it with probability 1 − 2 P(B(n, ½) < k), whatever the
    values' distribution; the largest k that suffices is taken.  With fewer than five values that is never so, and the
    least and largest are given.

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
        measure: Measures it at a side, "old" or "new"; gives what it printed, or why there is nothing.
        name: Of the benchmark.
        pairs: How many are counted.
        progress: Takes a line.
    """
    found = BenchmarkComparison()
    runs: dict[str, list[Sequence[BenchmarkReport]]] = {"old": [], "new": []}
    start = wall_seconds()
    for pair in range(pairs + 1):  # the first is not counted
        elapsed = wall_seconds() - start
        remaining = f", about {elapsed * (pairs + 1 - pair) / pair:.0f} s left" if pair else ""
        progress(f"measuring {name}: {f'pair {pair} of {pairs}' if pair else 'once without counting'}{remaining} …")
        for side in ("new", "old") if pair and pair % 2 == 0 else ("old", "new"):
            report = measure(side)
            if isinstance(report, str):
                found.errors[side] = report
                continue
            if pair:
                runs[side].append(report["figures"][name])
            else:
                found.skipped += [f"{side}: {item['what']}: {item['why']}" for item in report.get("skipped", ())]
        if found.errors:
            return found
    old, new = (_collect_series(runs[side]) for side in ("old", "new"))
    found.figures, found.only = _match_figures(old, new)
    return found


@dataclass(frozen=True, slots=True)
class _Series:
    """One figure in all runs of a side."""

    name: str
    unit: str
    target: str
    values: tuple[float | None, ...]


def _collect_series(runs: Sequence[Sequence[BenchmarkReport]]) -> list[_Series]:
    """Figures of several runs: by index, since a name may contain what was measured; else by name."""
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
    """Figures of both sides in the new one's order: by name and unit, else by place where as many are left."""
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
    """Whether a figure of this unit is a speed, and whether more of it is faster.

    Args:
        unit: E.g. "ms", "1/s", "x real time".
        target: What is promised of the value, e.g. ">= 30", which counts more than the unit.
    """
    is_time, is_rate = _TIME.fullmatch(unit) is not None, _RATE.fullmatch(unit) is not None
    bounds = {match[1] for part in target.split(",") if (match := _BOUND.fullmatch(part))}
    more_is_faster = bounds == {">"} if bounds in ({">"}, {"<"}) else is_rate
    return is_time or is_rate, more_is_faster


def measure_at(revision: Revision, name: str, words: Sequence[str]) -> BenchmarkReport | str:
    """What a benchmark prints at a revision, in a process of its own; or why it gives nothing."""
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
    """A warning where others use this machine as well."""
    load, cores = os.getloadavg()[0], count_usable_cores()
    if load < 0.5:
        return None
    return f"others use this machine (load average {load:.1f} on {cores} cores): look at ratios, not at times"


def check_tolerance(percent: float) -> float:
    """A tolerance in percent as a part of 1. Raises InputError."""
    if not 0.0 <= percent < math.inf:
        raise InputError(f"--tolerance {percent:g}", valid="percent, 0 or more")
    return percent / 100.0


def compare_with_revision(
    revision: str, names: Sequence[str], words: Sequence[str], pairs: int, percent: float, *, as_json: bool
) -> int:
    """Measure benchmarks here and at another revision in turn, show how they compare, and give the exit code.

    Args:
        revision: The other one: commit, branch or tag.
        names: Of benchmarks; all if empty.
        words: More words for ``roboyard bench``.
        pairs: How many runs of each are counted.
        percent: How much slower is no failure [%].
        as_json: Print one JSON object instead of tables.

    Raises:
        InputError: there is no such revision or benchmark, or no repository.
    """
    tolerance, found = check_tolerance(percent), find_benchmarks(names)
    folder = next(iter(found.values())).resolve().parent.parent
    repository = find_repository(folder)
    if repository.resolve() != folder:
        raise InputError(f"{folder} is not the top of a git repository", valid="a clone of Roboyard's repository")
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
    if as_json:
        print_json(
            {
                "against": labels,
                "pairs": pairs,
                "tolerance": tolerance,
                "busy": load_text,
                "figures": {
                    name: [one.to_dict(tolerance) for one in result.figures] for name, result in results.items()
                },
                "only": {name: result.only for name, result in results.items() if result.only},
                "skipped": {name: result.skipped for name, result in results.items() if result.skipped},
                "failed": failed,
                "slower": slower,
            }
        )
    else:
        _print_conclusion(labels, pairs, percent, slower, failed)
    return 1 if slower or failed else 0


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
        print_table(("figure", "old", "new", "unit", "ratio", "spread", "verdict"), rows, right=("old", "new", "ratio"))
    for side, names in result.only.items():
        print_line(f"  only at the {side} revision: {', '.join(names)}")
    for line in result.skipped:
        print_note(f"skipped {line}")


def _format_median(values: Sequence[float | None]) -> str:
    measured = [value for value in values if value is not None]
    return format_number(median(measured) if measured else None)


def _format_ratio(one: FigureComparison) -> tuple[str, str]:
    """The median of the pairs' ratios, and between what it lies."""
    if one.ratio is None or one.interval is None:
        return "-", ""
    return f"{one.ratio:.3f}", f"{one.interval[0]:.3f} … {one.interval[1]:.3f}"


def _print_conclusion(
    labels: Mapping[str, str], pairs: int, percent: float, slower: Sequence[str], failed: Mapping[str, object]
) -> None:
    print_line()
    print_line(f"old: {labels['old']}; new: {labels['new']}; {pairs} pairs; a ratio above 1 means slower")
    if pairs < 5:
        print_line("fewer than 5 pairs: the spread is the least and the largest, and says little")
    if failed:
        print_line(f"could not be measured at both: {', '.join(failed)}")
    if slower:
        print_line(f"slower by more than {percent:g} %, with all of the spread: {'; '.join(slower)}")
    else:
        print_line(f"nothing is slower by more than {percent:g} % with all of its spread")
