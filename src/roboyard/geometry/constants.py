"""Physical constants, in SI units.

Accelerations of gravity come in three values that must not replace each other: what the package computes robots with,
the conventional standard value of physical formulas, and the default of the SDF format.
"""

from __future__ import annotations

from typing import Final

GRAVITY: Final = 9.81
"""Gravitational acceleration in the computations of robots, worlds and motions [m/s²]."""

GRAVITY_VECTOR: Final = (0.0, 0.0, -GRAVITY)
"""Gravity vector in a frame whose z points up [m/s²]."""

STANDARD_GRAVITY: Final = 9.80665
"""Standard acceleration of gravity [m/s²] (ISO 80000-3); inertial sensors and the standard atmosphere refer to it."""

SDF_GRAVITY_VECTOR: Final = (0.0, 0.0, -9.8)
"""Default of SDF for a world without gravity [m/s²] (SDFormat 1.12, element <gravity>)."""

SPEED_OF_SOUND: Final = 343.0
"""Speed of sound in dry air at 20 °C [m/s]."""

WGS84_SEMI_MAJOR_AXIS: Final = 6_378_137.0
"""Equatorial radius of the WGS 84 ellipsoid [m]."""

WGS84_FLATTENING: Final = 1.0 / 298.257223563
"""Flattening of the WGS 84 ellipsoid."""

WGS84_ECCENTRICITY_SQUARED: Final = WGS84_FLATTENING * (2.0 - WGS84_FLATTENING)
"""Square of the first eccentricity of the WGS 84 ellipsoid."""

SEA_LEVEL_PRESSURE: Final = 101_325.0
"""Pressure of the International Standard Atmosphere at sea level [Pa] (ISO 2533)."""

SEA_LEVEL_TEMPERATURE: Final = 288.15
"""Temperature of the International Standard Atmosphere at sea level [K]."""

TEMPERATURE_LAPSE_RATE: Final = 0.0065
"""Decrease of temperature with height in the International Standard Atmosphere up to 11 km [K/m]."""

MOLAR_MASS_OF_AIR: Final = 0.0289644
"""Molar mass of dry air [kg/mol] (ISO 2533)."""

GAS_CONSTANT: Final = 8.31447
"""Molar gas constant [J/(mol K)], the value that the barometric formula is usually given with."""
