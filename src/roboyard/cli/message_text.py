"""Messages as text: YAML that commands accept again, and plain data for JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from functools import cache
from typing import Any

from roboyard.errors import InputError, MessageError

MAX_ARRAY_LENGTH = 128
"""Length above which arrays are shortened, as by ``ros2 topic echo``."""


def to_text(message: Any, *, full: bool = False) -> str:
    """Return a message, or a part of one, as YAML; small mappings and lists take one line.

    Args:
        message: A message, a list of them, or a value.
        full: Write long arrays in full.
    """
    import yaml

    data = to_plain(message, max_array_length=None if full else MAX_ARRAY_LENGTH)
    if not isinstance(data, (dict, list)):
        return _format_scalar(data)
    if data == {}:
        return "{}"
    text: str = yaml.dump(
        data, Dumper=_dumper(), sort_keys=False, default_flow_style=None, allow_unicode=True, width=110
    )
    return text.rstrip("\n")


def to_plain(message: Any, max_array_length: int | None = None) -> Any:
    """Return a message as mappings, lists and scalars.

    Args:
        message: A message or a part of one.
        limit: Arrays longer than this end with "…"; None for no limit.
    """
    import numpy as np

    if isinstance(message, np.ndarray):
        return _array(message, max_array_length)
    if isinstance(message, (list, tuple)):
        items = [
            to_plain(item, max_array_length)
            for item in (message if max_array_length is None else message[:max_array_length])
        ]
        return [*items, "…"] if len(items) < len(message) else items
    if not dataclasses.is_dataclass(message):
        return message
    kind: Any = type(message)
    scalar_types = _scalar_field_types(kind)
    return {
        name: _shortest_float(value) if scalar_types.get(name) == "float32" else to_plain(value, max_array_length)
        for name, value in _message_fields(message)
    }


def get_field(message: Any, path: str) -> Any:
    """Return the part of a message at a path like ``pose.position.x`` or ``ranges.0``.

    Raises:
        InputError: There is no such part.
    """
    value = message
    for key in path.split(".") if path else ():
        if key.isdecimal() and hasattr(value, "__len__") and int(key) < len(value):
            value = value[int(key)]
            continue
        fields = dict(_message_fields(value)) if dataclasses.is_dataclass(value) else {}
        if key not in fields:
            valid_fields = "fields: " + ", ".join(fields) if fields else "a path that ends before it"
            raise InputError(f"no field '{key}' in '{path}'", valid=valid_fields)
        value = fields[key]
    return value


def strip_arrays(message: Any) -> Any:
    """Return a message as plain data with the type and the length of each array instead of its values."""
    import numpy as np

    if isinstance(message, np.ndarray):
        return f"<{message.dtype} x {len(message)}>"
    if isinstance(message, (list, tuple)):
        return f"<{len(message)} items>"
    if not dataclasses.is_dataclass(message):
        return message
    return {name: strip_arrays(value) for name, value in _message_fields(message)}


def flatten(data: Any, scalar_key: str = "data") -> dict[str, Any]:
    """Return single values by their paths, e.g. ``pose.position.x``; a value without a path gets the key ``name``."""
    found: dict[str, Any] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            items = list(value.items())
        elif isinstance(value, list):
            items = list(enumerate(value))
        else:
            found[path or scalar_key] = value
            return
        for key, item in items:
            walk(item, f"{path}.{key}" if path else str(key))

    walk(data if isinstance(data, (dict, str)) else to_plain(data), "")
    return found


def format_csv(values: Iterable[Any]) -> str:
    """Return one line of comma-separated values, quoted where needed."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(list(values))
    return text.getvalue()


def _array(array: Any, limit: int | None) -> list[Any]:
    shortened_array = array if limit is None else array[:limit]
    values = (
        [_shortest_float(value) for value in shortened_array] if array.dtype == "float32" else shortened_array.tolist()
    )
    return [*values, "…"] if len(values) < len(array) else values


def _shortest_float(value: Any) -> Any:
    """Return a float32 with its shortest decimal digits, not those of the double that holds it."""
    import numpy as np

    return float(str(np.float32(value))) if isinstance(value, (float, np.floating)) else value


def _message_fields(message: Any) -> list[tuple[str, Any]]:
    """Return the fields' names of the definition and their values."""
    from roboyard.messages.message_definition import EMPTY_MEMBER

    names = [field.name for field in dataclasses.fields(message) if field.name != EMPTY_MEMBER]
    return [(name.rstrip("_"), getattr(message, name)) for name in names]


@cache
def _scalar_field_types(kind: Any) -> dict[str, str]:
    """Return the types of fields that are no arrays; empty for classes from a recording."""
    from roboyard.messages import message_type
    from roboyard.messages.type_registry import definition_of

    name = kind.__msgtype__
    try:
        if message_type(name) is not kind:
            return {}
    except MessageError:
        return {}
    return {field.name: field.type for field in definition_of(name).fields if field.arity == "one"}


def _format_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return str(value)


@cache
def _dumper() -> Any:
    """Return a YAML dumper without anchors and with ``''`` for empty text; the C emitter is ten times faster."""
    import yaml

    from roboyard.config.yaml_tree import parse_scalar

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent_text(dumper: Any, value: str) -> Any:
        """Quote text that YAML 1.2, with which values are read, parses as another type, e.g. 0E0."""
        style = None if isinstance(parse_scalar(value), str) else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, represent_text)
    return Dumper
