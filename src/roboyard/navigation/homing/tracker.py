"""The tracker: watches link and way, and says at every moment where the robot shall go by itself, if anywhere.

What is wanted is a state, not an event: one ``Order``, which names a point or none.  Whoever carries it out may come
late, or be restarted, and needs only the last one.

Phases
    ``DRIVEN``     the operator is heard, or none has been yet: nothing is ordered
    ``MISSION``    the link is lost and the mission goes on first (``on_loss="finish-task"``)
    ``RETURNING``  the order names a point
    ``WAITING``    home could not be reached: it is tried again after ``retry``; or there is nowhere to go: stand still
    ``HOME``       the last point is reached: stand still
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.homing.goals import Outcome, Report
from roboyard.navigation.homing.link import LinkConfig, LinkState, LinkWatch
from roboyard.navigation.homing.trail import Trail

HOME_MODES = ("trail", "pose", "trail-then-pose")
LOSS_MODES = ("home", "finish-task")


class Phase(Enum):
    """What the robot is about."""

    DRIVEN = "driven"
    MISSION = "mission"
    RETURNING = "returning"
    WAITING = "waiting"
    HOME = "home"


class HomingConfig(Config):
    """How the robot comes home."""

    home: str = parameter(
        "trail", choices=HOME_MODES,
        doc="Way home: along the driven points, straight to the pose set beforehand, or first the one, then the other.",
    )  # fmt: skip
    on_loss: str = parameter(
        "home", choices=LOSS_MODES,
        doc="Reaction to the loss of the link; finish-task: a mission that runs is finished first.",
    )  # fmt: skip
    pose: tuple[float, ...] = parameter(
        (), key="home_pose", doc="Pose of home, [x, y, yaw]; empty: where the operator was first heard."
    )
    spacing: float = parameter(
        1.0, unit="m", low=0.05, high=1000.0, doc="Distance driven between two stored points; the thesis's l."
    )
    capacity: int = parameter(1000, low=3, high=100_000, doc="Largest number of stored points.")
    pass_radius: float = parameter(
        0.3, unit="m", low=0.01, high=100.0, doc="Distance within which a point on the way counts as visited."
    )
    retry: float = parameter(
        10.0, unit="s", low=0.1, high=3600.0, doc="Time after which home is tried again that could not be reached."
    )

    def validate(self) -> None:
        """Check the pose of home."""
        if len(self.pose) not in (0, 3):
            raise ConfigError(f"home_pose {list(self.pose)}", valid="[x, y, yaw]")


@dataclass(frozen=True, slots=True)
class Order:
    """What shall be done now.

    Attributes:
        number: Larger than that of every order before; never smaller than the time it was given at [ns], so that this
            holds across restarts too.
        target: Where to go; None: nowhere, and whatever was ordered before is to be cancelled.
        last: The target is home itself.
        returning: For no target: the robot was on its way, and a goal may still be under way.
    """

    number: int
    target: SE2 | None = None
    last: bool = False
    returning: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A stored point that was not reached: how near the robot came [m], and why not nearer."""

    point: SE2
    distance: float
    reason: str


