"""The page about a batch: how often it went well, over what was varied, beside a baseline, and the worst runs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roboyard import __version__
from roboyard.scenarios.report.batch_figures import spread_figure, varied_figure
from roboyard.scenarios.report.page import number, page_style
from roboyard.scenarios.run_folder import REPORT, VIDEO

if TYPE_CHECKING:
    from roboyard.scenarios.against import Against, Change
    from roboyard.scenarios.batch import BatchResult
    from roboyard.scenarios.batch_worker import Result

_LISTED: Final = 30
"""Runs of one reason that are named."""
_CHANGES: Final = 20
_WORDS: Final = {
    "worse": ("worse", "bad"),
    "better": ("better", "good"),
    "other": ("changed", "warn"),
}


def batch_page(
    found: BatchResult, about: str = "", senses: Mapping[str, int] | None = None, compared: Sequence[str] = ()
) -> str:
    """One self-contained HTML page; reports and films of runs are linked where they were kept.

    Args:
        found: The batch.
        about: One line on the scenario.
        senses: Metrics of criteria, wanted small (-1), great (+1) or neither (0).
        compared: Further metrics that are shown.
    """
    import jinja2

    senses = senses or {}
    template = Path(__file__).with_name("batch.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    rate = found.success
    verdict, cls = ("no runs", "warn") if not rate.total else (f"{rate.successes} of {rate.total} succeeded", "good")
    if found.failures:
        cls = "bad" if not rate.successes else "warn"
    if found.against is not None and found.against.regressions:
        verdict, cls = f"{verdict}; worse than the baseline", "bad"
    return environment.from_string(template).render(
        css=page_style(),
        title=found.scenario,
        runs=rate.total,
        verdict=verdict,
        cls=cls,
        about=about,
        tiles=_tiles(found),
        against=None if found.against is None else _against(found.against),
        varied=varied_figure(found.results),
        reasons=_reasons(found),
        worst=_worst(found, senses),
        figure=spread_figure(found.results, list(dict.fromkeys((*senses, *compared)))),
        metrics=[
            {
                "name": name,
                "values": [
                    one.count,
                    *map(number, (one.mean, one.deviation, one.minimum, one.median, one.maximum)),
                ],
            }
            for name, one in sorted(found.spreads.items(), key=lambda item: (item[0] not in senses, "." in item[0]))
        ],
        version=__version__,
    )


def _tiles(found: BatchResult) -> list[dict[str, str]]:
    rate, lost = found.success, sum(not result.finished for result in found.results)
    tiles = [
        {"value": f"{rate.value:.1%}" if rate.total else "–", "label": "succeeded"},
        {"value": f"{rate.low:.1%} to {rate.high:.1%}", "label": "95 % interval of the true share (Wilson)"},
        {"value": str(rate.total), "label": "runs"},
    ]
    if lost:
        tiles.append({"value": str(lost), "label": "lost with their workers"})
    for name, label in (("sim_seconds", "simulated time a run"), ("real_time_factor", "× real time, median")):
        if name in found.spreads:
            unit = " s" if name == "sim_seconds" else ""
            tiles.append({"value": f"{found.spreads[name].median:.1f}{unit}", "label": label})
    return tiles


def _against(found: Against) -> dict[str, Any]:
    if found.p >= 1.0 and not found.broken:
        odds = "No run ended otherwise than before."
    else:
        odds = f"By chance alone, as much or more would change with probability {found.p:.2g}."
    changed = [change for change in found.changes if change.verdict != "same"]
    return {
        "before": f"{found.before.successes} succeeded",
        "after": f"{found.after.successes}",
        "pairs": found.after.total,
        "odds": odds,
        "broken": " · ".join(found.broken),
        "mended": " · ".join(found.mended),
        "changes": [_change(change) for change in changed[:_CHANGES]],
        "others": len(found.changes) - min(len(changed), _CHANGES),
        "notes": "; ".join(found.notes),
        "path": found.baseline.name,
    }


def _change(change: Change) -> dict[str, str]:
    word, cls = _WORDS[change.verdict]
    return {
        "name": change.name,
        "word": word,
        "cls": cls,
        "before": number(change.before),
        "after": number(change.after),
        "difference": number(change.difference),
        "interval": f"{number(change.low)} to {number(change.high)}",
        "p": f"{change.p:.2g}",
        "q": f"{change.q:.2g}",
    }


def _run(found: BatchResult, result: Result) -> dict[str, str]:
    """How a run is called, and where its report and film lie as seen from the page."""

    def link(name: str) -> str:
        path = Path(result.folder) / name
        if not result.folder or not path.is_file():
            return ""
        return Path(os.path.relpath(path, found.folder)).as_posix()

    return {"label": result.label, "link": link(REPORT), "film": link(VIDEO)}


def _reasons(found: BatchResult) -> list[dict[str, Any]]:
    """Failures by their reason, the most frequent first."""
    groups: dict[str, list[Result]] = {}
    for result in found.failures:
        groups.setdefault(result.reason or result.state, []).append(result)
    return [
        {
            "count": len(group),
            "reason": reason,
            "runs": [_run(found, result) for result in group[:_LISTED]],
            "more": max(0, len(group) - _LISTED),
        }
        for reason, group in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _worst(found: BatchResult, senses: Mapping[str, int]) -> list[dict[str, Any]]:
    """For each metric that has a good side, the run farthest on the other."""
    rows = []
    for name, sense in senses.items():
        measured = [(v, r) for r in found.results if (v := r.measured(name)) is not None]
        if not sense or name not in found.spreads or len({value for value, _ in measured}) < 2:
            continue
        value, result = min(measured, key=lambda pair: sense * pair[0])
        word, cls = ("succeeded", "good") if result.success else ("did not succeed", "bad")
        rows.append(
            {
                "name": name,
                "value": number(value),
                "median": number(found.spreads[name].median),
                "run": _run(found, result),
                "word": word,
                "cls": cls,
                "command": _command(found, result),
            }
        )
    return rows


def _command(found: BatchResult, result: Result) -> str:
    given = [*found.overrides, *(f"{key}={value}" for key, value in result.varied.items())]
    settings = [word for one in given for word in ("--set", one)]
    smoke = ["--smoke"] if found.smoke else []
    return shlex.join(
        ["roboyard", "run", found.source or found.scenario, "--seed", str(result.seed), *smoke, *settings]
    )
