"""Docking: from any start in a region, with noise and lag, to within tolerances, with bounded commands and in bounded
time."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.docking import (
    Docking,
    DockingConfig,
    DockingPhase,
    GracefulControlLaw,
    curvature,
    egocentric_polar,
    staging_pose,
)

PERIOD = 0.05
LIMITS = MotionLimits(
    max_forward_speed=0.5,
    max_backward_speed=0.2,
    max_angular_speed=1.0,
    max_acceleration=1.0,
    max_angular_acceleration=3.0,
)


class Base:
    """A base that follows commands with a lag and rotates less than commanded."""

    def __init__(self, pose: SE2, lag: float = 0.3, slip: float = 0.9) -> None:
        self.pose, self.lag, self.slip = pose, lag, slip
        self.v = self.w = 0.0

    def drive(self, twist: PlanarTwist) -> None:
        self.v += (1.0 - self.lag) * (twist.vx - self.v)
        self.w += (1.0 - self.lag) * (self.slip * twist.wz - self.w)
        self.pose = self.pose @ SE2.exp([self.v * PERIOD, 0.0, self.w * PERIOD])


def run(docking: Docking, base: Base, noise: float = 0.0, seed: int = 0) -> list[tuple[DockingPhase, SE2, PlanarTwist]]:
    """Dock until it is finished; returns phases, poses before the commands, and commands."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(5000):
        measured_pose = SE2(*(np.array([base.pose.x, base.pose.y, base.pose.theta]) + noise * rng.normal(size=3)))
        pose, twist = base.pose, docking.compute_command(measured_pose)
        rows.append((docking.phase, pose, twist))
        if docking.is_finished:
            return rows
        base.drive(twist)
    raise AssertionError("never over")


poses = st.builds(SE2, st.floats(-5.0, 5.0), st.floats(-5.0, 5.0), st.floats(-3.1, 3.1))


@settings(max_examples=60, deadline=None)
@given(poses, st.floats(-1.5, 0.0), st.floats(-0.6, 0.6), st.floats(-3.1, 3.1), st.booleans(), st.integers(0, 2**31))
def test_docking_succeeds_from_any_pose_before_the_dock(dock, along, across, heading, backward, seed):
    config = DockingConfig(backward=backward)
    start = dock @ SE2(-along if backward else along, across, heading)
    docking, base = Docking(dock, LIMITS, config, PERIOD), Base(start)
    rows = run(docking, base, noise=0.003, seed=seed)
    assert docking.phase is DockingPhase.DOCKED, docking.cause
    for error in docking.errors(base.pose)[:2]:
        assert abs(error) <= config.tolerance + 0.01
    assert abs(docking.errors(base.pose)[2]) <= config.heading_tolerance + 0.01
    last = PlanarTwist()
    for _, _, twist in rows[:-1]:
        assert -min(LIMITS.max_backward_speed, config.max_speed) - 1e-9 <= twist.vx <= config.max_speed + 1e-9
        assert abs(twist.wz) <= config.max_angular_speed + 1e-9
        assert twist.vy == 0.0
        assert abs(twist.vx - last.vx) <= LIMITS.max_acceleration * PERIOD + 1e-9
        assert abs(twist.wz - last.wz) <= LIMITS.max_angular_acceleration * PERIOD + 1e-9
        last = twist
    assert rows[-1][2] == PlanarTwist()


@settings(max_examples=40, deadline=None)
@given(st.floats(-0.3, 0.3), st.floats(-0.4, 0.4), st.booleans())
def test_docking_from_staging_pose_approaches_monotonically(across, heading, backward):
    config, dock = DockingConfig(backward=backward), SE2(1.0, -2.0, 2.5)
    docking = Docking(dock, LIMITS, config, PERIOD)
    start = staging_pose(dock, config) @ SE2(0.0, across, heading)
    rows = run(docking, Base(start, lag=0.0, slip=1.0))
    assert docking.phase is DockingPhase.DOCKED
    assert docking.retries == 0
    errors = np.array([docking.errors(pose) for phase, pose, _ in rows if phase is DockingPhase.APPROACHING])
    assert (np.diff(errors[:, 0]) <= 1e-9).all()
    end = errors[errors[:, 0] < 0.3 * config.staging_distance]
    # beside the line and off its direction by less and less, but for what a period's step is
    assert (np.diff(np.abs(end[:, 1])) <= 1e-3).all()
    assert np.abs(end[:, 1]).max() < 0.02 + 0.1 * abs(across)
    assert np.abs(errors[-1, 1:]).max() < 0.03
    direction = -1.0 if backward else 1.0
    assert all(twist.vx * direction >= 0.0 for phase, _, twist in rows if phase is DockingPhase.APPROACHING)


@given(st.floats(0.1, 5.0), st.floats(-3.0, 3.0), st.floats(-1.5, 1.5))
def test_docking_control_law_equals_the_paper_and_is_symmetric(r, theta, delta):
    pose = SE2(0.0, 0.0, delta)
    target = SE2(r, 0.0, theta)
    assert egocentric_polar(pose, target) == pytest.approx((r, theta, delta))
    assert curvature(r, -theta, -delta, 1.0, 3.0) == pytest.approx(-curvature(r, theta, delta, 1.0, 3.0))
    straight = curvature(r, 0.0, 0.0, 1.0, 3.0)
    assert straight == 0.0
    # in the paper, V = (r² + θ²) / 2 falls along r' = -v cos δ, θ' = v sin δ / r on the manifold δ = atan(-k1 θ)
    manifold = math.atan(-theta)
    assert -r * math.cos(manifold) + theta * math.sin(manifold) / r < 0.0


