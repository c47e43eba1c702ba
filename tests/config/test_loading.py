"""Loading of configurations: values have the declared types and units, and each error names its location and the
values that are valid.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from roboyard.config import (
    ValueConstraint,
    apply_override,
    check,
    convert_value,
    load,
    loads,
    parameter,
    parse_quantity,
    parse_yaml,
    read_yaml,
    required_parameter,
    schema_table,
)  # fmt: skip
from roboyard.errors import ConfigError, RoboyardError


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Spawn:
    type: Literal["spawn"]
    model: str
    time: float = parameter(0.0, unit="s", low=0.0)


@dataclass(frozen=True)
class Stall:
    type: Literal["stall", "stall_hard"]
    joint: str


@dataclass(frozen=True)
class Robot:
    model: str = parameter("rover", doc="Name or path.")
    pose: tuple[float, float, float] = parameter((0.0, 0.0, 0.0), unit=("m", "m", "rad"), doc="Initial pose.")
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    world: str
    robots: dict[str, Robot] = parameter({})
    duration: float = parameter(60.0, unit="s", low=0.0, high=3600.0, doc="Simulated time.")
    speed: float | None = parameter(None, unit="m/s", low=0.0)
    faults: tuple[Spawn | Stall, ...] = ()
    mode: Literal["fast", "slow"] = "fast"
    color: Color = Color.RED
    level: int = parameter(3, choices=(1, 3, 5))
    ratio: float = parameter(0.5, low=0.0, high=math.inf)
    script: Path | None = None
    source: str = parameter("", key="from")
    weights: list[Annotated[float, ValueConstraint(low=0.0)]] = parameter([])
    levels: dict[int, bool] = parameter({})
    extra: Any = None


VALID = """
world: arena                # a comment
robots:
  rover: {model: other, pose: [500 mm, 1, 90 deg], nodes: [odometry]}
duration: 3 min
speed: 3.6 km/h
faults:
  - {type: spawn, model: box, time: 42}
  - {type: stall_hard, joint: wheel}
