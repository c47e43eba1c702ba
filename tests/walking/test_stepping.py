"""Stepping: what holds at any time, at any twist, on any gait, and through every change."""

from __future__ import annotations

import numpy as np
import pytest
from tests.walking.hexapods import walker_of

from roboyard.errors import InputError
from roboyard.walking.gaits import GAITS, make_gait, moved
from roboyard.walking.loads import foot_loads, load_torques
from roboyard.walking.odometry import LeggedOdometry
from roboyard.walking.standing import lying_down, rising
from roboyard.walking.stepping import Stepper, Steps

DT = 0.02
STEPS = Steps(stride=0.08, lift=0.015)


def stepper_of(gait: str, steps: Steps = STEPS) -> Stepper:
    walker = walker_of("akrobat")
    return Stepper(walker, make_gait(gait, walker), steps)


def advance(stepper: Stepper, twist: tuple[float, float, float], count: int) -> float:
    """Walk, and hold every law that there is; gives the least margin."""
    walker, least = stepper.walker, np.inf
    q = walker.reach(stepper.feet)
    for _ in range(count):
        feet, down = stepper.feet.copy(), stepper.down.copy()
        stepper.advance(DT, twist)
        stay = down & stepper.down
        np.testing.assert_allclose(
            stepper.feet[stay][:, :2], moved(feet[stay], stepper.carried, DT)[:, :2], atol=1e-12
        )  # the ground does not move
        assert stepper.down.sum() >= 3
        least = min(least, stepper.margin())
        assert least >= stepper.steps.margin - 5e-3
        before, q = q, walker.reach(stepper.feet, q)  # within reach and limits
        assert np.abs(q - before).max() < 3.0 * DT  # and without jumps
    return least


@pytest.mark.parametrize("gait", GAITS)
@pytest.mark.parametrize("seed", range(3))
def test_gaits_are_stable_at_random_twists(gait: str, seed: int) -> None:
    vx, vy, w = np.random.default_rng(seed).uniform(-0.3, 0.3, 3).tolist()
    advance(stepper_of(gait), (vx, vy, w), 150)


@pytest.mark.parametrize("seed", range(6))
def test_changes_of_gait_and_twist_keep_stability(seed: int) -> None:
    rng, stepper = np.random.default_rng(seed), stepper_of("tripod")
    for gait in rng.choice(tuple(GAITS), 5).tolist():
        stepper.change(make_gait(gait, stepper.walker))
        vx, vy, w = rng.uniform(-0.3, 0.3, 3).tolist()
        advance(stepper, (vx, vy, w), int(rng.integers(20, 90)))


@pytest.mark.parametrize(("gait", "speed"), [("tripod", 0.107), ("ripple", 0.03), ("wave", 0.015)])
def test_stepper_keeps_the_commanded_speed(gait: str, speed: float) -> None:
    stepper = stepper_of(gait)
    advance(stepper, (speed, 0.0, 0.0), 350)
    went = 0.0
    for _ in range(300):
        stepper.advance(DT, (speed, 0.0, 0.0))
        went += stepper.carried[0] * DT
    assert went == pytest.approx(6.0 * speed, rel=0.01)


def test_unreachable_twist_is_scaled_in_its_direction() -> None:
    stepper = stepper_of("tripod")
    done, _ = stepper.executable((1.0, 0.5, 0.0))
    assert done[0] == pytest.approx(2.0 * done[1])
    assert 0.01 < done[0] < 0.2


def test_stepper_stops_with_all_feet_at_home() -> None:
    stepper = stepper_of("ripple")
    advance(stepper, (0.03, 0.0, 0.1), 300)
    advance(stepper, (0.0, 0.0, 0.0), 600)
    assert stepper.standing
    assert np.hypot(*(stepper.feet - stepper.walker.stance_feet)[:, :2].T).max() < 2e-3


def test_foot_over_a_hole_searches_for_ground() -> None:
    stepper = stepper_of("tripod", Steps(stride=0.08, lift=0.04, depth=0.05))
    felt = np.zeros(6, bool)
    lowest = 0.0
    for _ in range(400):
        stepper.advance(DT, (0.03, 0.0, 0.0), felt)
        felt = stepper.down.copy()
        lf = 0
        if not stepper.down[lf]:
            felt[lf] = stepper.feet[lf, 2] < stepper.walker.stance_feet[lf, 2] - 0.03  # a hole under this foot
        lowest = min(lowest, float(stepper.feet[lf, 2] - stepper.walker.stance_feet[lf, 2]))
        others = ~stepper.down
        others[lf] = False
        felt |= others & (stepper.feet[:, 2] <= stepper.walker.stance_feet[:, 2] + 1e-6)
    assert lowest < -0.025


def test_restored_stepper_continues_equally() -> None:
    one, other = stepper_of("ripple"), stepper_of("ripple")
    advance(one, (0.02, 0.01, 0.05), 77)
    other.load_state(one.save_state())
    for _ in range(100):
        one.advance(DT, (0.02, 0.0, 0.0))
        other.advance(DT, (0.02, 0.0, 0.0))
    assert (one.feet == other.feet).all()


def test_legged_odometry_without_slip_is_exact() -> None:
    rng = np.random.default_rng(1)
    feet, odometry = walker_of("akrobat").stance_feet, LeggedOdometry()
    pose = np.eye(3)
    for _ in range(50):
        odometry.update(DT, feet, np.ones(6, bool))
        twist = rng.uniform(-0.2, 0.2, 3)
        feet = moved(feet, twist, DT)
        c, s = np.cos(twist[2] * DT), np.sin(twist[2] * DT)
        away = moved(np.zeros((1, 3)), twist, -DT)[0]
        pose = pose @ np.array([[c, -s, away[0]], [s, c, away[1]], [0, 0, 1]])
    odometry.update(DT, feet, np.ones(6, bool))
    np.testing.assert_allclose([odometry.x, odometry.y], pose[:2, 2], atol=1e-9)
    assert odometry.yaw == pytest.approx(np.arctan2(pose[1, 0], pose[0, 0]), abs=1e-9)


def test_foot_loads_and_torques_balance_the_weight() -> None:
    walker = walker_of("akrobat")
    loads = foot_loads(walker.stance_feet, 40.0, [1, 0, 0, 1, 1, 0])
    assert loads.sum() == pytest.approx(40.0)
    np.testing.assert_allclose(loads @ walker.stance_feet[:, :2], 0.0, atol=1e-9)
    torque = load_torques(walker, walker.stance, loads)
    step = np.random.default_rng(2).uniform(-1e-5, 1e-5, (6, 3))
    rise = walker.feet(walker.stance + step)[:, 2] - walker.stance_feet[:, 2]
    assert (torque * step).sum() == pytest.approx(-(loads * rise).sum(), rel=1e-3)  # virtual work


def test_rising_and_lying_down_keep_limits_and_speeds() -> None:
    walker = walker_of("akrobat")
    up = rising(walker, walker.rest, ground=-0.016)
    np.testing.assert_allclose(up[-1], walker.stance, atol=1e-12)
    down = lying_down(walker, up[-1], ground=-0.016)
    np.testing.assert_allclose(down[-1], walker.rest, atol=1e-12)
    for way in (up, down):
        assert (np.abs(np.diff(way, axis=0)) / 0.02 <= walker.speeds + 1e-9).all()
        assert ((way >= walker.lower - 1e-9) & (way <= walker.upper + 1e-9)).all()
    with pytest.raises(InputError, match="ground"):
        rising(walker, walker.rest, ground=-0.5)
