"""Metrics and report section of a legged robot's gait, its stability and its motors."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.description import Model
from roboyard.errors import InputError
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
    ODOMETRY,
    TRUTH,
    decimation_slice,
    ensure_axis_range,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.evaluation.section import ReportSection, ReportTable, SectionContext
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array, Flags
from roboyard.geometry.constants import GRAVITY
from roboyard.record import Recording
from roboyard.walking.evaluation.gait_kernels import (
    SATURATION_RATIO,
    MotorParameters,
    detect_foot_slips,
    feet_in_air,
    motor_power_and_saturation,
)
from roboyard.walking.legged_robot import LeggedRobot

_FALL_TILT = 0.7
"""A body with a larger tilt has fallen [rad]."""
_COLLAPSE_HEIGHT_RATIO = 1.0 / 3.0
"""A body whose height above the feet in contact is a smaller share of that of its stance has fallen."""
_MAX_SLIP = 0.01
"""A foot that moves farther while it is in contact has slipped [m]."""
_SPEED_DELAY_NS = 2_000_000_000
"""The speed is measured from so long after the start of the motion [ns]."""


@dataclass(frozen=True, eq=False)
class LegModel:
    """Legs and motors of a robot, by which its walking is judged: the resource `leg_model` of robots with legs."""

    legged_robot: LeggedRobot
    motors: MotorModel

    @classmethod
    def from_model(cls, legged_robot: LeggedRobot, model: Model) -> LegModel:
        """Return that of a robot's description."""
        return cls(legged_robot, MotorModel.from_model(legged_robot, model))

    @classmethod
    def create(cls, robot: RobotContext) -> LegModel | None:
        """Return that of a robot; None without legs, or where its description is unknown."""
        legged_robot = robot.resource("legged_robot")
        return None if legged_robot is None or robot.model is None else cls.from_model(legged_robot, robot.model)


