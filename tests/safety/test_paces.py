"""Paces of all pairs at once: what `nearness` and `separation` say of each, whatever is passed over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.nearness import BodyCapsules, nearness
from roboyard.safety.paces import Heeded, Seen, least_spare, paces_on
from roboyard.safety.separation import (
    CREEP,
    SeparationRules,
    drift,
    protective_distance,
    separation_pace,
    stopping_time,
)

GROUPS = load_joint_groups("iisy")
CHAIN = GROUPS.chain("arm")
CAPSULES = LinkCapsules.of(GROUPS.model, CHAIN).moving()
BRAKES = 0.8 * CHAIN.max_acceleration
PARTS = 7


class Scene:
    """An arm in some states and people about it, drawn by a number."""

    def __init__(self, seed: int, states: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.q = CHAIN.sample_positions(rng, states)
        self.velocity = rng.normal(size=(states, CHAIN.dof)) * rng.choice([0.0, 0.01, 1.0], (states, 1))
        middles = rng.normal(size=(PARTS, 1, 3)) * rng.uniform(0.3, 3.0)
        ends = middles + rng.normal(0.0, 0.3, (PARTS, 2, 3)) * rng.choice([0.0, 1.0])
        moving = rng.normal(0.0, 1.0, (PARTS, 2, 3)) * rng.choice([0.0, 1.0])
        names = ("anna",) * PARTS
        self.people = BodyCapsules(names, names, ends, rng.uniform(0.02, 0.3, PARTS), moving)
        self.heeded = Heeded(
            rng.random(PARTS) < 0.8, rng.random(PARTS) < rng.choice([0.0, 0.5]), rng.choice([0.0, 0.35], PARTS),
            rng.uniform(0.0, 1.0, (len(CAPSULES.radii), PARTS)),
        )  # fmt: skip
        self.stopping = stopping_time(self.velocity, BRAKES)


RULES = st.builds(
    SeparationRules, person_speed=st.sampled_from([0.0, 0.5, 1.6]), intrusion=st.sampled_from([0.0, 0.3]),
    reaction_time=st.sampled_from([0.0, 0.1]),
)  # fmt: skip


@given(st.integers(0, 10**6), RULES, st.floats(0.0, 0.3), st.floats(0.0, 0.1))
@settings(deadline=None)
def test_least_pace_equals_the_least_of_all_pairs(
    seed: int, rules: SeparationRules, since: float, margin: float
) -> None:
    scene = Scene(seed)
    gap, toward, coming, speed = nearness(CHAIN, CAPSULES, scene.q, scene.velocity, scene.people)
    left = gap - drift(rules, coming, since) - scene.heeded.swing - margin
    paces = separation_pace(rules, left, rules.coming(coming, since), toward, scene.stopping[:, None, None])
    room = np.maximum(scene.heeded.touch - np.maximum(coming, 0.0), 0.0)
    touch = np.divide(room, toward, out=np.ones_like(toward), where=toward > 1e-9)
    paces = np.where(scene.heeded.gentle, np.maximum(paces, np.minimum(touch, 1.0)), paces)
    paces[..., ~scene.heeded.counted] = 1.0
    paces[speed <= CREEP] = 1.0
    found = paces_on(
        CHAIN, CAPSULES, scene.q, scene.velocity, scene.stopping, scene.people, Seen.of(rules, since, margin),
        scene.heeded,
    )  # fmt: skip
    assert found.least == pytest.approx(paces.reshape(len(paces), -1).min(axis=1), abs=1e-12)
    for k, (i, j) in enumerate(found.pair.tolist()):
        if found.least[k] < 1.0:
            assert found.least[k] == pytest.approx(paces[k, i, j], abs=1e-12)
            assert found.gap[k] == pytest.approx(gap[k, i, j], abs=1e-12)


@given(st.integers(0, 10**6), RULES)
@settings(deadline=None)
def test_least_spare_equals_the_least_of_all_pairs(seed: int, rules: SeparationRules) -> None:
    scene = Scene(seed, 1)
    gap, toward, coming, _ = (a[0] for a in nearness(CHAIN, CAPSULES, scene.q, scene.velocity, scene.people))
    stopping = float(scene.stopping[0])
    protective = protective_distance(rules, rules.coming(coming), toward, stopping)
    i, j, between, wanted = least_spare(
        CHAIN, CAPSULES, scene.q[0], scene.velocity[0], stopping, scene.people, Seen.of(rules)
    )
    assert between - wanted == pytest.approx((gap - protective).min(), abs=1e-12)
    assert (between, wanted) == pytest.approx((gap[i, j], protective[i, j]), abs=1e-12)
