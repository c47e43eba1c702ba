"""A recording as a film strip: what was said last at any moment, and what is said as time goes on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from typing import Any

from roboyard.errors import RoboyardError
from roboyard.record import RecordedChannel, Recording

_SLOW = 1.0
"""Topics with fewer messages a second are looked up by themselves [Hz]."""
_WINDOW_NS = 4_000_000_000
"""Of the others, how far back from a moment it is looked for what was said last."""
_MOST_KEPT = 256 * 1024 * 1024
"""Bytes of slow topics that are kept in memory; of more the later ones are missing after a jump."""

Raw = tuple[int, RecordedChannel, bytes]


class Timeline:
    """Where a recording stands, and what was said up to there.

    Args:
        recording: Open.
        wanted: Topics of which the newest message is wanted.
        each: Topics of which every message is.

    Attributes:
        start_ns: Of the recording [ns].
        end_ns: Likewise.
        now_ns: Where it stands.
    """

    def __init__(self, recording: Recording, wanted: Collection[str], each: Collection[str]) -> None:
        self._recording = recording
        self._each = frozenset(each)
        known = [c for c in recording.channels if c.encoding in ("cdr", "ros1") and c.count]
        self._all = [c for c in known if c.topic in wanted or c.topic in self._each]
        self.start_ns, self.end_ns = recording.start_ns, recording.end_ns
        self.now_ns = self.start_ns
        self._ahead: Raw | None = None
        self._stream: Iterator[Raw] = iter(())
        span = max((self.end_ns - self.start_ns) * 1e-9, 1e-3)
        self._slow = [c for c in self._all if c.topic not in self._each and (c.latched or c.count / span < _SLOW)]
        self._quick = [c for c in self._all if c not in self._slow]
        self._kept: dict[str, tuple[list[int], list[Raw]]] = {}
        size = 0
        for raw in recording.raw_messages_of_channels(self._slow) if self._slow else ():
            size += len(raw[2])
            if size > _MOST_KEPT:
                break
            times, items = self._kept.setdefault(raw[1].topic, ([], []))
            times.append(raw[0])
            items.append(raw)

    def seek(self, time_ns: int, say: Callable[[str, Any, int], None]) -> None:
        """Stand at a moment, and say what was said last on each topic up to there, in order of time."""
        self.now_ns = min(max(time_ns, self.start_ns), self.end_ns)
        newest: dict[str, Raw] = {}
        for topic, (times, items) in self._kept.items():
            place = bisect_right(times, self.now_ns)
            if place:
                newest[topic] = items[place - 1]
        each: list[Raw] = []
        for raw in self._recording.raw_messages_of_channels(
            self._quick, max(self.now_ns - _WINDOW_NS, self.start_ns), self.now_ns
        ):
            if raw[1].topic in self._each:
                each.append(raw)
            else:
                newest[raw[1].topic] = raw
        for raw in sorted([*each, *newest.values()], key=lambda item: item[0]):
            self._say(raw, say)
        self._ahead = None
        self._stream = self._recording.raw_messages_of_channels(self._all, self.now_ns + 1)

    def advance(self, time_ns: int, say: Callable[[str, Any, int], None]) -> None:
        """Go on to a later moment, and say what is said on the way: of most topics only the last."""
        self.now_ns = min(time_ns, self.end_ns)
        newest: dict[str, Raw] = {}
        while True:
            if self._ahead is None:
                self._ahead = next(self._stream, None)
            if self._ahead is None or self._ahead[0] > self.now_ns:
                break
            if self._ahead[1].topic in self._each:
                self._say(self._ahead, say)
            else:
                newest[self._ahead[1].topic] = self._ahead
            self._ahead = None
        for raw in newest.values():
            self._say(raw, say)

    def _say(self, raw: Raw, say: Callable[[str, Any, int], None]) -> None:
        time_ns, connection, data = raw
        try:
            message = self._recording.decoder(connection)(data)
        except RoboyardError:  # one that is damaged is as one that was not said
            return
        say(connection.topic, message, time_ns)
