"""``roboyard interface``: types of messages, services and actions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roboyard.cli.app import command_group
from roboyard.cli.options import JsonOption
from roboyard.errors import MessageError, UnknownNameError

app = command_group("Interface types: list, show.")

_KINDS = {"messages": "msg", "services": "srv", "actions": "action"}
_MAX_DEPTH = 8
TypeParts = dict[str, tuple[type[Any], list[str]]]


@app.command("list")
def list_command(
    package: Annotated[str | None, typer.Argument(metavar="PACKAGE", help="Only types of this package.")] = None,
    json: JsonOption = False,
) -> None:
    """List the types of messages, services and actions."""
    from roboyard.cli.terminal import print_result

    print_result(list_types(package), json, _print_types)


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. Twist, geometry_msgs/msg/Twist, SetBool.")],
    json: JsonOption = False,
) -> None:
    """Show the fields of a type and a value to copy."""
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.terminal import print_line, print_lines, print_result, style_comment

    full_name, parts = describe_type(name)

    def show(_: object) -> None:
        print_line(style_comment(f"# {full_name}"))
        for number, (_, lines) in enumerate(parts.values()):
            print_lines(["---", *lines] if number else lines)
        for part, (message_class, _) in parts.items():
            print_line(style_comment(f"\n# {part or 'empty'}"))
            print_line(to_text(message_class()))

    values = {part: to_plain(message_class()) for part, (message_class, _) in parts.items()}
    print_result({"type": full_name, "parts": values}, json, show)


def _print_types(names_by_kind: dict[str, list[str]]) -> None:
    from roboyard.cli.terminal import print_heading, print_lines

    for number, (kind, names) in enumerate(item for item in names_by_kind.items() if item[1]):
        print_heading(("\n" if number else "") + kind)
        print_lines(f"  {name}" for name in names)


def list_types(package: str | None) -> dict[str, list[str]]:
    """Return the full names of all types, or of those of a package, by kind.

    Raises:
        UnknownNameError: There is no such package.
    """
    from roboyard.messages import type_names

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
    from roboyard.messages import full_name, message_type, type_name

    kind = message_type(full_name(name))
    return type_name(kind), {"": _describe_part(kind)}


def _describe_service(name: str) -> tuple[str, TypeParts]:
    from roboyard.messages import service_type

    found = service_type(name)
    return found.name, {"request": _describe_part(found.Request), "response": _describe_part(found.Response)}


def _describe_action(name: str) -> tuple[str, TypeParts]:
    from roboyard.messages import action_type

    found = action_type(name)
    return found.name, {
        "goal": _describe_part(found.Goal),
        "result": _describe_part(found.Result),
        "feedback": _describe_part(found.Feedback),
    }


def _describe_part(kind: type[Any]) -> tuple[type[Any], list[str]]:
    from roboyard.messages import type_name

    return kind, list(_field_lines(type_name(kind), ""))


def _field_lines(name: str, indent: str) -> list[str]:
    """Return the fields in the syntax of ``.msg`` files; fields of nested messages follow, indented."""
    from roboyard.messages.message_definition import EMPTY_MEMBER
    from roboyard.messages.type_registry import definition_of

    lines = []
    for field in definition_of(name).fields:
        if field.name == EMPTY_MEMBER:
            continue
        lines.append(f"{indent}{field.type_text()} {field.name}")
        if field.is_message and len(indent) < 2 * _MAX_DEPTH:
            lines += _field_lines(field.type, indent + "  ")
    return lines
