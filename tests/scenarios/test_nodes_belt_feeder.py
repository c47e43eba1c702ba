"""Conveyor belts beside arms: the feeder, and a run that is saved in the middle of a grasp on a belt."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from tests.harness.scenarios import recording_digest, snapshot_requests

from roboyard.bus import NodeError
from roboyard.errors import RoboyardError
from roboyard.geometry import SE3
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.execution import run_scenario
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.nodes.actors import belt_surfaces
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.run_options import RunOptions

FED = """
world: empty
devices:
  belt: {model: slim_conveyor, pose: [0.0, 0.3, 0, 0, 0, 1.0], initial_command: 0.1}
  back: {model: slim_conveyor, pose: [0.0, -0.3, 0, 0, 0, 0], initial_command: -0.1}
objects: {object: {model: disc_cylinder, count: 4, sector: {center: [2, 0], radius: [0.1, 0.4]}}}
nodes:
  feeder: {type: belt_feeder, parameters: {belt: belt, objects: [object], spacing: [0.06, 0.12], lateral_offset: 0.01}}
duration: 5
"""


@pytest.fixture
def fed(tmp_path: Path):
    def start(seed: int = 1, text: str = FED):
        (tmp_path / "fed.yaml").write_text(text)
        return build_run(resolve_scenario(load_scenario(tmp_path / "fed.yaml").with_seed(seed)), record=False)

    return start


def test_feeder_draws_gaps_by_the_seed(fed):
    positions = {}
    for seed in (1, 1, 2):
        with fed(seed) as run:
            run.run_for(3.5)
            lane = belt_surfaces(run.simulation)["belt"]
            found = [run.simulation.ground_truth(f"object_{k}").T_world_base for k in range(1, 5)]
            distances = [lane.distance_along(np.array(one.translation)) for one in found]
            on = sorted(one for one in distances if one is not None)
            assert len(on) >= 3
            gaps = np.diff(on)
            assert (gaps >= 0.06 - 1e-3).all()
            assert (gaps <= 0.12 + 0.1 * 0.1 + 1e-3).all(), "it is looked ten times a second"
            for one, distance in zip(found, distances, strict=True):
                belt_position = lane.T_world_belt.inverse() @ np.array(one.translation)
                assert distance is None or (abs(belt_position[1]) <= 0.0101 and abs(belt_position[2]) < 1e-3)
            if seed in positions:
                assert on == positions[seed], "the same seed lays out the same"
            positions.setdefault(seed, on)
    assert positions[1] != positions[2]


def test_objects_return_at_the_end_of_the_belt(fed):
    with fed() as run:
        lane = belt_surfaces(run.simulation)["belt"]
        homes = {name: run.simulation.ground_truth(name).T_world_base for name in run.objects}
        run.run_for(0.3)
        first = next(n for n in homes if run.simulation.ground_truth(n).T_world_base.distance(homes[n]) > 0.1)
        run.simulation.world.set_pose(first, lane.T_world_belt @ SE3(translation=(0.49, 0.0, 1e-4)))
        run.run_for(0.2)
        assert run.simulation.ground_truth(first).T_world_base.distance(homes[first]) < 1e-3
        run.simulation.world.set_pose(
            first, lane.T_world_belt @ SE3(translation=(0.48, 0.0, 0.15))
        )  # in somebody's hand
        run.run_for(0.05)
        assert run.simulation.ground_truth(first).T_world_base.distance(homes[first]) > 0.1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("belt: belt", "belt: bell", "'bell' is no belt of this run.*belt, back"),
        ("objects: [object]", "objects: [nothing]", "no movable object"),
        ("spacing: [0.06, 0.12]", "spacing: [0.12, 0.06]", "spacing"),
        ("initial_command: 0.1}", "initial_command: .nan}", "initial_command"),
    ],
)
def test_invalid_belts_are_refused(fed, old, new, message):
    with pytest.raises((NodeError, RoboyardError), match=message):
        fed(1, FED.replace(old, new))


@pytest.mark.slow
def test_grasp_on_a_belt_goes_on_from_states(tmp_path: Path):
    """Saved while the tool goes along with a thing, and while the fingers close: the whole recording is the same."""
    spec = load_scenario("youbot-belt", overrides=["duration=14.5", "criteria={}"]).with_seed(1)
    moments = snapshot_requests(tmp_path, (11.3, 12.9))
    run_scenario(
        spec,
        RunOptions(
            out=tmp_path / "whole",
            snapshots=moments,
            write_report=False,
            serve=False,
        ),
    )
    for moment, state in map(astuple, moments):
        run_scenario(
            spec, RunOptions(out=tmp_path / f"from_{moment}", from_snapshot=state, write_report=False, serve=False)
        )
        assert recording_digest(tmp_path / f"from_{moment}") == recording_digest(tmp_path / "whole"), moment
