"""Kernels: closed-form inverse kinematics of two families of arms, all branches.

Arms whose second to fourth axes are parallel, with five joints, as the Schunk and youBot arms, or six of which the last
two meet, as those of Universal Robots: the first joint takes the wrist into the plane in which the parallel ones move
it, the tool's direction gives the last ones, and what remains is a triangle.

Arms of six revolute joints with a spherical wrist: the wrist's place depends on the first three joints alone (Pieper
1968).  Its height and its distance from the first axis make two equations in the second and third joint; eliminating
the second leaves a conic in the cosine and sine of the third, a line where the first two axes meet or are parallel.
The wrist follows from the rotation that remains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik.trigonometric_equations import solve_linear_trig, solve_quadratic_trig


class ParallelAxesArm(NamedTuple):
    """Parameters of the closed form, normalized so that frames 2 to 4 have the same orientation and differ in x and y
    only.

    Attributes:
        first: (4, 4) pose of frame 1 in the base.
        second: (4, 4) pose of frame 2 in frame 1.
        upper_arm: (2,) origin of frame 3 in frame 2.
        forearm: (2,) origin of frame 4 in frame 3.
        fifth: (4, 4) pose of frame 5 in frame 4; its origin is the wrist.
        sixth: (4, 4) pose of frame 6 in frame 5, with the same origin.
        has_sixth_joint: Whether there is a sixth joint.
        T_tip: (4, 4) pose of the tip in the last frame.
        sign: (n,) -1 for joints with the opposite rotation direction in this form.
        offset: (n,) difference of joint angles in this form, after the sign.
    """

    first: Array
    second: Array
    upper_arm: Array
    forearm: Array
    fifth: Array
    sixth: Array
    has_sixth_joint: bool
    T_tip: Array
    sign: Array
    offset: Array


def _example_parallel_arm() -> ParallelAxesArm:
    eye = np.eye(4)
    return ParallelAxesArm(eye, eye, np.zeros(2), np.zeros(2), eye, eye, True, eye, np.ones(6), np.zeros(6))


@kernel(examples=lambda: [(_example_parallel_arm(), np.eye(4), np.zeros(6), np.zeros((8, 6)))])
def solve_parallel_axes(arm: ParallelAxesArm, T: Array, seed: Array, out: Array) -> int:
    """Compute all branches that reach a pose; with five joints, those that reach the wrist position, if not the
    direction.

    Args:
        arm: Parameters of the closed form.
        T: (4, 4) goal pose of the tip in the base.
        seed: (n,) values of joints that are undetermined.
        out: (8, n) result, one branch per row.

    Returns:
        Number of branches.
    """
    tip, O1, O2, A, B = arm.T_tip, arm.first, arm.second, arm.fifth, arm.sixth
    W, p = np.empty((3, 3)), np.empty(3)  # the last frame in the base
    for i in range(3):
        for j in range(3):
            W[i, j] = T[i, 0] * tip[j, 0] + T[i, 1] * tip[j, 1] + T[i, 2] * tip[j, 2]
    for i in range(3):
        p[i] = T[i, 3] - (W[i, 0] * tip[0, 3] + W[i, 1] * tip[1, 3] + W[i, 2] * tip[2, 3]) - O1[i, 3]
    P, V = np.empty(3), np.empty((3, 3))  # the same in frame 1 at zero
    for i in range(3):
        P[i] = O1[0, i] * p[0] + O1[1, i] * p[1] + O1[2, i] * p[2]
        for j in range(3):
            V[i, j] = O1[0, i] * W[0, j] + O1[1, i] * W[1, j] + O1[2, i] * W[2, j]
    nx, ny, nz = O2[0, 2], O2[1, 2], O2[2, 2]  # direction of the parallel axes
    plane_offset = nx * O2[0, 3] + ny * O2[1, 3] + nz * O2[2, 3] + A[2, 3]
    firsts = np.empty(4)
    if math.hypot(P[0], P[1]) > 1e-7:
        n_firsts = solve_linear_trig(nx * P[0] + ny * P[1], nx * P[1] - ny * P[0], plane_offset - nz * P[2], firsts)
    elif not arm.has_sixth_joint:  # the wrist is above the first joint: the tool's direction determines it
        zx, zy = V[0, 2], V[1, 2]
        n_firsts = solve_linear_trig(nx * zx + ny * zy, nx * zy - ny * zx, A[2, 2] - nz * V[2, 2], firsts)
    else:
        n_firsts = 0
    if n_firsts == 0 and math.hypot(P[0], P[1]) <= 1e-7:
        firsts[0], n_firsts = arm.sign[0] * seed[0] + arm.offset[0], 1
    fifths, thirds, found = np.empty(4), np.empty(4), 0
    Q, X, H = np.empty((3, 3)), np.empty(3), np.empty((3, 3))
    for k in range(n_firsts):
        c, s = math.cos(firsts[k]), math.sin(firsts[k])
        x, y, z = c * P[0] + s * P[1] - O2[0, 3], c * P[1] - s * P[0] - O2[1, 3], P[2] - O2[2, 3]
        for i in range(3):
            X[i] = O2[0, i] * x + O2[1, i] * y + O2[2, i] * z
            for j in range(3):
                Q[i, j] = (
                    O2[0, i] * (c * V[0, j] + s * V[1, j]) + O2[1, i] * (c * V[1, j] - s * V[0, j]) + O2[2, i] * V[2, j]
                )
        # Q = Rz(q2 + q3 + q4) A Rz(q5) [B Rz(q6)]
        if arm.has_sixth_joint:
            a, b = A[2, 0] * B[0, 2] + A[2, 1] * B[1, 2], A[2, 1] * B[0, 2] - A[2, 0] * B[1, 2]
            n_fifths = solve_linear_trig(a, b, Q[2, 2] - A[2, 2] * B[2, 2], fifths)
        else:
            fifths[0], n_fifths = 0.0, 1
        for m in range(n_fifths):
            sixth = 0.0
            if arm.has_sixth_joint:
                c5, s5 = math.cos(fifths[m]), math.sin(fifths[m])
                for i in range(3):
                    x, y = c5 * A[i, 0] + s5 * A[i, 1], c5 * A[i, 1] - s5 * A[i, 0]
                    for j in range(3):
                        H[i, j] = x * B[0, j] + y * B[1, j] + A[i, 2] * B[2, j]
                if math.hypot(H[2, 0], H[2, 1]) < 1e-9:
                    sixth = arm.sign[5] * seed[5] + arm.offset[5]  # the last axis is parallel too
                else:
                    sixth = math.atan2(H[2, 1], H[2, 0]) - math.atan2(Q[2, 1], Q[2, 0])
                c6, s6 = math.cos(sixth), math.sin(sixth)
                # first column of H Rz(q6) beside that of Q
                hx, hy = c6 * H[0, 0] + s6 * H[0, 1], c6 * H[1, 0] + s6 * H[1, 1]
                kx, ky = c6 * H[0, 1] - s6 * H[0, 0], c6 * H[1, 1] - s6 * H[1, 0]
                # the rotation that best fits all three columns
                sine = hx * Q[1, 0] - hy * Q[0, 0] + kx * Q[1, 1] - ky * Q[0, 1] + H[0, 2] * Q[1, 2] - H[1, 2] * Q[0, 2]
                cosine = (
                    hx * Q[0, 0] + hy * Q[1, 0] + kx * Q[0, 1] + ky * Q[1, 1] + H[0, 2] * Q[0, 2] + H[1, 2] * Q[1, 2]
                )
                angle_sum = math.atan2(sine, cosine)
            else:
                angle_sum = math.atan2(Q[1, 2], Q[0, 2]) - math.atan2(A[1, 2], A[0, 2])
                cw, sw = math.cos(angle_sum), math.sin(angle_sum)
                # first column of (Rz(angle_sum) A)^T Q
                q0, q1, q2 = cw * Q[0, 0] + sw * Q[1, 0], cw * Q[1, 0] - sw * Q[0, 0], Q[2, 0]
                fifths[0] = math.atan2(
                    A[0, 1] * q0 + A[1, 1] * q1 + A[2, 1] * q2, A[0, 0] * q0 + A[1, 0] * q1 + A[2, 0] * q2
                )
            cw, sw = math.cos(angle_sum), math.sin(angle_sum)
            x, y = X[0] - (cw * A[0, 3] - sw * A[1, 3]), X[1] - (sw * A[0, 3] + cw * A[1, 3])
            ux, uy, lx, ly = arm.upper_arm[0], arm.upper_arm[1], arm.forearm[0], arm.forearm[1]
            elbow_term = 0.5 * (x * x + y * y - ux * ux - uy * uy - lx * lx - ly * ly)
            n_thirds = solve_linear_trig(ux * lx + uy * ly, uy * lx - ux * ly, elbow_term, thirds)
            for n in range(n_thirds):
                c3, s3 = math.cos(thirds[n]), math.sin(thirds[n])
                rx, ry = ux + c3 * lx - s3 * ly, uy + s3 * lx + c3 * ly
                second = math.atan2(y, x) - math.atan2(ry, rx)
                out[found, 0], out[found, 1], out[found, 2] = firsts[k], second, thirds[n]
                out[found, 3], out[found, 4] = angle_sum - second - thirds[n], fifths[m]
                if arm.has_sixth_joint:
                    out[found, 5] = sixth
                for i in range(arm.sign.shape[0]):
                    out[found, i] = arm.sign[i] * (out[found, i] - arm.offset[i])
                found += 1
    return found


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


def _example_wrist_arm() -> SphericalWristArm:
    return SphericalWristArm(np.zeros((6, 4, 4)), np.eye(4))


@kernel(examples=lambda: [(_example_wrist_arm(), np.zeros(3), np.zeros(6), np.zeros((8, 6)))])
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


@kernel(examples=lambda: [(_example_wrist_arm(), np.eye(4), np.zeros(6), np.zeros((8, 6)))])
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
