"""From what a scenario says to what is done: each fault with its begin and its end, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.topics import TopicImpairment
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import srv
from roboyard.scenarios.faults import kinds as k
from roboyard.scenarios.faults.agenda import times_of
from roboyard.scenarios.faults.footholds import Undermining
from roboyard.scenarios.faults.meddling import Meddling
from roboyard.scenarios.faults.shapes import model_of
from roboyard.simulation.carrying import carry, free_base
from roboyard.simulation.faults import Fault, GroundFault, JointFault, PowerFault, SensorFault
from roboyard.simulation.faults.kinds import SensorTrouble
from roboyard.simulation.surface_tables import Patch

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run

_TRUTH = "/truth/"
_TROUBLES: dict[str, SensorTrouble] = {"sensor_silent": "silent", "sensor_stuck": "stuck", "sensor_blind": "blind"}
Do = Callable[[], str | None]
"""Does something; what it was in words, where only that shows it."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that happens at a time.

    Attributes:
        name: Of its own.
        kind: What the scenario calls it.
        text: What it is, in words, unless ``begin`` says.
        begin_ns: When it happens [ns].
        end_ns: When it ends [ns]; None: it does not.
        begin: Does it.
        end: Undoes it.
        disturbance: Of a topic, whose generator belongs to the state of a run.
        topic: Which one.
        on: What a skill has to tell before it begins; empty: it begins at its time.
        nth: How often.
        later_ns: So long after that it happens [ns].
        events: Topic where it does.
        tell: Takes the event on which it begins.
    """

    name: str
    kind: str
    text: str
    begin_ns: int
    end_ns: int | None
    begin: Do
    end: Do
    disturbance: TopicImpairment | None = None
    topic: str = ""
    on: str = ""
    nth: int = 1
    later_ns: int = 0
    events: str = ""
    tell: Callable[[Any], None] = lambda _: None


def deed_by_hand(run: Run, fault: k.Fault, number: int) -> Deed:
    """The deed of a fault that somebody asks for while the run goes on.

    Args:
        run: As it is now.
        fault: Which one.
        number: By which its name differs from others'.

    Raises:
        ConfigError: there is nothing of such a name, or it cannot fail in this way.
    """
    if isinstance(fault, k.Remove) and fault.name not in run.simulation.models:
        known = ", ".join(run.simulation.models)
        raise ConfigError(f"nothing is called {fault.name!r}", valid=f"there are: {known or 'none'}")
    return _deed(run, fault, number)


def deeds_of(run: Run, faults: Iterable[k.Fault], place: Callable[[str], str]) -> tuple[Deed, ...]:
    """The deeds of a scenario's faults.

    Args:
        run: With all its robots and nodes.
        faults: As the scenario says.
        place: Where in the scenario's file a key is: "faults[0].robot" gives "mine.yaml:12".

    Raises:
        ConfigError: there is nothing of such a name, or it cannot fail in this way; names file, line and choices.
    """
    made = []
    names = [*run.simulation.models]
    for index, fault in enumerate(faults):
        path = f"faults[{index}]"
        try:
            if isinstance(fault, k.Remove) and fault.name not in names:
                raise _KeyError(
                    f"nothing is called {fault.name!r}{did_you_mean(fault.name, names)}", location="name",
                    valid=f"there are: {', '.join(names) or 'none'}",
                )  # fmt: skip
            if isinstance(fault, k.Spawn):
                names.append(_called(fault, index))
            made.append(_awaited(run, fault, _deed(run, fault, index)))
        except RoboyardError as error:
            key = f"{path}.{error.location}" if isinstance(error, _KeyError) else path
            where = ", ".join(part for part in (place(key), key) if part)
            raise ConfigError(error.message, location=where, valid=error.valid) from error
    return tuple(made)


class _KeyError(ConfigError):
    """A ConfigError whose ``where`` is a key of the entry."""


def _deed(run: Run, fault: k.Fault, index: int) -> Deed:
    name = f"{fault.what}_{index}"
    begin_ns, end_ns = times_of(fault)

    def deed(text: str, begin: Do, end: Do = _nothing) -> Deed:
        return Deed(name, fault.what, text, begin_ns, end_ns, begin, end)

    if isinstance(fault, k.Spawn):
        called = _called(fault, index)
        model = replace(model_of(fault, run.base), name=called)
        pose = _scattered(fault, run.bus.random(f"/faults/{name}"))
        text = f"{called} appeared at {pose[0]:.3g}, {pose[1]:.3g}"
        return deed(text, lambda: _ignore(run.add_object(model, called, at=pose)))
    if isinstance(fault, k.Remove):
        gone = fault.name
        return deed(f"{gone} vanished", lambda: run.remove(gone))
    if isinstance(fault, k.Move):
        return deed(f"{fault.name} moves to {fault.to:g}", _move(run, fault))
    if isinstance(fault, k.Carry):
        who, to = _robot(run, fault.robot), SE2(*fault.pose)
        free_base(run.simulation, who)
        return deed(f"{who} was carried to {to.x:g}, {to.y:g}", lambda: _carry(run, who, to))
    if isinstance(fault, k.FootholdGone):
        return _undermine(run, fault, name, begin_ns)
    if isinstance(fault, k.Meddle):
        return _meddle(run, fault, name, begin_ns)
    if isinstance(fault, k.Press):
        return _press(run, fault, name, begin_ns)
    if isinstance(fault, k.MessageLoss | k.MessageDelay):
        return _of_topic(run, fault, name, begin_ns, end_ns)
    inside, text = _inside(run, fault)
    table = run.simulation.faults
    try:
        table.check(inside)
    except RoboyardError as error:
        key = next((key for key in ("sensor", "joint") if hasattr(fault, key)), "")
        raise _KeyError(error.message, location=key, valid=error.valid) from error

    def begin() -> None:
        if isinstance(inside, GroundFault) or inside.model in run.simulation.models:  # it may have been removed
            table.begin(name, inside)

    return deed(text, begin, lambda: table.end(name))


def _awaited(run: Run, fault: k.Fault, deed: Deed) -> Deed:
    """With what its skill has to tell, if the fault waits for that."""
    if not isinstance(fault, k.Awaiting) or fault.on is None:
        return deed
    robot = run.robots.get(_robot(run, getattr(fault, "robot", None)))
    if robot is None:
        raise _KeyError("skills are a robot's", location="robot", valid=", ".join(run.robots))
    return replace(
        deed, on=fault.on, nth=fault.nth, later_ns=round(fault.later * 1e9), events=f"{robot.namespace}/skills/events"
    )


def _undermine(run: Run, fault: k.FootholdGone, name: str, begin_ns: int) -> Deed:
    robot = _robot(run, fault.robot)
    if robot not in run.robots:
        raise _KeyError(f"{robot} has no feet", location="robot", valid=", ".join(run.robots))
    if run.terrain is None or run.terrain.smooth:
        raise _KeyError(
            "there is no terrain of squares", location="what", valid="a scenario with a terrain: stones, blocks"
        )
    ground = Undermining(run, robot, fault.ahead)
    return Deed(name, fault.what, "", begin_ns, None, ground.do, _nothing)


def _meddle(run: Run, fault: k.Meddle, name: str, begin_ns: int) -> Deed:
    robot = _robot(run, fault.robot)
    if robot not in run.robots:
        raise _KeyError(f"{robot} has no hand", location="robot", valid=", ".join(run.robots))
    if fault.thing is not None and fault.thing not in run.things:
        raise _KeyError(
            f"no thing {fault.thing!r}{did_you_mean(fault.thing, run.things)}", location="thing",
            valid=f"there are: {', '.join(run.things) or 'none'}",
        )  # fmt: skip
    meddling = Meddling(run, robot, fault, run.bus.random(f"/faults/{name}"))
    return Deed(name, fault.what, fault.what, begin_ns, None, meddling.do, _nothing, tell=meddling.tell)


def _press(run: Run, fault: k.Press, name: str, begin_ns: int) -> Deed:
    robot = run.robots.get(_robot(run, fault.robot))
    if robot is None:
        raise _KeyError("services are a robot's", location="robot", valid=", ".join(run.robots))
    service = fault.service if fault.service.startswith("/") else f"{robot.namespace}/{fault.service}"
    if service not in run.bus.services:
        known = sorted(other for other in run.bus.services if run.bus.services[other].type is srv.Trigger)
        raise _KeyError(
            f"nobody serves {service}{did_you_mean(service, known)}", location="service", valid=", ".join(known)
        )
    client = run.bus.service_client(service, srv.Trigger, "/faults")
    text = f"{service} was pressed"
    return Deed(name, fault.what, text, begin_ns, None, lambda: _ignore(client.call(srv.Trigger.Request())), _nothing)


def _carry(run: Run, who: str, to: SE2) -> None:
    if who in run.simulation.models:  # it may have been removed
        carry(run.simulation, who, to)


def _move(run: Run, fault: k.Move) -> Do:
    if fault.name not in run.furniture:
        known = list(run.furniture)
        raise _KeyError(
            f"no furniture {fault.name!r}{did_you_mean(fault.name, known)}", location="name",
            valid=f"there are: {', '.join(known) or 'none'}",
        )  # fmt: skip

    def move() -> None:
        if fault.name in run.furniture:  # it may have been removed
            run.furniture[fault.name].move(fault.to)

    return move


def _inside(run: Run, fault: k.Fault) -> tuple[Fault, str]:
    """The fault as the simulation knows it, and in words."""
    if isinstance(fault, k.SlipPatch):
        (x, y, yaw), (length, width) = fault.pose, fault.size
        text = f"slippery ground ({fault.friction:g}) at {x:g}, {y:g}"
        return GroundFault(Patch(x, y, yaw, length, width, fault.friction)), text
    robot = _robot(run, getattr(fault, "robot", None))
    match fault:
        case k.SensorSilent():
            trouble: SensorTrouble = _TROUBLES[fault.what]
            return SensorFault(robot, fault.sensor, trouble), f"sensor {fault.sensor} of {robot} is {trouble}"
        case k.SensorDark():
            text = f"sensor {fault.sensor} of {robot} sees {100.0 * fault.light:g} % of the light"
            return SensorFault(robot, fault.sensor, "dark", fault.light), text
        case k.SensorDelayed():
            text = f"sensor {fault.sensor} of {robot} is {fault.delay:g} s late"
            return SensorFault(robot, fault.sensor, "delayed", fault.delay), text
        case k.SensorNoisy():
            text = f"sensor {fault.sensor} of {robot} has noise of {fault.stddev:g}"
            return SensorFault(robot, fault.sensor, "noisy", fault.stddev), text
        case k.JointBlocked():
            return JointFault(robot, fault.joint, "blocked"), f"joint {fault.joint} of {robot} is blocked"
        case k.JointWeak():
            text = f"joint {fault.joint} of {robot} has {100.0 * fault.effort:g} % of its effort"
            return JointFault(robot, fault.joint, "weak", fault.effort), text
        case k.PowerLoss():
            return PowerFault(robot), f"{robot} has no power"
    raise ConfigError(f"{fault.what} is no fault of a robot")  # pragma: no cover - all kinds are above


def _robot(run: Run, name: str | None) -> str:
    """A robot of the run, or anything else in it that has joints or sensors."""
    if name is None:
        if not run.robots:
            raise ConfigError("there is no robot it could fall on", valid="a robot, named by key 'robot'")
        return next(iter(run.robots))
    models = {key: handle.model for key, handle in run.simulation.models.items()}
    if name not in models:
        known = [*run.robots, *(n for n, model in models.items() if n not in run.robots and model.joints)]
        raise _KeyError(
            f"no robot {name!r}{did_you_mean(name, known)}",
            location="robot",
            valid=f"there are: {', '.join(known) or 'none'}",
        )
    return name


def _of_topic(run: Run, fault: k.MessageLoss | k.MessageDelay, name: str, begin_ns: int, end_ns: int | None) -> Deed:
    topic = fault.topic if fault.topic.startswith("/") else f"/{fault.topic}"
    known = sorted(other for other in run.bus.topics if not other.startswith(_TRUTH))
    if topic.startswith(_TRUTH):
        raise _KeyError(f"{topic} is the truth, which no network carries", location="topic", valid=", ".join(known))
    if topic not in run.bus.topics:
        raise _KeyError(
            f"no topic {topic!r}{did_you_mean(topic, known)}", location="topic", valid=f"there are: {', '.join(known)}"
        )
    loss = fault.share if isinstance(fault, k.MessageLoss) else 0.0
    delay = fault.delay if isinstance(fault, k.MessageDelay) else 0.0
    text = (
        f"{100.0 * loss:g} % of {topic} get lost"
        if isinstance(fault, k.MessageLoss)
        else f"{topic} is {delay:g} s late"
    )
    disturbance = TopicImpairment(loss, round(delay * 1e9), run.bus.random(f"/faults/{name}"))
    disturbances = run.bus.topics[topic].impairments

    def end() -> None:
        disturbances[:] = [item for item in disturbances if item is not disturbance]

    return Deed(
        name, fault.what, text, begin_ns, end_ns, lambda: disturbances.append(disturbance), end, disturbance, topic
    )


def _scattered(fault: k.Spawn, random: np.random.Generator) -> k.Pose:
    """Its pose, in this run."""
    dx, dy, turn = (random.uniform(-1.0, 1.0, 3) * fault.scatter).tolist()
    if len(fault.pose) == 3:
        x, y, yaw = fault.pose
        return x + dx, y + dy, yaw + turn
    x, y, z, roll, pitch, yaw = fault.pose
    return x + dx, y + dy, z, roll, pitch, yaw + turn


def _called(fault: k.Spawn, index: int) -> str:
    return fault.name or f"{Path(fault.model).stem}_{index}"


def _ignore(_: object) -> None:
    """Forget a result."""


def _nothing() -> None:
    """What there is to undo of what lasts."""
