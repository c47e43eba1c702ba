"""Dynamixel hardware: servos reach their set-points smoothly, and each fault stops them and raises one error."""

from __future__ import annotations

import math
from dataclasses import replace
from threading import Semaphore

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.servos import PERIOD, EmulatedServos, emulated_servos, position_command, servo_map

from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware import Hardware, JointCommand
from roboyard.hardware.dynamixel.config import FaultLimits
from roboyard.hardware.dynamixel.control_table import (
    CCW_LIMIT,
    CW_COMPLIANCE_SLOPE,
    GOAL_POSITION,
    MODEL,
    MOVING_SPEED,
    POSITION_UNIT,
    TORQUE_ENABLE,
)
from roboyard.hardware.dynamixel.emulation.bus import EmulatedFault, FaultInjection
from roboyard.hardware.dynamixel.hardware import DynamixelHardware, SoftStartRamp
from roboyard.hardware.dynamixel.monitor import ServoFaultError, diagnose_servos, find_unknown_ids
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.thread import ServoThread

ANGLES = st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3)


# -- motion ------------------------------------------------------------------------------------------------------------
def test_commanded_positions_are_reached_within_a_tick() -> None:
    with emulated_servos(3) as servos:
        assert isinstance(servos.hardware, Hardware)
        rng = np.random.default_rng(2)
        for _ in range(4):
            commanded = rng.uniform(-1.5, 1.5, 3)
            servos.hardware.write(position_command(*commanded))
            servos.run(9.0 if servos.clock.now == 0.0 else 3.5)
            state = servos.hardware.read()
            # half a tick of the goal, one of the compliance margin, half of the reading
            np.testing.assert_allclose(state.position, commanded, atol=2.01 * POSITION_UNIT)
            np.testing.assert_allclose(state.position, servos.angles, atol=0.51 * POSITION_UNIT)
            assert state.time_ns == round(servos.clock.now * 1e9)
        assert servos.port.statistics.responses == servos.port.statistics.sent


@given(q=ANGLES)
def test_ticks_and_angles_are_inverse(q: list[float]) -> None:
    servos = servo_map(3)
    np.testing.assert_allclose(servos.to_angles(servos.to_ticks(q)), q, atol=0.5001 * POSITION_UNIT)


@given(start=ANGLES, goals=st.lists(ANGLES, min_size=1, max_size=4), speed_fraction=st.floats(0.1, 1.0))
@settings(max_examples=60, deadline=None)
def test_soft_start_limits_speed_of_first_and_later_commands(
    start: list[float], goals: list[list[float]], speed_fraction: float
) -> None:
    ramp = SoftStartRamp(np.array(start), np.full(3, 1.0), speed_fraction)
    previous = ramp.setpoints
    first = np.array(goals[0])
    while not ramp.is_finished:
        setpoints = ramp.advance(PERIOD, first)
        assert (np.abs(setpoints - previous) <= speed_fraction * PERIOD * (1 + 1e-6)).all()
        previous = setpoints
    np.testing.assert_allclose(ramp.advance(PERIOD, first), first, atol=1e-9)
    for goal in goals[1:]:
        for _ in range(250):
            previous, setpoints = ramp.setpoints, ramp.advance(PERIOD, np.array(goal))
            assert (np.abs(setpoints - previous) <= PERIOD * (1 + 1e-9)).all()
        np.testing.assert_allclose(setpoints, goal, atol=1e-9)


def test_start_holds_joints_and_first_motion_is_slow() -> None:
    with emulated_servos(3, ticks=[300.0, 600.0, 512.0], start=False) as servos:
        for servo in servos.emulated:
            servo.set(GOAL_POSITION, 900)  # the goal of an earlier session
        before = servos.angles
        servos.hardware.start()
        servos.settle()
        np.testing.assert_allclose(servos.angles, before, atol=POSITION_UNIT)
        assert servos.torque_enabled == [1, 1, 1]
        servos.run(0.5)  # without a command the joints do not move
        np.testing.assert_allclose(servos.angles, before, atol=POSITION_UNIT)
        servos.hardware.write(position_command(1.0, 1.0, -1.0))
        angles, max_speed = servos.angles, 0.0
        for _ in range(400):
            servos.run(PERIOD)
            max_speed = max(max_speed, float(np.abs(servos.angles - angles).max()) / PERIOD)
            angles = servos.angles
        assert max_speed < 0.5 + 2 * POSITION_UNIT / PERIOD
        np.testing.assert_allclose(angles, [1.0, 1.0, -1.0], atol=2 * POSITION_UNIT)


def test_commands_outside_limits_are_clamped_and_counted() -> None:
    with emulated_servos(3) as servos:
        servos.hardware.write(position_command(5.0, joints="b"))
        servos.run(8.0)
        np.testing.assert_allclose(servos.angles, [0.0, 2.0, 0.0], atol=2 * POSITION_UNIT)
        assert servos.hardware.clamped_commands == 1


