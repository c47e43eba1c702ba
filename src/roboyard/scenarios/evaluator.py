"""All metric collectors of a run, fed from the bus or from a recording."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from roboyard.behavior.evaluation import BehaviorTreeMetrics, TaskMetrics, WorkMetrics
from roboyard.bus import Topic
from roboyard.errors import RoboyardError
from roboyard.evaluation.contacts import ContactMetrics
from roboyard.evaluation.message_checks import MessageChecker
from roboyard.evaluation.plugin import (
    DepthErrorProvider,
    FloorPlanProvider,
    FootprintPolygon,
    MessageHandler,
    MetricCollector,
    MetricValue,
    SurfaceVoxelProvider,
)
from roboyard.evaluation.topics import RobotTopics
from roboyard.localization.evaluation import LocalizationMetrics, OdometryMetrics
from roboyard.manipulation.evaluation.motion import ArmGoalMetrics, JointJogMetrics
from roboyard.manipulation.evaluation.pick_place import FaultRecoveryMetrics, PickPlaceMetrics
from roboyard.mapping.evaluation.metrics import OccupancyMapMetrics, OctreeMapMetrics
from roboyard.navigation.evaluation.exploration import ExplorationMetrics
from roboyard.navigation.evaluation.homing import HomingMetrics
from roboyard.navigation.evaluation.navigation import NavigationMetrics
from roboyard.safety.evaluation import ArmGroundTruth, CollaborativeSafetyMetrics
from roboyard.simulation.evaluation import DepthCameraMetrics, MotionMetrics, SeparationMetrics
from roboyard.walking.evaluation.gait import GaitMetrics, LegModel
from roboyard.walking.evaluation.step_plan import StepPlanMetrics

COLLECTORS: list[
    Callable[
        [
            RobotTopics,
            FloorPlanProvider | None,
            FootprintPolygon,
            SurfaceVoxelProvider | None,
            LegModel | None,
            DepthErrorProvider | None,
            ArmGroundTruth | None,
        ],
        MetricCollector,
    ]
] = [
    lambda topics, *_: MotionMetrics(topics.truth),
    lambda topics, *_: OdometryMetrics(topics.truth, topics.odometry),
    lambda topics, *_: OdometryMetrics(topics.truth, topics.filtered_odometry, "filtered"),
    lambda topics, *_: LocalizationMetrics(topics.truth, topics.localization),
    lambda topics, plan, *_: OccupancyMapMetrics(topics.truth, topics.map, topics.path, plan),
    lambda topics, _, __, surfaces, *___: OctreeMapMetrics(topics.octree, surfaces),
    lambda *given: DepthCameraMetrics(given[-2]),
    lambda topics, plan, outline, *_: NavigationMetrics(
        topics.truth, topics.navigation, plan, outline, topics.namespace
    ),
    lambda topics, plan, *_: ExplorationMetrics(topics.truth, topics.exploration, topics.map, plan),
    lambda topics, *_: ContactMetrics(topics.contacts),
    lambda topics, _, outline, *__: SeparationMetrics(topics.truth, outline),
    lambda topics, *given: CollaborativeSafetyMetrics(topics.namespace, given[-1]),
    lambda topics, *_: HomingMetrics(topics.truth, topics.namespace),
    lambda topics, *given: ArmGoalMetrics(topics.namespace, given[-1]),
    lambda topics, *given: JointJogMetrics(topics.jog, topics.namespace, given[-1]),
    lambda topics, *_: PickPlaceMetrics(topics.namespace, topics.truth, topics.contacts),
    lambda topics, *_: FaultRecoveryMetrics(topics.namespace, topics.truth, topics.contacts),
    lambda topics, *_: TaskMetrics(f"{topics.namespace}/tasks"),
    lambda topics, *_: BehaviorTreeMetrics(f"{topics.namespace}/mission/status"),
    lambda topics, *_: WorkMetrics(topics.namespace),
    lambda *given: GaitMetrics(given[0].truth, given[0].namespace, given[-3]),
    lambda *given: StepPlanMetrics(given[0].truth, given[0].namespace, given[-3]),
]
"""What is made for every robot."""

RUN_METRICS = ("sim_time", "wall_time", "real_time_factor", "messages", "frames_missed")
"""Metrics of the run as a whole; they cannot depend on a robot."""


def robot_metric_names() -> tuple[str, ...]:
    """Metrics of each robot."""
    topics = RobotTopics.for_robot("robot")
    names = (name for make in COLLECTORS for name in make(topics, None, (), None, None, None, None).metric_names)
    return tuple(dict.fromkeys(names))


def metric_names(robots: tuple[str, ...]) -> tuple[str, ...]:
    """What criteria may use: the run's metrics, the first robot's by bare names, everybody's as `robot.metric`."""
    robot_names = robot_metric_names() if robots else ()
    return (*RUN_METRICS, *robot_names, *(f"{robot}.{name}" for robot in robots for name in robot_names))


