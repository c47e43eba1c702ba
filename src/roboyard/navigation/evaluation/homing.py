"""Metrics and report section of the return home after the operator's link was lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from roboyard.evaluation.collector import (
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    RobotContext,
    TimelineEvent,
)
from roboyard.evaluation.figures import (
    BAD,
    COMMAND,
    GOOD,
    MUTED,
    PANEL,
    TRUTH,
    configure_plan_axes,
    decimation_slice,
    draw_top_down_map,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.evaluation.robot_trace import RobotTrace, configure_time_axis, plan_bounds, plan_figure_height
from roboyard.evaluation.section import ReportSection, SectionContext
from roboyard.geometry import SE2
from roboyard.grids.floor_plan import TopDownMap
from roboyard.messages.convert.action_goals import ACTIVE_STATUSES
from roboyard.messages.convert.poses import pose_to_xy_yaw
from roboyard.record import Recording

_CONNECTED_LINK_STATES = ("connected", "recovering")
HOME_TOLERANCE = 0.3
"""Distance from home within which a robot counts as returned [m]."""
_SAME_POINT_TOLERANCE = 1e-3
"""Distance below which two points are the same [m]."""


class HomingMetrics(MetricCollector):
    """Computes the metrics of homing from the status and the orders of the homing tracker, the ground truth, the status
    of the navigator and the owner of the velocity.

    Home is the robot's pose at the operator's first message, or the tracker's parameter `home_pose`; the target of the
    tracker's last order states which.

    Args:
        truth_topic: Topic of the robot's true nav_msgs/Odometry.
        namespace: Namespace of the robot, "" or "/name".
    """

    metrics = (
        Metric(
            "link_losses",
            "count",
            "How often the operator's link was lost, without short relapses; no value, as of the next five, of a "
            "robot without a homing tracker.",
        ),
        Metric(
            "returned",
            "boolean",
            "Whether the robot had finished its return and was truly within 0.3 m of home when the operator was heard"
            " again, or at the end; no value if the link was never lost.",
            "higher",
        ),
        Metric("home_error", "m", "True distance from home at that time.", "lower", "distance from home"),
        Metric(
            "homing_time",
            "s",
            "Time from the loss of the link to the last point; no value if the robot did not finish its return.",
            "lower",
        ),
        Metric(
            "cancel_latency",
            "s",
            "Longest time from a message of the operator to the end of the goal that the robot was under way to; no "
            "value if there was none.",
            "lower",
            "cancel latency",
        ),
        Metric("waypoints_skipped", "count", "Stored points that were not reached.", "lower", "waypoints skipped"),
    )
    position = 130

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.topics.truth, robot.namespace)

    def __init__(self, truth_topic: str, namespace: str = "") -> None:
        self._truth_topic, self._namespace = truth_topic, namespace
        self._position: tuple[float, float] | None = None
        self._initial_pose: tuple[float, float, float] | None = None
        self._home_position: tuple[float, float] | None = None
        self._first_trail_position: tuple[float, float] | None = None
        self._has_home_pose = False
        self._link_state = self._phase = ""
        self._outage_and_skip_counts: tuple[int, int] | None = None
        self._link_lost_ns = 0
        self._homing_time = 0.0
        self._last_outcome: tuple[bool, float] | None = None
        self._is_goal_active = False
        self._takeover_request_ns: int | None = None
        self._max_cancel_latency: float | None = None
        self._events: list[tuple[float, str, str]] = []  # arguments of `TimelineEvent`

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of true odometry, tracker, navigator, arbiter and operator."""
        prefix = f"{self._namespace}/"
        return {
            self._truth_topic: self._on_truth,
            f"{prefix}homing/status": self._on_status,
            f"{prefix}homing/trail": self._on_trail,
            f"{prefix}homing/order": self._on_order,
            f"{prefix}navigate_to_pose/_action/status": self._on_goals,
            f"{prefix}arbiter/owner": self._on_owner,
            f"{prefix}teleop/heartbeat": self._on_operator_message,
            f"{prefix}joy": self._on_operator_message,
        }

    def _on_truth(self, message: Any, time_ns: int) -> None:
        pose = message.pose.pose
        if self._initial_pose is None:
            self._initial_pose = pose_to_xy_yaw(pose)
        self._position = pose.position.x, pose.position.y

    def _on_trail(self, trail: Any, time_ns: int) -> None:
        if trail.poses:
            position = trail.poses[0].pose.position
            self._first_trail_position = position.x, position.y

    def _on_order(self, order: Any, time_ns: int) -> None:
        """Take home from an order whose target is home but not the first stored point: it is the given pose."""
        if not (order.is_active and order.is_home):
            return
        target = order.pose.pose.position
        trail_start = self._first_trail_position
        if trail_start is None or math.dist(trail_start, (target.x, target.y)) > _SAME_POINT_TOLERANCE:
            self._has_home_pose = True
        if not self._has_home_pose:
            return
        x, y = target.x, target.y
        if order.pose.header.frame_id.rpartition("/")[2] == "odom" and self._initial_pose is not None:
            x, y = (SE2(*self._initial_pose) @ np.array((x, y))).tolist()  # odometry starts where the robot stood
        self._home_position = x, y

    def _on_status(self, status: Any, time_ns: int) -> None:
        previous_link_state, self._link_state = self._link_state, status.link
        if self._home_position is None and status.stored:
            self._home_position = self._position
        if status.link == "lost" and previous_link_state == "connected":
            self._link_lost_ns = time_ns
        if status.phase == "home" and self._phase != "home":
            self._homing_time = (time_ns - self._link_lost_ns) * 1e-9
            text = f"the robot finished its return {self._homing_time:.1f} s after the loss of the link"
            self._events.append((time_ns * 1e-9, "home_reached", text))
        if status.link == "lost" and previous_link_state in _CONNECTED_LINK_STATES:
            self._events.append((time_ns * 1e-9, "link_lost", "the link to the operator was lost"))
        if previous_link_state == "lost" and status.link in _CONNECTED_LINK_STATES:
            self._events.append((time_ns * 1e-9, "link_restored", "the link to the operator was restored"))
            self._last_outcome = self._homing_outcome()
        self._phase, self._outage_and_skip_counts = status.phase, (status.outages, status.skipped)

    def _homing_outcome(self) -> tuple[bool, float] | None:
        """Return whether the robot has finished its return, and its distance from home [m]; None without a home."""
        if self._home_position is None or self._position is None:
            return None
        return self._phase == "home", math.dist(self._home_position, self._position)

    def _on_owner(self, owner: Any, time_ns: int) -> None:
        if owner.data and not owner.data.endswith("/navigator"):
            self._on_operator_message(owner, time_ns)

    def _on_operator_message(self, _: Any, time_ns: int) -> None:
        if self._link_state == "lost" and self._is_goal_active and self._takeover_request_ns is None:
            self._takeover_request_ns = time_ns

    def _on_goals(self, status: Any, time_ns: int) -> None:
        self._is_goal_active = any(goal.status in ACTIVE_STATUSES for goal in status.status_list)
        if not self._is_goal_active and self._takeover_request_ns is not None:
            self._max_cancel_latency = max(
                self._max_cancel_latency or 0.0, (time_ns - self._takeover_request_ns) * 1e-9
            )
            self._takeover_request_ns = None

    def finish(self, time_ns: int) -> None:
        """Count the wait of an operator whose goal was not canceled until the end [ns]."""
        if self._takeover_request_ns is not None:
            self._max_cancel_latency = max(
                self._max_cancel_latency or 0.0, (time_ns - self._takeover_request_ns) * 1e-9
            )

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none of a robot without a tracker."""
        if self._outage_and_skip_counts is None:
            return {}
        is_finished, error = (self._homing_outcome() if self._link_state == "lost" else self._last_outcome) or (
            False,
            None,
        )
        returned = None if error is None else is_finished and error <= HOME_TOLERANCE
        homing_time = self._homing_time if is_finished else None
        link_losses, waypoints_skipped = self._outage_and_skip_counts
        return {
            "link_losses": link_losses, "returned": returned, "home_error": error, "homing_time": homing_time,
            "cancel_latency": self._max_cancel_latency, "waypoints_skipped": waypoints_skipped,
        }  # fmt: skip

    def events(self) -> Sequence[TimelineEvent]:
        """Return when the operator's link was lost and restored, and when the robot finished its return."""
        return [TimelineEvent(*event) for event in self._events]


