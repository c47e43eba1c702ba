"""Nodes that move people: a person with two actions, and an actor of an SDF world."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import STATE_RATE, GoalHandle, Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.geometry import SE2, quaternions
from roboyard.messages import action, msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.people.actor_player import ActorPlayer
from roboyard.people.animation_player import lean_trunk
from roboyard.people.body import PersonModel, contact_region
from roboyard.people.clip import AnimationClip
from roboyard.people.hands import HandGoal, HandTasks, PersonHands
from roboyard.people.person import Person, PersonActivity
from roboyard.people.skeleton import PARTS, compose_poses
from roboyard.people.walking import PersonGoalError
from roboyard.physics.kernels.compliant_bodies import start_motion
from roboyard.simulation.simulation import Simulation
from roboyard.simulation.walking_map import SimulationWalkingMap


class PersonNodeConfig(Config):
    """Configuration of `PersonNode`."""

    model: str = parameter("", doc="name of the body in the simulation")
    rate: float = parameter(50.0, unit="Hz", low=5.0, high=1000.0, doc="rate of the body's motion and of feedback")
    speed_factor: float = parameter(1.0, low=0.2, high=3.0, doc="factor on the speed of all animations")
    body_publish_rate: float = parameter(
        10.0, unit="Hz", low=0.0, high=1000.0, doc="rate of the ground truth of the body; 0: never"
    )


class PersonNode(Node[PersonNodeConfig]):
    """Moves the body of one person in the simulation.

    actions: <name>/movement (roboyard_msgs/ActorMovement), <name>/animation (roboyard_msgs/ActorAnimation): one goal at
        a time over both; feedback at every step
    out: <name>/state (roboyard_msgs/PersonState, latched): at every change, and ten times a second;
        /truth/<name>/pose (geometry_msgs/PoseStamped) of the place between the feet;
        /truth/<name>/body (roboyard_msgs/PersonBody)

    A goal is rejected with its reason (busy, unknown, unreachable, invalid), or accepted when the person starts.
    A goal whose hand did not grasp or release its object is aborted: missed.
    """

    state_fields = ("_previous_positions",)

    simulation: Simulation = resource(Simulation)
    body: PersonModel = resource(PersonModel)
    walking_map: SimulationWalkingMap = resource(SimulationWalkingMap)
    find_clip: Callable[[str], AnimationClip] = resource(object)
    start_pose: SE2 = resource(SE2)

    def setup(self) -> None:
        """Create the person at its start pose."""
        expect_kernels(compose_poses, start_motion, lean_trunk)
        pose = (self.start_pose.x, self.start_pose.y, self.start_pose.theta)
        self.person = Person(
            self.body.skeleton,
            pose,
            self.find_clip,
            partial(self.walking_map.plan_path, name=self.config.model),
            self.config.speed_factor,
        )
        self.hands = PersonHands(
            self.simulation.grasps,
            lambda: self.simulation.world,
            self.config.model,
            self.body.skeleton.dimensions.height,
        )
        self._hand_tasks = HandTasks(self.person, self.hands)
        self._goal: GoalHandle | None = None
        self._previous_positions: list[list[float]] = []
        name_prefix, truth_prefix = f"/{self.name}", f"/truth/{self.name}"
        capsules, capsule_poses = zip(*self.body.capsules.values(), strict=True)
        self._capsule_poses = (
            np.array([T.translation for T in capsule_poses]),
            np.array([T.quaternion for T in capsule_poses]),
        )
        self._radii = np.array([capsule.radius for capsule in capsules])
        self._lengths = np.array([capsule.length for capsule in capsules])
        self._radii.flags.writeable = self._lengths.flags.writeable = False  # all messages share them
        self._state_publisher = self.publisher(f"{name_prefix}/state", msg.PersonState, latched=True)
        self._pose_publisher = self.publisher(f"{truth_prefix}/pose", msg.PoseStamped)
        self._body_publisher = self.publisher(f"{truth_prefix}/body", msg.PersonBody)
        for name, kind, start_goal in (
            ("movement", action.ActorMovement, self._start_movement),
            ("animation", action.ActorAnimation, self._start_animation),
        ):
            on_goal = partial(self._on_goal, start_goal)
            self.action_server(
                f"{name_prefix}/{name}", kind, on_goal, preempt=False, on_goal_restored=self._on_restored
            )
        self._publish_state()
        self.timer(rate=self.config.rate, callback=self._step, immediate=True)
        self.timer(rate=STATE_RATE, callback=self._publish_state)
        if self.config.body_publish_rate > 0.0:
            self.timer(rate=self.config.body_publish_rate, callback=self._publish_body)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_goal(self, start_goal: Callable[[Any], None], handle: GoalHandle) -> None:
        try:
            start_goal(handle.goal)
        except PersonGoalError as error:
            handle.reject(str(error), error.error_code)
            return
        handle.accept()
        self._goal = handle
        handle.on_cancel = self._on_cancel
        self._publish_state()

    def _start_movement(self, goal: Any) -> None:
        q = goal.target.orientation
        orientation = np.array([q.w, q.x, q.y, q.z])
        length = float(np.linalg.norm(orientation))
        yaw = None
        if length != 0.0:
            if not 0.5 < length < 2.0:
                raise PersonGoalError(f"an orientation of length {length:g}", "invalid", "length 1, or 0 0 0 0 for any")
            yaw = float(quaternions.to_rpy(orientation / length)[2])
        target = (goal.target.position.x, goal.target.position.y)
        self.person.walk(goal.animation_name, goal.animation_distance, target, yaw, goal.velocity)

    def _start_animation(self, goal: Any) -> None:
        self.person.check_free()
        hand = goal.hand or self.person.find_reaching_hand(goal.animation_name)
        target = np.array([goal.target.x, goal.target.y, goal.target.z]) if goal.has_target else None
        hand_goal = HandGoal(
            goal.animation_name, hand, target, goal.grasp_object, release=goal.release, timeout=goal.hold_timeout
        )
        target = self._hand_tasks.find_grip_position(hand_goal)
        speed = 1.0 if goal.animation_speed == 0.0 else goal.animation_speed
        self._hand_tasks.start(hand_goal)
        self.person.animate(goal.animation_name, speed, target, goal.hand)
        self.person.is_holding_reach = self._hand_tasks.task is not None

    def _on_cancel(self, handle: GoalHandle) -> None:
        if handle is self._goal:
            is_walking = self.person.activity is PersonActivity.MOVEMENT
            self.person.cancel()
            self._goal = None
            handle.set_canceled(self._make_result(is_walking, False, "cancelled"), "cancelled")
            self._publish_state()

    def _on_restored(self, handle: GoalHandle) -> None:
        self._goal = handle
        handle.on_cancel = self._on_cancel

    def _make_result(self, is_walking: bool, success: bool, message: str) -> Any:
        if is_walking:
            return action.ActorMovement.Result(success=success, message=message, pose=pose_to_msg(self._ground_pose()))
        return action.ActorAnimation.Result(success=success, message=message)

    # -- time ----------------------------------------------------------------------------------------------------------
    def _step(self) -> None:
        previous_activity = self.person.activity
        self.person.is_carrying = bool(self.hands.grasped_objects)
        positions, orientations = self.person.step(1.0 / self.config.rate)
        self.simulation.world.compliant_bodies.move_to(
            self.config.model, positions, orientations, 1.0 / self.config.rate
        )
        self._hand_tasks.step(1.0 / self.config.rate)
        pose = pose_to_msg(self._ground_pose())
        self._pose_publisher.publish(msg.PoseStamped(header=make_header("world", self.now_ns), pose=pose))
        goal = self._goal
        if goal is not None:
            is_walking = previous_activity is PersonActivity.MOVEMENT
            if is_walking:
                goal.publish_feedback(action.ActorMovement.Feedback(state=previous_activity.value, pose=pose))
            else:
                goal.publish_feedback(
                    action.ActorAnimation.Feedback(state=previous_activity.value, progress=self.person.progress)
                )
            if self.person.has_ended_goal:
                self._goal = None
                failure = "" if is_walking else self._hand_tasks.finish()
                if failure:
                    goal.abort(self._make_result(is_walking, False, failure), failure, "missed")
                else:
                    goal.succeed(self._make_result(is_walking, True, "done"))
        if self.person.activity is not previous_activity:
            self._publish_state()

    def _ground_pose(self) -> SE2:
        return SE2(*self.person.pose)

    def _publish_state(self) -> None:
        person = self.person
        self._state_publisher.publish(
            msg.PersonState(
                header=make_header("world", self.now_ns),
                name=self.name,
                state=person.activity.value,
                animation=person.animation_name,
                progress=person.progress,
                pose=pose_to_msg(self._ground_pose()),
                held_objects=list(self.hands.grasped_objects.values()),
            )
        )

    def _publish_body(self) -> None:
        bodies = self.simulation.world.compliant_bodies
        rows = list(bodies.rows[self.config.model].values())
        centers, orientations = compose_poses(bodies.positions[rows], bodies.orientations[rows], *self._capsule_poses)
        previous = self._previous_positions or centers.tolist()
        velocities = (centers - previous) * self.config.body_publish_rate
        self._previous_positions = centers.tolist()
        forces = bodies.pop_peak_forces(self.config.model)
        regions = [""] * len(PARTS)
        for k in np.flatnonzero(forces.any(axis=1)).tolist():
            regions[k] = contact_region(PARTS[k], forces[k], bodies.orientations[rows[k]])
        poses = [
            msg.Pose(msg.Point(*position), msg.Quaternion(x, y, z, w))
            for position, (w, x, y, z) in zip(self._previous_positions, orientations.tolist(), strict=True)
        ]
        self._body_publisher.publish(
            msg.PersonBody(
                header=make_header("world", self.now_ns),
                name=self.name,
                parts=list(PARTS),
                poses=poses,
                radii=self._radii,
                lengths=self._lengths,
                velocities=[msg.Vector3(*velocity) for velocity in velocities.tolist()],
                peak_forces=[msg.Vector3(*force) for force in forces.tolist()],
                contact_regions=regions,
            )
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """The node's state and the person's."""
        return {**super().save_state(), "person": self.person.save_state(), "hand_tasks": self._hand_tasks.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self._goal = None
        self.person.load_state(saved["person"])
        self._hand_tasks.load_state(saved["hand_tasks"])
        super().load_state(saved)


class ActorNodeConfig(Config):
    """Configuration of `ActorNode`."""

    model: str = parameter("", doc="name of the body in the simulation")
    rate: float = parameter(50.0, unit="Hz", low=5.0, high=1000.0, doc="rate of the body's motion")


class ActorNode(Node[ActorNodeConfig]):
    """Moves the body of an actor of an SDF world.

    out: /truth/<name>/pose (geometry_msgs/PoseStamped) of the place between the feet
    """

    simulation: Simulation = resource(Simulation)
    actor_player: ActorPlayer = resource(ActorPlayer)

    def setup(self) -> None:
        """Begin the script."""
        self._pose_publisher = self.publisher(f"/truth/{self.name}/pose", msg.PoseStamped)
        self.timer(rate=self.config.rate, callback=self._step, immediate=True)

    def _step(self) -> None:
        positions, orientations = self.actor_player.step(1.0 / self.config.rate)
        self.simulation.world.compliant_bodies.move_to(
            self.config.model, positions, orientations, 1.0 / self.config.rate
        )
        pose = pose_to_msg(SE2(*self.actor_player.animation_player.pose))
        self._pose_publisher.publish(msg.PoseStamped(header=make_header("world", self.now_ns), pose=pose))

    def save_state(self) -> dict[str, Any]:
        """The node's state and the script's."""
        return {**super().save_state(), "script": self.actor_player.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self.actor_player.load_state(saved["script"])
        super().load_state(saved)
