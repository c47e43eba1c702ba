"""Behavior trees of the library of scenarios."""

from pathlib import Path

import pytest
from tests.harness.profiles import sample_count

import roboyard as ry
from roboyard.behavior import load_tree
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions


def test_library_missions_are_read_without_errors() -> None:
    found = sorted((Path(ry.__file__).parent / "scenarios" / "library" / "missions").glob("*.xml"))
    names = {file.stem.removeprefix("cell_") for file in found if file.stem.startswith("cell_")}
    assert len(names) == 10
    assert {file.name for file in found} == {"homing.xml", "youbot_loop.xml", *(f"cell_{name}.xml" for name in names)}
    for file in found:
        load_tree(file)


@pytest.mark.slow
def test_rover_homing_by_a_tree_succeeds() -> None:
    """At night out of the lab, as the scenario has it; else the link is lost while the rover is in the corridor."""
    method = "method=tree"
    follow = load_scenario("rover-homing").config.operator[1].follow
    assert follow is not None
    count = sample_count(len(follow.points), 0.3)
    points = [list(point) for point in follow.points[:count]]
    shorter = (f"operator.1.follow.points={points}", "operator.5.link_loss=25 s", "faults.0.time=15 s", "duration=65 s")
    spec = load_scenario("rover-homing", overrides=(method, *shorter) if count < len(follow.points) else (method,))
    outcome = run_scenario(spec, RunOptions(write_files=False, serve=False))
    assert outcome.success, outcome.metrics
