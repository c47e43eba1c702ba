"""Plain data, arrays and Roboyard's own frozen records as bytes, and back; nothing in the bytes can run code.

JSON with marks for what it does not know (`{"$tuple": [...]}`), followed by one block of raw bytes that arrays and byte
strings point into.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from roboyard.errors import InputError, MessageError, RunError
from roboyard.geometry import SE2, SE3
from roboyard.messages import deserialize, serialize, type_name

_OWN = "roboyard."
_KINDS = "bifu"
"""Kinds of arrays that are numbers."""


def encode(data: Any) -> tuple[bytes, bytes]:
    """JSON, and the block of bytes it points into.

    Raises:
        RunError: something in it is no plain data.
    """
    block = bytearray()
    plain = _plain(data, block, "state")
    return json.dumps(plain, separators=(",", ":")).encode(), bytes(block)


def decode(text: bytes, block: bytes) -> Any:
    """Counterpart of `encode`.

    Raises:
        InputError: the bytes say what `encode` does not write.
    """
    try:
        return _made(json.loads(text), memoryview(block))
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


def _plain(value: Any, block: bytearray, where: str) -> Any:
    if isinstance(value, Enum):
        return {"$enum": [_name_of(value, where), _plain(value.value, block, where)]}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, list):
        return [_plain(item, block, f"{where}[{k}]") for k, item in enumerate(value)]
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _plain(item, block, f"{where}.{key}") for key, item in value.items()}
        pairs = [[_plain(k, block, where), _plain(item, block, f"{where}.{k}")] for k, item in value.items()]
        return {"$dict": pairs}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": _put(bytes(value), block)}
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        return {"$array": [value.dtype.str, list(value.shape), *_put(value.tobytes(), block)]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"$named": [_name_of(value, where), [_plain(item, block, where) for item in value]]}
    if isinstance(value, tuple | deque | set | frozenset):
        return _several(value, block, where)
    if isinstance(value, SE3):
        return {"$SE3": [*map(float, value.rotation), *map(float, value.translation)]}
    if isinstance(value, SE2):
        return {"$SE2": [value.x, value.y, value.theta]}
    if isinstance(value, PurePath):
        return {"$path": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        with suppress(MessageError):
            return {"$message": [type_name(type(value)), *_put(serialize(value), block)]}
        fields = {f.name: _plain(getattr(value, f.name), block, f"{where}.{f.name}") for f in dataclasses.fields(value)}
        return {"$record": [_name_of(value, where), fields]}
    raise _refusal(value, where)


def _refusal(value: Any, where: str) -> RunError:
    return RunError(
        f"cannot be saved: {where} is a {type(value).__name__}",
        valid="numbers, texts, arrays, messages, and lists of them",
    )


def _name_of(value: Any, where: str) -> str:
    """Where a class of Roboyard's is found again."""
    kind = type(value)
    if not kind.__module__.startswith(_OWN) or not kind.__qualname__.isidentifier():
        raise _refusal(value, where)
    return f"{kind.__module__}:{kind.__qualname__}"


def _several(value: Any, block: bytearray, where: str) -> dict[str, Any]:
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value  # whose order changes with hashes
    made = [_plain(item, block, where) for item in items]
    if isinstance(value, deque):
        return {"$deque": [value.maxlen, made]}
    kind = "tuple" if isinstance(value, tuple) else "frozenset" if isinstance(value, frozenset) else "set"
    return {f"${kind}": made}


def _put(data: bytes, block: bytearray) -> list[int]:
    block += data
    return [len(block) - len(data), len(data)]


def _get(block: memoryview, start: int, length: int) -> bytes:
    if not 0 <= start <= start + length <= len(block):
        raise ValueError("a piece lies outside the file")
    return bytes(block[start : start + length])


def _made(plain: Any, block: memoryview) -> Any:
    if isinstance(plain, list):
        return [_made(item, block) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) != 1 or not next(iter(plain)).startswith("$"):
        return {key: _made(item, block) for key, item in plain.items()}
    ((mark, value),) = plain.items()
    match mark:
        case "$tuple":
            return tuple(_made(item, block) for item in value)
        case "$set":
            return {_made(item, block) for item in value}
        case "$frozenset":
            return frozenset(_made(item, block) for item in value)
        case "$deque":
            return deque((_made(item, block) for item in value[1]), value[0])
        case "$dict":
            return {_made(key, block): _made(item, block) for key, item in value}
        case "$bytes":
            return _get(block, *value)
        case "$array":
            return _array(block, *value)
        case "$SE3":
            return SE3(value[:4], value[4:])
        case "$SE2":
            return SE2(*value)
        case "$path":
            return Path(value)
        case "$message":
            return deserialize(_get(block, *value[1:]), value[0])
        case "$enum":
            return _found(value[0], "enumeration")(_made(value[1], block))
        case "$named":
            return _found(value[0], "named tuple")(*(_made(item, block) for item in value[1]))
        case "$record":
            return _found(value[0], "frozen record")(**{key: _made(item, block) for key, item in value[1].items()})
    raise ValueError(f"mark {mark!r} is not known")


def _array(block: memoryview, kind: str, shape: list[int], start: int, length: int) -> Any:
    dtype = np.dtype(kind)
    if dtype.kind not in _KINDS or any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != length:
        raise ValueError(f"an array of {kind} with shape {shape} in {length} bytes")
    array = np.frombuffer(_get(block, start, length), dtype).reshape(shape).copy()
    array.flags.writeable = False
    return array


def _found(name: str, wanted: str) -> type[Any]:
    """A class of Roboyard's that holds data and nothing else."""
    module, _, qualname = name.partition(":")
    if not module.startswith(_OWN) or not qualname.isidentifier():
        raise ValueError(f"{wanted} {name!r}")
    found = getattr(importlib.import_module(module), qualname)
    if not isinstance(found, type) or found.__module__ != module or not _KIND[wanted](found):
        raise ValueError(f"{name} is no {wanted}")
    return found


_KIND: dict[str, Callable[[Any], bool]] = {
    "enumeration": lambda found: issubclass(found, Enum),
    "named tuple": lambda found: issubclass(found, tuple) and hasattr(found, "_fields"),
    "frozen record": lambda found: getattr(getattr(found, "__dataclass_params__", None), "frozen", False),
}
