"""Planar and multi-layer lidar: rays through the engine's shapes."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.naming import COLLISION, SEEN_ONLY
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.inside import geoms_around

_HIDDEN_GROUP = 4
_SEEN_GROUPS = np.array([group in (SEEN_ONLY, COLLISION) for group in range(6)], np.uint8)


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
        self._geom = np.zeros(count, np.int32)
        self._shape = (sensor.spec.vertical_samples, sensor.spec.samples)
        noise = sensor.spec.noise
        self._offset = noise.mean + (
            self.rng.normal(noise.bias_mean, noise.bias_stddev) if noise.bias_mean or noise.bias_stddev else 0.0
        )

    def bind(self) -> None:
        """Find the site, the body to leave out, and the shapes around the optical centre."""
        super().bind()
        self._exclude = self.body if self.body > 0 else -1
        placement = self.host.placement(self.robot)
        self._around = geoms_around(
            self.host.model, self.host.data, self.host.data.site_xpos[self.site], self.host.watch.owner, placement.index
        )

    def measure(self, time_ns: int, elapsed_ns: int) -> LidarReading:
        """Cast all beams."""
        spec = self.spec
        true = self.cast()
        ranges = true
        if self._offset or spec.noise.stddev:
            ranges = true + self._offset
            if spec.noise.stddev:
                ranges = ranges + self.rng.normal(0.0, spec.noise.stddev, len(ranges))
        if spec.resolution > 0.0:
            ranges = np.round(ranges / spec.resolution) * spec.resolution
        ranges = np.clip(ranges, spec.range_min, spec.range_max)
        ranges[(true < 0.0) | (true > spec.range_max)] = np.inf
        ranges[(true >= 0.0) & (true < spec.range_min)] = -np.inf
        return LidarReading(time_ns, frozen(ranges.reshape(self._shape)), spec)

    def cast(self) -> NDArray[np.float64]:
        """True distances (beams,) along the beams [m], -1 where nothing stands within range."""
        model, data = self.host.model, self.host.data
        np.matmul(self._beams, data.site_xmat[self.site].reshape(3, 3).T, out=self._world)
        if len(self._around):
            groups = model.geom_group[self._around]
            model.geom_group[self._around] = _HIDDEN_GROUP
        mujoco.mj_multiRay(
            model,
            data,
            data.site_xpos[self.site],
            self._world.ravel(),
            _SEEN_GROUPS,
            True,
            self._exclude,
            self._geom,
            self._distance,
            None,
            len(self._beams),
            self.spec.range_max,
        )
        if len(self._around):
            model.geom_group[self._around] = groups
        return self._distance.copy()

    def noise_state(self) -> dict[str, float]:
        """The constant bias."""
        return {"offset": float(self._offset)}

    def restore_noise(self, saved: dict[str, float]) -> None:
        """Counterpart of `noise_state`."""
        self._offset = saved["offset"]
