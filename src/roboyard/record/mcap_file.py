"""An MCAP file being written: whole chunks go in, the index comes out at the end; a full disk ends it in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from roboyard.config import FileReplacement
from roboyard.errors import RecordingError
from roboyard.record import mcap_format as mcap


class BinaryOutput(Protocol):
    """What is needed of a file: a raw one, without a buffer of its own."""

    def write(self, data: bytes | memoryview, /) -> int | None:
        """Write some of ``data`` and say how many bytes."""

    def seek(self, offset: int, /) -> int:
        """Go to ``offset`` from the start."""

    def truncate(self) -> int:
        """Cut the file off at the present position."""

    def close(self) -> None:
        """Close it."""


class McapFile:
    """Appends chunks to a new MCAP file.

    Args:
        output: Path of a file that does not exist yet, or an open raw binary file at its start.
        metadata: Records to put at the start.
        profile: Says which conventions the channels follow.
        overwrite: Replace an existing file, which stays until the first chunk of this one is written.

    Attributes:
        name: The path, for messages.
        size: Bytes written so far; always a record's end.
        is_open: False once closed or failed.

    Raises:
        RecordingError: the file exists or cannot be created or written.
    """

    def __init__(
        self,
        output: Path | str | BinaryOutput,
        metadata: Iterable[mcap.Metadata] = (),
        *,
        profile: str = "ros2",
        overwrite: bool = False,
    ) -> None:
        self.name = str(output) if isinstance(output, str | Path) else str(getattr(output, "name", "recording"))
        self.size = 0
        self.is_open = True
        self._schemas: dict[int, bytes] = {}
        self._channels: dict[int, bytes] = {}
        self._counts: dict[int, int] = {}
        self._chunks: list[mcap.ChunkIndex] = []
        self._metadata: list[bytes] = []
        self._path: Path | None = None
        self._replacement: FileReplacement | None = None
        if isinstance(output, str | Path):
            self._path, self._replacement, self._output = _create(Path(output), overwrite)
        else:
            self._output = output
        header = mcap.MAGIC + mcap.encode_record(mcap.HEADER, mcap.encode_text(profile), mcap.encode_text("roboyard"))
        for item in metadata:
            encoded = item.encode()
            self._metadata.append(mcap.encode_metadata_index(len(header), len(encoded), item.name))
            header += encoded
        self._append(header)

    @property
    def replaces(self) -> bool:
        """Whether an older file is still there, which this one replaces with its first chunk or when it is closed."""
        return self._replacement is not None and self._replacement.is_pending

    @property
    def message_count(self) -> int:
        """Messages written so far."""
        return sum(self._counts.values())

    @property
    def time_range(self) -> tuple[int, int]:
        """Times of the earliest and latest message written so far [ns]; (0, 0) before the first."""
        start = min((chunk.start_ns for chunk in self._chunks), default=0)
        return start, max((chunk.end_ns for chunk in self._chunks), default=0)

    def add_schema(self, schema: mcap.Schema) -> bytes:
        """Note a schema for the index; the returned record must be in a chunk before its first use."""
        encoded = self._schemas[schema.id] = schema.encode()
        return encoded

    def add_channel(self, channel: mcap.Channel) -> bytes:
        """Note a channel for the index; the returned record must be in a chunk before its first use."""
        encoded = self._channels[channel.id] = channel.encode()
        self._counts.setdefault(channel.id, 0)
        return encoded

    def append_metadata(self, item: mcap.Metadata) -> None:
        """Write a metadata record between chunks.

        Raises:
            RecordingError: the file cannot be written.
        """
        encoded = item.encode()
        index = mcap.encode_metadata_index(self.size, len(encoded), item.name)
        self._append(encoded)
        self._metadata.append(index)

    def append_chunk(self, chunk: mcap.Chunk, messages: Mapping[int, list[int]]) -> None:
        """Write a chunk and its message indexes in one go.

        Args:
            chunk: The chunk.
            messages: By channel id: time, offset in the uncompressed chunk, time, offset, …

        Raises:
            RecordingError: the file cannot be written.  It is then closed, and readable up to the chunk before.
        """
        encoded = chunk.encode()
        offsets: dict[int, int] = {}
        block, position = [encoded], self.size + len(encoded)
        for channel_id, index in messages.items():
            offsets[channel_id] = position
            block.append(mcap.encode_message_index(channel_id, index))
            position += len(block[-1])
        index_length = position - self.size - len(encoded)
        entry = mcap.ChunkIndex(
            start_ns=chunk.start_ns,
            end_ns=chunk.end_ns,
            offset=self.size,
            length=len(encoded),
            index_offsets=offsets,
            index_length=index_length,
            compression=chunk.compression,
            compressed_size=len(chunk.data),
            uncompressed_size=chunk.uncompressed_size,
        )
        self._append(b"".join(block))
        self._chunks.append(entry)
        for channel_id, index in messages.items():
            self._counts[channel_id] += len(index) // 2
        self._replace()

    def save_state(self) -> dict[str, Any]:
        """All that was written so far and what the index needs, as plain data.

        Raises:
            RecordingError: it is no file of a folder, or cannot be read.
        """
        if self._path is None:
            raise RecordingError("cannot be part of a saved state", location=self.name, valid="a recording in a folder")
        try:
            with self._path.open("rb") as file:
                written = file.read(self.size)
        except OSError as error:
            raise RecordingError(f"cannot be read: {error.strerror or error}", location=self.name) from error
        return {
            "written": written,
            "schemas": dict(self._schemas),
            "channels": dict(self._channels),
            "counts": dict(self._counts),
            "chunks": [{**asdict(chunk), "index_offsets": dict(chunk.index_offsets)} for chunk in self._chunks],
            "metadata": list(self._metadata),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Go on from `save` in place of what was written here so far.

        Raises:
            RecordingError: the file cannot be written.
        """
        self._output.seek(0)
        self._output.truncate()
        self.size = 0
        self._schemas, self._channels = dict(saved["schemas"]), dict(saved["channels"])
        self._counts, self._metadata = dict(saved["counts"]), list(saved["metadata"])
        self._chunks = []  # until it is written: a full disk must not leave an index of what is not there
        self._append(saved["written"])
        self._chunks = [mcap.ChunkIndex(**chunk) for chunk in saved["chunks"]]
        if self._chunks:
            self._replace()

    def close(self) -> None:
        """Write the index and close the file; harmless when already closed.

        Raises:
            RecordingError: as ``append_chunk``.
        """
        if self.is_open:
            self._append(self._summary())
            self._replace()
            self.is_open = False
            self._output.close()

    def _replace(self) -> None:
        """Take the place of the older file, if there is one; raises RecordingError, and that file is as it was."""
        if self._replacement is None or not self._replacement.is_pending:
            return
        try:
            self._replacement.commit()
        except OSError as error:
            self.remove()
            raise RecordingError(
                f"cannot be replaced: {error.strerror or error}", location=self.name, valid="it is unchanged"
            ) from error
        self._path = self._replacement.path

    def _append(self, data: bytes) -> None:
        try:
            _write_all(self._output, data)
        except OSError as error:
            replaces = self.replaces
            self._truncate_and_close()
            readable_part = (
                f"what was recorded until {self._chunks[-1].end_ns / 1e9:.3f} s" if self._chunks else "nothing"
            )
            raise RecordingError(
                f"cannot be written: {error.strerror or error}",
                location=self.name,
                valid="the old file is unchanged" if replaces else f"{readable_part} is kept",
            ) from error
        self.size += len(data)

    def _truncate_and_close(self) -> None:
        """Cut the torn end off; the index, being smaller than a chunk, may still find room."""
        self.is_open = False
        with suppress(OSError):
            self._output.seek(self.size)
            self._output.truncate()
            if self._chunks:
                try:
                    _write_all(self._output, self._summary())
                except OSError:
                    self._output.seek(self.size)
                    self._output.truncate()
        with suppress(OSError):
            self._output.close()
        if not self._chunks:
            self.remove()

    def remove(self) -> None:
        """Close and remove the file, in which nothing is; harmless where it is no file of a folder.

        An older file that it would have replaced stays.
        """
        self.is_open = False
        with suppress(OSError):
            self._output.close()
            if self.replaces and self._replacement is not None:
                self._replacement.discard()
            elif self._path is not None:
                self._path.unlink()

    def _summary(self) -> bytes:
        end = mcap.encode_record(mcap.DATA_END, bytes(4))
        statistics = mcap.Statistics(
            messages=self.message_count,
            schemas=len(self._schemas),
            channels=len(self._channels),
            attachments=0,
            metadata=len(self._metadata),
            chunks=len(self._chunks),
            start_ns=self.time_range[0],
            end_ns=self.time_range[1],
            counts=self._counts,
        )
        groups = {
            mcap.SCHEMA: list(self._schemas.values()),
            mcap.CHANNEL: list(self._channels.values()),
            mcap.STATISTICS: [statistics.encode()],
            mcap.CHUNK_INDEX: [chunk.encode() for chunk in self._chunks],
            mcap.METADATA_INDEX: self._metadata,
        }
        return end + mcap.encode_summary(self.size + len(end), groups)


def _create(path: Path, overwrite: bool) -> tuple[Path, FileReplacement | None, BinaryOutput]:
    """Open a new file: its path, and what replaces an older file that holds something."""
    try:
        if not (overwrite and path.is_file() and path.stat().st_size):
            return path, None, path.open("wb" if overwrite else "xb", buffering=0)
        replacement = FileReplacement(path, has_target_suffix=True)
        try:
            return replacement.path, replacement, replacement.path.open("wb", buffering=0)
        except OSError:
            replacement.discard()
            raise
    except FileExistsError as error:
        raise RecordingError("exists already", location=str(path), valid="choose a new name or remove it") from error
    except OSError as error:
        raise RecordingError(f"cannot be created: {error.strerror}", location=str(path)) from error


def _write_all(output: BinaryOutput, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        written = output.write(remaining)
        remaining = remaining[len(remaining) if written is None else written :]
