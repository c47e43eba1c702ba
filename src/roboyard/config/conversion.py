"""Converts a YAML node to a value of an annotated type; errors name the location and what was expected."""

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

from roboyard.config.parameter import (
    UNCONSTRAINED,
    RegisteredName,
    RegisteredType,
    ValueConstraint,
    parameter_info,
    yaml_key,
)
from roboyard.config.units import UnitError, parse_quantity
from roboyard.config.wording import LIST_TYPES, describe_expected, describe_range, describe_value, did_you_mean
from roboyard.config.yaml_tree import YamlNode, find_along_path
from roboyard.errors import ConfigError, RoboyardError


def raise_config_error(
    message: str, node: YamlNode, path: str, valid: str | None = None, *, at_key: bool = False
) -> NoReturn:
    """Raise the ConfigError for a node: file and line, key path, what, what would be right."""
    location = node.key_location if at_key else node.location
    parts = (
        (location,) if location.endswith(f" {path}") else (location, path)
    )  # "--set duration" names its path already
    raise ConfigError(message, location=", ".join(part for part in parts if part) or None, valid=valid)


def convert(node: YamlNode, annotation: Any, constraint: ValueConstraint = UNCONSTRAINED, path: str = "") -> Any:
    """Make the value of type `annotation` that the node describes.

    Raises:
        ConfigError: The node holds something else.
        TypeError: The annotation is of a kind that no file can hold: a mistake in the program.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object:
        return node.to_data()
    if origin is Annotated:
        registered_name = RegisteredName.of(arguments[1:])
        if registered_name is not None:
            return _convert_registered_name(node, registered_name, path)
        registered_type = RegisteredType.of(arguments[1:])
        if registered_type is not None:
            return _convert_registered(node, arguments[0], registered_type, path)
        return convert(
            node, arguments[0], next((a for a in arguments[1:] if isinstance(a, ValueConstraint)), constraint), path
        )
    if origin in (Union, types.UnionType):
        return _convert_union(node, arguments, constraint, path)
    if origin is Literal:
        return _convert_choice(node, {choice: choice for choice in arguments}, path)
    if annotation in LIST_TYPES or origin in LIST_TYPES:
        return _convert_list(node, annotation, constraint, path)
    if annotation is dict or origin is dict:
        return _convert_mapping(node, arguments or (str, Any), constraint, path)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return node.value if isinstance(node.value, annotation) else _convert_dataclass(node, annotation, path)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        if isinstance(node.value, annotation):
            return node.value
        return _convert_choice(node, {member.value: member for member in annotation}, path)
    if annotation in (None, type(None)):
        if node.value is not None:
            raise_config_error(f"is {describe_value(node)}", node, path, "must be left empty")
        return None
    if annotation not in _SCALAR_CONVERTERS:
        raise TypeError(f"{path or 'value'}: a configuration cannot hold {annotation!r}")
    value = _SCALAR_CONVERTERS[annotation](node, constraint, path)
    _check_constraint(value, node, constraint, path)
    return value


def _raise_mismatch(node: YamlNode, annotation: Any, constraint: ValueConstraint, path: str) -> NoReturn:
    raise_config_error(f"is {describe_value(node)}", node, path, f"must be {describe_expected(annotation, constraint)}")


def _convert_number(node: YamlNode, constraint: ValueConstraint, path: str) -> float:
    value = node.value
    if isinstance(value, str):
        try:
            return parse_quantity(value, constraint.unit)
        except UnitError as error:
            if not constraint.unit and value[:1].isalpha():
                _raise_mismatch(node, float, constraint, path)
            raise_config_error(str(error), node, path, f"must be {describe_expected(float, constraint)}")
    if isinstance(value, bool) or not isinstance(value, Real):
        _raise_mismatch(node, float, constraint, path)
    try:
        return float(value)
    except OverflowError:
        raise_config_error("is too large a number", node, path, f"must be {describe_expected(float, constraint)}")


def _convert_integer(node: YamlNode, constraint: ValueConstraint, path: str) -> int:
    value = node.value
    if isinstance(value, str) and constraint.unit:
        number = _convert_number(node, constraint, path)
        if number.is_integer():
            return int(number)
    if isinstance(value, bool) or not isinstance(value, Integral):
        _raise_mismatch(node, int, constraint, path)
    number = int(value)
    if not -(2**63) <= number < 2**63:  # ROS parameters and messages hold no larger ones
        raise_config_error("is too large a number", node, path, "must be a whole number of 64 bits")
    return number


def _convert_boolean(node: YamlNode, constraint: ValueConstraint, path: str) -> bool:
    if not isinstance(node.value, bool):
        _raise_mismatch(node, bool, constraint, path)
    return node.value


def _convert_string(node: YamlNode, constraint: ValueConstraint, path: str) -> str:
    if isinstance(node.value, bool | int | float):
        raise_config_error(
            f"is {describe_value(node)}",
            node,
            path,
            f"must be {describe_expected(str, constraint)}: put quotes round it",
        )
    if not isinstance(node.value, str):
        _raise_mismatch(node, str, constraint, path)
    return node.value


def _convert_path(node: YamlNode, constraint: ValueConstraint, path: str) -> Path:
    if isinstance(node.value, Path):
        return node.value
    if not isinstance(node.value, str) or not node.value or "\0" in node.value:
        _raise_mismatch(node, Path, constraint, path)
    return Path(node.value)


_SCALAR_CONVERTERS: dict[Any, Callable[[YamlNode, ValueConstraint, str], Any]] = {
    float: _convert_number, int: _convert_integer, bool: _convert_boolean, str: _convert_string, Path: _convert_path,
}  # fmt: skip


def _check_constraint(value: Any, node: YamlNode, constraint: ValueConstraint, path: str) -> None:
    if constraint.choices and value not in constraint.choices:
        raise_config_error(
            f"is {value!r}{did_you_mean(str(value), map(str, constraint.choices))}",
            node,
            path,
            describe_range(constraint),
        )
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if isinstance(value, float) and not math.isfinite(value) and value not in (constraint.low, constraint.high):
        raise_config_error(f"is {value}", node, path, f"must be finite; {describe_expected(float, constraint)}")
    unit = f" {constraint.unit}" if constraint.unit else ""
    if constraint.low is not None and value < constraint.low:
        raise_config_error(
            f"{value:g}{unit} is below {constraint.low:g}{unit}", node, path, f"allowed: {describe_range(constraint)}"
        )
    if constraint.high is not None and value > constraint.high:
        raise_config_error(
            f"{value:g}{unit} is above {constraint.high:g}{unit}", node, path, f"allowed: {describe_range(constraint)}"
        )


def _convert_choice(node: YamlNode, choices: dict[Any, Any], path: str) -> Any:
    value = node.value
    for choice, result in choices.items():
        # 1 == True in Python, not in a file.
        if type(choice) is type(value) and choice == value:
            return result
    names = [str(choice) for choice in choices]
    raise_config_error(
        f"is {describe_value(node)}{did_you_mean(str(value), names)}", node, path, f"must be one of: {', '.join(names)}"
    )


def _convert_list(node: YamlNode, annotation: Any, constraint: ValueConstraint, path: str) -> Any:
    kind, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if not isinstance(node.value, list):
        _raise_mismatch(node, annotation, constraint, path)
    count = len(node.value)
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if arguments == ((),):
            arguments = ()
        if count != len(arguments):
            raise_config_error(
                f"has {count} elements", node, path, f"must be {describe_expected(annotation, constraint)}"
            )
        members = arguments
    else:
        members = (arguments[0] if arguments else Any,) * count
    items = [convert(child, members[i], constraint.of_element(i), f"{path}[{i}]") for i, child in enumerate(node.value)]
    return tuple(items) if kind is tuple else items


def _convert_mapping(
    node: YamlNode, arguments: tuple[Any, ...], constraint: ValueConstraint, path: str
) -> dict[Any, Any]:
    key_type, value_type = arguments
    if not isinstance(node.value, dict):
        _raise_mismatch(node, types.GenericAlias(dict, arguments), constraint, path)
    result: dict[Any, Any] = {}
    for key, child in node.value.items():
        inner_path = f"{path}.{key}" if path else key
        converted_key: Any = key
        if key_type is int:
            if not key.removeprefix("-").isdecimal():
                raise_config_error(f"key {key!r} is no whole number", child, inner_path, at_key=True)
            converted_key = int(key)
        elif key_type not in (str, Any):
            converted_key = convert(YamlNode(key, child.key_location), key_type, UNCONSTRAINED, f"key {inner_path}")
        result[converted_key] = convert(child, value_type, constraint, inner_path)
    return result


@lru_cache(maxsize=512)
def type_hints(cls: type[Any]) -> dict[str, Any]:
    """A dataclass's resolved annotations."""
    return get_type_hints(cls, include_extras=True)


