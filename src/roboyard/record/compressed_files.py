"""Decompresses recordings that are compressed as whole files, into a temporary folder and within a size limit."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, cast

import zstandard

from roboyard.errors import RecordingError

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
SUFFIXES: Final = (".zstd", ".zst", ".gz")
_DAMAGE = (zstandard.ZstdError, zlib.error, OSError)
_PIECE = 1 << 20
_MAX_RATIO = 200
_ALWAYS_ALLOWED_SIZE = 1 << 30
"""A file may unpack to this much whatever its size [bytes]; ten minutes of a resting robot compress very well."""
_MIN_FREE_DISK = 256 << 20
"""What must stay free on the disk [bytes]."""


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of what is in the file; fewer if it is damaged."""
    try:
        with ExitStack() as stack:
            return _reader(path, stack).read(size)
    except (*_DAMAGE, EOFError):
        return b""


def decompress_to_folder(path: Path, folder: Path) -> tuple[Path, bool]:
    """Unpack a file compressed by zstd or gzip into a folder; gives its place, and whether it was whole.

    Raises:
        RecordingError: it is damaged from the start, unpacks to much more than recordings do, or finds no room.
    """
    name = path.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    target = folder / name
    max_size = max(_ALWAYS_ALLOWED_SIZE, _MAX_RATIO * path.stat().st_size)
    free_space = shutil.disk_usage(folder).free - _MIN_FREE_DISK
    written = 0
    is_complete = True
    with target.open("wb") as out:
        pieces = _pieces(path)
        while True:
            try:
                piece = next(pieces, b"")
            except (*_DAMAGE, EOFError) as error:
                if not written:
                    raise RecordingError(f"does not decompress: {error}", location=str(path)) from error
                is_complete = False
                break
            if not piece:
                break
            written += len(piece)
            if written > max_size:
                raise RecordingError(
                    f"unpacks to more than {max_size} bytes", location=str(path), valid="a real recording"
                )
            if written > free_space:
                raise RecordingError(
                    f"finds no room to be unpacked in {folder}", location=str(path), valid="set TMPDIR"
                )
            out.write(piece)
    return target, is_complete


def _pieces(path: Path) -> Iterator[bytes]:
    with ExitStack() as stack:
        reader = _reader(path, stack)
        while piece := reader.read(_PIECE):
            yield piece


def _reader(path: Path, stack: ExitStack) -> IO[bytes]:
    file = stack.enter_context(path.open("rb"))
    if file.peek(2)[:2] == GZIP:
        return cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=file)))
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    reader: IO[bytes] = stack.enter_context(decompressor.stream_reader(file, read_across_frames=True))
    return reader
