"""Held keys and gamepads as a hand on the stick."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import PlanarTwist
from roboyard.control.teleoperation import (
    GamepadJointTeleop,
    GamepadState,
    JointJogCommand,
    KeyboardJointTeleop,
    KeyboardTeleop,
    KeyDecoder,
    KeyEvent,
    load_mapping,
    mapping_names,
)
from roboyard.control.teleoperation.keyboard import QUIT
from roboyard.errors import ConfigError, InputError, RoboyardError, UnknownNameError
from roboyard.hardware.joystick import Joystick, JoystickDisconnectedError, JoystickEvent, decode

EVENT = struct.Struct("<IhBB")


def type_key(keyboard: KeyboardTeleop, key: str, *times: float) -> None:
    for time in times:
        keyboard.on_key(KeyEvent(key), time)


# -- keys ------------------------------------------------------------------------------------------------------------
def test_tapped_key_is_held_and_repeated_key_ends_soon() -> None:
    keyboard = KeyboardTeleop(0.5, 1.0, initial_hold_time=0.7, repeat_hold_time=0.2)
    type_key(keyboard, "w", 0.0)
    assert keyboard.twist(0.69) == PlanarTwist(0.5, 0.0, 0.0)
    assert keyboard.twist(0.7) is None
    type_key(keyboard, "w", 1.0, 1.5, 1.53, 1.56)
    assert keyboard.twist(1.75) == PlanarTwist(0.5, 0.0, 0.0)
    assert keyboard.twist(1.77) is None


def test_earlier_key_is_held_while_the_later_repeats() -> None:
    keyboard = KeyboardTeleop(0.5, 1.0)
    type_key(keyboard, "w", 0.0, 0.5, 0.53)
    type_key(keyboard, "a", 0.6, 1.1, 1.13)
    assert keyboard.twist(1.2) == PlanarTwist(0.5, 0.0, 1.0)
    assert keyboard.twist(1.4) is None


def test_opposite_keys_replace_each_other() -> None:
    keyboard = KeyboardTeleop(0.5, 1.0)
    type_key(keyboard, "w", 0.0)
    type_key(keyboard, "s", 0.1)
    assert keyboard.twist(0.2) == PlanarTwist(-0.5, 0.0, 0.0)


def test_stop_key_releases_at_once_and_speeds_change() -> None:
    keyboard = KeyboardTeleop(0.5, 1.0)
    type_key(keyboard, "q", 0.0)
    assert keyboard.twist(0.01) == PlanarTwist(0.5, 0.0, 1.0)
    type_key(keyboard, " ", 0.02)
    assert keyboard.twist(0.02) is None
    type_key(keyboard, "+", 0.1, 0.2)
    type_key(keyboard, "-", 0.3)
    type_key(keyboard, "w", 0.4)
    assert keyboard.twist(0.4).vx == pytest.approx(0.55)


def test_reported_key_release_ends_the_hold() -> None:
    keyboard, keys = KeyboardTeleop(0.5, 1.0), KeyDecoder()
    for event in keys.feed("\x1b[119u\x1b[97;1:1u\x1b[119;1:2u"):
        keyboard.on_key(event, 0.0)
    assert keyboard.twist(100.0) == PlanarTwist(0.5, 0.0, 1.0)
    for event in keys.feed("\x1b[97;1:3u"):
        keyboard.on_key(event, 100.0)
    assert keyboard.twist(200.0) == PlanarTwist(0.5, 0.0, 0.0)


@given(st.lists(st.tuples(st.sampled_from("wasdqezc+- x"), st.floats(0.0, 0.5)), max_size=40))
def test_typing_keeps_speed_limits_and_stops_at_its_end(presses) -> None:
    keyboard, now = KeyboardTeleop(0.5, 1.0), 0.0
    for key, pause in presses:
        now += pause
        keyboard.on_key(KeyEvent(key), now)
        twist = keyboard.twist(now) or PlanarTwist()
        assert abs(twist.vx) <= keyboard.speed
        assert abs(twist.wz) <= keyboard.angular_speed
    assert keyboard.twist(now + 0.71) is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("wA", ["w", "a"]),
        ("\x1b[A\x1bOD\x1b[B\x1b[C", ["up", "left", "down", "right"]),
        ("\x1b[99;5u", [QUIT]),
        ("\x03", [QUIT]),
        ("\x1b[1;2P\x1b[5~w", ["w"]),
        ("\x1b\x1b[A", ["up"]),
    ],
)
def test_key_decoder_finds_keys_in_any_pieces(text, keys) -> None:
    for cut in range(len(text) + 1):
        decoder = KeyDecoder()
        assert [event.key for event in [*decoder.feed(text[:cut]), *decoder.feed(text[cut:])]] == keys


@given(st.text(max_size=60))
def test_key_decoder_accepts_any_text(text) -> None:
    decoder, one = KeyDecoder(), KeyDecoder()
    assert decoder.feed(text) == [event for character in text for event in one.feed(character)]


# -- gamepads --------------------------------------------------------------------------------------------------------
def make_state(*events: tuple[str, int, int]) -> GamepadState:
    state = GamepadState()
    state.update(JoystickEvent(*event) for event in events)
    return state


@pytest.mark.parametrize("name", mapping_names())
def test_gamepad_maps_move_only_while_enabled(name) -> None:
    mapping = load_mapping(name)
    enable_button = mapping.enable.buttons[0]
    state = make_state(("axis", mapping.forward.axis, -32767), ("axis", mapping.angular.axis, -32767))
    assert mapping.twist(state, 0.5, 1.0) is None
    state.update([JoystickEvent("button", enable_button, 1)])
    assert mapping.twist(state, 0.5, 1.0) == PlanarTwist(0.5, 0.0, 1.0), "up and left are forward and left"
    state.update([JoystickEvent("button", enable_button, 0)])
    assert mapping.twist(state, 0.5, 1.0) is None


@given(st.integers(-32768, 32767))
def test_gamepad_axis_rises_continuously_from_deadzone(value) -> None:
    mapping = load_mapping("generic")
    state = make_state(("axis", 1, value), ("button", 4, 1))
    speed = mapping.twist(state, 1.0, 1.0).vx
    assert abs(speed) <= 1.0
    assert speed == pytest.approx(0.0) or speed * -value > 0
    assert abs(speed) == pytest.approx(max(0.0, min(abs(value) / 32767, 1.0) - 0.1) / 0.9, abs=1e-4)


def test_gamepad_events_are_decoded_as_the_kernel_writes() -> None:
    data = EVENT.pack(7, -32767, 0x82, 1) + EVENT.pack(8, 1, 0x01, 4) + EVENT.pack(9, 1, 0x40, 0)
    assert list(decode(data)) == [JoystickEvent("axis", 1, -32767), JoystickEvent("button", 4, 1)]


def test_gamepad_device_is_read_in_pieces_and_disconnection_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "js0"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    with Joystick(path) as joystick:
        assert joystick.read() == []
        data = b"".join(EVENT.pack(k, k, 2, k % 8) for k in range(100))
        os.write(writer, data[:5])
        assert joystick.read() == []
        os.write(writer, data[5:])
        assert [event.value for event in joystick.read()] == list(range(100))
        os.close(writer)
        with pytest.raises(JoystickDisconnectedError):
            joystick.read()


def test_device_that_is_no_gamepad_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot open gamepad"):
        Joystick(tmp_path / "js7")
    with pytest.raises(UnknownNameError, match="ps3"):
        load_mapping("ps9")
    with pytest.raises(InputError, match="no file"):
        load_mapping("./mine.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "", "[1, 2]", "forward: {axis: 1}", "forward: {axis: -1}\nangular: {axis: 0}\nenable: {buttons: [4]}",
        "forward: {axis: 1}\nangular: {axis: 0}\nenable: {buttons: []}",
        "forward: {axis: 1}\nangular: {axis: 0}\nenable: {buttons: [4]}\nlights: on", "forward: {axis: .nan}",
    ],
)  # fmt: skip
def test_invalid_gamepad_map_is_refused(text, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="mine.yaml"):
        load_mapping(str(path))


@given(st.binary(max_size=200))
def test_gamepad_decoder_accepts_any_bytes(data) -> None:
    state = GamepadState()
    state.update(decode(data[: len(data) - len(data) % 8]))
    try:
        twist = load_mapping("ps3").twist(state, 0.5, 1.0)
    except RoboyardError:
        pytest.fail("every state of a gamepad means something")
    assert twist is None or max(abs(twist.vx), abs(twist.wz) / 2.0) <= 1.0


# -- arms --------------------------------------------------------------------------------------------------------------
def test_digit_keys_choose_a_joint_to_step() -> None:
    keyboard = KeyboardJointTeleop(step=0.1)
    assert keyboard.read_command() is None
    for key in "3rrf":
        keyboard.on_key(KeyEvent(key))
    assert keyboard.read_command() == JointJogCommand(3, pytest.approx(0.1))
    assert keyboard.read_command() is None
    keyboard.on_key(KeyEvent("r", "pressed"))
    keyboard.on_key(KeyEvent("r", "released"))
    keyboard.on_key(KeyEvent("5"))
    assert keyboard.read_command() is None, "what was pressed for another joint is forgotten"


def test_gamepad_moves_chosen_joint_only_while_enabled() -> None:
    mapping = load_mapping("ps3").joints
    assert mapping is not None
    gamepad, arm = GamepadState(), GamepadJointTeleop(mapping, speed=0.2)
    gamepad.update([JoystickEvent("axis", 4, -32767)])
    assert arm.read_command(gamepad) is None
    gamepad.update([JoystickEvent("button", 6, 1)])
    assert arm.read_command(gamepad) == JointJogCommand(1, speed=pytest.approx(0.2))
    for _ in range(12):
        gamepad.update([JoystickEvent("button", 16, 1)])
        arm.read_command(gamepad)
        arm.read_command(gamepad)  # held on, it chooses once
        gamepad.update([JoystickEvent("button", 16, 0)])
        command = arm.read_command(gamepad)
    assert command is not None
    assert command.joint == 9
    gamepad.update([JoystickEvent("axis", 4, 0)])
    assert arm.read_command(gamepad) == JointJogCommand(9, speed=0.0)
    assert load_mapping("generic").joints is None
