"""From the faults of a scenario to scheduled faults: each with its effect on a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roboyard.errors import ConfigError, RoboyardError
from roboyard.scenarios.faults.schedule import fault_times, trigger_of
from roboyard.scenarios.faults.schema import FaultConfig, FaultContext, FaultEffect, FaultKeyError, RobotFault
from roboyard.scenarios.run_builder import SimulatedRunBuilder


@dataclass(frozen=True, slots=True)
class ScheduledFault:
    """One fault of a run.

    Attributes:
        name: Unique name in the run.
        config: The fault as the scenario gives it.
        effect: What it does in the run.
        events_topic: Topic of the skill events that trigger it; empty for a fault without a trigger.
    """

    name: str
    config: FaultConfig
    effect: FaultEffect
    events_topic: str = ""

    @property
    def trigger(self) -> str | None:
        """Skill or phase that the fault waits for; None: it begins at its time."""
        return trigger_of(self.config)

    @property
    def start_ns(self) -> int:
        """When it begins, or from when on it waits for its trigger [ns]."""
        return fault_times(self.config)[0]

    @property
    def duration_ns(self) -> int | None:
        """How long it lasts [ns]; None: it does not end."""
        start_ns, end_ns = fault_times(self.config)
        return None if end_ns is None else end_ns - start_ns


def create_fault(run: SimulatedRunBuilder, fault: FaultConfig, number: int) -> ScheduledFault:
    """Create a fault that is requested during the run.

    Args:
        run: The run as it is now.
        fault: The requested fault.
        number: Number that distinguishes its name from those of others.

    Raises:
        ConfigError: The run has nothing of a name that the fault gives, or cannot fail in this way.
    """
    return _schedule_fault(run, fault, number, tuple(run.simulation.models))


def schedule_faults(
    run: SimulatedRunBuilder, faults: Sequence[FaultConfig], source_location: Callable[[str], str]
) -> tuple[ScheduledFault, ...]:
    """Create the faults of a scenario.

    Args:
        run: The run with all its robots and nodes.
        faults: Faults in the order of the scenario.
        source_location: Function that gives the location of a key in the scenario's file: "mine.yaml:12" for
            "faults[0].robot".

    Raises:
        ConfigError: The run has nothing of a name that a fault gives, or cannot fail in this way; with file, line, key
            and valid names.
    """
    scheduled = []
    model_names = [*run.simulation.models]
    for number, fault in enumerate(faults):
        path = f"faults[{number}]"
        try:
            scheduled.append(_schedule_fault(run, fault, number, tuple(model_names)))
            model_names += fault.added_models(number)
        except RoboyardError as error:
            key = f"{path}.{error.location}" if isinstance(error, FaultKeyError) and error.location else path
            location = ", ".join(part for part in (source_location(key), key) if part)
            raise ConfigError(error.message, location=location, valid=error.valid) from error
    return tuple(scheduled)


def _schedule_fault(
    run: SimulatedRunBuilder, fault: FaultConfig, number: int, model_names: tuple[str, ...]
) -> ScheduledFault:
    name = f"{fault.type}_{number}"
    effect = fault.create_effect(FaultContext(run, name, number, model_names))
    return ScheduledFault(name, fault, effect, "" if trigger_of(fault) is None else _skill_events_topic(run, fault))


def _skill_events_topic(run: SimulatedRunBuilder, fault: FaultConfig) -> str:
    robot = fault.find_robot(run, "skills") if isinstance(fault, RobotFault) else next(iter(run.robots), None)
    if robot is None:
        raise FaultKeyError("no robot has skills", location="trigger", valid="a scenario with a robot")
    return f"{run.robots[robot].namespace}/skills/events"
