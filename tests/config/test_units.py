"""Quantities convert exactly, configurations survive a round trip, and any text is read or refused with an error."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.config import dump, dumps, load, loads, parameter, parse_quantity, parse_yaml
from roboyard.config.units import _NAMED_UNITS, UnitError, describe_quantity, parse_unit
from roboyard.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    x: float = parameter(0.0, unit="m")
    n: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    title: str
    flag: bool = False
    maybe: float | None = None
    inner: Inner = Inner()
    children: dict[str, Inner] = parameter({})
    pairs: list[tuple[int, str]] = parameter([])


finite = st.floats(allow_nan=False, allow_infinity=False)
# YAML represents printable text only.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"], exclude_characters="\u2028\u2029\ufeff"))
ambiguous_words = st.sampled_from(
    [
        "~",
        "null",
        "no",
        "yes",
        "true",
        "1",
        "1e3",
        "1e-3",
        "0o17",
        "0x1f",
        ".inf",
        "1:30",
        "<<",
        "=",
        "2001-01-01",
        "- a",
        "a: b",
        "#",
        " x ",
        "!t",
        "&a",
        "*a",
        "1_0",
        "1e999",
        "",
    ]
)
words = texts | ambiguous_words
int64s = st.integers(-(2**63), 2**63 - 1)
inners = st.builds(Inner, finite, int64s, st.lists(words).map(tuple))
outers = st.builds(
    Outer,
    words,
    st.booleans(),
    st.none() | finite,
    inners,
    st.dictionaries(words, inners, max_size=3),
    st.lists(st.tuples(int64s, words), max_size=3),
)


@given(outers)
def test_dumped_config_loads_equally(outer: Outer) -> None:
    assert load(Outer, dump(outer)) == outer
    assert loads(Outer, dumps(outer)) == outer


@given(st.text() | st.lists(words).map("\n".join))
def test_load_reads_or_refuses_any_text_with_its_location(text: str) -> None:
    try:
        parse_yaml(text, "here").to_data()
    except ConfigError as error:
        assert str(error).startswith("here")


@given(st.binary())
def test_load_reads_or_refuses_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(data)
    try:
        load(Outer, path)
    except ConfigError as error:
        assert "any.yaml" in str(error)


decimals = st.decimals(min_value=-(10**6), max_value=10**6, allow_nan=False, places=6)


@given(decimals)
def test_unit_conversions_are_exact(number) -> None:
    # "500 mm" must give exactly the float that is nearest to the value in meters.
    assert parse_quantity(f"{number} mm", "m") == float(number.scaleb(-3))
    assert parse_quantity(f"{number} km", "m") == float(number.scaleb(3))
    assert parse_quantity(f"{number}m", "m") == float(number)
    assert parse_quantity(f"{number} mm/ms", "m/s") == float(number)
    assert parse_quantity(f"{number} rev/min", "rpm") == float(number)


@given(decimals, st.sampled_from(sorted(_NAMED_UNITS)), st.sampled_from(sorted(_NAMED_UNITS)))
def test_units_convert_only_within_a_dimension(number, a: str, b: str) -> None:
    if parse_unit(a).dimension != parse_unit(b).dimension:
        with pytest.raises(UnitError, match="expected"):
            parse_quantity(f"{number} {a}", b)
        return
    converted = parse_quantity(f"{number} {a}", b)
    converted_back = parse_quantity(f"{converted!r} {b}", a)
    assert converted_back == pytest.approx(float(number), rel=1e-14)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("180 deg", "rad", math.pi),
        ("1 turn", "deg", 360.0),
        ("60 rpm", "rad/s", 2 * math.pi),
        ("36 km/h", "m/s", 10.0),
        ("9.81 m/s²", "m/s^2", 9.81),
        ("9.81 m/s2", "m/s^2", 9.81),
        ("100 N mm", "N*m", 0.1),
        ("2 Nm", "N*m", None),
        ("5.3 N·m", "N*m", 5.3),
        ("1 J", "N*m", 1.0),
        ("1 kg*m^2/s^2/m", "N", 1.0),
        ("50 %", "", 0.5),
        ("-3e2 ms", "s", -0.3),
        (".5 m", "m", 0.5),
        ("10 1/s", "Hz", 10.0),
        ("1000 mAh", "Ah", 1.0),
    ],
)
def test_quantities_have_their_values(text: str, unit: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(UnitError, match="unknown unit"):
            parse_quantity(text, unit)
    else:
        assert parse_quantity(text, unit) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["", "m", "1 m m m /", "1 /m", "1 m//s", "1 m^", "1e99999 m", "1 m^99", "١ m", "1 2 m"]
)
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_quantity(text, "m")


@given(st.text(), st.sampled_from(["", "m", "rad/s"]))
def test_any_text_is_a_quantity_or_a_unit_error(text: str, unit: str) -> None:
    with suppress(UnitError):
        parse_quantity(text, unit)


def test_quantity_field_names_its_dimension() -> None:
    assert describe_quantity("km/h")[0] == "a speed"
    assert describe_quantity("m^3/s") == ("a quantity in m^3/s", "m^3/s")
