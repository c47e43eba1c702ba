"""GNSS receiver: latitude, longitude and altitude (WGS 84) where enough of the sky is visible."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import GeodeticOrigin
from roboyard.description.sensors import GnssSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.geometry.constants import WGS84_ECCENTRICITY_SQUARED, WGS84_SEMI_MAJOR_AXIS
from roboyard.sensors.imu import compute_site_velocity
from roboyard.sensors.ray_casting import BeamGrid, BeamPattern
from roboyard.sensors.sensor import NoiseModel, SensorContext, SimulatedSensor, make_read_only

_SKY_ROWS, _SKY_COLUMNS, _MIN_ELEVATION, _MAX_ELEVATION = (
    8,
    16,
    math.radians(15.0),
    math.radians(85.0),
)  # of the sky that is looked at
_MAX_OBSTACLE_DISTANCE = 200.0  # what is farther away does not shade [m]


@dataclass(frozen=True, slots=True)
class GnssReading:
    """One fix.

    Attributes:
        time_ns: When.
        has_fix: Whether there is one; without it the numbers are not-a-number.
        latitude: [rad].
        longitude: [rad].
        altitude: Above the ellipsoid [m].
        velocity: (3,) east, north, up [m/s].
        variance: (3,) of the position: east, north, up [m²].
    """

    time_ns: int
    has_fix: bool
    latitude: float
    longitude: float
    altitude: float
    velocity: NDArray[np.float64]
    variance: NDArray[np.float64]


def to_geodetic(origin: GeodeticOrigin, point: NDArray[np.float64]) -> tuple[float, float, float]:
    """Latitude, longitude [rad] and height [m] of a point (3,) given east, north, up of ``origin`` [m]."""
    phi, lam = origin.latitude, origin.longitude
    sp, cp, sl, cl = math.sin(phi), math.cos(phi), math.sin(lam), math.cos(lam)
    normal = WGS84_SEMI_MAJOR_AXIS / math.sqrt(1.0 - WGS84_ECCENTRICITY_SQUARED * sp * sp)
    e, n, u = (float(value) for value in point)
    x = (normal + origin.elevation) * cp * cl - sl * e - sp * cl * n + cp * cl * u
    y = (normal + origin.elevation) * cp * sl + cl * e - sp * sl * n + cp * sl * u
    z = (normal * (1.0 - WGS84_ECCENTRICITY_SQUARED) + origin.elevation) * sp + cp * n + sp * u
    horizontal = math.hypot(x, y)
    latitude, height = math.atan2(z, horizontal * (1.0 - WGS84_ECCENTRICITY_SQUARED)), 0.0
    for _ in range(6):  # converges by the eccentricity's square a round: a nanometre after four
        sine = math.sin(latitude)
        normal = WGS84_SEMI_MAJOR_AXIS / math.sqrt(1.0 - WGS84_ECCENTRICITY_SQUARED * sine * sine)
        latitude = math.atan2(z + WGS84_ECCENTRICITY_SQUARED * normal * sine, horizontal)
        height = (
            horizontal * math.cos(latitude)
            + z * math.sin(latitude)
            - WGS84_SEMI_MAJOR_AXIS * math.sqrt(1.0 - WGS84_ECCENTRICITY_SQUARED * sine * sine)
        )
    return latitude, math.atan2(y, x), height


class GnssReceiver(SimulatedSensor[GnssReading]):
    """Satellite receiver."""

    kind = "navsat"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, GnssSpec):
            raise DescriptionError(
                f"sensor {sensor.name} is a satellite receiver without its description", location=robot
            )
        s = self._spec = sensor.spec
        self.noise = NoiseModel(
            (s.horizontal, s.horizontal, s.vertical, s.horizontal_velocity, s.horizontal_velocity, s.vertical_velocity),
            self.rng,
        )
        azimuth_max = 2.0 * math.pi * (_SKY_COLUMNS - 1) / _SKY_COLUMNS
        pattern = BeamPattern(
            _SKY_COLUMNS, 0.0, azimuth_max, _MAX_OBSTACLE_DISTANCE, _SKY_ROWS, _MIN_ELEVATION, _MAX_ELEVATION
        )
        self._sky_beams = BeamGrid(pattern)

    def bind(self, context: SensorContext) -> None:
        """Find the site, and what can shade it."""
        super().bind(context)
        self._sky_beams.bind(context.world, self.robot, self.site, self.body)

    def visible_sky_fraction(self) -> float:
        """Share of the sky that nothing hides, by solid angle."""
        is_open = np.isinf(self._sky_beams.cast(world_aligned=True))
        weight = np.hypot(self._sky_beams.directions[:, 0], self._sky_beams.directions[:, 1])
        return float(np.sum(weight * is_open) / np.sum(weight))

    def measure(self, time_ns: int, elapsed_ns: int) -> GnssReading:
        """Look up, then take the position."""
        origin = self.context.environment.origin
        c, s = math.cos(origin.heading), math.sin(origin.heading)
        R_enu_world = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        position = R_enu_world @ self.position
        velocity = R_enu_world @ compute_site_velocity(
            self.context.world.model._address, self.context.world.data._address, self.site
        )
        noisy = self.add_noise(np.concatenate([position, velocity]), elapsed_ns)
        h, v = self._spec.horizontal, self._spec.vertical
        variances = [n.stddev**2 + n.dynamic_bias_stddev**2 + n.bias_stddev**2 for n in (h, h, v)]
        variance = make_read_only(np.array(variances))
        if self.visible_sky_fraction() < self._spec.min_sky_fraction:
            no_velocity = make_read_only(np.full(3, math.nan))
            return GnssReading(time_ns, False, math.nan, math.nan, math.nan, no_velocity, variance)
        latitude, longitude, altitude = to_geodetic(origin, noisy[:3])
        return GnssReading(time_ns, True, latitude, longitude, altitude, make_read_only(noisy[3:].copy()), variance)
