"""`load`, `loads`, `check`: the front door of the configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from roboyard.config.convert import convert, hints_of
from roboyard.config.fields import Limits, info_of, key_of
from roboyard.config.override import override
from roboyard.config.tree import Node, from_data, read_file, read_text

T = TypeVar("T")


def load(
    cls: type[T],
    source: str | Path | Mapping[str, Any] | Node,
    *,
    where: str | None = None,
    overrides: Iterable[str] = (),
) -> T:
    """Read a configuration: the dataclass `cls` from a YAML file, or from data that is in memory already.

    Args:
        cls: A dataclass; its fields, annotations and `field(...)` limits are the schema.
        source: A file's path, a mapping, or a node from `read_file` or `read_text`.
        where: Names the source in errors, if not by its path.
        overrides: Texts `key.path=value`, as `--set` on the command line takes them; the value is YAML.

    Raises:
        ConfigError: Unreadable or not YAML; an unknown, missing or twice given key; a wrong type, unit, choice or
            range. It names file and line, key, value, and what would be right.
    """
    node = read_file(source, where) if isinstance(source, str | Path) else from_data(source, where or "")
    for text in overrides:
        node = override(node, text)
    result: T = convert(node, cls)
    return result


def loads(cls: type[T], text: str, *, where: str = "text") -> T:
    """As `load`, from YAML text."""
    result: T = convert(read_text(text, where), cls)
    return result


def convert_value(
    value: Any,
    annotation: Any,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    where: str = "",
) -> Any:
    """One value checked and converted on its own, e.g. a node's parameter: "500 mm" for a float in m gives 0.5.

    Raises:
        ConfigError: It is not what the annotation and limits say.
    """
    return convert(from_data(value, where), annotation, Limits(unit, low, high, tuple(choices)))


def check(instance: Any, where: str = "") -> None:
    """Hold a dataclass made in Python to the limits of its fields; meant for `__post_init__`.

    Raises:
        ConfigError: A field's value is of the wrong type or outside its limits.
    """
    cls: type = type(instance)
    hints = hints_of(cls)
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        convert(from_data(value, where), hints[field.name], info_of(field).limits, key_of(field))
