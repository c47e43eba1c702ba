"""Metrics of tasks: which were reached, and how often a plan failed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Self

from roboyard.evaluation.collector import MessageHandler, Metric, MetricCollector, MetricValue, RobotContext
from roboyard.evaluation.plugin import RunPlugin
from roboyard.evaluation.topics import OBJECT_POSES_TOPIC

_TASK_PLACE_TOLERANCE = 0.2
"""An object that was brought to its target is no farther from it [m]."""
_MIN_STANDSTILL_TIME_NS = 500_000_000
_MIN_DISPLACEMENT = 1e-3
"""A smaller displacement is no motion [m]."""


class TaskMetrics(MetricCollector):
    """Judges the tasks of a task executor by its events and the true positions of objects.

    Args:
        topic: Of the events (std_msgs/String with JSON).
    """

    metrics = (
        Metric(
            "tasks_over",
            "boolean",
            "Whether all [tasks](../howto/plan-tasks.md) are reached or known to be impossible; no value, as of the "
            "next eight, without tasks.",
            "higher",
        ),
        Metric("tasks_done", "count", "Tasks that were reached.", "higher"),
        Metric("tasks_impossible", "count", "Tasks that were given up as impossible."),
        Metric(
            "tasks_incorrect",
            "count",
            "Tasks that were reported as reached though an object is not truly where the file says that it "
            "should be at the end "
            "(nor was until it was removed from the world), or given up though they are possible by the file and the "
            "objects are there, or reached though they are impossible.",
            "lower",
        ),
        Metric("task_failures", "count", "Actions of plans that failed.", "lower"),
        Metric("plan_invalidations", "count", "Plans that a change of the world made invalid.", "lower"),
        Metric("task_replans", "count", "Plans after the first one of each task.", "lower"),
        Metric(
            "unrecovered_failures",
            "count",
            "Failed actions of tasks that did not end correctly afterwards.",
            "lower",
        ),
        Metric(
            "failures_recovered",
            "ratio",
            "Share of the failed actions whose task ended correctly; no value without failures.",
            "higher",
        ),
    )
    position = 180

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(f"{robot.namespace}/tasks")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._n_tasks = 0
        self._outcomes: dict[int, tuple[str, bool]] = {}
        self._object_positions: dict[str, tuple[float, float, float]] = {}
        self._last_motion_ns: dict[str, int] = {}
        self._removed_positions: dict[str, tuple[float, float, float]] = {}
        self._failures_by_task: dict[int, int] = {}
        self._plans_by_task: dict[int, int] = {}
        self._plan_invalidations = 0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of events and of true object poses."""
        return {self._topic: self._on_task, OBJECT_POSES_TOPIC: self._on_objects}

    def _on_objects(self, message: Any, time_ns: int) -> None:
        translations = ((transform.child_frame_id, transform.transform.translation) for transform in message.transforms)
        previous_positions, self._object_positions = (
            self._object_positions,
            {str(name): (float(position.x), float(position.y), float(position.z)) for name, position in translations},
        )
        for name, position in self._object_positions.items():
            self._removed_positions.pop(name, None)
            if name not in previous_positions or math.dist(position, previous_positions[name]) > _MIN_DISPLACEMENT:
                self._last_motion_ns[name] = time_ns
        for name in previous_positions.keys() - self._object_positions.keys():
            if time_ns - self._last_motion_ns[name] >= _MIN_STANDSTILL_TIME_NS:
                self._removed_positions[name] = previous_positions[name]

    def _on_task(self, message: Any, time_ns: int) -> None:
        data = json.loads(message.data)
        task, event = data["task"], data["kind"]
        self._n_tasks = data["n_tasks"]
        if event == "planned":
            self._plans_by_task[task] = self._plans_by_task.get(task, 0) + 1
        elif event == "failed":
            self._failures_by_task[task] = self._failures_by_task.get(task, 0) + 1
        elif event == "invalidated":
            self._plan_invalidations += 1
        elif event in ("reached", "infeasible"):
            self._outcomes[task] = (
                event,
                self._is_outcome_correct(event, data["expected_feasible"], data.get("expected_positions", {})),
            )

    def _is_outcome_correct(self, outcome: str, possible: bool, target_positions: Mapping[str, list[float]]) -> bool:
        if outcome == "infeasible":
            return not (possible and all(name in self._object_positions for name in target_positions))
        positions = self._object_positions | self._removed_positions
        return possible and all(
            name in positions and math.dist(positions[name], target) <= _TASK_PLACE_TOLERANCE
            for name, target in target_positions.items()
        )

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none without tasks."""
        if not self._n_tasks:
            return {}
        correct_tasks = {task for task, (_, is_correct) in self._outcomes.items() if is_correct}
        failures = sum(self._failures_by_task.values())
        recovered = sum(count for task, count in self._failures_by_task.items() if task in correct_tasks)
        return {
            "tasks_over": len(self._outcomes) == self._n_tasks,
            "tasks_done": sum(outcome == "reached" for outcome, _ in self._outcomes.values()),
            "tasks_impossible": sum(outcome == "infeasible" for outcome, _ in self._outcomes.values()),
            "tasks_incorrect": len(self._outcomes) - len(correct_tasks),
            "task_failures": failures,
            "plan_invalidations": self._plan_invalidations,
            "task_replans": sum(count - 1 for count in self._plans_by_task.values()),
            "unrecovered_failures": failures - recovered,
            "failures_recovered": recovered / failures if failures else None,
        }


PLUGIN = RunPlugin("task_planning", (TaskMetrics,))
