"""Grasp forces: springs that carry objects with compliant bodies, such as people's hands, up to a maximum force."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.quaternion_kernels import rotate_vector
from roboyard.physics.mujoco_memory import StateViews, example_state

# Columns of the table of grasps, one row for each: row of the gripping part in the table of compliant parts, the first
# row of its model and the one after its last; body of the object, and the addresses of its position and velocity; the
# grasp point in the frame of the part; the offset from there to the origin of the object, in the world; the target
# orientation of the object; its mass, moments of inertia and center of mass in its frame; maximum force [N], 0 while
# the object is only reserved; the target before this step; the force without the object's weight in the last step [N];
# the mass that gravity acts on [kg]: links without gravity have none.
PART_ROW, FIRST_PART, END_PART, BODY, QPOS_ADDRESS, DOF_ADDRESS = range(6)
GRASP_POINT, OFFSET, TARGET_ORIENTATION, MASS, INERTIA, COM, MAX_FORCE, PREVIOUS_TARGET, FORCE = (
    6,
    9,
    12,
    16,
    17,
    20,
    23,
    24,
    27,
)
WEIGHT_MASS = 30
GRASP_COLUMNS = 31
NO_GRASPS = np.zeros((0, GRASP_COLUMNS))

GRASP_FREQUENCY = 60.0
"""Natural frequency of the critically damped spring of a grasp [rad/s]: 3 mm of lag at 10 m/s²."""
TORQUE_ARM = 0.04
"""Lever of the maximum force that bounds the torque of a grasp [m]: half the breadth of a hand."""


@kernel(inline="always")
def _rotate(q: NDArray[np.float64], v: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Rotate a vector by a unit quaternion."""
    out[0], out[1], out[2] = rotate_vector((q[0], q[1], q[2], q[3]), (v[0], v[1], v[2]))


@kernel(inline="always")
def _limit_norm(v: NDArray[np.float64], max_norm: float) -> None:
    norm = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    if norm > max_norm:
        for i in range(3):
            v[i] *= max_norm / norm


def _example() -> Iterable[tuple[Any, ...]]:
    orientations = np.zeros((1, 4))
    orientations[0, 0] = 1.0
    yield (np.zeros((1, GRASP_COLUMNS)), np.zeros((1, 3)), orientations, example_state(), 0.002)


@kernel(examples=_example, error_model="numpy", no_refcount=False)
def apply_grasp_forces(
    grasps: NDArray[np.float64],
    positions: NDArray[np.float64],
    orientations: NDArray[np.float64],
    state: StateViews,
    dt: float,
) -> None:
    """Apply the forces that carry held objects and pull them to their target poses, for one step.

    The spring of a grasp, with the object's mass ``m`` and `GRASP_FREQUENCY` ``ω``, is at most as strong as the grip::

        f = m (ω² (p_target - p) + 2 ω (v_target - v))

    The hand carries the weight ``-m g`` of the object in the gravity of the world besides.

    Args:
        grasps: (n, `GRASP_COLUMNS`); `PREVIOUS_TARGET` and `FORCE` are written.
        positions: (m, 3) of the compliant parts in the world [m].
        orientations: (m, 4) likewise, unit quaternions (w, x, y, z).
        state: The present state; the forces on the held bodies are written to ``applied``.
        dt: Step [s].
    """
    qpos, qvel, applied = state.qpos, state.qvel, state.applied
    point_offset, com_offset, torque, body_torque = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(grasps.shape[0]):
        grasp = grasps[k]
        if grasp[MAX_FORCE] == 0.0:
            continue
        part, body = int(grasp[PART_ROW]), int(grasp[BODY])
        qpos_address, dof_address = int(grasp[QPOS_ADDRESS]), int(grasp[DOF_ADDRESS])
        q = qpos[qpos_address + 3 : qpos_address + 7]
        _rotate(orientations[part], grasp[GRASP_POINT : GRASP_POINT + 3], point_offset)
        for i in range(3):
            target = positions[part, i] + point_offset[i] + grasp[OFFSET + i]
            target_velocity = (target - grasp[PREVIOUS_TARGET + i]) / dt
            grasp[PREVIOUS_TARGET + i] = target
            acceleration = GRASP_FREQUENCY * GRASP_FREQUENCY * (
                target - qpos[qpos_address + i]
            ) + 2.0 * GRASP_FREQUENCY * (target_velocity - qvel[dof_address + i])
            grasp[FORCE + i] = grasp[MASS] * acceleration
        _limit_norm(grasp[FORCE : FORCE + 3], grasp[MAX_FORCE])
        # rotation error in the body's frame: twice the imaginary part of conj(q) * target
        w, x, y, z = q[0], -q[1], -q[2], -q[3]
        a, b, c, d = (
            grasp[TARGET_ORIENTATION],
            grasp[TARGET_ORIENTATION + 1],
            grasp[TARGET_ORIENTATION + 2],
            grasp[TARGET_ORIENTATION + 3],
        )
        sign = 2.0 if w * a - x * b - y * c - z * d >= 0.0 else -2.0
        body_torque[0] = sign * (w * b + x * a + y * d - z * c)
        body_torque[1] = sign * (w * c - x * d + y * a + z * b)
        body_torque[2] = sign * (w * d + x * c - y * b + z * a)
        for i in range(3):
            body_torque[i] = grasp[INERTIA + i] * (
                GRASP_FREQUENCY * GRASP_FREQUENCY * body_torque[i] - 2.0 * GRASP_FREQUENCY * qvel[dof_address + 3 + i]
            )
        _limit_norm(body_torque, TORQUE_ARM * grasp[MAX_FORCE])
        _rotate(q, body_torque, torque)
        _rotate(q, grasp[COM : COM + 3], com_offset)
        for i in range(3):
            applied[body, i] = grasp[FORCE + i] - grasp[WEIGHT_MASS] * state.gravity[i]
        fx, fy, fz = grasp[FORCE], grasp[FORCE + 1], grasp[FORCE + 2]
        applied[body, 3] = torque[0] - (com_offset[1] * fz - com_offset[2] * fy)
        applied[body, 4] = torque[1] - (com_offset[2] * fx - com_offset[0] * fz)
        applied[body, 5] = torque[2] - (com_offset[0] * fy - com_offset[1] * fx)


@kernel
def is_gripped_by(grasps: NDArray[np.float64], part: int, body: int) -> bool:
    """Return whether a compliant part belongs to a person who grips a body or has reserved it.

    Contacts between the two exert no force then.
    """
    found = False
    for k in range(grasps.shape[0]):
        found = found or (int(grasps[k, BODY]) == body and grasps[k, FIRST_PART] <= part < grasps[k, END_PART])
    return found
