"""Kernels: the efforts that move a serial chain, from its masses.

Recursive Newton-Euler in the axes of the base: J. Luh, M. Walker, R. Paul, "On-line computational scheme for mechanical
manipulators", J. Dynamic Systems, Measurement, and Control 102(2), 1980.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.rows import Rows, place_frames, smallest
from roboyard.compute import kernel

Array = NDArray[np.float64]
_SAME = 1e-12
"""Two ends of intervals that differ by less are one place."""


class Masses(NamedTuple):
    """What a chain's m + 1 frames carry, and what its n free joints themselves need; numbered as `Rows` are.

    Attributes:
        mass: (m + 1,) [kg].
        middle: (m + 1, 3) centres of mass in their frames [m].
        inertia: (m + 1, 3, 3) about these, in the frames' axes [kg m²].
        weight: (m + 1,) mass that gravity pulls at [kg].
        heavy: (m + 1, 3) its centre.
        rotor: (n,) inertia of the joints themselves [kg m² or kg].
        spring: (m,) stiffness of the moving joints [N m/rad or N/m].
        slack: (m,) where their springs rest.
        gravity: (3,) in the base [m/s²].
    """

    mass: Array
    middle: Array
    inertia: Array
    weight: Array
    heavy: Array
    rotor: Array
    spring: Array
    slack: Array
    gravity: Array


def smallest_masses() -> Masses:
    """Of `rows.smallest`, for kernels' examples."""
    two, place, one = np.ones(2), np.zeros((2, 3)), np.zeros(1)
    return Masses(two, place, np.zeros((2, 3, 3)), two, place.copy(), one, one, one, np.zeros(3))


def _examples() -> Iterable[tuple[Any, ...]]:
    rows, one = smallest(), np.ones(1)
    yield rows, smallest_masses(), one, one, one, 1.0, np.zeros((2, 4, 4)), np.zeros((5, 2, 3)), np.zeros(1)


@kernel(inline="always", examples=lambda: [(np.ones(3), np.ones(3), np.ones(3))])
def add_cross(a: Array, b: Array, out: Array) -> None:
    """``out += a x b``; ``out`` may be neither."""
    out[0] += a[1] * b[2] - a[2] * b[1]
    out[1] += a[2] * b[0] - a[0] * b[2]
    out[2] += a[0] * b[1] - a[1] * b[0]


@kernel(examples=_examples)
def chain_efforts(
    rows: Rows, masses: Masses, q: Array, v: Array, a: Array, pull: float, frames: Array, work: Array, out: Array
) -> None:
    """Efforts of the free joints in a motion, without friction and damping.

    Args:
        rows: The chain.
        masses: What it carries.
        q: (n,) positions.
        v: (n,) velocities.
        a: (n,) accelerations.
        pull: Share of gravity, and of springs; 0 leaves both out.
        frames: (m + 1, 4, 4) as `place_frames` leaves them.
        work: (5, m + 1, 3) memory.
        out: (n,) is filled [N m or N].
    """
    m = rows.turn.shape[0]
    spin, turning, speeding, force, moment = work[0], work[1], work[2], work[3], work[4]
    spin[0] = 0.0
    turning[0] = 0.0
    speeding[0] = 0.0
    for j in range(out.shape[0]):
        out[j] = masses.rotor[j] * a[j]
    r, z, local, arm, swirl = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(m):
        before, T = frames[k], frames[k + 1]
        speed, rate = rows.multiplier[k] * v[rows.source[k]], rows.multiplier[k] * a[rows.source[k]]
        for i in range(3):
            r[i] = T[i, 3] - before[i, 3]
            z[i] = T[i, 2]
        # the frame's origin: as a point of the link before, and what it slides on that
        local[:] = 0.0
        add_cross(spin[k], r, local)
        for i in range(3):
            local[i] += 2.0 * rows.slide[k] * speed * z[i]
            speeding[k + 1, i] = speeding[k, i] + rows.slide[k] * rate * z[i]
            spin[k + 1, i] = spin[k, i] + rows.turn[k] * speed * z[i]
            turning[k + 1, i] = turning[k, i] + rows.turn[k] * rate * z[i]
            arm[i] = rows.turn[k] * speed * z[i]
        add_cross(turning[k], r, speeding[k + 1])
        add_cross(spin[k], local, speeding[k + 1])
        add_cross(spin[k], arm, turning[k + 1])
    for k in range(m + 1):
        force[k] = 0.0
        moment[k] = 0.0
    for k in range(m, 0, -1):
        T = frames[k]
        mass, weight = masses.mass[k], pull * masses.weight[k]
        if mass > 0.0 or weight > 0.0:
            for i in range(3):
                arm[i] = T[i, 0] * masses.middle[k, 0] + T[i, 1] * masses.middle[k, 1] + T[i, 2] * masses.middle[k, 2]
                r[i] = speeding[k, i]
            swirl[:] = 0.0
            add_cross(spin[k], arm, swirl)
            add_cross(turning[k], arm, r)
            add_cross(spin[k], swirl, r)
            for i in range(3):
                r[i] *= mass
                force[k, i] += r[i]
            add_cross(arm, r, moment[k])
            # the turning body, in its own axes, where its inertia stays what it is
            inertia = masses.inertia[k]
            for i in range(3):
                local[i] = T[0, i] * spin[k, 0] + T[1, i] * spin[k, 1] + T[2, i] * spin[k, 2]
                arm[i] = T[0, i] * turning[k, 0] + T[1, i] * turning[k, 1] + T[2, i] * turning[k, 2]
            for i in range(3):
                z[i] = inertia[i, 0] * local[0] + inertia[i, 1] * local[1] + inertia[i, 2] * local[2]
                r[i] = inertia[i, 0] * arm[0] + inertia[i, 1] * arm[1] + inertia[i, 2] * arm[2]
            add_cross(local, z, r)
            for i in range(3):
                moment[k, i] += T[i, 0] * r[0] + T[i, 1] * r[1] + T[i, 2] * r[2]
            for i in range(3):
                arm[i] = T[i, 0] * masses.heavy[k, 0] + T[i, 1] * masses.heavy[k, 1] + T[i, 2] * masses.heavy[k, 2]
                r[i] = -weight * masses.gravity[i]
                force[k, i] += r[i]
            add_cross(arm, r, moment[k])
        row = k - 1
        effort = 0.0
        for i in range(3):
            effort += T[i, 2] * (rows.turn[row] * moment[k, i] + rows.slide[row] * force[k, i])
            r[i] = T[i, 3] - frames[row, i, 3]
            force[row, i] += force[k, i]
            moment[row, i] += moment[k, i]
        add_cross(r, force[k], moment[row])
        j, ratio = rows.source[row], rows.multiplier[row]
        effort += pull * masses.spring[row] * (ratio * q[j] + rows.offset[row] - masses.slack[row])
        out[j] += ratio * effort


