"""Transforms of a live run, collected for a moment so that they can be inspected like a recording's."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.cli.source import DataSource, LiveSource, RecordingSource
from roboyard.compute.wall_clock import wall_seconds
from roboyard.record.recording import MessageDecoder, RawMessage, RecordedChannel, Recording

if TYPE_CHECKING:
    from roboyard.bus import TransformBuffer

TRANSFORM_TOPICS = ("/tf", "/tf_static")
_COLLECTION_NS = 2_000_000_000
"""Length of the collection [simulated ns]: every frame of a running robot is published in this time."""
_RECEIVE_TIMEOUT, _MAX_WAIT = 1.0, 4.0
"""Maximum time without a message, and maximum time of the collection [wall s]."""


class BufferedRecording(Recording):
    """Messages of a live run, held in memory.

    Args:
        name: Name of the run.
        items: Messages with their channels.
    """

    format = "live"

    def __init__(self, name: str, items: list[RawMessage]) -> None:
        super().__init__(Path(name))
        self._items = items
        counts: dict[RecordedChannel, list[int]] = {}
        for time_ns, connection, _ in items:
            counts.setdefault(connection, []).append(time_ns)
        self.channels = tuple(
            RecordedChannel(c.topic, c.type, c.publisher, count=len(times), start_ns=times[0], end_ns=times[-1])
            for c, times in counts.items()
        )

    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        selected_channels = {(connection.topic, connection.publisher): connection for connection in channels}
        for time_ns, connection, data in self._items:
            channel = selected_channels.get((connection.topic, connection.publisher))
            if channel is not None and start_ns <= time_ns <= end_ns:
                yield time_ns, channel, data

    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        from roboyard.messages import deserialize

        return lambda data: deserialize(data, channel.type)


def collect_transforms(source: DataSource) -> Recording:
    """Return the recording of a source, or the transforms that a live run publishes in the next two seconds."""
    if isinstance(source, RecordingSource):
        return source.recording
    items: list[RawMessage] = []
    first_ns: int | None = None
    end = wall_seconds() + _MAX_WAIT
    for received in source.messages(TRANSFORM_TOPICS, _RECEIVE_TIMEOUT):
        connection = RecordedChannel(received.topic, "tf2_msgs/msg/TFMessage", received.publisher)
        items.append((received.time_ns, connection, received.data))
        if received.topic == "/tf":
            first_ns = received.time_ns if first_ns is None else first_ns
        if wall_seconds() > end or (first_ns is not None and received.time_ns - first_ns > _COLLECTION_NS):
            break
    return BufferedRecording(source.name, items)


def follow_transforms(source: LiveSource, buffer: TransformBuffer) -> Iterator[int]:
    """Fill a transform buffer from a live run; yield the run's time [ns] after each message until the run ends."""
    from roboyard.bus import TransformError
    from roboyard.messages import to_nanoseconds
    from roboyard.messages.convert import transform_to_se3

    for received in source.messages(TRANSFORM_TOPICS):
        for item in received.message.transforms:
            header, static = item.header, received.topic == "/tf_static"
            time_ns = to_nanoseconds(header.stamp)
            try:
                pose = transform_to_se3(item.transform)
                buffer.insert(pose, header.frame_id, item.child_frame_id, time_ns, static)
            except TransformError:
                continue  # the buffer of the run rejects it, too, and logs the reason
        yield received.time_ns
