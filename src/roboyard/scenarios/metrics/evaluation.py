"""All collectors of a run behind one tap, and the metrics they add up to."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from roboyard.bus import Topic
from roboyard.errors import RoboyardError
from roboyard.scenarios.metrics.aftermath import Aftermath
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.contacts import Contacts
from roboyard.scenarios.metrics.depth import DepthQuality, Sight
from roboyard.scenarios.metrics.exploration import Exploration
from roboyard.scenarios.metrics.handling import Handling
from roboyard.scenarios.metrics.homing import Homing
from roboyard.scenarios.metrics.jogging import Jogging
from roboyard.scenarios.metrics.location import LocationError
from roboyard.scenarios.metrics.mapping import MapQuality, Plan
from roboyard.scenarios.metrics.motion import Motion
from roboyard.scenarios.metrics.navigation import Drives, Outline
from roboyard.scenarios.metrics.octree import OctreeQuality, Surfaces
from roboyard.scenarios.metrics.odometry import OdometryError
from roboyard.scenarios.metrics.people import People
from roboyard.scenarios.metrics.reaching import Arm, Reaching
from roboyard.scenarios.metrics.rejections import MessageChecker
from roboyard.scenarios.metrics.separation import Separation
from roboyard.scenarios.metrics.stepping import Stepping
from roboyard.scenarios.metrics.tasks import TasksDone
from roboyard.scenarios.metrics.trees import TreeDone
from roboyard.scenarios.metrics.walking import Legged, Walking
from roboyard.scenarios.metrics.working import Working


@dataclass(frozen=True, slots=True)
class RobotTopics:
    """Where a robot's truth and its own opinion are published, and what it is told to do (absolute names).

    ``command`` is what anybody wants of it, ``drive`` what arbitration lets through; ``filtered`` is fused odometry,
    ``located`` where a localisation in a map says it is; ``map`` and ``path`` come from a SLAM node, ``navigation``
    is how the navigator says its drives go, ``exploration`` how an explorer says it stands, ``octree`` its map
    of space, ``jog`` what drives single joints of its arm.
    """

    truth: str
    contacts: str
    odometry: str
    command: str
    drive: str
    filtered: str = "/odometry/filtered"
    located: str = "/amcl_pose"
    map: str = "/map"
    path: str = "/path"
    navigation: str = "/navigator/status"
    namespace: str = ""
    exploration: str = "/exploration"
    octree: str = "/octomap_full"
    jog: str = "/move_velocity"

    @classmethod
    def of(cls, robot: str, namespace: str = "", moved: Mapping[str, str] | None = None) -> RobotTopics:
        """The standard names: truth goes by the robot's name, the rest by its namespace.

        Args:
            robot: Name in the run.
            namespace: "" or "/name".
            moved: Topics that lie elsewhere: {"odom": "base/odom"}.
        """

        def own(name: str) -> str:
            name = (moved or {}).get(name, name)
            return name if name.startswith("/") else f"{namespace}/{name}"

        truth = f"/truth/{robot}"
        return cls(
            f"{truth}/odom", f"{truth}/contacts", own("odom"), own("cmd_vel"), own("cmd_vel_out"),
            own("odometry/filtered"), own("amcl_pose"), own("map"), own("path"),
            own("navigator/status"), namespace, own("exploration"), own("octomap_full"),
            own("move_velocity"),
        )  # fmt: skip


COLLECTORS: list[
    Callable[[RobotTopics, Plan | None, Outline, Surfaces | None, Legged | None, Sight | None, Arm | None], Collector]
] = [
    lambda topics, *_: Motion(topics.truth),
    lambda topics, *_: OdometryError(topics.truth, topics.odometry),
    lambda topics, *_: OdometryError(topics.truth, topics.filtered, "filtered"),
    lambda topics, *_: LocationError(topics.truth, topics.located),
    lambda topics, plan, *_: MapQuality(topics.truth, topics.map, topics.path, plan),
    lambda topics, _, __, surfaces, *___: OctreeQuality(topics.octree, surfaces),
    lambda *given: DepthQuality(given[-2]),
    lambda topics, plan, outline, *_: Drives(topics.truth, topics.navigation, plan, outline, topics.namespace),
    lambda topics, plan, *_: Exploration(topics.truth, topics.exploration, topics.map, plan),
    lambda topics, *_: Contacts(topics.contacts),
    lambda topics, _, outline, *__: Separation(topics.truth, outline),
    lambda topics, *given: People(topics.namespace, given[-1]),
    lambda topics, *_: Homing(topics.truth, topics.namespace),
    lambda topics, *given: Reaching(topics.namespace, given[-1]),
    lambda topics, *given: Jogging(topics.jog, topics.namespace, given[-1]),
    lambda topics, *_: Handling(topics.namespace, topics.truth, topics.contacts),
    lambda topics, *_: Aftermath(topics.namespace, topics.truth, topics.contacts),
    lambda topics, *_: TasksDone(f"{topics.namespace}/tasks"),
    lambda topics, *_: TreeDone(f"{topics.namespace}/mission/status"),
    lambda topics, *_: Working(topics.namespace),
    lambda *given: Walking(given[0].truth, given[0].namespace, given[-3]),
    lambda *given: Stepping(given[0].truth, given[0].namespace, given[-3]),
]
"""What is made for every robot."""

RUN_METRICS = ("sim_seconds", "wall_seconds", "real_time_factor", "messages", "frames_missed")
"""Metrics of the run as a whole; they cannot depend on a robot."""


def robot_metric_names() -> tuple[str, ...]:
    """Metrics of each robot."""
    topics = RobotTopics.of("robot")
    named = (name for make in COLLECTORS for name in make(topics, None, (), None, None, None, None).names)
    return tuple(dict.fromkeys(named))


def metric_names(robots: tuple[str, ...]) -> tuple[str, ...]:
    """What criteria may use: the run's metrics, the first robot's by bare names, everybody's as `robot.metric`."""
    own = robot_metric_names() if robots else ()
    return (*RUN_METRICS, *own, *(f"{robot}.{name}" for robot in robots for name in own))


