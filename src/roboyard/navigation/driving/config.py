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

    use: str = parameter(doc="its name")
    settings: dict[str, Any] = parameter(factory=dict, doc="what differs from its defaults")


@dataclass(frozen=True)
class Pace:
    """How fast the robot is driven; what is not said is as its drive can."""

    forward: float | None = parameter(None, unit="m/s", low=0.01, high=100.0, doc="fastest ahead")
    backward: float | None = parameter(0.2, unit="m/s", low=0.0, high=100.0, doc="fastest back; 0: never back")
    reverse: bool = parameter(False, doc="whether ways are driven backwards too; recoveries always may")
    sideways: float = parameter(0.0, unit="m/s", low=0.0, high=100.0, doc="fastest to either side; 0: it cannot")
    turn: float | None = parameter(None, unit="rad/s", low=0.01, high=100.0, doc="fastest turning")
    latency: float = parameter(0.0, unit="s", low=0.0, high=2.0, doc="from a command until the base answers it")
    acceleration: float | None = parameter(None, unit="m/s^2", low=0.01, high=1000.0, doc="of driving")
    turn_acceleration: float | None = parameter(None, unit="rad/s^2", low=0.01, high=1000.0, doc="of turning")

    def __post_init__(self) -> None:
        check(self, "pace")


@dataclass(frozen=True)
class ApproachSettings:
    """How a base that goes sideways too drives the last stretch: straight to the pose, turning meanwhile."""

    distance: float = parameter(
        0.3, unit="m", low=0.0, high=10.0, doc="of its beginning; 0: the controller drives it all"
    )
    speed: float = parameter(0.2, unit="m/s", low=0.01, high=10.0, doc="fastest")
    turn: float = parameter(0.6, unit="rad/s", low=0.01, high=10.0, doc="fastest turning")
    allowance: float = parameter(20.0, unit="s", low=0.1, high=1000.0, doc="longest time")

    def __post_init__(self) -> None:
        check(self, "approach")


@dataclass(frozen=True)
class Smoothing:
    """How planned ways are bent, see ``Smoother``; as they are planned while both are 0."""

    turning_radius: float = parameter(0.0, unit="m", low=0.0, high=100.0, doc="bends are as wide where there is room")
    least_radius: float = parameter(
        0.0, unit="m", low=0.0, high=100.0, doc="a way with a tighter bend stays as planned"
    )

    def __post_init__(self) -> None:
        check(self, "smoothing")


@dataclass(frozen=True)
class RecoverySettings:
    """What is tried when the robot cannot go on."""

    policy: Literal["careful", "nav2", "thesis", "move_base"] = parameter("careful", doc="order of the steps")
    steps: tuple[str, ...] = parameter((), doc=f"instead of a policy's: {', '.join(RECOVERIES)}")
    rounds: int = parameter(2, low=0, high=100, doc="how often all steps are tried before the goal is given up")
    reset_distance: float = parameter(3.0, unit="m", low=0.0, high=1000.0, doc="of clear_outside, half the area's side")
    spin_angle: float = parameter(6.283185307179586, unit="rad", low=0.1, high=100.0, doc="of spin")
    back_up: float = parameter(0.3, unit="m", low=0.02, high=10.0, doc="of back_up")
    back_up_speed: float = parameter(0.15, unit="m/s", low=0.01, high=10.0, doc="of back_up and make_room")
    wait: float = parameter(5.0, unit="s", low=0.01, high=1000.0, doc="of wait")
    allowance: float = parameter(15.0, unit="s", low=0.1, high=1000.0, doc="longest time of one step")

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

    planner: Part = parameter(Part("wave"), doc="finds ways")
    smoothing: Smoothing = parameter(Smoothing(), doc="of ways")
    controller: Part = parameter(Part("mppi"), doc="follows them")
    costmap: CostmapSettings = parameter(CostmapSettings(), doc="")
    tolerance: Tolerance = parameter(Tolerance(), doc="of goals")
    approach: ApproachSettings = parameter(ApproachSettings(), doc="of the last stretch, where the base goes sideways")
    patience: Patience = parameter(Patience(), doc="")
    recovery: RecoverySettings = parameter(RecoverySettings(), doc="")
    pace: Pace = parameter(Pace(), doc="")
    replan_period: float = parameter(1.0, unit="s", low=0.05, high=1000.0, doc="between looks for a better way")
    better: float = parameter(
        0.9, low=0.0, high=1.0, doc="a new way is taken if it costs less than this share of the old"
    )
    look_ahead: float = parameter(2.5, unit="m", low=0.1, high=100.0, doc="how far the way is watched for obstacles")
    stuck_time: float = parameter(1.0, unit="s", low=0.0, high=100.0, doc="without a safe command before it recovers")
    pass_radius: float = parameter(
        0.5, unit="m", low=0.01, high=100.0, doc="at which a pose on the way counts as passed"
    )
    escape: float = parameter(0.5, unit="m", low=0.0, high=10.0, doc="how far a way out of an obstacle's reach may be")

    def __post_init__(self) -> None:
        check(self, "navigator")
