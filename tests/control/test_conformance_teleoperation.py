"""Laws of all teleoperation devices: motion only while the operator enables it, within the maximum speeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import PlanarTwist
from roboyard.control.teleoperation import (
    GamepadMapping,
    GamepadState,
    KeyboardTeleop,
    KeyEvent,
    load_mapping,
    mapping_names,
)
from roboyard.hardware.joystick import JoystickEvent

SPEED, ANGULAR_SPEED = 0.8, 1.5


class Operation(NamedTuple):
    """What an operator does with a device, and what the device then commands."""

    push_forward: Callable[[], None]
    release: Callable[[], None]
    twist: Callable[[], PlanarTwist | None]


def operate_keyboard() -> Operation:
    keyboard = KeyboardTeleop(SPEED, ANGULAR_SPEED)
    return Operation(
        lambda: keyboard.on_key(KeyEvent("w", "pressed"), 0.0),
        lambda: keyboard.on_key(KeyEvent("w", "released"), 0.0),
        lambda: keyboard.twist(0.0),
    )


def operate_gamepad(mapping: GamepadMapping) -> Operation:
    gamepad = GamepadState()
    (button, *_), axis = mapping.enable.buttons, mapping.forward

    def push_forward() -> None:
        value = -32767 if axis.scale > 0.0 else 32767
        gamepad.update([JoystickEvent("axis", axis.axis, value), JoystickEvent("button", button, 1)])

    return Operation(
        push_forward,
        lambda: gamepad.update([JoystickEvent("button", button, 0)]),
        lambda: mapping.twist(gamepad, SPEED, ANGULAR_SPEED),
    )


DEVICES: list[Callable[[], Operation]] = [
    operate_keyboard,
    *(lambda name=name: operate_gamepad(load_mapping(name)) for name in mapping_names()),
]
each_device = pytest.mark.parametrize("operate", DEVICES, ids=["keyboard", *mapping_names()])


@each_device
def test_device_commands_motion_only_while_it_is_enabled(operate: Callable[[], Operation]) -> None:
    device = operate()
    assert device.twist() is None
    device.push_forward()
    assert device.twist() == pytest.approx((SPEED, 0.0, 0.0))
    device.release()
    assert device.twist() is None


@pytest.mark.parametrize("name", mapping_names())
@given(
    events=st.lists(
        st.builds(
            JoystickEvent, st.sampled_from(["axis", "button"]), st.integers(0, 80), st.integers(-(2**15), 2**15 - 1)
        ),
        max_size=30,
    )
)
def test_gamepad_stays_within_the_maximum_speeds(name: str, events: list[JoystickEvent]) -> None:
    mapping, gamepad = load_mapping(name), GamepadState()
    gamepad.update(events)
    twist = mapping.twist(gamepad, SPEED, ANGULAR_SPEED)
    assert (twist is None) == (not gamepad.is_pressed(mapping.enable))
    if twist is not None:
        scales = [
            1.0 if axis is None else abs(axis.scale) for axis in (mapping.forward, mapping.lateral, mapping.angular)
        ]
        for value, speed, scale in zip(twist, (SPEED, SPEED, ANGULAR_SPEED), scales, strict=True):
            assert abs(value) <= speed * scale * mapping.turbo_factor + 1e-12
