"""Renders the report of a run as one self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roboyard import __version__
from roboyard.evaluation.plugin import RUN_METRICS, shown_metrics
from roboyard.evaluation.robot_trace import RobotTrace
from roboyard.evaluation.section import ReportSection
from roboyard.grids.floor_plan import TopDownMap
from roboyard.scenarios.ground_truth import DepthComparison
from roboyard.scenarios.provenance import describe_untested_versions

_MAX_LOG_LINES = 60
_MAX_TIMELINE_ROWS = 200
_MAX_CALLBACK_ROWS = 7
"""Largest number of callbacks of a node that have their own rows."""


def render_page(
    document: Mapping[str, Any],
    traces: Sequence[RobotTrace],
    top_down: TopDownMap | None,
    sections: Sequence[ReportSection] = (),
    depth_comparisons: Sequence[DepthComparison] = (),
    *,
    log: Sequence[tuple[float, str, str, str]] = (),
    scenario: str = "",
    video: str | None = None,
) -> str:
    """Return the page of a run.

    Args:
        document: Content of metrics.json.
        traces: Recorded data of each robot, the main robot first.
        top_down: Map of the world from above.
        sections: Sections of the report that only some robots have.
        depth_comparisons: Depth images at the end of the run, compared with the ground truth.
        log: Warnings and errors: time [s], level, node, text.
        scenario: Resolved scenario as text.
        video: Name of the video file beside the report.
    """
    import jinja2

    from roboyard.evaluation import robot_trace
    from roboyard.scenarios.report.scene_images import depth_comparison_image

    traces_with_truth = [trace for trace in traces if len(trace.truth)]
    main_trace = traces_with_truth[0] if traces_with_truth else None
    status, status_class = _run_status(document)
    timeline = _timeline_rows(document)
    template = Path(__file__).with_name("template.html").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.ChainableUndefined)
    return environment.from_string(template).render(
        css=page_style(),
        title=document["scenario"] + (" (smoke)" if document.get("smoke") else ""),
        status=status,
        status_class=status_class,
        summary=document.get("summary", ""),
        world=Path(document.get("world", "")).name,
        robots=list(document["robots"]),
        seed=document["seed"],
        error=document.get("error"),
        tiles=[
            {"label": metric.summary_label, "value": metric.format_value(document[metric.name])}
            for metric in shown_metrics()
            if document.get(metric.name) is not None
        ],
        criteria=[_criterion_row(name, result) for name, result in document["criteria"].items()],
        figures={
            "track": robot_trace.track_figure(list(traces_with_truth), top_down)
            if main_trace and (main_trace.has_moved or not sections)
            else "",
            "error": robot_trace.error_figure(list(traces_with_truth))
            if any(len(s.odometry) for s in traces_with_truth)
            else "",
            "speeds": robot_trace.speed_figure(main_trace) if main_trace and main_trace.has_moved else "",
            "scan": robot_trace.scan_figure(main_trace, top_down) if main_trace else "",
        },
        sections=sections,
        rejected=[
            {**row, "first": f"{row['first']:.2f}", "last": f"{row['last']:.2f}"}
            for row in document.get("rejected", ())
        ],
        cameras=depth_comparison_image(list(depth_comparisons)) if depth_comparisons else "",
        depth_summaries=[comparison.summary for comparison in depth_comparisons],
        main_robot=main_trace.robot if main_trace and len(traces) > 1 else "",
        scan_time=f"{main_trace.scan.time:.1f}" if main_trace and main_trace.scan else "",
        timeline=timeline[:_MAX_TIMELINE_ROWS],
        n_more_timeline_rows=max(0, len(timeline) - _MAX_TIMELINE_ROWS),
        contacts=[
            {"time": f"{t.time:.2f}", "x": f"{t.x:.2f}", "y": f"{t.y:.2f}", "description": t.description}
            for trace in traces
            for t in trace.contacts
        ],
        log=[
            {
                "time": f"{t:.2f}",
                "level": level,
                "node": node,
                "text": text,
                "level_class": "warn" if level == "warn" else "bad",
            }
            for t, level, node, text in log[:_MAX_LOG_LINES]
        ],
        n_more_log_lines=max(0, len(log) - _MAX_LOG_LINES),
        nodes=_node_rows(document),
        topics=[_topic_row(topic) for topic in document.get("topics", ())],
        metric_columns=list(document["robots"]) or ["run"],
        metrics=_metric_rows(document),
        provenance=_provenance_rows(document),
        scenario=scenario,
        video=video,
        version=__version__,
    )


def page_style() -> str:
    """Return the style sheet of all pages, light and dark, with the colors that the figures use."""
    return Path(__file__).with_name("page.css").read_text("utf-8")


def _run_status(document: Mapping[str, Any]) -> tuple[str, str]:
    state = document["state"]
    if state == "interrupted":
        return "interrupted", "warn"
    if state == "failed":
        return "stopped by an error", "bad"
    if state == "killed":
        return "killed", "warn"
    return ("passed", "good") if document["success"] else ("criteria not met", "bad")


def _criterion_row(name: str, result: Mapping[str, Any]) -> dict[str, str]:
    status, status_class = {True: ("passed", "good"), False: ("failed", "bad"), None: ("not evaluated", "warn")}[
        result["passed"]
    ]
    values = ", ".join(f"{key} = {format_metric(value)}" for key, value in result["values"].items())
    return {"name": name, "expression": result["expression"], "status": status, "status_class": status_class,
            "values": values, "reason": result["reason"]}  # fmt: skip


def _timeline_rows(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the events of the run and of all robots by time, those of the run first; they belong to no robot."""
    run_events = [("", {**event, "kind": f"{event['kind']} {event['state']}"}) for event in document.get("events", ())]
    robot_events = [(name, event) for name, robot in document["robots"].items() for event in robot.get("timeline", ())]
    return [
        {
            "time": f"{event['time']:.2f}",
            "robot": robot,
            "kind": event["kind"].replace("_", " "),
            "kind_class": "" if robot else "warn",
            "text": event["text"],
        }
        for robot, event in sorted((*run_events, *robot_events), key=lambda item: float(item[1]["time"]))
    ]


