"""Control table of the RX-64: addresses, units and error bits.

Source: the manufacturer's e-manual of the RX-64 and of protocol 1.0 (emanual.robotis.com).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from roboyard.errors import InputError


@dataclass(frozen=True, slots=True)
class ControlItem:
    """Entry of the control table: address, size in bytes (low byte first), initial value, and write access."""

    address: int
    size: int
    initial: int = 0
    writable: bool = True


MODEL: Final = ControlItem(0, 2, 64, writable=False)
FIRMWARE: Final = ControlItem(2, 1, 24, writable=False)
ID: Final = ControlItem(3, 1, 1)
BAUD: Final = ControlItem(4, 1, 34)
RETURN_DELAY: Final = ControlItem(5, 1, 250)
CW_LIMIT: Final = ControlItem(6, 2, 0)
CCW_LIMIT: Final = ControlItem(8, 2, 1023)
TEMPERATURE_LIMIT: Final = ControlItem(11, 1, 80)
MIN_VOLTAGE_LIMIT: Final = ControlItem(12, 1, 60)
MAX_VOLTAGE_LIMIT: Final = ControlItem(13, 1, 190)
MAX_TORQUE: Final = ControlItem(14, 2, 1023)
STATUS_RETURN: Final = ControlItem(16, 1, 2)
ALARM_LED: Final = ControlItem(17, 1, 36)
SHUTDOWN: Final = ControlItem(18, 1, 36)
TORQUE_ENABLE: Final = ControlItem(24, 1, 0)
LED: Final = ControlItem(25, 1, 0)
CW_COMPLIANCE_MARGIN: Final = ControlItem(26, 1, 1)
CCW_COMPLIANCE_MARGIN: Final = ControlItem(27, 1, 1)
CW_COMPLIANCE_SLOPE: Final = ControlItem(28, 1, 32)
CCW_COMPLIANCE_SLOPE: Final = ControlItem(29, 1, 32)
GOAL_POSITION: Final = ControlItem(30, 2)
MOVING_SPEED: Final = ControlItem(32, 2)
TORQUE_LIMIT: Final = ControlItem(34, 2, 1023)
PRESENT_POSITION: Final = ControlItem(36, 2, writable=False)
PRESENT_SPEED: Final = ControlItem(38, 2, writable=False)
PRESENT_LOAD: Final = ControlItem(40, 2, writable=False)
PRESENT_VOLTAGE: Final = ControlItem(42, 1, writable=False)
PRESENT_TEMPERATURE: Final = ControlItem(43, 1, writable=False)
REGISTERED: Final = ControlItem(44, 1, writable=False)
MOVING: Final = ControlItem(46, 1, writable=False)
LOCK: Final = ControlItem(47, 1)
PUNCH: Final = ControlItem(48, 2, 32)

ITEMS: Final = (
    MODEL, FIRMWARE, ID, BAUD, RETURN_DELAY, CW_LIMIT, CCW_LIMIT, TEMPERATURE_LIMIT, MIN_VOLTAGE_LIMIT,
    MAX_VOLTAGE_LIMIT, MAX_TORQUE, STATUS_RETURN, ALARM_LED, SHUTDOWN, TORQUE_ENABLE, LED, CW_COMPLIANCE_MARGIN,
    CCW_COMPLIANCE_MARGIN, CW_COMPLIANCE_SLOPE, CCW_COMPLIANCE_SLOPE,
    GOAL_POSITION, MOVING_SPEED, TORQUE_LIMIT, PRESENT_POSITION, PRESENT_SPEED, PRESENT_LOAD, PRESENT_VOLTAGE,
    PRESENT_TEMPERATURE, REGISTERED, MOVING, LOCK, PUNCH,
)  # fmt: skip
TABLE_SIZE: Final = 50
STATE_BLOCK: Final = (PRESENT_POSITION.address, 8)
"""Address and size of the block read per state request: position, speed, load, voltage, temperature."""

MAX_POSITION: Final = 1023
POSITION_UNIT: Final = math.radians(300.0) / MAX_POSITION
"""Unit of positions [rad]: 0.29 degrees."""
SPEED_UNIT: Final = 0.111 * 2.0 * math.pi / 60.0
"""Unit of speeds [rad/s]: 0.111 revolutions per minute."""

VOLTAGE_BIT, ANGLE_BIT, OVERHEATING_BIT, RANGE_BIT, CHECKSUM_BIT, OVERLOAD_BIT, INSTRUCTION_BIT = (
    1 << k for k in range(7)
)
ERROR_BITS: Final = {
    VOLTAGE_BIT: "the supply voltage is out of range",
    ANGLE_BIT: "the goal is outside the angle limits",
    OVERHEATING_BIT: "the servo is overheating",
    RANGE_BIT: "a value is out of range",
    CHECKSUM_BIT: "a checksum was wrong",
    OVERLOAD_BIT: "the servo is overloaded",
    INSTRUCTION_BIT: "an instruction is unknown",
}
"""Meaning of the error bits of a status packet."""


@dataclass(frozen=True, slots=True)
class ServoState:
    """State reported by a servo, in its own rotation direction (counter-clockwise is positive).

    Attributes:
        ticks: Position, 0 to 1023.
        speed: Speed [rad/s].
        load: Load as a fraction of the maximum torque, -1 to 1.
        voltage: Supply voltage [V].
        temperature: Temperature [°C].
        errors: Bits of `ERROR_BITS`.
    """

    ticks: int
    speed: float
    load: float
    voltage: float
    temperature: float
    errors: int = 0


def decode_state(data: bytes, errors: int = 0) -> ServoState:
    """Decode the bytes of the block `STATE_BLOCK`.

    Args:
        data: Bytes of the block.
        errors: Error bits of the status packet.

    Raises:
        InputError: The number of bytes is wrong.
    """
    if len(data) != STATE_BLOCK[1]:
        raise InputError(f"a servo state must have {STATE_BLOCK[1]} bytes, got {len(data)}", valid=str(STATE_BLOCK[1]))
    position, speed, load = (int.from_bytes(data[k : k + 2], "little") for k in (0, 2, 4))
    return ServoState(
        position & MAX_POSITION,
        decode_signed_magnitude(speed) * SPEED_UNIT,
        decode_signed_magnitude(load) / MAX_POSITION,
        data[6] / 10.0,
        float(data[7]),
        errors,
    )


def decode_signed_magnitude(value: int) -> int:
    """Decode a magnitude of ten bits with a sign bit, which means clockwise."""
    return -(value & MAX_POSITION) if value & 0x400 else value & MAX_POSITION


def encode_signed_magnitude(value: int) -> int:
    """Encode a number as ten bits of magnitude and a sign bit; the magnitude is clamped."""
    return min(abs(value), MAX_POSITION) | (0x400 if value < 0 else 0)


def to_speed_units(speed: float) -> int:
    """Convert a speed limit [rad/s] to the servo's unit; at least 1, because 0 means unlimited."""
    return min(max(round(speed / SPEED_UNIT), 1), MAX_POSITION)


def describe_errors(errors: int) -> str:
    """Describe error bits in words."""
    return ", ".join(text for bit, text in ERROR_BITS.items() if errors & bit)
