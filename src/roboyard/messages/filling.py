"""Messages from plain data: ``{linear: {x: 0.5}}`` into a Twist."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages import message_type, serialize, type_name
from roboyard.messages.arrays import fix_array
from roboyard.messages.layout import definition_of
from roboyard.messages.structure import DTYPES, EMPTY_MEMBER, Field


def fill(kind: type[Any], data: Any) -> Any:
    """A message of class ``kind`` with the fields that ``data`` names, the others at their defaults.

    Args:
        kind: Message class.
        data: Mapping of field names; nested messages are mappings again.

    Raises:
        MessageError: an unknown field, or a value that does not fit.
    """
    message = _fill(type_name(kind), data, type_name(kind).rsplit("/", 1)[-1])
    serialize(message)  # names the field whose value does not fit
    return message


def _fill(name: str, data: Any, where: str) -> Any:
    fields = {field.name: field for field in definition_of(name).fields if field.name != EMPTY_MEMBER}
    if not isinstance(data, dict):
        raise MessageError(f"{data!r:.60} where a {name} belongs", where=where, valid=_example(fields))
    for key in data:
        if key not in fields:
            raise MessageError(f"{name} has no field '{key}'", where=where, valid=_example(fields))
    values = {fields[key].attribute: _value(fields[key], value, f"{where}.{key}") for key, value in data.items()}
    return message_type(name)(**values)


def _value(field: Field, value: Any, where: str) -> Any:
    if field.kind == "one":
        if field.nested:
            return _fill(field.type, value, where)
        return float(value) if field.type.startswith("float") and type(value) is int else value
    if not isinstance(value, list):
        raise MessageError(f"{value!r:.60} where a list belongs", where=where, valid=f"[...] of {field.type}")
    if field.nested:
        return [_fill(field.type, item, f"{where}[{i}]") for i, item in enumerate(value)]
    return _numbers(field, value, where) if field.primitive else value


def _numbers(field: Field, values: list[Any], where: str) -> Any:
    try:
        return fix_array(values, np.dtype(DTYPES[field.type]))
    except (TypeError, OverflowError) as error:
        raise MessageError(str(error), where=where, valid=field.text()) from error


def _example(fields: dict[str, Field]) -> str:
    return "fields: " + (", ".join(fields) or "none")
