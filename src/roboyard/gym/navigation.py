"""Driving to a place past what stands about: the task, and the environment of the rover."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from roboyard.description import World
from roboyard.description.extent import footprint_polygon, to_world_pose
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.gym.commands import Command, Twist
from roboyard.gym.env import RobotEnv
from roboyard.gym.places import Draw, FreePlaces
from roboyard.gym.robot import ReadRobot
from roboyard.gym.senses import Motion, Scan, Sense, Topics, box
from roboyard.gym.task import Episode, Stage, Start, Task, Verdict, chosen
from roboyard.messages import msg
from roboyard.messages.convert.poses import pose_to_se2_unchecked
from roboyard.scenarios.world.free_space import top_down_map

_FAR = 100.0
"""Farther goals are told to be at this distance along each axis [m]."""
_SPARE = 0.15
"""Room beside the robot's outline where starts and goals are drawn [m]."""
ARRIVED, HIT, LATER = 10.0, -10.0, -0.01
"""Worth of arriving, of touching anything, and of each step."""


class Navigate(Task):
    """Drive to within ``radius`` of a goal, and touch nothing.

    The robot is told the goal from where it begins; on the way its odometry says where that is: ``goal``, (2,) ahead
    and to the left of it [m].  A step is worth the way that it came nearer [m], less 0.01; arriving 10, touching
    anything -10, and both end the episode.

    ``info``: ``pose`` (x, y, yaw) and ``goal`` (x, y) in the world, ``distance`` [m], ``success``, ``collided``.

    Args:
        draw: Gives start and goal from a random generator; None: free places of the world (see `FreePlaces`).
        apart: Least and greatest distance between those [m].
        radius: Of the goal [m].
        odometry: Topic of the robot's odometry.
    """

    options = ("start", "goal")

    def __init__(
        self,
        draw: Draw | None = None,
        *,
        apart: tuple[float, float] = (2.0, 6.0),
        radius: float = 0.3,
        odometry: str = "odom",
    ) -> None:
        if not 0.0 < radius < math.inf:
            raise InputError(f"a goal of radius {radius} m", valid="above zero")
        self.radius, self.odometry = radius, odometry
        self._draw, self._apart = draw, apart

    def prepare(self, world: World, robot: ReadRobot) -> None:
        """See where there is room."""
        if self._draw is None:
            corners = footprint_polygon(robot.config.footprint, robot.model)
            reach = max((math.hypot(x, y) for x, y in corners), default=0.0)
            self._draw = FreePlaces(top_down_map(world), reach + _SPARE, self._apart)

    def spaces(self, robot: ReadRobot) -> Mapping[str, Box]:
        """The goal, seen from the robot."""
        return {"goal": box(-_FAR, _FAR, (2,))}

    def topics(self, robot: ReadRobot) -> Topics:
        """Odometry."""
        return {self.odometry: msg.Odometry}

    def start(self, robot: ReadRobot, rng: np.random.Generator, options: Mapping[str, Any]) -> Start:
        """Draw start and goal, or take those that are chosen."""
        if self._draw is None:
            raise InputError("no places to draw from", valid="prepare() first")
        begin, goal = self._draw(rng)
        at = chosen(options, "start", 3)
        return Start(begin if at is None else SE2(*at), goal=chosen(options, "goal", 2) or goal)

    def begin(self, stage: Stage) -> Episode:
        """Tell the robot the goal, from where it stands."""
        stage.check_free()
        return _Drive(self, stage)


class _Drive(Episode):
    def __init__(self, task: Navigate, stage: Stage) -> None:
        self._task, self._stage, self._goal = task, stage, np.array(stage.start.goal, dtype=np.float64)
        T_world_start = SE2.from_se3(to_world_pose(stage.start.at, stage.known.model))
        self._goal_odom = self._odometry() @ (T_world_start.inverse() @ self._goal)
        self._distance = self._away(self._truth())

    def observe(self) -> Mapping[str, ArrayLike]:
        return {"goal": self._odometry().inverse() @ self._goal_odom}

    def judge(self, action: NDArray[np.float64]) -> Verdict:
        pose = self._truth()
        before, self._distance = self._distance, self._away(pose)
        collided, success = self._stage.touched, self._distance <= self._task.radius
        reward = before - self._distance + LATER + (HIT if collided else ARRIVED if success else 0.0)
        info = {
            "pose": np.array([pose.x, pose.y, pose.theta]),
            "goal": self._goal.copy(),
            "distance": self._distance,
            "success": success and not collided,
            "collided": collided,
        }
        return Verdict(reward, collided or success, info)

    def _odometry(self) -> SE2:
        return pose_to_se2_unchecked(self._stage.heard[self._task.odometry].pose.pose)

    def _truth(self) -> SE2:
        return SE2.from_se3(self._stage.robot.truth.pose)

    def _away(self, pose: SE2) -> float:
        return math.hypot(*(pose.xy - self._goal))


class RoverNavigation(RobotEnv):
    """A wheeled robot finds its way to a place by lidar and odometry.

    | | shape | |
    | --- | --- | --- |
    | action | (2,) | speed, turn rate: shares of the robot's own limits, for the rover 2 m/s and 2 rad/s |
    | `scan` | (36,) | nearest in each sector of the lidar, counterclockwise [m] |
    | `motion` | (3,) | forward, to the left [m/s], turning [rad/s] by odometry |
    | `goal` | (2,) | ahead, to the left [m] by odometry |

    Rewards, ends and ``info`` are those of `Navigate`.

    Args:
        robot: With a planar lidar, odometry and ``cmd_vel``.
        world: As for `RobotEnv`.
        draw: As for `Navigate`.
        apart: As there.
        radius: As there.
        command: How it is driven; None: `Twist`.
        senses: Instead of scan and motion.
        options: Further ones of `RobotEnv`.
    """

    def __init__(
        self,
        robot: str | Path = "rover",
        world: str | Path | World = "arena",
        *,
        draw: Draw | None = None,
        apart: tuple[float, float] = (2.0, 6.0),
        radius: float = 0.3,
        command: Command | None = None,
        senses: Mapping[str, Sense] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            Navigate(draw, apart=apart, radius=radius),
            robot=robot,
            world=world,
            command=Twist() if command is None else command,
            senses={"scan": Scan(), "motion": Motion()} if senses is None else senses,
            **options,
        )
