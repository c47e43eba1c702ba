"""Finds the field that keeps a message from being written, for a clear error; runs only when something is wrong."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.arrays import coerce_array, coerce_bool
from roboyard.messages.classes import message_class, type_name
from roboyard.messages.layout import definition_of
from roboyard.messages.structure import DTYPES, STRUCT_CODES, MessageDefinition, MessageField


def explain_error(message: Any, error: Exception) -> MessageError:
    """The MessageError for ``error``, which came up while handling ``message``."""
    name = type_name(message)
    found = _find_invalid_field(definition_of(name), message, name.rsplit("/", 1)[1])
    if found is not None:
        location, field, problem = found
        return MessageError(problem, location=location, valid=f"{field.type_text()}")
    return MessageError(f"cannot be serialised: {error}", location=name)


def _find_invalid_field(
    definition: MessageDefinition, message: Any, location: str
) -> tuple[str, MessageField, str] | None:
    for field in definition.fields:
        field_location = f"{location}.{field.name}"
        try:
            value = getattr(message, field.python_name)
        except AttributeError:
            return field_location, field, "is missing"
        found = _check_value(field, value, field_location)
        if found is not None:
            return found
    return None


def _check_value(field: MessageField, value: Any, location: str) -> tuple[str, MessageField, str] | None:
    if field.arity != "one" and field.is_primitive:
        try:
            array = coerce_array(value, np.dtype(DTYPES[field.type]))
        except (TypeError, ValueError) as error:
            return location, field, str(error)
        return _check_length(field, len(array), location)
    if field.arity != "one":
        if not isinstance(value, list | tuple):
            return location, field, f"{_describe(value)} where a list belongs"
        item_field = MessageField(field.name, field.type, string_capacity=field.string_capacity)
        for index, item in enumerate(value):
            found = _check_value(item_field, item, f"{location}[{index}]")
            if found is not None:
                return found
        return _check_length(field, len(value), location)
    if field.is_message:
        found = _find_invalid_field(definition_of(field.type), value, location)
        if found is not None and not isinstance(value, message_class(field.type)):
            return location, field, f"{_describe(value)} where a {field.type} belongs"
        return found
    problem = _scalar_problem(field, value)
    return None if problem is None else (location, field, problem)


def _scalar_problem(field: MessageField, value: Any) -> str | None:
    if field.type == "string":
        if not isinstance(value, str):
            return f"{_describe(value)} where a string belongs"
        try:
            length = len(value.encode())
        except UnicodeEncodeError:
            return f"{_describe(value)} cannot be encoded as UTF-8"
        return f"{length} bytes long" if field.string_capacity and length > field.string_capacity else None
    try:
        if field.type == "bool":
            coerce_bool(value)
        else:
            struct.pack("<" + STRUCT_CODES[field.type], value)
    except (struct.error, OverflowError, TypeError, ValueError):
        return f"{_describe(value)} where a {field.type} belongs"
    return None


def _check_length(field: MessageField, length: int, location: str) -> tuple[str, MessageField, str] | None:
    wrong = length != field.size if field.arity == "array" else 0 < field.size < length
    return (location, field, f"{length} elements") if wrong else None


def _describe(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:100]
