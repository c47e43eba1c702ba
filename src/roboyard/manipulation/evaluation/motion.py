"""Metrics of arm goals and joint jogs, and the report section of an arm's motion."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.control.trajectories import Trajectory, WayPoint
from roboyard.errors import RoboyardError
from roboyard.evaluation.figures import BAD, COMMAND, GOOD, MUTED, PANEL, TRUTH, figure_style, new_figure, render_svg
from roboyard.evaluation.plugin import MessageHandler, MetricCollector, MetricValue
from roboyard.evaluation.section import ReportSection, SectionContext
from roboyard.geometry.arrays import Array
from roboyard.manipulation.nodes.motion_messages import sampled
from roboyard.messages.convert import pose_to_se3
from roboyard.messages.time import to_seconds
from roboyard.record import Recording
from roboyard.safety.evaluation import ArmGroundTruth

_FINAL_STATES = ("succeeded", "aborted", "canceled")
_LIMIT_CHECK_INTERVAL = 0.001
"""Between moments at which limits are looked after [s]."""
_LIMIT_TOLERANCE = 1e-6


class ArmGoalMetrics(MetricCollector):
    """Goals of the move node, from its status, against the truth; a frame but the robot's own is taken for the world's.

    ``arm_goals``: asked for; ``arm_reached``; ``arm_failed``: refused or given up; ``pose_error_mean`` and
    ``pose_error_max`` [m], ``orientation_error_max`` [rad]: true pose of the tool against the planned one when a
    motion has
    succeeded; ``arm_time`` [s]: from goals to their ends; ``arm_length``: of the planned ways, in the space of the
    joints; ``collision_checks``: states that were looked at for collisions, a plan; ``arm_replans``: since something
    came
    into the way; ``limit_violations``: moments of the planned motions, 1 ms apart, at which a set-point is faster or
    changes faster than a joint may.
    """

    metric_names = (
        "arm_goals",
        "arm_reached",
        "arm_failed",
        "pose_error_mean",
        "pose_error_max",
        "orientation_error_max",
        "arm_time",
        "arm_length",
        "collision_checks",
        "arm_replans",
        "limit_violations",
    )

    def __init__(self, namespace: str, arm_truth: ArmGroundTruth | None) -> None:
        self._topics = (f"{namespace}/move_group/status", f"{namespace}/display_planned_path")
        self._arm_truth = arm_truth
        self.failure_cause = ""
        self._counts = {"arm_goals": 0, "arm_reached": 0, "arm_failed": 0}
        self._errors: list[tuple[float, float]] = []
        self._motion_time = self._path_length = 0.0
        self._n_collision_checks = self._n_plans = self._n_replans = self._n_limit_violations = self._n_trajectories = 0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """The move node's status, and the motions it shows."""
        return dict(zip(self._topics, (self._on_status, self._on_planned_path), strict=True))

    def _on_status(self, message: Any, time_ns: int) -> None:
        if message.state == "rejected":
            self._counts["arm_goals"] += 1
            self._counts["arm_failed"] += 1
            self.failure_cause = message.error_code
        elif message.state in _FINAL_STATES:
            self._counts["arm_goals"] += 1
            self._counts["arm_reached" if message.state == "succeeded" else "arm_failed"] += 1
            self._motion_time += float(message.elapsed)
            self._path_length += float(message.path_length)
            self._n_collision_checks += int(message.collision_checks)
            self._n_plans += int(message.plans)
            self._n_replans += int(message.replans)
            if message.state == "succeeded":
                self._measure_goal_error(message)
            else:
                self.failure_cause = message.error_code

    def _measure_goal_error(self, message: Any) -> None:
        if self._arm_truth is None or not len(message.goal):
            return
        T_world_root, T_world_tip = self._arm_truth.tip_poses(message.group)
        T_world_goal = pose_to_se3(message.pose)
        if message.header.frame_id.rpartition("/")[2] == self._arm_truth.root_link():
            T_world_goal = T_world_root @ T_world_goal
        self._errors.append((T_world_goal.distance(T_world_tip), T_world_goal.angle_to(T_world_tip)))

    def _on_planned_path(self, message: Any, time_ns: int) -> None:
        if self._arm_truth is None:
            return
        for trajectory in message.trajectory:
            self._n_trajectories += 1
            self._n_limit_violations += _count_limit_violations(trajectory.joint_trajectory, self._arm_truth)

    def values(self) -> dict[str, MetricValue]:
        """Errors are None until a goal was reached, the rest is 0 without goals."""
        errors = np.array(self._errors).reshape(-1, 2)
        has_errors = len(errors) > 0
        return {
            **self._counts,
            "pose_error_mean": float(errors[:, 0].mean()) if has_errors else None,
            "pose_error_max": float(errors[:, 0].max()) if has_errors else None,
            "orientation_error_max": float(errors[:, 1].max()) if has_errors else None,
            "arm_time": self._motion_time,
            "arm_length": self._path_length,
            "collision_checks": self._n_collision_checks / self._n_plans if self._n_plans else None,
            "arm_replans": self._n_replans,
            "limit_violations": self._n_limit_violations if self._n_trajectories else None,
        }

    def save_state(self) -> dict[str, Any]:
        """All but the truth, which the run has."""
        return copy.deepcopy({key: value for key, value in vars(self).items() if key != "_arm_truth"})


