"""Arms by clicks: a pose of the tool is tried, planned, looked at, and followed; the gripper opens and closes.

Everything is asked of the robot's own move node (moveit_msgs), by inputs of the run as all steering is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.bus import Bus
from roboyard.bus.actions import endpoint
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.nodes.motion_messages import pose_constraints_to_msg
from roboyard.messages import action_type, msg, service_type, srv
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_msg
from roboyard.scenarios import Run
from roboyard.view.ghosts import moments_of
from roboyard.view.places import Places, row
from roboyard.view.sender import Sender
from roboyard.view.show import Reply
from roboyard.view.wire import ViewMessage, number, numbers, text, word

_MOVEIT = "moveit_msgs"
_SUCCESS, _COLLIDES = 1, -12
_SECONDS = 2.0
"""Planning time that a plan may take, which the move node takes for a number of states."""
Preview = Callable[[str, list[str], Array, Array], ViewMessage | None]
"""Draws a robot's joints at times (k,), their positions (k, n), as a ghost."""


def arms(run: Run, places: Places, body: Callable[[int], SE3]) -> dict[str, Any]:
    """What can be done with the arms of a run's robots, by robot; on the run's thread."""
    found = {}
    for name, robot in run.robots.items():
        space = robot.namespace
        if f"{space}/plan_kinematic_path" not in run.bus.services:
            continue
        group = robot.groups.group(None)
        ends = ("/gripper_cmd/_action/send_goal",)
        gripper = next((s for s in run.bus.services if s.startswith(f"{space}/") and s.endswith(ends)), "")
        prefix = f"{space.strip('/')}/" if space else ""
        try:
            at = row(places.place(f"{prefix}{group.tip}", body))
        except RoboyardError:
            continue
        found[name] = {
            "space": space, "tip": group.tip, "poses": list(group.poses), "at": at,
            "gripper": gripper.removesuffix("/_action/send_goal"),
        }  # fmt: skip
    return found


