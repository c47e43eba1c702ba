"""HTML pages of batches: one batch, a comparison of variants, and a suite of scenarios, with their figures."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from roboyard import __version__
from roboyard.evaluation.figures import (
    BAD,
    COMMAND,
    GOOD,
    INK,
    MUTED,
    ODOMETRY,
    SCAN,
    TRUTH,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.scenarios.batch.statistics import wilson_interval
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.report.page import format_metric, page_style
from roboyard.scenarios.run_folder import REPORT, VIDEO

if TYPE_CHECKING:
    from roboyard.scenarios.batch.comparison import VariantComparison
    from roboyard.scenarios.batch.runner import BatchResult
    from roboyard.scenarios.batch.statistics import BaselineComparison, MetricChange
    from roboyard.scenarios.batch.suite import SuiteResult
    from roboyard.scenarios.batch.worker import TrialResult


_MAX_LISTED_RUNS: Final = 30
"""Runs of one reason that are named."""
_MAX_CHANGES: Final = 20
_CHANGE_LABELS: Final = {
    "regressed": ("regressed", "bad"),
    "improved": ("improved", "good"),
    "changed": ("changed", "warn"),
}


def batch_page(
    batch: BatchResult,
    summary: str = "",
    preferred_directions: Mapping[str, int] | None = None,
    comparison_metrics: Sequence[str] = (),
) -> str:
    """One self-contained HTML page; reports and films of runs are linked where they were kept.

    Args:
        found: The batch.
        about: One line on the scenario.
        senses: Metrics of criteria, wanted small (-1), great (+1) or neither (0).
        compared: Further metrics that are shown.
    """
    import jinja2

    preferred_directions = preferred_directions or {}
    template = Path(__file__).with_name("batch.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    rate = batch.success_rate
    status, cls = ("no runs", "warn") if not rate.total else (f"{rate.successes} of {rate.total} succeeded", "good")
    if batch.failures:
        cls = "bad" if not rate.successes else "warn"
    if batch.baseline_comparison is not None and batch.baseline_comparison.regressions:
        status, cls = f"{status}; worse than the baseline", "bad"
    return environment.from_string(template).render(
        css=page_style(),
        title=batch.scenario,
        runs=rate.total,
        verdict=status,
        cls=cls,
        about=summary,
        tiles=_tiles(batch),
        against=None if batch.baseline_comparison is None else _baseline_section(batch.baseline_comparison),
        varied=success_figure(batch.results),
        reasons=_failure_reasons(batch),
        worst=_worst_runs(batch, preferred_directions),
        figure=metric_histograms(batch.results, list(dict.fromkeys((*preferred_directions, *comparison_metrics)))),
        metrics=[
            {
                "name": name,
                "values": [
                    metric.count,
                    *map(
                        format_metric,
                        (metric.mean, metric.standard_deviation, metric.minimum, metric.median, metric.maximum),
                    ),
                ],
            }
            for name, metric in sorted(
                batch.metric_summaries.items(), key=lambda item: (item[0] not in preferred_directions, "." in item[0])
            )
        ],
        version=__version__,
    )


def _tiles(batch: BatchResult) -> list[dict[str, str]]:
    rate, lost = batch.success_rate, sum(not result.is_finished for result in batch.results)
    tiles = [
        {"value": f"{rate.value:.1%}" if rate.total else "–", "label": "succeeded"},
        {"value": f"{rate.low:.1%} to {rate.high:.1%}", "label": "95 % interval of the true share (Wilson)"},
        {"value": str(rate.total), "label": "runs"},
    ]
    if lost:
        tiles.append({"value": str(lost), "label": "lost with their workers"})
    for name, label in (("sim_time", "simulated time a run"), ("real_time_factor", "× real time, median")):
        if name in batch.metric_summaries:
            unit = " s" if name == "sim_time" else ""
            tiles.append({"value": f"{batch.metric_summaries[name].median:.1f}{unit}", "label": label})
    return tiles


def _baseline_section(comparison: BaselineComparison) -> dict[str, Any]:
    if comparison.p >= 1.0 and not comparison.newly_failed:
        chance_note = "No run ended otherwise than before."
    else:
        chance_note = f"By chance alone, as much or more would change with probability {comparison.p:.2g}."
    changed = [change for change in comparison.changes if change.kind != "unchanged"]
    return {
        "before": f"{comparison.before.successes} succeeded",
        "after": f"{comparison.after.successes}",
        "pairs": comparison.after.total,
        "odds": chance_note,
        "newly_failed": " · ".join(comparison.newly_failed),
        "newly_passed": " · ".join(comparison.newly_passed),
        "changes": [_change_row(change) for change in changed[:_MAX_CHANGES]],
        "others": len(comparison.changes) - min(len(changed), _MAX_CHANGES),
        "notes": "; ".join(comparison.notes),
        "path": comparison.baseline.name,
    }


def _change_row(change: MetricChange) -> dict[str, str]:
    word, cls = _CHANGE_LABELS[change.kind]
    return {
        "name": change.name,
        "word": word,
        "cls": cls,
        "before": format_metric(change.before),
        "after": format_metric(change.after),
        "difference": format_metric(change.difference),
        "interval": f"{format_metric(change.low)} to {format_metric(change.high)}",
        "p": f"{change.p:.2g}",
        "q": f"{change.q:.2g}",
    }


def _run_link(batch: BatchResult, result: TrialResult) -> dict[str, str]:
    """How a run is called, and where its report and film lie as seen from the page."""

    def link(name: str) -> str:
        path = Path(result.folder) / name
        if not result.folder or not path.is_file():
            return ""
        return Path(os.path.relpath(path, batch.folder)).as_posix()

    return {"label": result.label, "link": link(REPORT), "film": link(VIDEO)}


def _failure_reasons(batch: BatchResult) -> list[dict[str, Any]]:
    """Failures by their reason, the most frequent first."""
    groups: dict[str, list[TrialResult]] = {}
    for result in batch.failures:
        groups.setdefault(result.reason or result.state, []).append(result)
    return [
        {
            "count": len(group),
            "reason": reason,
            "runs": [_run_link(batch, result) for result in group[:_MAX_LISTED_RUNS]],
            "more": max(0, len(group) - _MAX_LISTED_RUNS),
        }
        for reason, group in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _worst_runs(batch: BatchResult, preferred_directions: Mapping[str, int]) -> list[dict[str, Any]]:
    """For each metric that has a good side, the run farthest on the other."""
    rows = []
    for name, preferred_direction in preferred_directions.items():
        values = [(v, r) for r in batch.results if (v := r.metric(name)) is not None]
        if not preferred_direction or name not in batch.metric_summaries or len({value for value, _ in values}) < 2:
            continue
        value, result = min(values, key=lambda pair: preferred_direction * pair[0])
        word, cls = ("succeeded", "good") if result.success else ("did not succeed", "bad")
        rows.append(
            {
                "name": name,
                "value": format_metric(value),
                "median": format_metric(batch.metric_summaries[name].median),
                "run": _run_link(batch, result),
                "word": word,
                "cls": cls,
                "command": _run_command(batch, result),
            }
        )
    return rows


def _run_command(batch: BatchResult, result: TrialResult) -> str:
    overrides = [*batch.overrides, *(f"{key}={value}" for key, value in result.varied_values.items())]
    settings = [word for override in overrides for word in ("--set", override)]
    smoke = ["--smoke"] if batch.smoke else []
    return shlex.join(
        ["roboyard", "run", batch.source or batch.scenario, "--seed", str(result.seed), *smoke, *settings]
    )


_BATCH_COLUMNS: Final = 3
_MAX_BINS: Final = 6
"""Parts that numbers which are drawn freely are put into."""
_MAX_PANELS: Final = 12
_MIN_RUNS_PER_BIN: Final = 4


def success_figure(results: Sequence[TrialResult]) -> str:
    """For each key that was varied, the share of successes over its values; "" if nothing was."""
    keys = list(dict.fromkeys(key for result in results for key in result.varied_values))[:_MAX_PANELS]
    if not keys:
        return ""
    with figure_style():
        figure, panels = _make_panels(len(keys), 2.5)
        for panel, key in zip(panels, keys, strict=True):
            with_key = [result for result in results if key in result.varied_values]
            texts = [str(result.varied_values[key]) for result in with_key]
            succeeded = np.array([result.success for result in with_key])
            distinct = list(dict.fromkeys(texts))
            if all(isinstance(result.varied_values[key], int | float) for result in with_key):
                _plot_numeric_success(
                    panel, np.array([float(result.varied_values[key]) for result in with_key]), succeeded
                )
            else:
                for k, text in enumerate(distinct):
                    of_value = succeeded[[other == text for other in texts]]
                    _plot_success_rate(panel, float(k), of_value)
                panel.set_xticks(range(len(distinct)), distinct)
                panel.set_xlim(-0.6, len(distinct) - 0.4)
            panel.set_title(key.rpartition(".")[2], fontsize=9.5)
            panel.set_ylim(-0.08, 1.08)
            panel.set_yticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
        return render_svg(figure, "Share of runs that succeeded over each key that was varied")


def metric_histograms(results: Sequence[TrialResult], names: Sequence[str]) -> str:
    """A histogram for each metric named that differs between runs; "" if none does."""
    values_by_metric: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in names:
        pairs = [(v, r.success) for r in results if (v := r.metric(name)) is not None]
        if len({value for value, _ in pairs}) > 1:
            values_by_metric[name] = (np.array([v for v, _ in pairs]), np.array([success for _, success in pairs]))
    displayed_metrics = list(values_by_metric.items())[:_MAX_PANELS]
    if not displayed_metrics:
        return ""
    with figure_style():
        figure, panels = _make_panels(len(displayed_metrics), 2.1)
        for panel, (name, (values, succeeded)) in zip(panels, displayed_metrics, strict=True):
            bins = np.histogram_bin_edges(values, bins=min(30, max(5, round(2.0 * len(values) ** 0.5))))
            panel.hist([values[succeeded], values[~succeeded]], bins=bins, stacked=True, color=[TRUTH, BAD])
            panel.axvline(float(np.median(values)), color=INK, lw=1.2)
            panel.set_title(name, fontsize=9.5)
            panel.yaxis.get_major_locator().set_params(integer=True)
        return render_svg(figure, "How many runs measured what, one panel a metric")


def _make_panels(count: int, height: float) -> tuple[Any, list[Any]]:
    """A figure of so many panels, each with a quantity of its own."""
    from matplotlib.figure import Figure

    rows = -(-count // _BATCH_COLUMNS)
    figure = Figure(figsize=(8.6, height * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, _BATCH_COLUMNS, k + 1) for k in range(count)]


def _plot_numeric_success(panel: Any, values: np.ndarray, succeeded: np.ndarray) -> None:
    distinct = np.unique(values)
    if len(distinct) <= _MAX_BINS or len(values) >= _MIN_RUNS_PER_BIN * len(distinct):
        for value in distinct:
            _plot_success_rate(panel, float(value), succeeded[values == value])
        return
    order = np.argsort(values, kind="stable")
    parts = min(_MAX_BINS, max(1, len(values) // _MIN_RUNS_PER_BIN))
    for part in np.array_split(order, parts):
        _plot_success_rate(panel, float(np.median(values[part])), succeeded[part])
    panel.plot(values[succeeded], np.full(int(succeeded.sum()), 1.04), "|", color=GOOD, ms=5)
    panel.plot(values[~succeeded], np.full(int((~succeeded).sum()), -0.04), "|", color=BAD, ms=5)


def _plot_success_rate(panel: Any, x: float, succeeded: np.ndarray) -> None:
    rate = wilson_interval(int(succeeded.sum()), len(succeeded))
    panel.plot([x, x], [rate.low, rate.high], color=MUTED, lw=1.4)
    panel.plot([x], [rate.value], "o", color=TRUTH, ms=5)


_VARIANT_COLORS: Final = (TRUTH, ODOMETRY, COMMAND, SCAN, GOOD, MUTED)
_COMPARISON_COLUMNS: Final = 3
"""Figures side by side."""


def comparison_page(comparison: VariantComparison) -> str:
    """One self-contained HTML page; reports of single runs are linked where they were kept."""
    import jinja2

    template = Path(__file__).with_name("comparison.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    variants = list(comparison.batches)
    return environment.from_string(template).render(
        css=page_style(),
        title=comparison.scenario,
        about=comparison.summary,
        ways=variants,
        runs=max(len(batch.results) for batch in comparison.batches.values()),
        shares=[
            {"name": name, "values": [_rate_cell(rates[variant]) for variant in variants]}
            for name, rates in comparison.success_rates().items()
        ],
        figure=_comparison_figure(comparison),
        asked=[_metric_row(comparison, name) for name in comparison.compared_metrics],
        metrics=_other_metrics(comparison),
        seeds=_seed_rows(comparison),
        version=__version__,
    )


def _rate_cell(rate: Any) -> dict[str, str]:
    if not rate.total:
        return {"value": "–", "of": "", "interval": ""}
    return {
        "value": f"{rate.value:.1%}",
        "of": f"{rate.successes} of {rate.total}",
        "interval": f"{rate.low:.1%} to {rate.high:.1%}",
    }


def _metric_values(comparison: VariantComparison, variant: str, name: str) -> list[float]:
    return [value for result in comparison.batches[variant].results if (value := result.metric(name)) is not None]


def _comparison_figure(comparison: VariantComparison) -> str:
    """Each metric that criteria ask for: a dot a run, a line at the mean."""
    displayed_metrics = [
        name
        for name in comparison.compared_metrics
        if any(_metric_values(comparison, variant, name) for variant in comparison.batches)
    ]
    if not displayed_metrics:
        return ""
    rows = -(-len(displayed_metrics) // _COMPARISON_COLUMNS)
    with figure_style():
        figure, axes = new_figure(8.6, 2.1 * rows, rows=rows, columns=_COMPARISON_COLUMNS, share_axes=False)
        panels = np.atleast_1d(axes).ravel()
        for panel, name in zip(panels, displayed_metrics, strict=False):
            for k, variant in enumerate(comparison.batches):
                values = _metric_values(comparison, variant, name)
                color = _VARIANT_COLORS[k % len(_VARIANT_COLORS)]
                x_offsets = np.linspace(-0.12, 0.12, len(values)) if len(values) > 1 else np.zeros(len(values))
                panel.plot(k + x_offsets, values, "o", ms=4.5, color=color, alpha=0.75)
                if values:
                    panel.plot([k - 0.28, k + 0.28], [float(np.mean(values))] * 2, color=color, lw=2.0)
            panel.set_title(name, fontsize=9.5)
            panel.set_xlim(-0.6, len(comparison.batches) - 0.4)
            panel.set_xticks(
                range(len(comparison.batches)), [variant.partition("=")[2] for variant in comparison.batches]
            )
            panel.tick_params(axis="x", labelbottom=True)
            panel.set_ylim(min(0.0, panel.get_ylim()[0]), None)
        for panel in panels[len(displayed_metrics) :]:
            panel.set_visible(False)
        return render_svg(figure, "Each run's metrics that the criteria ask for, one column a way")


def _other_metrics(comparison: VariantComparison) -> list[dict[str, Any]]:
    """What else the runs of any way measured; what is the same everywhere and always is left out."""
    names = dict.fromkeys(name for batch in comparison.batches.values() for name in batch.metric_summaries)
    rows = []
    for name in names:
        summaries = [batch.metric_summaries.get(name) for batch in comparison.batches.values()]
        available = [summary for summary in summaries if summary is not None]
        varies = (
            len({(summary.minimum, summary.maximum) for summary in available}) + (len(available) < len(summaries)) > 1
        )
        if varies and "." not in name and name not in comparison.compared_metrics:
            rows.append(_metric_row(comparison, name))
    return rows


def _metric_row(comparison: VariantComparison, name: str) -> dict[str, Any]:
    """Mean and extremes of a metric, for each way."""
    summaries = [batch.metric_summaries.get(name) for batch in comparison.batches.values()]
    values = [
        None
        if summary is None
        else {
            "mean": format_metric(summary.mean),
            "range": f"{format_metric(summary.minimum)} to {format_metric(summary.maximum)}"
            if summary.minimum < summary.maximum
            else "",
        }
        for summary in summaries
    ]
    return {"name": name, "values": values}


def _seed_rows(comparison: VariantComparison) -> list[dict[str, Any]]:
    """For each seed how each way ended, with a link to what was kept."""
    seeds = sorted({result.seed for batch in comparison.batches.values() for result in batch.results})
    rows = []
    for seed in seeds:
        cells = []
        for batch in comparison.batches.values():
            result = next((candidate for candidate in batch.results if candidate.seed == seed), None)
            if result is None:
                cells.append({"word": "not run", "cls": "warn", "link": "", "why": ""})
                continue
            report = Path(result.folder) / "report.html"
            link = (
                Path(os.path.relpath(report, comparison.folder)).as_posix()
                if result.folder and report.is_file()
                else ""
            )
            word, cls = ("passed", "good") if result.success else ("not passed", "bad")
            cells.append({"word": word, "cls": cls, "link": link, "why": result.reason})
        rows.append({"seed": seed, "cells": cells})
    return rows


def suite_page(suite: SuiteResult) -> str:
    """One self-contained HTML page; scenarios' pages are linked."""
    import jinja2

    template = Path(__file__).with_name("suite.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    n_remaining = len(suite.summaries) - len(suite.batches) - len(suite.start_errors)
    smoke = any(batch.smoke for batch in suite.batches.values())
    return environment.from_string(template).render(
        css=page_style(),
        verdict=f"{suite.successes} of {suite.runs} runs succeeded"
        + (f"; {n_remaining} scenarios to come" if n_remaining else ""),
        cls="bad" if suite.exit_code else "warn" if n_remaining else "good",
        about="Smoke variants, 5 simulated seconds at most" if smoke else "Whole scenarios",
        rows=[_scenario_row(suite, name) for name in suite.summaries],
        version=__version__,
        machine=collect_provenance().cpu,
    )


def _scenario_row(suite: SuiteResult, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "about": suite.summaries[name], "link": "", "interval": "", "wall": ""}
    batch = suite.batches.get(name)
    if batch is None:
        reasons = [suite.start_errors[name]] if name in suite.start_errors else []
        return {
            **row,
            "share": "not begun" if reasons else "to come",
            "cls": "bad" if reasons else "warn",
            "wrong": reasons,
        }
    rate, wall = batch.success_rate, batch.metric_summaries.get("wall_time")
    return {
        **row,
        "link": "" if batch.report is None else Path(os.path.relpath(batch.report, suite.folder)).as_posix(),
        "share": f"{rate.successes} of {rate.total}",
        "cls": "bad" if batch.exit_code else "good",
        "interval": f"{rate.low:.0%} to {rate.high:.0%}",
        "wall": "" if wall is None else f"{wall.median:.1f} s",
        "wrong": _problems(batch),
    }


def _problems(batch: BatchResult) -> list[str]:
    reasons = Counter(result.reason or result.state for result in batch.failures)
    regressions = (
        []
        if batch.baseline_comparison is None
        else [f"worse than before: {name}" for name in batch.baseline_comparison.regressions]
    )
    return [f"{count} ×: {reason}" for reason, count in reasons.most_common()] + regressions