def _count_limit_violations(trajectory: Any, arm_truth: ArmGroundTruth) -> int:
    """At how many moments a trajectory_msgs/JointTrajectory breaks a limit."""
    points = [
        WayPoint(
            to_seconds(point.time_from_start),
            np.asarray(point.positions, dtype=np.float64),
            np.asarray(point.velocities, dtype=np.float64) if len(point.velocities) else None,
            np.asarray(point.accelerations, dtype=np.float64) if len(point.accelerations) else None,
        )
        for point in trajectory.points
    ]
    try:
        spline = Trajectory(points)
        velocity, acceleration = arm_truth.joint_limits(list(trajectory.joint_names))
    except RoboyardError:
        return 1
    samples = spline.samples(np.arange(spline.start, spline.end, _LIMIT_CHECK_INTERVAL))
    is_exceeded = np.abs(samples.velocity) > velocity * (1.0 + _LIMIT_TOLERANCE)
    return int(
        (is_exceeded | (np.abs(samples.acceleration) > acceleration * (1.0 + _LIMIT_TOLERANCE))).any(axis=1).sum()
    )


_COMMAND_TIMEOUT = 0.5
"""A commanded speed holds for so long unless a newer one comes: the default of nodes that move joints [s]."""
_STANDSTILL_SPEED = 0.005
"""What is slower stands [rad/s or m/s]."""
_SETTLING_TIME = 0.2
"""So long after a joint should stand a jog is judged [s]."""


@dataclass(slots=True)
class _JointJog:
    """A joint that is driven: from where, how far by now, how fast it is told to be, and since when."""

    start_position: float
    commanded_displacement: float
    speed: float
    command_ns: int
    last_motion_ns: int


