"""One motion at a time: planned beside the run, followed by the arm's controller, watched, stopped, planned anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, Final

import numpy as np

from roboyard.bus import Future, GoalFuture, GoalHandle, Node
from roboyard.bus.actions import PREEMPTED
from roboyard.bus.offload import OffloadedTask
from roboyard.errors import RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.monitoring import blocked
from roboyard.manipulation.nodes.motion_messages import sampled, status_message
from roboyard.manipulation.nodes.move_codes import MoveError, cause_of
from roboyard.manipulation.nodes.scene_keeper import SceneKeeper
from roboyard.manipulation.planning import Plan
from roboyard.manipulation.searching import Request, search
from roboyard.messages import action, msg
from roboyard.messages.time import to_nanoseconds

_FAR: Final = 0.5
"""More room than this is not told [m]."""
_TELLS_NS: Final = 200_000_000
"""So often it is told how much there is."""
START_NEAR: Final = 0.02
"""A motion begins at most so far from where the joints are [rad or m]."""


@dataclass(slots=True)
class Motion:
    """A goal and what has become of it.

    Attributes:
        task: The action's name.
        handle: The goal.
        request: What is planned; None for a trajectory that is given, or before it is read again.
        execute: Whether it is followed, too.
        replans_left: How often it may be planned anew when something comes into the way.
        delay: Before that [s].
        seed: Of its plans.
        given_start: (n,) joints to plan from, instead of the measured ones.
        state: planning, executing, stopping, waiting, or queued behind one that is being stopped.
        trajectory: The trajectory_msgs/JointTrajectory that was planned last.
        times: (k,) of way points between which the joints go straight [s].
        points: (k, n) joints there.
        why: The cause and the words for which it is being stopped.
    """

    task: str
    handle: GoalHandle
    request: Request | None
    execute: bool = True
    replans_left: int = 0
    delay: float = 0.5
    seed: int = 0
    given_start: Array | None = None
    state: str = "planning"
    began_ns: int = 0
    due_ns: int = 0
    sent_ns: int = 0
    looked: int = -1
    trajectory: Any = None
    times: Array = field(default_factory=lambda: np.zeros(0))
    points: Array = field(default_factory=lambda: np.zeros((0, 0)))
    duration: float = 0.0
    length: float = 0.0
    looks: int = 0
    plans: int = 0
    replans: int = 0
    why: tuple[str, str] = ("", "")

    @property
    def begin_ns(self) -> int:
        """When a motion whose times are given begins; 0: at once."""
        return 0 if self.trajectory is None else to_nanoseconds(self.trajectory.header.stamp)


_PLAIN: Final = tuple(name for name in Motion.__dataclass_fields__ if name not in ("handle", "request"))


class Mover:
    """Carries motions out.

    Args:
        node: Who sends and listens.
        keeper: What is planned in.
        controller: Name of the arm's follow_joint_trajectory action.
        latency: Declared, of planning [s].
        read: Gives a motion's request again after a state was loaded.
        ended: Told how a motion ended: the motion, and the error or None.
    """

    def __init__(
        self,
        node: Node,
        keeper: SceneKeeper,
        *,
        controller: str,
        latency: float,
        patience: Callable[[], float],
        read: Callable[[Motion], Request],
        ended: Callable[[Motion, RoboyardError | None], None],
    ) -> None:
        self._node, self._keeper, self._latency = node, keeper, latency
        self._patience, self._read, self._ended = patience, read, ended
        self.motion: Motion | None = None
        self._work: OffloadedTask | None = None
        self._stop = Event()
        self._following: GoalFuture | None = None
        self._restored: GoalFuture | None = None
        self._due_ns = 0
        self._type: Any = action.FollowJointTrajectory
        self._client = node.action_client(controller, self._type, on_goal_restored=self._on_restored)
        self._status = node.publisher("~/status", msg.ArmStatus, latched=True)
        self._room = node.publisher("~/clearance", msg.Float64)
        self._shown = node.publisher("display_planned_path", msg.moveit_msgs.DisplayTrajectory, latched=True)

    # -- taking --------------------------------------------------------------------------------------------------------
    def ready(self) -> None:
        """Raises MoveError: nobody follows trajectories, or nobody says where the joints are."""
        if not self._client.is_available():
            raise MoveError(f"nobody serves {self._client.name}", "no_controller", valid="the arm's trajectory node")
        self._keeper.measured()

    def begin(self, motion: Motion) -> None:
        """Take an accepted goal on; one that is under way is stopped first."""
        if self.motion is not None:
            self._give_up_planning()
            self._finish(MoveError("preempted by a newer goal", PREEMPTED))
        motion.began_ns = self._node.now_ns
        motion.handle.on_cancel = self._on_cancel
        self.motion = motion
        if self._following is not None:
            motion.state = "queued"
            self._following.cancel()
        else:
            self._go(motion)

    def refuse(self, task: str, error: RoboyardError) -> None:
        """Say that a goal was not taken."""
        self._publish(task, "rejected", error, None)

    def _go(self, motion: Motion) -> None:
        """Plan it, or follow what is given."""
        if motion.trajectory is not None and motion.plans == 0:
            self._follow(motion)
            return
        motion.state = "planning"
        try:
            request = motion.request = motion.request or self._read(motion)
            scene = self._keeper.now(request.tool)
            start = self._keeper.measured() if motion.given_start is None else motion.given_start
        except RoboyardError as error:
            self._finish(error)
            return
        self._stop = Event()
        motion.looked = self._keeper.version
        self._say("planning")
        self._work = self._node.offload(
            search, scene, start, request, self._stop.is_set,
            latency=self._latency, on_done=partial(self._planned, motion), cancel_event=self._stop,
        )  # fmt: skip

    def _give_up_planning(self) -> None:
        if self._work is not None:
            self._stop.set()
            self._work.cancel()
            self._work = None

    # -- planned -------------------------------------------------------------------------------------------------------
    def _planned(self, motion: Motion, future: Future) -> None:
        self._work = None
        if motion is not self.motion:
            return
        result = future.result
        motion.plans += 1
        if isinstance(result, Plan):
            self._take(motion, result)
            if not motion.execute:
                self._finish(None)
            else:
                self._follow(motion)
        elif motion.replans and motion.replans_left:
            self._wait(motion, result)
        else:
            self._finish(result)

    def _take(self, motion: Motion, found: Plan) -> None:
        from roboyard.manipulation.nodes.motion_messages import trajectory_message

        motion.duration, motion.length = found.trajectory.duration, found.path.length
        motion.looks += found.looks
        begin_ns = 0 if motion.request is None else motion.request.begin_ns
        motion.trajectory = trajectory_message(found.trajectory, self._keeper.frame, begin_ns)
        self._shown.publish(
            msg.moveit_msgs.DisplayTrajectory(
                model_id=self._keeper.scene.groups.model.name,
                trajectory=[msg.moveit_msgs.RobotTrajectory(joint_trajectory=motion.trajectory)],
            )
        )

    def _follow(self, motion: Motion) -> None:
        """Hand the trajectory to the controller, if it can still be followed."""
        try:
            motion.times, motion.points = sampled(motion.trajectory, self._keeper.joints)
            off = np.abs(motion.points[0] - self._keeper.measured())
            if off.max() > START_NEAR:
                name = self._keeper.joints[int(np.argmax(off))]
                raise MoveError(
                    f"{name} is {off.max():.3g} from where the motion begins", "bad_plan", valid=f"at most {START_NEAR}"
                )
            late = self._node.now_ns - motion.begin_ns if motion.begin_ns else 0
            if late > 0:
                raise MoveError(f"it should have begun {late * 1e-9:.2f} s ago", "too_late", valid="a later begin")
            self._check(motion, 0.0)
        except MoveError as error:
            if error.cause == "in_the_way" and motion.replans_left:
                self._wait(motion, error)
            else:
                self._finish(error)
            return
        except RoboyardError as error:
            self._finish(error)
            return
        motion.state, motion.sent_ns = "executing", max(self._node.now_ns, motion.begin_ns)
        self._following = self._client.send(self._type.Goal(trajectory=motion.trajectory))
        self._following.add_done_callback(self._followed)
        self._say("executing")

    def _check(self, motion: Motion, since: float) -> None:
        """Raises MoveError where something stands in what is left of the motion."""
        silent = self._node.now_ns - self._keeper.seen_ns
        if self._patience() and silent > round(self._patience() * 1e9):
            raise MoveError(f"nothing was seen for {silent * 1e-9:.1f} s", "scene_unknown", valid="a map of space")
        tool = None if motion.request is None else motion.request.tool
        scene = self._keeper.now(tool)
        if motion.looked == self._keeper.version and motion.request is not None:
            return
        motion.looked = self._keeper.version
        found = blocked(scene, motion.times, motion.points, since)
        if found is not None:
            one, other = found.pair
            raise MoveError(f"{one} would touch {other} in {found.time - since:.2f} s", "in_the_way")

    # -- while it moves ------------------------------------------------------------------------------------------------
    def step(self) -> None:
        """Look ahead; called at a rate."""
        motion = self.motion
        if motion is None:
            return
        now_ns = self._node.now_ns
        if motion.state == "waiting" and now_ns >= motion.due_ns:
            self._go(motion)
        elif motion.state == "executing":
            try:
                self._check(motion, (now_ns - motion.sent_ns) * 1e-9)
            except RoboyardError as error:
                motion.why = (cause_of(error), str(error))
                self._halt(motion)
            else:
                self._feed(motion)
                self._tell_room(motion)

    def _halt(self, motion: Motion) -> None:
        """Have the controller stop the arm, within the joints' limits."""
        motion.state = "stopping"
        self._say("stopping")
        if self._following is not None:
            self._following.cancel()

    def _followed(self, future: Future) -> None:
        """The controller is done."""
        following, self._following = self._following, None
        motion = self.motion
        if motion is None or following is None:
            return
        if motion.state == "queued":
            self._go(motion)
        elif motion.state == "stopping":
            self._stopped(motion)
        elif following.error is None and following.succeeded:
            self._finish(None)
        else:
            reason = str(following.error) if following.error is not None else following.error_message
            stopped = reason == "stopped"  # by whoever called the controller's stop
            text = "the arm was stopped" if stopped else f"the arm did not follow: {reason}"
            self._finish(MoveError(text, "cancelled" if stopped else "not_followed"))

    def _stopped(self, motion: Motion) -> None:
        error = MoveError(motion.why[1], motion.why[0])
        if motion.handle.is_cancel_requested:
            self._finish(None, canceled=True)
        elif motion.why[0] in ("in_the_way", "scene_unknown") and motion.replans_left and motion.task == "move_action":
            self._wait(motion, error)
        else:
            self._finish(error)

    def _wait(self, motion: Motion, error: RoboyardError) -> None:
        """Plan anew a little later."""
        self._node.log.info(f"plans anew in {motion.delay:g} s: {error}")
        motion.replans += 1
        motion.replans_left -= 1
        motion.given_start = None
        motion.seed += 1
        motion.request = None
        motion.state, motion.due_ns = "waiting", self._node.now_ns + round(motion.delay * 1e9)
        self._say("waiting", error)

    def _on_cancel(self, handle: GoalHandle) -> None:
        motion = self.motion
        if motion is None or handle is not motion.handle:
            return
        if motion.state == "executing":
            motion.why = ("cancelled", "cancelled")
            self._halt(motion)
        elif motion.state != "stopping":
            self._give_up_planning()
            self._finish(None, canceled=True)

    # -- end -----------------------------------------------------------------------------------------------------------
    def _finish(self, error: RoboyardError | None, *, canceled: bool = False) -> None:
        motion = self.motion
        if motion is None:
            return
        state = "canceled" if canceled else "succeeded" if error is None else "aborted"
        if error is not None:
            self._node.log.warn(f"gave up {motion.task}: {error}")
        self._node.report_health("ok" if error is None else "warn", state if error is None else str(error))
        self._say(state, error)
        self.motion = None
        self._ended(motion, MoveError("cancelled", "cancelled") if canceled else error)

    # -- telling -------------------------------------------------------------------------------------------------------
    def _tell_room(self, motion: Motion) -> None:
        """How far the arm is from everything in the world."""
        if self._node.now_ns < self._due_ns:
            return
        self._due_ns = self._node.now_ns + _TELLS_NS
        scene = self._keeper.now(None if motion.request is None else motion.request.tool)
        q = np.clip(self._keeper.measured(), scene.chain.lower, scene.chain.upper)
        self._room.publish(msg.Float64(data=scene.room(q, _FAR)))

    def _feed(self, motion: Motion) -> None:
        if motion.task == "move_action":
            motion.handle.publish_feedback(action.MoveGroup.Feedback(state="MONITOR"))
        else:
            motion.handle.publish_feedback(action.ExecuteTrajectory.Feedback(state="MONITOR"))

    def _say(self, state: str, error: RoboyardError | None = None) -> None:
        motion = self.motion
        if motion is None:
            return
        if state == "planning" and motion.task == "move_action":
            motion.handle.publish_feedback(action.MoveGroup.Feedback(state="PLANNING"))
        self._publish(motion.task, state, error, motion)

    def _publish(self, task: str, state: str, error: RoboyardError | None, motion: Motion | None) -> None:
        self._status.publish(status_message(self._keeper, self._node.now_ns, task, state, error, motion))

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_restored(self, future: GoalFuture) -> None:
        self._restored = future

    def save_state(self) -> dict[str, Any] | None:
        """What is under way, as plain data; the goal itself is its action server's."""
        motion = self.motion
        return {
            "motion": None if motion is None else {name: getattr(motion, name) for name in _PLAIN},
            "following": self._following is not None,
            "due": self._due_ns,
        }

    def load_state(self, saved: dict[str, Any], handle: GoalHandle | None) -> None:
        """Counterpart of `save`, after the actions have taken up their goals."""
        self._due_ns = saved["due"]
        self._following, self._restored = self._restored if saved["following"] else None, None
        if self._following is not None:
            self._following.add_done_callback(self._followed)
        self.motion = None
        if saved["motion"] is not None and handle is not None:
            self.motion = Motion(handle=handle, request=None, **saved["motion"])
            handle.on_cancel = self._on_cancel