_MESSAGE_ERRORS = (RoboyardError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a collector raises for messages that make no sense: foreign nodes may publish anything."""


@dataclass(frozen=True, slots=True)
class _CollectorSubscription:
    """What takes the messages of a topic, for which collector of which robot."""

    robot: str
    collector: MetricCollector
    handler: MessageHandler


class Evaluator:
    """Listens to a run; give ``tap`` to ``bus.add_message_observer``.

    Messages are only looked at, as they are published: nothing in the run can notice.  Those that metrics cannot be
    computed from are counted and left out, see `MessageChecker`.

    Args:
        report: Called with one line for the first rejected message of each topic and reason.
    """

    def __init__(self, warn: Callable[[str], None] | None = None) -> None:
        self.robots: dict[str, tuple[MetricCollector, ...]] = {}
        self.messages = 0
        self.checker = MessageChecker(warn)
        self._person_names: list[str] = []
        self._subscriptions: dict[str, list[_CollectorSubscription]] = {}
        self._unmeasured: dict[tuple[str, str], str] = {}

    def add_robot(
        self,
        robot: str,
        topics: RobotTopics,
        floor_plan: FloorPlanProvider | None = None,
        footprint: FootprintPolygon = (),
        surface_voxels: SurfaceVoxelProvider | None = None,
        depth_error: DepthErrorProvider | None = None,
        arm_truth: ArmGroundTruth | None = None,
        leg_model: LegModel | None = None,
    ) -> None:
        """Collect for one more robot, from now on.

        Args:
            robot: Its name.
            topics: Where to listen.
            plan: Gives the true floor plan.
            outline: Its corners [m].
            surfaces: Gives the true surfaces.
            sight: Looks through its depth camera.
            arm: The truth about its arm.
            legs: Those that it walks on, and its motors.
        """
        collectors = tuple(
            create_collector(topics, floor_plan, footprint, surface_voxels, leg_model, depth_error, arm_truth)
            for create_collector in COLLECTORS
        )
        subscriptions = [(robot, collector, collector.subscriptions()) for collector in collectors]
        for collector in collectors:
            self.checker.check_stamps(collector.truth_topics)
        for separation in (item for item in collectors if isinstance(item, SeparationMetrics)):
            for name, other_collectors in self.robots.items():
                for other in (item for item in other_collectors if isinstance(item, SeparationMetrics)):
                    subscriptions += [
                        (robot, separation, separation.on_robot_added(other)),
                        (name, other, other.on_robot_added(separation)),
                    ]
        self.robots[robot] = collectors
        subscriptions += [
            (robot, collector, collector.on_person_added(name))
            for name in self._person_names
            for collector in collectors
        ]
        self._subscribe(subscriptions)

    def add_person(self, name: str) -> None:
        """Somebody is there from now on."""
        self._person_names.append(name)
        self._subscribe(
            [
                (robot, collector, collector.on_person_added(name))
                for robot, collectors in self.robots.items()
                for collector in collectors
            ]
        )

    def _subscribe(self, subscriptions: Sequence[tuple[str, MetricCollector, Mapping[str, MessageHandler]]]) -> None:
        for robot, collector, handlers in subscriptions:
            for name, handler in handlers.items():
                self._subscriptions.setdefault(name, []).append(_CollectorSubscription(robot, collector, handler))

    def on_published(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        """See one message."""
        self.process(topic.name, message, time_ns)

    def process(self, topic: str, message: Any, time_ns: int) -> None:
        """See one message, live or from a recording."""
        self.messages += 1
        subscriptions = self._subscriptions.get(topic)
        if subscriptions is None:
            return
        try:
            problem = self.checker.find_problem(topic, message, time_ns)
        except _MESSAGE_ERRORS as error:
            problem = "malformed", _error_text(error)
        if problem is not None:
            self.checker.reject(topic, *problem, time_ns, _metric_names_by_robot(subscriptions))
            return
        self.checker.accept(topic)
        for subscription in subscriptions:
            try:
                subscription.handler(message, time_ns)
            except _MESSAGE_ERRORS as error:
                self.checker.reject(
                    topic, "malformed", _error_text(error), time_ns, _metric_names_by_robot([subscription])
                )

    def save_state(self) -> dict[str, Any]:
        """What all collectors know so far, as plain data."""
        robots = {
            robot: [collector.save_state() for collector in collectors] for robot, collectors in self.robots.items()
        }
        return {"messages": self.messages, "robots": robots, "checker": self.checker.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`, for the same robots."""
        self.messages = state["messages"]
        self.checker.load_state(state["checker"])
        for robot, collector_states in state["robots"].items():
            for collector, collector_state in zip(self.robots[robot], collector_states, strict=True):
                collector.load_state(collector_state)

    def finish(self, time_ns: int) -> None:
        """The run ended at this time [ns]."""
        for collectors in self.robots.values():
            for collector in collectors:
                collector.finish(time_ns)

    def person_approaches(self, robot: str) -> list[dict[str, Any]]:
        """The nearest moment of each time that somebody was near a robot; see `people.Approach`."""
        return [
            asdict(approach)
            for collector in self.robots[robot]
            if isinstance(collector, CollaborativeSafetyMetrics)
            for approach in collector.approaches
        ]

    def metrics_by_robot(self, names: Collection[str] | None = None) -> dict[str, dict[str, MetricValue]]:
        """Each robot's metrics; with ``names``, only what their collectors give.

        None where a metric would not be a finite number, or cannot be computed; `rejection_reasons` says why.
        """
        requested = None if names is None else {name.rpartition(".")[2] for name in names}
        return {
            robot: {
                name: value
                for collector in collectors
                if requested is None or not requested.isdisjoint(collector.metric_names)
                for name, value in self._collector_values(robot, collector).items()
            }
            for robot, collectors in self.robots.items()
        }

    def _collector_values(self, robot: str, collector: MetricCollector) -> dict[str, MetricValue]:
        """What a collector gives, without what is no number."""
        for name in collector.metric_names:
            self._unmeasured.pop((robot, name), None)
        try:
            values = collector.values()
        except _MESSAGE_ERRORS as error:
            values = dict.fromkeys(collector.metric_names)
            self._unmeasured.update(dict.fromkeys(((robot, name) for name in values), _error_text(error)))
        for name, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                values[name] = None
                self._unmeasured[(robot, name)] = f"its value is {value}"
        return values

    def rejection_reasons(self) -> dict[str, str]:
        """Why criteria must not use metrics, by the names that criteria use; see `MessageChecker.rejection_reasons`.

        It speaks also of metrics that could not be computed when they were last asked for.
        """
        by_robot: dict[str, dict[str, str]] = {}
        for (robot, name), reason in self._unmeasured.items():
            by_robot.setdefault(robot, {})[name] = reason
        for robot, reasons in self.checker.rejection_reasons().items():
            by_robot.setdefault(robot, {}).update(reasons)
        first_robot = by_robot.get(next(iter(self.robots), ""), {})
        return first_robot | {
            f"{robot}.{name}": reason for robot, reasons in by_robot.items() for name, reason in reasons.items()
        }

    def rejected_messages(self) -> list[dict[str, Any]]:
        """The messages that no metric was computed from, as metrics.json has it: a row for each topic and reason."""
        return [row.to_dict() for row in self.checker.rejections]

    def separation_over_time(self, robot: str) -> dict[str, Any] | None:
        """How a robot's arm and people were near each other, see `People.story`; None where nobody was."""
        collectors = self.robots.get(robot, ())
        return next(
            (item.separation_over_time() for item in collectors if isinstance(item, CollaborativeSafetyMetrics)), None
        )

    def flat_metrics(
        self, run_metrics: Mapping[str, MetricValue], names: Collection[str] | None = None
    ) -> dict[str, MetricValue]:
        """All metrics under the names that criteria use; with ``names``, not many more than those."""
        robots = self.metrics_by_robot(names)
        first_robot = next(iter(robots.values()), {})
        by_full_name = {
            f"{robot}.{name}": value for robot, metrics in robots.items() for name, value in metrics.items()
        }
        return {**run_metrics, **first_robot, **by_full_name}


def _metric_names_by_robot(subscriptions: Sequence[_CollectorSubscription]) -> dict[str, list[str]]:
    """Names of the metrics that listeners contribute to, by robot."""
    names_by_robot: dict[str, list[str]] = {}
    for subscription in subscriptions:
        names_by_robot.setdefault(subscription.robot, []).extend(subscription.collector.metric_names)
    return names_by_robot


def _error_text(error: Exception) -> str:
    return str(error) if isinstance(error, RoboyardError) else f"{type(error).__name__}: {error}"
