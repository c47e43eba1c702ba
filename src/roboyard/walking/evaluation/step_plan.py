"""Metrics and report section of planned footsteps."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from roboyard.evaluation.collector import MessageHandler, Metric, MetricCollector, MetricValue, RobotContext
from roboyard.evaluation.figures import (
    BAD,
    COMMAND,
    MUTED,
    ODOMETRY,
    TRUTH,
    WALL,
    decimation_slice,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.evaluation.section import ReportSection, SectionContext
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.messages.convert.grid_maps import heights_from_msg
from roboyard.record import Recording
from roboyard.walking.evaluation.gait import LegModel

_TOUCHDOWN_TOLERANCE = 0.02
"""Largest horizontal distance of an accurate touchdown from its planned foothold [m]."""
_GOAL_TOLERANCE = 0.05
"""Largest distance from its goal at which the body has reached it [m]."""


class StepPlanMetrics(MetricCollector):
    """Evaluates the execution of step plans by true odometry, joint states and the messages of the free gait node.

    Args:
        truth_topic: Topic of the robot's true nav_msgs/Odometry.
        namespace: Namespace of the robot, "" or "/name".
        leg_model: Legs and motors of the robot.
    """

    metrics = (
        Metric(
            "step_plans",
            "count",
            "Step plans that were executed; no value, as of all metrics of step plans, without legs.",
        ),
        Metric("step_replans", "count", "Step plans that replaced another one under way."),
        Metric(
            "plan_cost",
            "s",
            "Cost of the last plan: its duration, longer the nearer it is to tipping and the poorer the ground.",
            "lower",
        ),
        Metric("touchdowns", "count", "Touchdowns of planned steps."),
        Metric(
            "touchdown_accuracy",
            "ratio",
            "Share of the touchdowns with the foot truly no farther than 20 mm from its foothold in the plan, seen "
            "from above.",
            "higher",
        ),
        Metric("touchdown_error_p95", "m", "95th percentile of these distances.", "lower"),
        Metric("touchdown_error_max", "m", "Largest of these distances.", "lower"),
        Metric("touchdowns_early", "count", "Touchdowns before the planned time.", "lower"),
        Metric("touchdowns_late", "count", "Touchdowns below the planned foothold.", "lower"),
        Metric("footholds_lost", "count", "Footholds at which a foot found no ground.", "lower"),
        Metric(
            "goal_distance",
            "m",
            "True distance of the body's center from the plan's goal, seen from above.",
            "lower",
        ),
        Metric("at_goal", "boolean", "Whether the robot stands no farther than 50 mm from the goal.", "higher"),
    )
    position = 220

    @classmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return the collector of a robot with legs."""
        leg_model = robot.resource("leg_model")
        return None if leg_model is None else cls(robot.topics.truth, robot.namespace, leg_model)

    def __init__(self, truth_topic: str, namespace: str, leg_model: LegModel) -> None:
        self._topic, self._namespace, self._leg_model = truth_topic, namespace, leg_model
        self._body_pose: tuple[tuple[float, ...], tuple[float, ...]] | None = None
        self._goal_position: tuple[float, float] | None = None
        self._n_plans = self._n_replans = 0
        self._plan_cost: float | None = None
        self._pending_touchdowns: list[tuple[int, float, float]] = []
        self._touchdown_errors: list[float] = []
        self._touchdown_counts = {"planned": 0, "early": 0, "late": 0, "none": 0}
        self._is_standing = False

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of true odometry, joint states, gait state, plans and touchdowns."""
        prefix = f"{self._namespace}/"
        return {
            self._topic: self._on_truth, f"{prefix}joint_states": self._on_joints, f"{prefix}steps/plan": self._on_plan,
            f"{prefix}steps/touchdown": self._on_touchdown, f"{prefix}gait/state": self._on_state,
        }  # fmt: skip

    def _on_truth(self, message: Any, time_ns: int) -> None:
        p, q = message.pose.pose.position, message.pose.pose.orientation
        self._body_pose = (q.w, q.x, q.y, q.z), (p.x, p.y, p.z)

    def _on_plan(self, message: Any, time_ns: int) -> None:
        self._n_plans += 1
        self._n_replans += message.reason in ("better", "ground")
        self._plan_cost, self._goal_position = float(message.cost), (message.goal.x, message.goal.y)

    def _on_touchdown(self, message: Any, time_ns: int) -> None:
        legs = [leg.name for leg in self._leg_model.legged_robot.legs]
        self._touchdown_counts[message.kind] = self._touchdown_counts.get(message.kind, 0) + 1
        if message.leg in legs and message.kind != "none":
            self._pending_touchdowns.append((legs.index(message.leg), message.planned.x, message.planned.y))

    def _on_joints(self, message: Any, time_ns: int) -> None:
        if not self._pending_touchdowns or self._body_pose is None:
            return
        legged_robot, names = self._leg_model.legged_robot, list(message.name)
        q = np.array([message.position[names.index(joint)] for joint in legged_robot.joints]).reshape(-1, 3)
        feet = legged_robot.foot_positions(q)
        for leg, x, y in self._pending_touchdowns:
            foot_position = SE3(*self._body_pose) @ feet[leg]
            self._touchdown_errors.append(math.hypot(float(foot_position[0]) - x, float(foot_position[1]) - y))
        self._pending_touchdowns.clear()

    def _on_state(self, state: Any, time_ns: int) -> None:
        twist = state.twist
        self._is_standing = bool(np.all(state.in_stance)) and not (twist.linear.x or twist.linear.y or twist.angular.z)

    def _goal_distance(self) -> float | None:
        if self._goal_position is None or self._body_pose is None:
            return None
        return math.hypot(
            self._body_pose[1][0] - self._goal_position[0], self._body_pose[1][1] - self._goal_position[1]
        )

    def save_state(self) -> dict[str, Any]:
        """Return everything but the legs, as plain data."""
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_leg_model"})

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; of a robot that executed no plan the counts and ``at_goal``."""
        errors, goal_distance = np.array(self._touchdown_errors), self._goal_distance()
        has_touchdowns = len(errors) > 0
        return {
            "step_plans": self._n_plans,
            "step_replans": self._n_replans,
            "plan_cost": self._plan_cost,
            "touchdowns": len(errors),
            "touchdown_accuracy": float((errors <= _TOUCHDOWN_TOLERANCE).mean()) if has_touchdowns else None,
            "touchdown_error_p95": float(np.percentile(errors, 95)) if has_touchdowns else None,
            "touchdown_error_max": float(errors.max()) if has_touchdowns else None,
            "touchdowns_early": self._touchdown_counts["early"],
            "touchdowns_late": self._touchdown_counts["late"],
            "footholds_lost": self._touchdown_counts["none"],
            "goal_distance": goal_distance,
            "at_goal": goal_distance is not None
            and goal_distance < _GOAL_TOLERANCE
            and self._is_standing
            and has_touchdowns,
        }


