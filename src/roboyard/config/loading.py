"""Public functions that load and check configurations; overrides such as `--set robots.rover.pose=[1, 0, 0]`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from roboyard.config.conversion import convert, type_hints
from roboyard.config.parameter import ValueConstraint, parameter_info, yaml_key
from roboyard.config.yaml_tree import YamlNode, parse_yaml, read_yaml, yaml_from_data
from roboyard.errors import ConfigError


def apply_override(root: YamlNode, assignment: str) -> YamlNode:
    """The tree with one value replaced or added; the given tree stays as it is.

    Args:
        root: What `read_yaml` gave.
        assignment: `key.path=value`; the value is YAML, a number in the path is an element of a list.

    Raises:
        ConfigError: There is no `=`, or the path leads through something that is no mapping or list.
    """
    key, equals, text = assignment.partition("=")
    location = f"--set {key}"
    if not equals or not all(key.split(".")):
        raise ConfigError(f"{assignment!r} is no assignment", location="--set", valid="key.path=value")
    value = parse_yaml(text, location) if text.strip() else YamlNode(None)
    return _replace(root, key.split("."), YamlNode(_with_location(value, location).value, location, location), location)


def _with_location(node: YamlNode, location: str) -> YamlNode:
    """Lines within the option's text mean nothing to its reader."""
    if isinstance(node.value, dict):
        return YamlNode({key: _with_location(child, location) for key, child in node.value.items()}, location, location)
    if isinstance(node.value, list):
        return YamlNode([_with_location(child, location) for child in node.value], location, location)
    return YamlNode(node.value, location, location)


def _replace(node: YamlNode, keys: list[str], value: YamlNode, location: str) -> YamlNode:
    if not keys:
        return value
    key, remaining_keys = keys[0], keys[1:]
    if isinstance(node.value, list):
        if not key.isdecimal() or int(key) >= len(node.value):
            message = f"index {key!r} is out of range" if key.isdecimal() else f"{key!r} is not an index"
            raise ConfigError(f"{message} (the list has {len(node.value)} elements)", location=location)
        items = list(node.value)
        items[int(key)] = _replace(items[int(key)], remaining_keys, value, location)
        return YamlNode(items, node.location, node.key_location)
    if node.value is not None and not isinstance(node.value, dict):
        raise ConfigError(f"{key!r} cannot be set inside the single value {node.value!r:.40}", location=location)
    entries = dict(node.value or {})
    entries[key] = _replace(entries.get(key, YamlNode(None, location, location)), remaining_keys, value, location)
    return YamlNode(entries, node.location, node.key_location)


T = TypeVar("T")


def load(
    cls: type[T],
    source: str | Path | Mapping[str, Any] | YamlNode,
    *,
    source_name: str | None = None,
    overrides: Iterable[str] = (),
) -> T:
    """Read a configuration: the dataclass `cls` from a YAML file, or from data that is in memory already.

    Args:
        cls: A dataclass; its fields, annotations and `parameter(...)` limits are the schema.
        source: A file's path, a mapping, or a node from `read_yaml` or `parse_yaml`.
        source_name: Names the source in errors, if not by its path.
        overrides: Texts `key.path=value`, as `--set` on the command line takes them; the value is YAML.

    Raises:
        ConfigError: Unreadable or not YAML; an unknown, missing or twice given key; a wrong type, unit, choice or
            range. It names file and line, key, value, and what would be right.
    """
    node = (
        read_yaml(source, source_name) if isinstance(source, str | Path) else yaml_from_data(source, source_name or "")
    )
    for text in overrides:
        node = apply_override(node, text)
    result: T = convert(node, cls)
    return result


def loads(cls: type[T], text: str, *, source_name: str = "text") -> T:
    """As `load`, from YAML text."""
    result: T = convert(parse_yaml(text, source_name), cls)
    return result


def convert_value(
    value: Any,
    annotation: Any,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    location: str = "",
) -> Any:
    """One value checked and converted on its own, e.g. a node's parameter: "500 mm" for a float in m gives 0.5.

    Raises:
        ConfigError: It is not what the annotation and limits say.
    """
    return convert(yaml_from_data(value, location), annotation, ValueConstraint(unit, low, high, tuple(choices)))


def check(instance: Any, location: str = "", *, skip: Collection[str] = ()) -> None:
    """Hold a dataclass made in Python to the limits of its fields; meant for `__post_init__`.

    Args:
        instance: The dataclass.
        location: Where its values stand, for errors.
        skip: Names of fields that hold objects which no file can hold, e.g. functions.

    Raises:
        ConfigError: A field's value is of the wrong type or outside its limits.
    """
    cls: type = type(instance)
    hints = type_hints(cls)
    for field in dataclasses.fields(instance):
        if field.name in skip:
            continue
        value = getattr(instance, field.name)
        convert(yaml_from_data(value, location), hints[field.name], parameter_info(field).constraint, yaml_key(field))
