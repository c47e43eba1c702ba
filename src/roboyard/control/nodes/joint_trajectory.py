"""The joint trajectory node: trajectories from a topic or an action, followed within limits and tolerances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node, resource
from roboyard.bus.actions import GoalHandle
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control.following import Course, Follower, Tolerances
from roboyard.control.joining import joined
from roboyard.control.limits import JointBounds, JointRates, check_near
from roboyard.control.nodes.plan_reports import PlanReporter
from roboyard.control.nodes.stopping import offer_stops
from roboyard.control.nodes.trajectory_messages import (
    TrajectoryError,
    point_message,
    read_tolerances,
    read_trajectory,
)
from roboyard.control.nodes.twist import check_modes
from roboyard.control.owners import JointOwners
from roboyard.control.profile import advance_on_profile, greatest_profile
from roboyard.control.trajectories import JointSample, Trajectory, WayPoint, sample_piece, sample_pieces
from roboyard.description.model import Model
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import action, msg
from roboyard.messages.time import time_to_msg, to_nanoseconds

_FEEDBACK_RATE = 20.0
_LETTING_GO = 2.0
"""How much slower than they could joints are told to be where something holds them."""


class JointTrajectoryNodeConfig(Config):
    """Configuration of `JointTrajectoryNode`."""

    joints: tuple[str, ...] = parameter((), doc="Joints of the group.")
    mode: str = parameter("position", choices=("position", "velocity"), doc="Kind of the set-points.")
    rate: float = parameter(100.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    lead: float = parameter(
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
    hold: bool = parameter(True, doc="Hold the joints from the start on where they are.")
    initial: tuple[float, ...] = parameter((), unit="rad or m", doc="Positions to hold at first.")
    state_publish_rate: float = parameter(
        0.0, unit="Hz", low=0.0, high=1000.0, doc="Rate of ~controller_state; 0: neither it nor ~plan."
    )


class JointTrajectoryNode(Node[JointTrajectoryNodeConfig]):
    """Moves a group of joints along trajectories, as ROS's joint trajectory controller does.

    in: ~joint_trajectory (trajectory_msgs/JointTrajectory), ~speed_scaling (std_msgs/Float64, 0 to 1)
    action: ~follow_joint_trajectory (control_msgs/FollowJointTrajectory)
    services: ~stop (std_srvs/Trigger), ~pause (std_srvs/SetBool)
    out: set-points to the hardware: positions, or velocities where the joints take only those;
        ~controller_state (control_msgs/JointTrajectoryControllerState), whose reference says how far on the plan it is;
        ~plan (trajectory_msgs/JointTrajectory, latched): what it follows, empty when nothing

    The way points are joined by cubic or quintic splines from where the joints are now.  What would leave the joints'
    range or speed, also between points, is refused, and so is what begins where the joints are not.  Where
    accelerations would be too large, it goes slower on the same path (see `Course`).  A newer trajectory takes over
    from the present motion.  A cancelled, stopped or failed one slows down on its path, as a paused one does, and
    then the joints are held; those that something else holds are told to be where they are.  A topic's
    trajectory has no tolerances but the node's own.  A trajectory is refused while another source moves the joints
    (see `JointOwners`), and the joints are left alone after one has taken them.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    owners: JointOwners = resource(JointOwners, make=JointOwners)
    rates: JointRates = resource(JointRates, make=JointRates)

    def setup(self) -> None:
        """Check the joints, hold them, and listen."""
        expect_kernels(advance_on_profile, greatest_profile, sample_piece, sample_pieces)
        if not self.config.joints:
            raise ConfigError("no joints", location=self.full_name, valid="parameter joints: names of the group")
        check_modes(
            self.hardware,
            self.config.joints,
            "position" if self.config.mode == "position" else "velocity",
            self.full_name,
        )
        if self.config.initial and len(self.config.initial) != len(self.config.joints):
            raise ConfigError(
                f"{len(self.config.initial)} initial positions",
                location=self.full_name,
                valid=f"{len(self.config.joints)}, or none",
            )
        names = self.hardware.joint_names
        self._where = np.array([names.index(joint) for joint in self.config.joints])
        self._bounds = JointBounds.of(self.description, self.config.joints, self.rates)
        self._rest_speed = np.zeros(len(self.config.joints))
        self._follower: Follower | None = None
        self._points: list[WayPoint] = []
        self._goal: GoalHandle | None = None
        self._ending: tuple[str, int] | None = None
        self._scaling = 1.0
        self._told_ns = 0
        self._due_ns = self.now_ns
        self._held: NDArray[np.float64] | None = None
        if self.config.initial or self.config.hold:
            self.owners.hold(self.full_name, self.config.joints)
            self._held = self._bounds.hold(np.array(self.config.initial) if self.config.initial else self._actual())
        self._type = action.FollowJointTrajectory
        self._server = self.action_server(
            "~follow_joint_trajectory", self._type, self._on_goal, on_goal_restored=self._take_up
        )
        self.subscribe("~joint_trajectory", msg.JointTrajectory, self._on_message)
        self.subscribe("~speed_scaling", msg.Float64, self._on_scaling)
        offer_stops(self, self.owners, self.config.joints, self._on_stop)
        self._reporter = PlanReporter(self, self.config.joints) if self.config.state_publish_rate > 0.0 else None
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)
        if self.config.state_publish_rate > 0.0:
            self.timer(rate=self.config.state_publish_rate, callback=self._report, immediate=True)

    def close(self) -> None:
        """Leave the joints to others."""
        self.owners.leave(self.full_name)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data, with the trajectory being followed; its goal, if it is one's, is the server's."""
        points = [(point.time, point.position, point.velocity, point.acceleration) for point in self._points]
        return super().save_state() | {
            "held": None if self._held is None else self._held.copy(),
            "points": points if self._follower is not None else [],
            "follower": None if self._follower is None else self._follower.save_state(),
            "ending": self._ending,
            "scaling": self._scaling,
            "told_ns": self._told_ns,
            "due_ns": self._due_ns,
            "owns": self.owners.owns(self.full_name, self.config.joints),
            "paused": self.owners.paused(self.config.joints),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._goal = None
        super().load_state(state)  # which gives the goal back, if there is one
        self._told_ns, self._due_ns, self._scaling = state["told_ns"], state["due_ns"], state["scaling"]
        self._ending = None if state["ending"] is None else (state["ending"][0], state["ending"][1])
        self._held = None if state["held"] is None else np.array(state["held"])
        self._points = [WayPoint(*point) for point in state["points"]]
        self._follower = None
        if self._points:
            own = self._tolerances()
            wanted = own if self._goal is None else read_tolerances(self._goal.goal, self.config.joints, own)
            self._follower = self._made(self._points, wanted, 0.0)
            self._follower.load_state(state["follower"])
        self.owners.pause(self.config.joints, state["paused"])
        if state["owns"]:
            self.owners.take(self.full_name, self.config.joints)
            if self._follower is None:
                self.owners.rest(self.full_name)

    def _take_up(self, handle: GoalHandle) -> None:
        """Be at a goal: a new one, or one that was under way when the state was saved."""
        handle.on_cancel = self._on_cancel
        self._goal = handle

    # -- taking --------------------------------------------------------------------------------------------------------
    def _on_message(self, message: Any) -> None:
        try:
            self._begin(message, self._tolerances())
        except InputError as error:
            self.log.error(f"trajectory refused: {error}", throttle=1.0)
            return
        self._end_goal("preempted by a trajectory on the topic")

    def _on_goal(self, handle: GoalHandle) -> None:
        goal = handle.goal
        try:
            tolerances = read_tolerances(goal, self.config.joints, self._tolerances())
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
            InputError: it makes no sense, leaves the joints' limits, or begins elsewhere; everything stays as it was.
        """
        present, measured = self._present(), self._actual()
        given = read_trajectory(message, self.config.joints, present.position, self.config.allow_partial_joints_goal)
        due_ns = max(self._due_ns, self.now_ns)
        offset = (to_nanoseconds(message.header.stamp) or due_ns) - due_ns
        Trajectory(given)  # whatever makes no sense is told first
        if given[-1].time + offset * 1e-9 < 0.0:
            raise TrajectoryError("its end is past", "OLD_HEADER_TIMESTAMP")
        if self.config.start_tolerance > 0.0:
            told = present.position if self._follower is None else measured + self._follower.error
            check_near(told, measured, self.config.start_tolerance, self.config.joints, "told to be at")
            if given[0].time == 0.0 and offset >= 0:
                first = given[0].position
                check_near(first, measured, self.config.start_tolerance, self.config.joints, "the trajectory begins at")
        points, wait = joined(present, given, offset * 1e-9, self._bounds, self.config.joints)
        follower = self._made(points, tolerances, wait)
        self.owners.take(self.full_name, self.config.joints)
        self._points, self._follower, self._ending = points, follower, None
        self._tell_plan()

    def _made(self, points: list[WayPoint], tolerances: Tolerances, wait: float) -> Follower:
        present = self._present().velocity
        course = Course(Trajectory(points), present, self._bounds, self.config.joints)
        return Follower(course, tolerances, wait, max(self._due_ns, self.now_ns))

    def _tolerances(self) -> Tolerances:
        size = len(self.config.joints)
        return Tolerances(
            np.full(size, self.config.path_tolerance or math.inf),
            np.full(size, self.config.goal_tolerance or math.inf),
            self.config.goal_time,
        )

    def _on_scaling(self, message: Any) -> None:
        if not 0.0 <= message.data <= 1.0:  # nan is none
            self.log.error(f"refused a speed scaling of {message.data:g}: from 0 to 1", throttle=1.0)
            return
        self._scaling = float(message.data)

    # -- following -----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        self._due_ns = self.now_ns + round(self.config.lead * 1e9)
        follower = self._follower
        if follower is None:
            if not self.owners.owns(self.full_name, self.config.joints):
                self._held = None
            if self._held is not None:
                self._write(JointSample(self._held, self._rest_speed, self._rest_speed))
            return
        stands = self._ending is not None or self.owners.paused(self.config.joints)
        actual = self._actual()  # before anything is written, after which efforts are others
        self._write(follower.command(self._due_ns, 1.0 / self.config.rate, 0.0 if stands else self._scaling))
        verdict = follower.look(self.now_ns, actual)
        if self._ending is not None:
            if follower.standing:
                self._ended(follower, *self._ending)
        elif verdict == "moving":
            self._tell(follower)
        elif verdict == "done":
            self._rest(follower)
            if self._goal is not None:
                self._goal.succeed(self._type.Result())
            self._goal = None
        elif self._goal is None and verdict == "goal violated":
            self._rest(follower)  # nobody to tell: keep trying
            self.log.warn("the joints have not come to the trajectory's end within its time")
        else:
            self._fail(follower, on_path=verdict == "path violated")

    def _fail(self, follower: Follower, *, on_path: bool) -> None:
        tolerance = follower.tolerances.path if on_path else follower.tolerances.goal
        k = follower.worst(tolerance)
        reason = (
            f"joint {self.config.joints[k]} is {abs(follower.error[k]):.4g} off "
            f"{'its path' if on_path else 'its goal'}, tolerance {tolerance[k]:.4g}"
        )
        self.log.warn(reason)
        codes = self._type.Result
        self._ending = reason, codes.PATH_TOLERANCE_VIOLATED if on_path else codes.GOAL_TOLERANCE_VIOLATED

    def _on_cancel(self, handle: GoalHandle) -> None:
        self._ending = "cancelled; the joints stopped", 0

    def _on_stop(self) -> None:
        if self._follower is not None:
            self._ending = self._ending or ("stopped", 0)

    def _ended(self, follower: Follower, reason: str, code: int) -> None:
        """The joints stand after a cancel, a stop or a failure."""
        self._rest(follower)
        self._end_goal(reason, code)
        tolerances, codes = follower.tolerances, self._type.Result
        violated = {codes.PATH_TOLERANCE_VIOLATED: tolerances.path, codes.GOAL_TOLERANCE_VIOLATED: tolerances.goal}
        if code in violated:
            self._let_go(follower.commanded.position, violated[code])

    def _let_go(self, told: NDArray[np.float64], tolerance: NDArray[np.float64]) -> None:
        """Tell joints that something holds off their set-points to be where they are, so that they do not spring."""
        actual = self._actual()
        there = self._bounds.hold(np.where(np.abs(told - actual) > tolerance, actual, told))
        time = _LETTING_GO * float((np.abs(there - told) / self._bounds.speed).max())
        if time > 0.0:
            rest, free = np.zeros(len(self.config.joints)), np.full(len(self.config.joints), math.inf)
            self._points = [WayPoint(0.0, told, rest), WayPoint(max(time, 1.0 / self.config.rate), there, rest)]
            self._follower = self._made(self._points, Tolerances(free, free), 0.0)
            self._tell_plan()
            self.owners.take(self.full_name, self.config.joints)

    def _end_goal(self, reason: str, code: int = 0) -> None:
        goal, self._goal = self._goal, None
        if goal is None:
            return
        result = self._type.Result(error_code=code, error_string=reason)
        if goal.is_cancel_requested:
            goal.set_canceled(result, reason)
        else:
            goal.abort(result, reason)

    def _rest(self, follower: Follower) -> None:
        """Hold the joints where they are told to be."""
        self._held = self._bounds.hold(follower.commanded.position)
        self._follower, self._points, self._ending = None, [], None
        self._tell_plan()
        self.owners.rest(self.full_name)

    def _tell(self, follower: Follower) -> None:
        if self._goal is None or self.now_ns - self._told_ns < 1e9 / _FEEDBACK_RATE:
            return
        self._told_ns = self.now_ns
        actual, place_ns = follower.wanted.position - follower.error, round(follower.place * 1e9)
        self._goal.publish_feedback(
            self._type.Feedback(
                header=msg.Header(stamp=time_to_msg(self.now_ns)),
                joint_names=list(self.config.joints),
                desired=point_message(place_ns, *follower.wanted),
                actual=point_message(place_ns, actual),
                error=point_message(place_ns, follower.error),
            )
        )

    def _tell_plan(self) -> None:
        if self._reporter is not None:
            self._reporter.tell_plan(self._points)

    def _report(self) -> None:
        if self._reporter is not None:
            self._reporter.tell_state(self._follower, self._present(), self._actual(), self._scaling)

    # -- joints --------------------------------------------------------------------------------------------------------
    def _actual(self) -> NDArray[np.float64]:
        actual: NDArray[np.float64] = self.hardware.read().position[self._where]
        return actual

    def _present(self) -> JointSample:
        """Where a new trajectory begins: at what is commanded now, else at what the joints are at."""
        if self._follower is not None:
            return self._follower.commanded
        rest = self._rest_speed
        held = self._held if self.owners.owns(self.full_name, self.config.joints) else None
        return JointSample(self._actual() if held is None else held, rest, rest)

    def _write(self, wanted: JointSample) -> None:
        position = self._bounds.hold(wanted.position)
        if self.config.mode == "position":
            self.hardware.write(JointCommand("position", self.config.joints, position))
            return
        speed = wanted.velocity + self.config.gain * (position - self._actual())
        self.hardware.write(
            JointCommand("velocity", self.config.joints, np.clip(speed, -self._bounds.speed, self._bounds.speed))
        )
