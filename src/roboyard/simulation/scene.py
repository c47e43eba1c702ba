"""The world as it looks: a second compilation with visuals, lamps and sky, posed like the physics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco

from roboyard.description.model import World
from roboyard.geometry.arrays import Array
from roboyard.simulation.assembly import Assembled, Entry, assemble
from roboyard.simulation.settings import PhysicsSettings


@dataclass(frozen=True, eq=False, slots=True)
class Posture:
    """Where everything is at a moment.

    Attributes:
        joints: (nq,) positions of all joints, ``qpos``.
        places: (m, 3) of bodies that are led, people's parts, in the world [m].
        turns: (m, 4) how they are turned.
    """

    joints: Array
    places: Array
    turns: Array

    @classmethod
    def of(cls, data: mujoco.MjData) -> Posture:
        """That of ``data``, copied."""
        return cls(data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())

    def take(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Bring ``data`` into it, with all that a renderer looks at."""
        data.qpos[:] = self.joints
        data.mocap_pos[:], data.mocap_quat[:] = self.places, self.turns
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)


class Scene:
    """What renderers draw.

    Physics runs without the shapes that are only seen.  The scene has them, with bodies and joints numbered alike.

    Attributes:
        assembled: The compilation with looks.
        model: Its engine model; give it to a renderer.
        data: Its poses, after `pose_like`.
    """

    def __init__(self, world: World, entries: Sequence[Entry], settings: PhysicsSettings) -> None:
        self.assembled: Assembled = assemble(world, entries, settings, looks=True)
        self.model: mujoco.MjModel = self.assembled.model
        self.data = mujoco.MjData(self.model)

    def pose_like(self, data: mujoco.MjData) -> None:
        """Put everything where it is in ``data``, the physics of the same models."""
        self.data.time = data.time
        Posture.of(data).take(self.model, self.data)
