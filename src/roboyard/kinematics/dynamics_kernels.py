"""Kernels: inverse dynamics and mass matrix of a serial chain (recursive Newton-Euler)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import ChainArrays, compute_frames, example_chain_arrays

_DUPLICATE_TOLERANCE = 1e-12
"""Interval ends that differ by less are treated as equal."""


class ChainMasses(NamedTuple):
    """Mass properties of the m + 1 frames and passive properties of the n free joints, in the order of `ChainArrays`.

    Attributes:
        mass: (m + 1,) masses [kg].
        com: (m + 1, 3) centers of mass in their frames [m].
        inertia: (m + 1, 3, 3) inertias about the centers of mass, in the frames' axes [kg m²].
        gravity_mass: (m + 1,) masses that gravity acts on [kg].
        gravity_com: (m + 1, 3) centers of these masses in their frames [m].
        rotor_inertia: (n,) reflected rotor inertia of the joints [kg m² or kg].
        spring_stiffness: (m,) stiffness of the moving joints [N m/rad or N/m].
        spring_reference: (m,) rest positions of the springs [rad or m].
        gravity: (3,) gravity in the base [m/s²].
    """

    mass: Array
    com: Array
    inertia: Array
    gravity_mass: Array
    gravity_com: Array
    rotor_inertia: Array
    spring_stiffness: Array
    spring_reference: Array
    gravity: Array


def example_chain_masses() -> ChainMasses:
    """Return masses for `example_chain_arrays` as example argument of kernels."""
    two, points, one = np.ones(2), np.zeros((2, 3)), np.zeros(1)
    return ChainMasses(two, points, np.zeros((2, 3, 3)), two, points.copy(), one, one, one, np.zeros(3))


def _examples() -> Iterable[tuple[Any, ...]]:
    chain, one = example_chain_arrays(), np.ones(1)
    yield (
        chain,
        example_chain_masses(),
        ChainMotion(one, one, one),
        1.0,
        np.zeros((2, 4, 4)),
        np.zeros((5, 2, 3)),
        np.zeros(1),
    )


@kernel(inline="always", examples=lambda: [(np.ones(3), np.ones(3), np.ones(3))])
def add_cross(a: Array, b: Array, out: Array) -> None:
    """Compute ``out += a x b``; `out` must not be `a` or `b`."""
    out[0] += a[1] * b[2] - a[2] * b[1]
    out[1] += a[2] * b[0] - a[0] * b[2]
    out[2] += a[0] * b[1] - a[1] * b[0]


class ChainMotion(NamedTuple):
    """Motion of a chain's free joints at one time.

    Attributes:
        q: (n,) positions.
        v: (n,) velocities.
        a: (n,) accelerations.
    """

    q: Array
    v: Array
    a: Array


@kernel(examples=_examples)
def inverse_dynamics_at(
    chain: ChainArrays,
    masses: ChainMasses,
    motion: ChainMotion,
    gravity_scale: float,
    frames: Array,
    workspace: Array,
    out: Array,
) -> None:
    """Compute the efforts of the free joints in a motion, without friction and damping.

    Args:
        chain: The chain.
        masses: Mass properties.
        motion: Motion of the free joints.
        gravity_scale: Factor on gravity and springs; 0 excludes both.
        frames: (m + 1, 4, 4) poses as `compute_frames` computes them.
        workspace: (5, m + 1, 3) working memory.
        out: (n,) result [N m or N].
    """
    q, v, a = motion.q, motion.v, motion.a
    m = chain.rotation_per_unit.shape[0]
    angular_velocity, angular_acceleration, linear_acceleration, force, moment = (
        workspace[0],
        workspace[1],
        workspace[2],
        workspace[3],
        workspace[4],
    )
    angular_velocity[0] = 0.0
    angular_acceleration[0] = 0.0
    linear_acceleration[0] = 0.0
    for j in range(out.shape[0]):
        out[j] = masses.rotor_inertia[j] * a[j]
    r, z, local, arm, tangential = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(m):
        T_previous, T = frames[k], frames[k + 1]
        joint_velocity, joint_acceleration = (
            chain.multiplier[k] * v[chain.driving_joint[k]],
            chain.multiplier[k] * a[chain.driving_joint[k]],
        )
        for i in range(3):
            r[i] = T[i, 3] - T_previous[i, 3]
            z[i] = T[i, 2]
        # motion of the frame's origin: as a point of the previous link, plus the sliding motion
        local[:] = 0.0
        add_cross(angular_velocity[k], r, local)
        for i in range(3):
            local[i] += 2.0 * chain.translation_per_unit[k] * joint_velocity * z[i]
            linear_acceleration[k + 1, i] = (
                linear_acceleration[k, i] + chain.translation_per_unit[k] * joint_acceleration * z[i]
            )
            angular_velocity[k + 1, i] = angular_velocity[k, i] + chain.rotation_per_unit[k] * joint_velocity * z[i]
            angular_acceleration[k + 1, i] = (
                angular_acceleration[k, i] + chain.rotation_per_unit[k] * joint_acceleration * z[i]
            )
            arm[i] = chain.rotation_per_unit[k] * joint_velocity * z[i]
        add_cross(angular_acceleration[k], r, linear_acceleration[k + 1])
        add_cross(angular_velocity[k], local, linear_acceleration[k + 1])
        add_cross(angular_velocity[k], arm, angular_acceleration[k + 1])
    for k in range(m + 1):
        force[k] = 0.0
        moment[k] = 0.0
    for k in range(m, 0, -1):
        T = frames[k]
        mass, gravity_mass = masses.mass[k], gravity_scale * masses.gravity_mass[k]
        if mass > 0.0 or gravity_mass > 0.0:
            for i in range(3):
                arm[i] = T[i, 0] * masses.com[k, 0] + T[i, 1] * masses.com[k, 1] + T[i, 2] * masses.com[k, 2]
                r[i] = linear_acceleration[k, i]
            tangential[:] = 0.0
            add_cross(angular_velocity[k], arm, tangential)
            add_cross(angular_acceleration[k], arm, r)
            add_cross(angular_velocity[k], tangential, r)
            for i in range(3):
                r[i] *= mass
                force[k, i] += r[i]
            add_cross(arm, r, moment[k])
            # the rotating body in its own axes, in which its inertia is constant
            inertia = masses.inertia[k]
            for i in range(3):
                local[i] = (
                    T[0, i] * angular_velocity[k, 0]
                    + T[1, i] * angular_velocity[k, 1]
                    + T[2, i] * angular_velocity[k, 2]
                )
                arm[i] = (
                    T[0, i] * angular_acceleration[k, 0]
                    + T[1, i] * angular_acceleration[k, 1]
                    + T[2, i] * angular_acceleration[k, 2]
                )
            for i in range(3):
                z[i] = inertia[i, 0] * local[0] + inertia[i, 1] * local[1] + inertia[i, 2] * local[2]
                r[i] = inertia[i, 0] * arm[0] + inertia[i, 1] * arm[1] + inertia[i, 2] * arm[2]
            add_cross(local, z, r)
            for i in range(3):
                moment[k, i] += T[i, 0] * r[0] + T[i, 1] * r[1] + T[i, 2] * r[2]
            for i in range(3):
                arm[i] = (
                    T[i, 0] * masses.gravity_com[k, 0]
                    + T[i, 1] * masses.gravity_com[k, 1]
                    + T[i, 2] * masses.gravity_com[k, 2]
                )
                r[i] = -gravity_mass * masses.gravity[i]
                force[k, i] += r[i]
            add_cross(arm, r, moment[k])
        row = k - 1
        effort = 0.0
        for i in range(3):
            effort += T[i, 2] * (
                chain.rotation_per_unit[row] * moment[k, i] + chain.translation_per_unit[row] * force[k, i]
            )
            r[i] = T[i, 3] - frames[row, i, 3]
            force[row, i] += force[k, i]
            moment[row, i] += moment[k, i]
        add_cross(r, force[k], moment[row])
        j, ratio = chain.driving_joint[row], chain.multiplier[row]
        effort += (
            gravity_scale
            * masses.spring_stiffness[row]
            * (ratio * q[j] + chain.offset[row] - masses.spring_reference[row])
        )
        out[j] += ratio * effort


@kernel(examples=lambda: [(example_chain_arrays(), example_chain_masses(), *(np.ones((2, 1)) for _ in range(4)))])
def compute_inverse_dynamics(chain: ChainArrays, masses: ChainMasses, q: Array, v: Array, a: Array, out: Array) -> None:
    """Compute the efforts of many motions, without friction and damping.

    Args:
        chain: The chain.
        masses: Mass properties.
        q: (k, n) positions.
        v: (k, n) velocities.
        a: (k, n) accelerations.
        out: (k, n) result [N m or N].
    """
    m = chain.rotation_per_unit.shape[0]
    frames, workspace = np.empty((m + 1, 4, 4)), np.empty((5, m + 1, 3))
    for i in range(q.shape[0]):
        compute_frames(chain, q[i], frames)
        inverse_dynamics_at(chain, masses, ChainMotion(q[i], v[i], a[i]), 1.0, frames, workspace, out[i])


@kernel(
    examples=lambda: [
        (
            example_chain_arrays(),
            example_chain_masses(),
            *(np.ones((2, 2, 1)) for _ in range(2)),
            np.ones((2, 1)),
            np.ones((3, 2, 2, 1)),
        )
    ]
)
def compute_path_effort_coefficients(
    chain: ChainArrays, masses: ChainMasses, q: Array, tangent: Array, curvature: Array, out: Array
) -> None:
    """Compute the efforts along a path: coefficients of the path acceleration u and the squared path speed x, and a
    constant.

    Args:
        chain: The chain.
        masses: Mass properties.
        q: (k, 2, n) joint positions at both ends of each interval of the path.
        tangent: (k, 2, n) first derivatives by path length.
        curvature: (k, n) second derivatives by path length, constant in each interval.
        out: (3, k, 2, n) result: coefficients of u and of x, and the efforts of gravity and springs.
    """
    m, n = chain.rotation_per_unit.shape[0], q.shape[2]
    frames, workspace, zero = np.empty((m + 1, 4, 4)), np.empty((5, m + 1, 3)), np.zeros(n)
    for i in range(q.shape[0]):
        for end in range(2):
            if i > 0 and end == 0:
                change = 0.0
                for k in range(n):
                    change = max(change, abs(q[i, 0, k] - q[i - 1, 1, k]), abs(tangent[i, 0, k] - tangent[i - 1, 1, k]))
                    change = max(change, abs(curvature[i, k] - curvature[i - 1, k]))
                if change < _DUPLICATE_TOLERANCE:
                    out[:, i, 0] = out[:, i - 1, 1]
                    continue
            joints, tangent_here = q[i, end], tangent[i, end]
            compute_frames(chain, joints, frames)
            inverse_dynamics_at(
                chain, masses, ChainMotion(joints, zero, tangent_here), 0.0, frames, workspace, out[0, i, end]
            )
            inverse_dynamics_at(
                chain, masses, ChainMotion(joints, tangent_here, curvature[i]), 0.0, frames, workspace, out[1, i, end]
            )
            inverse_dynamics_at(chain, masses, ChainMotion(joints, zero, zero), 1.0, frames, workspace, out[2, i, end])


@kernel(examples=lambda: [(example_chain_arrays(), example_chain_masses(), np.ones(1), np.ones((1, 1)))])
def compute_mass_matrix(chain: ChainArrays, masses: ChainMasses, q: Array, out: Array) -> None:
    """Compute the joint-space mass matrix.

    Args:
        chain: The chain.
        masses: Mass properties.
        q: (n,) positions.
        out: (n, n) result [kg m², kg m or kg].
    """
    m, n = chain.rotation_per_unit.shape[0], q.shape[0]
    frames, workspace, zero, unit_acceleration = (
        np.empty((m + 1, 4, 4)),
        np.empty((5, m + 1, 3)),
        np.zeros(n),
        np.zeros(n),
    )
    compute_frames(chain, q, frames)
    for j in range(n):
        unit_acceleration[:] = 0.0
        unit_acceleration[j] = 1.0
        inverse_dynamics_at(chain, masses, ChainMotion(q, zero, unit_acceleration), 0.0, frames, workspace, out[j])
