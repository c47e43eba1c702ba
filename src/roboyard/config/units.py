"""Quantities with units: "500 mm", "30 deg", "2 km/h", "3 min", "0.1 N*m/rad".

A unit is a product of powers of named units. Conversion is exact rational arithmetic (with separate powers of pi) and
rounds once at the end, so "500 mm" is exactly the float 0.5.

Source of the factors: The International System of Units (BIPM, 9th edition), tables 2, 4, 7 and 8.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from roboyard.errors import InputError, similar_names

_BASE_UNITS = ("m", "kg", "s", "A", "K", "rad", "px")
Dimension = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Factor to SI, `ratio * pi**pi_power`, and the powers of m, kg, s, A, K, rad, px."""

    ratio: Fraction
    pi_power: int
    dimension: Dimension

    def __mul__(self, other: Unit) -> Unit:
        powers = tuple(a + b for a, b in zip(self.dimension, other.dimension, strict=True))
        return Unit(self.ratio * other.ratio, self.pi_power + other.pi_power, powers)

    def __pow__(self, n: int) -> Unit:
        return Unit(self.ratio**n, self.pi_power * n, tuple(power * n for power in self.dimension))


def _unit(ratio: int | str | Fraction, pi_power: int = 0, **powers: int) -> Unit:
    return Unit(Fraction(ratio), pi_power, tuple(powers.get(base, 0) for base in _BASE_UNITS))


DIMENSIONLESS = _unit(1)
_PREFIXABLE_UNITS = {
    "m": _unit(1, m=1),
    "g": _unit("1/1000", kg=1),
    "s": _unit(1, s=1),
    "A": _unit(1, A=1),
    "K": _unit(1, K=1),
    "rad": _unit(1, rad=1),
    "N": _unit(1, kg=1, m=1, s=-2),
    "Hz": _unit(1, s=-1),
    "J": _unit(1, kg=1, m=2, s=-2),
    "W": _unit(1, kg=1, m=2, s=-3),
    "V": _unit(1, kg=1, m=2, s=-3, A=-1),
    "Pa": _unit(1, kg=1, m=-1, s=-2),
    "ohm": _unit(1, kg=1, m=2, s=-3, A=-2),
    "T": _unit(1, kg=1, s=-2, A=-1),
}
_PREFIXES = {"n": -9, "u": -6, "µ": -6, "m": -3, "c": -2, "d": -1, "": 0, "k": 3, "M": 6, "G": 9}
_PREFIXED_UNITS = {
    prefix + name: _unit(Fraction(10) ** n) * unit
    for prefix, n in _PREFIXES.items()
    for name, unit in _PREFIXABLE_UNITS.items()
}
_NAMED_UNITS = _PREFIXED_UNITS | {
    "min": _unit(60, s=1),
    "h": _unit(3600, s=1),
    "Ah": _unit(3600, A=1, s=1),
    "mAh": _unit("18/5", A=1, s=1),
    "Wh": _unit(3600, kg=1, m=2, s=-2),
    "in": _unit("0.0254", m=1),
    "ft": _unit("0.3048", m=1),
    "t": _unit(1000, kg=1),
    "bar": _unit(100_000, kg=1, m=-1, s=-2),
    "deg": _unit("1/180", 1, rad=1),
    "°": _unit("1/180", 1, rad=1),
    "rev": _unit(2, 1, rad=1),
    "turn": _unit(2, 1, rad=1),
    "rpm": _unit("1/30", 1, rad=1, s=-1),
    "px": _unit(1, px=1),
    "%": _unit("1/100"),
    "1": DIMENSIONLESS,
}

# Names of dimensions, and their common units.
_QUANTITY_NAMES = {
    "m": ("a length", "m, cm, mm, km"),
    "m^2": ("an area", "m^2, cm^2"),
    "m^3": ("a volume", "m^3, cm^3"),
    "s": ("a time", "s, ms, min, h"),
    "Hz": ("a frequency", "Hz, kHz"),
    "rad": ("an angle", "rad, deg, turn"),
    "kg": ("a mass", "kg, g, t"),
    "m/s": ("a speed", "m/s, km/h, mm/s"),
    "rad/s": ("an angular speed", "rad/s, deg/s, rpm"),
    "m/s^2": ("an acceleration", "m/s^2, mm/s^2"),
    "rad/s^2": ("an angular acceleration", "rad/s^2, deg/s^2"),
    "N": ("a force", "N, kN"),
    "N*m": ("a torque or an energy", "N*m, mN*m, J"),
    "kg*m^2": ("a moment of inertia", "kg*m^2"),
    "N/m": ("a stiffness", "N/m, N/mm"),
    "V": ("a voltage", "V, mV"),
    "A": ("a current", "A, mA"),
    "W": ("a power", "W, kW"),
    "Ah": ("a charge", "Ah, mAh"),
    "px": ("a number of pixels", "px"),
    "1": ("a bare number", "no unit, or %"),
}
_UNIT_FACTOR = re.compile(r"(?P<name>[A-Za-zµ°%]+|1)(?:\^?(?P<power>-?[1-9])|(?P<sign>[²³]))?")
_SEPARATOR = re.compile(r"\s*(?P<op>[*·/])\s*|\s+")
# At most three digits of exponent: a larger exact power of ten would fill the memory.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?)\s*(?P<unit>.*)", re.ASCII
)


