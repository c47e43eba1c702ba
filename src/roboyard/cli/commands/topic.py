"""``roboyard topic``: topics of a live run or a recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from roboyard.cli.app import command_group
from roboyard.cli.arguments import parse_type_and_values
from roboyard.cli.options import (
    JSON,
    TOPIC,
    CountOption,
    FileOption,
    JsonOption,
    OnceOption,
    RunOption,
    TopicArgument,
    WindowOption,
)
from roboyard.cli.source import LiveSource, absolute_name, validate_topic_name
from roboyard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roboyard.cli.source import DataSource, TopicSummary
    from roboyard.record.topic_statistics import (
        BandwidthStatistics,
        DelayStatistics,
        RateStatistics,
        ReceivedSizes,
    )


app = command_group("Topics: list, info, echo, hz, bw, delay, pub, save_map, …")

MapModeName = Literal["trinary", "scale", "raw"]
_DEFAULT_WINDOW = 10_000
_REPORT_PERIOD = 1.0
"""Wall time between two reports about a live run [s]."""


@app.command("list")
def list_topics(run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """List all topics with their types, counts and rates.

    Rates are per simulated second.
    """
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_result, print_table

    with open_source(run, file) as source:
        topics = source.topics()
    rows = [(t.name, t.type, t.count, None if t.rate is None else f"{t.rate:.4g}") for t in topics]
    show = lambda _: print_table(("topic", "type", "count", "hz"), rows, right=("count", "hz"))  # noqa: E731
    print_result({"topics": topics}, json, show)


@app.command("info")
def info(topic: TopicArgument, run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """Show the type, the publishers and the subscribers of a topic."""
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_result

    with open_source(run, file) as source:
        found = source.topic(topic)
    print_result({"topic": found}, json, lambda _: _print_topic(found))


def _print_topic(topic: TopicSummary) -> None:
    from roboyard.cli.terminal import print_fields

    print_fields(
        [
            ("topic", topic.name),
            ("type", topic.type),
            ("publishers", ", ".join(topic.publishers) or "none"),
            ("subscribers", None if topic.subscribers is None else ", ".join(topic.subscribers) or "none"),
            ("messages", f"{topic.count:,}"),
            ("rate", None if topic.rate is None else f"{topic.rate:.4g} Hz"),
            ("latched", "yes: late subscribers get the last message" if topic.latched else "no"),
        ]
    )


@app.command("type")
def topic_type(topic: TopicArgument, run: RunOption = None, file: FileOption = None, json: JsonOption = False) -> None:
    """Print the type of a topic."""
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_line, print_result

    with open_source(run, file) as source:
        found = source.topic(topic)
    print_result({"topic": found.name, "type": found.type}, json, lambda result: print_line(result["type"]))


@app.command("find")
def find_topics(
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="e.g. Twist or geometry_msgs/msg/Twist.")],
    run: RunOption = None,
    file: FileOption = None,
    json: JsonOption = False,
) -> None:
    """Print the topics of a type.

    Exit code 1: no topic has this type.
    """
    from roboyard.cli.exit_codes import ExitCode, exit_unless_success
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_lines, print_result

    with open_source(run, file) as source:
        names = [one.name for one in source.topics() if type_name in (one.type, one.type.rpartition("/")[2])]
    print_result({"type": type_name, "topics": names}, json, lambda found: print_lines(found["topics"]))
    exit_unless_success(ExitCode.SUCCESS if names else ExitCode.FAILURE)


@app.command("echo")
def echo(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    once: OnceOption = False,
    field: Annotated[
        str, typer.Option(metavar="PATH", help="Print only this field: pose.pose.position, ranges.0.")
    ] = "",
    full: Annotated[bool, typer.Option("--full-length", "-l", help="Print long arrays in full.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, one message per line.")] = False,
    no_arrays: Annotated[bool, typer.Option("--no-arr", help="Print only the length of arrays.")] = False,
    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="Print the time and the publisher of each message.")
    ] = False,
    json: Annotated[bool, JSON(", one object per message")] = False,
) -> None:
    """Print the messages of a topic as YAML."""
    from itertools import islice

    from roboyard.cli.message_text import flatten, format_csv, get_field, strip_arrays, to_plain, to_text
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import flush_output, format_time, print_line, print_result

    if csv and json:
        raise InputError("only one of --csv and --json is allowed", valid="one of them")
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
            else:
                result = {"topic": name, "time": received.time_ns * 1e-9, "publisher": received.publisher}
                head = f"# {format_time(received.time_ns)} {received.publisher}".rstrip() + "\n" if timestamps else ""
                content = to_plain(part) if json else f"{head}{to_text(part, full=full)}\n---"
                print_result({**result, "message": content}, json, lambda found: print_line(str(found["message"])))
            if source.is_live:
                flush_output()


def _measure_sizes(
    topic: str,
    run: str | None,
    file: Path | None,
    count: int | None,
    window: int,
    json: bool,
    compute: Callable[[str, ReceivedSizes], Any],
    format_text: Callable[[Any], str],
) -> None:
    """Print statistics of the times and sizes of messages: of a live run about once a second, and at the end."""
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_line, print_result

    with open_source(run, file) as source:
        name = source.topic(topic).name

        def report(received_sizes: ReceivedSizes) -> None:
            print_line(format_text(compute(name, received_sizes)))

        on_update = report if source.is_live and not json else None
        result = compute(name, receive_times_and_sizes(source, name, count, window, on_update))
    print_result(result, json, lambda found: print_line(format_text(found)))


@app.command("hz")
def hz(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    window: WindowOption = _DEFAULT_WINDOW,
    json: JsonOption = False,
) -> None:
    """Measure the rate of a topic in simulated time."""
    from roboyard.record.topic_statistics import compute_rate

    _measure_sizes(topic, run, file, count, window, json, compute_rate, format_rate)


@app.command("bw")
def bw(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    window: WindowOption = _DEFAULT_WINDOW,
    json: JsonOption = False,
) -> None:
    """Measure the bandwidth of a topic per simulated second."""
    from roboyard.record.topic_statistics import compute_bandwidth

    _measure_sizes(topic, run, file, count, window, json, compute_bandwidth, format_bandwidth)


@app.command("delay")
def delay(
    topic: TopicArgument,
    run: RunOption = None,
    file: FileOption = None,
    count: CountOption = None,
    window: WindowOption = _DEFAULT_WINDOW,
    json: JsonOption = False,
) -> None:
    """Measure the delay of the messages of a topic.

    The delay is the time from the stamp in a header to the publication.
    """
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_line, print_result

    with open_source(run, file) as source:
        on_update = (lambda measured: print_line(format_delay(measured))) if source.is_live and not json else None
        result = measure_delay(source, source.topic(topic).name, count, window, on_update)
    print_result(result, json, lambda found: print_line(format_delay(found)))


def measure_delay(
    source: DataSource,
    topic: str,
    count: int | None,
    window: int,
    on_update: Callable[[DelayStatistics], None] | None = None,
) -> DelayStatistics:
    """Measure the delays between the stamps in the headers of messages and their publication.

    Args:
        source: A live run or a recording.
        topic: Absolute name.
        count: Number of messages; None: until the recording or run ends, or the user interrupts.
        window: Number of latest messages to evaluate.
        on_update: Called about once per wall second.

    Raises:
        InputError: The messages have no header.
    """
    from roboyard.compute.wall_clock import wall_seconds
    from roboyard.messages import to_nanoseconds
    from roboyard.record.topic_statistics import compute_delay

    delays: deque[float] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _REPORT_PERIOD
    try:
        for received in islice(source.messages([topic]), count):
            header = getattr(received.message, "header", None)
            if header is None:
                type_name = source.topic(topic).type
                raise InputError(f"{topic} has the type {type_name}, which has no header", location=source.name)
            delays.append((received.time_ns - to_nanoseconds(header.stamp)) * 1e-9)
            if on_update is not None and wall_seconds() >= due:
                on_update(compute_delay(topic, delays))
                due = wall_seconds() + _REPORT_PERIOD
    except KeyboardInterrupt:
        if not delays:
            raise
    return compute_delay(topic, delays)


def receive_times_and_sizes(
    source: DataSource, topic: str, count: int | None, window: int, on_update: Callable[[ReceivedSizes], None] | None
) -> ReceivedSizes:
    """Receive messages of a topic; return the times and sizes of the latest. Arguments as for `measure_delay`."""
    from roboyard.compute.wall_clock import wall_seconds

    received_sizes: deque[tuple[int, int]] = deque(maxlen=max(window, 2))
    due = wall_seconds() + _REPORT_PERIOD
    for received in islice(source.messages([topic]), count):
        received_sizes.append((received.time_ns, len(received.data)))
        if on_update is not None and wall_seconds() >= due:
            on_update(received_sizes)
            due = wall_seconds() + _REPORT_PERIOD
    return received_sizes


def format_rate(found: RateStatistics) -> str:
    """Return a line about a rate, as ``ros2 topic hz`` prints it."""
    if found.min_period is None:
        return f"{found.topic}: too few messages for a rate ({found.messages})"
    average = "all messages have the same time" if found.rate is None else f"{found.rate:.3f} Hz"
    return (
        f"average rate: {average}   min: {found.min_period:.4f} s  max: {found.max_period:.4f} s  "
        f"std dev: {found.std_dev:.5f} s  window: {found.messages}"
    )


def format_bandwidth(found: BandwidthStatistics) -> str:
    """Return a line about a bandwidth, as ``ros2 topic bw`` prints it."""
    from roboyard.cli.terminal import format_size

    average = "unknown" if found.per_second is None else f"{format_size(found.per_second)}/s"
    return (
        f"average: {average}   mean: {format_size(found.mean)}  min: {format_size(found.smallest)}  "
        f"max: {format_size(found.largest)}  window: {found.messages}"
    )


def format_delay(found: DelayStatistics) -> str:
    """Return a line about a delay, as ``ros2 topic delay`` prints it."""
    if found.mean is None:
        return f"{found.topic}: no messages"
    return (
        f"average delay: {found.mean:.4f} s   min: {found.min_delay:.4f} s  max: {found.max_delay:.4f} s  "
        f"std dev: {found.std_dev:.5f} s  window: {found.messages}"
    )


@app.command("save_map")
def save_map(
    name: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file of the map; the image lies beside it.")],
    topic: Annotated[str, TOPIC(" of the map")] = "/map",
    run: RunOption = None,
    file: FileOption = None,
    mode: Annotated[MapModeName, typer.Option(help="Meaning of the gray values, as in Nav2.")] = "trinary",
    json: JsonOption = False,
) -> None:
    """Save a map as files of ROS's map_server.

    The last map of a recording, or the next map of a live run.
    """
    from roboyard.cli.source import open_source
    from roboyard.cli.terminal import print_line, print_result

    with open_source(run, file) as source:
        saved = save_topic_map(source, topic, name, mode)
    print_result(saved, json, lambda found: print_line(str(found)))


@app.command("pub")
def pub(
    topic: TopicArgument,
    type_and_values: Annotated[
        list[str] | None, typer.Argument(metavar="[TYPE] [VALUES]", help="e.g. Twist '{linear: {x: 0.5}}'.")
    ] = None,
    run: RunOption = None,
    rate: Annotated[float, typer.Option("--rate", "-r", metavar="HZ", help="Messages per simulated second.")] = 10.0,
    times: Annotated[int | None, typer.Option("--times", "-t", metavar="N", min=1, help="Number of messages.")] = None,
    once: OnceOption = False,
    source_name: Annotated[str, typer.Option("--source", metavar="NAME", help="Name of the publisher.")] = "cli",
    json: JsonOption = False,
) -> None:
    """Publish a message repeatedly or once.

    The type may be left out if the topic exists.
    """
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import format_count, print_note, print_result

    with open_live_source(run) as source:
        name, message = make_message(source, topic, type_and_values or [])
        sent = publish_repeatedly(source, name, message, source_name, rate, 1 if once else times)
    result = {"topic": name, "type": type(message).__msgtype__, "published": sent}
    print_result(result, json, lambda _: print_note(f"published {format_count(sent, 'message')} on {name}"))


def make_message(source: LiveSource, topic: str, words: Sequence[str]) -> tuple[str, Any]:
    """Return the absolute name of a topic, and the message to publish on it.

    Raises:
        InputError: The topic does not exist and no type is given or its name is not valid, or it has another type.
        MessageError: The type is unknown, or the values do not fit.
    """
    from roboyard.messages import full_name, message_type
    from roboyard.messages.from_data import message_from_data

    name = absolute_name(topic)
    kind, data = parse_type_and_values(words)
    topic_type = {view.name: view.type for view in source.topics()}.get(name)
    if kind is None and topic_type is None:
        raise InputError(
            f"topic {name} does not exist and has no type", location=source.name, valid=f"pub {name} TYPE VALUES"
        )
    if topic_type is None:
        validate_topic_name(topic)
    type_name = full_name(kind) if kind is not None else str(topic_type)
    if topic_type is not None and type_name != topic_type:
        raise InputError(f"topic {name} has the type {topic_type}, not {type_name}", location=source.name)
    return name, message_from_data(message_type(type_name), data)


def publish_repeatedly(
    source: LiveSource, topic: str, message: Any, publisher: str, rate: float, times: int | None
) -> int:
    """Publish until ``times`` is reached, the run ends, or the user interrupts; return the number of messages.

    Args:
        source: The run.
        topic: Absolute name.
        message: The message.
        publisher: Name of the publisher.
        rate: Messages per simulated second, on average: the clock of the run arrives ten times a second.
        times: Number of messages; None for no end.

    Raises:
        InputError: The rate is not positive.
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
        source.connection.graph()  # the response shows that all messages before it have arrived
    return sent


