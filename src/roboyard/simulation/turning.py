"""Torques of what turns, taken at the middle of a step instead of its beginning; compiled.

The engine's step ``v' = v + h a`` takes centrifugal, Coriolis and gyroscopic forces ``c(q, v)`` as they are when it
begins (of a single free body: as they are when it ends).  So what turns freely gains or loses energy in proportion to
the step: a double pendulum 18 % in 10 s of steps of 2 ms.  With ``c(q, (v + v')/2)`` the error falls to a tenth, since
these forces then give one joint what they take from another.  Where something touches, rubs or is held, that decides
what becomes of energy, and the step stays the engine's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
from numba import types
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.native import JACOBIAN, ROWS, float64s, int32, int64, stage

SLOW = 0.5
"""Below this rate [rad/s] the engine's own error is less than 1e-5 of the energy in a second of steps of 2 ms."""
TURNS, ALONE = 1, 2
"""Flags of a degree of freedom: it turns; it belongs to a single free body."""
_word = types.intp
_velocities = stage("mj_comVel")
_bias = types.ExternalFunction("mj_rne", types.void(_word, _word, types.int32, _word))
_accelerate = types.ExternalFunction("mj_solveM", types.void(_word, _word, _word, _word, types.int32))
_move = types.ExternalFunction("mj_integratePos", types.void(_word, _word, _word, types.float64))


def turning_trees(model: mujoco.MjModel) -> NDArray[np.int32]:
    """(nv, 2) tree and flags of each degree of freedom; (0, 2) in worlds too large for this, or under water."""
    if mujoco.mj_isSparse(model) or model.opt.density > 0.0 or model.opt.viscosity > 0.0:
        return np.zeros((0, 2), np.int32)
    joint, tree = model.dof_jntid, model.dof_treeid
    kind, first = model.jnt_type[joint], model.jnt_dofadr[joint]
    free = kind == mujoco.mjtJoint.mjJNT_FREE
    shifts = (kind == mujoco.mjtJoint.mjJNT_SLIDE) | (free & (np.arange(model.nv) - first < 3))
    alone = free & (model.tree_dofnum[tree] == 6)
    braked = alone & (np.bincount(tree, model.dof_damping, model.ntree)[tree] > 0.0)  # which the engine does implicitly
    return np.stack([tree, TURNS * ~(shifts | braked) + ALONE * alone], axis=1).astype(np.int32)


def _example_free() -> Iterable[tuple[Any, ...]]:
    yield (0, np.zeros(1, np.int64), np.zeros((1, 2), np.int32), np.zeros(1), np.zeros(1, np.bool_))


@kernel(examples=_example_free)
def free_to_turn(
    data: int,
    layout: NDArray[np.int64],
    trees: NDArray[np.int32],
    qvel: NDArray[np.float64],
    free: NDArray[np.bool_],
) -> bool:
    """Whether anything turns that no constraint holds.

    Args:
        data: Address of the engine's data, evaluated.
        layout: The offsets of `Layout`.
        trees: See `turning_trees`.
        qvel: Velocities.
        free: (nv,) written: degrees of freedom of trees that turn and that nothing holds.
    """
    nv = trees.shape[0]
    found = False
    for d in range(nv):
        free[d] = trees[d, 1] & TURNS != 0 and abs(qvel[d]) > SLOW
        found |= free[d]
    if not found:
        return False
    turns = np.zeros(nv, np.bool_)  # by tree
    left = 0
    for d in range(nv):
        if free[d] and not turns[trees[d, 0]]:
            turns[trees[d, 0]] = True
            left += 1
    rows = int32(data + layout[ROWS])
    jacobian = float64s(int64(data + layout[JACOBIAN]), rows * nv)
    for row in range(rows):
        for d in range(nv):
            if turns[trees[d, 0]] and jacobian[row * nv + d] != 0.0:
                turns[trees[d, 0]] = False
                left -= 1
        if left == 0:
            return False
    for d in range(nv):
        free[d] = turns[trees[d, 0]]
    return True


def _example_turn() -> Iterable[tuple[Any, ...]]:
    numbers = np.zeros(1)
    yield (0, 0, 0.002, numbers, numbers, numbers, numbers, numbers, np.zeros((1, 2), np.int32), np.zeros(1, np.bool_))


@kernel(examples=_example_turn)
def turn_on(
    model: int,
    data: int,
    dt: float,
    qpos: NDArray[np.float64],
    qvel: NDArray[np.float64],
    bias: NDArray[np.float64],
    acceleration: NDArray[np.float64],
    before: NDArray[np.float64],
    trees: NDArray[np.int32],
    free: NDArray[np.bool_],
) -> None:
    """Correct the step that was just taken: velocities, and the positions that came of them.

    Args:
        model: Address of the engine's model.
        data: Address of its data: all but positions and velocities still as before the step.
        dt: Step [s].
        qpos: Positions after it; corrected.
        qvel: Velocities after it; corrected.
        bias: Forces of the beginning.
        acceleration: That of the beginning.
        before: Velocities of the beginning.
        trees: See `turning_trees`.
        free: See `free_to_turn`.
    """
    nv = len(qvel)
    after, plain, middle, change = qvel.copy(), qvel.copy(), np.zeros(nv), np.zeros(nv)
    for d in range(nv):
        if free[d] and trees[d, 1] & ALONE != 0:
            plain[d] = before[d] + dt * acceleration[d]
        qvel[d] = 0.5 * (before[d] + plain[d]) if free[d] else before[d]
    _velocities(model, data)
    _bias(model, data, 0, middle.ctypes.data)
    for d in range(nv):
        middle[d] = dt * (bias[d] - middle[d]) if free[d] else 0.0
    _accelerate(model, data, change.ctypes.data, middle.ctypes.data, 1)
    for d in range(nv):
        change[d] += plain[d] - after[d]
        qvel[d] = after[d] + change[d]
    _move(model, qpos.ctypes.data, change.ctypes.data, dt)