class ArmHand:
    """Tries, plans, follows, grips.

    Args:
        run: Whose arms.
        loop: Of the server.
        sender: Into the run.
        places: Where frames are; asked on the run's thread.
        preview: Draws ghosts; asked on the server's.
    """

    ops = frozenset({"ik", "plan", "execute", "halt", "grip"})

    def __init__(
        self,
        run: Run,
        loop: asyncio.AbstractEventLoop,
        sender: Sender,
        places: Callable[[], tuple[Places, Any] | None],
        preview: Preview,
    ) -> None:
        self._run, self._loop, self._sender, self._places, self._preview = run, loop, sender, places, preview
        self._bus: Bus = run.bus
        self._plans: dict[str, Any] = {}

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Do what the page says.

        Raises:
            InputError: the robot has no arm that can be moved so, or nothing is planned.
        """
        op, name = said["op"], word(said, "robot", 100)
        robot = self._run.robots.get(name)
        if robot is None:
            raise InputError(f"no robot {name!r}", valid=", ".join(self._run.robots))
        space = robot.namespace
        if op == "halt":
            self._halt(space, said, reply)
        elif op == "grip":
            self._grip(said, space, reply)
        elif op == "execute":
            if name not in self._plans:
                raise InputError("nothing is planned", valid="plan first")
            kind = action_type(f"{_MOVEIT}/action/ExecuteTrajectory")
            self._sender.send_goal(
                f"{space}/execute_trajectory", kind, kind.Goal(trajectory=self._plans.pop(name)), said, reply
            )
        else:
            if f"{space}/plan_kinematic_path" not in self._bus.services:
                raise InputError(f"{name} has no move node", valid="a robot with the node move_group")
            pose = None if op == "plan" and "named" in said else _pose(said)
            self._bus.inputs.run_on_executor(
                lambda: self._answering(said, reply, lambda: self._ask(said, name, pose, reply))
            )

    def _answering(self, said: dict[str, Any], reply: Reply, what: Callable[[], None]) -> None:
        """On the run's thread: an error is told and no more."""
        try:
            what()
        except RoboyardError as error:
            reply(ViewMessage(text("refused", what=str(error), to=said["op"], id=said.get("id"))))

    def _ask(self, said: dict[str, Any], name: str, pose: SE3 | None, reply: Reply) -> None:
        robot, found = self._run.robots[name], self._places()
        if found is None:
            raise InputError("the robot's frames are not known yet", valid="a moment later")
        group, space = robot.groups.group(None), robot.namespace
        frame = f"{space.strip('/')}/{robot.groups.root_link}" if space else robot.groups.root_link
        places, body = found
        there = None if pose is None else places.place(frame, body).inverse() @ pose
        if said["op"] == "ik" and there is not None:
            asked = msg.moveit_msgs.PositionIKRequest(avoid_collisions=True, ik_link_name=group.tip)
            asked.pose_stamped = pose_stamped_to_msg(there, frame, self._bus.now_ns)
            self._sender.call(
                f"{space}/compute_ik", f"{_MOVEIT}/srv/GetPositionIK",
                srv.moveit_msgs.GetPositionIK.Request(ik_request=asked), said, reply,
                told=lambda answer: self._tried(name, answer, said, reply),
            )  # fmt: skip
            return
        request = srv.moveit_msgs.GetMotionPlan.Request()
        if there is None:
            goal = msg.moveit_msgs.Constraints(name=word(said, "named", 100))
        else:
            goal = pose_constraints_to_msg(group.tip, pose_to_msg(there), frame)
        request.motion_plan_request.goal_constraints = [goal]
        request.motion_plan_request.allowed_planning_time = _SECONDS
        request.motion_plan_request.max_velocity_scaling_factor = number(said, "speed", 0.01, 1.0, 1.0)
        self._sender.call(
            f"{space}/plan_kinematic_path", f"{_MOVEIT}/srv/GetMotionPlan", request, said, reply,
            told=lambda answer: self._planned(name, answer.motion_plan_response, said, reply),
        )  # fmt: skip

    def _tried(self, name: str, answer: Any, said: dict[str, Any], reply: Reply) -> str:
        code = int(answer.error_code.val)
        state = "reachable" if code == _SUCCESS else "colliding" if code == _COLLIDES else "unreachable"
        if code == _SUCCESS:
            joints = answer.solution.joint_state
            position = np.array(joints.position, dtype=np.float64)[None]
            self._draw(name, [str(joint) for joint in joints.name], np.zeros(1), position, reply)
        return text("done", id=said.get("id"), to="ik", state=state, why=str(answer.error_code.message))

    def _planned(self, name: str, answer: Any, said: dict[str, Any], reply: Reply) -> str:
        code = int(answer.error_code.val)
        if code != _SUCCESS:
            why = str(answer.error_code.message) or f"error {code}"
            return text("refused", what=f"no plan: {why}", id=said.get("id"), to="plan")
        self._plans[name] = answer.trajectory
        joints, times, rows = moments_of(answer.trajectory.joint_trajectory)
        self._draw(name, joints, times, rows, reply)
        return text("done", id=said.get("id"), to="plan", duration=float(times[-1]))

    def _draw(self, name: str, joints: list[str], times: Array, rows: Array, reply: Reply) -> None:
        def draw() -> None:
            frame = self._preview(name, joints, times, rows)
            if frame is not None:
                reply(frame)

        self._loop.call_soon_threadsafe(draw)

    def _grip(self, said: dict[str, Any], space: str, reply: Reply) -> None:
        action = word(said, "gripper", 200)
        if not action.startswith(f"{space}/") or endpoint(action, "send_goal") not in self._bus.services:
            raise InputError(f"there is no gripper {action!r}", valid="one that the page names")
        kind = action_type("control_msgs/action/GripperCommand")
        goal = kind.Goal()
        goal.command.position = number(said, "position", -10.0, 10.0)
        goal.command.max_effort = number(said, "effort", 0.0, 1000.0, 0.0)
        self._sender.send_goal(action, kind, goal, said, reply)

    def _halt(self, space: str, said: dict[str, Any], reply: Reply) -> None:
        kind = "action_msgs/srv/CancelGoal"
        served = [
            service
            for name in ("execute_trajectory", "move_action")
            if (service := endpoint(f"{space}/{name}", "cancel_goal")) in self._bus.services
        ]
        if not served:
            raise InputError("nothing here moves an arm", valid="a robot with the node move_group")
        for service in served:
            self._sender.call(service, kind, service_type(kind).Request(), said, reply)


def _pose(said: dict[str, Any]) -> SE3:
    """Pose of the tool in the world: x, y, z, w, x, y, z."""
    values = numbers(said, "pose", 7)
    length = float(np.linalg.norm(values[3:]))
    if not 0.5 < length < 2.0:
        raise InputError(f"a quaternion of length {length:g}", valid="length 1")
    return SE3(np.array(values[3:]) / length, values[:3])
