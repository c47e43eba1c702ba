"""Actors of SDF worlds: people who follow waypoints by distance and by time, also without an animation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.scenarios import recording_digest
from tests.people.clip_files import write_bvh, write_collada

from roboyard.description import load_world
from roboyard.errors import DescriptionError
from roboyard.people.clip_library import load_builtin_clip
from roboyard.people.procedural_gait import make_walk_clip
from roboyard.record import open_recording
from roboyard.scenarios import Run, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest
from roboyard.simulation import Simulation

WORLD = """<sdf version="1.9"><world name="street">
  <actor name="anna">
    <skin><filename>walk.dae</filename></skin>
    <animation name="walking"><filename>walk.dae</filename><interpolate_x>true</interpolate_x></animation>
    <script>
      <loop>true</loop> <delay_start>0.5</delay_start> <auto_start>true</auto_start>
      <trajectory id="0" type="walking">
        <waypoint><time>0</time><pose>0 0 1 0 0 0</pose></waypoint>
        <waypoint><time>2</time><pose>2 0 1 0 0 0</pose></waypoint>
        <waypoint><time>2.5</time><pose>2 0 1 0 0 1.57</pose></waypoint>
        <waypoint><time>4.5</time><pose>2 2 1 0 0 1.57</pose></waypoint>
      </trajectory>
    </script>
  </actor>
  <actor name="ben"><pose>5 5 1 0 0 0.5</pose><animation name="nod"><filename>nod.bvh</filename></animation></actor>
</world></sdf>"""


def write(folder: Path, text: str = WORLD) -> Path:
    (folder / "walk.dae").write_text(write_collada(make_walk_clip()))
    (folder / "nod.bvh").write_text(write_bvh(load_builtin_clip("idle")))
    path = folder / "street.sdf"
    path.write_text(text)
    return path


def test_actors_are_read_with_their_scripts(tmp_path: Path) -> None:
    anna, ben = load_world(write(tmp_path)).models
    acting = anna.model.actor_script
    assert acting is not None
    assert (acting.loop, acting.delay, acting.auto_start) == (True, 0.5, True)
    assert acting.clips[0].file == tmp_path / "walk.dae"
    assert acting.clips[0].by_distance
    assert [time for time, _ in acting.trajectories[0].waypoints] == [0.0, 2.0, 2.5, 4.5]
    assert ben.model.actor_script is not None
    assert ben.model.actor_script.trajectories == ()
    assert len(Simulation(load_world(tmp_path / "street.sdf")).models) == 2  # figures that stand


def true_position(run: Run, name: str) -> tuple[float, float]:
    x, y, _ = run.simulation.ground_truth(name).pose.xyz
    return float(x), float(y)


def test_actors_follow_their_waypoints_and_repeat(tmp_path: Path) -> None:
    with Run(write(tmp_path), record=False) as run:
        for time, (x, y) in ((0.5, (0, 0)), (1.5, (1, 0)), (2.8, (2, 0)), (4.0, (2, 1)), (5.0, (2, 2)), (6.5, (1, 0))):
            run.run_for(time - run.time)
            assert true_position(run, "anna") == pytest.approx((x, y), abs=0.08), time
        feet = [
            run.simulation.world.data.xpos[run.simulation.world.addresses("anna").links[f].body]
            for f in ("left_foot", "right_foot")
        ]
        assert all(0.03 < foot[2] < 0.35 for foot in feet)
        assert true_position(run, "ben") == pytest.approx((5, 5), abs=0.05)
        assert run.simulation.models["anna"].model.link("head")


def test_runs_with_actors_repeat_and_go_on_from_states(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "walk.yaml").write_text("world: street.sdf\nduration: 4\n")
    spec = load_scenario(tmp_path / "walk.yaml")
    state = tmp_path / "kept.state"
    outcome = run_scenario(
        spec,
        RunOptions(out=tmp_path / "whole", snapshots=(SnapshotRequest(2.3, state),), write_report=False, serve=False),
    )
    assert outcome.state == "done", outcome.error
    run_scenario(spec, RunOptions(out=tmp_path / "again", from_snapshot=state, write_report=False, serve=False))
    assert recording_digest(tmp_path / "whole") == recording_digest(tmp_path / "again")
    with open_recording(tmp_path / "whole") as recording:
        poses = [item.message.pose.position for item in recording.messages(["/truth/anna/pose"])]
    steps = np.hypot(np.diff([p.x for p in poses]), np.diff([p.y for p in poses]))
    assert steps.max() < 0.03


@pytest.mark.parametrize("broken", ["gone.dae", "broken.dae"])
def test_actor_without_animation_still_walks(tmp_path: Path, broken: str) -> None:
    path = write(tmp_path, WORLD.replace("<filename>walk.dae</filename><inter", f"<filename>{broken}</filename><inter"))
    (tmp_path / "broken.dae").write_text("<COLLADA/>")
    with Run(path, record=False) as run:
        run.run_for(1.5)
        assert true_position(run, "anna") == pytest.approx((1, 0), abs=0.08)


def test_actor_without_auto_start_does_not_move(tmp_path: Path) -> None:
    text = WORLD.replace("<auto_start>true", "<auto_start>false").replace("<loop>true", "<loop>false")
    with Run(write(tmp_path, text), record=False) as run:
        run.run_for(3.0)
        assert math.dist(true_position(run, "anna"), (0.0, 0.0)) < 0.05


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<time>2.5<", "<time>1<", "increasing times"),
        ("<time>2<", "<time>x<", "time"),
        ("<delay_start>0.5", "<delay_start>-1", "delay"),
    ],
)
def test_invalid_scripts_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    def read() -> Any:
        return load_world(write(tmp_path, WORLD.replace(old, new, 1)))

    with pytest.raises(DescriptionError, match=message):
        read()
