"""``roboyard interface``: types of messages, services and actions."""

from __future__ import annotations

from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption, group

app = group("Types: list, show.")


@app.command("list")
def list_types(
    package: Annotated[str | None, typer.Argument(metavar="[PACKAGE]", help="Only this package's.")] = None,
    json: JsonOption = False,
) -> None:
    """All types that can be published, called or asked for."""
    from roboyard.cli.interfaces import types_of
    from roboyard.cli.terminal import emit, heading, say

    found = types_of(package)
    if json:
        emit(found)
        return
    for number, (kind, names) in enumerate(item for item in found.items() if item[1]):
        heading(("\n" if number else "") + kind)
        for name in names:
            say(f"  {name}")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. Twist, geometry_msgs/msg/Twist, SetBool.")],
    json: JsonOption = False,
) -> None:
    """The fields of a type, and a value to copy from."""
    from roboyard.cli.interfaces import parts_of
    from roboyard.cli.message_text import to_plain, to_text
    from roboyard.cli.terminal import emit, paint_comment, say

    full, parts = parts_of(name)
    if json:
        emit({"type": full, "parts": {part: to_plain(kind()) for part, (kind, _) in parts.items()}})
        return
    say(paint_comment(f"# {full}"))
    for number, (_, text) in enumerate(parts.values()):
        if number:
            say("---")
        for line in text:
            say(line)
    for part, (kind, _) in parts.items():
        say(paint_comment(f"\n# {part or 'empty'}"))
        say(to_text(kind()))
