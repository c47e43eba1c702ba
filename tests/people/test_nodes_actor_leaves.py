"""Leaves that direct people: they walk and act as the ports say, and fail with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness
from tests.harness.missions import write_tree

from roboyard.errors import ConfigError, InputError
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se2
from roboyard.scenarios.run import Run


def run_with_person(folder: Path, body: str, **options: Any) -> tuple[Run, BusHarness]:
    """A run in the empty world with a person whom a tree directs."""
    run = Run("empty", record=False, seed=2)
    run.add_person("anna", mission=str(write_tree(folder, body)), **options)
    return run, BusHarness(bus=run.bus)


def has_status(harness: BusHarness, status: str) -> bool:
    """Whether this is what the person's mission published last."""
    return harness.published("/anna/mission/status").data[-1:] == [status]


def test_tree_moves_a_person_to_its_target(tmp_path: Path) -> None:
    body = """<Sequence>
      <ActorMovement target="1.5;0.5;-1"/><ActorAnimation animation_name="reach" target="1.7;0.1;1.1"/></Sequence>"""
    run, harness = run_with_person(tmp_path, body, pose=(0.0, 0.0, 0.0))
    with run:
        assert run.run_until(lambda: has_status(harness, "SUCCESS"), timeout=30.0)
        x, y, yaw = run.people["anna"].person.pose
    assert (x, y, yaw) == pytest.approx((1.5, 0.5, -1.0), abs=0.01)


@pytest.mark.parametrize(("leaf", "reason"), [
    ('<ActorMovement target="1;2" animation_name="fly"/>', "fly"),
    ('<ActorAnimation animation_name="reach" target="9;9;9"/>', "reach"),
    ('<ActorMovement target="1;2" velocity="50"/>', "velocity"),
], ids=("unknown_animation", "out_of_reach", "too_fast"))  # fmt: skip
def test_leaf_fails_if_the_person_rejects_the_request(tmp_path: Path, leaf: str, reason: str) -> None:
    run, harness = run_with_person(tmp_path, leaf)
    with run:
        assert run.run_until(lambda: has_status(harness, "FAILURE"), timeout=5.0)
    assert any(line.startswith("Actor") and reason in line for line in harness.log_lines)


@pytest.mark.parametrize(("velocity", "speed_factor", "expected"), [(0.7, 1.0, 0.7), (0.7, 1.3, 0.7), (0.0, 1.2, None)])
def test_person_walks_at_the_given_velocity_or_speed_factor(
    tmp_path: Path, velocity: float, speed_factor: float, expected: float | None
) -> None:
    run, harness = run_with_person(
        tmp_path, f'<ActorMovement target="8;0" velocity="{velocity}"/>', speed_factor=speed_factor
    )
    with run:
        poses = harness.record("/truth/anna/pose", msg.PoseStamped)
        run.run_for(5.0)
        clip = run.people["anna"].person._walk_clip
    steady = [(one.time_ns * 1e-9, pose_to_se2(one.message.pose).x) for one in poses if 3.0 < one.time_ns * 1e-9 < 4.5]
    speed = float(np.polyfit(*np.transpose(steady), 1)[0])
    usual = clip.travel_per_period * 1.75 / clip.period
    assert speed == pytest.approx(speed_factor * usual if expected is None else expected, rel=0.01)


def test_mission_combined_with_other_plans_is_refused(tmp_path: Path) -> None:
    with Run("empty", record=False) as run:
        with pytest.raises(ConfigError, match="only one of schedule, patrol and mission"):
            run.add_person("anna", mission="tree.xml", patrol=((0.0, 0.0), (1.0, 0.0)))
        with pytest.raises(InputError, match=r"nowhere\.xml"):
            run.add_person("ben", mission="nowhere.xml")
