"""Keeping a heading: what turns the body is taken back, and what is wanted is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.walking.hexapods import walker_of

from roboyard.walking.gaits import make_gait
from roboyard.walking.heading import HeadingHold
from roboyard.walking.odometry import levelled
from roboyard.walking.stepping import Stepper, Steps

DT = 0.02


@given(st.floats(-3.0, 3.0), st.floats(-0.2, 0.2), st.floats(-0.3, 0.3), st.floats(0.3, 1.0))
def test_heading_hold_corrects_a_slipping_body(start: float, slip: float, wanted: float, share: float) -> None:
    hold, heading, should = HeadingHold(2.0), start, start
    twist = np.array([0.1, 0.0, wanted])
    for _ in range(500):
        told = hold.steer(twist, heading)
        done = share * told
        carried = hold.carried(twist, told, done, DT)
        heading += (done[2] + slip) * DT
        should += carried[2] * DT
    assert carried[2] == pytest.approx(share * wanted, abs=1e-9)
    off = math.remainder(heading - should, math.tau)
    assert abs(off) <= max(abs(slip) / (2.0 * share), 0.0) + 1e-6 or abs(slip) > 0.29 * share


def test_heading_hold_without_heading_or_twist_adds_nothing() -> None:
    hold, twist = HeadingHold(1.0), np.array([0.1, 0.0, 0.2])
    assert (hold.steer(twist, None) == twist).all()
    assert (HeadingHold(0.0).steer(twist, 1.0) == twist).all()
    hold.steer(twist, 0.0)
    assert not hold.steer(np.zeros(3), 1.0).any()
    assert (hold.steer(twist, 1.0) == twist).all()  # begins anew with the present heading


def test_tilted_body_returns_upright_over_its_feet() -> None:
    walker = walker_of("akrobat")
    stepper = Stepper(walker, make_gait("tripod", walker), Steps(upright=1.0))
    roll, pitch = 0.01, -0.008  # so little that no foot has to step
    turn = levelled(np.eye(3), roll, pitch)  # rows: the body's axes, as level ground sees them
    stepper.feet[:] = walker.stance_feet @ turn.T
    for _ in range(400):
        stepper.advance(DT, (0.0, 0.0, 0.0), None, (roll, pitch))
        assert stepper.down.all()
        away = stepper.feet - stepper.feet.mean(axis=0)
        up = np.linalg.svd(away)[2][2]  # of the ground, in the body
        up *= np.sign(up[2])
        roll, pitch = math.atan2(up[1], up[2]), -math.asin(up[0])
    assert abs(roll) < 1e-4
    assert abs(pitch) < 1e-4
    lengths = [np.linalg.norm(feet[:, None] - feet[None], axis=2) for feet in (stepper.feet, walker.stance_feet)]
    np.testing.assert_allclose(*lengths, atol=1e-4)  # and the feet stayed where they were on the ground
