"""Collectors of metrics, and the messages that a test lets them take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from roboyard.evaluation.plugin import MetricCollector, MetricValue
from roboyard.evaluation.topics import OBJECT_POSES_TOPIC, PLACE_POSES_TOPIC
from roboyard.geometry import SE3
from roboyard.messages.convert import transforms_to_msg

C = TypeVar("C", bound=MetricCollector)


class CollectorFeed(Generic[C]):
    """A collector, and the messages of a run that there is not.

    Args:
        collector: Takes the messages.
        people: Names of the people that it meets.

    Attributes:
        collector: The collector.
        time: When the next message is published, unless its call says so [s].
    """

    def __init__(self, collector: C, *, people: Iterable[str] = ()) -> None:
        self.collector = collector
        self.time = 0.0
        self._handlers = dict(collector.subscriptions())
        for name in people:
            self._handlers.update(collector.on_person_added(name))

    def send(self, topic: str, message: Any, time: float | None = None) -> None:
        """Let the collector take a message of a topic that it listens to; the clock stands there then."""
        if time is not None:
            self.time = time
        self._handlers[topic](message, round(self.time * 1e9))

    def send_objects(self, poses: Mapping[str, SE3 | Sequence[float]], time: float | None = None) -> None:
        """Publish where objects truly are: a pose, or the point of an upright one."""
        self.send(OBJECT_POSES_TOPIC, _transforms(poses), time)

    def send_marks(self, poses: Mapping[str, SE3 | Sequence[float]], time: float | None = None) -> None:
        """Publish where marks truly are."""
        self.send(PLACE_POSES_TOPIC, _transforms(poses), time)

    def finish(self, time: float | None = None) -> dict[str, MetricValue]:
        """End the run, and return the metrics."""
        if time is not None:
            self.time = time
        self.collector.finish(round(self.time * 1e9))
        return self.result()

    def result(self) -> dict[str, MetricValue]:
        """The metrics so far."""
        return dict(self.collector.values())

    def __getitem__(self, name: str) -> Any:
        """A metric so far."""
        return self.collector.values()[name]


def _transforms(poses: Mapping[str, SE3 | Sequence[float]]) -> Any:
    rows = (
        (pose if isinstance(pose, SE3) else SE3.from_xyz_rpy(tuple(pose)), "world", name)
        for name, pose in poses.items()
    )
    return transforms_to_msg(rows, 0)
