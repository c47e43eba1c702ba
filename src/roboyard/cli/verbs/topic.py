"""``roboyard topic``: what passes over the bus, live or recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from roboyard.cli.grammar import FileOption, JsonOption, RunOption, group

app = group("Topics: list, info, echo, hz, bw, delay, pub, save_map, …")

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="Its name, with or without the leading slash.")]
WindowOption = Annotated[int, typer.Option("--window", "-w", min=2, help="Look at this many of the latest messages.")]
MapWord = Literal["trinary", "scale", "raw"]
CountOption = Annotated[int | None, typer.Option("-n", "--count", metavar="COUNT", min=1, help="End after so many.")]


@app.command("list")
def list_topics(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """All topics with type, count and rate (per simulated second)."""
    from roboyard.cli.lookup import look
    from roboyard.cli.terminal import emit, table

    with look(run, file) as source:
        topics = source.topics()
    if json:
        emit({"topics": topics})
        return
    rows = [(t.name, t.type, t.count, None if t.rate is None else f"{t.rate:.4g}") for t in topics]
    table(("topic", "type", "count", "hz"), rows, right=("count", "hz"))


@app.command("info")
def info(topic: TopicArgument, run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """One topic: type, who publishes, who listens."""
    from roboyard.cli.lookup import look
    from roboyard.cli.terminal import emit, fields

    with look(run, file) as source:
        found = source.topic(topic)
    if json:
        emit({"topic": found})
        return
    fields(
        [
            ("topic", found.name),
            ("type", found.type),
            ("published by", ", ".join(found.publishers) or "nobody"),
            ("heard by", None if found.subscribers is None else ", ".join(found.subscribers) or "nobody"),
            ("messages", f"{found.count:,}"),
            ("rate", None if found.rate is None else f"{found.rate:.4g} Hz"),
            ("latched", "yes: late listeners get the last message" if found.latched else "no"),
        ]
    )


@app.command("type")
def type_of(topic: TopicArgument, run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """Its type."""
    from roboyard.cli.lookup import look
    from roboyard.cli.terminal import emit, say

    with look(run, file) as source:
        found = source.topic(topic)
    if json:
        emit({"topic": found.name, "type": found.type})
    else:
        say(found.type)


@app.command("find")
def find(
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. Twist or geometry_msgs/msg/Twist.")],
    run: RunOption = None,
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Topics of a type.  Exit code 1 if there is none."""
    from roboyard.cli.lookup import look
    from roboyard.cli.terminal import emit, say

    with look(run, file) as source:
        found = [view.name for view in source.topics() if kind in (view.type, view.type.rpartition("/")[2])]
    if json:
        emit({"type": kind, "topics": found})
    else:
        for name in found:
            say(name)
    if not found:
        raise typer.Exit(1)


