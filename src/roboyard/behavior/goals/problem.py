"""A domain, a world and what is wanted as sets of facts: whole numbers in which a bit is a fact.

Of all actions with all that their variables may stand for, those are made that can be of use: backwards from what is
wanted.  Facts that never hold together are found forwards from the world, as by Graphplan's and h2's pairs (Haslum and
Geffner 2000): so the search backwards asks for nothing that cannot be.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.behavior.goals.domain import (
    VARIABLE,
    Action,
    Domain,
    Fact,
    Impossible,
    Value,
    World,
    bound_to,
    filled,
    variable,
    variables,
)
from roboyard.behavior.goals.search import Ops


@dataclass(frozen=True)
class Step:
    """An action with what its variables stand for.

    Attributes:
        action: The action.
        binding: What its variables stand for.
        needs, effects: Conditions and values, without variables.
        cost: What it costs.
    """

    action: Action
    binding: Mapping[str, Any]
    needs: Mapping[str, Value]
    effects: Mapping[str, Value]
    cost: float

    @property
    def name(self) -> str:
        """The action's name and what its variables stand for."""
        told = ", ".join(f"{name} {value}" for name, value in self.binding.items())
        return f"{self.action.name} ({told})" if told else self.action.name


@dataclass
class Problem:
    """A domain, a world and what is wanted, in bits.

    Attributes:
        domain, world, wants: What it is made of.
        facts: All facts, by their bit's number.
        steps: All actions that can be of use.
        refused: Actions that there are not, and why.
        blocked: Names of steps that shall not be taken.
    """

    domain: Domain
    world: World
    wants: Mapping[str, Value]
    blocked: frozenset[str] = frozenset()
    facts: list[Fact] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._number: dict[Fact, int] = {}
        self._of_name: dict[str, int] = {}
        self._ground()
        for step in self.steps:
            for pair in step.effects.items():
                self._fact(pair)
        for name in [name for name in self._of_name if name in self.world]:
            self._fact((name, self.world[name]))
        self.start = sum(1 << n for fact, n in self._number.items() if self.world.get(fact[0], _NOTHING) == fact[1])
        self.wanted = self._mask(self.wants)
        self.masks = [(self._mask(step.needs), self._mask(step.effects), self._spoils(step)) for step in self.steps]
        self.together = self._pairs()

    def _fact(self, fact: Fact) -> int:
        if fact not in self._number:
            number = self._number[fact] = len(self.facts)
            self.facts.append(fact)
            self._of_name[fact[0]] = self._of_name.get(fact[0], 0) | 1 << number
        return self._number[fact]

    def _mask(self, pairs: Mapping[str, Value]) -> int:
        return sum(1 << self._fact(pair) for pair in pairs.items())

    def _spoils(self, step: Step) -> int:
        """Facts that do not hold after a step, or not before: other values of what it changes."""
        mask = 0
        for name, value in step.effects.items():
            mask |= self._of_name[name] & ~(1 << self._number[name, value])
        return mask

    # -- which actions can be of use -----------------------------------------------------------------------------------
    def _ground(self) -> None:
        known = self._known_values()
        shapes = [
            (action, variables(action), [(_pattern(name), value) for name, value in action.effects.items()])
            for action in self.domain.actions
        ]
        seen: set[tuple[str, tuple[Any, ...]]] = set()
        queue: deque[Fact] = deque()

        def want(fact: Fact) -> None:
            if fact not in self._number:
                self._fact(fact)
                queue.append(fact)

        for pair in self.wants.items():
            want(pair)
        while queue:
            fact = queue.popleft()
            for action, names, effects in shapes:
                for pattern, value in effects:
                    given = _match(pattern, value, fact)
                    if given is None or any(v not in action.choices.get(n, (v,)) for n, v in given.items()):
                        continue
                    for binding in _bindings(action, names, given, known):
                        key = (action.name, tuple(binding.values()))
                        if key not in seen:
                            seen.add(key)
                            step = self._step(action, binding)
                            if step is not None:
                                self.steps.append(step)
                                for pair in step.needs.items():
                                    want(pair)

    def _step(self, action: Action, binding: dict[str, Any]) -> Step | None:
        needs, effects = bound_to(action.needs, binding), bound_to(action.effects, binding)
        if all(needs.get(name, _NOTHING) == value for name, value in effects.items()):
            return None  # it changes nothing
        try:
            step = Step(action, binding, needs, effects, action.price(binding))
        except Impossible as error:
            self.refused[Step(action, binding, needs, effects, 0.0).name] = error.message
            return None
        return None if step.name in self.blocked else step

    def _known_values(self) -> dict[str, list[Value]]:
        """Values that conditions without variables in their names are known to have."""
        known: dict[str, dict[Value, None]] = {}
        for pairs in (self.world, self.wants):
            for name, value in pairs.items():
                known.setdefault(name, {})[value] = None
        for name, values in self.domain.values.items():
            known.setdefault(name, {}).update(dict.fromkeys(values))
        for action in self.domain.actions:
            for pairs in (action.needs, action.effects):
                for name, value in pairs.items():
                    inside = variable(value)
                    values = (value,) if inside is None else action.choices.get(inside, ())
                    known.setdefault(name, {}).update(dict.fromkeys(values))
        return {name: list(values) for name, values in known.items()}

    # -- what can hold together ----------------------------------------------------------------------------------------
    def _pairs(self) -> list[int]:
        """For each fact those that may hold at the same time, itself among them; none if it never holds."""
        together = [0] * len(self.facts)
        held = self.start
        for bit in bits(held):
            together[bit] = held
        changed = True
        while changed:
            changed = False
            for needs, effects, spoils in self.masks:
                beside = held
                for bit in bits(needs):
                    beside &= together[bit]
                if needs & ~beside:
                    continue  # they never hold together
                after = effects | beside & ~spoils
                for bit in bits(effects):
                    new = after & ~together[bit]
                    if new:
                        changed = True
                        together[bit] |= new
                        for other in bits(new):
                            together[other] |= 1 << bit
                held |= effects
        return together

    def beside(self, mask: int) -> int:
        """Facts that may hold together with each of some."""
        found = (1 << len(self.facts)) - 1
        for bit in bits(mask):
            found &= self.together[bit]
        return found

    # -- for the search ------------------------------------------------------------------------------------------------
    def row(self, mask: int) -> NDArray[np.int64]:
        """For each condition the fact of a set that is a value of it, or -1."""
        found = np.full(len(self._of_name), -1, np.int64)
        order = {name: number for number, name in enumerate(self._of_name)}
        for bit in bits(mask):
            found[order[self.facts[bit][0]]] = bit
        return found

    def ops(self) -> Ops:
        """Actions that can be of use, in numbers."""
        count = len(self.facts)
        every = (1 << count) - 1
        makers: list[list[int]] = [[] for _ in self.facts]
        for number, (needs, effects, _) in enumerate(self.masks):
            if self.can_be(needs):
                for bit in bits(effects):
                    makers[bit].append(number)
        order = {name: number for number, name in enumerate(self._of_name)}
        words = -(-count // 64)
        bars = b"".join(
            (spoils | ~self.beside(needs) & every & ~effects).to_bytes(8 * words, "little")
            for needs, effects, spoils in self.masks
        )
        return Ops(
            _table([list(bits(needs)) for needs, _, _ in self.masks]),
            _table([list(bits(effects)) for _, effects, _ in self.masks]),
            np.array([step.cost for step in self.steps], np.float64),
            np.concatenate(([0], np.cumsum([len(made) for made in makers], dtype=np.int64))),
            np.array([number for made in makers for number in made], np.int64),
            np.array([order[name] for name, _ in self.facts], np.int64),
            np.frombuffer(bars, np.uint64).reshape(-1, words),
            np.array([self.start >> bit & 1 for bit in range(count)], np.bool_),
        )  # fmt: skip

    def can_be(self, mask: int) -> bool:
        """Whether each two of the facts may hold together."""
        return all(not mask & ~self.together[bit] for bit in bits(mask))


_NOTHING = object()


def _table(rows: list[list[int]]) -> NDArray[np.int64]:
    """Lists of numbers as rows, with -1 to fill up."""
    found = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int64)
    for row, numbers in zip(found, rows, strict=True):
        row[: len(numbers)] = numbers
    return found


