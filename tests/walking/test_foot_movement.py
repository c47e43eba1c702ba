"""Movement files read back as written; playback, standing up and lying down pass all steps within the joint speeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.walking.hexapods import legged_robot_named

from roboyard.errors import DescriptionError, InputError
from roboyard.walking.errors import FootOutOfReachError, LegJointLimitError
from roboyard.walking.foot_movement import (
    FootMovement,
    Interpolation,
    absolute_foot_positions,
    format_movement,
    load_movement,
    plan_lie_down,
    plan_stand_up,
    play_movement,
    validate_movement,
)

FINITE = st.floats(-1e6, 1e6)


@given(steps=st.tuples(st.integers(1, 7), st.integers(1, 5)).flatmap(lambda s: arrays(float, (*s, 3), elements=FINITE)))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_movement_files_read_back_as_written(steps: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(format_movement(FootMovement(steps)))
    back = load_movement(path)
    assert back.foot_offsets.tobytes() == (steps + 0.0).tobytes() or np.array_equal(back.foot_offsets, steps)
    assert back.name == "m"


@given(seed=st.integers(0, 2**32 - 1), ticks=st.integers(1, 12), interpolation=st.sampled_from(["cosine", "spline"]))
@settings(max_examples=25, deadline=None)
def test_played_movement_passes_all_steps_within_speeds(seed: int, ticks: int, interpolation: Interpolation) -> None:
    legged_robot = legged_robot_named("akrobat")
    steps = np.random.default_rng(seed).uniform(-0.02, 0.02, (6, 5, 3))
    movement = FootMovement(steps)
    playback = play_movement(movement, legged_robot, step_ticks=ticks, interpolation=interpolation)
    feet = legged_robot.foot_positions(playback.q)
    step_indices = np.concatenate([[0], np.cumsum(playback.step_ticks)])
    np.testing.assert_allclose(feet[step_indices], absolute_foot_positions(movement, legged_robot), atol=1e-9)
    assert (np.abs(np.diff(playback.q, axis=0)) <= legged_robot.max_joint_speeds * playback.period * (1 + 1e-6)).all()
    assert (playback.step_ticks >= ticks).all()
    assert (playback.q >= legged_robot.lower - 1e-9).all()
    assert (playback.q <= legged_robot.upper + 1e-9).all()
    assert playback.duration == pytest.approx(playback.step_ticks.sum() * 0.02)


def test_movement_holds_a_read_only_copy_of_its_offsets() -> None:
    offsets = np.zeros((2, 1, 3))
    movement = FootMovement(offsets)
    offsets[0, 0, 0] = 1.0
    assert movement.foot_offsets[0, 0, 0] == 0.0
    assert not movement.foot_offsets.flags.writeable
    assert FootMovement([[[0, 0, 1]]]).foot_offsets.dtype == np.float64


def test_cosine_interpolation_is_the_formula_of_the_thesis() -> None:
    legged_robot = legged_robot_named("akrobat")
    steps = np.zeros((6, 2, 3))
    steps[:, 1, 0] = 0.004
    playback = play_movement(FootMovement(steps), legged_robot, step_ticks=8)
    x = legged_robot.foot_positions(playback.q)[:, 0, 0] - legged_robot.stance_feet[0, 0]
    np.testing.assert_allclose(x, 0.004 * (-0.5 * np.cos(np.pi * np.arange(9) / 8) + 0.5), atol=1e-12)


def test_movement_that_cannot_be_played_names_its_step() -> None:
    legged_robot = legged_robot_named("akrobat")
    steps = np.zeros((6, 3, 3))
    steps[2, 1] = (0.0, 0.5, 0.0)
    with pytest.raises(FootOutOfReachError, match="step 1: foot .* out of reach"):
        validate_movement(FootMovement(steps), legged_robot)
    steps[2, 1] = (0.17, -0.1, 0.0)
    with pytest.raises(LegJointLimitError, match="step 1: .* needs m31 at"):
        play_movement(FootMovement(steps), legged_robot)
    with pytest.raises(InputError, match="4 feet.*6, as akrobat has"):
        validate_movement(FootMovement(np.zeros((4, 3, 3))), legged_robot)
    with pytest.raises(InputError, match="finite"):
        FootMovement(np.full((6, 1, 3), np.nan))
    with pytest.raises(InputError, match="ticks"):
        play_movement(FootMovement(np.zeros((6, 2, 3))), legged_robot, step_ticks=0)


STEP = "<step><x>0</x><y>0</y><z>0</z></step>"


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("<walk/>", "root is <walk>.*<movement>"),
        ("<movement/>", "no feet"),
        (f'<movement><foot number="1">{STEP}</foot></movement>', "foot 0 is missing"),
        (f'<movement><foot number="0">{STEP}</foot><foot number="0">{STEP}</foot></movement>', "second foot 0"),
        (f'<movement><foot number="x">{STEP}</foot></movement>', "foot number 'x'"),
        (f'<movement><foot number="0">{STEP}</foot><foot number="1">{STEP * 2}</foot></movement>', "2 steps.*1, as"),
        ('<movement><foot number="0"></foot></movement>', "0 steps"),
        ('<movement><foot number="0"><step><x>0</x><y>0</y></step></foot></movement>', "without <z>"),
        ('<movement><foot number="0"><step><x>nan</x><y>0</y><z>0</z></step></foot></movement>', "<x> is 'nan'"),
        ('<movement><foot number="0"><step><x>1 m</x><y>0</y><z>0</z></step></foot></movement>', "<x> is '1 m'"),
        ('<movement><foot number="0"><jump/></foot></movement>', "<jump> in a foot"),
        ("<movement><leg/></movement>", "<leg> in a movement"),
        ("<movement", "well-formed"),
        ('<!DOCTYPE m [<!ENTITY a "b">]><movement>&a;</movement>', "entit"),
        ("", "empty"),
    ],
)
def test_bad_movement_file_is_refused(tmp_path: Path, text: str, expected_text: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=expected_text) as caught:
        load_movement(path)
    assert "bad.xml" in str(caught.value)


def test_missing_movement_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="no such file"):
        load_movement(tmp_path / "nothing.xml")
    (tmp_path / "m.txt").write_text("x")
    with pytest.raises(DescriptionError, match="unknown extension"):
        load_movement(tmp_path / "m.txt")


def test_standing_up_and_lying_down_keep_limits_and_speeds() -> None:
    legged_robot = legged_robot_named("akrobat")
    up = plan_stand_up(legged_robot, legged_robot.rest_pose, resting_foot_height=-0.016)
    np.testing.assert_allclose(up[-1], legged_robot.stance_pose, atol=1e-12)
    down = plan_lie_down(legged_robot, up[-1], resting_foot_height=-0.016)
    np.testing.assert_allclose(down[-1], legged_robot.rest_pose, atol=1e-12)
    for path in (up, down):
        assert (np.abs(np.diff(path, axis=0)) / 0.02 <= legged_robot.max_joint_speeds + 1e-9).all()
        assert ((path >= legged_robot.lower - 1e-9) & (path <= legged_robot.upper + 1e-9)).all()
    with pytest.raises(InputError, match="ground"):
        plan_stand_up(legged_robot, legged_robot.rest_pose, resting_foot_height=-0.5)
