"""The metric collectors of all robots of a run, fed from the bus or from a recording."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from roboyard.bus import Topic
from roboyard.errors import InputError, RoboyardError
from roboyard.evaluation.collector import MessageHandler, MetricCollector, MetricValue, RobotContext, TimelineEvent
from roboyard.evaluation.message_checks import MessageChecker
from roboyard.evaluation.plugin import RUN_METRICS, collector_classes, robot_metrics, robot_resources

CollectorT = TypeVar("CollectorT", bound=MetricCollector)


def metric_names(robots: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that criteria may use: metrics of the run, of the first robot, and of each as `robot.metric`.

    Raises:
        ConfigError: A run plug-in of an installed package is wrong.
    """
    robot_names = tuple(metric.name for metric in robot_metrics()) if robots else ()
    by_robot = (f"{robot}.{name}" for robot in robots for name in robot_names)
    return (*(metric.name for metric in RUN_METRICS), *robot_names, *by_robot)


_MESSAGE_ERRORS = (RoboyardError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a collector raises for invalid messages: nodes of users may publish anything."""


@dataclass(frozen=True, slots=True)
class _CollectorSubscription:
    """A handler of the messages of a topic, with its collector and its robot."""

    robot: str
    collector: MetricCollector
    handler: MessageHandler


class Evaluator:
    """Evaluates the messages of a run or of a recording.

    On a bus, `on_published` is an observer of messages, which the run cannot notice.  Messages that metrics cannot be
    computed from are counted and left out, see `MessageChecker`.

    Args:
        warn: Called with one line for the first rejected message of each topic and reason.

    Attributes:
        robots: Collectors by robot; the first is the main robot.
        messages: Number of messages so far.
        checker: Rejects messages.
    """

    def __init__(self, warn: Callable[[str], None] | None = None) -> None:
        self.robots: dict[str, tuple[MetricCollector, ...]] = {}
        self.messages = 0
        self.checker = MessageChecker(warn)
        self._contexts: dict[str, RobotContext] = {}
        self._person_names: list[str] = []
        self._subscriptions: dict[str, list[_CollectorSubscription]] = {}
        self._unmeasured: dict[tuple[str, str], str] = {}

    def add_robot(self, robot: RobotContext) -> None:
        """Evaluate one more robot from now on.

        Args:
            robot: What is known of it; its resources are completed by those of the run plug-ins.

        Raises:
            ConfigError: A run plug-in of an installed package is wrong.
        """
        context = replace(robot, resources={**robot_resources(), **robot.resources})
        created = (collector_class.create(context) for collector_class in collector_classes())
        collectors = tuple(collector for collector in created if collector is not None)
        subscriptions = [(robot.name, collector, collector.subscriptions()) for collector in collectors]
        for collector in collectors:
            self.checker.check_stamps(collector.truth_topics)
        for name, other_collectors in self.robots.items():
            subscriptions += [
                (robot.name, collector, collector.on_robot_added(self._contexts[name])) for collector in collectors
            ]
            subscriptions += [(name, collector, collector.on_robot_added(context)) for collector in other_collectors]
        self.robots[robot.name], self._contexts[robot.name] = collectors, context
        subscriptions += [
            (robot.name, collector, collector.on_person_added(name))
            for name in self._person_names
            for collector in collectors
        ]
        self._subscribe(subscriptions)

    def add_person(self, name: str) -> None:
        """Evaluate one more person from now on."""
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
        """Take a message when it is published."""
        self.process(topic.name, message, time_ns)

    def process(self, topic: str, message: Any, time_ns: int) -> None:
        """Take a message, live or from a recording."""
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
        """Return the state of all collectors as plain data."""
        robots = {
            robot: {_collector_key(collector): collector.save_state() for collector in collectors}
            for robot, collectors in self.robots.items()
        }
        return {"messages": self.messages, "robots": robots, "checker": self.checker.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned, for the same robots.

        Raises:
            InputError: The state is of other collectors: other run plug-ins were installed when it was saved.
        """
        self.messages = state["messages"]
        self.checker.load_state(state["checker"])
        for robot, collector_states in state["robots"].items():
            collectors = {_collector_key(collector): collector for collector in self.robots[robot]}
            for key in sorted(collectors.keys() ^ collector_states.keys()):
                side = "no state" if key in collectors else "the state"
                raise InputError(
                    f"the snapshot has {side} of the metric collector {key} of {robot}",
                    valid="one that was saved with the packages that are installed now",
                )
            for key, collector in collectors.items():
                collector.load_state(collector_states[key])

    def finish(self, time_ns: int) -> None:
        """Conclude: the run ended at this time [ns]."""
        for collectors in self.robots.values():
            for collector in collectors:
                collector.finish(time_ns)

    def context(self, robot: str) -> RobotContext:
        """Return what collectors are given of a robot, with the resources of all run plug-ins."""
        return self._contexts[robot]

    def collector(self, robot: str, collector_class: type[CollectorT]) -> CollectorT | None:
        """Return the collector of a class of a robot; None where the robot has none."""
        return next((item for item in self.robots[robot] if isinstance(item, collector_class)), None)

    def details(self, robot: str) -> dict[str, Any]:
        """Return what metrics.json holds of a robot beside its metrics, as the collectors give it.

        The key `timeline` is present if anything happened.
        """
        details = {key: value for collector in self.robots[robot] for key, value in collector.details().items()}
        timeline = self.timeline(robot)
        return {**details, "timeline": [asdict(event) for event in timeline]} if timeline else details

    def timeline(self, robot: str) -> tuple[TimelineEvent, ...]:
        """Return the events of all collectors of a robot by time; those of one time in the order of the collectors."""
        events = (event for collector in self.robots[robot] for event in collector.events())
        return tuple(sorted(events, key=lambda event: event.time))

    def metrics_by_robot(self, names: Collection[str] | None = None) -> dict[str, dict[str, MetricValue]]:
        """Return each robot's metrics; with ``names`` only those of their collectors.

        A metric that has no meaning in this run is left out, and so is one that would not be a finite number or cannot
        be computed: `rejection_reasons` says why.
        """
        requested = None if names is None else {name.rpartition(".")[2] for name in names}
        return {
            robot: {
                name: value
                for collector in collectors
                if requested is None or not requested.isdisjoint(collector.metric_names())
                for name, value in self._collector_values(robot, collector).items()
            }
            for robot, collectors in self.robots.items()
        }

    def _collector_values(self, robot: str, collector: MetricCollector) -> dict[str, MetricValue]:
        """Return a collector's values that are finite numbers, booleans or texts."""
        names = collector.metric_names()
        for name in names:
            self._unmeasured.pop((robot, name), None)
        try:
            values = collector.values()
        except _MESSAGE_ERRORS as error:
            self._unmeasured.update(dict.fromkeys(((robot, name) for name in names), _error_text(error)))
            return {}
        found: dict[str, MetricValue] = {}
        for name, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                self._unmeasured[(robot, name)] = f"its value is {value}"
            elif value is not None:
                found[name] = value
        return found

    def rejection_reasons(self) -> dict[str, str]:
        """Return why criteria must not use metrics, by the names that criteria use.

        These are the reasons of `MessageChecker.rejection_reasons`, and of metrics that could not be computed when
        their values were last asked for.
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
        """Return the rejected messages as metrics.json has them: a row for each topic and reason."""
        return [row.to_dict() for row in self.checker.rejections]

    def flat_metrics(
        self, run_metrics: Mapping[str, MetricValue], names: Collection[str] | None = None
    ) -> dict[str, MetricValue]:
        """Return all metrics under the names that criteria use; with ``names`` only those of their collectors."""
        return name_metrics(run_metrics, self.metrics_by_robot(names))


def name_metrics(
    run_metrics: Mapping[str, MetricValue], robots: Mapping[str, Mapping[str, MetricValue]]
) -> dict[str, MetricValue]:
    """Return metrics by the names that criteria use: the run's and the first robot's plain, all as `robot.metric`."""
    first_robot = next(iter(robots.values()), {})
    by_full_name = {f"{robot}.{name}": value for robot, metrics in robots.items() for name, value in metrics.items()}
    return {**run_metrics, **first_robot, **by_full_name}


def _collector_key(collector: MetricCollector) -> str:
    return f"{type(collector).__module__}.{type(collector).__qualname__}"


def _metric_names_by_robot(subscriptions: Sequence[_CollectorSubscription]) -> dict[str, list[str]]:
    """Return the names of the metrics of the subscribed collectors, by robot."""
    names_by_robot: dict[str, list[str]] = {}
    for subscription in subscriptions:
        names_by_robot.setdefault(subscription.robot, []).extend(subscription.collector.metric_names())
    return names_by_robot


def _error_text(error: Exception) -> str:
    return str(error) if isinstance(error, RoboyardError) else f"{type(error).__name__}: {error}"
