"""An emulated RX-64: its control table, and how it turns."""

from __future__ import annotations

import math

from roboyard.hardware.dynamixel.control_table import (
    ANGLE_BIT,
    CCW_LIMIT,
    CCW_MARGIN,
    CCW_SLOPE,
    CW_LIMIT,
    CW_MARGIN,
    CW_SLOPE,
    GOAL_POSITION,
    HEAT_BIT,
    HIGHEST_VOLTAGE,
    ID,
    ITEMS,
    LOWEST_VOLTAGE,
    MOST_TICKS,
    MOVING,
    MOVING_SPEED,
    OVERLOAD_BIT,
    PRESENT_LOAD,
    PRESENT_POSITION,
    PRESENT_SPEED,
    PRESENT_TEMPERATURE,
    PRESENT_VOLTAGE,
    PUNCH,
    RANGE_BIT,
    SHUTDOWN,
    SPEED_STEP,
    TABLE_SIZE,
    TEMPERATURE_LIMIT,
    TICK,
    TORQUE_ENABLE,
    TORQUE_LIMIT,
    VOLTAGE_BIT,
    Item,
    unsigned,
)

_NO_LOAD = 64.0 * 2.0 * math.pi / 60.0 / 18.5
"""Speed without load for each volt [rad/s/V]: 64 revolutions a minute at 18.5 V."""
_STEP = 0.002
"""Longest step of its motion [s]."""
_OVERLOADED = 0.5
"""So long it bears a load that is too much for it [s] (ours; the maker tells no time)."""


class EmulatedServo:
    """A servo whose speed follows its torque-speed line.

    Beside the goal its torque grows from the punch at the margin to all it has at the slope's end; it turns at the
    speed at which its motor has just the torque that its load takes, but no faster than told.  Inertia is left out: the
    loop settles in ``slope / no-load speed``, 15 ms at a slope of 16 steps.

    Args:
        id: On the bus.
        ticks: Where it is at first.

    Attributes:
        position: Where it is [ticks, exact].
        speed: [rad/s], counter-clockwise positive.
        load: What it holds against, of its stall torque; positive pushes it clockwise.
        voltage: Of its supply [V].
        temperature: [°C].
        overloaded: It has borne too much for too long.
    """

    def __init__(self, id: int, ticks: float = 512.0) -> None:
        self.table = bytearray(TABLE_SIZE)
        for item in ITEMS:
            self.put(item, item.initial)
        self.put(ID, id)
        self.position, self.speed, self.load = float(ticks), 0.0, 0.0
        self.voltage, self.temperature, self.overloaded = 14.8, 35.0, False
        self._full = 0.0
        self._registered: tuple[int, bytes] | None = None
        self.put(GOAL_POSITION, round(ticks))
        self._show()

    # -- its table -----------------------------------------------------------------------------------------------------
    def get(self, item: Item) -> int:
        """A value."""
        return int.from_bytes(self.table[item.address : item.address + item.size], "little")

    def put(self, item: Item, value: int) -> None:
        """Set a value, from inside."""
        self.table[item.address : item.address + item.size] = value.to_bytes(item.size, "little")

    @property
    def errors(self) -> int:
        """The bits of what is wrong with it now."""
        volts = 10.0 * self.voltage
        found = 0
        if not self.get(LOWEST_VOLTAGE) <= volts <= self.get(HIGHEST_VOLTAGE):
            found |= VOLTAGE_BIT
        if self.temperature > self.get(TEMPERATURE_LIMIT):
            found |= HEAT_BIT
        return found | (OVERLOAD_BIT if self.overloaded else 0)

    def read(self, address: int, size: int) -> tuple[bytes, int]:
        """Bytes of the table, and error bits of the request."""
        if size < 1 or address + size > TABLE_SIZE:
            return b"", RANGE_BIT
        return bytes(self.table[address : address + size]), 0

    def write(self, address: int, data: bytes) -> int:
        """Set bytes of the table from outside; nothing of a request that has error bits is done."""
        end = address + len(data)
        items = [item for item in ITEMS if address <= item.address < end]
        covered = sum(item.size for item in items)
        if not data or end > TABLE_SIZE or covered < len(data) or not all(item.writable for item in items):
            return RANGE_BIT
        before = bytes(self.table)
        self.table[address:end] = data
        errors = self._refused()
        if errors:
            self.table[:] = before
        return errors

    def _refused(self) -> int:
        goal, low, high = self.get(GOAL_POSITION), self.get(CW_LIMIT), self.get(CCW_LIMIT)
        if max(goal, low, high) > MOST_TICKS or self.get(MOVING_SPEED) > MOST_TICKS or self.get(ID) > 253:
            return RANGE_BIT
        return 0 if low <= goal <= high else ANGLE_BIT

    def register(self, address: int, data: bytes) -> None:
        """Keep a write for the next action."""
        self._registered = address, bytes(data)

    def act(self) -> bool:
        """Do what was registered; False if nothing was."""
        if self._registered is None:
            return False
        self.write(*self._registered)
        self._registered = None
        return True

    # -- its motion ----------------------------------------------------------------------------------------------------
    def advance(self, seconds: float) -> None:
        """Turn for a while."""
        steps = max(math.ceil(seconds / _STEP), 1)
        dt, share = seconds / steps, 0.0
        for _ in range(steps):
            share = self._torque()
            self.speed = self._speed(share)
            self.position = min(max(self.position + self.speed / TICK * dt, 0.0), float(MOST_TICKS))
        beaten = self.get(TORQUE_LIMIT) / MOST_TICKS <= abs(share) < abs(self.load)
        self._full = self._full + seconds if beaten else 0.0
        self.overloaded = self.overloaded or self._full > _OVERLOADED
        if self.errors & self.get(SHUTDOWN):
            self.put(TORQUE_ENABLE, 0)
        self._show()

    def _torque(self) -> float:
        """What it gives of its stall torque."""
        if not self.get(TORQUE_ENABLE):
            return 0.0
        beside = self.get(GOAL_POSITION) - self.position
        margin, slope = (CCW_MARGIN, CCW_SLOPE) if beside > 0.0 else (CW_MARGIN, CW_SLOPE)
        over = abs(beside) - self.get(margin)
        if over <= 0.0:
            return 0.0
        share = min(self.get(PUNCH) / MOST_TICKS + over / max(self.get(slope), 1), self.get(TORQUE_LIMIT) / MOST_TICKS)
        return math.copysign(share, beside)

    def _speed(self, share: float) -> float:
        if not self.get(TORQUE_ENABLE):
            return 0.0  # its gear holds what is on it
        speed = _NO_LOAD * self.voltage * (share - self.load)
        told = self.get(MOVING_SPEED) * SPEED_STEP
        return max(-told, min(told, speed)) if told else speed

    def _show(self) -> None:
        held = bool(self.get(TORQUE_ENABLE))
        share = self.load + self.speed / (_NO_LOAD * self.voltage) if held and (self.speed or self.load) else 0.0
        self.put(PRESENT_POSITION, round(self.position))
        self.put(PRESENT_SPEED, unsigned(round(self.speed / SPEED_STEP)))
        self.put(PRESENT_LOAD, unsigned(round(share * MOST_TICKS)))
        self.put(PRESENT_VOLTAGE, round(10.0 * self.voltage))
        self.put(PRESENT_TEMPERATURE, round(self.temperature))
        self.put(MOVING, int(abs(self.speed) > SPEED_STEP))
