"""Task files: a planning domain, the initial state, and goals, in YAML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from roboyard.config import load, parameter
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.task_planning.domain import (
    VARIABLE,
    Heuristic,
    NoPlanError,
    PlanningAction,
    PlanningDomain,
    PlanningGoal,
    Value,
    WorldState,
    is_satisfied,
)
from roboyard.task_planning.transport import EMPTY_HAND, TransportModel, transport_costs

Place = tuple[float, float, float]
"""x, y [m] and yaw [rad] in the map."""
PathLength = Callable[[Place, Place], float]
"""How far it is between two places [m]; infinite where there is no way."""
PLACES = "places"


@dataclass(frozen=True)
class CostConfig:
    """Cost of an action [s]: a time, and the distance between two places at a speed."""

    base: float = parameter(0.0, low=0.0, high=1e9, unit="s", doc="a time")
    distance: tuple[str, ...] = parameter((), doc="two variables or places that it leads from and to")
    speed: float = parameter(1.0, low=1e-6, high=1e6, unit="m/s", doc="on the way")


@dataclass(frozen=True)
class ActionConfig:
    """An action of a task file."""

    effects: dict[str, Any] = parameter(doc="conditions and what they are afterwards; $name stands for any value")
    preconditions: dict[str, Any] = parameter(factory=dict, doc="conditions and what they have to be")
    parameters: dict[str, Any] = parameter(factory=dict, doc="what variables may stand for: a list, or `places`")
    cost: float | CostConfig = parameter(1.0, doc="a number [s], or base, distance and speed")
    behavior: str = parameter("", doc="elements of a behaviour tree; $name as above, $name_pose a place's x;y;yaw")


@dataclass(frozen=True)
class GoalConfig:
    """A goal of a task file."""

    desired_state: dict[str, Any] = parameter(doc="conditions and what they shall be")
    priority: float = parameter(1.0, low=0.0, high=1e9, doc="how much it is worth")
    when: dict[str, Any] = parameter(factory=dict, doc="conditions under which it is worth anything")
    initial_facts: dict[str, Any] = parameter(factory=dict, doc="conditions that are so anew when it is taken up")
    expected_feasible: bool = parameter(True, doc="whether it can be done, for judging only")
    expected_positions: dict[str, tuple[float, float, float]] = parameter(
        factory=dict, doc="where things truly are when it is done, x, y, z in the world, for judging only"
    )


@dataclass(frozen=True)
class ObservationConfig:
    """How a condition is observed while tasks are executed; one of the three."""

    near_place: float | None = parameter(
        None, unit="m", low=0.0, high=1e3, doc="the place that the robot is so near to"
    )
    near_arm_pose: float | None = parameter(
        None, unit="rad", low=0.0, high=7.0, doc="the arm's named pose that joints are so near"
    )
    topic: str = parameter("", doc="a topic whose messages say it")
    type: str = parameter("std_msgs/msg/String", doc="of its messages")
    field: str = parameter("data", doc="of the message, as a.b")

    def __post_init__(self) -> None:
        if (self.near_place is not None) + (self.near_arm_pose is not None) + bool(self.topic) != 1:
            raise ConfigError("a condition is observed in one way", valid="near_place, near_arm_pose or topic")


@dataclass(frozen=True)
class TransportConfig:
    """Conditions ``robot``, ``hand``, ``on PLACE`` are about one gripper that carries objects: plans are found
    faster."""

    objects: tuple[str, ...] = parameter((), doc="what is carried")
    max_speed: float = parameter(1.0, low=1e-6, high=1e6, unit="m/s", doc="at least as fast as any way is driven")
    handling_time: float = parameter(0.0, low=0.0, high=1e9, unit="s", doc="no more than taking or putting costs")


@dataclass(frozen=True)
class TaskFile:
    """A file of tasks.

    Attributes:
        summary: What it is.
        places: Poses in the map, by name.
        initial_state: Conditions as they are at first.
        value_domains: Values that conditions may have, where no action says so.
        actions, goals: By name.
        observations: How conditions are seen; others are what actions made them.
        transport: See `TransportConfig`.
    """

    actions: dict[str, ActionConfig]
    goals: dict[str, GoalConfig]
    summary: str = ""
    places: dict[str, Place] = parameter(factory=dict)
    initial_state: dict[str, Any] = parameter(factory=dict)
    value_domains: dict[str, tuple[Any, ...]] = parameter(factory=dict)
    observations: dict[str, ObservationConfig] = parameter(factory=dict)
    transport: TransportConfig | None = None

    def domain(self, path_length: PathLength | None = None) -> PlanningDomain:
        """What the robot can do.

        Args:
            path_length: How far it is between places; as the crow flies, if not said.

        Raises:
            InputError: the actions are not right; says which and why.
        """
        length_function = path_length or straight_line_distance
        actions = tuple(self._make_action(name, config, length_function) for name, config in self.actions.items())
        for name, config in self.actions.items():
            for text in VARIABLE.findall(config.behavior):
                if text.endswith("_pose") and text.removesuffix("_pose") not in config.parameters:
                    raise InputError(
                        f"${text} is no place's", location=f"action {name}", valid="parameters: {…: places}"
                    )
        return PlanningDomain(actions, self.value_domains, self._make_heuristic(length_function), self.places)

    def _make_action(self, name: str, config: ActionConfig, path_length: PathLength) -> PlanningAction:
        parameters: dict[str, tuple[Value, ...]] = {}
        for variable, values in config.parameters.items():
            if values == PLACES:
                parameters[variable] = tuple(self.places)
            elif isinstance(values, list) and values:
                parameters[variable] = tuple(map(_plain_value, values))
            else:
                message = f"${variable} is {values!r}"
                raise InputError(message, location=f"action {name}, parameters", valid="a list of values, or places")
        preconditions, effects = _plain_values(config.preconditions), _plain_values(config.effects)
        cost = config.cost
        if isinstance(cost, CostConfig):
            if len(cost.distance) not in (0, 2):
                raise InputError(
                    f"distance {list(cost.distance)}", location=f"action {name}, cost", valid="from and to"
                )
            return PlanningAction(
                name, effects, preconditions, parameters, partial(self._action_cost, cost, path_length), config.behavior
            )
        return PlanningAction(name, effects, preconditions, parameters, cost, config.behavior)

    def _action_cost(self, cost: CostConfig, path_length: PathLength, binding: Mapping[str, Any]) -> float:
        if not cost.distance:
            return cost.base
        start, end = (str(binding.get(text.removeprefix("$"), text)) for text in cost.distance)
        for place in (start, end):
            if place not in self.places:
                raise UnknownNameError(f"no place {place!r}", valid=", ".join(self.places) or "there are no places")
        length = path_length(self.places[start], self.places[end])
        if not math.isfinite(length):
            raise NoPlanError(f"there is no way from {start} to {end}")
        return max(cost.base + length / cost.speed, 1e-6)

    def _make_heuristic(self, path_length: PathLength) -> Heuristic | None:
        config = self.transport
        if config is None:
            return None
        model = TransportModel(
            tuple(self.places),
            config.objects,
            lambda a, b: path_length(self.places[a], self.places[b]),
            1.0 / config.max_speed,
            config.handling_time,
        )
        return partial(transport_costs, model)

    def goal(self, name: str) -> PlanningGoal:
        """A goal by its name.

        Raises:
            UnknownNameError: there is none; says which there are.
        """
        config = self.goals.get(name)
        if config is None:
            raise UnknownNameError(f"no goal {name!r}", valid=", ".join(self.goals) or "the file has none")
        when = _plain_values(config.when)

        def priority(world: WorldState) -> float:
            return config.priority if is_satisfied(when, world) else 0.0

        return PlanningGoal(name, _plain_values(config.desired_state), priority if when else config.priority)

    def initial_world_state(self) -> dict[str, Value]:
        """The world at first."""
        empty_places = {f"on {place}": EMPTY_HAND for place in self.places} if self.transport is not None else {}
        return {**empty_places, **_plain_values(self.initial_state)}

    def with_places(self, places: Mapping[str, Place]) -> TaskFile:
        """The same with further places."""
        return replace(self, places={**self.places, **places})


def load_tasks(path: str | Path) -> TaskFile:
    """A file of tasks.

    Raises:
        InputError: it is none; says file, line, key, and what would be right.
    """
    tasks = load(TaskFile, Path(path))
    try:
        tasks.domain()
        for name in tasks.goals:
            if not tasks.goal(name).desired_state:
                raise InputError(
                    "the desired state is empty", location=f"goal {name}", valid="desired_state: {condition: value}"
                )
        tasks.initial_world_state()
    except InputError as error:
        location = f"{path}: {error.location}" if error.location else str(path)
        raise InputError(error.message, location=location, valid=error.valid) from None
    return tasks


def straight_line_distance(a: Place, b: Place) -> float:
    """Return the straight-line distance of two places [m]."""
    return math.hypot(a[0] - b[0], a[1] - b[1])


def _plain_values(values: Mapping[str, Any]) -> dict[str, Value]:
    return {name: _plain_value(value) for name, value in values.items()}


def _plain_value(value: Any) -> Value:
    if value is None or isinstance(value, (bool, int, float, str)):
        return EMPTY_HAND if value is None else value
    raise InputError(f"the value {value!r}", valid="a text, a number, true or false")
