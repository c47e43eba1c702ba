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
        typer.Option("--node", metavar="USE", help="A node to run on it: a name, module:Class or file.py:Class."),
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NODE.KEY=VALUE", help="A parameter of such a node.")
    ] = None,
    start: Annotated[float | None, typer.Option(metavar="S", help="Begin so long after the recording's start.")] = None,
    duration: Annotated[float | None, typer.Option(metavar="S", help="End after this much recorded time.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Begin paused: space goes on, s steps, q ends.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record all that passes into a new MCAP file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    json: JsonOption = False,
) -> None:
    """Play a recording on a live bus.

    Every verb that looks at live runs sees it.  What a node of --node publishes takes the place of what was recorded if
    its topic is left out with --exclude.
    """
    from roboyard.cli.display import Display
    from roboyard.cli.playback import Playback
    from roboyard.cli.terminal import count, emit, note, say

    with Playback(file, topics, exclude or [], start, duration, rate=rate, paused=paused) as playback:
        for warning in playback.warnings:
            note(f"warning: {warning}")
        playback.add_nodes(node or [], parameter or [])
        with Display(playback.name, playback.duration, playback.control, quiet=quiet or json) as display:
            playback.run(out, display)
    if json:
        emit({"file": file, "published": playback.published, "duration": playback.played, "out": out})
    else:
        say(f"{playback.name}: {count(playback.published, 'message')}, {playback.played:.3f} s")
        if out is not None:
            say(f"recorded  {out}")
    if playback.control.stopping and display.signal is not None:
        raise typer.Exit(128 + display.signal)