def bits(mask: int) -> Iterator[int]:
    """Numbers of the bits that are set, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _pattern(name: str) -> str | re.Pattern[str]:
    if not VARIABLE.search(name):
        return name
    parts = VARIABLE.split(name)
    text = "".join(f"(?P<{part}>.+)" if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return re.compile(text)


def _match(pattern: str | re.Pattern[str], value: Value, fact: Fact) -> dict[str, Value] | None:
    """What variables have to stand for, that an effect is a fact; None if it cannot be."""
    name, wanted = fact
    given: dict[str, Value] = {}
    if isinstance(pattern, str):
        if pattern != name:
            return None
    else:
        found = pattern.fullmatch(name)
        if found is None:
            return None
        given.update(found.groupdict())
    inside = variable(value)
    if inside is None:
        return given if value == wanted else None
    return None if given.get(inside, wanted) != wanted else given | {inside: wanted}


def _bindings(
    action: Action, names: tuple[str, ...], given: Mapping[str, Value], known: Mapping[str, list[Value]]
) -> Iterator[dict[str, Value]]:
    """All that an action's variables may stand for, where some are given."""
    candidates = []
    for name in names:
        if name in given:
            candidates.append([given[name]])
        elif name in action.choices:
            candidates.append(list(action.choices[name]))
        else:
            own = [key for pairs in (action.needs, action.effects) for key, v in pairs.items() if variable(v) == name]
            found = dict.fromkeys(value for key in own for value in known.get(filled(key, given), ()))
            candidates.append(list(found))
    for values in product(*candidates):
        yield dict(zip(names, values, strict=True))
