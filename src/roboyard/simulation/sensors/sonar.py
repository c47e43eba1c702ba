"""Ultrasonic ranger: the nearest echo within a cone, and what other pulses make of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.description.sensors import Sensor, SonarSpec
from roboyard.errors import DescriptionError
from roboyard.geometry.constants import SPEED_OF_SOUND
from roboyard.simulation.sensors.base import Host, SimulatedSensor
from roboyard.simulation.sensors.beams import Beams
from roboyard.simulation.sensors.noise import Corruption
from roboyard.simulation.sensors.sound import Patches, arrivals, detected, hears, patches_of

_ROWS = 15
"""Beams across the cone: at 5 m and ±15° a thing of 18 cm is not missed."""
_SPARE = 1.05
"""How much farther than the range it listens to sound is followed, since noise may bring it near."""
_SIGHT = 1.3
"""How much farther than that beams look, so that edges at the far end are told from surfaces that go on."""
_NOWHERE = np.zeros((1, 1))
"""Ways of beams that nobody asks for."""


@dataclass(frozen=True, slots=True)
class SonarReading:
    """One echo.

    Attributes:
        time_ns: When the pulse was sent.
        range: Distance [m]; ``inf`` without an echo, ``-inf`` for one that came too early.
    """

    time_ns: int
    range: float


class Sonar(SimulatedSensor[SonarReading]):
    """Ultrasonic ranger.

    The beam is wide, so it tells how near something is but not where.  A smooth surface that is tilted too far away
    mirrors the pulse away and is not heard, but its edges are.

    It takes whatever it hears for its own pulse: also that of another sonar of its frequency, which comes straight or
    by one reflection, and the late echo of its own pulse before.  Sonars send at multiples of their periods, whether
    anybody reads them or not; while sound is on its way, things are taken to stand still.
    """

    kind = "sonar"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        expect_kernels(arrivals, patches_of)
        if not isinstance(sensor.spec, SonarSpec):
            raise DescriptionError(f"sensor {sensor.name} is a sonar without a sonar's description", location=robot)
        s = self.spec = sensor.spec
        h = s.half_angle
        self._beams = Beams(host, robot, _ROWS, -h, h, _ROWS, -h, h, s.range_max * _SIGHT)
        self._cone = (self._beams.grid[:, 0] >= math.cos(h) - 1e-9).reshape(_ROWS, _ROWS)
        self._pulse = SPEED_OF_SOUND * s.burst_cycles / s.frequency
        self._since_ns = host.time_ns
        # Times from now [ns] of pulses that could be heard: over the longest way, and over none.
        longest = 2.0 * s.range_max * _SPARE
        self._window = (
            math.ceil((2.0 * s.range_min - longest) / SPEED_OF_SOUND * 1e9),
            math.floor(2.0 * s.range_max / SPEED_OF_SOUND * 1e9),
        )
        self.noise = Corruption((s.noise,), self.rng)

    @property
    def random(self) -> bool:
        """Whether it has noise or fails at random."""
        return super().random or self.spec.false_echo_probability > 0.0 or self.spec.dropout_probability > 0.0

    def bind(self) -> None:
        """Find the site and what can echo."""
        super().bind()
        self._beams.bind(self.site, self.body)
        self._others: tuple[Sonar, ...] | None = None
        self._seen: tuple[int, Patches, NDArray[np.float64]] | None = None

    def measure(self, time_ns: int, elapsed_ns: int) -> SonarReading:
        """Send a pulse."""
        s = self.spec
        own = self.echo()
        true = math.inf if s.dropout_probability > 0.0 and self.rng.random() < s.dropout_probability else own
        true = min(true, self._disturbance(own))
        if s.false_echo_probability > 0.0 and self.rng.random() < s.false_echo_probability:
            true = min(true, self.rng.uniform(s.range_min, max(min(true, s.range_max), s.range_min)))
        if math.isinf(true):
            return SonarReading(time_ns, math.inf)
        noisy = float(self.noisy(np.array([true]), elapsed_ns)[0])
        if noisy < s.range_min:
            return SonarReading(time_ns, -math.inf)
        return SonarReading(time_ns, noisy if noisy <= s.range_max else math.inf)

    def echo(self) -> float:
        """Distance at which its own pulse is heard [m]; infinite for none."""
        self._seen = None
        return 0.5 * self._way_of(self)

    # -- other pulses --------------------------------------------------------------------------------------------------
    def _disturbance(self, own: float) -> float:
        """Distance that the first sound of another pulse makes it believe [m]; ``own``: that of its own echo."""
        s, nearest = self.spec, math.inf
        for other in self._audible():
            way = 2.0 * own if other is self else self._way_of(other)
            if math.isinf(way):
                continue
            for sent_ns in other._pulses(self, 2.0 * s.range_min - way, 2.0 * s.range_max - way):
                nearest = min(nearest, 0.5 * (way + SPEED_OF_SOUND * 1e-9 * sent_ns))
        return nearest

    def _pulses(self, ear: Sonar, first: float, last: float) -> Iterator[int]:
        """Times [ns] from now at which it sends, while sound goes ``first`` to ``last`` [m]; its own ear knows now."""
        now, period, step = self.host.time_ns, self.period_ns, self.host.timestep_ns
        low, high = math.ceil(first / SPEED_OF_SOUND * 1e9), math.floor(last / SPEED_OF_SOUND * 1e9)
        if ear is self:  # the pulse of now is what it listens for, those before came by its period
            began = max(low, self._since_ns - now)
            yield from range(-period, began - 1, -period) if period else ()
        elif not period:
            yield from (0,) if low <= 0 <= high else ()
        else:
            start = self._since_ns + round(self.sensor.phase * 1e9)
            for number in range(max(1, (now + low - start) // period), (now + high + step - start) // period + 1):
                sent = (start + number * period) // step * step - now
                if low <= sent <= high:
                    yield sent

    def _audible(self) -> Iterator[Sonar]:
        """Itself, and the sonars that send at present whose pulses it cannot tell from its own and may hear in time."""
        if self._others is None:
            host = self.host
            found = (one for name in host.models for one in host.sensors(name) if isinstance(one, Sonar))
            band = self.spec.frequency / self.spec.burst_cycles
            self._others = tuple(one for one in found if abs(one.spec.frequency - self.spec.frequency) < band)
        now, step = self.host.time_ns, self.host.timestep_ns
        first, last = self._window
        for one in self._others:
            if one is self:
                yield one
                continue
            if one.period_ns:  # is its newest pulse that could still be heard one that could be heard by now?
                start = one._since_ns + round(one.sensor.phase * 1e9)
                number = (now + last + step - start) // one.period_ns
                if number < 1 or (start + number * one.period_ns) // step * step - now < first:
                    continue
            if self.host.faults.powered(one.robot) and not one.is_out():
                yield one

    def _way_of(self, other: Sonar) -> float:
        """Way [m] of the first sound of a pulse of ``other`` that it hears; infinite if it hears none."""
        s, own = self.spec, other is self
        most = 2.0 * s.range_max * _SPARE
        patches, _ = other._look()
        _, free = (None, _NOWHERE) if own else self._look()
        ear = self._place()
        ways, away = arrivals(
            *patches, other._place(), ear, self._turn(), free, s.half_angle, s.max_incidence_angle, own
        )
        straight = 0.0 if own else float(np.linalg.norm(other._place() - ear))
        meets = 0.0 < straight <= most and self._meets(other)
        near = ways <= most
        ways, away = ways[near], away[near]
        if s.detection_threshold <= 0.0:
            first = float(ways.min()) if len(ways) else math.inf
            return min(first, straight) if meets else first
        energies = (s.range_max / np.maximum(away, 1e-9)) ** 2 / other._cone.sum()
        if meets:
            ways, energies = np.append(ways, straight), np.append(energies, (2.0 * s.range_max / straight) ** 2)
        return detected(ways, energies, self._pulse, s.detection_threshold)

    def _meets(self, other: Sonar) -> bool:
        """Whether the two look at each other, and at least one sees the other."""
        there, here = other._place(), self._place()
        if not (self._faces(there) and other._faces(here)):
            return False
        return self._hears(there) or other._hears(here)

    def _faces(self, point: NDArray[np.float64]) -> bool:
        """Whether a point (3,) of the world lies in its cone."""
        way = (point - self._place()) @ self._turn()
        return bool(way[0] >= math.cos(self.spec.half_angle) * np.linalg.norm(way))

    def _hears(self, point: NDArray[np.float64]) -> bool:
        """Whether a point (3,) of the world lies in its cone with nothing between."""
        x, y, z = (point - self._place()).tolist()
        return bool(
            hears(x, y, z, math.sqrt(x * x + y * y + z * z), self._turn(), self._look()[1], self.spec.half_angle)
        )

    # -- looking -------------------------------------------------------------------------------------------------------
    def _place(self) -> NDArray[np.float64]:
        return np.asarray(self.host.data.site_xpos[self.site])

    def _turn(self) -> NDArray[np.float64]:
        return np.asarray(self.host.data.site_xmat[self.site].reshape(3, 3))

    def _look(self) -> tuple[Patches, NDArray[np.float64]]:
        """Patches that its pulse falls on now, and the ways of all beams (rows, columns) [m]."""
        now = self.host.time_ns
        if self._seen is None or self._seen[0] != now:
            ways = self._beams.cast().reshape(_ROWS, _ROWS).copy()
            grid = self._beams.grid.reshape(_ROWS, _ROWS, 3)
            self._seen = (
                now,
                Patches(*patches_of(ways, grid, self._cone, self._place(), self._turn(), self.spec.range_max * _SIGHT)),
                ways,
            )
        return self._seen[1], self._seen[2]

    # -- state ---------------------------------------------------------------------------------------------------------
    def noise_state(self) -> dict[str, Any]:
        """Biases, and when it was switched on."""
        return {**super().noise_state(), "since_ns": self._since_ns}

    def restore_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `noise_state`."""
        super().restore_noise(saved)
        self._since_ns, self._seen = int(saved["since_ns"]), None
