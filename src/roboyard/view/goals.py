"""Goals of robots that move about, by clicks: a pose to go to, where it is at the start, points one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.bus import Bus
from roboyard.bus.actions import endpoint
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import action_type, msg, service_type
from roboyard.messages.convert import make_header, pose_stamped_to_msg, pose_to_msg
from roboyard.view.abilities import heard
from roboyard.view.places import Places
from roboyard.view.sender import Sender
from roboyard.view.show import Reply
from roboyard.view.wire import ViewMessage, numbers, text, word

_MOST_POINTS = 200
_SPREAD = (0.25, 0.25, math.radians(15.0))
"""How sure a click says where a robot is: standard deviations of x, y [m] and yaw [rad]."""
ToFrame = Callable[[str], SE2 | None]


class GoalHand:
    """Sends robots places.

    Args:
        bus: Of the run.
        sender: Into it.
        places: Where frames are; asked on the run's thread.
    """

    ops = frozenset({"goal", "initial", "follow", "cancel"})

    def __init__(self, bus: Bus, sender: Sender, places: Callable[[], tuple[Places, Any] | None]) -> None:
        self._bus, self._sender, self._places = bus, sender, places

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Send what was clicked.

        Raises:
            InputError: the robot takes no such goals, or what is said makes no sense.
        """
        space, op = word(said, "space", 100), said["op"]
        if op == "cancel":
            kind = "action_msgs/srv/CancelGoal"
            for name in ("navigate_to_pose", "follow_waypoints"):
                service = endpoint(f"{space}/{name}", "cancel_goal")
                if service in self._bus.services:
                    self._sender.call(service, kind, service_type(kind).Request(), said, reply)
            return
        rows = said.get("poses")
        if not isinstance(rows, list) or not 1 <= len(rows) <= (_MOST_POINTS if op == "follow" else 1):
            raise InputError(f"'poses' of {op!r}", valid="[[x, y, yaw], …] in the world")
        poses = [SE2(*numbers({"op": op, "pose": row}, "pose", 3)) for row in rows]
        self._check(op, space)

        def send() -> None:
            """On the run's thread, where frames are known."""
            try:
                self._send(op, space, poses, said, reply)
            except RoboyardError as error:
                reply(ViewMessage(text("refused", what=str(error), to=op, id=said.get("id"))))

        self._bus.inputs.run_on_executor(send)

    def _check(self, op: str, space: str) -> None:
        if op == "follow":
            if endpoint(f"{space}/follow_waypoints", "send_goal") not in self._bus.services:
                raise InputError(f"nobody follows way points in {space or '/'}", valid="a robot with a navigator")
        elif not heard(self._bus, self._topic(op, space)):
            raise InputError(f"nobody listens to {self._topic(op, space)}", valid="a robot with a navigator")

    def _topic(self, op: str, space: str) -> str:
        return f"{space}/{'goal_pose' if op == 'goal' else 'initialpose'}"

    def _send(self, op: str, space: str, poses: list[SE2], said: dict[str, Any], reply: Reply) -> None:
        found = self._places()
        if found is None:
            raise InputError("the robot's frames are not known yet", valid="a moment later")
        places, body = found
        prefix = f"{space.strip('/')}/" if space.strip("/") else ""
        places.look()
        frame = next((name for name in (f"{prefix}map", f"{prefix}odom") if name in places.frames()), None)
        if frame is None:
            raise InputError(f"the robot knows neither {prefix}map nor {prefix}odom", valid="a robot that has odometry")
        T_frame_world = SE2.from_se3(places.place(frame, body)).inverse()
        there = [T_frame_world @ pose for pose in poses]
        now_ns = self._bus.now_ns
        if op == "follow":
            self._follow(space, [pose_stamped_to_msg(pose, frame, now_ns) for pose in there], said, reply)
            return
        if op == "goal":
            message = pose_stamped_to_msg(there[0], frame, now_ns)
        else:
            covariance = np.zeros(36)
            covariance[[0, 7, 35]] = np.square(_SPREAD)
            uncertain = msg.PoseWithCovariance(pose=pose_to_msg(there[0]), covariance=covariance)
            message = msg.PoseWithCovarianceStamped(header=make_header(frame, now_ns), pose=uncertain)
        self._sender.publish(self._topic(op, space), message)
        reply(ViewMessage(text("done", id=said.get("id"), to=op)))

    def _follow(self, space: str, poses: list[Any], said: dict[str, Any], reply: Reply) -> None:
        kind = action_type("nav2_msgs/action/FollowWaypoints")
        self._sender.send_goal(f"{space}/follow_waypoints", kind, kind.Goal(poses=poses), said, reply)
