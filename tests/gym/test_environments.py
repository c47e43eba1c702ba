"""Laws of every environment: Gymnasium's contract, equal episodes for equal seeds, bounds, clear errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import roboyard.gym
from roboyard.errors import ConfigError, InputError, RunError, UnknownNameError
from roboyard.geometry import SE2

Env = gymnasium.Env[Any, Any]


def about_the_square(rng: np.random.Generator) -> tuple[SE2, tuple[float, float]]:
    """In the middle of the arena, without a look at where it is free."""
    return SE2(0.0, 0.0, rng.uniform(-3.0, 3.0)), (rng.uniform(-1.0, 1.0), 1.0)


NAMED: dict[str, dict[str, Any]] = {
    "roboyard/RoverNavigation-v0": {"draw": about_the_square}, "roboyard/Hexapod-v0": {}, "roboyard/ArmReach-v0": {}
}  # fmt: skip


@pytest.fixture(scope="module", params=NAMED)
def env(request: pytest.FixtureRequest) -> Iterator[Env]:
    env = gymnasium.make(request.param, **NAMED[request.param])
    yield env
    env.close()


def actions(env: Env, count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (count, *env.action_space.shape)).astype(np.float32)


def episode(env: Env, seed: int | None, commands: np.ndarray) -> list[Any]:
    """Everything that an episode gives, as bytes."""
    observed: list[Any] = [env.reset(seed=seed)[0]]
    observed += [env.step(action)[:4] for action in commands]
    return [plain(one) for one in observed]


def plain(one: Any) -> Any:
    if isinstance(one, dict):
        return {name: (value.dtype.str, value.shape, value.tobytes()) for name, value in one.items()}
    return tuple(map(plain, one)) if isinstance(one, tuple) else one


@pytest.mark.parametrize("name", NAMED)
def test_environments_pass_the_gymnasium_checker(name: str) -> None:
    """Its warnings are errors here."""
    check_env(gymnasium.make(name, width=64, height=48, **NAMED[name]).unwrapped)


def test_same_seed_and_actions_give_the_same_episode(env: Env) -> None:
    commands = actions(env, 6)
    first = episode(env, 3, commands)
    fresh = gymnasium.make(env.spec)
    assert episode(fresh, 3, commands) == first
    second = episode(env, None, commands)  # begun in mid-episode, goes on drawing from the seed
    assert second == episode(fresh, None, commands)
    assert second != first
    assert episode(env, 4, commands) != first
    assert episode(env, 3, commands) == first  # nothing of the episodes between is left
    fresh.close()


@settings(max_examples=12)
@given(data=st.data())
def test_observations_are_in_their_space_for_any_action(env: Env, data: st.DataObject) -> None:
    number = st.one_of(st.floats(-1.0, 1.0), st.sampled_from([-1.0, 1.0, 1e30, -1e30, 0.0]))
    shape = env.action_space.shape or ()
    observation, _ = env.reset(seed=data.draw(st.integers(0, 2**31)))
    assert env.observation_space.contains(observation)
    commands = data.draw(st.lists(number, min_size=shape[0], max_size=shape[0]))
    for _ in range(data.draw(st.integers(1, 8))):
        observation, reward, terminated, truncated, info = env.unwrapped.step(commands)
        assert env.observation_space.contains(observation)
        assert np.isfinite(reward)
        assert not truncated
        if terminated:
            break
    assert all(np.isfinite(value).all() for value in info.values())


def test_actions_beyond_the_bounds_are_clipped(env: Env) -> None:
    beyond = np.sign(actions(env, 3)) * 7.0
    assert episode(env.unwrapped, 1, beyond) == episode(env.unwrapped, 1, np.sign(beyond))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_action_is_refused_by_name(env: Env, bad: float) -> None:
    env.reset(seed=0)
    commands = np.zeros(env.action_space.shape)
    commands[-1] = bad
    name = env.unwrapped.command.names(env.unwrapped.robot)[-1]
    with pytest.raises(InputError, match=f"for {name} is not finite.*between -1 and 1"):
        env.unwrapped.step(commands)
    for wrong in (commands[:-1], "left", 0.0, None):
        with pytest.raises(InputError, match="action"):
            env.unwrapped.step(wrong)
    env.unwrapped.step(np.zeros(env.action_space.shape))  # and it goes on


def test_time_limit_truncates_an_episode() -> None:
    env = gymnasium.make("roboyard.gym:roboyard/Hexapod-v0", max_episode_steps=3)
    env.reset(seed=0)
    ends = [env.step(np.zeros(18))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    env.close()


def test_rendered_image_shows_the_robot() -> None:
    env = gymnasium.make("roboyard/RoverNavigation-v0", world="empty", render_mode="rgb_array", width=80, height=60)
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (60, 80, 3)
    assert first.dtype == np.uint8
    assert first.std() > 10.0
    for _ in range(10):
        env.step(np.array([0.0, 1.0]))
    assert np.abs(env.render().astype(float) - first).mean() > 1.0
    env.close()
    blind = roboyard.gym.RoverNavigation(world="empty")
    with pytest.warns(UserWarning, match="rgb_array"):
        assert blind.render() is None


def test_calls_before_reset_and_after_close_are_refused() -> None:
    env = roboyard.gym.RoverNavigation(world="empty", render_mode="rgb_array")
    for call in (lambda: env.step([0.0, 0.0]), env.render, lambda: env.run):
        with pytest.raises(RunError, match="no episode has begun"):
            call()
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(RunError, match="reset"):
        env.step([0.0, 0.0])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"robot": "unicorn"}, UnknownNameError, "no robot 'unicorn'"),
        ({"world": "atlantis"}, UnknownNameError, "no world 'atlantis'"),
        ({"robot": "akrobat"}, ConfigError, "nobody says how fast it drives"),
        ({"robot": "akrobat", "command": roboyard.gym.Twist(speed=0.1, turn_rate=0.2)}, ConfigError, "no planar lidar"),
        ({"command": roboyard.gym.Twist(speed=-1.0)}, ConfigError, "-1.0 m/s, 2.0 rad/s"),
        ({"senses": {"scan": roboyard.gym.Scan(beams=0)}}, ConfigError, "0 beams.*1 to 720"),
        ({"nodes": ("joint_states", "wings")}, UnknownNameError, "no node 'wings'"),
        ({"render_mode": "human"}, ConfigError, "rgb_array"),
        ({"view": "mole"}, ConfigError, "view 'mole'"),
        ({"period": 0.0}, ConfigError, "period of 0.0 s"),
        ({"radius": -1.0}, InputError, "radius -1.0 m"),
        ({"senses": {"goal": roboyard.gym.Motion()}}, ConfigError, "two entries called goal"),
        ({"senses": {"j": roboyard.gym.Joints(joints=("knee",))}}, ConfigError, "no joint 'knee'"),
        ({"senses": {"t": roboyard.gym.Touch(("beak",))}}, ConfigError, "no contact sensor tells 'beak'.*bumper"),
    ],
)
def test_invalid_environments_are_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        roboyard.gym.RoverNavigation(**options)


def test_reset_options_beyond_the_command_are_refused() -> None:
    env = roboyard.gym.Hexapod()
    with pytest.raises(InputError, match="option twist.*at most"):
        env.reset(seed=0, options={"twist": (3.0, 0.0, 0.0)})
    with pytest.raises(InputError, match="option joints.*touching nothing"):
        roboyard.gym.ArmReach().reset(seed=0, options={"joints": (0.0, 1.5, 0.0, 0.0, 0.0, 0.0)})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"weather": "rain"}, "no option 'weather'.*start, goal"),
        ({"goal": (1.0,)}, "option goal.*2 finite numbers"),
        ({"start": "here"}, "option start.*3 finite numbers"),
        ({"goal": (np.nan, 0.0)}, "option goal"),
    ],
)
def test_invalid_reset_options_are_refused(options: dict[str, Any], text: str) -> None:
    env = roboyard.gym.RoverNavigation(world="empty")
    with pytest.raises(InputError, match=text):
        env.reset(seed=0, options=options)
    env.close()


def test_silent_sensor_is_named() -> None:
    env = roboyard.gym.RoverNavigation(world="empty", nodes=("joint_states", "arbiter", "drive"))
    with pytest.raises(RunError, match="nobody tells odom"):
        env.reset(seed=0)
