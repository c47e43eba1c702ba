"""Metrics of behavior trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from roboyard.evaluation.collector import MessageHandler, Metric, MetricCollector, MetricValue, RobotContext
from roboyard.evaluation.plugin import RunPlugin


class BehaviorTreeMetrics(MetricCollector):
    """Reads the status of the root of the behavior tree that a tree executor runs.

    Args:
        topic: Of the status (std_msgs/String).
    """

    metrics = (
        Metric(
            "tree_status",
            "text",
            "Status of the root of the robot's [behavior tree](../howto/run-a-behavior-tree.md); no value, as of "
            "the next two, without a tree.",
        ),
        Metric("tree_done", "boolean", "Whether the tree has succeeded.", "higher"),
        Metric("tree_time", "s", "Time from the tree's first tick to its end; no value while it runs.", "lower"),
    )
    position = 190

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(f"{robot.namespace}/mission/status")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._status: str | None = None
        self._start_ns = self._end_ns = 0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topic of the status."""
        return {self._topic: self._on_status}

    def _on_status(self, message: Any, time_ns: int) -> None:
        if self._status is None:
            self._start_ns = time_ns
        self._status = str(message.data)
        self._end_ns = time_ns

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none without a tree."""
        status = self._status
        if status is None:
            return {}
        duration = None if status == "RUNNING" else (self._end_ns - self._start_ns) * 1e-9
        return {"tree_status": status, "tree_done": status == "SUCCESS", "tree_time": duration}


PLUGIN = RunPlugin("behavior", (BehaviorTreeMetrics,))
