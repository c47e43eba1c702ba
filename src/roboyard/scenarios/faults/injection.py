"""From the faults of a scenario to scheduled faults, each with the actions that apply and revert it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bringup.catalog import find_file
from roboyard.bus.topics import TopicImpairment
from roboyard.config.wording import did_you_mean
from roboyard.description import Box, Collision, Cylinder, Inertial, Link, Material, Model, Sphere, Visual, load_model
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE2, SE3
from roboyard.messages import srv
from roboyard.scenarios.faults import schema as fault_types
from roboyard.scenarios.faults.object_faults import FootholdCollapseInjector, ObjectFaultInjector
from roboyard.scenarios.faults.schedule import fault_times
from roboyard.scenarios.faults.schema import SpawnFault
from roboyard.simulation.carrying import carry, free_base
from roboyard.simulation.faults import Fault, GroundFault, JointFault, PowerFault, SensorFault
from roboyard.simulation.faults.kinds import SensorTrouble
from roboyard.simulation.surface_tables import Patch

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run


_GROUND_TRUTH_PREFIX = "/truth/"
_SENSOR_TROUBLES: dict[str, SensorTrouble] = {
    "sensor_dropout": "silent",
    "sensor_frozen": "stuck",
    "depth_dropout": "blind",
}
FaultAction = Callable[[], str | None]
"""Does something; what it was in words, where only that shows it."""


@dataclass(frozen=True, slots=True)
class ScheduledFault:
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
    fault_type: str
    description: str
    start_ns: int
    end_ns: int | None
    apply: FaultAction
    revert: FaultAction
    impairment: TopicImpairment | None = None
    topic: str = ""
    trigger: str = ""
    occurrence: int = 1
    trigger_delay_ns: int = 0
    events_topic: str = ""
    on_event: Callable[[Any], None] = lambda _: None


def create_fault(run: Run, fault: fault_types.FaultConfig, number: int) -> ScheduledFault:
    """The deed of a fault that somebody asks for while the run goes on.

    Args:
        run: As it is now.
        fault: Which one.
        number: By which its name differs from others'.

    Raises:
        ConfigError: there is nothing of such a name, or it cannot fail in this way.
    """
    if isinstance(fault, fault_types.RemoveFault) and fault.name not in run.simulation.models:
        model_names = ", ".join(run.simulation.models)
        raise ConfigError(f"nothing is called {fault.name!r}", valid=f"there are: {model_names or 'none'}")
    return _schedule_fault(run, fault, number)


def schedule_faults(
    run: Run, faults: Iterable[fault_types.FaultConfig], source_location: Callable[[str], str]
) -> tuple[ScheduledFault, ...]:
    """The deeds of a scenario's faults.

    Args:
        run: With all its robots and nodes.
        faults: As the scenario says.
        place: Where in the scenario's file a key is: "faults[0].robot" gives "mine.yaml:12".

    Raises:
        ConfigError: there is nothing of such a name, or it cannot fail in this way; names file, line and choices.
    """
    scheduled = []
    names = [*run.simulation.models]
    for index, fault in enumerate(faults):
        path = f"faults[{index}]"
        try:
            if isinstance(fault, fault_types.RemoveFault) and fault.name not in names:
                raise _FaultKeyError(
                    f"nothing is called {fault.name!r}{did_you_mean(fault.name, names)}", location="name",
                    valid=f"there are: {', '.join(names) or 'none'}",
                )  # fmt: skip
            if isinstance(fault, fault_types.SpawnFault):
                names.append(_spawned_name(fault, index))
            scheduled.append(_with_trigger(run, fault, _schedule_fault(run, fault, index)))
        except RoboyardError as error:
            key = f"{path}.{error.location}" if isinstance(error, _FaultKeyError) else path
            location = ", ".join(part for part in (source_location(key), key) if part)
            raise ConfigError(error.message, location=location, valid=error.valid) from error
    return tuple(scheduled)


class _FaultKeyError(ConfigError):
    """A ConfigError whose ``where`` is a key of the entry."""


def _schedule_fault(run: Run, fault: fault_types.FaultConfig, index: int) -> ScheduledFault:
    name = f"{fault.type}_{index}"
    start_ns, end_ns = fault_times(fault)

    def scheduled(text: str, apply: FaultAction, revert: FaultAction = _no_revert) -> ScheduledFault:
        return ScheduledFault(name, fault.type, text, start_ns, end_ns, apply, revert)

    if isinstance(fault, fault_types.SpawnFault):
        spawned_name = _spawned_name(fault, index)
        model = replace(spawned_model(fault, run.base_folder), name=spawned_name)
        pose = _randomized_pose(fault, run.bus.random(f"/faults/{name}"))
        text = f"{spawned_name} appeared at {pose[0]:.3g}, {pose[1]:.3g}"
        return scheduled(text, lambda: _discard_result(run.add_object(model, spawned_name, pose=pose)))
    if isinstance(fault, fault_types.RemoveFault):
        removed_name = fault.name
        return scheduled(f"{removed_name} vanished", lambda: run.remove(removed_name))
    if isinstance(fault, fault_types.DeviceCommandFault):
        return scheduled(f"{fault.name} moves to {fault.value:g}", _device_command(run, fault))
    if isinstance(fault, fault_types.TeleportFault):
        robot, target_pose = _resolve_robot(run, fault.robot), SE2(*fault.pose)
        free_base(run.simulation, robot)
        return scheduled(
            f"{robot} was carried to {target_pose.x:g}, {target_pose.y:g}", lambda: _teleport(run, robot, target_pose)
        )
    if isinstance(fault, fault_types.FootholdCollapseFault):
        return _foothold_collapse(run, fault, name, start_ns)
    if isinstance(fault, fault_types.ObjectFault):
        return _object_fault(run, fault, name, start_ns)
    if isinstance(fault, fault_types.ServiceCallFault):
        return _service_call(run, fault, name, start_ns)
    if isinstance(fault, fault_types.MessageLossFault | fault_types.MessageDelayFault):
        return _topic_impairment(run, fault, name, start_ns, end_ns)
    simulated_fault, text = _simulated_fault(run, fault)
    table = run.simulation.faults
    try:
        table.check(simulated_fault)
    except RoboyardError as error:
        key = next((key for key in ("sensor", "joint") if hasattr(fault, key)), "")
        raise _FaultKeyError(error.message, location=key, valid=error.valid) from error

    def apply() -> None:
        if (
            isinstance(simulated_fault, GroundFault) or simulated_fault.model in run.simulation.models
        ):  # it may have been removed
            table.begin(name, simulated_fault)

    return scheduled(text, apply, lambda: table.end(name))


def _with_trigger(run: Run, fault: fault_types.FaultConfig, scheduled: ScheduledFault) -> ScheduledFault:
    """With what its skill has to tell, if the fault waits for that."""
    if not isinstance(fault, fault_types.TriggeredFault) or fault.trigger is None:
        return scheduled
    robot = run.robots.get(_resolve_robot(run, getattr(fault, "robot", None)))
    if robot is None:
        raise _FaultKeyError("skills are a robot's", location="robot", valid=", ".join(run.robots))
    return replace(
        scheduled,
        trigger=fault.trigger,
        occurrence=fault.occurrence,
        trigger_delay_ns=round(fault.trigger_delay * 1e9),
        events_topic=f"{robot.namespace}/skills/events",
    )


def _foothold_collapse(run: Run, fault: fault_types.FootholdCollapseFault, name: str, start_ns: int) -> ScheduledFault:
    robot = _resolve_robot(run, fault.robot)
    if robot not in run.robots:
        raise _FaultKeyError(f"{robot} has no feet", location="robot", valid=", ".join(run.robots))
    if run.terrain is None or run.terrain.smooth:
        raise _FaultKeyError(
            "there is no terrain of squares", location="type", valid="a scenario with a terrain: stones, blocks"
        )
    injector = FootholdCollapseInjector(run, robot, fault.lead_time)
    return ScheduledFault(name, fault.type, "", start_ns, None, injector.apply, _no_revert)


def _object_fault(run: Run, fault: fault_types.ObjectFault, name: str, start_ns: int) -> ScheduledFault:
    robot = _resolve_robot(run, fault.robot)
    if robot not in run.robots:
        raise _FaultKeyError(f"{robot} has no hand", location="robot", valid=", ".join(run.robots))
    if fault.object is not None and fault.object not in run.objects:
        raise _FaultKeyError(
            f"no object {fault.object!r}{did_you_mean(fault.object, run.objects)}", location="object",
            valid=f"there are: {', '.join(run.objects) or 'none'}",
        )  # fmt: skip
    injector = ObjectFaultInjector(run, robot, fault, run.bus.random(f"/faults/{name}"))
    return ScheduledFault(
        name, fault.type, fault.type, start_ns, None, injector.apply, _no_revert, on_event=injector.on_event
    )


def _service_call(run: Run, fault: fault_types.ServiceCallFault, name: str, start_ns: int) -> ScheduledFault:
    robot = run.robots.get(_resolve_robot(run, fault.robot))
    if robot is None:
        raise _FaultKeyError("services are a robot's", location="robot", valid=", ".join(run.robots))
    service = fault.service if fault.service.startswith("/") else f"{robot.namespace}/{fault.service}"
    if service not in run.bus.services:
        services = sorted(other for other in run.bus.services if run.bus.services[other].type is srv.Trigger)
        raise _FaultKeyError(
            f"nobody serves {service}{did_you_mean(service, services)}", location="service", valid=", ".join(services)
        )
    client = run.bus.service_client(service, srv.Trigger, "/faults")
    text = f"{service} was pressed"
    return ScheduledFault(
        name, fault.type, text, start_ns, None, lambda: _discard_result(client.call(srv.Trigger.Request())), _no_revert
    )


def _teleport(run: Run, robot: str, target_pose: SE2) -> None:
    if robot in run.simulation.models:  # it may have been removed
        carry(run.simulation, robot, target_pose)


def _device_command(run: Run, fault: fault_types.DeviceCommandFault) -> FaultAction:
    if fault.name not in run.devices:
        device_names = list(run.devices)
        raise _FaultKeyError(
            f"no device {fault.name!r}{did_you_mean(fault.name, device_names)}", location="name",
            valid=f"there are: {', '.join(device_names) or 'none'}",
        )  # fmt: skip

    def send_command() -> None:
        if fault.name in run.devices:  # it may have been removed
            run.devices[fault.name].move(fault.value)

    return send_command


def _simulated_fault(run: Run, fault: fault_types.FaultConfig) -> tuple[Fault, str]:
    """The fault as the simulation knows it, and in words."""
    if isinstance(fault, fault_types.LowFrictionFault):
        (x, y, yaw), (length, width) = fault.pose, fault.size
        text = f"slippery ground ({fault.friction:g}) at {x:g}, {y:g}"
        return GroundFault(Patch(x, y, yaw, length, width, fault.friction)), text
    robot = _resolve_robot(run, getattr(fault, "robot", None))
    match fault:
        case fault_types.SensorOutputFault():
            mode: SensorTrouble = _SENSOR_TROUBLES[fault.type]
            return SensorFault(robot, fault.sensor, mode), f"sensor {fault.sensor} of {robot} is {mode}"
        case fault_types.LowLightFault():
            text = f"sensor {fault.sensor} of {robot} sees {100.0 * fault.brightness:g} % of the light"
            return SensorFault(robot, fault.sensor, "dark", fault.brightness), text
        case fault_types.SensorDelayFault():
            text = f"sensor {fault.sensor} of {robot} is {fault.delay:g} s late"
            return SensorFault(robot, fault.sensor, "delayed", fault.delay), text
        case fault_types.SensorNoiseFault():
            text = f"sensor {fault.sensor} of {robot} has noise of {fault.stddev:g}"
            return SensorFault(robot, fault.sensor, "noisy", fault.stddev), text
        case fault_types.JointLockedFault():
            return JointFault(robot, fault.joint, "blocked"), f"joint {fault.joint} of {robot} is blocked"
        case fault_types.JointDegradedFault():
            text = f"joint {fault.joint} of {robot} has {100.0 * fault.effort_scale:g} % of its effort"
            return JointFault(robot, fault.joint, "weak", fault.effort_scale), text
        case fault_types.PowerLossFault():
            return PowerFault(robot), f"{robot} has no power"
    raise ConfigError(f"{fault.type} is no fault of a robot")  # pragma: no cover - all kinds are above


def _resolve_robot(run: Run, name: str | None) -> str:
    """A robot of the run, or anything else in it that has joints or sensors."""
    if name is None:
        if not run.robots:
            raise ConfigError("there is no robot it could fall on", valid="a robot, named by key 'robot'")
        return next(iter(run.robots))
    models = {key: handle.model for key, handle in run.simulation.models.items()}
    if name not in models:
        robot_names = [*run.robots, *(n for n, model in models.items() if n not in run.robots and model.joints)]
        raise _FaultKeyError(
            f"no robot {name!r}{did_you_mean(name, robot_names)}",
            location="robot",
            valid=f"there are: {', '.join(robot_names) or 'none'}",
        )
    return name


def _topic_impairment(
    run: Run,
    fault: fault_types.MessageLossFault | fault_types.MessageDelayFault,
    name: str,
    start_ns: int,
    end_ns: int | None,
) -> ScheduledFault:
    topic = fault.topic if fault.topic.startswith("/") else f"/{fault.topic}"
    topic_names = sorted(other for other in run.bus.topics if not other.startswith(_GROUND_TRUTH_PREFIX))
    if topic.startswith(_GROUND_TRUTH_PREFIX):
        raise _FaultKeyError(
            f"{topic} is the truth, which no network carries", location="topic", valid=", ".join(topic_names)
        )
    if topic not in run.bus.topics:
        raise _FaultKeyError(
            f"no topic {topic!r}{did_you_mean(topic, topic_names)}",
            location="topic",
            valid=f"there are: {', '.join(topic_names)}",
        )
    loss = fault.probability if isinstance(fault, fault_types.MessageLossFault) else 0.0
    delay = fault.delay if isinstance(fault, fault_types.MessageDelayFault) else 0.0
    text = (
        f"{100.0 * loss:g} % of {topic} get lost"
        if isinstance(fault, fault_types.MessageLossFault)
        else f"{topic} is {delay:g} s late"
    )
    impairment = TopicImpairment(loss, round(delay * 1e9), run.bus.random(f"/faults/{name}"))
    impairments = run.bus.topics[topic].impairments

    def revert() -> None:
        impairments[:] = [item for item in impairments if item is not impairment]

    return ScheduledFault(
        name, fault.type, text, start_ns, end_ns, lambda: impairments.append(impairment), revert, impairment, topic
    )


def _randomized_pose(fault: fault_types.SpawnFault, random: np.random.Generator) -> fault_types.Pose:
    """Its pose, in this run."""
    dx, dy, dyaw = (random.uniform(-1.0, 1.0, 3) * fault.pose_noise).tolist()
    if len(fault.pose) == 3:
        x, y, yaw = fault.pose
        return x + dx, y + dy, yaw + dyaw
    x, y, z, roll, pitch, yaw = fault.pose
    return x + dx, y + dy, z, roll, pitch, yaw + dyaw


def _spawned_name(fault: fault_types.SpawnFault, index: int) -> str:
    return fault.name or f"{Path(fault.model).stem}_{index}"


def _discard_result(_: object) -> None:
    """Forget a result."""


def _no_revert() -> None:
    """What there is to undo of what lasts."""


_SHAPE_DENSITY = 150.0
"""Of the named shapes [kg/m³]: cardboard with something in it; a rover can push a small one."""
_SHAPE_NAMES = ("box", "cylinder", "sphere")


def spawned_model(fault: SpawnFault, base: Path | None) -> Model:
    """The model that a fault spawns: a named shape, or a description's.

    Raises:
        InputError: there is no such file; DescriptionError: it cannot be read.
    """
    if fault.model in _SHAPE_NAMES:
        return _shape_model(fault.model, fault.size)
    return load_model(find_file(fault.model, base))


def _shape_model(kind: str, size: tuple[float, float, float]) -> Model:
    """A solid of homogeneous density; ``size`` is length, width, height (diameter first for round ones) [m]."""
    x, y, z = size
    if kind == "box":
        geometry: Box | Cylinder | Sphere = Box(size)
        mass = _SHAPE_DENSITY * x * y * z
        inertia = (y * y + z * z, x * x + z * z, x * x + y * y)
        moments = tuple(mass * value / 12.0 for value in inertia)
    elif kind == "cylinder":
        geometry, mass = Cylinder(x / 2.0, z), _SHAPE_DENSITY * math.pi * x * x / 4.0 * z
        lateral_moment = mass * (3.0 * x * x / 4.0 + z * z) / 12.0
        moments = (lateral_moment, lateral_moment, mass * x * x / 8.0)
    else:
        geometry, mass = Sphere(x / 2.0), _SHAPE_DENSITY * math.pi * x**3 / 6.0
        moments = (mass * x * x / 10.0,) * 3
    identity = SE3.identity()
    link = Link(
        "link",
        identity,
        Inertial(mass, identity, (moments[0], moments[1], moments[2], 0.0, 0.0, 0.0)),
        (Collision("collision", geometry, identity),),
        (Visual("visual", geometry, identity, Material("cardboard", (0.76, 0.6, 0.42, 1.0))),),
    )
    return Model(kind, (link,))
