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
    """Reason to stop the motion: the servo and its problem."""

    servo: int
    reason: str


class ServoMonitor:
    """Counts the faults in the replies of servos and decides when motion must stop.

    Overload, overheating and rejected goals count at once; other faults count when their number reaches the configured
    limit.  A voltage error in a status packet counts as a reading of low voltage; a checksum or instruction error
    counts as a damaged packet.

    Args:
        limits: Thresholds at which motion is stopped.
    """

    def __init__(self, limits: FaultLimits) -> None:
        self.limits = limits
        self._missed_replies: dict[int, int] = {}
        self._low_readings: dict[int, int] = {}
        self._corrupt_times: deque[float] = deque()

    def on_missed_reply(self, servo: int, failure: ReplyFailure, time: float) -> ServoFaultCause | None:
        """Process a missing reply at `time` [s]; return the reason to stop, if any."""
        if failure == "corrupt":
            return self._count_corrupt(servo, time)
        count = self._missed_replies[servo] = self._missed_replies.get(servo, 0) + 1
        if count < self.limits.max_missed_replies:
            return None
        return ServoFaultCause(servo, f"does not answer: {count} requests in a row (check its cable and its id)")

    def on_state(self, servo: int, state: ServoState, time: float) -> ServoFaultCause | None:
        """Process the state of a servo at `time` [s]; return the reason to stop, if any."""
        self._missed_replies[servo] = 0
        if serious := state.errors & _IMMEDIATE_BITS:
            return ServoFaultCause(servo, describe_errors(serious))
        if state.errors & (CHECKSUM_BIT | INSTRUCTION_BIT) and (cause := self._count_corrupt(servo, time)):
            return cause
        if state.temperature >= self.limits.max_temperature:
            return ServoFaultCause(
                servo,
                f"temperature {state.temperature:.0f} °C reaches the limit of {self.limits.max_temperature:.0f} °C",
            )
        if state.voltage >= self.limits.min_voltage and not state.errors & VOLTAGE_BIT:
            self._low_readings[servo] = 0
            return None
        count = self._low_readings[servo] = self._low_readings.get(servo, 0) + 1
        if count < _MAX_LOW_READINGS:
            return None
        min_voltage = self.limits.min_voltage
        explanation = (
            f"below the limit of {min_voltage:.1f} V" if state.voltage < min_voltage else describe_errors(VOLTAGE_BIT)
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
            f"{count} damaged packets within a second, the last from this servo (check cable, ground and ids)",
        )


class ServoFaultError(RunError):
    """A servo or its bus failed and motion was stopped; the message states servo, joint and reason.

    Attributes:
        servo: Id of the servo; None if the bus itself failed.
        joint: Name of its joint; None if the bus itself failed.
    """

    def __init__(
        self, message: str, *, port: str, servo: int | None = None, joint: str | None = None, action: str
    ) -> None:
        self.servo, self.joint = servo, joint
        location = port if servo is None else f"{port}, servo {servo} (joint {joint})"
        super().__init__(message, location=location, valid=action)


_MAX_ID = 253
_PING_TIMEOUT = 0.02
"""Reply timeout when searching for unknown ids, most of which do not answer [s]."""


@dataclass(frozen=True, slots=True)
class ServoDiagnosis:
    """Diagnosis of a servo.

    Attributes:
        joint: Name of the joint.
        servo: Id of the servo.
        state: Reported state; None if the servo does not answer.
        position: Joint position [rad]; NaN without a reply.
        firmware: Firmware version.
        return_delay: Delay between request and reply [s].
        problems: Problems in words; empty if there are none.
    """

    joint: str
    servo: int
    state: ServoState | None
    position: float
    firmware: int
    return_delay: float
    problems: tuple[str, ...]


def diagnose_servos(port: ServoPort, servos: ServoMap, limits: FaultLimits) -> list[ServoDiagnosis]:
    """Diagnose each servo, in the order of the joints. Raises PortLostError."""
    return [_diagnose_servo(port, servos, index, limits) for index in range(len(servos.ids))]


def find_unknown_ids(port: ServoPort, servos: ServoMap) -> list[int]:
    """Find ids that answer but belong to no joint, by a ping of every possible id. Raises PortLostError."""
    reply_timeout, port.reply_timeout = (
        port.reply_timeout,
        min(port.reply_timeout, _PING_TIMEOUT),
    )  # most ids do not exist
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
        problems.append(f"model {model} is not supported, expected RX-64 ({MODEL.initial})")
    if state.voltage < limits.min_voltage:
        problems.append(f"voltage {state.voltage:.1f} V is below the limit of {limits.min_voltage:.1f} V")
    if state.temperature >= limits.max_temperature:
        problems.append(f"temperature {state.temperature:.0f} °C reaches the limit of {limits.max_temperature:.0f} °C")
    if not servos.min_position[index] <= position <= servos.max_position[index]:
        problems.append("the joint is outside its limits (check its zero_position)")
    ends = int(servos.to_ticks(servos.min_position)[index]), int(servos.to_ticks(servos.max_position)[index])
    if not low <= min(ends) or not max(ends) <= high:
        problems.append(f"the servo's own limits {low} to {high} exclude part of {min(ends)} to {max(ends)}")
    return ServoDiagnosis(joint, servo, state, position, firmware, 2e-6 * delay, tuple(problems))
