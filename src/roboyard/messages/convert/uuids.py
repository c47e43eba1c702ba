"""Identifiers of goals: 16 bytes inside, ``unique_identifier_msgs/UUID`` in messages."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from roboyard.messages.classes import message_class

UUID_BYTES = 16
_uuid_class: type[Any] | None = None


def uuid_of_text(text: str) -> bytes:
    """The identifier that a text determines: equal texts have equal identifiers, in every run and on every machine.

    Random identifiers would make a run's recording differ from that of its repetition.

    Returns:
        The first 16 bytes of the text's SHA-256.
    """
    return hashlib.sha256(text.encode()).digest()[:UUID_BYTES]


def uuid_to_msg(uuid: bytes) -> Any:
    """A ``unique_identifier_msgs/UUID`` of an identifier's 16 bytes.

    Raises:
        MessageError: another number of bytes.
    """
    global _uuid_class
    if _uuid_class is None:
        _uuid_class = message_class("unique_identifier_msgs/msg/UUID")
    return _uuid_class(uuid=np.frombuffer(uuid, dtype=np.uint8))


def uuid_from_msg(message: Any) -> bytes:
    """The 16 bytes of a ``unique_identifier_msgs/UUID``."""
    return bytes(message.uuid)
