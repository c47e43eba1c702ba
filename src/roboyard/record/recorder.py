"""Records the messages of a bus, and reads recorded external inputs back to repeat a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from roboyard.bus import LAST
from roboyard.bus.external_inputs import INPUT_TOPIC, ExternalInput
from roboyard.errors import RecordingError
from roboyard.record.mcap_writer import ChannelState, McapWriter, RawBinaryFile
from roboyard.record.recording import Recording

if TYPE_CHECKING:
    from roboyard.bus import Bus, Topic


_TYPE = "roboyard_msgs/msg/ExternalInput"


def recorded_inputs(recording: Recording) -> list[tuple[int, ExternalInput]]:
    """Return the recorded external inputs with their times [ns], for ``bus.inputs.schedule``; empty if none were
    recorded.

    Raises:
        RecordingError: ``/inputs`` has another message type, or the file is damaged.
    """
    topic = recording.topics.get(INPUT_TOPIC)
    if topic is None:
        return []
    if topic.type != _TYPE:
        raise RecordingError(f"{INPUT_TOPIC} has the type {topic.type}", location=str(recording.path), valid=_TYPE)
    return [
        (item.time_ns, ExternalInput(m.operation, m.target, m.type, m.source, m.data.tobytes()))
        for item in recording.messages([INPUT_TOPIC])
        for m in (item.message,)
    ]


DEFAULT_EXCLUDED_TYPES: Final = ("sensor_msgs/msg/Image", "sensor_msgs/msg/PointCloud2")
"""Message types that are excluded by default: raw images and point clouds fill a disk (38 GB in 20 minutes); compressed
ones are recorded.
"""


class Recorder:
    """Records every message of a bus, with its publisher's name, into an MCAP file until it is closed.

    The present messages of latched topics are recorded first.  When the file cannot be written (disk full), recording
    ends, the data written remains readable, and the run stops with this one error.

    Args:
        bus: The bus.
        path: A file that does not exist yet, or an open unbuffered binary file.
        topics: Names or patterns ("/rover/*") to record; None for all.
        exclude: Names or patterns to exclude.
        exclude_types: Message types to exclude.
        metadata: Data about the run: versions, seed, …; no wall times, no paths.
        chunk_seconds: Maximum duration of data that a killed process loses [s].
        overwrite: Replace an existing file; it is kept until the first chunk of the new file is written.

    Attributes:
        count: Number of messages recorded.

    Raises:
        RecordingError: The file exists or cannot be created.
    """

    def __init__(
        self,
        bus: Bus,
        path: Path | str | RawBinaryFile,
        *,
        topics: Collection[str] | None = None,
        exclude: Collection[str] = (),
        exclude_types: Collection[str] = DEFAULT_EXCLUDED_TYPES,
        metadata: Mapping[str, str] | None = None,
        chunk_seconds: float = 1.0,
        overwrite: bool = False,
    ) -> None:
        self.count = 0
        self._bus = bus
        self._topics = None if topics is None else tuple(topics)
        self._exclude = tuple(exclude)
        self._exclude_types = frozenset(exclude_types)
        self._writer = McapWriter(path, metadata, chunk_seconds=chunk_seconds, overwrite=overwrite)
        self._channels: dict[tuple[str, str], ChannelState | None] = {}
        self._error: RecordingError | None = None
        self._detach: list[Callable[[], None]] = [
            bus.add_message_observer(self._on_message),
            bus.executor.on_advance(self._on_advance),
        ]
        for topic in bus.topics.values():
            for publisher in topic.publishers:
                if publisher.last is not None:
                    self._on_message(topic, publisher.last, publisher.node, bus.now_ns)

    def _on_message(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        key = (topic.name, node)
        try:
            channel = self._channels[key]
        except KeyError:
            channel = self._channels[key] = self._channel(topic, node)
        if channel is None:
            return
        try:
            self._writer.write(channel, time_ns, topic.encode(message))
        except RecordingError as error:
            self._fail(error)
            return
        self.count += 1

    def _channel(self, topic: Topic, node: str) -> ChannelState | None:
        name = topic.name
        if self._topics is not None and not any(fnmatchcase(name, pattern) for pattern in self._topics):
            return None
        if topic.type_name in self._exclude_types or any(fnmatchcase(name, pattern) for pattern in self._exclude):
            return None
        latched = any(publisher.latched for publisher in topic.publishers if publisher.node == node)
        return self._writer.channel(name, topic.type_name, node, latched=latched)

    def _on_advance(self, time_ns: int) -> None:
        try:
            self._writer.flush_before(time_ns)
        except RecordingError as error:
            self._fail(error)

    def _fail(self, error: RecordingError) -> None:
        """Stop recording; an event of its own raises the error, not the callback of the node that published."""
        self._stop()
        self._error = error
        self._bus.executor.schedule(self._bus.now_ns, self._raise, LAST)

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _stop(self) -> None:
        while self._detach:
            self._detach.pop()()

    def save_state(self) -> dict[str, Any]:
        """Return all data recorded so far, as plain data; may raise RecordingError."""
        channels = [(*key, channel is not None) for key, channel in self._channels.items()]
        return {"count": self.count, "channels": channels, "writer": self._writer.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from a state that `save_state` returned, as if this recorder had recorded it; may raise
        RecordingError.
        """
        self._writer.load_state(saved["writer"])
        self.count = saved["count"]
        self._channels = {(topic, node): None for topic, node, is_recorded in saved["channels"] if not is_recorded}

    def close(self, metadata: Mapping[str, str] | None = None) -> None:
        """Stop recording and complete the file; closing twice is allowed.

        Args:
            metadata: Data about the run that was unknown when the recording started.

        Raises:
            RecordingError: The file could not be written, and the run has not reported it yet.
        """
        self._stop()
        self._raise()
        if metadata:
            self._writer.add_metadata(metadata)
        self._writer.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
