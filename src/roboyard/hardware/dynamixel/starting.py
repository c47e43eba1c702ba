"""The first minute with servos: who answers, whether all are well, and taking each where it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from roboyard.hardware.dynamixel.control_table import (
    CCW_MARGIN,
    CCW_SLOPE,
    CW_MARGIN,
    CW_SLOPE,
    GOAL_POSITION,
    MODEL,
    MOVING_SPEED,
    PUNCH,
    TORQUE_ENABLE,
    ServoState,
    error_text,
    speed_steps,
)
from roboyard.hardware.dynamixel.errors import BusGoneError, ServoFaultError
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.settings import ServoMap, ServosFile
from roboyard.hardware.dynamixel.watch import NO_ANSWER, Missing, ServoWatch

Told = TypeVar("Told", ServoState, int)

_TRIES = 3
_NOTHING = "nothing was moved"


def find_servos(port: ServoPort, settings: ServosFile, servos: ServoMap) -> dict[int, ServoState]:
    """What all servos say of themselves, by id.

    Raises:
        ServoFaultError: one does not answer, is of another kind, or is not well.
    """
    joints = dict(zip(servos.ids, servos.joints, strict=True))
    try:
        found = {servo: _tried(partial(port.ping, servo)) for servo in servos.ids}
        silent = [servo for servo, model in found.items() if isinstance(model, str)]
        if len(silent) == len(found):
            raise ServoFaultError(
                f"no servo answers at {settings.baud} baud", port=port.path,
                done="is the power on, the cable plugged in, the baud rate right?",
            )  # fmt: skip
        if silent:
            names = ", ".join(f"{servo} (joint {joints[servo]})" for servo in silent)
            raise ServoFaultError(
                f"no answer from servo{'s' * (len(silent) > 1)} {names}", port=port.path,
                done="look at cables and ids; --check lists what answers",
            )  # fmt: skip
        for servo, model in found.items():
            if model != MODEL.initial:
                raise _fault(port, servo, joints[servo], f"model {model} is no RX-64, {MODEL.initial}")
        return {servo: _healthy(port, settings, servo, joint) for servo, joint in joints.items()}
    except BusGoneError as error:
        raise ServoFaultError(error.what, port=port.path, done=_NOTHING) from error


def take_servos(port: ServoPort, settings: ServosFile, servos: ServoMap, states: dict[int, ServoState]) -> None:
    """Set each servo up, its goal where it is, and let it hold that.

    Raises:
        ServoFaultError: one does not take what it is told.
    """
    try:
        for servo, joint in zip(servos.ids, servos.joints, strict=True):
            for item, value in (
                (CW_MARGIN, settings.margin), (CCW_MARGIN, settings.margin), (CW_SLOPE, settings.slope),
                (CCW_SLOPE, settings.slope), (PUNCH, settings.punch),
                (MOVING_SPEED, speed_steps(settings.start_speed)), (GOAL_POSITION, states[servo].ticks),
                (TORQUE_ENABLE, 1),
            ):  # fmt: skip
                errors = _tried(partial(port.write, servo, item, value))
                if isinstance(errors, str):
                    raise _fault(port, servo, joint, NO_ANSWER[errors])
                if errors:
                    raise _fault(port, servo, joint, error_text(errors))
    except BusGoneError as error:
        raise ServoFaultError(error.what, port=port.path, done=_NOTHING) from error


def _healthy(port: ServoPort, settings: ServosFile, servo: int, joint: str) -> ServoState:
    watch = ServoWatch(settings.watch)
    state: ServoState | Missing = "silent"
    for _ in range(_TRIES):  # low voltage is believed only after some readings
        state = _tried(partial(port.state, servo))
        if isinstance(state, str):
            break
        if cause := watch.heard(servo, state, 0.0):
            raise _fault(port, servo, joint, cause.what)
    if isinstance(state, str):
        raise _fault(port, servo, joint, NO_ANSWER[state])
    return state


def _tried(call: Callable[[], Told | Missing]) -> Told | Missing:
    """What comes of a request that is repeated if it is not answered."""
    found = call()
    for _ in range(_TRIES - 1):
        if not isinstance(found, str):
            break
        found = call()
    return found


def _fault(port: ServoPort, servo: int, joint: str, what: str) -> ServoFaultError:
    return ServoFaultError(what, port=port.path, servo=servo, joint=joint, done=_NOTHING)
