"""Wording of error messages: expected types and ranges, given values."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from roboyard.config.parameter import UNCONSTRAINED, RegisteredName, ValueConstraint
from roboyard.config.yaml_tree import YamlNode
from roboyard.errors import similar_names

LIST_TYPES = (list, tuple)


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def describe_range(constraint: ValueConstraint, *, with_unit: bool = True) -> str:
    """Describe a range: '0.1 to 5 m', 'at least 0', 'one of: a, b', or ''."""
    unit = f" {constraint.unit}" if constraint.unit and with_unit else ""
    if constraint.choices:
        return f"one of: {', '.join(map(str, constraint.choices))}"
    if constraint.low is not None and constraint.high is not None:
        return f"{constraint.low:g} to {constraint.high:g}{unit}"
    if constraint.low is not None:
        return f"at least {constraint.low:g}{unit}"
    return f"at most {constraint.high:g}{unit}" if constraint.high is not None else ""


def describe_expected(annotation: Any, constraint: ValueConstraint = UNCONSTRAINED) -> str:
    """Describe a valid value of this type in a file: 'a number in m, 0.1 to 5 m'."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        registered_name = RegisteredName.of(arguments[1:])
        if registered_name is not None:
            return f"one of: {', '.join(registered_name.registry.names())}"
        return describe_expected(
            arguments[0], next((a for a in arguments[1:] if isinstance(a, ValueConstraint)), constraint)
        )
    if origin is Literal:
        return f"one of: {', '.join(map(str, arguments))}"
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(describe_expected(member, constraint) for member in arguments))
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return f"a list of {len(arguments)}: " + ", ".join(
            describe_expected(member, constraint.of_element(i)) for i, member in enumerate(arguments)
        )
    if annotation in LIST_TYPES or origin in LIST_TYPES:
        return f"a list, each {describe_expected(arguments[0], constraint)}" if arguments else "a list"
    if annotation is dict or origin is dict:
        return f"a mapping, each value {describe_expected(arguments[1], constraint)}" if arguments else "a mapping"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of: {', '.join(str(member.value) for member in annotation)}"
    if dataclasses.is_dataclass(annotation):
        return "a mapping"
    if annotation in (None, type(None)):
        return "nothing (null)"
    simple = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}
    description = simple.get(annotation, "a value")
    if constraint.unit and annotation in (int, float):
        description += f" in {constraint.unit}"
    allowed = describe_range(constraint, with_unit=False)
    return f"{description}, {allowed}" if allowed else description


def describe_value(node: YamlNode) -> str:
    """Describe the value of a node: 'the text 'abc'', 'a list of 3'."""
    value = node.value
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value!r:.60}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a mapping with {', '.join(value)!s:.60}" if value else "an empty mapping"
    if isinstance(value, int | float):
        return f"the number {value!s:.40}"
    return f"a {type(value).__name__}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return '; did you mean 'duration'?', or '' if no name is similar."""
    matches = similar_names(name, names, count=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""
