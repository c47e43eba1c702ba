"""One robot's messages of a recording as arrays, and their figures: track, odometry error, speed, scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from roboyard.evaluation.contacts import ContactMetrics
from roboyard.evaluation.figures import (
    BAD,
    COMMAND,
    GOOD,
    INK,
    MUTED,
    ODOMETRY,
    PANEL,
    SCAN,
    TRUTH,
    configure_plan_axes,
    decimation_slice,
    draw_top_down_map,
    ensure_axis_range,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.evaluation.message_checks import MessageChecker
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.grids.floor_plan import TopDownMap
from roboyard.messages.convert import scan_points
from roboyard.messages.convert.poses import pose_to_se2_unchecked, quaternion_to_yaw
from roboyard.messages.time import to_nanoseconds
from roboyard.record import Recording


@dataclass(frozen=True, slots=True)
class PoseTrace:
    """Poses over time: ``time`` (n,) [s], ``x``, ``y`` (n,) [m], ``yaw`` (n,) [rad, unwrapped], ``v``, ``w`` (n,)."""

    time: Array
    x: Array
    y: Array
    yaw: Array
    v: Array
    w: Array

    def __len__(self) -> int:
        return len(self.time)

    def pose(self, time: float) -> SE2:
        """The pose at ``time`` [s], interpolated."""
        x, y, yaw = (float(np.interp(time, self.time, values)) for values in (self.x, self.y, self.yaw))
        return SE2(x, y, wrap_angle(yaw))


@dataclass(frozen=True, slots=True)
class ScanTrace:
    """One lidar scan in the world: ``time`` [s], ``points`` (n, 2) [m], ``origin`` (2,) [m]."""

    time: float
    points: Array
    origin: Array


@dataclass(frozen=True, slots=True)
class ContactMark:
    """The start of a contact episode: time [s], position of the robot [m], and the names of the shapes in contact."""

    time: float
    x: float
    y: float
    description: str


@dataclass(frozen=True, slots=True)
class RobotTrace:
    """What the report draws of every robot.

    Attributes:
        robot: Its name.
        truth: True motion, in the world.
        odometry: Its odometry, aligned with the truth at the first common moment.
        commands: (n, 3) time [s], v [m/s], w [rad/s] as sent to the drive.
        contacts: Starts of contact episodes.
        scan: A scan from the middle of the run; None without.
    """

    robot: str
    truth: PoseTrace
    odometry: PoseTrace
    commands: Array
    contacts: tuple[ContactMark, ...]
    scan: ScanTrace | None

    @property
    def has_moved(self) -> bool:
        """Whether it was commanded to drive, or its pose changed."""
        return len(self.commands) > 0 or bool(np.ptp(self.truth.x) + np.ptp(self.truth.y) > 1e-3)

    @property
    def errors(self) -> tuple[Array, Array, Array]:
        """Time [s], position error [m] and heading error [rad] of odometry against ground truth."""
        truth, odometry = self.truth, self.odometry
        if not len(truth) or not len(odometry):
            empty = np.zeros(0)
            return empty, empty, empty
        x, y = np.interp(odometry.time, truth.time, truth.x), np.interp(odometry.time, truth.time, truth.y)
        yaw = np.interp(odometry.time, truth.time, truth.yaw)
        return (
            odometry.time,
            np.hypot(odometry.x - x, odometry.y - y),
            np.asarray(wrap_angle(odometry.yaw - yaw)),
        )


def read_robot_trace(
    recording: Recording, robot: str, namespace: str, topics: dict[str, str] | None = None
) -> RobotTrace:
    """Read the trace of a robot; topics that are not in the recording give empty arrays.

    Args:
        recording: Open.
        robot: Name of the robot in the run.
        namespace: Of its topics, "" or "/name".
        topics: Topics with other names than the standard ones: {"odom": "/base/odom"}.

    Raises:
        RecordingError: The recording is damaged.
    """
    robot_topics = RobotTopics.for_robot(robot, namespace, topics)
    command_topic = next((name for name in (robot_topics.drive, robot_topics.command) if name in recording.topics), "")
    truth, odometry, checker = _OdometryReader(), _OdometryReader(), MessageChecker()
    checker.check_stamps({robot_topics.odometry: robot_topics.truth})
    commands: list[tuple[float, float, float]] = []
    contacts = ContactMetrics(robot_topics.contacts)
    handlers: dict[str, Callable[[Any, int], None]] = {
        robot_topics.truth: truth.add,
        robot_topics.odometry: odometry.add,
        command_topic: lambda m, t: commands.append((t * 1e-9, m.linear.x, m.angular.z)),
        **contacts.subscriptions(),
    }
    recorded_topics = [name for name in handlers if name in recording.topics]
    for item in recording.messages(recorded_topics) if recorded_topics else ():
        if checker.find_problem(item.topic, item.message, item.time_ns) is None:
            handlers[item.topic](item.message, item.time_ns)
    true_trace = truth.trace()
    return RobotTrace(
        robot,
        true_trace,
        _align_odometry(odometry.trace(), true_trace),
        np.asarray(commands, dtype=float).reshape(-1, 3),
        tuple(_contact_mark(episode, true_trace) for episode in contacts.episodes),
        _read_scan(recording, namespace, true_trace),
    )


class _OdometryReader:
    """Collects poses and velocities of nav_msgs/Odometry."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float, float, float]] = []

    def add(self, message: Any, time_ns: int) -> None:
        pose, twist = pose_to_se2_unchecked(message.pose.pose), message.twist.twist
        time_ns = to_nanoseconds(message.header.stamp) or time_ns
        self.rows.append((time_ns * 1e-9, pose.x, pose.y, pose.theta, twist.linear.x, twist.angular.z))

    def trace(self) -> PoseTrace:
        rows = np.asarray(self.rows, dtype=float).reshape(-1, 6)
        return PoseTrace(rows[:, 0], rows[:, 1], rows[:, 2], np.unwrap(rows[:, 3]), rows[:, 4], rows[:, 5])


