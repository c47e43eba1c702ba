"""Configuration of the navigator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from roboyard.config import Config, check, parameter
from roboyard.errors import ConfigError
from roboyard.navigation.controllers import GoalTolerance
from roboyard.navigation.costmap import CostmapConfig


class ProgressCheckerConfig(Config):
    """Motion that counts as progress, and the time allowed for it."""

    required_movement_radius: float = parameter(
        0.25, unit="m", low=0.0, high=100.0, doc="Distance that counts as progress."
    )
    required_movement_angle: float = parameter(
        0.5, unit="rad", low=0.01, high=100.0, doc="Turn that counts as progress too."
    )
    movement_time_allowance: float = parameter(
        8.0, unit="s", low=0.1, high=1e4, doc="Time in which there must be progress."
    )


RECOVERY_STEPS = (
    "conservative_reset", "clear_around_robot", "aggressive_reset", "clear_all", "spin", "back_up", "escape", "wait",
)  # fmt: skip
"""Names of recovery steps: forget obstacles farther than ``reset_distance``; within the area in which the robot can
rotate; outside of that area (the real move_base's aggressive reset); everywhere; turn round once; drive straight back;
get to where it can turn; wait."""

RECOVERY_POLICIES: dict[str, tuple[str, ...]] = {
    "thesis": ("conservative_reset", "spin", "clear_around_robot", "spin"),
    "move_base": ("conservative_reset", "spin", "aggressive_reset", "spin"),
    "nav2": ("clear_all", "spin", "wait", "back_up"),
    "careful": ("escape", "conservative_reset", "spin", "wait"),
}
"""Orders in which recovery steps are tried; `roboyard bench recovery` compares them."""


@dataclass(frozen=True)
class PluginConfig:
    """A planner or controller."""

    type: str = parameter(doc="Name of the planner or controller.")
    settings: dict[str, Any] = parameter(factory=dict, doc="Values of its configuration that differ from the defaults.")


@dataclass(frozen=True)
class VelocityLimits:
    """Velocity limits of the robot; a missing one is that of its drive."""

    forward: float | None = parameter(
        None, unit="m/s", low=0.01, high=100.0, doc="Largest speed forward; none: the drive's."
    )
    backward: float | None = parameter(
        0.2, unit="m/s", low=0.0, high=100.0, doc="Largest speed backward; 0: never backward."
    )
    allow_reverse: bool = parameter(False, doc="Drive paths backward too; recovery steps always may.")
    lateral: float = parameter(0.0, unit="m/s", low=0.0, high=100.0, doc="Largest speed sideways; 0: the base cannot.")
    angular: float | None = parameter(
        None, unit="rad/s", low=0.01, high=100.0, doc="Largest turning rate; none: the drive's."
    )
    command_latency: float = parameter(
        0.0, unit="s", low=0.0, high=2.0, doc="Time from a command to the base's reaction."
    )
    acceleration: float | None = parameter(
        None, unit="m/s^2", low=0.01, high=1000.0, doc="Largest acceleration; none: the drive's."
    )
    angular_acceleration: float | None = parameter(
        None, unit="rad/s^2", low=0.01, high=1000.0, doc="Largest angular acceleration; none: the drive's."
    )

    def __post_init__(self) -> None:
        check(self, "velocity_limits")


@dataclass(frozen=True)
class ApproachConfig:
    """Final approach of an omnidirectional base: straight to the pose, while it rotates."""

    distance: float = parameter(
        0.3,
        unit="m",
        low=0.0,
        high=10.0,
        doc="Distance from the goal at which it begins; 0: the controller drives all the way.",
    )
    max_speed: float = parameter(0.2, unit="m/s", low=0.01, high=10.0, doc="Largest speed.")
    max_angular_speed: float = parameter(0.6, unit="rad/s", low=0.01, high=10.0, doc="Largest turning rate.")
    time_allowance: float = parameter(20.0, unit="s", low=0.1, high=1000.0, doc="Longest duration.")

    def __post_init__(self) -> None:
        check(self, "approach")


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
    """Recovery steps when the robot makes no progress or finds no path."""

    policy: Literal["careful", "nav2", "thesis", "move_base"] = parameter("careful", doc="Order of the recovery steps.")
    steps: tuple[str, ...] = parameter((), doc=f"Recovery steps instead of a policy's: {', '.join(RECOVERY_STEPS)}.")
    max_rounds: int = parameter(
        2, low=0, high=100, doc="Number of times that all steps are tried before the goal is given up."
    )
    reset_distance: float = parameter(
        3.0, unit="m", low=0.0, high=1000.0, doc="Half the side of the area of conservative_reset."
    )
    spin_angle: float = parameter(6.283185307179586, unit="rad", low=0.1, high=100.0, doc="Angle of spin.")
    back_up_distance: float = parameter(0.3, unit="m", low=0.02, high=10.0, doc="Distance of back_up.")
    back_up_speed: float = parameter(0.15, unit="m/s", low=0.01, high=10.0, doc="Speed of back_up and escape.")
    wait_duration: float = parameter(5.0, unit="s", low=0.01, high=1000.0, doc="Duration of wait.")
    time_allowance: float = parameter(15.0, unit="s", low=0.1, high=1000.0, doc="Longest duration of a step.")

    def __post_init__(self) -> None:
        check(self, "recovery")
        unknown = [name for name in self.steps if name not in RECOVERY_STEPS]
        if unknown:
            raise ConfigError(
                f"no recovery step {unknown[0]!r}", location="recovery.steps", valid=", ".join(RECOVERY_STEPS)
            )

    @property
    def order(self) -> tuple[str, ...]:
        """The steps."""
        return self.steps or RECOVERY_POLICIES[self.policy]


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
    velocity_limits: VelocityLimits = parameter(VelocityLimits(), doc="Speeds of the robot.")
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
