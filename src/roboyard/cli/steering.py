"""Steers a robot of a live run from outside: what a hand wants enters the run as an operator's messages."""

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
    from roboyard.cli.hands import Hand
    from roboyard.control import PlanarTwist
    from roboyard.control.teleoperation import JointWish

_TICK = 0.02
"""How often the hand is looked at, if not even the run says anything [wall s]."""
_BEAT = 0.02
"""Shortest time between two heartbeats [wall s]."""
_REDRAW = 0.1
_JOINT = "metralabs_msgs/msg/IDAndFloat"
_TWIST, _STAMPED = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"


@dataclass(frozen=True, slots=True)
class Reins:
    """Where a robot listens: the topic of wanted twists and its type; the rest lies beside it.

    Attributes:
        command: Topic.
        type: Of its messages.
        joints: Topics of its arm's joints: positions, velocities, and what they go to; "" where there is none.
    """

    command: str
    type: str
    joints: tuple[str, str, str] = ("", "", "")

    def beside(self, name: str) -> str:
        """A topic, or the operator's node, in the robot's namespace."""
        return f"{self.command.rpartition('/')[0]}/{name}"


def find_reins(graph: Mapping[str, Any], robot: str | None, topic: str | None) -> Reins:
    """Where to send to.

    Args:
        graph: The run's.
        robot: Name of the robot; None: the main one.
        topic: Of its wanted twists, if it is not cmd_vel.

    Raises:
        UnknownNameError: no such robot, or nobody listens on the topic.
        InputError: there are several robots, and none is the main one; or none that can be driven.
    """
    heard = {
        found["name"]: found["type"]
        for found in graph["topics"]
        if found["type"] in (_TWIST, _STAMPED) and found["subscribers"]
    }
    if topic is not None:
        name = topic if topic.startswith("/") else f"/{topic}"
        if name not in heard:
            raise UnknownNameError(f"nobody takes twists on {name}", valid=", ".join(heard) or "none in this run")
        return _with_joints(graph, name, heard[name])
    drives = [name for name in heard if name.rpartition("/")[2] == "cmd_vel"]
    robots = {found["name"].split("/")[2] for found in graph["topics"] if found["name"].startswith("/truth/")}
    if robot is not None:
        own = f"/{robot}/cmd_vel"
        name = own if own in drives else "/cmd_vel"
        if (name not in drives) or (name != own and robot not in robots):
            raise UnknownNameError(
                f"no robot {robot!r} that can be driven", location="--robot", valid=", ".join(sorted(robots)) or "none"
            )
        return _with_joints(graph, name, heard[name])
    if not drives:
        raise InputError("nothing in this run can be driven", valid="a robot that listens to cmd_vel, or --topic")
    if "/cmd_vel" not in drives and len(drives) > 1:
        raise InputError("several robots can be driven", valid=f"--robot, one of: {', '.join(sorted(robots))}")
    name = "/cmd_vel" if "/cmd_vel" in drives else drives[0]
    return _with_joints(graph, name, heard[name])


def _with_joints(graph: Mapping[str, Any], command: str, kind: str) -> Reins:
    """The reins, with the topics of an arm in the same namespace."""
    space = command.rpartition("/")[0] + "/"
    taken = [
        found["name"]
        for found in graph["topics"]
        if found["type"] == _JOINT and found["subscribers"] and found["name"].startswith(space)
    ]
    position, velocity = (next((name for name in taken if name.endswith(one)), "") for one in ("position", "velocity"))
    targets = position.rpartition("/")[0] + "/joint_targets" if position else ""
    return Reins(command, kind, (position, velocity, targets))