class PointingLaw:
    """Steers straight at the target, whatever its heading: a control law of a user's own."""

    def __init__(self, gain: float) -> None:
        self.gain = gain
        self.n_calls = 0

    def heading_error(self, pose: SE2, target: SE2) -> float:
        return egocentric_polar(pose, target)[2]

    def curvature(self, pose: SE2, target: SE2) -> float:
        self.n_calls += 1
        return -self.gain * self.heading_error(pose, target)


@pytest.mark.parametrize("backward", [False, True])
def test_docking_with_a_control_law_of_its_own(backward):
    config, dock = DockingConfig(backward=backward), SE2(1.0, 0.5, 0.3)
    law = PointingLaw(gain=8.0)
    docking = Docking(dock, LIMITS, config, PERIOD, control_law=law)
    base = Base(staging_pose(dock, config) @ SE2(0.0, 0.01, 0.05), lag=0.0, slip=1.0)
    rows = run(docking, base)
    assert docking.phase is DockingPhase.DOCKED
    assert law.n_calls > 10
    graceful = Docking(dock, LIMITS, config, PERIOD)
    other_rows = run(graceful, Base(rows[0][1], lag=0.0, slip=1.0))
    assert [twist for _, _, twist in rows] != [twist for _, _, twist in other_rows]


@given(st.floats(0.1, 5.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_default_control_law_has_the_gains_of_the_configuration(r, theta, delta):
    pose, target = SE2(0.0, 0.0, delta), SE2(r, 0.0, theta)
    law = GracefulControlLaw(2.0, 4.0)
    assert law.curvature(pose, target) == curvature(*egocentric_polar(pose, target), 2.0, 4.0)


def test_blocked_docking_retries_and_then_fails():
    config = DockingConfig(max_retries=2)
    dock = SE2(2.0, 0.0, 0.0)
    docking, base = Docking(dock, LIMITS, config, PERIOD), Base(SE2(1.2, 0.1, 0.3))
    # something stands before the dock
    phases = []
    for _ in range(5000):
        twist = docking.compute_command(base.pose)
        phases.append(docking.phase)
        if docking.is_finished:
            break
        blocked = base.pose.x > 1.7 and twist.vx > 0.0
        base.drive(PlanarTwist(0.0, 0.0, twist.wz) if blocked else twist)
        if blocked:
            base.v = 0.0
    started_phases = [b for a, b in pairwise(phases) if a != b]
    assert started_phases.count(DockingPhase.BACKING_OFF) == 2
    assert docking.phase is DockingPhase.FAILED
    assert docking.cause == "no progress towards the dock"
    assert docking.retries == 2


def test_docking_ends_without_progress_and_at_its_time_limit():
    stuck = Docking(SE2(), LIMITS, DockingConfig(), PERIOD)
    for _ in range(1000):
        stuck.compute_command(SE2(-0.4, 0.0, 0.0))
    assert (stuck.phase, stuck.cause) == (DockingPhase.FAILED, "no progress while backing off")
    short = Docking(SE2(), LIMITS, DockingConfig(max_cycles=10), PERIOD)
    run(short, Base(SE2(-0.7, 0.0, 0.0)))
    assert (short.phase, short.cause) == (DockingPhase.FAILED, "the time limit is exceeded")
    turning = Docking(SE2(), LIMITS, DockingConfig(max_cycles=100), PERIOD)
    for _ in range(101):
        turning.compute_command(SE2(-0.7, 0.0, 2.0))
    assert turning.phase is DockingPhase.FAILED


@pytest.mark.parametrize("backward", [False, True])
def test_undocking_leads_straight_to_the_staging_pose(backward):
    config, dock = DockingConfig(backward=backward), SE2(1.0, 1.0, -1.0)
    docking, base = Docking(dock, LIMITS, config, PERIOD, is_undocking=True), Base(dock @ SE2(0.0, 0.01, 0.02))
    run(docking, base)
    assert docking.phase is DockingPhase.UNDOCKED
    assert base.pose.distance(docking.staging_pose) < 0.06


def test_saved_docking_continues_unchanged():
    ends = []
    for cut in (None, 40):
        docking, base = Docking(SE2(), LIMITS, None, PERIOD), Base(SE2(-1.0, 0.3, 0.0))
        for _ in range(cut or 0):
            base.drive(docking.compute_command(base.pose))
        other = Docking(SE2(5.0, 5.0, 5.0), LIMITS, None, PERIOD)
        other.load_state(docking.save_state())
        run(other, base)
        ends.append(base.pose)
    assert ends[0] == ends[1]


def test_invalid_docking_settings_are_refused():
    for bad in (
        {"staging_distance": 0.0},
        {"tolerance": math.nan},
        {"rotate_in_place_threshold": 2.0},
        {"max_retries": -1},
        {"max_speed": -1.0},
    ):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            DockingConfig(**bad)
