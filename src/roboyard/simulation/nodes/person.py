"""A person on the bus: two actions of which one goal runs at a time, and what they do and where they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import GoalHandle, Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.geometry import SE2, quaternions
from roboyard.messages import action, msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.simulation.engine import Simulation
from roboyard.simulation.flesh_loop import lead_on
from roboyard.simulation.nodes.deeds import Deeds
from roboyard.simulation.people.body import Body, pressed_region
from roboyard.simulation.people.clip import Clip
from roboyard.simulation.people.hands import Hands
from roboyard.simulation.people.movement import RefusedError
from roboyard.simulation.people.person import Person, State
from roboyard.simulation.people.reaching import bend
from roboyard.simulation.people.skeleton import PARTS, combined
from roboyard.simulation.people.ways import Ways

_TOLD = 10.0
"""How often the state is told while nothing changes [Hz]."""


class PersonNodeConfig(Config):
    """Configuration of `PersonNode`."""

    model: str = parameter("", doc="name of the body in the simulation")
    rate: float = parameter(50.0, unit="Hz", low=5.0, high=1000.0, doc="of steps, and so of feedback")
    pace: float = parameter(1.0, low=0.2, high=3.0, doc="times the clips' own speed, of all that they do")
    body_rate: float = parameter(10.0, unit="Hz", low=0.0, high=1000.0, doc="of the body's truth; 0: never")


class PersonNode(Node[PersonNodeConfig]):
    """Leads one person's body through the simulation.

    actions: <name>/movement (roboyard_msgs/ActorMovement), <name>/animation (roboyard_msgs/ActorAnimation): one goal at
        a time over both; feedback at every step
    out: <name>/state (roboyard_msgs/PersonState, latched): at every change, and ten times a second;
        /truth/<name>/pose (geometry_msgs/PoseStamped) of the place between the feet;
        /truth/<name>/body (roboyard_msgs/PersonBody)

    A goal is refused with its reason: busy, unknown, unreachable, invalid.  It is accepted when the person has begun.
    One whose hand took or left nothing, though it should, is aborted: missed.
    """

    state_fields = ("_before",)

    simulation: Simulation = resource(Simulation)
    body: Body = resource(Body)
    ways: Ways = resource(Ways)
    clips: Callable[[str], Clip] = resource(object)
    place: SE2 = resource(SE2)

    def setup(self) -> None:
        """Stand where the person begins."""
        expect_kernels(combined, lead_on, bend)
        start = (self.place.x, self.place.y, self.place.theta)
        self.person = Person(
            self.body.skeleton, start, self.clips, partial(self.ways.route, name=self.config.model), self.config.pace
        )
        self.hands = Hands(self.simulation, self.config.model, self.body.skeleton.physique.height)
        self._deeds = Deeds(self.person, self.hands)
        self._goal: GoalHandle | None = None
        self._before: list[list[float]] = []
        base, truth = f"/{self.name}", f"/truth/{self.name}"
        capsules, within = zip(*self.body.capsules.values(), strict=True)
        self._within = np.array([T.translation for T in within]), np.array([T.quaternion for T in within])
        self._radii = np.array([capsule.radius for capsule in capsules])
        self._lengths = np.array([capsule.length for capsule in capsules])
        self._radii.flags.writeable = self._lengths.flags.writeable = False  # all messages share them
        self._state = self.publisher(f"{base}/state", msg.PersonState, latched=True)
        self._pose = self.publisher(f"{truth}/pose", msg.PoseStamped)
        self._parts = self.publisher(f"{truth}/body", msg.PersonBody)
        for name, kind, begin in (
            ("movement", action.ActorMovement, self._begin_movement),
            ("animation", action.ActorAnimation, self._begin_animation),
        ):
            on_goal = partial(self._on_goal, begin)
            self.action_server(f"{base}/{name}", kind, on_goal, preempt=False, on_goal_restored=self._on_restored)
        self._tell()
        self.timer(rate=self.config.rate, callback=self._step, immediate=True)
        self.timer(rate=_TOLD, callback=self._tell)
        if self.config.body_rate > 0.0:
            self.timer(rate=self.config.body_rate, callback=self._tell_body)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_goal(self, begin: Callable[[Any], None], handle: GoalHandle) -> None:
        try:
            begin(handle.goal)
        except RefusedError as refused:
            handle.reject(str(refused), refused.cause)
            return
        handle.accept()
        self._goal = handle
        handle.on_cancel = self._on_cancel
        self._tell()

    def _begin_movement(self, goal: Any) -> None:
        q = goal.target.orientation
        turn = np.array([q.w, q.x, q.y, q.z])
        length = float(np.linalg.norm(turn))
        yaw = None
        if length != 0.0:
            if not 0.5 < length < 2.0:
                raise RefusedError(f"an orientation of length {length:g}", "invalid", "length 1, or 0 0 0 0 for any")
            yaw = float(quaternions.to_rpy(turn / length)[2])
        target = (goal.target.position.x, goal.target.position.y)
        self.person.move(goal.animation_name, goal.animation_distance, target, yaw, goal.velocity)

    def _begin_animation(self, goal: Any) -> None:
        self.person.check_free()
        hand = goal.hand or self.person.hand_of(goal.animation_name)
        place = self._deeds.target(goal, hand)
        speed = 1.0 if goal.animation_speed == 0.0 else goal.animation_speed
        self._deeds.begin(goal, hand)
        self.person.animate(goal.animation_name, speed, place, goal.hand)
        self.person.lingers = self._deeds.deed is not None

    def _on_cancel(self, handle: GoalHandle) -> None:
        if handle is self._goal:
            moving = self.person.state is State.MOVEMENT
            self.person.cancel()
            self._goal = None
            handle.set_canceled(self._result(moving, False, "cancelled"), "cancelled")
            self._tell()

    def _on_restored(self, handle: GoalHandle) -> None:
        self._goal = handle
        handle.on_cancel = self._on_cancel

    def _result(self, moving: bool, success: bool, text: str) -> Any:
        if moving:
            return action.ActorMovement.Result(success=success, message=text, pose=pose_to_msg(self._standing()))
        return action.ActorAnimation.Result(success=success, message=text)

    # -- time ----------------------------------------------------------------------------------------------------------
    def _step(self) -> None:
        before = self.person.state
        self.person.carries = bool(self.hands.things)
        places, turns = self.person.step(1.0 / self.config.rate)
        self.simulation.flesh.lead(self.config.model, places, turns, 1.0 / self.config.rate)
        self._deeds.step(1.0 / self.config.rate)
        pose = pose_to_msg(self._standing())
        self._pose.publish(msg.PoseStamped(header=make_header("world", self.now_ns), pose=pose))
        goal = self._goal
        if goal is not None:
            moving = before is State.MOVEMENT
            if moving:
                goal.publish_feedback(action.ActorMovement.Feedback(state=before.value, pose=pose))
            else:
                goal.publish_feedback(action.ActorAnimation.Feedback(state=before.value, progress=self.person.progress))
            if self.person.ended:
                self._goal = None
                why = "" if moving else self._deeds.end()
                if why:
                    goal.abort(self._result(moving, False, why), why, "missed")
                else:
                    goal.succeed(self._result(moving, True, "done"))
        if self.person.state is not before:
            self._tell()

    def _standing(self) -> SE2:
        return SE2(*self.person.place)

    def _tell(self) -> None:
        person = self.person
        self._state.publish(
            msg.PersonState(
                header=make_header("world", self.now_ns),
                name=self.name,
                state=person.state.value,
                animation=person.animation,
                progress=person.progress,
                pose=pose_to_msg(self._standing()),
                held_objects=list(self.hands.things.values()),
            )
        )

    def _tell_body(self) -> None:
        tables = self.simulation.flesh
        rows = list(tables.rows[self.config.model].values())
        middles, turns = combined(tables.places[rows], tables.turns[rows], *self._within)
        before = self._before or middles.tolist()
        speeds = (middles - before) * self.config.body_rate
        self._before = middles.tolist()
        forces = tables.take_peaks(self.config.model)
        regions = [""] * len(PARTS)
        for k in np.flatnonzero(forces.any(axis=1)).tolist():
            regions[k] = pressed_region(PARTS[k], forces[k], tables.turns[rows[k]])
        poses = [
            msg.Pose(msg.Point(*place), msg.Quaternion(x, y, z, w))
            for place, (w, x, y, z) in zip(self._before, turns.tolist(), strict=True)
        ]
        self._parts.publish(
            msg.PersonBody(
                header=make_header("world", self.now_ns),
                name=self.name,
                parts=list(PARTS),
                poses=poses,
                radii=self._radii,
                lengths=self._lengths,
                velocities=[msg.Vector3(*speed) for speed in speeds.tolist()],
                peak_forces=[msg.Vector3(*force) for force in forces.tolist()],
                contact_regions=regions,
            )
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """The node's state and the person's."""
        return {**super().save_state(), "person": self.person.save_state(), "deeds": self._deeds.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what `save` gave."""
        self._goal = None
        self.person.load_state(saved["person"])
        self._deeds.load_state(saved["deeds"])
        super().load_state(saved)
