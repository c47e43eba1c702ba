"""Replays a recording on a bus, so that nodes process it like live data.

Time stamps in the messages are shifted when the recording is repeated, so that they continue after the previous pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from roboyard.bus import SENSOR
from roboyard.errors import RecordingError
from roboyard.messages import time_to_msg, to_nanoseconds
from roboyard.messages.type_registry import definition_of
from roboyard.record.message_decoder import recorded_definition_override
from roboyard.record.recording import RecordedChannel, RecordedMessage, Recording

if TYPE_CHECKING:
    from roboyard.bus import Bus, Publisher


_TIME: Final = "builtin_interfaces/msg/Time"


def shift_time_stamps(message: Any, offset_ns: int) -> None:
    """Add `offset_ns` to every time stamp in `message`, in place; a stamp of 0 means "not set" and is kept.

    The caller must own the message: published messages are shared and must not change.

    Raises:
        MessageError: A stamp exceeds the range of its 32-bit seconds.
    """
    _shift_fields(message, message.__msgtype__, offset_ns)


def _shift_fields(message: Any, type_name: str, offset_ns: int) -> None:
    for attribute, field_type, single in _time_fields(type_name):
        value = getattr(message, attribute)
        if field_type != _TIME:
            for item in (value,) if single else value:
                _shift_fields(item, field_type, offset_ns)
        elif single:
            setattr(message, attribute, _shift_time(value, offset_ns))
        else:
            setattr(message, attribute, [_shift_time(item, offset_ns) for item in value])


def _shift_time(time: Any, offset_ns: int) -> Any:
    now_ns = to_nanoseconds(time)
    return time_to_msg(now_ns + offset_ns) if now_ns else time


@cache
def _time_fields(type_name: str) -> tuple[tuple[str, str, bool], ...]:
    """Return attribute, type, and whether it is a scalar, for each field that is a time stamp or contains any."""
    return tuple(
        (field.python_name, field.type, field.arity == "one")
        for field in definition_of(type_name).fields
        if field.is_message and (field.type == _TIME or _time_fields(field.type))
    )


EXCLUDED_TOPICS: Final = ("/clock",)
"""Topics that are excluded by default: the bus has its own clock, which follows the recording."""
_MAX_GAP_NS = 3600 * 10**9
_MIN_GAP_NS = 10**6
"""Minimum time between the end of one pass and the start of the next [ns]; longer if messages are sparser."""


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """Selection of the channels of a recording to play.

    Attributes:
        topics: Names or patterns ("/rover/*") to play; None for all.
        exclude: Names or patterns to exclude, besides /clock.
        exclude_publishers: Names of nodes whose messages are excluded because nodes on the player's bus replace them.
    """

    topics: Collection[str] | None = None
    exclude: Collection[str] = ()
    exclude_publishers: Collection[str] = ()

    def includes(self, channel: RecordedChannel) -> bool:
        """Return whether to play the channel."""
        if channel.publisher in self.exclude_publishers:
            return False
        if self.topics is not None and not any(fnmatchcase(channel.topic, pattern) for pattern in self.topics):
            return False
        return not any(fnmatchcase(channel.topic, pattern) for pattern in (*EXCLUDED_TOPICS, *self.exclude))


_EVERYTHING = TopicSelection()


class RecordingPlayer:
    """Publishes a recording's messages at their times, under the names of their original publishers.

    The time of the bus is the time of the recording: a recording that starts at an epoch time requires
    ``Bus(start_ns=…)``.  When the replay starts in the middle, the last earlier message of each latched topic is
    published first.

    Args:
        bus: The bus; its time must not be later than the first message.
        recording: An open recording; it must stay open.
        selection: Topics and publishers to play.
        rename: New names of topics, {"/odom": "/recorded/odom"}.
        start_ns: First time to play [ns]; None for the start.
        end_ns: Last time to play [ns]; None for the end.
        rate: Recorded seconds per wall second; None keeps the bus's pacing.
        loop: Repeat the recording endlessly.  Time continues: the messages of each pass and their stamps are shifted
            behind the previous pass.

    Attributes:
        count: Number of messages published so far.
        is_finished: True after the last message was published.
        end_ns: Time of the last message to play [ns], in the first pass.
        n_passes: Number of completed passes through the recording.
        warnings: Topics that could not be played, one sentence each.

    Raises:
        RecordingError: No message can be played, the bus's time does not fit, or a new name belongs to a topic of
            another type.
        UnknownNameError: `rename` has a topic that the recording does not have.
    """

    def __init__(
        self,
        bus: Bus,
        recording: Recording,
        selection: TopicSelection = _EVERYTHING,
        *,
        rename: Mapping[str, str] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        rate: float | None = None,
        loop: bool = False,
    ) -> None:
        self.count = 0
        self.n_passes = 0
        self.is_finished = False
        self.warnings: list[str] = []
        self._bus = bus
        self._recording = recording
        self._rename = dict(rename or {})
        recording.channels_of(list(self._rename))
        self._publishers: dict[tuple[str, str], Publisher] = {}
        selected = [c for c in recording.channels if c.count and selection.includes(c)]
        playable = sorted({c.topic for c in selected if self._is_playable(c)})
        if not playable:
            raise RecordingError(
                "the selection has no messages to replay", location=str(recording.path), valid="; ".join(self.warnings)
            )
        channels = [c for c in selected if c.topic in playable]
        first_ns = min(c.start_ns for c in channels) if start_ns is None else start_ns
        self.end_ns = max(c.end_ns for c in channels) if end_ns is None else end_ns
        self._check_clock(first_ns)
        self._check_names(channels)
        self._latched = [] if start_ns is None else self._latched_before(start_ns, channels)
        self._channels = channels
        self._first_ns = first_ns
        self._loop = loop
        length_ns = max(self.end_ns - first_ns, 0)
        self._period_ns = length_ns + max(_MIN_GAP_NS, length_ns // sum(c.count for c in channels))
        self._offset_ns = 0
        self._messages = recording.messages_of_channels(channels, first_ns, self.end_ns)
        self._next: RecordedMessage | None = None
        if rate is not None:
            bus.executor.pacer.real_time_factor = rate
        bus.executor.schedule(first_ns, self._start, SENSOR)

    def close(self) -> None:
        """Stop the replay and remove its publishers."""
        self.is_finished = True
        self._next = None
        for publisher in self._publishers.values():
            publisher.close()

    def _is_playable(self, channel: RecordedChannel) -> bool:
        """Return whether the messages of `channel` can be published; add a warning with the reason if not."""
        topic = channel.topic
        if channel.encoding not in ("cdr", "ros1"):
            self.warnings.append(f"{topic} is not played: unsupported encoding '{channel.encoding}'")
            return False
        self._recording.decoder(channel)  # registers an unknown type
        if channel.encoding == "cdr" and recorded_definition_override(channel) is not None:
            self.warnings.append(f"{topic} is not played: its {channel.type} differs from Roboyard's definition")
            return False
        return True

    def _check_clock(self, first_ns: int) -> None:
        now_ns = self._bus.now_ns
        if now_ns > first_ns or first_ns - now_ns > _MAX_GAP_NS:
            raise RecordingError(
                f"the recording starts at {first_ns} ns, before the bus's time of {now_ns} ns",
                location=str(self._recording.path),
                valid=f"Bus(start_ns={first_ns})",
            )

    def _check_names(self, channels: list[RecordedChannel]) -> None:
        """Raise RecordingError if topics of different types would get one name; checked before the replay starts."""
        types: dict[str, RecordedChannel] = {}
        for channel in channels:
            name = self._rename.get(channel.topic, channel.topic)
            other = types.setdefault(name, channel)
            if other.type != channel.type:
                raise RecordingError(
                    f"{other.topic} ({other.type}) and {channel.topic} ({channel.type}) cannot both be named {name}",
                    location=str(self._recording.path),
                    valid="another name",
                )

    def _latched_before(self, start_ns: int, channels: list[RecordedChannel]) -> list[RecordedMessage]:
        latched = [c for c in channels if c.latched and c.start_ns < start_ns]
        last: dict[tuple[str, str], RecordedMessage] = {}
        for item in self._recording.messages_of_channels(latched, 0, start_ns - 1):
            key = (item.topic, item.publisher)
            last.pop(key, None)
            last[key] = item
        return list(last.values())

    def _start(self) -> None:
        if self.is_finished:
            return
        for item in self._latched:
            self._publish(item)
        self._next = self._next_message()
        self._publish_due()

    def _publish_due(self) -> None:
        """Publish the messages that are due and schedule the next call."""
        executor = self._bus.executor
        while self._next is not None and self._next.time_ns <= executor.now_ns:
            self._publish(self._next)
            self._next = self._next_message()
        if self._next is None:
            self.is_finished = True
        else:
            executor.schedule(self._next.time_ns, self._publish_due, SENSOR)

    def _next_message(self) -> RecordedMessage | None:
        """Return the next message, shifted to the present pass; None at the end."""
        item = next(self._messages, None)
        if item is None:
            self.n_passes += 1
            if not self._loop:
                return None
            self._offset_ns += self._period_ns
            self._messages = self._recording.messages_of_channels(self._channels, self._first_ns, self.end_ns)
            item = next(self._messages, None)
        if item is None or not self._offset_ns:
            return item
        shift_time_stamps(item.message, self._offset_ns)
        return item._replace(time_ns=item.time_ns + self._offset_ns)

    def _publish(self, item: RecordedMessage) -> None:
        key = (item.topic, item.publisher)
        publisher = self._publishers.get(key)
        if publisher is None:
            publisher = self._publishers[key] = self._publisher(item)
        publisher.publish(item.message)
        self.count += 1

    def _publisher(self, item: RecordedMessage) -> Publisher:
        found = [c for c in self._recording.channels if (c.topic, c.publisher) == (item.topic, item.publisher)]
        return self._bus.publisher(
            self._rename.get(item.topic, item.topic),
            type(item.message),
            item.publisher or "/replay",
            latched=any(channel.latched for channel in found),
        )
