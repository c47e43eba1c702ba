"""The gait generator keeps stance feet on the ground, the body stable and the joints within their speeds, always."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.walking.hexapods import legged_robot_named

from roboyard.walking.gait import GAITS, make_gait, move_feet_with_ground
from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig
from roboyard.walking.leg_odometry import remove_tilt

DT = 0.02
STEPS = SteppingConfig(stride=0.08, lift=0.015)


def make_generator(gait: str, config: SteppingConfig = STEPS) -> GaitGenerator:
    legged_robot = legged_robot_named("akrobat")
    return GaitGenerator(legged_robot, make_gait(gait, legged_robot), config)


def advance(generator: GaitGenerator, twist: tuple[float, float, float], count: int) -> float:
    """Walk, check ground, stability and joints in each step, and return the smallest margin."""
    legged_robot, min_margin = generator.legged_robot, np.inf
    q = legged_robot.solve_ik(generator.feet)
    for _ in range(count):
        feet, in_stance = generator.feet.copy(), generator.in_stance.copy()
        generator.advance(DT, twist)
        stays_in_stance = in_stance & generator.in_stance
        np.testing.assert_allclose(
            generator.feet[stays_in_stance][:, :2],
            move_feet_with_ground(feet[stays_in_stance], generator.achieved_twist, DT)[:, :2],
            atol=1e-12,
        )  # the ground does not move
        assert generator.in_stance.sum() >= 3
        min_margin = min(min_margin, generator.stability_margin())
        assert min_margin >= generator.config.min_stability_margin - 5e-3
        before, q = q, legged_robot.solve_ik(generator.feet, q)  # within reach and limits
        assert np.abs(q - before).max() < 3.0 * DT  # and without jumps
    return min_margin


@pytest.mark.parametrize("gait", GAITS.names())
@pytest.mark.parametrize("seed", range(3))
def test_gaits_are_stable_at_random_twists(gait: str, seed: int) -> None:
    vx, vy, w = np.random.default_rng(seed).uniform(-0.3, 0.3, 3).tolist()
    advance(make_generator(gait), (vx, vy, w), 150)


@pytest.mark.parametrize("seed", range(6))
def test_changes_of_gait_and_twist_keep_stability(seed: int) -> None:
    rng, generator = np.random.default_rng(seed), make_generator("tripod")
    for gait in rng.choice(GAITS.names(), 5).tolist():
        generator.reconfigure(make_gait(gait, generator.legged_robot))
        vx, vy, w = rng.uniform(-0.3, 0.3, 3).tolist()
        advance(generator, (vx, vy, w), int(rng.integers(20, 90)))


@pytest.mark.parametrize(("gait", "speed"), [("tripod", 0.107), ("ripple", 0.03), ("wave", 0.015)])
def test_gait_generator_keeps_the_commanded_speed(gait: str, speed: float) -> None:
    generator = make_generator(gait)
    advance(generator, (speed, 0.0, 0.0), 350)
    distance = 0.0
    for _ in range(300):
        generator.advance(DT, (speed, 0.0, 0.0))
        distance += generator.achieved_twist[0] * DT
    assert distance == pytest.approx(6.0 * speed, rel=0.01)


def test_unreachable_twist_is_scaled_in_its_direction() -> None:
    generator = make_generator("tripod")
    feasible_twist, _ = generator.feasible_twist((1.0, 0.5, 0.0))
    assert feasible_twist[0] == pytest.approx(2.0 * feasible_twist[1])
    assert 0.01 < feasible_twist[0] < 0.2


def test_gait_generator_stops_with_all_feet_in_the_stance() -> None:
    generator = make_generator("ripple")
    advance(generator, (0.03, 0.0, 0.1), 300)
    advance(generator, (0.0, 0.0, 0.0), 600)
    assert generator.is_standing
    assert np.hypot(*(generator.feet - generator.legged_robot.stance_feet)[:, :2].T).max() < 2e-3


def test_foot_over_a_hole_searches_for_ground() -> None:
    generator = make_generator("tripod", SteppingConfig(stride=0.08, lift=0.04, ground_search_depth=0.05))
    contacts = np.zeros(6, bool)
    min_height = 0.0
    for _ in range(400):
        generator.advance(DT, (0.03, 0.0, 0.0), contacts)
        contacts = generator.in_stance.copy()
        lf = 0
        if not generator.in_stance[lf]:
            contacts[lf] = (
                generator.feet[lf, 2] < generator.legged_robot.stance_feet[lf, 2] - 0.03
            )  # a hole under this foot
        min_height = min(min_height, float(generator.feet[lf, 2] - generator.legged_robot.stance_feet[lf, 2]))
        others = ~generator.in_stance
        others[lf] = False
        contacts |= others & (generator.feet[:, 2] <= generator.legged_robot.stance_feet[:, 2] + 1e-6)
    assert min_height < -0.025


def test_restored_gait_generator_continues_equally() -> None:
    one, other = make_generator("ripple"), make_generator("ripple")
    advance(one, (0.02, 0.01, 0.05), 77)
    other.load_state(one.save_state())
    for _ in range(100):
        one.advance(DT, (0.02, 0.0, 0.0))
        other.advance(DT, (0.02, 0.0, 0.0))
    assert (one.feet == other.feet).all()


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
