"""The report: one self-contained HTML page from a run's folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roboyard import __version__
from roboyard.scenarios.depth_looks import Look
from roboyard.scenarios.floor import Floor
from roboyard.scenarios.metrics.evaluation import RUN_METRICS
from roboyard.scenarios.provenance import compare_with_lock
from roboyard.scenarios.report.section import Section
from roboyard.scenarios.report.story import Story

_MOST_LOG = 60
_SHOWN = 7
"""Callbacks of a node that have rows of their own."""
_TILES = (
    ("sim_seconds", "simulated time", "{:.1f} s"),
    ("real_time_factor", "× real time", "{:.1f}"),
    ("path_length", "driven", "{:.2f} m"),
    ("odom_rmse", "odometry RMSE", "{:.3f} m"),
    ("odom_final_error", "odometry error at the end", "{:.3f} m"),
    ("contacts", "contacts", "{:d}"),
    ("home_error", "from home, after the link was lost", "{:.2f} m"),
    ("cancel_latency", "from operator heard to goal cancelled", "{:.3f} s"),
    ("points_skipped", "points skipped on the way home", "{:d}"),
    ("min_separation", "nearest to anybody", "{:.2f} m"),
    ("coverage", "of the floor seen", "{:.1%}"),
    ("return_error", "from where it set out", "{:.2f} m"),
    ("speed", "under way on its legs", "{:.3f} m/s"),
    ("cost_of_transport", "cost of transport", "{:.2f}"),
    ("min_stability_margin", "least stability margin", "{:.3f} m"),
    ("min_tilt", "least turn until it tips", "{:.2f} rad"),
    ("slips", "slips of feet", "{:d}"),
    ("falls", "falls", "{:d}"),
    ("messages", "messages", "{:,d}"),
)


def render(
    document: Mapping[str, Any],
    stories: Sequence[Story],
    floor: Floor | None,
    sections: Sequence[Section] = (),
    looks: Sequence[Look] = (),
    *,
    log: Sequence[tuple[float, str, str, str]] = (),
    scenario: str = "",
    video: str | None = None,
) -> str:
    """The page.

    Args:
        document: What metrics.json says.
        stories: One a robot, the main one first.
        floor: The world from above.
        sections: What only some robots have to show.
        looks: What depth cameras saw at the end.
        log: Warnings and errors: time [s], level, node, text.
        scenario: The scenario as run, as text.
        video: File beside the report.
    """
    import jinja2

    from roboyard.scenarios.report import figures
    from roboyard.scenarios.report.cameras import cameras_picture

    moved = [story for story in stories if len(story.truth)]
    main = moved[0] if moved else None
    verdict, verdict_class = _verdict(document)
    template = Path(__file__).with_name("template.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.ChainableUndefined)
    return environment.from_string(template).render(
        css=page_style(),
        title=document["scenario"] + (" (smoke)" if document.get("smoke") else ""),
        verdict=verdict,
        verdict_class=verdict_class,
        about=document.get("summary", ""),
        world=Path(document.get("world", "")).name,
        robots=list(document["robots"]),
        seed=document["seed"],
        error=document.get("error"),
        tiles=[
            {"label": label, "value": form.format(document[name])}
            for name, label, form in _TILES
            if document.get(name) is not None
        ],
        criteria=[_criterion(name, found) for name, found in document["criteria"].items()],
        figures={
            "track": figures.track_figure(list(moved), floor) if main and (main.moved or not sections) else "",
            "error": figures.error_figure(list(moved)) if any(len(s.odometry) for s in moved) else "",
            "speeds": figures.speed_figure(main) if main and main.moved else "",
            "scan": figures.scan_figure(main, floor) if main else "",
        },
        sections=sections,
        rejected=[
            {**row, "first": f"{row['first']:.2f}", "last": f"{row['last']:.2f}"}
            for row in document.get("rejected", ())
        ],
        cameras=cameras_picture(list(looks)) if looks else "",
        looks=[look.text for look in looks],
        main=main.robot if main and len(stories) > 1 else "",
        scan_time=f"{main.scan.time:.1f}" if main and main.scan else "",
        touches=[
            {"time": f"{t.time:.2f}", "x": f"{t.x:.2f}", "y": f"{t.y:.2f}", "what": t.what}
            for story in stories
            for t in story.touches
        ],
        log=[
            {
                "time": f"{t:.2f}",
                "level": level,
                "node": node,
                "text": text,
                "cls": "warn" if level == "warn" else "bad",
            }
            for t, level, node, text in log[:_MOST_LOG]
        ],
        log_more=max(0, len(log) - _MOST_LOG),
        nodes=_nodes(document),
        topics=[_topic(topic) for topic in document.get("topics", ())],
        metric_columns=list(document["robots"]) or ["run"],
        metrics=_metrics(document),
        provenance=_provenance(document),
        scenario=scenario,
        video=video,
        version=__version__,
    )


def page_style() -> str:
    """The style sheet of all pages: light and dark, and the colours that figures name."""
    return Path(__file__).with_name("page.css").read_text("utf-8")


def _verdict(document: Mapping[str, Any]) -> tuple[str, str]:
    state = document["state"]
    if state == "interrupted":
        return "interrupted", "warn"
    if state == "failed":
        return "stopped by an error", "bad"
    if state == "killed":
        return "killed", "warn"
    return ("passed", "good") if document["success"] else ("criteria not met", "bad")


def _criterion(name: str, found: Mapping[str, Any]) -> dict[str, str]:
    word, cls = {True: ("held", "good"), False: ("not held", "bad"), None: ("not judged", "warn")}[found["passed"]]
    values = ", ".join(f"{key} = {number(value)}" for key, value in found["values"].items())
    return {"name": name, "expression": found["expression"], "word": word, "cls": cls, "values": values,
            "reason": found["reason"]}  # fmt: skip


def _nodes(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Busiest first, then what no node spends; offloaded work is listed with its node."""
    jobs: dict[str, list[dict[str, Any]]] = {}
    for job in document.get("offloads", ()):
        row = _callback(f"offloaded {job['function']}", job["count"], job["mean"], job["max"], job["latency"])
        jobs.setdefault(job["node"], []).append(row)
    rows = []
    found = sorted(document.get("nodes", ()), key=lambda node: (-node["callback_time"], node["name"]))
    for node in found:
        busiest = sorted(node["callbacks"], key=lambda c: -c["mean"] * c["count"])
        callbacks = [_metered(c) for c in busiest[:_SHOWN]]
        callbacks += _others(busiest[_SHOWN:]) + jobs.get(node["name"], [])
        if callbacks:
            share = node["callback_share"]
            rows.append(
                {"name": node["name"], "share": f"{share:.1%}", "bar": round(120 * share), "callbacks": callbacks}
            )
    rest = 1.0 - sum(node["callback_share"] for node in found)
    if rows and rest > 0.0:
        rows.append({"name": "physics, clock", "share": f"{rest:.1%}", "bar": round(120 * rest), "callbacks": [{}]})
    return rows


