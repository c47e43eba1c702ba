"""Metrics of arm goals and joint jogs, and the report section of an arm's motion."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from roboyard.control.trajectory import Trajectory, TrajectoryPoint
from roboyard.errors import RoboyardError
from roboyard.evaluation.collector import (
    GroundTruthProvider,
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    RobotContext,
)
from roboyard.evaluation.figures import BAD, COMMAND, GOOD, MUTED, PANEL, TRUTH, figure_style, new_figure, render_svg
from roboyard.evaluation.section import ReportSection, SectionContext
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.nodes.motion_messages import FINAL_STATES, ArmMotionState, sample_trajectory_msg
from roboyard.messages.convert import pose_to_se3
from roboyard.messages.time import to_seconds
from roboyard.record import Recording
from roboyard.safety.collaborative.capsules import LinkCapsules
from roboyard.safety.evaluation import ArmGroundTruth, ArmState

if TYPE_CHECKING:
    from roboyard.kinematics import Chain
    from roboyard.manipulation import SemanticDescription

_LIMIT_CHECK_INTERVAL = 0.001
"""Time between the samples of a planned motion that are compared with the limits [s]."""
_LIMIT_TOLERANCE = 1e-6


class JointGroupGroundTruth:
    """The ground truth of a robot's arm, from the true poses of its links and the true state of its joints.

    Args:
        truth: Of the world.
        robot: Name of the robot.
        groups: Gives the robot's joint groups; called when they are needed for the first time.
    """

    def __init__(self, truth: GroundTruthProvider, robot: str, groups: Callable[[], SemanticDescription]) -> None:
        self._truth, self._robot, self._find_groups = truth, robot, groups

    @classmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return that of a robot; None without ground truth, or where its joint groups are unknown."""
        if robot.truth is None or "joint_groups" not in robot.resources:
            return None
        return cls(robot.truth, robot.name, lambda: robot.resource("joint_groups"))

    @cached_property
    def _groups(self) -> SemanticDescription:
        return self._find_groups()

    @cached_property
    def _chain_and_capsules(self) -> tuple[Chain, LinkCapsules]:
        chain = self._groups.chain()
        return chain, LinkCapsules.from_model(self._groups.model, chain)

    def root_link(self) -> str:
        """Return the name of the robot's root link."""
        return self._groups.root_link

    def joint_names(self) -> tuple[str, ...]:
        """Return the names of the joints of its first group; none where it has no groups."""
        return self._groups.chain().joints if self._groups.groups else ()

    def tip_poses(self, group: str) -> tuple[SE3, SE3]:
        """Return T_world_root and T_world_tip of a joint group.  Raises UnknownNameError."""
        tip_frame = self._groups.group(group).tip
        frame = next((candidate for candidate in self._groups.model.frames if candidate.name == tip_frame), None)
        link, T_link_tip = (tip_frame, SE3.identity()) if frame is None else (frame.link, frame.T_link_frame)
        T_world_root = self._truth.link_pose(self._robot, self._groups.root_link)
        return T_world_root, self._truth.link_pose(self._robot, link) @ T_link_tip

    def state(self) -> ArmState | None:
        """Return the state of its first group of this moment; None where it has no groups."""
        if not self._groups.groups:
            return None
        chain, capsules = self._chain_and_capsules
        q, velocity = self._truth.joint_state(self._robot, chain.joints)
        T_base_world = self._truth.link_pose(self._robot, chain.base).inverse()
        return ArmState(chain, capsules, T_base_world, q, velocity)

    def joint_limits(self, joints: Sequence[str]) -> tuple[Array, Array]:
        """Return limits (n,) of velocity and acceleration of joints; infinite where none is declared."""
        from roboyard.manipulation.time_parameterization import JointLimits

        limits_by_joint: dict[str, tuple[float, float]] = {}
        for name in self._groups.groups:
            limits = JointLimits.from_chain(self._groups.chain(name))
            rows = zip(limits.velocity, limits.acceleration, strict=True)
            limits_by_joint |= dict(zip(limits.joints, rows, strict=True))
        limit_rows = [limits_by_joint.get(name, (np.inf, np.inf)) for name in joints]
        velocity, acceleration = np.array(limit_rows, dtype=np.float64).reshape(-1, 2).T
        return velocity, acceleration


