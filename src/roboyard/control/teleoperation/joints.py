"""Moving an arm's joints by hand: one is chosen by its number, keys step its target, a stick moves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from roboyard.config import parameter
from roboyard.control.teleoperation.keys import KeyEvent
from roboyard.control.teleoperation.pad import GamepadAxis, GamepadButton, PadState

UP, DOWN = "r", "f"
"""Keys that raise and lower the chosen joint's target."""


class JointWish(NamedTuple):
    """What a hand wants of a joint.

    Attributes:
        joint: Its number, from 1 on.
        steps: Change of its target position [rad or m]; 0: none.
        speed: Wanted velocity [rad/s or m/s]; None: none is wanted.
    """

    joint: int
    steps: float = 0.0
    speed: float | None = None


class KeyJoints:
    """Keys as a hand on an arm: a digit chooses the joint, ``r`` and ``f`` raise and lower its target.

    Args:
        step: Of one press, and of each repetition while the key is held [rad or m].
    """

    def __init__(self, step: float = 0.05) -> None:
        self.joint = 1
        self._step = step
        self._steps = 0.0

    def take(self, event: KeyEvent) -> None:
        """A key."""
        if event.kind == "released":
            return
        if event.key in "123456789":
            self.joint, self._steps = int(event.key), 0.0
        elif event.key in (UP, DOWN):
            self._steps += self._step if event.key == UP else -self._step

    def wish(self) -> JointWish | None:
        """What was pressed since the last call."""
        steps, self._steps = self._steps, 0.0
        return JointWish(self.joint, steps) if steps else None


@dataclass(frozen=True)
class PadJoints:
    """What the axes and buttons of a gamepad mean for an arm."""

    move: GamepadAxis = parameter(doc="moves the chosen joint")
    deadman: GamepadButton = parameter(doc="no joint moves unless one of them is held")
    next: GamepadButton = parameter(doc="chooses the next joint")
    previous: GamepadButton = parameter(doc="chooses the one before")


class PadArm:
    """A gamepad as a hand on an arm.

    Args:
        means: What its axes and buttons mean.
        speed: Of a stick at its end [rad/s or m/s].
        deadzone: Of the axis, in which it counts as let go.
    """

    def __init__(self, means: PadJoints, speed: float = 0.2, deadzone: float = 0.1) -> None:
        self.joint = 1
        self._means, self._speed, self._deadzone = means, speed, deadzone
        self._held = (False, False)

    def wish(self, pad: PadState) -> JointWish | None:
        """What the gamepad wants now; None unless the arm's deadman is held."""
        means = self._means
        held = pad.is_held(means.next), pad.is_held(means.previous)
        if held[0] and not self._held[0]:
            self.joint = min(self.joint + 1, 9)
        if held[1] and not self._held[1]:
            self.joint = max(self.joint - 1, 1)
        self._held = held
        if not pad.is_held(means.deadman):
            return None
        return JointWish(self.joint, speed=self._speed * pad.share(means.move, self._deadzone))
