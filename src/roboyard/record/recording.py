"""What every recording offers, whatever file it came from: topics, times, and its messages in order of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, Self

from roboyard.errors import UnknownNameError

_BRIEF = 160


@dataclass(frozen=True, slots=True)
class Connection:
    """One publisher on one topic.

    Attributes:
        topic: Absolute name.
        type: Message type, e.g. "sensor_msgs/msg/LaserScan".
        publisher: Name of the node; "" when the file does not say.
        definition: Full definition text of the type; "" when the file has none.
        definition_format: "ros2msg", "ros2idl", "ros1msg", or "".
        encoding: "cdr", "ros1", or what else the file holds and cannot be decoded here.
        latched: Whether late subscribers got the last message.
        count: Number of messages.
        start_ns: Time of the first [ns].
        end_ns: Time of the last [ns].
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
class TopicInfo:
    """A topic of a recording: all its connections together.

    Attributes:
        name: Absolute name.
        type: Message type.
        count: Number of messages.
        frequency: Mean rate between its first and last message [Hz]; None with fewer than two instants.
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


class Recorded(NamedTuple):
    """One message of a recording and who published it when."""

    time_ns: int
    topic: str
    message: Any
    publisher: str


Decode = Callable[[bytes], Any]
Raw = tuple[int, Connection, bytes]


class Recording(ABC):
    """A recording open for reading; a context manager.

    Attributes:
        path: The file or folder.
        format: "mcap", "rosbag2", "rosbag1" or "carmen".
        metadata: What the file says about its run.
        connections: Publishers by topic, in order of first use.
        complete: False when the end is missing (a killed writer, a truncated copy).
        warnings: What was found amiss, one sentence each.
    """

    format: str = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata: Mapping[str, str] = {}
        self.connections: tuple[Connection, ...] = ()
        self.complete = True
        self.warnings: list[str] = []
        self._decoders: dict[Connection, Decode] = {}
        self._unpacked: TemporaryDirectory[str] | None = None

    def keep(self, unpacked: TemporaryDirectory[str], path: Path) -> None:
        """Say that the file was unpacked from ``path`` into a folder, which goes when the recording is closed."""
        self._unpacked, self.path = unpacked, path

    @abstractmethod
    def _raw(self, wanted: Collection[Connection], start_ns: int, end_ns: int) -> Iterator[Raw]:
        """Undecoded messages of the wanted connections, start and end included, in order of time."""

    @abstractmethod
    def _decoder(self, connection: Connection) -> Decode:
        """What turns a connection's bytes into messages."""

    def close(self) -> None:
        """Close the files; harmless when already closed."""
        self._decoders.clear()
        unpacked, self._unpacked = self._unpacked, None
        if unpacked is not None:
            unpacked.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def start_ns(self) -> int:
        """Time of the first message [ns]; 0 when there is none."""
        return min((connection.start_ns for connection in self.connections if connection.count), default=0)

    @property
    def end_ns(self) -> int:
        """Time of the last message [ns]; 0 when there is none."""
        return max((connection.end_ns for connection in self.connections if connection.count), default=0)

    @property
    def count(self) -> int:
        """Number of messages."""
        return sum(connection.count for connection in self.connections)

    @property
    def topics(self) -> dict[str, TopicInfo]:
        """Topics by name, sorted."""
        names = sorted({connection.topic for connection in self.connections})
        return {name: _topic(name, [c for c in self.connections if c.topic == name]) for name in names}

    def raw(
        self, topics: Collection[str] | None = None, start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[Raw]:
        """Undecoded messages in order of time; arguments as for ``messages``."""
        return self.raw_of(self.select(topics), start_ns, end_ns)

    def raw_of(
        self, connections: Collection[Connection], start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[Raw]:
        """Undecoded messages of some publishers in order of time; arguments as for ``of``."""
        return self._raw(connections, 0 if start_ns is None else start_ns, self.end_ns if end_ns is None else end_ns)

    def messages(
        self, topics: Collection[str] | None = None, start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[Recorded]:
        """Messages in order of time, decoded by the definitions in the file.

        Args:
            topics: Their names; None for all that can be decoded.
            start_ns: First instant [ns], included; None for the start.
            end_ns: Last instant [ns], included; None for the end.

        Raises:
            UnknownNameError: the recording has no such topic.
            RecordingError: the file is damaged there, or a wanted topic's encoding cannot be decoded.
        """
        wanted = [c for c in self.select(topics) if topics is not None or c.encoding in ("cdr", "ros1")]
        return self.of(wanted, start_ns, end_ns)

    def of(
        self, connections: Collection[Connection], start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[Recorded]:
        """Messages of some publishers in order of time; arguments as for ``messages``.

        Args:
            connections: Some of ``connections``.
            start_ns: First instant [ns], included; None for the start.
            end_ns: Last instant [ns], included; None for the end.

        Raises:
            RecordingError: the file is damaged there, or an encoding cannot be decoded.
        """
        decoders = {connection: self.decoder(connection) for connection in connections}
        first = 0 if start_ns is None else start_ns
        last = self.end_ns if end_ns is None else end_ns
        return self._messages(decoders, first, last)

    def _messages(self, decoders: Mapping[Connection, Decode], start_ns: int, end_ns: int) -> Iterator[Recorded]:
        by_id = {id(connection): decode for connection, decode in decoders.items()}
        for time_ns, connection, data in self._raw(list(decoders), start_ns, end_ns):
            yield Recorded(time_ns, connection.topic, by_id[id(connection)](data), connection.publisher)

    def select(self, topics: Collection[str] | None) -> list[Connection]:
        """The connections of the named topics; of all when None.

        Raises:
            UnknownNameError: the recording has no such topic.
        """
        if topics is None:
            return list(self.connections)
        if isinstance(topics, str):
            topics = (topics,)
        known = {connection.topic for connection in self.connections}
        for name in topics:
            if name not in known:
                near = get_close_matches(name, sorted(known), n=3) or sorted(known)[:8]
                raise UnknownNameError(
                    f"no topic '{name}' in the recording", where=str(self.path), valid="there are " + ", ".join(near)
                )
        return [connection for connection in self.connections if connection.topic in topics]

    def decoder(self, connection: Connection) -> Decode:
        """What turns the bytes of ``connection`` into messages; kept for the next call.

        Raises:
            RecordingError: its encoding is unknown or its definition cannot be read.
        """
        decode = self._decoders.get(connection)
        if decode is None:
            decode = self._decoders[connection] = self._decoder(connection)
        return decode


def _topic(name: str, connections: list[Connection]) -> TopicInfo:
    used = [connection for connection in connections if connection.count]
    count = sum(connection.count for connection in used)
    span = max((c.end_ns for c in used), default=0) - min((c.start_ns for c in used), default=0)
    return TopicInfo(
        name=name,
        type=connections[0].type,
        count=count,
        frequency=(count - 1) / (span * 1e-9) if span > 0 else None,
        schema=connections[0].definition,
        publishers=tuple(dict.fromkeys(connection.publisher for connection in connections)),
        latched=any(connection.latched for connection in connections),
    )


def brief(error: BaseException) -> str:
    """An error's text in one short line, whatever it quotes of a damaged file."""
    text = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split()) or type(error).__name__
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…"
