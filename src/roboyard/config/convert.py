"""From a node to a value of an annotated type, or an error that says where and what would be right."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from roboyard.config.describe import LISTS, expected, given, near, range_text
from roboyard.config.fields import NO_LIMITS, Limits, info_of, key_of
from roboyard.config.tree import Node
from roboyard.config.units import UnitError, parse_quantity
from roboyard.errors import ConfigError, RoboyardError


def fail(what: str, node: Node, path: str, valid: str | None = None, *, at_key: bool = False) -> NoReturn:
    """Raise the ConfigError for a node: file and line, key path, what, what would be right."""
    place = node.key_place if at_key else node.place
    parts = (place,) if place.endswith(f" {path}") else (place, path)  # "--set duration" names its path already
    raise ConfigError(what, where=", ".join(part for part in parts if part) or None, valid=valid)


def convert(node: Node, annotation: Any, limits: Limits = NO_LIMITS, path: str = "") -> Any:
    """Make the value of type `annotation` that the node describes.

    Raises:
        ConfigError: The node holds something else.
        TypeError: The annotation is of a kind that no file can hold: a mistake in the program.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object:
        return node.plain()
    if origin is Annotated:
        return convert(node, arguments[0], next((a for a in arguments[1:] if isinstance(a, Limits)), limits), path)
    if origin in (Union, types.UnionType):
        return _union(node, arguments, limits, path)
    if origin is Literal:
        return _choice(node, {choice: choice for choice in arguments}, path)
    if annotation in LISTS or origin in LISTS:
        return _list(node, annotation, limits, path)
    if annotation is dict or origin is dict:
        return _dict(node, arguments or (str, Any), limits, path)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return node.value if isinstance(node.value, annotation) else _dataclass(node, annotation, path)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        if isinstance(node.value, annotation):
            return node.value
        return _choice(node, {member.value: member for member in annotation}, path)
    if annotation in (None, type(None)):
        if node.value is not None:
            fail(f"is {given(node)}", node, path, "must be left empty")
        return None
    if annotation not in _SIMPLE:
        raise TypeError(f"{path or 'value'}: a configuration cannot hold {annotation!r}")
    value = _SIMPLE[annotation](node, limits, path)
    _check_limits(value, node, limits, path)
    return value


def _mismatch(node: Node, annotation: Any, limits: Limits, path: str) -> NoReturn:
    fail(f"is {given(node)}", node, path, f"must be {expected(annotation, limits)}")


def _number(node: Node, limits: Limits, path: str) -> float:
    value = node.value
    if isinstance(value, str):
        try:
            return parse_quantity(value, limits.unit)
        except UnitError as error:
            if not limits.unit and value[:1].isalpha():
                _mismatch(node, float, limits, path)
            fail(str(error), node, path, f"must be {expected(float, limits)}")
    if isinstance(value, bool) or not isinstance(value, Real):
        _mismatch(node, float, limits, path)
    try:
        return float(value)
    except OverflowError:
        fail("is too large a number", node, path, f"must be {expected(float, limits)}")


def _whole(node: Node, limits: Limits, path: str) -> int:
    value = node.value
    if isinstance(value, str) and limits.unit:
        number = _number(node, limits, path)
        if number.is_integer():
            return int(number)
    if isinstance(value, bool) or not isinstance(value, Integral):
        _mismatch(node, int, limits, path)
    return int(value)


def _truth(node: Node, limits: Limits, path: str) -> bool:
    if not isinstance(node.value, bool):
        _mismatch(node, bool, limits, path)
    return node.value


def _text(node: Node, limits: Limits, path: str) -> str:
    if isinstance(node.value, bool | int | float):
        fail(f"is {given(node)}", node, path, f"must be {expected(str, limits)}: put quotes round it")
    if not isinstance(node.value, str):
        _mismatch(node, str, limits, path)
    return node.value


def _path(node: Node, limits: Limits, path: str) -> Path:
    if isinstance(node.value, Path):
        return node.value
    if not isinstance(node.value, str) or not node.value or "\0" in node.value:
        _mismatch(node, Path, limits, path)
    return Path(node.value)


_SIMPLE: dict[Any, Callable[[Node, Limits, str], Any]] = {
    float: _number, int: _whole, bool: _truth, str: _text, Path: _path,
}  # fmt: skip


def _check_limits(value: Any, node: Node, limits: Limits, path: str) -> None:
    if limits.choices and value not in limits.choices:
        fail(f"is {value!r}{near(str(value), map(str, limits.choices))}", node, path, range_text(limits))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if isinstance(value, float) and not math.isfinite(value) and value not in (limits.low, limits.high):
        fail(f"is {value}", node, path, f"must be finite; {expected(float, limits)}")
    unit = f" {limits.unit}" if limits.unit else ""
    if limits.low is not None and value < limits.low:
        fail(f"{value:g}{unit} is below {limits.low:g}{unit}", node, path, f"allowed: {range_text(limits)}")
    if limits.high is not None and value > limits.high:
        fail(f"{value:g}{unit} is above {limits.high:g}{unit}", node, path, f"allowed: {range_text(limits)}")