mode: slow
color: blue
level: 5
ratio: .inf
script: drive.yaml
from: here
weights: [1e-3, 2]
levels: {-1: true}
extra: {a: [1, no, 1:30]}
"""


def test_load_reads_each_supported_type() -> None:
    assert loads(Scenario, VALID) == Scenario(
        world="arena",
        robots={"rover": Robot("other", (0.5, 1.0, math.radians(90)), ("odometry",))},
        duration=180.0,
        speed=1.0,
        faults=(Spawn("spawn", "box", 42.0), Stall("stall_hard", "wheel")),
        mode="slow",
        color=Color.BLUE,
        level=5,
        ratio=math.inf,
        script=Path("drive.yaml"),
        source="here",
        weights=[0.001, 2.0],
        levels={-1: True},
        extra={"a": [1, "no", "1:30"]},
    )


def test_load_takes_defaults_of_the_dataclass() -> None:
    assert loads(Scenario, "world: arena") == Scenario("arena")
    assert load(Scenario, {"world": "arena", "robots": {"a": Robot()}}) == Scenario("arena", {"a": Robot()})


# Maps an invalid configuration to the parts that its error message must contain.
EXPECTED_ERRORS = {
    "world: a\ndurration: 3": ["text:2", "unknown key 'durration'", "did you mean 'duration'?", "keys here: world,"],
    "duration: 3": ["text:1", "key 'world' is missing", "text"],
    "world: 1.10": ["text:1, world", "the number 1.1", "quotes"],
    "world: [a]": ["text:1, world", "a list of 1", "must be text"],
    "world: a\nduration: -1": ["text:2, duration", "-1 s is below 0 s", "allowed: 0 to 3600 s"],
    "world: a\nduration: 2 h": ["text:2, duration", "7200 s is above 3600 s"],
    "world: a\nduration: 5 m": ["text:2, duration", "'5 m' is a length", "expected a time (s, ms, min, h)"],
    "world: a\nduration: 5 sec": ["text:2, duration", "unknown unit 'sec'"],
    "world: a\nduration: soon": ["text:2, duration", "'soon'", "a number in s, 0 to 3600"],
    "world: a\nduration: .nan": ["text:2, duration", "nan", "finite"],
    "world: a\nduration: 1e999": ["text:2, duration", "inf"],
    "world: a\nduration: true": ["text:2, duration", "is true", "a number in s"],
    "world: a\nspeed: fast": ["text:2, speed", "'fast'", "a number in m/s, at least 0"],
    "world: a\nmode: fats": ["text:2, mode", "did you mean 'fast'?", "one of: fast, slow"],
    "world: a\ncolor: green": ["text:2, color", "one of: red, blue"],
    "world: a\nlevel: 2": ["text:2, level", "is 2", "one of: 1, 3, 5"],
    "world: a\nlevel: 3.0": ["text:2, level", "the number 3.0", "a whole number"],
    "world: a\nrobots:\n  rover:\n    pose: [1, 2]": ["text:4, robots.rover.pose", "2 elements", "a list of 3"],
    "world: a\nrobots:\n  rover:\n    pose: [1 deg, 2, 3]": ["text:4, robots.rover.pose[0]", "an angle", "a length"],
    "world: a\nrobots:\n  rover:\n    modle: x": ["text:4, robots.rover", "did you mean 'model'?"],
    "world: a\nrobots: [rover]": ["text:2, robots", "a list of 1", "a mapping"],
    "world: a\nweights: [1, -2]": ["text:2, weights[1]", "-2 is below 0"],
    "world: a\nlevels: {x: true}": ["text:2, levels.x", "no whole number"],
    "world: a\nlevels: {1: 1}": ["text:2, levels.1", "true or false"],
    "world: a\nscript: ''": ["text:2, script", "a path"],
    "world: a\nfaults:\n - {type: spwan}": ["text:3, faults[0].type", "did you mean 'spawn'?", "stall_hard"],
    "world: a\nfaults:\n - {type: spawn, modle: b}": ["text:3, faults[0]", "unknown key 'modle'", "'model'"],
    "world: a\nfaults:\n - {type: stall}": ["text:3, faults[0]", "key 'joint' is missing"],
    "world: a\nfaults:\n - {type: spawn, model: b, time: 1 m}": ["text:3, faults[0].time", "a length"],
    "world: a\nfaults: [x]": ["text:2, faults[0]", "'x'", "a mapping"],
    "world: a\nworld: b": ["text:2", "key 'world' is given twice", "text:1"],
    "world: a\n<<: {mode: slow}": ["text:2", "merge keys"],
    "world: !!python/object/apply:os.system [ls]": ["text:1", "tag", "python/object"],
    "world: !!str a": ["text:1", "tag"],
    "? [a]\n: b": ["text:1", "key must be plain text"],
    "world: *gone": ["text:1", "does not refer to a complete earlier node"],
    "world: &me [*me]": ["text:1", "does not refer to a complete earlier node"],
    "world: a\n---\nworld: b": ["text:2", "second document"],
    "world: [a": ["text:", "not valid YAML"],
    "world: \x01": ["text", "not valid YAML"],
    "- a": ["text:1", "a list of 1", "a mapping"],
    "": ["text", "is empty"],
    "# only a comment": ["text", "is empty"],
    "world: " + "[" * 60 + "]" * 60: ["text:1", "deeper than 50"],
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{n}: &{n} [{','.join(['*' + chr(ord(n) - 1)] * 9)}]\n" for n in "bcdefgh"): ["text:6", "200000 values"],
}


@pytest.mark.parametrize("text", EXPECTED_ERRORS, ids=lambda text: text[:40])
def test_load_error_names_location_and_expected_value(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(Scenario, text)
    for part in EXPECTED_ERRORS[text]:
        assert part in str(caught.value)
    assert len(str(caught.value)) < 500


def test_load_refuses_deep_nesting() -> None:
    with pytest.raises(ConfigError, match="deeper than 50"):
        parse_yaml("[" * 100_000)


def test_load_names_the_file_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    with pytest.raises(ConfigError, match=r"s\.yaml: cannot be read: No such file"):
        load(Scenario, path)
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory"):
        load(Scenario, tmp_path)
    path.write_bytes(b"world: a\nmode: \xff")
    with pytest.raises(ConfigError, match=r"s\.yaml:2: is not UTF-8"):
        load(Scenario, path)
    path.write_bytes(b"\0\1\2binary")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load(Scenario, path)
    path.write_bytes(b"a: " + b"x" * 5_000_000)
    with pytest.raises(ConfigError, match="larger than 4 MiB"):
        load(Scenario, path)
    path.write_text("\ufeffworld: here\nmode: fas", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^mine\.yaml:2, mode: "):
        load(Scenario, path, source_name="mine.yaml")


def test_overrides_replace_and_add(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(VALID)
    changed = load(Scenario, str(path), overrides=["duration=5 s", "robots.rover.pose=[0, 0, 0]", "faults.1.joint=arm",
                                                   "robots.two.model=tb3", "speed="])  # fmt: skip
    assert changed.duration == 5.0
    assert changed.robots == {"rover": Robot("other", (0, 0, 0), ("odometry",)), "two": Robot("tb3")}
    assert changed.faults[1] == Stall("stall_hard", "arm")
    assert changed.speed is None
    for override, parts in {
        "duration=1 m": ["--set duration: ", "a length"],
        "duraton=1": ["--set duraton", "did you mean 'duration'?"],
        "duration": ["--set", "key.path=value"],
        "duration.x=1": ["--set duration.x", "single value"],
        "faults.7.joint=1": ["--set faults.7.joint", "index '7' is out of range (the list has 2 elements)"],
        "mode=[": ["--set mode", "not valid YAML"],
    }.items():
        with pytest.raises(ConfigError) as caught:
            load(Scenario, path, overrides=[override])
        assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_override_does_not_change_its_input() -> None:
    root = parse_yaml("a: {b: [1, 2]}")
    assert apply_override(root, "a.b.0=9").to_data() == {"a": {"b": [9, 2]}}
    assert root.to_data() == {"a": {"b": [1, 2]}}


def test_load_names_the_location_of_failed_class_checks() -> None:
    @dataclass(frozen=True)
    class Limited:
        a: float = parameter(0.0, low=-1.0, high=1.0)
        b: float = parameter(1.0, low=-1.0, high=1.0)

        def __post_init__(self) -> None:
            check(self)
            if self.a > self.b:
                raise ValueError(f"a ({self.a:g}) must not be above b ({self.b:g})")

    Limited.__post_init__.__globals__.update(Limited=Limited)
    assert load(Limited, {"a": 0.5}) == Limited(0.5)
    with pytest.raises(ConfigError, match=r"f\.yaml: a \(0\.5\) must not be above b \(0\)"):
        load(Limited, {"a": 0.5, "b": 0}, source_name="f.yaml")
    with pytest.raises(ConfigError, match=r"^a: 3 is above 1 \(allowed: -1 to 1\)"):
        Limited(3.0)
    with pytest.raises(ConfigError, match="a number"):
        Limited("x")


def test_convert_of_single_values_follows_fields() -> None:
    assert convert_value("500 mm", float, unit="m") == 0.5
    assert convert_value("2 s", int, unit="ms") == 2000
    assert convert_value(3, float) == 3.0
    assert convert_value(None, float | None) is None
    assert convert_value(Color.RED, Color) is Color.RED
    with pytest.raises(ConfigError, match=r"^~gain: 9 is above 5 \(allowed: 0 to 5\)"):
        convert_value(9, float, low=0, high=5, location="~gain")
    with pytest.raises(ConfigError, match="whole number"):
        convert_value("1500 us", int, unit="ms")
    with pytest.raises(TypeError, match="cannot hold"):
        convert_value(1, complex)


def test_invalid_parameter_declaration_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown unit"):
        parameter(1.0, unit="metre")
    with pytest.raises(ValueError, match="low"):
        parameter(1.0, low=2.0, high=1.0)


def test_schema_table_shows_every_key() -> None:
    table = schema_table(Scenario)
    assert "| `duration` | a number in s, 0 to 3600 | `60.0` | Simulated time. |" in table
    assert "| `robots.<name>.pose` | a list of 3: a number in m, a number in m, a number in rad |" in table
    assert "| `world` | text | required |" in table
    assert "| `faults[].joint` |" in table
    assert "| `from` |" in table
    assert all(line.startswith("| ") for line in table.splitlines())


def test_load_reads_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="pipe: is empty"):
        read_yaml(pipe)
    reading, writing = os.pipe()
    os.write(writing, b"speed: 2")
    os.close(writing)
    try:
        assert read_yaml(f"/dev/fd/{reading}").value["speed"].value == 2
    finally:
        os.close(reading)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_yaml("a\0b")


def test_load_names_invalid_quantities() -> None:
    with pytest.raises(RoboyardError, match="'3 kg' is a mass, expected a length"):
        parse_quantity("3 kg", "m")


@dataclass(frozen=True)
class WheelSettings:
    """A wheel with a default radius."""

    radius: float = parameter(0.1, unit="m", low=0.01, high=1.0, doc="Radius.", runtime=True)


@dataclass(frozen=True)
class MeasuredWheel:
    """A wheel whose radius must be stated."""

    radius: float = required_parameter(WheelSettings, "radius", doc="Measured radius.")


def test_required_parameter_has_unit_and_bounds_of_the_other_declaration_but_no_default() -> None:
    assert loads(MeasuredWheel, "radius: 20 cm").radius == 0.2
    for text in ("{}", "radius: 2 m", "radius: 1 kg"):
        with pytest.raises(ConfigError, match="radius"):
            loads(MeasuredWheel, text)
    with pytest.raises(ValueError, match="WheelSettings has no parameter diameter"):
        required_parameter(WheelSettings, "diameter")
