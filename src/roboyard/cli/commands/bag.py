"""``roboyard bag``: information about recordings, and commands that record, play, recover and convert them."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roboyard.cli.app import command_group
from roboyard.cli.commands.replay import replay
from roboyard.cli.options import DURATION, EXCLUDE, OUT, JsonOption, OverwriteOption, RecordingArgument, RunOption
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import MessageError, RunError

if TYPE_CHECKING:
    from roboyard.bus.socket.client import ReceivedMessage
    from roboyard.cli.source import LiveSource
    from roboyard.record import ChannelState, McapWriter


app = command_group("Recordings: info, record, play, recover, convert.")

_MAX_METADATA = 25
"""Number of metadata entries that the text shows."""


@app.command("info")
def info(recording: RecordingArgument, json: JsonOption = False) -> None:
    """Show the topics, nodes and metadata of a recording.

    The recording may be incomplete or still being written.
    """
    from roboyard.cli.terminal import print_result
    from roboyard.record import info as read_info
    from roboyard.record import open_recording

    with open_recording(recording) as opened:
        found = read_info(opened)
    result = {
        "path": found.path, "format": found.format, "bytes": found.size, "duration": found.duration,
        "start_ns": found.start_ns, "end_ns": found.end_ns, "messages": found.message_count,
        "complete": found.is_complete,
        "topics": [
            {"name": t.name, "type": t.type, "count": t.count, "rate": t.frequency, "publishers": t.publishers}
            for t in found.topics
        ],
        "nodes": found.nodes, "metadata": dict(found.metadata), "warnings": found.warnings,
    }  # fmt: skip
    print_result(result, json, _print_info)


def _print_info(result: dict[str, Any]) -> None:
    from roboyard.cli.terminal import format_size, format_time, print_fields, print_line, print_note, print_table

    times = f"from {format_time(result['start_ns'])} to {format_time(result['end_ns'])}"
    print_fields(
        [
            ("file", result["path"]),
            ("format", f"{result['format']}, {format_size(result['bytes'])}"),
            ("duration", f"{result['duration']:.3f} s, {times}"),
            ("messages", f"{result['messages']:,}"),
            (
                "complete",
                "yes" if result["complete"] else f"no (`roboyard bag recover {result['path']}` writes a complete copy)",
            ),
            ("nodes", ", ".join(result["nodes"]) or None),
        ]
    )
    if result["topics"]:
        print_line()
        rows = [
            (t["name"], t["type"], t["count"], None if t["rate"] is None else f"{t['rate']:.4g}")
            for t in result["topics"]
        ]
        print_table(("topic", "type", "count", "hz"), rows, right=("count", "hz"))
    metadata = result["metadata"]
    if metadata:
        print_line()
        print_fields(sorted(metadata.items())[:_MAX_METADATA])
        if len(metadata) > _MAX_METADATA:
            print_note(f"and {len(metadata) - _MAX_METADATA} more entries, which --json prints")
    for warning in result["warnings"]:
        print_note(f"warning: {warning}")


@app.command("record")
def record(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", help="Only these topics; patterns as '/rover/*'. Default: all."),
    ] = None,
    out: Annotated[Path, OUT(": a MCAP file", metavar="FILE")] = Path("live.mcap"),
    exclude: Annotated[list[str] | None, EXCLUDE()] = None,
    duration: Annotated[float | None, DURATION(" of the run [s]", min=0.0)] = None,
    run: RunOption = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Record a live run until it ends or Ctrl-C.

    Runs of scenarios record themselves; this command is for replays and for parts of a run.
    """
    from roboyard.cli.source import open_live_source
    from roboyard.cli.terminal import print_note

    with open_live_source(run) as source:
        if not json:
            print_note(f"recording {source.name}; Ctrl-C ends it")
        patterns = [topic if topic.startswith(("*", "/")) else f"/{topic}" for topic in topics or ()]
        result = record_run(source, out, patterns, exclude or [], duration, overwrite=overwrite)
    _print_written(out, result.messages, result.end_ns - result.start_ns, result.warnings, json=json)


app.command("play", help="The same as `roboyard replay`.", short_help="The same as `roboyard replay`.")(replay)


