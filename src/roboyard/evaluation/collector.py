"""Metrics and their collectors: what a collector is given of a robot and of the ground truth, and what it returns."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Model
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.grids.floor_plan import FloorPlan

FootprintPolygon: TypeAlias = tuple[tuple[float, float], ...]
"""Corners of a robot's outline on the ground, seen from its base frame [m]."""

PlanarPose: TypeAlias = tuple[float, float, float]
"""x [m], y [m] and yaw [rad] of a robot's base, as samples of a path are kept."""

MetricValue: TypeAlias = float | int | bool | str
"""Value of a metric.  A metric that has no meaning in a run has no value: it is left out."""

MessageHandler: TypeAlias = Callable[[Any, int], None]
"""Takes a message and the time it was published at [ns]."""

ResourceFactory: TypeAlias = Callable[["RobotContext"], Any]
"""Makes a resource of a robot when a collector or a section needs it; None where the robot has no such resource."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The declaration of one metric; criteria, tables, the summary of a run and the reference page read it.

    Attributes:
        name: Key in metrics.json and name in criteria.
        unit: SI unit; "ratio" for a share between 0 and 1, "count", "boolean" and "text" for what has none.
        doc: One sentence that says what is measured, and when the metric has no value.
        better: Whether lower or higher values are better; "" where that depends on the task.
        summary_label: Label in the terminal's summary and on the report's tiles; "" where it is not displayed there.
    """

    name: str
    unit: str = ""
    doc: str = ""
    better: Literal["lower", "higher", ""] = ""
    summary_label: str = ""

    def format_value(self, value: MetricValue) -> str:
        """Return a value with its unit, as a person reads it: "0.0312 m"."""
        if isinstance(value, bool | str):
            return str(value).lower()
        if self.unit == "ratio":
            return f"{value:.1%}"
        text = f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        return text if self.unit in ("", "count") else f"{text} {self.unit}"


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """Something that happened to a robot at one moment of a run.

    Attributes:
        time: Simulated time [s].
        kind: What kind of event it is, in snake case, as "goal_reached".
        text: What happened, in words.
    """

    time: float
    kind: str
    text: str


class GroundTruthProvider(Protocol):
    """The true state of a simulated world; a run that is judged from its recording alone has none."""

    def floor_plan(self, height: float, resolution: float, excluded_models: Collection[str] = ()) -> FloorPlan:
        """Return the level cut of the world without its robots, as it is now.

        Args:
            height: Of the cut above the world's origin [m].
            resolution: Side of a cell [m].
            excluded_models: Names of models to leave out.

        Raises:
            RoboyardError: The plan would have too many cells.
        """

    def model_placements(self) -> Mapping[str, tuple[float, ...]]:
        """Return where the models that are no robots are now.

        Returns:
            By name of the model, positions of its movable bodies in the world one after the other, rounded to a
            centimeter [m]; an empty tuple for a model that cannot move.
        """

    def surface_voxels(
        self, min_corner: NDArray[np.float64], shape: tuple[int, int, int], resolution: float, tolerance: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the voxels that true surfaces touch within a tolerance, and those that they cross.

        Args:
            min_corner: (3,) lowest corner of the box of voxels, in the world [m].
            shape: Voxels along x, y and z.
            resolution: Edge of a voxel [m].
            tolerance: Distance to a surface up to which a voxel touches it [m].
        """

    def link_pose(self, robot: str, link: str) -> SE3:
        """Return T_world_link.  Raises UnknownNameError where the robot has no such link."""

    def joint_state(self, robot: str, joints: Sequence[str]) -> tuple[Array, Array]:
        """Return positions [rad or m] and velocities [rad/s or m/s] of joints, (n,) each."""

    def depth_error(self, robot: str) -> tuple[float, float, float] | None:
        """Return what the robot's first depth camera measures wrongly at this instant.

        Returns:
            Median error of depth as measured and of depth without the camera's own noise [m], and the share of the
            pixels in range that have a depth; None without a depth camera, or if no image of the run was rendered.
        """


class MetricCollector(ABC):
    """Listens to some topics of one robot and computes metrics.

    A collector never publishes.  One instance belongs to one robot of one run.

    Attributes:
        metrics: Declarations of the metrics it computes.
        overrides: Names of metrics that another collector declares and that this one replaces where it has a value.
        position: Order of collectors: those with lower numbers come first, in metrics.json and in tables.
        truth_topics: Topics whose messages are compared by their stamps, each with the topic of the ground truth.
    """

    metrics: ClassVar[tuple[Metric, ...]]
    overrides: ClassVar[tuple[str, ...]] = ()
    position: ClassVar[int] = 1000
    truth_topics: Mapping[str, str] = {}

    @classmethod
    @abstractmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return the collector of a robot; None where the robot has nothing that could be measured."""

    @classmethod
    def metric_names(cls) -> tuple[str, ...]:
        """Return the names of all metrics that it may give."""
        return (*(metric.name for metric in cls.metrics), *cls.overrides)

    @abstractmethod
    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return absolute names of the topics it listens to, with what takes their messages."""

    def on_robot_added(self, other: RobotContext) -> Mapping[str, MessageHandler]:
        """Return further subscriptions for another robot of the run, present already or added later."""
        return {}

    def on_person_added(self, name: str) -> Mapping[str, MessageHandler]:
        """Return further subscriptions for a person of the run, present already or added later."""
        return {}

    def finish(self, time_ns: int) -> None:  # noqa: B027 - most have nothing to conclude
        """Conclude: the run ended at this time [ns]."""

    @abstractmethod
    def values(self) -> Mapping[str, MetricValue | None]:
        """Return the metrics so far; one that has no meaning in this run is left out, or None."""

    def details(self) -> Mapping[str, Any]:
        """Return what metrics.json holds of the robot beside its metrics, as plain data by key."""
        return {}

    def events(self) -> Sequence[TimelineEvent]:
        """Return what happened to the robot so far, in any order; `save_state` must keep what they are made from."""
        return ()

    def save_state(self) -> dict[str, Any]:
        """Return all it knows as plain data; a class with other attributes overrides this and `load_state`."""
        return copy.deepcopy(vars(self))

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        vars(self).update(copy.deepcopy(state))


@dataclass(frozen=True, eq=False)
class RobotContext:
    """What collectors and report sections know of one robot.

    Attributes:
        name: In the run.
        topics: Where its messages are, by absolute names.
        model: Its description; None where its files are gone and only a recording is left.
        footprint: Its outline on the ground [m]; empty: unknown.
        lidar_height: Height of its lowest lidar above the world's origin [m].
        truth: The ground truth; None where only a recording is left.
        resources: What makes further resources, by name; those of plug-ins and of the run.
    """

    name: str
    topics: RobotTopics
    model: Model | None = None
    footprint: FootprintPolygon = ()
    lidar_height: float = 0.25
    truth: GroundTruthProvider | None = None
    resources: Mapping[str, ResourceFactory] = field(default_factory=dict)
    _created: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def namespace(self) -> str:
        """Namespace of its topics: "" or "/name"."""
        return self.topics.namespace

    def resource(self, name: str) -> Any:
        """Return a resource, made at the first call; None where no plug-in offers it for this robot."""
        if name not in self._created:
            factory = self.resources.get(name)
            self._created[name] = None if factory is None else factory(self)
        return self._created[name]
