"""Hands of a person: they grasp objects, carry them level, and release them, also in a hand-over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.geometry import SE2, SE3
from roboyard.geometry.arrays import Array
from roboyard.people.animation_player import GRIP_DISTANCE
from roboyard.physics.grasps import GraspConstraint, GraspConstraints
from roboyard.physics.world import PhysicsWorld

HANDS = ("left", "right")
MAX_GRASP_DISTANCE = 0.15
"""Maximum distance from the grip position to the center of an object that a hand grasps [m]."""
PULL_DISTANCE = 0.01
"""Displacement by which a person pulls at an object that another party still holds [m]."""
RELEASE_FORCE = 5.0
"""Force at which a person releases an object that is held out [N]."""


class PersonHands:
    """Hands of a person.  A grasped object keeps its orientation relative to the person's heading: it is carried level.

    Args:
        grasps: Grasps of the simulation.
        get_world: Returns the present world of the simulation; it is another one after models were added or removed.
        model: Name of the person's body.
        height: Stature of the person [m].
    """

    def __init__(
        self, grasps: GraspConstraints, get_world: Callable[[], PhysicsWorld], model: str, height: float
    ) -> None:
        self._grasps, self._get_world, self._model = grasps, get_world, model
        self._grip_point = (0.0, 0.0, -GRIP_DISTANCE * height)
        self._grasped_object_poses: dict[str, SE3] = {}

    @property
    def grasped_objects(self) -> dict[str, str]:
        """Names of the grasped objects by hand, "left" and "right"."""
        objects_by_link = self._grasps.grasped_objects(self._model)
        return {link.partition("_")[0]: object_name for link, object_name in objects_by_link.items()}

    def reserve(self, hand: str, object_name: str) -> None:
        """Reserve an object, so that the body does not push it away. Raises InputError and its kinds."""
        self._grasps.reserve(self._make_constraint(hand, object_name))

    def grasp(self, hand: str, object_name: str, pose: tuple[float, float, float]) -> str:
        """Grasp an object at the hand; return why that failed, or an empty string.

        Args:
            hand: "left" or "right".
            object_name: Name of the object.
            pose: x, y and yaw of the person [m, rad].

        Raises:
            InputError and its kinds: There is no such object, or it cannot be held.
        """
        T_world_object = self._get_world().ground_truth(object_name).T_world_base
        grip_position = self._grip_position(hand)
        distance = float(np.linalg.norm(T_world_object.translation - grip_position))
        if distance > MAX_GRASP_DISTANCE:
            return f"{object_name} is {distance:.2f} m from the {hand} hand"
        T_heading_object = _heading_rotation(pose).inverse() @ SE3(
            T_world_object.rotation, T_world_object.translation - grip_position
        )
        self._grasps.attach(
            self._make_constraint(hand, object_name),
            T_world_object.translation - grip_position,
            T_world_object.rotation,
        )
        self._grasped_object_poses[hand] = T_heading_object
        return ""

    def release(self, hand: str) -> None:
        """Release the object in a hand. Raises UnknownNameError."""
        self._grasps.detach(self._model, f"{hand}_hand")
        self._grasped_object_poses.pop(hand, None)

    def finish_release(self, hand: str) -> bool:
        """End the reservation of a released object once the person does not touch it; return whether it has ended."""
        object_name = self._grasps.reserved_objects(self._model).get(f"{hand}_hand", "")
        if not object_name:
            return True
        contacts = self._get_world().ground_truth(object_name).contacts
        if any(contact.other_geom.startswith(f"{self._model}::") for contact in contacts):
            return False
        self._grasps.remove(self._model, f"{hand}_hand")
        return True

    def _make_constraint(self, hand: str, object_name: str) -> GraspConstraint:
        return GraspConstraint(self._model, f"{hand}_hand", object_name, self._grip_point)

    def move_grasped_objects(self, pose: tuple[float, float, float], busy_hand: str = "") -> None:
        """Move the grasped objects with the person's pose [m, rad]; ``busy_hand`` is occupied by a task."""
        for hand in HANDS:
            if hand not in self._grasped_object_poses and hand != busy_hand:
                self.finish_release(hand)
        for hand in self.grasped_objects:
            T = _heading_rotation(pose) @ self._grasped_object_poses[hand]
            self._grasps.move_target(self._model, f"{hand}_hand", T.translation, T.rotation)

    def pull_gently(self, hand: str) -> None:
        """Pull slightly at the object in a hand, so that another party measures a force. Raises UnknownNameError."""
        T = self._grasped_object_poses[hand]
        self._grasped_object_poses[hand] = SE3(T.rotation, T.translation + np.array([-PULL_DISTANCE, 0.0, 0.0]))

    def grip_position_for(self, hand: str, target: Array, pose: tuple[float, float, float]) -> Array:
        """Return the grip position (3,) of a hand with which its object is at ``target`` (3,), in the world [m]."""
        return np.asarray(target - (_heading_rotation(pose) @ self._grasped_object_poses[hand]).translation)

    def is_pulled(self, hand: str) -> bool:
        """Return whether the object in a hand is pulled. Raises UnknownNameError."""
        return float(np.linalg.norm(self._grasps.force(self._model, f"{hand}_hand"))) > RELEASE_FORCE

    def is_free(self, hand: str) -> bool:
        """Return whether only the person touches the object in a hand."""
        contacts = self._get_world().ground_truth(self.grasped_objects[hand]).contacts
        return all(contact.other_geom.startswith(f"{self._model}::") for contact in contacts)

    def _grip_position(self, hand: str) -> Array:
        """Return the present grip position (3,) of a hand in the world [m]."""
        bodies = self._get_world().compliant_bodies
        row = bodies.rows[self._model][f"{hand}_hand"]
        return SE3(bodies.orientations[row], bodies.positions[row]) @ np.array(self._grip_point)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data; the grasps themselves belong to the state of the simulation."""
        return {hand: [T.rotation.tolist(), T.translation.tolist()] for hand, T in self._grasped_object_poses.items()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self._grasped_object_poses = {
            hand: SE3(rotation, translation) for hand, (rotation, translation) in saved.items()
        }


def _heading_rotation(pose: tuple[float, float, float]) -> SE3:
    return SE2(0.0, 0.0, pose[2]).to_se3()
