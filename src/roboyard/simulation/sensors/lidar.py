"""Planar and multi-layer lidar: rays through the engine's shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.naming import COLLISION, SEEN_ONLY
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.inside import geoms_around
from roboyard.simulation.sensors.rays import cast


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
    across = np.linspace(spec.angle_min, spec.angle_max, spec.samples)
    up = np.linspace(spec.vertical_angle_min, spec.vertical_angle_max, spec.vertical_samples)
    elevation, azimuth = (grid.ravel() for grid in np.meshgrid(up, across, indexing="ij"))
    flat = np.cos(elevation)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=1)


class Lidar(SimulatedSensor[LidarReading]):
    """Lidar.

    Beams hit collision shapes, and the visuals of links that have none.  Its own link is invisible to it, and so is
    any shape of its robot that its optical centre lies inside of (a housing).
    """

    kind = "lidar"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, LidarSpec):
            raise DescriptionError(f"sensor {sensor.name} is a lidar without a lidar's description", where=robot)
        self.spec = sensor.spec
        self._beams = beam_directions(sensor.spec)
        count = len(self._beams)
        self._world = np.zeros((count, 3))
        self._distance = np.zeros(count)
        self._step = (sensor.spec.angle_max - sensor.spec.angle_min) / max(sensor.spec.samples - 1, 1) or 1.0
        self._shape = (sensor.spec.vertical_samples, sensor.spec.samples)
        noise = sensor.spec.noise
        self._offset = noise.mean + (
            self.rng.normal(noise.bias_mean, noise.bias_stddev) if noise.bias_mean or noise.bias_stddev else 0.0
        )

    def bind(self) -> None:
        """Find the site and the shapes that can be seen: not its own body's, not those around the optical centre."""
        super().bind()
        model, data = self.host.model, self.host.data
        placement = self.host.placement(self.robot)
        around = geoms_around(model, data, data.site_xpos[self.site], self.host.watch.owner, placement.index)
        seen = np.isin(model.geom_group, (SEEN_ONLY, COLLISION))
        if self.body > 0:
            seen &= model.geom_bodyid != self.body
        seen[around] = False
        self._geoms = np.flatnonzero(seen)

    def measure(self, time_ns: int, elapsed_ns: int) -> LidarReading:
        """Cast all beams."""
        spec = self.spec
        true = self.cast()
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
        """True distances (beams,) along the beams [m], infinite where nothing stands within range; overwritten by the
        next call."""
        model, data = self.host.model, self.host.data
        cast(
            model._address,
            data._address,
            data.site_xpos[self.site],
            data.site_xmat[self.site].reshape(3, 3),
            self._beams,
            self._world,
            self.spec.angle_min,
            self._step,
            self.spec.range_max,
            *self._shape,
            self._geoms,
            model.geom_type,
            model.geom_size,
            model.geom_aabb,
            data.geom_xpos,
            data.geom_xmat,
            self._distance,
        )
        return self._distance

    def noise_state(self) -> dict[str, float]:
        """The constant bias."""
        return {"offset": float(self._offset)}

    def restore_noise(self, saved: dict[str, float]) -> None:
        """Counterpart of `noise_state`."""
        self._offset = saved["offset"]
