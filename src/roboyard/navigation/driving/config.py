"""What can be set of the navigator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from roboyard.config import check, parameter
from roboyard.errors import ConfigError
from roboyard.navigation.controllers import Tolerance
from roboyard.navigation.driving.checkers import Patience
from roboyard.navigation.driving.costmap_settings import CostmapSettings

RECOVERIES = (
    "clear_outside", "clear_around", "clear_beyond", "clear_all", "spin", "back_up", "make_room", "wait",
)  # fmt: skip
"""Names of recovery steps: forget obstacles farther than ``reset_distance``; within the area in which the robot can
rotate; outside of that area (the real move_base's aggressive reset); everywhere; turn round once; drive straight back;
get to where it can turn; wait."""

RECOVERY_POLICIES: dict[str, tuple[str, ...]] = {
    "thesis": ("clear_outside", "spin", "clear_around", "spin"),
    "move_base": ("clear_outside", "spin", "clear_beyond", "spin"),
    "nav2": ("clear_all", "spin", "wait", "back_up"),
    "careful": ("make_room", "clear_outside", "spin", "wait"),
}
"""Orders in which recovery steps are tried; `roboyard bench recovery` compares them."""


@dataclass(frozen=True)
class Part:
    """A planner or controller."""

    type: str = parameter(doc="Name of the planner or controller.")
    settings: dict[str, Any] = parameter(factory=dict, doc="Values of its configuration that differ from the defaults.")


@dataclass(frozen=True)
class Pace:
    """How fast the robot is driven; what is not said is as its drive can."""

    forward: float | None = parameter(
        None, unit="m/s", low=0.01, high=100.0, doc="Largest speed forward; none: the drive's."
    )
    backward: float | None = parameter(
        0.2, unit="m/s", low=0.0, high=100.0, doc="Largest speed backward; 0: never backward."
    )
    reverse: bool = parameter(False, doc="Drive paths backward too; recovery steps always may.")
    sideways: float = parameter(0.0, unit="m/s", low=0.0, high=100.0, doc="Largest speed sideways; 0: the base cannot.")
    turn: float | None = parameter(
        None, unit="rad/s", low=0.01, high=100.0, doc="Largest turning rate; none: the drive's."
    )
    latency: float = parameter(0.0, unit="s", low=0.0, high=2.0, doc="Time from a command to the base's reaction.")
    acceleration: float | None = parameter(
        None, unit="m/s^2", low=0.01, high=1000.0, doc="Largest acceleration; none: the drive's."
    )
    turn_acceleration: float | None = parameter(
        None, unit="rad/s^2", low=0.01, high=1000.0, doc="Largest angular acceleration; none: the drive's."
    )

    def __post_init__(self) -> None:
        check(self, "pace")


@dataclass(frozen=True)
class ApproachSettings:
    """How a base that goes sideways too drives the last stretch: straight to the pose, turning meanwhile."""

    distance: float = parameter(
        0.3,
        unit="m",
        low=0.0,
        high=10.0,
        doc="Distance from the goal at which it begins; 0: the controller drives all the way.",
    )
    speed: float = parameter(0.2, unit="m/s", low=0.01, high=10.0, doc="Largest speed.")
    turn: float = parameter(0.6, unit="rad/s", low=0.01, high=10.0, doc="Largest turning rate.")
    allowance: float = parameter(20.0, unit="s", low=0.1, high=1000.0, doc="Longest duration.")

    def __post_init__(self) -> None:
        check(self, "approach")


@dataclass(frozen=True)
class Smoothing:
    """How planned ways are bent, see ``Smoother``; as they are planned while both are 0."""

    turning_radius: float = parameter(0.0, unit="m", low=0.0, high=100.0, doc="Radius of bends where there is room.")
    least_radius: float = parameter(
        0.0,
        unit="m",
        low=0.0,
        high=100.0,
        doc="Radius below which a bend is refused, so that the path stays as planned.",
    )

    def __post_init__(self) -> None:
        check(self, "smoothing")


@dataclass(frozen=True)
class RecoverySettings:
    """What is tried when the robot cannot go on."""

    policy: Literal["careful", "nav2", "thesis", "move_base"] = parameter("careful", doc="Order of the recovery steps.")
    steps: tuple[str, ...] = parameter((), doc=f"Recovery steps instead of a policy's: {', '.join(RECOVERIES)}.")
    rounds: int = parameter(
        2, low=0, high=100, doc="Number of times that all steps are tried before the goal is given up."
    )
    reset_distance: float = parameter(
        3.0, unit="m", low=0.0, high=1000.0, doc="Half the side of the area of clear_outside."
    )
    spin_angle: float = parameter(6.283185307179586, unit="rad", low=0.1, high=100.0, doc="Angle of spin.")
    back_up: float = parameter(0.3, unit="m", low=0.02, high=10.0, doc="Distance of back_up.")
    back_up_speed: float = parameter(0.15, unit="m/s", low=0.01, high=10.0, doc="Speed of back_up and make_room.")
    wait: float = parameter(5.0, unit="s", low=0.01, high=1000.0, doc="Duration of wait.")
    allowance: float = parameter(15.0, unit="s", low=0.1, high=1000.0, doc="Longest duration of a step.")

    def __post_init__(self) -> None:
        check(self, "recovery")
        unknown = [name for name in self.steps if name not in RECOVERIES]
        if unknown:
            raise ConfigError(
                f"no recovery step {unknown[0]!r}", location="recovery.steps", valid=", ".join(RECOVERIES)
            )

    @property
    def order(self) -> tuple[str, ...]:
        """The steps."""
        return self.steps or RECOVERY_POLICIES[self.policy]


@dataclass(frozen=True)
class NavigatorSettings:
    """Of the navigator."""

    planner: Part = parameter(Part("wave"), doc="Planner of paths.")
    smoothing: Smoothing = parameter(Smoothing(), doc="Smoothing of paths.")
    controller: Part = parameter(Part("mppi"), doc="Controller that follows paths.")
    costmap: CostmapSettings = parameter(CostmapSettings(), doc="Local and global costmap.")
    tolerance: Tolerance = parameter(Tolerance(), doc="Tolerance of goals.")
    approach: ApproachSettings = parameter(
        ApproachSettings(), doc="Last part of the path, for bases that move sideways."
    )
    patience: Patience = parameter(Patience(), doc="When the robot counts as stuck.")
    recovery: RecoverySettings = parameter(RecoverySettings(), doc="Recovery steps.")
    pace: Pace = parameter(Pace(), doc="Speeds of the robot.")
    replan_period: float = parameter(
        1.0, unit="s", low=0.05, high=1000.0, doc="Time between searches for a better path."
    )
    better: float = parameter(
        0.9, low=0.0, high=1.0, doc="Share of the old path's cost below which a new path is taken."
    )
    look_ahead: float = parameter(
        2.5, unit="m", low=0.1, high=100.0, doc="Length of the path that is watched for obstacles."
    )
    stuck_time: float = parameter(
        1.0, unit="s", low=0.0, high=100.0, doc="Time without a safe command after which recovery begins."
    )
    pass_radius: float = parameter(
        0.5, unit="m", low=0.01, high=100.0, doc="Distance within which a pose on the way counts as passed."
    )
    escape: float = parameter(0.5, unit="m", low=0.0, high=10.0, doc="Longest way out of the inflation of an obstacle.")

    def __post_init__(self) -> None:
        check(self, "navigator")
