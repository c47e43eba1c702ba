"""Loops of joints at the start: joints whose start nobody states go where the loop closes."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation.assembly import Assembled
from roboyard.simulation.assembly.halves import HALF

CLOSED = 1e-9
"""Gap at which a loop counts as closed [m or rad]."""
ROUNDS = 60
LARGEST = 0.3
"""Largest change of a position in one round [rad or m]."""


def close_up(assembled: Assembled, data: mujoco.MjData) -> None:
    """Move joints until all loops are closed, by Gauss and Newton; those that a description starts stay.

    First the joints that close the loops, for those follow from the others; then, where that is not enough, every joint
    that has no stated start.  Without stated starts most loops are closed already.
    """
    model = assembled.model
    if not np.isin(model.eq_type, (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)).any():
        return
    halves = [dof for dof in range(model.nv) if model.body(int(model.dof_bodyid[dof])).name.endswith(HALF)]
    stated = set()
    for placement in assembled.placements.values():
        names = {one.joint for one in placement.entry.model.interfaces if "position" in dict(one.initial)}
        stated |= {place.dof for place in placement.joints if place.name in names}
    scalar = np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))
    own = {place.dof for placement in assembled.placements.values() for place in placement.joints}
    passive = [int(dof) for dof in model.jnt_dofadr[scalar] if dof not in stated and int(dof) in own | set(halves)]
    balls = model.jnt_dofadr[model.jnt_type == mujoco.mjtJoint.mjJNT_BALL]
    passive += [int(dof) + axis for dof in balls for axis in range(3)]
    for dofs in (halves, passive):
        if _solve(model, data, np.array(dofs, int)) < CLOSED:
            return


def _solve(model: mujoco.MjModel, data: mujoco.MjData, dofs: NDArray[np.intp]) -> float:
    """Close the loops by these degrees of freedom as far as they go; returns what is left [m or rad]."""
    gap, rows = _gaps(model, data)
    for _ in range(ROUNDS):
        left = float(np.abs(gap).max(initial=0.0))
        if left < CLOSED or not len(dofs):
            break
        change = np.zeros(model.nv)
        step = -np.linalg.lstsq(rows[:, dofs], gap, rcond=1e-9)[0]
        change[dofs] = step * min(1.0, LARGEST / max(float(np.abs(step).max()), 1e-12))
        before = data.qpos.copy()
        mujoco.mj_integratePos(model, data.qpos, change, 1.0)
        gap, rows = _gaps(model, data)
        if float(np.abs(gap).max()) > 2.0 * left + LARGEST:  # it leads away: the loop cannot be closed so
            data.qpos[:] = before
            return left
    return float(np.abs(gap).max(initial=0.0))


def _gaps(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n,) errors of the equality constraints, and (n, nv) how they change with the degrees of freedom."""
    mujoco.mj_fwdPosition(model, data)
    n = int(data.ne)
    if not mujoco.mj_isSparse(model):
        return data.efc_pos[:n].copy(), data.efc_J.reshape(-1, model.nv)[:n].copy()
    rows = np.zeros((n, model.nv))
    for row in range(n):
        start, count = int(data.efc_J_rowadr[row]), int(data.efc_J_rownnz[row])
        rows[row, data.efc_J_colind[start : start + count]] = data.efc_J[start : start + count]
    return data.efc_pos[:n].copy(), rows
