"""Builds messages from plain data such as parsed YAML: ``{linear: {x: 0.5}}`` becomes a Twist."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages import message_type, serialize, type_name
from roboyard.messages.coercion import coerce_array
from roboyard.messages.message_definition import DTYPES, EMPTY_MEMBER, MessageField
from roboyard.messages.type_registry import definition_of


def message_from_data(message_class: type[Any], data: Any) -> Any:
    """Build a message of `message_class` with the fields that `data` names, the others at their defaults.

    Args:
        message_class: Message class.
        data: Mapping of field names; nested messages are mappings too.

    Raises:
        MessageError: A field is unknown, or a value does not fit.
    """
    message = _build_message(type_name(message_class), data, type_name(message_class).rsplit("/", 1)[-1])
    serialize(message)  # raises an error that names the invalid field
    return message


def _build_message(name: str, data: Any, location: str) -> Any:
    fields = {field.name: field for field in definition_of(name).fields if field.name != EMPTY_MEMBER}
    if not isinstance(data, dict):
        raise MessageError(f"a {name} is required, got {data!r:.60}", location=location, valid=_list_fields(fields))
    for key in data:
        if key not in fields:
            raise MessageError(f"{name} has no field '{key}'", location=location, valid=_list_fields(fields))
    values = {
        fields[key].python_name: _field_value(fields[key], value, f"{location}.{key}") for key, value in data.items()
    }
    return message_type(name)(**values)


def _field_value(field: MessageField, value: Any, location: str) -> Any:
    if field.arity == "one":
        if field.is_message:
            return _build_message(field.type, value, location)
        return float(value) if field.type.startswith("float") and type(value) is int else value
    if not isinstance(value, list):
        raise MessageError(f"a list is required, got {value!r:.60}", location=location, valid=f"[...] of {field.type}")
    if field.is_message:
        return [_build_message(field.type, item, f"{location}[{i}]") for i, item in enumerate(value)]
    return _number_array(field, value, location) if field.is_primitive else value


def _number_array(field: MessageField, values: list[Any], location: str) -> Any:
    try:
        return coerce_array(values, np.dtype(DTYPES[field.type]))
    except (TypeError, OverflowError) as error:
        raise MessageError(str(error), location=location, valid=field.type_text()) from error


def _list_fields(fields: dict[str, MessageField]) -> str:
    return "fields: " + (", ".join(fields) or "none")
