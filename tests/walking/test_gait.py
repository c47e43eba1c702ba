"""Gaits keep their order of legs and duty factor, swings join the motion of the ground, and speeds keep the limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.walking.hexapods import HEXAPODS, legged_robot_named

from roboyard.errors import InputError, UnknownNameError
from roboyard.walking.gait import (
    GAITS,
    RAMP_FRACTION,
    LegLayout,
    MetachronalGait,
    TripodGait,
    WaveGait,
    compute_gait_speed,
    ease,
    lift_profiles,
    make_gait,
    max_stance_foot_speed,
    move_feet_with_ground,
    sample_cycle,
    swing_positions,
)

part = st.floats(-1.0, 1.0)
twists = st.tuples(part, part, part).filter(lambda t: max(map(abs, t)) > 0.05)


@pytest.mark.parametrize(
    ("name", "duty_factor", "min_stance_feet"),
    [("wave", 5 / 6, 5), ("ripple", 0.75, 4), ("tripod", 0.5, 3), ("metachronal", 0.5, 3)],
)
def test_gait_feet_are_in_stance_for_their_duty_factor(name: str, duty_factor: float, min_stance_feet: int) -> None:
    gait = make_gait(name, legged_robot_named("akrobat"))
    assert gait.duty_factor == pytest.approx(duty_factor)
    assert gait.min_stance_feet() == min_stance_feet
    swing_masks = np.array([gait.swing_mask(phase) for phase in np.linspace(0.0, 1.0, 1200, endpoint=False)])
    np.testing.assert_allclose(swing_masks.mean(axis=0), 1.0 - duty_factor, atol=0.01)


def test_tripod_gait_has_the_tripods_of_the_thesis() -> None:
    phases = make_gait("tripod", legged_robot_named("akrobat")).phases
    first = {number + 1 for number, phase in enumerate(phases) if phase == phases[0]}
    assert first == {1, 4, 5}


def test_wave_gait_goes_from_rear_to_front_side_by_side() -> None:
    legged_robot = legged_robot_named("akrobat")
    order = np.argsort(make_gait("wave", legged_robot).phases)
    assert [legged_robot.legs[i].name for i in order] == ["lr", "lm", "lf", "rr", "rm", "rf"]


def test_ripple_gait_changes_sides_and_overlaps_by_a_third() -> None:
    legged_robot = legged_robot_named("akrobat")
    gait = make_gait("ripple", legged_robot)
    order = np.argsort(gait.phases)
    sides = [legged_robot.legs[i].name[0] for i in order]
    assert all(a != b for a, b in zip(sides, sides[1:] + sides[:1], strict=True))
    np.testing.assert_allclose(np.diff(np.sort(gait.phases)), 2.0 / 3.0 * (1.0 - gait.duty_factor))


def phase_differences(phases: tuple[float, ...]) -> np.ndarray:
    """Phases after that of the first leg."""
    return np.mod(np.array(phases) - phases[0] + 1e-9, 1.0)


@pytest.mark.parametrize("n_rows", [2, 3, 4, 5])
def test_metachronal_gait_ends_as_tripod_and_as_wave_gait(n_rows: int) -> None:
    layout, gait = LegLayout.with_rows(n_rows), MetachronalGait()
    tripod, wave = TripodGait().phases(layout, 0.5), WaveGait().phases(layout, 1.0 - 1.0 / layout.n_legs)
    np.testing.assert_allclose(phase_differences(gait.phases(layout, 0.5)), phase_differences(tripod))
    np.testing.assert_allclose(
        phase_differences(gait.phases(layout, 1.0 - 1.0 / layout.n_legs)), phase_differences(wave)
    )


def test_leg_layout_of_a_robot_is_that_of_its_pairs() -> None:
    legged_robot = legged_robot_named("akrobat")
    layout = LegLayout.from_robot(legged_robot)
    assert layout == LegLayout.with_rows(3)
    assert layout.leg_names == ("L1", "R1", "L2", "R2", "L3", "R3")
    with pytest.raises(InputError, match="3 legs on the left, 2 on the right"):
        LegLayout.from_robot(legged_robot.without_leg("rm"))


def test_gait_with_an_unknown_name_or_bad_duty_factor_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="tripod"):
        make_gait("tripot", legged_robot_named("akrobat"))
    assert make_gait("tripod", legged_robot_named("akrobat"), 0.6).duty_factor == 0.6
    with pytest.raises(InputError, match="duty"):
        make_gait("tripod", legged_robot_named("akrobat"), 1.5)


@settings(max_examples=40)
@given(twists, st.floats(-2.0, 2.0))
def test_moved_feet_keep_their_distances_and_move_back(twist: tuple[float, float, float], time: float) -> None:
    feet = legged_robot_named("akrobat").stance_feet
    moved_feet = move_feet_with_ground(feet, twist, time)
    np.testing.assert_allclose(move_feet_with_ground(moved_feet, twist, -time), feet, atol=1e-12)  # back again
    half = move_feet_with_ground(move_feet_with_ground(feet, twist, 0.5 * time), twist, 0.5 * time)
    np.testing.assert_allclose(half, moved_feet, atol=1e-12)
    distances = np.linalg.norm(moved_feet[:, None] - moved_feet[None], axis=2)
    np.testing.assert_allclose(distances, np.linalg.norm(feet[:, None] - feet[None], axis=2), atol=1e-12)


@settings(max_examples=10)
@given(twists)
def test_cycle_feet_of_mirrored_twists_are_mirrored(twist: tuple[float, float, float]) -> None:
    legged_robot = legged_robot_named("akrobat")
    names = [leg.name for leg in legged_robot.legs]
    other = [names.index({"l": "r", "r": "l"}[name[0]] + name[1]) for name in names]
    gait = make_gait("tripod", legged_robot)
    mirror = np.array([1.0, -1.0, 1.0])
    feet = sample_cycle(legged_robot, gait, twist, 0.06, 0.02)
    mirrored_feet = sample_cycle(legged_robot, gait, np.array(twist) * np.array([1.0, -1.0, -1.0]), 0.06, 0.02)
    for a, b in zip(feet, mirrored_feet, strict=True):
        np.testing.assert_allclose(a, b[:, other] * mirror, atol=1e-9)


def test_swings_start_and_end_with_the_motion_of_the_ground() -> None:
    fraction = np.linspace(0.0, 1.0, 2001)
    start, end, ground_drift = np.array([0.0, 0.0]), np.array([0.08, 0.01]), np.array([-0.08, 0.0])
    path = swing_positions(start, end, ground_drift, fraction)
    np.testing.assert_allclose(path[[0, -1]], [start, end], atol=1e-12)
    speed = np.diff(path, axis=0) / np.diff(fraction)[:, None]
    np.testing.assert_allclose(speed[[0, -1]], [ground_drift, ground_drift], atol=2e-3)
    assert np.abs(np.diff(speed, axis=0)).max() < 2e-3  # no jumps
    height = lift_profiles(fraction)
    assert height.max() == pytest.approx(1.0)
    assert height[0] == height[-1] == 0.0
    np.testing.assert_allclose(height, height[::-1], atol=1e-12)
    assert ease(0.5, RAMP_FRACTION) == pytest.approx(0.5)


@pytest.mark.parametrize("robot", HEXAPODS)
@pytest.mark.parametrize("name", GAITS.names())
def test_gait_speed_keeps_joint_limits_and_speeds(robot: str, name: str) -> None:
    legged_robot = legged_robot_named(robot)
    gait = make_gait(name, legged_robot)
    for twist in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, -0.4, 1.0)):
        gait_speed = compute_gait_speed(legged_robot, gait, twist, 0.08, 0.02)
        stance_feet, swing_feet = sample_cycle(legged_robot, gait, twist, gait_speed.stride, 0.02)
        q = legged_robot.solve_ik(np.concatenate([stance_feet, swing_feet[1:]]))
        time = (
            np.concatenate(
                [np.full(len(stance_feet) - 1, gait.duty_factor), np.full(len(swing_feet) - 1, 1.0 - gait.duty_factor)]
            )
            / 16
        )
        rates = np.abs(np.diff(q, axis=0)) / (time * gait_speed.cycle)[:, None, None]
        assert (rates <= legged_robot.max_joint_speeds * 1.0001).all()
        assert gait_speed.speed == pytest.approx(gait_speed.stride / (gait.duty_factor * gait_speed.cycle))


def test_gait_speed_with_a_lift_out_of_reach_is_refused() -> None:
    legged_robot = legged_robot_named("akrobat")
    with pytest.raises(InputError, match="lift"):
        compute_gait_speed(legged_robot, make_gait("tripod", legged_robot), (1.0, 0.0, 0.0), 0.08, 0.5)
    assert max_stance_foot_speed(legged_robot, (0.1, 0.0, 0.0)) == pytest.approx(0.1)
