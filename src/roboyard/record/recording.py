"""Common interface of recordings of all formats: topics, times, and messages in order of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, Self

from roboyard.errors import UnknownNameError, similar_names

_MAX_ERROR_TEXT = 160


@dataclass(frozen=True, slots=True)
class RecordedChannel:
    """Channel of a recording: one publisher on one topic.

    Attributes:
        topic: Absolute name.
        type: Message type, e.g. "sensor_msgs/msg/LaserScan".
        publisher: Name of the node; "" if the file does not state it.
        definition: Full definition text of the type; "" if the file has none.
        definition_format: "ros2msg", "ros2idl", "ros1msg", or "".
        encoding: "cdr", "ros1", or an encoding that cannot be decoded here.
        latched: Whether late subscribers got the last message.
        count: Number of messages.
        start_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].
    """

    topic: str
    type: str
    publisher: str = ""
    definition: str = ""
    definition_format: str = "ros2msg"
    encoding: str = "cdr"
    latched: bool = False
    count: int = 0
    start_ns: int = 0
    end_ns: int = 0


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """A topic of a recording with the data of all its channels.

    Attributes:
        name: Absolute name.
        type: Message type.
        count: Number of messages.
        frequency: Mean rate between the first and last message [Hz]; None if all messages have the same time.
        schema: Full definition text of the type.
        publishers: Names of the nodes that published on it, in order of first use.
        latched: Whether late subscribers got the last message.
    """

    name: str
    type: str
    count: int
    frequency: float | None
    schema: str
    publishers: tuple[str, ...]
    latched: bool


class RecordedMessage(NamedTuple):
    """A message of a recording with its time and publisher."""

    time_ns: int
    topic: str
    message: Any
    publisher: str


MessageDecoder = Callable[[bytes], Any]
RawMessage = tuple[int, RecordedChannel, bytes]


class Recording(ABC):
    """A recording open for reading; a context manager.

    Attributes:
        path: The file or folder.
        format: "mcap", "rosbag2", "rosbag1" or "carmen".
        metadata: Metadata that the file has about its run.
        channels: Publishers by topic, in order of first use.
        is_complete: False if the end is missing (a killed writer, a truncated copy).
        warnings: Problems found, one sentence each.
    """

    format: str = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata: Mapping[str, str] = {}
        self.channels: tuple[RecordedChannel, ...] = ()
        self.is_complete = True
        self.warnings: list[str] = []
        self._decoders: dict[RecordedChannel, MessageDecoder] = {}
        self._temp_dir: TemporaryDirectory[str] | None = None

    def attach_temp_dir(self, temp_dir: TemporaryDirectory[str], path: Path) -> None:
        """Own the temporary folder with the decompressed file of `path`; closing the recording removes it."""
        self._temp_dir, self.path = temp_dir, path

    @abstractmethod
    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        """Iterate over undecoded messages of the selected channels in order of time, start and end included."""

    @abstractmethod
    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        """Return the decoder for the messages of a channel."""

    def close(self) -> None:
        """Close the files; closing twice is allowed."""
        self._decoders.clear()
        temp_dir, self._temp_dir = self._temp_dir, None
        if temp_dir is not None:
            temp_dir.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def start_ns(self) -> int:
        """Time of the first message [ns]; 0 without messages."""
        return min((channel.start_ns for channel in self.channels if channel.count), default=0)

    @property
    def end_ns(self) -> int:
        """Time of the last message [ns]; 0 without messages."""
        return max((channel.end_ns for channel in self.channels if channel.count), default=0)

    @property
    def count(self) -> int:
        """Number of messages."""
        return sum(channel.count for channel in self.channels)

    @property
    def topics(self) -> dict[str, RecordedTopic]:
        """Topics by name, sorted."""
        names = sorted({channel.topic for channel in self.channels})
        return {name: _make_topic(name, [c for c in self.channels if c.topic == name]) for name in names}

    def raw_messages(
        self, topics: Collection[str] | None = None, start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[RawMessage]:
        """Iterate over undecoded messages in order of time; arguments as for `messages`."""
        return self.raw_messages_of_channels(self.channels_of(topics), start_ns, end_ns)

    def raw_messages_of_channels(
        self, channels: Collection[RecordedChannel], start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[RawMessage]:
        """Iterate over undecoded messages of some channels in order of time; see `messages_of_channels`."""
        return self._raw_messages(
            channels, 0 if start_ns is None else start_ns, self.end_ns if end_ns is None else end_ns
        )

    def messages(
        self, topics: Collection[str] | None = None, start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[RecordedMessage]:
        """Iterate over messages in order of time, decoded with the definitions in the file.

        Args:
            topics: Names of the topics; None for all that can be decoded.
            start_ns: First time [ns], included; None for the start.
            end_ns: Last time [ns], included; None for the end.

        Raises:
            UnknownNameError: The recording has no such topic.
            RecordingError: The file is damaged there, or the encoding of a requested topic is unknown.
        """
        channels = [c for c in self.channels_of(topics) if topics is not None or c.encoding in ("cdr", "ros1")]
        return self.messages_of_channels(channels, start_ns, end_ns)

    def messages_of_channels(
        self, channels: Collection[RecordedChannel], start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[RecordedMessage]:
        """Iterate over the messages of some channels in order of time.

        Args:
            channels: Some of the recording's `channels`.
            start_ns: First time [ns], included; None for the start.
            end_ns: Last time [ns], included; None for the end.

        Raises:
            RecordingError: The file is damaged there, or an encoding is unknown.
        """
        decoders = {channel: self.decoder(channel) for channel in channels}
        first_ns = 0 if start_ns is None else start_ns
        last_ns = self.end_ns if end_ns is None else end_ns
        return self._decoded_messages(decoders, first_ns, last_ns)

    def _decoded_messages(
        self, decoders: Mapping[RecordedChannel, MessageDecoder], start_ns: int, end_ns: int
    ) -> Iterator[RecordedMessage]:
        by_id = {id(channel): decode for channel, decode in decoders.items()}
        for time_ns, channel, data in self._raw_messages(list(decoders), start_ns, end_ns):
            yield RecordedMessage(time_ns, channel.topic, by_id[id(channel)](data), channel.publisher)

    def channels_of(self, topics: Collection[str] | None) -> list[RecordedChannel]:
        """Return the channels of the named topics; of all topics for None.

        Raises:
            UnknownNameError: The recording has no such topic.
        """
        if topics is None:
            return list(self.channels)
        if isinstance(topics, str):
            topics = (topics,)
        topic_names = {channel.topic for channel in self.channels}
        for name in topics:
            if name not in topic_names:
                suggestions = similar_names(name, topic_names) or sorted(topic_names)[:8]
                raise UnknownNameError(
                    f"unknown topic '{name}'",
                    location=str(self.path),
                    valid="there are " + ", ".join(suggestions),
                )
        return [channel for channel in self.channels if channel.topic in topics]

    def decoder(self, channel: RecordedChannel) -> MessageDecoder:
        """Return the decoder for the messages of `channel`; it is cached.

        Raises:
            RecordingError: The encoding is unknown, or the definition cannot be read.
        """
        decode = self._decoders.get(channel)
        if decode is None:
            decode = self._decoders[channel] = self._make_decoder(channel)
        return decode


def _make_topic(name: str, channels: list[RecordedChannel]) -> RecordedTopic:
    used = [channel for channel in channels if channel.count]
    count = sum(channel.count for channel in used)
    duration_ns = max((c.end_ns for c in used), default=0) - min((c.start_ns for c in used), default=0)
    return RecordedTopic(
        name=name,
        type=channels[0].type,
        count=count,
        frequency=(count - 1) / (duration_ns * 1e-9) if duration_ns > 0 else None,
        schema=channels[0].definition,
        publishers=tuple(dict.fromkeys(channel.publisher for channel in channels)),
        latched=any(channel.latched for channel in channels),
    )


def short_error_text(error: BaseException) -> str:
    """Return the text of an error in one short line, even if it quotes a damaged file."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split()) or type(error).__name__
    return text if len(text) <= _MAX_ERROR_TEXT else f"{text[:_MAX_ERROR_TEXT]}…"


@dataclass(slots=True)
class ChannelStatistics:
    """Number of messages of a channel, and the times of its first and last message."""

    count: int = 0
    start_ns: int = (1 << 64) - 1
    end_ns: int = 0

    def add(self, time_ns: int) -> None:
        """Count one message at `time_ns`."""
        self.count += 1
        self.start_ns = min(self.start_ns, time_ns)
        self.end_ns = max(self.end_ns, time_ns)
