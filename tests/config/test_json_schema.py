"""`json_schema` accepts what `load` accepts, and refuses what it refuses for its type, bounds, choices and keys."""

import json
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from roboyard.config import Config, ValueConstraint, json_schema, load, parameter
from roboyard.config.units import UnitError, parse_quantity, quantity_pattern
from roboyard.errors import ConfigError


class Gear(Enum):
    LOW = "low"
    HIGH = "high"


class Motor(Config):
    """Electric motor.

    Further paragraphs are no part of a schema.
    """

    power: float = parameter(unit="W", low=0.0, high=500.0, doc="Rated power.")
    poles: int = parameter(4, low=2, high=64)
    gear: Gear = parameter(Gear.LOW)


class Ramp(Config):
    acceleration: float = parameter(1.0, unit="m/s^2", low=0.0)
    jerk: float | None = parameter(None, unit="m/s^3", low=0.1)


class Delay(Config):
    start: float = parameter(unit="s")
    stop: float = parameter(unit="s")


@dataclass(frozen=True)
class Stop:
    action: Literal["stop"]
    duration: float = parameter(1.0, unit="s", low=0.0)


@dataclass(frozen=True)
class Rotate:
    action: Literal["rotate"]
    angle: float = parameter(unit="rad", low=-7.0, high=7.0)
    next: "Rotate | Stop | None" = None


class Vehicle(Config):
    name: str = parameter(doc="Name in messages")
    speed: float = parameter(0.5, unit="m/s", low=0.0, high=2.0, doc="Speed limit.")
    scale: float = parameter(1.0, low=0.1)
    count: int = parameter(1, low=0)
    delay_ms: int = parameter(20, unit="ms", low=0)
    joint: float = parameter(0.0, unit="rad or m")
    is_tracked: bool = parameter(False)
    mode: str = parameter("auto", choices=("auto", "manual"))
    ratio: int = parameter(1, choices=(1, 2, 4))
    factor: float = parameter(0.5, choices=(0.5, 1.5))
    kind: Literal["rover", 3, None] = parameter("rover")
    pose: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit=("m", "m", "rad"))
    outline: tuple[tuple[float, float], ...] = parameter((), unit="m", low=-5.0, high=5.0)
    gains: dict[str, float] = parameter(factory=dict, low=0.0)
    by_id: dict[int, str] = parameter(factory=dict)
    by_gear: dict[Gear, int] = parameter(factory=dict)
    motors: dict[str, Motor] = parameter(factory=dict)
    backup: Motor | None = parameter(None)
    actions: tuple[Stop | Rotate, ...] = parameter(())
    start: Literal["free"] | tuple[float, float] = parameter("free", unit="m")
    notes: list[str | int] = parameter(factory=list)
    extra: Any = parameter(None)
    limit: Annotated[float, ValueConstraint(unit="N", high=100.0)] = parameter(10.0)
    map_file: Path = parameter(Path("map.yaml"), key="map")
    ramp: Ramp = parameter(Ramp(), flatten="")
    delay: Delay = parameter(Delay(start=0.0, stop=1.0), flatten="delay_")
    calls: int = field(default=0, init=False)


