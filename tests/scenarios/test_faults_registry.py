"""Types of faults are found in a registry, to which installed packages add their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.harness.scenarios import ScenarioBuilder

from roboyard.cli.commands.schema import make_schema
from roboyard.config import dump, loads, schema_rows
from roboyard.errors import ConfigError
from roboyard.scenarios import run_scenario
from roboyard.scenarios.faults.schema import FAULTS, LastingFault
from roboyard.scenarios.run_options import RunOptions
from roboyard.scenarios.schema import ScenarioConfig

PACKAGE = '''
from dataclasses import dataclass

from roboyard.config import parameter
from roboyard.description import Box, Collision, Link, Model
from roboyard.geometry import SE3
from roboyard.scenarios.faults.schema import FaultContext, FaultEffect, LastingFault


@dataclass(frozen=True, kw_only=True)
class PalletFault(LastingFault):
    """A pallet blocks the way."""

    x: float = parameter(unit="m", low=0.0, high=100.0, doc="where it stands")

    def create_effect(self, context: FaultContext) -> FaultEffect:
        return PalletEffect(context, self.x)


class PalletEffect(FaultEffect):
    def __init__(self, context: FaultContext, x: float) -> None:
        super().__init__(f"a pallet at {x:g} m")
        self.run, self.name, self.x = context.run, context.name, x

    def start(self) -> None:
        link = Link("link", SE3.identity(), collisions=(Collision("c", Box((0.4, 1.2, 0.5)), SE3.identity()),))
        self.run.add_object(Model("pallet", (link,), static=True), self.name, (self.x, 0.0, 0.0))

    def end(self) -> None:
        self.run.remove(self.name)


class NotAFault:
    pass
'''


@pytest.fixture
def pallets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers a fault, and one thing that is no fault."""
    info = tmp_path / "pallets-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pallets\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[roboyard.faults]\npallet = pallet_faults:PalletFault\nno_fault = pallet_faults:NotAFault\n"
    )
    (tmp_path / "pallet_faults.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))


def scenario(**fault: object) -> ScenarioBuilder:
    """A rover that drives straight on for 3 s."""
    builder = ScenarioBuilder(duration=3.0).set(operator=[{"drive": {"linear": 0.5, "duration": 60}}])
    return builder.with_fault(**fault)


@pytest.mark.usefixtures("pallets")
def test_fault_of_another_package_starts_and_ends(tmp_path: Path) -> None:
    """A pallet stops the rover; one that has disappeared before the rover arrives does not."""
    blocked = run_scenario(
        scenario(kind="pallet", time=0.2, x="80 cm").load(tmp_path), RunOptions(serve=False, write_files=False)
    )
    freed = run_scenario(
        scenario(kind="pallet", time=0.2, duration=0.5, x=0.8).load(tmp_path),
        RunOptions(serve=False, write_files=False),
    )
    assert [(event["kind"], event["state"], event["text"]) for event in freed.metrics["events"]] == [
        ("pallet", "started", "a pallet at 0.8 m"),
        ("pallet", "finished", "a pallet at 0.8 m"),
    ]
    assert [event["state"] for event in blocked.metrics["events"]] == ["started"]
    assert blocked.metrics["final_x"] < 0.6 < 0.8 < freed.metrics["final_x"]
    assert blocked.metrics["contacts"] >= 1


@pytest.mark.usefixtures("pallets")
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"kind": "palet", "time": 1, "x": 1}, "faults.0..type: is the text 'palet'; did you mean 'pallet'"),
        ({"kind": "pallet", "time": 1}, "key 'x' is missing .it must be a number in m, 0 to 100"),
        (
            {"kind": "pallet", "time": 1, "x": 1, "robot": "rover"},
            "unknown key 'robot'.*keys here: .*duration, x",
        ),
        ({"kind": "no_fault", "time": 1}, "faults.0..type: 'no_fault': .*is no fault .a subclass of FaultConfig"),
    ],
)
def test_errors_of_another_package_say_what_would_be_right(
    tmp_path: Path, fault: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        scenario(**fault).load(tmp_path)


@pytest.mark.parametrize("faults", ["[{time: 1}]", "[3]", "[{time: 1, type: [spawn]}]", "[{time: 1, type: null}]"])
def test_fault_without_a_valid_type_is_refused_with_the_types(faults: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(ScenarioConfig, f"world: empty\nduration: 1\nfaults: {faults}\n")
    assert "faults[0]" in str(caught.value)
    assert "must be" in str(caught.value)


def test_every_registered_fault_is_in_the_schema_and_read_back_equal() -> None:
    """Each type has its definition in the JSON Schema; what `dump` writes of a fault is read as an equal one."""
    schema = make_schema("scenario")
    validator = Draft202012Validator(schema)
    definitions = {
        name: definition
        for definition in schema["$defs"].values()
        for name in definition.get("properties", {}).get("type", {}).get("enum", ())
        if "time" in definition["properties"]
    }
    assert set(definitions) >= set(FAULTS.names())
    samples = {"sensor": "lidar", "joint": "wheel", "topic": "/scan", "name": "box", "delay": 0.5, "stddev": 0.1,
               "pose": [1.0, 2.0, 0.5], "size": [1.0, 2.0], "value": 1.0}  # fmt: skip
    for name in FAULTS.names():
        required = {key: samples[key] for key in definitions[name]["required"] if key not in ("time", "type")}
        data = {"time": 1.0, "type": name, **required, **({"name": "box"} if name == "remove" else {})}
        document = {"world": "empty", "duration": 1.0, "faults": [data]}
        assert not list(validator.iter_errors(document)), name
        (fault,) = loads(ScenarioConfig, f"world: empty\nduration: 1\nfaults: [{data}]\n").faults
        assert isinstance(fault, FAULTS[name])
        assert fault.is_momentary or isinstance(fault, LastingFault) or name == "teleport"
        written = dump(fault)
        assert written["type"] == name
        (repeated,) = loads(ScenarioConfig, f"world: empty\nduration: 1\nfaults: [{_yaml(written)}]\n").faults
        assert repeated == fault
    assert list(validator.iter_errors({"world": "empty", "duration": 1.0, "faults": [{"time": 1, "type": "meteor"}]}))


def _yaml(data: dict[str, object]) -> str:
    """Return plain data in YAML's flow style."""
    import json

    return json.dumps(data)


def test_table_of_keys_lists_the_keys_of_all_faults() -> None:
    keys = {row.key for row in schema_rows(ScenarioConfig)}
    assert {"faults[].time", "faults[].sensor", "faults[].effort_scale", "faults[].lead_time"} <= keys
