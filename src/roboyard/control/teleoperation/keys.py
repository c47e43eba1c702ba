"""Keys of a terminal as a hand on the stick: which are held, though terminals only say what is typed.

A terminal repeats the key that was pressed last while it is held: first after a delay, then quickly.  So a key counts
as held for ``first`` seconds after it is pressed, and for ``repeat`` seconds after each repetition; then it was
released.  Of two keys held together, say forward and left, only the later one repeats: the earlier is held as long as
the later is.
Terminals that speak kitty's protocol (https://sw.kovidgoyal.net/kitty/keyboard-protocol) tell real releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from roboyard.control.kinematics import PlanarTwist

DIRECTIONS: dict[str, tuple[int, int]] = {
    "w": (1, 0), "s": (-1, 0), "a": (0, 1), "d": (0, -1), "q": (1, 1), "e": (1, -1), "z": (-1, -1), "c": (-1, 1),
    "up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1),
}  # fmt: skip
"""Parts of full speed (forward, left turn) that each key stands for."""
STOPS = ("x", " ")
FASTER, SLOWER = ("+", "="), ("-", "_")
QUIT = "quit"
"""What the decoder calls Ctrl-C and Ctrl-D, where they come as keys."""

KITTY_ON, KITTY_OFF = "\x1b[>11u", "\x1b[<u"
"""Asks for releases and for every key as a sequence; and back."""
KITTY_TERMINALS = ("kitty", "foot", "ghostty", "wezterm")
"""Parts of $TERM of terminals that understand it."""

_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_SEQUENCE = re.compile(r"\x1b(?:O([A-D])|\[(?:(\d+)(?::\d*)*)?(?:;(\d+)?(?::(\d+))?)?(?:;[\d:]*)?([A-Za-z~]))")
_UNFINISHED = re.compile(r"\x1b(?:O|\[[\d;:]*)?")
_FACTOR = 1.1
_CTRL = 4


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A key: typed once or again and again, as most terminals tell; or pressed, repeating, released."""

    key: str
    kind: Literal["typed", "pressed", "released"] = "typed"


class KeyDecoder:
    """Finds keys in what a terminal sends, arrows and kitty's sequences included; what it does not know is dropped."""

    def __init__(self) -> None:
        self._text = ""

    def feed(self, text: str) -> list[KeyEvent]:
        """The keys that are complete with these characters."""
        self._text += text
        found: list[KeyEvent] = []
        while self._text:
            if self._text[0] != "\x1b":
                key = self._text[0]
                self._text = self._text[1:]
                found.append(KeyEvent(QUIT if key in "\x03\x04" else key.lower()))
                continue
            match = _SEQUENCE.match(self._text)
            if match is None:
                if _UNFINISHED.fullmatch(self._text):
                    break
                self._text = self._text[1:]
                continue
            self._text = self._text[match.end() :]
            found += _event(match)
        return found


def _event(match: re.Match[str]) -> list[KeyEvent]:
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


class KeyHand:
    """The motion that held keys want.

    Args:
        speed: Of forward and backward [m/s].
        turn: Of turning [rad/s].
        first: A key that was typed once is held so long [s]: longer than the delay before terminals repeat.
        repeat: And so long after each repetition [s].
    """

    def __init__(self, speed: float = 0.5, turn: float = 1.0, *, first: float = 0.7, repeat: float = 0.2) -> None:
        self.speed = speed
        self.turn = turn
        self._first = first
        self._repeat = repeat
        self._until: dict[str, float] = {}
        self._companion = ""

    def take(self, event: KeyEvent, now: float) -> None:
        """A key at ``now`` [s]."""
        key = event.key
        if event.kind == "released":
            self._until.pop(key, None)
        elif key in STOPS:
            self._until.clear()
        elif key in FASTER or key in SLOWER:
            factor = _FACTOR if key in FASTER else 1.0 / _FACTOR
            self.speed, self.turn = self.speed * factor, self.turn * factor
        elif key in DIRECTIONS:
            self._press(key, now, forever=event.kind == "pressed")

    def _press(self, key: str, now: float, *, forever: bool) -> None:
        if forever:
            self._until[key] = float("inf")
            return
        held = self.held(now)
        until = now + (self._repeat if key in held and key != self._companion else self._first)
        if key not in held:
            goes, turns = DIRECTIONS[key]
            others = [k for k in held if DIRECTIONS[k][0] * goes == 0 and DIRECTIONS[k][1] * turns == 0]
            self._companion = others[-1] if others else ""
        elif key == self._companion:
            self._companion = ""
        self._until = {k: until for k in (self._companion, key) if k}

    def held(self, now: float) -> tuple[str, ...]:
        """The keys held at ``now`` [s]."""
        return tuple(key for key, until in self._until.items() if now < until)

    def twist(self, now: float) -> PlanarTwist | None:
        """What they want at ``now`` [s]; None while none is held: nobody wants anything."""
        held = self.held(now)
        if not held:
            return None
        forward = max(-1, min(1, sum(DIRECTIONS[key][0] for key in held)))
        left = max(-1, min(1, sum(DIRECTIONS[key][1] for key in held)))
        return PlanarTwist(forward * self.speed, 0.0, left * self.turn)

    def release(self) -> None:
        """Let go of everything."""
        self._until.clear()