def configuration_keys(cls: type) -> tuple[str, ...]:
    """Return the keys of a configuration in files, in order, those of flattened configurations included."""
    keys: list[str] = []
    for field in dataclasses.fields(cls):
        prefix = parameter_info(field).flatten
        if not field.init:
            continue
        if prefix is None:
            keys.append(yaml_key(field))
        else:
            keys += [prefix + key for key in configuration_keys(type_hints(cls)[field.name])]
    return tuple(keys)


def _convert_dataclass(node: YamlNode, cls: type, path: str) -> Any:
    if not isinstance(node.value, dict):
        _raise_mismatch(node, cls, UNCONSTRAINED, path)
    keys = configuration_keys(cls)
    for key, child in node.value.items():
        if key not in keys:
            allowed = f"keys here: {', '.join(keys)}" if keys else "no keys are allowed here"
            raise_config_error(f"unknown key {key!r}{did_you_mean(key, keys)}", child, path, allowed, at_key=True)
    return _make_dataclass(node, node.value, cls, path, "")


def _convert_registered_name(node: YamlNode, registered_name: RegisteredName, path: str) -> str:
    registry, name = registered_name.registry, node.value
    if isinstance(name, str) and name in registry:
        return name
    choice: str = _convert_choice(node, {choice: choice for choice in registry.names()}, path)
    return choice


