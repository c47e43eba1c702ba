"""``roboyard replay``: a recording back onto a bus, for other terminals and for nodes of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.grammar import JsonOption


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
    start: Annotated[float | None, typer.Option(metavar="S", help="Begin so long after the recording's start.")] = None,
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
    from roboyard.cli.display import Display
    from roboyard.cli.playback import Playback
    from roboyard.cli.terminal import count, emit, note, say

    with Playback(
        file, topics, exclude or [], start, duration, rate=rate, paused=paused, remap=remap or [], nodes=node or [],
        loop=loop,
    ) as playback:  # fmt: skip
        for warning in playback.warnings:
            note(f"warning: {warning}")
        playback.add_nodes(parameter or [], robot)
        with Display(playback.name, playback.duration, playback.control, quiet=quiet or json) as display:
            playback.run(out, display)
    if json:
        emit(
            {
                "file": file,
                "published": playback.published,
                "duration": playback.played,
                "out": out,
                "passes": playback.passes,
            }
        )
    else:
        say(f"{playback.name}: {count(playback.published, 'message')}, {playback.played:.3f} s")
        if out is not None:
            say(f"recorded  {out}")
    if playback.control.stopping and display.signal is not None:
        raise typer.Exit(128 + display.signal)