def _node_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes, the busiest first, each with its offloaded work, then the time that no node needed."""
    offloaded_rows: dict[str, list[dict[str, Any]]] = {}
    for job in document.get("offloads", ()):
        row = _callback_row(f"offloaded {job['function']}", job["count"], job["mean"], job["max"], job["latency"])
        offloaded_rows.setdefault(job["node"], []).append(row)
    rows = []
    nodes = sorted(document.get("nodes", ()), key=lambda node: (-node["callback_time"], node["name"]))
    for node in nodes:
        busiest = sorted(node["callbacks"], key=lambda c: -c["mean"] * c["count"])
        callbacks = [_metered_row(c) for c in busiest[:_MAX_CALLBACK_ROWS]]
        callbacks += _other_callbacks(busiest[_MAX_CALLBACK_ROWS:]) + offloaded_rows.get(node["name"], [])
        if callbacks:
            busy_fraction = node["callback_share"]
            rows.append(
                {
                    "name": node["name"],
                    "share": f"{busy_fraction:.1%}",
                    "bar": round(120 * busy_fraction),
                    "callbacks": callbacks,
                }
            )
    remaining_fraction = 1.0 - sum(node["callback_share"] for node in nodes)
    if rows and remaining_fraction > 0.0:
        rows.append(
            {
                "name": "physics, clock",
                "share": f"{remaining_fraction:.1%}",
                "bar": round(120 * remaining_fraction),
                "callbacks": [{}],
            }
        )
    return rows


def _other_callbacks(callbacks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for all of these callbacks, and a row for each of them that cannot keep up."""
    slow = [c for c in callbacks if c["deadline"] and c["mean"] > c["deadline"]]
    others = [c for c in callbacks if c not in slow]
    rows = [_metered_row(c) for c in slow]
    count = sum(c["count"] for c in others)
    if count:
        mean = sum(c["mean"] * c["count"] for c in others) / count
        rows.append(_callback_row(f"{len(others)} others", count, mean, max(c["max"] for c in others), 0.0))
    return rows


def _metered_row(c: Mapping[str, Any]) -> dict[str, Any]:
    return _callback_row(c["trigger"], c["count"], c["mean"], c["max"], c["deadline"])


def _callback_row(trigger: str, count: int, mean: float, max_time: float, deadline: float) -> dict[str, Any]:
    flag, flag_class = "", ""
    if deadline and mean > deadline:
        flag, flag_class = "cannot keep up", "bad"
    elif deadline and max_time > deadline:
        flag, flag_class = "late calls", "warn"
    return {
        "trigger": trigger, "count": count, "mean": f"{1e6 * mean:.1f}", "max": f"{1e3 * max_time:.2f}",
        "deadline": f"{1e3 * deadline:.1f}" if deadline else "", "flag": flag, "flag_class": flag_class,
    }  # fmt: skip


def _topic_row(topic: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": topic["name"],
        "type": topic["type"],
        "count": topic["count"],
        "rate": f"{topic['rate']:.1f}" if topic["rate"] else "",
        "publishers": ", ".join(topic["publishers"]),
        "subscribers": ", ".join(topic["subscribers"]),
    }


def _metric_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    robots = [robot["metrics"] for robot in document["robots"].values()]
    names = list(robots[0]) if robots else []
    rows = [{"name": name, "values": [format_metric(robot.get(name)) for robot in robots]} for name in names]
    width = max(1, len(robots))
    rows.extend(
        {"name": metric.name, "values": [format_metric(document.get(metric.name)), *[""] * (width - 1)]}
        for metric in RUN_METRICS
    )
    return rows


def _provenance_rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    provenance = document.get("provenance", {})
    rows = [(name, str(version)) for name, version in provenance.get("versions", {}).items()]
    rows += [
        (key.replace("_", " "), str(provenance[key]))
        for key in ("lock", "cpu_class", "cpu", "renderer")
        if key in provenance
    ]
    difference = describe_untested_versions(provenance.get("versions", {}))
    return [*rows, ("differs from the tested versions", difference)] if difference else rows


def format_metric(value: Any) -> str:
    """Return a metric's value as text for people."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower()
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e9):
        return f"{int(value)}"
    return f"{value:.4g}"
