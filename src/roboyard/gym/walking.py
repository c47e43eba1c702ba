"""Walking as told on many legs: the task, and the environment of hexapods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from roboyard.description import World
from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3
from roboyard.geometry.arrays import Array
from roboyard.gym.commands import Command, JointTargets
from roboyard.gym.env import RobotEnv
from roboyard.gym.robot import ReadRobot
from roboyard.gym.senses import Inertia, Joints, Sense, Touch, Upright, box
from roboyard.gym.task import Episode, Stage, Start, Task, Verdict, chosen

Twist3 = tuple[float, float, float]

FALLEN = -10.0
"""Worth of falling."""
LURCH = -0.05
"""Worth of actions that change by one from step to step, in the mean of the squares."""
_TILTED = 0.7
"""A body tilted by more has fallen [rad]."""
_SUNK = 1.0 / 3.0
"""So has one that is lower above its lowest foot than this share of the stance's height."""

_ROOM = 1.0
"""Options may be so much beyond what is drawn [m/s, rad/s]."""


class Walk(Task):
    """Walk as a twist says that is drawn for the episode, and do not fall.

    The robot is told the twist: ``wanted``, (3,) forward, to the left [m/s], turning [rad/s].  It begins in its stance.
    A step is worth exp(-(e/s)²), with e how far its velocity over the step is off the wanted one (turning at the
    feet's distance from the body's middle) and s the ``scale``, less 0.05 times the mean square of the actions' change.
    Falling is worth -10 and ends the episode: the body is tilted by more than 0.7 rad, or lower above its lowest foot
    than a third of its height in the stance.

    ``info``: ``pose`` (x, y, yaw), ``twist`` (3,) over the step, ``height`` [m] over the lowest foot, ``tilt`` [rad],
    ``fallen``.

    Args:
        low: Least twist that is drawn.
        high: Greatest.
        scale: Of the errors that count [m/s].
    """

    options = ("twist",)

    def __init__(self, low: Twist3 = (0.04, 0.0, -0.1), high: Twist3 = (0.1, 0.0, 0.1), *, scale: float = 0.05) -> None:
        if any(a > b for a, b in zip(low, high, strict=True)):
            raise InputError(f"twists from {low} to {high}", valid="the smaller one first")
        if not 0.0 < scale < math.inf:
            raise InputError(f"a scale of {scale} m/s", valid="above zero")
        self.low, self.high, self.scale = low, high, scale

    def spaces(self, robot: ReadRobot) -> Mapping[str, Box]:
        """The twist."""
        most = self._most()
        return {"wanted": box(-most, most, (3,))}

    def _most(self) -> Array:
        """(3,) what can be wanted at all: room for options beside what is drawn."""
        return np.maximum(np.abs(self.low), np.abs(self.high)) + _ROOM

    def start(self, robot: ReadRobot, rng: np.random.Generator, options: Mapping[str, Any]) -> Start:
        """In the stance, feet on the ground; draws the twist, or takes the one that is chosen."""
        drawn = tuple(float(value) for value in rng.uniform(self.low, self.high))
        legs = robot.legs
        T_model_body = robot.model.link(legs.body).T_model_link
        T_world_body = SE3(translation=(0.0, 0.0, -float(legs.stance_feet[:, 2].min())))
        stance = dict(zip(legs.joints, legs.stance_pose.ravel().tolist(), strict=True))
        twist = chosen(options, "twist", 3) or drawn
        if (np.abs(twist) > self._most()).any():
            raise InputError(
                f"{list(twist)}", location="option twist", valid=f"at most {self._most().tolist()} either way"
            )
        return Start(T_world_body @ T_model_body.inverse(), stance, twist)

    def begin(self, stage: Stage) -> Episode:
        """Tell the robot the twist."""
        return _Walk(self, stage)