_WIDTH = 8.6
_LINK_COLORS = {"never_heard": MUTED, "connected": GOOD, "recovering": COMMAND, "lost": BAD}
_PHASE_COLORS = {"driven": GOOD, "mission": COMMAND, "returning": TRUTH, "waiting": BAD, "home": MUTED}


@dataclass(frozen=True, slots=True)
class HomingTrace:
    """The tracker's status over time.

    Attributes:
        points: (n, 2) points of the longest stored trail [m].
        state_changes: Times [s] with the state of the link and the phase from then on.
    """

    points: NDArray[np.float64]
    state_changes: tuple[tuple[float, str, str], ...]

    def link_lost_intervals(self, end: float) -> list[tuple[float, float]]:
        """Return start and end of each time without a link [s]."""
        change_ends = [*(time for time, _, _ in self.state_changes[1:]), end]
        intervals = [
            (time, interval_end)
            for (time, link, _), interval_end in zip(self.state_changes, change_ends, strict=True)
            if link == "lost"
        ]
        merged: list[tuple[float, float]] = []
        for start, interval_end in intervals:
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], interval_end)
            else:
                merged.append((start, interval_end))
        return merged


def homing_section(context: SectionContext) -> ReportSection | None:
    """Show the return and the link over time; None if the robot has no tracker, or its link was never lost."""
    homing = read_homing_trace(context.recording, context.namespace)
    if homing is None or not len(context.trace.truth):
        return None
    note = (
        "The points are those of the longest stored trail. The link is connected, lost after the timeout, and "
        "recovering until the operator was heard long enough."
    )
    figures = (homing_figure(context.trace, homing, context.top_down_map), link_and_phase_figure(context.trace, homing))
    return ReportSection("Return home without the operator", figures, note=note)


