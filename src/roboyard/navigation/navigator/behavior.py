"""Contract of navigation behaviors: simple motions and recovery steps, and the registry of their types."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

from roboyard.config import RegisteredType, parameter
from roboyard.config.registry import Registry
from roboyard.control import PlanarTwist
from roboyard.navigation.controllers import CostmapWindow, MotionLimits
from roboyard.navigation.errors import MotionBlockedError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.navigator.costmaps import NavigationCostmaps
from roboyard.navigation.navigator.task import AttributeState, NavigationState


@dataclass(frozen=True, slots=True)
class MobileBase:
    """Footprint, motion limits and control period of a robot.

    Attributes:
        footprint: Padded footprint, with which paths are planned.
        unpadded_footprint: Footprint of the robot itself, for motions in a narrow place.
        limits: Motion limits of the base.
        control_period: Time between two commands [s].
    """

    footprint: Footprint
    unpadded_footprint: Footprint
    limits: MotionLimits
    control_period: float

    def approach_speed(self, remaining: float, max_speed: float, acceleration: float) -> float:
        """Return the speed at which the base can stop within a remaining distance or angle, after one more period.

        Args:
            remaining: Distance [m] or angle [rad].
            max_speed: Largest speed [m/s or rad/s].
            acceleration: Deceleration [m/s^2 or rad/s^2].
        """
        braking_speed = (
            math.sqrt(2.0 * acceleration * remaining + (acceleration * self.control_period) ** 2)
            - acceleration * self.control_period
        )
        return min(max_speed, braking_speed, remaining / self.control_period)

    def assert_collision_free(self, state: NavigationState, twist: PlanarTwist) -> None:
        """Reject a velocity with which the robot would collide before it stops.

        Raises:
            MotionBlockedError: The robot would collide.
        """
        limits, speed = self.limits, math.hypot(twist.vx, twist.vy)
        window_radius = speed * (2.0 * self.control_period + speed / limits.max_acceleration)
        window = CostmapWindow.around(state.pose, state.local_costmap, self.footprint, window_radius)
        # a margin for the next commands: half the deceleration, which begins after two periods
        deceleration = PlanarTwist(*(0.5 * limits.max_acceleration,) * 2, 0.5 * limits.max_angular_acceleration)
        if not window.can_stop_safely(twist, deceleration, 2.0 * self.control_period):
            raise MotionBlockedError("an obstacle blocks the motion", valid="free space for the motion")


@dataclass(frozen=True, slots=True)
class BehaviorContext:
    """What a behavior works with.

    Attributes:
        mobile_base: Footprint, motion limits and control period of the robot.
        costmaps: Global and local costmap, which a behavior may clear.
    """

    mobile_base: MobileBase
    costmaps: NavigationCostmaps


class Behavior(AttributeState, ABC):
    """Motion or recovery step of the robot (nav2_core::Behavior).

    The navigator calls `start` once, then `compute_command` in each control period until it returns None or raises, or
    until the behavior is canceled. `check_behavior` tests these promises:

    - It ends within the ``max_duration`` of its configuration, even if the robot cannot move.
    - Its commands keep the limits of the base, and the base can stop before it collides.
    - Equal states give equal commands, and a behavior that loaded the state of another continues in the same way.
    - It changes the costmaps only by clearing observations.
    """

    def start(self, state: NavigationState) -> bool:
        """Begin.

        Returns:
            Whether there is something to do in the next control periods; False if the behavior is finished already.

        Raises:
            NavigationError: The behavior cannot begin.
        """
        return True

    @abstractmethod
    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the velocity until the next control period; None if the behavior is finished.

        Raises:
            NavigationError: The behavior has failed; the class is the cause.
        """

    def cancel(self) -> None:
        """Release what the behavior holds; it is called if the behavior ends before it is finished."""


@dataclass(frozen=True, kw_only=True)
class BehaviorConfig(ABC):
    """Configuration of a behavior as a recovery step; each type of behavior has a subclass of it.

    A subclass is a frozen dataclass whose fields are declared with `roboyard.config.parameter`. It is registered as an
    entry point of the group ``roboyard.navigation_behaviors`` under the name that ``recovery.steps`` may give.
    """

    type: str = parameter(doc="Type of the behavior.")

    @property
    @abstractmethod
    def max_duration(self) -> float:
        """Longest duration of the behavior [s]."""

    @abstractmethod
    def make_behavior(self, context: BehaviorContext) -> Behavior:
        """Return a new behavior, which is executed once.

        Raises:
            RoboyardError: The base cannot execute it.
        """


BEHAVIORS: Registry[type[BehaviorConfig]] = Registry(
    "navigation behavior", group="roboyard.navigation_behaviors", base=lambda: BehaviorConfig
)
"""Types of behaviors by the name that ``recovery.steps`` gives."""

BehaviorEntry = Annotated[BehaviorConfig, RegisteredType(BEHAVIORS)]
"""Annotation of a behavior in a configuration: a mapping whose key ``type`` names its class."""


@dataclass(frozen=True, kw_only=True)
class MotionBehaviorConfig(BehaviorConfig):
    """Configuration that all behaviors that move the robot share."""

    time_allowance: float = parameter(15.0, unit="s", low=0.1, high=1000.0, doc="Longest duration.")

    @property
    def max_duration(self) -> float:
        """The time allowance [s]."""
        return self.time_allowance
