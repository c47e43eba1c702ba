"""Goals of actions: statuses, and ids as 16 bytes or as ``unique_identifier_msgs/UUID``."""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import Any

import numpy as np

from roboyard.messages.classes import message_class

UUID_BYTES = 16
_uuid_class: type[Any] | None = None


class GoalStatus(IntEnum):
    """Status of an action goal, with the numbers of action_msgs/GoalStatus."""

    UNKNOWN = 0
    ACCEPTED = 1
    EXECUTING = 2
    CANCELING = 3
    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6

    @property
    def is_terminal(self) -> bool:
        """Whether the goal has ended."""
        return self >= GoalStatus.SUCCEEDED


ACTIVE_STATUSES = frozenset({GoalStatus.ACCEPTED, GoalStatus.EXECUTING, GoalStatus.CANCELING})
"""Statuses of a goal that was accepted and has not ended."""


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
