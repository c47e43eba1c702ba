"""The page that shows several ways of one scenario side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from roboyard import __version__
from roboyard.scenarios.report.page import number, page_style
from roboyard.scenarios.report.style import COMMAND, GOOD, MUTED, ODOMETRY, SCAN, TRUTH, new_figure, styled, svg

if TYPE_CHECKING:
    from roboyard.scenarios.compare import Comparison

_COLOURS: Final = (TRUTH, ODOMETRY, COMMAND, SCAN, GOOD, MUTED)
_ACROSS: Final = 3
"""Figures side by side."""


def comparison_page(found: Comparison) -> str:
    """One self-contained HTML page; reports of single runs are linked where they were kept."""
    import jinja2

    template = Path(__file__).with_name("comparison.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    ways = list(found.batches)
    return environment.from_string(template).render(
        css=page_style(),
        title=found.scenario,
        about=found.summary,
        ways=ways,
        runs=max(len(batch.results) for batch in found.batches.values()),
        shares=[
            {"name": name, "values": [_share(rates[way]) for way in ways]} for name, rates in found.shares().items()
        ],
        figure=_figure(found),
        asked=[_row(found, name) for name in found.asked],
        metrics=_metrics(found),
        seeds=_seeds(found),
        version=__version__,
    )


def _share(rate: Any) -> dict[str, str]:
    if not rate.total:
        return {"value": "–", "of": "", "interval": ""}
    return {
        "value": f"{rate.value:.1%}",
        "of": f"{rate.successes} of {rate.total}",
        "interval": f"{rate.low:.1%} to {rate.high:.1%}",
    }


def _values(found: Comparison, way: str, name: str) -> list[float]:
    return [value for result in found.batches[way].results if (value := result.measured(name)) is not None]


def _figure(found: Comparison) -> str:
    """Each metric that criteria ask for: a dot a run, a line at the mean."""
    shown = [name for name in found.asked if any(_values(found, way, name) for way in found.batches)]
    if not shown:
        return ""
    rows = -(-len(shown) // _ACROSS)
    with styled():
        figure, axes = new_figure(8.6, 2.1 * rows, rows=rows, columns=_ACROSS, alike=False)
        panels = np.atleast_1d(axes).ravel()
        for panel, name in zip(panels, shown, strict=False):
            for k, way in enumerate(found.batches):
                values = _values(found, way, name)
                colour = _COLOURS[k % len(_COLOURS)]
                beside = np.linspace(-0.12, 0.12, len(values)) if len(values) > 1 else np.zeros(len(values))
                panel.plot(k + beside, values, "o", ms=4.5, color=colour, alpha=0.75)
                if values:
                    panel.plot([k - 0.28, k + 0.28], [float(np.mean(values))] * 2, color=colour, lw=2.0)
            panel.set_title(name, fontsize=9.5)
            panel.set_xlim(-0.6, len(found.batches) - 0.4)
            panel.set_xticks(range(len(found.batches)), [way.partition("=")[2] for way in found.batches])
            panel.tick_params(axis="x", labelbottom=True)
            panel.set_ylim(min(0.0, panel.get_ylim()[0]), None)
        for panel in panels[len(shown) :]:
            panel.set_visible(False)
        return svg(figure, "Each run's metrics that the criteria ask for, one column a way")


def _metrics(found: Comparison) -> list[dict[str, Any]]:
    """What else the runs of any way measured; what is the same everywhere and always is left out."""
    names = dict.fromkeys(name for batch in found.batches.values() for name in batch.spreads)
    rows = []
    for name in names:
        spreads = [batch.spreads.get(name) for batch in found.batches.values()]
        known = [one for one in spreads if one is not None]
        varies = len({(one.minimum, one.maximum) for one in known}) + (len(known) < len(spreads)) > 1
        if varies and "." not in name and name not in found.asked:
            rows.append(_row(found, name))
    return rows


def _row(found: Comparison, name: str) -> dict[str, Any]:
    """Mean and extremes of a metric, for each way."""
    spreads = [batch.spreads.get(name) for batch in found.batches.values()]
    values = [
        None
        if one is None
        else {
            "mean": number(one.mean),
            "range": f"{number(one.minimum)} to {number(one.maximum)}" if one.minimum < one.maximum else "",
        }
        for one in spreads
    ]
    return {"name": name, "values": values}


def _seeds(found: Comparison) -> list[dict[str, Any]]:
    """For each seed how each way ended, with a link to what was kept."""
    seeds = sorted({result.seed for batch in found.batches.values() for result in batch.results})
    rows = []
    for seed in seeds:
        cells = []
        for batch in found.batches.values():
            result = next((one for one in batch.results if one.seed == seed), None)
            if result is None:
                cells.append({"word": "not run", "cls": "warn", "link": "", "why": ""})
                continue
            report = Path(result.folder) / "report.html"
            link = Path(os.path.relpath(report, found.folder)).as_posix() if result.folder and report.is_file() else ""
            word, cls = ("passed", "good") if result.success else ("not passed", "bad")
            cells.append({"word": word, "cls": cls, "link": link, "why": result.reason})
        rows.append({"seed": seed, "cells": cells})
    return rows