_WIDTH = 8.6
_TOUCHDOWN_TOLERANCE_MM = 1e3 * _TOUCHDOWN_TOLERANCE
"""`_TOUCHDOWN_TOLERANCE` in mm."""
_PLOT_MARGIN = 0.35
"""Margin of the drawing around its contents [m]."""


def step_plan_section(context: SectionContext) -> ReportSection | None:
    """Show the execution of step plans; None for a robot without any."""
    topics = [f"{context.namespace}/steps/plan", f"{context.namespace}/steps/touchdown"]
    plans, touchdowns = (_read_messages(context.recording, topic) for topic in topics)
    if not plans:
        return None
    elevation_maps = _read_messages(context.recording, "/elevation_map")
    figures = [
        _footholds_figure(
            plans, touchdowns, elevation_maps[-1][1] if elevation_maps else None, _read_body_track(context)
        )
    ]
    if touchdowns:
        figures.append(_touchdown_errors_figure(touchdowns))
    note = (
        f"Plans that were executed: {len(plans)}, to ({plans[-1][1].goal.x:.2f}, {plans[-1][1].goal.y:.2f}) m. Rings: "
        "planned footholds; dots: touchdowns by the robot's own estimate. Gray: low ground."
    )
    return ReportSection("Step plans", tuple(figures), note=note)


