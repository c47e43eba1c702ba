"""Files of tasks: a domain, the world at first, and goals, in YAML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from roboyard.behavior.goals.carrying import NOTHING, Carrying, joined_ways
from roboyard.behavior.goals.domain import VARIABLE, Action, Bound, Domain, Goal, Impossible, Value, World, holds
from roboyard.config import load, parameter
from roboyard.errors import ConfigError, InputError, UnknownNameError

Place = tuple[float, float, float]
"""x, y [m] and yaw [rad] in the map."""
Way = Callable[[Place, Place], float]
"""How far it is between two places [m]; infinite where there is no way."""
PLACES = "places"


@dataclass(frozen=True)
class CostOf:
    """What an action costs [s]: a time, and the way between two places at a speed."""

    base: float = parameter(0.0, low=0.0, high=1e9, unit="s", doc="a time")
    way: tuple[str, ...] = parameter((), doc="two variables or places that it leads from and to")
    speed: float = parameter(1.0, low=1e-6, high=1e6, unit="m/s", doc="on the way")


@dataclass(frozen=True)
class ActionOf:
    """An action as a file has it."""

    effects: dict[str, Any] = parameter(doc="conditions and what they are afterwards; $name stands for any value")
    needs: dict[str, Any] = parameter(factory=dict, doc="conditions and what they have to be")
    choices: dict[str, Any] = parameter(factory=dict, doc="what variables may stand for: a list, or `places`")
    cost: float | CostOf = parameter(1.0, doc="a number [s], or base, way and speed")
    does: str = parameter("", doc="elements of a behaviour tree; $name as above, $name_pose a place's x;y;yaw")


@dataclass(frozen=True)
class GoalOf:
    """A goal as a file has it."""

    wants: dict[str, Any] = parameter(doc="conditions and what they shall be")
    usability: float = parameter(1.0, low=0.0, high=1e9, doc="how much it is worth")
    when: dict[str, Any] = parameter(factory=dict, doc="conditions under which it is worth anything")
    begins: dict[str, Any] = parameter(factory=dict, doc="conditions that are so anew when it is taken up")
    possible: bool = parameter(True, doc="whether it can be done, for judging only")
    ends: dict[str, tuple[float, float, float]] = parameter(
        factory=dict, doc="where things truly are when it is done, x, y, z in the world, for judging only"
    )


@dataclass(frozen=True)
class SenseOf:
    """How a condition is seen while tasks are pursued; one of the three."""

    near: float | None = parameter(None, unit="m", low=0.0, high=1e3, doc="the place that the robot is so near to")
    pose: float | None = parameter(
        None, unit="rad", low=0.0, high=7.0, doc="the arm's named pose that joints are so near"
    )
    topic: str = parameter("", doc="a topic whose messages say it")
    type: str = parameter("std_msgs/msg/String", doc="of its messages")
    field: str = parameter("data", doc="of the message, as a.b")

    def __post_init__(self) -> None:
        if (self.near is not None) + (self.pose is not None) + bool(self.topic) != 1:
            raise ConfigError("a condition is seen in one way", valid="near, pose or topic")


@dataclass(frozen=True)
class CarryingOf:
    """That conditions ``robot``, ``hand``, ``on PLACE`` are about one hand that carries things: plans come faster."""

    things: tuple[str, ...] = parameter((), doc="what is carried")
    speed: float = parameter(1.0, low=1e-6, high=1e6, unit="m/s", doc="at least as fast as any way is driven")
    handle: float = parameter(0.0, low=0.0, high=1e9, unit="s", doc="no more than taking or putting costs")


@dataclass(frozen=True)
class Tasks:
    """A file of tasks.

    Attributes:
        summary: What it is.
        places: Poses in the map, by name.
        world: Conditions as they are at first.
        values: Values that conditions may have, where no action says so.
        actions, goals: By name.
        senses: How conditions are seen; others are what actions made them.
        carrying: See `CarryingOf`.
    """

    actions: dict[str, ActionOf]
    goals: dict[str, GoalOf]
    summary: str = ""
    places: dict[str, Place] = parameter(factory=dict)
    world: dict[str, Any] = parameter(factory=dict)
    values: dict[str, tuple[Any, ...]] = parameter(factory=dict)
    senses: dict[str, SenseOf] = parameter(factory=dict)
    carrying: CarryingOf | None = None

    def domain(self, way: Way | None = None) -> Domain:
        """What the robot can do.

        Args:
            way: How far it is between places; as the crow flies, if not said.

        Raises:
            InputError: the actions are not right; says which and why.
        """
        measured = way or straight
        actions = tuple(self._action(name, said, measured) for name, said in self.actions.items())
        for name, said in self.actions.items():
            for text in VARIABLE.findall(said.does):
                if text.endswith("_pose") and text.removesuffix("_pose") not in said.choices:
                    raise InputError(f"${text} is no place's", location=f"action {name}", valid="choices: {…: places}")
        return Domain(actions, self.values, self._bound(measured), self.places)

    def _action(self, name: str, said: ActionOf, way: Way) -> Action:
        choices: dict[str, tuple[Value, ...]] = {}
        for variable, given in said.choices.items():
            if given == PLACES:
                choices[variable] = tuple(self.places)
            elif isinstance(given, list) and given:
                choices[variable] = tuple(map(_plain, given))
            else:
                what = f"${variable} is {given!r}"
                raise InputError(what, location=f"action {name}, choices", valid="a list of values, or places")
        needs, effects = _pairs(said.needs), _pairs(said.effects)
        cost = said.cost
        if isinstance(cost, CostOf):
            if len(cost.way) not in (0, 2):
                raise InputError(f"way {list(cost.way)}", location=f"action {name}, cost", valid="from and to")
            return Action(name, effects, needs, choices, partial(self._price, cost, way), said.does)
        return Action(name, effects, needs, choices, cost, said.does)

    def _price(self, cost: CostOf, way: Way, binding: Mapping[str, Any]) -> float:
        if not cost.way:
            return cost.base
        a, b = (str(binding.get(text.removeprefix("$"), text)) for text in cost.way)
        for place in (a, b):
            if place not in self.places:
                raise UnknownNameError(f"no place {place!r}", valid=", ".join(self.places) or "there are no places")
        length = way(self.places[a], self.places[b])
        if not math.isfinite(length):
            raise Impossible(f"there is no way from {a} to {b}")
        return max(cost.base + length / cost.speed, 1e-6)

    def _bound(self, way: Way) -> Bound | None:
        said = self.carrying
        if said is None:
            return None
        carrying = Carrying(
            tuple(self.places), said.things, lambda a, b: way(self.places[a], self.places[b]), 1.0 / said.speed,
            said.handle,
        )  # fmt: skip
        return partial(joined_ways, carrying)

    def goal(self, name: str) -> Goal:
        """A goal by its name.

        Raises:
            UnknownNameError: there is none; says which there are.
        """
        said = self.goals.get(name)
        if said is None:
            raise UnknownNameError(f"no goal {name!r}", valid=", ".join(self.goals) or "the file has none")
        when = _pairs(said.when)

        def worth(world: World) -> float:
            return said.usability if holds(when, world) else 0.0

        return Goal(name, _pairs(said.wants), worth if when else said.usability)

    def start(self) -> dict[str, Value]:
        """The world at first."""
        known = {f"on {place}": NOTHING for place in self.places} if self.carrying is not None else {}
        return {**known, **_pairs(self.world)}

    def with_places(self, places: Mapping[str, Place]) -> Tasks:
        """The same with further places."""
        return replace(self, places={**self.places, **places})


def load_tasks(path: str | Path) -> Tasks:
    """A file of tasks.

    Raises:
        InputError: it is none; says file, line, key, and what would be right.
    """
    tasks = load(Tasks, Path(path))
    try:
        tasks.domain()
        for name in tasks.goals:
            if not tasks.goal(name).wants:
                raise InputError("it wants nothing", location=f"goal {name}", valid="wants: {condition: value}")
        tasks.start()
    except InputError as error:
        where = f"{path}: {error.location}" if error.location else str(path)
        raise InputError(error.message, location=where, valid=error.valid) from None
    return tasks


def straight(a: Place, b: Place) -> float:
    """As the crow flies."""
    return math.hypot(a[0] - b[0], a[1] - b[1])


def _pairs(said: Mapping[str, Any]) -> dict[str, Value]:
    return {name: _plain(value) for name, value in said.items()}


def _plain(value: Any) -> Value:
    if value is None or isinstance(value, (bool, int, float, str)):
        return NOTHING if value is None else value
    raise InputError(f"the value {value!r}", valid="a text, a number, true or false")