def _elapsed_periods(source: LiveSource, rate: float) -> Iterator[int]:
    """Yield the number of periods that have passed, at each message of the clock."""
    start_ns: int | None = None
    n_reported = 0
    for received in source.messages(["/clock"]):
        start_ns = received.time_ns if start_ns is None else start_ns
        n_elapsed = int((received.time_ns - start_ns) * 1e-9 * rate)
        yield n_elapsed - n_reported
        n_reported = n_elapsed


_MAP_TYPE: Final = "nav_msgs/msg/OccupancyGrid"
_MAP_TIMEOUT: Final = 20.0
"""Maximum wait for a map of a live run [wall s]."""


@dataclass(frozen=True, slots=True)
class SavedMap:
    """A map that was saved into a file.

    Attributes:
        file: The YAML file.
        topic: Topic of the map.
        time: Time of its publication [s].
        width: Number of columns.
        height: Number of rows.
        resolution: Side of a cell [m].
    """

    file: str
    topic: str
    time: float
    width: int
    height: int
    resolution: float

    def __str__(self) -> str:
        size = f"{self.width} x {self.height} cells of {self.resolution:g} m"
        return f"{self.file}: {size}, {self.topic} at {self.time:.3f} s"


def save_topic_map(source: DataSource, topic: str, file: Path, mode: str) -> SavedMap:
    """Save the last map of a recording, or the next map of a live run; of a latched topic that is the present one.

    Args:
        source: A live run or a recording.
        topic: Name of the topic.
        file: The YAML file to write.
        mode: "trinary", "scale" or "raw".

    Raises:
        UnknownNameError: There is no such topic.
        InputError: The topic has no map, or the file cannot be written.
    """
    from roboyard.errors import InputError
    from roboyard.mapping import MapMode, save_map
    from roboyard.messages.convert.grids import occupancy_grid_from_msg

    view = source.topic(topic)
    if view.type != _MAP_TYPE:
        maps = sorted(other.name for other in source.topics() if other.type == _MAP_TYPE)
        raise InputError(
            f"{view.name} has the type {view.type}",
            location=source.name,
            valid=f"topics of maps: {', '.join(maps) or 'none'}",
        )
    last = None
    for received in source.messages([view.name], _MAP_TIMEOUT):
        last = received
        if source.is_live:
            break
    if last is None:
        raise InputError(f"no map was published on {view.name}", location=source.name, valid="a topic with maps")
    grid = occupancy_grid_from_msg(last.message)
    path = save_map(file, grid, MapMode(mode))
    rows, columns = grid.cells.shape
    return SavedMap(str(path), view.name, last.time_ns * 1e-9, columns, rows, grid.geometry.resolution)
