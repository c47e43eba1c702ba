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


FAST = Rest(0.0, 0.0)
"""Of a joint whose near side stands fast: it never carries what it hangs on."""


def beyond(model: mujoco.MjModel) -> list[Rest]:
    """For each degree of freedom the rest of its robot, every joint at zero."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_crb(model, data)
    found = []
    for dof in range(model.nv):
        body = int(model.dof_bodyid[dof])
        root = int(model.body_rootid[body])
        first = int(model.body_jntadr[root])
        if first < 0 or model.jnt_type[first] != mujoco.mjtJoint.mjJNT_FREE or body == root:
            found.append(FAST)
            continue
        rest = data.crb[root] - data.crb[body]
        inertia = max(float(data.cdof[dof] @ _momentum(rest, data.cdof[dof])), 0.0)
        found.append(Rest(max(float(rest[9]), 0.0), inertia))
    return found


def _momentum(inertia: NDArray[np.float64], velocity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spatial momentum of a body with the engine's ten inertia numbers at a spatial velocity (angular, linear)."""
    xx, yy, zz, xy, xz, yz = inertia[:6]
    lever, mass = inertia[6:9], inertia[9]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    w, v = velocity[:3], velocity[3:]
    return np.concatenate([about @ w + np.cross(lever, v), mass * v - np.cross(lever, w)])
