"""Where the looking verbs look: a live run through its socket, or a recording; both answer alike."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard.errors import InputError, UnknownNameError, similar_names

if TYPE_CHECKING:
    from roboyard.bus.socket import RunConnection as Socket
    from roboyard.record import RecordedChannel, Recording

_NAME = re.compile(r"(/[A-Za-z_]\w*)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic; ``subscribers`` is None where nobody knows them (recordings), ``rate`` [Hz] where it has none."""

    name: str
    type: str
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...] | None
    count: int
    rate: float | None
    latched: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """A message with its topic, its publisher's node, its time [ns] and its bytes."""

    time_ns: int
    topic: str
    publisher: str
    data: bytes
    decode: Callable[[bytes], Any]

    @property
    def message(self) -> Any:
        """The message itself."""
        return self.decode(self.data)


class Source(ABC):
    """A live run or a recording.

    Attributes:
        where: Its name, for people.
        live: Whether time still goes on.
    """

    where: str
    live: bool

    @abstractmethod
    def topics(self) -> list[TopicView]:
        """All topics, sorted by name."""

    @abstractmethod
    def messages(self, topics: Collection[str], timeout: float | None = None) -> Iterator[Heard]:
        """Messages of these topics: all of a recording, or those to come until the run ends.

        Args:
            topics: Absolute names.
            timeout: End when a live run is silent that long in wall time [s].
        """

    def topic(self, name: str) -> TopicView:
        """The topic of this name, with or without its leading slash.

        Raises:
            UnknownNameError: there is none.
        """
        views = {view.name: view for view in self.topics()}
        found = views.get(absolute(name))
        if found is None:
            raise unknown("topic", name, list(views), self.where)
        return found


class LiveSource(Source):
    """A run's socket."""

    live = True

    def __init__(self, connection: Socket) -> None:
        self.connection = connection
        self.where = f"run '{connection.run.name}'"

    def topics(self) -> list[TopicView]:
        """From the run's graph."""
        return [
            TopicView(
                name=topic["name"],
                type=topic["type"],
                publishers=tuple(topic["publishers"]),
                subscribers=tuple(topic["subscribers"]),
                count=topic["count"],
                rate=topic["rate"] or None,
                latched=topic["latched"],
            )
            for topic in self.connection.graph()["topics"]
        ]

    def messages(self, topics: Collection[str], timeout: float | None = None) -> Iterator[Heard]:
        """As they come."""
        for name in topics:
            self.connection.subscribe(name)
        for item in self.connection.messages(timeout):
            if item.topic in topics:
                decode = partial(_decode, item.type)
                yield Heard(item.time_ns, item.topic, item.source, item.data, decode)


class FileSource(Source):
    """A recording."""

    live = False

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.where = str(recording.path)

    def topics(self) -> list[TopicView]:
        """From its index."""
        return [
            TopicView(t.name, t.type, tuple(filter(None, t.publishers)), None, t.count, t.frequency, t.latched)
            for t in self.recording.topics.values()
        ]

    def messages(self, topics: Collection[str], timeout: float | None = None) -> Iterator[Heard]:
        """From its start to its end."""
        for time_ns, connection, data in self.recording.raw_messages(topics):
            decode = partial(self._decode, connection)
            yield Heard(time_ns, connection.topic, connection.publisher, data, decode)

    def _decode(self, connection: RecordedChannel, data: bytes) -> Any:
        """Only when somebody looks: rates and sizes are known of messages that cannot be decoded, too."""
        return self.recording.decoder(connection)(data)


@contextmanager
def look(run: str | None, file: Path | None) -> Iterator[Source]:
    """Open the recording ``file``, or else connect to the live run ``run`` (None: the only one).

    Raises:
        InputError: both are given, there is no such run, or several to choose from.
        RecordingError: the file is no recording.
    """
    if file is not None:
        from roboyard.record import open_recording

        if run is not None:
            raise InputError("--run and --file exclude each other", valid="a live run or a recording")
        with open_recording(file) as recording:
            yield FileSource(recording)
        return
    from roboyard.bus.socket import connect

    with connect(run) as connection:
        yield LiveSource(connection)


@contextmanager
def live(run: str | None) -> Iterator[LiveSource]:
    """Connect to the live run ``run`` (None: the only one)."""
    from roboyard.bus.socket import connect

    with connect(run) as connection:
        yield LiveSource(connection)


def _decode(kind: str, data: bytes) -> Any:
    from roboyard.messages import deserialize

    return deserialize(data, kind)


def absolute(name: str) -> str:
    """The name with its leading slash."""
    return name if name.startswith("/") else f"/{name}"


def new_name(name: str) -> str:
    """The name of something new, with its leading slash.

    Raises:
        InputError: ROS does not allow it.
    """
    full = absolute(name)
    if not _NAME.fullmatch(full):
        raise InputError(
            f"{name!r} is no name", valid="letters, digits, _ and / between, no digit first: /robot_1/scan"
        )
    return full


def unknown(kind: str, name: str, known: list[str], where: str) -> UnknownNameError:
    """The error for a name that does not exist, with those near to it."""
    near = similar_names(absolute(name), known, cutoff=0.5)
    listed = ", ".join(near or sorted(known)[:8]) or "none"
    return UnknownNameError(
        f"no {kind} {name}", location=where, valid=f"{'near to it' if near else 'there are'}: {listed}"
    )
