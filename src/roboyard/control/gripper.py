"""Model of a gripper, and estimation from joint readings whether it has reached its goal, is stationary, holds an
object or lost it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roboyard.config import Config, parameter

GraspState = Literal["stationary", "moving", "holding", "lost"]

_MIN_FORCE_FRACTION = 0.5
"""Share of the force asked for with which fingers press on what they hold."""
_SLIP_TOLERANCE = 0.002
"""How far fingers close on what they hold without having lost it [m or rad of opening]."""


@dataclass(frozen=True, slots=True)
class GripperModel:
    """Relation between a gripper's joints and its opening.

    All joints have the same position: ``opening = opening_offset + opening_scale · position``. Work on the opening is
    done by the joints, so that each finger presses with the sum of the joints' efforts divided by ``opening_scale``
    (virtual work), less dry friction in the joints.

    Attributes:
        min_position: Least position of the joints [m or rad].
        max_position: Largest [m or rad].
        max_efforts: Effort limit of each joint, friction included [N or N m]; infinite: unknown.
        friction: Dry friction in each joint [N or N m].
        opening_scale: Opening for a unit of the joints.
        opening_offset: Opening with the joints at zero [m].
    """

    min_position: float
    max_position: float
    max_efforts: tuple[float, ...]
    friction: tuple[float, ...]
    opening_scale: float = 1.0
    opening_offset: float = 0.0

    @property
    def opening_range(self) -> tuple[float, float]:
        """Least and largest opening [m]."""
        return self.opening(self.min_position), self.opening(self.max_position)

    @property
    def max_force(self) -> float:
        """Largest force of each finger [N]; infinite: unknown."""
        return max(sum(self.max_efforts) - sum(self.friction), 0.0) / self.opening_scale

    def opening(self, position: float) -> float:
        """Of a position of the joints."""
        return self.opening_offset + self.opening_scale * position

    def position(self, opening: float) -> float:
        """Of the joints, for an opening."""
        return (opening - self.opening_offset) / self.opening_scale

    def joint_efforts(self, force: float) -> tuple[float, ...]:
        """Return the effort of each joint with which each finger presses with ``force`` [N]."""
        effort = force * self.opening_scale / len(self.max_efforts)
        return tuple(effort + friction for friction in self.friction)

    def finger_force(self, efforts: Sequence[float]) -> float:
        """Return the force of each finger for efforts of the joints [N]."""
        return max(abs(sum(efforts)) - sum(self.friction), 0.0) / self.opening_scale


class GraspConfig(Config):
    """When a gripper has reached its goal, and when it is stalled."""

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
class GripperState:
    """A gripper at an instant.

    Attributes:
        opening: Between the fingers [m].
        force: What each presses with [N].
        has_reached: It is at its goal.
        is_stalled: It is stationary elsewhere.
        is_pressing: It is not at the ends of its range, and presses on an object.
        state: "moving" from a new goal on, "stationary" when it has stopped, "holding" when it has stopped on an
            object, "lost" when the fingers then close further, until there is a new goal.
    """

    opening: float
    force: float
    has_reached: bool
    is_stalled: bool
    is_pressing: bool
    state: GraspState


class GraspMonitor:
    """Estimates the state of a gripper from reading to reading.

    An object is held when the fingers are stationary between the ends of their range and press towards their goal with
    at least half of the requested force. It is lost when they then move by more than 2 mm and do not press any more; an
    object that turns between the fingers, or yields, is still held.

    Args:
        gripper: The gripper.
        config: When what is the case.
    """

    def __init__(self, gripper: GripperModel, config: GraspConfig) -> None:
        self.gripper, self.config = gripper, config
        self._goal, self._force = math.nan, 0.0
        self._moved_ns, self._holding_opening = 0, math.nan
        self._state: GraspState = "stationary"

    def set_goal(self, now_ns: int, opening: float, force: float) -> None:
        """Take a new goal: ``opening`` [m] and ``force`` [N] (infinite: the largest force)."""
        self._goal, self._force = opening, force
        self._moved_ns, self._holding_opening = now_ns, math.nan
        self._state = "moving"

    def update(self, now_ns: int, opening: float, speed: float, force: float) -> GripperState:
        """Return the gripper's present state.

        Args:
            now_ns: Time [ns].
            opening: Measured [m].
            speed: Of the fastest joint [m/s or rad/s].
            force: What each finger presses with [N].
        """
        config = self.config
        if speed > config.stall_velocity:
            self._moved_ns = now_ns
        has_reached = abs(opening - self._goal) <= config.goal_tolerance
        is_stationary = (now_ns - self._moved_ns) * 1e-9 >= config.stall_timeout
        is_pressing = self._is_pressing(opening, force, has_reached)
        if self._state == "holding":
            has_slipped = (opening - self._holding_opening) * math.copysign(
                1.0, self._goal - self._holding_opening
            ) > _SLIP_TOLERANCE
            if has_slipped and not is_pressing:
                self._state = "lost"
            elif has_slipped and is_stationary:
                self._holding_opening = opening  # it has turned between the fingers, or given way
        elif self._state != "lost":
            if is_stationary and is_pressing:
                self._state, self._holding_opening = "holding", opening
            elif is_stationary:
                self._state = "stationary"
        return GripperState(opening, force, has_reached, is_stationary and not has_reached, is_pressing, self._state)

    def _is_pressing(self, opening: float, force: float, has_reached: bool) -> bool:
        low, high = self.gripper.opening_range
        end_margin = min(self.config.goal_tolerance, 0.01 * (high - low))
        if not low + end_margin < opening < high - end_margin:
            return False
        max_force = min(self._force, self.gripper.max_force)
        return force >= _MIN_FORCE_FRACTION * max_force > 0.0 if math.isfinite(max_force) else not has_reached

    def save_state(self) -> tuple[Any, ...]:
        """Return the state as plain data."""
        return self._goal, self._force, self._moved_ns, self._holding_opening, self._state

    def load_state(self, saved: Sequence[Any]) -> None:
        """Restore what `save_state` returned."""
        self._goal, self._force, self._moved_ns, self._holding_opening, self._state = saved
