"""The visual scene: a second compilation with visuals, lights and sky, posed like the physics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco

from roboyard.description.model import World
from roboyard.geometry.arrays import Array
from roboyard.physics.compiled_world import CompiledWorld, ModelEntry
from roboyard.physics.compiler.world import compile_world
from roboyard.physics.settings import PhysicsSettings


@dataclass(frozen=True, eq=False, slots=True)
class SceneState:
    """Poses of everything that is rendered, at one time.

    Attributes:
        joint_positions: (nq,) positions of all joints, ``qpos``.
        mocap_positions: (m, 3) positions of kinematic bodies, such as people's parts, in the world [m].
        mocap_orientations: (m, 4) their orientations, unit quaternions (w, x, y, z).
    """

    joint_positions: Array
    mocap_positions: Array
    mocap_orientations: Array

    @classmethod
    def from_data(cls, data: mujoco.MjData) -> SceneState:
        """Copy the poses of ``data``."""
        return cls(data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())

    def apply_to(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Set ``data`` to these poses, including all that a renderer reads."""
        data.qpos[:] = self.joint_positions
        data.mocap_pos[:], data.mocap_quat[:] = self.mocap_positions, self.mocap_orientations
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)


class VisualScene:
    """The world as renderers draw it.

    The physics runs without the shapes that are only rendered.  The scene has them; its bodies and joints have the same
    numbers.

    Attributes:
        compiled: The compilation with visuals.
        model: Its MuJoCo model, for a renderer.
        data: Its poses, after `copy_poses`.
    """

    def __init__(self, world: World, entries: Sequence[ModelEntry], settings: PhysicsSettings) -> None:
        self.compiled: CompiledWorld = compile_world(world, entries, settings, with_visuals=True)
        self.model: mujoco.MjModel = self.compiled.model
        self.data = mujoco.MjData(self.model)

    def copy_poses(self, data: mujoco.MjData) -> None:
        """Set all poses to those of ``data``, the physics of the same models."""
        self.data.time = data.time
        SceneState.from_data(data).apply_to(self.model, self.data)
