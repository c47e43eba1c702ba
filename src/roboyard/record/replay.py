"""Feeds a recording back onto a bus, so that nodes run on it as on a live robot."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from roboyard.bus import SENSOR
from roboyard.errors import RecordingError
from roboyard.record.decode import foreign_definition
from roboyard.record.recording import Connection, Recorded, Recording
from roboyard.record.stamps import move_stamps

if TYPE_CHECKING:
    from roboyard.bus import Bus, Publisher

EXCLUDED: Final = ("/clock",)
"""Left out by default: the bus has its own clock, which follows the recording."""
_MAX_GAP_NS = 3600 * 10**9
_LEAST_GAP_NS = 10**6
"""Between the end of one pass and the beginning of the next [ns]; more where messages come less often."""


class Replay:
    """Publishes a recording's messages at their times, in the names of their original publishers.

    The bus's clock is the recording's: a recording that starts at an epoch time needs ``Bus(start_ns=…)``.  When the
    replay starts in the middle, the last message of each latched topic before it comes first.

    Args:
        bus: The bus, standing at or before the first message.
        recording: An open recording; it must stay open.
        topics: Names or patterns ("/rover/*") to play; None for all.
        exclude: Names or patterns to leave out, besides /clock.
        exclude_publishers: Names of nodes whose messages are left out; nodes on this bus take their places.
        rename: New names of topics, {"/odom": "/recorded/odom"}.
        start_ns: First instant to play [ns]; None for the start.
        end_ns: Last instant to play [ns]; None for the end.
        rate: Recorded seconds per wall second; None leaves the bus's pacing as it is.
        loop: Begin again and again.  Time goes on: the messages of each pass, and the stamps in them, are moved to
            behind the pass before.

    Attributes:
        count: Messages published so far.
        done: True once the last message is out.
        end_ns: Time of the last message to play [ns], in the first pass.
        passes: How often the recording has been played to its end.
        warnings: Topics that could not be played, one sentence each.

    Raises:
        RecordingError: nothing of it can be played, the bus's clock does not fit, or a new name is that of a topic of
            another type.
        UnknownNameError: ``rename`` names a topic that the recording does not have.
    """

    def __init__(
        self,
        bus: Bus,
        recording: Recording,
        *,
        topics: Collection[str] | None = None,
        exclude: Collection[str] = (),
        exclude_publishers: Collection[str] = (),
        rename: Mapping[str, str] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        rate: float | None = None,
        loop: bool = False,
    ) -> None:
        self.count = 0
        self.passes = 0
        self.done = False
        self.warnings: list[str] = []
        self._bus = bus
        self._recording = recording
        self._rename = dict(rename or {})
        recording.select(list(self._rename))
        self._publishers: dict[tuple[str, str], Publisher] = {}
        chosen = [
            c
            for c in recording.connections
            if c.count and c.publisher not in exclude_publishers and _chosen(c.topic, topics, (*EXCLUDED, *exclude))
        ]
        playable = sorted({c.topic for c in chosen if self._playable(c)})
        if not playable:
            raise RecordingError("has nothing to replay", where=str(recording.path), valid="; ".join(self.warnings))
        played = [c for c in chosen if c.topic in playable]
        first_ns = min(c.start_ns for c in played) if start_ns is None else start_ns
        self.end_ns = max(c.end_ns for c in played) if end_ns is None else end_ns
        self._check_clock(first_ns)
        self._check_names(played)
        self._latched = [] if start_ns is None else self._latched_before(start_ns, played)
        self._played = played
        self._first_ns = first_ns
        self._loop = loop
        length_ns = max(self.end_ns - first_ns, 0)
        self._period_ns = length_ns + max(_LEAST_GAP_NS, length_ns // sum(c.count for c in played))
        self._offset_ns = 0
        self._messages = recording.of(played, first_ns, self.end_ns)
        self._next: Recorded | None = None
        if rate is not None:
            bus.executor.pacer.factor = rate
        bus.executor.at(first_ns, self._begin, SENSOR)

    def close(self) -> None:
        """Stop, and leave the topics."""
        self.done = True
        self._next = None
        for publisher in self._publishers.values():
            publisher.close()

    def _playable(self, connection: Connection) -> bool:
        """Whether the messages of ``connection`` can go on a bus; says why not."""
        topic = connection.topic
        if connection.encoding not in ("cdr", "ros1"):
            self.warnings.append(f"{topic} is encoded as '{connection.encoding}' and is not played")
            return False
        self._recording.decoder(connection)  # registers a type that is new here
        if connection.encoding == "cdr" and foreign_definition(connection) is not None:
            self.warnings.append(f"{topic} is not played: its {connection.type} differs from the one known here")
            return False
        return True

    def _check_clock(self, first_ns: int) -> None:
        now_ns = self._bus.now_ns
        if now_ns > first_ns or first_ns - now_ns > _MAX_GAP_NS:
            raise RecordingError(
                f"starts at {first_ns} ns and the bus stands at {now_ns} ns",
                where=str(self._recording.path),
                valid=f"Bus(start_ns={first_ns})",
            )

    def _check_names(self, played: list[Connection]) -> None:
        """Two topics of different types cannot become one; better said now than in the middle."""
        types: dict[str, Connection] = {}
        for connection in played:
            name = self._rename.get(connection.topic, connection.topic)
            other = types.setdefault(name, connection)
            if other.type != connection.type:
                raise RecordingError(
                    f"{other.topic} ({other.type}) and {connection.topic} ({connection.type}) cannot both be {name}",
                    where=str(self._recording.path),
                    valid="another name",
                )

    def _latched_before(self, start_ns: int, played: list[Connection]) -> list[Recorded]:
        latched = [c for c in played if c.latched and c.start_ns < start_ns]
        last: dict[tuple[str, str], Recorded] = {}
        for item in self._recording.of(latched, 0, start_ns - 1):
            key = (item.topic, item.publisher)
            last.pop(key, None)
            last[key] = item
        return list(last.values())

    def _begin(self) -> None:
        if self.done:
            return
        for item in self._latched:
            self._publish(item)
        self._next = self._following()
        self._feed()

    def _feed(self) -> None:
        """Publish what is due and come back for the next."""
        executor = self._bus.executor
        while self._next is not None and self._next.time_ns <= executor.now_ns:
            self._publish(self._next)
            self._next = self._following()
        if self._next is None:
            self.done = True
        else:
            executor.at(self._next.time_ns, self._feed, SENSOR)

    def _following(self) -> Recorded | None:
        """The next message, moved to the present pass; None at the end."""
        item = next(self._messages, None)
        if item is None:
            self.passes += 1
            if not self._loop:
                return None
            self._offset_ns += self._period_ns
            self._messages = self._recording.of(self._played, self._first_ns, self.end_ns)
            item = next(self._messages, None)
        if item is None or not self._offset_ns:
            return item
        move_stamps(item.message, self._offset_ns)
        return item._replace(time_ns=item.time_ns + self._offset_ns)

    def _publish(self, item: Recorded) -> None:
        key = (item.topic, item.publisher)
        publisher = self._publishers.get(key)
        if publisher is None:
            publisher = self._publishers[key] = self._publisher(item)
        publisher.publish(item.message)
        self.count += 1

    def _publisher(self, item: Recorded) -> Publisher:
        found = [c for c in self._recording.connections if (c.topic, c.publisher) == (item.topic, item.publisher)]
        return self._bus.publisher(
            self._rename.get(item.topic, item.topic),
            type(item.message),
            item.publisher or "/replay",
            latched=any(connection.latched for connection in found),
        )


def _chosen(topic: str, topics: Collection[str] | None, exclude: Collection[str]) -> bool:
    if topics is not None and not any(fnmatchcase(topic, pattern) for pattern in topics):
        return False
    return not any(fnmatchcase(topic, pattern) for pattern in exclude)
