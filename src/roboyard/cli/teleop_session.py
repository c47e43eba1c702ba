"""Teleoperation of a live run: publishes the commands of a device as messages of an operator."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from roboyard.cli import terminal
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, RunError, UnknownNameError

if TYPE_CHECKING:
    from roboyard.bus.socket import RunConnection
    from roboyard.cli.teleop_devices import TeleopDevice
    from roboyard.control import PlanarTwist
    from roboyard.control.teleoperation import JointJogCommand

_POLL_PERIOD = 0.02
"""Maximum period of reading the device while no message arrives [wall s]."""
_HEARTBEAT_PERIOD = 0.02
"""Shortest time between two heartbeats [wall s]."""
_REFRESH_PERIOD = 0.1
_JOINT_TYPE = "metralabs_msgs/msg/IDAndFloat"
_TWIST_TYPE, _TWIST_STAMPED_TYPE = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"


@dataclass(frozen=True, slots=True)
class CommandTopics:
    """Topics of a robot's commands: the topic of twists and its type, and topics in the same namespace.

    Attributes:
        command: Topic of twists.
        type: Type of its messages.
        joints: Topics of its arm: joint positions, joint velocities, and joint targets; "" where there is none.
    """

    command: str
    type: str
    joints: tuple[str, str, str] = ("", "", "")

    def sibling_name(self, name: str) -> str:
        """Return the name of a topic or node in the namespace of the robot."""
        return f"{self.command.rpartition('/')[0]}/{name}"


def find_command_topics(graph: Mapping[str, Any], robot: str | None, topic: str | None) -> CommandTopics:
    """Find the command topics of a robot.

    Args:
        graph: Graph of the run.
        robot: Name of the robot; None: the main one.
        topic: Topic of twists; None: cmd_vel of the robot.

    Raises:
        UnknownNameError: There is no such robot, or the topic has no subscriber.
        InputError: There are several robots and none is the main one, or no robot can be driven.
    """
    twist_topics = {
        found["name"]: found["type"]
        for found in graph["topics"]
        if found["type"] in (_TWIST_TYPE, _TWIST_STAMPED_TYPE) and found["subscribers"]
    }
    if topic is not None:
        name = topic if topic.startswith("/") else f"/{topic}"
        if name not in twist_topics:
            raise UnknownNameError(
                f"no node subscribes to twists on {name}", valid=", ".join(twist_topics) or "none in this run"
            )
        return _with_joints(graph, name, twist_topics[name])
    cmd_vel_topics = [name for name in twist_topics if name.rpartition("/")[2] == "cmd_vel"]
    robots = {found["name"].split("/")[2] for found in graph["topics"] if found["name"].startswith("/truth/")}
    if robot is not None:
        robot_topic = f"/{robot}/cmd_vel"
        name = robot_topic if robot_topic in cmd_vel_topics else "/cmd_vel"
        if (name not in cmd_vel_topics) or (name != robot_topic and robot not in robots):
            raise UnknownNameError(
                f"no robot {robot!r} that can be driven", location="--robot", valid=", ".join(sorted(robots)) or "none"
            )
        return _with_joints(graph, name, twist_topics[name])
    if not cmd_vel_topics:
        raise InputError("no robot of this run can be driven", valid="a robot that subscribes to cmd_vel, or --topic")
    if "/cmd_vel" not in cmd_vel_topics and len(cmd_vel_topics) > 1:
        raise InputError("several robots can be driven", valid=f"--robot, one of: {', '.join(sorted(robots))}")
    name = "/cmd_vel" if "/cmd_vel" in cmd_vel_topics else cmd_vel_topics[0]
    return _with_joints(graph, name, twist_topics[name])


def _with_joints(graph: Mapping[str, Any], command: str, kind: str) -> CommandTopics:
    """Return the command topics, with those of an arm in the same namespace."""
    namespace = command.rpartition("/")[0] + "/"
    joint_topics = [
        found["name"]
        for found in graph["topics"]
        if found["type"] == _JOINT_TYPE and found["subscribers"] and found["name"].startswith(namespace)
    ]
    position, velocity = (
        next((name for name in joint_topics if name.endswith(one)), "") for one in ("position", "velocity")
    )
    targets = position.rpartition("/")[0] + "/joint_targets" if position else ""
    return CommandTopics(command, kind, (position, velocity, targets))


class TeleopSession:
    """Publishes the commands of a device until the run or the session ends.

    The session publishes the commanded twist at every message of the run's clock. When the command ends it publishes
    one zero twist and then none, so that other nodes can drive the robot. While the device is present it publishes a
    heartbeat (teleop/heartbeat) with the time of the run, which shows the robot that the link works.

    Args:
        connection: Connection to the run.
        command_topics: Topics of the robot.
        device: The device.
    """

    def __init__(self, connection: RunConnection, command_topics: CommandTopics, device: TeleopDevice) -> None:
        from roboyard.messages import msg

        self._connection, self._command_topics, self._device = connection, command_topics, device
        self._msg: Any = msg
        self._source = command_topics.sibling_name("teleop")
        self._clock_ns = 0
        self._last_twist: PlanarTwist | None = None
        self._joy: Any = None
        self._targets: list[float] = []
        self._is_moving_joint = False
        self._next_heartbeat = 0.0
        self._next_refresh = 0.0
        self._is_interactive = terminal.is_interactive()

    def run(self) -> None:
        """Run until the end; finally publish a zero twist.

        Raises:
            RunError: Another operator drives this robot already.
        """
        self._connection.reserve_node_name(self._source)
        self._connection.subscribe("/clock")
        if self._command_topics.joints[2]:
            self._connection.subscribe(self._command_topics.joints[2])
        try:
            with _signals_interrupt():
                while self._is_active():
                    for received in self._connection.messages(_POLL_PERIOD):
                        if received.topic == self._command_topics.joints[2]:
                            self._targets = received.message.position.tolist()
                        self._step(received.time_ns)
                        if not self._is_active():
                            break
                    self._step(self._clock_ns)
        except KeyboardInterrupt:
            pass
        except RunError:
            self._connection.has_ended = True
        finally:
            self._stop()

    def _is_active(self) -> bool:
        return not self._connection.has_ended and not self._device.is_finished

    def _step(self, clock_ns: int) -> None:
        now = wall_seconds()
        is_new_tick, self._clock_ns = clock_ns > self._clock_ns, max(clock_ns, self._clock_ns)
        twist = self._device.twist(now)
        if twist is not None and (is_new_tick or twist != self._last_twist):
            self._publish_twist(twist)
        elif twist is None and self._last_twist is not None:
            self._publish_twist(None)
        self._last_twist = twist
        self._command_joint(self._device.joint_command(), is_new_tick)
        joy = self._device.joy
        sends_heartbeat = is_new_tick and now >= self._next_heartbeat and self._device.is_connected
        if joy is not None and (sends_heartbeat or joy != self._joy):
            message = self._msg.Joy(header=self._header(), axes=joy[0], buttons=joy[1])
            self._connection.publish(self._command_topics.sibling_name("joy"), message, self._source)
        self._joy = joy
        if sends_heartbeat:
            self._next_heartbeat = now + _HEARTBEAT_PERIOD
            self._connection.publish(
                self._command_topics.sibling_name("teleop/heartbeat"), self._header(), self._source
            )
        if self._is_interactive and now >= self._next_refresh:
            self._next_refresh = now + _REFRESH_PERIOD
            self._print_state()

    def _command_joint(self, command: JointJogCommand | None, is_new_tick: bool) -> None:
        """Publish the command for a joint of the arm; a joint without a command stops."""
        position, velocity, _ = self._command_topics.joints
        if command is None or not position:
            self._is_moving_joint = False
            return
        has_target = command.joint <= len(self._targets)
        if command.position_change and has_target:
            self._targets[command.joint - 1] += command.position_change
            self._publish_joint(position, command.joint, self._targets[command.joint - 1])
        if command.speed is not None and velocity and (is_new_tick or not self._is_moving_joint):
            self._publish_joint(velocity, command.joint, command.speed)
            self._is_moving_joint = True

    def _publish_joint(self, topic: str, joint: int, value: float) -> None:
        self._connection.publish(topic, self._msg.IDAndFloat(id=joint, value=value), self._source)

    def _header(self) -> Any:
        from roboyard.messages.convert import make_header

        return make_header("", self._clock_ns)

    def _publish_twist(self, target: PlanarTwist | None, connection: RunConnection | None = None) -> None:
        vx, vy, wz = target or (0.0, 0.0, 0.0)
        twist = self._msg.Twist(linear=self._msg.Vector3(x=vx, y=vy), angular=self._msg.Vector3(z=wz))
        if self._command_topics.type == _TWIST_STAMPED_TYPE:
            twist = self._msg.TwistStamped(header=self._header(), twist=twist)
        (connection or self._connection).publish(self._command_topics.command, twist, self._source)

    def _stop(self) -> None:
        """Publish a zero twist on a second connection; the first may have been interrupted in the middle of a frame."""
        from roboyard.bus.socket import RunConnection

        if self._is_interactive:
            with suppress(OSError):  # the terminal was closed
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
        if not self._connection.has_ended:
            with suppress(RunError), RunConnection(self._connection.run) as other:
                self._publish_twist(None, other)
                other.graph()  # its response shows that the twist has arrived

    def _print_state(self) -> None:
        vx, vy, wz = self._last_twist or (0.0, 0.0, 0.0)
        lateral = f"  left {vy:+.2f} m/s" if vy else ""
        state = (
            f"forward {vx:+.2f} m/s{lateral}  turn {wz:+.2f} rad/s"
            if self._device.is_connected
            else "the gamepad is unplugged"
        )
        sys.stderr.write(f"\r\x1b[K{self._clock_ns * 1e-9:8.1f} s  {state}")
        sys.stderr.flush()


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Treat SIGTERM and a closed terminal as Ctrl-C: the robot stops, and the terminal is restored."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
