"""The tasks of the environments can be solved by simple policies; rewards are as documented."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from roboyard.bringup import catalog
from roboyard.description import load_world
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids.floor_plan import TopDownMap
from roboyard.gym import ArmReach, FreePlaces, Hexapod, RoverNavigation
from roboyard.scenarios.world.free_space import top_down_map
from roboyard.walking.gait import make_gait
from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig


def steer(observed: dict[str, Any]) -> np.ndarray:
    """Towards the goal where the lidar sees room for it, else the free direction nearest to that; looks 180° ahead."""
    scan, (ahead, left) = observed["scan"], observed["goal"]
    angles = np.linspace(-math.pi / 2, math.pi / 2, len(scan), endpoint=False) + math.pi / 2 / len(scan)
    away, goal_angle = math.hypot(ahead, left), math.atan2(left, ahead)
    beside = np.abs(angles[:, None] - angles[None])
    room = np.where(np.sin(np.minimum(beside, math.pi / 2)) * scan[None] < 0.45, scan[None], 30.0)
    room = np.where(np.cos(beside) > 0.0, room * np.maximum(np.cos(beside), 0.0), 30.0).min(axis=1)
    free = room > min(away, 1.2)
    if abs(goal_angle) > math.pi / 2 or not free.any():
        return np.array([0.0, math.copysign(0.5, goal_angle)])
    direction = angles[free][np.argmin(np.abs(angles[free] - goal_angle))]
    if abs(direction - goal_angle) < angles[1] - angles[0]:
        direction = goal_angle
    clear = room[np.argmin(np.abs(angles - direction))]
    speed = 0.4 * max(0.0, math.cos(1.5 * min(abs(direction), 1.0))) * min(1.0, clear / 1.0)
    return np.array([speed, np.clip(1.2 * direction, -1.0, 1.0)])


def drive(env: RoverNavigation, seed: int, steps: int = 300) -> dict[str, Any]:
    observed, info = env.reset(seed=seed)
    for _ in range(steps):
        observed, _, over, _, info = env.step(steer(observed))
        if over:
            break
    return info


def test_simple_policy_reaches_goals_in_the_arena() -> None:
    env = RoverNavigation()
    ends = [drive(env, seed) for seed in range(4)]
    env.close()
    assert sum(one["success"] for one in ends) >= 3, ends


def test_navigation_reward_is_the_progress() -> None:
    env = RoverNavigation(world="empty", radius=0.3)
    _, info = env.reset(seed=0, options={"start": (0.0, 0.0, 0.0), "goal": (2.0, 0.0)})
    assert info["distance"] == pytest.approx(2.0, abs=1e-3)
    total, steps, over = 0.0, 0, False
    while not over:
        _, reward, over, _, now = env.step([0.5, 0.0])
        total, steps = total + reward, steps + 1
    env.close()
    assert now["success"]
    assert now["distance"] <= 0.3
    assert total == pytest.approx(info["distance"] - now["distance"] - 0.01 * steps + 10.0)


def test_collision_with_a_column_ends_the_episode() -> None:
    env = RoverNavigation(draw=lambda rng: (SE2.identity(), (4.0, 3.0)))
    env.reset(seed=0, options={"start": (0.0, 0.0, math.pi / 2), "goal": (4.0, 3.0)})
    for _ in range(50):
        observed, reward, over, _, info = env.step([1.0, 0.0])
        if over:
            break
    env.close()
    assert (over, info["collided"], info["success"]) == (True, True, False)
    assert reward < -9.0
    assert observed["scan"][18] < 0.5
    with pytest.raises(InputError, match="rover touches column_1 where it begins"):
        env.reset(seed=0, options={"start": (0.0, 2.5, 0.0)})


def test_observed_goal_is_relative_to_odometry() -> None:
    env = RoverNavigation(world="empty")
    env.reset(seed=1, options={"start": (1.0, -2.0, 0.7), "goal": (3.0, 1.0)})
    for _ in range(40):
        observed, _, _, _, info = env.step([0.3, 0.6])
    true = SE2(*info["pose"]).inverse() @ info["goal"]
    env.close()
    off = float(np.linalg.norm(observed["goal"] - true))
    assert 1e-4 < off < 0.5


def test_drawn_places_are_free_and_apart() -> None:
    floor = top_down_map(load_world(catalog.WORLDS.resolve("corridor")))
    draw = FreePlaces(floor, 0.5, (3.0, 8.0))
    x, y = floor.cell_centers
    rows, columns = np.nonzero(floor.low_obstacles | floor.tall_obstacles)
    solid = np.column_stack([x[columns], y[rows]])
    rng = np.random.default_rng(0)
    for _ in range(50):
        start, goal = draw(rng)
        for position in (start.xy, goal):
            assert np.hypot(*(solid - position).T).min() >= 0.5
        assert 3.0 <= math.hypot(*(start.xy - goal)) <= 8.0
    for room, separation, text in ((9.0, (1.0, 2.0), "no free place of 18"), (0.5, (90.0, 91.0), "no two free places")):
        with pytest.raises(InputError, match=text):
            FreePlaces(floor, room, separation)(rng)


def test_drawn_places_are_inside_the_yard() -> None:
    solid = np.zeros((100, 100), bool)
    solid[30:70, 30:70] = True
    solid[33:67, 33:67] = False  # a yard of 1.7 m in a field of 5 m
    solid[45:50, 45:50] = True
    draw, rng = (
        FreePlaces(TopDownMap(solid, np.zeros_like(solid), (0.0, 0.0), 0.05), 0.1, (0.3, 1.0)),
        np.random.default_rng(0),
    )
    for _ in range(50):
        start, goal = draw(rng)
        assert min(*start.xy, *goal) > 1.65
        assert max(*start.xy, *goal) < 3.35
    far = FreePlaces(TopDownMap(solid, np.zeros_like(solid), (0.0, 0.0), 0.05), 0.1, (3.0, 5.0))
    assert min(min(*start.xy, *goal) for start, goal in (far(rng) for _ in range(50))) < 1.4  # the yard is too small


def test_jacobian_policy_reaches_arm_goals() -> None:
    env = ArmReach()
    arrived = 0
    for seed in range(5):
        observed, _ = env.reset(seed=seed)
        chain = env.task.scene.chain
        most = 0.5 * chain.max_velocity
        for _ in range(100):
            J = chain.jacobian(observed["position"])[:3]
            towards = 2.0 * (observed["goal"] - observed["tool"])
            speeds = J.T @ np.linalg.solve(J @ J.T + 1e-3 * np.eye(3), towards)
            observed, _, over, _, info = env.step(speeds / max(1.0, float(np.abs(speeds / most).max())) / most)
            if over:
                break
        arrived += info["success"]
        assert not info["collided"]
    env.close()
    assert arrived >= 4


def walk(env: Hexapod, twist: tuple[float, float, float], steps: int) -> tuple[float, dict[str, Any]]:
    """Mean reward of a tripod gait, open loop, and how it ends."""
    _, info = env.reset(seed=0, options={"twist": twist})
    legs = env.robot.legs
    stepper = GaitGenerator(legs, make_gait("tripod", legs), SteppingConfig(lift=0.015))
    near, total = legs.stance_pose, 0.0
    for _ in range(steps):
        stepper.advance(env.period, np.array(twist), None, (0.0, 0.0))
        near = legs.solve_ik(stepper.feet, near)
        _, reward, over, _, info = env.step((near - legs.stance_pose).ravel() / 0.5)
        total += reward
        assert not over, info
    return total / steps, info


def test_walking_gait_earns_more_than_standing() -> None:
    env = Hexapod()
    worth, info = walk(env, (0.08, 0.0, 0.0), 150)
    assert info["pose"][0] > 0.25
    assert abs(info["pose"][1]) < 0.1
    env.reset(seed=0, options={"twist": (0.08, 0.0, 0.0)})
    idle = [env.step(np.zeros(18))[1] for _ in range(50)]
    env.close()
    assert worth > 2.0 * float(np.mean(idle))


def test_lying_hexapod_has_fallen() -> None:
    env = Hexapod()
    env.reset(seed=0)
    for _ in range(100):
        _, reward, over, _, info = env.step(np.tile([0.0, 1.0, 1.0], 6))
        if over:
            break
    env.close()
    assert over
    assert info["fallen"]
    assert reward == -10.0
