"""Emulated Dynamixel servos for tests, on a wire in memory whose time does not depend on the load of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import serial
from numpy.typing import NDArray

from roboyard.hardware import JointCommand
from roboyard.hardware.dynamixel.config import FaultLimits, ServoConfig, ServoMap, ServosConfig
from roboyard.hardware.dynamixel.control_table import RETURN_DELAY, TORQUE_ENABLE
from roboyard.hardware.dynamixel.emulation.bus import EmulatedBus, FaultInjection, PseudoTerminal, UnpluggedError
from roboyard.hardware.dynamixel.emulation.servo import EmulatedServo
from roboyard.hardware.dynamixel.hardware import DynamixelHardware
from roboyard.hardware.dynamixel.port import ServoPort

PERIOD = 0.02
"""Between cycles [s]."""
JOINTS = "abcdefghijklmnopqrstuvwxyz"


class Clock:
    """Time that stands unless a test moves it [s]."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class MemoryWire:
    """A serial port, as pyserial has them, whose other end is an emulated bus in the same thread.

    An answer is there as soon as its request was written, or it never comes: each read that finds nothing lets the
    wire's own time go on by the port's timeout.  Waiting for an answer that is lost takes no time on the wall, and no
    answer is late because the machine is busy.

    Args:
        bus: The servos.
        clock: Gives the time of the servos [s].

    Attributes:
        seconds: Time that readers have waited [s].
        timeout: How long a read waits [s]; set by who opens the port.
    """

    def __init__(self, bus: EmulatedBus, clock: Clock) -> None:
        self._bus, self._clock, self._received = bus, clock, b""
        self.seconds, self.timeout = 0.0, 0.0

    def write(self, data: bytes | Sequence[int]) -> int:
        """Send a request; what the servos answer can be read at once."""
        try:
            for _, answer in self._bus.receive(bytes(data), self._clock()):
                self._received += answer
        except UnpluggedError as error:
            raise serial.SerialException("the cable is unplugged") from error
        return len(data)

    def read(self, size: int = 1) -> bytes:
        """At most ``size`` bytes; none after the timeout."""
        if not self._received:
            self.seconds += self.timeout
        data, self._received = self._received[:size], self._received[size:]
        return data

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read."""
        return len(self._received)

    def reset_input_buffer(self) -> None:
        """Drop what was not read."""
        self._received = b""

    def set_low_latency_mode(self, enabled: bool) -> None:
        """A wire in memory has no latency."""

    def close(self) -> None:
        """Nothing is left to be freed."""


@dataclass
class EmulatedServos:
    """Emulated servos and the hardware that drives them.

    Attributes:
        emulated: The servos, in the order of the joints.
        port: To their bus.
        hardware: Under test.
        clock: Of the servos and of the cycles.
    """

    emulated: list[EmulatedServo]
    port: ServoPort
    hardware: DynamixelHardware
    clock: Clock

    def run(self, seconds: float) -> None:
        """Let cycles pass."""
        for _ in range(round(seconds / PERIOD)):
            self.clock.now += PERIOD
            self.hardware.run_cycle(self.clock.now)

    def run_until_fault(self, timeout: float) -> float:
        """Let cycles pass until motion is stopped; returns how long that took [s]."""
        begin = self.clock.now
        while self.hardware.fault is None and self.clock.now - begin < timeout:
            self.run(PERIOD)
        return self.clock.now - begin

    def settle(self) -> None:
        """Let the servos come to rest without cycles."""
        for _ in range(50):
            self.clock.now += PERIOD
            self.port.ping(self.emulated[0].table[3])

    @property
    def angles(self) -> NDArray[np.float64]:
        """True positions of the joints [rad]."""
        return self.hardware.servos.to_angles([servo.position for servo in self.emulated])

    @property
    def torque_enabled(self) -> list[int]:
        """Whether each servo holds its position, 1 or 0."""
        return [servo.get(TORQUE_ENABLE) for servo in self.emulated]


def servo_map(n: int, **changes: object) -> ServoMap:
    """Servos 1 to n of joints a, b, …; ±2 rad, 1 rad/s, 4 N m; every second turns against its joint."""
    servos = ServoMap(
        tuple(JOINTS[:n]), tuple(range(1, n + 1)), np.full(n, 512), np.array([1, -1] * n)[:n],
        np.full(n, -2.0), np.full(n, 2.0), np.ones(n), np.full(n, 4.0),
    )  # fmt: skip
    return replace(servos, **changes)  # type: ignore[arg-type]


def position_command(*values: float, joints: str = "abc") -> JointCommand:
    """Set-points [rad] of joints, one letter each."""
    return JointCommand("position", tuple(joints), np.array(values))


@contextmanager
def emulated_servos(
    n: int = 3,
    injections: Sequence[FaultInjection] = (),
    *,
    fault_limits: FaultLimits | None = None,
    ticks: Sequence[float] = (),
    start: bool = True,
    reply_timeout: float = 0.3,
    servos: ServoMap | None = None,
    terminal: bool = False,
) -> Iterator[EmulatedServos]:
    """Emulated servos whose clock stands unless `EmulatedServos.run` moves it.

    Args:
        n: How many.
        injections: What goes wrong.
        fault_limits: When motion is stopped.
        ticks: Positions at which the first ones start; 512 else.
        start: Whether the hardware is started.
        reply_timeout: Maximum time until a reply [s], on the wire's own time.
        servos: The joints' servos; None: `servo_map`.
        terminal: Whether they hang on a pseudo-terminal, served by a thread, as for other programs: then answers take
            time on the wall, and the reply timeout must be long.
    """
    clock = Clock()
    entries = {joint: ServoConfig(k + 1) for k, joint in enumerate(JOINTS[:n])}
    settings = ServosConfig(
        entries,
        reply_timeout=reply_timeout,
        servos_polled_per_cycle=max(n // 3, 1),
        fault_limits=fault_limits or FaultLimits(),
    )
    emulated = [EmulatedServo(k + 1, [*ticks, *[512.0] * n][k]) for k in range(n)]
    for servo in emulated:
        servo.set(RETURN_DELAY, 0)
    bus = EmulatedBus(emulated, injections)
    with ExitStack() as stack:
        port: ServoPort
        if terminal:
            path = stack.enter_context(PseudoTerminal(bus, clock)).path
            port = stack.enter_context(ServoPort(path, 1_000_000, reply_timeout))
        else:
            wire = MemoryWire(bus, clock)
            with mock.patch("dynamixel_sdk.port_handler.serial", _serial_module(wire)):
                port = stack.enter_context(ServoPort("memory", 1_000_000, reply_timeout, lambda: wire.seconds))
        hardware = DynamixelHardware(port, settings, servos or servo_map(n), lambda: round(clock() * 1e9))
        if start:
            hardware.start()
        yield EmulatedServos(emulated, port, hardware, clock)


def _serial_module(wire: MemoryWire) -> Any:
    """What dynamixel-sdk takes from pyserial when it opens a port."""
    return SimpleNamespace(Serial=lambda **_: wire, EIGHTBITS=serial.EIGHTBITS)
