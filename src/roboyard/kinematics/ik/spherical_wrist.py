"""Kernel: closed-form inverse kinematics of six revolute joints with a spherical wrist, all branches.

The position of the wrist center depends on the first three joints only (Pieper 1968). Its height and its distance from
the first axis give two equations in the second and third joint.  Eliminating the second joint gives a conic in cosine
and sine of the third, which is a line where the first two axes intersect or are parallel. The wrist joints follow from
the remaining rotation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik.trigonometric_equations import solve_linear_trig, solve_quadratic_trig

_DEGENERACY_TOLERANCE = 1e-9


class SphericalWristArm(NamedTuple):
    """Parameters of a chain with a spherical wrist: frames 4 to 6 have their origins at the wrist center.

    Attributes:
        origins: (6, 4, 4) as in `ChainArrays`.
        T_tip: (4, 4) pose of the tip in the last frame.
    """

    origins: Array
    T_tip: Array


@kernel(inline="always", examples=lambda: [(np.eye(3), 0.1, np.eye(3))])
def _rotate_z(R: Array, angle: float, out: Array) -> None:
    """Compute ``out = R Rz(angle)`` of rotations."""
    c, s = math.cos(angle), math.sin(angle)
    for i in range(3):
        a, b = R[i, 0], R[i, 1]
        out[i, 0] = c * a + s * b
        out[i, 1] = c * b - s * a
        out[i, 2] = R[i, 2]


def _example() -> SphericalWristArm:
    return SphericalWristArm(np.zeros((6, 4, 4)), np.eye(4))


@kernel(examples=lambda: [(_example(), np.zeros(3), np.zeros(6), np.zeros((8, 6)))])
def _solve_first_three_joints(arm: SphericalWristArm, P: Array, seed: Array, out: Array) -> int:
    """Compute the first three joints for the wrist position P, given in the frame of the first joint; return the number
    of solutions.
    """
    O2, O3, c3 = arm.origins[1], arm.origins[2], arm.origins[3][:3, 3]
    t = O2[:3, 3]
    ax, ay, az = O2[2, 0], O2[2, 1], O2[2, 2]
    bx = O2[0, 0] * t[0] + O2[1, 0] * t[1] + O2[2, 0] * t[2]
    by = O2[0, 1] * t[0] + O2[1, 1] * t[1] + O2[2, 1] * t[2]
    bz = O2[0, 2] * t[0] + O2[1, 2] * t[1] + O2[2, 2] * t[2]
    # f = f0 + fc cos q3 + fs sin q3: wrist position in the frame of joint 2
    f0, fc, fs = np.empty(3), np.empty(3), np.empty(3)
    for i in range(3):
        f0[i] = O3[i, 3] + O3[i, 2] * c3[2]
        fc[i] = O3[i, 0] * c3[0] + O3[i, 1] * c3[1]
        fs[i] = O3[i, 1] * c3[0] - O3[i, 0] * c3[1]
    length = 0.0
    dots_c = dots_s = dots_0 = 0.0
    for i in range(3):
        length += t[i] * t[i]
        dots_0 += f0[i] * f0[i] + 0.5 * (fc[i] * fc[i] + fs[i] * fs[i])
        dots_c += 2.0 * f0[i] * fc[i]
        dots_s += 2.0 * f0[i] * fs[i]
    distance = P[0] * P[0] + P[1] * P[1] + P[2] * P[2]
    # a . Rz(q2) f = u, b . Rz(q2) f = v, both without q1; u and v are lines in cos q3 and sin q3
    u0, uc, us = P[2] - t[2] - az * f0[2], -az * fc[2], -az * fs[2]
    v0 = 0.5 * (distance - length - dots_0) - bz * f0[2]
    vc, vs = -0.5 * dots_c - bz * fc[2], -0.5 * dots_s - bz * fs[2]
    cross = ax * by - ay * bx
    aa, bb, ab = ax * ax + ay * ay, bx * bx + by * by, ax * bx + ay * by
    thirds, count = np.empty(4), 0
    is_general = abs(cross) > _DEGENERACY_TOLERANCE
    if is_general:
        conic = np.empty(6)
        conic[0] = bb * uc * uc + aa * vc * vc - 2.0 * ab * uc * vc - cross * cross * (-fc[2] * fc[2])
        conic[1] = 2.0 * (bb * uc * us + aa * vc * vs - ab * (uc * vs + us * vc) + cross * cross * fc[2] * fs[2])
        conic[2] = bb * us * us + aa * vs * vs - 2.0 * ab * us * vs + cross * cross * fs[2] * fs[2]
        cross_squared = cross * cross
        conic[3] = 2.0 * (bb * u0 * uc + aa * v0 * vc - ab * (u0 * vc + uc * v0)) - cross_squared * (
            dots_c - 2.0 * f0[2] * fc[2]
        )
        conic[4] = 2.0 * (bb * u0 * us + aa * v0 * vs - ab * (u0 * vs + us * v0)) - cross_squared * (
            dots_s - 2.0 * f0[2] * fs[2]
        )
        conic[5] = bb * u0 * u0 + aa * v0 * v0 - 2.0 * ab * u0 * v0 - cross_squared * (dots_0 - f0[2] * f0[2])
        count = solve_quadratic_trig(conic, thirds)
    else:
        along_a, along_b = math.sqrt(aa), math.sqrt(bb)
        if ab < 0.0:
            along_b = -along_b
        count = solve_linear_trig(
            along_b * uc - along_a * vc, along_b * us - along_a * vs, along_a * v0 - along_b * u0, thirds
        )
    seconds, found = np.empty(4), 0
    for i in range(count):
        c, s = math.cos(thirds[i]), math.sin(thirds[i])
        fx, fy = f0[0] + fc[0] * c + fs[0] * s, f0[1] + fc[1] * c + fs[1] * s
        fz = f0[2] + fc[2] * c + fs[2] * s
        u, v = u0 + uc * c + us * s, v0 + vc * c + vs * s
        A, A1 = ax * fx + ay * fy, ay * fx - ax * fy
        B, B1 = bx * fx + by * fy, by * fx - bx * fy
        if is_general:
            seconds[0] = math.atan2((A * v - B * u) * cross, (u * B1 - v * A1) * cross)
            n_seconds = 1
        elif aa >= bb:
            n_seconds = solve_linear_trig(A, A1, u, seconds)
        else:
            n_seconds = solve_linear_trig(B, B1, v, seconds)
        for j in range(n_seconds):
            if found == 4:
                break
            c2, s2 = math.cos(seconds[j]), math.sin(seconds[j])
            gx, gy = c2 * fx - s2 * fy, s2 * fx + c2 * fy
            hx = t[0] + O2[0, 0] * gx + O2[0, 1] * gy + O2[0, 2] * fz
            hy = t[1] + O2[1, 0] * gx + O2[1, 1] * gy + O2[1, 2] * fz
            if math.hypot(hx, hy) < 1e-9:
                out[found, 0] = seed[0]  # on the first axis: the joint is undetermined
            else:
                out[found, 0] = math.atan2(P[1], P[0]) - math.atan2(hy, hx)
            out[found, 1], out[found, 2] = seconds[j], thirds[i]
            found += 1
    return found


@kernel(examples=lambda: [(_example(), np.eye(4), np.zeros(6), np.zeros((8, 6)))])
def solve_spherical_wrist(arm: SphericalWristArm, T: Array, seed: Array, out: Array) -> int:
    """Compute all branches that reach a pose, regardless of joint limits.

    Args:
        arm: Parameters of the chain.
        T: (4, 4) goal pose of the tip in the base.
        seed: (6,) values of joints that are undetermined.
        out: (8, 6) result, one branch per row.

    Returns:
        Number of branches.
    """
    O1 = arm.origins[0]
    # frame 6 in the base: T T_tip^-1
    R6, p = np.empty((3, 3)), np.empty(3)
    tip = arm.T_tip
    for i in range(3):
        for j in range(3):
            R6[i, j] = T[i, 0] * tip[j, 0] + T[i, 1] * tip[j, 1] + T[i, 2] * tip[j, 2]
    for i in range(3):
        p[i] = T[i, 3] - (R6[i, 0] * tip[0, 3] + R6[i, 1] * tip[1, 3] + R6[i, 2] * tip[2, 3]) - O1[i, 3]
    P = np.empty(3)
    for i in range(3):
        P[i] = O1[0, i] * p[0] + O1[1, i] * p[1] + O1[2, i] * p[2]
    first_three = np.empty((8, 6))
    count = _solve_first_three_joints(arm, P, seed, first_three)
    A, B = arm.origins[4], arm.origins[5]
    fifths, found = np.empty(4), 0
    R, rotated, Q, V = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for k in range(count):
        # Q = (O1 Rz(q1) O2 Rz(q2) O3 Rz(q3) O4)^T R6 = Rz(q4) A Rz(q5) B Rz(q6)
        for i in range(3):
            for j in range(3):
                R[i, j] = O1[i, j]
        for n in range(3):
            _rotate_z(R, first_three[k, n], rotated)
            next_origin = arm.origins[n + 1]
            for i in range(3):
                for j in range(3):
                    R[i, j] = (
                        rotated[i, 0] * next_origin[0, j]
                        + rotated[i, 1] * next_origin[1, j]
                        + rotated[i, 2] * next_origin[2, j]
                    )
        for i in range(3):
            for j in range(3):
                Q[i, j] = R[0, i] * R6[0, j] + R[1, i] * R6[1, j] + R[2, i] * R6[2, j]
        a, b = A[2, 0] * B[0, 2] + A[2, 1] * B[1, 2], A[2, 1] * B[0, 2] - A[2, 0] * B[1, 2]
        n_fifths = solve_linear_trig(a, b, Q[2, 2] - A[2, 2] * B[2, 2], fifths)
        for m in range(n_fifths):
            c, s = math.cos(fifths[m]), math.sin(fifths[m])
            # V = A Rz(q5) B
            for i in range(3):
                x, y = c * A[i, 0] + s * A[i, 1], c * A[i, 1] - s * A[i, 0]
                for j in range(3):
                    V[i, j] = x * B[0, j] + y * B[1, j] + A[i, 2] * B[2, j]
            if math.hypot(V[0, 2], V[1, 2]) < 1e-9:
                fourth = seed[3]  # axes 4 and 6 coincide: only the sum of their angles is determined
            else:
                fourth = math.atan2(Q[1, 2], Q[0, 2]) - math.atan2(V[1, 2], V[0, 2])
            c, s = math.cos(fourth), math.sin(fourth)
            # first column of (Rz(q4) V)^T Q
            q0, q1, q2 = c * Q[0, 0] + s * Q[1, 0], c * Q[1, 0] - s * Q[0, 0], Q[2, 0]
            sixth = math.atan2(V[0, 1] * q0 + V[1, 1] * q1 + V[2, 1] * q2, V[0, 0] * q0 + V[1, 0] * q1 + V[2, 0] * q2)
            for i in range(3):
                out[found, i] = first_three[k, i]
            out[found, 3], out[found, 4], out[found, 5] = fourth, fifths[m], sixth
            found += 1
    return found
