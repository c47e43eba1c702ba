"""``roboyard topic``: messages of a live run or a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from roboyard.cli.app import FileOption, JsonOption, RunOption, command_group
from roboyard.cli.arguments import parse_type_and_values
from roboyard.cli.source import LiveSource, absolute_name, validate_new_name
from roboyard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roboyard.cli.source import Source


app = command_group("Topics: list, info, echo, hz, bw, delay, pub, save_map, …")

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="Its name, with or without the leading slash.")]
WindowOption = Annotated[int, typer.Option("--window", "-w", min=2, help="Look at this many of the latest messages.")]
MapModeName = Literal["trinary", "scale", "raw"]
CountOption = Annotated[int | None, typer.Option("-n", "--count", metavar="COUNT", min=1, help="End after so many.")]


@app.command("list")
def list_topics(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """All topics with type, count and rate (per simulated second)."""
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_table

    with open_source(run, file) as source:
        topics = source.topics()
    if json:
        print_json({"topics": topics})
        return
    rows = [(t.name, t.type, t.count, None if t.rate is None else f"{t.rate:.4g}") for t in topics]
    print_table(("topic", "type", "count", "hz"), rows, right=("count", "hz"))


@app.command("info")
def info(topic: TopicArgument, run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """One topic: type, who publishes, who listens."""
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_fields, print_json

    with open_source(run, file) as source:
        found = source.topic(topic)
    if json:
        print_json({"topic": found})
        return
    print_fields(
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
def topic_type(topic: TopicArgument, run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """Its type."""
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_line

    with open_source(run, file) as source:
        found = source.topic(topic)
    if json:
        print_json({"topic": found.name, "type": found.type})
    else:
        print_line(found.type)


@app.command("find")
def find_topics(
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. Twist or geometry_msgs/msg/Twist.")],
    run: RunOption = None,
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Topics of a type.  Exit code 1 if there is none."""
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_line

    with open_source(run, file) as source:
        found = [view.name for view in source.topics() if kind in (view.type, view.type.rpartition("/")[2])]
    if json:
        print_json({"type": kind, "topics": found})
    else:
        for name in found:
            print_line(name)
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

    from roboyard.cli.message_text import flatten, format_csv, get_field, strip_arrays, to_plain, to_text
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import flush_output, format_time, print_json, print_line
    from roboyard.errors import InputError

    if csv and json:
        raise InputError("--csv and --json exclude each other", valid="one of them")
    with open_source(run, file) as source:
        name = source.topic(topic).name
        for number, received in enumerate(islice(source.messages([name]), 1 if once else count)):
            part = get_field(received.message, field)
            if no_arrays:
                part = strip_arrays(part)
            if csv:
                values = flatten(part, field.rpartition(".")[2] or "data")
                if number == 0:
                    print_line(format_csv(["time", *values]))
                print_line(format_csv([f"{received.time_ns * 1e-9:.9f}", *values.values()]))
                if source.is_live:
                    flush_output()
                continue
            if json:
                head = {"topic": name, "time": received.time_ns * 1e-9, "publisher": received.publisher}
                print_json({**head, "message": to_plain(part)})
                continue
            if stamps:
                print_line(f"# {format_time(received.time_ns)} {received.publisher}".rstrip())
            print_line(f"{to_text(part, full=full)}\n---")
            if source.is_live:
                flush_output()


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
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_line
    from roboyard.cli.topic_statistics import compute_rate, receive_sizes

    with open_source(run, file) as source:
        name = source.topic(topic).name
        on_update = (
            (lambda received_sizes: print_line(str(compute_rate(name, received_sizes))))
            if source.is_live and not json
            else None
        )
        result = compute_rate(name, receive_sizes(source, name, count, window, on_update))
    if json:
        print_json(result.to_dict())
    else:
        print_line(str(result))


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
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_line
    from roboyard.cli.topic_statistics import compute_bandwidth, receive_sizes

    with open_source(run, file) as source:
        name = source.topic(topic).name
        on_update = (
            (lambda received_sizes: print_line(str(compute_bandwidth(name, received_sizes))))
            if source.is_live and not json
            else None
        )
        result = compute_bandwidth(name, receive_sizes(source, name, count, window, on_update))
    if json:
        print_json(result.to_dict())
    else:
        print_line(str(result))


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
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_line
    from roboyard.cli.topic_statistics import measure_delay

    with open_source(run, file) as source:
        on_update = (lambda measured: print_line(str(measured))) if source.is_live and not json else None
        result = measure_delay(source, source.topic(topic).name, count, window, on_update)
    if json:
        print_json(result.to_dict())
    else:
        print_line(str(result))


@app.command("save_map")
def save_map(
    name: Annotated[Path, typer.Argument(metavar="FILE", help="hall.yaml; the picture lies beside it.")],
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="Where maps are told.")] = "/map",
    run: RunOption = None,
    file: FileOption = None,
    mode: Annotated[MapModeName, typer.Option(help="What the shades mean, as Nav2 has it.")] = "trinary",
    json: JsonOption = False,
) -> None:
    """Keep a map as ROS's map_server does.

    The one told last in a recording, the next one of a live run.
    """
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_json, print_line

    with open_source(run, file) as source:
        saved = save_topic_map(source, topic, name, mode)
    if json:
        print_json(saved.to_dict())
    else:
        print_line(str(saved))