class GaitMetrics(MetricCollector):
    """Judges walking by the true odometry, joint states, contacts of the feet and the state of the gait node.

    Distance, heading error, energy and saturation are measured from the first to the last moment at which the robot
    is commanded to move.

    Args:
        truth_topic: Of the robot's true nav_msgs/Odometry.
        namespace: Of the robot, "" or "/name".
        leg_model: Its legs and motors.
    """

    metrics = (
        Metric(
            "distance",
            "m",
            "Distance from the position at the first moment at which the legs moved the robot to that at the last; no"
            " value, as of the next four, before it moved.",
        ),
        Metric("speed", "m/s", "Mean speed on this way, from two seconds after the start.", "higher", "walking speed"),
        Metric("heading_error", "rad", "Difference between the true and the commanded rotation.", "lower"),
        Metric(
            "cost_of_transport",
            "",
            "Energy of the motors, work and heat of their windings, divided by weight and distance.",
            "lower",
            "cost of transport",
        ),
        Metric("motor_saturation", "ratio", "Share of the joints' samples at the largest possible effort.", "lower"),
        Metric(
            "foot_slips",
            "count",
            "How often a foot moved more than 10 mm while it was in contact; no value, as of the next six, without "
            "legs.",
            "lower",
            "foot slips",
        ),
        Metric(
            "min_stability_margin",
            "m",
            "Least distance of the body's center to the edge of the polygon of its feet, seen from above.",
            "higher",
            "stability margin",
        ),
        Metric(
            "min_tilt",
            "rad",
            "Least angle by which the robot would have to turn about an edge between its feet to tip over.",
            "higher",
            "angle until it tips over",
        ),
        Metric(
            "falls",
            "count",
            "How often the robot tilted by more than 0.7 rad, or sank while walking below a third of its stance's "
            "height above the feet in contact.",
            "lower",
            "falls",
        ),
        Metric("body_contacts", "count", "How often the body came into contact with anything while walking.", "lower"),
        Metric("body_height", "m", "Height of the base at the end."),
        Metric("movements", "count", "Movement files that were played to their end."),
    )
    position = 210

    @classmethod
    def create(cls, robot: RobotContext) -> Self | None:
        """Return the collector of a robot with legs."""
        leg_model = robot.resource("leg_model")
        return None if leg_model is None else cls(robot.topics.truth, robot.namespace, leg_model)

    def __init__(self, truth_topic: str, namespace: str, leg_model: LegModel) -> None:
        expect_kernels(detect_foot_slips, motor_power_and_saturation)
        self._topic, self._namespace, self._leg_model = truth_topic, namespace, leg_model
        self._is_walking = False
        self._body_pose: tuple[float, float, float, float, float, float, float] | None = None
        self._start: tuple[int, float, float, float] | None = None
        self._speed_start: tuple[int, float, float] | None = None
        self._last_sample: tuple[int, float, float, float] | None = None
        self._commanded_rotation = self._energy = self._energy_until_last = 0.0
        self._state_ns = self._joints_ns = 0
        self._is_commanded_to_move = False
        self._is_playing_movement, self._n_movements = False, 0
        self._n_samples = self._n_saturated = self._n_samples_until_last = self._n_saturated_until_last = 0
        self._min_margin = self._min_tilt = math.inf
        self._falls: list[tuple[int, str]] = []  # time [ns] and what the robot did
        self._has_fallen, self._has_collapsed, self._n_slips = False, False, 0
        self._n_body_contacts, self._is_body_in_contact = 0, False
        self._joint_names: list[str] = []
        self._joint_indices = np.zeros(0, np.int64)
        self._foot_contact = feet_in_air(len(leg_model.legged_robot.legs))

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of true odometry, joint states, gait state and contacts."""
        prefix = f"{self._namespace}/"
        feet = {
            f"{prefix}feet/{leg.name}": partial(self._on_foot, i)
            for i, leg in enumerate(self._leg_model.legged_robot.legs)
        }
        return {
            self._topic: self._on_truth,
            f"{prefix}joint_states": self._on_joints,
            f"{prefix}gait/state": self._on_state,
            f"{prefix}belly": self._on_body_contact,
            **feet,
        }

    def _on_truth(self, message: Any, time_ns: int) -> None:
        p, q = message.pose.pose.position, message.pose.pose.orientation
        self._body_pose = p.x, p.y, p.z, q.w, q.x, q.y, q.z
        has_fallen = self._has_collapsed or 1.0 - 2.0 * (q.x * q.x + q.y * q.y) < math.cos(_FALL_TILT)
        if has_fallen and not self._has_fallen:
            self._falls.append((time_ns, "sank while walking" if self._has_collapsed else "tilted"))
        self._has_fallen = has_fallen

    def _on_body_contact(self, message: Any, time_ns: int) -> None:
        in_contact = bool(message.states)
        self._n_body_contacts += in_contact and not self._is_body_in_contact and self._is_walking
        self._is_body_in_contact = in_contact

    def _on_foot(self, leg: int, message: Any, time_ns: int) -> None:
        self._foot_contact.in_contact[leg] = bool(message.states)

    def _on_state(self, state: Any, time_ns: int) -> None:
        twist = state.twist
        is_commanded_to_move = bool(twist.linear.x or twist.linear.y or twist.angular.z) and state.phase == "walking"
        self._is_walking = state.phase == "walking"
        self._n_movements += self._is_playing_movement and state.phase != "playing"
        self._is_playing_movement = state.phase == "playing"
        if self._is_walking:
            self._min_margin, self._min_tilt = min(self._min_margin, state.margin), min(self._min_tilt, state.tilt)
        if self._body_pose is None:
            return
        x, y = self._body_pose[:2]
        yaw = _yaw(self._body_pose)
        if is_commanded_to_move and self._start is None:
            self._start, self._state_ns, self._joints_ns = (time_ns, x, y, yaw), time_ns, time_ns
        if self._start is not None and is_commanded_to_move:
            self._commanded_rotation += twist.angular.z * (time_ns - self._state_ns) * 1e-9
            if self._speed_start is None and time_ns - self._start[0] >= _SPEED_DELAY_NS:
                self._speed_start = time_ns, x, y
            self._last_sample = time_ns, x, y, yaw
            self._energy_until_last, self._n_samples_until_last, self._n_saturated_until_last = (
                self._energy,
                self._n_samples,
                self._n_saturated,
            )
        self._state_ns, self._is_commanded_to_move = time_ns, is_commanded_to_move

    def _on_joints(self, message: Any, time_ns: int) -> None:
        leg_model = self._leg_model
        if self._body_pose is None:
            return
        if message.name != self._joint_names:
            self._joint_names = list(message.name)
            available = set(self._joint_names)
            self._joint_indices = np.array(
                [self._joint_names.index(name) for name in leg_model.legged_robot.joints if name in available], np.int64
            )
        if len(self._joint_indices) < len(leg_model.legged_robot.joints):
            return
        if self._start is not None:
            if not (np.isfinite(message.effort).all() and np.isfinite(message.velocity).all()):
                raise InputError("an effort or velocity is not finite", valid="finite numbers, which energy needs")
            power, n_saturated = motor_power_and_saturation(
                leg_model.motors.parameters, self._joint_indices, message.effort, message.velocity
            )
            self._energy += power * (time_ns - self._joints_ns) * 1e-9
            self._n_samples += len(self._joint_indices)
            self._n_saturated += n_saturated
            self._joints_ns = time_ns
        self._has_collapsed = False
        if self._is_walking:
            leg_arrays, pose = leg_model.legged_robot.arrays, self._body_pose
            slips, height = detect_foot_slips(
                leg_arrays, self._joint_indices, message.position, pose, self._foot_contact, _MAX_SLIP
            )
            self._n_slips += slips
            self._has_collapsed = height < _COLLAPSE_HEIGHT_RATIO * leg_model.legged_robot.stance_height

    def save_state(self) -> dict[str, Any]:
        """Return everything but the legs, as plain data."""
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_leg_model"})

    def details(self) -> dict[str, Any]:
        """Return the parameters of the motors."""
        return {"motors": self._leg_model.motors.to_dict()}

    def events(self) -> Sequence[TimelineEvent]:
        """Return the falls."""
        return [TimelineEvent(time_ns * 1e-9, "fall", f"the robot {motion}") for time_ns, motion in self._falls]

    def values(self) -> dict[str, MetricValue | None]:
        """Return the metrics; none before the first pose."""
        if self._body_pose is None:
            return {}
        margin, tilt = (value if math.isfinite(value) else None for value in (self._min_margin, self._min_tilt))
        values: dict[str, MetricValue | None] = {
            "foot_slips": self._n_slips,
            "min_stability_margin": margin,
            "min_tilt": tilt,
            "falls": len(self._falls),
            "body_contacts": self._n_body_contacts,
            "body_height": self._body_pose[2],
            "movements": self._n_movements,
        }
        if self._start is None or self._last_sample is None:
            return values
        start, end = self._start, self._last_sample
        distance = math.hypot(end[1] - start[1], end[2] - start[2])
        values["distance"] = distance
        values["heading_error"] = abs(wrap_angle(end[3] - start[3] - self._commanded_rotation))
        values["motor_saturation"] = self._n_saturated_until_last / max(self._n_samples_until_last, 1)
        if distance > 0.0:
            values["cost_of_transport"] = self._energy_until_last / (self._leg_model.motors.mass * GRAVITY * distance)
        if self._speed_start is not None and end[0] > self._speed_start[0]:
            path_length = math.hypot(end[1] - self._speed_start[1], end[2] - self._speed_start[2])
            values["speed"] = path_length / ((end[0] - self._speed_start[0]) * 1e-9)
        return values


def _yaw(pose: tuple[float, ...]) -> float:
    w, x, y, z = pose[3:]
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


@dataclass(frozen=True, eq=False)
class MotorModel:
    """Motors by their torque-speed lines, leg after leg.

    Attributes:
        mass: Of the robot [kg].
        legs: (l) names.
        joints: (3 l) names.
        stall_torque: (3 l) torques at rest [N m].
        no_load_speed: (3 l) speeds at which no torque is left [rad/s]; inf: the torque does not depend on the speed.
    """

    mass: float
    legs: tuple[str, ...]
    joints: tuple[str, ...]
    stall_torque: Array
    no_load_speed: Array

    @classmethod
    def from_model(cls, legged_robot: LeggedRobot, model: Model) -> MotorModel:
        """Return the motors of a robot's description."""
        interface_parameters = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
        effort_limits = {joint.name: joint.axes[0].limits.effort for joint in model.joints if joint.axes}
        stall_torque = np.array(
            [effort_limits[name] if effort_limits[name] > 0.0 else math.inf for name in legged_robot.joints]
        )
        no_load_speed = np.array(
            [float(interface_parameters.get(name, {}).get("no_load_speed", math.inf)) for name in legged_robot.joints]
        )
        return cls(
            model.mass, tuple(leg.name for leg in legged_robot.legs), legged_robot.joints, stall_torque, no_load_speed
        )

    def heat(self, effort: Array) -> Array:
        """Return the heat of the windings (…, 3 l) at torques (…, 3 l) [N m], in W.

        It is effort² no_load_speed / stall_torque, which follows from the torque-speed line alone: a stalled motor
        turns all its power, voltage times stall current, into heat.  0 without such a line.
        """
        heat: Array = effort**2 * self._heat_coefficient
        return heat

    @cached_property
    def parameters(self) -> MotorParameters:
        """The same as arguments of kernels."""
        return MotorParameters(self.stall_torque, self.no_load_speed, self._heat_coefficient)

    @cached_property
    def _heat_coefficient(self) -> Array:
        """(3 l) heat divided by the square of the torque [W/(N m)²]."""
        is_limited = np.isfinite(self.no_load_speed) & np.isfinite(self.stall_torque)
        coefficients: Array = np.where(is_limited, self.no_load_speed, 0.0) / np.where(
            is_limited, self.stall_torque, 1.0
        )
        return coefficients

    def power(self, effort: Array, speed: Array) -> Array:
        """Return work and heat (…, 3 l) at torques [N m] and speeds [rad/s] (…, 3 l), in W; no power is recovered."""
        return np.maximum(effort * speed + self.heat(effort), 0.0)

    def is_saturated(self, effort: Array, speed: Array) -> NDArray[np.bool_]:
        """Return (…, 3 l) which motors give the largest torque possible at their speed."""
        speed_along_effort = np.maximum(speed * np.sign(effort), 0.0)
        max_effort = self.stall_torque * np.maximum(1.0 - speed_along_effort / self.no_load_speed, 0.0)
        is_saturated: NDArray[np.bool_] = np.abs(effort) >= SATURATION_RATIO * max_effort
        return is_saturated

    def to_dict(self) -> dict[str, Any]:
        """Return them as plain data; None for infinite values."""

        def finite_or_null(values: Array) -> list[float | None]:
            return [value if math.isfinite(value) else None for value in values.tolist()]

        return {
            "mass": self.mass, "legs": list(self.legs), "joints": list(self.joints),
            "stall_torque": finite_or_null(self.stall_torque), "no_load_speed": finite_or_null(self.no_load_speed),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MotorModel:
        """Return the motors that `to_dict` returned as plain data."""

        def null_to_infinite(values: list[float | None]) -> Array:
            return np.array([math.inf if value is None else value for value in values])

        return cls(
            float(data["mass"]), tuple(data["legs"]), tuple(data["joints"]),
            null_to_infinite(data["stall_torque"]), null_to_infinite(data["no_load_speed"]),
        )  # fmt: skip


_N_DRAWN_CYCLES = 5.0
"""Gait cycles that the diagram shows."""
_MIN_WINDOW, _MAX_WINDOW = 4.0, 90.0
"""Shortest and longest time that the diagram shows [s]."""


@dataclass(frozen=True, slots=True)
class GaitTrace:
    """States of the gait node over time.

    Attributes:
        legs: (l) names.
        time: (n) [s].
        in_stance: (n, l) feet that are on the ground by the gait.
        in_contact: (n, l) feet in contact; None: they have no contact sensors.
        margin: (n) stability margin, seen from above [m].
        tilt: (n) angle until the robot tips over [rad].
        is_moving: (n) whether the robot was commanded to move.
        is_walking: (n) whether its feet carried it.
        gait_names: (n) names of the gait.
    """

    legs: tuple[str, ...]
    time: Array
    in_stance: Flags
    in_contact: Flags | None
    margin: Array
    tilt: Array
    is_moving: Flags
    is_walking: Flags
    gait_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffortTrace:
    """Motors over time: time (k) [s], torques and speeds (k, 3 l) [N m, rad/s], leg after leg."""

    time: Array
    effort: Array
    speed: Array


@dataclass(frozen=True, slots=True)
class BodyTrace:
    """True pose of the body over time: time (k) [s], height (k) [m], roll and pitch (k) [rad]."""

    time: Array
    height: Array
    roll: Array
    pitch: Array


def gait_section(context: SectionContext) -> ReportSection | None:
    """Show gait, stability and motors of a walking robot; None for others."""
    gait = read_gait_trace(context.recording, f"{context.namespace}/gait/state")
    if gait is None:
        return None
    figures = [gait_figure(gait, gait_window(gait)), margin_figure(gait)]
    body = read_body_trace(context.recording, context.robot.topics.truth)
    if body is not None:
        figures.append(body_figure(body))
    note = (
        "Feet: bars show when they are on the ground by the gait, the thin bars below by their contacts. Margin: least "
        "distance of the body's center to the edge of the polygon of the feet on the ground, seen from above; below it "
        "the angle by which the robot would have to turn about such an edge to tip over."
    )
    motors = MotorModel.from_dict(context.document["motors"]) if "motors" in context.document else None
    efforts = read_effort_trace(context.recording, f"{context.namespace}/joint_states", motors) if motors else None
    if motors is None or efforts is None:
        return ReportSection("Gait and motors", tuple(figures), note=note)
    figures += [torque_figure(efforts, motors), power_figure(efforts, motors)]
    note += (
        " Torques: the band is the range of all legs, the line their root mean square. Energy: work τ ω and heat of "
        "the windings τ² ω₀ / τ₀ by the torque-speed line from stall torque τ₀ to no-load speed ω₀; no energy is "
        "recovered, so it is more than the sum of work and heat where legs drive motors; electronics are left out. "
        "Cost of transport: energy divided by weight and distance."
    )
    return ReportSection("Gait and motors", tuple(figures), table=motor_table(efforts, motors), note=note)


# -- reading -----------------------------------------------------------------------------------------------------------
def read_gait_trace(recording: Recording, topic: str) -> GaitTrace | None:
    """Read the states that a gait node published on a topic; None if there are none.

    Raises:
        RecordingError: The recording is damaged.
    """
    if topic not in recording.topics:
        return None
    states_by_time = [(item.time_ns * 1e-9, item.message) for item in recording.messages([topic])]
    if not states_by_time:
        return None
    states = [state for _, state in states_by_time]
    measured_contacts = [np.asarray(state.in_contact, bool) for state in states]
    legs = tuple(states[0].legs)
    # the first contacts come after the first state
    in_contact = [contacts if len(contacts) else np.zeros(len(legs), bool) for contacts in measured_contacts]
    twists = [state.twist for state in states]
    walking = np.array([state.phase == "walking" for state in states])
    moving = np.array([bool(t.linear.x or t.linear.y or t.angular.z) for t in twists])
    return GaitTrace(
        legs,
        np.array([time for time, _ in states_by_time]),
        np.array([state.in_stance for state in states], bool),
        np.array(in_contact) if any(len(contacts) for contacts in measured_contacts) else None,
        np.array([state.margin for state in states]),
        np.array([state.tilt for state in states]),
        walking & moving,
        walking,
        tuple(str(state.gait) for state in states),
    )


def read_effort_trace(recording: Recording, topic: str, motors: MotorModel) -> EffortTrace | None:
    """Read torques and speeds of the motors' joints; None if they were not recorded.  Raises RecordingError."""
    if topic not in recording.topics:
        return None
    times, effort, speed = [], [], []
    indices: list[int] = []
    names: list[str] = []
    for item in recording.messages([topic]):
        message = item.message
        if list(message.name) != names:
            names = list(message.name)
            indices = [names.index(joint) for joint in motors.joints if joint in names]
        if len(indices) == len(motors.joints):
            times.append(item.time_ns * 1e-9)
            effort.append(np.asarray(message.effort)[indices])
            speed.append(np.asarray(message.velocity)[indices])
    return EffortTrace(np.array(times), np.array(effort), np.array(speed)) if len(times) > 1 else None


def read_body_trace(recording: Recording, topic: str) -> BodyTrace | None:
    """Read the true pose of the body; None if it was not recorded.  Raises RecordingError."""
    if topic not in recording.topics:
        return None
    rows = []
    for item in recording.messages([topic]):
        p, q = item.message.pose.pose.position, item.message.pose.pose.orientation
        rows.append((item.time_ns * 1e-9, p.z, q.w, q.x, q.y, q.z))
    if not rows:
        return None
    time, height, w, x, y, z = np.array(rows).T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    return BodyTrace(time, height, roll, pitch)


# -- computing ---------------------------------------------------------------------------------------------------------
def gait_window(gait: GaitTrace) -> tuple[float, float]:
    """Return start and end of the time that the diagram shows: some cycles in the middle of the motion [s]."""
    start, end = float(gait.time[0]), float(gait.time[-1])
    moving_times = gait.time[gait.is_moving]
    if not len(moving_times):
        return start, end
    liftoff_times = [
        gait.time[1:][gait.in_stance[:-1, k] & ~gait.in_stance[1:, k] & gait.is_moving[1:]]
        for k in range(len(gait.legs))
    ]
    cycles = np.concatenate([np.diff(times) for times in liftoff_times])
    cycle = float(np.median(cycles)) if len(cycles) else _MAX_WINDOW
    length = min(max(_N_DRAWN_CYCLES * cycle, _MIN_WINDOW), _MAX_WINDOW, end - start)
    center = 0.5 * float(moving_times[0] + moving_times[-1])
    first = min(max(center - 0.5 * length, start), end - length)
    return first, first + length


def motor_table(efforts: EffortTrace, motors: MotorModel) -> ReportTable:
    """Tabulate torque, power, energy and saturation of each motor over the whole recording."""
    time = float(efforts.time[-1] - efforts.time[0])
    power = motors.power(efforts.effort, efforts.speed)
    energy: Array = np.asarray(np.trapezoid(power, efforts.time, axis=0))
    work: Array = np.asarray(np.trapezoid(efforts.effort * efforts.speed, efforts.time, axis=0))
    heat: Array = np.asarray(np.trapezoid(motors.heat(efforts.effort), efforts.time, axis=0))
    rms: Array = np.sqrt((efforts.effort**2).mean(axis=0))
    peak, max_speed = np.abs(efforts.effort).max(axis=0), np.abs(efforts.speed).max(axis=0)
    saturation = motors.is_saturated(efforts.effort, efforts.speed).mean(axis=0)
    rows = [
        (
            motors.legs[k // 3], joint, f"{rms[k]:.2f}", f"{peak[k]:.2f}", f"{100 * saturation[k]:.1f}",
            f"{max_speed[k]:.2f}", f"{energy[k] / time:.2f}", f"{energy[k]:.1f}",
            f"{round(work[k], 1) + 0.0:.1f}", f"{heat[k]:.1f}",
        )
        for k, joint in enumerate(motors.joints)
    ]  # fmt: skip
    rows.append(
        (
            "all", "", f"{np.sqrt((rms**2).mean()):.2f}", f"{peak.max():.2f}", f"{100 * saturation.mean():.1f}",
            f"{max_speed.max():.2f}", f"{energy.sum() / time:.2f}", f"{energy.sum():.1f}", f"{work.sum():.1f}",
            f"{heat.sum():.1f}",
        )
    )  # fmt: skip
    header = (
        "leg", "joint", "torque rms [N m]", "peak [N m]", "saturated [%]", "max. speed [rad/s]", "power [W]",
        "energy [J]", "work [J]", "heat [J]",
    )  # fmt: skip
    return ReportTable(header, tuple(rows), frozenset(header[2:]))


_WIDTH = 8.6
_JOINTS = ("first", "second", "third")


def gait_figure(gait: GaitTrace, window: tuple[float, float]) -> str:
    """Draw for each foot when it was on the ground: by the gait, and by its contacts."""
    start, end = window
    is_in_window = (gait.time >= start) & (gait.time <= end)
    time = gait.time[is_in_window]
    with figure_style():
        rows = len(gait.legs)
        figure, axes = new_figure(_WIDTH, 0.9 + 0.32 * rows)
        for row in range(rows):
            _draw_bars(
                axes,
                time,
                (gait.in_stance[:, row] & gait.is_walking)[is_in_window],
                row - 0.14,
                0.44,
                TRUTH,
                "by the gait" if not row else None,
            )
            if gait.in_contact is not None:
                label = "by its contacts" if not row else None
                _draw_bars(axes, time, gait.in_contact[is_in_window, row], row + 0.24, 0.12, GOOD, label)
            axes.axhline(row + 0.45, color=MUTED, lw=0.3)
        axes.set_yticks(range(rows), gait.legs)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.set_xlim(start, end)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("simulated time [s]")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, handlelength=1.4)
        return render_svg(figure, "Times of each foot on the ground, by the gait and by its contacts")


def margin_figure(gait: GaitTrace) -> str:
    """Draw the stability margin while walking [mm], and the angle until the robot tips over [deg]."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.4, rows=2)
        samples = decimation_slice(len(gait.time))
        panels = ((above, 1e3 * gait.margin, "mm", "margin"), (below, np.degrees(gait.tilt), "°", "until it tips"))
        for axes, recorded_values, unit, label in panels:
            values = np.where(gait.is_walking & np.isfinite(recorded_values), recorded_values, np.nan)
            axes.plot(gait.time[samples], values[samples], color=TRUTH, lw=1.1)
            axes.axhline(0.0, color=BAD, lw=1.0)
            if np.isfinite(values).any():
                min_index = int(np.nanargmin(values))
                min_label = f"least: {values[min_index]:.0f} {unit}"
                axes.plot(gait.time[min_index], values[min_index], "v", ms=6, color=ODOMETRY, label=min_label)
                axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
            axes.set_ylim(bottom=min(0.0, float(np.nanmin(values, initial=0.0))) - 5.0)
            axes.set_ylabel(f"{label} [{unit}]")
        _configure_time_axis(below, gait.time)
        return render_svg(figure, "Stability margin over time")


def body_figure(body: BodyTrace) -> str:
    """Draw height [mm] and tilt [deg] of the body."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.2, rows=2)
        samples = decimation_slice(len(body.time))
        above.plot(body.time[samples], 1e3 * body.height[samples], color=TRUTH, lw=1.2)
        above.set_ylabel("height [mm]")
        below.plot(body.time[samples], np.degrees(body.roll[samples]), color=TRUTH, lw=1.1, label="roll")
        below.plot(body.time[samples], np.degrees(body.pitch[samples]), color=ODOMETRY, lw=1.1, label="pitch")
        ensure_axis_range(below, -0.1, 0.1)
        below.set_ylabel("tilt [°]")
        below.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, borderaxespad=0.1)
        _configure_time_axis(below, body.time)
        return render_svg(figure, "True height and tilt of the body over time")


