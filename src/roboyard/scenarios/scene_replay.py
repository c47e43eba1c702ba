"""Poses a simulation's scene from recorded messages: robots, joints, people and objects at their true poses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from roboyard.errors import UnknownNameError
from roboyard.evaluation.topics import OBJECT_POSES_TOPIC
from roboyard.geometry import SE3
from roboyard.messages.convert import pose_to_se3
from roboyard.physics.compiled_world import scoped_name
from roboyard.simulation import Simulation
from roboyard.simulation.video.states import root_body

_HIDDEN_POSITION = (0.0, 0.0, -1000.0)
"""Position of models that are not in the scene [m]."""


class SceneReplay:
    """Poses of a simulation's scene that follow recorded messages.

    Args:
        simulation: Simulation with the models that are shown; its state does not change.
        robots: Namespace of each robot's topics, "" or "/name".
        people: Names of the people whose bodies follow messages.

    Attributes:
        model: Model of the scene with its visual shapes.
        data: Poses of the scene, valid after `update_kinematics`.
        topics: Topics with poses.
    """

    def __init__(self, simulation: Simulation, robots: Mapping[str, str], people: tuple[str, ...] = ()) -> None:
        self.model = simulation.visual_scene().model
        self.data = mujoco.MjData(self.model)
        self._joints = {f"{namespace}/joint_states": name for name, namespace in robots.items()}
        self._bases = {f"/truth/{name}/pose": name for name in robots}
        self._bodies = {f"/truth/{name}/body": name for name in people}
        self._person_capsules = _find_capsules(simulation, people)
        self.topics = (*self._joints, *self._bases, *self._bodies, OBJECT_POSES_TOPIC)
        self._known_objects: set[str] = set()

    def apply_message(self, topic: str, message: Any) -> None:
        """Set the poses that a message contains."""
        if topic in self._joints:
            self._move_joints(self._joints[topic], message)
        elif topic in self._bases:
            self._move_free(self._bases[topic], pose_to_se3(message.pose))
        elif topic in self._bodies:
            self._move_person(self._bodies[topic], message)
        elif topic == OBJECT_POSES_TOPIC:
            self._move_objects(message)

    def update_kinematics(self) -> None:
        """Compute the poses of all bodies."""
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)

    def _move_joints(self, robot: str, message: Any) -> None:
        for name, position in zip(message.name, message.position, strict=False):
            joint_id = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT.value, scoped_name(robot, name))
            if joint_id >= 0:
                self.data.qpos[self.model.jnt_qposadr[joint_id]] = position

    def _move_free(self, name: str, T_world_model: SE3) -> None:
        """Set the pose of a model without a parent; others cannot be moved."""
        try:
            joint = int(self.model.body_jntadr[root_body(self.model, name)])
        except UnknownNameError:  # it stands still, or came later
            return
        if joint < 0 or self.model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            return
        address = int(self.model.jnt_qposadr[joint])
        self.data.qpos[address : address + 3] = T_world_model.translation
        self.data.qpos[address + 3 : address + 7] = T_world_model.rotation

    def _move_objects(self, message: Any) -> None:
        transforms = {str(stamped.child_frame_id): stamped.transform for stamped in message.transforms}
        for name in self._known_objects - set(transforms):
            self._move_free(name, SE3(translation=_HIDDEN_POSITION))
        self._known_objects |= set(transforms)
        for name, transform in transforms.items():
            position, rotation = transform.translation, transform.rotation
            self._move_free(
                name, SE3((rotation.w, rotation.x, rotation.y, rotation.z), (position.x, position.y, position.z))
            )

    def _move_person(self, person: str, message: Any) -> None:
        for part, pose in zip(message.parts, message.poses, strict=False):
            capsule = self._person_capsules.get((person, part))
            if capsule is not None:
                body, T_capsule_part = capsule
                T = pose_to_se3(pose) @ T_capsule_part
                mocap = int(self.model.body_mocapid[self.model.body(body).id])
                self.data.mocap_pos[mocap], self.data.mocap_quat[mocap] = T.translation, T.rotation


def _find_capsules(simulation: Simulation, people: tuple[str, ...]) -> Mapping[tuple[str, str], tuple[str, SE3]]:
    """Return by person and part the name of the engine's body, and the pose of the part's frame in its capsule's."""
    model, capsules = simulation.world.model, {}
    for name in people:
        for part, link in simulation.world.addresses(name).links.items():
            geoms = range(model.body_geomadr[link.body], model.body_geomadr[link.body] + model.body_geomnum[link.body])
            geom = next(k for k in geoms if model.geom_type[k] == mujoco.mjtGeom.mjGEOM_CAPSULE)
            T_part_capsule = SE3(np.array(model.geom_quat[geom]), np.array(model.geom_pos[geom]))
            capsules[name, part] = (scoped_name(name, part), T_part_capsule.inverse())
    return capsules
