"""Data sources of the commands that inspect: a live run through its socket, or a recording, with one interface."""

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
class TopicSummary:
    """A topic; ``subscribers`` is None for recordings, ``rate`` [Hz] is None where it is not defined."""

    name: str
    type: str
    publishers: tuple[str, ...]
    subscribers: tuple[str, ...] | None
    count: int
    rate: float | None
    latched: bool


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message: time [ns], topic, node that published it, and bytes."""

    time_ns: int
    topic: str
    publisher: str
    data: bytes
    decode: Callable[[bytes], Any]

    @property
    def message(self) -> Any:
        """The decoded message."""
        return self.decode(self.data)


class DataSource(ABC):
    """A live run or a recording.

    Attributes:
        name: Its name in messages.
        is_live: Whether it is a live run.
    """

    name: str
    is_live: bool

    @abstractmethod
    def topics(self) -> list[TopicSummary]:
        """Return all topics, sorted by name."""

    @abstractmethod
    def messages(self, topics: Collection[str], timeout: float | None = None) -> Iterator[SourceMessage]:
        """Yield messages of these topics: all of a recording, or the next ones of a run until it ends.

        Args:
            topics: Absolute names.
            timeout: End after this time without a message of a live run [wall s].
        """

    def topic(self, name: str) -> TopicSummary:
        """Return the topic of this name, given with or without its leading slash.

        Raises:
            UnknownNameError: There is no such topic.
        """
        views = {view.name: view for view in self.topics()}
        found = views.get(absolute_name(name))
        if found is None:
            raise unknown_name_error("topic", name, list(views), self.name)
        return found


class LiveSource(DataSource):
    """Live run, connected by its socket."""

    is_live = True

    def __init__(self, connection: Socket) -> None:
        self.connection = connection
        self.name = f"run '{connection.run.name}'"

    def topics(self) -> list[TopicSummary]:
        """Return the topics of the run's graph."""
        return [
            TopicSummary(
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

    def messages(self, topics: Collection[str], timeout: float | None = None) -> Iterator[SourceMessage]:
        """Yield messages as they arrive."""
        for name in topics:
            self.connection.subscribe(name)
        for item in self.connection.messages(timeout):
            if item.topic in topics:
                decode = partial(_decode, item.type)
                yield SourceMessage(item.time_ns, item.topic, item.source, item.data, decode)


class RecordingSource(DataSource):
    """Recording."""

    is_live = False

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.name = str(recording.path)

    def topics(self) -> list[TopicSummary]:
        """Return the topics of its index."""
        return [
            TopicSummary(t.name, t.type, tuple(filter(None, t.publishers)), None, t.count, t.frequency, t.latched)
            for t in self.recording.topics.values()
        ]

    def messages(self, topics: Collection[str], timeout: float | None = None) -> Iterator[SourceMessage]:
        """Yield the messages from its start to its end."""
        for time_ns, connection, data in self.recording.raw_messages(topics):
            decode = partial(self._decode, connection)
            yield SourceMessage(time_ns, connection.topic, connection.publisher, data, decode)

    def _decode(self, connection: RecordedChannel, data: bytes) -> Any:
        """Decode on access only, since rates and sizes also exist for messages that cannot be decoded."""
        return self.recording.decoder(connection)(data)


@contextmanager
def open_source(run: str | None, file: Path | None) -> Iterator[DataSource]:
    """Open the recording ``file``, or else connect to the live run ``run`` (None: the only one).

    Raises:
        InputError: Both are given, there is no such run, or there are several.
        RecordingError: The file is not a recording.
    """
    if file is not None:
        from roboyard.record import open_recording

        if run is not None:
            raise InputError("only one of --run and --file is allowed", valid="a live run or a recording")
        with open_recording(file) as recording:
            yield RecordingSource(recording)
        return
    from roboyard.bus.socket import connect

    with connect(run) as connection:
        yield LiveSource(connection)


@contextmanager
def open_live_source(run: str | None) -> Iterator[LiveSource]:
    """Connect to the live run ``run`` (None: the only one)."""
    from roboyard.bus.socket import connect

    with connect(run) as connection:
        yield LiveSource(connection)


def _decode(kind: str, data: bytes) -> Any:
    from roboyard.messages import deserialize

    return deserialize(data, kind)


def absolute_name(name: str) -> str:
    """Return a name with its leading slash."""
    return name if name.startswith("/") else f"/{name}"


def validate_topic_name(name: str) -> str:
    """Return the name of a new topic with its leading slash.

    Raises:
        InputError: ROS does not allow the name.
    """
    full = absolute_name(name)
    if not _NAME.fullmatch(full):
        raise InputError(
            f"invalid name {name!r}", valid="letters, digits, _ and /, without a leading digit: /robot_1/scan"
        )
    return full


def unknown_name_error(kind: str, name: str, existing_names: list[str], location: str) -> UnknownNameError:
    """Return the error for a name that does not exist, with similar names."""
    similar = similar_names(absolute_name(name), existing_names, cutoff=0.5)
    listed = ", ".join(similar or sorted(existing_names)[:8]) or "none"
    return UnknownNameError(
        f"no {kind} {name}", location=location, valid=f"{'similar' if similar else 'available'}: {listed}"
    )
