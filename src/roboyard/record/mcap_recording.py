"""Recordings in MCAP: opened by their index, or by walking through them when their writer was killed."""

from __future__ import annotations

import heapq
import os
from collections.abc import Collection, Iterator
from operator import itemgetter
from pathlib import Path

from roboyard.errors import RecordingError
from roboyard.record import mcap_format as mcap
from roboyard.record.decode import decoder, normal_type
from roboyard.record.mcap_blocks import Block, Contents, messages, read_at, unpack_chunk
from roboyard.record.mcap_format import MalformedRecordError
from roboyard.record.mcap_index import read_index
from roboyard.record.mcap_scan import scan
from roboyard.record.qos import is_latched
from roboyard.record.recording import Connection, Decode, Raw, Recording
from roboyard.record.writer import METADATA_NAME, PUBLISHER_KEY

_MAX_WAITING = 1 << 30
_Item = tuple[int, int, int, Connection, bytes]


class McapRecording(Recording):
    """An MCAP file.

    Args:
        path: The file.

    Raises:
        RecordingError: it cannot be opened, is empty, or is no MCAP file.
    """

    format = "mcap"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RecordingError(f"cannot be opened: {error.strerror}", where=str(path)) from error
        try:
            self._contents = self._read()
        except BaseException:
            self.close()
            raise
        contents = self._contents
        self.complete = contents.complete
        self.warnings += contents.problems
        if contents.problems:
            self.warnings.append("`roboyard bag recover` makes a whole file of it for other tools")
        self._by_id = {number: _connection(contents, number) for number in sorted(contents.channels)}
        self.connections = tuple(self._by_id.values())
        about = [item for item in contents.metadata if item.name == METADATA_NAME] or [
            item for item in contents.metadata if item.name != "rosbag2"
        ]
        self.metadata = {key: value for item in about for key, value in item.values.items()}

    def _read(self) -> Contents:
        size = os.fstat(self._fd).st_size
        if size == 0:
            raise RecordingError("is empty", where=str(self.path))
        try:
            contents = read_index(self._fd, size)
            if contents is not None:
                return contents
            contents = scan(self._fd, size)
        except MalformedRecordError as error:
            raise RecordingError(str(error), where=str(self.path), valid="an MCAP recording") from error
        except OSError as error:
            raise RecordingError(f"cannot be read: {error.strerror}", where=str(self.path)) from error
        if not contents.complete:
            lost = size - contents.end
            torn = f"; {lost} torn bytes at the end are left out" if lost else ""
            contents.problems.insert(0, f"the end is missing, as after a kill{torn}")
        return contents

    @property
    def contents(self) -> Contents:
        """What the file holds, block by block."""
        return self._contents

    def close(self) -> None:
        """Close the file; harmless when already closed."""
        super().close()
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)

    def _decoder(self, connection: Connection) -> Decode:
        return decoder(connection, str(self.path), self.warnings)

    def block_data(self, block: Block) -> tuple[bytes, bytes]:
        """A block's bytes as they are in the file, and the records in it.

        Raises:
            RecordingError: it is damaged, or the recording is closed.
        """
        try:
            raw = read_at(self._fd, block.offset, block.length)
            return raw, unpack_chunk(mcap.Chunk.decode(raw[9:])) if block.is_chunk else raw
        except MalformedRecordError as error:
            what = f"the chunk at byte {block.offset} {error}"
        except OSError as error:
            what = f"cannot be read: {error.strerror}"
        raise RecordingError(what, where=str(self.path), valid="`roboyard bag recover` keeps what is whole")

    def _raw(self, wanted: Collection[Connection], start_ns: int, end_ns: int) -> Iterator[Raw]:
        by_id = {number: c for number, c in self._by_id.items() if any(c is item for item in wanted)}
        blocks = [
            (block.start_ns, number, block)
            for number, block in enumerate(self._contents.blocks)
            if block.start_ns <= end_ns
            and block.end_ns >= start_ns
            and (block.channels is None or not block.channels.isdisjoint(by_id))
        ]
        blocks.sort(key=itemgetter(0, 1))
        waiting: list[_Item] = []
        waiting_bytes = 0
        for place, (first_ns, number, block) in enumerate(blocks):
            while waiting and waiting[0][0] < first_ns:
                time_ns, _, _, connection, data = heapq.heappop(waiting)
                waiting_bytes -= len(data)
                yield time_ns, connection, data
            items = self._block_messages(block, number, by_id, start_ns, end_ns)
            following = blocks[place + 1][0] if place + 1 < len(blocks) else end_ns + 1
            if not waiting and (not items or items[-1][0] < following):  # the usual case: blocks do not overlap
                for item in items:
                    yield item[0], item[3], item[4]
                continue
            waiting_bytes += sum(len(item[4]) for item in items)
            if waiting_bytes > _MAX_WAITING:
                raise RecordingError(
                    f"more than {_MAX_WAITING} bytes of chunks overlap in time at {first_ns} ns", where=str(self.path)
                )
            for item in items:
                heapq.heappush(waiting, item)
        while waiting:
            time_ns, _, _, connection, data = heapq.heappop(waiting)
            yield time_ns, connection, data

    def _block_messages(
        self, block: Block, number: int, by_id: dict[int, Connection], start_ns: int, end_ns: int
    ) -> list[_Item]:
        _, data = self.block_data(block)
        try:
            items = [
                (time_ns, number, begin, by_id[channel], data[begin:end])
                for channel, time_ns, begin, end in messages(data)
                if channel in by_id and start_ns <= time_ns <= end_ns
            ]
        except MalformedRecordError as error:
            raise RecordingError(f"the chunk at byte {block.offset} {error}", where=str(self.path)) from error
        items.sort(key=itemgetter(0))
        return items


def _connection(contents: Contents, number: int) -> Connection:
    channel = contents.channels[number]
    schema = contents.schemas.get(channel.schema_id)
    span = contents.spans.get(number)
    return Connection(
        topic=channel.topic,
        type=normal_type(schema.name) if schema else "",
        publisher=channel.metadata.get(PUBLISHER_KEY, ""),
        definition=schema.data.decode(errors="replace") if schema else "",
        definition_format=schema.encoding if schema else "",
        encoding=channel.encoding,
        latched=is_latched(channel.metadata.get("offered_qos_profiles", ""))
        or channel.metadata.get("latching", "") in ("1", "true"),
        count=span.count if span else 0,
        start_ns=span.start_ns if span else 0,
        end_ns=span.end_ns if span else 0,
    )