def test_unsupported_commands_are_refused() -> None:
    with emulated_servos(3) as servos:
        assert servos.hardware.command_modes("a") == ("position",)
        for command in (
            JointCommand("velocity", ("a",), np.zeros(1)),
            JointCommand("position", ("z",), np.zeros(1)),
        ):
            with pytest.raises(UnknownNameError):
                servos.hardware.write(command)
        for command in (position_command(math.nan, 0.0, 0.0), JointCommand("position", ("a", "b"), np.zeros(1))):
            with pytest.raises(InputError, match="finite number"):
                servos.hardware.write(command)
        with pytest.raises(InputError, match="positions without max_effort"):
            servos.hardware.write(JointCommand("position", ("a",), np.zeros(1), np.ones(1)))


# -- faults at start ---------------------------------------------------------------------------------------------------
def test_start_reports_missing_and_unsuitable_servos_before_motion() -> None:
    with emulated_servos(3, [FaultInjection(0.0, "mute", 2)], start=False, reply_timeout=0.05) as servos:
        with pytest.raises(ServoFaultError, match=r"no answer from servo 2 \(joint b\)"):
            servos.hardware.start()
        assert servos.torque_enabled == [0, 0, 0]
        diagnoses = diagnose_servos(servos.port, servos.hardware.servos, FaultLimits())
        assert [diagnosis.problems for diagnosis in diagnoses] == [(), ("does not answer",), ()]
    with (
        emulated_servos(3, [FaultInjection(0.0, "mute")], start=False, reply_timeout=0.05) as servos,
        pytest.raises(ServoFaultError, match="no servo answers at 1000000 baud"),
    ):
        servos.hardware.start()
    with emulated_servos(3, start=False) as servos:
        servos.emulated[1].set(MODEL, 29)
        with pytest.raises(ServoFaultError, match=r"servo 2 \(joint b\): model 29 is not supported, expected RX-64"):
            servos.hardware.start()
        assert servos.torque_enabled == [0, 0, 0]
    with emulated_servos(3, [FaultInjection(0.0, "undervoltage", 3)], start=False) as servos:
        with pytest.raises(ServoFaultError, match=r"servo 3 \(joint c\): 9.5 V: below the limit of 12.0 V"):
            servos.hardware.start()
        assert servos.torque_enabled == [0, 0, 0]
    with emulated_servos(3, ticks=[900.0], start=False) as servos:
        servos.emulated[0].set(CCW_LIMIT, 800)
        with pytest.raises(ServoFaultError, match=r"servo 1 \(joint a\): the goal is outside the angle limits"):
            servos.hardware.start()
        servos.emulated[0].set(CCW_LIMIT, 1023)


def test_servo_with_another_id_is_found() -> None:
    with emulated_servos(3, [FaultInjection(0.0, "change_id", 2)], start=False, reply_timeout=0.004) as servos:
        assert find_unknown_ids(servos.port, servos.hardware.servos) == [102]


# -- faults during motion ----------------------------------------------------------------------------------------------
def start_motion(servos: EmulatedServos) -> None:
    """Command a motion and run its first two seconds."""
    servos.hardware.write(position_command(1.5, -1.5, 1.5))
    servos.run(2.0)


@pytest.mark.parametrize(
    ("fault", "message", "max_delay"),
    [
        ("mute", "does not answer: 3 requests in a row", 0.2),
        ("change_id", "does not answer: 3 requests in a row", 0.2),
        ("corrupt", "11 damaged packets within a second", 0.4),
        ("drop_byte", "11 damaged packets within a second", 0.4),
        ("overheat", "the servo is overheating", 0.1),
        ("undervoltage", "9.5 V: below the limit of 12.0 V", 0.3),
        ("overload", "the servo is overloaded", 0.1),
    ],
)
def test_fault_stops_all_servos_and_names_the_faulty_one(fault: EmulatedFault, message: str, max_delay: float) -> None:
    with emulated_servos(3, [FaultInjection(2.5, fault, 2)], reply_timeout=0.1) as servos:
        start_motion(servos)
        assert servos.hardware.fault is None
        assert servos.run_until_fault(3.0) <= 0.5 + max_delay
        with pytest.raises(ServoFaultError, match=message) as caught:
            servos.hardware.read()
        assert (caught.value.servo, caught.value.joint) == (2, "b")
        assert "servo 2 (joint b)" in str(caught.value)
        assert "all servos hold their positions" in str(caught.value)
        with pytest.raises(ServoFaultError):
            servos.hardware.write(position_command(0.0, 0.0, 0.0))
        healthy = [0, 2]
        stopped = servos.angles[healthy]
        servos.settle()
        np.testing.assert_allclose(
            servos.angles[healthy], stopped, atol=0.5 * 0.06 + POSITION_UNIT
        )  # travel while stopping
        assert [servos.torque_enabled[k] for k in healthy] == [1, 1]
        resting_angles = servos.angles
        servos.run(1.0)  # the servos stay at rest
        np.testing.assert_allclose(servos.angles, resting_angles, atol=1e-12)


