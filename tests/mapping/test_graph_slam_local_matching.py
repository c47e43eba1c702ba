"""What is believed about motion, when odometry is wrong all the time in the same manner, or now and then."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.geometry import SE2
from roboyard.mapping.graph_slam.local_matching import MotionPredictor

SECOND = 10**9


def steps(count: int, seed: int) -> list[SE2]:
    """A drive of steps of up to a metre and half a radian."""
    rng = np.random.default_rng(seed)
    distances, rotations = rng.uniform(0.2, 1.0, count), rng.uniform(-0.5, 0.5, count)
    return [SE2.exp((distance, 0.0, rotation)) for distance, rotation in zip(distances, rotations, strict=True)]


def wrong(step: SE2, distance_gain: float, rotation_gain: float, veer_gain: float) -> SE2:
    """What wheels of another size and distance, and a drift [rad/m], tell of a step."""
    vx, vy, rotation = step.log()
    return SE2.exp((distance_gain * vx, distance_gain * vy, rotation_gain * rotation + veer_gain * vx))


def driven(motion: MotionPredictor, truth: list[SE2], reported: list[SE2], noise: float = 0.0) -> list[float]:
    """Let scans find the truth, but for noise [m, rad]; by how much odometry's belief missed each step."""
    rng = np.random.default_rng(0)
    odometry, missed = SE2(), []
    motion.update(0, odometry, None, False, None)
    for k, (true, lie) in enumerate(zip(truth, reported, strict=True), 1):
        odometry = odometry @ lie
        hypothesis = next(hypothesis for hypothesis in motion.predict(k * SECOND, odometry) if hypothesis.is_odometry)
        missed.append(hypothesis.motion.distance(true) + abs(hypothesis.motion.theta - true.theta))
        found = true @ SE2.exp(rng.normal(0.0, noise, 3))
        motion.update(k * SECOND, odometry, found, True, 1.0)
    return missed


@settings(max_examples=20, deadline=None)
@given(st.floats(0.75, 1.3), st.floats(0.75, 1.3), st.floats(-0.15, 0.15), st.integers(0, 1000))
def test_systematic_odometry_errors_are_corrected(
    distance_gain: float, rotation_gain: float, veer_gain: float, seed: int
) -> None:
    truth = steps(120, seed)
    missed = driven(
        MotionPredictor(), truth, [wrong(step, distance_gain, rotation_gain, veer_gain) for step in truth], noise=0.01
    )
    assert np.mean(missed[-30:]) < 0.06


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_exact_odometry_is_unchanged(seed: int) -> None:
    truth = steps(60, seed)
    assert max(driven(MotionPredictor(), truth, truth)) < 1e-9


def test_single_jump_changes_the_calibration_little() -> None:
    truth = steps(80, 3)
    reported = [step @ SE2(2.0, 0.0, 1.0) if k == 40 else step for k, step in enumerate(truth)]
    missed = driven(MotionPredictor(), truth, reported)
    assert np.mean(missed[-20:]) < 0.05


@pytest.mark.parametrize("is_informative", [False, True])
def test_steps_without_scan_match_change_nothing(is_informative: bool) -> None:
    motion, odometry = MotionPredictor(), SE2()
    motion.update(0, odometry, None, False, None)
    for k in range(1, 20):
        odometry = odometry @ SE2(1.2, 0.0, 0.1)
        motion.update(
            k * SECOND, odometry, SE2(1.0, 0.0, 0.0), is_informative, None
        )  # how far odometry was off cannot be told
    hypothesis = next(b for b in motion.predict(20 * SECOND, odometry @ SE2(1.2, 0.0, 0.1)) if b.is_odometry)
    assert hypothesis.motion.almost_equal(SE2(1.2, 0.0, 0.1), 1e-9)
