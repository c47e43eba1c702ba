"""Keyboard teleoperation: which keys of a terminal are held, and the motion that they command.

A terminal repeats the last pressed key while it is held: first after a delay, then quickly. So a key counts as held for
``initial_hold_time`` seconds after it is pressed, and for ``repeat_hold_time`` seconds after each repetition; then it
counts as released. Of two keys held together, such as forward and left, only the later one repeats: the earlier one is
held as long as the later one is. Terminals that support kitty's protocol
(https://sw.kovidgoyal.net/kitty/keyboard-protocol) report real releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from roboyard.control.wheel_kinematics import PlanarTwist

RAISE_KEY, LOWER_KEY = "r", "f"
"""Keys that raise and lower the chosen joint's target."""

KEY_DIRECTIONS: dict[str, tuple[int, int]] = {
    "w": (1, 0), "s": (-1, 0), "a": (0, 1), "d": (0, -1), "q": (1, 1), "e": (1, -1), "z": (-1, -1), "c": (-1, 1),
    "up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1),
}  # fmt: skip
"""Fractions of full speed (forward, left turn) that each key commands."""
STOP_KEYS = ("x", " ")
FASTER_KEYS, SLOWER_KEYS = ("+", "="), ("-", "_")
QUIT = "quit"
"""Name of Ctrl-C and Ctrl-D, if the terminal sends them as keys."""

KITTY_ON, KITTY_OFF = "\x1b[>11u", "\x1b[<u"
"""Sequences that request reports of releases and of every key, and that end them."""
KITTY_TERMINALS = ("kitty", "foot", "ghostty", "wezterm")
"""Parts of $TERM of terminals that support them."""

_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_SEQUENCE = re.compile(r"\x1b(?:O([A-D])|\[(?:(\d+)(?::\d*)*)?(?:;(\d+)?(?::(\d+))?)?(?:;[\d:]*)?([A-Za-z~]))")
_UNFINISHED = re.compile(r"\x1b(?:O|\[[\d;:]*)?")
_SPEED_STEP_FACTOR = 1.1
_CTRL = 4


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A key event: typed once or repeatedly, as most terminals report; or pressed, repeating, released."""

    key: str
    kind: Literal["typed", "pressed", "released"] = "typed"


class KeyDecoder:
    """Decodes the keys that a terminal sends, with arrows and kitty's sequences; unknown sequences are ignored."""

    def __init__(self) -> None:
        self._text = ""

    def feed(self, text: str) -> list[KeyEvent]:
        """Return the keys that these characters complete."""
        self._text += text
        events: list[KeyEvent] = []
        while self._text:
            if self._text[0] != "\x1b":
                key = self._text[0]
                self._text = self._text[1:]
                events.append(KeyEvent(QUIT if key in "\x03\x04" else key.lower()))
                continue
            match = _SEQUENCE.match(self._text)
            if match is None:
                if _UNFINISHED.fullmatch(self._text):
                    break
                self._text = self._text[1:]
                continue
            self._text = self._text[match.end() :]
            events += _key_event(match)
        return events


def _key_event(match: re.Match[str]) -> list[KeyEvent]:
    short, code, modifiers, kind, final = match.groups()
    if short or final in _ARROWS:
        key = _ARROWS[short or final]
    elif final == "u" and code and int(code) < 0x110000:
        key = chr(int(code)).lower()
        if key in "cd" and (int(modifiers or 1) - 1) & _CTRL:
            key = QUIT
    else:
        return []
    if kind is None and final != "u":
        return [KeyEvent(key)]
    return [KeyEvent(key, "released" if kind == "3" else "pressed")]