def _align_odometry(odometry: PoseTrace, truth: PoseTrace) -> PoseTrace:
    """Return the odometry in the world, its first pose aligned with the true pose of that moment."""
    if not len(odometry) or not len(truth):
        return odometry
    start = SE2(float(odometry.x[0]), float(odometry.y[0]), wrap_angle(float(odometry.yaw[0])))
    T_world_odom = truth.pose(float(odometry.time[0])) @ start.inverse()
    points = T_world_odom @ np.column_stack([odometry.x, odometry.y])
    offset = np.round((T_world_odom.theta + odometry.yaw[0] - truth.yaw[0]) / (2 * pi)) * 2 * pi
    yaw = odometry.yaw + T_world_odom.theta - offset
    return PoseTrace(odometry.time, points[:, 0], points[:, 1], yaw, odometry.v, odometry.w)


def _contact_mark(episode: tuple[int, str, str], truth: PoseTrace) -> ContactMark:
    time = episode[0] * 1e-9
    pose = truth.pose(time) if len(truth) else SE2()
    return ContactMark(time, pose.x, pose.y, f"{episode[1]} touches {episode[2]}")


def _read_scan(recording: Recording, namespace: str, truth: PoseTrace) -> ScanTrace | None:
    """Return the planar scan nearest to the middle of the run, from the true pose of that moment."""
    scan_topics = [
        name
        for name, topic in recording.topics.items()
        if topic.type == "sensor_msgs/msg/LaserScan" and name.startswith(f"{namespace}/") and topic.count
    ]
    if not scan_topics or not len(truth):
        return None
    midpoint_ns = int(0.5e9 * (truth.time[0] + truth.time[-1]))
    item = next(iter(recording.messages([scan_topics[0]], start_ns=midpoint_ns)), None)
    item = item or next(iter(recording.messages([scan_topics[0]])), None)
    if item is None:
        return None
    message = item.message
    time_ns = to_nanoseconds(message.header.stamp) or item.time_ns
    T_world_sensor = truth.pose(time_ns * 1e-9) @ _sensor_pose(recording, message.header.frame_id)
    return ScanTrace(
        time_ns * 1e-9, T_world_sensor @ scan_points(message), np.array([T_world_sensor.x, T_world_sensor.y])
    )


