"""Emulated RX-64 servo: its control table and its motion."""

from __future__ import annotations

import math

from roboyard.hardware.dynamixel.control_table import (
    ANGLE_BIT,
    CCW_COMPLIANCE_MARGIN,
    CCW_COMPLIANCE_SLOPE,
    CCW_LIMIT,
    CW_COMPLIANCE_MARGIN,
    CW_COMPLIANCE_SLOPE,
    CW_LIMIT,
    GOAL_POSITION,
    ID,
    ITEMS,
    MAX_POSITION,
    MAX_VOLTAGE_LIMIT,
    MIN_VOLTAGE_LIMIT,
    MOVING,
    MOVING_SPEED,
    OVERHEATING_BIT,
    OVERLOAD_BIT,
    POSITION_UNIT,
    PRESENT_LOAD,
    PRESENT_POSITION,
    PRESENT_SPEED,
    PRESENT_TEMPERATURE,
    PRESENT_VOLTAGE,
    PUNCH,
    RANGE_BIT,
    SHUTDOWN,
    SPEED_UNIT,
    TABLE_SIZE,
    TEMPERATURE_LIMIT,
    TORQUE_ENABLE,
    TORQUE_LIMIT,
    VOLTAGE_BIT,
    ControlItem,
    encode_signed_magnitude,
)

_NO_LOAD_SPEED_PER_VOLT = 64.0 * 2.0 * math.pi / 60.0 / 18.5
"""No-load speed per volt [rad/s/V]: 64 revolutions per minute at 18.5 V."""
_MAX_STEP = 0.002
"""Maximum time step of the motion [s]."""
_OVERLOAD_DURATION = 0.5
"""Time for which it sustains an excessive load [s] (chosen here; the manufacturer states no time)."""


