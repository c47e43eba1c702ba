"""The page about a batch of every scenario: one row each, with the way to its own page."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard import __version__
from roboyard.scenarios.provenance import provenance
from roboyard.scenarios.report.page import page_style

if TYPE_CHECKING:
    from roboyard.scenarios.batch import BatchResult
    from roboyard.scenarios.suite import SuiteResult


def suite_page(found: SuiteResult) -> str:
    """One self-contained HTML page; scenarios' pages are linked."""
    import jinja2

    template = Path(__file__).with_name("suite.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    left = len(found.abouts) - len(found.batches) - len(found.refused)
    smoke = any(batch.smoke for batch in found.batches.values())
    return environment.from_string(template).render(
        css=page_style(),
        verdict=f"{found.successes} of {found.runs} runs succeeded" + (f"; {left} scenarios to come" if left else ""),
        cls="bad" if found.exit_code else "warn" if left else "good",
        about="Smoke variants, 5 simulated seconds at most" if smoke else "Whole scenarios",
        rows=[_row(found, name) for name in found.abouts],
        version=__version__,
        machine=provenance().cpu,
    )


def _row(found: SuiteResult, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "about": found.abouts[name], "link": "", "interval": "", "wall": ""}
    batch = found.batches.get(name)
    if batch is None:
        why = [found.refused[name]] if name in found.refused else []
        return {**row, "share": "not begun" if why else "to come", "cls": "bad" if why else "warn", "wrong": why}
    rate, wall = batch.success, batch.spreads.get("wall_seconds")
    return {
        **row,
        "link": "" if batch.report is None else Path(os.path.relpath(batch.report, found.folder)).as_posix(),
        "share": f"{rate.successes} of {rate.total}",
        "cls": "bad" if batch.exit_code else "good",
        "interval": f"{rate.low:.0%} to {rate.high:.0%}",
        "wall": "" if wall is None else f"{wall.median:.1f} s",
        "wrong": _wrong(batch),
    }


def _wrong(batch: BatchResult) -> list[str]:
    reasons = Counter(result.reason or result.state for result in batch.failures)
    worse = [] if batch.against is None else [f"worse than before: {name}" for name in batch.against.regressions]
    return [f"{count} ×: {reason}" for reason, count in reasons.most_common()] + worse
