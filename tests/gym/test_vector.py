"""Several environments in one process or in several equal single ones."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest

import roboyard.gym  # noqa: F401 - registers the environments
from roboyard.errors import InputError

NAME, SEED = "roboyard/RoverNavigation-v0", 5


def alone(seed: int, commands: np.ndarray) -> list[tuple[dict[str, np.ndarray], float]]:
    env = gymnasium.make(NAME, world="empty")
    observed = [(env.reset(seed=seed)[0], 0.0)]
    observed += [env.step(action)[:2] for action in commands]
    env.close()
    return observed


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of newer Pythons, for whoever has threads
@pytest.mark.parametrize(
    ("mode", "kwargs"),
    [
        ("sync", {}),
        pytest.param("async", {"context": "fork"}, marks=pytest.mark.slow),
        pytest.param("async", {"context": "spawn"}, marks=pytest.mark.slow),
    ],
)
def test_vectors_equal_single_environments(mode: str, kwargs: dict[str, Any]) -> None:
    commands = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 2, 2)).astype(np.float32)
    vector = gymnasium.make_vec(NAME, 2, vectorization_mode=mode, vector_kwargs=kwargs, world="empty")
    try:
        observed = [(vector.reset(seed=SEED)[0], np.zeros(2))]
        observed += [vector.step(action)[:2] for action in commands]
    finally:
        vector.close()
    for k in range(2):  # a vector's environments have seeds that follow each other
        for (observation, reward), (own, worth) in zip(observed, alone(SEED + k, commands[:, k]), strict=True):
            assert reward[k] == worth
            assert {name: value[k].tobytes() for name, value in observation.items()} == {
                name: value.tobytes() for name, value in own.items()
            }


def test_worker_errors_keep_their_text() -> None:
    error = InputError("an action", where="step(action)", valid="numbers")
    wrapped = type(error)(pickle.loads(pickle.dumps(error)))  # as AsyncVectorEnv raises it
    assert str(wrapped) == str(error) == "step(action): an action (numbers)"
