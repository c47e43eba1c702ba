"""The gripper node: goals of ROS's gripper action, pressed for with the force asked, and what the fingers feel."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.bus.actions import GoalHandle
from roboyard.config import Config, parameter
from roboyard.control.grasping import Grasp, GraspConfig, Grip, Hand
from roboyard.control.nodes.twist import check_modes
from roboyard.control.owners import JointOwners
from roboyard.description.joint_interfaces import joint_limit_range
from roboyard.description.model import Axis, Model
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import action, msg


class GripperNodeConfig(Config):
    """Configuration of `GripperNode`."""

    joints: tuple[str, ...] = parameter((), doc="Joints that move the fingers.")
    fingers: tuple[str, ...] = parameter((), doc="Fingers with contact sensors, by the names of their topics.")
    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    scale: float = parameter(1.0, low=1e-6, high=1e6, doc="Change of the opening per change of the joints' position.")
    zero: float = parameter(0.0, unit="m", low=-10.0, high=10.0, doc="Opening with the joints at zero.")
    grasp: GraspConfig = parameter(factory=GraspConfig, flatten="", doc="When goals are reached and fingers stalled.")
    allow_stalling: bool = parameter(False, doc="Success of goals at which the fingers stall.", runtime=True)


class GripperNode(Node[GripperNodeConfig]):
    """Opens and closes a gripper, as ROS's gripper action controller does, and tells what it holds.

    action: ~gripper_cmd (control_msgs/GripperCommand)   in: FINGER/contacts (gazebo_msgs/ContactsState)
    out: positions of the joints to the hardware; ~state (std_msgs/String, latched: still, moving, holding, lost);
    FINGER/force (geometry_msgs/WrenchStamped): what presses on each of ``fingers``, in its sensor's frame

    A goal is reached within ``goal_tolerance``.  Fingers slower than ``stall_velocity_threshold`` for
    ``stall_timeout`` are stalled: then the goal is aborted, or succeeds where ``allow_stalling``, and they go on
    pressing, each with ``max_effort`` [N]; 0, and more than the gripper can, mean all it can.  A newer goal takes over;
    a cancelled one stops where the joints are, unless they press on something: that is not dropped.  A goal is refused
    while another source moves the joints (see `JointOwners`).  From the start on the fingers are held where they stand.

    Several joints go alike.  ``scale`` makes goals of the opening, 2 where two fingers move, ``zero`` is the opening
    that is left with the joints at zero.  See `Grasp` for when something is held, and when it is lost.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    owners: JointOwners = resource(JointOwners, make=JointOwners)

    state_fields: tuple[str, ...] = ("_target", "_press", "_told")

    def setup(self) -> None:
        """Check the joints and listen."""
        if not self.config.joints:
            raise ConfigError("no joint", location=self.full_name, valid="parameter joints: names")
        check_modes(self.hardware, self.config.joints, "position", self.full_name)
        self._where = [self.hardware.joint_names.index(joint) for joint in self.config.joints]
        self._hand = self._known_hand()
        self._grasp = Grasp(self._hand, self.config.grasp)
        self._press, self._told = self._hand.force, ""
        self._target = self._here()
        self._goal: GoalHandle | None = None
        self._type = action.GripperCommand
        self.action_server("~gripper_cmd", self._type, self._on_goal, on_goal_restored=self._take_up)
        self._state = self.publisher("~state", msg.String, latched=True)
        for finger in self.config.fingers:
            out = self.publisher(f"{finger}/force", msg.WrenchStamped)
            self.subscribe(f"{finger}/contacts", msg.ContactsState, partial(_tell_force, out))
        self.owners.join(self.full_name, self._stop)
        self.owners.hold(self.full_name, self.config.joints)
        if self.owners.owns(self.full_name, self.config.joints):
            self._write()
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Leave the joints to others."""
        self.owners.leave(self.full_name)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {
            "grasp": self._grasp.save_state(),
            "owns": self.owners.owns(self.full_name, self.config.joints),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._goal = None
        super().load_state(saved)  # which gives the goal back, if there is one
        self._grasp.load_state(saved["grasp"])
        if saved["owns"] and self._goal is None:
            self.owners.take(self.full_name, self.config.joints)
            self.owners.rest(self.full_name)

    def _known_hand(self) -> Hand:
        bounds = [joint_limit_range(self.description, joint, "position") for joint in self.config.joints]
        low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
        axes = {joint.name: joint.axes[0] for joint in self.description.joints if joint.axes}
        known = [axes.get(joint, Axis()) for joint in self.config.joints]
        efforts = tuple(axis.limits.effort if axis.limits.effort > 0.0 else math.inf for axis in known)
        friction = tuple(max(axis.dynamics.friction, 0.0) for axis in known)
        return Hand(low, high, efforts, friction, self.config.scale, self.config.zero)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _take_up(self, handle: GoalHandle) -> None:
        self.owners.take(self.full_name, self.config.joints)
        handle.on_cancel = self._on_cancel
        self._goal = handle

    def _on_goal(self, handle: GoalHandle) -> None:
        wanted, effort = float(handle.goal.command.position), float(handle.goal.command.max_effort)
        low, high = self._hand.range
        if not low - 1e-9 <= wanted <= high + 1e-9:  # nan is none
            handle.reject(f"position {wanted:g} of {', '.join(self.config.joints)} is not within {low:g} … {high:g}")
            return
        if not 0.0 <= effort < math.inf:
            handle.reject(f"max_effort {effort:g} is no force: 0 (all it can) or more, in newtons")
            return
        try:
            self.owners.take(self.full_name, self.config.joints)
        except InputError as error:
            handle.reject(str(error))
            return
        if self._goal is not None:
            self._goal.abort(self._result(self._look()), "preempted by a newer goal")
        handle.accept()
        self._take_up(handle)
        self._press = min(effort or self._hand.force, self._hand.force)
        self._grasp.aim(self.now_ns, wanted, self._press)
        self._target = min(max(self._hand.position(wanted), self._hand.low), self._hand.high)
        self._write()

    def _on_cancel(self, handle: GoalHandle) -> None:
        self._goal = None
        grip = self._halt()
        does = "it goes on pressing" if grip.pressing else "the joints stop"
        handle.set_canceled(self._result(grip), f"cancelled; {does}")

    def _stop(self) -> None:
        """Somebody stops whoever moves the joints."""
        if self._goal is not None:
            self._goal.abort(self._result(self._halt()), "stopped")
            self._goal = None

    def _halt(self) -> Grip:
        """Stop the joints where they are, unless they press on something."""
        self.owners.rest(self.full_name)
        grip = self._look()
        if not grip.pressing:
            self._target = self._here()
            self._grasp.aim(self.now_ns, grip.opening, self._press)
            self._write()
        return grip

    def _here(self) -> float:
        """Where the joints stand, within their range."""
        position = _mean(self.hardware.read().position[self._where])
        return min(max(position, self._hand.low), self._hand.high)

    def _write(self) -> None:
        values = np.full(len(self.config.joints), self._target)
        efforts = np.array(self._hand.efforts(self._press)) if math.isfinite(self._press) else None
        self.hardware.write(JointCommand("position", self.config.joints, values, efforts))

    # -- the fingers ---------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        self._grasp.config = self.config.grasp
        grip = self._look()
        if grip.state != self._told:
            if grip.state == "lost":
                self.log.warn(f"lost what it held: the fingers are {grip.opening:.4g} apart")
            self._told = grip.state
            self._state.publish(msg.String(data=grip.state))
        if self._goal is None:
            return
        result = self._result(grip)
        if grip.reached or (grip.stalled and self.config.allow_stalling):
            self._goal.succeed(result)
        elif grip.stalled:
            goal = self._hand.opening(self._target)
            self._goal.abort(
                result, f"{', '.join(self.config.joints)} stall {abs(goal - grip.opening):.4g} off the goal"
            )
        else:
            self._goal.publish_feedback(self._type.Feedback(position=grip.opening, effort=grip.force))
            return
        self._goal = None
        self.owners.rest(self.full_name)

    def _look(self) -> Grip:
        readings = self.hardware.read()
        opening = self._hand.opening(_mean(readings.position[self._where]))
        speed = float(np.abs(readings.velocity[self._where]).max())
        return self._grasp.look(self.now_ns, opening, speed, self._hand.felt(readings.effort[self._where].tolist()))

    def _result(self, grip: Grip) -> Any:
        return self._type.Result(
            position=grip.opening, effort=grip.force, stalled=grip.stalled, reached_goal=grip.reached
        )


def _mean(values: Any) -> float:
    found: list[float] = values.tolist()
    return sum(found) / len(found)


def _tell_force(out: Any, message: Any) -> None:
    """The sum of what presses on a finger."""
    total = np.zeros(3)
    for state in message.states:
        total += (state.total_wrench.force.x, state.total_wrench.force.y, state.total_wrench.force.z)
    x, y, z = total.tolist()
    out.publish(msg.WrenchStamped(header=message.header, wrench=msg.Wrench(force=msg.Vector3(x=x, y=y, z=z))))