@app.command("echo")
def echo(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    once: Annotated[bool, typer.Option("--once", help="Only the first message.")] = False,
    field: Annotated[str, typer.Option(metavar="PATH", help="Only this part: pose.pose.position, ranges.0.")] = "",
    full: Annotated[bool, typer.Option("--full-length", "-l", help="Write long arrays out.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="A line of values for each message, names in the first.")] = False,
    no_arrays: Annotated[bool, typer.Option("--no-arr", help="Of arrays only how long they are.")] = False,
    stamps: Annotated[bool, typer.Option("--time", help="Say when each came and from whom.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line for each message.")] = False,
) -> None:
    """Print messages as they come (or as they were recorded), in YAML."""
    from itertools import islice

    from roboyard.cli.lookup import look
    from roboyard.cli.message_text import csv_line, flat, part_of, to_plain, to_text, without_arrays
    from roboyard.cli.terminal import emit, flush, say, seconds
    from roboyard.errors import InputError

    if csv and json:
        raise InputError("--csv and --json exclude each other", valid="one of them")
    with look(run, file) as source:
        name = source.topic(topic).name
        for number, heard in enumerate(islice(source.messages([name]), 1 if once else count)):
            part = part_of(heard.message, field)
            if no_arrays:
                part = without_arrays(part)
            if csv:
                values = flat(part, field.rpartition(".")[2] or "data")
                if number == 0:
                    say(csv_line(["time", *values]))
                say(csv_line([f"{heard.time_ns * 1e-9:.9f}", *values.values()]))
                if source.live:
                    flush()
                continue
            if json:
                head = {"topic": name, "time": heard.time_ns * 1e-9, "publisher": heard.publisher}
                emit({**head, "message": to_plain(part)})
                continue
            if stamps:
                say(f"# {seconds(heard.time_ns)} {heard.publisher}".rstrip())
            say(f"{to_text(part, full=full)}\n---")
            if source.live:
                flush()


@app.command("hz")
def hz(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    window: WindowOption = 10_000,
    json: JsonOption = False,
) -> None:
    """How regularly messages come, in simulated time."""
    from roboyard.cli.lookup import look
    from roboyard.cli.metering import follow, rate_of
    from roboyard.cli.terminal import emit, say

    with look(run, file) as source:
        name = source.topic(topic).name
        shown = (lambda seen: say(str(rate_of(name, seen)))) if source.live and not json else None
        result = rate_of(name, follow(source, name, count, window, shown))
    if json:
        emit(result.to_dict())
    else:
        say(str(result))


@app.command("bw")
def bw(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    window: WindowOption = 10_000,
    json: JsonOption = False,
) -> None:
    """How much data messages carry, per simulated second."""
    from roboyard.cli.lookup import look
    from roboyard.cli.metering import bandwidth_of, follow
    from roboyard.cli.terminal import emit, say

    with look(run, file) as source:
        name = source.topic(topic).name
        shown = (lambda seen: say(str(bandwidth_of(name, seen)))) if source.live and not json else None
        result = bandwidth_of(name, follow(source, name, count, window, shown))
    if json:
        emit(result.to_dict())
    else:
        say(str(result))


@app.command("delay")
def delay(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    window: WindowOption = 10_000,
    json: JsonOption = False,
) -> None:
    """How old messages are when they come.

    The time from the stamps in their headers to their publication.
    """
    from roboyard.cli.lookup import look
    from roboyard.cli.metering import ages
    from roboyard.cli.terminal import emit, say

    with look(run, file) as source:
        shown = (lambda age: say(str(age))) if source.live and not json else None
        result = ages(source, source.topic(topic).name, count, window, shown)
    if json:
        emit(result.to_dict())
    else:
        say(str(result))


@app.command("save_map")
def save_map(
    name: Annotated[Path, typer.Argument(metavar="FILE", help="hall.yaml; the picture lies beside it.")],
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="Where maps are told.")] = "/map",
    run: RunOption = None,
    file: FileOption = None,
    mode: Annotated[MapWord, typer.Option(help="What the shades mean, as Nav2 has it.")] = "trinary",
    json: JsonOption = False,
) -> None:
    """Keep a map as ROS's map_server does.

    The one told last in a recording, the next one of a live run.
    """
    from roboyard.cli.lookup import look
    from roboyard.cli.maps import keep_map
    from roboyard.cli.terminal import emit, say

    with look(run, file) as source:
        kept = keep_map(source, topic, name, mode)
    if json:
        emit(kept.to_dict())
    else:
        say(str(kept))


@app.command("pub")
def pub(
    topic: TopicArgument,
    what: Annotated[
        list[str] | None, typer.Argument(metavar="[TYPE] [VALUES]", help="e.g. Twist '{linear: {x: 0.5}}'.")
    ] = None,
    run: RunOption = None,
    rate: Annotated[float, typer.Option("-r", "--rate", help="Times per simulated second.")] = 10.0,
    times: Annotated[int | None, typer.Option("-t", "--times", min=1, help="End after so many.")] = None,
    once: Annotated[bool, typer.Option("--once", "-1", help="Publish one message.")] = False,
    source_name: Annotated[str, typer.Option("--as", metavar="NAME", help="Publisher's name.")] = "cli",
    json: JsonOption = False,
) -> None:
    """Publish a message again and again, or once.

    The type may be left out where the topic has one.
    """
    from roboyard.cli.lookup import live
    from roboyard.cli.publishing import message_for, repeat
    from roboyard.cli.terminal import count as counted
    from roboyard.cli.terminal import emit, note

    with live(run) as source:
        name, message = message_for(source, topic, what or [])
        sent = repeat(source, name, message, source_name, rate, 1 if once else times)
    if json:
        emit({"topic": name, "type": type(message).__msgtype__, "published": sent})
    else:
        note(f"published {counted(sent, 'message')} on {name}")