def torque_figure(efforts: EffortTrace, motors: MotorModel) -> str:
    """Draw torques of all legs' first, second and third joints [N m]."""
    with figure_style():
        figure, panels = new_figure(_WIDTH, 4.6, rows=3)
        time, reduce_blocks = _split_into_blocks(efforts.time)
        for joint, (axes, name) in enumerate(zip(panels, _JOINTS, strict=True)):
            joint_efforts = efforts.effort[:, joint::3]
            low, high = (
                reduce_blocks(joint_efforts.min(axis=1), np.min),
                reduce_blocks(joint_efforts.max(axis=1), np.max),
            )
            rms = np.sqrt(reduce_blocks((joint_efforts**2).mean(axis=1), np.mean))
            axes.fill_between(time, low, high, color=TRUTH, alpha=0.22, lw=0)
            axes.plot(time, rms, color=TRUTH, lw=1.1)
            stall = float(motors.stall_torque[joint::3].min())
            if np.isfinite(stall) and max(-low.min(), high.max()) > 0.6 * stall:
                for side in (-stall, stall):
                    axes.axhline(side, color=BAD, lw=0.9, ls=(0, (4, 2)))
            ensure_axis_range(axes, -0.1, 0.1)
            axes.set_ylabel(f"{name} [N m]")
        _configure_time_axis(panels[-1], efforts.time)
        return render_svg(figure, "Torques of the legs' joints over time")


