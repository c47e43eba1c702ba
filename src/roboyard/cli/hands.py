"""The two hands that can steer a live run from here: held keys and a gamepad."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol

from roboyard.cli.keys import Keys
from roboyard.control import PlanarTwist
from roboyard.control.teleoperation import JointWish, KeyDecoder, KeyHand, KeyJoints, PadArm, PadMap, PadState
from roboyard.control.teleoperation.keys import KITTY_OFF, KITTY_ON, KITTY_TERMINALS, QUIT
from roboyard.errors import InputError
from roboyard.hardware.joystick import Joystick, JoystickDisconnectedError

_RETRY = 1.0
"""Between two looks for a gamepad that was unplugged [wall s]."""


class Hand(Protocol):
    """What steers; a context manager.

    Attributes:
        over: Nobody wants to drive any more.
        about: How to use it, in a line.
    """

    over: bool
    about: str

    @property
    def present(self) -> bool:
        """Whether somebody can hold it: the heartbeat goes on."""

    def twist(self, now: float) -> PlanarTwist | None:
        """What it wants at wall time ``now`` [s]; None: nothing."""

    def wish(self) -> JointWish | None:
        """What it wants of an arm's joint, since the last time it was asked."""

    @property
    def joy(self) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
        """Its axes and buttons, if it has any."""

    def __enter__(self) -> object:
        """Take hold."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Let go."""


class Keyboard:
    """Keys of this terminal.

    Args:
        speed: Full speed [m/s].
        turn: Full turn [rad/s].
    """

    about = (
        "hold w a s d or the arrows, q e z c to curve, space stops, + - faster and slower; "
        "1 … 9 choose a joint, r f raise and lower it; Ctrl-C ends"
    )

    def __init__(self, speed: float, turn: float) -> None:
        self.over = False
        self._hand = KeyHand(speed, turn)
        self._joints = KeyJoints()
        self._decoder = KeyDecoder()
        self._typed: SimpleQueue[str] = SimpleQueue()
        self._stack = ExitStack()

    @property
    def present(self) -> bool:
        """A terminal that is gone ends everything."""
        return True

    @property
    def joy(self) -> None:
        """Keys are none."""
        return None

    def twist(self, now: float) -> PlanarTwist | None:
        """What the held keys want."""
        try:
            while True:
                for event in self._decoder.feed(self._typed.get_nowait()):
                    if event.key == QUIT:
                        self.over = True
                    self._hand.take(event, now)
                    self._joints.take(event)
        except Empty:
            return self._hand.twist(now)

    def wish(self) -> JointWish | None:
        """What was pressed."""
        return self._joints.wish()

    def __enter__(self) -> Keyboard:
        import os
        import sys

        if not sys.stdin.isatty():
            raise InputError("there is no terminal to read keys from", valid="a terminal, or `roboyard teleop gamepad`")
        if any(name in os.environ.get("TERM", "") for name in KITTY_TERMINALS) and sys.stdout.isatty():
            self._write(KITTY_ON)
            self._stack.callback(self._write, KITTY_OFF)
        self._stack.enter_context(Keys(self._typed.put, lambda _: None))
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
    """A gamepad; unplugged, it lets go of everything until it is back.

    Args:
        device: E.g. /dev/input/js0.
        means: What its axes and buttons mean.
        speed: Full speed [m/s].
        turn: Full turn [rad/s].

    Raises:
        InputError: it is not there.
    """

    def __init__(self, device: Path, means: PadMap, speed: float, turn: float) -> None:
        self.over = False
        self.about = f"{means.summary or device}: hold button {' or '.join(map(str, means.deadman.any))}, Ctrl-C ends"
        self._device, self._means, self._speed, self._turn = device, means, speed, turn
        self._state = PadState()
        self._arm = PadArm(means.joints, deadzone=means.deadzone) if means.joints is not None else None
        self._pad: Joystick | None = Joystick(device)
        self._look_at = 0.0

    @property
    def present(self) -> bool:
        """Whether it is plugged in."""
        return self._pad is not None

    @property
    def joy(self) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
        """Its axes and buttons, while it is plugged in."""
        return (tuple(self._state.axes), tuple(self._state.buttons)) if self._pad is not None else None

    def twist(self, now: float) -> PlanarTwist | None:
        """What it wants."""
        if self._pad is None and now >= self._look_at:
            self._look_at = now + _RETRY
            self._pad = _opened(self._device)
        if self._pad is not None:
            try:
                self._state.take(self._pad.read())
            except JoystickDisconnectedError:
                self._pad.close()
                self._pad, self._state, self._look_at = None, PadState(), now + _RETRY
        return self._means.twist(self._state, self._speed, self._turn)

    def wish(self) -> JointWish | None:
        """What its arm's stick wants."""
        return self._arm.wish(self._state) if self._arm is not None else None

    def __enter__(self) -> Gamepad:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pad is not None:
            self._pad.close()


def _opened(device: Path) -> Joystick | None:
    try:
        return Joystick(device)
    except InputError:
        return None
