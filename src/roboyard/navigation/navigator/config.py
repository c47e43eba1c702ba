"""Configuration of the navigator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from roboyard.config import check, load, parameter
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError
from roboyard.navigation.controllers import GoalTolerance
from roboyard.navigation.costmap import CostmapConfig
from roboyard.navigation.navigator.behavior import BEHAVIORS, BehaviorConfig, BehaviorEntry
from roboyard.navigation.navigator.behaviors import ApproachConfig
from roboyard.navigation.navigator.motion_limits import VelocityLimits
from roboyard.navigation.navigator.task import ProgressCheckerConfig

RECOVERY_POLICIES: dict[str, tuple[str, ...]] = {
    "thesis": ("conservative_reset", "spin", "clear_around_robot", "spin"),
    "move_base": ("conservative_reset", "spin", "aggressive_reset", "spin"),
    "nav2": ("clear_all", "spin", "wait", "back_up"),
    "careful": ("escape", "conservative_reset", "spin", "wait"),
}
"""Orders in which recovery steps are tried; `roboyard bench recovery` compares them."""

_FIRST_STEP_OF_OCCUPIED_START = "back_up"


@dataclass(frozen=True)
class PluginConfig:
    """A planner or controller."""

    type: str = parameter(doc="Name of the planner or controller.")
    settings: dict[str, Any] = parameter(factory=dict, doc="Values of its configuration that differ from the defaults.")


@dataclass(frozen=True)
class PathSmootherConfig:
    """Smoothing of planned paths; none if both radii are 0."""

    turning_radius: float = parameter(0.0, unit="m", low=0.0, high=100.0, doc="Radius of bends where there is room.")
    min_radius: float = parameter(
        0.0,
        unit="m",
        low=0.0,
        high=100.0,
        doc="Radius below which a bend is refused, so that the path stays as planned.",
    )

    def __post_init__(self) -> None:
        check(self, "smoother")


@dataclass(frozen=True)
class RecoveryConfig:
    """Recovery steps when the robot makes no progress or finds no path.

    A step is the name of a registered behavior, which then has its default parameters, or of one of ``behaviors``.
    """

    policy: Literal["careful", "nav2", "thesis", "move_base"] = parameter("careful", doc="Order of the recovery steps.")
    steps: tuple[str, ...] = parameter((), doc="Recovery steps instead of a policy's: names of behaviors.")
    behaviors: dict[str, BehaviorEntry] = parameter(
        factory=dict, doc="Behaviors with other parameters than the default ones, by the names of their steps."
    )
    max_rounds: int = parameter(
        2, low=0, high=100, doc="Number of times that all steps are tried before the goal is given up."
    )

    def __post_init__(self) -> None:
        check(self, "recovery")
        valid_names = tuple(dict.fromkeys((*BEHAVIORS.names(), *self.behaviors)))
        for name in self.steps:
            if name not in valid_names:
                raise ConfigError(
                    f"no recovery step {name!r}{did_you_mean(name, valid_names)}",
                    location="recovery.steps",
                    valid=", ".join(valid_names),
                )
            self.behavior(name)
        for name, behavior in self.behaviors.items():
            if name in BEHAVIORS and behavior.type != name:
                raise ConfigError(
                    f"the behavior {name!r} has the type {behavior.type}",
                    location=f"recovery.behaviors.{name}.type",
                    valid=f"{name}, or another name of the behavior",
                )
            if name not in (*self.order, _FIRST_STEP_OF_OCCUPIED_START):
                raise ConfigError(
                    "no step of the recovery", location=f"recovery.behaviors.{name}", valid=", ".join(self.order)
                )

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the recovery steps."""
        return self.steps or RECOVERY_POLICIES[self.policy]

    def order_after(self, start_occupied: bool) -> tuple[str, ...]:
        """Return the recovery steps; a robot in the reach of an obstacle backs up first."""
        return (_FIRST_STEP_OF_OCCUPIED_START, *self.order) if start_occupied else self.order

    def behavior(self, name: str) -> BehaviorConfig:
        """Return the configuration of a step.

        Raises:
            UnknownNameError: There is no such behavior.
            ConfigError: The behavior has parameters without default values, and ``behaviors`` does not declare it.
        """
        if name in self.behaviors:
            return self.behaviors[name]
        return load(BEHAVIORS[name], {"type": name}, source_name=f"recovery step {name}")


@dataclass(frozen=True)
class NavigatorConfig:
    """Configuration of the navigator."""

    planner: PluginConfig = parameter(PluginConfig("fast_marching"), doc="Planner of paths.")
    smoother: PathSmootherConfig = parameter(PathSmootherConfig(), doc="Smoothing of paths.")
    controller: PluginConfig = parameter(PluginConfig("mppi"), doc="Controller that follows paths.")
    costmap: CostmapConfig = parameter(CostmapConfig(), doc="Local and global costmap.")
    goal_tolerance: GoalTolerance = parameter(GoalTolerance(), doc="Tolerance of goals.")
    approach: ApproachConfig = parameter(ApproachConfig(), doc="Last part of the path, for bases that move sideways.")
    progress_checker: ProgressCheckerConfig = parameter(ProgressCheckerConfig(), doc="When the robot counts as stuck.")
    recovery: RecoveryConfig = parameter(RecoveryConfig(), doc="Recovery steps.")
    velocity_limits: VelocityLimits = parameter(VelocityLimits(), doc="Limits within those of the drive.")
    replan_period: float = parameter(
        1.0, unit="s", low=0.05, high=1000.0, doc="Time between searches for a better path."
    )
    replan_improvement_ratio: float = parameter(
        0.9, low=0.0, high=1.0, doc="Ratio to the old path's cost below which a new path replaces it."
    )
    collision_check_distance: float = parameter(
        2.5, unit="m", low=0.1, high=100.0, doc="Length of the path that is watched for obstacles."
    )
    no_command_timeout: float = parameter(
        1.0, unit="s", low=0.0, high=100.0, doc="Time without a safe command after which recovery begins."
    )
    viapoint_radius: float = parameter(
        0.5, unit="m", low=0.01, high=100.0, doc="Distance within which a viapoint counts as passed."
    )
    start_search_radius: float = parameter(
        0.5,
        unit="m",
        low=0.0,
        high=10.0,
        doc="Largest distance to a free pose from which a robot in inflated cells plans.",
    )

    def __post_init__(self) -> None:
        check(self, "navigator")
