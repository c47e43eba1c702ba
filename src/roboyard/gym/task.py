"""What a task is: where an episode begins, what is to be done in it, and what it is worth."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from roboyard.description import World
from roboyard.description.extent import PoseLike
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.gym.robot import ReadRobot
from roboyard.gym.senses import Topics
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.run import Run

Info = dict[str, Any]


@dataclass(frozen=True)
class Start:
    """Where a robot is when an episode begins.

    Attributes:
        at: As for `Run.add_robot`.
        joints: Positions of joints [rad or m]; the others are where the description has them begin.
        goal: What the task drew together with that, for its ``begin``.
    """

    at: PoseLike = (0.0, 0.0, 0.0)
    joints: Mapping[str, float] = field(default_factory=dict)
    goal: tuple[float, ...] = ()


@dataclass(frozen=True)
class Stage:
    """What a task has before it: the run and the robot, for judging, and what the robot has heard.

    Attributes:
        run: With the robot in it.
        robot: Its truth is for rewards, never for observations.
        known: What is known of the robot.
        start: Where it began.
        heard: The newest message of each of the task's topics.
        period: Between two actions [s].
    """

    run: Run
    robot: RobotHandle
    known: ReadRobot
    start: Start
    heard: Mapping[str, Any]
    period: float

    @property
    def touched(self) -> bool:
        """Whether the robot has touched anything so far; the ground does not count."""
        return bool(self.run.simulation.contact_episodes(self.robot.name))

    def check_free(self) -> None:
        """See that the robot has not been put into something. Raises InputError."""
        for one in self.run.simulation.contact_episodes(self.robot.name):
            raise InputError(
                f"{self.robot.name} touches {one.other_model} where it begins", valid="a start with room about it"
            )


@dataclass(frozen=True)
class Verdict:
    """What a step was worth.

    Attributes:
        reward: Of this step.
        terminated: Whether the episode is over: done, or failed.
        info: Ground truth; numbers, arrays and booleans, with the same keys at every step.
    """

    reward: float
    terminated: bool
    info: Info


class Episode(ABC):
    """A task in one episode."""

    @abstractmethod
    def observe(self) -> Mapping[str, ArrayLike]:
        """The task's own entries of the observation: what the robot knows of its goal."""

    @abstractmethod
    def judge(self, action: Array) -> Verdict:
        """What the step was worth that ends now, by ground truth; before the first step, how things stand."""


class Task(ABC):
    """Begins episodes; itself it has no state that an episode leaves behind."""

    options: tuple[str, ...] = ()
    """What ``reset(options=…)`` may say."""

    def prepare(self, world: World, robot: ReadRobot) -> None:  # noqa: B027 - most tasks need nothing
        """Look at world and robot; called once, before the first episode."""

    @abstractmethod
    def spaces(self, robot: ReadRobot) -> Mapping[str, Box]:
        """Of the task's own entries of the observation."""

    def topics(self, robot: ReadRobot) -> Topics:
        """What the robot must hear for them."""
        return {}

    @abstractmethod
    def start(self, robot: ReadRobot, rng: np.random.Generator, options: Mapping[str, Any]) -> Start:
        """Draw where the robot begins, and what is to be done; the run comes after it.

        Raises:
            InputError: an option cannot be.
        """

    @abstractmethod
    def begin(self, stage: Stage) -> Episode:
        """Set it going; called when the robot stands there and has heard everything once, before the first step."""


def chosen(options: Mapping[str, Any], key: str, count: int) -> tuple[float, ...] | None:
    """An option of so many numbers; None where it is not given.

    Raises:
        InputError: it is something else.
    """
    if key not in options:
        return None
    try:
        values = tuple(float(value) for value in options[key])
    except (TypeError, ValueError):
        values = ()
    if len(values) != count or not all(map(math.isfinite, values)):
        raise InputError(f"{options[key]!r}", location=f"option {key}", valid=f"{count} finite numbers")
    return values
