"""Inspects recordings like ``ros2 bag info``, ``ros2 topic`` and ``tf2_echo``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np

from roboyard.bus import TransformBuffer, TransformError
from roboyard.errors import RecordingError
from roboyard.geometry import SE3
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import transform_to_se3
from roboyard.record.message_decoder import recorded_definition_override
from roboyard.record.recording import RecordedMessage, RecordedTopic, Recording


@dataclass(frozen=True, slots=True)
class RecordingInfo:
    """Summary of a recording.

    Attributes:
        path: File or folder as it was opened.
        format: "mcap", "rosbag2", "rosbag1" or "carmen".
        size: Size on disk [bytes].
        start_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].
        message_count: Number of messages.
        is_complete: False if the end of the recording is missing.
        topics: Topics, sorted by name.
        nodes: Names of the publishers, sorted.
        metadata: Metadata that the file has about its run.
        warnings: Problems found, one sentence each.
    """

    path: str
    format: str
    size: int
    start_ns: int
    end_ns: int
    message_count: int
    is_complete: bool
    topics: tuple[RecordedTopic, ...]
    nodes: tuple[str, ...]
    metadata: dict[str, str]
    warnings: tuple[str, ...]

    @property
    def duration(self) -> float:
        """Time from the first to the last message [s]."""
        return (self.end_ns - self.start_ns) * 1e-9


@dataclass(frozen=True, slots=True)
class TopicRate:
    """Rate of a topic, computed from the periods between its messages.

    Attributes:
        topic: Name of the topic.
        count: Number of messages.
        mean: Mean rate [Hz]; None if there are fewer than two messages or all have the same time.
        min_interval: Shortest time between two messages [s].
        max_interval: Longest time between two messages [s].
        interval_stddev: Standard deviation of the time between messages [s].
    """

    topic: str
    count: int
    mean: float | None
    min_interval: float
    max_interval: float
    interval_stddev: float


@dataclass(frozen=True, slots=True)
class TopicBandwidth:
    """Bandwidth of a topic: messages, total bytes, bytes per message (mean, minimum, maximum), and bytes per second."""

    topic: str
    count: int
    bytes: int
    mean_size: float
    min_size: int
    max_size: int
    bytes_per_second: float | None


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A node of a recording: its name and the topics that it published on."""

    name: str
    publishes: tuple[str, ...]


def info(recording: Recording) -> RecordingInfo:
    """Return a summary of the recording."""
    path = recording.path
    files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
    return RecordingInfo(
        path=str(path),
        format=recording.format,
        size=sum(item.stat().st_size for item in files),
        start_ns=recording.start_ns,
        end_ns=recording.end_ns,
        message_count=recording.count,
        is_complete=recording.is_complete,
        topics=topic_list(recording),
        nodes=tuple(node.name for node in node_list(recording)),
        metadata=dict(recording.metadata),
        warnings=tuple(recording.warnings),
    )


def topic_list(recording: Recording) -> tuple[RecordedTopic, ...]:
    """Return the topics, sorted by name."""
    return tuple(recording.topics.values())


