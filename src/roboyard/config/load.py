"""`load`, `loads`, `check`: the front door of the configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from roboyard.config.convert import convert, type_hints
from roboyard.config.fields import ValueConstraint, parameter_info, yaml_key
from roboyard.config.override import apply_override
from roboyard.config.tree import YamlNode, parse_yaml, read_yaml, yaml_from_data

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
        cls: A dataclass; its fields, annotations and `field(...)` limits are the schema.
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


def check(instance: Any, location: str = "") -> None:
    """Hold a dataclass made in Python to the limits of its fields; meant for `__post_init__`.

    Raises:
        ConfigError: A field's value is of the wrong type or outside its limits.
    """
    cls: type = type(instance)
    hints = type_hints(cls)
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        convert(yaml_from_data(value, location), hints[field.name], parameter_info(field).constraint, yaml_key(field))
