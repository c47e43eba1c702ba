"""Interface types and their fields as text."""

from __future__ import annotations

from typing import Any

from roboyard.errors import MessageError, UnknownNameError
from roboyard.messages import action_type, full_name, message_type, service_type, type_name, type_names
from roboyard.messages.message_definition import EMPTY_MEMBER
from roboyard.messages.type_registry import definition_of

_KINDS = {"messages": "msg", "services": "srv", "actions": "action"}
_MAX_DEPTH = 8
TypeParts = dict[str, tuple[type[Any], list[str]]]


def list_types(package: str | None) -> dict[str, list[str]]:
    """Return the full names of all types, or of those of a package, by kind.

    Raises:
        UnknownNameError: There is no such package.
    """
    found = {kind: type_names(part) for kind, part in _KINDS.items()}
    if package is None:
        return found
    packages = sorted({name.partition("/")[0] for each in found.values() for name in each})
    if package not in packages:
        raise UnknownNameError(f"no package {package}", valid="available: " + ", ".join(packages))
    return {kind: [name for name in each if name.startswith(f"{package}/")] for kind, each in found.items()}


def describe_type(name: str) -> tuple[str, TypeParts]:
    """Return the full name of a type and its parts with their fields: one, those of a service, or of an action.

    Raises:
        MessageError: The type is unknown.
    """
    first: MessageError | None = None
    for find in (_describe_message, _describe_service, _describe_action):
        try:
            return find(name)
        except MessageError as error:
            first = first or error
    raise first or MessageError(f"unknown type {name!r}")


def _describe_message(name: str) -> tuple[str, TypeParts]:
    kind = message_type(full_name(name))
    return type_name(kind), {"": _describe_part(kind)}


def _describe_service(name: str) -> tuple[str, TypeParts]:
    found = service_type(name)
    return found.name, {"request": _describe_part(found.Request), "response": _describe_part(found.Response)}


def _describe_action(name: str) -> tuple[str, TypeParts]:
    found = action_type(name)
    return found.name, {
        "goal": _describe_part(found.Goal),
        "result": _describe_part(found.Result),
        "feedback": _describe_part(found.Feedback),
    }


def _describe_part(kind: type[Any]) -> tuple[type[Any], list[str]]:
    return kind, list(_field_lines(type_name(kind), ""))


def _field_lines(name: str, indent: str) -> list[str]:
    """Return the fields in the syntax of ``.msg`` files; fields of nested messages follow, indented."""
    lines = []
    for field in definition_of(name).fields:
        if field.name == EMPTY_MEMBER:
            continue
        lines.append(f"{indent}{field.type_text()} {field.name}")
        if field.is_message and len(indent) < 2 * _MAX_DEPTH:
            lines += _field_lines(field.type, indent + "  ")
    return lines
