"""How a behaviour tree went that was a robot's mission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value


class TreeDone(Collector):
    """What a tree mission tells of its root.

    ``tree_status``: where it stands; ``tree_done``: whether it has succeeded; ``tree_seconds``: from its first tick to
    its end [s].
    """

    names = ("tree_status", "tree_done", "tree_seconds")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._status: str | None = None
        self._begun_ns = self._ended_ns = 0

    def handlers(self) -> Mapping[str, Handler]:
        """What it tells."""
        return {self._topic: self._on_status}

    def _on_status(self, message: Any, time_ns: int) -> None:
        if self._status is None:
            self._begun_ns = time_ns
        self._status = str(message.data)
        self._ended_ns = time_ns

    def result(self) -> dict[str, Value]:
        """The numbers; None where there is no tree, and of time while it runs."""
        status = self._status
        if status is None:
            return dict.fromkeys(self.names)
        seconds = None if status == "RUNNING" else (self._ended_ns - self._begun_ns) * 1e-9
        return {"tree_status": status, "tree_done": status == "SUCCESS", "tree_seconds": seconds}
