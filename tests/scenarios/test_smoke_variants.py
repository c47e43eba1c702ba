"""The smoke variant of every packaged scenario passes, and fails if the motors have no power and the people stand."""

from __future__ import annotations

import json

import pytest

from roboyard.bringup.catalog import SCENARIOS
from roboyard.scenarios import RunOptions, load_scenario, run_scenario
from roboyard.scenarios.loading import MAX_SMOKE_DURATION

NAMES = sorted(name for name, entry in SCENARIOS.items() if entry.origin == "roboyard")


def broken(name: str) -> tuple[str, ...]:
    """Overrides that take the power of all robots at the start, and the mission of all people."""
    config = load_scenario(name, smoke=True).config
    robots = [robot for robot, entry in config.robots.items() if entry.model != "pedestrian"]
    faults = [{"time": 0, "type": "power_loss", "robot": robot} for robot in robots]
    people = [f"people.{person}.mission=" for person, entry in config.people.items() if entry.mission]
    return (f"faults={json.dumps(faults)}", "randomize={}", *people)


def test_every_scenario_has_a_smoke_variant_with_criteria() -> None:
    assert len(NAMES) == 44
    for name in NAMES:
        config = load_scenario(name, smoke=True).config
        assert config.criteria, name
        assert config.duration <= MAX_SMOKE_DURATION, name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_smoke_variant_fails_if_nothing_moves(name: str) -> None:
    loaded = load_scenario(name, smoke=True, overrides=broken(name))
    result = run_scenario(loaded, RunOptions(write_files=False, serve=False, write_report=False))
    assert result.state == "done"
    failed = [name for name, criterion in result.metrics["criteria"].items() if not criterion["passed"]]
    assert failed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cell-cooperation", "cell-collaboration"])
def test_smoke_variant_of_a_shared_cell_fails_if_only_the_person_moves(name: str) -> None:
    faults = f"faults={json.dumps([{'time': 0, 'type': 'power_loss', 'robot': 'arm'}])}"
    loaded = load_scenario(name, smoke=True, overrides=[faults])
    result = run_scenario(loaded, RunOptions(write_files=False, serve=False, write_report=False))
    criteria = result.metrics["criteria"]
    assert criteria["person_works"]["passed"]
    assert not criteria["arm_works"]["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_smoke_variant_passes(name: str) -> None:
    result = run_scenario(
        load_scenario(name, smoke=True), RunOptions(write_files=False, serve=False, write_report=False)
    )
    assert result.success, result.metrics["criteria"]
