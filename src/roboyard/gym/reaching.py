"""Bringing a tool to a place: the task, and the environment of arms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from roboyard.description import World
from roboyard.description.extent import PoseLike, to_world_pose
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.gym.commands import Command, JointSpeeds
from roboyard.gym.env import RobotEnv
from roboyard.gym.picture import View
from roboyard.gym.robot import ReadRobot
from roboyard.gym.senses import Joints, Sense, Topics, box
from roboyard.gym.task import Episode, Stage, Start, Task, Verdict, chosen
from roboyard.manipulation.collision import obstacles_from_world
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.messages import msg

ARRIVED, HIT, LATER, NEARER = 10.0, -10.0, -0.01, 10.0
"""Worth of arriving, of touching anything, of each step, and of a metre that the tool came nearer."""
_FAR = 10.0
"""Places are told to be at most this far off along each axis [m]."""
_SWAY = 0.1
"""Joints begin so far about their posture [rad or m]."""
_TRIES = 10_000


class Reach(Task):
    """Bring the tool to within ``radius`` of a goal, and touch nothing.

    Goals are where the tool is in postures drawn evenly from the joints' limits, in which the arm touches neither
    itself nor what stands in the world, and which are above ``floor``.  The robot begins in a posture about its pose
    ``home``, else its first one, else the middle of its joints' ranges.  It is told ``goal``, (3,), and by its joints
    knows ``tool``, (3,): both in the frame of the arm's base [m].

    A step is worth ten times the way that the tool came nearer [m], less 0.01; arriving 10, touching anything -10, and
    both end the episode.  ``info``: ``tool`` and ``goal`` (3,) in the world, ``distance`` [m], ``success``,
    ``collided``.

    Args:
        group: Which joints; empty: the robot's first group.
        at: Where the robot stands, as for `Run.add_robot`.
        radius: Of the goal [m].
        floor: Goals are at least so high in the world [m].
    """

    options = ("goal", "joints")

    def __init__(
        self, group: str = "", at: PoseLike = (0.0, 0.0, 0.0), *, radius: float = 0.03, floor: float = 0.05
    ) -> None:
        if not 0.0 < radius < math.inf:
            raise InputError(f"a goal of radius {radius} m", valid="above zero")
        self.group, self.at, self.radius, self.floor = group, at, radius, floor
        self._scene: PlanningScene | None = None

    def prepare(self, world: World, robot: ReadRobot) -> None:
        """See what stands about."""
        T_world_robot = to_world_pose(self.at, robot.model)
        obstacles = obstacles_from_world(world)
        self._scene = PlanningScene.create(
            robot.groups, self.group or None, T_world_robot=T_world_robot, obstacles=obstacles
        )

    def spaces(self, robot: ReadRobot) -> Mapping[str, Box]:
        """Goal and tool."""
        return {"goal": box(-_FAR, _FAR, (3,)), "tool": box(-_FAR, _FAR, (3,))}

    def topics(self, robot: ReadRobot) -> Topics:
        """Joint states, which tell where the tool is."""
        return {"joint_states": msg.JointState}

    @property
    def scene(self) -> PlanningScene:
        """The arm and what stands about. Raises InputError before `prepare`."""
        if self._scene is None:
            raise InputError("the scene is not known", valid="prepare() first")
        return self._scene

    def start(self, robot: ReadRobot, rng: np.random.Generator, options: Mapping[str, Any]) -> Start:
        """Draw a posture to begin in and a goal, or take those that are chosen."""
        scene, chain = self.scene, self.scene.chain
        posture = self._posture()
        drawn = self._free(lambda: np.clip(posture + rng.uniform(-_SWAY, _SWAY, chain.dof), chain.lower, chain.upper))
        high = self.floor - scene.T_world_base.z
        up = scene.T_world_base.rotation_matrix()[2]
        far = self._free(
            lambda: chain.sample_positions(rng, 1)[0], lambda q: float(up @ chain.forward(q)[:3, 3]) >= high
        )
        goal = tuple(chain.forward(far)[:3, 3].tolist())
        q = chosen(options, "joints", chain.dof) or tuple(drawn.tolist())
        if not chain.is_within_limits(q) or not scene.is_free(q):
            raise InputError(f"{list(q)}", location="option joints", valid="within limits, and touching nothing")
        return Start(self.at, dict(zip(chain.joints, q, strict=True)), chosen(options, "goal", 3) or goal)

    def begin(self, stage: Stage) -> Episode:
        """Tell the robot the goal."""
        stage.check_free()
        return _Reach(self, stage)

    def _posture(self) -> Array:
        group, chain = self.scene.group, self.scene.chain
        poses = group.poses
        if poses:
            return np.array(poses.get("home", next(iter(poses.values()))), dtype=np.float64)
        low, high = np.maximum(chain.lower, -math.pi), np.minimum(chain.upper, math.pi)
        return 0.5 * (low + high)

    def _free(self, draw: Any, fits: Any = lambda q: True) -> Array:
        for _ in range(_TRIES):
            q: Array = draw()
            if fits(q) and self.scene.is_free(q):
                return q
        raise InputError(
            "no posture was found that touches nothing", location=self.scene.chain.robot, valid="more room"
        )


class _Reach(Episode):
    def __init__(self, task: Reach, stage: Stage) -> None:
        self._task, self._stage, self._chain = task, stage, task.scene.chain
        self._goal_base = np.array(stage.start.goal, dtype=np.float64)
        self._goal = task.scene.T_world_base @ self._goal_base
        self._distance = self._away()

    def observe(self) -> Mapping[str, ArrayLike]:
        states = self._stage.heard["joint_states"]
        at = dict(zip(states.name, states.position.tolist(), strict=True))
        q = np.array([at[joint] for joint in self._chain.joints])
        return {"goal": self._goal_base, "tool": self._chain.forward(q)[:3, 3]}

    def judge(self, action: Array) -> Verdict:
        before, self._distance = self._distance, self._away()
        collided, success = self._stage.touched, self._distance <= self._task.radius
        reward = NEARER * (before - self._distance) + LATER + (HIT if collided else ARRIVED if success else 0.0)
        info = {
            "tool": self._tool(), "goal": self._goal.copy(), "distance": self._distance,
            "success": success and not collided, "collided": collided,
        }  # fmt: skip
        return Verdict(reward, collided or success, info)

    def _tool(self) -> Array:
        """Where it truly is in the world (3,) [m]."""
        _, T_world_tool = self._stage.robot.arm_truth.tip_poses(self._task.scene.group.name)
        return np.array(T_world_tool.translation)

    def _away(self) -> float:
        return float(np.linalg.norm(self._tool() - self._goal))


class ArmReach(RobotEnv):
    """An arm learns to bring its tool to places: its joints are told speeds.

    For the iisy, of six joints:

    | | shape | |
    | --- | --- | --- |
    | action | (6,) | speeds of the joints: 1 stands for half of what each can do |
    | `position` | (6,) | of the joints [rad] |
    | `velocity` | (6,) | of the joints [rad/s] |
    | `goal` | (3,) | in the frame of the arm's base [m] |
    | `tool` | (3,) | in that frame, by the joints [m] |

    Rewards, ends and ``info`` are those of `Reach`.

    Args:
        robot: With a group of joints.
        world: As for `RobotEnv`.
        group: As for `Reach`.
        at: As there.
        radius: As there.
        floor: As there.
        command: How it is commanded; None: `JointSpeeds`.
        senses: Instead of these.
        nodes: As for `RobotEnv`: none that command the group's joints.
        view: As there.
        options: Further ones of `RobotEnv`.
    """

    def __init__(
        self,
        robot: str | Path = "iisy",
        world: str | Path | World = "empty",
        *,
        group: str = "",
        at: PoseLike = (0.0, 0.0, 0.0),
        radius: float = 0.03,
        floor: float = 0.05,
        command: Command | None = None,
        senses: Mapping[str, Sense] | None = None,
        nodes: tuple[str, ...] = ("joint_states",),
        view: View = "overview",
        **options: Any,
    ) -> None:
        usual: dict[str, Sense] = {
            "position": Joints("position", group=group), "velocity": Joints("velocity", group=group),
        }  # fmt: skip
        super().__init__(
            Reach(group, at, radius=radius, floor=floor),
            robot=robot,
            world=world,
            command=JointSpeeds(group) if command is None else command,
            senses=usual if senses is None else senses,
            nodes=nodes,
            fixed=True,
            view=view,
            **options,
        )
