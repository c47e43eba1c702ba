"""Types and their fields as text."""

from __future__ import annotations

from typing import Any

from roboyard.errors import MessageError, UnknownNameError
from roboyard.messages import action_type, full_name, message_type, service_type, type_name, type_names
from roboyard.messages.message_definition import EMPTY_MEMBER
from roboyard.messages.type_registry import definition_of

_KINDS = {"messages": "msg", "services": "srv", "actions": "action"}
_DEEPEST = 8
Parts = dict[str, tuple[type[Any], list[str]]]


def types_of(package: str | None) -> dict[str, list[str]]:
    """Full names of all types, or of a package's, by kind.

    Raises:
        UnknownNameError: no such package.
    """
    found = {kind: type_names(part) for kind, part in _KINDS.items()}
    if package is None:
        return found
    packages = sorted({name.partition("/")[0] for each in found.values() for name in each})
    if package not in packages:
        raise UnknownNameError(f"no package {package}", valid="there are: " + ", ".join(packages))
    return {kind: [name for name in each if name.startswith(f"{package}/")] for kind, each in found.items()}


def parts_of(name: str) -> tuple[str, Parts]:
    """Full name of a type; its parts (one, or goal, result and feedback, or request and response) with their fields.

    Raises:
        MessageError: unknown type.
    """
    first: MessageError | None = None
    for find in (_message, _service, _action):
        try:
            return find(name)
        except MessageError as error:
            first = first or error
    raise first or MessageError(f"unknown type {name!r}")


def _message(name: str) -> tuple[str, Parts]:
    kind = message_type(full_name(name))
    return type_name(kind), {"": _part(kind)}


def _service(name: str) -> tuple[str, Parts]:
    found = service_type(name)
    return found.name, {"request": _part(found.Request), "response": _part(found.Response)}


def _action(name: str) -> tuple[str, Parts]:
    found = action_type(name)
    return found.name, {
        "goal": _part(found.Goal), "result": _part(found.Result), "feedback": _part(found.Feedback),
    }  # fmt: skip


def _part(kind: type[Any]) -> tuple[type[Any], list[str]]:
    return kind, list(_lines(type_name(kind), ""))


def _lines(name: str, indent: str) -> list[str]:
    """Fields as ``.msg`` files write them, those of nested messages below, indented."""
    lines = []
    for field in definition_of(name).fields:
        if field.name == EMPTY_MEMBER:
            continue
        lines.append(f"{indent}{field.type_text()} {field.name}")
        if field.is_message and len(indent) < 2 * _DEEPEST:
            lines += _lines(field.type, indent + "  ")
    return lines
