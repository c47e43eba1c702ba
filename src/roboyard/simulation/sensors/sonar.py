"""Ultrasonic ranger: the nearest echo within a cone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import Sensor, SonarSpec
from roboyard.errors import DescriptionError
from roboyard.simulation.sensors.base import Host, SimulatedSensor
from roboyard.simulation.sensors.beams import Beams
from roboyard.simulation.sensors.noise import Corruption

_ROWS = 15
"""Beams across the cone: at 5 m and ±15° a thing of 18 cm is not missed."""
_EDGE = 0.15
"""Neighbouring beams whose ways differ by more than this share lie on two sides of an edge, which echoes."""


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
    """

    kind = "sonar"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, SonarSpec):
            raise DescriptionError(f"sensor {sensor.name} is a sonar without a sonar's description", where=robot)
        s = self.spec = sensor.spec
        h = s.half_angle
        self._beams = Beams(host, robot, _ROWS, -h, h, _ROWS, -h, h, s.range_max * 1.05)
        self._cone = (self._beams.grid[:, 0] >= math.cos(h) - 1e-9).reshape(_ROWS, _ROWS)
        self.noise = Corruption((s.noise,), self.rng)

    @property
    def random(self) -> bool:
        """Whether it has noise or fails at random."""
        return super().random or self.spec.phantom > 0.0 or self.spec.dropout > 0.0

    def bind(self) -> None:
        """Find the site and what can echo."""
        super().bind()
        self._beams.bind(self.site, self.body)

    def measure(self, time_ns: int, elapsed_ns: int) -> SonarReading:
        """Send a pulse."""
        s, true = self.spec, self.echo()
        if s.dropout > 0.0 and self.rng.random() < s.dropout:
            true = math.inf
        if s.phantom > 0.0 and self.rng.random() < s.phantom:
            true = self.rng.uniform(s.range_min, min(true, s.range_max))
        if math.isinf(true):
            return SonarReading(time_ns, math.inf)
        noisy = float(self.noisy(np.array([true]), elapsed_ns)[0])
        if noisy < s.range_min:
            return SonarReading(time_ns, -math.inf)
        return SonarReading(time_ns, noisy if noisy <= s.range_max else math.inf)

    def echo(self) -> float:
        """True distance to the nearest thing that echoes [m]; infinite for none."""
        ways = self._beams.cast().reshape(_ROWS, _ROWS)
        heard = self._cone & np.isfinite(ways) & (self._edges(ways) | (self._tilts(ways) <= self.spec.grazing))
        return float(np.min(ways[heard], initial=math.inf))

    def _edges(self, ways: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Beams that have a neighbour with a much longer way."""
        found = np.zeros_like(ways, bool)
        for axis in (0, 1):
            near, far = np.take(ways, range(_ROWS - 1), axis), np.take(ways, range(1, _ROWS), axis)
            with np.errstate(invalid="ignore"):
                first, second = far > near * (1.0 + _EDGE), near > far * (1.0 + _EDGE)
            slices = [slice(None), slice(None)]
            slices[axis] = slice(0, _ROWS - 1)
            found[tuple(slices)] |= first
            slices[axis] = slice(1, _ROWS)
            found[tuple(slices)] |= second
        return found

    def _tilts(self, ways: NDArray[np.float64]) -> NDArray[np.float64]:
        """Angle between beam and surface normal [rad], from the places that neighbouring beams meet."""
        points = self._beams.grid.reshape(_ROWS, _ROWS, 3) * np.where(np.isfinite(ways), ways, 0.0)[..., None]
        normal = np.cross(np.gradient(points, axis=0), np.gradient(points, axis=1))
        length = np.linalg.norm(normal, axis=2)
        across = np.abs(np.einsum("ijk,ijk->ij", normal, self._beams.grid.reshape(_ROWS, _ROWS, 3)))
        return np.asarray(np.arccos(np.clip(across / np.where(length > 0.0, length, 1.0), 0.0, 1.0)))
