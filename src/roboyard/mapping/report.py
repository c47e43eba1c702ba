"""The report of a mapped log: one self-contained page."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from roboyard.config import write_atomic
from roboyard.errors import InputError
from roboyard.mapping.outcome import METRICS, REPORT, Judged, Mapped, judge, metrics, write_files
from roboyard.mapping.report_figures import cost_figure, error_figure, map_figure, odometry_figure, spread_figure
from roboyard.mapping.statistics import ErrorStatistics

_NAMES: Final = {"graph": "graph SLAM", "rbpf": "a particle filter"}


def write_mapped(mapped: Mapped, folder: Path, version: str = "") -> tuple[dict[str, Any], dict[str, Path]]:
    """Write map, trajectory, graph, figures and page into a folder.

    Args:
        mapped: What to write.
        folder: Where to; it exists.
        version: Of Roboyard, for the page.

    Returns:
        All figures, and the files' paths by name.

    Raises:
        InputError: a file cannot be written.
    """
    judged = judge(mapped)
    found = metrics(mapped, judged)
    paths = write_files(mapped, folder)
    for name, file, text in (
        ("metrics", METRICS, json.dumps(found, indent=1, allow_nan=False, ensure_ascii=False) + "\n"),
        ("report", REPORT, page(mapped, judged, found, version)),
    ):
        paths[name] = folder / file
        try:
            write_atomic(paths[name], text)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", location=str(paths[name])) from error
    return found, paths


def page(mapped: Mapped, judged: Judged, found: dict[str, Any], version: str = "") -> str:
    """The page as HTML."""
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(files(__package__).joinpath("report.html").read_text("utf-8"))
    rows, of, note = _errors(judged)
    counted = f"{found['scans']:,} scans over {_time(mapped.duration)}"
    return template.render(
        name=mapped.name,
        algorithm=_NAMES.get(mapped.algorithm, mapped.algorithm),
        scans=counted,
        lasers=", ".join(mapped.lasers),
        interrupted=f"{found['scans']:,} of {mapped.total:,} scans" if mapped.interrupted else "",
        tiles=_tiles(mapped, judged, found),
        figures={
            "map": map_figure(mapped),
            "odometry": odometry_figure(mapped),
            "error": error_figure(mapped, judged),
            "spread": spread_figure(judged),
            "cost": cost_figure(mapped),
        },
        errors=rows,
        errors_of=of,
        errors_note=note,
        warnings=mapped.warnings,
        figures_table=[(key, _shown(value)) for key, value in found.items() if not isinstance(value, list)],
        version=version,
    )


def _tiles(mapped: Mapped, judged: Judged, found: dict[str, Any]) -> list[tuple[str, str]]:
    tiles = []
    if judged.relations is not None:
        tiles.append(("error, mean", f"{100 * judged.relations.translational.mean:.1f} cm"))
        tiles.append(("turned, mean", f"{judged.relations.rotational_deg.mean:.2f}°"))
    if judged.absolute is not None:
        tiles.append(("from the truth, rms", f"{100 * judged.absolute.translational.rmse:.1f} cm"))
    factor = found["real_time_factor"]
    tiles += [
        ("way", f"{found['way']:,.0f} m"),
        ("map", f"{mapped.grid.geometry.extent[0]:.0f} × {mapped.grid.geometry.extent[1]:.0f} m"),
        ("loops closed", f"{found['loops']:,}"),
        ("real time", f"{factor:,.0f} ×" if factor else "–"),
        ("a scan, median", f"{found['scan_ms_median']:.1f} ms" if found["scan_ms_median"] is not None else "–"),
    ]
    return tiles


def _errors(judged: Judged) -> tuple[list[list[str]], str, str]:
    """Rows of the table of errors, what they are of, and a note."""
    rows: list[list[str]] = []
    if judged.relations is not None:
        found = judged.relations
        rows += _pair("way", found.translational, found.rotational_deg)
        if judged.odometry_relations is not None:
            other = judged.odometry_relations
            rows += _pair("odometry alone", other.translational, other.rotational_deg)
        note = (
            f"{found.used:,} of {found.total:,} relations count: the others are of times without a scan nearby. "
            "Measured as in Kümmerle et al. 2009."
        )
        return rows, "relations checked by hand", note
    if judged.absolute is not None:
        rows += _pair("way", judged.absolute.translational, judged.absolute.rotational_deg)
        if judged.relative is not None:
            rows += _pair("way, over 1 s", judged.relative.translational, judged.relative.rotational_deg)
        if judged.odometry_absolute is not None:
            other_error = judged.odometry_absolute
            rows += _pair("odometry alone", other_error.translational, other_error.rotational_deg)
        return rows, "against the truth", "After laying the one over the other in the plane."
    return rows, "", ""


def _pair(name: str, distance: ErrorStatistics, turn: ErrorStatistics) -> list[list[str]]:
    return [
        [f"{name}, position", *_row(distance, "m", 4)],
        [f"{name}, direction", *_row(turn, "°", 2)],
    ]


def _row(s: ErrorStatistics, unit: str, digits: int) -> list[str]:
    values = (s.mean, s.std, s.median, s.rmse, s.maximum)
    return [*(f"{value:.{digits}f} {unit}" for value in values), f"{s.count:,}"]


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else str(value)
