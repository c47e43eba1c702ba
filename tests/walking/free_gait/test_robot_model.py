"""Robot model of free gaits: support states by the table of the thesis, and margins of the reachability tables."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from tests.walking.free_gait.step_planning_problems import robot_model_named

from roboyard.walking.free_gait.robot_model import state_transitions, support_states

SIX = [1, -1] * 3


def test_support_states_are_those_of_table_2_2_of_the_thesis() -> None:
    states = support_states(SIX)
    after = state_transitions(states)
    assert len(states) == 40
    assert sum(map(len, after.values())) == 2 * 90
    assert all(state in after[other] for state, others in after.items() for other in others)
    assert Counter(map(len, after.values())) == {3: 18, 5: 6, 6: 16}
    # as in the table: of three feet 18, of four 15, of five 6, of six 1
    assert Counter(state.bit_count() for state in states) == {3: 18, 4: 15, 5: 6, 6: 1}


def test_reach_table_keeps_its_margin() -> None:
    robot_model = robot_model_named("akrobat")
    arrays, rng = robot_model.arrays, np.random.default_rng(0)
    reach_tables = arrays.stance_reach
    for leg in range(6):
        a, b = (axis[::37] for axis in np.nonzero(reach_tables[leg]))
        for x, y in itertools.islice(zip(a, b, strict=True), 12):
            layers = [k for k in range(48) if int(reach_tables[leg, x, y]) >> k & 1]
            for layer in layers[:: max(len(layers) // 3, 1)]:
                position = arrays.table_origin[leg] + np.array(
                    [x * arrays.cell_size, y * arrays.cell_size, layer * arrays.layer_height]
                )
                offsets = rng.normal(size=(8, 3))
                offsets *= 0.012 * robot_model.scale / np.linalg.norm(offsets, axis=1)[:, None]
                feet = np.tile(robot_model.legged_robot.stance_feet, (8, 1, 1))
                feet[:, leg] = position + offsets
                assert robot_model.legged_robot.is_reachable(feet).all()
