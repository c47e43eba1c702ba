"""Where the engine must reckon exactly how bodies give way under contacts, and where it must not."""

from __future__ import annotations

import mujoco
import numpy as np

from roboyard.simulation.naming import COLLISION_BITS

LIGHT = 50.0
"""A body is light whose share of its tree's mass, as the engine reckons contacts with it, is one in more than this."""


def reckon_exactly(model: mujoco.MjModel) -> None:
    """Have contacts reckoned with the exact inertia that they meet.

    Not in worlds with loops: most loops have directions in which neither side can move at all, and their exact
    inertia there is 0 / 0.
    """
    if not np.isin(model.eq_type, (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)).any():
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT)


def has_light_feet(model: mujoco.MjModel) -> bool:
    """Whether a body that can touch is light beside the robot that stands on it.

    The engine guesses how a body gives way under a contact from the mean over all directions.  A shank gives way to the
    side and not along its length, and a heavy robot on light feet sinks in by millimetres: then it must reckon
    exactly, which costs a seventh of a step more.
    """
    touching = np.unique(model.geom_bodyid[(model.geom_conaffinity & COLLISION_BITS) != 0])
    share = model.body_invweight0[touching, 0] * model.body_subtreemass[model.body_rootid[touching]]
    return bool((share[touching > 0] > LIGHT).any())
