"""Hands of a person: they grasp objects, carry them level, and release them; `HandTasks` executes a hand-over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from roboyard.errors import RoboyardError
from roboyard.geometry import SE2, SE3
from roboyard.geometry.arrays import Array
from roboyard.people.animation_player import GRIP_DISTANCE
from roboyard.people.person import Person
from roboyard.people.walking import PersonGoalError
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


@dataclass(frozen=True)
class HandGoal:
    """What the goal of an animation requests of a hand.

    Attributes:
        animation: Name of the clip.
        hand: "left" or "right"; empty: the clip has no reaching hand.
        target: Position (3,) of the grasped object if it is to be released, otherwise of the hand [m]; None without.
        grasp_object: Name of the object to grasp; empty: none.
        release: Whether the hand releases its object.
        timeout: How long the hand waits for the other party of a hand-over [s].
    """

    animation: str
    hand: str
    target: Array | None
    grasp_object: str = ""
    release: bool = False
    timeout: float = 0.0


@dataclass
class HandTask:
    """A task of one hand: to grasp or to release an object.

    Attributes:
        hand: "left" or "right".
        object_name: Object to grasp; empty: the hand releases its object.
        timeout: How long the hand waits for the other party of a hand-over [s].
        is_done: Whether the object has been grasped or released.
        failure: Why the task failed; empty: it has not.
        elapsed: How long the hand has waited [s].
    """

    hand: str
    object_name: str = ""
    timeout: float = 0.0
    is_done: bool = False
    failure: str = ""
    elapsed: float = 0.0


class HandTasks:
    """Executes the hand tasks that the goals of a person's animations contain.

    Args:
        person: The person.
        hands: Hands of the person.
    """

    def __init__(self, person: Person, hands: PersonHands) -> None:
        self._person, self._hands = person, hands
        self.task: HandTask | None = None

    def find_grip_position(self, goal: HandGoal) -> Array | None:
        """Return the position (3,) at which the hand is to grip [m], or None without a target.

        Raises:
            PersonGoalError: The goal is contradictory.
        """
        hand = goal.hand
        if not (0.0 <= goal.timeout < 1e6):
            raise PersonGoalError(f"a hold_timeout of {goal.timeout:g} s", "invalid", "0 or more")
        if goal.grasp_object and goal.release:
            raise PersonGoalError("grasp_object and release at once", "invalid", "one of them")
        if (goal.grasp_object or goal.release) and not hand:
            raise PersonGoalError(
                f"animation {goal.animation!r} has no reaching hand",
                "invalid",
                "a clip with reaching_hand, such as 'reach'",
            )
        grasped_objects = self._hands.grasped_objects
        if goal.release and hand not in grasped_objects:
            raise PersonGoalError(f"the {hand} hand holds no object", "invalid", "grasp an object first")
        if goal.grasp_object and hand in grasped_objects:
            raise PersonGoalError(
                f"the {hand} hand holds {grasped_objects[hand]} already", "invalid", "release it first"
            )
        if goal.target is None or not goal.release:
            return goal.target
        return self._hands.grip_position_for(hand, goal.target, self._person.pose)

    def start(self, goal: HandGoal) -> None:
        """Start the hand task of a goal, if it has one. Raises PersonGoalError if the object cannot be held."""
        if goal.grasp_object:
            try:
                self._hands.reserve(goal.hand, goal.grasp_object)
            except RoboyardError as error:
                raise PersonGoalError(str(error), "invalid") from None
        has_task = bool(goal.grasp_object or goal.release)
        self.task = HandTask(goal.hand, goal.grasp_object, goal.timeout) if has_task else None

    def step(self, dt: float) -> None:
        """Advance by ``dt`` [s], after the person's own step."""
        task = self.task
        self._hands.move_grasped_objects(
            self._person.pose, task.hand if task is not None and self._person.is_holding_reach else ""
        )
        if task is None or not self._person.is_holding_reach or not self._person.has_reached_target:
            return
        task.elapsed += dt
        if task.object_name and not task.is_done:
            self._grasp(task)
        if task.failure or (self._can_carry_off(task) if task.object_name else self._try_release(task)):
            self._person.is_holding_reach = False
        elif task.elapsed > task.timeout:
            task.failure = f"nobody {'let go of it' if task.object_name else 'took it'} within {task.timeout:g} s"
            self._person.is_holding_reach = False
            if task.object_name and task.is_done:
                self._hands.release(task.hand)
                task.is_done = False

    def finish(self) -> str:
        """End the task with its animation; return why the task failed, or an empty string."""
        task, self.task = self.task, None
        return "" if task is None or task.is_done else task.failure or "the hand did not get there"

    def _grasp(self, task: HandTask) -> None:
        try:
            task.failure = self._hands.grasp(task.hand, task.object_name, self._person.pose)
        except RoboyardError as error:
            task.failure = str(error)
        task.is_done = not task.failure
        if task.is_done and task.timeout:
            self._hands.pull_gently(task.hand)

    def _can_carry_off(self, task: HandTask) -> bool:
        """Return whether the grasped object can be carried off: at once if there is no timeout."""
        return not task.timeout or self._hands.is_free(task.hand)

    def _try_release(self, task: HandTask) -> bool:
        """Release the object if it is pulled, or at once if there is no timeout; return whether it is released."""
        if task.hand not in self._hands.grasped_objects:
            task.failure = "it is gone"
        elif not task.timeout or self._hands.is_pulled(task.hand):
            self._hands.release(task.hand)
            task.is_done = True
        return task.is_done

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"task": None if self.task is None else asdict(self.task), "hands": self._hands.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self.task = None if saved["task"] is None else HandTask(**saved["task"])
        self._hands.load_state(saved["hands"])
