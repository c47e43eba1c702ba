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
    JointWish,
    KeyDecoder,
    KeyEvent,
    KeyHand,
    KeyJoints,
    PadArm,
    PadState,
    find_map,
    map_names,
)
from roboyard.control.teleoperation.keys import QUIT
from roboyard.errors import ConfigError, InputError, RoboyardError, UnknownNameError
from roboyard.hardware.joystick import Joystick, JoystickDisconnectedError, JoystickEvent, decode

EVENT = struct.Struct("<IhBB")


def typed(hand: KeyHand, key: str, *times: float) -> None:
    for time in times:
        hand.take(KeyEvent(key), time)


# -- keys ------------------------------------------------------------------------------------------------------------
def test_tapped_key_is_held_and_repeated_key_ends_soon() -> None:
    hand = KeyHand(0.5, 1.0, first=0.7, repeat=0.2)
    typed(hand, "w", 0.0)
    assert hand.twist(0.69) == PlanarTwist(0.5, 0.0, 0.0)
    assert hand.twist(0.7) is None
    typed(hand, "w", 1.0, 1.5, 1.53, 1.56)
    assert hand.twist(1.75) == PlanarTwist(0.5, 0.0, 0.0)
    assert hand.twist(1.77) is None


def test_earlier_key_is_held_while_the_later_repeats() -> None:
    hand = KeyHand(0.5, 1.0)
    typed(hand, "w", 0.0, 0.5, 0.53)
    typed(hand, "a", 0.6, 1.1, 1.13)
    assert hand.twist(1.2) == PlanarTwist(0.5, 0.0, 1.0)
    assert hand.twist(1.4) is None


def test_opposite_keys_replace_each_other() -> None:
    hand = KeyHand(0.5, 1.0)
    typed(hand, "w", 0.0)
    typed(hand, "s", 0.1)
    assert hand.twist(0.2) == PlanarTwist(-0.5, 0.0, 0.0)


def test_stop_key_releases_at_once_and_speeds_change() -> None:
    hand = KeyHand(0.5, 1.0)
    typed(hand, "q", 0.0)
    assert hand.twist(0.01) == PlanarTwist(0.5, 0.0, 1.0)
    typed(hand, " ", 0.02)
    assert hand.twist(0.02) is None
    typed(hand, "+", 0.1, 0.2)
    typed(hand, "-", 0.3)
    typed(hand, "w", 0.4)
    assert hand.twist(0.4).vx == pytest.approx(0.55)


def test_reported_key_release_ends_the_hold() -> None:
    hand, keys = KeyHand(0.5, 1.0), KeyDecoder()
    for event in keys.feed("\x1b[119u\x1b[97;1:1u\x1b[119;1:2u"):
        hand.take(event, 0.0)
    assert hand.twist(100.0) == PlanarTwist(0.5, 0.0, 1.0)
    for event in keys.feed("\x1b[97;1:3u"):
        hand.take(event, 100.0)
    assert hand.twist(200.0) == PlanarTwist(0.5, 0.0, 0.0)


@given(st.lists(st.tuples(st.sampled_from("wasdqezc+- x"), st.floats(0.0, 0.5)), max_size=40))
def test_typing_keeps_speed_limits_and_stops_at_its_end(presses) -> None:
    hand, now = KeyHand(0.5, 1.0), 0.0
    for key, pause in presses:
        now += pause
        hand.take(KeyEvent(key), now)
        wanted = hand.twist(now) or PlanarTwist()
        assert abs(wanted.vx) <= hand.speed
        assert abs(wanted.wz) <= hand.turn
    assert hand.twist(now + 0.71) is None


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
def pad(*events: tuple[str, int, int]) -> PadState:
    state = PadState()
    state.take(JoystickEvent(*event) for event in events)
    return state


