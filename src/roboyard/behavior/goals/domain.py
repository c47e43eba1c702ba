"""What a robot may want and can do: conditions, actions with needs and effects, and goals.

After RGOAP (Kolbe 2013): a condition has a value; an action needs some values and brings about others; a goal wants
some.  What an action brings about may be left open (a *variable effect*): ``robot: $to`` is any place that is wanted.
Variables stand in names of conditions, too: ``on $place``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roboyard.behavior.goals.legs import Legs
from roboyard.errors import InputError, RoboyardError

Value = Hashable
World = Mapping[str, Value]
"""Values of conditions by name; one that is not there is not known, and equals nothing."""
Fact = tuple[str, Value]
"""A condition and a value of it."""
VARIABLE = re.compile(r"\$(\w+)")


class Impossible(RoboyardError):  # noqa: N818 - named by the cause
    """Something cannot be brought about; ``what`` says why."""


@dataclass(frozen=True)
class Action:
    """Something that a robot can do.

    Attributes:
        name: Of all actions of this kind; those with variables are told apart by what these stand for.
        effects: Conditions, and what they are afterwards.
        needs: Conditions, and what they have to be before; needed, too, for as long as it takes.
        choices: What variables may stand for.  Without, one stands for whatever is wanted of an effect, or for each
            known value of the condition that it is needed to be.
        cost: A number above zero, or a function of what variables stand for; it raises `Impossible` where there is no
            such action, with the reason.
        does: What carries it out: elements of a behaviour tree, in which ``$variable`` is what it stands for.
    """

    name: str
    effects: Mapping[str, Value]
    needs: Mapping[str, Value] = field(default_factory=dict)
    choices: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    cost: float | Callable[[Mapping[str, Any]], float] = 1.0
    does: str = ""

    def price(self, binding: Mapping[str, Any]) -> float:
        """What it costs, with variables that stand for this.

        Raises:
            Impossible: there is no such action.
            InputError: the cost is no number above zero.
        """
        cost = self.cost(binding) if callable(self.cost) else self.cost
        if not 0.0 < cost < float("inf"):
            raise InputError(f"it costs {cost}", location=f"action {self.name}", valid="a number above zero")
        return cost


@dataclass(frozen=True)
class Goal:
    """Something that is wanted.

    Attributes:
        name: Its name.
        wants: Conditions and what they shall be.
        usability: How much it is worth to get there; a function of the world where that changes.  The goal that is
            worth most is pursued first; what is worth nothing, 0, is none now.
    """

    name: str
    wants: Mapping[str, Value]
    usability: float | Callable[[World], float] = 1.0

    def worth(self, world: World) -> float:
        """How much it is worth in a world."""
        return self.usability(world) if callable(self.usability) else self.usability

    def holds(self, world: World) -> bool:
        """Whether the world is so."""
        return holds(self.wants, world)


Bound = Callable[[World, Sequence[Fact]], Legs]
"""Of a world, and of facts that may be wanted, what carrying things to be so costs at least."""


@dataclass(frozen=True)
class Domain:
    """Actions, what is known about conditions' values, and a bound of costs.

    Attributes:
        actions: What the robot can do.
        values: Values that conditions may have, where that is not known from the actions and the world.
        bound: See `Bound`.
        places: Values that are poses in the map, x, y [m] and yaw [rad]: ``$to_pose`` in what an action does is
            ``x;y;yaw`` of the place that ``$to`` is.
    """

    actions: tuple[Action, ...]
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    bound: Bound | None = None
    places: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [action.name for action in self.actions]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two actions are called {name!r}", valid="a name of its own for each")
        for action in self.actions:
            _check(action)


def holds(wanted: Mapping[str, Value], world: World) -> bool:
    """Whether conditions are as they are wanted."""
    return all(name in world and world[name] == value for name, value in wanted.items())


def variable(value: Value) -> str | None:
    """The name of the variable that a value is; None if it is none."""
    found = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


def filled(text: str, binding: Mapping[str, Any]) -> str:
    """A text with what its variables stand for."""
    return VARIABLE.sub(lambda found: str(binding.get(found[1], found[0])), text)


def bound_to(pairs: Mapping[str, Value], binding: Mapping[str, Any]) -> dict[str, Value]:
    """Conditions and their values, with what variables stand for."""
    found = {}
    for name, value in pairs.items():
        inside = variable(value)
        found[filled(name, binding)] = value if inside is None else binding[inside]
    return found


def variables(action: Action) -> tuple[str, ...]:
    """Names of an action's variables, in order."""
    found: dict[str, None] = dict.fromkeys(action.choices)
    for pairs in (action.effects, action.needs):
        for name, value in pairs.items():
            found.update(dict.fromkeys(VARIABLE.findall(name)))
            inside = variable(value)
            if inside is not None:
                found[inside] = None
    return tuple(found)


def _check(action: Action) -> None:
    where = f"action {action.name}"
    if not action.effects:
        raise InputError("it brings nothing about", location=where, valid="effects: {condition: value}")
    used = variables(action)
    for text in VARIABLE.findall(action.does):
        if text not in used and text.removesuffix("_pose") not in used:
            names = ", ".join(f"${name}" for name in used) or "no variables"
            raise InputError(f"${text} stands for nothing", location=where, valid=f"it has {names}")
    plain = {inside for pairs in (action.effects, action.needs) for v in pairs.values() if (inside := variable(v))}
    for name in used:
        if name not in action.choices and name not in plain:
            what = f"it is not known what ${name} may be"
            raise InputError(what, location=where, valid=f"choices: {{{name}: [...]}}")
