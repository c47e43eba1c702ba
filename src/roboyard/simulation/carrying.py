"""Carries a model elsewhere at once, as hands would that no sensor of its own feels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco

from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation


def free_base(simulation: Simulation, name: str) -> tuple[int, int]:
    """Where the pose (7 numbers) and the velocity (6) of a model that moves freely begin in the engine's state.

    Raises:
        UnknownNameError: nothing is called so.
        InputError: it is fixed to the world, or its base moves on joints.
    """
    placement, model = simulation.placement(name), simulation.model
    body = placement.links[placement.root].body
    joint = int(model.body_jntadr[body]) if body > 0 else -1
    if joint < 0 or int(model.jnt_type[joint]) != int(mujoco.mjtJoint.mjJNT_FREE):
        raise InputError(f"{name} cannot be carried", valid="a model that nothing holds")
    return int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])


def carry(simulation: Simulation, name: str, to: SE2) -> None:
    """Put a model upright at a pose in the plane, as high as it is now and at rest; its joints stay as they are.

    Raises:
        UnknownNameError: nothing is called so.
        InputError: it is fixed to the world, or its base moves on joints.
    """
    pose, _ = free_base(simulation, name)
    put(simulation, name, to.to_se3(float(simulation.data.qpos[pose + 2])))


def put(simulation: Simulation, name: str, T: SE3) -> None:
    """Put a model's base at a pose in the world, at rest; its joints stay as they are.

    Raises:
        UnknownNameError: nothing is called so.
        InputError: it is fixed to the world, or its base moves on joints.
    """
    pose, velocity = free_base(simulation, name)
    model, data = simulation.model, simulation.data
    with simulation.instant.lock:
        data.qpos[pose : pose + 3] = T.translation
        data.qpos[pose + 3 : pose + 7] = T.rotation
        data.qvel[velocity : velocity + 6] = 0.0
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        simulation.instant.moved()
