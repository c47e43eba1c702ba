"""Result of a run: its metrics document (metrics.json) and whether it succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roboyard.bus import Graph
from roboyard.evaluation.plugin import MetricValue
from roboyard.scenarios.criteria import CriterionResult
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.run_folder import RunFolder

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run


RunState = Literal["done", "interrupted", "failed", "killed"]
"""How a run ended: it ran to its end, somebody stopped it, a node failed, or its process was killed."""


def run_metrics(run: Run) -> dict[str, MetricValue]:
    """The metrics of the run as a whole."""
    sim, wall = run.time, run.wall_seconds
    return {
        "sim_time": sim,
        "wall_time": wall,
        "real_time_factor": (sim - run.start_ns * 1e-9) / wall if wall > 0.0 else None,
        "messages": run.evaluation.messages,
        "frames_missed": sum(
            frame_counts.missed
            for cameras in run.simulation_node.frames().values()
            for frame_counts in cameras.values()
        ),
    }


def build_metrics_document(
    run: Run,
    *,
    summary: str = "",
    world: str = "",
    state: RunState = "done",
    error: str | None = None,
    results: Sequence[CriterionResult] = (),
    smoke: bool = False,
) -> dict[str, Any]:
    """What goes into metrics.json; see docs/reference/metrics.md for every key.

    Args:
        run: Finished.
        summary: One line on the scenario.
        world: Name of the world as the scenario gives it.
        state: How it ended.
        error: What stopped it.
        results: Of the criteria.
        smoke: Whether it was the smoke variant.
    """
    robot_metrics = run.evaluation.metrics_by_robot()
    main_robot_metrics = next(iter(robot_metrics.values()), {})
    frames = run.simulation_node.frames()
    success = state == "done" and all(result.passed for result in results)
    return {
        "scenario": run.name,
        "summary": summary,
        "world": world or run.world.name,
        "seed": run.seed,
        "smoke": smoke,
        "state": state,
        "success": success,
        "error": error,
        "criteria": {result.name: criterion_to_dict(result) for result in results},
        **run_metrics(run),
        "recorded": run.n_recorded,
        **main_robot_metrics,
        "robots": {
            name: {
                "model": robot.package.name,
                "namespace": robot.namespace,
                "topics": dict(robot.package.config.topics),
                "findings": list(robot.package.findings),
                "metrics": robot_metrics[name],
                **({"approaches": approaches} if (approaches := run.evaluation.person_approaches(name)) else {}),
                **({} if robot.legged_robot is None else {"motors": robot.legged_robot.motors.to_dict()}),
                **_collaborative_safety(run, name),
                "cameras": {camera: _frame_counts_to_dict(counts) for camera, counts in frames.get(name, {}).items()},
            }
            for name, robot in run.all_robots.items()
        },
        "rejected": run.evaluation.rejected_messages(),
        "events": list(run.events),
        **cost_tables(run.graph, run.wall_seconds),
        "provenance": collect_provenance(run.simulation.looks.renderer if any(frames.values()) else "none").to_dict(),
    }


def build_document_before_start(
    *,
    name: str,
    summary: str,
    world: str,
    seed: int,
    state: RunState,
    results: Sequence[CriterionResult] = (),
    smoke: bool = False,
) -> dict[str, Any]:
    """What goes into metrics.json of a run that ended while it was being assembled: it has no robots and no messages.

    Args:
        name: Of the scenario.
        summary: One line on the scenario.
        world: Name of the world as the scenario gives it.
        seed: Of the run.
        state: How it ended.
        results: Of the criteria.
        smoke: Whether it was the smoke variant.
    """
    return {
        "scenario": name,
        "summary": summary,
        "world": world,
        "seed": seed,
        "smoke": smoke,
        "state": state,
        "success": False,
        "error": None,
        "criteria": {result.name: criterion_to_dict(result) for result in results},
        "sim_time": 0.0,
        "wall_time": 0.0,
        "real_time_factor": None,
        "messages": 0,
        "frames_missed": 0,
        "recorded": 0,
        "robots": {},
        "rejected": [],
        "events": [],
        **cost_tables(None, 0.0),
        "provenance": collect_provenance("none").to_dict(),
    }


def _collaborative_safety(run: Run, robot: str) -> dict[str, Any]:
    details = run.evaluation.separation_over_time(robot)
    return {} if details is None else {"people": details}


def criterion_to_dict(result: CriterionResult) -> dict[str, Any]:
    """A verdict as plain data."""
    return {
        "expression": result.expression,
        "passed": result.passed,
        "values": dict(result.values),
        "reason": result.reason,
    }


def cost_tables(graph: Graph | None, wall_time: float) -> dict[str, Any]:
    """What nodes and topics cost."""
    if graph is None:
        return {"nodes": [], "offloads": [], "topics": [], "inputs": {}}
    return {
        "nodes": [
            {
                "name": node.name,
                "class_name": node.class_name,
                "callback_time": node.callback_time,
                "callback_share": node.callback_time / wall_time if wall_time > 0.0 else 0.0,
                "health": node.health,
                "health_text": node.health_text,
                "callbacks": [
                    {
                        "trigger": callback.trigger,
                        "count": callback.count,
                        "mean": callback.total / callback.count,
                        "max": callback.max,
                        "deadline": callback.deadline,
                    }
                    for callback in node.callbacks
                ],
            }
            for node in graph.nodes
        ],
        "offloads": [_offload_to_dict(offload) for offload in graph.offloads],
        "topics": [
            {
                "name": topic.name,
                "type": topic.type,
                "count": topic.count,
                "rate": topic.rate,
                "publishers": list(topic.publishers),
                "subscribers": list(topic.subscribers),
            }
            for topic in graph.topics
        ],
        "inputs": dict(graph.inputs),
    }


def _frame_counts_to_dict(counts: Any) -> dict[str, int]:
    names = ("due", "delivered", "outage", "fault", "under_way")
    return {name: getattr(counts, name) for name in names}


def _offload_to_dict(offload: Any) -> dict[str, Any]:
    names = ("node", "function", "count", "mean", "max", "latency", "late_count")
    return {name: getattr(offload, name) for name in names}


def flatten_metrics(document: Mapping[str, Any]) -> dict[str, MetricValue]:
    """All metrics of a document under the names that criteria use."""
    robots = document.get("robots", {})
    flat: dict[str, MetricValue] = {
        key: value for key, value in document.items() if value is None or isinstance(value, bool | int | float)
    }
    for name, robot in robots.items():
        flat.update({f"{name}.{key}": value for key, value in robot["metrics"].items()})
    return flat


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run of a scenario.

    Attributes:
        scenario: Its name.
        seed: That it ran with.
        state: "done", "interrupted" or "failed".
        success: Whether it ran to its end and every criterion held.
        error: What stopped it, if anything did.
        metrics: What metrics.json says.
        folder: Where everything lies; None if nothing was to be kept.
        files: What lies there, by kind: "report", "video", "recording", "metrics", "scenario", "error".
        notes: What else to tell, e.g. why there is no video.
    """

    scenario: str
    seed: int
    state: RunState
    success: bool
    error: str | None
    metrics: dict[str, Any]
    folder: Path | None = None
    files: dict[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: done and the criteria held; 1: not."""
        return 0 if self.success else 1

    @property
    def failure_reason(self) -> str:
        """Why it is no success, in one line; "" if it is one."""
        if self.success:
            return ""
        if self.error:
            return self.error
        if self.state != "done":
            return self.state
        failed = [name for name, result in self.metrics["criteria"].items() if not result["passed"]]
        return "not held: " + ", ".join(f"{name} ({self.metrics['criteria'][name]['expression']})" for name in failed)


def write_script_report(run: Run, folder: RunFolder) -> Path:
    """Metrics and report of a run that was made from Python, not from a scenario."""
    from roboyard.scenarios.report import write_report

    folder.write_json(folder.metrics, build_metrics_document(run))
    return write_report(folder, world=run.simulation)
