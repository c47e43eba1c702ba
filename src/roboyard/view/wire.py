"""What travels between page and server: text is JSON; bytes are a JSON head with arrays behind it.

A frame of bytes is the head's length (4 bytes, little endian), the head, padded with spaces so that what follows begins
at a multiple of four, and the arrays one behind the other.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError

LARGEST_MESSAGE = 65_536
"""What a page may say at once [bytes]."""


class ViewMessage(NamedTuple):
    """One thing to be sent.

    Attributes:
        data: Text or bytes.
        key: A frame that waits is replaced by a newer one of the same key; "": each is sent, in order.
        topic: Viewers that do not want the topic do not get it; "": everybody does.
    """

    data: str | bytes
    key: str = ""
    topic: str = ""


def text(op: str, **values: Any) -> str:
    """A message as text; numbers that JSON does not know become null."""
    return json.dumps(finite({"op": op, **values}), separators=(",", ":"), allow_nan=False)


def packed(head: Mapping[str, Any], arrays: Sequence[NDArray[Any] | bytes] = ()) -> bytes:
    """A message as bytes; the head tells by ``sizes`` how many each array has."""
    parts = [part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes() for part in arrays]
    told = finite({**head, "sizes": [len(part) for part in parts]})
    encoded = json.dumps(told, separators=(",", ":"), allow_nan=False).encode()
    encoded += b" " * (-len(encoded) % 4)
    padded = [part + b"\0" * (-len(part) % 4) for part in parts]
    return b"".join([struct.pack("<I", len(encoded)), encoded, *padded])


def unpacked(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Head and arrays of what `packed` made."""
    (length,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + length])
    parts, at = [], 4 + length
    for size in head["sizes"]:
        parts.append(data[at : at + size])
        at += size + (-size % 4)
    return head, parts


def finite(value: Any) -> Any:
    """The same with null for numbers that JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def read(message: str | bytes) -> dict[str, Any]:
    """What a page says.

    Raises:
        InputError: it is no JSON object with an ``op``, or has numbers that are none.
    """
    if isinstance(message, bytes):
        raise InputError("bytes", valid="text")
    try:
        said = json.loads(message, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"no JSON: {str(error)[:80]}", valid="a JSON object") from None
    if not isinstance(said, dict) or not isinstance(said.get("op"), str):
        raise InputError("no JSON object with an 'op'", valid='{"op": "…", …}')
    return said


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def number(said: Mapping[str, Any], key: str, low: float, high: float, default: float | None = None) -> float:
    """A number that a page states, within its bounds.

    Raises:
        InputError: it is missing, none, or out of bounds.
    """
    value = said.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InputError(
            f"'{key}' of {said.get('op')!r:.40} is {value!r:.40}", valid=f"a number from {low:g} to {high:g}"
        )
    return float(value)


def numbers(said: Mapping[str, Any], key: str, count: int, limit: float = 1e6) -> list[float]:
    """Some numbers that a page states.

    Raises:
        InputError: they are missing, not so many, or too large.
    """
    values = said.get(key)
    if not isinstance(values, list) or len(values) != count:
        raise InputError(f"'{key}' of {said.get('op')!r:.40} is {values!r:.40}", valid=f"{count} numbers")
    return [number({"op": said.get("op"), key: value}, key, -limit, limit) for value in values]


def word(said: Mapping[str, Any], key: str, longest: int = 256) -> str:
    """A text that a page states.

    Raises:
        InputError: it is missing, too long, or has characters that cannot be printed.
    """
    value = said.get(key)
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise InputError(f"'{key}' of {said.get('op')!r:.40}", valid=f"at most {longest} printable characters")
    return value
