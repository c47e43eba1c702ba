"""Reader of Linux joystick devices: decodes the 8-byte events of gamepads.

Source: Linux's Documentation/input/joydev/joystick-api.rst: ``struct js_event {__u32 time; __s16 value; __u8 type; __u8
number;}``, type 1 is a button, 2 an axis; 0x80 is added for events that report the initial state.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roboyard.errors import InputError, RoboyardError

_EVENT = struct.Struct("<IhBB")
_KINDS: dict[int, Literal["button", "axis"]] = {1: "button", 2: "axis"}
_INITIAL = 0x80
_CHUNK = 64 * _EVENT.size


class JoystickDisconnectedError(RoboyardError):
    """The gamepad was unplugged, or its radio link was lost."""


@dataclass(frozen=True, slots=True)
class JoystickEvent:
    """New value of a button (0 or 1) or of an axis (-32767 to 32767; right and down are positive)."""

    kind: Literal["button", "axis"]
    number: int
    value: int


def decode(data: bytes) -> Iterator[JoystickEvent]:
    """Decode the events in complete records; unknown event types are skipped."""
    for _time, value, kind, number in _EVENT.iter_unpack(data):
        if (name := _KINDS.get(kind & ~_INITIAL)) is not None:
            yield JoystickEvent(name, number, value)


class Joystick:
    """Open joystick device; a context manager.

    Args:
        path: Device, e.g. /dev/input/js0.

    Raises:
        InputError: The device does not exist or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._buffer = b""
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise InputError(
                f"cannot open gamepad: {error.strerror}", location=str(path), valid=_suggest_fix(error)
            ) from error

    def read(self) -> list[JoystickEvent]:
        """Return the events since the last call, without blocking.

        Raises:
            JoystickDisconnectedError: The gamepad is disconnected.
        """
        while True:
            try:
                piece = os.read(self._file, _CHUNK)
            except BlockingIOError:
                break
            except OSError as error:
                raise JoystickDisconnectedError(
                    f"gamepad disconnected: {error.strerror}", location=str(self.path)
                ) from error
            if not piece:
                raise JoystickDisconnectedError("gamepad disconnected", location=str(self.path))
            self._buffer += piece
            if len(piece) < _CHUNK:
                break
        n_complete = len(self._buffer) - len(self._buffer) % _EVENT.size
        data, self._buffer = self._buffer[:n_complete], self._buffer[n_complete:]
        return list(decode(data))

    def close(self) -> None:
        """Close the device."""
        os.close(self._file)

    def __enter__(self) -> Joystick:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _suggest_fix(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "access may require membership in the group 'input'"
    found = ", ".join(str(path) for path in sorted(Path("/dev/input").glob("js*")))
    return f"--device with one of: {found}" if found else "connect a gamepad, or select a device with --device"
