"""Homing: the return to home when the operator's link is lost, as a sequence of target poses.

The result is a state, not an event: one `HomingOrder`, which states a target pose or none.  A goal controller that
starts late or restarts needs only the last order.  A `HomingPolicy` decides whether a mission is finished first and
which pose is next; the default follows the configuration.

Phases
    ``OPERATED``           The operator is in control, or was never connected: there is no target.
    ``FINISHING_MISSION``  The link is lost, and the mission is finished first.
    ``RETURNING``          The order states a target.
    ``WAITING``            The robot stops: home was not reached and is tried again later, or there is no target.
    ``HOME``               The robot has reached home and stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.homing.goal_controller import HomingOrder, OrderOutcome, OrderReport
from roboyard.navigation.homing.link_monitor import LinkConfig, LinkMonitor, LinkState

_MIN_STEP = 0.05
"""Shortest motion that counts as distance driven [m]: the pose estimate of a robot at rest jitters by less."""


class HomeMode(Enum):
    """Path on which the robot returns."""

    TRAIL = "trail"
    """Along the stored points, the newest first, to the first one."""
    POSE = "pose"
    """Directly to the home pose, or to the first stored point if none is configured."""
    TRAIL_THEN_POSE = "trail-then-pose"
    """Along the stored points, then to the home pose."""


class LinkLossAction(Enum):
    """Reaction to the loss of the link."""

    RETURN = "home"
    """The robot returns at once."""
    FINISH_MISSION = "finish-task"
    """A mission that is active is finished first."""


class HomingPhase(Enum):
    """Phase of homing; the values stand in roboyard_msgs/HomingStatus."""

    OPERATED = "driven"
    FINISHING_MISSION = "mission"
    RETURNING = "returning"
    WAITING = "waiting"
    HOME = "home"


class HomingConfig(Config):
    """Configuration of the return to home."""

    home_mode: HomeMode = parameter(
        HomeMode.TRAIL,
        doc="Return along the stored points, directly to the home pose, or along the points and then to the pose.",
    )
    on_link_loss: LinkLossAction = parameter(
        LinkLossAction.RETURN,
        doc="Reaction to the loss of the link; finish-task: a mission that is active is finished first.",
    )
    home_pose: tuple[float, ...] = parameter(
        (), doc="Home pose x, y [m], yaw [rad] in the map; empty: the first stored point."
    )
    point_spacing: float = parameter(
        1.0, unit="m", low=0.05, high=1000.0, doc="Distance driven between two stored points; l in the thesis."
    )
    max_points: int = parameter(1000, low=3, high=100_000, doc="Maximum number of stored points.")
    pass_radius: float = parameter(
        0.3, unit="m", low=0.01, high=100.0, doc="Distance within which an intermediate point counts as reached."
    )
    retry_period: float = parameter(
        10.0, unit="s", low=0.1, high=3600.0, doc="Time after which home is tried again if it was not reached."
    )

    def validate(self) -> None:
        """Check the number of values of the home pose.

        Raises:
            ConfigError: The home pose has neither no values nor three.
        """
        if len(self.home_pose) not in (0, 3):
            raise ConfigError(f"home_pose {list(self.home_pose)}", valid="[x, y, yaw]")


class BreadcrumbTrail:
    """Stores the pose at which the operator started to drive, and then one pose per ``point_spacing`` of distance.

    When the trail is full, each new point replaces the one whose neighbors are closest to each other, but never the
    oldest or the newest; so the trail becomes evenly coarser and keeps its ends.

    Args:
        config: Configuration, of which ``point_spacing`` and ``max_points`` count.

    Attributes:
        points: Stored poses, the oldest first.
    """

    def __init__(self, config: HomingConfig | None = None) -> None:
        config = config or HomingConfig()
        self.point_spacing = config.point_spacing
        self.max_points = config.max_points
        self.points: list[SE2] = []
        self._distance = 0.0
        self._last_pose: SE2 | None = None

    def __len__(self) -> int:
        return len(self.points)

    def add_pose(self, pose: SE2) -> bool:
        """Process a pose of the operated robot; return whether it was stored."""
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
        """Remove and return the newest point; None of an empty trail."""
        self._distance, self._last_pose = 0.0, None  # the distance counts from the point that is newest then
        return self.points.pop() if self.points else None

    def restart(self, pose: SE2) -> None:
        """Start a new trail at a pose."""
        self.points = [pose]
        self._distance, self._last_pose = 0.0, None

    def transform(self, T_new_old: SE2) -> None:
        """Transform all points to another frame."""
        self.points = [T_new_old @ point for point in self.points]
        self._last_pose = None if self._last_pose is None else T_new_old @ self._last_pose

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        last = None if self._last_pose is None else self._last_pose.to_tuple()
        return {"points": [point.to_tuple() for point in self.points], "way": self._distance, "last": last}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        self.points = [SE2.from_tuple(point) for point in saved["points"]]
        self._distance = saved["way"]
        self._last_pose = None if saved["last"] is None else SE2.from_tuple(saved["last"])


@dataclass(frozen=True, slots=True)
class HomingTarget:
    """Next target of the return.

    Attributes:
        pose: Pose to drive to, in the frame of the trail.
        is_home: Whether the return ends there.  Otherwise the target belongs to the newest point of the trail, which
            is removed when the target is reached or skipped.
    """

    pose: SE2
    is_home: bool


class HomingPolicy(Protocol):
    """Decides how the robot reacts to the loss of the link, and on which poses it returns.

    A policy has no state: it must return the same for the same arguments, as a run that continues from a saved state
    asks it again.
    """

    def waits_for_mission(self, *, is_mission_active: bool) -> bool:
        """Return whether the robot finishes its mission before it returns; called when the link is lost."""
        ...

    def next_target(self, trail: Sequence[SE2], home_pose: SE2 | None) -> HomingTarget | None:
        """Return the next target; None if there is none, then the robot stops and asks again later.

        Args:
            trail: Stored points, the oldest first.
            home_pose: Configured home pose; None if none is configured.
        """
        ...


class ConfiguredHomingPolicy:
    """Policy that follows ``home_mode`` and ``on_link_loss`` of the configuration.

    Args:
        config: Configuration.
    """

    def __init__(self, config: HomingConfig) -> None:
        self._home_mode = HomeMode(config.home_mode)
        self._link_loss_action = LinkLossAction(config.on_link_loss)

    def waits_for_mission(self, *, is_mission_active: bool) -> bool:
        """Return whether a mission is active and is to be finished first."""
        return self._link_loss_action is LinkLossAction.FINISH_MISSION and is_mission_active

    def next_target(self, trail: Sequence[SE2], home_pose: SE2 | None) -> HomingTarget | None:
        """Return the newest stored point with the heading to the one before, or home at the end."""
        if self._home_mode is HomeMode.TRAIL:
            home_pose = None
        if self._home_mode is not HomeMode.POSE and len(trail) > (home_pose is None):
            point = trail[-1]
            next_point = trail[-2] if len(trail) > 1 else home_pose or point
            heading = math.atan2(next_point.y - point.y, next_point.x - point.x)
            return HomingTarget(SE2(point.x, point.y, heading), is_home=False)
        if home_pose is not None:
            return HomingTarget(home_pose, is_home=True)
        return HomingTarget(trail[0], is_home=True) if trail else None


@dataclass(frozen=True, slots=True)
class SkippedPoint:
    """A point that was not reached.

    Attributes:
        point: Target that was not reached.
        distance: Remaining distance of the robot [m].
        reason: Reason of the failure.
    """

    point: SE2
    distance: float
    reason: str


class HomingManager:
    """State machine of homing.  Times [ns] and poses are arguments of its methods; ``order`` is its output.

    Args:
        config: Configuration of the return.
        link: Configuration of the link monitor.
        policy: Policy of the return; None: the one that the configuration states.

    Attributes:
        link: Monitor of the operator's link.
        trail: Stored points, in the frame of the poses that `set_pose` gets.
        phase: Present phase.
        order: Target pose of the robot, or none.
        n_reached: Number of points reached.
        skipped: Points skipped since the link was lost, in order.
        n_skipped: Number of points skipped in total.
        n_returns: Number of times that the robot reached home.
    """

    def __init__(
        self,
        config: HomingConfig | None = None,
        link: LinkConfig | None = None,
        policy: HomingPolicy | None = None,
    ) -> None:
        self.config = config or HomingConfig()
        self._policy = policy or ConfiguredHomingPolicy(self.config)
        self._home_pose = SE2.from_tuple(self.config.home_pose) if self.config.home_pose else None
        self.link = LinkMonitor(link)
        self.trail = BreadcrumbTrail(self.config)
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
        """The last failed attempt to reach home; None once home is reached."""
        return self._missed

    # -- inputs --------------------------------------------------------------------------------------------------------
    def on_operator_message(self, source: str, now_ns: int, stamp_ns: int | None = None) -> bool:
        """Process a message of the operator; return whether it is a heartbeat.  One heartbeat returns control to the
        operator.
        """
        self.update(now_ns)
        is_heartbeat = self.link.on_message(source, now_ns, stamp_ns)
        if is_heartbeat and self.phase is not HomingPhase.OPERATED:
            self._stop_here(now_ns, HomingPhase.OPERATED)
        return is_heartbeat

    def update(self, now_ns: int) -> None:
        """Process the time."""
        self.link.update(now_ns)
        if self.link.state is not LinkState.LOST:
            return
        if self.phase is HomingPhase.OPERATED:
            self.skipped = []
            if self._policy.waits_for_mission(is_mission_active=self._is_mission_active):
                self.phase = HomingPhase.FINISHING_MISSION
            else:
                self._order_next_point(now_ns)
        elif self.phase is HomingPhase.WAITING and now_ns >= self._retry_ns:
            self._order_next_point(now_ns)

    def set_pose(self, pose: SE2, now_ns: int) -> None:
        """Process the present pose of the robot."""
        self.update(now_ns)
        if self.phase in (HomingPhase.OPERATED, HomingPhase.FINISHING_MISSION):
            if self.link.state.is_operator_in_control or self.phase is HomingPhase.FINISHING_MISSION:
                self.trail.add_pose(pose)
            return
        target = self.order.target
        if target is not None and not self.order.is_home and pose.distance(target) <= self.config.pass_radius:
            self._finish_point(now_ns, None)

    def set_mission_active(self, is_active: bool, now_ns: int) -> None:
        """Process whether a mission is active."""
        self.update(now_ns)
        self._is_mission_active = is_active
        if self.phase is HomingPhase.FINISHING_MISSION and not is_active:
            self._order_next_point(now_ns)

    def on_report(self, report: OrderReport, now_ns: int) -> None:
        """Process the outcome of an order; reports on earlier orders are ignored."""
        self.update(now_ns)
        if report.number != self.order.number or self.order.target is None:
            return
        skipped_point = None
        if report.outcome is not OrderOutcome.REACHED:
            skipped_point = SkippedPoint(self.order.target, report.distance, report.reason)
        self._finish_point(now_ns, skipped_point)

    def change_frame(self, T_new_old: SE2, now_ns: int) -> None:
        """Transform the trail and the target to a new frame of the poses; the configured home pose stays as it is."""
        self.trail.transform(T_new_old)
        target = self.order.target
        if target is not None and target is not self._home_pose:
            self._set_order(now_ns, T_new_old @ target, is_home=self.order.is_home)

    # -- orders --------------------------------------------------------------------------------------------------------
    def _finish_point(self, now_ns: int, skipped_point: SkippedPoint | None) -> None:
        """Process the end of the present target: reached, or skipped."""
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
        """Order the next target, or stop until the next retry."""
        target = self._policy.next_target(self.trail.points, self._home_pose)
        if target is None:
            self._retry_ns = now_ns + round(self.config.retry_period * 1e9)
            self._stop_here(now_ns, HomingPhase.WAITING)
        else:
            self._set_order(now_ns, target.pose, is_home=target.is_home)

    def _set_order(self, now_ns: int, target: SE2, *, is_home: bool) -> None:
        self.phase = HomingPhase.RETURNING
        self.order = HomingOrder(max(self.order.number + 1, now_ns), target, is_home)

    def _stop_here(self, now_ns: int, phase: HomingPhase) -> None:
        """Enter a phase without a target; this is a new order only if there was a target."""
        was_returning = self.order.target is not None
        self.phase = phase
        if was_returning:
            self.order = HomingOrder(max(self.order.number + 1, now_ns), returning=True)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        order = self.order
        target = None if order.target is None else order.target.to_tuple()
        return {
            "link": self.link.save_state(),
            "trail": self.trail.save_state(),
            "phase": self.phase.value,
            "order": (order.number, target, order.is_home, order.returning),
            "counts": (self.n_reached, self.n_skipped, self.n_returns),
            "skipped": [_skipped_point_to_tuple(point) for point in self.skipped],
            "missed": None if self._missed is None else _skipped_point_to_tuple(self._missed),
            "mission": self._is_mission_active,
            "retry": self._retry_ns,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        self.link.load_state(saved["link"])
        self.trail.load_state(saved["trail"])
        self.phase = HomingPhase(saved["phase"])
        number, target, is_home, returning = saved["order"]
        self.order = HomingOrder(number, None if target is None else SE2.from_tuple(target), is_home, returning)
        self.n_reached, self.n_skipped, self.n_returns = saved["counts"]
        self.skipped = [_skipped_point_from_tuple(values) for values in saved["skipped"]]
        self._missed = None if saved["missed"] is None else _skipped_point_from_tuple(saved["missed"])
        self._is_mission_active, self._retry_ns = saved["mission"], saved["retry"]


def _skipped_point_to_tuple(skipped_point: SkippedPoint) -> tuple[tuple[float, float, float], float, str]:
    return skipped_point.point.to_tuple(), skipped_point.distance, skipped_point.reason


def _skipped_point_from_tuple(values: tuple[tuple[float, float, float], float, str]) -> SkippedPoint:
    point, distance, reason = values
    return SkippedPoint(SE2.from_tuple(point), distance, reason)
