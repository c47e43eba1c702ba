"""How tasks went that a robot pursued, and what became of failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value


class TasksDone(Collector):
    """What a goal mission tells of its tasks.

    ``tasks_over``: whether all are; ``tasks_done``: how many were reached; ``tasks_impossible``: how many were given up
    as impossible, and ``tasks_wrong`` of those that the file says are possible, or the other way round;
    ``task_failures``: actions that failed; ``task_changes``: plans that the world made void; ``task_replans``: plans
    after the first of a task; ``failures_recovered``: the share of failed actions whose task was reached all the
    same, or is impossible as the file says.
    """

    names = (
        "tasks_over", "tasks_done", "tasks_impossible", "tasks_wrong", "task_failures", "task_changes", "task_replans",
        "failures_recovered",
    )  # fmt: skip

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._of = 0
        self._ends: dict[int, tuple[str, bool]] = {}
        self._failed: dict[int, int] = {}
        self._plans: dict[int, int] = {}
        self._changes = 0

    def handlers(self) -> Mapping[str, Handler]:
        """What it tells."""
        return {self._topic: self._on_task}

    def _on_task(self, message: Any, time_ns: int) -> None:
        said = json.loads(message.data)
        task, what = said["task"], said["what"]
        self._of = said["of"]
        if what == "plans":
            self._plans[task] = self._plans.get(task, 0) + 1
        elif what == "fails":
            self._failed[task] = self._failed.get(task, 0) + 1
        elif what == "changes":
            self._changes += 1
        elif what in ("reached", "impossible"):
            self._ends[task] = (what, said["possible"])

    def result(self) -> dict[str, Value]:
        """The numbers; None where nobody pursues tasks."""
        if not self._of:
            return dict.fromkeys(self.names)
        right = {task for task, (what, possible) in self._ends.items() if (what == "reached") == possible}
        failures = sum(self._failed.values())
        mended = sum(count for task, count in self._failed.items() if task in right)
        return {
            "tasks_over": len(self._ends) == self._of,
            "tasks_done": sum(what == "reached" for what, _ in self._ends.values()),
            "tasks_impossible": sum(what == "impossible" for what, _ in self._ends.values()),
            "tasks_wrong": len(self._ends) - len(right),
            "task_failures": failures,
            "task_changes": self._changes,
            "task_replans": sum(count - 1 for count in self._plans.values()),
            "failures_recovered": mended / failures if failures else None,
        }
