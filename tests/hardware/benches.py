"""A few servos on a bench: emulated ones, a port to them, and a clock that only moves when it is told to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from roboyard.hardware.dynamixel.control_table import RETURN_DELAY, TORQUE_ENABLE
from roboyard.hardware.dynamixel.emulation.bus import EmulatedBus, Injection
from roboyard.hardware.dynamixel.emulation.servo import EmulatedServo
from roboyard.hardware.dynamixel.emulation.terminal import EmulatedTerminal
from roboyard.hardware.dynamixel.hardware import DynamixelHardware
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.settings import ServoEntry, ServoMap, ServosFile, Watch

PERIOD = 0.02


class Clock:
    """Time that stands still [s]."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """Servos and what drives them."""

    emulated: list[EmulatedServo]
    terminal: EmulatedTerminal
    port: ServoPort
    hardware: DynamixelHardware
    clock: Clock

    def run(self, seconds: float) -> None:
        """Let cycles pass."""
        for _ in range(round(seconds / PERIOD)):
            self.clock.now += PERIOD
            self.hardware.cycle(self.clock.now)

    def until_fault(self, most: float) -> float:
        """Let cycles pass until motion is stopped; how long that took [s]."""
        begun = self.clock.now
        while self.hardware.fault is None and self.clock.now - begun < most:
            self.run(PERIOD)
        return self.clock.now - begun

    def angles(self) -> np.ndarray:
        """Where the joints truly are [rad]."""
        return self.hardware.servos.angles([servo.position for servo in self.emulated])

    def settle(self) -> None:
        """Let the servos come to rest."""
        for _ in range(50):
            self.clock.now += PERIOD
            self.port.ping(self.emulated[0].table[3])

    def torque(self) -> list[int]:
        """Which hold."""
        return [servo.get(TORQUE_ENABLE) for servo in self.emulated]


def servo_map(n: int, **more: object) -> ServoMap:
    """Servos 1 to n of joints a, b, …; ±2 rad, 1 rad/s, 4 N m; every second turns against its joint."""
    joints = tuple("abcdefghijklmnopqrstuvwxyz"[:n])
    made = ServoMap(
        joints, tuple(range(1, n + 1)), np.full(n, 512), np.array([1, -1] * n)[:n],
        np.full(n, -2.0), np.full(n, 2.0), np.ones(n), np.full(n, 4.0),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def entries(n: int) -> dict[str, ServoEntry]:
    """As in a file."""
    return {joint: ServoEntry(k + 1) for k, joint in enumerate("abcdefghijklmnopqrstuvwxyz"[:n])}


@contextmanager
def bench(
    n: int = 3,
    troubles: Sequence[Injection] = (),
    *,
    watch: Watch | None = None,
    ticks: Sequence[float] = (),
    start: bool = True,
    patience: float = 0.3,
    servos: ServoMap | None = None,
) -> Iterator[Bench]:
    """Servos that are emulated; their clock stands still unless `Bench.run` moves it."""
    clock = Clock()
    settings = ServosFile(entries(n), patience=patience, asked=max(n // 3, 1), watch=watch or Watch())
    emulated = [EmulatedServo(k + 1, [*ticks, *[512.0] * n][k]) for k in range(n)]
    for servo in emulated:
        servo.put(RETURN_DELAY, 0)
    with (
        EmulatedTerminal(EmulatedBus(emulated, troubles), clock) as terminal,
        ServoPort(terminal.path, 1_000_000, patience) as port,
    ):
        hardware = DynamixelHardware(port, settings, servos or servo_map(n), lambda: round(clock() * 1e9))
        if start:
            hardware.start()
        yield Bench(emulated, terminal, port, hardware, clock)
