"""Planar and multi-layer lidar: rays through the engine's shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.beams import Beams, directions
from roboyard.simulation.sensors.optics import GROUPS, follow, optics_table


@dataclass(frozen=True, slots=True)
class LidarReading:
    """One sweep.

    Attributes:
        time_ns: When; all beams at once.
        ranges: (layers, samples) [m]; ``inf`` where nothing came back, ``-inf`` where something is nearer than the
            least range (REP 117).
        spec: Angles and limits.
    """

    time_ns: int
    ranges: NDArray[np.float64]
    spec: LidarSpec


def beam_directions(spec: LidarSpec) -> NDArray[np.float64]:
    """Unit vectors (layers · samples, 3) in the sensor frame, layers from below, samples counter-clockwise."""
    return directions(
        spec.samples, spec.angle_min, spec.angle_max, spec.vertical_samples, spec.vertical_angle_min,
        spec.vertical_angle_max,
    )  # fmt: skip


class Lidar(SimulatedSensor[LidarReading]):
    """Lidar: beams as `Beams` casts them, sent on by mirrors and panes (see `optics`)."""

    kind = "lidar"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, LidarSpec):
            raise DescriptionError(f"sensor {sensor.name} is a lidar without a lidar's description", location=robot)
        s = self.spec = sensor.spec
        self.beams = Beams(
            host, robot, s.samples, s.angle_min, s.angle_max, s.vertical_samples, s.vertical_angle_min,
            s.vertical_angle_max, s.range_max,
        )  # fmt: skip
        self._shape = (s.vertical_samples, s.samples)
        noise = s.noise
        self._offset = noise.mean + (
            self.rng.normal(noise.bias_mean, noise.bias_stddev) if noise.bias_mean or noise.bias_stddev else 0.0
        )

    @property
    def random(self) -> bool:
        """Whether it has noise or fails at random."""
        return (
            self.spec.noise.stddev > 0.0
            or self.spec.false_echo_probability > 0.0
            or self.spec.dropout_probability > 0.0
        )

    def bind(self) -> None:
        """Find the site, the shapes that can be seen, and which of them are mirrors or glass."""
        super().bind()
        self.beams.bind(self.site, self.body)
        self._optics = optics_table(self.host)
        self._plain = not self._optics[self.beams.geoms].any()

    def measure(self, time_ns: int, elapsed_ns: int) -> LidarReading:
        """Cast all beams."""
        spec = self.spec
        true = self.cast()
        if spec.false_echo_probability > 0.0 or spec.dropout_probability > 0.0:
            true = self._failing(true)
        ranges = true + self._offset
        if spec.noise.stddev > 0.0:
            ranges += spec.noise.stddev * self.rng.standard_normal(len(ranges))
        if spec.resolution > 0.0:
            ranges = np.round(ranges / spec.resolution) * spec.resolution
        ranges = np.clip(ranges, spec.range_min, spec.range_max)
        ranges[np.isinf(true)] = np.inf
        ranges[true < spec.range_min] = -np.inf
        return LidarReading(time_ns, frozen(ranges.reshape(self._shape)), spec)

    def cast(self) -> NDArray[np.float64]:
        """Lengths (beams,) of the beams' ways [m], infinite where nothing comes back; overwritten by the next call."""
        ways = self.beams.cast()
        if not self._plain:
            model, data = self.host.model, self.host.data
            follow(
                model._address, data._address, data.site_xpos[self.site], self.beams.world, ways, self.beams.hit,
                self._optics, self.spec.range_max, self.body if self.body > 0 else -1, GROUPS,
            )  # fmt: skip
        return ways

    def _failing(self, true: NDArray[np.float64]) -> NDArray[np.float64]:
        """Beams that come back with nothing, and beams that report what is not there."""
        spec, chance = self.spec, self.rng.random((2, len(true)))
        true = np.where(chance[0] < spec.dropout_probability, np.inf, true)
        nearer = self.rng.uniform(spec.range_min, np.minimum(true, spec.range_max))
        return np.where(chance[1] < spec.false_echo_probability, nearer, true)

    def noise_state(self) -> dict[str, float]:
        """The constant bias."""
        return {"offset": float(self._offset)}

    def restore_noise(self, saved: dict[str, float]) -> None:
        """Counterpart of `noise_state`."""
        self._offset = saved["offset"]
