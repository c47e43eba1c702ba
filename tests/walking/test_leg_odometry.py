"""Odometry of the legs is exact for feet that do not slip."""

from __future__ import annotations

import numpy as np
import pytest
from tests.walking.hexapods import legged_robot_named

from roboyard.walking.gait import move_feet_with_ground
from roboyard.walking.leg_odometry import LegOdometry

DT = 0.02


def test_leg_odometry_without_slip_is_exact() -> None:
    rng = np.random.default_rng(1)
    feet, odometry = legged_robot_named("akrobat").stance_feet, LegOdometry()
    pose = np.eye(3)
    for _ in range(50):
        odometry.update(DT, feet, np.ones(6, bool))
        twist = rng.uniform(-0.2, 0.2, 3)
        feet = move_feet_with_ground(feet, twist, DT)
        c, s = np.cos(twist[2] * DT), np.sin(twist[2] * DT)
        displacement = move_feet_with_ground(np.zeros((1, 3)), twist, -DT)[0]
        pose = pose @ np.array([[c, -s, displacement[0]], [s, c, displacement[1]], [0, 0, 1]])
    odometry.update(DT, feet, np.ones(6, bool))
    np.testing.assert_allclose([odometry.x, odometry.y], pose[:2, 2], atol=1e-9)
    assert odometry.yaw == pytest.approx(np.arctan2(pose[1, 0], pose[0, 0]), abs=1e-9)