_ALTERNATIVE = " or "


class UnitError(InputError, ValueError):
    """The text is not a quantity, its unit is unknown, or it measures another quantity; the message states which."""


@lru_cache(maxsize=512)
def parse_unit(text: str) -> Unit:
    """Parse a unit; "" is a bare number.

    Raises:
        UnitError: A part is not a known unit.
    """
    result, position, sign = DIMENSIONLESS, 0, 1
    while position < len(text):
        match = _UNIT_FACTOR.match(text, position)
        name = match["name"] if match else text[position:]
        if match is None or name not in _NAMED_UNITS:
            suggestions = similar_names(name, _NAMED_UNITS, cutoff=0.5)
            raise UnitError(f"unknown unit {name!r}" + (f"; similar: {', '.join(suggestions)}" if suggestions else ""))
        power = int(match["power"] or {"²": 2, "³": 3, None: 1}[match["sign"]])
        result = result * _NAMED_UNITS[name] ** (sign * power)
        position = match.end()
        if position < len(text):
            separator = _SEPARATOR.match(text, position)
            if separator is None or separator.end() == len(text):
                raise UnitError(f"invalid unit {text!r}: a product is written N*m, a quotient m/s, a power m^2")
            sign = -1 if separator["op"] == "/" else 1
            position = separator.end()
    return result


def check_unit(text: str) -> None:
    """Check the unit of a declaration: a unit, or several separated by " or ", as joints of both kinds have.

    Raises:
        UnitError: A part is not a known unit.
    """
    for one in text.split(_ALTERNATIVE):
        parse_unit(one)


def describe_quantity(unit: str) -> tuple[str, str]:
    """Return the quantity of a unit ("a length") and its common units ("m, cm, mm, km")."""
    first, *others = unit.split(_ALTERNATIVE)
    if others:
        quantities = [describe_quantity(one) for one in (first, *others)]
        return " or ".join(name for name, _ in quantities), ", ".join(examples for _, examples in quantities)
    dimension = parse_unit(unit).dimension
    for canonical, quantity in _QUANTITY_NAMES.items():
        if parse_unit(canonical).dimension == dimension:
            return quantity
    return f"a quantity in {unit}", unit


def parse_quantity(text: str, unit: str) -> float:
    """Parse a text such as "500 mm" into a number in `unit`.

    Args:
        text: A number and a unit.
        unit: The unit of the result, "" for a bare number; "rad or m" accepts either kind.

    Raises:
        UnitError: The text is not a quantity, its unit is unknown, or it measures another quantity than `unit` does.
    """
    match = _QUANTITY.fullmatch(text.strip())
    target_quantity, examples = describe_quantity(unit)
    if match is None:
        raise UnitError(f"{text!r:.80} is not a number with a unit, expected {target_quantity} ({examples})")
    parsed_unit = parse_unit(match["unit"])
    alternatives = [parse_unit(one) for one in unit.split(_ALTERNATIVE)]
    target_unit = next((one for one in alternatives if one.dimension == parsed_unit.dimension), alternatives[0])
    if parsed_unit.dimension != target_unit.dimension:
        parsed_quantity = describe_quantity(match["unit"])[0]
        raise UnitError(f"{text!r} is {parsed_quantity}, expected {target_quantity} ({examples})")
    try:
        number = float(Fraction(match["number"]) * parsed_unit.ratio / target_unit.ratio)
    except OverflowError as error:
        raise UnitError(f"{text!r} is too large") from error
    return number * math.pi ** (parsed_unit.pi_power - target_unit.pi_power)


_NUMBER_PATTERN = (
    r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})(?![0-9.])"
    r"([eE][+-]?[0-9]{1,3}(?![0-9])|(?![eE][+-]?[0-9]))"  # a search must not take the end of a number for a unit
)
_NAME_PATTERN = "([A-Za-zµ°%]+|1)"
_POWER_PATTERN = r"(\^?-?[1-9]|[²³])"
_FACTOR_PATTERN = f"{_NAME_PATTERN}{_POWER_PATTERN}?"
_COMPOUND_PATTERN = rf"{_NAME_PATTERN}{_POWER_PATTERN}|{_FACTOR_PATTERN}((\s*[*·/]\s*|\s+){_FACTOR_PATTERN})+"


@lru_cache(maxsize=512)
def quantity_pattern(unit: str) -> str:
    """Return a regular expression of the texts that `parse_quantity` accepts for a unit.

    It accepts all of them. It refuses every other text with at most one named unit, but of products, quotients and
    powers of units it checks the form only, since no regular expression can check their dimension. Python and
    ECMAScript (JSON Schema) read it alike.
    """
    dimensions = [parse_unit(one).dimension for one in unit.split(_ALTERNATIVE)]
    names = [name for name, one in _NAMED_UNITS.items() if one.dimension in dimensions]
    optional = "?" if DIMENSIONLESS.dimension in dimensions else ""
    return rf"^\s*{_NUMBER_PATTERN}\s*({'|'.join([*names, _COMPOUND_PATTERN])}){optional}\s*$"
