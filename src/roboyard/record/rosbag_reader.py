"""Reads the recordings of ROS through ``rosbags``: rosbag1 files and rosbag2 databases."""

from __future__ import annotations

import bz2
import struct
from abc import abstractmethod
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import lz4.frame
from rosbags.interfaces import Connection as BagConnection
from rosbags.interfaces import ConnectionExtRosbag1, ConnectionExtRosbag2, MessageDefinitionFormat, QosDurability
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag1 import ReaderError as ReaderError1
from rosbags.rosbag1.reader import decompressors
from rosbags.rosbag2 import ReaderError as ReaderError2
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

from roboyard.errors import RecordingError
from roboyard.record.mcap_format import MAX_CHUNK
from roboyard.record.message_decoder import make_decoder, normalize_type_name
from roboyard.record.recording import MessageDecoder, RawMessage, RecordedChannel, Recording, short_error_text

_DAMAGE = (
    ReaderError1,
    ReaderError2,
    apsw.Error,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    RuntimeError,
    ArithmeticError,
    MemoryError,
    struct.error,
)
"""Exceptions that rosbags raises on damaged files."""
_FORMATS = {MessageDefinitionFormat.MSG: "ros2msg", MessageDefinitionFormat.IDL: "ros2idl"}


class _BagRecording(Recording):
    """Common part of both versions: errors, and the conversion of rosbags' connections to channels."""

    def __init__(self, path: Path, bag: Any) -> None:
        super().__init__(path)
        self._bag = bag
        try:
            bag.open()
        except _DAMAGE as error:
            self._bag = None
            raise self._damage_error(error) from error
        try:
            found = self._find_channels()
        except _DAMAGE as error:
            self.close()
            raise self._damage_error(error) from error
        self._channel_by_id = {bag_connection.id: channel for bag_connection, channel in found}
        self._bag_connection_by_id = {id(channel): bag_connection for bag_connection, channel in found}
        self.channels = tuple(self._channel_by_id.values())

    @abstractmethod
    def _find_channels(self) -> list[tuple[BagConnection, RecordedChannel]]:
        """Return each connection of the bag with its channel."""

    def _damage_error(self, error: Exception) -> RecordingError:
        is_reader_error = isinstance(error, ReaderError1 | ReaderError2)
        problem = (
            short_error_text(error)
            if is_reader_error
            else f"is damaged ({type(error).__name__}: {short_error_text(error)})"
        )
        return RecordingError(problem, location=str(self.path), valid=f"a {self.format} recording")

    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        return make_decoder(channel, str(self.path), self.warnings)

    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        if self._bag is None:
            raise RecordingError("is closed", location=str(self.path))
        bag_connections = [self._bag_connection_by_id[id(channel)] for channel in channels]
        if not bag_connections:
            return
        try:
            for bag_connection, time_ns, data in self._bag.messages(bag_connections, start=start_ns, stop=end_ns + 1):
                yield time_ns, self._channel_by_id[bag_connection.id], bytes(data)
        except _DAMAGE as error:
            raise self._damage_error(error) from error

    def close(self) -> None:
        """Close the files; closing twice is allowed."""
        super().close()
        bag, self._bag = self._bag, None
        if bag is not None:
            bag.close()


class Rosbag1Recording(_BagRecording):
    """A rosbag1 file.

    Args:
        path: The ``.bag`` file.

    Raises:
        RecordingError: The file cannot be read, or was never indexed (its recorder was killed).
    """

    format = "rosbag1"

    def __init__(self, path: Path) -> None:
        super().__init__(path, Reader1(path))

    def _find_channels(self) -> list[tuple[BagConnection, RecordedChannel]]:
        bag = self._bag
        bag.chunks = {
            position: chunk._replace(decompressor=_limit_output(chunk.decompressor))
            for position, chunk in bag.chunks.items()
        }
        found = []
        for item in bag.connections:
            index = bag.indexes[item.id]
            extension = item.ext
            if not isinstance(extension, ConnectionExtRosbag1):
                raise TypeError("unsupported connection version")
            channel = RecordedChannel(
                topic=item.topic,
                type=normalize_type_name(item.msgtype),
                publisher=extension.callerid or "",
                definition=item.msgdef.data,
                definition_format="ros1msg",
                encoding="ros1",
                latched=bool(extension.latching),
                count=len(index),
                start_ns=index[0].time if index else 0,
                end_ns=index[-1].time if index else 0,
            )
            found.append((item, channel))
        return found


class Rosbag2Recording(_BagRecording):
    """A rosbag2 database; a folder of them is a `FolderRecording`.

    Args:
        path: The ``.db3`` file.

    Raises:
        RecordingError: The file cannot be read.
    """

    format = "rosbag2"

    def __init__(self, path: Path) -> None:
        # rosbags inserts the path into a URI without escaping it
        super().__init__(path, Sqlite3Reader(Path(quote(str(path.absolute())))))
        journal = path.with_name(f"{path.name}-wal")
        if journal.is_file() and journal.stat().st_size:
            self.is_complete = False
            self.warnings.append(f"{journal.name} next to it has messages that were not merged: `sqlite3 {path} .dump`")

    def _find_channels(self) -> list[tuple[BagConnection, RecordedChannel]]:
        statistics = _topic_statistics(self._bag.dbconn)
        found = []
        for item in self._bag.connections:
            extension = item.ext
            if not isinstance(extension, ConnectionExtRosbag2):
                raise TypeError("unsupported connection version")
            start, end, count = statistics.get(item.id, (0, 0, 0))
            channel = RecordedChannel(
                topic=item.topic,
                type=normalize_type_name(item.msgtype),
                definition=item.msgdef.data,
                definition_format=_FORMATS.get(item.msgdef.format, ""),
                encoding=extension.serialization_format,
                latched=any(
                    profile.durability == QosDurability.TRANSIENT_LOCAL for profile in extension.offered_qos_profiles
                ),
                count=count,
                start_ns=start,
                end_ns=end,
            )
            found.append((item, channel))
        return found


def _topic_statistics(database: Any) -> dict[int, tuple[int, int, int]]:
    """Return first time, last time and number of messages by topic id."""
    query = "SELECT topic_id, MIN(timestamp), MAX(timestamp), COUNT(*) FROM messages GROUP BY topic_id"
    return {topic: (int(first), int(last), count) for topic, first, last, count in database.execute(query)}


def _limit_output(decompress: Any) -> Any:
    """``decompress`` of a rosbag1 chunk that never yields more than the largest chunk we read."""

    def decompress_limited(data: bytes) -> bytes:
        if decompress is decompressors["bz2"]:
            result = bz2.BZ2Decompressor().decompress(data, MAX_CHUNK + 1)
        elif decompress is decompressors["lz4"]:
            result = bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=MAX_CHUNK + 1))
        else:
            result = data
        if len(result) > MAX_CHUNK:
            raise ValueError(f"a chunk holds more than {MAX_CHUNK} bytes")
        return result

    return decompress_limited
