"""The gripper node: goals of ROS's gripper action with a force, and forces on the fingers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus.actions import GoalHandle
from roboyard.config import parameter
from roboyard.control.gripper import GraspConfig, GraspMonitor, GripperModel, GripperState
from roboyard.control.nodes.joint_group import JointGroupConfig, JointGroupNode
from roboyard.description.joint_interfaces import joint_limit_range
from roboyard.description.model import Axis
from roboyard.errors import InputError
from roboyard.hardware.interface import JointCommand
from roboyard.messages import action, msg


class GripperNodeConfig(JointGroupConfig):
    """Configuration of `GripperNode`."""

    joints: tuple[str, ...] = parameter((), doc="Joints that move the fingers.")
    fingers: tuple[str, ...] = parameter((), doc="Fingers with contact sensors, by the names of their topics.")
    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    opening_scale: float = parameter(
        1.0, low=1e-6, high=1e6, doc="Change of the opening per change of the joints' position."
    )
    opening_offset: float = parameter(0.0, unit="m", low=-10.0, high=10.0, doc="Opening with the joints at zero.")
    grasp: GraspConfig = parameter(factory=GraspConfig, flatten="", doc="When goals are reached and fingers stalled.")
    allow_stalling: bool = parameter(False, doc="Success of goals at which the fingers stall.", runtime=True)


class GripperNode(JointGroupNode[GripperNodeConfig]):
    """Opens and closes a gripper, as ROS's gripper action controller does, and reports what it holds.

    action: ~gripper_cmd (control_msgs/GripperCommand)   in: FINGER/contacts (gazebo_msgs/ContactsState)
    out: positions of the joints to the hardware; ~state (std_msgs/String, latched: stationary, moving, holding, lost);
    FINGER/force (geometry_msgs/WrenchStamped): sum of the contact forces on each of ``fingers``, in its sensor's frame

    A goal is reached within ``goal_tolerance``. Fingers slower than ``stall_velocity_threshold`` for ``stall_timeout``
    are stalled: then the goal is aborted, or succeeds with ``allow_stalling``, and they continue pressing, each with
    ``max_effort`` [N]; 0, and more than the gripper has, mean its largest force. A newer goal takes over; a cancelled
    one stops the joints, unless they press on an object, which is not dropped. A goal is rejected while another source
    moves the joints (see `JointClaims`). From the start on the fingers are held at their positions.

    All joints have the same position. ``opening_scale`` is the change of the opening per change of that position, 2 if
    two fingers move, ``opening_offset`` the opening with the joints at zero. `GraspMonitor` defines when an object is
    held or lost.
    """

    state_fields: tuple[str, ...] = ("_target", "_target_force", "_published_state")

    def setup(self) -> None:
        """Check the joints and listen."""
        self.set_up_joints("position")
        self._gripper = self._make_gripper_model()
        self._monitor = GraspMonitor(self._gripper, self.config.grasp)
        self._target_force, self._published_state = self._gripper.max_force, ""
        self._target = self._measured_position()
        self._goal: GoalHandle | None = None
        self._type = action.GripperCommand
        self.action_server("~gripper_cmd", self._type, self._on_goal, on_goal_restored=self._resume_goal)
        self._state = self.publisher("~state", msg.String, latched=True)
        for finger in self.config.fingers:
            out = self.publisher(f"{finger}/force", msg.WrenchStamped)
            self.subscribe(f"{finger}/contacts", msg.ContactsState, partial(_publish_force, out))
        self.joint_claims.register(self.full_name, self._stop)
        self.joint_claims.claim_if_free(self.full_name, self.config.joints)
        if self.has_claim():
            self._write()
        self.timer(rate=self.config.rate, callback=self._update, immediate=True)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "grasp": self._monitor.save_state(),
            **self.save_claims(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._goal = None
        super().load_state(saved)  # which gives the goal back, if there is one
        self._monitor.load_state(saved["grasp"])
        self.load_claims(saved, is_moving=self._goal is not None)

    def _make_gripper_model(self) -> GripperModel:
        ranges = [joint_limit_range(self.description, joint, "position") for joint in self.config.joints]
        low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
        axes = {joint.name: joint.axes[0] for joint in self.description.joints if joint.axes}
        joint_axes = [axes.get(joint, Axis()) for joint in self.config.joints]
        efforts = tuple(axis.limits.effort if axis.limits.effort > 0.0 else math.inf for axis in joint_axes)
        friction = tuple(max(axis.dynamics.friction, 0.0) for axis in joint_axes)
        return GripperModel(low, high, efforts, friction, self.config.opening_scale, self.config.opening_offset)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _resume_goal(self, handle: GoalHandle) -> None:
        self.joint_claims.claim(self.full_name, self.config.joints)
        handle.on_cancel = self._on_cancel
        self._goal = handle

    def _on_goal(self, handle: GoalHandle) -> None:
        opening, effort = float(handle.goal.command.position), float(handle.goal.command.max_effort)
        low, high = self._gripper.opening_range
        if not low - 1e-9 <= opening <= high + 1e-9:  # not true for nan
            handle.reject(f"position {opening:g} of {', '.join(self.config.joints)} is not within {low:g} … {high:g}")
            return
        if not 0.0 <= effort < math.inf:
            handle.reject(f"max_effort {effort:g} is no force: 0 (largest force) or more, in newtons")
            return
        try:
            self.joint_claims.claim(self.full_name, self.config.joints)
        except InputError as error:
            handle.reject(str(error))
            return
        if self._goal is not None:
            self._goal.abort(self._result(self._read_state()), "preempted by a newer goal")
        handle.accept()
        self._resume_goal(handle)
        self._target_force = min(effort or self._gripper.max_force, self._gripper.max_force)
        self._monitor.set_goal(self.now_ns, opening, self._target_force)
        self._target = min(max(self._gripper.position(opening), self._gripper.min_position), self._gripper.max_position)
        self._write()

    def _on_cancel(self, handle: GoalHandle) -> None:
        self._goal = None
        state = self._stop_joints()
        outcome = "it keeps pressing" if state.is_pressing else "the joints stop"
        handle.set_canceled(self._result(state), f"cancelled; {outcome}")

    def _stop(self) -> None:
        """Stop on a request of the stop service."""
        if self._goal is not None:
            self._goal.abort(self._result(self._stop_joints()), "stopped")
            self._goal = None

    def _stop_joints(self) -> GripperState:
        """Stop the joints at their positions, unless they press on an object."""
        self.joint_claims.finish_motion(self.full_name)
        state = self._read_state()
        if not state.is_pressing:
            self._target = self._measured_position()
            self._monitor.set_goal(self.now_ns, state.opening, self._target_force)
            self._write()
        return state

    def _measured_position(self) -> float:
        """Return the measured position of the joints, within their range."""
        position = _mean(self.measured_positions())
        return min(max(position, self._gripper.min_position), self._gripper.max_position)

    def _write(self) -> None:
        values = np.full(len(self.config.joints), self._target)
        efforts = (
            np.array(self._gripper.joint_efforts(self._target_force)) if math.isfinite(self._target_force) else None
        )
        self.hardware.write(JointCommand("position", self.config.joints, values, efforts))

    # -- the fingers ---------------------------------------------------------------------------------------------------
    def _update(self) -> None:
        self._monitor.config = self.config.grasp
        state = self._read_state()
        if state.state != self._published_state:
            if state.state == "lost":
                self.log.warn(f"lost the object: the fingers are {state.opening:.4g} apart")
            self._published_state = state.state
            self._state.publish(msg.String(data=state.state))
        if self._goal is None:
            return
        result = self._result(state)
        if state.has_reached or (state.is_stalled and self.config.allow_stalling):
            self._goal.succeed(result)
        elif state.is_stalled:
            goal = self._gripper.opening(self._target)
            self._goal.abort(
                result, f"{', '.join(self.config.joints)} stall {abs(goal - state.opening):.4g} off the goal"
            )
        else:
            self._goal.publish_feedback(self._type.Feedback(position=state.opening, effort=state.force))
            return
        self._goal = None
        self.joint_claims.finish_motion(self.full_name)

    def _read_state(self) -> GripperState:
        readings = self.hardware.read()
        opening = self._gripper.opening(_mean(readings.position[self._joint_indices]))
        speed = float(np.abs(readings.velocity[self._joint_indices]).max())
        return self._monitor.update(
            self.now_ns, opening, speed, self._gripper.finger_force(readings.effort[self._joint_indices].tolist())
        )

    def _result(self, state: GripperState) -> Any:
        return self._type.Result(
            position=state.opening, effort=state.force, stalled=state.is_stalled, reached_goal=state.has_reached
        )


def _mean(values: Any) -> float:
    numbers: list[float] = values.tolist()
    return sum(numbers) / len(numbers)


def _publish_force(publisher: Any, message: Any) -> None:
    """Publish the sum of the contact forces on a finger."""
    total = np.zeros(3)
    for state in message.states:
        total += (state.total_wrench.force.x, state.total_wrench.force.y, state.total_wrench.force.z)
    x, y, z = total.tolist()
    publisher.publish(msg.WrenchStamped(header=message.header, wrench=msg.Wrench(force=msg.Vector3(x=x, y=y, z=z))))
