"""A state's file: a line that says what it is, a checksum, and the state, compressed."""

from __future__ import annotations

import hashlib
import io
import struct
from pathlib import Path
from typing import Any

import zstandard

from roboyard.config import write_atomic
from roboyard.errors import InputError, RoboyardError, RunError
from roboyard.scenarios.run_folder import unwritable
from roboyard.scenarios.state.codec import decode, encode

_MAGIC = b"ROBOYARD STATE 1\n"
_CHECKSUM = 32
_MOST = 2 << 30
"""Largest state [bytes, uncompressed]; the recording so far is a part of it."""
_PIECE = 1 << 20
_LENGTH = struct.Struct("<Q")


def write_state(path: Path, data: Any) -> None:
    """Write a state whole or not at all.

    Raises:
        RunError: something in it is no plain data, or the file cannot be written.
    """
    text, block = encode(data)
    if len(text) + len(block) >= _MOST:
        raise RunError(
            f"the state is larger than {_MOST >> 30} GiB", location=str(path), valid="record less of the run"
        )
    packed = zstandard.ZstdCompressor(level=1).compress(_LENGTH.pack(len(text)) + text + block)
    try:
        write_atomic(path, _MAGIC + hashlib.sha256(packed).digest() + packed)
    except OSError as error:
        raise unwritable(path, error) from error


def read_state(path: Path) -> Any:
    """What `write_state` wrote.

    Raises:
        InputError: there is no such file, it is no state, or it is damaged; names the file.
    """
    try:
        raw = _bytes_of(path)
        if not raw.startswith(_MAGIC):
            raise InputError("is no saved state", valid="what `roboyard run --save-state` or `roboyard save` wrote")
        packed = raw[len(_MAGIC) + _CHECKSUM :]
        if hashlib.sha256(packed).digest() != raw[len(_MAGIC) : len(_MAGIC) + _CHECKSUM]:
            raise InputError("is damaged: its checksum does not fit", valid="the file as it was written")
        whole = _unpacked(packed)
        (length,) = _LENGTH.unpack_from(whole) if len(whole) >= _LENGTH.size else (len(whole),)
        if _LENGTH.size + length > len(whole):
            raise InputError("is damaged: it ends too early", valid="the file as it was written")
        return decode(whole[_LENGTH.size : _LENGTH.size + length], whole[_LENGTH.size + length :])
    except RoboyardError as error:
        raise InputError(error.message, location=str(path), valid=error.valid) from None


def _bytes_of(path: Path) -> bytes:
    if not path.is_file():
        raise InputError("is a folder" if path.is_dir() else "there is no such file", valid="the file of a saved state")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None


def _unpacked(packed: bytes) -> bytes:
    whole = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as reader:
            while piece := reader.read(_PIECE):
                whole += piece
                if len(whole) > _MOST:
                    raise InputError(f"is larger than {_MOST >> 30} GiB")
    except zstandard.ZstdError as error:
        raise InputError(f"is damaged: {error}", valid="the file as it was written") from None
    return bytes(whole)
