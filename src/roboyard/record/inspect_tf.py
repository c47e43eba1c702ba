"""The transform tree of a recording, and transforms at any moment of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from roboyard.bus import TransformBuffer, TransformError
from roboyard.errors import RecordingError
from roboyard.geometry import SE3
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import transform_to_se3
from roboyard.record.decode import incompatible_definition
from roboyard.record.recording import Recording

_TOPICS = ("/tf", "/tf_static")
_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")


@dataclass(frozen=True, slots=True)
class FrameInfo:
    """A frame of the tree.

    Attributes:
        name: Frame id.
        parent: Its parent; None for a root.
        static: Whether it never moves in its parent.
        publisher: Node that published it last.
        count: Number of transforms received.
        start_ns: Stamp of the first [ns].
        end_ns: Stamp of the last [ns].
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
    """Every recorded TransformStamped, whether it is static, and its publisher.

    Raises:
        RecordingError: the file is damaged, or what it calls transforms are none.
    """
    topics = recording.topics
    present = [topic for topic in _TOPICS if topic in topics]
    channels = [channel for channel in recording.channels if channel.topic in present]
    for channel in channels:
        recording.decoder(channel)
        is_incompatible = channel.definition and channel.encoding == "cdr" and incompatible_definition(channel)
        if channel.type not in _TYPES or is_incompatible:
            raise RecordingError(
                f"{channel.topic} carries no transforms as ROS 2 knows them ({channel.type})",
                location=str(recording.path),
                valid=_TYPES[0],
            )
    for item in recording.messages(present) if present else ():
        for transform in item.message.transforms:
            yield transform, item.topic == "/tf_static", item.publisher


def tf_tree(recording: Recording) -> tuple[FrameInfo, ...]:
    """All frames, sorted by name; roots have no parent."""
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
    """A buffer with every transform of the recording; those that contradict the tree are left out."""
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
    """``T_target_source`` at a moment of the recording: maps coordinates in ``source`` to ``target``.

    Args:
        recording: The recording.
        target: Frame to express in.
        source: Frame of the coordinates.
        time_ns: Moment [ns]; None for the newest that every part of the way knows.

    Raises:
        TransformError: a frame is unknown, the two are not connected, or the moment is outside of what is known.
    """
    return tf_buffer(recording).lookup(target, source, time_ns)
