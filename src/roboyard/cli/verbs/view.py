"""``roboyard view``: a recording in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def view(
    file: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A recording of any kind, or a run's folder.")],
    view_port: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=65535, help="Default: 8711, or a free one.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="It only plays: nobody may pause or jump.")] = False,
) -> None:
    """Look at a recording in a browser.

    Live runs are seen by `roboyard run … --view`.  Ctrl-C ends it.
    """
    from roboyard.cli.terminal import note
    from roboyard.cli.viewing import wait_for_the_end
    from roboyard.view import Player, Server

    player = Player(file)
    try:
        server = Server(view_port, read_only=read_only)
        try:
            for warning in player.notes:
                note(f"warning: {warning}")
            server.show(player)
            note(f"view {player.name} at {server.url}")
            wait_for_the_end()
        finally:
            server.close()
    finally:
        player.close()
