"""HTML pages of batches: one batch, a comparison of variants, and a suite of scenarios, with their figures."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

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
from roboyard.scenarios.batch.comparison import VariantComparison
from roboyard.scenarios.batch.runner import BatchResult
from roboyard.scenarios.batch.statistics import BaselineComparison, MetricChange, wilson_interval
from roboyard.scenarios.batch.suite import SuiteResult
from roboyard.scenarios.batch.worker import TrialResult
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.report.page import format_metric, page_style
from roboyard.scenarios.run_folder import REPORT, VIDEO

_MAX_LISTED_RUNS: Final = 30
"""Largest number of runs that are listed for one reason."""
_MAX_CHANGES: Final = 20
_CHANGE_CLASSES: Final = {"regressed": "bad", "improved": "good", "changed": "warn", "unchanged": ""}


def batch_page(batch: BatchResult) -> str:
    """Return one self-contained HTML page; reports and videos of runs are linked where they were kept."""
    rate = batch.success_rate
    status, status_class = (
        ("no runs", "warn") if not rate.total else (f"{rate.successes} of {rate.total} succeeded", "good")
    )
    if batch.failures:
        status_class = "bad" if not rate.successes else "warn"
    comparison = batch.baseline_comparison
    if comparison is not None and comparison.regressions:
        status, status_class = f"{status}; worse than the baseline", "bad"
    displayed_metrics = list(dict.fromkeys((*batch.preferred_directions, *batch.comparison_metrics)))
    return _render(
        "batch.html",
        title=batch.scenario,
        runs=rate.total,
        status=status,
        status_class=status_class,
        summary=batch.summary,
        tiles=_tiles(batch),
        baseline=None if comparison is None else _baseline_section(comparison),
        success_figure=success_figure(batch.results),
        failure_reasons=_failure_reasons(batch),
        worst_runs=_worst_runs(batch),
        histograms=metric_histograms(batch.results, displayed_metrics),
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
                batch.metric_summaries.items(),
                key=lambda item: (item[0] not in batch.preferred_directions, "." in item[0]),
            )
        ],
    )


def _render(template_name: str, **values: Any) -> str:
    """Return a template of this folder, filled in; a value that the template misses is an error."""
    import jinja2

    template = Path(__file__).with_name(template_name).read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(template).render(css=page_style(), version=__version__, **values)


def _tiles(batch: BatchResult) -> list[dict[str, str]]:
    rate, lost = batch.success_rate, sum(not result.is_finished for result in batch.results)
    tiles = [
        {"value": f"{rate.value:.1%}" if rate.total else "–", "label": "succeeded"},
        {
            "value": f"{100.0 * rate.low:.1f}–{100.0 * rate.high:.1f} %",
            "label": "95 % interval of the true success rate (Wilson)",
        },
        {"value": str(rate.total), "label": "runs"},
    ]
    if lost:
        tiles.append({"value": str(lost), "label": "lost because their workers died"})
    for name, label in (("sim_time", "simulated time per run"), ("real_time_factor", "× real time, median")):
        if name in batch.metric_summaries:
            unit = " s" if name == "sim_time" else ""
            tiles.append({"value": f"{batch.metric_summaries[name].median:.1f}{unit}", "label": label})
    return tiles


def _baseline_section(comparison: BaselineComparison) -> dict[str, Any]:
    if comparison.p >= 1.0 and not comparison.newly_failed:
        chance_note = "No run has another outcome than before."
    else:
        chance_note = f"A change this large would occur by chance with probability {comparison.p:.2g}."
    changed = [change for change in comparison.changes if change.kind != "unchanged"]
    return {
        "before": comparison.before.successes,
        "after": comparison.after.successes,
        "pairs": comparison.after.total,
        "chance_note": chance_note,
        "newly_failed": " · ".join(comparison.newly_failed),
        "newly_passed": " · ".join(comparison.newly_passed),
        "changes": [_change_row(change) for change in changed[:_MAX_CHANGES]],
        "unchanged": len(comparison.changes) - min(len(changed), _MAX_CHANGES),
        "notes": "; ".join(comparison.notes),
        "path": comparison.baseline.name,
    }


def _change_row(change: MetricChange) -> dict[str, str]:
    return {
        "name": change.name,
        "kind": change.kind,
        "kind_class": _CHANGE_CLASSES[change.kind],
        "before": format_metric(change.before),
        "after": format_metric(change.after),
        "difference": format_metric(change.difference),
        "interval": f"{format_metric(change.low)} to {format_metric(change.high)}",
        "p": f"{change.p:.2g}",
        "q": f"{change.q:.2g}",
    }


def _run_link(batch: BatchResult, result: TrialResult) -> dict[str, str]:
    """Return the label of a run, and the paths of its report and video relative to the page."""

    def link(name: str) -> str:
        path = Path(result.folder) / name
        if not result.folder or not path.is_file():
            return ""
        return Path(os.path.relpath(path, batch.folder)).as_posix()

    return {"label": result.label, "link": link(REPORT), "video": link(VIDEO)}


def _failure_reasons(batch: BatchResult) -> list[dict[str, Any]]:
    """Return the failed runs by their reason, the most frequent first."""
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


def _worst_runs(batch: BatchResult) -> list[dict[str, Any]]:
    """Return the run with the worst value of each metric of which small or large values are better."""
    rows = []
    for name, preferred_direction in batch.preferred_directions.items():
        values = [(v, r) for r in batch.results if (v := r.metric(name)) is not None]
        if not preferred_direction or name not in batch.metric_summaries or len({value for value, _ in values}) < 2:
            continue
        value, result = min(values, key=lambda pair: preferred_direction * pair[0])
        status, status_class = ("succeeded", "good") if result.success else ("failed", "bad")
        rows.append(
            {
                "name": name,
                "value": format_metric(value),
                "median": format_metric(batch.metric_summaries[name].median),
                "run": _run_link(batch, result),
                "status": status,
                "status_class": status_class,
                "command": _run_command(batch, result),
            }
        )
    return rows


def _run_command(batch: BatchResult, result: TrialResult) -> str:
    """Return the command that repeats a run."""
    overrides = [*batch.overrides, *(f"{key}={value}" for key, value in result.varied_values.items())]
    settings = [word for override in overrides for word in ("--set", override)]
    smoke = ["--smoke"] if batch.smoke else []
    return shlex.join(
        ["roboyard", "run", batch.source or batch.scenario, "--seed", str(result.seed), *smoke, *settings]
    )


_BATCH_COLUMNS: Final = 3
_MAX_BINS: Final = 6
"""Bins of values that are drawn from a continuous distribution."""
_MAX_PANELS: Final = 12
_MIN_RUNS_PER_BIN: Final = 4


def success_figure(results: Sequence[TrialResult]) -> str:
    """Return a figure of the success rate over the values of each varied key; "" if nothing was varied."""
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
        return render_svg(figure, "Success rate over the values of each varied key")


def metric_histograms(results: Sequence[TrialResult], names: Sequence[str]) -> str:
    """Return a histogram of each of the metrics that differs between runs; "" if none does."""
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
        return render_svg(figure, "Histogram of each metric over the runs")


def _make_panels(count: int, height: float) -> tuple[Any, list[Any]]:
    """Create a figure with this number of panels, whose axes are independent."""
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
"""Panels of a figure in one row."""


def comparison_page(comparison: VariantComparison) -> str:
    """Return one self-contained HTML page; reports of single runs are linked where they were kept."""
    variants = list(comparison.batches)
    return _render(
        "comparison.html",
        title=comparison.scenario,
        summary=comparison.summary,
        variants=variants,
        runs=max(len(batch.results) for batch in comparison.batches.values()),
        success_rates=[
            {"name": name, "values": [_rate_cell(rates[variant]) for variant in variants]}
            for name, rates in comparison.success_rates().items()
        ],
        figure=_comparison_figure(comparison),
        compared_metrics=[_metric_row(comparison, name) for name in comparison.compared_metrics],
        other_metrics=_other_metrics(comparison),
        seeds=_seed_rows(comparison),
    )


def _rate_cell(rate: Any) -> dict[str, str]:
    if not rate.total:
        return {"value": "–", "count": "", "interval": ""}
    return {
        "value": f"{rate.value:.1%}",
        "count": f"{rate.successes} of {rate.total}",
        "interval": f"{rate.low:.1%} to {rate.high:.1%}",
    }


def _metric_values(comparison: VariantComparison, variant: str, name: str) -> list[float]:
    return [value for result in comparison.batches[variant].results if (value := result.metric(name)) is not None]


def _comparison_figure(comparison: VariantComparison) -> str:
    """Return a figure of the compared metrics: a dot for each run, a line at the mean of each variant."""
    displayed_metrics = [
        name
        for name in comparison.compared_metrics
        if any(_metric_values(comparison, variant, name) for variant in comparison.batches)
    ]
    if not displayed_metrics:
        return ""
    rows = -(-len(displayed_metrics) // _COMPARISON_COLUMNS)
    with figure_style():
        figure, axes = new_figure(8.6, 2.1 * rows, rows=rows, columns=_COMPARISON_COLUMNS, use_common_axes=False)
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
            panel.margins(y=0.08)  # dots at the limits are complete
            panel.set_ylim(min(0.0, panel.get_ylim()[0]), panel.get_ylim()[1])
        for panel in panels[len(displayed_metrics) :]:
            panel.set_visible(False)
        return render_svg(figure, "Compared metrics of each run, one column per variant")


def _other_metrics(comparison: VariantComparison) -> list[dict[str, Any]]:
    """Return the other metrics of the runs, without those that are equal in all runs of all variants."""
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
    """Return mean and extremes of a metric for each variant."""
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
    """Return for each seed the outcome under each variant, with a link to the report if it was kept."""
    seeds = sorted({result.seed for batch in comparison.batches.values() for result in batch.results})
    rows = []
    for seed in seeds:
        cells = []
        for batch in comparison.batches.values():
            result = next((candidate for candidate in batch.results if candidate.seed == seed), None)
            if result is None:
                cells.append({"status": "not run", "status_class": "warn", "link": "", "reason": ""})
                continue
            report = Path(result.folder) / "report.html"
            link = (
                Path(os.path.relpath(report, comparison.folder)).as_posix()
                if result.folder and report.is_file()
                else ""
            )
            status, status_class = ("succeeded", "good") if result.success else ("failed", "bad")
            cells.append({"status": status, "status_class": status_class, "link": link, "reason": result.reason})
        rows.append({"seed": seed, "cells": cells})
    return rows


def suite_page(suite: SuiteResult) -> str:
    """Return one self-contained HTML page; the pages of the scenarios' batches are linked."""
    n_remaining = len(suite.summaries) - len(suite.batches) - len(suite.start_errors)
    smoke = any(batch.smoke for batch in suite.batches.values())
    remaining = f"; {n_remaining} scenarios not yet run" if n_remaining else ""
    return _render(
        "suite.html",
        status=f"{suite.successes} of {suite.runs} runs succeeded{remaining}",
        status_class="bad" if suite.exit_code else "warn" if n_remaining else "good",
        summary="Smoke variants of at most 5 simulated seconds" if smoke else "Full scenarios",
        rows=[_scenario_row(suite, name) for name in suite.summaries],
        machine=collect_provenance().cpu,
    )


