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
    error_text,
)
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.settings import ServoMap, Watch
from roboyard.hardware.dynamixel.watch import NO_ANSWER

_MOST_ID = 253
_SHORT = 0.02
"""How long an answer is waited for where none is expected [s]."""


@dataclass(frozen=True, slots=True)
class ServoReport:
    """How a servo is.

    Attributes:
        joint: Its joint.
        servo: Its id.
        state: What it says of itself; None: it does not answer.
        angle: Of the joint [rad]; NaN without an answer.
        firmware: Its version.
        return_delay: Between request and answer [s].
        problems: What is wrong, in words; empty if nothing is.
    """

    joint: str
    servo: int
    state: ServoState | None
    angle: float
    firmware: int
    return_delay: float
    problems: tuple[str, ...]


def check_servos(port: ServoPort, servos: ServoMap, watch: Watch) -> list[ServoReport]:
    """How each servo is, in the order of the joints. Raises BusGoneError."""
    return [_report(port, servos, place, watch) for place in range(len(servos.ids))]


def strangers(port: ServoPort, servos: ServoMap) -> list[int]:
    """Ids that answer and are no joint's; asks every one that there can be. Raises BusGoneError."""
    patience, port.patience = port.patience, min(port.patience, _SHORT)  # most of them are not there
    others = (servo for servo in range(_MOST_ID + 1) if servo not in servos.ids)
    found = [servo for servo in others if not isinstance(port.ping(servo), str)]
    port.patience = patience
    return found


def _report(port: ServoPort, servos: ServoMap, place: int, watch: Watch) -> ServoReport:
    servo, joint = servos.ids[place], servos.joints[place]
    model, state = port.ping(servo), port.state(servo)
    if isinstance(model, str) or isinstance(state, str):
        why = next(said for said in (model, state) if isinstance(said, str))
        return ServoReport(joint, servo, None, float("nan"), 0, 0.0, (NO_ANSWER[why],))
    values = [port.read(servo, item) for item in (FIRMWARE, RETURN_DELAY, CW_LIMIT, CCW_LIMIT)]
    firmware, delay, low, high = (value if isinstance(value, int) else 0 for value in values)
    here = servos.zero.copy()
    here[place] = state.ticks
    angle = float(servos.angles(here)[place])
    problems = [error_text(state.errors)] if state.errors else []
    if model != MODEL.initial:
        problems.append(f"model {model} is no RX-64, {MODEL.initial}")
    if state.voltage < watch.low_voltage:
        problems.append(f"{state.voltage:.1f} V: {watch.low_voltage:.1f} V is the least")
    if state.temperature >= watch.temperature:
        problems.append(f"{state.temperature:.0f} °C: {watch.temperature:.0f} °C is the limit")
    if not servos.low[place] <= angle <= servos.high[place]:
        problems.append("the joint is beyond its limits: is its zero right?")
    ends = int(servos.ticks(servos.low)[place]), int(servos.ticks(servos.high)[place])
    if not low <= min(ends) or not max(ends) <= high:
        problems.append(f"its own limits of {low} to {high} leave out some of {min(ends)} to {max(ends)}")
    return ServoReport(joint, servo, state, angle, firmware, 2e-6 * delay, tuple(problems))
