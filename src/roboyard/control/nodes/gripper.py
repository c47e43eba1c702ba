"""The gripper node: goals of ROS's gripper action, held until the fingers are there or stand still on something."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bus import Node, param, resource
from roboyard.bus.actions import GoalHandle
from roboyard.control.limits import bounds_of
from roboyard.control.nodes.twist import check_modes
from roboyard.control.owners import JointOwners
from roboyard.description.model import Model
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.interface import Hardware, JointCommand
from roboyard.messages import action


class GripperNode(Node):
    """Opens and closes a gripper, as ROS's gripper action controller does.

    action: ~gripper_cmd (control_msgs/GripperCommand)   out: positions of one joint to the hardware

    A goal is reached within ``goal_tolerance``.  Fingers slower than ``stall_velocity_threshold`` for
    ``stall_timeout`` are stalled: then the goal is aborted, or succeeds where ``allow_stalling``, and they go on
    pressing.  A newer goal takes over; a cancelled one stops where the joint is.  ``max_effort`` is not followed: the
    joint presses as hard as its servo may.  A goal is refused while another source moves the joint (see
    `JointOwners`).  Where two fingers move alike, ``scale`` 2 makes goals of the opening.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    owners: JointOwners = resource(JointOwners, make=JointOwners)
    joints: tuple[str, ...] = param((), doc="the one that moves the fingers", fixed=True)
    rate: float = param(50.0, unit="Hz", low=1.0, high=1000.0, fixed=True)
    scale: float = param(1.0, low=1e-6, high=1e6, doc="of goals, for a unit of the joint", fixed=True)
    goal_tolerance: float = param(0.01, unit="rad or m", low=0.0, high=10.0)
    allow_stalling: bool = param(False, doc="a goal also succeeds where the fingers stall")
    stall_velocity_threshold: float = param(0.001, unit="rad/s or m/s", low=0.0, high=10.0)
    stall_timeout: float = param(1.0, unit="s", low=0.0, high=1e3)

    fields: tuple[str, ...] = ("_target", "_moved_ns")

    def setup(self) -> None:
        """Check the joint and listen."""
        if len(self.joints) != 1:
            raise ConfigError(f"{len(self.joints)} joints", where=self.full_name, valid="parameter joints: one name")
        check_modes(self.hardware, self.joints, "position", self.full_name)
        self._joint = self.joints[0]
        self._where = self.hardware.joint_names.index(self._joint)
        self._low, self._high = bounds_of(self.description, self._joint, "position")
        self._target, self._moved_ns = math.nan, 0
        self._goal: GoalHandle | None = None
        self._type = action.GripperCommand
        self.action_server("~gripper_cmd", self._type, self._on_goal, on_restored=self._take_up)
        self.timer(rate=self.rate, callback=self._tick, start=True)

    def load(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._goal = None
        super().load(saved)  # which gives the goal back, if there is one

    def _take_up(self, handle: GoalHandle) -> None:
        self.owners.take(self.full_name, self.joints)
        handle.on_cancel = self._on_cancel
        self._goal = handle

    def _on_goal(self, handle: GoalHandle) -> None:
        wanted = float(handle.goal.command.position) / self.scale
        if not self._low <= wanted <= self._high:  # nan is none
            low, high = self._low * self.scale, self._high * self.scale
            handle.reject(
                f"position {handle.goal.command.position:g} of joint {self._joint} is not within {low:g} … {high:g}"
            )
            return
        try:
            self.owners.take(self.full_name, self.joints)
        except InputError as error:
            handle.reject(str(error))
            return
        if self._goal is not None:
            self._goal.abort(self._result(), "preempted by a newer goal")
        handle.accept()
        self._take_up(handle)
        self._target, self._moved_ns = wanted, self.now_ns
        self._write()

    def _on_cancel(self, handle: GoalHandle) -> None:
        self._goal = None
        self.owners.rest(self.full_name)
        self._target = min(max(self._position(), self._low), self._high)
        self._write()
        handle.cancel(self._result(), "cancelled; the joint stops")

    def _tick(self) -> None:
        if self._goal is None:
            return
        if abs(self.hardware.read().velocity[self._where]) > self.stall_velocity_threshold:
            self._moved_ns = self.now_ns
        result = self._result()
        if result.reached_goal or (result.stalled and self.allow_stalling):
            self._goal.succeed(result)
        elif result.stalled:
            self._goal.abort(
                result,
                f"joint {self._joint} stalls {abs(self._target * self.scale - result.position):.4g} off its goal",
            )
        else:
            self._goal.feedback(self._type.Feedback(position=result.position, effort=result.effort))
            return
        self._goal = None
        self.owners.rest(self.full_name)

    def close(self) -> None:
        """Leave the joint to others."""
        self.owners.leave(self.full_name)

    def _result(self) -> Any:
        position = self._position()
        reached = abs(self._target - position) <= self.goal_tolerance
        still = (self.now_ns - self._moved_ns) * 1e-9 >= self.stall_timeout
        effort = float(self.hardware.read().effort[self._where])
        return self._type.Result(
            position=position * self.scale, effort=effort, stalled=still and not reached, reached_goal=reached
        )

    def _position(self) -> float:
        return float(self.hardware.read().position[self._where])

    def _write(self) -> None:
        self.hardware.write(JointCommand("position", self.joints, np.array([self._target])))
