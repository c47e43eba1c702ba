"""Leaves for people, what chance decides, and the leaf that brings a tool over what lies somewhere."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.behavior.missions import MissionHarness, write_tree
from tests.harness.bus import BusHarness

from roboyard.behavior.nodes.manipulation import tilted_pose
from roboyard.errors import ConfigError, InputError, RunError
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se2
from roboyard.scenarios.run import Run


def draw_counts(folder: Path, weights: str, seed: int, rounds: int = 400) -> list[int]:
    body = f"""<Sequence><Script code="a := 0; b := 0; c := 0"/><Repeat num_cycles="{rounds}">
      <WeightedRandom weights="{weights}">
        <Script code="a += 1"/><Script code="b += 1"/><Script code="c += 1"/>
      </WeightedRandom></Repeat></Sequence>"""
    mission = MissionHarness(folder, body, seed=seed, rate=1000.0)
    assert mission.run_to_end(1.0) == "SUCCESS"
    return [int(mission.entry(name)) for name in "abc"]


def test_weighted_random_follows_weights_and_repeats_by_seed(tmp_path: Path) -> None:
    found = draw_counts(tmp_path, "6;3;0", 3)
    assert sum(found) == 400
    assert found[2] == 0
    assert abs(found[0] - 400 * 6 / 9) < 4 * math.sqrt(400 * 6 / 9 * 3 / 9)
    assert draw_counts(tmp_path, "6;3;0", 3) == found
    assert draw_counts(tmp_path, "6;3;0", 4) != found


@pytest.mark.parametrize("weights", ["1;1", "1;-1;1", "0;0;0", "1;nan;1"])
def test_invalid_weights_are_refused(tmp_path: Path, weights: str) -> None:
    with pytest.raises(RunError, match="weights"):
        draw_counts(tmp_path, weights, 1)


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


places = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1))
angles = st.floats(-math.pi, math.pi)


@given(places, angles, st.floats(0, 1.5), angles)
def test_leaning_pose_tilts_the_tool_away_from_the_arm_base(
    place: tuple[float, float, float], yaw: float, tilt: float, angle: float
) -> None:
    now = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (math.pi, 0.0, angle))
    R = tilted_pose(place, yaw, tilt, [0.0, 0.0, 0.0], now).rotation_matrix()
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-9)
    assert np.linalg.det(R) == pytest.approx(1.0)
    assert abs(R[2, 0]) < 1e-9  # x is level
    assert abs(abs(R[0, 0] * math.cos(yaw) + R[1, 0] * math.sin(yaw)) - 1.0) < 1e-9  # and along the direction
    assert R[2, 2] == pytest.approx(-math.cos(tilt))
    assert R[:2, 2] @ np.array(place[:2]) >= -1e-9  # away from the foot
    assert R[:, 0] @ now.rotation_matrix()[:, 0] >= -1e-9  # the nearer way round
    exact = tilted_pose(place, yaw, tilt, [0.0, 0.0, 0.0]).rotation_matrix()
    np.testing.assert_allclose(exact[:, 0], (math.cos(yaw), math.sin(yaw), 0.0), atol=1e-9)
    np.testing.assert_allclose(exact[:, 2], R[:, 2], atol=1e-9)
