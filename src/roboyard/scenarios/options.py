"""A scenario's options: short names for `--set` that stand for what lies deeper, or for several changes at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roboyard.config import YamlNode, apply_override, load, parameter, parse_yaml, yaml_from_data
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError
from roboyard.scenarios.overlay import laid_on

Plain = str | int | float | bool


@dataclass(frozen=True)
class OptionEntry:
    """One option: `choices`, each with what it changes, or `sets`, the key that takes its value.

    `roboyard run … --set NAME=VALUE` gives the value.  What is changed is laid on the scenario as `smoke` is; what
    `--set` says of deeper keys counts more.
    """

    summary: str = parameter("", doc="one line on what it is for")
    choices: dict[str, dict[str, Any]] = parameter(factory=dict, doc="by name, what each changes in the scenario")
    sets: str = parameter("", doc="the key that the value is put at instead: robots.rover.parameters.navigator.planner")
    valid: tuple[Plain, ...] = parameter((), doc="values that it may have; none named: any")
    value: Plain | None = parameter(None, doc="when nobody gives one; the first choice, or what stands at the key")

    def __post_init__(self) -> None:
        if bool(self.choices) == bool(self.sets):
            raise ConfigError("neither or both of 'choices' and 'sets'", valid="one of them")
        if self.choices and self.valid:
            raise ConfigError("'valid' beside 'choices'", valid="the names of the choices are what is valid")

    @property
    def allowed(self) -> tuple[Plain, ...]:
        """Values that it may have; empty: any."""
        return tuple(self.choices) or self.valid

    @property
    def chosen(self) -> Plain | None:
        """The value that counts; None: what stands at the key."""
        return next(iter(self.choices)) if self.value is None and self.choices else self.value


def with_options(node: YamlNode, assignments: Sequence[str]) -> tuple[YamlNode, list[str]]:
    """A scenario with its options' values in place, and the assignments that are of no option.

    An option may be called as a key of scenarios is: then a plain value is the option's, a mapping the key's.

    Args:
        node: The scenario as it was read.
        assignments: ``key.path=value``, as `--set` gives them; of two of one option the last counts.

    Raises:
        ConfigError: a value is not among those that are valid, or an option makes no sense.
    """
    entries = node.value.get("options") if isinstance(node.value, dict) else None
    if entries is None or not isinstance(entries.value, dict):
        return node, list(assignments)
    options = {name: load(OptionEntry, one, source_name=f"options.{name}") for name, one in entries.value.items()}
    given: dict[str, Plain] = {}
    rest = []
    for text in assignments:
        key, _, value = text.partition("=")
        name = key.removeprefix("options.").removesuffix(".value") if key.endswith(".value") else key
        read = parse_yaml(value, f"--set {name}").value if name in options and value.strip() else None
        if isinstance(read, Plain):
            given[name] = read
        else:
            rest.append(text)
    for name, option in options.items():
        chosen = given.get(name, option.chosen)
        if chosen is not None:
            where = f"--set {name}" if name in given else f"options.{name}.value"
            node = _with(node, name, option, chosen, where)
    return node, rest


def _with(node: YamlNode, name: str, option: OptionEntry, value: Plain, where: str) -> YamlNode:
    if option.allowed and value not in option.allowed:
        words = [str(one) for one in option.allowed]
        meant = did_you_mean(value, words) if isinstance(value, str) else ""
        raise ConfigError(f"{value!r}{meant}", location=where, valid=", ".join(words))
    if option.choices:
        node = laid_on(node, node.value["options"].value[name].value["choices"].value[str(value)])
    else:
        node = apply_override(node, f"{option.sets}={json.dumps(value)}")
    return laid_on(node, yaml_from_data({"options": {name: {"value": value}}}, where))
