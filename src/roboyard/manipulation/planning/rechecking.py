"""A second look at a motion, by coal on the shapes themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roboyard.control import JointSample
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision import ExactChecker


class Timed(Protocol):
    """What is in time: a `Trajectory` or a `JerkLimited`."""

    @property
    def duration(self) -> float:
        """[s]."""
        ...

    def at(self, times: Array) -> JointSample:
        """Joints at moments."""
        ...


@dataclass(frozen=True)
class Recheck:
    """What a second look saw.

    Attributes:
        states: How many states were looked at.
        step: The tool moved at most so far between two of them [m].
        contacts: Moments [s] at which something touched, and what.
    """

    states: int
    step: float
    contacts: tuple[tuple[float, tuple[str, str]], ...]


def recheck(checker: ExactChecker, motion: Timed, tool_step: float = 0.001) -> Recheck:
    """Look for collisions so often that the tool moves at most ``tool_step`` [m] in between."""
    coarse = np.linspace(0.0, motion.duration, 400)
    tips = checker.chain.forward(motion.at(coarse).position)[:, :3, 3]
    longest = float(np.linalg.norm(np.diff(tips, axis=0), axis=1).sum())
    count = max(2, math.ceil(2.0 * longest / tool_step))
    while True:
        times = np.linspace(0.0, motion.duration, count)
        states = motion.at(times).position
        tips = checker.chain.forward(states)[:, :3, 3]
        steps = np.linalg.norm(np.diff(tips, axis=0), axis=1)
        if steps.max(initial=0.0) <= tool_step:
            break
        count = math.ceil(1.5 * count)
    found = ((float(t), checker.contact(q)) for t, q in zip(times, states, strict=True))
    touched = tuple((t, pair) for t, pair in found if pair is not None)
    return Recheck(count, float(steps.max(initial=0.0)), touched)
