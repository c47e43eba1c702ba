"""Arm servoing: converts velocity and pose commands into set-points that respect all limits and are always followed by
a safe stop.

Before a step is taken, it is proven that the joints can brake after it, each with its maximum deceleration, without
leaving their limits or touching an obstacle. If this cannot be proven, the joints brake on the motion that was proven
before. So the arm can always stop, whatever is commanded and whenever commands cease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import cast

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.ik.differential_ik import (
    DifferentialIkConfig,
    solve_differential_ik_to_pose,
    tool_pose_error,
    velocity_bounds,
)
from roboyard.manipulation.collision.collision_model import CollisionArrays, CollisionWorkspace, make_workspace
from roboyard.manipulation.collision.motion_check import compute_distances, is_segment_free
from roboyard.manipulation.collision.planning_scene import PlanningScene

_MIN_SCALING = 0.02
"""A scaling below this counts as standing still."""
_INCREASE_TOLERANCE = 1e-9
_STALL_TIME = 1.0
"""Time of motion without getting nearer to a pose target after which the arm gives it up [s]."""
_MIN_PROGRESS = 0.01
"""Fraction of the linear tolerance by which a nearer tool counts as progress."""
_NO_PAIRS = np.zeros((0, 2), np.int64)


class ServoCode(IntEnum):
    """Why a servoed arm is slower than commanded, with the names and numbers of moveit_msgs/ServoStatus."""

    INVALID = -1
    """The command is invalid (not finite, an unknown frame or joint, or the servo is paused), and the arm stops."""
    NO_WARNING = 0
    """The arm follows the command."""
    DECELERATE_FOR_APPROACHING_SINGULARITY = 1
    """The motion leads to a singularity, and is slowed down."""
    HALT_FOR_SINGULARITY = 2
    """The arm has stopped near a singularity, or cannot get nearer to a pose target; other directions are free."""
    DECELERATE_FOR_LEAVING_SINGULARITY = 3
    """Never reported: a motion away from a singularity is not slowed down."""
    DECELERATE_FOR_COLLISION = 4
    """The motion leads to an obstacle, or a person is near, and is slowed down."""
    HALT_FOR_COLLISION = 5
    """The motion leads to an obstacle that is too near, or the safety node allows no speed, and the arm has stopped."""
    JOINT_BOUND = 6
    """A joint is near its limit: it is slowed down, with a twist all joints are; or it blocks a pose target."""


class ArmServoConfig(Config):
    """Thresholds at which a teleoperated arm slows down."""

    lower_singularity_threshold: float = parameter(
        40.0,
        low=1.0,
        high=1e6,
        doc="Condition number of the Jacobian above which a motion that raises it is slowed down.",
    )
    hard_stop_singularity_threshold: float = parameter(
        120.0, low=1.0, high=1e6, doc="Condition number of the Jacobian at which such a motion stops."
    )
    slow_distance: float = parameter(
        0.08,
        unit="m",
        low=0.001,
        high=10.0,
        doc="Distance to obstacles below which a motion that decreases it is slowed down.",
    )
    stop_distance: float = parameter(
        0.02, unit="m", low=0.0, high=10.0, doc="Distance to obstacles at which such a motion stops."
    )
    resume_margin: float = parameter(
        0.005,
        unit="m",
        low=0.0,
        high=1.0,
        doc="Additional distance from which a stopped motion continues.",
    )
    lookahead_time: float = parameter(0.1, unit="s", low=0.001, high=10.0, doc="Time by which a motion is predicted.")
    meters_per_radian: float = parameter(
        0.3, unit="m", low=1e-4, high=100.0, doc="Weight of a rotation against a translation in the condition number."
    )
    min_singular_value: float = parameter(
        0.03,
        low=1e-6,
        high=1.0,
        doc="Singular value of the Jacobian below which a direction is given up [m/rad].",
    )
    pose_gain: float = parameter(
        5.0, unit="1/s", low=0.01, high=100.0, doc="Proportional gain from the distance to a pose target to the twist."
    )
    max_linear_speed: float = parameter(
        0.25, unit="m/s", low=0.001, high=10.0, doc="Maximum linear speed of the tool towards a pose target."
    )
    max_angular_speed: float = parameter(
        1.0, unit="rad/s", low=0.001, high=100.0, doc="Maximum angular speed of the tool towards a pose target."
    )
    linear_tolerance: float = parameter(
        0.001, unit="m", low=1e-6, high=1.0, doc="Distance from a pose target at which it is reached."
    )
    angular_tolerance: float = parameter(
        0.01, unit="rad", low=1e-6, high=3.0, doc="Angle from a pose target at which it is reached."
    )


@dataclass(frozen=True, slots=True)
class ServoSetpoint:
    """A set-point, and what became of the command.

    Attributes:
        position: (n,) [rad or m].
        velocity: (n,) [rad/s or m/s].
        code: Why the set-point is slower than the command.
        message: Description of the code; empty if there is nothing to report.
    """

    position: Array
    velocity: Array
    code: ServoCode = ServoCode.NO_WARNING
    message: str = ""


@dataclass(frozen=True, slots=True)
class JointVelocityDemand:
    """Joint velocities for a command, before obstacles are considered.

    Attributes:
        velocities: (n,) [rad/s or m/s].
        code: Why they are lower than commanded.
        message: Description of the code.
        is_coordinated: Whether all joints accelerate in proportion, so that the tool moves straight.
    """

    velocities: Array
    code: ServoCode = ServoCode.NO_WARNING
    message: str = ""
    is_coordinated: bool = True

    def scaled(self, scaling: float) -> JointVelocityDemand:
        """Return the demand times a scaling, because people are near."""
        if scaling >= 1.0 or not self.velocities.any():
            return self
        code = ServoCode.DECELERATE_FOR_COLLISION if scaling > 0.0 else ServoCode.HALT_FOR_COLLISION
        return JointVelocityDemand(
            scaling * self.velocities, code, f"the safety node allows {100.0 * scaling:.0f} %", self.is_coordinated
        )


def joint_velocities_for_twist(
    chain: Chain, q: Array, twist: Array, axis: Array, min_singular_value: float = ArmServoConfig.min_singular_value
) -> Array:
    """Compute joint velocities (n,) for a tool's twist; what the arm cannot do is left out by priority.

    The position of the tool comes first, then its pointing direction, then the rotation about this direction: each as
    far as it does not disturb those before it (Y. Nakamura, H. Hanafusa, T. Yoshikawa, "Task-priority based redundancy
    control of
    robot manipulators", Int. J. Robotics Research 6(2), 1987).  So an arm with five joints moves its tool as
    commanded, and rotates it as far as it can.

    Args:
        chain: Kinematic chain to the tool.
        q: (n,) joint positions.
        twist: (6,) linear [m/s], then angular [rad/s], in the axes of the base.
        axis: (3,) direction in which the tool points, in its own frame.
        min_singular_value: Motions that the joints can hardly make are damped below this [m/rad].
    """
    J = chain.jacobian(q)
    pointing_direction = chain.forward(q)[:3, :3] @ (axis / np.linalg.norm(axis))
    perpendicular = np.linalg.svd(pointing_direction[None])[2][1:]
    priorities = (
        (J[:3], twist[:3]),
        (perpendicular @ J[3:], perpendicular @ twist[3:]),
        (pointing_direction[None] @ J[3:], pointing_direction[None] @ twist[3:]),
    )
    velocities, null_space = np.zeros(chain.dof), np.eye(chain.dof)
    for rows, desired in priorities:
        U, singular_values, V = np.linalg.svd(rows @ null_space, full_matrices=False)
        damping = min_singular_value**2 * np.clip(1.0 - (singular_values / min_singular_value) ** 2, 0.0, 1.0)
        inverse = singular_values / np.maximum(singular_values**2 + damping, 1e-12)
        velocities = velocities + null_space @ (V.T @ (inverse * (U.T @ (desired - rows @ velocities))))
        used_directions = V[singular_values > 0.1 * min_singular_value]
        null_space = null_space - null_space @ used_directions.T @ used_directions
    return velocities


def condition_number(chain: Chain, q: Array, meters_per_radian: float) -> float:
    """Return the condition number of the Jacobian, with rotations weighted against translations; infinite if it is
    singular.
    """
    J = chain.jacobian(q)
    J[3:] *= meters_per_radian
    singular_values = np.linalg.svd(J, compute_uv=False)
    return float(singular_values[0] / max(float(singular_values[-1]), 1e-300))


class ArmServo:
    """Teleoperated joints of an arm.

    Args:
        chain: Kinematic chain to the tool.
        max_velocity: (n,) maximum velocity of each joint [rad/s or m/s].
        max_acceleration: (n,) maximum acceleration and deceleration [rad/s² or m/s²].
        position: (n,) initial joint positions.
        config: Thresholds at which the arm slows down.
    """

    def __init__(
        self, chain: Chain, max_velocity: Array, max_acceleration: Array, position: Array, config: ArmServoConfig
    ) -> None:
        self._chain = chain.with_acceleration_limits(max_acceleration, np.full(chain.dof, np.inf))
        self._max_velocity, self._max_acceleration, self._config = max_velocity, max_acceleration, config
        self._progress: tuple[Array, float, float] | None = None
        self.reset_to(position)

    @property
    def is_stopped(self) -> bool:
        """Whether all joints are at rest."""
        return not self.velocity.any()

    def reset_to(self, position: Array) -> None:
        """Restart at rest from joint positions (n,), because something else moved the joints."""
        self.position = np.clip(position, self._chain.lower, self._chain.upper)
        self.velocity = np.zeros(self._chain.dof)
        self._is_halted = False
        self._progress = None

    # -- demands -------------------------------------------------------------------------------------------------------
    def demand_from_twist(self, twist: Array, axis: Array, dt: float) -> JointVelocityDemand:
        """Return the joint velocities for a twist (6,) of the tool in the axes of the base.

        All joints are scaled equally, so that the tool keeps its direction.
        """
        config, self._progress = self._config, None
        velocities = joint_velocities_for_twist(self._chain, self.position, twist, axis, config.min_singular_value)
        scaling, code, message = self._limit_scaling(velocities, dt)
        predicted = np.clip(
            self.position + scaling * config.lookahead_time * velocities, self._chain.lower, self._chain.upper
        )
        slow_down, condition = self._singularity_scaling(predicted)
        if slow_down is not None:
            scaling *= slow_down
            code = ServoCode.DECELERATE_FOR_APPROACHING_SINGULARITY if scaling else ServoCode.HALT_FOR_SINGULARITY
            message = f"near a singularity: condition number {condition:.0f}"
        return JointVelocityDemand(scaling * velocities, code, message)

    def demand_to_pose(self, T_base_target: Array, axis: Array, dt: float) -> JointVelocityDemand:
        """Return the joint velocities that lead the tool to a pose (4, 4) in the base; zero when it is reached.

        The twist is proportional to the distance from the target, up to the maximum speeds of the tool. Joints that
        approach their limits stop there, and the others continue.  The tool stops where the joints cannot bring it
        nearer, and after a second of motion that did not.  All joints are scaled equally, so that each can brake before
        the target.

        Args:
            T_base_target: (4, 4) pose of the tool to approach.
            axis: (3,) direction in which the tool points, in its own frame; with fewer than six joints, the rotation
                about it is free.
            dt: Duration for which the velocities are applied [s].
        """
        config, chain = self._config, self._chain
        free_axis = axis if chain.dof < 6 else None
        error = tool_pose_error(chain, self.position, T_base_target, free_axis=free_axis)
        distance, angle = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
        if distance <= config.linear_tolerance and angle <= config.angular_tolerance:
            return JointVelocityDemand(np.zeros(chain.dof), message="the pose target is reached")
        settings = DifferentialIkConfig(
            period=dt,
            damping=config.min_singular_value,
            meters_per_radian=config.meters_per_radian,
            pose_gain=config.pose_gain,
            max_linear_speed=config.max_linear_speed,
            max_angular_speed=config.max_angular_speed,
        )
        solution = solve_differential_ik_to_pose(
            chain, self.position, T_base_target, free_axis=free_axis, settings=settings
        )
        velocities, remaining = solution.speeds, f"{1e3 * distance:.0f} mm and {angle:.2f} rad remain"
        limited = [
            joint
            for joint, speed, max_speed in zip(chain.joints, np.abs(velocities), chain.max_velocity, strict=True)
            if joint in solution.limited_joints and speed < (1.0 - 1e-6) * max_speed
        ]
        weights = np.repeat([1.0, config.meters_per_radian], 3)
        requested_norm = float(np.linalg.norm(weights * (solution.twist + solution.error)))
        is_stalled = self._is_stalled(T_base_target, float(np.linalg.norm(weights * error)), dt)
        if is_stalled or np.linalg.norm(weights * solution.twist) < _MIN_SCALING * requested_norm:
            code = ServoCode.JOINT_BOUND if limited else ServoCode.HALT_FOR_SINGULARITY
            reason = f"{limited[0]} is at its limit" if limited else "the joints cannot move the tool nearer"
            message = f"stopped before the pose target: {reason}, {remaining}"
            return JointVelocityDemand(np.zeros(chain.dof), code, message)
        scaling = min(1.0, float((self._max_velocity / np.maximum(np.abs(velocities), 1e-12)).min()))
        scaling = min(scaling, self._braking_scaling(velocities, 1.0 / config.pose_gain, dt))
        code, message = ServoCode.NO_WARNING, ""
        if limited:
            code, message = ServoCode.JOINT_BOUND, f"{limited[0]} is near its limit"
        slow_down, condition = self._singularity_scaling(
            np.clip(self.position + scaling * config.lookahead_time * velocities, chain.lower, chain.upper)
        )
        if slow_down is not None:
            scaling *= slow_down
            code, message = (
                ServoCode.DECELERATE_FOR_APPROACHING_SINGULARITY,
                f"near a singularity: condition number {condition:.0f}",
            )
            if scaling == 0.0:
                code = ServoCode.HALT_FOR_SINGULARITY
                message = f"stopped before the pose target: {message}, {remaining}"
        return JointVelocityDemand(scaling * velocities, code, message)

    def _is_stalled(self, T_base_target: Array, remaining: float, dt: float) -> bool:
        """Whether the joints moved for `_STALL_TIME` without a smaller remaining distance to the same target [m]."""
        if self._progress is None or np.abs(self._progress[0] - T_base_target).max() > 1e-9:
            self._progress = T_base_target.copy(), remaining, 0.0
        target, smallest, duration = self._progress
        if duration >= _STALL_TIME:
            return True
        if remaining < smallest - _MIN_PROGRESS * self._config.linear_tolerance:
            self._progress = target, remaining, 0.0
        elif not self.is_stopped:
            self._progress = target, smallest, duration + dt
        return False

    def _braking_scaling(self, velocities: Array, remaining_time: float, dt: float) -> float:
        """Return the scaling with which each joint can brake within the displacement of ``remaining_time`` [s]."""
        magnitudes, a = np.maximum(np.abs(velocities), 1e-12), self._max_acceleration
        braking_speed = -a * dt + np.sqrt((a * dt) ** 2 + 2.0 * a * magnitudes * remaining_time)
        return min(1.0, float((braking_speed / magnitudes).min()))

    def _singularity_scaling(self, predicted: Array) -> tuple[float | None, float]:
        """Return the scaling of a motion to predicted positions (n,) near a singularity, None if it does not lead
        there, and the condition number of the Jacobian.
        """
        config = self._config
        condition = condition_number(self._chain, self.position, config.meters_per_radian)
        if (
            condition > config.lower_singularity_threshold
            and condition_number(self._chain, predicted, config.meters_per_radian) > condition + _INCREASE_TOLERANCE
        ):
            slow_down = max(
                0.0,
                (config.hard_stop_singularity_threshold - condition)
                / (config.hard_stop_singularity_threshold - config.lower_singularity_threshold),
            )
            return (slow_down if slow_down > _MIN_SCALING else 0.0), condition
        return None, condition

    def demand_from_joints(self, velocities: Array, dt: float) -> JointVelocityDemand:
        """Return the joint velocities (n,) within limits; each joint is limited separately."""
        self._progress = None
        lower, upper = velocity_bounds(self._chain, self.position, dt)
        limited = np.clip(velocities, -self._max_velocity, self._max_velocity)
        bounded = np.clip(limited, lower, upper)
        is_reduced = np.abs(bounded - limited) > 1e-9
        code, message = ServoCode.NO_WARNING, ""
        if is_reduced.any():
            code, message = ServoCode.JOINT_BOUND, f"{self._chain.joints[int(np.argmax(is_reduced))]} is near its limit"
        return JointVelocityDemand(bounded, code, message, is_coordinated=False)

    def step_twist(self, scene: PlanningScene, twist: Array, axis: Array, dt: float) -> ServoSetpoint:
        """Return the set-point after ``dt`` seconds for a twist (6,) of the tool in the axes of the base."""
        return self.step(scene, self.demand_from_twist(twist, axis, dt), dt)

    def step_joints(self, scene: PlanningScene, velocities: Array, dt: float) -> ServoSetpoint:
        """Return the set-point after ``dt`` seconds for joint velocities (n,)."""
        return self.step(scene, self.demand_from_joints(velocities, dt), dt)

    def _limit_scaling(self, velocities: Array, dt: float) -> tuple[float, ServoCode, str]:
        """Return the scaling that all joint velocities permit, and why it is below 1."""
        magnitudes = np.maximum(np.abs(velocities), 1e-12)
        scaling = min(1.0, float((self._max_velocity / magnitudes).min()))
        lower, upper = velocity_bounds(self._chain, self.position, dt)
        joint_scalings = np.maximum(np.where(velocities > 0.0, upper, -lower), 0.0) / magnitudes
        joint = int(np.argmin(joint_scalings))
        if joint_scalings[joint] >= scaling - 1e-9:
            return scaling, ServoCode.NO_WARNING, ""
        return float(joint_scalings[joint]), ServoCode.JOINT_BOUND, f"{self._chain.joints[joint]} is near its limit"

    # -- steps ---------------------------------------------------------------------------------------------------------
    def step(self, scene: PlanningScene, demand: JointVelocityDemand, dt: float) -> ServoSetpoint:
        """Return the set-point after ``dt`` seconds that follows the demand."""
        velocities, code, message, is_coordinated = (
            demand.velocities,
            demand.code,
            demand.message,
            demand.is_coordinated,
        )
        collision = scene.collision_arrays
        workspace = make_workspace(collision)
        scaling, distance = self._clearance_scaling(collision._replace(pairs=_NO_PAIRS), workspace, velocities)
        if scaling < 1.0 and velocities.any():
            velocities = scaling * velocities
            code = ServoCode.DECELERATE_FOR_COLLISION if scaling else ServoCode.HALT_FOR_COLLISION
            message = f"{1e3 * distance:.0f} mm from an obstacle"
        change = velocities - self.velocity
        max_change = self._max_acceleration * dt
        separate_change = np.clip(change, -max_change, max_change)
        separate_change = np.where(
            self._stops_within_limits(self.velocity + separate_change, dt),
            separate_change,
            np.clip(-self.velocity, -max_change, max_change),
        )
        coordinated_change = change * min(1.0, float((max_change / np.maximum(np.abs(change), 1e-12)).min()))
        # an arm within the margin of an obstacle may only increase the distance
        clearance = float(compute_distances(collision, workspace, self.position[None], collision.margin)[0])
        is_too_close = clearance < collision.margin
        collision = collision._replace(margin=0.5 * clearance) if 0.0 < clearance < collision.margin else collision
        for candidate in (coordinated_change, separate_change) if is_coordinated else (separate_change,):
            if self._can_stop_safely(
                collision, workspace, self.velocity + candidate, dt, clearance if is_too_close else 0.0
            ):
                self._advance(self.velocity + candidate, dt)
                break
        else:
            if self.velocity.any() or velocities.any():
                pair = scene.pair_names(workspace.contact_pair) if workspace.contact_pair[0] >= 0 else None
                code = ServoCode.DECELERATE_FOR_COLLISION if self.velocity.any() else ServoCode.HALT_FOR_COLLISION
                message = "no free space to brake" if pair is None else f"{pair[0]} would be too near to {pair[1]}"
            self.brake(dt)
        return ServoSetpoint(self.position.copy(), self.velocity.copy(), code, message)

    def _clearance_scaling(
        self, collision: CollisionArrays, workspace: CollisionWorkspace, velocities: Array
    ) -> tuple[float, float]:
        """Return the velocity scaling that keeps the distance to obstacles, and the distance to the nearest one [m]."""
        config = self._config
        predicted = np.clip(self.position + config.lookahead_time * velocities, self._chain.lower, self._chain.upper)
        distance, predicted_distance = compute_distances(
            collision, workspace, np.stack([self.position, predicted]), config.slow_distance
        ).tolist()
        if predicted_distance >= distance - _INCREASE_TOLERANCE:
            self._is_halted = False
            return 1.0, distance
        stop_distance = config.stop_distance + (config.resume_margin if self._is_halted else 0.0)
        scaling = min(
            max(
                (min(distance, predicted_distance) - stop_distance) / (config.slow_distance - config.stop_distance), 0.0
            ),
            1.0,
        )
        self._is_halted = scaling < _MIN_SCALING
        return (0.0 if self._is_halted else scaling), distance

    def _can_stop_safely(
        self,
        collision: CollisionArrays,
        workspace: CollisionWorkspace,
        velocity: Array,
        dt: float,
        min_clearance: float,
    ) -> bool:
        """Whether the joints can take a velocity within ``dt``, and brake from there with at least
        ``min_clearance``.
        """
        workspace.contact_pair[0] = -1
        if not self._stops_within_limits(velocity, dt).all():
            return False
        end = self.position + 0.5 * dt * (self.velocity + velocity)
        if not (self.velocity.any() or velocity.any()):
            return True
        coefficients = np.stack([self.position, self.velocity, (velocity - self.velocity) / (2.0 * dt)])
        if not is_segment_free(collision, workspace, coefficients, dt):
            return False
        stop_position = end + 0.5 * velocity * np.abs(velocity) / self._max_acceleration
        if (
            min_clearance
            and compute_distances(collision, workspace, stop_position[None], 2.0 * min_clearance)[0] < min_clearance
        ):
            return False
        return all(
            is_segment_free(collision, workspace, coefficients, piece_duration)
            for coefficients, piece_duration in braking_motion(end, velocity, self._max_acceleration)
        )

    def _stops_within_limits(self, velocity: Array, dt: float) -> NDArray[np.bool_]:
        """Return (n,) whether each joint can take a velocity within ``dt`` and then stop within its limits."""
        end = self.position + 0.5 * dt * (self.velocity + velocity)
        stop_position = end + 0.5 * velocity * np.abs(velocity) / self._max_acceleration
        lower, upper = self._chain.lower - 1e-12, self._chain.upper + 1e-12
        within: NDArray[np.bool_] = (np.minimum(end, stop_position) >= lower) & (
            np.maximum(end, stop_position) <= upper
        )
        return within

    def _advance(self, velocity: Array, dt: float) -> None:
        self.position = self._clip_position(self.position + 0.5 * dt * (self.velocity + velocity))
        self.velocity = velocity

    def brake(self, dt: float) -> ServoSetpoint:
        """Return the set-point after ``dt`` seconds with maximum deceleration of each joint: the motion proven
        before.
        """
        braking_time = np.minimum(np.abs(self.velocity) / self._max_acceleration, dt)
        new_velocity = self.velocity - np.sign(self.velocity) * self._max_acceleration * braking_time
        self.position = self._clip_position(self.position + 0.5 * braking_time * (self.velocity + new_velocity))
        self.velocity = np.where(np.abs(self.velocity) <= self._max_acceleration * dt, 0.0, new_velocity)
        return ServoSetpoint(self.position.copy(), self.velocity.copy())

    def _clip_position(self, position: Array) -> Array:
        clipped: Array = np.clip(position, self._chain.lower, self._chain.upper)
        return clipped

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> tuple[Array, Array, bool, tuple[Array, float, float] | None]:
        """Return the state as plain data."""
        return self.position.copy(), self.velocity.copy(), self._is_halted, self._progress

    def load_state(self, saved: Sequence[object]) -> None:
        """Restore what ``save_state`` returned."""
        self.position, self.velocity = np.array(saved[0]), np.array(saved[1])
        self._is_halted = bool(saved[2])
        progress = cast("tuple[Array, float, float] | None", saved[3])
        self._progress = None if progress is None else (np.array(progress[0]), float(progress[1]), float(progress[2]))


def braking_motion(position: Array, velocity: Array, deceleration: Array) -> list[tuple[Array, float]]:
    """Return the motion of joints that brake with maximum deceleration: pieces (3, n) of powers of time, and their
    durations.

    Args:
        position: (n,) initial positions.
        velocity: (n,) initial velocities.
        deceleration: (n,) decelerations.
    """
    stop_times = np.abs(velocity) / deceleration
    acceleration = -np.sign(velocity) * deceleration
    pieces, start_time = [], 0.0
    for end_time in np.unique(stop_times).tolist():
        if end_time - start_time < 1e-9:
            continue
        is_moving = stop_times > start_time + 1e-12
        piece_start = np.minimum(start_time, stop_times)
        coefficients = np.stack([
            position + piece_start * (velocity + 0.5 * piece_start * acceleration),
            np.where(is_moving, velocity + piece_start * acceleration, 0.0),
            np.where(is_moving, 0.5 * acceleration, 0.0),
        ])  # fmt: skip
        pieces.append((np.ascontiguousarray(coefficients), end_time - start_time))
        start_time = end_time
    return pieces