class _Walk(Episode):
    def __init__(self, task: Walk, stage: Stage) -> None:
        self._task, self._stage, self._wanted = task, stage, np.array(stage.start.goal, dtype=np.float64)
        legs = stage.known.legs
        names = stage.robot.hardware.joint_names
        self._where = np.array([names.index(joint) for joint in legs.joints])
        arm = float(np.hypot(*legs.stance_feet[:, :2].T).mean())
        self._weights = np.array([1.0, 1.0, arm])
        self._pose = SE2.from_se3(stage.robot.truth.pose)
        self._action: Array | None = None

    def observe(self) -> Mapping[str, ArrayLike]:
        return {"wanted": self._wanted}

    def judge(self, action: Array) -> Verdict:
        pose = self._stage.robot.truth.pose
        before, self._pose = self._pose, SE2.from_se3(pose)
        twist = (before.inverse() @ self._pose).log() / self._stage.period
        last, self._action = self._action if self._action is not None else action, action
        height, tilt = self._height(pose), math.acos(max(-1.0, min(1.0, float(pose.rotation_matrix()[2, 2]))))
        fallen = tilt > _TILTED or height < _SUNK * self._stage.known.legs.stance_height
        error = float(np.linalg.norm(self._weights * (twist - self._wanted)))
        reward = math.exp(-((error / self._task.scale) ** 2)) + LURCH * float(np.mean((action - last) ** 2))
        info = {
            "pose": np.array([*self._pose.xy, self._pose.theta]), "twist": twist, "height": height, "tilt": tilt,
            "fallen": fallen,
        }  # fmt: skip
        return Verdict(FALLEN if fallen else reward, fallen, info)

    def _height(self, T_world_root: SE3) -> float:
        """Of the body over its lowest foot [m]."""
        legs, model = self._stage.known.legs, self._stage.known.model
        joints = self._stage.robot.hardware.read().position[self._where].reshape(-1, 3)
        root = self._stage.run.simulation.world.addresses(self._stage.robot.name).root
        T_world_body = T_world_root @ model.link(root).T_model_link.inverse() @ model.link(legs.body).T_model_link
        feet: Array = legs.foot_positions(joints) @ T_world_body.rotation_matrix().T
        return -float(feet[:, 2].min())


class Hexapod(RobotEnv):
    """A robot on legs learns to walk: its servos are told positions about the stance.

    For the Akrobat, whose 18 joints are named leg after leg:

    | | shape | |
    | --- | --- | --- |
    | action | (18,) | positions of the joints: -1 to 1 stand for 0.5 rad to either side of the stance |
    | `position` | (18,) | of the joints [rad] |
    | `velocity` | (18,) | of the joints [rad/s] |
    | `inertia` | (6,) | angular velocity [rad/s], acceleration with gravity's [m/s²] |
    | `up` | (3,) | the vertical, seen from the body |
    | `feet` | (6,) | 1 for feet that feel something |
    | `wanted` | (3,) | forward, to the left [m/s], turning [rad/s] |

    Rewards, ends and ``info`` are those of `Walk`.

    Args:
        robot: With legs, an inertial unit and feet that feel.
        world: As for `RobotEnv`.
        low: As for `Walk`.
        high: As there.
        scale: As there.
        command: How it is commanded; None: `JointTargets`.
        senses: Instead of these.
        nodes: As for `RobotEnv`: none that command the joints.
        period: As there [s].
        options: Further ones of `RobotEnv`.
    """

    def __init__(
        self,
        robot: str | Path = "akrobat",
        world: str | Path | World = "empty",
        *,
        low: Twist3 = (0.04, 0.0, -0.1),
        high: Twist3 = (0.1, 0.0, 0.1),
        scale: float = 0.05,
        command: Command | None = None,
        senses: Mapping[str, Sense] | None = None,
        nodes: tuple[str, ...] = ("joint_states",),
        period: float = 0.04,
        **options: Any,
    ) -> None:
        usual: dict[str, Sense] = {
            "position": Joints("position"), "velocity": Joints("velocity"), "inertia": Inertia(), "up": Upright(),
            "feet": Touch(),
        }  # fmt: skip
        super().__init__(
            Walk(low, high, scale=scale),
            robot=robot,
            world=world,
            command=JointTargets() if command is None else command,
            senses=usual if senses is None else senses,
            nodes=nodes,
            period=period,
            **options,
        )
