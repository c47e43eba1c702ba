"""Conversion of goal ids: 16 bytes inside, ``unique_identifier_msgs/UUID`` in messages."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from roboyard.messages.classes import message_class

UUID_BYTES = 16
_uuid_class: type[Any] | None = None


def uuid_of_text(text: str) -> bytes:
    """Return the id that a text determines: equal texts have equal ids, in every run and on every machine.

    With random ids, the recordings of a run and of its repetition would differ.

    Returns:
        The first 16 bytes of the text's SHA-256.
    """
    return hashlib.sha256(text.encode()).digest()[:UUID_BYTES]


def uuid_to_msg(uuid: bytes) -> Any:
    """Convert 16 bytes to ``unique_identifier_msgs/UUID``.

    Raises:
        MessageError: The number of bytes is wrong.
    """
    global _uuid_class
    if _uuid_class is None:
        _uuid_class = message_class("unique_identifier_msgs/msg/UUID")
    return _uuid_class(uuid=np.frombuffer(uuid, dtype=np.uint8))


def uuid_from_msg(message: Any) -> bytes:
    """Return the 16 bytes of a ``unique_identifier_msgs/UUID``."""
    return bytes(message.uuid)