def power_figure(efforts: EffortTrace, motors: MotorModel) -> str:
    """Draw the power of all motors [W] with its share of heat, and their energy so far [J]."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.4, rows=2)
        power = motors.power(efforts.effort, efforts.speed).sum(axis=1)
        heat = np.minimum(motors.heat(efforts.effort).sum(axis=1), power)
        time, reduce_blocks = _split_into_blocks(efforts.time)
        mean_power, mean_heat = reduce_blocks(power, np.mean), reduce_blocks(heat, np.mean)
        above.fill_between(time, 0.0, mean_heat, color=ODOMETRY, alpha=0.45, lw=0, label="heat")
        above.fill_between(time, mean_heat, mean_power, color=COMMAND, alpha=0.45, lw=0, label="work")
        above.set_ylabel("power [W]")
        above.set_ylim(bottom=0.0)
        above.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, handlelength=1.2, borderaxespad=0.1)
        steps = np.diff(efforts.time)
        energy = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * steps)])
        samples = decimation_slice(len(energy))
        below.plot(efforts.time[samples], energy[samples], color=TRUTH, lw=1.4)
        below.set_ylabel("energy [J]")
        below.set_ylim(bottom=0.0)
        _configure_time_axis(below, efforts.time)
        return render_svg(figure, "Power and energy of the motors over time")


def _draw_bars(
    axes: Any, time: NDArray[np.float64], is_active: NDArray[np.bool_], center: float, height: float, color: str,
    label: str | None,
) -> None:  # fmt: skip
    """Draw bars where ``is_active`` holds, each up to the next sample."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_active, [False]]).astype(int)))
    last = len(time) - 1
    spans = [
        (time[start], time[min(end, last)] - time[start])
        for start, end in zip(edges[::2], edges[1::2], strict=True)
        if start < last
    ]
    axes.broken_barh(spans, (center - 0.5 * height, height), facecolors=color, lw=0, label=label)


def _split_into_blocks(time: NDArray[np.float64], max_blocks: int = 700) -> tuple[NDArray[np.float64], Any]:
    """Return times of blocks of samples, and a function that reduces values in them, so that the page stays small."""
    size = max(1, -(-len(time) // max_blocks))
    starts = np.arange(0, len(time), size)

    def reduce_values(values: NDArray[np.float64], reduction: Any) -> NDArray[np.float64]:
        return np.array([reduction(values[start : start + size]) for start in starts])

    return time[starts], reduce_values


def _configure_time_axis(axes: Any, time: NDArray[np.float64]) -> None:
    axes.set_xlim(0.0, max(float(time[-1]), 1e-3))
    axes.set_xlabel("simulated time [s]")