def test_fault_disables_torque_if_configured() -> None:
    with emulated_servos(
        3, [FaultInjection(2.5, "overheat", 1)], fault_limits=FaultLimits(on_fault="release")
    ) as servos:
        start_motion(servos)
        servos.run_until_fault(3.0)
        with pytest.raises(ServoFaultError, match="the torque of all servos is off"):
            servos.hardware.check()
        servos.settle()
        assert servos.torque_enabled == [0, 0, 0]


def test_unplugged_cable_leaves_servos_at_their_goals() -> None:
    with emulated_servos(3, [FaultInjection(2.5, "unplug")], terminal=True) as servos:
        start_motion(servos)
        assert servos.run_until_fault(3.0) <= 0.6
        with pytest.raises(ServoFaultError, match="serial port lost.*the servos hold the last goals"):
            servos.hardware.check()
        for servo, tick in zip(servos.emulated, servos.hardware.servos.to_ticks(servos.angles), strict=True):
            assert abs(servo.get(GOAL_POSITION) - tick) <= 0.5 * 0.1 / POSITION_UNIT


def test_few_lost_responses_do_not_stop_motion() -> None:
    with emulated_servos(
        3, [FaultInjection(1.0, "mute", 2)], fault_limits=FaultLimits(max_missed_replies=30), reply_timeout=0.002
    ) as servos:
        servos.hardware.write(position_command(0.5, 0.5, 0.5))
        servos.run(1.3)
        assert servos.hardware.fault is None
        assert servos.port.statistics.timeouts > 5
        assert servos.hardware.read().position[0] > 0.1


def test_release_and_diagnosis_cause_no_motion() -> None:
    with emulated_servos(3, ticks=[400.0, 512.0, 620.0]) as servos:
        servos.emulated[2].temperature = 78.0
        before = servos.angles
        servos.settle()
        diagnoses = diagnose_servos(servos.port, servos.hardware.servos, FaultLimits())
        assert [diagnosis.position for diagnosis in diagnoses] == pytest.approx(before.tolist(), abs=POSITION_UNIT)
        assert [bool(diagnosis.problems) for diagnosis in diagnoses] == [False, False, True]
        assert "temperature 78 °C reaches the limit of 75 °C" in diagnoses[2].problems
        servos.hardware.release()
        servos.settle()
        assert servos.torque_enabled == [0, 0, 0]
        np.testing.assert_allclose(servos.angles, before, atol=POSITION_UNIT)


def test_start_writes_settings_to_servos() -> None:
    with emulated_servos(3) as servos:
        servos.settle()
        assert [servo.get(CW_COMPLIANCE_SLOPE) for servo in servos.emulated] == [16, 16, 16]
        servos.hardware.write(position_command(0.1, 0.1, 0.1))
        servos.run(0.1)
        servos.settle()
        assert all(servo.get(MOVING_SPEED) == 86 for servo in servos.emulated)  # 1 rad/s
        assert all(servo.get(TORQUE_ENABLE) for servo in servos.emulated)


def test_second_program_cannot_open_the_port() -> None:
    with (
        emulated_servos(1, terminal=True) as servos,
        pytest.raises(InputError, match="another program uses the port"),
    ):
        ServoPort(servos.port.path, 1_000_000, 0.05)


def count_cycles(monkeypatch: pytest.MonkeyPatch, hardware: DynamixelHardware) -> Semaphore:
    """Return a semaphore that each call of ``run_cycle`` releases once, also if it raises."""
    finished_cycles, cycle = Semaphore(0), hardware.run_cycle

    def counted_cycle(time: float) -> None:
        try:
            cycle(time)
        finally:
            finished_cycles.release()

    monkeypatch.setattr(hardware, "run_cycle", counted_cycle)
    return finished_cycles


def test_servo_thread_ends_with_held_servos_and_stores_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with emulated_servos(3) as servos:
        cycles = count_cycles(monkeypatch, servos.hardware)
        with ServoThread(servos.hardware) as thread:
            servos.hardware.write(position_command(0.5, 0.5, 0.5))
            assert all(cycles.acquire(timeout=60.0) for _ in range(5))
        assert thread.cycles >= 5
        assert not servos.hardware.fault
        monkeypatch.setattr(servos.hardware, "_servos_to_poll", lambda: 1 / 0)
        with ServoThread(servos.hardware):
            assert cycles.acquire(timeout=60.0)
        with pytest.raises(ServoFaultError, match="ZeroDivisionError"):
            servos.hardware.check()


def test_servos_of_reversed_direction_reach_commanded_positions() -> None:
    reversed_map = replace(servo_map(3), direction=np.array([-1, -1, -1]), zero_position=np.array([500, 512, 530]))
    with emulated_servos(3, servos=reversed_map) as servos:
        servos.hardware.write(position_command(0.5, 0.5, -0.5))
        servos.run(5.0)
        np.testing.assert_allclose(servos.angles, [0.5, 0.5, -0.5], atol=2 * POSITION_UNIT)
        assert servos.emulated[0].position == pytest.approx(500 - 0.5 / POSITION_UNIT, abs=2.0)
