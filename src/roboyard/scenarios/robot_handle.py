"""A robot in a run: its nodes, its truth, and a hand on its stick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from roboyard.bus import GoalFuture, Node
from roboyard.control.owners import JointOwners
from roboyard.description import LidarSpec
from roboyard.description.extent import footprint_polygon
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.hardware import Hardware
from roboyard.messages import action, message_type
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.scenarios.crew import Crew
from roboyard.scenarios.metrics import RobotTopics
from roboyard.scenarios.metrics.walking import Legged
from roboyard.scenarios.offers import Offers
from roboyard.scenarios.robot_groups import KnownJoints
from roboyard.scenarios.robot_legs import legs_of
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.scenarios.true_arm import TrueArm
from roboyard.walking.walker import Walker

if TYPE_CHECKING:
    from roboyard.manipulation import Groups
    from roboyard.scenarios.run import Run
    from roboyard.simulation import Truth

_STICK_RATE = 20.0
_SCAN_HEIGHT = 0.25


class RobotHandle(Crew):
    """One robot of a run; made by ``Run.add``.

    Attributes:
        name: In the run.
        namespace: "" or "/name".
        model: Its description.
        package: What its kind offers.
        nodes: Those that are up, by name.
        topics: Where its truth, odometry and commands are.
    """

    def __init__(self, run: Run, name: str, namespace: str, joints: KnownJoints, package: RobotPackage) -> None:
        super().__init__(run.bus, name, namespace, package)
        self._run = run
        self.model = joints.model
        self._joints = joints
        self.topics = RobotTopics.of(name, namespace, package.file.topics)
        self._owners = JointOwners()
        self._stick: _Stick | None = None
        self._asker: _Asker | None = None

    @property
    def hardware(self) -> Hardware:
        """Its joints."""
        return self._run.simulation.hardware(self.name)

    @property
    def truth(self) -> Truth:
        """Where it really is; for judging, never for the robot itself."""
        return self._run.simulation.truth(self.name)

    @property
    def outline(self) -> tuple[tuple[float, float], ...]:
        """Corners of its outline on the ground [m], seen from its base frame."""
        return footprint_polygon(self.package.file.footprint, self.model)

    @property
    def scan_height(self) -> float:
        """Height in the world [m] at which its lowest lidar is, its joints at zero; without one, that of usual ones."""
        model, root = self.model, self._run.simulation.placement(self.name).root
        T_world_model = self.truth.pose @ model.link(root).T_model_link.inverse()
        lidars = [sensor for sensor in model.sensors if isinstance(sensor.spec, LidarSpec)]
        poses = [T_world_model @ model.link(lidar.link).T_model_link @ lidar.T_link_sensor for lidar in lidars]
        return min((pose.z for pose in poses), default=_SCAN_HEIGHT)

    @property
    def true_arm(self) -> TrueArm:
        """Where its tools really are; for judging."""
        return TrueArm(self._run.simulation, self)

    @cached_property
    def groups(self) -> Groups:
        """Its groups of joints: from its package, or guessed."""
        return self._joints.groups

    def resources(self) -> Mapping[str, Any]:
        """What its nodes may be handed, by name."""
        base = self._run.simulation.base(self.name)
        found = {"hardware": self.hardware, "description": self.model, "truth_topic": self.topics.truth,
                 "owners": self._owners, "rates": self._joints.rates,
                 "outline": self.outline,
                 "drive_limits": self.package.file.limits, **self._run.resources()}  # fmt: skip
        if self._legs is not None:
            found["legs"] = self._legs
        return Offers(found if base is None else {**found, "base": base}, {"groups": lambda: self.groups})

    @property
    def legged(self) -> Legged | None:
        """Its legs and motors, for what walking is judged by; None without."""
        return None if self._legs is None else Legged.of(self._legs, self.model)

    @cached_property
    def _legs(self) -> Walker | None:
        return legs_of(self.package, self.model)

    def publish(self, topic: str, message: Any) -> None:
        """Send a message in the robot's namespace, in the name of ``script``."""
        self._run.publish(topic if topic.startswith("/") else f"{self.namespace}/{topic}", message)

    def drive(self, v: float, w: float = 0.0) -> None:
        """Hold the stick at a twist (v [m/s], w [rad/s]) until told otherwise."""
        if self._stick is None:
            self._stick = _Stick()
            self._run.bus.add(
                self._stick, "script_stick", namespace=self.namespace, remap=dict(self.package.file.topics)
            )
        self._stick.hold(v, w)

    def navigate_to(self, x: float, y: float, yaw: float | None = None, *, frame: str = "map") -> GoalFuture:
        """Ask its navigator to bring it to a place; needs the node ``navigator``, a map and a localisation.

        Args:
            x: In the frame [m].
            y: In the frame [m].
            yaw: Heading there [rad]; None: straight on from where it truly is.
            frame: Of the place.

        Returns:
            What comes of it: ``done()``, ``succeeded``, ``result``, ``reason``, ``cancel()``.

        Raises:
            InputError: numbers that are not finite.
        """
        if self._asker is None:
            self._asker = _Asker()
            self._run.bus.add(self._asker, "script_goals", namespace=self.namespace)
        here = self.truth.pose.translation
        heading = math.atan2(y - float(here[1]), x - float(here[0])) if yaw is None else yaw
        return self._asker.ask(SE2(x, y, heading), f"{self.frame_prefix}{frame}")

    def remove(self) -> None:
        """Take the robot and its nodes out of the run."""
        if self._run.robots.get(self.name) is not self:
            raise InputError(f"robot {self.name} is not in the run any more")
        for node in [*reversed(list(self.nodes.values())), *([part for part in (self._stick, self._asker) if part])]:
            self._run.bus.remove(node)
        self.nodes.clear()
        self._stick = self._asker = None
        self._run.remove(self.name)


class _Asker(Node):
    """Sends goals, as somebody does who clicks on a map.   actions: navigate_to_pose"""

    def setup(self) -> None:
        self._action: Any = action.NavigateToPose
        self._client = self.action_client("navigate_to_pose", self._action)

    def ask(self, pose: SE2, frame: str) -> GoalFuture:
        return self._client.send(self._action.Goal(pose=pose_stamped_to_msg(pose, frame, self.now_ns)))


class _Stick(Node):
    """Repeats a twist, as a joystick does.   out: cmd_vel"""

    def setup(self) -> None:
        self._type: Any = message_type("geometry_msgs/msg/Twist")
        self._commands = self.publisher("cmd_vel", self._type)
        self._twist = (0.0, 0.0)
        self.timer(rate=_STICK_RATE, callback=self._send, immediate=True)

    def hold(self, v: float, w: float) -> None:
        self._twist = (float(v), float(w))

    def _send(self) -> None:
        message = self._type()
        message.linear.x, message.angular.z = self._twist
        self._commands.publish(message)
