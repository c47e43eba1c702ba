"""How tasks went that a robot pursued, and what became of failures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.thing_truth import MOVING

_NEAR = 0.2
"""A thing that has been brought somewhere is as near to where it belongs [m]."""
_AT_REST_NS = 500_000_000
_MOVED = 1e-3
"""Less is no motion [m]."""


class TasksDone(Collector):
    """What a goal mission tells of its tasks.

    ``tasks_over``: whether all are; ``tasks_done``: how many were reached; ``tasks_impossible``: how many were given up
    as impossible.  ``tasks_wrong``: reached though a thing is truly not where the file says that it ends (nor lay there
    until somebody took it out of the world), or given up though the file says that it is possible and all such things
    are there, or the other way round;
    ``task_failures``: actions that failed; ``task_changes``: plans that the world made void; ``task_replans``: plans
    after the first of a task; ``failures_lost``: failed actions whose task did not end rightly all the same;
    ``failures_recovered``: the share of the others.
    """

    names = (
        "tasks_over", "tasks_done", "tasks_impossible", "tasks_wrong", "task_failures", "task_changes", "task_replans",
        "failures_lost", "failures_recovered",
    )  # fmt: skip

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._of = 0
        self._ends: dict[int, tuple[str, bool]] = {}
        self._things: dict[str, tuple[float, float, float]] = {}
        self._since: dict[str, int] = {}  # when each moved last
        self._taken: dict[str, tuple[float, float, float]] = {}  # where things lay that are gone
        self._failed: dict[int, int] = {}
        self._plans: dict[int, int] = {}
        self._changes = 0

    def handlers(self) -> Mapping[str, Handler]:
        """What it tells, and where things truly are."""
        return {self._topic: self._on_task, MOVING: self._on_things}

    def _on_things(self, message: Any, time_ns: int) -> None:
        places = ((one.child_frame_id, one.transform.translation) for one in message.transforms)
        before, self._things = self._things, {str(name): (float(at.x), float(at.y), float(at.z)) for name, at in places}
        for name, at in self._things.items():
            self._taken.pop(name, None)
            if name not in before or math.dist(at, before[name]) > _MOVED:
                self._since[name] = time_ns
        for name in before.keys() - self._things.keys():
            if time_ns - self._since[name] >= _AT_REST_NS:
                self._taken[name] = before[name]

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
            self._ends[task] = (what, self._is_right(what, said["possible"], said.get("ends", {})))

    def _is_right(self, what: str, possible: bool, ends: Mapping[str, list[float]]) -> bool:
        if what == "impossible":
            return not (possible and all(name in self._things for name in ends))
        there = self._things | self._taken
        return possible and all(name in there and math.dist(there[name], at) <= _NEAR for name, at in ends.items())

    def result(self) -> dict[str, Value]:
        """The numbers; None where nobody pursues tasks."""
        if not self._of:
            return dict.fromkeys(self.names)
        right = {task for task, (_, is_right) in self._ends.items() if is_right}
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
            "failures_lost": failures - mended,
            "failures_recovered": mended / failures if failures else None,
        }
