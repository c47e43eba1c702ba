"""``roboyard bench --against``: measures both revisions, shows figures side by side, and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median

from roboyard.cli.bench_against import (
    BenchmarkComparison,
    FigureComparison,
    busy_note,
    check_tolerance,
    compare_benchmark,
    measure_at,
)
from roboyard.cli.bench_table import number
from roboyard.cli.figures import benchmarks
from roboyard.cli.revisions import find_repository, open_revision, open_working_tree
from roboyard.cli.terminal import emit, heading, note, say, table
from roboyard.errors import InputError


def bench_against(
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
    tolerance, found = check_tolerance(percent), benchmarks(names)
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
        busy = busy_note()
        if busy is not None:
            note(busy)
        quiet_or_note = (lambda _: None) if as_json else note
        for name in found:
            measure = partial(lambda name, side: measure_at(sides[side], name, words), name)
            results[name] = compare_benchmark(measure, name, pairs, quiet_or_note)
            if not as_json:
                _show(name, results[name], tolerance)
        labels = {side: one.label for side, one in sides.items()}
    slower = [f"{name}: {one.name}" for name, result in results.items() for one in _slower(result, tolerance)]
    failed = {name: result.errors for name, result in results.items() if result.errors}
    if as_json:
        emit(
            {
                "against": labels,
                "pairs": pairs,
                "tolerance": tolerance,
                "busy": busy,
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
        _conclude(labels, pairs, percent, slower, failed)
    return 1 if slower or failed else 0


def _slower(result: BenchmarkComparison, tolerance: float) -> list[FigureComparison]:
    return [one for one in result.figures if one.verdict(tolerance) == "slower"]


def _show(name: str, result: BenchmarkComparison, tolerance: float) -> None:
    heading(name)
    for side, reason in result.errors.items():
        say(f"  the {side} revision could not be measured: {reason}")
    rows = [(one.name, _middle(one.old), _middle(one.new), one.unit, *_ratio(one), one.verdict(tolerance))
            for one in result.figures]  # fmt: skip
    if rows:
        table(("figure", "old", "new", "unit", "ratio", "spread", "verdict"), rows, right=("old", "new", "ratio"))
    for side, names in result.only.items():
        say(f"  only at the {side} revision: {', '.join(names)}")
    for line in result.skipped:
        note(f"skipped {line}")


def _middle(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return number(median(known) if known else None)


def _ratio(one: FigureComparison) -> tuple[str, str]:
    """The median of the pairs' ratios, and between what it lies."""
    if one.ratio is None or one.interval is None:
        return "-", ""
    return f"{one.ratio:.3f}", f"{one.interval[0]:.3f} … {one.interval[1]:.3f}"


def _conclude(
    labels: Mapping[str, str], pairs: int, percent: float, slower: Sequence[str], failed: Mapping[str, object]
) -> None:
    say()
    say(f"old: {labels['old']}; new: {labels['new']}; {pairs} pairs; a ratio above 1 means slower")
    if pairs < 5:
        say("fewer than 5 pairs: the spread is the least and the largest, and says little")
    if failed:
        say(f"could not be measured at both: {', '.join(failed)}")
    if slower:
        say(f"slower by more than {percent:g} %, with all of the spread: {'; '.join(slower)}")
    else:
        say(f"nothing is slower by more than {percent:g} % with all of its spread")
