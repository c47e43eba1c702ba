"""Stability margins over a cycle and comparisons of gaits keep the laws of the literature."""

from __future__ import annotations

import numpy as np
import pytest
from tests.walking.hexapods import HEXAPODS, legged_robot_named

from roboyard.errors import UnknownNameError
from roboyard.walking.gait import GAITS, Gait, LegLayout, MetachronalGait, RippleGait, WaveGait, make_gait, plan_gait
from roboyard.walking.gait_comparison import can_walk, compare_gaits, cycle_stability_margin, lift_off_order
from roboyard.walking.statics import stability_margin


@pytest.mark.parametrize("robot", HEXAPODS)
@pytest.mark.parametrize("duty_factor", [0.84, 0.9])
def test_metachronal_gait_has_the_largest_margin_of_its_duty_factor(robot: str, duty_factor: float) -> None:
    """Song and Waldron: wave gaits have the largest margin of all regular symmetric gaits."""
    legged_robot = legged_robot_named(robot)
    layout = LegLayout.from_robot(legged_robot)
    best, *others = (
        cycle_stability_margin(legged_robot, plan_gait("", pattern, layout, duty_factor), 0.08)
        for pattern in (MetachronalGait(), WaveGait(), RippleGait())
    )
    assert best >= max(others) - 1e-9


@pytest.mark.parametrize("name", GAITS.names())
def test_margin_of_a_tiny_stride_is_that_of_the_stance(name: str) -> None:
    legged_robot = legged_robot_named("akrobat")
    gait = make_gait(name, legged_robot)
    masks = {tuple(~gait.swing_mask(phase + 1e-6)) for phase in gait.phases}
    standing = min(stability_margin(legged_robot.stance_feet[np.array(mask)]) for mask in masks)
    assert cycle_stability_margin(legged_robot, gait, 1e-6) == pytest.approx(standing, abs=1e-5)
    assert cycle_stability_margin(legged_robot, gait, 0.08) > 0.0


def test_gait_with_too_few_stance_feet_has_no_margin() -> None:
    legged_robot = legged_robot_named("akrobat")
    assert cycle_stability_margin(legged_robot, Gait("bound", 0.3, (0.0,) * 6), 0.04) == -np.inf


def test_lift_off_order_groups_legs_of_equal_phases() -> None:
    gait = Gait("pairs", 0.8, (0.5, 0.0, 0.0, 0.25))
    assert lift_off_order(gait, ("a", "b", "c", "d")) == (("b", "c"), ("d",), ("a",))


def test_comparison_names_order_and_speeds_of_gaits() -> None:
    legged_robot = legged_robot_named("akrobat")
    comparisons = {one.name: one for one in compare_gaits(legged_robot)}
    assert tuple(comparisons) == GAITS.names()
    assert comparisons["wave"].order == (("lr",), ("lm",), ("lf",), ("rr",), ("rm",), ("rf",))
    assert comparisons["tripod"].order == (("lf", "lr", "rm"), ("lm", "rf", "rr"))
    assert [comparisons[name].min_stance_feet for name in ("tripod", "ripple", "wave")] == [3, 4, 5]
    for measure in ("forward_speed", "lateral_speed", "yaw_rate"):
        tripod, ripple, wave = (getattr(comparisons[name], measure) for name in ("tripod", "ripple", "wave"))
        assert tripod > ripple > wave > 0.0
    assert comparisons["tripod"].margin < comparisons["ripple"].margin < comparisons["wave"].margin
    assert [one.name for one in compare_gaits(legged_robot, ["wave"])] == ["wave"]
    with pytest.raises(UnknownNameError, match="tripod"):
        compare_gaits(legged_robot, ["tripot"])


def test_four_legs_walk_with_the_gaits_that_leave_three_feet() -> None:
    supported = {name for name in GAITS.names() if can_walk(GAITS[name](), LegLayout.with_rows(2))}
    assert supported >= {"wave", "metachronal"}
    assert supported.isdisjoint({"tripod", "ripple"})