class ArmGoalMetrics(MetricCollector):
    """Judges the goals of a motion planning node by its status and the ground truth.

    Goals in a frame other than the robot's root link are taken as poses in the world.

    Args:
        namespace: Of the robot, "" or "/name".
        arm_truth: The ground truth of the arm; without it there are no errors of the pose.
    """

    metrics = (
        Metric(
            "arm_goals",
            "count",
            "Goals of the motion planning node that ended or were refused; no value, as of the next ten, of a robot "
            "without an arm.",
        ),
        Metric("arm_reached", "count", "Goals that the arm reached.", "higher"),
        Metric("arm_failed", "count", "Goals that were refused or given up.", "lower"),
        Metric(
            "pose_error_mean",
            "m",
            "Mean distance of the tool's true position from the planned one at the end of motions that succeeded; no "
            "value, as of the next two, until one has.",
            "lower",
        ),
        Metric("pose_error_max", "m", "Largest such distance.", "lower"),
        Metric(
            "orientation_error_max",
            "rad",
            "Largest angle between the tool's true and planned orientation.",
            "lower",
        ),
        Metric("arm_time", "s", "Time from each goal to its end, of all goals together.", "lower"),
        Metric("arm_length", "rad", "Length of the planned motions in joint space (m for prismatic joints).", "lower"),
        Metric(
            "collision_checks",
            "count",
            "States that were checked for collisions, in the mean of all plans.",
            "lower",
        ),
        Metric("arm_replans", "count", "Plans that were made anew because an obstacle came into the way.", "lower"),
        Metric(
            "limit_violations",
            "count",
            "Moments of the planned motions, 1 ms apart, at which a joint exceeds its limit of velocity or "
            "acceleration; no value without motions.",
            "lower",
        ),
    )
    position = 140

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.namespace, robot.resource("arm_truth"))

    def __init__(self, namespace: str, arm_truth: ArmGroundTruth | None) -> None:
        self._topics = (f"{namespace}/move_group/status", f"{namespace}/display_planned_path")
        self._arm_truth = arm_truth
        self.failure_cause = ""
        self._counts = {"arm_goals": 0, "arm_reached": 0, "arm_failed": 0}
        self._errors: list[tuple[float, float]] = []
        self._motion_time = self._path_length = 0.0
        self._has_messages = False
        self._n_collision_checks = self._n_plans = self._n_replans = self._n_limit_violations = self._n_trajectories = 0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of the node's status and of the motions that it plans."""
        return dict(zip(self._topics, (self._on_status, self._on_planned_path), strict=True))

    def _on_status(self, message: Any, time_ns: int) -> None:
        self._has_messages = True
        if message.state == ArmMotionState.REJECTED:
            self._counts["arm_goals"] += 1
            self._counts["arm_failed"] += 1
            self.failure_cause = message.error_code
        elif message.state in FINAL_STATES:
            self._counts["arm_goals"] += 1
            self._counts["arm_reached" if message.state == ArmMotionState.SUCCEEDED else "arm_failed"] += 1
            self._motion_time += float(message.elapsed)
            self._path_length += float(message.path_length)
            self._n_collision_checks += int(message.collision_checks)
            self._n_plans += int(message.plans)
            self._n_replans += int(message.replans)
            if message.state == ArmMotionState.SUCCEEDED:
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

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none of a robot without an arm."""
        if not self._has_messages and (self._arm_truth is None or not self._arm_truth.joint_names()):
            return {}
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
        """Return everything but the ground truth, as plain data."""
        return copy.deepcopy({key: value for key, value in vars(self).items() if key != "_arm_truth"})


def _count_limit_violations(trajectory: Any, arm_truth: ArmGroundTruth) -> int:
    """Return the number of moments at which a trajectory_msgs/JointTrajectory exceeds a limit."""
    points = [
        TrajectoryPoint(
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
"""A commanded speed holds for so long unless a newer one comes: the default of the nodes that move joints [s]."""
_STANDSTILL_SPEED = 0.005
"""A slower joint stands still [rad/s or m/s]."""
_SETTLING_TIME = 0.2
"""A jog is judged so long after its joint should stand still [s]."""


@dataclass(slots=True)
class _JointJog:
    """A jog under way: start, commanded displacement so far, speed, time of the last command and of the last motion."""

    start_position: float
    commanded_displacement: float
    speed: float
    command_ns: int
    last_motion_ns: int


class JointJogMetrics(MetricCollector):
    """Compares the measured displacement of jogged joints with the integral of their commanded speeds.

    A speed holds until the next one, or until it is too old.  A joint catches up while it decelerates what it lags
    behind while it accelerates, so that it should end at the integral if it is driven from rest to rest.

    Args:
        topic: Of the commands: number of the joint and speed.
        namespace: Of the robot, "" or "/name".
        arm_truth: Knows the joints by number; without it nothing is measured.
    """

    metrics = (
        Metric(
            "jogs",
            "count",
            "Jogs: times that a joint was driven at a speed for a while, by its number; no value, as of the next two,"
            " of a robot without an arm.",
        ),
        Metric(
            "jog_error_max",
            "rad",
            "Largest distance of a joint from the integral of its commanded speeds (m for a prismatic joint); no "
            "value without jogs.",
            "lower",
        ),
        Metric("jog_stop_max", "s", "Longest time from the last command of a jog to standstill.", "lower"),
    )
    position = 150

    @classmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return the collector of a robot with an arm."""
        arm_truth = robot.resource("arm_truth")
        return None if arm_truth is None else cls(robot.topics.jog, robot.namespace, arm_truth)

    def __init__(self, topic: str, namespace: str, arm_truth: ArmGroundTruth) -> None:
        self._topics = (topic, f"{namespace}/joint_states")
        self._arm_truth = arm_truth
        self._active_jogs: dict[str, _JointJog] = {}
        self._positions: dict[str, float] = {}
        self._errors: list[float] = []
        self._stopping_times: list[float] = []

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of commands and of joint states."""
        return dict(zip(self._topics, (self._on_command, self._on_joints), strict=True))

    def _on_command(self, message: Any, time_ns: int) -> None:
        joints = self._arm_truth.joint_names()
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

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none of a robot without an arm."""
        if not self._arm_truth.joint_names():
            return {}
        return {
            "jogs": len(self._errors),
            "jog_error_max": max(self._errors, default=None),
            "jog_stop_max": max(self._stopping_times, default=None),
        }

    def save_state(self) -> dict[str, Any]:
        """Return everything but the ground truth, as plain data."""
        attributes = copy.deepcopy(
            {key: value for key, value in vars(self).items() if key not in ("_arm_truth", "_active_jogs")}
        )
        jogs = {
            name: (jog.start_position, jog.commanded_displacement, jog.speed, jog.command_ns, jog.last_motion_ns)
            for name, jog in self._active_jogs.items()
        }
        return attributes | {"jogs": jogs}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state({key: item for key, item in state.items() if key != "jogs"})
        self._active_jogs = {name: _JointJog(*values) for name, values in state["jogs"].items()}


