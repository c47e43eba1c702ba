"""Goals in PDDL: written out for other planners, and read from their files.

Read and written is STRIPS with types, negative preconditions and action costs.  What is written has no variables: a
fact is a predicate, and each step that can be of use an action.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from roboyard.behavior.goals.domain import Action, Domain, Goal, Impossible, Value, World, bound_to
from roboyard.behavior.goals.problem import Problem, bits
from roboyard.errors import InputError

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")
_COST: Final = "total-cost"
_PARTS: Final = (":parameters", ":precondition", ":effect")
_WORDS: Final = ("and", "or", "not", "forall", "exists", "imply", "when", "=")
_KNOWN: Final = (":strips", ":typing", ":negative-preconditions", ":action-costs")

Part = str | list[Any]


@dataclass(frozen=True)
class Written:
    """A domain and a problem as texts, and which step each action is.

    Attributes:
        domain, problem: PDDL.
        steps: Names of steps, as plans tell them, by names of actions.
    """

    domain: str
    problem: str
    steps: Mapping[str, str]


def as_pddl(
    domain: Domain, world: World, goal: Goal, *, costs: bool = True, whole: int | None = None
) -> Written:  # fmt: skip
    """What is needed to plan for a goal, without variables.

    Args:
        domain, world, goal: As `make_plan` takes them.
        costs: Write what steps cost, for planners that know costs.
        whole: Write costs so many times as large, as whole numbers, for planners that know no others.
    """
    problem = Problem(domain, world, goal.wants)
    facts = _names([f"{name} {value}" for name, value in problem.facts])
    actions = _names([step.name for step in problem.steps])
    blocks = []
    for name, step, (needs, adds, spoils) in zip(actions, problem.steps, problem.masks, strict=True):
        ends = spoils & problem.beside(needs)  # what never holds before needs no end: planners take it for a condition
        effects = [f"({facts[n]})" for n in bits(adds)] + [f"(not ({facts[n]}))" for n in bits(ends)]
        price = f"{step.cost:.9g}" if whole is None else str(round(step.cost * whole))
        effects += [f"(increase ({_COST}) {price})"] if costs else []
        before = " ".join(f"({facts[n]})" for n in bits(needs))
        blocks.append(
            f"  (:action {name}\n    :parameters ()\n    :precondition (and {before})\n"
            f"    :effect (and {' '.join(effects)}))"
        )
    wants = " ".join(f"({facts[n]})" for n in bits(problem.wanted))
    first = " ".join(f"({facts[n]})" for n in bits(problem.start))
    head = ["(define (domain tasks)", f"  (:requirements :strips{' :action-costs' if costs else ''})"]
    head += [f"  (:predicates {' '.join(f'({name})' for name in facts)})"]
    head += [f"  (:functions ({_COST}) - number)"] if costs else []
    zero, metric = (f" (= ({_COST}) 0)", f"\n  (:metric minimize ({_COST}))") if costs else ("", "")
    return Written(
        "\n".join([*head, *blocks, ")", ""]),
        f"(define (problem one)\n  (:domain tasks)\n  (:init {first}{zero})\n  (:goal (and {wants})){metric}\n)\n",
        dict(zip(actions, (step.name for step in problem.steps), strict=True)),
    )


def _names(texts: list[str]) -> list[str]:
    """Names that PDDL allows, each another."""
    found: dict[str, None] = {}
    for text in texts:
        plain = "f-" + re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        number, name = 1, plain
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found[name] = None
    return list(found)


def read_pddl(domain: str, problem: str) -> tuple[Domain, dict[str, Value], Goal]:
    """A domain, a world and a goal from PDDL: an atom is a condition that is true or false.

    Args:
        domain, problem: The texts.

    Raises:
        InputError: they are no PDDL, or ask for what is not known here; says what.
    """
    rules, task = _parsed(domain, "the domain"), _parsed(problem, "the problem")
    for needed in _section(rules, ":requirements"):
        if needed not in _KNOWN:
            raise InputError(f"{needed} is not known", location="the domain", valid=", ".join(_KNOWN))
    parents = dict(_typed(_section(rules, ":types")))
    kinds = dict(_typed(_section(rules, ":constants")) + _typed(_section(task, ":objects")))
    world: dict[str, Value] = {}
    prices: dict[str, float] = {}
    for fact in _section(task, ":init"):
        if not isinstance(fact, list) or not fact:
            raise InputError(f"{_text(fact)} is no fact", location="the problem, :init", valid="(at truck home)")
        if fact[0] == "=":
            prices.update([_given(fact)])
        else:
            world[_text(fact)[1:-1]] = True
    wanted = _section(task, ":goal")
    if len(wanted) != 1 or not isinstance(wanted[0], list):
        raise InputError("there is no goal", location="the problem", valid="(:goal (and (at truck home)))")
    actions = [_action(one[1:], kinds, parents, prices) for one in rules if one[0] == ":action"]
    goal = Goal("goal", _literals(wanted[0], {}, "the goal"))
    made = Domain(tuple(actions))
    for name in {name for wants in (goal.wants, *_needs(actions, kinds)) for name, value in wants.items() if not value}:
        world.setdefault(name, False)  # what is not said does not hold
    return made, world, goal


def load_pddl(domain: str | Path, problem: str | Path) -> tuple[Domain, dict[str, Value], Goal]:
    """A domain, a world and a goal from two files.

    Raises:
        InputError: see `read_pddl`; or a file cannot be read.
    """
    texts = []
    for path in (domain, problem):
        try:
            texts.append(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InputError(f"cannot be read: {why}", location=str(path), valid="a file in PDDL") from None
    try:
        return read_pddl(*texts)
    except InputError as error:
        raise InputError(error.message, location=f"{domain}, {problem}: {error.location}", valid=error.valid) from None


def _needs(actions: list[Action], kinds: Mapping[str, str]) -> list[dict[str, Value]]:
    """What actions need, with all that their variables may stand for."""
    found = []
    for action in actions:
        negative = {name: value for name, value in action.needs.items() if not value}
        if negative:
            values = product(*action.choices.values())
            found += [bound_to(negative, dict(zip(action.choices, one, strict=True))) for one in values]
    return found


def _parsed(text: str, where: str) -> list[Any]:
    """The parts of a ``(define …)``."""
    stack: list[list[Any]] = [[]]
    for word in _TOKEN.findall(re.sub(r";[^\n]*", "", text).lower()):
        if word == "(":
            stack.append([])
        elif word == ")":
            if len(stack) == 1:
                raise InputError("a ) too much", location=where)
            stack[-2].append(stack.pop())
        else:
            stack[-1].append(word)
    if len(stack) > 1 or len(stack[0]) != 1 or stack[0][0][:1] != ["define"]:
        raise InputError("this is no PDDL", location=where, valid="one (define …), with as many ) as (")
    return [part for part in stack[0][0][1:] if isinstance(part, list) and part]


def _section(parts: list[Any], name: str) -> list[Any]:
    return next((part[1:] for part in parts if part[0] == name), [])


def _typed(words: list[str]) -> list[tuple[str, str]]:
    """``a b - c`` as pairs; what has no type is an object."""
    found: list[tuple[str, str]] = []
    waiting: list[str] = []
    left = iter(words)
    for word in left:
        if not isinstance(word, str):
            raise InputError(f"{_text(word)} is no name", valid="names, and their types after a -")
        if word == "-":
            kind = next(left, "object")
            if not isinstance(kind, str):
                raise InputError(f"{_text(kind)} is no type", valid="the name of a type")
            found += [(one, kind) for one in waiting]
            waiting = []
        else:
            waiting.append(word)
    return found + [(one, "object") for one in waiting]


def _given(fact: list[Any]) -> tuple[str, float]:
    """What a function is at first: ``(= (far a b) 3)``."""
    if len(fact) == 3 and isinstance(fact[1], list):
        with suppress(TypeError, ValueError):
            return _text(fact[1])[1:-1], float(fact[2])
    raise InputError(f"{_text(fact)} is no value", location="the problem, :init", valid="(= (far a b) 3)")


def _action(
    parts: list[Any], kinds: Mapping[str, str], parents: Mapping[str, str], prices: Mapping[str, float]
) -> Action:
    if not parts or not isinstance(parts[0], str):
        raise InputError("an action without a name", location="the domain", valid="(:action drive …)")
    name, where = parts[0], f"action {parts[0]}"
    keys = [_text(one) for one in parts[1::2]]
    said = dict(zip(keys, parts[2::2], strict=False))
    if len(said) != len(keys) or not all(key in _PARTS and isinstance(part, list) for key, part in said.items()):
        raise InputError(
            f"{' '.join(keys)} do not make an action", location=where, valid=f"{', '.join(_PARTS)}, each (…)"
        )

    def is_a(kind: str, wanted: str) -> bool:
        seen: set[str] = set()
        while kind != wanted and kind in parents and kind not in seen:
            seen.add(kind)
            kind = parents[kind]
        return kind == wanted or wanted == "object"

    typed = _typed(said.get(":parameters", []))
    choices = {
        one.removeprefix("?"): tuple(thing for thing, kind in kinds.items() if is_a(kind, wanted))
        for one, wanted in typed
    }
    variables = {one: f"${one.removeprefix('?')}" for one, _ in typed}
    effect = said.get(":effect", [])
    effects = effect[1:] if effect[:1] == ["and"] else [effect]
    if not all(isinstance(one, list) for one in effects):
        raise InputError(f"{_text(effect)} is no effect", location=where, valid="atoms, (not …), (increase …), (and …)")
    grown = [one for one in effects if one[:1] == ["increase"]]
    rest = ["and", *(one for one in effects if one[:1] != ["increase"])]
    needs = _literals(said.get(":precondition", ["and"]), variables, where)
    return Action(name, _literals(rest, variables, where), needs, choices, _price(grown, variables, prices))


def _price(grown: list[list[Any]], variables: Mapping[str, str], prices: Mapping[str, float]) -> Any:
    """A number, or a function of what the variables stand for."""
    if not grown:
        return 1.0
    by = grown[0][2] if len(grown[0]) == 3 else None
    if isinstance(by, str):
        with suppress(ValueError):
            return float(by)
    if not isinstance(by, list) or not all(isinstance(word, str) for word in by):
        raise InputError(f"{_text(grown[0])} is no cost", valid=f"(increase ({_COST}) …): a number, or a function")
    words = [variables.get(word, word) for word in by]

    def price(binding: Mapping[str, Any]) -> float:
        key = " ".join(str(binding[word[1:]]) if word[:1] == "$" else word for word in words)
        if key not in prices:
            raise Impossible(f"({key}) is not said")
        return prices[key]

    return price


def _literals(part: list[Any], variables: Mapping[str, str], where: str) -> dict[str, Value]:
    """Atoms and what they are: true or false; an effect that is both is true."""
    found: dict[str, Value] = {}
    for one in part[1:] if part[:1] == ["and"] else [part] if part else []:
        inner, value = (one[1], False) if one[:1] == ["not"] and len(one) == 2 else (one, True)
        if (
            not inner
            or not isinstance(inner, list)
            or not all(isinstance(word, str) for word in inner)
            or inner[0] in _WORDS
        ):
            raise InputError(f"{_text(one)} is not known", location=where, valid="atoms, (not …), (and …)")
        name = " ".join(variables.get(word, word) for word in inner)
        found[name] = value or bool(found.get(name, False))
    return found


def _text(part: Part) -> str:
    return part if isinstance(part, str) else f"({' '.join(map(_text, part))})"
