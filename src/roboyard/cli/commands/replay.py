"""``roboyard replay`` and ``roboyard view``: a recording on a live bus, or in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.app import JsonOption


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording of any kind, or a run's folder.")],
    rate: Annotated[float, typer.Option(metavar="X", min=0.0, help="1: as recorded; 0: as fast as possible.")] = 1.0,
    topics: Annotated[
        list[str] | None, typer.Option("--topics", "-t", metavar="TOPIC", help="Only these; patterns as '/rover/*'.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", "-x", metavar="TOPIC", help="Not these; patterns too.")
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="[NAME=]USE", help="A node to run on it: a name, module:Class, file.py:Class."),
    ] = None,
    robot: Annotated[
        str | None, typer.Option(metavar="FILE|NAME", help="Whose parameters such nodes get, e.g. rover.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NODE.KEY=VALUE", help="A parameter of such a node.")
    ] = None,
    start_offset: Annotated[
        float | None, typer.Option(metavar="S", help="Begin so long after the recording's start.")
    ] = None,
    duration: Annotated[float | None, typer.Option(metavar="S", help="End after this much recorded time.")] = None,
    loop: Annotated[bool, typer.Option("--loop", "-l", help="Again and again; time goes on.")] = False,
    remap: Annotated[
        list[str] | None, typer.Option("--remap", "-m", metavar="OLD:=NEW", help="Another name for a topic.")
    ] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Begin paused: space goes on, s steps, q ends.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record all that passes into a new MCAP file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    json: JsonOption = False,
) -> None:
    """Play a recording on a live bus.

    Every verb that looks at live runs sees it.  A node of --node takes the place of the recorded node of its name: what
    that one published is left out.
    """
    from roboyard.cli.recording_replay import RecordingReplay
    from roboyard.cli.run_display import RunDisplay
    from roboyard.cli.terminal import format_count, print_json, print_line, print_note

    with RecordingReplay(
        file,
        topics,
        exclude or [],
        start_offset,
        duration,
        rate=rate,
        paused=paused,
        remap=remap or [],
        nodes=node or [],
        loop=loop,
    ) as playback:
        for warning in playback.warnings:
            print_note(f"warning: {warning}")
        playback.add_nodes(parameter or [], robot)
        with RunDisplay(playback.name, playback.duration, playback.control, quiet=quiet or json) as display:
            playback.run(out, display)
    if json:
        print_json(
            {
                "file": file,
                "published": playback.n_published,
                "duration": playback.played_seconds,
                "out": out,
                "passes": playback.n_passes,
            }
        )
    else:
        print_line(f"{playback.name}: {format_count(playback.n_published, 'message')}, {playback.played_seconds:.3f} s")
        if out is not None:
            print_line(f"recorded  {out}")
    if playback.control.is_stopping and display.signal is not None:
        raise typer.Exit(128 + display.signal)


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
    from roboyard.cli.bridge_options import wait_for_interrupt
    from roboyard.cli.terminal import print_note
    from roboyard.view import Player, Server

    player = Player(file)
    try:
        server = Server(view_port, read_only=read_only)
        try:
            for warning in player.notes:
                print_note(f"warning: {warning}")
            server.show(player)
            print_note(f"view {player.name} at {server.url}")
            wait_for_interrupt()
        finally:
            server.close()
    finally:
        player.close()
