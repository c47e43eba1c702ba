"""Emulated servos respond to dynamixel_sdk as real ones do, and move like an RX-64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.harness.servos import emulated_servos

from roboyard.errors import InputError
from roboyard.hardware.dynamixel.control_table import (
    ANGLE_BIT,
    CCW_LIMIT,
    CW_COMPLIANCE_SLOPE,
    CW_LIMIT,
    GOAL_POSITION,
    INSTRUCTION_BIT,
    ITEMS,
    MODEL,
    MOVING_SPEED,
    OVERHEATING_BIT,
    OVERLOAD_BIT,
    POSITION_UNIT,
    PRESENT_POSITION,
    PRESENT_TEMPERATURE,
    PRESENT_VOLTAGE,
    RANGE_BIT,
    SPEED_UNIT,
    STATUS_RETURN,
    TORQUE_ENABLE,
    VOLTAGE_BIT,
    ServoState,
    decode_state,
    describe_errors,
    to_speed_units,
)
from roboyard.hardware.dynamixel.emulation.bus import EmulatedBus, FaultInjection
from roboyard.hardware.dynamixel.emulation.servo import EmulatedServo
from roboyard.hardware.dynamixel.protocol import (
    ACTION,
    BROADCAST,
    PING,
    READ,
    REG_WRITE,
    WRITE,
    Packet,
    PacketReader,
    encode,
    sync_write,
)

NO_LOAD = 64 * 2 * math.pi / 60 * 14.8 / 18.5


def receive_responses(bus: EmulatedBus, packet: Packet, time: float = 0.0) -> list[Packet | None]:
    """Return the responses of the bus to a packet."""
    return list(PacketReader().feed(b"".join(data for _, data in bus.receive(encode(packet), time))))


def start_motion(servo: EmulatedServo, goal: int, speed: float = 0.0) -> EmulatedServo:
    """Enable torque and send a goal [ticks] and a speed [rad/s]; 0 is the maximum speed."""
    servo.set(TORQUE_ENABLE, 1)
    servo.set(GOAL_POSITION, goal)
    servo.set(MOVING_SPEED, to_speed_units(speed) if speed else 0)
    return servo


def test_written_items_are_read_back_by_dynamixel_sdk() -> None:
    rng = np.random.default_rng(1)
    with emulated_servos(3, start=False) as servos:
        for item in ITEMS:
            if not item.writable or item.address < 6 or item is STATUS_RETURN or item in (CW_LIMIT, CCW_LIMIT):
                continue
            value = int(rng.integers(0, 256 if item.size == 1 else 1024))
            assert servos.port.write(2, item, value) == 0
            assert servos.port.read(2, item) == value
        assert servos.port.ping(3) == MODEL.initial
        assert servos.port.ping(9) == "timeout"
        assert servos.port.write(1, GOAL_POSITION, 2000) == RANGE_BIT
        assert servos.port.write(1, MODEL, 3) == RANGE_BIT
        state = servos.port.read_state(1)
        assert state == ServoState(512, 0.0, 0.0, 14.8, 35.0)
        servos.port.sync_write([GOAL_POSITION, MOVING_SPEED], {1: (300, 40), 3: (700, 50)})
        assert [servos.port.read(k, GOAL_POSITION) for k in (1, 3)] == [300, 700]
        assert [servos.port.read(k, MOVING_SPEED) for k in (1, 3)] == [40, 50]


@given(goal=st.integers(0, 1023), speed=st.floats(0.2, 5.0))
@settings(max_examples=30, deadline=None)
def test_servo_reaches_its_goal_within_commanded_speed(goal: int, speed: float) -> None:
    servo = start_motion(EmulatedServo(1), goal, speed)
    commanded, before = servo.get(MOVING_SPEED) * SPEED_UNIT, servo.position
    for _ in range(400):
        servo.advance(0.02)
        assert abs(servo.position - before) * POSITION_UNIT <= min(commanded, NO_LOAD) * 0.02 * (1 + 1e-9)
        before = servo.position
    remaining = abs(goal - 512) * POSITION_UNIT - 8.0 * min(commanded, NO_LOAD)
    if remaining < 0.0:
        assert abs(servo.get(PRESENT_POSITION) - goal) <= 1  # the compliance margin of one tick


@pytest.mark.parametrize("load", [-0.6, -0.3, 0.0, 0.3, 0.6])
def test_servo_load_reduces_speed_and_shifts_the_goal(load: float) -> None:
    servo = start_motion(EmulatedServo(1, 100.0), 900)
    servo.load = load
    servo.advance(0.1)
    assert servo.speed == pytest.approx(NO_LOAD * (1.0 - load), rel=1e-6)
    for _ in range(300):
        servo.advance(0.02)
    if load:
        slope, punch = servo.get(CW_COMPLIANCE_SLOPE), 32 / 1023
        expected = math.copysign(1 + slope * (abs(load) - punch), load)
        assert 900 - servo.position == pytest.approx(expected, abs=0.2)
    state = decode_state(servo.read(36, 8)[0])
    assert state.load == pytest.approx(load, abs=0.05)


def test_long_overload_disables_torque() -> None:
    servo = start_motion(EmulatedServo(1), 600)
    servo.load = 1.5
    for _ in range(20):
        servo.advance(0.02)
    assert servo.errors == 0
    for _ in range(20):
        servo.advance(0.02)
    assert servo.errors == OVERLOAD_BIT
    assert servo.get(TORQUE_ENABLE) == 0


def test_every_status_packet_carries_the_error_bits() -> None:
    servo = EmulatedServo(5)
    bus = EmulatedBus([servo])
    assert receive_responses(bus, Packet(5, PING)) == [Packet(5, 0)]
    servo.voltage, servo.temperature = 5.0, 90.0
    assert receive_responses(bus, Packet(5, PING)) == [Packet(5, VOLTAGE_BIT | OVERHEATING_BIT)]
    assert (
        describe_errors(VOLTAGE_BIT | OVERHEATING_BIT) == "the supply voltage is out of range, the servo is overheating"
    )
    servo.voltage, servo.temperature = 14.8, 30.0
    servo.set(CW_LIMIT, 400)
    assert receive_responses(bus, Packet(5, WRITE, bytes([30, 10, 0]))) == [Packet(5, ANGLE_BIT)]
    assert servo.get(GOAL_POSITION) == 512
    assert receive_responses(bus, Packet(5, READ, bytes([48, 3]))) == [Packet(5, RANGE_BIT)]
    assert receive_responses(bus, Packet(5, 0x55)) == [Packet(5, INSTRUCTION_BIT)]
    bus.advance(1.0)
    assert (servo.get(PRESENT_VOLTAGE), servo.get(PRESENT_TEMPERATURE)) == (148, 30)


def test_registered_writes_wait_and_broadcasts_get_no_response() -> None:
    servos = [EmulatedServo(k) for k in (1, 2)]
    bus = EmulatedBus(servos)
    for servo in (1, 2):
        assert receive_responses(bus, Packet(servo, REG_WRITE, bytes([30, 100, servo]))) == [Packet(servo, 0)]
    assert [servo.get(GOAL_POSITION) for servo in servos] == [512, 512]
    assert receive_responses(bus, Packet(BROADCAST, ACTION)) == []
    assert [servo.get(GOAL_POSITION) for servo in servos] == [356, 612]
    assert receive_responses(bus, Packet(1, ACTION)) == [Packet(1, INSTRUCTION_BIT)]
    assert receive_responses(bus, sync_write(30, {2: b"\x0a\x00", 9: b"\x0b\x00"})) == []
    assert [servo.get(GOAL_POSITION) for servo in servos] == [356, 10]
    servos[0].set(STATUS_RETURN, 1)
    servos[1].set(STATUS_RETURN, 0)
    assert receive_responses(bus, Packet(1, WRITE, bytes([25, 1]))) == []
    assert receive_responses(bus, Packet(2, READ, bytes([25, 1]))) == []
    assert receive_responses(bus, Packet(2, PING)) == [Packet(2, 0)]


def test_damaged_request_gets_no_response_but_the_next_does() -> None:
    bus = EmulatedBus([EmulatedServo(1)])
    damaged = bytearray(encode(Packet(1, PING)))
    damaged[-1] ^= 1
    assert bus.receive(bytes(damaged), 0.0) == []
    assert bus.receive(encode(Packet(1, PING))[:-2], 0.001) == []  # truncated packet
    assert receive_responses(bus, Packet(1, PING), 1.0) == [Packet(1, 0)]


@given(data=st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_arbitrary_bytes_keep_servos_within_range(data: bytes) -> None:
    bus = EmulatedBus([EmulatedServo(k) for k in range(3)])
    bus.receive(data, 0.0)
    bus.receive(data[::-1], 0.1)
    for servo in bus.servos.values():
        servo.advance(0.1)
        assert 0.0 <= servo.position <= 1023.0


@pytest.mark.parametrize("text", ["", "3", "x:mute", "1:jump", "1:mute:x", "-1:mute", "nan:mute"])
def test_invalid_injections_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="SECONDS:FAULT"):
        FaultInjection.parse(text)


def test_injections_need_an_existing_servo() -> None:
    assert FaultInjection.parse("1.5:overheat:7") == FaultInjection(1.5, "overheat", 7)
    assert FaultInjection.parse("2:unplug") == FaultInjection(2.0, "unplug")
    with pytest.raises(InputError, match="unknown servo 7 .one of 1, 2"):
        EmulatedBus([EmulatedServo(1), EmulatedServo(2)], [FaultInjection(0.0, "mute", 7)])
