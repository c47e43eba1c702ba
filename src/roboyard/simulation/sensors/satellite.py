"""Satellite position: latitude, longitude and height by WGS 84, where the sky is open."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import GeodeticOrigin
from roboyard.description.sensors import GnssSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.geometry.constants import WGS84_ECCENTRICITY_SQUARED, WGS84_SEMI_MAJOR_AXIS
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.beams import Beams
from roboyard.simulation.sensors.imu import velocity_of_site
from roboyard.simulation.sensors.noise import Corruption

_ROWS, _COLUMNS, _LOW, _TOP = 8, 16, math.radians(15.0), math.radians(85.0)  # of the sky that is looked at
_HIGH = 200.0  # what is farther away does not shade [m]


@dataclass(frozen=True, slots=True)
class SatelliteReading:
    """One fix.

    Attributes:
        time_ns: When.
        fix: Whether there is one; without it the numbers are not-a-number.
        latitude: [rad].
        longitude: [rad].
        altitude: Above the ellipsoid [m].
        velocity: (3,) east, north, up [m/s].
        variance: (3,) of the position: east, north, up [m²].
    """

    time_ns: int
    fix: bool
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
    across = math.hypot(x, y)
    latitude, height = math.atan2(z, across * (1.0 - WGS84_ECCENTRICITY_SQUARED)), 0.0
    for _ in range(6):  # converges by the eccentricity's square a round: a nanometre after four
        sine = math.sin(latitude)
        normal = WGS84_SEMI_MAJOR_AXIS / math.sqrt(1.0 - WGS84_ECCENTRICITY_SQUARED * sine * sine)
        latitude = math.atan2(z + WGS84_ECCENTRICITY_SQUARED * normal * sine, across)
        height = (
            across * math.cos(latitude)
            + z * math.sin(latitude)
            - WGS84_SEMI_MAJOR_AXIS * math.sqrt(1.0 - WGS84_ECCENTRICITY_SQUARED * sine * sine)
        )
    return latitude, math.atan2(y, x), height


class Satellite(SimulatedSensor[SatelliteReading]):
    """Satellite receiver."""

    kind = "navsat"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, GnssSpec):
            raise DescriptionError(
                f"sensor {sensor.name} is a satellite receiver without its description", location=robot
            )
        s = self._spec = sensor.spec
        self.noise = Corruption(
            (s.horizontal, s.horizontal, s.vertical, s.horizontal_velocity, s.horizontal_velocity, s.vertical_velocity),
            self.rng,
        )
        round_about = 2.0 * math.pi * (_COLUMNS - 1) / _COLUMNS
        self._sky = Beams(host, robot, _COLUMNS, 0.0, round_about, _ROWS, _LOW, _TOP, _HIGH)

    def bind(self) -> None:
        """Find the site, and what can shade it."""
        super().bind()
        self._sky.bind(self.site, self.body)

    def open_sky(self) -> float:
        """Share of the sky that nothing hides, by solid angle."""
        seen = np.isinf(self._sky.cast(upright=True))
        weight = np.hypot(self._sky.grid[:, 0], self._sky.grid[:, 1])
        return float(np.sum(weight * seen) / np.sum(weight))

    def measure(self, time_ns: int, elapsed_ns: int) -> SatelliteReading:
        """Look up, then take the position."""
        origin = self.host.world.origin
        c, s = math.cos(origin.heading), math.sin(origin.heading)
        east = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        place = east @ self.host.data.site_xpos[self.site]
        speed = east @ velocity_of_site(self.host.model._address, self.host.data._address, self.site)
        noisy = self.noisy(np.concatenate([place, speed]), elapsed_ns)
        h, v = self._spec.horizontal, self._spec.vertical
        spread = [n.stddev**2 + n.dynamic_bias_stddev**2 + n.bias_stddev**2 for n in (h, h, v)]
        variance = frozen(np.array(spread))
        if self.open_sky() < self._spec.min_sky_fraction:
            nothing = frozen(np.full(3, math.nan))
            return SatelliteReading(time_ns, False, math.nan, math.nan, math.nan, nothing, variance)
        latitude, longitude, altitude = to_geodetic(origin, noisy[:3])
        return SatelliteReading(time_ns, True, latitude, longitude, altitude, frozen(noisy[3:].copy()), variance)
