"""metrics.json: all numbers of a run in one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from roboyard.bus import Graph
from roboyard.scenarios.expressions import Verdict
from roboyard.scenarios.metrics import Value
from roboyard.scenarios.provenance import provenance

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run

State = Literal["done", "interrupted", "failed", "killed"]
"""How a run ended: it ran to its end, somebody stopped it, a node failed, or its process was killed."""


def totals(run: Run) -> dict[str, Value]:
    """The metrics of the run as a whole."""
    sim, wall = run.time, run.wall_seconds
    return {
        "sim_seconds": sim,
        "wall_seconds": wall,
        "real_time_factor": (sim - run.start_ns * 1e-9) / wall if wall > 0.0 else None,
        "messages": run.evaluation.messages,
        "frames_missed": sum(f.missed for cameras in run.simulation_node.frames().values() for f in cameras.values()),
    }


def make_document(
    run: Run,
    *,
    summary: str = "",
    world: str = "",
    state: State = "done",
    error: str | None = None,
    verdicts: Sequence[Verdict] = (),
    smoke: bool = False,
) -> dict[str, Any]:
    """What goes into metrics.json; see docs/reference/metrics.md for every key.

    Args:
        run: Finished.
        summary: One line on the scenario.
        world: Name of the world as the scenario gives it.
        state: How it ended.
        error: What stopped it.
        verdicts: Of the criteria.
        smoke: Whether it was the smoke variant.
    """
    by_robot = run.evaluation.by_robot()
    main = next(iter(by_robot.values()), {})
    frames = run.simulation_node.frames()
    success = state == "done" and all(verdict.passed for verdict in verdicts)
    return {
        "scenario": run.name,
        "summary": summary,
        "world": world or run.world.name,
        "seed": run.seed,
        "smoke": smoke,
        "state": state,
        "success": success,
        "error": error,
        "criteria": {verdict.name: criterion(verdict) for verdict in verdicts},
        **totals(run),
        "recorded": run.recorded,
        **main,
        "robots": {
            name: {
                "model": robot.package.name,
                "namespace": robot.namespace,
                "topics": dict(robot.package.file.topics),
                "findings": list(robot.package.findings),
                "metrics": by_robot[name],
                **({"approaches": approaches} if (approaches := run.evaluation.approaches(name)) else {}),
                **({} if robot.legged is None else {"motors": robot.legged.motors.to_dict()}),
                **_beside_people(run, name),
                "cameras": {camera: _frames(found) for camera, found in frames.get(name, {}).items()},
            }
            for name, robot in run.known_robots.items()
        },
        "rejected": run.evaluation.rejected(),
        "events": list(run.events),
        **costs(run.graph, run.wall_seconds),
        "provenance": provenance(run.simulation.looks.renderer if any(frames.values()) else "none").to_dict(),
    }


def make_document_before_start(
    *,
    name: str,
    summary: str,
    world: str,
    seed: int,
    state: State,
    results: Sequence[Verdict] = (),
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
        "criteria": {result.name: criterion(result) for result in results},
        "sim_seconds": 0.0,
        "wall_seconds": 0.0,
        "real_time_factor": None,
        "messages": 0,
        "frames_missed": 0,
        "recorded": 0,
        "robots": {},
        "rejected": [],
        "events": [],
        **costs(None, 0.0),
        "provenance": provenance("none").to_dict(),
    }


def _beside_people(run: Run, robot: str) -> dict[str, Any]:
    story = run.evaluation.beside_people(robot)
    return {} if story is None else {"people": story}


def criterion(result: Verdict) -> dict[str, Any]:
    """A verdict as plain data."""
    return {
        "expression": result.expression,
        "passed": result.passed,
        "values": dict(result.values),
        "reason": result.reason,
    }


def costs(graph: Graph | None, wall: float) -> dict[str, Any]:
    """What nodes and topics cost."""
    if graph is None:
        return {"nodes": [], "offloads": [], "topics": [], "inputs": {}}
    return {
        "nodes": [
            {
                "name": node.name,
                "class_name": node.class_name,
                "callback_time": node.callback_time,
                "callback_share": node.callback_time / wall if wall > 0.0 else 0.0,
                "health": node.health,
                "health_text": node.health_text,
                "callbacks": [
                    {
                        "trigger": call.trigger,
                        "count": call.count,
                        "mean": call.total / call.count,
                        "max": call.max,
                        "deadline": call.deadline,
                    }
                    for call in node.callbacks
                ],
            }
            for node in graph.nodes
        ],
        "offloads": [_plain(job) for job in graph.offloads],
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


def _frames(frames: Any) -> dict[str, int]:
    names = ("due", "delivered", "outage", "fault", "under_way")
    return {name: getattr(frames, name) for name in names}


def _plain(job: Any) -> dict[str, Any]:
    names = ("node", "function", "count", "mean", "max", "latency", "late_count")
    return {name: getattr(job, name) for name in names}


def metrics_of(document: Mapping[str, Any]) -> dict[str, Value]:
    """All metrics of a document under the names that criteria use."""
    robots = document.get("robots", {})
    flat: dict[str, Value] = {
        key: value for key, value in document.items() if value is None or isinstance(value, bool | int | float)
    }
    for name, robot in robots.items():
        flat.update({f"{name}.{key}": value for key, value in robot["metrics"].items()})
    return flat
