"""The joint trajectory node: trajectories from a topic or an action, followed within limits and tolerances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node, resource
from roboyard.bus.actions import GoalHandle
from roboyard.compute import expect_kernels
from roboyard.config import parameter
from roboyard.control.joint_limits import JointAccelerationLimits, JointGroupLimits, check_start_state
from roboyard.control.nodes.joint_group import JointGroupConfig, JointGroupNode, add_stop_services
from roboyard.control.nodes.trajectory_messages import (
    TrajectoryError,
    read_tolerances,
    read_trajectory,
    trajectory_point_to_msg,
)
from roboyard.control.topp_kernels import advance_on_profile, max_controllable_profile
from roboyard.control.trajectory import JointSample, Trajectory, TrajectoryPoint, sample_segment, sample_segments
from roboyard.control.trajectory_follower import ScalableTrajectory, Tolerances, TrajectoryFollower, splice_trajectory
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import JointCommand
from roboyard.messages import action, msg
from roboyard.messages.time import time_to_msg, to_nanoseconds


class TrajectoryStatePublisher:
    """Publishes ``~plan`` and ``~controller_state`` of a node.

    Args:
        node: Node that publishes.
        joints: Names of the joints that it moves.
    """

    def __init__(self, node: Node, joints: Sequence[str]) -> None:
        self._node, self._joints = node, list(joints)
        self._plan = node.publisher("~plan", msg.JointTrajectory, latched=True)
        self._state = node.publisher("~controller_state", msg.JointTrajectoryControllerState)

    def publish_plan(self, points: Sequence[TrajectoryPoint]) -> None:
        """Publish the trajectory that is followed from now on; no points: none."""
        self._plan.publish(
            msg.JointTrajectory(
                header=self._header(),
                joint_names=list(self._joints),
                points=[
                    trajectory_point_to_msg(round(p.time * 1e9), p.position, p.velocity, p.acceleration) for p in points
                ],
            )
        )

    def publish_state(
        self, follower: TrajectoryFollower | None, desired: JointSample, actual: NDArray[np.float64], scaling: float
    ) -> None:
        """Publish the path time of the last command, the command, and the measured positions."""
        path_time_ns = 0 if follower is None else round(follower.commanded_path_time * 1e9)
        self._state.publish(
            msg.JointTrajectoryControllerState(
                header=self._header(),
                joint_names=list(self._joints),
                reference=trajectory_point_to_msg(path_time_ns, desired.position, desired.velocity),
                feedback=trajectory_point_to_msg(path_time_ns, actual),
                error=trajectory_point_to_msg(path_time_ns, desired.position - actual),
                speed_scaling_factor=scaling,
            )
        )

    def _header(self) -> Any:
        return msg.Header(stamp=time_to_msg(self._node.now_ns))


_FEEDBACK_RATE = 20.0
_RELEASE_TIME_FACTOR = 2.0
"""Factor by which the set-points of blocked joints are slower than the joints' speed limits."""


