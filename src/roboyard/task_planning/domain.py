"""Conditions, actions with preconditions and effects, and goals of task planning.

After RGOAP (Kolbe 2013): a condition has a value; an action requires some values and changes others; a goal is a
desired state. The value of an effect may be open (a *variable effect*): ``robot: $to`` is any desired place.
Names of conditions contain variables, too: ``on $place``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roboyard.errors import InputError, RoboyardError
from roboyard.task_planning.transport_costs import TransportCosts

Value = Hashable
WorldState = Mapping[str, Value]
"""Values of conditions by name; one that is not there is not known, and equals nothing."""
Fact = tuple[str, Value]
"""A condition and a value of it."""
VARIABLE = re.compile(r"\$(\w+)")


class NoPlanError(RoboyardError):
    """There is no plan or no such action; the message gives the reason."""


@dataclass(frozen=True)
class PlanningAction:
    """An action of a robot.

    Attributes:
        name: Name of all actions of this kind; ground actions differ by the values of their variables.
        effects: Conditions and their values afterwards.
        preconditions: Conditions and the values that they must have before and during the action.
        parameters: Values that variables may take. Without, a variable takes the desired value of an effect, or
            each known value of the condition that requires it.
        cost: A positive number, or a function of the values of the variables; it raises `NoPlanError` with the
            reason where there is no such action.
        behavior: Elements of a behavior tree that execute the action; ``$variable`` is replaced by its value.
    """

    name: str
    effects: Mapping[str, Value]
    preconditions: Mapping[str, Value] = field(default_factory=dict)
    parameters: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    cost: float | Callable[[Mapping[str, Any]], float] = 1.0
    behavior: str = ""

    def cost_of(self, binding: Mapping[str, Any]) -> float:
        """Return the cost with values of the variables.

        Raises:
            NoPlanError: There is no such action.
            InputError: The cost is no positive number.
        """
        cost = self.cost(binding) if callable(self.cost) else self.cost
        if not 0.0 < cost < float("inf"):
            raise InputError(f"the cost is {cost}", location=f"action {self.name}", valid="a number above zero")
        return cost


@dataclass(frozen=True)
class PlanningGoal:
    """A desired state.

    Attributes:
        name: Its name.
        desired_state: Conditions and their desired values.
        priority: A number, or a function of the state of the world (usability in RGOAP). The goal of the highest
            priority is executed first; one of priority 0 is not relevant now.
    """

    name: str
    desired_state: Mapping[str, Value]
    priority: float | Callable[[WorldState], float] = 1.0

    def priority_in(self, world: WorldState) -> float:
        """Return the priority in a state of the world."""
        return self.priority(world) if callable(self.priority) else self.priority

    def is_satisfied(self, world: WorldState) -> bool:
        """Return whether a state of the world is the desired one."""
        return is_satisfied(self.desired_state, world)


Heuristic = Callable[[WorldState, Sequence[Fact]], TransportCosts]
"""Returns the costs of transport for a state of the world and facts that may be desired; see `TransportCosts`."""


@dataclass(frozen=True)
class PlanningDomain:
    """Actions, known values of conditions, and a heuristic.

    Attributes:
        actions: Actions of the robot.
        value_domains: Values that conditions may have, where actions and initial state do not give them.
        heuristic: See `Heuristic`.
        places: Values that are poses in the map, x, y [m] and yaw [rad]: ``$to_pose`` in the behavior of an action
            is ``x;y;yaw`` of the place ``$to``.
    """

    actions: tuple[PlanningAction, ...]
    value_domains: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    heuristic: Heuristic | None = None
    places: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [action.name for action in self.actions]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two actions have the name {name!r}", valid="different names")
        for action in self.actions:
            _check_action(action)


def is_satisfied(desired_state: Mapping[str, Value], world: WorldState) -> bool:
    """Return whether conditions have their desired values."""
    return all(name in world and world[name] == value for name, value in desired_state.items())


def variable_name(value: Value) -> str | None:
    """Return the name of the variable that a value is; None if it is none."""
    found = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


def substitute_text(text: str, binding: Mapping[str, Any]) -> str:
    """Replace the variables in a text by their values."""
    return VARIABLE.sub(lambda found: str(binding.get(found[1], found[0])), text)


def substitute(pairs: Mapping[str, Value], binding: Mapping[str, Any]) -> dict[str, Value]:
    """Replace the variables in conditions and values."""
    found = {}
    for name, value in pairs.items():
        name_in_value = variable_name(value)
        found[substitute_text(name, binding)] = value if name_in_value is None else binding[name_in_value]
    return found


def variable_names(action: PlanningAction) -> tuple[str, ...]:
    """Return the names of the variables of an action, in order."""
    found: dict[str, None] = dict.fromkeys(action.parameters)
    for pairs in (action.effects, action.preconditions):
        for name, value in pairs.items():
            found.update(dict.fromkeys(VARIABLE.findall(name)))
            name_in_value = variable_name(value)
            if name_in_value is not None:
                found[name_in_value] = None
    return tuple(found)


def _check_action(action: PlanningAction) -> None:
    location = f"action {action.name}"
    if not action.effects:
        raise InputError("there are no effects", location=location, valid="effects: {condition: value}")
    used_variables = variable_names(action)
    for text in VARIABLE.findall(action.behavior):
        if text not in used_variables and text.removesuffix("_pose") not in used_variables:
            names = ", ".join(f"${name}" for name in used_variables) or "no variables"
            raise InputError(f"${text} is no variable of the action", location=location, valid=f"it has {names}")
    value_variables = {
        inside
        for pairs in (action.effects, action.preconditions)
        for v in pairs.values()
        if (inside := variable_name(v))
    }
    for name in used_variables:
        if name not in action.parameters and name not in value_variables:
            message = f"the values of ${name} are not known"
            raise InputError(message, location=location, valid=f"parameters: {{{name}: [...]}}")
