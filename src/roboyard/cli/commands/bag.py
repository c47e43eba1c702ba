"""``roboyard bag``: recordings as files."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roboyard.cli.app import JsonOption, RunOption, command_group
from roboyard.cli.commands.replay import replay
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import MessageError, RunError

if TYPE_CHECKING:
    from roboyard.bus.socket.client import ReceivedMessage
    from roboyard.cli.source import LiveSource
    from roboyard.record import ChannelState, McapWriter


app = command_group("Recordings: info, record, play, recover, convert.")

_MAX_METADATA = 25
"""How many entries about a recording's run are shown."""

RecordingArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A recording of any kind, or a run's folder.", show_default=False)
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the new file if it exists.")]


@app.command("info")
def info(file: RecordingArgument, json: JsonOption = False) -> None:
    """What a recording holds.

    Also one that is still being written or was cut off.
    """
    from roboyard.cli.terminal import (
        format_size,
        format_time,
        print_fields,
        print_json,
        print_line,
        print_note,
        print_table,
    )
    from roboyard.record import info as info_of
    from roboyard.record import open_recording

    with open_recording(file) as recording:
        found = info_of(recording)
    if json:
        topics = [
            {"name": t.name, "type": t.type, "count": t.count, "rate": t.frequency, "publishers": t.publishers}
            for t in found.topics
        ]
        print_json(
            {
                "path": found.path, "format": found.format, "bytes": found.size, "duration": found.duration,
                "start_ns": found.start_ns, "end_ns": found.end_ns, "messages": found.message_count,
                "complete": found.is_complete, "topics": topics, "nodes": found.nodes,
                "metadata": dict(found.metadata), "warnings": found.warnings,
            }
        )  # fmt: skip
        return
    state = "yes" if found.is_complete else f"no: its end is missing (roboyard bag recover {file} mends it)"
    print_fields(
        [
            ("file", found.path),
            ("format", f"{found.format}, {format_size(found.size)}"),
            ("duration", f"{found.duration:.3f} s, from {format_time(found.start_ns)} to {format_time(found.end_ns)}"),
            ("messages", f"{found.message_count:,}"),
            ("complete", state),
            ("nodes", ", ".join(found.nodes) or None),
        ]
    )
    if found.topics:
        print_line()
        rows = [(t.name, t.type, t.count, None if t.frequency is None else f"{t.frequency:.4g}") for t in found.topics]
        print_table(("topic", "type", "count", "hz"), rows, right=("count", "hz"))
    if found.metadata:
        print_line()
        print_fields(sorted(found.metadata.items())[:_MAX_METADATA])
        if len(found.metadata) > _MAX_METADATA:
            print_note(f"and {len(found.metadata) - _MAX_METADATA} more: --json has them all")
    for warning in found.warnings:
        print_note(f"warning: {warning}")


@app.command("record")
def record(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]…", help="Only these; patterns as '/rover/*'. Default: all.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The new MCAP file.")] = Path("live.mcap"),
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", "-x", metavar="TOPIC", help="Not these; patterns too.")
    ] = None,
    duration: Annotated[
        float | None, typer.Option("--duration", "-d", metavar="S", min=0.0, help="End after this simulated time [s].")
    ] = None,
    run: RunOption = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Record a live run until it ends, or Ctrl-C.

    Runs of scenarios record themselves already; this is for replays, and for parts of a run.
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
    file: RecordingArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Default: beside it, as NAME.recovered.mcap.")
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Mend an MCAP recording whose writer was killed.

    Our own verbs open it as it is; other tools want a whole file.
    """
    from roboyard.record import recover as recover_recording

    source = file / "recording.mcap" if (file / "recording.mcap").is_file() else file
    target = out or source.with_name(f"{source.stem}.recovered.mcap")
    result = recover_recording(source, target, overwrite=overwrite)
    _print_written(target, result.message_count, result.end_ns - result.start_ns, result.warnings, json=json)


@app.command("convert")
def convert(
    file: RecordingArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The new file; of rosbag2: the new folder.")],
    to: Annotated[
        Literal["mcap", "rosbag1", "rosbag2", "rosbag2-mcap"] | None,
        typer.Option("--to", help="Default: rosbag1 where OUT ends in .bag, else mcap.", show_default=False),
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write any recording as MCAP, or as a bag of ROS.

    It may be MCAP, rosbag1, rosbag2 or a CARMEN log, also compressed.
    rosbag2 is a folder with SQLite, rosbag2-mcap one with MCAP.
    """
    kind = to or ("rosbag1" if out.suffix == ".bag" else "mcap")
    if kind == "mcap":
        from roboyard.record import convert as rewrite

        result = rewrite(file, out, overwrite=overwrite)
    else:
        from roboyard.bridges.bags import export

        result = export(file, out, kind, overwrite=overwrite)
    _print_written(out, result.message_count, result.end_ns - result.start_ns, result.warnings, json=json)


def _print_written(target: Path, messages: int, length_ns: int, warnings: Sequence[str], *, json: bool) -> None:
    from roboyard.cli.terminal import format_count, print_json, print_line, print_note

    duration = length_ns * 1e-9
    if json:
        print_json({"file": target, "messages": messages, "duration": duration, "warnings": warnings})
        return
    for warning in warnings:
        print_note(f"warning: {warning}")
    print_line(f"{target}: {format_count(messages, 'message')}, {duration:.3f} s")


_DISCOVERY_PERIOD = 0.5
"""Wall time between two looks for new topics [s]."""


@dataclass(slots=True)
class RecordingResult:
    """What was recorded: number of messages, times of the first and last [ns], topics that could not be."""

    messages: int = 0
    start_ns: int = 0
    end_ns: int = 0
    warnings: list[str] = field(default_factory=list)


def record_run(
    source: LiveSource, out: Path, topics: Collection[str], exclude: Collection[str], seconds: float | None,
    *, overwrite: bool,
) -> RecordingResult:  # fmt: skip
    """Record until the run ends, the time is over, or somebody interrupts, which is no failure here.

    What is latched from before counts as of the first message that comes anew.

    Args:
        source: The run.
        out: New MCAP file.
        topics: Names or patterns; empty for all, also those that come later.
        exclude: Names or patterns to leave out.
        seconds: How long [simulated s]; None for no end.
        overwrite: Replace an existing file as soon as there is a message; where none comes it stays.

    Raises:
        RecordingError: the file exists or cannot be written.
    """
    from roboyard.record import McapWriter

    with _sigterm_interrupts(), McapWriter(out, overwrite=overwrite) as writer:
        live_recording = _LiveRecording(source, writer, topics, exclude)
        with suppress(KeyboardInterrupt):  # the usual way to end a recording
            live_recording.run(None if seconds is None else round(seconds * 1e9))
        live_recording.finish()
        if not live_recording.result.messages and writer.replaces:
            writer.discard()
            live_recording.result.warnings.append(f"no message came, and {out} is unchanged")
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
        self._early: list[ReceivedMessage] | None = []  # latched ones, until the time is known; more may come later

    def run(self, length_ns: int | None) -> None:
        """Take messages; look now and then for topics that are new."""
        connection = self._source.connection
        while not connection.has_ended:
            try:
                self._subscribe_new_topics()
            except RunError as error:  # it ended between two messages, or does not answer any more
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
        """Where nothing came but what was latched, that is all."""
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
            self.result.warnings.append(f"{item.topic} was left out: {error}")
            return None


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM ends as Ctrl-C does: with a whole file."""

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