_MIN_PANEL_HEIGHT = 0.2
"""Smallest height of a panel of goals [m]."""
_WIDTH = 8.6
_OUTCOME_COLORS: dict[str, str] = {
    ArmMotionState.SUCCEEDED: GOOD,
    ArmMotionState.ABORTED: BAD,
    ArmMotionState.CANCELED: BAD,
    ArmMotionState.REJECTED: BAD,
}
_STATE_COLORS: dict[str, str] = {
    ArmMotionState.PLANNING: COMMAND,
    ArmMotionState.EXECUTING: GOOD,
    ArmMotionState.STOPPING: BAD,
    ArmMotionState.WAITING: BAD,
}
_MAX_SAMPLES = 2000
_WORLD_FRAMES = ("map", "odom", "world")
"""Frames that do not move with the robot."""


@dataclass(frozen=True, slots=True)
class ArmMotionTrace:
    """The motion of an arm over time.

    Attributes:
        states: Times [s] with the state of the motion planning node from then on.
        goals: (n, 3) positions of the tool at the goals [m].
        outcomes: (n) final states of the goals.
        joints: (m) names.
        time: (k,) of joint states [s].
        positions: (k, m) of the joints [rad or m].
        planned_motions: Planned motions that were executed: times (p,) [s] and joint positions (p, m) of each.
        clearance: (r, 2) times [s] and distances of the arm from all known obstacles [m].
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
    """Show the goals of the tool and the joints over time; None if the robot's arm was given no goal."""
    trace = read_arm_motion_trace(context.recording, context.namespace)
    if trace is None:
        return None
    note = (
        f"Above: goals of the tool in their order, in {trace.frame}. Below: joints; shaded: the state of the motion "
        "planning node. The clearance is the distance from all obstacles that this node knows."
    )
    figures = [goals_figure(trace)] if len(trace.goals) else []
    figures.append(joints_figure(trace))
    if len(trace.clearance):
        figures.append(clearance_figure(trace))
    return ReportSection("Motion of the arm", tuple(figures), note=note)