VALIDATOR = Draft202012Validator(json_schema(Vehicle))


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers that are no integers: JSON does not tell 1.0 from 1."""
    return st.floats(low, high, allow_nan=False).filter(lambda value: not value.is_integer())


def quantities(low: float, high: float, *units: str) -> st.SearchStrategy[Any]:
    texts = st.builds("{:.6f} {}".format, st.floats(low, high), st.sampled_from(units))
    return st.one_of(numbers(low, high), st.integers(int(low), int(high)), texts)


LENGTHS = quantities(-5, 5, "m", "cm", "um", "m^1", "m*m/m")
MOTORS = st.fixed_dictionaries(
    {"power": quantities(0, 0.5, "W", "kW", "N*m/s", "V A")},
    optional={"poles": st.integers(2, 64), "gear": st.sampled_from(["low", "high"])},
)
STOPS = st.fixed_dictionaries(
    {"action": st.just("stop")}, optional={"duration": quantities(0, 5, "s", "ms", "min", "1/Hz")}
)
ROTATIONS = st.deferred(
    lambda: st.fixed_dictionaries(
        {"action": st.just("rotate"), "angle": quantities(-1, 1, "rad", "deg", "°", "turn")},
        optional={"next": st.one_of(st.none(), STOPS, ROTATIONS)},
    )
)
TEXTS = st.text(max_size=5)
REQUIRED = {"name": TEXTS}
OPTIONAL = {
    "speed": quantities(0, 0.5, "m/s", "km/h", "m s^-1"),
    "scale": st.one_of(numbers(0.1, 1e300), st.sampled_from(["50 %", "0.5", " 3 "])),
    "count": st.integers(0, 2**63 - 1),
    "delay_ms": st.one_of(st.integers(0, 100), st.sampled_from(["3 ms", "0.5 s", "1 min"])),
    "joint": quantities(-5, 5, "rad", "deg", "m", "mm"),
    "is_tracked": st.booleans(),
    "mode": st.sampled_from(["auto", "manual"]),
    "ratio": st.sampled_from([1, 2, 4]),
    "factor": st.sampled_from([0.5, 1.5, "50 %"]),
    "kind": st.sampled_from(["rover", 3, None]),
    "pose": st.tuples(LENGTHS, LENGTHS, quantities(-1, 1, "rad", "deg")).map(list),
    "outline": st.lists(st.tuples(LENGTHS, LENGTHS).map(list), max_size=3),
    "gains": st.dictionaries(TEXTS, numbers(0, 1e6), max_size=3),
    "by_id": st.dictionaries(st.sampled_from(["1", "-7", "0"]), TEXTS),
    "by_gear": st.dictionaries(st.sampled_from(["low", "high"]), st.integers(-5, 5)),
    "motors": st.dictionaries(TEXTS, MOTORS, max_size=2),
    "backup": st.one_of(st.none(), MOTORS),
    "actions": st.lists(st.one_of(STOPS, ROTATIONS), max_size=3),
    "start": st.one_of(st.just("free"), st.tuples(LENGTHS, LENGTHS).map(list)),
    "notes": st.lists(st.one_of(TEXTS, st.integers(-5, 5)), max_size=3),
    "extra": st.recursive(st.one_of(st.none(), TEXTS, st.integers(0, 3)), lambda inner: st.lists(inner, max_size=2)),
    "limit": quantities(-5, 0.05, "N", "kN", "kg m/s^2"),
    "map": st.sampled_from(["map.yaml", "a/b"]),
    "acceleration": quantities(0, 5, "m/s^2", "mm/s²"),
    "jerk": st.one_of(st.none(), numbers(0.1, 5)),
}
DELAYS = st.fixed_dictionaries({"delay_start": quantities(0, 5, "s"), "delay_stop": quantities(0, 5, "s")})
VEHICLES = st.builds(
    lambda main, delay: main | delay, st.fixed_dictionaries(REQUIRED, optional=OPTIONAL), st.one_of(st.just({}), DELAYS)
)
WRONG_VALUES = st.sampled_from(
    [None, True, -1, -7.25, 65, 1e9 + 0.5, "", "soon", "5 parsec", "3 K", "2 m 3", "low", "stop", [], [0.5], [0.5, 0.5],
     [0.5, 0.5, 0.5], [["a"]], [0.5, "3 K"], {}, {"power": 1}, {"power": 501}, {"power": 1, "poles": 1},
     {"power": 1, "gear": "third"}, {"power": "5 s"}, {"a": -0.5}, {"a": {}}, {"1": "a"}, {"a": "b"}, {"low": 1},
     {"action": "rotate"}, [{"action": "rotate", "angle": 8}], [{"action": "stop", "angle": 1}], [{"action": "jump"}],
     [{"duration": 1}], [{"action": "rotate", "angle": 1, "next": {"action": "rotate"}}]]
)  # fmt: skip
"""What some keys take and others do not; no quantity with a unit, whose bounds a schema cannot say."""


def is_loaded(cls: type, data: Any) -> bool:
    try:
        load(cls, data)
    except ConfigError:
        return False
    return True


def test_schema_is_valid_and_is_json() -> None:
    schema = json_schema(Vehicle)
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema, allow_nan=False)) == schema


@given(VEHICLES)
def test_accepts_what_load_accepts(data: dict[str, Any]) -> None:
    assert is_loaded(Vehicle, data)
    assert not [error.message for error in VALIDATOR.iter_errors(data)]


@given(VEHICLES, st.sampled_from([*REQUIRED, *OPTIONAL]), WRONG_VALUES)
def test_agrees_with_load_on_another_value(data: dict[str, Any], key: str, value: Any) -> None:
    changed = data | {key: value}
    assert VALIDATOR.is_valid(changed) == is_loaded(Vehicle, changed)


@given(VEHICLES, st.data())
def test_agrees_with_load_on_missing_and_unknown_keys(vehicle: dict[str, Any], data: st.DataObject) -> None:
    left_out = data.draw(st.sampled_from(sorted(vehicle)))
    changed = {key: value for key, value in vehicle.items() if key != left_out}
    assert VALIDATOR.is_valid(changed) == is_loaded(Vehicle, changed)
    unknown = data.draw(st.sampled_from(["sped", "ramp", "delay", "map_file", "calls", "stop", ""]))
    assert not VALIDATOR.is_valid(vehicle | {unknown: 1})
    assert not is_loaded(Vehicle, vehicle | {unknown: 1})


@given(VEHICLES)
def test_accepts_what_is_dumped(data: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(load(Vehicle, data).to_data())


@given(
    st.sampled_from(["m", "s", "rad", "", "rad or m", "kg", "m/s", "px", "Hz"]),
    st.floats(-1e6, 1e6).map(repr) | st.sampled_from(["1.", ".5", "+3", "1e3", "2E-3", "e", "-", "1e1000"]),
    st.sampled_from(["", " ", "  "]),
    st.sampled_from(["", "m", "mm", "µm", "s", "min", "h", "deg", "°", "rad", "%", "1", "px", "ft", "kg", "foot", "Hz",
                     "m/", "/m", "m//s", "m^0", "m-"]),
)  # fmt: skip
def test_pattern_is_exact_for_one_unit(unit: str, number: str, space: str, written: str) -> None:
    text = number + space + written
    try:
        parse_quantity(text, unit)
    except UnitError:
        is_quantity = False
    else:
        is_quantity = True
    assert bool(Draft202012Validator({"pattern": quantity_pattern(unit)}).is_valid(text)) == is_quantity


@given(st.lists(st.sampled_from(["m", "mm", "s", "min", "kg", "N"]), min_size=1, max_size=3), st.data())
def test_pattern_accepts_all_products_and_powers(names: list[str], data: st.DataObject) -> None:
    unit = names[0]
    for name in names[1:]:
        unit += data.draw(st.sampled_from(["*", " * ", "·", "/", " / ", " "])) + name
        unit += data.draw(st.sampled_from(["", "^2", "^-1", "2", "²"]))
    parse_quantity(f"1.5 {unit}", unit)
    assert Draft202012Validator({"pattern": quantity_pattern(unit)}).is_valid(f"1.5 {unit}")


def test_schema_says_what_is_declared() -> None:
    schema = json_schema(Vehicle)
    properties, definitions = schema["properties"], schema["$defs"]
    assert (schema["title"], schema["required"], schema["additionalProperties"]) == ("Vehicle", ["name"], False)
    assert properties["name"] == {"type": "string", "description": "Name in messages."}
    assert properties["speed"] == {
        "$ref": "#/$defs/number_in_m_per_s", "minimum": 0, "maximum": 2, "default": 0.5,
        "description": "Speed limit. Unit: m/s.",
    }  # fmt: skip
    assert "a speed (m/s, km/h, mm/s)" in definitions["number_in_m_per_s"]["description"]
    assert properties["mode"]["enum"] == ["auto", "manual"]
    assert properties["pose"]["prefixItems"][2] == {"$ref": "#/$defs/number_in_rad"}
    assert properties["pose"]["description"] == "Units: m, m, rad."
    assert definitions["Motor"]["description"] == "Electric motor."
    assert definitions["Motor"]["required"] == ["power"]
    assert "ramp" not in properties
    assert properties["acceleration"]["default"] == 1.0


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [(0.0, 2.0, '"minimum": 0, "maximum": 2'), (-0.5, 1e300, '"minimum": -0.5, "maximum": 1e+300'),
     (None, float("inf"), ""), (-(2**63), 2**63 - 1, f'"minimum": {-(2**63)}, "maximum": {2**63 - 1}')],
)  # fmt: skip
def test_bounds_are_written_as_they_are(low: float | None, high: float, written: str) -> None:
    schema = json_schema(Annotated[int | None, ValueConstraint(low=low, high=high)])
    number = {key: value for key, value in schema["anyOf"][0].items() if key != "type"}
    assert json.dumps(number, allow_nan=False) == f"{{{written}}}"


def test_schema_of_a_type_without_keys() -> None:
    schema = json_schema(tuple[Stop, ...] | Rotate, title="Script", description="Actions.")
    assert (schema["title"], schema["description"]) == ("Script", "Actions.")
    assert Draft202012Validator(schema).is_valid([{"action": "stop"}])
    assert not Draft202012Validator(schema).is_valid({"action": "stop"})


def test_type_that_no_file_holds_is_an_error() -> None:
    with pytest.raises(TypeError, match="cannot hold"):
        json_schema(set[int])


def test_each_unit_has_its_own_definition() -> None:
    units = ("", "m", "m^2", "1/m", "m/s", "m/s²", "m/s³", "m*s", "rad", "m or rad", "rad/s", "1/s", "N*m", "px", "%")
    patterns: dict[str, str] = {}
    for unit in units:
        schema = json_schema(Annotated[float, ValueConstraint(unit)])
        definition = schema["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        assert definition["pattern"] == quantity_pattern(unit)
        assert patterns.setdefault(schema["$ref"], definition["pattern"]) == definition["pattern"]
    assert len(patterns) == len(units)
