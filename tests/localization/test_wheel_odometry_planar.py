"""Laws of planar odometry, and its nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.localization import PlanarOdometry, compute_arc_displacement

LENGTH = st.floats(-2.0, 2.0)


@given(LENGTH, LENGTH, LENGTH)
def test_two_half_displacements_equal_the_whole(x: float, y: float, rotation: float) -> None:
    half, complete = SE2.exp(PlanarTwist(x / 2, y / 2, rotation / 2)), SE2.exp(PlanarTwist(x, y, rotation))
    twice = half @ half
    assert (twice.x, twice.y) == pytest.approx((complete.x, complete.y), abs=1e-9)


@given(LENGTH, LENGTH)
def test_displacement_without_side_motion_is_an_arc(length: float, rotation: float) -> None:
    one, other = SE2.exp(PlanarTwist(length, 0.0, rotation)), compute_arc_displacement(length, rotation)
    assert (one.x, one.y) == pytest.approx((other.x, other.y), abs=1e-9)


def test_planar_covariance_agrees_with_sampling() -> None:
    random = np.random.default_rng(3)
    step, steps = PlanarTwist(0.02, 0.01, 0.01), 100
    odometry = PlanarOdometry()
    odometry.update(0, PlanarTwist())
    for k in range(steps):
        estimate = odometry.update(k + 1, step)
    noise, length = odometry.noise, math.hypot(step.vx, step.vy)
    step_std = np.sqrt(
        [noise.translation_variance_per_meter * length] * 2
        + [noise.rotation_variance_per_meter * length + noise.rotation_variance_per_radian * step.wz]
    )
    x, y, t = np.zeros((3, 4000))
    for _ in range(steps):
        dx, dy, dt = np.array(step)[:, None] + step_std[:, None] * random.standard_normal((3, 4000))
        c, s = np.cos(t + dt / 2), np.sin(t + dt / 2)
        x, y, t = x + c * dx - s * dy, y + s * dx + c * dy, t + dt
    assert estimate is not None
    assert estimate.covariance == pytest.approx(np.cov([x, y, t]), abs=0.1 * np.max(np.cov([x, y, t])))