def read_homing_trace(recording: Recording, namespace: str) -> HomingTrace | None:
    """Read the homing of the robot in a namespace; None if it has no tracker, or its link was never lost.

    Args:
        recording: Open.
        namespace: Of the robot, "" or "/name".

    Raises:
        RecordingError: The recording is damaged.
    """
    status, trail = f"{namespace}/homing/status", f"{namespace}/homing/trail"
    if status not in recording.topics:
        return None
    changes = [(item.time_ns * 1e-9, item.message.link, item.message.phase) for item in recording.messages([status])]
    if all(link != "lost" for _, link, _ in changes):
        return None
    poses: list[tuple[float, float]] = []
    for item in recording.messages([trail]) if trail in recording.topics else ():
        if len(item.message.poses) > len(poses):
            poses = [(pose.pose.position.x, pose.pose.position.y) for pose in item.message.poses]
    return HomingTrace(np.asarray(poses, dtype=np.float64).reshape(-1, 2), tuple(changes))


def homing_figure(robot_trace: RobotTrace, homing_trace: HomingTrace, top_down_map: TopDownMap | None) -> str:
    """Draw the path with and without the operator and the stored points over the floor plan [m]."""
    truth = robot_trace.truth
    with figure_style():
        extent = plan_bounds([robot_trace], top_down_map)
        figure, axes = new_figure(_WIDTH, plan_figure_height(extent))
        draw_top_down_map(axes, top_down_map)
        samples = decimation_slice(len(truth))
        axes.plot(truth.x[samples], truth.y[samples], color=GOOD, lw=1.6, label="link connected")
        for number, (start, end) in enumerate(homing_trace.link_lost_intervals(float(truth.time[-1]))):
            is_link_lost = (truth.time >= start) & (truth.time <= end)
            axes.plot(
                truth.x[is_link_lost], truth.y[is_link_lost], color=BAD, lw=2.4, label=None if number else "link lost"
            )
        x, y = homing_trace.points[:, 0], homing_trace.points[:, 1]
        axes.plot(x, y, "o", ms=5, mfc=PANEL, mec=TRUTH, mew=1.4, label=f"{len(x)} stored points")
        if len(x):
            axes.plot(x[0], y[0], "s", ms=8, mfc=PANEL, mec=GOOD, mew=2, label="home")
        configure_plan_axes(axes, extent)
        figure.legend(loc="outside lower center", ncols=5, handlelength=1.8)
        return render_svg(figure, "Path with the operator, and return without")


def link_and_phase_figure(robot_trace: RobotTrace, homing_trace: HomingTrace) -> str:
    """Draw link and phase over time."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 1.7, rows=2)
        end = float(robot_trace.truth.time[-1])
        change_ends = [*(time for time, _, _ in homing_trace.state_changes[1:]), end]
        labeled: set[str] = set()
        for (start, link, phase), change_end in zip(homing_trace.state_changes, change_ends, strict=True):
            for axes, state, colors in ((above, link, _LINK_COLORS), (below, phase, _PHASE_COLORS)):
                label = None if state in labeled else state
                labeled.add(state)
                axes.axvspan(start, change_end, color=colors.get(state, MUTED), alpha=0.75, lw=0, label=label)
        for axes, name in ((above, "link"), (below, "robot")):
            axes.set_yticks([])
            axes.set_ylabel(name)
            axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=5, borderaxespad=0.1, handlelength=1.0)
        configure_time_axis(below, [robot_trace])
        return render_svg(figure, "Link and phase over time")