class KeyboardTeleop:
    """Keyboard teleoperation of a base: the twist that the held keys command.

    Args:
        speed: Speed forward and backward [m/s].
        angular_speed: Angular speed [rad/s].
        initial_hold_time: Time for which a key counts as held after its first press [s]; longer than the delay before
            terminals repeat keys.
        repeat_hold_time: Time for which it counts as held after each repetition [s].
    """

    def __init__(
        self,
        speed: float = 0.5,
        angular_speed: float = 1.0,
        *,
        initial_hold_time: float = 0.7,
        repeat_hold_time: float = 0.2,
    ) -> None:
        self.speed = speed
        self.angular_speed = angular_speed
        self._initial_hold_time = initial_hold_time
        self._repeat_hold_time = repeat_hold_time
        self._hold_end: dict[str, float] = {}
        self._companion = ""

    def on_key(self, event: KeyEvent, now: float) -> None:
        """Process a key event at ``now`` [s]."""
        key = event.key
        if event.kind == "released":
            self._hold_end.pop(key, None)
        elif key in STOP_KEYS:
            self._hold_end.clear()
        elif key in FASTER_KEYS or key in SLOWER_KEYS:
            factor = _SPEED_STEP_FACTOR if key in FASTER_KEYS else 1.0 / _SPEED_STEP_FACTOR
            self.speed, self.angular_speed = self.speed * factor, self.angular_speed * factor
        elif key in KEY_DIRECTIONS:
            self._press(key, now, is_reported=event.kind == "pressed")

    def _press(self, key: str, now: float, *, is_reported: bool) -> None:
        if is_reported:
            self._hold_end[key] = float("inf")
            return
        pressed_keys = self.pressed_keys(now)
        hold_end = now + (
            self._repeat_hold_time if key in pressed_keys and key != self._companion else self._initial_hold_time
        )
        if key not in pressed_keys:
            forward, left = KEY_DIRECTIONS[key]
            others = [
                k for k in pressed_keys if KEY_DIRECTIONS[k][0] * forward == 0 and KEY_DIRECTIONS[k][1] * left == 0
            ]
            self._companion = others[-1] if others else ""
        elif key == self._companion:
            self._companion = ""
        self._hold_end = {k: hold_end for k in (self._companion, key) if k}

    def pressed_keys(self, now: float) -> tuple[str, ...]:
        """Return the keys that are held at ``now`` [s]."""
        return tuple(key for key, until in self._hold_end.items() if now < until)

    def twist(self, now: float) -> PlanarTwist | None:
        """Return the commanded twist at ``now`` [s]; None while no key is held."""
        pressed_keys = self.pressed_keys(now)
        if not pressed_keys:
            return None
        forward = max(-1, min(1, sum(KEY_DIRECTIONS[key][0] for key in pressed_keys)))
        left = max(-1, min(1, sum(KEY_DIRECTIONS[key][1] for key in pressed_keys)))
        return PlanarTwist(forward * self.speed, 0.0, left * self.angular_speed)

    def release(self) -> None:
        """Release all keys."""
        self._hold_end.clear()


class JointJogCommand(NamedTuple):
    """Command for a joint.

    Attributes:
        joint: Number of the joint, from 1 on.
        position_change: Change of its target position [rad or m]; 0: none.
        speed: Commanded velocity [rad/s or m/s]; None: none.
    """

    joint: int
    position_change: float = 0.0
    speed: float | None = None


class KeyboardJointTeleop:
    """Keyboard teleoperation of an arm: a digit chooses the joint, ``r`` and ``f`` raise and lower its target.

    Args:
        step: Change of the target at each press, and at each repetition while the key is held [rad or m].
    """

    def __init__(self, step: float = 0.05) -> None:
        self.joint = 1
        self._step = step
        self._position_change = 0.0

    def on_key(self, event: KeyEvent) -> None:
        """Process a key event."""
        if event.kind == "released":
            return
        if event.key in "123456789":
            self.joint, self._position_change = int(event.key), 0.0
        elif event.key in (RAISE_KEY, LOWER_KEY):
            self._position_change += self._step if event.key == RAISE_KEY else -self._step

    def read_command(self) -> JointJogCommand | None:
        """Return the command of the keys since the last call."""
        position_change, self._position_change = self._position_change, 0.0
        return JointJogCommand(self.joint, position_change) if position_change else None