def _convert_registered(node: YamlNode, base: type, registered_type: RegisteredType, path: str) -> Any:
    """Make the dataclass whose registered name one of the keys gives."""
    if isinstance(node.value, base):
        return node.value
    if not isinstance(node.value, dict):
        _raise_mismatch(node, base, UNCONSTRAINED, path)
    registry, key = registered_type.registry, registered_type.key
    child = node.value.get(key)
    if child is None:
        raise_config_error(f"key {key!r} is missing", node, path, f"it must be one of: {', '.join(registry.names())}")
    name, inner_path = child.value, f"{path}.{key}" if path else key
    if not isinstance(name, str) or name not in registry:
        _convert_choice(child, {choice: choice for choice in registry.names()}, inner_path)
    try:
        cls = registry[name]
    except ConfigError as error:
        raise_config_error(f"{name!r}: {error}", child, inner_path)
    return _convert_dataclass(node, cls, path)


def _make_dataclass(node: YamlNode, children: dict[str, YamlNode], cls: type, path: str, prefix: str) -> Any:
    """Make the dataclass of the children whose keys begin with the prefix."""
    values: dict[str, Any] = {}
    hints = type_hints(cls)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        info, annotation = parameter_info(field), hints[field.name]
        if info.flatten is not None:
            inner_prefix = prefix + info.flatten
            if any(inner_prefix + key in children for key in configuration_keys(annotation)):
                values[field.name] = _make_dataclass(node, children, annotation, path, inner_prefix)
            continue
        key = prefix + yaml_key(field)
        if key in children:
            values[field.name] = convert(children[key], annotation, info.constraint, f"{path}.{key}" if path else key)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            expectation = describe_expected(annotation, info.constraint)
            raise_config_error(f"key {key!r} is missing", node, path, f"it must be {expectation}")
    try:
        return cls(**values)
    except ConfigError as error:
        _raise_at_key(error, node, path, prefix)
    except (ValueError, RoboyardError) as error:
        raise_config_error(str(error), node, path)