def topic_echo(
    recording: Recording,
    topic: str,
    *,
    count: int | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> Iterator[RecordedMessage]:
    """Iterate over the messages of a topic.

    Args:
        recording: The recording.
        topic: Name of the topic.
        count: Maximum number of messages; None for all.
        start_ns: First time [ns], included; None for the start.
        end_ns: Last time [ns], included; None for the end.

    Raises:
        UnknownNameError: The recording has no such topic.
    """
    return islice(recording.messages([topic], start_ns, end_ns), count)


def topic_hz(recording: Recording, topic: str) -> TopicRate:
    """Compute the rate of a topic and the regularity of its messages.

    Raises:
        UnknownNameError: The recording has no such topic.
    """
    times = [time_ns for time_ns, _, _ in recording.raw_messages([topic])]
    if len(times) < 2:
        return TopicRate(topic, len(times), None, 0.0, 0.0, 0.0)
    gaps = np.array([later - earlier for earlier, later in pairwise(times)], dtype=np.float64) * 1e-9
    mean = float(gaps.mean())
    return TopicRate(
        topic,
        len(times),
        1.0 / mean if mean > 0.0 else None,
        float(gaps.min()),
        float(gaps.max()),
        float(gaps.std()),
    )


def topic_bw(recording: Recording, topic: str) -> TopicBandwidth:
    """Compute the bandwidth of a topic.

    Raises:
        UnknownNameError: The recording has no such topic.
    """
    sizes: list[int] = []
    first = last = 0
    for time_ns, _, data in recording.raw_messages([topic]):
        first, last = first if sizes else time_ns, time_ns
        sizes.append(len(data))
    total, span = sum(sizes), (last - first) * 1e-9
    return TopicBandwidth(
        topic=topic,
        count=len(sizes),
        bytes=total,
        mean_size=total / len(sizes) if sizes else 0.0,
        min_size=min(sizes, default=0),
        max_size=max(sizes, default=0),
        bytes_per_second=total / span if span > 0.0 else None,
    )


def node_list(recording: Recording) -> tuple[RecordedNode, ...]:
    """Return the nodes that published, sorted by name; empty if the recording does not name publishers."""
    topics: dict[str, list[str]] = {}
    for channel in recording.channels:
        if channel.publisher:
            topics.setdefault(channel.publisher, []).append(channel.topic)
    return tuple(RecordedNode(name, tuple(sorted(set(topics[name])))) for name in sorted(topics))


_TOPICS = ("/tf", "/tf_static")
_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")


@dataclass(frozen=True, slots=True)
class FrameInfo:
    """A coordinate frame of the transform tree.

    Attributes:
        name: Frame id.
        parent: Id of the parent frame; None for a root.
        static: True if the frame never moves in its parent.
        publisher: Node that published the frame last.
        count: Number of transforms.
        start_ns: Stamp of the first transform [ns].
        end_ns: Stamp of the last transform [ns].
    """

    name: str
    parent: str | None
    static: bool
    publisher: str
    count: int
    start_ns: int
    end_ns: int

    @property
    def rate(self) -> float | None:
        """Mean rate [Hz]; None for roots, static frames and single transforms."""
        span = (self.end_ns - self.start_ns) * 1e-9
        return None if self.static or span <= 0.0 else (self.count - 1) / span


def recorded_transforms(recording: Recording) -> Iterator[tuple[Any, bool, str]]:
    """Iterate over every recorded TransformStamped, whether it is static, and its publisher.

    Raises:
        RecordingError: The file is damaged, or a transform topic has another message type.
    """
    topics = recording.topics
    present = [topic for topic in _TOPICS if topic in topics]
    channels = [channel for channel in recording.channels if channel.topic in present]
    for channel in channels:
        recording.decoder(channel)
        is_incompatible = channel.definition and channel.encoding == "cdr" and recorded_definition_override(channel)
        if channel.type not in _TYPES or is_incompatible:
            raise RecordingError(
                f"{channel.topic} has no transforms in ROS 2's format; its type is {channel.type}",
                location=str(recording.path),
                valid=_TYPES[0],
            )
    for item in recording.messages(present) if present else ():
        for transform in item.message.transforms:
            yield transform, item.topic == "/tf_static", item.publisher


def tf_tree(recording: Recording) -> tuple[FrameInfo, ...]:
    """Return all frames, sorted by name; root frames have no parent."""
    frames: dict[str, FrameInfo] = {}
    for transform, static, publisher in recorded_transforms(recording):
        name, parent = transform.child_frame_id, transform.header.frame_id
        time_ns = to_nanoseconds(transform.header.stamp)
        before = frames.get(name)
        count, first, last = (0, time_ns, time_ns) if before is None else (before.count, before.start_ns, before.end_ns)
        frames[name] = FrameInfo(name, parent, static, publisher, count + 1, min(first, time_ns), max(last, time_ns))
    for parent in sorted({frame.parent for frame in frames.values() if frame.parent is not None}):
        frames.setdefault(parent, FrameInfo(parent, None, True, "", 0, 0, 0))
    return tuple(frames[name] for name in sorted(frames))


def tf_buffer(recording: Recording) -> TransformBuffer:
    """Return a buffer with every transform of the recording; transforms that contradict the tree are ignored."""
    buffer = TransformBuffer(cache_time=max(10.0, (recording.end_ns - recording.start_ns) * 1e-9 + 10.0))
    for transform, static, _ in recorded_transforms(recording):
        header = transform.header
        try:
            buffer.insert(
                transform_to_se3(transform.transform),
                header.frame_id,
                transform.child_frame_id,
                to_nanoseconds(header.stamp),
                static,
            )
        except TransformError as error:
            sentence = f"transform ignored: {error}"
            if sentence not in recording.warnings:
                recording.warnings.append(sentence)
    return buffer


def tf_echo(recording: Recording, target: str, source: str, time_ns: int | None = None) -> SE3:
    """Return the transform ``T_target_source``, which maps coordinates in `source` to `target`.

    Args:
        recording: The recording.
        target: Frame to express in.
        source: Frame of the coordinates.
        time_ns: Time of the transform [ns]; None for the newest time at which the complete chain is known.

    Raises:
        TransformError: A frame is unknown, the two are not connected, or the time is outside the recorded interval.
    """
    return tf_buffer(recording).lookup(target, source, time_ns)
