"""Compares two recordings message by message, under a table of what is called otherwise in the second.

Messages of a publisher on a topic are compared in their order, each decoded by the definition that its own file
carries.  What differs is told with topic, time, number of the message and path of the field.
"""

from __future__ import annotations

import filecmp
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from recording_renames import Renames
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

from roboyard.errors import RecordingError
from roboyard.record import open_recording
from roboyard.record.message_decoder import parse_definition
from roboyard.record.recording import RecordedChannel, Recording

ABSENT = "absent"
"""What stands for a value where a side has none."""
SCENARIO_KEY = "run"
"""Key of a recording's metadata that holds the scenario's name."""
_LONGEST = 120
"""Characters of a value that are told."""


class Channel(NamedTuple):
    """A publisher on a topic, by the names of the new recording."""

    topic: str
    type: str
    publisher: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing that differs on a topic, or in what describes a recording.

    Attributes:
        topic: As the new recording calls it; "" for what belongs to no topic.
        time_ns: When the message was published in the old recording, or in the new one where that has none [ns].
        sequence: Number of the message among those of its publisher on the topic, from 0, likewise.
        field: Path of the field, as "pose.position.x" or "ranges[17]"; "time [ns]", "message", "type", "publisher",
            "latched", "definition", "order" or "metadata" for what is no field, with a name behind where there is one.
        old: Its value in the old recording, in the new one's words where the table has them.
        new: Its value in the new one.
        publisher: The node that published it, as the new recording calls it.
    """

    topic: str
    time_ns: int | None
    sequence: int | None
    field: str
    old: str
    new: str
    publisher: str = ""

    def __str__(self) -> str:
        time = "" if self.time_ns is None else f" at {self.time_ns / 1e9:.9f} s"
        number = "" if self.sequence is None else f", message {self.sequence}"
        by = f" of {self.publisher}" if self.publisher else ""
        return f"{self.topic}{by}{number}{time}{': ' if self.topic else ''}{self.field}: {self.old} → {self.new}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass(slots=True)
class TopicCount:
    """Messages of a topic.

    Attributes:
        old: In the old recording.
        new: In the new one.
        different: Pairs that differ, and messages that only one side has.
    """

    old: int = 0
    new: int = 0
    different: int = 0


@dataclass(slots=True)
class RecordingComparison:
    """What comes of comparing two recordings.

    Attributes:
        differences: The first on each topic, in order of time.
        topics: Counts by topic.
        notes: What is to be known beside, e.g. that a file's end is missing.
        same_bytes: Whether the files are the same byte by byte, so that nothing was decoded.
    """

    differences: list[Difference] = field(default_factory=list)
    topics: dict[str, TopicCount] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    same_bytes: bool = False

    @property
    def different(self) -> dict[str, int]:
        """How many messages differ, by topic; topics without any are left out."""
        return {topic: count.different for topic, count in sorted(self.topics.items()) if count.different}


class Message(NamedTuple):
    """A message as recorded: its time [ns] and its bytes."""

    time_ns: int
    data: bytes


def compare_recordings(old: Path, new: Path, renames: Renames, tolerance: float = 0.0) -> RecordingComparison:
    """Compare two MCAP files.

    Args:
        old: The old revision's.
        new: The new one's.
        renames: What is called otherwise in the new one.
        tolerance: Largest difference of two floats that counts as none: absolute below 1, relative above; 0: bits.

    Raises:
        RecordingError: one cannot be read.
    """
    found = RecordingComparison()
    if not renames.is_active and filecmp.cmp(old, new, shallow=False):
        with open_recording(new) as recording:
            for connection in recording.channels:
                count = found.topics.setdefault(connection.topic, TopicCount())
                count.old, count.new = count.old + connection.count, count.new + connection.count
        found.same_bytes = True
        return found
    with open_recording(old) as before, open_recording(new) as after:
        _Comparing(before, after, renames, tolerance, found).compare()
    found.differences.sort(key=_place)
    return found


def _place(difference: Difference) -> tuple[bool, int, int, str]:
    """Where a difference stands: in order of time, what belongs to no topic last."""
    time = -1 if difference.time_ns is None else difference.time_ns
    return not difference.topic, time, difference.sequence or 0, difference.topic


class _Side:
    """One of the recordings: its channels with their messages, and decoders."""

    def __init__(self, recording: Recording, channel_of: Any, excluded: Any) -> None:
        self.recording = recording
        self.connections: dict[Channel, RecordedChannel] = {}
        self.messages: dict[Channel, list[Message]] = {}
        self.order: list[Channel] = []
        by_id: dict[int, Channel] = {}
        for connection in recording.channels:
            if not excluded(connection):
                channel = by_id[id(connection)] = channel_of(connection)
                self.connections.setdefault(channel, connection)
                self.messages.setdefault(channel, [])
        wanted = [connection for connection in recording.channels if id(connection) in by_id]
        for time_ns, connection, data in recording.raw_messages_of_channels(wanted):
            channel = by_id[id(connection)]
            self.messages[channel].append(Message(time_ns, data))
            self.order.append(channel)
        self._stores: dict[tuple[str, str], Any] = {}

    def store(self, connection: RecordedChannel) -> Any:
        """What decodes messages of a connection, by the definition in this file."""
        key = (connection.type, connection.definition)
        if key not in self._stores:
            where = str(self.recording.path)
            if connection.encoding != "cdr":
                what = f"topic {connection.topic} is encoded as '{connection.encoding}'"
                raise RecordingError(what, location=where, valid="cdr")
            store = get_typestore(Stores.EMPTY)
            try:
                store.register(parse_definition(connection.definition, connection.definition_format, connection.type))
                store.get_msgdef(connection.type)
            except Exception as error:
                what = f"the definition of {connection.type} cannot be used: {error}"
                raise RecordingError(what, location=where) from error
            self._stores[key] = store
        return self._stores[key]

    def decode(self, connection: RecordedChannel, data: bytes) -> Any:
        """The message in ``data``."""
        store = self.store(connection)
        try:
            return store.deserialize_cdr(data, connection.type)
        except Exception as error:
            what = f"a message of {len(data)} bytes on {connection.topic} is no {connection.type}: {error}"
            raise RecordingError(what, location=str(self.recording.path)) from error


class _Comparing:
    """A comparison that goes on."""

    def __init__(
        self, old: Recording, new: Recording, renames: Renames, tolerance: float, found: RecordingComparison
    ) -> None:
        self._renames, self._tolerance, self._found = renames, tolerance, found
        for name, recording in (("old", old), ("new", new)):
            found.notes += [f"{name}: {warning}" for warning in recording.warnings]
        self._topics_out = {
            connection.topic: self._topic(connection)
            for connection in old.channels
            if renames.excludes("topics", connection.topic)
        }
        self._old = _Side(old, self._channel, lambda one: one.topic in self._topics_out)
        self._new = _Side(
            new,
            lambda one: Channel(one.topic, one.type, one.publisher),
            lambda one: one.topic in self._topics_out.values() or renames.excludes("topics", one.topic),
        )
        self._strings: dict[tuple[str, str], bool] = {}

    def _topic(self, connection: RecordedChannel) -> str:
        return self._renames.new_name("topics", connection.topic)

    def _channel(self, connection: RecordedChannel) -> Channel:
        publisher = self._renames.new_name("nodes", connection.publisher)
        return Channel(self._topic(connection), self._renames.new_name("types", connection.type), publisher)

    def compare(self) -> None:
        """Compare all."""
        self._metadata()
        same = True
        for old, new in self._pairs():
            before, after = (
                self._old.messages.get(old, []) if old else [],
                self._new.messages.get(new, []) if new else [],
            )
            topic = (new or old).topic  # type: ignore[union-attr]
            count = self._found.topics.setdefault(topic, TopicCount())
            count.old, count.new = count.old + len(before), count.new + len(after)
            differences, different = self._channels(old, new, before, after)
            count.different += different
            if differences:
                same = False
                known = [one for one in self._found.differences if one.topic == topic]
                others = [one for one in self._found.differences if one.topic != topic]
                self._found.differences = [*others, min([*known, *differences], key=_place)]
        if same:
            self._order()

    def _metadata(self) -> None:
        before = {self._renames.new_name("metadata", key): key for key in self._old.recording.metadata}
        after = self._new.recording.metadata
        for key in sorted(before.keys() | after.keys()):
            old_key = before.get(key, key)
            old = self._old.recording.metadata.get(old_key, ABSENT) if key in before else ABSENT
            if old != ABSENT and old_key == SCENARIO_KEY:
                old = self._renames.new_name("scenarios", old)
            elif old != ABSENT:
                old = self._renames.new_string("metadata", old_key, old)
            new = after.get(key, ABSENT)
            if old == new:
                continue
            difference = Difference("", None, None, f"metadata {key}", *told(old, new))
            if self._renames.excludes("metadata", old_key) or self._renames.excludes("metadata", key):
                self._found.notes.append(f"not counted: {difference}")
            else:
                self._found.differences.append(difference)

    def _pairs(self) -> Iterator[tuple[Channel | None, Channel | None]]:
        """Channels that belong together; None where a side has none."""
        old, new = list(self._old.connections), list(self._new.connections)
        for same in (
            lambda a, b: a == b,
            lambda a, b: a.topic == b.topic and a.publisher == b.publisher,
            lambda a, b: a.topic == b.topic and a.type == b.type,
            lambda a, b: a.topic == b.topic,
        ):
            for one in list(old):
                other = next((channel for channel in new if same(one, channel)), None)
                if other is not None:
                    old.remove(one)
                    new.remove(other)
                    yield one, other
        yield from ((one, None) for one in old)
        yield from ((None, one) for one in new)

    def _channels(
        self, old: Channel | None, new: Channel | None, before: Sequence[Message], after: Sequence[Message]
    ) -> tuple[list[Difference], int]:
        """First differences of two channels, and how many messages differ."""
        if old is None or new is None:
            channel, there = (new, after) if old is None else (old, before)
            time = there[0].time_ns if there else None
            texts = (ABSENT, "published") if old is None else ("published", ABSENT)
            return [Difference(channel.topic, time, None, "topic", *texts, channel.publisher)], len(there)  # type: ignore[union-attr]
        first, second = self._old.connections[old], self._new.connections[new]
        described = list(self._described(old, new, first, second))
        if old.type != new.type or any(entry[0].startswith("definition") for entry in described):
            different = max(len(before), len(after))
        else:
            different = 0
        time = min([messages[0].time_ns for messages in (before, after) if messages], default=None)
        found = [Difference(new.topic, time, None, *entry, new.publisher) for entry in described]
        if old.type != new.type:
            return found, different
        pairs, seen = 0, False
        for difference in self._streams(new, first, second, before, after):
            pairs += 1
            if not seen:
                found.append(difference)
                seen = True
        return found, max(different, pairs)

    def _described(
        self, old: Channel, new: Channel, first: RecordedChannel, second: RecordedChannel
    ) -> Iterator[tuple[str, str, str]]:
        for name in ("type", "publisher"):
            if getattr(old, name) != getattr(new, name):
                yield name, getattr(old, name), getattr(new, name)
                if name == "type":
                    return
        if first.latched != second.latched:
            yield "latched", str(first.latched), str(second.latched)
        if first.definition != second.definition or self._renames.is_active:
            yield from self._definitions(first, second)

    def _definitions(self, first: RecordedChannel, second: RecordedChannel) -> Iterator[tuple[str, str, str]]:
        """The first difference between definitions, comments and layout left out."""
        old, new = self._old.store(first).fielddefs, self._new.store(second).fielddefs
        left, seen = [first.type], set[str]()
        while left:
            old_type = left.pop()
            if old_type in seen:
                continue
            seen.add(old_type)
            new_type = self._renames.new_name("types", old_type)
            if new_type not in new:
                yield f"definition of {new_type}", "defined", ABSENT
                return
            (old_constants, old_fields), (new_constants, new_fields) = old[old_type], new[new_type]
            before = [
                f"{self._renames.new_field(old_type, name)}: {self._form(form)}"
                for name, form in old_fields
                if not self._renames.excludes("fields", f"{old_type}.{name}")
            ]
            after = [
                f"{name}: {_form(form)}"
                for name, form in new_fields
                if not self._renames.excludes("fields", f"{new_type}.{name}")
                and f"{name}: {_form(form)}" not in self._excluded_fields(old_type, old_fields)
            ]
            before += [f"{self._renames.new_field(old_type, name)} = {kind} {v!r}" for name, kind, v in old_constants]
            after += [f"{name} = {kind} {v!r}" for name, kind, v in new_constants]
            if before != after:
                lines = max(len(before), len(after))
                at = next(k for k in range(lines) if before[k : k + 1] != after[k : k + 1])
                texts = ("".join(side[at : at + 1]) or ABSENT for side in (before, after))
                yield (f"definition of {new_type}", *texts)
                return
            left += [kind for _, form in old_fields if (kind := _nested(form)) is not None]

    def _excluded_fields(self, old_type: str, fields: Any) -> set[str]:
        """Fields that are left out, as the new definition would write them."""
        return {
            f"{self._renames.new_field(old_type, name)}: {self._form(form)}"
            for name, form in fields
            if self._renames.excludes("fields", f"{old_type}.{name}")
        }

    def _form(self, form: Any) -> str:
        kind = _nested(form)
        return _form(form) if kind is None else _form(form).replace(kind, self._renames.new_name("types", kind))

    def _streams(
        self,
        channel: Channel,
        first: RecordedChannel,
        second: RecordedChannel,
        old: Sequence[Message],
        new: Sequence[Message],
    ) -> Iterator[Difference]:
        """What differs between the messages of two channels, message by message."""
        i = j = 0
        while i < len(old) and j < len(new):
            a, b = old[i], new[j]
            if a.time_ns != b.time_ns and (gone := _unmatched(old, new, i, j)):
                if gone == "new":
                    yield Difference(channel.topic, a.time_ns, i, "message", "published", ABSENT, channel.publisher)
                    i += 1
                else:
                    yield Difference(channel.topic, b.time_ns, j, "message", ABSENT, "published", channel.publisher)
                    j += 1
                continue
            entry: tuple[str, Any, Any] | None
            if a.time_ns != b.time_ns:
                entry = ("time [ns]", a.time_ns, b.time_ns)
            elif a.data == b.data and not self._is_renamed(first):
                entry = None
            else:
                values = self._old.decode(first, a.data), self._new.decode(second, b.data)
                entry = next(self._message(first, second, *values), None)
            if entry is not None:
                name, before, after = entry
                yield Difference(channel.topic, a.time_ns, i, name, *told(before, after), channel.publisher)
            i, j = i + 1, j + 1
        for place, message in enumerate(old[i:], i):
            yield Difference(channel.topic, message.time_ns, place, "message", "published", ABSENT, channel.publisher)
        for place, message in enumerate(new[j:], j):
            yield Difference(channel.topic, message.time_ns, place, "message", ABSENT, "published", channel.publisher)

    def _is_renamed(self, connection: RecordedChannel) -> bool:
        """Whether equal bytes of this type may yet mean something else."""
        key = (connection.type, connection.definition)
        if key not in self._strings:
            forms = self._old.store(connection).fielddefs
            left, seen, strings = [connection.type], set[str](), False
            while left:
                name = left.pop()
                if name not in seen:
                    seen.add(name)
                    fields = forms[name][1]
                    strings = strings or any(_is_string(form) for _, form in fields)
                    left += [kind for _, form in fields if (kind := _nested(form)) is not None]
            self._strings[key] = strings and self._renames.renames_strings
        return self._strings[key]

    def _message(
        self, first: RecordedChannel, second: RecordedChannel, old: Any, new: Any
    ) -> Iterator[tuple[str, Any, Any]]:
        """Fields of two messages that differ: path, old value, new value."""
        forms = self._old.store(first).fielddefs
        return self._fields(forms, first.type, old, new, "")

    def _fields(self, forms: Any, old_type: str, old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
        for name, form in forms[old_type][1]:
            if self._renames.excludes("fields", f"{old_type}.{name}"):
                continue
            new_name = self._renames.new_field(old_type, name)
            before, after = getattr(old, name), getattr(new, new_name, ABSENT)
            at = f"{path}.{new_name}" if path else new_name
            if isinstance(after, str) and after is ABSENT:
                yield at, before, ABSENT
                continue
            yield from self._values(forms, form, f"{old_type}.{name}", before, after, at)

    def _values(self, forms: Any, form: Any, place: str, old: Any, new: Any, at: str) -> Iterator[tuple[str, Any, Any]]:
        kind, about = form
        if kind is Nodetype.NAME:
            yield from self._fields(forms, about, old, new, at)
        elif kind is Nodetype.BASE:
            if about[0] in ("string", "wstring"):
                old_type, _, name = place.rpartition(".")
                old = self._renames.new_string(old_type, name, old)
            if not self._same(about[0], old, new):
                yield at, old, new
        else:
            for k in _places(old, new):
                yield from self._values(forms, about[0], place, old[k], new[k], f"{at}[{k}]")
            if len(old) != len(new):
                yield f"{at} (length)", len(old), len(new)

    def _same(self, kind: str, old: Any, new: Any) -> bool:
        if kind.startswith("float") and isinstance(new, float | np.floating):
            return _same_float(float(old), float(new), self._tolerance)
        return bool(old == new)

    def _order(self) -> None:
        """Messages are the same; what is left is the order among those of different topics."""
        for old, new, place in zip(self._old.order, self._new.order, range(len(self._new.order)), strict=False):
            if old != new:
                n = sum(channel == old for channel in self._old.order[:place])
                time = self._old.messages[old][n].time_ns
                before, after = f"{old.topic} of {old.publisher}", f"{new.topic} of {new.publisher}"
                found = Difference(old.topic, time, n, "order", before, after, old.publisher)
                self._found.differences.append(found)
                self._found.topics[old.topic].different += 1
                return


def _unmatched(old: Sequence[Message], new: Sequence[Message], i: int, j: int) -> str | None:
    """The side that lacks the earlier of two messages whose times differ; None if it was published at another time."""
    later_old = old[i + 1].time_ns if i + 1 < len(old) else None
    later_new = new[j + 1].time_ns if j + 1 < len(new) else None
    if later_old == later_new and (later_old is not None or len(old) - i == len(new) - j):
        return None
    return "new" if old[i].time_ns < new[j].time_ns else "old"


def _nested(form: Any) -> str | None:
    """The message type that a field is of, itself or in an array."""
    kind, about = form
    if kind is Nodetype.NAME:
        return str(about)
    return None if kind is Nodetype.BASE else _nested(about[0])


def _is_string(form: Any) -> bool:
    kind, about = form
    if kind is Nodetype.BASE:
        return about[0] in ("string", "wstring")
    return kind is not Nodetype.NAME and _is_string(about[0])


def _form(form: Any) -> str:
    """A field's form as a definition writes it."""
    kind, about = form
    if kind is Nodetype.NAME:
        return str(about)
    if kind is Nodetype.BASE:
        return about[0] + (f"<={about[1]}" if about[1] else "")
    size = str(about[1]) if kind is Nodetype.ARRAY else f"<={about[1]}" if about[1] else ""
    return f"{_form(about[0])}[{size}]"


def _places(old: Any, new: Any) -> Iterable[int]:
    """Indices at which two sequences may differ, as far as both go."""
    both = min(len(old), len(new))
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.dtype == new.dtype:
        bits = f"u{old.dtype.itemsize}"
        return np.flatnonzero(old[:both].view(bits) != new[:both].view(bits)).tolist()
    return range(both)


def _same_float(old: float, new: float, tolerance: float) -> bool:
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    if old == new:
        return tolerance > 0.0 or math.copysign(1.0, old) == math.copysign(1.0, new)
    return tolerance > 0.0 and abs(old - new) <= tolerance * max(1.0, abs(old), abs(new))


def told(old: Any, new: Any) -> tuple[str, str]:
    """Two values that differ, each in one line of bounded length, long texts where they begin to differ."""
    if isinstance(old, str) and isinstance(new, str) and ABSENT not in (old, new):
        same = next((k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        begin = 0 if max(len(old), len(new)) <= _LONGEST else max(0, same - _LONGEST // 3)
        old, new = (("…" if begin else "") + text[begin : begin + _LONGEST] for text in (old, new))
        return repr(old), repr(new)
    return _brief(old), _brief(new)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray | list) and len(value) > 8:
        return f"{len(value)} values"
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
