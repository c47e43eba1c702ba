"""`RobotEnv`: any robot in any world as an environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import ArrayLike, NDArray

from roboyard.bringup import catalog
from roboyard.description import World, load_world
from roboyard.description.extent import to_world_pose
from roboyard.errors import ConfigError, InputError, RunError
from roboyard.gym.agent import NAME, AgentNode
from roboyard.gym.commands import Command
from roboyard.gym.picture import Onlooker, View
from roboyard.gym.robot import ReadRobot
from roboyard.gym.senses import Array, Sense, Topics, box, held
from roboyard.gym.task import Episode, Info, Stage, Task
from roboyard.scenarios.run import Run

Observation = dict[str, Array]

_PATIENCE = 5.0
"""So long may sensors be silent at first [s of simulated time]."""


class RobotEnv(gymnasium.Env[Any, Any]):
    """A run of a robot, cut into steps: an action, ``period`` of simulated time, an observation.

    An observation is a dictionary of arrays: what the ``senses`` say, in SI units, and the task's own entries.  An
    action is an array of shares between -1 and 1 of what the ``command`` can do; what is beyond is cut, as the robot
    itself would.  Rewards and ends are by ground truth, which ``info`` holds; observations never are.

    The same seed and actions give the same episode, bit for bit, in whatever process.  ``reset`` without a seed goes on
    drawing from the last one.

    Args:
        task: What is to be done.
        robot: Its name, or a path to .yaml, .urdf, .xacro or .sdf.
        command: How it is commanded.
        senses: What it perceives, by name.
        world: Its name, a path to .sdf, .world or .xml, or a ``World``.
        nodes: Those of the robot's that are up: "default", "all", "none", or names.
        arguments: For the description's xacro.
        fixed: Bolt it down where it is put.
        period: Between two actions, of simulated time [s].
        timestep: Of the physics [s]; None: the world's own, at most 2 ms.
        render_mode: None, or "rgb_array".
        width: Of pictures [px].
        height: [px].
        view: From where: "chase", "overview", "top", or a ``Camera``.

    Raises:
        UnknownNameError, InputError, ConfigError, DescriptionError: there is no such robot, world or node, or the robot
            lacks what command or senses need.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - so Gymnasium has it

    def __init__(
        self,
        task: Task,
        *,
        robot: str | Path,
        command: Command,
        senses: Mapping[str, Sense],
        world: str | Path | World = "empty",
        nodes: str | Sequence[str] = "default",
        arguments: Mapping[str, str] | None = None,
        fixed: bool = False,
        period: float = 0.1,
        timestep: float | None = None,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 360,
        view: View = "chase",
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode {render_mode!r}", valid='None or "rgb_array"')
        if not 1e-3 <= period <= 1e3:
            raise ConfigError(f"a period of {period} s", valid="0.001 s to 1000 s")
        self.robot = ReadRobot.of(robot, arguments)
        self.world = world if isinstance(world, World) else load_world(catalog.WORLDS.resolve(str(world)))
        self.task, self.command = copy(task), command  # what it sees of this world is not for another one
        self.period, self.render_mode = period, render_mode
        self.metadata = {**type(self).metadata, "render_fps": max(1, round(1.0 / period))}
        self._nodes = self.robot.select_nodes(nodes if isinstance(nodes, str) else tuple(nodes))
        self._fixed, self._timestep = fixed, timestep
        self._onlooker = Onlooker(width, height, view)
        self._names, self._tell = command.names(self.robot), command.teller(self.robot)
        self.action_space = box(-1.0, 1.0, (len(self._names),))
        own, tasks = {name: sense.space(self.robot) for name, sense in senses.items()}, task.spaces(self.robot)
        if twice := sorted(own.keys() & tasks.keys()):
            raise ConfigError(f"two entries called {', '.join(twice)}", location="senses", valid="other names")
        self._boxes: dict[str, Box] = {**own, **tasks}
        self.observation_space = Dict({**self._boxes})
        self._readers = {
            name: (tuple(sense.topics(self.robot)), sense.reader(self.robot)) for name, sense in senses.items()
        }
        self._topics: Topics = {
            **{topic: kind for sense in senses.values() for topic, kind in sense.topics(self.robot).items()},
            **task.topics(self.robot),
        }
        self._prepared = False
        self._run: Run | None = None

    # -- Gymnasium's contract ------------------------------------------------------------------------------------------
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Begin an episode.

        Args:
            seed: Of everything random in this and the episodes after it.
            options: What the task lets one choose, instead of drawing it.

        Raises:
            InputError: the task has no such option, or cannot do what it says.
            RunError: a sensor stays silent.
        """
        super().reset(seed=seed)
        chosen = dict(options or {})
        if unknown := [key for key in chosen if key not in self.task.options]:
            raise InputError(
                f"no option {', '.join(map(repr, unknown))}", location="reset(options=…)",
                valid=", ".join(self.task.options) or "this task has none",
            )  # fmt: skip
        self._end()
        if not self._prepared:
            self.task.prepare(self.world, self.robot)
            self._prepared = True
        rng = self.np_random
        start = self.task.start(self.robot, rng, chosen)
        run = Run(self.world, seed=int(rng.integers(2**63)), timestep=self._timestep, record=False)
        try:
            known = self.robot.starting(start.joints)
            handle = run.add_robot(known, pose=start.at, nodes=self._nodes, fixed_base=self._fixed)
            T_world_model = to_world_pose(start.at, known.model)
            for name, spec in self.command.nodes(known, T_world_model, self.period).items():
                handle.add_node(spec.type, name, parameters=spec.parameters, remap=spec.remap)
            self._agent = AgentNode(self._topics, self.command.topic, self.command.kind())
            handle.add_node(self._agent, NAME)
            if not run.run_until(lambda: not self._agent.silent, _PATIENCE):
                raise RunError(
                    f"nobody tells {', '.join(sorted(self._agent.silent))}", location=f"robot {self.robot.name}",
                    valid="nodes that do",
                )  # fmt: skip
            self._stage = Stage(run, handle, self.robot, start, self._agent.heard, self.period)
            self._episode: Episode = self.task.begin(self._stage)
        except BaseException:
            run.close()
            raise
        self._run = run
        info = self._episode.judge(np.zeros(len(self._names))).info
        return self._observed(), info

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, Info]:
        """Do something for a period; observation, reward, whether it is over, False, and ground truth.

        Raises:
            RunError: no episode has begun.
            InputError: the action has another shape, or is not finite.
            NodeError: a node of the robot failed.
        """
        run = self._going()
        told = self._told(action)
        self._agent.send(self._tell(told, run.bus.now_ns))
        run.run_for(self.period)
        verdict = self._episode.judge(told)
        return self._observed(), verdict.reward, verdict.terminated, False, verdict.info

    def render(self) -> NDArray[np.uint8] | None:
        """A picture (height, width, 3) of how things stand; None unless ``render_mode`` is "rgb_array".

        Raises:
            RunError: no episode has begun.
        """
        if self.render_mode is None:
            gymnasium.logger.warn('no picture: make the environment with render_mode="rgb_array"')
            return None
        return self._onlooker.look(self._going().simulation, self._stage.robot.name)

    def close(self) -> None:
        """End the episode and let go of physics and renderer; may be called again."""
        self._end()

    # -- inside --------------------------------------------------------------------------------------------------------
    @property
    def run(self) -> Run:
        """The run of this episode, for looking into. Raises RunError."""
        return self._going()

    def _going(self) -> Run:
        if self._run is None:
            raise RunError("no episode has begun", valid="reset() first")
        return self._run

    def _end(self) -> None:
        self._onlooker.close()
        if self._run is not None:
            self._run.close()
            self._run = None

    def _told(self, action: ArrayLike) -> NDArray[np.float64]:
        """An action, checked and cut to its bounds."""
        names = self._names
        wanted = f"{len(names)} numbers between -1 and 1: {', '.join(names)}"
        try:
            given = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("the action is no array of numbers", location="step(action)", valid=wanted) from None
        if given.shape != self.action_space.shape:
            raise InputError(f"an action of shape {given.shape}", location="step(action)", valid=wanted)
        if not np.isfinite(given).all():
            bad = names[int(np.argmin(np.isfinite(given)))]
            raise InputError(f"the action for {bad} is not finite", location="step(action)", valid=wanted)
        return np.clip(given, -1.0, 1.0)

    def _observed(self) -> Observation:
        heard = self._agent.heard
        found = {name: read([heard[topic] for topic in topics]) for name, (topics, read) in self._readers.items()}
        found |= self._episode.observe()
        return {name: held(found[name], space) for name, space in self._boxes.items()}