@app.command("recover")
def recover(
    recording: RecordingArgument,
    out: Annotated[Path | None, OUT("; default: NAME.recovered.mcap beside it", metavar="FILE")] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write a complete copy of an incomplete MCAP recording.

    Commands of Roboyard read incomplete recordings; other tools need the copy.
    """
    from roboyard.record import recover as recover_recording

    source = recording / "recording.mcap" if (recording / "recording.mcap").is_file() else recording
    target = out or source.with_name(f"{source.stem}.recovered.mcap")
    result = recover_recording(source, target, overwrite=overwrite)
    _print_written(target, result.message_count, result.end_ns - result.start_ns, result.warnings, json=json)


@app.command("convert")
def convert(
    recording: RecordingArgument,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="New file; for rosbag2 a new folder.")],
    to: Annotated[
        Literal["mcap", "rosbag1", "rosbag2", "rosbag2-mcap"] | None,
        typer.Option(
            "--to", help="Format to write; default: rosbag1 where OUT ends in .bag, else mcap.", show_default=False
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Convert a recording to MCAP or to a bag of ROS.

    It reads MCAP, rosbag1, rosbag2 and CARMEN logs, also compressed ones.

    rosbag2 is a folder with SQLite, rosbag2-mcap one with MCAP.
    """
    to_format = to or ("rosbag1" if target.suffix == ".bag" else "mcap")
    if to_format == "mcap":
        from roboyard.record import convert as rewrite

        result = rewrite(recording, target, overwrite=overwrite)
    else:
        from roboyard.bridges.bags import export

        result = export(recording, target, to_format, overwrite=overwrite)
    _print_written(target, result.message_count, result.end_ns - result.start_ns, result.warnings, json=json)


def _print_written(target: Path, messages: int, length_ns: int, warnings: Sequence[str], *, json: bool) -> None:
    from roboyard.cli.terminal import format_count, print_line, print_note, print_result

    def show(result: dict[str, Any]) -> None:
        for warning in result["warnings"]:
            print_note(f"warning: {warning}")
        print_line(f"{result['file']}: {format_count(result['messages'], 'message')}, {result['duration']:.3f} s")

    result = {"file": target, "messages": messages, "duration": length_ns * 1e-9, "warnings": warnings}
    print_result(result, json, show)


_DISCOVERY_PERIOD = 0.5
"""Wall time between two searches for new topics [s]."""


@dataclass(slots=True)
class RecordingResult:
    """Number of recorded messages, times of the first and the last [ns], and warnings about topics left out."""

    messages: int = 0
    start_ns: int = 0
    end_ns: int = 0
    warnings: list[str] = field(default_factory=list)


def record_run(
    source: LiveSource, out: Path, topics: Collection[str], exclude: Collection[str], seconds: float | None,
    *, overwrite: bool,
) -> RecordingResult:  # fmt: skip
    """Record until the run ends, the time is over, or the user interrupts.

    Latched messages of before get the time of the first new message.

    Args:
        source: The run.
        out: New MCAP file.
        topics: Names or patterns; empty for all topics, also those that appear later.
        exclude: Names or patterns to leave out.
        seconds: Length of the recording [simulated s]; None for no end.
        overwrite: Replace an existing file when the first message arrives; without a message the file stays.

    Raises:
        RecordingError: The file exists or cannot be written.
    """
    from roboyard.record import McapWriter

    with _sigterm_interrupts(), McapWriter(out, overwrite=overwrite) as writer:
        live_recording = _LiveRecording(source, writer, topics, exclude)
        with suppress(KeyboardInterrupt):  # the usual way to end a recording
            live_recording.run(None if seconds is None else round(seconds * 1e9))
        live_recording.finish()
        if not live_recording.result.messages and writer.replaces:
            writer.discard()
            live_recording.result.warnings.append(f"no message arrived, and {out} is unchanged")
    return live_recording.result


class _LiveRecording:
    def __init__(
        self, source: LiveSource, writer: McapWriter, topics: Collection[str], exclude: Collection[str]
    ) -> None:
        self.result = RecordingResult()
        self._source = source
        self._writer = writer
        self._topics, self._exclude = topics, exclude
        self._latched: dict[str, bool] = {}
        self._channels: dict[tuple[str, str], ChannelState | None] = {}
        self._early: list[ReceivedMessage] | None = []  # latched messages, until the time is known

    def run(self, length_ns: int | None) -> None:
        """Record messages; search for new topics at intervals."""
        connection = self._source.connection
        while not connection.has_ended:
            try:
                self._subscribe_new_topics()
            except RunError as error:  # the run ended between two messages, or no longer answers
                self.result.warnings.append(error.message)
                return
            due = wall_seconds() + _DISCOVERY_PERIOD
            for item in connection.messages(_DISCOVERY_PERIOD):
                if self._early is not None:
                    if self._latched[item.topic]:
                        self._early.append(item)
                        continue
                    self._start(item.time_ns)
                if length_ns is not None and item.time_ns - self.result.start_ns > length_ns:
                    return
                self._write(item, max(item.time_ns, self.result.start_ns))
                if wall_seconds() > due:
                    break

    def finish(self) -> None:
        """Write the latched messages where no other arrived."""
        if self._early:
            self._start(max(item.time_ns for item in self._early))

    def _subscribe_new_topics(self) -> None:
        for view in self._source.topics():
            if view.name in self._latched or any(fnmatchcase(view.name, pattern) for pattern in self._exclude):
                continue
            if not self._topics or any(fnmatchcase(view.name, pattern) for pattern in self._topics):
                self._latched[view.name] = view.latched
                self._source.connection.subscribe(view.name)

    def _start(self, time_ns: int) -> None:
        early, self._early = self._early or [], None
        self.result.start_ns = self.result.end_ns = time_ns
        for item in early:
            self._write(item, time_ns)

    def _write(self, item: ReceivedMessage, time_ns: int) -> None:
        key = (item.topic, item.source)
        if key not in self._channels:
            self._channels[key] = self._channel(item)
        channel = self._channels[key]
        if channel is not None:
            self._writer.write(channel, time_ns, item.data)
            self.result.messages += 1
            self.result.end_ns = max(self.result.end_ns, time_ns)

    def _channel(self, item: ReceivedMessage) -> ChannelState | None:
        try:
            return self._writer.channel(item.topic, item.type, item.source, latched=self._latched[item.topic])
        except MessageError as error:
            self.result.warnings.append(f"topic {item.topic} was left out: {error}")
            return None


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that the file is complete."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
