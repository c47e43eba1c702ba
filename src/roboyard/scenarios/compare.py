"""One scenario in several ways, side by side: a batch for each value of what is varied, with the same seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from roboyard.errors import InputError
from roboyard.scenarios.assemble import read_criteria
from roboyard.scenarios.batch import BatchResult, run_batch
from roboyard.scenarios.batch_worker import Result
from roboyard.scenarios.run_folder import RunFolder, new_folder
from roboyard.scenarios.spec import load_spec
from roboyard.scenarios.statistics import Rate, wilson
from roboyard.scenarios.varied import split_values

SUMMARY: Final = "comparison.json"
_SHARES: Final = (
    ("picks_ok", "picks"), ("places_ok", "places"), ("goals_reached", "goals"), ("arm_reached", "arm_goals"),
)  # fmt: skip
"""Metrics that count what went well, and of how many."""


@dataclass(frozen=True, slots=True)
class Comparison:
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
    asked: tuple[str, ...]

    def shares(self) -> dict[str, dict[str, Rate]]:
        """Of what was tried in all runs of a way, how much went well: by name, by way; runs' success first."""
        found = {"success": {name: batch.success for name, batch in self.batches.items()}}
        for good, tried in _SHARES:
            rates = {name: _pooled(batch.results, good, tried) for name, batch in self.batches.items()}
            if any(rate.total for rate in rates.values()):
                found[tried] = rates
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        shares = {
            name: {way: {"good": r.successes, "of": r.total, "low": r.low, "high": r.high} for way, r in rates.items()}
            for name, rates in self.shares().items()
        }
        batches = {name: batch.to_dict() for name, batch in self.batches.items()}
        return {"scenario": self.scenario, "shares": shares, "batches": batches}


def compare_scenario(
    scenario: str,
    varied: Sequence[str],
    runs: int,
    *,
    overrides: Sequence[str] = (),
    out: str | Path | None = None,
    base: str | Path = "runs",
    progress: Callable[[str], Callable[[Result, int, int], None]] | None = None,
    **batch: Any,
) -> Comparison:
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
    from roboyard.scenarios.report.comparison import comparison_page

    named = {", ".join(way): way for way in product(*(_assignments(text) for text in varied))}
    if len(named) < 2:
        raise InputError(
            "there is nothing to compare", location="--vary", valid="at least two values: method=own,thesis"
        )
    specs = {name: load_spec(scenario, overrides=(*overrides, *given)) for name, given in named.items()}
    spec = next(iter(specs.values()))
    folder = Path(out) if out is not None else new_folder(f"{spec.name}-comparison", base).path
    batches = {
        name: run_batch(
            scenario, runs, overrides=(*overrides, *given), out=folder / _folder_name(name),
            progress=progress(name) if progress is not None else None, **batch,
        )
        for name, given in named.items()
    }  # fmt: skip
    criteria = [criterion for one in specs.values() for criterion in read_criteria(one)[0].values()]
    asked = tuple(
        dict.fromkeys((*spec.scenario.compared, *(name for criterion in criteria for name in criterion.names)))
    )
    found = Comparison(spec.name, spec.scenario.summary, folder, batches, asked)
    written = RunFolder(folder)
    written.write_json(folder / SUMMARY, found.to_dict())
    written.write_text(folder / "comparison.html", comparison_page(found))
    return found


def _assignments(text: str) -> list[str]:
    """``key=a,b`` as key=a and key=b; commas in brackets part nothing."""
    key, equals, values = text.partition("=")
    parts = split_values(values)
    if not equals or not key or not parts or len(set(parts)) != len(parts):
        raise InputError(f"{text!r} varies nothing", location="--vary", valid="key=value,value with different values")
    return [f"{key}={part}" for part in parts]


def _folder_name(way: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=,+-]+", "-", way)


def _pooled(results: Sequence[Result], good: str, tried: str) -> Rate:
    both = [(result.measured(good), result.measured(tried)) for result in results]
    counted = [(a, b) for a, b in both if a is not None and b is not None]
    return wilson(sum(int(a) for a, _ in counted), sum(int(b) for _, b in counted))
