"""The feed gives messages, times and people to its collector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.harness.collectors import CollectorFeed

from roboyard.evaluation.collector import MessageHandler, Metric, MetricCollector, MetricValue, RobotContext
from roboyard.geometry import SE3


class Log(MetricCollector):
    """Keeps what it takes."""

    metrics = (Metric("n_messages", "count", "Messages so far."), Metric("end", "s", "End of the run."))

    @classmethod
    def create(cls, robot: RobotContext) -> Log:
        return cls()

    def __init__(self) -> None:
        self.rows: list[tuple[str, Any, int]] = []
        self.end: float | None = None

    def _handler(self, topic: str) -> MessageHandler:
        return lambda message, time_ns: self.rows.append((topic, message, time_ns))

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        return {topic: self._handler(topic) for topic in ("/number", "/truth/objects", "/truth/places")}

    def on_person_added(self, name: str) -> Mapping[str, MessageHandler]:
        return {f"/{name}/state": self._handler(f"/{name}/state")}

    def values(self) -> dict[str, MetricValue | None]:
        return {"n_messages": len(self.rows), "end": self.end}

    def finish(self, time_ns: int) -> None:
        self.end = time_ns * 1e-9


def test_feed_sends_at_its_clock_and_to_people() -> None:
    feed = CollectorFeed(Log(), people=["anna"])
    feed.send("/number", 1)
    feed.send("/number", 2, time=0.5)
    feed.send("/anna/state", "idle")
    assert feed.collector.rows == [("/number", 1, 0), ("/number", 2, 500_000_000), ("/anna/state", "idle", 500_000_000)]
    assert feed["n_messages"] == 3
    assert feed.finish(2.0) == {"n_messages": 3, "end": 2.0}
    with pytest.raises(KeyError):
        feed.send("/other", 1)


def test_feed_sends_objects_and_marks_by_name() -> None:
    feed = CollectorFeed(Log())
    feed.send_objects({"cup": (1.0, 2.0, 3.0)}, time=1.0)
    feed.send_marks({"place": SE3.from_xyz_rpy((0.5, 0.0, 0.0), (0.0, 0.0, 1.0))})
    (_, objects, _), (_, marks, time_ns) = feed.collector.rows
    assert [(t.child_frame_id, t.transform.translation.z) for t in objects.transforms] == [("cup", 3.0)]
    assert [(t.child_frame_id, t.transform.translation.x) for t in marks.transforms] == [("place", 0.5)]
    assert time_ns == 1_000_000_000
