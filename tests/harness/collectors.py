"""Collectors of metrics, and the messages that a test lets them take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from roboyard.evaluation.collector import MetricCollector, MetricValue
from roboyard.evaluation.topics import OBJECT_POSES_TOPIC, PLACE_POSES_TOPIC
from roboyard.geometry import SE3
from roboyard.grids.floor_plan import FloorPlan
from roboyard.messages.convert import transforms_to_msg

C = TypeVar("C", bound=MetricCollector)


class KnownWorld:
    """A ground truth of which a test knows the floor plan and where models are.

    Args:
        floor_plan: Gives the plan by the side of a cell [m] and the names of models to leave out.
        placements: Positions of the models by name [m]; a test may change them while a run goes on.
    """

    def __init__(
        self,
        floor_plan: Callable[[float, Collection[str]], FloorPlan],
        placements: Mapping[str, tuple[float, ...]] | None = None,
    ) -> None:
        self._floor_plan = floor_plan
        self.placements = dict(placements or {})

    def floor_plan(self, height: float, resolution: float, excluded_models: Collection[str] = ()) -> FloorPlan:
        return self._floor_plan(resolution, excluded_models)

    def model_placements(self) -> dict[str, tuple[float, ...]]:
        return dict(self.placements)

    def depth_error(self, robot: str) -> None:
        return None

    def surface_voxels(self, *args: object) -> NoReturn:
        raise AssertionError("nothing here asks for surfaces")

    def link_pose(self, robot: str, link: str) -> NoReturn:
        raise AssertionError("nothing here asks for links")

    def joint_state(self, robot: str, joints: Sequence[str]) -> NoReturn:
        raise AssertionError("nothing here asks for joints")


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

    def finish(self, time: float | None = None) -> dict[str, MetricValue | None]:
        """End the run, and return the metrics."""
        if time is not None:
            self.time = time
        self.collector.finish(round(self.time * 1e9))
        return self.result()

    def result(self) -> dict[str, MetricValue | None]:
        """Return the metrics so far; None for those without a value."""
        return {**dict.fromkeys(self.collector.metric_names()), **self.collector.values()}

    def __getitem__(self, name: str) -> Any:
        """Return a metric so far; None without a value."""
        return self.result()[name]


def _transforms(poses: Mapping[str, SE3 | Sequence[float]]) -> Any:
    rows = (
        (pose if isinstance(pose, SE3) else SE3.from_xyz_rpy(tuple(pose)), "world", name)
        for name, pose in poses.items()
    )
    return transforms_to_msg(rows, 0)
