"""The camera that follows a robot, as far away as the robot is large."""

from __future__ import annotations

import mujoco

from roboyard.geometry import SE3
from roboyard.simulation.render import Camera, ChaseCamera, reach_of, sight_through


class Chase:
    """Follows a robot through takes and states.

    Args:
        robot: Its model's name; None: there is nothing to follow.
    """

    def __init__(self, robot: str | None) -> None:
        self.robot = robot
        self.camera: ChaseCamera | None = None

    def follow(self, model: mujoco.MjModel, data: mujoco.MjData, body: int, time: float) -> Camera:
        """The camera at a time [s], with ``body`` the robot's root in the compiled model."""
        if self.camera is None:
            size = reach_of(model, data, body)
            distance = min(max(5.5 * size, 0.9), 8.0)
            self.camera = ChaseCamera(distance=distance, height=0.55 * distance, lead=0.2 * distance)
        return self.camera.update(SE3(data.xquat[body], data.xpos[body]), time, sight_through(model, data))