@app.command("pub")
def pub(
    topic: TopicArgument,
    type_and_values: Annotated[
        list[str] | None, typer.Argument(metavar="[TYPE] [VALUES]", help="e.g. Twist '{linear: {x: 0.5}}'.")
    ] = None,
    run: RunOption = None,
    rate: Annotated[float, typer.Option("-r", "--rate", help="Times per simulated second.")] = 10.0,
    times: Annotated[int | None, typer.Option("-t", "--times", min=1, help="End after so many.")] = None,
    once: Annotated[bool, typer.Option("--once", "-1", help="Publish one message.")] = False,
    source_name: Annotated[str, typer.Option("--source", metavar="NAME", help="Publisher's name.")] = "cli",
    json: JsonOption = False,
) -> None:
    """Publish a message again and again, or once.

    The type may be left out where the topic has one.
    """
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import format_count as counted
    from roboyard.cli.terminal import print_json, print_note

    with open_live_source(run) as source:
        name, message = make_message(source, topic, type_and_values or [])
        sent = publish_repeatedly(source, name, message, source_name, rate, 1 if once else times)
    if json:
        print_json({"topic": name, "type": type(message).__msgtype__, "published": sent})
    else:
        print_note(f"published {counted(sent, 'message')} on {name}")


def make_message(source: LiveSource, topic: str, words: Sequence[str]) -> tuple[str, Any]:
    """Absolute name of the topic, and the message to publish on it.

    Raises:
        InputError: the topic is new and no type is named or its name is none, or it carries another type.
        MessageError: unknown type, or values that do not fit.
    """
    from roboyard.messages import full_name, message_type
    from roboyard.messages.from_data import message_from_data

    name = absolute_name(topic)
    kind, data = parse_type_and_values(words)
    topic_type = {view.name: view.type for view in source.topics()}.get(name)
    if kind is None and topic_type is None:
        raise InputError(f"topic {name} is new and has no type", location=source.name, valid=f"pub {name} TYPE VALUES")
    if topic_type is None:
        validate_new_name(topic)
    type_name = full_name(kind) if kind is not None else str(topic_type)
    if topic_type is not None and type_name != topic_type:
        raise InputError(f"topic {name} carries {topic_type}, not {type_name}", location=source.name)
    return name, message_from_data(message_type(type_name), data)


def publish_repeatedly(
    source: LiveSource, topic: str, message: Any, publisher: str, rate: float, times: int | None
) -> int:
    """Publish until ``times`` is reached, the run ends, or somebody interrupts; gives how often.

    Args:
        source: The run.
        topic: Absolute name.
        message: What.
        publisher: In whose name.
        rate: Per simulated second; kept on average, since the run's clock is heard ten times a second.
        times: How often; None for no end.

    Raises:
        InputError: the rate is not positive.
    """
    if not rate > 0.0:
        raise InputError(f"rate {rate:g}", location="--rate", valid="more than 0 Hz")
    source.connection.publish(topic, message, publisher)
    sent = 1
    if times != 1:
        for due in _elapsed_periods(source, rate):
            for _ in range(due if times is None else min(due, times - sent)):
                source.connection.publish(topic, message, publisher)
                sent += 1
            if sent == times:
                break
    if sent == times:
        source.connection.graph()  # the answer shows that everything before it has arrived
    return sent


def _elapsed_periods(source: LiveSource, rate: float) -> Iterator[int]:
    """At each tick of the run's clock, how many periods have passed since the one before."""
    start_ns: int | None = None
    n_reported = 0
    for received in source.messages(["/clock"]):
        start_ns = received.time_ns if start_ns is None else start_ns
        n_elapsed = int((received.time_ns - start_ns) * 1e-9 * rate)
        yield n_elapsed - n_reported
        n_reported = n_elapsed


_MAP_TYPE: Final = "nav_msgs/msg/OccupancyGrid"
_MAP_TIMEOUT: Final = 20.0
"""How long a live run may be silent on the topic [wall s]."""


@dataclass(frozen=True, slots=True)
class SavedMap:
    """A map in a file.

    Attributes:
        file: The YAML.
        topic: Where it was told.
        time: When [s].
        width: Cells.
        height: Cells.
        resolution: Side of a cell [m].
    """

    file: str
    topic: str
    time: float
    width: int
    height: int
    resolution: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        size = f"{self.width} x {self.height} cells of {self.resolution:g} m"
        return f"{self.file}: {size}, {self.topic} at {self.time:.3f} s"


def save_topic_map(source: Source, topic: str, file: Path, mode: str) -> SavedMap:
    """Write the map that a recording tells last, or a live run next, which a latched one is at once.

    Args:
        source: A live run or a recording.
        topic: Where maps are told.
        file: The YAML file to write.
        mode: "trinary", "scale" or "raw".

    Raises:
        UnknownNameError: there is no such topic.
        InputError: no map is told there, or the file cannot be written.
    """
    from roboyard.errors import InputError
    from roboyard.mapping import MapMode, save_map
    from roboyard.mapping.nodes.map_messages import map_from_msg

    view = source.topic(topic)
    if view.type != _MAP_TYPE:
        maps = sorted(other.name for other in source.topics() if other.type == _MAP_TYPE)
        raise InputError(
            f"{view.name} carries {view.type}",
            location=source.name,
            valid=f"maps: {', '.join(maps) or 'there are none'}",
        )
    last = None
    for received in source.messages([view.name], _MAP_TIMEOUT):
        last = received
        if source.is_live:
            break
    if last is None:
        raise InputError(f"no map came on {view.name}", location=source.name, valid="a topic on which a map is told")
    grid = map_from_msg(last.message)
    path = save_map(file, grid, MapMode(mode))
    rows, columns = grid.cells.shape
    return SavedMap(str(path), view.name, last.time_ns * 1e-9, columns, rows, grid.geometry.resolution)