_UNUSABLE = (RoboyardError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a collector raises for messages that make no sense: foreign nodes may publish anything."""


@dataclass(frozen=True, slots=True)
class _Listener:
    """What takes the messages of a topic, for which collector of which robot."""

    robot: str
    collector: Collector
    handler: Handler


class Evaluation:
    """Listens to a run; give ``tap`` to ``bus.add_message_observer``.

    Messages are only looked at, as they are published: nothing in the run can notice.  Those that metrics cannot be
    computed from are counted and left out, see `MessageChecker`.

    Args:
        report: Called with one line for the first rejected message of each topic and reason.
    """

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self.robots: dict[str, tuple[Collector, ...]] = {}
        self.messages = 0
        self.checker = MessageChecker(report)
        self._people: list[str] = []
        self._handlers: dict[str, list[_Listener]] = {}
        self._unmeasured: dict[tuple[str, str], str] = {}

    def add_robot(
        self,
        robot: str,
        topics: RobotTopics,
        plan: Plan | None = None,
        outline: Outline = (),
        surfaces: Surfaces | None = None,
        sight: Sight | None = None,
        arm: Arm | None = None,
        legs: Legged | None = None,
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
        collectors = tuple(make(topics, plan, outline, surfaces, legs, sight, arm) for make in COLLECTORS)
        listening = [(robot, collector, collector.handlers()) for collector in collectors]
        for collector in collectors:
            self.checker.compare_stamps(collector.truth_of)
        for own in (item for item in collectors if isinstance(item, Separation)):
            for name, others in self.robots.items():
                for other in (item for item in others if isinstance(item, Separation)):
                    listening += [(robot, own, own.meet(other)), (name, other, other.meet(own))]
        self.robots[robot] = collectors
        listening += [(robot, one, one.meet_person(name)) for name in self._people for one in collectors]
        self._listen(listening)

    def add_person(self, name: str) -> None:
        """Somebody is there from now on."""
        self._people.append(name)
        self._listen([(robot, one, one.meet_person(name)) for robot, found in self.robots.items() for one in found])

    def _listen(self, listening: Sequence[tuple[str, Collector, Mapping[str, Handler]]]) -> None:
        for robot, collector, handlers in listening:
            for name, handler in handlers.items():
                self._handlers.setdefault(name, []).append(_Listener(robot, collector, handler))

    def tap(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        """See one message."""
        self.take(topic.name, message, time_ns)

    def take(self, topic: str, message: Any, time_ns: int) -> None:
        """See one message, live or from a recording."""
        self.messages += 1
        listeners = self._handlers.get(topic)
        if listeners is None:
            return
        try:
            fault = self.checker.fault_of(topic, message, time_ns)
        except _UNUSABLE as error:
            fault = "malformed", _described(error)
        if fault is not None:
            self.checker.reject(topic, *fault, time_ns, _metrics_of(listeners))
            return
        self.checker.accept(topic)
        for listener in listeners:
            try:
                listener.handler(message, time_ns)
            except _UNUSABLE as error:
                self.checker.reject(topic, "malformed", _described(error), time_ns, _metrics_of([listener]))

    def save_state(self) -> dict[str, Any]:
        """What all collectors know so far, as plain data."""
        robots = {
            robot: [collector.save_state() for collector in collectors] for robot, collectors in self.robots.items()
        }
        return {"messages": self.messages, "robots": robots, "checker": self.checker.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, for the same robots."""
        self.messages = saved["messages"]
        self.checker.load_state(saved["checker"])
        for robot, states in saved["robots"].items():
            for collector, state in zip(self.robots[robot], states, strict=True):
                collector.load_state(state)

    def finish(self, time_ns: int) -> None:
        """The run ended at this time [ns]."""
        for collectors in self.robots.values():
            for collector in collectors:
                collector.finish(time_ns)

    def approaches(self, robot: str) -> list[dict[str, Any]]:
        """The nearest moment of each time that somebody was near a robot; see `people.Approach`."""
        return [asdict(one) for found in self.robots[robot] if isinstance(found, People) for one in found.approaches]

    def by_robot(self, names: Collection[str] | None = None) -> dict[str, dict[str, Value]]:
        """Each robot's metrics; with ``names``, only what their collectors give.

        None where a metric would not be a finite number, or cannot be computed; `rejection_reasons` says why.
        """
        wanted = None if names is None else {name.rpartition(".")[2] for name in names}
        return {
            robot: {
                name: value
                for collector in collectors
                if wanted is None or not wanted.isdisjoint(collector.names)
                for name, value in self._result(robot, collector).items()
            }
            for robot, collectors in self.robots.items()
        }

    def _result(self, robot: str, collector: Collector) -> dict[str, Value]:
        """What a collector gives, without what is no number."""
        for name in collector.names:
            self._unmeasured.pop((robot, name), None)
        try:
            found = collector.result()
        except _UNUSABLE as error:
            found = dict.fromkeys(collector.names)
            self._unmeasured.update(dict.fromkeys(((robot, name) for name in found), _described(error)))
        for name, value in found.items():
            if isinstance(value, float) and not math.isfinite(value):
                found[name] = None
                self._unmeasured[(robot, name)] = f"its value is {value}"
        return found

    def rejection_reasons(self) -> dict[str, str]:
        """Why criteria must not use metrics, by the names that criteria use; see `MessageChecker.rejection_reasons`.

        It speaks also of metrics that could not be computed when they were last asked for.
        """
        by_robot: dict[str, dict[str, str]] = {}
        for (robot, name), text in self._unmeasured.items():
            by_robot.setdefault(robot, {})[name] = text
        for robot, found in self.checker.rejection_reasons().items():
            by_robot.setdefault(robot, {}).update(found)
        first = by_robot.get(next(iter(self.robots), ""), {})
        return first | {f"{robot}.{name}": text for robot, found in by_robot.items() for name, text in found.items()}

    def rejected(self) -> list[dict[str, Any]]:
        """The messages that no metric was computed from, as metrics.json has it: a row for each topic and reason."""
        return [row.to_dict() for row in self.checker.rejections]

    def beside_people(self, robot: str) -> dict[str, Any] | None:
        """How a robot's arm and people were near each other, see `People.story`; None where nobody was."""
        collectors = self.robots.get(robot, ())
        return next((item.story() for item in collectors if isinstance(item, People)), None)

    def flat(self, totals: Mapping[str, Value], names: Collection[str] | None = None) -> dict[str, Value]:
        """All metrics under the names that criteria use; with ``names``, not many more than those."""
        robots = self.by_robot(names)
        first = next(iter(robots.values()), {})
        everybody = {f"{robot}.{name}": value for robot, found in robots.items() for name, value in found.items()}
        return {**totals, **first, **everybody}


def _metrics_of(listeners: Sequence[_Listener]) -> dict[str, list[str]]:
    """Names of the metrics that listeners contribute to, by robot."""
    found: dict[str, list[str]] = {}
    for listener in listeners:
        found.setdefault(listener.robot, []).extend(listener.collector.names)
    return found


def _described(error: Exception) -> str:
    return str(error) if isinstance(error, RoboyardError) else f"{type(error).__name__}: {error}"