class JointTrajectoryNodeConfig(JointGroupConfig):
    """Configuration of `JointTrajectoryNode`."""

    joints: tuple[str, ...] = parameter((), doc="Joints of the group.")
    mode: str = parameter("position", choices=("position", "velocity"), doc="Kind of the set-points.")
    rate: float = parameter(100.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    command_lead_time: float = parameter(
        0.0, unit="s", low=0.0, high=1.0, runtime=True, doc="Time in which the drives reach a set-point."
    )
    gain: float = parameter(
        10.0, unit="1/s", low=0.0, high=1e3, runtime=True, doc="Gain of the position's error (velocity mode)."
    )
    path_tolerance: float = parameter(
        0.0, unit="rad or m", low=0.0, high=1e3, runtime=True, doc="Largest error of the position on the path; 0: any."
    )
    goal_tolerance: float = parameter(
        0.02, unit="rad or m", low=0.0, high=1e3, runtime=True, doc="Largest error of the position at the end; 0: any."
    )
    goal_time: float = parameter(
        1.0, unit="s", low=0.0, high=1e3, runtime=True, doc="Time after the end in which the goal may be reached."
    )
    start_tolerance: float = parameter(
        0.1,
        unit="rad or m",
        low=0.0,
        high=1e3,
        runtime=True,
        doc="Largest distance between the joints and the trajectory's start; 0: any.",
    )
    allow_partial_joints_goal: bool = parameter(False, runtime=True, doc="Accept trajectories of some of the joints.")
    hold_position: bool = parameter(True, doc="Hold the joints at their positions from the start on.")
    initial: tuple[float, ...] = parameter((), unit="rad or m", doc="Positions to hold at first.")
    state_publish_rate: float = parameter(
        0.0, unit="Hz", low=0.0, high=1000.0, doc="Rate of ~controller_state; 0: neither it nor ~plan."
    )


class JointTrajectoryNode(JointGroupNode[JointTrajectoryNodeConfig]):
    """Moves a group of joints along trajectories, as ROS's joint trajectory controller does.

    in: ~joint_trajectory (trajectory_msgs/JointTrajectory), ~speed_scaling (std_msgs/Float64, 0 to 1)
    action: ~follow_joint_trajectory (control_msgs/FollowJointTrajectory)
    services: ~stop (std_srvs/Trigger), ~pause (std_srvs/SetBool)
    out: set-points to the hardware: positions, or velocities where the joints take only those;
        ~controller_state (control_msgs/JointTrajectoryControllerState) with the path time on the plan;
        ~plan (trajectory_msgs/JointTrajectory, latched): the followed trajectory, empty without one

    The points are joined by cubic or quintic splines, from the present positions on. A trajectory is rejected if it
    leaves the range or exceeds the speed of a joint, also between its points, or does not start where the joints are.
    Where accelerations would be too large, the node moves slower on the same path (see `ScalableTrajectory`). A newer
    trajectory takes over from the present motion. A cancelled, stopped or failed trajectory slows down on its path, as
    a paused one does, and then the joints are held; blocked joints then get their measured positions as set-points. A
    trajectory from the topic has the tolerances of the node. A trajectory is rejected while another source moves the
    joints (see `JointClaims`), and the node writes no set-points after another source has claimed the joints.
    """

    acceleration_limits: JointAccelerationLimits = resource(JointAccelerationLimits, make=JointAccelerationLimits)

    def setup(self) -> None:
        """Check the joints, hold them, and listen."""
        expect_kernels(advance_on_profile, max_controllable_profile, sample_segment, sample_segments)
        self.set_up_joints("position" if self.config.mode == "position" else "velocity")
        if self.config.initial and len(self.config.initial) != len(self.config.joints):
            raise ConfigError(
                f"{len(self.config.initial)} initial positions",
                location=self.full_name,
                valid=f"{len(self.config.joints)}, or none",
            )
        self._limits = JointGroupLimits.from_model(self.description, self.config.joints, self.acceleration_limits)
        self._zero_velocity = np.zeros(len(self.config.joints))
        self._follower: TrajectoryFollower | None = None
        self._points: list[TrajectoryPoint] = []
        self._goal: GoalHandle | None = None
        self._stop_reason: tuple[str, int] | None = None
        self._scaling = 1.0
        self._feedback_ns = 0
        self._due_ns = self.now_ns
        self._hold_position: NDArray[np.float64] | None = None
        if self.config.initial or self.config.hold_position:
            self.joint_claims.claim_if_free(self.full_name, self.config.joints)
            self._hold_position = self._limits.clamp(
                np.array(self.config.initial) if self.config.initial else self.measured_positions()
            )
        self._type = action.FollowJointTrajectory
        self._server = self.action_server(
            "~follow_joint_trajectory", self._type, self._on_goal, on_goal_restored=self._resume_goal
        )
        self.subscribe("~joint_trajectory", msg.JointTrajectory, self._on_message)
        self.subscribe("~speed_scaling", msg.Float64, self._on_scaling)
        add_stop_services(self, self.joint_claims, self.config.joints, self._on_stop)
        self._state_publisher = (
            TrajectoryStatePublisher(self, self.config.joints) if self.config.state_publish_rate > 0.0 else None
        )
        self.timer(rate=self.config.rate, callback=self._update, immediate=True)
        if self.config.state_publish_rate > 0.0:
            self.timer(rate=self.config.state_publish_rate, callback=self._publish_state, immediate=True)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data, with the trajectory being followed; its goal, if it is one's, is the server's."""
        points = [(point.time, point.position, point.velocity, point.acceleration) for point in self._points]
        return super().save_state() | {
            "held": None if self._hold_position is None else self._hold_position.copy(),
            "points": points if self._follower is not None else [],
            "follower": None if self._follower is None else self._follower.save_state(),
            "ending": self._stop_reason,
            "scaling": self._scaling,
            "told_ns": self._feedback_ns,
            "due_ns": self._due_ns,
            **self.save_claims(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._goal = None
        super().load_state(state)  # which gives the goal back, if there is one
        self._feedback_ns, self._due_ns, self._scaling = state["told_ns"], state["due_ns"], state["scaling"]
        self._stop_reason = None if state["ending"] is None else (state["ending"][0], state["ending"][1])
        self._hold_position = None if state["held"] is None else np.array(state["held"])
        self._points = [TrajectoryPoint(*point) for point in state["points"]]
        self._follower = None
        if self._points:
            default_tolerances = self._tolerances()
            tolerances = (
                default_tolerances
                if self._goal is None
                else read_tolerances(self._goal.goal, self.config.joints, default_tolerances)
            )
            self._follower = self._make_follower(self._points, tolerances, 0.0)
            self._follower.load_state(state["follower"])
        self.load_claims(state, is_moving=self._follower is not None)

    def _resume_goal(self, handle: GoalHandle) -> None:
        """Take a goal: a new one, or one that was active when the state was saved."""
        handle.on_cancel = self._on_cancel
        self._goal = handle

    # -- taking --------------------------------------------------------------------------------------------------------
    def _on_message(self, message: Any) -> None:
        try:
            self._start_trajectory(message, self._tolerances())
        except InputError as error:
            self.log.error(f"trajectory rejected: {error}", throttle=1.0)
            return
        self._end_goal("preempted by a trajectory on the topic")

    def _on_goal(self, handle: GoalHandle) -> None:
        goal = handle.goal
        try:
            tolerances = read_tolerances(goal, self.config.joints, self._tolerances())
            self._start_trajectory(goal.trajectory, tolerances)
        except TrajectoryError as error:
            handle.reject(f"{error.cause}: {error}")
            return
        except InputError as error:
            handle.reject(f"INVALID_GOAL: {error}")
            return
        self._end_goal("preempted by a newer goal")
        handle.accept()
        self._resume_goal(handle)

    def _start_trajectory(self, message: Any, tolerances: Tolerances) -> None:
        """Follow a trajectory message from now on.

        Raises:
            InputError: the trajectory is invalid, exceeds the joints' limits, or starts elsewhere; nothing changes.
        """
        current, measured = self._current_command(), self.measured_positions()
        received_points = read_trajectory(
            message, self.config.joints, current.position, self.config.allow_partial_joints_goal
        )
        due_ns = max(self._due_ns, self.now_ns)
        offset = (to_nanoseconds(message.header.stamp) or due_ns) - due_ns
        Trajectory(received_points)  # raises if the points are invalid
        if received_points[-1].time + offset * 1e-9 < 0.0:
            raise TrajectoryError("the trajectory ends in the past", "OLD_HEADER_TIMESTAMP")
        if self.config.start_tolerance > 0.0:
            commanded = current.position if self._follower is None else measured + self._follower.error
            check_start_state(commanded, measured, self.config.start_tolerance, self.config.joints, "commanded to")
            if received_points[0].time == 0.0 and offset >= 0:
                first_position = received_points[0].position
                check_start_state(
                    first_position,
                    measured,
                    self.config.start_tolerance,
                    self.config.joints,
                    "the trajectory begins at",
                )
        points, start_delay = splice_trajectory(
            current, received_points, offset * 1e-9, self._limits, self.config.joints
        )
        follower = self._make_follower(points, tolerances, start_delay)
        self.joint_claims.claim(self.full_name, self.config.joints)
        self._points, self._follower, self._stop_reason = points, follower, None
        self._publish_plan()

    def _make_follower(
        self, points: list[TrajectoryPoint], tolerances: Tolerances, start_delay: float
    ) -> TrajectoryFollower:
        velocity = self._current_command().velocity
        trajectory = ScalableTrajectory(Trajectory(points), velocity, self._limits, self.config.joints)
        return TrajectoryFollower(trajectory, tolerances, start_delay, max(self._due_ns, self.now_ns))

    def _tolerances(self) -> Tolerances:
        size = len(self.config.joints)
        return Tolerances(
            np.full(size, self.config.path_tolerance or math.inf),
            np.full(size, self.config.goal_tolerance or math.inf),
            self.config.goal_time,
        )

    def _on_scaling(self, message: Any) -> None:
        if not 0.0 <= message.data <= 1.0:  # nan is none
            self.log.error(f"rejected a speed scaling of {message.data:g}: from 0 to 1", throttle=1.0)
            return
        self._scaling = float(message.data)

    # -- following -----------------------------------------------------------------------------------------------------
    def _update(self) -> None:
        self._due_ns = self.now_ns + round(self.config.command_lead_time * 1e9)
        follower = self._follower
        if follower is None:
            if not self.has_claim():
                self._hold_position = None
            if self._hold_position is not None:
                self._write(JointSample(self._hold_position, self._zero_velocity, self._zero_velocity))
            return
        is_stopping = self._stop_reason is not None or self.joint_claims.is_paused(self.config.joints)
        actual = self.measured_positions()  # before set-points are written, which changes the efforts
        self._write(follower.command(self._due_ns, 1.0 / self.config.rate, 0.0 if is_stopping else self._scaling))
        status = follower.check_tracking(self.now_ns, actual)
        if self._stop_reason is not None:
            if follower.is_stopped:
                self._finish_stop(follower, *self._stop_reason)
        elif status == "moving":
            self._publish_feedback(follower)
        elif status == "done":
            self._finish_trajectory(follower)
            if self._goal is not None:
                self._goal.succeed(self._type.Result())
            self._goal = None
        elif self._goal is None and status == "goal violated":
            self._finish_trajectory(follower)  # no action client: keep trying
            self.log.warn("the joints did not reach the end of the trajectory in time")
        else:
            self._fail(follower, on_path=status == "path violated")

    def _fail(self, follower: TrajectoryFollower, *, on_path: bool) -> None:
        tolerance = follower.tolerances.path if on_path else follower.tolerances.goal
        k = follower.worst_joint(tolerance)
        reason = (
            f"joint {self.config.joints[k]} is {abs(follower.error[k]):.4g} off "
            f"{'its path' if on_path else 'its goal'}, tolerance {tolerance[k]:.4g}"
        )
        self.log.warn(reason)
        codes = self._type.Result
        self._stop_reason = reason, codes.PATH_TOLERANCE_VIOLATED if on_path else codes.GOAL_TOLERANCE_VIOLATED

    def _on_cancel(self, handle: GoalHandle) -> None:
        self._stop_reason = "cancelled; the joints stopped", 0

    def _on_stop(self) -> None:
        if self._follower is not None:
            self._stop_reason = self._stop_reason or ("stopped", 0)

    def _finish_stop(self, follower: TrajectoryFollower, reason: str, code: int) -> None:
        """Finish after a cancel, a stop or a failure, when the joints are at rest."""
        self._finish_trajectory(follower)
        self._end_goal(reason, code)
        tolerances, codes = follower.tolerances, self._type.Result
        violated = {codes.PATH_TOLERANCE_VIOLATED: tolerances.path, codes.GOAL_TOLERANCE_VIOLATED: tolerances.goal}
        if code in violated:
            self._release_setpoints(follower.commanded.position, violated[code])

    def _release_setpoints(self, commanded: NDArray[np.float64], tolerance: NDArray[np.float64]) -> None:
        """Set the measured positions as set-points of blocked joints, so that they do not jump when they are
        released."""
        actual = self.measured_positions()
        goal = self._limits.clamp(np.where(np.abs(commanded - actual) > tolerance, actual, commanded))
        time = _RELEASE_TIME_FACTOR * float((np.abs(goal - commanded) / self._limits.speed).max())
        if time > 0.0:
            zero_velocity, no_tolerance = np.zeros(len(self.config.joints)), np.full(len(self.config.joints), math.inf)
            self._points = [
                TrajectoryPoint(0.0, commanded, zero_velocity),
                TrajectoryPoint(max(time, 1.0 / self.config.rate), goal, zero_velocity),
            ]
            self._follower = self._make_follower(self._points, Tolerances(no_tolerance, no_tolerance), 0.0)
            self._publish_plan()
            self.joint_claims.claim(self.full_name, self.config.joints)

    def _end_goal(self, reason: str, code: int = 0) -> None:
        goal, self._goal = self._goal, None
        if goal is None:
            return
        result = self._type.Result(error_code=code, error_string=reason)
        if goal.is_cancel_requested:
            goal.set_canceled(result, reason)
        else:
            goal.abort(result, reason)

    def _finish_trajectory(self, follower: TrajectoryFollower) -> None:
        """Hold the joints at their last set-points."""
        self._hold_position = self._limits.clamp(follower.commanded.position)
        self._follower, self._points, self._stop_reason = None, [], None
        self._publish_plan()
        self.joint_claims.finish_motion(self.full_name)

    def _publish_feedback(self, follower: TrajectoryFollower) -> None:
        if self._goal is None or self.now_ns - self._feedback_ns < 1e9 / _FEEDBACK_RATE:
            return
        self._feedback_ns = self.now_ns
        actual, path_time_ns = follower.desired.position - follower.error, round(follower.path_time * 1e9)
        self._goal.publish_feedback(
            self._type.Feedback(
                header=msg.Header(stamp=time_to_msg(self.now_ns)),
                joint_names=list(self.config.joints),
                desired=trajectory_point_to_msg(path_time_ns, *follower.desired),
                actual=trajectory_point_to_msg(path_time_ns, actual),
                error=trajectory_point_to_msg(path_time_ns, follower.error),
            )
        )

    def _publish_plan(self) -> None:
        if self._state_publisher is not None:
            self._state_publisher.publish_plan(self._points)

    def _publish_state(self) -> None:
        if self._state_publisher is not None:
            self._state_publisher.publish_state(
                self._follower, self._current_command(), self.measured_positions(), self._scaling
            )

    # -- joints --------------------------------------------------------------------------------------------------------
    def _current_command(self) -> JointSample:
        """Return the start of a new trajectory: the present command, or the measured positions without one."""
        if self._follower is not None:
            return self._follower.commanded
        zero = self._zero_velocity
        hold_position = self._hold_position if self.has_claim() else None
        return JointSample(self.measured_positions() if hold_position is None else hold_position, zero, zero)

    def _write(self, desired: JointSample) -> None:
        position = self._limits.clamp(desired.position)
        if self.config.mode == "position":
            self.hardware.write(JointCommand("position", self.config.joints, position))
            return
        speed = desired.velocity + self.config.gain * (position - self.measured_positions())
        self.hardware.write(
            JointCommand("velocity", self.config.joints, np.clip(speed, -self._limits.speed, self._limits.speed))
        )
