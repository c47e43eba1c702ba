"""Methods of the skill server: how it carries its skills out, as configurations by name, with their contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

from roboyard.bus import Node
from roboyard.config import RegisteredType, parameter
from roboyard.config.registry import Registry
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.manipulation.skills import (
    ArmGeometry,
    Skill,
    SkillConfig,
    SkillContext,
    SkillGoal,
    SkillMemory,
    SkillRequest,
    SkillResult,
)


class SkillExecutor(Protocol):
    """Executes skill requests, one at a time."""

    is_holding: bool
    """Whether the fingers measure an object."""

    def start(self, request: SkillRequest) -> SkillResult | None:
        """Start a request; returns the result if it is done at once, else ``on_result`` is called later."""

    def cancel(self, result: SkillResult) -> None:
        """Stop the current request; it ends with ``result`` once it has stopped."""

    def update(self) -> None:
        """Check the timeout; called periodically."""

    def save_state(self) -> dict[str, Any]:
        """Return the current request as plain data."""

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""


@dataclass(frozen=True, eq=False)
class SkillServerContext:
    """What a method may know of the skill server that uses it.

    Attributes:
        node: The node; a method creates its clients, publishers and subscriptions with it.
        semantics: Semantic description of the robot.
        group: Planning group that moves; empty: the first one.
        arm: Geometry of the arm.
        skills: Configuration of the skills.
        memory: Memory of the skills; it is another object after a restored snapshot.
        floor_height: Height of the floor in the frame of the robot's root [m].
        on_result: Receives the result of each request that the executor does not answer at once.
    """

    node: Node
    semantics: SemanticDescription
    group: str
    arm: ArmGeometry
    skills: SkillConfig
    memory: Callable[[], SkillMemory]
    floor_height: float
    on_result: Callable[[SkillResult], None]


class SkillMethod(ABC):
    """How a skill server carries its skills out: its skills, the inputs of their steps, and the executor.

    Attributes:
        skill_names: Names of the skills that clients can request; the server has an action for each.
        update_rate: Rate at which the executor is updated [Hz].
        executor: Executes the requests of the skills.
    """

    skill_names: tuple[str, ...]
    update_rate: ClassVar[float] = 50.0
    executor: SkillExecutor

    @abstractmethod
    def create_skill(self, name: str, goal: SkillGoal) -> Skill:
        """Return a skill that is ready to start. Raises InputError if there is none, or the goal is invalid."""

    @abstractmethod
    def create_finish_skill(self, result: SkillResult) -> Skill:
        """Return the skill with which a cancelled loop ends, with the given result."""

    @abstractmethod
    def extend_context(self, context: SkillContext) -> SkillContext:
        """Return the inputs of a skill's step with what the method adds to them."""


@dataclass(frozen=True, kw_only=True)
class SkillMethodConfig(ABC):
    """Configuration of a method of the skill server; each method has a subclass of it.

    A subclass is a frozen dataclass whose fields are declared with `roboyard.config.parameter`.  It is registered as an
    entry point of the group ``roboyard.skill_methods`` under the name that configurations give as ``type``.
    """

    type: str = parameter(doc="Name of the method.")

    @abstractmethod
    def make_method(self, server: SkillServerContext) -> SkillMethod:
        """Return the method for a skill server.

        Raises:
            ConfigError: The values contradict each other, the robot or the configuration of the skills.
        """


SKILL_METHODS: Registry[type[SkillMethodConfig]] = Registry(
    "skill method", group="roboyard.skill_methods", base=lambda: SkillMethodConfig
)
"""Configurations of the methods by the name that configurations give as ``type``."""

SkillMethodEntry = Annotated[SkillMethodConfig, RegisteredType(SKILL_METHODS)]
"""Annotation of a method in a configuration: a mapping whose key ``type`` names its class."""
