"""``roboyard interface``: types of messages, services and actions."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.app import JsonOption, command_group

app = command_group("Types: list, show.")


@app.command("list")
def list_command(
    package: Annotated[str | None, typer.Argument(metavar="[PACKAGE]", help="Only this package's.")] = None,
    json: JsonOption = False,
) -> None:
    """All types that can be published, called or asked for."""
    from roboyard.cli.interface_types import list_types
    from roboyard.cli.terminal import print_heading, print_json, print_line

    found = list_types(package)
    if json:
        print_json(found)
        return
    for number, (kind, names) in enumerate(item for item in found.items() if item[1]):
        print_heading(("\n" if number else "") + kind)
        for name in names:
            print_line(f"  {name}")


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. Twist, geometry_msgs/msg/Twist, SetBool.")],
    json: JsonOption = False,
) -> None:
    """The fields of a type, and a value to copy from."""
    from roboyard.cli.interface_types import describe_type
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.terminal import print_json, print_line, style_comment

    full, parts = describe_type(name)
    if json:
        print_json({"type": full, "parts": {part: to_plain(kind()) for part, (kind, _) in parts.items()}})
        return
    print_line(style_comment(f"# {full}"))
    for number, (_, text) in enumerate(parts.values()):
        if number:
            print_line("---")
        for line in text:
            print_line(line)
    for part, (kind, _) in parts.items():
        print_line(style_comment(f"\n# {part or 'empty'}"))
        print_line(to_text(kind()))