def read_arm_motion_trace(recording: Recording, namespace: str) -> ArmMotionTrace | None:
    """Read the motion of the arm of the robot in a namespace; None if it was given no goal.

    Args:
        recording: Open.
        namespace: Of the robot, "" or "/name".

    Raises:
        RecordingError: The recording is damaged.
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
    """Return planned motions that were then executed, up to the next state of the motion planning node."""
    topic = f"{namespace}/display_planned_path"
    motions = []
    for item in recording.messages([topic] if topic in recording.topics else []):
        display_time = item.time_ns * 1e-9
        later = [k for k, (time, _) in enumerate(states) if time >= display_time - 1e-6]
        start_index = next((k for k in later if states[k][1] == ArmMotionState.EXECUTING), None)
        if start_index is None or states[start_index][0] > display_time + 1e-3 or not item.message.trajectory:
            continue  # only planned
        try:
            times, points = sample_trajectory_msg(item.message.trajectory[0].joint_trajectory, joints)
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
    """Draw the goals of the tool from above and from the side, in their order [m]."""
    with figure_style():
        figure, (above, side) = new_figure(_WIDTH, 3.6, columns=2, use_common_axes=False)
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
            if high - low < _MIN_PANEL_HEIGHT:  # all at one height: the panel would have none
                axes.set_ylim((low + high - _MIN_PANEL_HEIGHT) / 2.0, (low + high + _MIN_PANEL_HEIGHT) / 2.0)
            axes.set_aspect("equal", adjustable="box")
            axes.set_xlabel(f"{names[0]} [m]")
            axes.set_ylabel(f"{names[1]} [m]")
        side.legend(loc="upper left", bbox_to_anchor=(0.0, 1.12), ncols=3, handlelength=1.2)
        return render_svg(figure, "Goals of the tool, from above and from the side")


def joints_figure(trace: ArmMotionTrace) -> str:
    """Draw joints over time, with the states of the motion planning node."""
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
                axes.plot(times, points[:, k], color=COMMAND, lw=4.0, alpha=0.3, label=None if j else "planned")
            axes.plot(trace.time, trace.positions[:, k], color=TRUTH, lw=1.2, label="measured")
            axes.set_ylabel(name, rotation=0, ha="right", va="center")
            axes.set_xlim(0.0, end)
            if k + 1 < rows:
                axes.tick_params(labelbottom=False)
        panels[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=6, handlelength=1.0)
        panels[-1].set_xlabel("simulated time [s]; positions [rad or m]")
        return render_svg(figure, "Joints over time, with the states of the motion planning node")


def clearance_figure(trace: ArmMotionTrace) -> str:
    """Draw the distance of the moving arm from all obstacles that the motion planning node knows."""
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
