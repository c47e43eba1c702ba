"""The snapshot file: plain data, arrays, messages and frozen records of Roboyard as JSON and one block of bytes,
compressed, with a checksum; loading it executes no code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import io
import json
import math
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import zstandard

from roboyard.config import write_atomic
from roboyard.errors import InputError, MessageError, RoboyardError, RunError
from roboyard.geometry import SE2, SE3
from roboyard.messages import deserialize, serialize, type_name
from roboyard.scenarios.run_folder import make_write_error

_PACKAGE_PREFIX = "roboyard."
_NUMBER_KINDS = "bifu"
"""Kinds of arrays that are numbers."""


def encode_snapshot(data: Any) -> tuple[bytes, bytes]:
    """JSON, and the block of bytes it points into.

    Raises:
        RunError: something in it is no plain data.
    """
    block = bytearray()
    plain = _encode_value(data, block, "state")
    return json.dumps(plain, separators=(",", ":")).encode(), bytes(block)


def decode_snapshot(text: bytes, block: bytes) -> Any:
    """Counterpart of `encode_snapshot`.

    Raises:
        InputError: the bytes say what `encode_snapshot` does not write.
    """
    try:
        return _decode_value(json.loads(text), memoryview(block))
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        ImportError,
        RecursionError,
        MessageError,
    ) as error:
        raise InputError(f"is damaged: {type(error).__name__}: {error}", valid="what a run saved") from None


def _encode_value(value: Any, block: bytearray, location: str) -> Any:
    if isinstance(value, Enum):
        return {"$enum": [_class_reference(value, location), _encode_value(value.value, block, location)]}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, list):
        return [_encode_value(item, block, f"{location}[{k}]") for k, item in enumerate(value)]
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _encode_value(item, block, f"{location}.{key}") for key, item in value.items()}
        pairs = [
            [_encode_value(k, block, location), _encode_value(item, block, f"{location}.{k}")]
            for k, item in value.items()
        ]
        return {"$dict": pairs}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": _append_bytes(bytes(value), block)}
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBER_KINDS:
        return {"$array": [value.dtype.str, list(value.shape), *_append_bytes(value.tobytes(), block)]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"$named": [_class_reference(value, location), [_encode_value(item, block, location) for item in value]]}
    if isinstance(value, tuple | deque | set | frozenset):
        return _encode_collection(value, block, location)
    if isinstance(value, SE3):
        return {"$SE3": [*map(float, value.rotation), *map(float, value.translation)]}
    if isinstance(value, SE2):
        return {"$SE2": [value.x, value.y, value.theta]}
    if isinstance(value, PurePath):
        return {"$path": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        with suppress(MessageError):
            return {"$message": [type_name(type(value)), *_append_bytes(serialize(value), block)]}
        fields = {
            f.name: _encode_value(getattr(value, f.name), block, f"{location}.{f.name}")
            for f in dataclasses.fields(value)
        }
        return {"$record": [_class_reference(value, location), fields]}
    raise _not_plain_error(value, location)


def _not_plain_error(value: Any, location: str) -> RunError:
    return RunError(
        f"cannot be saved: {location} is a {type(value).__name__}",
        valid="numbers, texts, arrays, messages, and lists of them",
    )


def _class_reference(value: Any, location: str) -> str:
    """Where a class of Roboyard's is found again."""
    value_type = type(value)
    if not value_type.__module__.startswith(_PACKAGE_PREFIX) or not value_type.__qualname__.isidentifier():
        raise _not_plain_error(value, location)
    return f"{value_type.__module__}:{value_type.__qualname__}"


def _encode_collection(value: Any, block: bytearray, location: str) -> dict[str, Any]:
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value  # whose order changes with hashes
    encoded = [_encode_value(item, block, location) for item in items]
    if isinstance(value, deque):
        return {"$deque": [value.maxlen, encoded]}
    mark = "tuple" if isinstance(value, tuple) else "frozenset" if isinstance(value, frozenset) else "set"
    return {f"${mark}": encoded}


def _append_bytes(data: bytes, block: bytearray) -> list[int]:
    block += data
    return [len(block) - len(data), len(data)]


def _read_bytes(block: memoryview, start: int, length: int) -> bytes:
    if not 0 <= start <= start + length <= len(block):
        raise ValueError("a piece lies outside the file")
    return bytes(block[start : start + length])