class JointJogMetrics(MetricCollector):
    """Joints driven by number and speed, against the integral of what was commanded, as they are measured.

    A speed holds until the next one, or until it is too old.  What a joint is behind while it gets faster it gains
    while it slows down, so that the integral is where a joint ends that was driven at one speed from rest to rest.

    ``jogs``: how many; ``jog_error_max`` [rad or m]: farthest that a joint ended from there; ``jog_stop_max`` [s]:
    longest time from the last command to standstill.
    """

    metric_names = ("jogs", "jog_error_max", "jog_stop_max")

    def __init__(self, topic: str, namespace: str, arm_truth: ArmGroundTruth | None) -> None:
        self._topics = (topic, f"{namespace}/joint_states")
        self._arm_truth = arm_truth
        self._active_jogs: dict[str, _JointJog] = {}
        self._positions: dict[str, float] = {}
        self._errors: list[float] = []
        self._stopping_times: list[float] = []

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Commands, and where joints are."""
        return dict(zip(self._topics, (self._on_command, self._on_joints), strict=True))

    def _on_command(self, message: Any, time_ns: int) -> None:
        joints = () if self._arm_truth is None else self._arm_truth.joint_names()
        if not 1 <= message.id <= len(joints) or joints[message.id - 1] not in self._positions:
            return
        name = joints[message.id - 1]
        jog = self._active_jogs.get(name)
        if jog is None:
            position = self._positions[name]
            self._active_jogs[name] = _JointJog(position, 0.0, float(message.value), time_ns, time_ns)
            return
        jog.commanded_displacement += jog.speed * min((time_ns - jog.command_ns) * 1e-9, _COMMAND_TIMEOUT)
        jog.speed, jog.command_ns = float(message.value), time_ns

    def _on_joints(self, message: Any, time_ns: int) -> None:
        self._positions.update(zip(message.name, map(float, message.position), strict=False))
        if not self._active_jogs:
            return
        speeds = dict(zip(message.name, map(float, message.velocity), strict=False))
        for name, jog in list(self._active_jogs.items()):
            if abs(speeds.get(name, 0.0)) > _STANDSTILL_SPEED:
                jog.last_motion_ns = time_ns
            if time_ns - max(jog.last_motion_ns, jog.command_ns + round(_COMMAND_TIMEOUT * 1e9)) > round(
                _SETTLING_TIME * 1e9
            ):
                displacement = jog.commanded_displacement + jog.speed * _COMMAND_TIMEOUT
                self._errors.append(abs(self._positions[name] - jog.start_position - displacement))
                self._stopping_times.append(max(0.0, (jog.last_motion_ns - jog.command_ns) * 1e-9))
                del self._active_jogs[name]

    def values(self) -> dict[str, MetricValue]:
        """How far off, and how long it took to stop, at worst; None until a jog has ended."""
        return {
            "jogs": len(self._errors),
            "jog_error_max": max(self._errors, default=None),
            "jog_stop_max": max(self._stopping_times, default=None),
        }

    def save_state(self) -> dict[str, Any]:
        """All but the truth, which the run has; jogs as plain data."""
        attributes = copy.deepcopy(
            {key: value for key, value in vars(self).items() if key not in ("_arm_truth", "_active_jogs")}
        )
        jogs = {
            name: (jog.start_position, jog.commanded_displacement, jog.speed, jog.command_ns, jog.last_motion_ns)
            for name, jog in self._active_jogs.items()
        }
        return attributes | {"jogs": jogs}

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        super().load_state({key: item for key, item in state.items() if key != "jogs"})
        self._active_jogs = {name: _JointJog(*values) for name, values in state["jogs"].items()}


_MIN_PANEL_HEIGHT = 0.2
"""No panel of places is lower [m]."""
_WIDTH = 8.6
_OUTCOME_COLORS = {"succeeded": GOOD, "aborted": BAD, "canceled": BAD, "rejected": BAD}
_STATE_COLORS = {"planning": COMMAND, "executing": GOOD, "stopping": BAD, "waiting": BAD}
_MAX_SAMPLES = 2000
_WORLD_FRAMES = ("map", "odom", "world")
"""Frames in which a robot drives about."""


@dataclass(frozen=True, slots=True)
class ArmMotionTrace:
    """What a mover of arms told, and how the joints moved.

    Attributes:
        states: From when [s] the mover was in which state.
        goals: (n, 3) places of the tool that goals ended at [m].
        ends: (n) how each ended.
        joints: (m) names.
        time: (k,) [s].
        positions: (k, m) of the joints [rad or m].
        planned: Motions as they were planned: times (p,) [s] and joints (p, m), for each that was begun.
        room: (r, 2) times [s] and how far the arm was from everything that its mover knew [m].
        frame: Of the goals.
    """

    states: tuple[tuple[float, str], ...]
    goals: Array
    outcomes: tuple[str, ...]
    joints: tuple[str, ...]
    time: Array
    positions: Array
    planned_motions: tuple[tuple[Array, Array], ...]
    clearance: Array
    frame: str


def arm_section(context: SectionContext) -> ReportSection | None:
    """Goals of the tool, and the joints over time; None if nobody asked the robot's arm for anything."""
    trace = read_arm_motion_trace(context.recording, context.namespace)
    if trace is None:
        return None
    note = (
        f"Above: where motions to goals ended, in order, in {trace.frame}. Below: joints; shaded: what the mover of "
        "the arm did. Clearance is the distance from everything that it knew of."
    )
    figures = [goals_figure(trace)] if len(trace.goals) else []
    figures.append(joints_figure(trace))
    if len(trace.clearance):
        figures.append(clearance_figure(trace))
    return ReportSection("The arm", tuple(figures), note=note)


