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
"""Length of the path between two places [m]; infinite without a path."""
PLACES = "places"


@dataclass(frozen=True)
class CostConfig:
    """Cost of an action [s]: a time, and the distance between two places at a speed."""

    base: float = parameter(0.0, low=0.0, high=1e9, unit="s", doc="Constant part.")
    distance: tuple[str, ...] = parameter((), doc="Start and end of a path: two variables or places.")
    speed: float = parameter(1.0, low=1e-6, high=1e6, unit="m/s", doc="Speed along the path.")


@dataclass(frozen=True)
class ActionConfig:
    """An action of a task file."""

    effects: dict[str, Any] = parameter(doc="Conditions and their values afterwards; `$name` is a variable.")
    preconditions: dict[str, Any] = parameter(factory=dict, doc="Conditions and their required values.")
    parameters: dict[str, Any] = parameter(factory=dict, doc="Values of variables: a list, or `places`.")
    cost: float | CostConfig = parameter(1.0, doc="Cost: a number [s], or `base`, `distance` and `speed`.")
    behavior: str = parameter(
        "", doc="Elements of a behavior tree; `$name` is a value, `$name_pose` the pose `x;y;yaw` of a place."
    )


@dataclass(frozen=True)
class GoalConfig:
    """A goal of a task file."""

    desired_state: dict[str, Any] = parameter(doc="Conditions and their desired values.")
    priority: float = parameter(1.0, low=0.0, high=1e9, doc="Priority; a goal of higher priority is executed first.")
    when: dict[str, Any] = parameter(factory=dict, doc="Conditions under which the goal is relevant.")
    initial_facts: dict[str, Any] = parameter(factory=dict, doc="Conditions that are set when the task starts.")
    expected_feasible: bool = parameter(True, doc="Whether the goal is feasible; only for metrics.")
    expected_positions: dict[str, tuple[float, float, float]] = parameter(
        factory=dict, doc="True final positions `x, y, z` of objects in the world [m]; only for metrics."
    )


@dataclass(frozen=True)
class ObservationConfig:
    """How a condition is observed while tasks are executed: `near_place`, `near_arm_pose` or `topic`."""

    near_place: float | None = parameter(
        None, unit="m", low=0.0, high=1e3, doc="Largest distance of the robot from the place that is the value."
    )
    near_arm_pose: float | None = parameter(
        None, unit="rad", low=0.0, high=7.0, doc="Largest joint error from the named arm pose that is the value."
    )
    topic: str = parameter("", doc="Topic of the value.")
    type: str = parameter("std_msgs/msg/String", doc="Type of the messages.")
    field: str = parameter("data", doc="Field of the message, as `a.b`.")

    def __post_init__(self) -> None:
        if (self.near_place is not None) + (self.near_arm_pose is not None) + bool(self.topic) != 1:
            raise ConfigError(
                "a condition has exactly one kind of observation", valid="near_place, near_arm_pose or topic"
            )


@dataclass(frozen=True)
class TransportConfig:
    """Transport by one gripper, described by the conditions ``robot``, ``hand`` and ``on PLACE``: the planner uses a
    heuristic of transport costs."""

    objects: tuple[str, ...] = parameter((), doc="Objects that are transported.")
    max_speed: float = parameter(1.0, low=1e-6, high=1e6, unit="m/s", doc="Upper bound of the driving speed.")
    handling_time: float = parameter(
        0.0, low=0.0, high=1e9, unit="s", doc="Lower bound of the cost of picking or placing an object."
    )


@dataclass(frozen=True)
class TaskFile:
    """The content of a task file.

    Attributes:
        summary: Description.
        places: Poses in the map, by name.
        initial_state: Initial values of conditions.
        value_domains: Values that conditions may have, where no action states them.
        actions: Actions by name.
        goals: Goals by name.
        observations: How conditions are observed; other conditions change by the effects of actions only.
        transport: Transport by one gripper; by default none.
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
        """Return the planning domain.

        Args:
            path_length: Length of the path between two places; by default the straight-line distance.

        Raises:
            InputError: An action is not valid; the message names it.
        """
        length_function = path_length or straight_line_distance
        actions = tuple(self._make_action(name, config, length_function) for name, config in self.actions.items())
        for name, config in self.actions.items():
            for text in VARIABLE.findall(config.behavior):
                if text.endswith("_pose") and text.removesuffix("_pose") not in config.parameters:
                    raise InputError(
                        f"${text} belongs to no place", location=f"action {name}", valid="parameters: {…: places}"
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
            raise NoPlanError(f"there is no path from {start} to {end}")
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
        """Return a goal by its name.

        Raises:
            UnknownNameError: There is no such goal; the message lists the goals.
        """
        config = self.goals.get(name)
        if config is None:
            raise UnknownNameError(f"no goal {name!r}", valid=", ".join(self.goals) or "the file has none")
        when = _plain_values(config.when)

        def priority(world: WorldState) -> float:
            return config.priority if is_satisfied(when, world) else 0.0

        return PlanningGoal(name, _plain_values(config.desired_state), priority if when else config.priority)

    def initial_world_state(self) -> dict[str, Value]:
        """Return the initial state of the world."""
        empty_places = {f"on {place}": EMPTY_HAND for place in self.places} if self.transport is not None else {}
        return {**empty_places, **_plain_values(self.initial_state)}

    def with_places(self, places: Mapping[str, Place]) -> TaskFile:
        """Return the tasks with further places."""
        return replace(self, places={**self.places, **places})


def load_tasks(path: str | Path) -> TaskFile:
    """Load a task file.

    Raises:
        InputError: The file is not valid; the message names file, line, key, and the expected value.
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
