"""Stability margins, tip-over angles, foot loads and holding torques keep the laws of statics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.walking.hexapods import legged_robot_named

from roboyard.walking.statics import (
    compute_foot_loads,
    holding_torques,
    stability_margin,
    support_polygon,
    tip_over_angle,
    tip_over_stability,
)

seeds = st.integers(0, 2**32 - 1)


def standing(seed: int, uneven: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Return three to six feet around a body that stands, and its center of mass."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, 2.0 * np.pi, rng.integers(3, 7)))
    feet = np.column_stack([0.3 * np.cos(angles), 0.25 * np.sin(angles), rng.uniform(-uneven, uneven, len(angles))])
    corners = support_polygon(feet)
    weights = rng.dirichlet(np.ones(len(corners)))
    return feet, np.array([*(weights @ corners), 0.15 + rng.uniform(0.0, 0.1)])


@given(seeds)
def test_tip_over_on_level_ground_is_the_planar_margin(seed: int) -> None:
    feet, center = standing(seed, 0.0)
    margin, high = stability_margin(feet, center), center[2]
    found = tip_over_stability(feet, center)
    assert float(found.angle) == pytest.approx(math.atan2(margin, high), abs=1e-9)
    assert float(found.energy_height) == pytest.approx(math.hypot(margin, high) - high, abs=1e-9)


@given(seeds)
def test_tip_over_does_not_depend_on_the_frame(seed: int) -> None:
    feet, center = standing(seed)
    rng = np.random.default_rng(seed)
    rotation, offset = Rotation.from_euler("z", rng.uniform(-3.0, 3.0)), rng.normal(size=3)
    order = rng.permutation(len(feet))
    found, transformed = (
        tip_over_stability(feet, center),
        tip_over_stability((rotation.apply(feet) + offset)[order], rotation.apply(center) + offset),
    )
    np.testing.assert_allclose(found, transformed, atol=1e-9)


@given(seeds)
def test_tip_over_angle_puts_the_center_above_the_edge(seed: int) -> None:
    feet, center = standing(seed)
    corners = [feet[np.argmin(np.hypot(*(feet[:, :2] - corner).T))] for corner in support_polygon(feet)]
    found = tip_over_stability(feet, center)
    angles, rises = [], []
    for a, b in zip(corners, [*corners[1:], corners[0]], strict=True):
        axis = (b - a) / np.linalg.norm(b - a)

        def tipped(angle: float, a: np.ndarray = a, axis: np.ndarray = axis) -> np.ndarray:
            return a + Rotation.from_rotvec(angle * axis).apply(center - a)

        # by search: the angle at which the centre is highest
        candidate_angles = np.linspace(-np.pi, np.pi, 20_001)
        heights = (a + Rotation.from_rotvec(candidate_angles[:, None] * axis).apply(center - a))[:, 2]
        top = candidate_angles[int(heights.argmax())]
        angles.append(top)
        rises.append(math.copysign(heights.max() - center[2], top))
        x, y = (b - a)[:2]
        above = tipped(top) - a
        assert (x * above[1] - y * above[0]) / math.hypot(x, y) == pytest.approx(0.0, abs=1e-3)
    assert float(found.angle) == pytest.approx(min(angles, key=abs), abs=1e-3)
    assert float(found.energy_height) == pytest.approx(min(rises), abs=1e-6)


@given(seeds, st.floats(0.01, 0.1))
def test_tip_over_of_lower_feet_is_smaller(seed: int, lower: float) -> None:
    feet, center = standing(seed)
    lower_feet = feet - np.array([0.0, 0.0, lower])
    assert stability_margin(lower_feet, center) == stability_margin(feet, center)
    before, after = tip_over_stability(feet, center), tip_over_stability(lower_feet, center)
    assert float(after.angle) <= float(before.angle) + 1e-12
    assert float(after.energy_height) <= float(before.energy_height) + 1e-12


def test_tip_over_of_feet_without_area_is_infinite() -> None:
    center = np.zeros((4, 3))
    for feet in (np.zeros((1, 3)), np.zeros((6, 3)), [[0.0, 0.0, 0.0], [1.0, 1.0, 0.3], [2.0, 2.0, 0.1]]):
        assert np.isneginf(tip_over_stability(feet, center)).all()
    triangle = [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [1.5, 1.0, 0.0]]
    assert float(tip_over_stability(triangle, [0.0, 0.5, 0.2]).angle) < 0.0


@given(seeds)
def test_tip_over_kernel_agrees_for_a_leaning_body(seed: int) -> None:
    feet, center = standing(seed)
    roll, pitch = np.random.default_rng(seed).uniform(-0.2, 0.2, 2)
    leaning = Rotation.from_euler("xy", (roll, pitch))
    body_feet = np.vstack([leaning.inv().apply(feet - center), np.zeros((2, 3))])
    in_stance = np.arange(len(body_feet)) < len(feet)
    assert tip_over_angle(body_feet, in_stance, roll, pitch) == pytest.approx(
        float(tip_over_stability(feet, center).angle), abs=1e-9
    )
    assert tip_over_angle(body_feet, in_stance & (np.arange(len(body_feet)) < 2), roll, pitch) == -math.inf


def test_stability_margin_is_the_distance_to_the_nearest_edge() -> None:
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [0.2, 0.1]])
    assert len(support_polygon(square)) == 4
    assert stability_margin(square) == pytest.approx(1.0)
    assert stability_margin(square, (0.5, 0.0)) == pytest.approx(0.5)
    assert stability_margin(square, (1.5, 0.0)) == pytest.approx(-0.5)
    assert stability_margin(square[:2]) == -np.inf
    assert stability_margin(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])) == -np.inf


def test_foot_loads_and_torques_balance_the_weight() -> None:
    legged_robot = legged_robot_named("akrobat")
    loads = compute_foot_loads(legged_robot.stance_feet, 40.0, [1, 0, 0, 1, 1, 0])
    assert loads.sum() == pytest.approx(40.0)
    np.testing.assert_allclose(loads @ legged_robot.stance_feet[:, :2], 0.0, atol=1e-9)
    torque = holding_torques(legged_robot, legged_robot.stance_pose, loads)
    step = np.random.default_rng(2).uniform(-1e-5, 1e-5, (6, 3))
    rise = legged_robot.foot_positions(legged_robot.stance_pose + step)[:, 2] - legged_robot.stance_feet[:, 2]
    assert (torque * step).sum() == pytest.approx(-(loads * rise).sum(), rel=1e-3)  # virtual work
