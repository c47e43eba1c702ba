"""Looks at a bus of servos without moving anything: who answers, and how each is."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.hardware.dynamixel.control_table import (
    CCW_LIMIT,
    CW_LIMIT,
    FIRMWARE,
    MODEL,
    RETURN_DELAY,
    ServoState,
    describe_errors,
)
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.settings import FaultLimits, ServoMap
from roboyard.hardware.dynamixel.watch import REPLY_FAILURE_TEXT

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
    if state.voltage < limits.low_voltage:
        problems.append(f"{state.voltage:.1f} V: {limits.low_voltage:.1f} V is the least")
    if state.temperature >= limits.temperature:
        problems.append(f"{state.temperature:.0f} °C: {limits.temperature:.0f} °C is the limit")
    if not servos.min_position[index] <= position <= servos.max_position[index]:
        problems.append("the joint is beyond its limits: is its zero right?")
    ends = int(servos.to_ticks(servos.min_position)[index]), int(servos.to_ticks(servos.max_position)[index])
    if not low <= min(ends) or not max(ends) <= high:
        problems.append(f"its own limits of {low} to {high} leave out some of {min(ends)} to {max(ends)}")
    return ServoDiagnosis(joint, servo, state, position, firmware, 2e-6 * delay, tuple(problems))
