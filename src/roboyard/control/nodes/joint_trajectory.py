"""The joint trajectory node: trajectories from a topic or an action, followed within tolerances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node, param, resource
from roboyard.bus.actions import GoalHandle
from roboyard.control.nodes.joint_command import bounds_of
from roboyard.control.nodes.trajectory_messages import (
    TrajectoryError,
    point_message,
    read_tolerances,
    read_trajectory,
)
from roboyard.control.nodes.twist import check_modes
from roboyard.control.owners import JointOwners
from roboyard.control.tracking import JointBounds, Tolerances, Tracking, from_present
from roboyard.control.trajectories import JointSample, Trajectory, WayPoint
from roboyard.description.model import Model
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import action, msg
from roboyard.messages.time import nanoseconds, stamp

_FEEDBACK_RATE = 20.0


class JointTrajectoryNode(Node):
    """Moves a group of joints along trajectories, as ROS's joint trajectory controller does.

    in: ~joint_trajectory (trajectory_msgs/JointTrajectory)
    action: ~follow_joint_trajectory (control_msgs/FollowJointTrajectory)
    out: set-points to the hardware: positions, or velocities where the joints take only those

    The way points are joined by cubic or quintic splines from where the joints are now.  What would leave the joints'
    limits, also between points, is refused.  A newer trajectory takes over at once; a cancelled or failed one stops
    where the joints are.  A topic's trajectory has no tolerances but the node's own.  A trajectory is refused while
    another source moves the joints (see `JointOwners`), and the joints are left alone after one has taken them.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    owners: JointOwners | None = resource(JointOwners, optional=True)
    joints: tuple[str, ...] = param((), doc="the group", fixed=True)
    mode: str = param("position", choices=("position", "velocity"), fixed=True)
    rate: float = param(100.0, unit="Hz", low=1.0, high=1000.0, fixed=True)
    lead: float = param(0.0, unit="s", low=0.0, high=1.0, doc="the cycle in which the drives reach a set-point")
    gain: float = param(10.0, unit="1/s", low=0.0, high=1e3, doc="in velocity mode: of the position's error")
    path_tolerance: float = param(0.0, unit="rad or m", low=0.0, high=1e3, doc="on the way; 0: any")
    goal_tolerance: float = param(0.02, unit="rad or m", low=0.0, high=1e3, doc="at the end; 0: any")
    goal_time: float = param(1.0, unit="s", low=0.0, high=1e3, doc="how long after the end it may take")
    hold: bool = param(True, doc="hold the joints where they stand from the start on", fixed=True)
    initial: tuple[float, ...] = param((), unit="rad or m", doc="where to hold them at first", fixed=True)

    def setup(self) -> None:
        """Check the joints, hold them, and listen."""
        if not self.joints:
            raise ConfigError("no joints", where=self.full_name, valid="parameter joints: names of the group")
        check_modes(self.hardware, self.joints, "position" if self.mode == "position" else "velocity", self.full_name)
        if self.initial and len(self.initial) != len(self.joints):
            raise ConfigError(
                f"{len(self.initial)} initial positions", where=self.full_name, valid=f"{len(self.joints)}, or none"
            )
        names = self.hardware.joint_names
        self._where = np.array([names.index(joint) for joint in self.joints])
        bounds = [bounds_of(self.description, joint, "position") for joint in self.joints]
        speeds = [bounds_of(self.description, joint, "velocity")[1] for joint in self.joints]
        lower, upper = np.array(bounds, dtype=np.float64).T
        self._bounds = JointBounds(lower, upper, np.array(speeds, dtype=np.float64))
        self._tracking: Tracking | None = None
        self._points: list[WayPoint] = []
        self._goal: GoalHandle | None = None
        self._told_ns = 0
        self._held: NDArray[np.float64] | None = None
        if self.initial:
            self._held = self._bounds.hold(np.array(self.initial))
        elif self.hold:
            self._held = self._bounds.hold(self._actual())
        self._type = action.FollowJointTrajectory
        self._server = self.action_server(
            "~follow_joint_trajectory", self._type, self._on_goal, on_restored=self._take_up
        )
        self.subscribe("~joint_trajectory", msg.JointTrajectory, self._on_message)
        self.timer(rate=self.rate, callback=self._tick, start=True)

    def save(self) -> dict[str, Any]:
        """State as plain data, with the trajectory being followed; its goal, if it is one's, is the server's."""
        tracking = self._tracking
        points = [(point.time, point.position, point.velocity, point.acceleration) for point in self._points]
        return super().save() | {
            "held": None if self._held is None else self._held.copy(),
            "points": points if tracking is not None else [],
            "start": tracking.start if tracking is not None else 0.0,
            "told_ns": self._told_ns,
            "owns": self.owners is not None and self.owners.owns(self.full_name, self.joints),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._goal = None
        super().load(state)  # which gives the goal back, if there is one
        self._told_ns = state["told_ns"]
        self._held = None if state["held"] is None else np.array(state["held"])
        self._points = [WayPoint(*point) for point in state["points"]]
        self._tracking = (
            Tracking(Trajectory(self._points), state["start"], self._tolerances_now()) if self._points else None
        )
        if self.owners is not None and state["owns"]:
            self.owners.take(self.full_name, self.joints)
            if self._tracking is None:
                self.owners.rest(self.full_name)

    def _take_up(self, handle: GoalHandle) -> None:
        """Go on with a goal that was under way when the state was saved."""
        handle.on_cancel = self._on_cancel
        self._goal = handle

    def _tolerances_now(self) -> Tolerances:
        own = self._tolerances()
        return own if self._goal is None else read_tolerances(self._goal.goal, self.joints, own)

    # -- taking --------------------------------------------------------------------------------------------------------
    def _on_message(self, message: Any) -> None:
        try:
            self._begin(message, self._tolerances())
        except InputError as error:
            self.log.error(f"trajectory refused: {error}", every=1.0)
            return
        self._end_goal("preempted by a trajectory on the topic")
        self._goal = None

    def _on_goal(self, handle: GoalHandle) -> None:
        goal = handle.goal
        try:
            tolerances = read_tolerances(goal, self.joints, self._tolerances())
            self._begin(goal.trajectory, tolerances)
        except TrajectoryError as error:
            handle.reject(f"{error.cause}: {error}")
            return
        except InputError as error:
            handle.reject(f"INVALID_GOAL: {error}")
            return
        self._end_goal("preempted by a newer goal")
        handle.accept()
        self._take_up(handle)

    def _begin(self, message: Any, tolerances: Tolerances) -> None:
        """Follow a trajectory message from now on.

        Raises:
            InputError: it makes no sense, or leaves the joints' limits; everything stays as it was.
        """
        present = self._present()
        given = read_trajectory(message, self.joints, present.position)
        began_ns = nanoseconds(message.header.stamp) or self.now_ns
        if began_ns + round(given[-1].time * 1e9) < self.now_ns:
            raise TrajectoryError("its end is past", "OLD_HEADER_TIMESTAMP")
        points = from_present(present, given)
        trajectory = Trajectory(points)
        self._bounds.check(trajectory, self.joints, points)
        first = trajectory.sample((self.now_ns - began_ns) * 1e-9).position
        self._bounds.check_start(first, present.position, 1.0 / self.rate, self.joints)
        if self.owners is not None:
            self.owners.take(self.full_name, self.joints)
        self._points = points
        self._tracking = Tracking(trajectory, began_ns * 1e-9, tolerances)

    def _tolerances(self) -> Tolerances:
        size = len(self.joints)
        return Tolerances(
            np.full(size, self.path_tolerance or math.inf),
            np.full(size, self.goal_tolerance or math.inf),
            self.goal_time,
        )

    # -- following -----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        tracking = self._tracking
        if tracking is None:
            if self.owners is not None and not self.owners.may(self.full_name, self.joints):
                self._held = None
            if self._held is not None:
                self._write(JointSample(self._held, np.zeros(len(self.joints)), np.zeros(len(self.joints))))
            return
        verdict = tracking.look(self.now_ns * 1e-9, self._actual())
        since = self.now_ns * 1e-9 - tracking.start
        self._write(tracking.trajectory.sample(since + self.lead) if self.lead > 0.0 else tracking.wanted)
        if verdict == "moving":
            self._tell(tracking)
            return
        if verdict == "done":
            self._stop(tracking.trajectory.goal)
            if self._goal is not None:
                self._goal.succeed(self._type.Result())
        elif self._goal is None and verdict == "goal violated":
            self._stop(tracking.trajectory.goal)  # nobody to tell: keep trying
            self.log.warn("the joints have not come to the trajectory's end within its time")
        else:
            self._fail(tracking, verdict)
        self._goal = None

    def _fail(self, tracking: Tracking, verdict: str) -> None:
        on_path = verdict == "path violated"
        tolerance = tracking.tolerances.path if on_path else tracking.tolerances.goal
        k = tracking.worst(tolerance)
        reason = (
            f"joint {self.joints[k]} is {abs(tracking.error[k]):.4g} off {'its path' if on_path else 'its goal'}, "
            f"tolerance {tolerance[k]:.4g}"
        )
        self._stop(self._actual())
        self.log.warn(reason)
        if self._goal is not None:
            code = self._type.Result.PATH_TOLERANCE_VIOLATED if on_path else self._type.Result.GOAL_TOLERANCE_VIOLATED
            self._goal.abort(self._type.Result(error_code=code, error_string=reason), reason)

    def _on_cancel(self, handle: GoalHandle) -> None:
        self._stop(self._actual())
        self._goal = None
        handle.cancel(self._type.Result(error_string="cancelled; the joints stopped"), "cancelled")

    def _end_goal(self, reason: str) -> None:
        if self._goal is not None:
            self._goal.abort(self._type.Result(error_string=reason), reason)

    def _stop(self, position: NDArray[np.float64]) -> None:
        """Hold ``position`` from now on."""
        if self.owners is not None:
            self.owners.rest(self.full_name)
        self._tracking, self._points = None, []
        self._held = self._bounds.hold(position)

    def _tell(self, tracking: Tracking) -> None:
        if self._goal is None or self.now_ns - self._told_ns < 1e9 / _FEEDBACK_RATE:
            return
        self._told_ns = self.now_ns
        actual = tracking.wanted.position - tracking.error
        self._goal.feedback(
            self._type.Feedback(
                header=msg.Header(stamp=stamp(self.now_ns)),
                joint_names=list(self.joints),
                desired=point_message(self.now_ns - round(tracking.start * 1e9), *tracking.wanted),
                actual=point_message(self.now_ns - round(tracking.start * 1e9), actual),
                error=point_message(self.now_ns - round(tracking.start * 1e9), tracking.error),
            )
        )

    # -- joints --------------------------------------------------------------------------------------------------------
    def _actual(self) -> NDArray[np.float64]:
        actual: NDArray[np.float64] = self.hardware.read().position[self._where]
        return actual

    def _present(self) -> JointSample:
        """Where a new trajectory begins: at what is commanded now, else at what the joints are at."""
        if self._tracking is not None:
            return self._tracking.trajectory.sample(self.now_ns * 1e-9 - self._tracking.start)
        rest = np.zeros(len(self.joints))
        return JointSample(self._actual() if self._held is None else self._held, rest, rest)

    def _write(self, wanted: JointSample) -> None:
        position = self._bounds.hold(wanted.position)
        if self.mode == "position":
            self.hardware.write(JointCommand("position", self.joints, position))
            return
        speed = wanted.velocity + self.gain * (position - self._actual())
        self.hardware.write(
            JointCommand("velocity", self.joints, np.clip(speed, -self._bounds.speed, self._bounds.speed))
        )
