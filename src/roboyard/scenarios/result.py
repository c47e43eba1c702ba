"""Result of a run: its metrics document (metrics.json) and whether it succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from roboyard.bus import Graph
from roboyard.evaluation.collector import MetricValue
from roboyard.evaluation.plugin import RUN_METRICS
from roboyard.scenarios.criteria import CriterionResult
from roboyard.scenarios.evaluator import name_metrics
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.run_folder import RunFolder

RunState = Literal["done", "interrupted", "failed", "killed"]
"""How a run ended: it ran to its end, somebody stopped it, a node failed, or its process was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioHeader:
    """What metrics.json states about the scenario of a run.

    Attributes:
        name: Name of the scenario or of the run.
        summary: One line on the scenario.
        world: Name of the world as the scenario gives it.
        seed: Seed of every random generator.
        is_smoke: Whether this was the smoke variant.
    """

    name: str
    summary: str = ""
    world: str = ""
    seed: int = 0
    is_smoke: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasurements:
    """What was measured in a run: from the live run, or from its recording.

    Attributes:
        totals: Metrics of the run as a whole (`RUN_METRICS`).
        n_recorded: Number of recorded messages.
        robots: The entry of each robot in metrics.json; its metrics stand under "metrics".
        rejected: Messages that no metric was computed from, a row for each topic and reason.
        events: Faults that started and finished, objects that were spawned and removed.
        costs: Tables of nodes, offloaded work, topics and external inputs (`cost_tables`).
        provenance: Versions, hashes, machine.
    """

    totals: Mapping[str, MetricValue]
    n_recorded: int = 0
    robots: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rejected: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Mapping[str, Any]] = ()
    costs: Mapping[str, Any]
    provenance: Mapping[str, Any]

    @classmethod
    def before_start(cls) -> RunMeasurements:
        """Measurements of a run that ended while it was being built: it has no robots and no messages."""
        totals: dict[str, MetricValue] = {"sim_time": 0.0, "wall_time": 0.0, "messages": 0, "frames_missed": 0}
        return cls(totals=totals, costs=cost_tables(None, 0.0), provenance=collect_provenance("none").to_dict())


def build_metrics_document(
    header: ScenarioHeader,
    measurements: RunMeasurements,
    *,
    state: RunState = "done",
    error: str | None = None,
    results: Sequence[CriterionResult] = (),
) -> dict[str, Any]:
    """Build the content of metrics.json; docs/reference/metrics.md describes every key.

    Args:
        header: About the scenario.
        measurements: What was measured.
        state: How the run ended.
        error: What stopped it.
        results: Results of the criteria.
    """
    first_robot: Mapping[str, Any] = next(iter(measurements.robots.values()), {"metrics": {}})
    return {
        "scenario": header.name,
        "summary": header.summary,
        "world": header.world,
        "seed": header.seed,
        "smoke": header.is_smoke,
        "state": state,
        "success": state == "done" and all(result.passed for result in results),
        "error": error,
        "criteria": {result.name: criterion_to_dict(result) for result in results},
        **measurements.totals,
        "recorded": measurements.n_recorded,
        **first_robot["metrics"],
        "robots": {name: dict(robot) for name, robot in measurements.robots.items()},
        "rejected": list(measurements.rejected),
        "events": list(measurements.events),
        **measurements.costs,
        "provenance": dict(measurements.provenance),
    }


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


def frame_counts_to_dict(counts: Any) -> dict[str, int]:
    """Counts of a camera's frames as plain data."""
    names = ("requested", "delivered", "outage", "fault", "in_flight")
    return {name: getattr(counts, name) for name in names}


def _offload_to_dict(offload: Any) -> dict[str, Any]:
    names = ("node", "function", "count", "mean", "max", "latency", "late_count")
    return {name: getattr(offload, name) for name in names}


def flatten_metrics(document: Mapping[str, Any]) -> dict[str, MetricValue]:
    """Return the metrics of metrics.json by the names that criteria use; texts by their full names only."""
    totals = {metric.name: document[metric.name] for metric in RUN_METRICS if metric.name in document}
    robots = {name: robot["metrics"] for name, robot in document.get("robots", {}).items()}
    named = name_metrics(totals, robots)
    return {name: value for name, value in named.items() if "." in name or not isinstance(value, str)}


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
        notes: Remarks for the user, e.g. why there is no video.
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

    @classmethod
    def from_document(
        cls, document: dict[str, Any], folder: RunFolder | None = None, notes: tuple[str, ...] = ()
    ) -> RunResult:
        """Make the result of a run from its metrics document and its folder."""
        return cls(
            document["scenario"], document["seed"], document["state"], document["success"], document["error"], document,
            None if folder is None else folder.path, {} if folder is None else folder.files(), notes,
        )  # fmt: skip
