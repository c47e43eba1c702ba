"""Records a live run from another process."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import MessageError, RunError
from roboyard.record import McapWriter

if TYPE_CHECKING:
    from roboyard.bus.socket.client import ReceivedMessage
    from roboyard.cli.lookup import LiveSource
    from roboyard.record import ChannelState

_LOOK = 0.5
"""Wall time between two looks for new topics [s]."""


@dataclass(slots=True)
class Taken:
    """What was recorded: number of messages, times of the first and last [ns], topics that could not be."""

    messages: int = 0
    start_ns: int = 0
    end_ns: int = 0
    warnings: list[str] = field(default_factory=list)


def record(
    source: LiveSource, out: Path, topics: Collection[str], exclude: Collection[str], seconds: float | None,
    *, overwrite: bool,
) -> Taken:  # fmt: skip
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
    with _interruptible(), McapWriter(out, overwrite=overwrite) as writer:
        made = _LiveRecording(source, writer, topics, exclude)
        with suppress(KeyboardInterrupt):  # the usual way to end a recording
            made.run(None if seconds is None else round(seconds * 1e9))
        made.finish()
        if not made.taken.messages and writer.replaces:
            writer.discard()
            made.taken.warnings.append(f"no message came, and {out} is unchanged")
    return made.taken


class _LiveRecording:
    def __init__(
        self, source: LiveSource, writer: McapWriter, topics: Collection[str], exclude: Collection[str]
    ) -> None:
        self.taken = Taken()
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
                self._look()
            except RunError as error:  # it ended between two messages, or does not answer any more
                self.taken.warnings.append(error.message)
                return
            due = wall_seconds() + _LOOK
            for item in connection.messages(_LOOK):
                if self._early is not None:
                    if self._latched[item.topic]:
                        self._early.append(item)
                        continue
                    self._begin(item.time_ns)
                if length_ns is not None and item.time_ns - self.taken.start_ns > length_ns:
                    return
                self._take(item, max(item.time_ns, self.taken.start_ns))
                if wall_seconds() > due:
                    break

    def finish(self) -> None:
        """Where nothing came but what was latched, that is all."""
        if self._early:
            self._begin(max(item.time_ns for item in self._early))

    def _look(self) -> None:
        for view in self._source.topics():
            if view.name in self._latched or any(fnmatchcase(view.name, pattern) for pattern in self._exclude):
                continue
            if not self._topics or any(fnmatchcase(view.name, pattern) for pattern in self._topics):
                self._latched[view.name] = view.latched
                self._source.connection.subscribe(view.name)

    def _begin(self, time_ns: int) -> None:
        early, self._early = self._early or [], None
        self.taken.start_ns = self.taken.end_ns = time_ns
        for item in early:
            self._take(item, time_ns)

    def _take(self, item: ReceivedMessage, time_ns: int) -> None:
        key = (item.topic, item.source)
        if key not in self._channels:
            self._channels[key] = self._channel(item)
        channel = self._channels[key]
        if channel is not None:
            self._writer.write(channel, time_ns, item.data)
            self.taken.messages += 1
            self.taken.end_ns = max(self.taken.end_ns, time_ns)

    def _channel(self, item: ReceivedMessage) -> ChannelState | None:
        try:
            return self._writer.channel(item.topic, item.type, item.source, latched=self._latched[item.topic])
        except MessageError as error:
            self.taken.warnings.append(f"{item.topic} was left out: {error}")
            return None


@contextmanager
def _interruptible() -> Iterator[None]:
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
