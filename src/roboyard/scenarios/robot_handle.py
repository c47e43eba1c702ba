"""One robot of a run: its nodes, ground truth, velocity commands and navigation goals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

from roboyard.bringup.joint_groups import RobotJoints
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_nodes import RobotBringup
from roboyard.bus import Bus, GoalFuture, Node
from roboyard.description import LidarSpec
from roboyard.errors import InputError
from roboyard.evaluation.collector import GroundTruthProvider, RobotContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2
from roboyard.hardware import Hardware
from roboyard.manipulation import SemanticDescription
from roboyard.messages import action, message_type
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.physics.world import GroundTruth
from roboyard.scenarios.evaluator import Evaluator
from roboyard.simulation import Simulation

_TWIST_RATE = 20.0
_DEFAULT_LIDAR_HEIGHT = 0.25


class RobotHost(Protocol):
    """What a robot's handle needs of the run that it is in."""

    bus: Bus
    simulation: Simulation
    robots: dict[str, RobotHandle]
    ground_truth: GroundTruthProvider
    evaluation: Evaluator

    def resources(self) -> dict[str, Any]:
        """Resources of all nodes of the run, by name."""

    def publish(self, topic: str, message: Any) -> None:
        """Publish a message on an absolute topic in the name of ``script``."""

    def remove(self, name: str) -> None:
        """Take a robot or an object out of the world."""

    def has_robot(self, robot: RobotHandle) -> bool:
        """Whether the robot is in the run now."""


def robot_namespace(requested: str | None, name: str, *, is_first: bool) -> str:
    """Namespace of a robot's topics: as requested, else "" for the first robot and its name for further ones."""
    selected = requested if requested is not None else "" if is_first else name
    return f"/{selected.strip('/')}" if selected.strip("/") else ""


