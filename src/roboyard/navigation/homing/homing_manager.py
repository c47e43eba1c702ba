"""Homing manager: monitors link and path, and orders the pose that the robot drives to by itself, if any.

The result is a state, not an event: one `HomingOrder`, which names a point or none.  A goal controller that starts late
or restarts needs only the last order.

Phases
    ``OPERATED``           the operator is in control, or none was connected yet: nothing is ordered
    ``FINISHING_MISSION``  the link is lost and the mission continues first (``on_link_loss="finish-task"``)
    ``RETURNING``          the order names a point
    ``WAITING``            home could not be reached and is tried again after ``retry_period``, or there is no goal:
    stop
    ``HOME``               the last point is reached: stop
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.homing.goal_controller import HomingOrder, OrderOutcome, OrderReport
from roboyard.navigation.homing.link_monitor import LinkConfig, LinkMonitor, LinkState

_MIN_STEP = 0.05
"""Motion shorter than this is not added up yet [m]: what a pose jitters at rest is no way."""


class BreadcrumbTrail:
    """Remembers the pose where the way began, and then every ``point_spacing`` metres of it.

    Args:
        point_spacing: Way between two points [m]; the thesis's l.
        max_points: Most points kept.  A full trail is thinned evenly, not cut: whenever a point comes, the one is
            dropped whose neighbours lie nearest to each other, never the oldest or the newest.

    Attributes:
        points: Oldest first.

    Raises:
        ConfigError: a spacing that is not positive, or room for fewer than 3 points.
    """

    def __init__(self, point_spacing: float = 1.0, max_points: int = 1000) -> None:
        if not (math.isfinite(point_spacing) and point_spacing > 0.0):
            raise ConfigError(f"spacing = {point_spacing}", location="Trail", valid="a positive number of metres")
        if max_points < 3:
            raise ConfigError(f"capacity = {max_points}", location="Trail", valid="at least 3 points")
        self.point_spacing = point_spacing
        self.max_points = max_points
        self.points: list[SE2] = []
        self._distance = 0.0
        self._last_pose: SE2 | None = None

    def __len__(self) -> int:
        return len(self.points)

    def add_pose(self, pose: SE2) -> bool:
        """The operator has driven on to ``pose``; gives whether it was stored."""
        if not self.points:
            self.points.append(pose)
            self._last_pose = pose
            return True
        last = self._last_pose or self.points[-1]
        step = last.distance(pose)
        if step < min(_MIN_STEP, self.point_spacing):
            return False
        self._distance += step
        self._last_pose = pose
        if self._distance < self.point_spacing:
            return False
        if len(self.points) == self.max_points:
            self._thin_out()
        self.points.append(pose)
        self._distance = 0.0
        return True

    def _thin_out(self) -> None:
        gaps = [a.distance(b) for a, b in zip(self.points, self.points[2:], strict=False)]
        del self.points[1 + gaps.index(min(gaps))]

    def pop(self) -> SE2 | None:
        """Remove and give the newest point; None of an empty trail."""
        self._distance, self._last_pose = 0.0, None  # what is driven next begins at the point that is then the newest
        return self.points.pop() if self.points else None

    def restart(self, pose: SE2) -> None:
        """Forget the way: the robot is home."""
        self.points = [pose]
        self._distance, self._last_pose = 0.0, None

    def transform(self, T_new_old: SE2) -> None:
        """Express all points in another frame."""
        self.points = [T_new_old @ point for point in self.points]
        self._last_pose = None if self._last_pose is None else T_new_old @ self._last_pose

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        last = None if self._last_pose is None else _pose_to_tuple(self._last_pose)
        return {"points": [_pose_to_tuple(point) for point in self.points], "way": self._distance, "last": last}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.points = [SE2(*point) for point in saved["points"]]
        self._distance = saved["way"]
        self._last_pose = None if saved["last"] is None else SE2(*saved["last"])


def _pose_to_tuple(pose: SE2) -> tuple[float, float, float]:
    return pose.x, pose.y, pose.theta


HOME_MODES = ("trail", "pose", "trail-then-pose")
LINK_LOSS_MODES = ("home", "finish-task")


class HomingPhase(Enum):
    """Phase of homing."""

    OPERATED = "driven"
    FINISHING_MISSION = "mission"
    RETURNING = "returning"
    WAITING = "waiting"
    HOME = "home"


class HomingConfig(Config):
    """How the robot comes home."""

    home_mode: str = parameter(
        "trail", choices=HOME_MODES,
        doc="Way home: along the driven points, straight to the pose set beforehand, or first the one, then the other.",
    )  # fmt: skip
    on_link_loss: str = parameter(
        "home", choices=LINK_LOSS_MODES,
        doc="Reaction to the loss of the link; finish-task: a mission that runs is finished first.",
    )  # fmt: skip
    home_pose: tuple[float, ...] = parameter(
        (), doc="Pose of home, [x, y, yaw]; empty: where the operator was first heard."
    )
    point_spacing: float = parameter(
        1.0, unit="m", low=0.05, high=1000.0, doc="Distance driven between two stored points; the thesis's l."
    )
    max_points: int = parameter(1000, low=3, high=100_000, doc="Largest number of stored points.")
    pass_radius: float = parameter(
        0.3, unit="m", low=0.01, high=100.0, doc="Distance within which a point on the way counts as visited."
    )
    retry_period: float = parameter(
        10.0, unit="s", low=0.1, high=3600.0, doc="Time after which home is tried again that could not be reached."
    )

    def validate(self) -> None:
        """Check the pose of home."""
        if len(self.home_pose) not in (0, 3):
            raise ConfigError(f"home_pose {list(self.home_pose)}", valid="[x, y, yaw]")


@dataclass(frozen=True, slots=True)
class SkippedPoint:
    """A stored point that was not reached: how near the robot came [m], and why not nearer."""

    point: SE2
    distance: float
    reason: str


class HomingManager:
    """Decides where to go.  Pure: times [ns] and poses come with the calls, ``order`` says what follows.

    Args:
        config: How to come home.
        link: When the link counts as lost.

    Attributes:
        link: The link's state.
        trail: Points driven, in the frame that poses are given in.
        phase: Phase of homing.
        order: The target that the robot is to drive to by itself, or none.
        n_reached: Stored points visited.
        skipped: Stored points not reached since the link was lost, in the order they were given up.
        n_skipped: Stored points not reached, ever.
        n_returns: How often the robot came home.
    """

    def __init__(self, config: HomingConfig | None = None, link: LinkConfig | None = None) -> None:
        self.config = config or HomingConfig()
        self._home_pose = SE2(*self.config.home_pose) if self.config.home_pose else None
        self.link = LinkMonitor(link)
        self.trail = BreadcrumbTrail(self.config.point_spacing, self.config.max_points)
        self.phase = HomingPhase.OPERATED
        self.order = HomingOrder(0)
        self.n_reached = 0
        self.skipped: list[SkippedPoint] = []
        self.n_skipped = 0
        self.n_returns = 0
        self._is_mission_active = False
        self._missed: SkippedPoint | None = None
        self._retry_ns = 0

    @property
    def missed(self) -> SkippedPoint | None:
        """How near the robot came to home, while it is not there."""
        return self._missed

    # -- what happens ------------------------------------------------------------------------------------------------
    def on_operator_message(self, source: str, now_ns: int, stamp_ns: int | None = None) -> bool:
        """Process a message of the operator; returns whether it is a heartbeat.  One is enough to return control."""
        self.update(now_ns)
        is_heartbeat = self.link.on_message(source, now_ns, stamp_ns)
        if is_heartbeat and self.phase is not HomingPhase.OPERATED:
            self._stop_here(now_ns, HomingPhase.OPERATED)
        return is_heartbeat

    def update(self, now_ns: int) -> None:
        """Let time pass."""
        self.link.update(now_ns)
        if self.link.state is not LinkState.LOST:
            return
        if self.phase is HomingPhase.OPERATED:
            self.skipped = []
            if self.config.on_link_loss == "finish-task" and self._is_mission_active:
                self.phase = HomingPhase.FINISHING_MISSION
            else:
                self._order_next_point(now_ns)
        elif self.phase is HomingPhase.WAITING and now_ns >= self._retry_ns:
            self._order_next_point(now_ns)

    def set_pose(self, pose: SE2, now_ns: int) -> None:
        """The robot is at ``pose``."""
        self.update(now_ns)
        if self.phase in (HomingPhase.OPERATED, HomingPhase.FINISHING_MISSION):
            if self.link.state.is_operator_in_control or self.phase is HomingPhase.FINISHING_MISSION:
                self.trail.add_pose(pose)
            return
        target = self.order.target
        if target is not None and not self.order.is_home and pose.distance(target) <= self.config.pass_radius:
            self._finish_point(now_ns, None)

    def set_mission_active(self, is_active: bool, now_ns: int) -> None:
        """A mission runs, or none does any more."""
        self.update(now_ns)
        self._is_mission_active = is_active
        if self.phase is HomingPhase.FINISHING_MISSION and not is_active:
            self._order_next_point(now_ns)

    def on_report(self, report: OrderReport, now_ns: int) -> None:
        """What became of an order; of one that does not hold any more it does not matter."""
        self.update(now_ns)
        if report.number != self.order.number or self.order.target is None:
            return
        skipped_point = None
        if report.outcome is not OrderOutcome.REACHED:
            skipped_point = SkippedPoint(self.order.target, report.distance, report.reason)
        self._finish_point(now_ns, skipped_point)

    def change_frame(self, T_new_old: SE2, now_ns: int) -> None:
        """From now on poses are in another frame; home set beforehand stays as it was said."""
        self.trail.transform(T_new_old)
        target = self.order.target
        if target is not None and target is not self._home_pose:
            self._set_order(now_ns, T_new_old @ target, is_home=self.order.is_home)

    # -- what follows ------------------------------------------------------------------------------------------------
    def _finish_point(self, now_ns: int, skipped_point: SkippedPoint | None) -> None:
        """The order's point is dealt with."""
        if self.order.is_home:
            self._missed = skipped_point
            if skipped_point is not None:
                self._retry_ns = now_ns + round(self.config.retry_period * 1e9)
                self._stop_here(now_ns, HomingPhase.WAITING)
                return
            self.n_reached += 1
            self.n_returns += 1
            if self.order.target is not None:
                self.trail.restart(self.order.target)
            self._stop_here(now_ns, HomingPhase.HOME)
            return
        if skipped_point is None:
            self.n_reached += 1
        else:
            self.skipped.append(skipped_point)
            self.n_skipped += 1
        self.trail.pop()
        self._order_next_point(now_ns)

    def _order_next_point(self, now_ns: int) -> None:
        """Order the next point."""
        points, home_pose = self.trail.points, self._home_pose if self.config.home_mode != "trail" else None
        if self.config.home_mode != "pose" and len(points) > (home_pose is None):
            point = points[-1]
            next_point = points[-2] if len(points) > 1 else home_pose or point
            self._set_order(
                now_ns, SE2(point.x, point.y, math.atan2(next_point.y - point.y, next_point.x - point.x)), is_home=False
            )
        elif home_pose is not None or points:
            self._set_order(now_ns, home_pose or points[0], is_home=True)
        else:
            self._retry_ns = now_ns + round(self.config.retry_period * 1e9)
            self._stop_here(now_ns, HomingPhase.WAITING)

    def _set_order(self, now_ns: int, target: SE2, *, is_home: bool) -> None:
        self.phase = HomingPhase.RETURNING
        self.order = HomingOrder(max(self.order.number + 1, now_ns), target, is_home)

    def _stop_here(self, now_ns: int, phase: HomingPhase) -> None:
        """Order nothing; a new order only if there was another one."""
        was_returning = self.order.target is not None
        self.phase = phase
        if was_returning:
            self.order = HomingOrder(max(self.order.number + 1, now_ns), returning=True)

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        order = self.order
        return {
            "link": self.link.save_state(),
            "trail": self.trail.save_state(),
            "phase": self.phase.value,
            "order": (order.number, _optional_pose_to_tuple(order.target), order.is_home, order.returning),
            "counts": (self.n_reached, self.n_skipped, self.n_returns),
            "skipped": [_skipped_point_to_tuple(point) for point in self.skipped],
            "missed": None if self._missed is None else _skipped_point_to_tuple(self._missed),
            "mission": self._is_mission_active,
            "retry": self._retry_ns,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.link.load_state(saved["link"])
        self.trail.load_state(saved["trail"])
        self.phase = HomingPhase(saved["phase"])
        number, target, is_home, returning = saved["order"]
        self.order = HomingOrder(number, _optional_pose_from_tuple(target), is_home, returning)
        self.n_reached, self.n_skipped, self.n_returns = saved["counts"]
        self.skipped = [SkippedPoint(SE2(*point), distance, reason) for point, distance, reason in saved["skipped"]]
        missed = saved["missed"]
        self._missed = None if missed is None else SkippedPoint(SE2(*missed[0]), missed[1], missed[2])
        self._is_mission_active, self._retry_ns = saved["mission"], saved["retry"]


def _optional_pose_to_tuple(pose: SE2 | None) -> tuple[float, float, float] | None:
    return None if pose is None else (pose.x, pose.y, pose.theta)


def _skipped_point_to_tuple(skipped_point: SkippedPoint) -> tuple[tuple[float, float, float], float, str]:
    return (
        (skipped_point.point.x, skipped_point.point.y, skipped_point.point.theta),
        skipped_point.distance,
        skipped_point.reason,
    )


def _optional_pose_from_tuple(values: tuple[float, float, float] | None) -> SE2 | None:
    return None if values is None else SE2(*values)
