"""Differential inverse kinematics: joint velocities for a tool twist within all joint limits.

Solved as a box-constrained least-squares problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.compute import kernel
from roboyard.compute.array_kernels import solve_spd_in_place
from roboyard.config import check, parameter
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.ik.numeric_ik import IkTarget, compute_pose_error
from roboyard.kinematics.ik.solve import as_pose_matrices, normalize


@dataclass(frozen=True)
class DifferentialIkConfig:
    """Gains and limits of differential inverse kinematics.

    Attributes:
        period: Duration for which the velocities are applied; no joint exceeds its limit in this time [s].
        damping: Damping of least squares: weight of slow joints against tracking error, effective near singularities
            only.
        meters_per_radian: Weight of the angular relative to the linear error [m].
        pose_gain: Proportional gain towards a pose [1/s].
        max_linear_speed: Maximum linear speed of the tool towards a pose [m/s].
        max_angular_speed: Maximum angular speed of the tool towards a pose [rad/s].
        posture_gain: Proportional gain towards a posture, in the null space of the tool's motion [1/s].
    """

    period: float = parameter(0.01, unit="s", low=1e-5, high=1.0)
    damping: float = parameter(0.003, low=1e-6, high=1.0)
    meters_per_radian: float = parameter(0.3, unit="m", low=1e-4, high=100.0)
    pose_gain: float = parameter(5.0, low=0.0, high=1000.0)
    max_linear_speed: float = parameter(0.25, unit="m/s", low=0.0, high=100.0)
    max_angular_speed: float = parameter(1.0, unit="rad/s", low=0.0, high=100.0)
    posture_gain: float = parameter(1.0, low=0.0, high=1000.0)


@dataclass(frozen=True)
class DifferentialIkResult:
    """Result of differential inverse kinematics.

    Attributes:
        speeds: (n,) joint velocities [rad/s or m/s].
        twist: (6,) resulting twist of the tool, in base axes.
        error: (6,) requested twist minus resulting twist.
        limited_joints: Names of joints at a limit of velocity or position.
    """

    speeds: Array
    twist: Array
    error: Array
    limited_joints: tuple[str, ...]


_DEFAULT = DifferentialIkConfig()


def solve_differential_ik(
    chain: Chain,
    q: ArrayLike,
    twist: ArrayLike,
    *,
    free_axis: ArrayLike | None = None,
    posture: ArrayLike | None = None,
    settings: DifferentialIkConfig = _DEFAULT,
) -> DifferentialIkResult:
    """Compute joint velocities for a tool twist: damped least squares within the bounds of every joint.

    The tool has priority; the posture is approached only in the null space of the tool's motion.

    Args:
        chain: Chain to the tool.
        q: (n,) present joint positions; beyond a limit, a joint only moves back.
        twist: (6,) linear [m/s], then angular velocity [rad/s], in base axes.
        free_axis: (3,) direction in the tool frame about which the rotation is free.
        posture: (n,) preferred joint positions of redundant chains.
        settings: Gains and limits.

    Raises:
        InputError: An argument is not finite or has the wrong shape.
        ConfigError: A setting is out of range.
    """
    check(settings, "settings")
    joints, requested_twist = _as_joint_vector(chain, q), _as_twist(twist)
    J = chain.jacobian(joints)
    weights = np.array([1.0, 1.0, 1.0, *(3 * [settings.meters_per_radian])])
    weighted_twist, weighted_jacobian = weights * requested_twist, weights[:, None] * J
    if free_axis is not None:
        axis = chain.forward(joints)[:3, :3] @ normalize(free_axis, "free_axis")
        projector = np.eye(3) - np.outer(axis, axis)
        weighted_jacobian[3:], weighted_twist[3:] = projector @ weighted_jacobian[3:], projector @ weighted_twist[3:]
    low, high = velocity_bounds(chain, joints, settings.period)
    H = weighted_jacobian.T @ weighted_jacobian + settings.damping**2 * np.eye(chain.dof)
    speeds = np.empty(chain.dof)
    solve_box_qp(H, weighted_jacobian.T @ weighted_twist, low, high, speeds)
    if posture is not None:
        speeds += _posture_velocity(
            _as_joint_vector(chain, posture) - joints, settings.posture_gain, weighted_jacobian, speeds, low, high
        )
    tolerance = 1e-9 * (1.0 + np.abs(speeds))
    at_bound = (speeds <= low + tolerance) | (speeds >= high - tolerance)
    limited = tuple(name for name, is_limited in zip(chain.joints, at_bound, strict=True) if is_limited)
    return DifferentialIkResult(speeds, J @ speeds, requested_twist - J @ speeds, limited)


def solve_differential_ik_to_pose(
    chain: Chain,
    q: ArrayLike,
    T_base_tool: ArrayLike,
    *,
    free_axis: ArrayLike | None = None,
    posture: ArrayLike | None = None,
    settings: DifferentialIkConfig = _DEFAULT,
) -> DifferentialIkResult:
    """Compute joint velocities as `solve_differential_ik` does, for a twist straight towards a pose (4, 4) with
    proportional speed.
    """
    twist = settings.pose_gain * tool_pose_error(chain, q, T_base_tool, free_axis=free_axis)
    for part, max_norm in ((slice(0, 3), settings.max_linear_speed), (slice(3, 6), settings.max_angular_speed)):
        norm = float(np.linalg.norm(twist[part]))
        if norm > max_norm:
            twist[part] *= max_norm / norm
    return solve_differential_ik(chain, q, twist, free_axis=free_axis, posture=posture, settings=settings)


def tool_pose_error(chain: Chain, q: ArrayLike, T_base_tool: ArrayLike, *, free_axis: ArrayLike | None = None) -> Array:
    """Return the displacement (6,) from the tool to a pose (4, 4) in base axes: position [m], then rotation vector
    [rad].

    Args:
        chain: Chain to the tool.
        q: (n,) joint positions.
        T_base_tool: (4, 4) pose to which the displacement leads.
        free_axis: (3,) direction in the tool frame about which the rotation is free.

    Raises:
        InputError: An argument is not finite, has the wrong shape or is no pose.
    """
    goal, error = as_pose_matrices(T_base_tool, 2), np.empty(6)
    direction, target = np.zeros(3), goal
    if free_axis is not None:
        direction = normalize(free_axis, "free_axis")
        target = goal.copy()
        target[:3, 2] = goal[:3, :3] @ direction
    compute_pose_error(IkTarget(target, direction, np.ones(2)), chain.forward(_as_joint_vector(chain, q)), error)
    return error


def velocity_bounds(chain: Chain, q: Array, period: float) -> tuple[Array, Array]:
    """Return the velocity bounds (n,) within which each joint keeps its velocity limit and can stop before its position
    limits.
    """

    def max_speed(distance: Array) -> Array:
        """Solve v period + v² / (2 a) = distance for joints with an acceleration limit."""
        with np.errstate(invalid="ignore"):
            a = chain.max_acceleration
            braking_speed = -a * period + np.sqrt((a * period) ** 2 + 2.0 * a * distance)
        return np.where(np.isfinite(chain.max_acceleration) & np.isfinite(distance), braking_speed, distance / period)

    high = np.minimum(chain.max_velocity, max_speed(np.maximum(chain.upper - q, 0.0)))
    low = np.maximum(-chain.max_velocity, -max_speed(np.maximum(q - chain.lower, 0.0)))
    # beyond a limit: move back within the joint's velocity limit
    high = np.where(q > chain.upper, np.maximum((chain.upper - q) / period, -chain.max_velocity), high)
    low = np.where(q < chain.lower, np.minimum((chain.lower - q) / period, chain.max_velocity), low)
    return np.minimum(low, high), np.maximum(low, high)


def _posture_velocity(
    gap: Array, gain: float, weighted_jacobian: Array, speeds: Array, low: Array, high: Array
) -> Array:
    """Return the part of a motion towards a posture that does not move the tool, scaled to the bounds."""
    tolerance = 1e-9 * (1.0 + np.abs(speeds))
    at_bound = (speeds <= low + tolerance) | (speeds >= high - tolerance)
    constraints = np.concatenate([weighted_jacobian, np.eye(len(gap))[at_bound]])
    direction = gain * gap - np.where(at_bound, 0.0, speeds)
    project_out_rows(constraints, direction)
    fraction = 1.0
    for step, value, min_speed, max_speed in zip(direction, speeds, low, high, strict=True):
        if abs(step) > 1e-15:
            fraction = min(fraction, max(0.0, ((max_speed if step > 0.0 else min_speed) - value) / step))
    return fraction * direction


def _as_joint_vector(chain: Chain, q: ArrayLike) -> Array:
    values = chain.as_positions(q)
    if values.ndim != 1:
        raise InputError(
            f"joint positions have the shape {values.shape}", location=chain.robot, valid=f"({chain.dof},)"
        )
    return values


def _as_twist(twist: ArrayLike) -> Array:
    try:
        values = np.array(twist, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (6,) or not np.isfinite(values).all():
        raise InputError(
            f"twist must have six finite numbers, got {twist!r:.80}", valid="linear, then angular velocity"
        )
    return values


@kernel(examples=lambda: [(np.eye(2), np.zeros(2), -np.ones(2), np.ones(2), np.zeros(2))])
def solve_box_qp(H: Array, g: Array, low: Array, high: Array, v: Array) -> int:
    """Minimize ``v H v / 2 - g v`` within bounds by a primal active-set method (Nocedal and Wright 2006, 16.5).

    Args:
        H: (n, n) positive definite matrix.
        g: (n,) linear term.
        low: (n,) lower bounds, not above `high`.
        high: (n,) upper bounds.
        v: (n,) result.

    Returns:
        Number of iterations.
    """
    n = int(g.shape[0])
    active = np.zeros(n, dtype=np.int64)
    G, residual = np.empty((n, n)), np.empty(n)
    for i in range(n):
        v[i] = min(max(0.0, low[i]), high[i])
    for count in range(10 * n + 10):
        for i in range(n):
            residual[i] = g[i]
            for j in range(n):
                residual[i] -= H[i, j] * v[j]
                G[i, j] = H[i, j] if active[i] == 0 and active[j] == 0 else 0.0
            if active[i] != 0:
                G[i, i] = 1.0
        step = np.where(active == 0, residual, 0.0)
        if not solve_spd_in_place(G, step, 0.0):
            return -1
        step_fraction, blocking = 1.0, -1
        for i in range(n):
            if active[i] == 0 and step[i] != 0.0:
                margin = (high[i] if step[i] > 0.0 else low[i]) - v[i]
                if margin / step[i] < step_fraction:
                    step_fraction, blocking = max(margin / step[i], 0.0), i
        for i in range(n):
            if active[i] == 0:
                v[i] = min(max(v[i] + step_fraction * step[i], low[i]), high[i])
        if blocking >= 0:
            active[blocking] = 1 if step[blocking] > 0.0 else -1
            continue
        worst, released = 1e-12, -1
        for i in range(n):
            residual[i] = g[i]
            for j in range(n):
                residual[i] -= H[i, j] * v[j]
            if active[i] != 0 and -residual[i] * active[i] > worst:
                worst, released = -residual[i] * active[i], i
        if released < 0:
            return count + 1
        active[released] = 0
    return 10 * n + 10


@kernel(examples=lambda: [(np.ones((6, 3)), np.ones(3))])
def project_out_rows(J: Array, d: Array) -> None:
    """Remove the components of a direction (n,) that move any row of J (m, n), by Gram-Schmidt; overwrites `J`."""
    for i in range(J.shape[0]):
        original_length = np.sqrt((J[i] ** 2).sum())
        for _ in range(2):
            for k in range(i):
                J[i] -= (J[i] * J[k]).sum() * J[k]
        length = np.sqrt((J[i] ** 2).sum())
        if length <= 1e-9 * (original_length + 1e-9) or length < 1e-12:
            J[i] = 0.0
            continue
        J[i] /= length
    for _ in range(2):
        for i in range(J.shape[0]):
            d -= (d * J[i]).sum() * J[i]
