"""Watches what comes from the servos, and says when motion must stop."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from roboyard.hardware.dynamixel.control_table import (
    ANGLE_BIT,
    CHECKSUM_BIT,
    HEAT_BIT,
    INSTRUCTION_BIT,
    OVERLOAD_BIT,
    RANGE_BIT,
    VOLTAGE_BIT,
    ServoState,
    error_text,
)
from roboyard.hardware.dynamixel.settings import Watch

Missing = Literal["silent", "damaged"]
"""Why there is no answer: none came, or what came was no packet."""
NO_ANSWER: dict[Missing, str] = {"silent": "does not answer", "damaged": "its answers are damaged"}

_AT_ONCE = ANGLE_BIT | HEAT_BIT | RANGE_BIT | OVERLOAD_BIT
_READINGS = 3
_WINDOW = 1.0


@dataclass(frozen=True, slots=True)
class Cause:
    """Why motion must stop: what is wrong, and with which servo."""

    servo: int
    what: str


class ServoWatch:
    """Counts what is wrong with the answers of servos.

    Overload, overheating and refused goals count at once, the rest once there are as many as the settings say.  An
    error of voltage in a status packet adds to the readings of low voltage, one of a checksum or of an instruction to
    the damaged packets.

    Args:
        settings: When to stop.
    """

    def __init__(self, settings: Watch) -> None:
        self.settings = settings
        self._silent: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._damaged: deque[float] = deque()

    def missed(self, servo: int, why: Missing, time: float) -> Cause | None:
        """A servo gave no answer at ``time`` [s]; what follows from that, if anything."""
        if why == "damaged":
            return self._count_damaged(servo, time)
        count = self._silent[servo] = self._silent.get(servo, 0) + 1
        if count < self.settings.silent:
            return None
        return Cause(servo, f"does not answer: {count} requests in a row, is it plugged in and its id right?")

    def heard(self, servo: int, state: ServoState, time: float) -> Cause | None:
        """A servo told its state at ``time`` [s]; what follows from that, if anything."""
        self._silent[servo] = 0
        if serious := state.errors & _AT_ONCE:
            return Cause(servo, error_text(serious))
        if state.errors & (CHECKSUM_BIT | INSTRUCTION_BIT) and (found := self._count_damaged(servo, time)):
            return found
        if state.temperature >= self.settings.temperature:
            return Cause(servo, f"{state.temperature:.0f} °C, {self.settings.temperature:.0f} °C is the limit")
        if state.voltage >= self.settings.low_voltage and not state.errors & VOLTAGE_BIT:
            self._low[servo] = 0
            return None
        count = self._low[servo] = self._low.get(servo, 0) + 1
        if count < _READINGS:
            return None
        least = self.settings.low_voltage
        said = f"{least:.1f} V is the least" if state.voltage < least else error_text(VOLTAGE_BIT)
        return Cause(servo, f"{state.voltage:.1f} V: {said}")

    def _count_damaged(self, servo: int, time: float) -> Cause | None:
        self._damaged.append(time)
        while self._damaged and self._damaged[0] < time - _WINDOW:
            self._damaged.popleft()
        count = len(self._damaged)
        if count <= self.settings.damaged:
            return None
        return Cause(
            servo,
            f"{count} damaged packets within a second, the last from here: look at cable, ground, two alike ids",
        )
