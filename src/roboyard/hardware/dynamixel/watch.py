"""Watches what comes from the servos, and says when motion must stop."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from roboyard.hardware.dynamixel.control_table import (
    ANGLE_BIT,
    CHECKSUM_BIT,
    INSTRUCTION_BIT,
    OVERHEATING_BIT,
    OVERLOAD_BIT,
    RANGE_BIT,
    VOLTAGE_BIT,
    ServoState,
    describe_errors,
)
from roboyard.hardware.dynamixel.settings import FaultLimits

ReplyFailure = Literal["timeout", "corrupt"]
"""Why there is no answer: none came, or what came was no packet."""
REPLY_FAILURE_TEXT: dict[ReplyFailure, str] = {"timeout": "does not answer", "corrupt": "its answers are damaged"}

_IMMEDIATE_BITS = ANGLE_BIT | OVERHEATING_BIT | RANGE_BIT | OVERLOAD_BIT
_MAX_LOW_READINGS = 3
_WINDOW = 1.0


@dataclass(frozen=True, slots=True)
class ServoFaultCause:
    """Why motion must stop: what is wrong, and with which servo."""

    servo: int
    reason: str


class ServoMonitor:
    """Counts what is wrong with the answers of servos.

    Overload, overheating and refused goals count at once, the rest once there are as many as the settings say.  An
    error of voltage in a status packet adds to the readings of low voltage, one of a checksum or of an instruction to
    the damaged packets.

    Args:
        limits: When to stop.
    """

    def __init__(self, limits: FaultLimits) -> None:
        self.limits = limits
        self._missed_replies: dict[int, int] = {}
        self._low_readings: dict[int, int] = {}
        self._corrupt_times: deque[float] = deque()

    def on_missed_reply(self, servo: int, failure: ReplyFailure, time: float) -> ServoFaultCause | None:
        """A servo gave no answer at ``time`` [s]; what follows from that, if anything."""
        if failure == "corrupt":
            return self._count_corrupt(servo, time)
        count = self._missed_replies[servo] = self._missed_replies.get(servo, 0) + 1
        if count < self.limits.silent:
            return None
        return ServoFaultCause(servo, f"does not answer: {count} requests in a row, is it plugged in and its id right?")

    def on_state(self, servo: int, state: ServoState, time: float) -> ServoFaultCause | None:
        """A servo told its state at ``time`` [s]; what follows from that, if anything."""
        self._missed_replies[servo] = 0
        if serious := state.errors & _IMMEDIATE_BITS:
            return ServoFaultCause(servo, describe_errors(serious))
        if state.errors & (CHECKSUM_BIT | INSTRUCTION_BIT) and (cause := self._count_corrupt(servo, time)):
            return cause
        if state.temperature >= self.limits.temperature:
            return ServoFaultCause(servo, f"{state.temperature:.0f} °C, {self.limits.temperature:.0f} °C is the limit")
        if state.voltage >= self.limits.low_voltage and not state.errors & VOLTAGE_BIT:
            self._low_readings[servo] = 0
            return None
        count = self._low_readings[servo] = self._low_readings.get(servo, 0) + 1
        if count < _MAX_LOW_READINGS:
            return None
        min_voltage = self.limits.low_voltage
        explanation = (
            f"{min_voltage:.1f} V is the least" if state.voltage < min_voltage else describe_errors(VOLTAGE_BIT)
        )
        return ServoFaultCause(servo, f"{state.voltage:.1f} V: {explanation}")

    def _count_corrupt(self, servo: int, time: float) -> ServoFaultCause | None:
        self._corrupt_times.append(time)
        while self._corrupt_times and self._corrupt_times[0] < time - _WINDOW:
            self._corrupt_times.popleft()
        count = len(self._corrupt_times)
        if count <= self.limits.damaged:
            return None
        return ServoFaultCause(
            servo,
            f"{count} damaged packets within a second, the last from here: look at cable, ground, two alike ids",
        )
