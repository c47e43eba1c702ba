"""Planned motions of arms as ghosts: where a robot's bodies would be at some moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from roboyard.errors import RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.nodes.motion_messages import sample_trajectory_msg
from roboyard.physics.compiled_world import SCOPE_SEPARATOR, scoped_name
from roboyard.view.scenery import Scenery
from roboyard.view.wire import ViewMessage, packed

PLANNED = "moveit_msgs/msg/DisplayTrajectory"
_MOST_MOMENTS = 48


def moments_of(trajectory: Any) -> tuple[list[str], Array, Array]:
    """Joints, times (k,) [s] and positions (k, n) of a trajectory_msgs/JointTrajectory; at most 48 moments.

    Raises:
        RoboyardError: it is none.
    """
    names = [str(name) for name in trajectory.joint_names]
    times, rows = sample_trajectory_msg(trajectory, names)
    chosen = np.unique(np.linspace(0, len(times) - 1, min(_MOST_MOMENTS, len(times))).astype(int))
    return names, times[chosen], rows[chosen]


class Ghosts:
    """Draws joints as bodies.

    Args:
        model: Of the scene.
        scenery: What pages were told of it.
    """

    def __init__(self, model: mujoco.MjModel, scenery: Scenery) -> None:
        self._model, self._scenery = model, scenery
        self._data = mujoco.MjData(model)

    def frame(
        self, robot: str, joints: Sequence[str], times: Array, rows: Array, state: Array, topic: str = ""
    ) -> ViewMessage | None:
        """The frame of a ghost; None where the robot has no such joints.

        Args:
            robot: Its model.
            joints: n of its joints.
            times: (k,) [s].
            rows: (k, n) positions of these joints.
            state: Positions of all joints now.
            topic: That tells it; "" if it is an answer.
        """
        kinds = mujoco.mjtObj.mjOBJ_JOINT.value
        numbers = [mujoco.mj_name2id(self._model, kinds, scoped_name(robot, joint)) for joint in joints]
        if not numbers or min(numbers) < 0 or len(state) != self._model.nq:
            return None
        addresses = self._model.jnt_qposadr[numbers]
        chosen = [
            index
            for index, body in enumerate(self._scenery.bodies.tolist())
            if self._model.body(body).name.split(SCOPE_SEPARATOR)[0] == robot
        ]
        bodies = self._scenery.bodies[chosen]
        poses = np.empty((len(rows), len(bodies), 7), np.float32)
        for index, row in enumerate(rows):
            self._data.qpos[:] = state
            self._data.qpos[addresses] = row
            mujoco.mj_kinematics(self._model, self._data)
            poses[index, :, :3], poses[index, :, 3:] = self._data.xpos[bodies], self._data.xquat[bodies]
        head = {
            "op": "ghost", "robot": robot, "number": self._scenery.number, "times": [float(time) for time in times],
            "bodies": chosen, "topic": topic,
        }  # fmt: skip
        return ViewMessage(packed(head, [poses]), topic and f"ghost {topic}", topic)

    def of_message(self, robots: dict[str, str], message: Any, state: Array, topic: str) -> ViewMessage | None:
        """The ghost of a moveit_msgs/DisplayTrajectory.

        Args:
            robots: Namespace of each robot.
            message: Itself.
            state: Positions of all joints now.
            topic: That told it.
        """
        space = topic.rpartition("/")[0]
        robot = next((name for name, own in robots.items() if own == space), None)
        if robot is None or not message.trajectory:
            return None
        try:
            joints, times, rows = moments_of(message.trajectory[-1].joint_trajectory)
        except RoboyardError:
            return None
        return self.frame(robot, joints, times, rows, state, topic)