def _scenario_row(suite: SuiteResult, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "summary": suite.summaries[name], "link": "", "interval": "", "wall": ""}
    batch = suite.batches.get(name)
    if batch is None:
        has_failed = name in suite.start_errors
        return {
            **row,
            "success_rate": "could not start" if has_failed else "not yet run",
            "status_class": "bad" if has_failed else "warn",
            "problems": [suite.start_errors[name]] if has_failed else [],
        }
    rate, wall = batch.success_rate, batch.metric_summaries.get("wall_time")
    return {
        **row,
        "link": "" if batch.report is None else Path(os.path.relpath(batch.report, suite.folder)).as_posix(),
        "success_rate": f"{rate.successes} of {rate.total}",
        "status_class": "bad" if batch.exit_code else "good",
        "interval": f"{rate.low:.0%} to {rate.high:.0%}",
        "wall": "" if wall is None else f"{wall.median:.1f} s",
        "problems": _problems(batch),
    }


def _problems(batch: BatchResult) -> list[str]:
    """Return the reasons of failed runs with their numbers, and what is worse than in the baseline."""
    reasons = Counter(result.reason or result.state for result in batch.failures)
    regressions = (
        []
        if batch.baseline_comparison is None
        else [f"regressed: {name}" for name in batch.baseline_comparison.regressions]
    )
    return [f"{count} ×: {reason}" for reason, count in reasons.most_common()] + regressions
