"""Physical constants agree with what their standards derive from them."""

import math

import pytest

from roboyard.geometry import constants


def test_wgs84_semi_minor_axis_and_eccentricity_are_those_of_the_standard() -> None:
    """NIMA TR8350.2: b = 6,356,752.3142 m, e² = 6.69437999014e-3."""
    semi_minor_axis = constants.WGS84_SEMI_MAJOR_AXIS * (1.0 - constants.WGS84_FLATTENING)
    assert semi_minor_axis == pytest.approx(6_356_752.3142, abs=1e-4)
    assert pytest.approx(6.69437999014e-3, abs=1e-14) == constants.WGS84_ECCENTRICITY_SQUARED
    assert pytest.approx(1.0 - (semi_minor_axis / constants.WGS84_SEMI_MAJOR_AXIS) ** 2) == (
        constants.WGS84_ECCENTRICITY_SQUARED
    )


def test_barometric_formula_gives_the_standard_pressure_of_the_tropopause() -> None:
    """ISO 2533: 22,632 Pa at 11 km."""
    exponent = (
        constants.STANDARD_GRAVITY
        * constants.MOLAR_MASS_OF_AIR
        / (constants.GAS_CONSTANT * constants.TEMPERATURE_LAPSE_RATE)
    )
    ratio = 1.0 - constants.TEMPERATURE_LAPSE_RATE * 11_000.0 / constants.SEA_LEVEL_TEMPERATURE
    assert constants.SEA_LEVEL_PRESSURE * math.pow(ratio, exponent) == pytest.approx(22_632.0, rel=1e-3)


def test_gravity_vector_points_down_with_the_magnitude_of_gravity() -> None:
    assert math.hypot(*constants.GRAVITY_VECTOR) == constants.GRAVITY
    assert constants.GRAVITY_VECTOR[2] < 0.0
