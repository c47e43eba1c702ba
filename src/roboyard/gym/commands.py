"""What an agent does: an action becomes a message where the robot's real commands go.

Each number of an action lies between -1 and 1: the share of what the robot can do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.gym.robot import ReadRobot
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg

Teller = Callable[[Array, int], Any]
_LAPSE = 2.5
"""Speeds are over that are older than so many periods of an agent."""


class Command(ABC):
    """How a robot is commanded."""

    topic: ClassVar[str]
    """Where it is told, relative to the robot's namespace."""

    @abstractmethod
    def names(self, robot: ReadRobot) -> tuple[str, ...]:
        """What each number of an action commands. Raises ConfigError where the robot cannot be commanded so."""

    @abstractmethod
    def kind(self) -> type:
        """Type of its messages."""

    @abstractmethod
    def teller(self, robot: ReadRobot) -> Teller:
        """Gives the message that an action (n,), within -1 and 1, comes to at a time [ns]."""

    def nodes(self, robot: ReadRobot, T_world_model: SE3, period: float) -> Mapping[str, RobotNodeConfig]:
        """What must be up to hear it, beside the nodes that are; ``period`` is between two actions [s]."""
        return {}


@dataclass(frozen=True)
class Twist(Command):
    """Drives: shares of the robot's greatest speed and turn rate, on ``cmd_vel``.

    Attributes:
        speed: Greatest [m/s]; None: as its package says.
        turn_rate: Greatest [rad/s]; None: as its package says.
    """

    topic = "cmd_vel"
    speed: float | None = None
    turn_rate: float | None = None

    def names(self, robot: ReadRobot) -> tuple[str, ...]:
        """Speed, turn rate."""
        self._most(robot)
        return "speed", "turn_rate"

    def kind(self) -> type:
        """geometry_msgs/Twist."""
        found: type = msg.Twist
        return found

    def teller(self, robot: ReadRobot) -> Teller:
        """The twist."""
        speed, turn_rate = self._most(robot)

        def tell(action: Array, time_ns: int) -> Any:
            message = msg.Twist()
            message.linear.x, message.angular.z = speed * float(action[0]), turn_rate * float(action[1])
            return message

        return tell

    def _most(self, robot: ReadRobot) -> tuple[float, float]:
        limits = robot.config.limits
        speed = limits.speed if self.speed is None else self.speed
        turn_rate = limits.angular_speed if self.turn_rate is None else self.turn_rate
        if speed is None or turn_rate is None:
            raise ConfigError(
                "nobody says how fast it drives", location=f"robot {robot.name}", valid="Twist(speed=…, turn_rate=…)"
            )
        if not (0.0 < speed < math.inf and 0.0 < turn_rate < math.inf):
            raise ConfigError(f"Twist at {speed} m/s, {turn_rate} rad/s", valid="both above zero")
        return speed, turn_rate


@dataclass(frozen=True)
class JointTargets(Command):
    """Tells servos where to go: so far from a posture, within the joints' limits, by a `joint_command` node.

    Attributes:
        posture: What an action of zeros means [rad or m], by joint; None: the stance of a robot with legs.
        span: How far 1 is from it [rad or m].
    """

    topic = "joint_targets/commands"
    posture: Mapping[str, float] | None = None
    span: float = 0.5

    def names(self, robot: ReadRobot) -> tuple[str, ...]:
        """The joints."""
        joints = tuple(self._posture(robot))
        robot.bounds(joints)
        return joints

    def kind(self) -> type:
        """std_msgs/Float64MultiArray."""
        found: type = msg.Float64MultiArray
        return found

    def teller(self, robot: ReadRobot) -> Teller:
        """Set-points of all joints."""
        posture = self._posture(robot)
        middle, bounds = np.array(list(posture.values())), robot.bounds(tuple(posture))
        return lambda action, time_ns: msg.Float64MultiArray(data=bounds.clamp(middle + self.span * action))

    def nodes(self, robot: ReadRobot, T_world_model: SE3, period: float) -> Mapping[str, RobotNodeConfig]:
        """The node that hands set-points on, and holds the posture until then."""
        posture = self._posture(robot)
        parameters = {"joints": list(posture), "initial": [float(value) for value in posture.values()]}
        return {"joint_targets": RobotNodeConfig("joint_command", parameters)}

    def _posture(self, robot: ReadRobot) -> Mapping[str, float]:
        if self.posture is not None:
            return self.posture
        return dict(zip(robot.legs.joints, robot.legs.stance_pose.ravel().tolist(), strict=True))


@dataclass(frozen=True)
class JointSpeeds(Command):
    """Moves an arm's joints at shares of their greatest speeds, by the robot's `servo` node.

    That node keeps the joints within their limits and accelerations, and stops the arm before it touches itself or what
    stands fast in the world.

    Attributes:
        group: Which joints; empty: the robot's first group.
        share: Of the joints' speeds that 1 stands for.
    """

    topic = "servo/delta_joint_cmds"
    group: str = ""
    share: float = 0.5

    def names(self, robot: ReadRobot) -> tuple[str, ...]:
        """The group's joints."""
        return robot.groups.chain(self.group or None).joints

    def kind(self) -> type:
        """control_msgs/JointJog."""
        found: type = msg.JointJog
        return found

    def teller(self, robot: ReadRobot) -> Teller:
        """Speeds of all joints."""
        joints = self.names(robot)
        speed = robot.bounds(joints).speed
        most = self.share * np.where(np.isfinite(speed), speed, 1.0)

        def tell(action: Array, time_ns: int) -> Any:
            header = msg.Header(stamp=time_to_msg(time_ns))
            return msg.JointJog(header=header, joint_names=list(joints), velocities=most * action)

        return tell

    def nodes(self, robot: ReadRobot, T_world_model: SE3, period: float) -> Mapping[str, RobotNodeConfig]:
        """The servo node, which knows where the robot stands."""
        T_world_root = T_world_model @ robot.model.link(robot.groups.root_link).T_model_link
        parameters = {
            "group": self.group,
            "speed_scaling": self.share,
            "incoming_command_timeout": _LAPSE * period,
            "use_world_model": True,
            "robot_pose": [float(value) for value in (*T_world_root.translation, *T_world_root.rpy)],
        }
        return {"servo": RobotNodeConfig("servo", parameters)}