class EmulatedServo:
    """Servo whose speed follows its torque-speed line.

    With growing position error the torque rises from the punch at the margin to full torque at the end of the slope.
    The servo moves at the speed at which its motor torque equals the torque of the load, limited by the moving speed.
    Inertia is neglected: the loop settles in ``slope / no-load speed``, 15 ms at a slope of 16 steps.

    Args:
        id: Id on the bus.
        ticks: Initial position.

    Attributes:
        position: Position [ticks, not rounded].
        speed: Speed [rad/s], counter-clockwise positive.
        load: Load torque as a fraction of the stall torque; a positive load pushes the servo clockwise.
        voltage: Supply voltage [V].
        temperature: Temperature [°C].
        overloaded: True after an excessive load for too long.
    """

    def __init__(self, id: int, ticks: float = 512.0) -> None:
        self.table = bytearray(TABLE_SIZE)
        for item in ITEMS:
            self.set(item, item.initial)
        self.set(ID, id)
        self.position, self.speed, self.load = float(ticks), 0.0, 0.0
        self.voltage, self.temperature, self.overloaded = 14.8, 35.0, False
        self._overload_time = 0.0
        self._registered: tuple[int, bytes] | None = None
        self.set(GOAL_POSITION, round(ticks))
        self._update_present_values()

    # -- control table
    # -----------------------------------------------------------------------------------------------------
    def get(self, item: ControlItem) -> int:
        """Return a value of the control table."""
        return int.from_bytes(self.table[item.address : item.address + item.size], "little")

    def set(self, item: ControlItem, value: int) -> None:
        """Set a value of the control table, regardless of write protection."""
        self.table[item.address : item.address + item.size] = value.to_bytes(item.size, "little")

    @property
    def errors(self) -> int:
        """Active error bits."""
        volts = 10.0 * self.voltage
        errors = 0
        if not self.get(MIN_VOLTAGE_LIMIT) <= volts <= self.get(MAX_VOLTAGE_LIMIT):
            errors |= VOLTAGE_BIT
        if self.temperature > self.get(TEMPERATURE_LIMIT):
            errors |= OVERHEATING_BIT
        return errors | (OVERLOAD_BIT if self.overloaded else 0)

    def read(self, address: int, size: int) -> tuple[bytes, int]:
        """Read bytes of the control table; return them with the error bits of the request."""
        if size < 1 or address + size > TABLE_SIZE:
            return b"", RANGE_BIT
        return bytes(self.table[address : address + size]), 0

    def write(self, address: int, data: bytes) -> int:
        """Write bytes of the control table as a bus master; return error bits. Requests with errors change nothing."""
        end = address + len(data)
        items = [item for item in ITEMS if address <= item.address < end]
        n_covered = sum(item.size for item in items)
        if not data or end > TABLE_SIZE or n_covered < len(data) or not all(item.writable for item in items):
            return RANGE_BIT
        before = bytes(self.table)
        self.table[address:end] = data
        errors = self._find_value_errors()
        if errors:
            self.table[:] = before
        return errors

    def _find_value_errors(self) -> int:
        goal, low, high = self.get(GOAL_POSITION), self.get(CW_LIMIT), self.get(CCW_LIMIT)
        if max(goal, low, high) > MAX_POSITION or self.get(MOVING_SPEED) > MAX_POSITION or self.get(ID) > 253:
            return RANGE_BIT
        return 0 if low <= goal <= high else ANGLE_BIT

    def register(self, address: int, data: bytes) -> None:
        """Store a write until the next action instruction."""
        self._registered = address, bytes(data)

    def execute_registered(self) -> bool:
        """Execute the registered write; return False if none was registered."""
        if self._registered is None:
            return False
        self.write(*self._registered)
        self._registered = None
        return True

    # -- motion --------------------------------------------------------------------------------------------------------
    def advance(self, seconds: float) -> None:
        """Advance the motion by `seconds`."""
        steps = max(math.ceil(seconds / _MAX_STEP), 1)
        dt, torque_fraction = seconds / steps, 0.0
        for _ in range(steps):
            torque_fraction = self._torque()
            self.speed = self._speed(torque_fraction)
            self.position = min(max(self.position + self.speed / POSITION_UNIT * dt, 0.0), float(MAX_POSITION))
        is_overcome = self.get(TORQUE_LIMIT) / MAX_POSITION <= abs(torque_fraction) < abs(self.load)
        self._overload_time = self._overload_time + seconds if is_overcome else 0.0
        self.overloaded = self.overloaded or self._overload_time > _OVERLOAD_DURATION
        if self.errors & self.get(SHUTDOWN):
            self.set(TORQUE_ENABLE, 0)
        self._update_present_values()

    def _torque(self) -> float:
        """Return the motor torque as a fraction of the stall torque."""
        if not self.get(TORQUE_ENABLE):
            return 0.0
        position_error = self.get(GOAL_POSITION) - self.position
        margin, slope = (
            (CCW_COMPLIANCE_MARGIN, CCW_COMPLIANCE_SLOPE)
            if position_error > 0.0
            else (CW_COMPLIANCE_MARGIN, CW_COMPLIANCE_SLOPE)
        )
        excess_error = abs(position_error) - self.get(margin)
        if excess_error <= 0.0:
            return 0.0
        torque_fraction = min(
            self.get(PUNCH) / MAX_POSITION + excess_error / max(self.get(slope), 1),
            self.get(TORQUE_LIMIT) / MAX_POSITION,
        )
        return math.copysign(torque_fraction, position_error)

    def _speed(self, torque_fraction: float) -> float:
        if not self.get(TORQUE_ENABLE):
            return 0.0  # the gear holds the load
        speed = _NO_LOAD_SPEED_PER_VOLT * self.voltage * (torque_fraction - self.load)
        max_speed = self.get(MOVING_SPEED) * SPEED_UNIT
        return max(-max_speed, min(max_speed, speed)) if max_speed else speed

    def _update_present_values(self) -> None:
        is_enabled = bool(self.get(TORQUE_ENABLE))
        torque_fraction = (
            self.load + self.speed / (_NO_LOAD_SPEED_PER_VOLT * self.voltage)
            if is_enabled and (self.speed or self.load)
            else 0.0
        )
        self.set(PRESENT_POSITION, round(self.position))
        self.set(PRESENT_SPEED, encode_signed_magnitude(round(self.speed / SPEED_UNIT)))
        self.set(PRESENT_LOAD, encode_signed_magnitude(round(torque_fraction * MAX_POSITION)))
        self.set(PRESENT_VOLTAGE, round(10.0 * self.voltage))
        self.set(PRESENT_TEMPERATURE, round(self.temperature))
        self.set(MOVING, int(abs(self.speed) > SPEED_UNIT))
