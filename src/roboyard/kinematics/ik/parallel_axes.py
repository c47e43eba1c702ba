"""Kernel: closed-form inverse kinematics, with all branches, of arms whose second to fourth axes are parallel.

The arm has five joints, as Schunk and youBot arms, or six of which the last two axes intersect, as arms of Universal
Robots. The first joint moves the wrist into the plane of the parallel joints, the tool's direction determines the last
joints, and the remaining joints form a triangle.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik.trigonometric_equations import solve_linear_trig


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


def _example() -> ParallelAxesArm:
    eye = np.eye(4)
    return ParallelAxesArm(eye, eye, np.zeros(2), np.zeros(2), eye, eye, True, eye, np.ones(6), np.zeros(6))


@kernel(examples=lambda: [(_example(), np.eye(4), np.zeros(6), np.zeros((8, 6)))])
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
