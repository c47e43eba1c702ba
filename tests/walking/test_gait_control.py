"""Keeping a heading: what turns the body is taken back, and what is wanted is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.walking.hexapods import legged_robot_named

from roboyard.walking.gait import make_gait
from roboyard.walking.gait_control import HeadingController
from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig
from roboyard.walking.leg_odometry import remove_tilt

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


def test_tilted_body_returns_upright_over_its_feet() -> None:
    legged_robot = legged_robot_named("akrobat")
    generator = GaitGenerator(legged_robot, make_gait("tripod", legged_robot), SteppingConfig(tilt_correction_rate=1.0))
    roll, pitch = 0.01, -0.008  # so little that no foot has to step
    body_axes = remove_tilt(np.eye(3), roll, pitch)  # rows: the body's axes, as level ground sees them
    generator.feet[:] = legged_robot.stance_feet @ body_axes.T
    for _ in range(400):
        generator.advance(DT, (0.0, 0.0, 0.0), None, (roll, pitch))
        assert generator.in_stance.all()
        centered = generator.feet - generator.feet.mean(axis=0)
        normal = np.linalg.svd(centered)[2][2]  # of the ground, in the body
        normal *= np.sign(normal[2])
        roll, pitch = math.atan2(normal[1], normal[2]), -math.asin(normal[0])
    assert abs(roll) < 1e-4
    assert abs(pitch) < 1e-4
    lengths = [
        np.linalg.norm(feet[:, None] - feet[None], axis=2) for feet in (generator.feet, legged_robot.stance_feet)
    ]
    np.testing.assert_allclose(*lengths, atol=1e-4)  # and the feet stayed where they were on the ground