def _decode_value(plain: Any, block: memoryview) -> Any:
    if isinstance(plain, list):
        return [_decode_value(item, block) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) != 1 or not next(iter(plain)).startswith("$"):
        return {key: _decode_value(item, block) for key, item in plain.items()}
    ((mark, value),) = plain.items()
    match mark:
        case "$tuple":
            return tuple(_decode_value(item, block) for item in value)
        case "$set":
            return {_decode_value(item, block) for item in value}
        case "$frozenset":
            return frozenset(_decode_value(item, block) for item in value)
        case "$deque":
            return deque((_decode_value(item, block) for item in value[1]), value[0])
        case "$dict":
            return {_decode_value(key, block): _decode_value(item, block) for key, item in value}
        case "$bytes":
            return _read_bytes(block, *value)
        case "$array":
            return _decode_array(block, *value)
        case "$SE3":
            return SE3(value[:4], value[4:])
        case "$SE2":
            return SE2(*value)
        case "$path":
            return Path(value)
        case "$message":
            return deserialize(_read_bytes(block, *value[1:]), value[0])
        case "$enum":
            return _load_class(value[0], "enumeration")(_decode_value(value[1], block))
        case "$named":
            return _load_class(value[0], "named tuple")(*(_decode_value(item, block) for item in value[1]))
        case "$record":
            return _load_class(value[0], "frozen record")(
                **{key: _decode_value(item, block) for key, item in value[1].items()}
            )
    raise ValueError(f"mark {mark!r} is not known")


def _decode_array(block: memoryview, kind: str, shape: list[int], start: int, length: int) -> Any:
    dtype = np.dtype(kind)
    if dtype.kind not in _NUMBER_KINDS or any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != length:
        raise ValueError(f"an array of {kind} with shape {shape} in {length} bytes")
    array = np.frombuffer(_read_bytes(block, start, length), dtype).reshape(shape).copy()
    array.flags.writeable = False
    return array


def _load_class(name: str, kind: str) -> type[Any]:
    """A class of Roboyard's that holds data and nothing else."""
    module, _, qualname = name.partition(":")
    if not module.startswith(_PACKAGE_PREFIX) or not qualname.isidentifier():
        raise ValueError(f"{kind} {name!r}")
    loaded_class = getattr(importlib.import_module(module), qualname)
    if not isinstance(loaded_class, type) or loaded_class.__module__ != module or not _TYPE_CHECKS[kind](loaded_class):
        raise ValueError(f"{name} is no {kind}")
    return loaded_class


_TYPE_CHECKS: dict[str, Callable[[Any], bool]] = {
    "enumeration": lambda found: issubclass(found, Enum),
    "named tuple": lambda found: issubclass(found, tuple) and hasattr(found, "_fields"),
    "frozen record": lambda found: getattr(getattr(found, "__dataclass_params__", None), "frozen", False),
}

_MAGIC = b"ROBOYARD STATE 1\n"
_CHECKSUM_LENGTH = 32
_MAX_SIZE = 2 << 30
"""Largest state [bytes, uncompressed]; the recording so far is a part of it."""
_CHUNK_SIZE = 1 << 20
_TEXT_LENGTH = struct.Struct("<Q")


def write_snapshot_file(path: Path, data: Any) -> None:
    """Write a state whole or not at all.

    Raises:
        RunError: something in it is no plain data, or the file cannot be written.
    """
    text, block = encode_snapshot(data)
    if len(text) + len(block) >= _MAX_SIZE:
        raise RunError(
            f"the state is larger than {_MAX_SIZE >> 30} GiB", location=str(path), valid="record less of the run"
        )
    packed = zstandard.ZstdCompressor(level=1).compress(_TEXT_LENGTH.pack(len(text)) + text + block)
    try:
        write_atomic(path, _MAGIC + hashlib.sha256(packed).digest() + packed)
    except OSError as error:
        raise make_write_error(path, error) from error


def read_snapshot_file(path: Path) -> Any:
    """What `write_snapshot_file` wrote.

    Raises:
        InputError: there is no such file, it is no state, or it is damaged; names the file.
    """
    try:
        raw = _read_file(path)
        if not raw.startswith(_MAGIC):
            raise InputError(
                "is no saved state", valid="what `roboyard run --save-snapshot` or `roboyard snapshot` wrote"
            )
        packed = raw[len(_MAGIC) + _CHECKSUM_LENGTH :]
        if hashlib.sha256(packed).digest() != raw[len(_MAGIC) : len(_MAGIC) + _CHECKSUM_LENGTH]:
            raise InputError("is damaged: its checksum does not fit", valid="the file as it was written")
        data = _decompress(packed)
        (length,) = _TEXT_LENGTH.unpack_from(data) if len(data) >= _TEXT_LENGTH.size else (len(data),)
        if _TEXT_LENGTH.size + length > len(data):
            raise InputError("is damaged: it ends too early", valid="the file as it was written")
        return decode_snapshot(data[_TEXT_LENGTH.size : _TEXT_LENGTH.size + length], data[_TEXT_LENGTH.size + length :])
    except RoboyardError as error:
        raise InputError(error.message, location=str(path), valid=error.valid) from None


def _read_file(path: Path) -> bytes:
    if not path.is_file():
        raise InputError("is a folder" if path.is_dir() else "there is no such file", valid="the file of a saved state")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None


def _decompress(packed: bytes) -> bytes:
    data = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as reader:
            while chunk := reader.read(_CHUNK_SIZE):
                data += chunk
                if len(data) > _MAX_SIZE:
                    raise InputError(f"is larger than {_MAX_SIZE >> 30} GiB")
    except zstandard.ZstdError as error:
        raise InputError(f"is damaged: {error}", valid="the file as it was written") from None
    return bytes(data)
