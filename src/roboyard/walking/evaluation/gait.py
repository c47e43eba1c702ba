"""Metrics of a legged robot's gait, its stability and its motors."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel, read_only
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
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array, Flags
from roboyard.geometry.constants import GRAVITY
from roboyard.walking.evaluation.motors import MotorModel, motor_power_and_saturation
from roboyard.walking.leg import LegKinematicsArrays, example_legs, foot_forward_kinematics
from roboyard.walking.legged_robot import LeggedRobot

_FALL_TILT = 0.7
"""A body with a larger tilt has fallen [rad]."""
_COLLAPSE_HEIGHT_RATIO = 1.0 / 3.0
"""A body whose height above the feet in contact is a smaller fraction of its height in the stance has fallen."""
_MAX_SLIP = 0.01
"""A foot that moves farther while it is in contact has slipped [m]."""
_SPEED_DELAY_NS = 2_000_000_000
"""Time between the start of the motion and the start of the measurement of the speed [ns]."""


class FootContactState(NamedTuple):
    """State of all feet, changed in place.

    Attributes:
        in_contact: (l) feet in contact.
        was_in_contact: (l) feet that were in contact at the previous sample.
        has_slipped: (l) feet that have slipped since their touch-down.
        touchdown: (l, 2) touch-down positions in the world [m].
    """

    in_contact: Flags
    was_in_contact: Flags
    has_slipped: Flags
    touchdown: Array


def feet_in_air(n_legs: int) -> FootContactState:
    """Return the state of feet without contact."""
    no_contacts = np.zeros(n_legs, np.bool_)
    return FootContactState(no_contacts, no_contacts.copy(), no_contacts.copy(), np.zeros((n_legs, 2)))


def _feet_examples() -> list[tuple[object, ...]]:
    pose = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    return [(example_legs(), np.zeros(3, np.int64), read_only(np.zeros(3)), pose, feet_in_air(1), 0.01)]


@kernel(examples=_feet_examples)
def detect_foot_slips(
    legs: LegKinematicsArrays,
    indices: NDArray[np.int64],
    position: Array,
    pose: tuple[float, float, float, float, float, float, float],
    feet: FootContactState,
    max_slip: float,
) -> tuple[int, float]:
    """Detect feet that move while they are in contact.

    Args:
        legs: Kinematics of all legs.
        indices: (3 l) indices of the legs' joints in ``position``.
        position: (n) joint positions [rad].
        pose: Pose of the body in the world: x, y, z [m], quaternion w, x, y, z.
        feet: State of the feet; changed.
        max_slip: Largest displacement in contact [m].

    Returns:
        Number of feet that have just moved farther than ``max_slip``; height of the body above the feet in contact [m],
        nan without contact.
    """
    n_feet = len(feet.in_contact)
    q, positions = np.empty((n_feet, 3)), np.empty((n_feet, 3))
    for i in range(n_feet):
        for k in range(3):
            q[i, k] = position[indices[3 * i + k]]
    foot_forward_kinematics(legs, np.arange(n_feet), q, positions)
    x, y, _, qw, qx, qy, qz = pose
    n_slips, depth_sum, n_contacts = 0, 0.0, 0
    for i in range(n_feet):
        if not feet.in_contact[i]:
            feet.was_in_contact[i] = False
            continue
        px, py, pz = positions[i]
        fx = (
            x + (1.0 - 2.0 * (qy * qy + qz * qz)) * px + 2.0 * (qx * qy - qw * qz) * py + 2.0 * (qx * qz + qw * qy) * pz
        )
        fy = (
            y + 2.0 * (qx * qy + qw * qz) * px + (1.0 - 2.0 * (qx * qx + qz * qz)) * py + 2.0 * (qy * qz - qw * qx) * pz
        )
        depth_sum += (
            2.0 * (qx * qz - qw * qy) * px + 2.0 * (qy * qz + qw * qx) * py + (1.0 - 2.0 * (qx * qx + qy * qy)) * pz
        )
        n_contacts += 1
        if not feet.was_in_contact[i]:
            feet.was_in_contact[i], feet.has_slipped[i] = True, False
            feet.touchdown[i, 0], feet.touchdown[i, 1] = fx, fy
        elif not feet.has_slipped[i] and math.hypot(fx - feet.touchdown[i, 0], fy - feet.touchdown[i, 1]) > max_slip:
            feet.has_slipped[i] = True
            n_slips += 1
    return n_slips, -depth_sum / n_contacts if n_contacts > 0 else math.nan


@dataclass(frozen=True, eq=False)
class LegModel:
    """Legs and motors of a robot, from which the metrics of its gait are computed: the resource `leg_model`."""

    legged_robot: LeggedRobot
    motors: MotorModel

    @classmethod
    def from_model(cls, legged_robot: LeggedRobot, model: Model) -> LegModel:
        """Return the legs and motors of a robot's description."""
        return cls(legged_robot, MotorModel.from_model(legged_robot, model))

    @classmethod
    def create(cls, robot: RobotContext) -> LegModel | None:
        """Return the legs and motors of a robot; None without legs, or where its description is unknown."""
        legged_robot = robot.resource("legged_robot")
        return None if legged_robot is None or robot.model is None else cls.from_model(legged_robot, robot.model)


class GaitMetrics(MetricCollector):
    """Computes metrics of walking from true odometry, joint states, contacts of the feet and the gait node's state.

    Distance, heading error, energy and saturation are measured from the first to the last moment at which the robot
    is commanded to move.

    Args:
        truth_topic: Topic of the robot's true nav_msgs/Odometry.
        namespace: Namespace of the robot, "" or "/name".
        leg_model: Legs and motors of the robot.
    """

    metrics = (
        Metric(
            "distance",
            "m",
            "Distance from the position at the first moment at which the legs moved the robot to that at the last; no "
            "value, as for the next four metrics, before it moved.",
        ),
        Metric(
            "speed",
            "m/s",
            "Displacement divided by time, from two seconds after the start of the motion to its end.",
            "higher",
            "walking speed",
        ),
        Metric(
            "heading_error",
            "rad",
            "Absolute difference between the true rotation and the integral of the commanded yaw rate.",
            "lower",
        ),
        Metric(
            "cost_of_transport",
            "",
            "Cost of transport E / (m g d) after [Gabrielli and von Kármán](walking-metrics.md#cost-of-transport): "
            "energy of the motors by weight and distance.",
            "lower",
            "cost of transport",
        ),
        Metric(
            "motor_saturation",
            "ratio",
            "Share of the joints' samples at which the torque is at least 99 % of the largest one at that speed.",
            "lower",
        ),
        Metric(
            "foot_slips",
            "count",
            "How often a foot moved more than 10 mm on the ground from one touch-down to the next lift-off; no value, "
            "as for the next six metrics, without legs.",
            "lower",
            "foot slips",
        ),
        Metric(
            "min_stability_margin",
            "m",
            "Smallest [stability margin](walking-metrics.md#stability-margin) while walking: distance of the body's "
            "center from the edge of the support polygon, seen from above.",
            "higher",
            "stability margin",
        ),
        Metric(
            "min_tilt",
            "rad",
            "Smallest [tip-over angle](walking-metrics.md#tip-over-angle) while walking: rotation about an edge of the "
            "support polygon after which the robot tips over.",
            "higher",
            "angle until it tips over",
        ),
        Metric(
            "falls",
            "count",
            "How often the robot tilted by more than 0.7 rad, or sank while walking below a third of the height of its "
            "stance above the feet in contact.",
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