class Steering:
    """Sends what a hand wants until the run ends or nobody wants to drive any more.

    While it wants something the twist is sent at every tick of the run's clock; when it lets go, one zero twist, and
    then none, so that the robot may do something by itself.  A heartbeat (teleop/heartbeat) with the run's time goes on
    as long as there is a hand: that is what tells the robot that the link holds.

    Args:
        connection: To the run.
        reins: Where to send to.
        hand: What wants.
    """

    def __init__(self, connection: RunConnection, reins: Reins, hand: Hand) -> None:
        from roboyard.messages import msg

        self._connection, self._reins, self._hand = connection, reins, hand
        self._msg: Any = msg
        self._source = reins.beside("teleop")
        self._clock_ns = 0
        self._wanted: PlanarTwist | None = None
        self._joy: Any = None
        self._targets: list[float] = []
        self._moved = False
        self._beat_at = 0.0
        self._draw_at = 0.0
        self._drawn = terminal.interactive()

    def drive(self) -> None:
        """Until the end, however it comes; the robot is told to stop at last.

        Raises:
            RunError: another operator steers this robot already.
        """
        self._connection.reserve_node_name(self._source)
        self._connection.subscribe("/clock")
        if self._reins.joints[2]:
            self._connection.subscribe(self._reins.joints[2])
        try:
            with _ended_by_signals():
                while self._goes_on():
                    for heard in self._connection.messages(_TICK):
                        if heard.topic == self._reins.joints[2]:
                            self._targets = heard.message.position.tolist()
                        self._step(heard.time_ns)
                        if not self._goes_on():
                            break
                    self._step(self._clock_ns)
        except KeyboardInterrupt:
            pass
        except RunError:
            self._connection.has_ended = True
        finally:
            self._stop()

    def _goes_on(self) -> bool:
        return not self._connection.has_ended and not self._hand.over

    def _step(self, clock_ns: int) -> None:
        now = wall_seconds()
        ticked, self._clock_ns = clock_ns > self._clock_ns, max(clock_ns, self._clock_ns)
        wanted = self._hand.twist(now)
        if wanted is not None and (ticked or wanted != self._wanted):
            self._send(wanted)
        elif wanted is None and self._wanted is not None:
            self._send(None)
        self._wanted = wanted
        self._move(self._hand.wish(), ticked)
        joy = self._hand.joy
        beats = ticked and now >= self._beat_at and self._hand.present
        if joy is not None and (beats or joy != self._joy):
            message = self._msg.Joy(header=self._header(), axes=joy[0], buttons=joy[1])
            self._connection.publish(self._reins.beside("joy"), message, self._source)
        self._joy = joy
        if beats:
            self._beat_at = now + _BEAT
            self._connection.publish(self._reins.beside("teleop/heartbeat"), self._header(), self._source)
        if self._drawn and now >= self._draw_at:
            self._draw_at = now + _REDRAW
            self._draw()

    def _move(self, wish: JointWish | None, ticked: bool) -> None:
        """Tell an arm's joint what the hand wants of it; one that the hand lets go of stops."""
        position, velocity, _ = self._reins.joints
        if wish is None or not position:
            self._moved = False
            return
        known = wish.joint <= len(self._targets)
        if wish.steps and known:
            self._targets[wish.joint - 1] += wish.steps
            self._tell_joint(position, wish.joint, self._targets[wish.joint - 1])
        if wish.speed is not None and velocity and (ticked or not self._moved):
            self._tell_joint(velocity, wish.joint, wish.speed)
            self._moved = True

    def _tell_joint(self, topic: str, joint: int, value: float) -> None:
        self._connection.publish(topic, self._msg.IDAndFloat(id=joint, value=value), self._source)

    def _header(self) -> Any:
        from roboyard.messages.convert import make_header

        return make_header("", self._clock_ns)

    def _send(self, wanted: PlanarTwist | None, connection: RunConnection | None = None) -> None:
        vx, vy, wz = wanted or (0.0, 0.0, 0.0)
        twist = self._msg.Twist(linear=self._msg.Vector3(x=vx, y=vy), angular=self._msg.Vector3(z=wz))
        if self._reins.type == _STAMPED:
            twist = self._msg.TwistStamped(header=self._header(), twist=twist)
        (connection or self._connection).publish(self._reins.command, twist, self._source)

    def _stop(self) -> None:
        """On a connection of its own: the other one may have been interrupted in the middle of a frame."""
        from roboyard.bus.socket import RunConnection

        if self._drawn:
            with suppress(OSError):  # the terminal was closed
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
        if not self._connection.has_ended:
            with suppress(RunError), RunConnection(self._connection.run) as other:
                self._send(None, other)
                other.graph()  # its answer shows that the twist has arrived

    def _draw(self) -> None:
        vx, vy, wz = self._wanted or (0.0, 0.0, 0.0)
        aside = f"  left {vy:+.2f} m/s" if vy else ""
        what = f"forward {vx:+.2f} m/s{aside}  turn {wz:+.2f} rad/s" if self._hand.present else "the gamepad is gone"
        sys.stderr.write(f"\r\x1b[K{self._clock_ns * 1e-9:8.1f} s  {what}")
        sys.stderr.flush()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A terminal that is closed, or a kind kill, ends it as Ctrl-C does: the robot stops, the terminal is restored."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
