"""Decompresses recordings that are compressed as complete files, into a temporary folder and within a size limit."""

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
"""Decompressed size that is always allowed [bytes]; ten minutes of a stationary robot compress very well."""
_MIN_FREE_DISK = 256 << 20
"""Minimum free disk space after decompression [bytes]."""


def read_head(path: Path, size: int) -> bytes:
    """Return the first bytes of the decompressed content; fewer if the file is damaged."""
    try:
        with ExitStack() as stack:
            return _reader(path, stack).read(size)
    except (*_DAMAGE, EOFError):
        return b""


def decompress_to_folder(path: Path, folder: Path) -> tuple[Path, bool]:
    """Decompress a zstd or gzip file into a folder.

    Returns:
        Path of the decompressed file, and whether it is complete.

    Raises:
        RecordingError: The file is damaged from the start, its content exceeds the size limit, or the disk is full.
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
                    raise RecordingError(f"cannot be decompressed: {error}", location=str(path)) from error
                is_complete = False
                break
            if not piece:
                break
            written += len(piece)
            if written > max_size:
                raise RecordingError(
                    f"the decompressed size exceeds {max_size} bytes", location=str(path), valid="a real recording"
                )
            if written > free_space:
                raise RecordingError(
                    f"cannot be decompressed: not enough free disk space in {folder}",
                    location=str(path),
                    valid="free disk space, or another folder in TMPDIR",
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
