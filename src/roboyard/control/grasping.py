"""Whether a gripper is there, stands still, holds something, or has lost it: told from its own joints alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roboyard.config import Config, parameter

GripState = Literal["still", "moving", "holding", "lost"]

_FORCE_SHARE = 0.5
"""Share of the force asked for with which fingers press on what they hold."""
_SLACK = 0.002
"""How far fingers close on what they hold without having lost it [m or rad of opening]."""


@dataclass(frozen=True, slots=True)
class Hand:
    """How a gripper's joints and its opening belong together.

    All joints stand alike: ``opening = zero + scale · position``.  What does work on the opening does it on the joints,
    so that each finger presses with the sum of the joints' efforts divided by ``scale`` (virtual work), less what dry
    friction in the joints takes.

    Attributes:
        low: Least position of the joints [m or rad].
        high: Largest [m or rad].
        effort: What each joint can do, friction included [N or N m]; infinite: nobody knows.
        friction: Dry friction in each joint [N or N m].
        scale: Opening for a unit of the joints.
        zero: Opening with the joints at zero [m].
    """

    low: float
    high: float
    effort: tuple[float, ...]
    friction: tuple[float, ...]
    scale: float = 1.0
    zero: float = 0.0

    @property
    def range(self) -> tuple[float, float]:
        """Least and largest opening [m]."""
        return self.opening(self.low), self.opening(self.high)

    @property
    def force(self) -> float:
        """What each finger can press with [N]; infinite: nobody knows."""
        return max(sum(self.effort) - sum(self.friction), 0.0) / self.scale

    def opening(self, position: float) -> float:
        """Of a position of the joints."""
        return self.zero + self.scale * position

    def position(self, opening: float) -> float:
        """Of the joints, for an opening."""
        return (opening - self.zero) / self.scale

    def efforts(self, force: float) -> tuple[float, ...]:
        """What each joint may do so that each finger presses with ``force`` [N]."""
        share = force * self.scale / len(self.effort)
        return tuple(share + friction for friction in self.friction)

    def felt(self, efforts: Sequence[float]) -> float:
        """What each finger presses with, from what the joints do [N]."""
        return max(abs(sum(efforts)) - sum(self.friction), 0.0) / self.scale


class GraspConfig(Config):
    """When a gripper has arrived, and when it stands still."""

    goal_tolerance: float = parameter(
        0.01, unit="rad or m", low=0.0, high=10.0, runtime=True, doc="Largest distance from a goal that is reached."
    )
    stall_velocity: float = parameter(
        0.001, unit="rad/s or m/s", low=0.0, high=10.0, key="stall_velocity_threshold", runtime=True,
        doc="Speed of the joints below which they may be stalled.",
    )  # fmt: skip
    stall_timeout: float = parameter(
        1.0, unit="s", low=0.0, high=1e3, runtime=True, doc="Time below that speed after which the joints are stalled."
    )


@dataclass(frozen=True, slots=True)
class Grip:
    """A gripper at an instant.

    Attributes:
        opening: Between the fingers [m].
        force: What each presses with [N].
        reached: It is where it was told to be.
        stalled: It stands still elsewhere.
        pressing: It is not at its ends, and presses on something.
        state: "moving" from when it is told something, "still" when it stands, "holding" from when it stands still on
            something, "lost" from when the fingers run on until it is told something new.
    """

    opening: float
    force: float
    reached: bool
    stalled: bool
    pressing: bool
    state: GripState


class Grasp:
    """Follows a gripper from reading to reading.

    Something is held when the fingers stand still between their ends and press towards their goal with at least
    half the force that they were told to; it is lost when they then move on by more than 2 mm and press on nothing any
    more: what turns between the fingers, or gives way, is still held.

    Args:
        hand: The gripper.
        config: When what is the case.
    """

    def __init__(self, hand: Hand, config: GraspConfig) -> None:
        self.hand, self.config = hand, config
        self._goal, self._force = math.nan, 0.0
        self._moved_ns, self._held_at = 0, math.nan
        self._state: GripState = "still"

    def aim(self, now_ns: int, opening: float, force: float) -> None:
        """It is told to go to ``opening`` [m] and to press with ``force`` [N] (infinite: with all it has)."""
        self._goal, self._force = opening, force
        self._moved_ns, self._held_at = now_ns, math.nan
        self._state = "moving"

    def look(self, now_ns: int, opening: float, speed: float, force: float) -> Grip:
        """The gripper now.

        Args:
            now_ns: Time [ns].
            opening: Measured [m].
            speed: Of the fastest joint [m/s or rad/s].
            force: What each finger presses with [N].
        """
        config = self.config
        if speed > config.stall_velocity:
            self._moved_ns = now_ns
        reached = abs(opening - self._goal) <= config.goal_tolerance
        still = (now_ns - self._moved_ns) * 1e-9 >= config.stall_timeout
        pressing = self._presses(opening, force, reached)
        if self._state == "holding":
            run_on = (opening - self._held_at) * math.copysign(1.0, self._goal - self._held_at) > _SLACK
            if run_on and not pressing:
                self._state = "lost"
            elif run_on and still:
                self._held_at = opening  # it has turned between the fingers, or given way
        elif self._state != "lost":
            if still and pressing:
                self._state, self._held_at = "holding", opening
            elif still:
                self._state = "still"
        return Grip(opening, force, reached, still and not reached, pressing, self._state)

    def _presses(self, opening: float, force: float, reached: bool) -> bool:
        low, high = self.hand.range
        end = min(self.config.goal_tolerance, 0.01 * (high - low))
        if not low + end < opening < high - end:
            return False
        most = min(self._force, self.hand.force)
        return force >= _FORCE_SHARE * most > 0.0 if math.isfinite(most) else not reached

    def save_state(self) -> tuple[Any, ...]:
        """State as plain data."""
        return self._goal, self._force, self._moved_ns, self._held_at, self._state

    def load_state(self, saved: Sequence[Any]) -> None:
        """Take back what ``save`` gave."""
        self._goal, self._force, self._moved_ns, self._held_at, self._state = saved
