"""Figures about many runs: success over what was varied, and how metrics are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from roboyard.scenarios.report.style import BAD, GOOD, INK, MUTED, TRUTH, styled, svg
from roboyard.scenarios.statistics import wilson

if TYPE_CHECKING:
    from roboyard.scenarios.batch_worker import Result

_ACROSS: Final = 3
_MOST_PARTS: Final = 6
"""Parts that numbers which are drawn freely are put into."""
_MOST_PANELS: Final = 12
_LEAST_IN_PART: Final = 4


def varied_figure(results: Sequence[Result]) -> str:
    """For each key that was varied, the share of successes over its values; "" if nothing was."""
    keys = list(dict.fromkeys(key for result in results for key in result.varied))[:_MOST_PANELS]
    if not keys:
        return ""
    with styled():
        figure, panels = _panels(len(keys), 2.5)
        for panel, key in zip(panels, keys, strict=True):
            some = [result for result in results if key in result.varied]
            texts = [str(result.varied[key]) for result in some]
            won = np.array([result.success for result in some])
            distinct = list(dict.fromkeys(texts))
            if all(isinstance(result.varied[key], int | float) for result in some):
                _over_numbers(panel, np.array([float(result.varied[key]) for result in some]), won)
            else:
                for k, text in enumerate(distinct):
                    inside = won[[one == text for one in texts]]
                    _share(panel, float(k), inside)
                panel.set_xticks(range(len(distinct)), distinct)
                panel.set_xlim(-0.6, len(distinct) - 0.4)
            panel.set_title(key.rpartition(".")[2], fontsize=9.5)
            panel.set_ylim(-0.08, 1.08)
            panel.set_yticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
        return svg(figure, "Share of runs that succeeded over each key that was varied")


def spread_figure(results: Sequence[Result], names: Sequence[str]) -> str:
    """A histogram for each metric named that differs between runs; "" if none does."""
    measured: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in names:
        pairs = [(v, r.success) for r in results if (v := r.measured(name)) is not None]
        if len({value for value, _ in pairs}) > 1:
            measured[name] = (np.array([v for v, _ in pairs]), np.array([good for _, good in pairs]))
    shown = list(measured.items())[:_MOST_PANELS]
    if not shown:
        return ""
    with styled():
        figure, panels = _panels(len(shown), 2.1)
        for panel, (name, (values, won)) in zip(panels, shown, strict=True):
            bins = np.histogram_bin_edges(values, bins=min(30, max(5, round(2.0 * len(values) ** 0.5))))
            panel.hist([values[won], values[~won]], bins=bins, stacked=True, color=[TRUTH, BAD])
            panel.axvline(float(np.median(values)), color=INK, lw=1.2)
            panel.set_title(name, fontsize=9.5)
            panel.yaxis.get_major_locator().set_params(integer=True)
        return svg(figure, "How many runs measured what, one panel a metric")


def _panels(count: int, height: float) -> tuple[Any, list[Any]]:
    """A figure of so many panels, each with a quantity of its own."""
    from matplotlib.figure import Figure

    rows = -(-count // _ACROSS)
    figure = Figure(figsize=(8.6, height * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, _ACROSS, k + 1) for k in range(count)]


def _over_numbers(panel: Any, values: np.ndarray, won: np.ndarray) -> None:
    distinct = np.unique(values)
    if len(distinct) <= _MOST_PARTS or len(values) >= _LEAST_IN_PART * len(distinct):
        for value in distinct:
            _share(panel, float(value), won[values == value])
        return
    order = np.argsort(values, kind="stable")
    parts = min(_MOST_PARTS, max(1, len(values) // _LEAST_IN_PART))
    for part in np.array_split(order, parts):
        _share(panel, float(np.median(values[part])), won[part])
    panel.plot(values[won], np.full(int(won.sum()), 1.04), "|", color=GOOD, ms=5)
    panel.plot(values[~won], np.full(int((~won).sum()), -0.04), "|", color=BAD, ms=5)


def _share(panel: Any, at: float, won: np.ndarray) -> None:
    rate = wilson(int(won.sum()), len(won))
    panel.plot([at, at], [rate.low, rate.high], color=MUTED, lw=1.4)
    panel.plot([at], [rate.value], "o", color=TRUTH, ms=5)
