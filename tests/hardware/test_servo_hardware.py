"""Joints on servos: set-points arrive, nothing lurches, and whatever fails ends in a stop and one error."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hardware.benches import PERIOD, Bench, bench, servo_map

from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware import Hardware, JointCommand
from roboyard.hardware.dynamixel.approach import Approach
from roboyard.hardware.dynamixel.checking import check_servos, strangers
from roboyard.hardware.dynamixel.control_table import (
    CCW_LIMIT,
    CW_SLOPE,
    GOAL_POSITION,
    MODEL,
    MOVING_SPEED,
    TICK,
    TORQUE_ENABLE,
)
from roboyard.hardware.dynamixel.emulation.bus import Injection, Trouble
from roboyard.hardware.dynamixel.errors import ServoFaultError
from roboyard.hardware.dynamixel.loop import ServoLoop
from roboyard.hardware.dynamixel.settings import Watch

ANGLES = st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3)


def told(*values: float, joints: str = "abc") -> JointCommand:
    return JointCommand("position", tuple(joints), np.array(values))


# -- where it goes -----------------------------------------------------------------------------------------------------
def test_positions_come_back_within_a_step() -> None:
    with bench(3) as made:
        assert isinstance(made.hardware, Hardware)
        rng = np.random.default_rng(2)
        for _ in range(4):
            wanted = rng.uniform(-1.5, 1.5, 3)
            made.hardware.write(told(*wanted))
            made.run(9.0 if made.clock.now == 0.0 else 3.5)
            found = made.hardware.read()
            # half a step of the goal, one of the margin, half of the reading
            np.testing.assert_allclose(found.position, wanted, atol=2.01 * TICK)
            np.testing.assert_allclose(found.position, made.angles(), atol=0.51 * TICK)
            assert found.time_ns == round(made.clock.now * 1e9)
        assert made.port.statistics.answered == made.port.statistics.sent


@given(q=ANGLES)
def test_ticks_and_angles_are_inverse(q: list[float]) -> None:
    servos = servo_map(3)
    np.testing.assert_allclose(servos.angles(servos.ticks(q)), q, atol=0.5001 * TICK)


@given(start=ANGLES, goals=st.lists(ANGLES, min_size=1, max_size=4), share=st.floats(0.1, 1.0))
@settings(max_examples=60, deadline=None)
def test_the_first_command_is_approached_slowly_and_the_rest_no_faster_than_joints(
    start: list[float], goals: list[list[float]], share: float
) -> None:
    approach = Approach(np.array(start), np.full(3, 1.0), share)
    at = approach.at
    first = np.array(goals[0])
    while not approach.arrived:
        now = approach.advance(PERIOD, first)
        assert (np.abs(now - at) <= share * PERIOD * (1 + 1e-6)).all()
        at = now
    np.testing.assert_allclose(approach.advance(PERIOD, first), first, atol=1e-9)
    for goal in goals[1:]:
        for _ in range(250):
            at, now = approach.at, approach.advance(PERIOD, np.array(goal))
            assert (np.abs(now - at) <= PERIOD * (1 + 1e-9)).all()
        np.testing.assert_allclose(now, goal, atol=1e-9)


def test_it_starts_where_the_joints_are_and_moves_off_gently() -> None:
    with bench(3, ticks=[300.0, 600.0, 512.0], start=False) as made:
        for servo in made.emulated:
            servo.put(GOAL_POSITION, 900)  # what somebody wanted yesterday
        before = made.angles()
        made.hardware.start()
        made.settle()
        np.testing.assert_allclose(made.angles(), before, atol=TICK)
        assert made.torque() == [1, 1, 1]
        made.run(0.5)  # nobody says anything: nothing moves
        np.testing.assert_allclose(made.angles(), before, atol=TICK)
        made.hardware.write(told(1.0, 1.0, -1.0))
        at, fastest = made.angles(), 0.0
        for _ in range(400):
            made.run(PERIOD)
            fastest = max(fastest, float(np.abs(made.angles() - at).max()) / PERIOD)
            at = made.angles()
        assert fastest < 0.5 + 2 * TICK / PERIOD
        np.testing.assert_allclose(at, [1.0, 1.0, -1.0], atol=2 * TICK)


def test_limits_cut_off_and_say_so() -> None:
    with bench(3) as made:
        made.hardware.write(told(5.0, joints="b"))
        made.run(8.0)
        np.testing.assert_allclose(made.angles(), [0.0, 2.0, 0.0], atol=2 * TICK)
        assert made.hardware.clipped == 1


def test_commands_that_servos_do_not_take_are_refused() -> None:
    with bench(3) as made:
        assert made.hardware.command_modes("a") == ("position",)
        for command in (
            JointCommand("velocity", ("a",), np.zeros(1)),
            JointCommand("position", ("z",), np.zeros(1)),
        ):
            with pytest.raises(UnknownNameError):
                made.hardware.write(command)
        for bad in (told(math.nan, 0.0, 0.0), JointCommand("position", ("a", "b"), np.zeros(1))):
            with pytest.raises(InputError, match="finite number"):
                made.hardware.write(bad)
        with pytest.raises(InputError, match="positions alone"):
            made.hardware.write(JointCommand("position", ("a",), np.zeros(1), np.ones(1)))


# -- what goes wrong at the start --------------------------------------------------------------------------------------
def test_missing_and_foreign_servos_are_named_before_anything_moves() -> None:
    with bench(3, [Injection(0.0, "mute", 2)], start=False, patience=0.05) as made:
        with pytest.raises(ServoFaultError, match=r"no answer from servo 2 \(joint b\)"):
            made.hardware.start()
        assert made.torque() == [0, 0, 0]
        found = check_servos(made.port, made.hardware.servos, Watch())
        assert [one.problems for one in found] == [(), ("does not answer",), ()]
    with (
        bench(3, [Injection(0.0, "mute")], start=False, patience=0.05) as made,
        pytest.raises(ServoFaultError, match="no servo answers at 1000000 baud"),
    ):
        made.hardware.start()
    with bench(3, start=False) as made:
        made.emulated[1].put(MODEL, 29)
        with pytest.raises(ServoFaultError, match=r"servo 2 \(joint b\): model 29 is no RX-64"):
            made.hardware.start()
        assert made.torque() == [0, 0, 0]
    with bench(3, [Injection(0.0, "sag", 3)], start=False) as made:
        with pytest.raises(ServoFaultError, match=r"servo 3 \(joint c\): 9.5 V: 12.0 V is the least"):
            made.hardware.start()
        assert made.torque() == [0, 0, 0]
    with bench(3, ticks=[900.0], start=False) as made:
        made.emulated[0].put(CCW_LIMIT, 800)
        with pytest.raises(ServoFaultError, match=r"servo 1 \(joint a\): its goal is beyond its angle limits"):
            made.hardware.start()
        made.emulated[0].put(CCW_LIMIT, 1023)


def test_a_servo_of_another_id_is_found() -> None:
    with bench(3, [Injection(0.0, "renumber", 2)], start=False, patience=0.004) as made:
        looks = (strangers(made.port, made.hardware.servos) for _ in range(4))  # a busy machine may miss it
        assert any(found == [102] for found in looks)


# -- what goes wrong later ---------------------------------------------------------------------------------------------
def walking(made: Bench) -> None:
    """On its way to somewhere, and told to go on."""
    made.hardware.write(told(1.5, -1.5, 1.5))
    made.run(2.0)


@pytest.mark.parametrize(
    ("what", "said", "most"),
    [
        ("mute", "does not answer: 3 requests in a row", 0.2),
        ("renumber", "does not answer: 3 requests in a row", 0.2),
        ("damage", "11 damaged packets within a second", 0.4),
        ("lose", "11 damaged packets within a second", 0.4),
        ("heat", "it is overheating", 0.1),
        ("sag", "9.5 V: 12.0 V is the least", 0.3),
        ("overload", "it is overloaded", 0.1),
    ],
)
def test_a_fault_stops_all_servos_and_names_the_one(what: Trouble, said: str, most: float) -> None:
    with bench(3, [Injection(2.5, what, 2)], patience=0.1) as made:
        walking(made)
        assert made.hardware.fault is None
        assert made.until_fault(3.0) <= 0.5 + most
        with pytest.raises(ServoFaultError, match=said) as caught:
            made.hardware.read()
        assert (caught.value.servo, caught.value.joint) == (2, "b")
        assert "servo 2 (joint b)" in str(caught.value)
        assert "all servos hold their positions" in str(caught.value)
        with pytest.raises(ServoFaultError):
            made.hardware.write(told(0.0, 0.0, 0.0))
        well = [0, 2]
        stopped = made.angles()[well]
        made.settle()
        np.testing.assert_allclose(made.angles()[well], stopped, atol=0.5 * 0.06 + TICK)  # what it coasts
        assert [made.torque()[k] for k in well] == [1, 1]
        rest = made.angles()
        made.run(1.0)  # nothing goes on
        np.testing.assert_allclose(made.angles(), rest, atol=1e-12)


def test_servos_let_go_where_the_settings_say_so() -> None:
    with bench(3, [Injection(2.5, "heat", 1)], watch=Watch(then="release")) as made:
        walking(made)
        made.until_fault(3.0)
        with pytest.raises(ServoFaultError, match="all servos were let go"):
            made.hardware.check()
        made.settle()
        assert made.torque() == [0, 0, 0]


def test_an_unplugged_cable_leaves_servos_at_their_goals() -> None:
    with bench(3, [Injection(2.5, "unplug")]) as made:
        walking(made)
        assert made.until_fault(3.0) <= 0.6
        with pytest.raises(ServoFaultError, match="the port is gone.*the servos stay at the goals"):
            made.hardware.check()
        for servo, at in zip(made.emulated, made.hardware.servos.ticks(made.angles()), strict=True):
            assert abs(servo.get(GOAL_POSITION) - at) <= 0.5 * 0.1 / TICK


def test_a_few_lost_answers_stop_nothing() -> None:
    with bench(3, [Injection(1.0, "mute", 2)], watch=Watch(silent=30), patience=0.002) as made:
        made.hardware.write(told(0.5, 0.5, 0.5))
        made.run(1.3)
        assert made.hardware.fault is None
        assert made.port.statistics.silent > 5
        assert made.hardware.read().position[0] > 0.1


def test_releasing_and_checking_move_nothing() -> None:
    with bench(3, ticks=[400.0, 512.0, 620.0]) as made:
        made.emulated[2].temperature = 78.0
        before = made.angles()
        made.settle()
        found = check_servos(made.port, made.hardware.servos, Watch())
        assert [one.angle for one in found] == pytest.approx(before.tolist(), abs=TICK)
        assert [bool(one.problems) for one in found] == [False, False, True]
        assert "78 °C: 75 °C is the limit" in found[2].problems
        made.hardware.release()
        made.settle()
        assert made.torque() == [0, 0, 0]
        np.testing.assert_allclose(made.angles(), before, atol=TICK)


def test_servos_are_set_up_as_the_settings_say() -> None:
    with bench(3) as made:
        made.settle()
        assert [servo.get(CW_SLOPE) for servo in made.emulated] == [16, 16, 16]
        made.hardware.write(told(0.1, 0.1, 0.1))
        made.run(0.1)
        made.settle()
        assert all(servo.get(MOVING_SPEED) == 86 for servo in made.emulated)  # 1 rad/s
        assert all(servo.get(TORQUE_ENABLE) for servo in made.emulated)


def test_two_programs_cannot_have_one_port() -> None:
    with bench(1) as made, pytest.raises(InputError, match="another program has it"):
        type(made.port)(made.terminal.path, 1_000_000, 0.05)


def test_the_loop_ends_in_a_hold_and_keeps_what_broke_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with bench(3) as made:
        with ServoLoop(made.hardware) as loop:
            made.hardware.write(told(0.5, 0.5, 0.5))
            while loop.cycles < 5:
                pass
        assert not made.hardware.fault
        monkeypatch.setattr(made.hardware, "_turn", lambda: 1 / 0)
        with ServoLoop(made.hardware) as loop:
            while not made.hardware.fault:
                pass
        with pytest.raises(ServoFaultError, match="ZeroDivisionError"):
            made.hardware.check()


def test_servos_that_turn_against_their_joints_are_told_so() -> None:
    servos = replace(servo_map(3), direction=np.array([-1, -1, -1]), zero=np.array([500, 512, 530]))
    with bench(3, servos=servos) as made:
        made.hardware.write(told(0.5, 0.5, -0.5))
        made.run(5.0)
        np.testing.assert_allclose(made.angles(), [0.5, 0.5, -0.5], atol=2 * TICK)
        assert made.emulated[0].position == pytest.approx(500 - 0.5 / TICK, abs=2.0)