def _sensor_pose(recording: Recording, frame: str) -> SE2:
    """Return T_base_sensor by following fixed transforms up to their root, whose pose is that of the base."""
    parents: dict[str, tuple[str, SE2]] = {}
    if "/tf_static" not in recording.topics:
        return SE2()
    for item in recording.messages(["/tf_static"]):
        for transform in item.message.transforms:
            T = transform.transform
            parents[transform.child_frame_id] = (
                transform.header.frame_id,
                SE2(T.translation.x, T.translation.y, quaternion_to_yaw(T.rotation)),
            )
    pose, depth = SE2(), 0
    while frame in parents and depth < 100:
        frame, step = parents[frame]
        pose, depth = step @ pose, depth + 1
    return pose


_WIDTH = 8.6
_MIN_ERROR_RANGE, _MIN_HEADING_RANGE = 1e-3, 0.02
"""Smallest ranges of the error axes [m, deg]."""


def track_figure(traces: list[RobotTrace], top_down_map: TopDownMap | None) -> str:
    """Draw true path and odometry, seen from above [m]."""
    with figure_style():
        moving_traces = [trace for trace in traces if len(trace.truth)]
        extent = plan_bounds(moving_traces, top_down_map)
        figure, axes = new_figure(_WIDTH, plan_figure_height(extent))
        draw_top_down_map(axes, top_down_map)
        for index, trace in enumerate(moving_traces):
            truth, odometry = trace.truth, trace.odometry
            samples = decimation_slice(len(truth))
            name = f"{trace.robot}: " if len(moving_traces) > 1 else ""
            axes.plot(
                truth.x[samples], truth.y[samples], color=TRUTH, lw=2.2, label=f"{name}truth" if not index else None
            )
            if len(odometry):
                samples = decimation_slice(len(odometry))
                axes.plot(
                    odometry.x[samples], odometry.y[samples], color=ODOMETRY, lw=1.4, ls=(0, (4, 2)),
                    label="odometry" if not index else None,
                )  # fmt: skip
            _draw_heading_arrows(axes, trace)
            axes.plot(
                truth.x[0], truth.y[0], "o", ms=8, mfc=PANEL, mec=GOOD, mew=2, label="start" if not index else None
            )
            axes.plot(truth.x[-1], truth.y[-1], "s", ms=7, color=TRUTH, label="end" if not index else None)
            if trace.contacts:
                axes.plot(
                    [contact.x for contact in trace.contacts],
                    [contact.y for contact in trace.contacts],
                    "X",
                    ms=9,
                    color=BAD,
                    mec=PANEL,
                    label="contact" if not index else None,
                )
        configure_plan_axes(axes, extent)
        figure.legend(loc="outside lower center", ncols=6, handlelength=1.8)
        return render_svg(figure, "True path and odometry over the floor plan")


