"""What a node that follows trajectories tells about them: the whole plan, and how far on it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node
from roboyard.control.following import Follower
from roboyard.control.nodes.trajectory_messages import point_message
from roboyard.control.trajectories import JointSample, WayPoint
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg


class PlanReporter:
    """Publishes ``~plan`` and ``~controller_state`` in the name of a node.

    Args:
        node: Whose they are.
        joints: Those that it moves.
    """

    def __init__(self, node: Node, joints: Sequence[str]) -> None:
        self._node, self._joints = node, list(joints)
        self._plan = node.publisher("~plan", msg.JointTrajectory, latched=True)
        self._state = node.publisher("~controller_state", msg.JointTrajectoryControllerState)

    def tell_plan(self, points: Sequence[WayPoint]) -> None:
        """What is followed from now on; no points: nothing is."""
        self._plan.publish(
            msg.JointTrajectory(
                header=self._header(),
                joint_names=list(self._joints),
                points=[point_message(round(p.time * 1e9), p.position, p.velocity, p.acceleration) for p in points],
            )
        )

    def tell_state(
        self, follower: Follower | None, wanted: JointSample, actual: NDArray[np.float64], scaling: float
    ) -> None:
        """How far on the plan the last command was, what it was, and where the joints are."""
        place_ns = 0 if follower is None else round(follower.ahead * 1e9)
        self._state.publish(
            msg.JointTrajectoryControllerState(
                header=self._header(),
                joint_names=list(self._joints),
                reference=point_message(place_ns, wanted.position, wanted.velocity),
                feedback=point_message(place_ns, actual),
                error=point_message(place_ns, wanted.position - actual),
                speed_scaling_factor=scaling,
            )
        )

    def _header(self) -> Any:
        return msg.Header(stamp=time_to_msg(self._node.now_ns))