class RobotHandle(RobotBringup):
    """One robot of a run; made by ``Run.add_robot``.

    Attributes:
        name: In the run.
        namespace: "" or "/name".
        model: Its description.
        package: What its kind offers.
        nodes: Those that are up, by name.
        topics: Where its truth, odometry and commands are.
    """

    def __init__(self, run: RobotHost, name: str, namespace: str, joints: RobotJoints, package: RobotPackage) -> None:
        super().__init__(run.bus, name, namespace, package, joints)
        self._run = run
        self.topics = RobotTopics.for_robot(name, namespace, package.config.topics)
        self._twist_publisher: _TwistPublisher | None = None
        self._navigation_client: _NavigationClient | None = None

    @property
    def hardware(self) -> Hardware:
        """Its joints."""
        return self._run.simulation.hardware(self.name)

    @property
    def truth(self) -> GroundTruth:
        """Where it really is; for judging, never for the robot itself."""
        return self._run.simulation.ground_truth(self.name)

    @property
    def lidar_height(self) -> float:
        """Height in the world [m] at which its lowest lidar is, its joints at zero; without one, that of usual ones."""
        model, root = self.model, self._run.simulation.world.addresses(self.name).root
        T_world_model = self.truth.pose @ model.link(root).T_model_link.inverse()
        lidars = [sensor for sensor in model.sensors if isinstance(sensor.spec, LidarSpec)]
        poses = [T_world_model @ model.link(lidar.link).T_model_link @ lidar.T_link_sensor for lidar in lidars]
        return min((pose.z for pose in poses), default=_DEFAULT_LIDAR_HEIGHT)

    @property
    def arm_truth(self) -> Any:
        """The ground truth of its arm, a `roboyard.safety.evaluation.ArmGroundTruth`; for evaluation only."""
        return self._run.evaluation.context(self.name).resource("arm_truth")

    @property
    def evaluation_context(self) -> RobotContext:
        """What metric collectors are given of it."""
        resources: dict[str, Callable[[RobotContext], Any]] = {
            "joint_groups": lambda _: self.groups, "legged_robot": lambda _: self._make_resource("legged_robot")
        }  # fmt: skip
        return RobotContext(
            self.name, self.topics, self.model, self.footprint, self.lidar_height, self._run.ground_truth, resources
        )

    @cached_property
    def groups(self) -> SemanticDescription:
        """Its groups of joints: from its package, or guessed."""
        return self.joints.groups

    def host_resources(self) -> Mapping[str, Any]:
        """Return what the simulation offers its nodes: joints, body, the topic of its true pose, and the run's."""
        base = self._run.simulation.velocity_base(self.name)
        offered = {"hardware": self.hardware, "truth_topic": self.topics.truth, "robots": self._run.robots}
        offered |= self._run.resources()
        return offered if base is None else {**offered, "base": base}

    def publish(self, topic: str, message: Any) -> None:
        """Send a message in the robot's namespace, in the name of ``script``."""
        self._run.publish(topic if topic.startswith("/") else f"{self.namespace}/{topic}", message)

    def drive(self, linear: float, angular: float = 0.0) -> None:
        """Publish a twist (v [m/s], w [rad/s]) repeatedly, until the next call sets another one."""
        if self._twist_publisher is None:
            self._twist_publisher = _TwistPublisher()
            self._run.bus.add(
                self._twist_publisher, "script_stick", namespace=self.namespace, remap=dict(self.package.config.topics)
            )
        self._twist_publisher.set_twist(linear, angular)

    def navigate_to(self, x: float, y: float, yaw: float | None = None, *, frame: str = "map") -> GoalFuture:
        """Ask its navigator to bring it to a place; needs the node ``navigator``, a map and a localisation.

        Args:
            x: In the frame [m].
            y: In the frame [m].
            yaw: Heading there [rad]; None: straight on from where it truly is.
            frame: Of the place.

        Returns:
            What comes of it: ``done()``, ``succeeded``, ``result``, ``error_message``, ``cancel()``.

        Raises:
            InputError: numbers that are not finite.
        """
        if self._navigation_client is None:
            self._navigation_client = _NavigationClient()
            self._run.bus.add(self._navigation_client, "script_goals", namespace=self.namespace)
        position = self.truth.pose.translation
        heading = math.atan2(y - float(position[1]), x - float(position[0])) if yaw is None else yaw
        return self._navigation_client.send_goal(SE2(x, y, heading), f"{self.frame_prefix}{frame}")

    def remove(self) -> None:
        """Take the robot and its nodes out of the run."""
        if not self._run.has_robot(self):
            raise InputError(f"robot {self.name} is not in the run any more")
        for node in [
            *reversed(list(self.nodes.values())),
            *([script_node for script_node in (self._twist_publisher, self._navigation_client) if script_node]),
        ]:
            self._run.bus.remove(node)
        self.nodes.clear()
        self._twist_publisher = self._navigation_client = None
        self._run.remove(self.name)


class _NavigationClient(Node):
    """Sends goals, as a user does who clicks on a map.   actions: navigate_to_pose"""

    def setup(self) -> None:
        self._action: Any = action.NavigateToPose
        self._client = self.action_client("navigate_to_pose", self._action)

    def send_goal(self, pose: SE2, frame: str) -> GoalFuture:
        return self._client.send(self._action.Goal(pose=pose_stamped_to_msg(pose, frame, self.now_ns)))


class _TwistPublisher(Node):
    """Repeats a twist, as a joystick does.   out: cmd_vel"""

    def setup(self) -> None:
        self._type: Any = message_type("geometry_msgs/msg/Twist")
        self._commands = self.publisher("cmd_vel", self._type)
        self._twist = (0.0, 0.0)
        self.timer(rate=_TWIST_RATE, callback=self._send, immediate=True)

    def set_twist(self, linear: float, angular: float) -> None:
        self._twist = (float(linear), float(angular))

    def _send(self) -> None:
        message = self._type()
        message.linear.x, message.angular.z = self._twist
        self._commands.publish(message)
