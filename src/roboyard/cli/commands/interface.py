"""``roboyard interface``: types of messages, services and actions."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.app import command_group
from roboyard.cli.options import JsonOption

app = command_group("Interface types: list, show.")


@app.command("list")
def list_command(
    package: Annotated[str | None, typer.Argument(metavar="PACKAGE", help="Only types of this package.")] = None,
    json: JsonOption = False,
) -> None:
    """List the types of messages, services and actions."""
    from roboyard.cli.interface_types import list_types
    from roboyard.cli.terminal import print_result

    print_result(list_types(package), json, _print_types)


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. Twist, geometry_msgs/msg/Twist, SetBool.")],
    json: JsonOption = False,
) -> None:
    """Show the fields of a type and a value to copy."""
    from roboyard.cli.interface_types import describe_type
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
