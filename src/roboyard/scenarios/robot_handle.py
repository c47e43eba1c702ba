"""A robot in a run: its nodes, its truth, and a hand on its stick."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from roboyard.bus import GoalFuture, Node
from roboyard.control.limits import JointRates
from roboyard.control.owners import JointOwners
from roboyard.description import LidarSpec, Model
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.hardware import Hardware
from roboyard.messages import action, message_type
from roboyard.messages.convert import pose_stamped
from roboyard.scenarios.metrics import RobotTopics
from roboyard.scenarios.metrics.walking import Legged
from roboyard.scenarios.node_factory import make_node
from roboyard.scenarios.offers import Offers
from roboyard.scenarios.robot_groups import groups_of, rates_of
from roboyard.scenarios.robot_legs import legs_of
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.scenarios.size import outline
from roboyard.scenarios.true_arm import TrueArm
from roboyard.walking.walker import Walker

if TYPE_CHECKING:
    from roboyard.manipulation import Groups
    from roboyard.scenarios.run import Run
    from roboyard.simulation import Truth

_STICK_RATE = 20.0
_SCAN_HEIGHT = 0.25
_BASE_FRAMES = ("base_frame", "base_frame_id", "base_link_frame")
"""Parameters that name the robot's own frame, after the conventions of ROS's packages."""


class RobotHandle:
    """One robot of a run; made by ``Run.add``.

    Attributes:
        name: In the run.
        namespace: "" or "/name".
        model: Its description.
        package: What its kind offers.
        nodes: Those that are up, by name.
        topics: Where its truth, odometry and commands are.
    """

    def __init__(self, run: Run, name: str, namespace: str, model: Model, package: RobotPackage) -> None:
        self._run = run
        self.name = name
        self.namespace = namespace
        self.model = model
        self.package = package
        self.nodes: dict[str, Node] = {}
        self.topics = RobotTopics.of(name, namespace, package.file.topics)
        self._owners = JointOwners()
        self._stick: _Stick | None = None
        self._asker: _Asker | None = None

    @property
    def frame_prefix(self) -> str:
        """What its frame ids begin with: "" in the root namespace, else "name/"."""
        return f"{self.namespace.strip('/')}/" if self.namespace else ""

    @property
    def hardware(self) -> Hardware:
        """Its joints."""
        return self._run.simulation.hardware(self.name)

    @property
    def truth(self) -> Truth:
        """Where it really is; for judging, never for the robot itself."""
        return self._run.simulation.truth(self.name)

    def bring_up(self, *names: str) -> RobotHandle:
        """Start nodes that the robot's package offers; those that are up already stay as they are.

        Raises:
            UnknownNameError: it offers no such node, or the node's class is not there.
            ConfigError: a parameter or resource is not right, or a node belongs between two that are up already.
        """
        before, links = self.package.links(self.nodes), self.package.links({*self.nodes, *names})
        late = next((name for name in before if before[name] != links[name]), None)
        if late is not None:
            raise ConfigError(
                f"'{late}' hands commands on already, and cannot pass them to a node that comes later",
                where=f"robot {self.name}",
                valid=f"bring up together: {', '.join(links)}",
            )
        for name in names:
            if name in self.nodes:
                continue
            spec = self.package.node(name)
            self.add_node(
                spec.use, name, parameters=spec.parameters, remap={**links.get(name, {}), **spec.remap},
                where=f"{self.package.source}, nodes.{name}",
            )  # fmt: skip
        return self

    def add_node(
        self,
        use: str | Node,
        name: str,
        *,
        parameters: dict[str, Any] | None = None,
        remap: dict[str, str] | None = None,
        namespace: str | None = None,
        where: str = "",
    ) -> Node:
        """Start a node in the robot's namespace.

        Args:
            use: A node, or a registered name, ``module:Class`` or ``file.py:Class``; then it gets the robot's
                resources (``hardware``, ``description``) as far as it declares them.
            name: On the bus.
            parameters: Of a node that is made here.
            remap: Other names of topics and services, beside those of the robot's package.
            namespace: Instead of the robot's.
            where: Its place in a file, for errors.
        """
        node = (
            use
            if isinstance(use, Node)
            else make_node(
                use, parameters or {}, self.resources(),
                usual=dict.fromkeys(_BASE_FRAMES, self.package.file.base_frame),
                base=self.package.source.parent, where=where,
            )
        )  # fmt: skip
        self._run.bus.add(
            node, name,
            namespace=self.namespace if namespace is None else namespace,
            remap={**self.package.file.topics, **(remap or {})},
            frame_prefix=self.frame_prefix,
        )  # fmt: skip
        self.nodes[name] = node
        return node

    @property
    def outline(self) -> tuple[tuple[float, float], ...]:
        """Corners of its outline on the ground [m], seen from its base frame."""
        return outline(self.package.file.footprint, self.model)

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
        return groups_of(self.package, self.model)

    def resources(self) -> Mapping[str, Any]:
        """What its nodes may be handed, by name."""
        base = self._run.simulation.base(self.name)
        found = {"hardware": self.hardware, "description": self.model, "truth_topic": self.topics.truth,
                 "owners": self._owners, "rates": self._rates,
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

    @cached_property
    def _rates(self) -> JointRates:
        return rates_of(self.package, self.model)

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
        return self._client.send(self._action.Goal(pose=pose_stamped(pose, frame, self.now_ns)))


class _Stick(Node):
    """Repeats a twist, as a joystick does.   out: cmd_vel"""

    def setup(self) -> None:
        self._type: Any = message_type("geometry_msgs/msg/Twist")
        self._commands = self.publisher("cmd_vel", self._type)
        self._twist = (0.0, 0.0)
        self.timer(rate=_STICK_RATE, callback=self._send, start=True)

    def hold(self, v: float, w: float) -> None:
        self._twist = (float(v), float(w))

    def _send(self) -> None:
        message = self._type()
        message.linear.x, message.angular.z = self._twist
        self._commands.publish(message)
