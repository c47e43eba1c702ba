"""The first minute with servos: who answers, whether all are well, and taking each where it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from roboyard.hardware.dynamixel.control_table import (
    CCW_COMPLIANCE_MARGIN,
    CCW_COMPLIANCE_SLOPE,
    CW_COMPLIANCE_MARGIN,
    CW_COMPLIANCE_SLOPE,
    GOAL_POSITION,
    MODEL,
    MOVING_SPEED,
    PUNCH,
    TORQUE_ENABLE,
    ServoState,
    describe_errors,
    to_speed_units,
)
from roboyard.hardware.dynamixel.errors import PortLostError, ServoFaultError
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.settings import ServoMap, ServosConfig
from roboyard.hardware.dynamixel.watch import REPLY_FAILURE_TEXT, ReplyFailure, ServoMonitor

ReplyT = TypeVar("ReplyT", ServoState, int)

_MAX_ATTEMPTS = 3
_NO_MOTION = "nothing was moved"


def find_servos(port: ServoPort, settings: ServosConfig, servos: ServoMap) -> dict[int, ServoState]:
    """What all servos say of themselves, by id.

    Raises:
        ServoFaultError: one does not answer, is of another kind, or is not well.
    """
    joints = dict(zip(servos.ids, servos.joints, strict=True))
    try:
        models = {servo: _retry(partial(port.ping, servo)) for servo in servos.ids}
        unanswered = [servo for servo, model in models.items() if isinstance(model, str)]
        if len(unanswered) == len(models):
            raise ServoFaultError(
                f"no servo answers at {settings.baud} baud", port=port.path,
                action="is the power on, the cable plugged in, the baud rate right?",
            )  # fmt: skip
        if unanswered:
            names = ", ".join(f"{servo} (joint {joints[servo]})" for servo in unanswered)
            raise ServoFaultError(
                f"no answer from servo{'s' * (len(unanswered) > 1)} {names}", port=port.path,
                action="look at cables and ids; --check lists what answers",
            )  # fmt: skip
        for servo, model in models.items():
            if model != MODEL.initial:
                raise _fault(port, servo, joints[servo], f"model {model} is no RX-64, {MODEL.initial}")
        return {servo: _require_healthy(port, settings, servo, joint) for servo, joint in joints.items()}
    except PortLostError as error:
        raise ServoFaultError(error.message, port=port.path, action=_NO_MOTION) from error


def enable_servos(port: ServoPort, settings: ServosConfig, servos: ServoMap, states: dict[int, ServoState]) -> None:
    """Set each servo up, its goal where it is, and let it hold that.

    Raises:
        ServoFaultError: one does not take what it is told.
    """
    try:
        for servo, joint in zip(servos.ids, servos.joints, strict=True):
            for item, value in (
                (CW_COMPLIANCE_MARGIN, settings.margin), (CCW_COMPLIANCE_MARGIN, settings.margin),
                (CW_COMPLIANCE_SLOPE, settings.slope), (CCW_COMPLIANCE_SLOPE, settings.slope), (PUNCH, settings.punch),
                (MOVING_SPEED, to_speed_units(settings.start_speed)), (GOAL_POSITION, states[servo].ticks),
                (TORQUE_ENABLE, 1),
            ):  # fmt: skip
                errors = _retry(partial(port.write, servo, item, value))
                if isinstance(errors, str):
                    raise _fault(port, servo, joint, REPLY_FAILURE_TEXT[errors])
                if errors:
                    raise _fault(port, servo, joint, describe_errors(errors))
    except PortLostError as error:
        raise ServoFaultError(error.message, port=port.path, action=_NO_MOTION) from error


def _require_healthy(port: ServoPort, settings: ServosConfig, servo: int, joint: str) -> ServoState:
    monitor = ServoMonitor(settings.watch)
    state: ServoState | ReplyFailure = "timeout"
    for _ in range(_MAX_ATTEMPTS):  # low voltage is believed only after some readings
        state = _retry(partial(port.read_state, servo))
        if isinstance(state, str):
            break
        if cause := monitor.on_state(servo, state, 0.0):
            raise _fault(port, servo, joint, cause.reason)
    if isinstance(state, str):
        raise _fault(port, servo, joint, REPLY_FAILURE_TEXT[state])
    return state


def _retry(call: Callable[[], ReplyT | ReplyFailure]) -> ReplyT | ReplyFailure:
    """What comes of a request that is repeated if it is not answered."""
    reply = call()
    for _ in range(_MAX_ATTEMPTS - 1):
        if not isinstance(reply, str):
            break
        reply = call()
    return reply


def _fault(port: ServoPort, servo: int, joint: str, message: str) -> ServoFaultError:
    return ServoFaultError(message, port=port.path, servo=servo, joint=joint, action=_NO_MOTION)