def error_figure(traces: list[RobotTrace]) -> str:
    """Draw position [m] and heading error [deg] of odometry over time."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.6, rows=2)
        for index, trace in enumerate(traces):
            time, position, heading = trace.errors
            samples = decimation_slice(len(time))
            color = ODOMETRY if index == 0 else MUTED
            above.plot(time[samples], position[samples], color=color)
            above.fill_between(time[samples], 0.0, position[samples], color=color, alpha=0.12, lw=0)
            below.plot(time[samples], np.degrees(heading[samples]), color=color)
        above.set_ylim(bottom=0.0)
        ensure_axis_range(above, 0.0, _MIN_ERROR_RANGE)
        above.set_ylabel("position [m]")
        below.set_ylabel("heading [°]")
        below.axhline(0.0, color=MUTED, lw=0.8)
        ensure_axis_range(below, -_MIN_HEADING_RANGE, _MIN_HEADING_RANGE)
        configure_time_axis(below, traces)
        return render_svg(figure, "Odometry error over time")


def speed_figure(trace: RobotTrace) -> str:
    """Draw commanded and true speeds over time."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.9, rows=2)
        truth, commands = trace.truth, trace.commands
        samples, command_samples = decimation_slice(len(truth)), decimation_slice(len(commands))
        for axes, true, column in ((above, truth.v, 1), (below, truth.w, 2)):
            axes.plot(truth.time[samples], true[samples], color=TRUTH, lw=1.5, label="true")
            if len(commands):
                axes.step(
                    commands[command_samples, 0],
                    commands[command_samples, column],
                    where="post",
                    color=COMMAND,
                    lw=1.2,
                    label="commanded",
                )
            axes.axhline(0.0, color=MUTED, lw=0.8)
        for contact in trace.contacts:
            above.axvline(contact.time, color=BAD, lw=1.0)
            below.axvline(contact.time, color=BAD, lw=1.0)
        above.set_ylabel("linear [m/s]")
        below.set_ylabel("angular [rad/s]")
        above.legend(loc="lower right", ncols=2, bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        configure_time_axis(below, [trace])
        return render_svg(figure, "Commanded and true speeds over time")


def scan_figure(trace: RobotTrace, top_down_map: TopDownMap | None) -> str:
    """Draw one scan over the floor plan."""
    scan = trace.scan
    if scan is None:
        return ""
    with figure_style():
        extent = plan_bounds([trace], top_down_map)
        figure, axes = new_figure(_WIDTH, plan_figure_height(extent))
        draw_top_down_map(axes, top_down_map)
        x, y = scan.points[:, 0], scan.points[:, 1]
        if len(x):
            outline = np.vstack([scan.origin, scan.points, scan.origin])
            axes.fill(outline[:, 0], outline[:, 1], color=SCAN, alpha=0.12, lw=0)
        axes.plot(x, y, ".", ms=3.2, color=SCAN, label=f"{len(x)} returns")
        axes.plot(*scan.origin, "o", ms=7, mfc=PANEL, mec=INK, mew=1.6, label="lidar")
        configure_plan_axes(axes, extent)
        figure.legend(loc="outside lower center", ncols=2)
        return render_svg(figure, f"Lidar scan at {scan.time:.1f} s")


def _draw_heading_arrows(axes: Any, trace: RobotTrace) -> None:
    """Draw arrows in the direction of motion, every few meters."""
    truth = trace.truth
    steps = np.hypot(np.diff(truth.x), np.diff(truth.y))
    distance = np.concatenate([[0.0], np.cumsum(steps)])
    if distance[-1] < 1.0:
        return
    for target in np.linspace(0.0, distance[-1], 2 + min(12, int(distance[-1] / 3.0)))[1:-1]:
        i = int(np.searchsorted(distance, target))
        dx, dy = 0.01 * np.cos(truth.yaw[i]), 0.01 * np.sin(truth.yaw[i])
        if truth.v[i] < 0.0:
            dx, dy = -dx, -dy
        axes.annotate(
            "", xy=(truth.x[i] + dx, truth.y[i] + dy), xytext=(truth.x[i], truth.y[i]),
            arrowprops={"arrowstyle": "-|>", "color": TRUTH, "mutation_scale": 18, "lw": 0},
        )  # fmt: skip


def plan_bounds(traces: list[RobotTrace], top_down_map: TopDownMap | None) -> tuple[float, float, float, float]:
    """Return the extent (x0, y0, x1, y1) of a plan of all tracks and the floor plan, if there is one [m]."""
    xs = [value for trace in traces for value in (trace.truth.x.min(), trace.truth.x.max()) if len(trace.truth)]
    ys = [value for trace in traces for value in (trace.truth.y.min(), trace.truth.y.max()) if len(trace.truth)]
    if top_down_map is not None and top_down_map.bounds is not None:
        xs += [top_down_map.bounds[0], top_down_map.bounds[2]]
        ys += [top_down_map.bounds[1], top_down_map.bounds[3]]
    if not xs:
        return (-1.0, -1.0, 1.0, 1.0)
    margin = 0.04 * max(max(xs) - min(xs), max(ys) - min(ys), 1.0)
    return (min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin)


def plan_figure_height(bounds: tuple[float, float, float, float]) -> float:
    """Return the height of a plan of an extent [inch]."""
    ratio = (bounds[3] - bounds[1]) / (bounds[2] - bounds[0])
    return float(min(max(_WIDTH * ratio * 0.94 + 0.9, 1.6), 8.0))


def configure_time_axis(axes: Any, traces: list[RobotTrace]) -> None:
    """Set up the x axis for the whole run's time."""
    end = max((float(trace.truth.time[-1]) for trace in traces if len(trace.truth)), default=1.0)
    axes.set_xlim(0.0, max(end, 1e-3))
    axes.set_xlabel("simulated time [s]")