def _choice(node: Node, choices: dict[Any, Any], path: str) -> Any:
    value = node.value
    for choice, result in choices.items():
        # 1 == True in Python, not in a file.
        if type(choice) is type(value) and choice == value:
            return result
    names = [str(choice) for choice in choices]
    fail(f"is {given(node)}{near(str(value), names)}", node, path, f"must be one of: {', '.join(names)}")


def _list(node: Node, annotation: Any, limits: Limits, path: str) -> Any:
    kind, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if not isinstance(node.value, list):
        _mismatch(node, annotation, limits, path)
    count = len(node.value)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if arguments == ((),):
            arguments = ()
        if count != len(arguments):
            fail(f"has {count} elements", node, path, f"must be {expected(annotation, limits)}")
        members = arguments
    else:
        members = (arguments[0] if arguments else Any,) * count
    items = [convert(child, members[i], limits.at(i), f"{path}[{i}]") for i, child in enumerate(node.value)]
    return tuple(items) if kind is tuple else items


def _dict(node: Node, arguments: tuple[Any, ...], limits: Limits, path: str) -> dict[Any, Any]:
    key_type, value_type = arguments
    if not isinstance(node.value, dict):
        _mismatch(node, types.GenericAlias(dict, arguments), limits, path)
    result: dict[Any, Any] = {}
    for key, child in node.value.items():
        inner = f"{path}.{key}" if path else key
        made: Any = key
        if key_type is int:
            if not key.removeprefix("-").isdecimal():
                fail(f"key {key!r} is no whole number", child, inner, at_key=True)
            made = int(key)
        elif key_type not in (str, Any):
            made = convert(Node(key, child.key_place), key_type, NO_LIMITS, f"key {inner}")
        result[made] = convert(child, value_type, limits, inner)
    return result


@lru_cache(maxsize=512)
def hints_of(cls: type[Any]) -> dict[str, Any]:
    """A dataclass's resolved annotations."""
    return get_type_hints(cls, include_extras=True)


def _dataclass(node: Node, cls: type, path: str) -> Any:
    if not isinstance(node.value, dict):
        _mismatch(node, cls, NO_LIMITS, path)
    fields = {key_of(field): field for field in dataclasses.fields(cls) if field.init}
    for key, child in node.value.items():
        if key not in fields:
            allowed = f"keys here: {', '.join(fields)}" if fields else "no keys are allowed here"
            fail(f"unknown key {key!r}{near(key, fields)}", child, path, allowed, at_key=True)
    values: dict[str, Any] = {}
    hints = hints_of(cls)
    for key, field in fields.items():
        inner = f"{path}.{key}" if path else key
        if key in node.value:
            values[field.name] = convert(node.value[key], hints[field.name], info_of(field).limits, inner)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            wanted = expected(hints[field.name], info_of(field).limits)
            fail(f"key {key!r} is missing", node, path, f"it must be {wanted}")
    try:
        return cls(**values)
    except ConfigError as error:
        inner = ", ".join(part for part in (path, error.where or "") if part)
        fail(error.what, node, inner, error.valid)
    except (ValueError, RoboyardError) as error:
        fail(str(error), node, path)


def _union(node: Node, members: tuple[Any, ...], limits: Limits, path: str) -> Any:
    if node.value is None and type(None) in members:
        return None
    rest = [member for member in members if member is not type(None)]
    suited = [member for member in rest if _suits(node, member)] or rest
    suited = _by_kind(node, suited, path)
    errors: list[ConfigError] = []
    for member in suited:
        try:
            return convert(node, member, limits, path)
        except ConfigError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    # Deeper errors tell more than "is a mapping": the alternative that got furthest is what was meant.
    furthest = max(errors, key=lambda error: len(error.where or ""))
    if len(furthest.where or "") > len(", ".join(part for part in (node.place, path) if part)):
        raise furthest
    fail(f"is {given(node)}", node, path, "must be " + " or ".join(expected(member, limits) for member in members))


def _suits(node: Node, member: Any) -> bool:
    """Whether a type is of the node's shape: mapping, list or scalar."""
    kind = get_origin(member) or member
    if kind is Annotated:
        return _suits(node, get_args(member)[0])
    if member is Any or kind in (Union, types.UnionType):
        return True
    shape: type = dict if kind is dict or dataclasses.is_dataclass(kind) else list if kind in LISTS else str
    held = type(node.value) if isinstance(node.value, dict | list) else str
    return shape is held or (isinstance(kind, type) and isinstance(node.value, kind))


def _by_kind(node: Node, members: list[Any], path: str) -> list[Any]:
    """Of several dataclasses keep those whose Literal fields (`what: Literal["spawn"]`) say what the node says."""
    if not isinstance(node.value, dict) or len(members) < 2 or not all(map(dataclasses.is_dataclass, members)):
        return members
    for key, child in node.value.items():
        offered: dict[Any, list[Any]] = {}
        for member in members:
            names = {key_of(field): field.name for field in dataclasses.fields(member) if field.init}
            hint = hints_of(member)[names[key]] if key in names else None
            for value in get_args(hint) if get_origin(hint) is Literal else ():
                offered.setdefault(value, []).append(member)
        if offered and isinstance(child.value, str | int | float | bool | None) and child.value in offered:
            return offered[child.value]
        if offered:
            _choice(child, {value: value for value in offered}, f"{path}.{key}" if path else key)
    return members