@kernel(examples=lambda: [(smallest(), smallest_masses(), *(np.ones((2, 1)) for _ in range(4)))])
def fill_efforts(rows: Rows, masses: Masses, q: Array, v: Array, a: Array, out: Array) -> None:
    """Efforts in many motions, without friction and damping.

    Args:
        rows: The chain.
        masses: What it carries.
        q: (k, n) positions.
        v: (k, n) velocities.
        a: (k, n) accelerations.
        out: (k, n) is filled [N m or N].
    """
    m = rows.turn.shape[0]
    frames, work = np.empty((m + 1, 4, 4)), np.empty((5, m + 1, 3))
    for i in range(q.shape[0]):
        place_frames(rows, q[i], frames)
        chain_efforts(rows, masses, q[i], v[i], a[i], 1.0, frames, work, out[i])


@kernel(
    examples=lambda: [
        (smallest(), smallest_masses(), *(np.ones((2, 2, 1)) for _ in range(2)), np.ones((2, 1)), np.ones((3, 2, 2, 1)))
    ]
)
def fill_along(rows: Rows, masses: Masses, q: Array, slope: Array, bend: Array, out: Array) -> None:
    """Efforts along a path: linear in its acceleration u and in the square x of the speed along it, and a rest.

    Args:
        rows: The chain.
        masses: What it carries.
        q: (k, 2, n) joints at both ends of each of its intervals.
        slope: (k, 2, n) their derivatives by the length along it.
        bend: (k, n) the second ones, constant in an interval.
        out: (3, k, 2, n) is filled: what u and x are multiplied by, and the efforts of gravity and springs.
    """
    m, n = rows.turn.shape[0], q.shape[2]
    frames, work, zero = np.empty((m + 1, 4, 4)), np.empty((5, m + 1, 3)), np.zeros(n)
    for i in range(q.shape[0]):
        for end in range(2):
            if i > 0 and end == 0:
                new = 0.0
                for k in range(n):
                    new = max(new, abs(q[i, 0, k] - q[i - 1, 1, k]), abs(slope[i, 0, k] - slope[i - 1, 1, k]))
                    new = max(new, abs(bend[i, k] - bend[i - 1, k]))
                if new < _SAME:
                    out[:, i, 0] = out[:, i - 1, 1]
                    continue
            at, along = q[i, end], slope[i, end]
            place_frames(rows, at, frames)
            chain_efforts(rows, masses, at, zero, along, 0.0, frames, work, out[0, i, end])
            chain_efforts(rows, masses, at, along, bend[i], 0.0, frames, work, out[1, i, end])
            chain_efforts(rows, masses, at, zero, zero, 1.0, frames, work, out[2, i, end])


@kernel(examples=lambda: [(smallest(), smallest_masses(), np.ones(1), np.ones((1, 1)))])
def fill_inertia(rows: Rows, masses: Masses, q: Array, out: Array) -> None:
    """The inertia that the free joints feel, each the acceleration of each.

    Args:
        rows: The chain.
        masses: What it carries.
        q: (n,) positions.
        out: (n, n) is filled [kg m², kg m or kg].
    """
    m, n = rows.turn.shape[0], q.shape[0]
    frames, work, zero, one = np.empty((m + 1, 4, 4)), np.empty((5, m + 1, 3)), np.zeros(n), np.zeros(n)
    place_frames(rows, q, frames)
    for j in range(n):
        one[:] = 0.0
        one[j] = 1.0
        chain_efforts(rows, masses, q, zero, one, 0.0, frames, work, out[j])
