"""``roboyard replay`` and ``roboyard view``: a recording on a live bus, or in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roboyard.cli.options import (
    DURATION,
    EXCLUDE,
    NODE,
    OUT,
    RATE,
    READ_ONLY,
    ROBOT,
    TOPICS,
    VIEW_PORT,
    JsonOption,
    PausedOption,
    QuietOption,
    RecordingArgument,
)


def replay(
    recording: RecordingArgument,
    rate: Annotated[float, RATE()] = 1.0,
    topics: Annotated[list[str] | None, TOPICS()] = None,
    exclude: Annotated[list[str] | None, EXCLUDE()] = None,
    node: Annotated[
        list[str] | None, NODE(" to run on the messages: [NAME=]TYPE, a type by name or file.py:Class; repeatable")
    ] = None,
    robot: Annotated[str | None, ROBOT("; --node nodes get its parameters")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NODE.KEY=VALUE", help="Parameter of a --node node; repeatable."),
    ] = None,
    start_offset: Annotated[
        float | None, typer.Option(metavar="S", help="Start this long after the start of the recording [s].")
    ] = None,
    duration: Annotated[float | None, DURATION(" of the recording [s]")] = None,
    loop: Annotated[bool, typer.Option("--loop", "-l", help="Repeat the recording; time continues.")] = False,
    remap: Annotated[
        list[str] | None, typer.Option("--remap", "-m", metavar="OLD:=NEW", help="Rename a topic; repeatable.")
    ] = None,
    paused: PausedOption = False,
    out: Annotated[Path | None, OUT(": a MCAP file with all messages", metavar="FILE")] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Play a recording on a live bus.

    All commands for live runs work on it. A --node node replaces the recorded node of its name, whose messages are
    left out.
    """
    from roboyard.cli.exit_codes import exit_unless_success, signal_exit_code
    from roboyard.cli.recording_replay import RecordingReplay, ReplayOptions
    from roboyard.cli.run_display import RunDisplay
    from roboyard.cli.terminal import format_count, print_line, print_note, print_result

    options = ReplayOptions(
        topics=topics, exclude=exclude or (), remap=remap or (), start=start_offset, duration=duration,
        nodes=node or (), loop=loop, rate=rate, paused=paused,
    )  # fmt: skip
    with RecordingReplay(recording, options) as playback:
        for warning in playback.warnings:
            print_note(f"warning: {warning}")
        playback.add_nodes(parameter or [], robot)
        with RunDisplay(playback.name, playback.duration, playback.control, quiet=quiet or json) as display:
            playback.run(out, display)

    def show(_: object) -> None:
        print_line(f"{playback.name}: {format_count(playback.n_published, 'message')}, {playback.played_seconds:.3f} s")
        if out is not None:
            print_line(f"recorded  {out}")

    result = {
        "file": recording, "published": playback.n_published, "duration": playback.played_seconds, "out": out,
        "passes": playback.n_passes,
    }  # fmt: skip
    print_result(result, json, show)
    exit_unless_success(
        signal_exit_code(display.signal) if playback.control.is_stopping and display.signal is not None else 0
    )


def view(
    recording: RecordingArgument,
    view_port: Annotated[int | None, VIEW_PORT()] = None,
    read_only: Annotated[bool, READ_ONLY()] = False,
) -> None:
    """Show a recording in a browser.

    `roboyard run SCENARIO --view` shows a live run. Ctrl-C ends the view.
    """
    from roboyard.cli.bridge_options import wait_for_interrupt
    from roboyard.cli.terminal import print_note
    from roboyard.view import Player, Server

    player = Player(recording)
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