class Tracker:
    """Decides where to go.  Pure: times [ns] and poses come with the calls, ``order`` says what follows.

    Args:
        config: How to come home.
        link: When the link counts as lost.

    Attributes:
        link: The link's state.
        trail: Points driven, in the frame that poses are given in.
        phase: What the robot is about.
        order: What shall be done now.
        reached: Stored points visited.
        skipped: Stored points not reached since the link was lost, in the order they were given up.
        given_up: Stored points not reached, ever.
        returns: How often the robot came home.
    """

    def __init__(self, config: HomingConfig | None = None, link: LinkConfig | None = None) -> None:
        self.config = config or HomingConfig()
        self._home = SE2(*self.config.pose) if self.config.pose else None
        self.link = LinkWatch(link)
        self.trail = Trail(self.config.spacing, self.config.capacity)
        self.phase = Phase.DRIVEN
        self.order = Order(0)
        self.reached = 0
        self.skipped: list[Skipped] = []
        self.given_up = 0
        self.returns = 0
        self._mission = False
        self._missed: Skipped | None = None
        self._retry_ns = 0

    @property
    def missed(self) -> Skipped | None:
        """How near the robot came to home, while it is not there."""
        return self._missed

    # -- what happens ------------------------------------------------------------------------------------------------
    def hear(self, source: str, now_ns: int, stamp_ns: int | None = None) -> bool:
        """A message of the operator came; gives whether it is a sign of life.  One is enough to get the robot back."""
        self.tick(now_ns)
        counts = self.link.hear(source, now_ns, stamp_ns)
        if counts and self.phase is not Phase.DRIVEN:
            self._stand(now_ns, Phase.DRIVEN)
        return counts

    def tick(self, now_ns: int) -> None:
        """Let time pass."""
        self.link.update(now_ns)
        if self.link.state is not LinkState.LOST:
            return
        if self.phase is Phase.DRIVEN:
            self.skipped = []
            if self.config.on_loss == "finish-task" and self._mission:
                self.phase = Phase.MISSION
            else:
                self._return(now_ns)
        elif self.phase is Phase.WAITING and now_ns >= self._retry_ns:
            self._return(now_ns)

    def at(self, pose: SE2, now_ns: int) -> None:
        """The robot is at ``pose``."""
        self.tick(now_ns)
        if self.phase in (Phase.DRIVEN, Phase.MISSION):
            if self.link.state.is_heard or self.phase is Phase.MISSION:
                self.trail.drive(pose)
            return
        target = self.order.target
        if target is not None and not self.order.last and pose.distance(target) <= self.config.pass_radius:
            self._done(now_ns, None)

    def mission(self, running: bool, now_ns: int) -> None:
        """A mission runs, or none does any more."""
        self.tick(now_ns)
        self._mission = running
        if self.phase is Phase.MISSION and not running:
            self._return(now_ns)

    def report(self, report: Report, now_ns: int) -> None:
        """What became of an order; of one that does not hold any more it does not matter."""
        self.tick(now_ns)
        if report.number != self.order.number or self.order.target is None:
            return
        missed = None
        if report.outcome is not Outcome.REACHED:
            missed = Skipped(self.order.target, report.distance, report.reason)
        self._done(now_ns, missed)

    def move_frame(self, T_new_old: SE2, now_ns: int) -> None:
        """From now on poses are in another frame; home set beforehand stays as it was said."""
        self.trail.move(T_new_old)
        target = self.order.target
        if target is not None and target is not self._home:
            self._order(now_ns, T_new_old @ target, last=self.order.last)

    # -- what follows ------------------------------------------------------------------------------------------------
    def _done(self, now_ns: int, missed: Skipped | None) -> None:
        """The order's point is dealt with."""
        if self.order.last:
            self._missed = missed
            if missed is not None:
                self._retry_ns = now_ns + round(self.config.retry * 1e9)
                self._stand(now_ns, Phase.WAITING)
                return
            self.reached += 1
            self.returns += 1
            if self.order.target is not None:
                self.trail.restart(self.order.target)
            self._stand(now_ns, Phase.HOME)
            return
        if missed is None:
            self.reached += 1
        else:
            self.skipped.append(missed)
            self.given_up += 1
        self.trail.take()
        self._return(now_ns)

    def _return(self, now_ns: int) -> None:
        """Order the next point."""
        points, home = self.trail.points, self._home if self.config.home != "trail" else None
        if self.config.home != "pose" and len(points) > (home is None):
            here = points[-1]
            there = points[-2] if len(points) > 1 else home or here
            self._order(now_ns, SE2(here.x, here.y, math.atan2(there.y - here.y, there.x - here.x)), last=False)
        elif home is not None or points:
            self._order(now_ns, home or points[0], last=True)
        else:
            self._retry_ns = now_ns + round(self.config.retry * 1e9)
            self._stand(now_ns, Phase.WAITING)

    def _order(self, now_ns: int, target: SE2, *, last: bool) -> None:
        self.phase = Phase.RETURNING
        self.order = Order(max(self.order.number + 1, now_ns), target, last)

    def _stand(self, now_ns: int, phase: Phase) -> None:
        """Order nothing; a new order only if there was another one."""
        returning = self.order.target is not None
        self.phase = phase
        if returning:
            self.order = Order(max(self.order.number + 1, now_ns), returning=True)

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        order = self.order
        return {
            "link": self.link.save_state(),
            "trail": self.trail.save_state(),
            "phase": self.phase.value,
            "order": (order.number, _plain(order.target), order.last, order.returning),
            "counts": (self.reached, self.given_up, self.returns),
            "skipped": [_plain_skipped(one) for one in self.skipped],
            "missed": None if self._missed is None else _plain_skipped(self._missed),
            "mission": self._mission,
            "retry": self._retry_ns,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.link.load_state(saved["link"])
        self.trail.load_state(saved["trail"])
        self.phase = Phase(saved["phase"])
        number, target, last, returning = saved["order"]
        self.order = Order(number, _pose(target), last, returning)
        self.reached, self.given_up, self.returns = saved["counts"]
        self.skipped = [Skipped(SE2(*point), distance, reason) for point, distance, reason in saved["skipped"]]
        missed = saved["missed"]
        self._missed = None if missed is None else Skipped(SE2(*missed[0]), missed[1], missed[2])
        self._mission, self._retry_ns = saved["mission"], saved["retry"]


def _plain(pose: SE2 | None) -> tuple[float, float, float] | None:
    return None if pose is None else (pose.x, pose.y, pose.theta)


def _plain_skipped(one: Skipped) -> tuple[tuple[float, float, float], float, str]:
    return (one.point.x, one.point.y, one.point.theta), one.distance, one.reason


def _pose(values: tuple[float, float, float] | None) -> SE2 | None:
    return None if values is None else SE2(*values)
