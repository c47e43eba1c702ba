"""Health of servos: decides from replies and servo states when motion must stop, and diagnoses a bus without motion."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from roboyard.errors import RunError
from roboyard.hardware.dynamixel.config import FaultLimits, ServoMap
from roboyard.hardware.dynamixel.control_table import (
    ANGLE_BIT,
    CCW_LIMIT,
    CHECKSUM_BIT,
    CW_LIMIT,
    FIRMWARE,
    INSTRUCTION_BIT,
    MODEL,
    OVERHEATING_BIT,
    OVERLOAD_BIT,
    RANGE_BIT,
    RETURN_DELAY,
    VOLTAGE_BIT,
    ServoState,
    describe_errors,
)
from roboyard.hardware.dynamixel.port import REPLY_FAILURE_TEXT, ReplyFailure, ServoPort

_IMMEDIATE_BITS = ANGLE_BIT | OVERHEATING_BIT | RANGE_BIT | OVERLOAD_BIT
_MAX_LOW_READINGS = 3
_CORRUPT_PACKET_WINDOW = 1.0


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
        if count < self.limits.max_missed_replies:
            return None
        return ServoFaultCause(servo, f"does not answer: {count} requests in a row, is it plugged in and its id right?")

    def on_state(self, servo: int, state: ServoState, time: float) -> ServoFaultCause | None:
        """A servo told its state at ``time`` [s]; what follows from that, if anything."""
        self._missed_replies[servo] = 0
        if serious := state.errors & _IMMEDIATE_BITS:
            return ServoFaultCause(servo, describe_errors(serious))
        if state.errors & (CHECKSUM_BIT | INSTRUCTION_BIT) and (cause := self._count_corrupt(servo, time)):
            return cause
        if state.temperature >= self.limits.max_temperature:
            return ServoFaultCause(
                servo, f"{state.temperature:.0f} °C, {self.limits.max_temperature:.0f} °C is the limit"
            )
        if state.voltage >= self.limits.min_voltage and not state.errors & VOLTAGE_BIT:
            self._low_readings[servo] = 0
            return None
        count = self._low_readings[servo] = self._low_readings.get(servo, 0) + 1
        if count < _MAX_LOW_READINGS:
            return None
        min_voltage = self.limits.min_voltage
        explanation = (
            f"{min_voltage:.1f} V is the least" if state.voltage < min_voltage else describe_errors(VOLTAGE_BIT)
        )
        return ServoFaultCause(servo, f"{state.voltage:.1f} V: {explanation}")

    def _count_corrupt(self, servo: int, time: float) -> ServoFaultCause | None:
        self._corrupt_times.append(time)
        while self._corrupt_times and self._corrupt_times[0] < time - _CORRUPT_PACKET_WINDOW:
            self._corrupt_times.popleft()
        count = len(self._corrupt_times)
        if count <= self.limits.max_corrupt_packets:
            return None
        return ServoFaultCause(
            servo,
            f"{count} damaged packets within a second, the last from here: look at cable, ground, two alike ids",
        )


class ServoFaultError(RunError):
    """A servo or its bus failed, and motion was stopped; says which servo, which joint, and why.

    Attributes:
        servo: Its id; None where the bus itself failed.
        joint: Its joint; None likewise.
    """

    def __init__(
        self, message: str, *, port: str, servo: int | None = None, joint: str | None = None, action: str
    ) -> None:
        self.servo, self.joint = servo, joint
        location = port if servo is None else f"{port}, servo {servo} (joint {joint})"
        super().__init__(message, location=location, valid=action)


_MAX_ID = 253
_PING_TIMEOUT = 0.02
"""How long an answer is waited for where none is expected [s]."""


@dataclass(frozen=True, slots=True)
class ServoDiagnosis:
    """How a servo is.

    Attributes:
        joint: Its joint.
        servo: Its id.
        state: What it says of itself; None: it does not answer.
        position: Of the joint [rad]; NaN without an answer.
        firmware: Its version.
        return_delay: Between request and answer [s].
        problems: What is wrong, in words; empty if nothing is.
    """

    joint: str
    servo: int
    state: ServoState | None
    position: float
    firmware: int
    return_delay: float
    problems: tuple[str, ...]


def diagnose_servos(port: ServoPort, servos: ServoMap, limits: FaultLimits) -> list[ServoDiagnosis]:
    """How each servo is, in the order of the joints. Raises PortLostError."""
    return [_diagnose_servo(port, servos, index, limits) for index in range(len(servos.ids))]


def find_unknown_ids(port: ServoPort, servos: ServoMap) -> list[int]:
    """Ids that answer and are no joint's; asks every one that there can be. Raises PortLostError."""
    reply_timeout, port.reply_timeout = (
        port.reply_timeout,
        min(port.reply_timeout, _PING_TIMEOUT),
    )  # most of them are not there
    others = (servo for servo in range(_MAX_ID + 1) if servo not in servos.ids)
    found = [servo for servo in others if not isinstance(port.ping(servo), str)]
    port.reply_timeout = reply_timeout
    return found


def _diagnose_servo(port: ServoPort, servos: ServoMap, index: int, limits: FaultLimits) -> ServoDiagnosis:
    servo, joint = servos.ids[index], servos.joints[index]
    model, state = port.ping(servo), port.read_state(servo)
    if isinstance(model, str) or isinstance(state, str):
        failure = next(reply for reply in (model, state) if isinstance(reply, str))
        return ServoDiagnosis(joint, servo, None, float("nan"), 0, 0.0, (REPLY_FAILURE_TEXT[failure],))
    values = [port.read(servo, item) for item in (FIRMWARE, RETURN_DELAY, CW_LIMIT, CCW_LIMIT)]
    firmware, delay, low, high = (value if isinstance(value, int) else 0 for value in values)
    ticks = servos.zero_position.copy()
    ticks[index] = state.ticks
    position = float(servos.to_angles(ticks)[index])
    problems = [describe_errors(state.errors)] if state.errors else []
    if model != MODEL.initial:
        problems.append(f"model {model} is no RX-64, {MODEL.initial}")
    if state.voltage < limits.min_voltage:
        problems.append(f"{state.voltage:.1f} V: {limits.min_voltage:.1f} V is the least")
    if state.temperature >= limits.max_temperature:
        problems.append(f"{state.temperature:.0f} °C: {limits.max_temperature:.0f} °C is the limit")
    if not servos.min_position[index] <= position <= servos.max_position[index]:
        problems.append("the joint is beyond its limits: is its zero_position right?")
    ends = int(servos.to_ticks(servos.min_position)[index]), int(servos.to_ticks(servos.max_position)[index])
    if not low <= min(ends) or not max(ends) <= high:
        problems.append(f"its own limits of {low} to {high} leave out some of {min(ends)} to {max(ends)}")
    return ServoDiagnosis(joint, servo, state, position, firmware, 2e-6 * delay, tuple(problems))