def read_arm_motion_trace(recording: Recording, namespace: str) -> ArmMotionTrace | None:
    """Of the robot in this namespace ("" or "/name"); None if nobody asked its arm for anything.

    Raises:
        RecordingError: it is damaged.
    """
    status, states_topic = f"{namespace}/move_group/status", f"{namespace}/joint_states"
    if status not in recording.topics or states_topic not in recording.topics:
        return None
    states: list[tuple[float, str]] = []
    goals: list[tuple[float, float, float]] = []
    outcomes: list[str] = []
    joints: tuple[str, ...] = ()
    frame = ""
    for item in recording.messages([status]):
        message = item.message
        frame = str(message.header.frame_id)
        states.append((item.time_ns * 1e-9, str(message.state)))
        joints = tuple(message.joints) or joints
        if message.state in _OUTCOME_COLORS and len(message.goal):
            position = message.pose.position
            goals.append((position.x, position.y, position.z))
            outcomes.append(str(message.state))
    if not states or not joints:
        return None
    times, positions = [], []
    for item in recording.messages([states_topic]):
        position_by_joint = dict(zip(item.message.name, item.message.position, strict=False))
        if all(name in position_by_joint for name in joints):
            times.append(item.time_ns * 1e-9)
            positions.append([position_by_joint[name] for name in joints])
    if not positions:
        return None
    stride = max(1, len(positions) // _MAX_SAMPLES)
    return ArmMotionTrace(
        tuple(states),
        np.array(goals).reshape(-1, 3),
        tuple(outcomes),
        joints,
        np.array(times[::stride]),
        np.array(positions[::stride]),
        _read_planned_motions(recording, namespace, states, joints),
        _read_clearance(recording, f"{namespace}/move_group/clearance"),
        frame,
    )


def _read_planned_motions(
    recording: Recording, namespace: str, states: list[tuple[float, str]], joints: tuple[str, ...]
) -> tuple[tuple[Array, Array], ...]:
    """Motions that were shown and then begun, until the mover did something else."""
    topic = f"{namespace}/display_planned_path"
    motions = []
    for item in recording.messages([topic] if topic in recording.topics else []):
        display_time = item.time_ns * 1e-9
        later = [k for k, (time, _) in enumerate(states) if time >= display_time - 1e-6]
        start_index = next((k for k in later if states[k][1] == "executing"), None)
        if start_index is None or states[start_index][0] > display_time + 1e-3 or not item.message.trajectory:
            continue  # only planned
        try:
            times, points = sampled(item.message.trajectory[0].joint_trajectory, joints)
        except RoboyardError:
            continue  # of other joints
        end_time = states[start_index + 1][0] if start_index + 1 < len(states) else np.inf
        is_executed = states[start_index][0] + times <= end_time
        motions.append((states[start_index][0] + times[is_executed], points[is_executed]))
    return tuple(motions)


def _read_clearance(recording: Recording, topic: str) -> Array:
    items = recording.messages([topic]) if topic in recording.topics else []
    return np.array([(item.time_ns * 1e-9, item.message.data) for item in items]).reshape(-1, 2)


def goals_figure(trace: ArmMotionTrace) -> str:
    """Places of the tool from above and from the side, in the order in which they were asked for [m]."""
    with figure_style():
        figure, (above, side) = new_figure(_WIDTH, 3.6, columns=2, share_axes=False)
        for axes, (i, j), names in ((above, (0, 1), ("x", "y")), (side, (0, 2), ("x", "z"))):
            axes.plot(trace.goals[:, i], trace.goals[:, j], color=MUTED, lw=0.6)
            for outcome, color in _OUTCOME_COLORS.items():
                indices = [k for k, goal_outcome in enumerate(trace.outcomes) if goal_outcome == outcome]
                if indices:
                    positions = trace.goals[indices]
                    axes.plot(positions[:, i], positions[:, j], "o", ms=6, mfc=PANEL, mec=color, mew=1.6, label=outcome)
            if trace.frame.rpartition("/")[2] not in _WORLD_FRAMES:
                axes.plot(0.0, 0.0, "+", color=TRUTH, ms=9, label="root of the robot")
            low, high = axes.get_ylim()
            if high - low < _MIN_PANEL_HEIGHT:  # all in a line: the panel would be one, too
                axes.set_ylim((low + high - _MIN_PANEL_HEIGHT) / 2.0, (low + high + _MIN_PANEL_HEIGHT) / 2.0)
            axes.set_aspect("equal", adjustable="box")
            axes.set_xlabel(f"{names[0]} [m]")
            axes.set_ylabel(f"{names[1]} [m]")
        side.legend(loc="upper left", bbox_to_anchor=(0.0, 1.12), ncols=3, handlelength=1.2)
        return render_svg(figure, "Places of the tool that were asked for, from above and from the side")


def joints_figure(trace: ArmMotionTrace) -> str:
    """Joints over time, and what the mover did."""
    with figure_style():
        rows = len(trace.joints)
        figure, panels = new_figure(_WIDTH, 0.5 + 0.95 * rows, rows=rows)
        panels = np.atleast_1d(panels)
        end = float(trace.time[-1])
        state_ends = [*(time for time, _ in trace.states[1:]), end]
        for k, (axes, name) in enumerate(zip(panels, trace.joints, strict=True)):
            labeled: set[str] = set()
            for (start, state), state_end in zip(trace.states, state_ends, strict=True):
                if state in _STATE_COLORS and state_end > start:
                    label = None if state in labeled else state
                    labeled.add(state)
                    axes.axvspan(start, state_end, color=_STATE_COLORS[state], alpha=0.14, lw=0, label=label)
            for j, (times, points) in enumerate(trace.planned_motions):
                axes.plot(times, points[:, k], color=COMMAND, lw=4.0, alpha=0.3, label=None if j else "as planned")
            axes.plot(trace.time, trace.positions[:, k], color=TRUTH, lw=1.2, label="as it moved")
            axes.set_ylabel(name, rotation=0, ha="right", va="center")
            axes.set_xlim(0.0, end)
            if k + 1 < rows:
                axes.tick_params(labelbottom=False)
        panels[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=6, handlelength=1.0)
        panels[-1].set_xlabel("simulated time [s]; positions [rad or m]")
        return render_svg(figure, "Joints over time, and what the mover of the arm did")


def clearance_figure(trace: ArmMotionTrace) -> str:
    """How far the arm was from everything in the world that its mover knew of, while it moved."""
    with figure_style():
        figure, axes = new_figure(_WIDTH, 1.6)
        time, clearance = trace.clearance.T
        breaks = np.flatnonzero(np.diff(time) > 0.5) + 1
        for segment in np.split(np.arange(len(time)), breaks):
            axes.plot(time[segment], clearance[segment], color=TRUTH, lw=1.2)
        axes.set_xlim(0.0, float(trace.time[-1]))
        axes.set_ylim(0.0, max(0.1, float(clearance.max()) * 1.05))
        axes.set_ylabel("clearance [m]")
        axes.set_xlabel("simulated time [s]")
        return render_svg(figure, f"Clearance of the arm while it moved, at least {clearance.min():.3f} m")