def _others(callbacks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for all of them; those that cannot keep up have rows of their own."""
    slow = [c for c in callbacks if c["deadline"] and c["mean"] > c["deadline"]]
    rest = [c for c in callbacks if c not in slow]
    rows = [_metered(c) for c in slow]
    count = sum(c["count"] for c in rest)
    if count:
        mean = sum(c["mean"] * c["count"] for c in rest) / count
        rows.append(_callback(f"{len(rest)} others", count, mean, max(c["max"] for c in rest), 0.0))
    return rows


def _metered(c: Mapping[str, Any]) -> dict[str, Any]:
    return _callback(c["trigger"], c["count"], c["mean"], c["max"], c["deadline"])


def _callback(trigger: str, count: int, mean: float, longest: float, allowed: float) -> dict[str, Any]:
    flag, cls = "", ""
    if allowed and mean > allowed:
        flag, cls = "cannot keep up", "bad"
    elif allowed and longest > allowed:
        flag, cls = "once too long", "warn"
    return {
        "trigger": trigger, "count": count, "mean": f"{1e6 * mean:.1f}", "max": f"{1e3 * longest:.2f}",
        "deadline": f"{1e3 * allowed:.1f}" if allowed else "", "flag": flag, "cls": cls,
    }  # fmt: skip


def _topic(topic: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": topic["name"],
        "type": topic["type"],
        "count": topic["count"],
        "rate": f"{topic['rate']:.1f}" if topic["rate"] else "",
        "publishers": ", ".join(topic["publishers"]),
        "subscribers": ", ".join(topic["subscribers"]),
    }


def _metrics(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    robots = [robot["metrics"] for robot in document["robots"].values()]
    names = list(robots[0]) if robots else []
    rows = [{"name": name, "values": [number(robot.get(name)) for robot in robots]} for name in names]
    width = max(1, len(robots))
    rows.extend({"name": name, "values": [number(document.get(name)), *[""] * (width - 1)]} for name in RUN_METRICS)
    return rows


def _provenance(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = document.get("provenance", {})
    rows = [(name, str(version)) for name, version in found.get("versions", {}).items()]
    rows += [
        (key.replace("_", " "), str(found[key])) for key in ("lock", "cpu_class", "cpu", "renderer") if key in found
    ]
    other = compare_with_lock(found.get("versions", {}))
    return [*rows, ("not as tested", other)] if other else rows


def number(value: Any) -> str:
    """A metric's value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower()
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e9):
        return f"{int(value)}"
    return f"{value:.4g}"