def _read_messages(recording: Recording, topic: str) -> list[tuple[float, Any]]:
    if topic not in recording.topics:
        return []
    return [(item.time_ns * 1e-9, item.message) for item in recording.messages([topic])]


def _read_body_track(context: SectionContext) -> Array:
    """Return true positions (n, 2) of the body [m]."""
    positions = [
        (m.pose.pose.position.x, m.pose.pose.position.y)
        for _, m in _read_messages(context.recording, context.robot.topics.truth)
    ]
    return np.array(positions).reshape(-1, 2)


def _footholds_figure(
    plans: list[tuple[float, Any]], touchdowns: list[tuple[float, Any]], elevation_map: Any, track: Array
) -> str:
    last = plans[-1][1]
    planned = np.array([(swing.target.x, swing.target.y) for swing in last.swings]).reshape(-1, 2)
    touchdown_points = np.array([(touchdown.actual.x, touchdown.actual.y) for _, touchdown in touchdowns]).reshape(
        -1, 2
    )
    body = np.array([(p.x, p.y) for p in last.body_path])
    points = np.concatenate([planned, touchdown_points, body, track])
    low, high = points.min(axis=0) - _PLOT_MARGIN, points.max(axis=0) + _PLOT_MARGIN
    with figure_style():
        height = min(max(_WIDTH * float((high - low)[1] / (high - low)[0]), 2.5), 8.0)
        figure, axes = new_figure(_WIDTH, height)
        if elevation_map is not None:
            height_map = heights_from_msg(elevation_map)
            heights, (x, y), cell_size = height_map.heights, height_map.corner, height_map.resolution
            rows, columns = heights.shape
            level = float(np.nanmedian(heights))
            depth = np.clip(level - np.nan_to_num(heights, nan=level - 1.0), 0.0, 0.1) / 0.1
            cell_x, cell_y = x + (np.arange(columns) + 0.5) * cell_size, y + (np.arange(rows) + 0.5) * cell_size
            axes.contourf(cell_x, cell_y, depth, levels=[0.5, 2.0], colors=[WALL], alpha=0.25)
        axes.plot(*body.T, color=COMMAND, lw=1.0, label="body, last plan")
        samples = decimation_slice(len(track))
        axes.plot(*track[samples].T, color=TRUTH, lw=1.4, label="body, true")
        axes.plot(*planned.T, "o", ms=7, mfc="none", mec=MUTED, mew=0.9, label="footholds, last plan")
        axes.plot(*touchdown_points.T, ".", ms=5, color=ODOMETRY, label="touchdowns")
        axes.plot(last.goal.x, last.goal.y, "*", ms=11, color=BAD, label="goal")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.set_aspect("equal")
        axes.set_xlabel("x [m]")
        axes.set_ylabel("y [m]")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, handlelength=1.4)
        return render_svg(figure, "Footholds, touchdowns and path of the body, seen from above")


def _touchdown_errors_figure(touchdowns: list[tuple[float, Any]]) -> str:
    times = np.array([time for time, _ in touchdowns])
    errors = np.array(
        [
            1e3 * np.hypot(touchdown.actual.x - touchdown.planned.x, touchdown.actual.y - touchdown.planned.y)
            for _, touchdown in touchdowns
        ]
    )
    with figure_style():
        figure, axes = new_figure(_WIDTH, 1.9)
        for kind, color in (("planned", TRUTH), ("early", ODOMETRY), ("late", COMMAND), ("none", BAD)):
            is_kind = np.array([touchdown.kind == kind for _, touchdown in touchdowns])
            if is_kind.any():
                axes.plot(times[is_kind], errors[is_kind], ".", ms=6, color=color, label=kind)
        axes.axhline(_TOUCHDOWN_TOLERANCE_MM, color=BAD, lw=0.9, ls=(0, (4, 2)))
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel("error [mm]")
        axes.set_xlabel("simulated time [s]")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.1)
        return render_svg(figure, "Distance of touchdowns from their footholds by the robot's own estimate")
