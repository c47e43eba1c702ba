"""Several environments in one process or in several equal single ones."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

import roboyard.gym  # noqa: F401 - registers the environments
from roboyard.errors import InputError

NAME, SEED = "roboyard/RoverNavigation-v0", 5


def actions() -> np.ndarray:
    """Of five steps of two environments."""
    return np.random.default_rng(0).uniform(-1.0, 1.0, (5, 2, 2)).astype(np.float32)


@cache
def alone(k: int) -> list[tuple[dict[str, np.ndarray], float]]:
    """What the k-th environment of the vector observes by itself."""
    env = gymnasium.make(NAME, world="empty")
    observed = [(env.reset(seed=SEED + k)[0], 0.0)]
    observed += [env.step(action)[:2] for action in actions()[:, k]]
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
    vector = gymnasium.make_vec(NAME, 2, vectorization_mode=mode, vector_kwargs=kwargs, world="empty")
    try:
        observed = [(vector.reset(seed=SEED)[0], np.zeros(2))]
        observed += [vector.step(action)[:2] for action in actions()]
    finally:
        vector.close()
    for k in range(2):  # a vector's environments have seeds that follow each other
        for (observation, reward), (own, worth) in zip(observed, alone(k), strict=True):
            assert reward[k] == worth
            assert {name: value[k].tobytes() for name, value in observation.items()} == {
                name: value.tobytes() for name, value in own.items()
            }


def test_worker_errors_keep_their_text() -> None:
    error = InputError("an action", location="step(action)", valid="numbers")
    wrapped = type(error)(pickle.loads(pickle.dumps(error)))  # as AsyncVectorEnv raises it
    assert str(wrapped) == str(error) == "step(action): an action (numbers)"
