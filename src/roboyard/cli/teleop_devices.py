"""Teleoperation devices for a robot of a live run: the keyboard and a gamepad."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol

from roboyard.cli.key_input import KeyInput
from roboyard.control import PlanarTwist
from roboyard.control.teleoperation import (
    GamepadJointTeleop,
    GamepadMapping,
    GamepadState,
    JointJogCommand,
    KeyboardJointTeleop,
    KeyboardTeleop,
    KeyDecoder,
)
from roboyard.control.teleoperation.keyboard import KITTY_OFF, KITTY_ON, KITTY_TERMINALS, QUIT
from roboyard.errors import InputError
from roboyard.hardware.joystick import Joystick, JoystickDisconnectedError

_RETRY_PERIOD = 1.0
"""Period of the search for an unplugged gamepad [wall s]."""


class TeleopDevice(Protocol):
    """Teleoperation device; a context manager.

    Attributes:
        is_finished: Whether the operator ended the session.
        instructions: Instructions for the operator, in a line.
    """

    is_finished: bool
    instructions: str

    @property
    def is_connected(self) -> bool:
        """Whether the device is present, so that the heartbeat continues."""

    def twist(self, now: float) -> PlanarTwist | None:
        """Return the commanded twist at wall time ``now`` [s]; None: no command."""

    def joint_command(self) -> JointJogCommand | None:
        """Return the command for a joint of an arm since the last call; None: no command."""

    @property
    def joy(self) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
        """Its axes and buttons; None for a device without them."""

    def __enter__(self) -> object:
        """Open the device."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close the device."""


class Keyboard:
    """Keyboard of this terminal.

    Args:
        speed: Maximum speed [m/s].
        angular_speed: Maximum angular speed [rad/s].
    """

    instructions = (
        "hold w a s d or the arrows, q e z c to curve, space stops, + - faster and slower; "
        "1 … 9 choose a joint, r f raise and lower it; Ctrl-C ends"
    )

    def __init__(self, speed: float, angular_speed: float) -> None:
        self.is_finished = False
        self._twist_keys = KeyboardTeleop(speed, angular_speed)
        self._joint_keys = KeyboardJointTeleop()
        self._decoder = KeyDecoder()
        self._typed: SimpleQueue[str] = SimpleQueue()
        self._stack = ExitStack()

    @property
    def is_connected(self) -> bool:
        """Always; a closed terminal ends the session."""
        return True

    @property
    def joy(self) -> None:
        """None: a keyboard has no axes."""
        return None

    def twist(self, now: float) -> PlanarTwist | None:
        """Return the twist of the held keys."""
        try:
            while True:
                for event in self._decoder.feed(self._typed.get_nowait()):
                    if event.key == QUIT:
                        self.is_finished = True
                    self._twist_keys.on_key(event, now)
                    self._joint_keys.on_key(event)
        except Empty:
            return self._twist_keys.twist(now)

    def joint_command(self) -> JointJogCommand | None:
        """Return the command of the pressed keys."""
        return self._joint_keys.read_command()

    def __enter__(self) -> Keyboard:
        import os
        import sys

        if not sys.stdin.isatty():
            raise InputError("there is no terminal to read keys from", valid="a terminal, or `roboyard teleop gamepad`")
        if any(name in os.environ.get("TERM", "") for name in KITTY_TERMINALS) and sys.stdout.isatty():
            self._write(KITTY_ON)
            self._stack.callback(self._write, KITTY_OFF)
        self._stack.enter_context(KeyInput(self._typed.put, lambda _: None))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _write(self, text: str) -> None:
        import sys
        from contextlib import suppress

        with suppress(OSError):  # the terminal was closed
            sys.stdout.write(text)
            sys.stdout.flush()


class Gamepad:
    """Gamepad; while it is unplugged it commands nothing.

    Args:
        device: Device file, e.g. /dev/input/js0.
        mapping: Meaning of its axes and buttons.
        speed: Maximum speed [m/s].
        angular_speed: Maximum angular speed [rad/s].

    Raises:
        InputError: The device does not exist.
    """

    def __init__(self, device: Path, mapping: GamepadMapping, speed: float, angular_speed: float) -> None:
        self.is_finished = False
        self.instructions = (
            f"{mapping.summary or device}: hold button {' or '.join(map(str, mapping.enable.buttons))}, Ctrl-C ends"
        )
        self._device, self._mapping, self._speed, self._angular_speed = device, mapping, speed, angular_speed
        self._state = GamepadState()
        self._arm = (
            GamepadJointTeleop(mapping.joints, deadzone=mapping.deadzone) if mapping.joints is not None else None
        )
        self._pad: Joystick | None = Joystick(device)
        self._next_retry = 0.0

    @property
    def is_connected(self) -> bool:
        """Whether the gamepad is plugged in."""
        return self._pad is not None

    @property
    def joy(self) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
        """Its axes and buttons, while it is plugged in."""
        return (tuple(self._state.axes), tuple(self._state.buttons)) if self._pad is not None else None

    def twist(self, now: float) -> PlanarTwist | None:
        """Return the commanded twist."""
        if self._pad is None and now >= self._next_retry:
            self._next_retry = now + _RETRY_PERIOD
            self._pad = _open_joystick(self._device)
        if self._pad is not None:
            try:
                self._state.update(self._pad.read())
            except JoystickDisconnectedError:
                self._pad.close()
                self._pad, self._state, self._next_retry = None, GamepadState(), now + _RETRY_PERIOD
        return self._mapping.twist(self._state, self._speed, self._angular_speed)

    def joint_command(self) -> JointJogCommand | None:
        """Return the command of the stick for the arm."""
        return self._arm.read_command(self._state) if self._arm is not None else None

    def __enter__(self) -> Gamepad:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pad is not None:
            self._pad.close()


def _open_joystick(device: Path) -> Joystick | None:
    try:
        return Joystick(device)
    except InputError:
        return None
