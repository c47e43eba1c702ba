"""Finds the field that keeps a message from being written, for a clear error; runs only when something is wrong."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.arrays import fix_array, fix_bool
from roboyard.messages.classes import message_class, type_name
from roboyard.messages.layout import definition_of
from roboyard.messages.structure import CODES, DTYPES, Definition, Field


def fault(message: Any, error: Exception) -> MessageError:
    """The MessageError for ``error``, which came up while handling ``message``."""
    name = type_name(message)
    found = _search(definition_of(name), message, name.rsplit("/", 1)[1])
    if found is not None:
        where, field, problem = found
        return MessageError(problem, where=where, valid=f"{field.text()}")
    return MessageError(f"cannot be serialised: {error}", where=name)


def _search(definition: Definition, message: Any, where: str) -> tuple[str, Field, str] | None:
    for field in definition.fields:
        place = f"{where}.{field.name}"
        try:
            value = getattr(message, field.attribute)
        except AttributeError:
            return place, field, "is missing"
        found = _check(field, value, place)
        if found is not None:
            return found
    return None


def _check(field: Field, value: Any, where: str) -> tuple[str, Field, str] | None:
    if field.kind != "one" and field.primitive:
        try:
            array = fix_array(value, np.dtype(DTYPES[field.type]))
        except (TypeError, ValueError) as error:
            return where, field, str(error)
        return _check_length(field, len(array), where)
    if field.kind != "one":
        if not isinstance(value, list | tuple):
            return where, field, f"{_shown(value)} where a list belongs"
        single = Field(field.name, field.type, bound=field.bound)
        for index, item in enumerate(value):
            found = _check(single, item, f"{where}[{index}]")
            if found is not None:
                return found
        return _check_length(field, len(value), where)
    if field.nested:
        found = _search(definition_of(field.type), value, where)
        if found is not None and not isinstance(value, message_class(field.type)):
            return where, field, f"{_shown(value)} where a {field.type} belongs"
        return found
    problem = _scalar_problem(field, value)
    return None if problem is None else (where, field, problem)


def _scalar_problem(field: Field, value: Any) -> str | None:
    if field.type == "string":
        if not isinstance(value, str):
            return f"{_shown(value)} where a string belongs"
        try:
            length = len(value.encode())
        except UnicodeEncodeError:
            return f"{_shown(value)} cannot be encoded as UTF-8"
        return f"{length} bytes long" if field.bound and length > field.bound else None
    try:
        if field.type == "bool":
            fix_bool(value)
        else:
            struct.pack("<" + CODES[field.type], value)
    except (struct.error, OverflowError, TypeError, ValueError):
        return f"{_shown(value)} where a {field.type} belongs"
    return None


def _check_length(field: Field, length: int, where: str) -> tuple[str, Field, str] | None:
    wrong = length != field.size if field.kind == "array" else 0 < field.size < length
    return (where, field, f"{length} elements") if wrong else None


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:100]
