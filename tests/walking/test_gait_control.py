"""The heading controller corrects rotation by slip, and does not act against the commanded rotation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.walking.gait_control import HeadingController

DT = 0.02


@given(st.floats(-3.0, 3.0), st.floats(-0.2, 0.2), st.floats(-0.3, 0.3), st.floats(0.3, 1.0))
def test_heading_controller_corrects_a_slipping_body(
    start: float, slip: float, yaw_rate: float, fraction: float
) -> None:
    controller, heading, reference = HeadingController(2.0), start, start
    twist = np.array([0.1, 0.0, yaw_rate])
    for _ in range(500):
        commanded = controller.correct(twist, heading)
        achieved = fraction * commanded
        achieved_twist = controller.update_reference(twist, commanded, achieved, DT)
        heading += (achieved[2] + slip) * DT
        reference += achieved_twist[2] * DT
    assert achieved_twist[2] == pytest.approx(fraction * yaw_rate, abs=1e-9)
    error = math.remainder(heading - reference, math.tau)
    assert abs(error) <= max(abs(slip) / (2.0 * fraction), 0.0) + 1e-6 or abs(slip) > 0.29 * fraction


def test_heading_controller_without_heading_or_twist_adds_nothing() -> None:
    controller, twist = HeadingController(1.0), np.array([0.1, 0.0, 0.2])
    assert (controller.correct(twist, None) == twist).all()
    assert (HeadingController(0.0).correct(twist, 1.0) == twist).all()
    controller.correct(twist, 0.0)
    assert not controller.correct(np.zeros(3), 1.0).any()
    assert (controller.correct(twist, 1.0) == twist).all()  # begins anew with the present heading