def _raise_at_key(error: ConfigError, node: YamlNode, path: str, prefix: str) -> NoReturn:
    """Raise what a class says of its values at the key that it names in `location`, or at the mapping.

    Where it names several keys ("height, percentile"), the one is blamed that was laid over the mapping from elsewhere.
    """
    found = []
    for key in (error.location or "").split(", "):
        culprit, remaining_path = find_along_path(node, prefix + key)
        if not key or remaining_path:
            continue
        found.append((culprit, f"{path}.{prefix}{key}" if path else prefix + key))
    if found:
        source = _source_name(node.location)
        culprit, key_path = next((one for one in found if _source_name(one[0].location) != source), found[0])
        raise_config_error(error.message, culprit, key_path, error.valid)
    raise_config_error(error.message, node, ", ".join(filter(None, (path, error.location))), error.valid)


def _source_name(location: str) -> str:
    """Return the file of a location, or what else the location names, without the line."""
    name, _, line = location.rpartition(":")
    return name if line.isdecimal() else location


def _convert_union(node: YamlNode, members: tuple[Any, ...], constraint: ValueConstraint, path: str) -> Any:
    if node.value is None and type(None) in members:
        return None
    candidates = [member for member in members if member is not type(None)]
    matching = [member for member in candidates if _matches_shape(node, member)] or candidates
    matching = _select_by_literal(node, matching, path)
    errors: list[ConfigError] = []
    for member in matching:
        try:
            return convert(node, member, constraint, path)
        except ConfigError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    # Deeper errors tell more than "is a mapping": the alternative that got furthest is what was meant.
    furthest = max(errors, key=lambda error: len(error.location or ""))
    if len(furthest.location or "") > len(", ".join(part for part in (node.location, path) if part)):
        raise furthest
    raise_config_error(
        f"is {describe_value(node)}",
        node,
        path,
        "must be " + " or ".join(describe_expected(member, constraint) for member in members),
    )


def _matches_shape(node: YamlNode, member: Any) -> bool:
    """Whether a type is of the node's shape: mapping, list or scalar."""
    kind = get_origin(member) or member
    if kind is Annotated:
        return _matches_shape(node, get_args(member)[0])
    if member is Any or kind in (Union, types.UnionType):
        return True
    expected_shape: type = (
        dict if kind is dict or dataclasses.is_dataclass(kind) else list if kind in LIST_TYPES else str
    )
    actual_shape = type(node.value) if isinstance(node.value, dict | list) else str
    return expected_shape is actual_shape or (isinstance(kind, type) and isinstance(node.value, kind))


def _select_by_literal(node: YamlNode, members: list[Any], path: str) -> list[Any]:
    """Of several dataclasses keep those whose Literal fields (`what: Literal["spawn"]`) say what the node says."""
    if not isinstance(node.value, dict) or len(members) < 2 or not all(map(dataclasses.is_dataclass, members)):
        return members
    for key, child in node.value.items():
        members_by_value: dict[Any, list[Any]] = {}
        for member in members:
            names = {yaml_key(field): field.name for field in dataclasses.fields(member) if field.init}
            hint = type_hints(member)[names[key]] if key in names else None
            for value in get_args(hint) if get_origin(hint) is Literal else ():
                members_by_value.setdefault(value, []).append(member)
        if (
            members_by_value
            and isinstance(child.value, str | int | float | bool | None)
            and child.value in members_by_value
        ):
            return members_by_value[child.value]
        if members_by_value:
            _convert_choice(child, {value: value for value in members_by_value}, f"{path}.{key}" if path else key)
    return members
