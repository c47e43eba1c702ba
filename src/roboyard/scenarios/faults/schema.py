"""Base classes of the faults that a scenario may list, and their registry.

A fault type is a frozen dataclass that derives from `FaultConfig` (it occurs at a time), `TriggeredFault` (also at an
event of the robot's skills) or `LastingFault` (it has a duration) and says by `create_effect` what it does in a run.
It is registered by name as an entry point of the group ``roboyard.faults``; `type` in a scenario gives this name.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from roboyard.config import RegisteredType, did_you_mean, parameter
from roboyard.config.registry import Registry
from roboyard.errors import ConfigError
from roboyard.scenarios.run_builder import SimulatedRunBuilder

_TRIGGER_PATTERN = re.compile(r"\w+(\.\w+)?")


class FaultKeyError(ConfigError):
    """A value of a fault does not fit the run; ``location`` is the key of the fault that holds it."""


class FaultEffect:
    """What one fault of a run does when it starts and when it ends.

    Args:
        description: One clause that says what happens, for the log, diagnostics and metrics.json.

    Attributes:
        description: As given.
    """

    def __init__(self, description: str) -> None:
        self.description = description

    def start(self) -> str | None:
        """Apply the fault; return a description that only this moment gives, else None."""
        return None

    def end(self) -> None:
        """Revert the fault; faults without a duration never end."""

    def on_trigger(self, event: Any) -> None:
        """Receive the skill event (roboyard_msgs/SkillEvent) for which the fault waited, before it starts."""

    def save_state(self) -> dict[str, Any]:
        """Return the state of the effect that no other part of a snapshot holds, as plain data."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned.

        The effects of a run are restored in the order in which their faults started.
        """


class ActionEffect(FaultEffect):
    """An effect that consists of one action and does not end.

    Args:
        description: As of `FaultEffect`.
        action: Function that `start` calls.
    """

    def __init__(self, description: str, action: Callable[[], object]) -> None:
        super().__init__(description)
        self._action = action

    def start(self) -> str | None:
        """Execute the action."""
        self._action()
        return None


@dataclass(frozen=True, slots=True)
class FaultContext:
    """What a fault is given to create its effect.

    Attributes:
        run: The run with all its robots and nodes.
        name: Unique name of the fault in the run: ``sensor_dropout_3``.
        number: Number of the fault in the run.
        model_names: Names of the run's models and of those that earlier faults of the scenario add.
    """

    run: SimulatedRunBuilder
    name: str
    number: int
    model_names: tuple[str, ...]

    def random(self) -> np.random.Generator:
        """Return the random generator of this fault, seeded by the run."""
        return self.run.bus.random(f"/faults/{self.name}")


@dataclass(frozen=True, kw_only=True)
class FaultConfig(ABC):
    """A fault that occurs at a time.

    Attributes:
        is_momentary: Whether the log and metrics.json say that it occurred, instead of started and finished.
    """

    is_momentary: ClassVar[bool] = True
    time: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time at which it occurs or starts")
    type: str = parameter(doc="name of the type of fault")

    @abstractmethod
    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return what the fault does in a run.

        Raises:
            FaultKeyError: The run has no robot, sensor, topic, … of the name that the fault gives, or it cannot fail
                in this way.
        """

    def added_models(self, number: int) -> tuple[str, ...]:
        """Return the names of the models that the fault adds to the run."""
        return ()


FAULTS: Registry[type[FaultConfig]] = Registry("fault", group="roboyard.faults", base=lambda: FaultConfig)
"""Types of faults by the name that scenarios give as `type`."""

FaultEntry = Annotated[FaultConfig, RegisteredType(FAULTS)]
"""Annotation of a fault in a scenario: a mapping whose key `type` names its class."""


@dataclass(frozen=True, kw_only=True)
class TriggeredFault(FaultConfig):
    """A fault that occurs at a time, or when the robot's skills reach a phase."""

    trigger: str | None = parameter(
        None, doc="SKILL or SKILL.PHASE: it waits until the robot's skills report this, at `time` or later"
    )
    occurrence: int = parameter(
        1, low=1, high=1_000_000, doc="which of these reports triggers it, counted from `time` on"
    )
    trigger_delay: float = parameter(0.0, unit="s", low=0.0, high=1e6, doc="delay after the report")

    def __post_init__(self) -> None:
        if self.trigger is not None and not _TRIGGER_PATTERN.fullmatch(self.trigger):
            raise ConfigError(
                f"trigger {self.trigger!r}",
                location="trigger",
                valid="SKILL (when it begins) or SKILL.PHASE, as the skills report them: grasp.descend",
            )
        if self.trigger is None and (self.occurrence != 1 or self.trigger_delay > 0.0):
            raise ConfigError(
                "occurrence or trigger_delay without a trigger",
                location="occurrence, trigger_delay",
                valid="with the key 'trigger'",
            )


@dataclass(frozen=True, kw_only=True)
class LastingFault(TriggeredFault):
    """A fault that starts and, unless it lasts until the end of the run, finishes."""

    is_momentary: ClassVar[bool] = False
    duration: float | None = parameter(
        None, unit="s", low=1e-9, high=1e6, doc="how long it lasts; default: until the end of the run"
    )


@dataclass(frozen=True, kw_only=True)
class RobotFault(FaultConfig):
    """A fault of one robot."""

    robot: str | None = parameter(None, doc="name of the robot; default: the first robot")

    def find_model(self, run: SimulatedRunBuilder) -> str:
        """Return the name of the robot, or of another model of the run that has joints or sensors.

        Raises:
            ConfigError: The run has no robot, or no model of this name.
        """
        if self.robot is None:
            if not run.robots:
                raise ConfigError("the scenario has no robot for this fault", valid="a robot, named by key 'robot'")
            return next(iter(run.robots))
        models = {key: handle.model for key, handle in run.simulation.models.items()}
        if self.robot not in models:
            others = [name for name, model in models.items() if name not in run.robots and model.joints]
            raise unknown_value_error("robot", "robot", self.robot, [*run.robots, *others])
        return self.robot

    def find_robot(self, run: SimulatedRunBuilder, missing: str) -> str:
        """Return the name of the robot; a model that is not a robot is an error.

        Args:
            run: The run.
            missing: What such a model lacks, for the error: "feet".
        """
        name = self.find_model(run)
        if name not in run.robots:
            raise FaultKeyError(f"{name} has no {missing}", location="robot", valid=", ".join(run.robots))
        return name


def unknown_value_error(kind: str, key: str, value: str, names: Collection[str]) -> FaultKeyError:
    """Return the error for a name that the run does not have, with the most similar name and all names.

    Args:
        kind: What the name should be of: "robot".
        key: Key of the fault that holds it.
        value: The unknown name.
        names: All names of this kind.
    """
    return FaultKeyError(
        f"no {kind} {value!r}{did_you_mean(value, names)}",
        location=key,
        valid=f"there are: {', '.join(names) or 'none'}",
    )
