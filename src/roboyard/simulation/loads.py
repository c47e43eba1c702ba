"""What a joint carries when the ground holds its far end: the rest of its robot."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray


class Rest(NamedTuple):
    """What of a free robot lies on the near side of a joint: mass [kg], inertia about its axis [kg m²] or mass [kg]."""

    mass: float
    inertia: float


_POSTURES = 32
FAST = Rest(0.0, 0.0)
"""Of a joint whose near side stands fast, and whose far side is rigid: it never carries what it hangs on."""


def beyond(model: mujoco.MjModel) -> list[Rest]:
    """For each degree of freedom the rest of its robot, every joint at zero.

    Of a robot that stands fast, what hangs on the joint, stretched out as far as it could be at all: an upright arm's
    first joint carries little about its axis, and many times that once the arm reaches out.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_crb(model, data)
    found = []
    for dof in range(model.nv):
        body = int(model.dof_bodyid[dof])
        root = int(model.body_rootid[body])
        first = int(model.body_jntadr[root])
        if first < 0 or model.jnt_type[first] != mujoco.mjtJoint.mjJNT_FREE:
            found.append(Rest(0.0, _stretched(model, body)))
            continue
        if body == root:
            found.append(FAST)
            continue
        rest = data.crb[root] - data.crb[body]
        inertia = max(float(data.cdof[dof] @ _momentum(rest, data.cdof[dof])), 0.0)
        found.append(Rest(max(float(rest[9]), 0.0), inertia))
    return found


def least(model: mujoco.MjModel) -> NDArray[np.float64]:
    """(v,) least inertia about each degree of freedom among some postures [kg m² or kg].

    A folded arm's first joint carries a small part of what it carries when the arm reaches out.
    """
    data, rng, found = mujoco.MjData(model), np.random.default_rng(0), np.array(model.dof_M0)
    diagonal = model.M_rowadr + model.M_rownnz - 1
    turning = np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))
    joints = np.flatnonzero(turning & (model.jnt_limited != 0))
    low, high = model.jnt_range[joints].T
    for _ in range(_POSTURES):
        data.qpos[model.jnt_qposadr[joints]] = rng.uniform(low, high)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        found = np.minimum(found, data.M[diagonal])
    return found


def _stretched(model: mujoco.MjModel, top: int) -> float:
    """No inertia of a body with all that hangs on it, about any axis through its joint, is larger [kg m²]."""
    far = {top: 0.0}
    inertia = 0.0
    for body in range(top, model.nbody):  # numbered depth first: parents come before their children
        if body != top:
            parent = int(model.body_parentid[body])
            if parent not in far:
                continue
            far[body] = far[parent] + float(np.linalg.norm(model.body_pos[body]))
        arm = far[body] + float(np.linalg.norm(model.body_ipos[body]))
        inertia += float(model.body_mass[body]) * arm**2 + float(model.body_inertia[body].max())
    return inertia


def _momentum(inertia: NDArray[np.float64], velocity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spatial momentum of a body with the engine's ten inertia numbers at a spatial velocity (angular, linear)."""
    xx, yy, zz, xy, xz, yz = inertia[:6]
    lever, mass = inertia[6:9], inertia[9]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    w, v = velocity[:3], velocity[3:]
    return np.concatenate([about @ w + np.cross(lever, v), mass * v - np.cross(lever, w)])