@pytest.mark.parametrize("name", map_names())
def test_gamepad_maps_move_only_with_their_deadman(name) -> None:
    means = find_map(name)
    deadman = means.deadman.any[0]
    state = pad(("axis", means.forward.axis, -32767), ("axis", means.turn.axis, -32767))
    assert means.twist(state, 0.5, 1.0) is None
    state.take([JoystickEvent("button", deadman, 1)])
    assert means.twist(state, 0.5, 1.0) == PlanarTwist(0.5, 0.0, 1.0), "up and left are forward and left"
    state.take([JoystickEvent("button", deadman, 0)])
    assert means.twist(state, 0.5, 1.0) is None


@given(st.integers(-32768, 32767))
def test_gamepad_axis_rises_continuously_from_deadzone(value) -> None:
    means = find_map("generic")
    state = pad(("axis", 1, value), ("button", 4, 1))
    speed = means.twist(state, 1.0, 1.0).vx
    assert abs(speed) <= 1.0
    assert speed == pytest.approx(0.0) or speed * -value > 0
    assert abs(speed) == pytest.approx(max(0.0, min(abs(value) / 32767, 1.0) - 0.1) / 0.9, abs=1e-4)


def test_gamepad_events_are_decoded_as_the_kernel_writes() -> None:
    data = EVENT.pack(7, -32767, 0x82, 1) + EVENT.pack(8, 1, 0x01, 4) + EVENT.pack(9, 1, 0x40, 0)
    assert list(decode(data)) == [JoystickEvent("axis", 1, -32767), JoystickEvent("button", 4, 1)]


def test_gamepad_device_is_read_in_pieces_and_found_gone(tmp_path: Path) -> None:
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
        find_map("ps9")
    with pytest.raises(InputError, match="no file"):
        find_map("./mine.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "", "[1, 2]", "forward: {axis: 1}", "forward: {axis: -1}\nturn: {axis: 0}\ndeadman: {any: [4]}",
        "forward: {axis: 1}\nturn: {axis: 0}\ndeadman: {any: []}",
        "forward: {axis: 1}\nturn: {axis: 0}\ndeadman: {any: [4]}\nlights: on", "forward: {axis: .nan}",
    ],
)  # fmt: skip
def test_invalid_gamepad_map_is_refused(text, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="mine.yaml"):
        find_map(str(path))


@given(st.binary(max_size=200))
def test_gamepad_decoder_accepts_any_bytes(data) -> None:
    state = PadState()
    state.take(decode(data[: len(data) - len(data) % 8]))
    try:
        twist = find_map("ps3").twist(state, 0.5, 1.0)
    except RoboyardError:
        pytest.fail("every state of a gamepad means something")
    assert twist is None or max(abs(twist.vx), abs(twist.wz) / 2.0) <= 1.0


# -- arms --------------------------------------------------------------------------------------------------------------
def test_digit_keys_choose_a_joint_to_step() -> None:
    hand = KeyJoints(step=0.1)
    assert hand.wish() is None
    for key in "3rrf":
        hand.take(KeyEvent(key))
    assert hand.wish() == JointWish(3, pytest.approx(0.1))
    assert hand.wish() is None
    hand.take(KeyEvent("r", "pressed"))
    hand.take(KeyEvent("r", "released"))
    hand.take(KeyEvent("5"))
    assert hand.wish() is None, "what was pressed for another joint is forgotten"


def test_gamepad_moves_chosen_joint_only_with_deadman() -> None:
    means = find_map("ps3").joints
    assert means is not None
    pad, arm = PadState(), PadArm(means, speed=0.2)
    pad.take([JoystickEvent("axis", 4, -32767)])
    assert arm.wish(pad) is None
    pad.take([JoystickEvent("button", 6, 1)])
    assert arm.wish(pad) == JointWish(1, speed=pytest.approx(0.2))
    for _ in range(12):
        pad.take([JoystickEvent("button", 16, 1)])
        arm.wish(pad)
        arm.wish(pad)  # held on, it chooses once
        pad.take([JoystickEvent("button", 16, 0)])
        wish = arm.wish(pad)
    assert wish is not None
    assert wish.joint == 9
    pad.take([JoystickEvent("axis", 4, 0)])
    assert arm.wish(pad) == JointWish(9, speed=0.0)
    assert find_map("generic").joints is None
