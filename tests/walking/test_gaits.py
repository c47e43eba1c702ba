"""Gaits: order, duty, feet on the ground and in the air."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.walking.hexapods import HEXAPODS, walker_of

from roboyard.errors import InputError, UnknownNameError
from roboyard.walking.gaits import GAITS, arch, cycle_feet, eased, fastest_foot, make_gait, moved, pace_of, swung
from roboyard.walking.stability import stability_margin, support_polygon

part = st.floats(-1.0, 1.0)
twists = st.tuples(part, part, part).filter(lambda t: max(map(abs, t)) > 0.05)


@pytest.mark.parametrize(("name", "duty", "down"), [("wave", 5 / 6, 5), ("ripple", 0.75, 4), ("tripod", 0.5, 3)])
def test_gait_feet_are_down_for_their_duty(name: str, duty: float, down: int) -> None:
    gait = make_gait(name, walker_of("akrobat"))
    assert gait.duty == pytest.approx(duty)
    assert gait.fewest_down() == down
    air = np.array([gait.lifted(phase) for phase in np.linspace(0.0, 1.0, 1200, endpoint=False)])
    np.testing.assert_allclose(air.mean(axis=0), 1.0 - duty, atol=0.01)


def test_tripod_gait_has_the_tripods_of_the_thesis() -> None:
    phases = make_gait("tripod", walker_of("akrobat")).phases
    first = {number + 1 for number, phase in enumerate(phases) if phase == phases[0]}
    assert first == {1, 4, 5}


def test_wave_gait_goes_from_rear_to_front_side_by_side() -> None:
    walker = walker_of("akrobat")
    order = np.argsort(make_gait("wave", walker).phases)
    assert [walker.legs[i].name for i in order] == ["lr", "lm", "lf", "rr", "rm", "rf"]


def test_ripple_gait_changes_sides_and_overlaps_by_a_third() -> None:
    walker = walker_of("akrobat")
    gait = make_gait("ripple", walker)
    order = np.argsort(gait.phases)
    sides = [walker.legs[i].name[0] for i in order]
    assert all(a != b for a, b in zip(sides, sides[1:] + sides[:1], strict=True))
    np.testing.assert_allclose(np.diff(np.sort(gait.phases)), 2.0 / 3.0 * (1.0 - gait.duty))


def test_gait_of_an_unknown_name_or_bad_duty_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="tripod"):
        make_gait("tripot", walker_of("akrobat"))
    assert make_gait("tripod", walker_of("akrobat"), 0.6).duty == 0.6
    with pytest.raises(InputError, match="duty"):
        make_gait("tripod", walker_of("akrobat"), 1.5)


@settings(max_examples=40)
@given(twists, st.floats(-2.0, 2.0))
def test_moved_feet_keep_their_distances_and_move_back(twist: tuple[float, float, float], time: float) -> None:
    feet = walker_of("akrobat").stance_feet
    there = moved(feet, twist, time)
    np.testing.assert_allclose(moved(there, twist, -time), feet, atol=1e-12)  # back again
    half = moved(moved(feet, twist, 0.5 * time), twist, 0.5 * time)
    np.testing.assert_allclose(half, there, atol=1e-12)
    apart = np.linalg.norm(there[:, None] - there[None], axis=2)
    np.testing.assert_allclose(apart, np.linalg.norm(feet[:, None] - feet[None], axis=2), atol=1e-12)


@settings(max_examples=10)
@given(twists)
def test_cycle_feet_of_mirrored_twists_are_mirrored(twist: tuple[float, float, float]) -> None:
    walker = walker_of("akrobat")
    names = [leg.name for leg in walker.legs]
    other = [names.index({"l": "r", "r": "l"}[name[0]] + name[1]) for name in names]
    gait = make_gait("tripod", walker)
    mirror = np.array([1.0, -1.0, 1.0])
    here = cycle_feet(walker, gait, twist, 0.06, 0.02)
    there = cycle_feet(walker, gait, np.array(twist) * np.array([1.0, -1.0, -1.0]), 0.06, 0.02)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b[:, other] * mirror, atol=1e-9)


def test_swings_start_and_end_with_the_motion_of_the_ground() -> None:
    share = np.linspace(0.0, 1.0, 2001)
    start, end, drift = np.array([0.0, 0.0]), np.array([0.08, 0.01]), np.array([-0.08, 0.0])
    way = swung(start, end, drift, share)
    np.testing.assert_allclose(way[[0, -1]], [start, end], atol=1e-12)
    speed = np.diff(way, axis=0) / np.diff(share)[:, None]
    np.testing.assert_allclose(speed[[0, -1]], [drift, drift], atol=2e-3)
    assert np.abs(np.diff(speed, axis=0)).max() < 2e-3  # no jumps
    height = arch(share)
    assert height.max() == pytest.approx(1.0)
    assert height[0] == height[-1] == 0.0
    np.testing.assert_allclose(height, height[::-1], atol=1e-12)
    assert eased(0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("robot", HEXAPODS)
@pytest.mark.parametrize("name", GAITS)
def test_pace_keeps_joint_limits_and_speeds(robot: str, name: str) -> None:
    walker = walker_of(robot)
    gait = make_gait(name, walker)
    for twist in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, -0.4, 1.0)):
        pace = pace_of(walker, gait, twist, 0.08, 0.02)
        down, up = cycle_feet(walker, gait, twist, pace.stride, 0.02)
        q = walker.reach(np.concatenate([down, up[1:]]))
        time = np.concatenate([np.full(len(down) - 1, gait.duty), np.full(len(up) - 1, 1.0 - gait.duty)]) / 16
        rates = np.abs(np.diff(q, axis=0)) / (time * pace.cycle)[:, None, None]
        assert (rates <= walker.speeds * 1.0001).all()
        assert pace.speed == pytest.approx(pace.stride / (gait.duty * pace.cycle))


def test_pace_with_a_lift_out_of_reach_is_refused() -> None:
    walker = walker_of("akrobat")
    with pytest.raises(InputError, match="lift"):
        pace_of(walker, make_gait("tripod", walker), (1.0, 0.0, 0.0), 0.08, 0.5)
    assert fastest_foot(walker, (0.1, 0.0, 0.0)) == pytest.approx(0.1)


def test_stability_margin_is_the_distance_to_the_nearest_edge() -> None:
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [0.2, 0.1]])
    assert len(support_polygon(square)) == 4
    assert stability_margin(square) == pytest.approx(1.0)
    assert stability_margin(square, (0.5, 0.0)) == pytest.approx(0.5)
    assert stability_margin(square, (1.5, 0.0)) == pytest.approx(-0.5)
    assert stability_margin(square[:2]) == -np.inf
    assert stability_margin(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])) == -np.inf
