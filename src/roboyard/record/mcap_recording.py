"""Recordings in MCAP: opened by their index, or by walking through them when their writer was killed."""

from __future__ import annotations

import heapq
import os
from collections.abc import Collection, Iterator
from operator import itemgetter
from pathlib import Path

from roboyard.errors import RecordingError
from roboyard.record import mcap_format as mcap
from roboyard.record.decode import make_decoder, normalize_type_name
from roboyard.record.mcap_blocks import DataBlock, McapContents, decompress_chunk, iterate_messages, read_at
from roboyard.record.mcap_format import MalformedRecordError
from roboyard.record.mcap_index import read_index
from roboyard.record.mcap_scan import scan_contents
from roboyard.record.qos import is_latched
from roboyard.record.recording import MessageDecoder, RawMessage, RecordedChannel, Recording
from roboyard.record.writer import METADATA_NAME, PUBLISHER_KEY

_MAX_PENDING_BYTES = 1 << 30
_Item = tuple[int, int, int, RecordedChannel, bytes]


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
            raise RecordingError(f"cannot be opened: {error.strerror}", location=str(path)) from error
        try:
            self._contents = self._read()
        except BaseException:
            self.close()
            raise
        contents = self._contents
        self.is_complete = contents.is_complete
        self.warnings += contents.problems
        if contents.problems:
            self.warnings.append("`roboyard bag recover` makes a whole file of it for other tools")
        self._by_id = {number: _recorded_channel(contents, number) for number in sorted(contents.channels)}
        self.channels = tuple(self._by_id.values())
        run_metadata = [item for item in contents.metadata if item.name == METADATA_NAME] or [
            item for item in contents.metadata if item.name != "rosbag2"
        ]
        self.metadata = {key: value for item in run_metadata for key, value in item.values.items()}

    def _read(self) -> McapContents:
        size = os.fstat(self._fd).st_size
        if size == 0:
            raise RecordingError("is empty", location=str(self.path))
        try:
            contents = read_index(self._fd, size)
            if contents is not None:
                return contents
            contents = scan_contents(self._fd, size)
        except MalformedRecordError as error:
            raise RecordingError(str(error), location=str(self.path), valid="an MCAP recording") from error
        except OSError as error:
            raise RecordingError(f"cannot be read: {error.strerror}", location=str(self.path)) from error
        if not contents.is_complete:
            lost = size - contents.data_end
            torn = f"; {lost} torn bytes at the end are left out" if lost else ""
            contents.problems.insert(0, f"the end is missing, as after a kill{torn}")
        return contents

    @property
    def contents(self) -> McapContents:
        """What the file holds, block by block."""
        return self._contents

    def close(self) -> None:
        """Close the file; harmless when already closed."""
        super().close()
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)

    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        return make_decoder(channel, str(self.path), self.warnings)

    def block_data(self, block: DataBlock) -> tuple[bytes, bytes]:
        """A block's bytes as they are in the file, and the records in it.

        Raises:
            RecordingError: it is damaged, or the recording is closed.
        """
        try:
            raw = read_at(self._fd, block.offset, block.length)
            return raw, decompress_chunk(mcap.Chunk.decode(raw[9:])) if block.is_chunk else raw
        except MalformedRecordError as error:
            problem = f"the chunk at byte {block.offset} {error}"
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        raise RecordingError(problem, location=str(self.path), valid="`roboyard bag recover` keeps what is whole")

    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        by_id = {number: c for number, c in self._by_id.items() if any(c is item for item in channels)}
        blocks = [
            (block.start_ns, number, block)
            for number, block in enumerate(self._contents.blocks)
            if block.start_ns <= end_ns
            and block.end_ns >= start_ns
            and (block.channels is None or not block.channels.isdisjoint(by_id))
        ]
        blocks.sort(key=itemgetter(0, 1))
        pending: list[_Item] = []
        pending_bytes = 0
        for index, (first_ns, number, block) in enumerate(blocks):
            while pending and pending[0][0] < first_ns:
                time_ns, _, _, channel, data = heapq.heappop(pending)
                pending_bytes -= len(data)
                yield time_ns, channel, data
            items = self._block_messages(block, number, by_id, start_ns, end_ns)
            next_start_ns = blocks[index + 1][0] if index + 1 < len(blocks) else end_ns + 1
            if not pending and (not items or items[-1][0] < next_start_ns):  # the usual case: blocks do not overlap
                for item in items:
                    yield item[0], item[3], item[4]
                continue
            pending_bytes += sum(len(item[4]) for item in items)
            if pending_bytes > _MAX_PENDING_BYTES:
                raise RecordingError(
                    f"more than {_MAX_PENDING_BYTES} bytes of chunks overlap in time at {first_ns} ns",
                    location=str(self.path),
                )
            for item in items:
                heapq.heappush(pending, item)
        while pending:
            time_ns, _, _, channel, data = heapq.heappop(pending)
            yield time_ns, channel, data

    def _block_messages(
        self, block: DataBlock, number: int, by_id: dict[int, RecordedChannel], start_ns: int, end_ns: int
    ) -> list[_Item]:
        _, data = self.block_data(block)
        try:
            items = [
                (time_ns, number, start, by_id[channel_id], data[start:end])
                for channel_id, time_ns, start, end in iterate_messages(data)
                if channel_id in by_id and start_ns <= time_ns <= end_ns
            ]
        except MalformedRecordError as error:
            raise RecordingError(f"the chunk at byte {block.offset} {error}", location=str(self.path)) from error
        items.sort(key=itemgetter(0))
        return items


def _recorded_channel(contents: McapContents, channel_id: int) -> RecordedChannel:
    channel = contents.channels[channel_id]
    schema = contents.schemas.get(channel.schema_id)
    statistics = contents.channel_statistics.get(channel_id)
    return RecordedChannel(
        topic=channel.topic,
        type=normalize_type_name(schema.name) if schema else "",
        publisher=channel.metadata.get(PUBLISHER_KEY, ""),
        definition=schema.data.decode(errors="replace") if schema else "",
        definition_format=schema.encoding if schema else "",
        encoding=channel.encoding,
        latched=is_latched(channel.metadata.get("offered_qos_profiles", ""))
        or channel.metadata.get("latching", "") in ("1", "true"),
        count=statistics.count if statistics else 0,
        start_ns=statistics.start_ns if statistics else 0,
        end_ns=statistics.end_ns if statistics else 0,
    )
