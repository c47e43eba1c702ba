"""Speed scalings of all pairs in one kernel agree with the formulas of each pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.safety.collaborative.capsule_distance import compute_capsule_distances
from roboyard.safety.collaborative.capsules import LinkCapsules, PersonCapsules
from roboyard.safety.collaborative.separation import (
    MIN_MONITORED_SPEED,
    PartSelection,
    PersonMotionModel,
    SeparationParameters,
    compute_speed_scalings,
    find_critical_pair,
    max_speed_scaling,
    person_travel,
    protective_distance,
    stopping_time,
)

GROUPS = load_joint_groups("iisy")
CHAIN = GROUPS.chain("arm")
CAPSULES = LinkCapsules.from_model(GROUPS.model, CHAIN).without_fixed()
BRAKES = 0.8 * CHAIN.max_acceleration
PARTS = 7


class Scene:
    """An arm in some states and people around it, drawn from a seed."""

    def __init__(self, seed: int, states: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.q = CHAIN.sample_positions(rng, states)
        self.velocity = rng.normal(size=(states, CHAIN.dof)) * rng.choice([0.0, 0.01, 1.0], (states, 1))
        centers = rng.normal(size=(PARTS, 1, 3)) * rng.uniform(0.3, 3.0)
        ends = centers + rng.normal(0.0, 0.3, (PARTS, 2, 3)) * rng.choice([0.0, 1.0])
        moving = rng.normal(0.0, 1.0, (PARTS, 2, 3)) * rng.choice([0.0, 1.0])
        names = ("anna",) * PARTS
        self.people = PersonCapsules(names, names, ends, rng.uniform(0.02, 0.3, PARTS), moving)
        self.selection = PartSelection(
            rng.random(PARTS) < 0.8, rng.random(PARTS) < rng.choice([0.0, 0.5]), rng.choice([0.0, 0.35], PARTS),
            rng.uniform(0.0, 1.0, (len(CAPSULES.radii), PARTS)),
        )  # fmt: skip
        self.stop_times = stopping_time(self.velocity, BRAKES)


PARAMETERS = st.builds(
    SeparationParameters, person_speed=st.sampled_from([0.0, 0.5, 1.6]), intrusion_distance=st.sampled_from([0.0, 0.3]),
    reaction_time=st.sampled_from([0.0, 0.1]),
)  # fmt: skip


@given(st.integers(0, 10**6), PARAMETERS, st.floats(0.0, 0.3), st.floats(0.0, 0.1))
@settings(deadline=None)
def test_speed_scaling_is_the_minimum_of_all_pairs(
    seed: int, parameters: SeparationParameters, observation_age: float, margin: float
) -> None:
    scene = Scene(seed)
    distance, robot_speed, person_speed, speed = compute_capsule_distances(
        CHAIN, CAPSULES, scene.q, scene.velocity, scene.people
    )
    available_distance = (
        distance - person_travel(parameters, person_speed, observation_age) - scene.selection.swing_margin - margin
    )
    scalings = max_speed_scaling(
        parameters,
        available_distance,
        parameters.person_approach_speed(person_speed, observation_age),
        robot_speed,
        scene.stop_times[:, None, None],
    )
    remaining_speed = np.maximum(scene.selection.max_contact_speed - np.maximum(person_speed, 0.0), 0.0)
    contact_scaling = np.divide(remaining_speed, robot_speed, out=np.ones_like(robot_speed), where=robot_speed > 1e-9)
    scalings = np.where(
        scene.selection.allows_contact, np.maximum(scalings, np.minimum(contact_scaling, 1.0)), scalings
    )
    scalings[..., ~scene.selection.is_counted] = 1.0
    scalings[speed <= MIN_MONITORED_SPEED] = 1.0
    found = compute_speed_scalings(
        CHAIN,
        CAPSULES,
        scene.q,
        scene.velocity,
        scene.stop_times,
        scene.people,
        PersonMotionModel.from_parameters(parameters, observation_age, margin),
        scene.selection,
    )
    assert found.scaling == pytest.approx(scalings.reshape(len(scalings), -1).min(axis=1), abs=1e-12)
    for k, (i, j) in enumerate(found.pair.tolist()):
        if found.scaling[k] < 1.0:
            assert found.scaling[k] == pytest.approx(scalings[k, i, j], abs=1e-12)
            assert found.distance[k] == pytest.approx(distance[k, i, j], abs=1e-12)


@given(st.integers(0, 10**6), PARAMETERS)
@settings(deadline=None)
def test_critical_pair_has_the_smallest_margin(seed: int, parameters: SeparationParameters) -> None:
    scene = Scene(seed, 1)
    distance, robot_speed, person_speed, _ = (
        a[0] for a in compute_capsule_distances(CHAIN, CAPSULES, scene.q, scene.velocity, scene.people)
    )
    stop_time = float(scene.stop_times[0])
    protective = protective_distance(parameters, parameters.person_approach_speed(person_speed), robot_speed, stop_time)
    i, j, pair_distance, pair_protective_distance = find_critical_pair(
        CHAIN,
        CAPSULES,
        scene.q[0],
        scene.velocity[0],
        stop_time,
        scene.people,
        PersonMotionModel.from_parameters(parameters),
    )
    assert pair_distance - pair_protective_distance == pytest.approx((distance - protective).min(), abs=1e-12)
    assert (pair_distance, pair_protective_distance) == pytest.approx((distance[i, j], protective[i, j]), abs=1e-12)
