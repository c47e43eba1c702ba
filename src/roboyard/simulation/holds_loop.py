"""What led bodies hold, as people's hands do: springs that carry things along and give in to too much; compiled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.constants import GRAVITY
from roboyard.geometry.quaternion_kernels import rotate_vector

# Columns of the table of holds, one row for each: the row of the led part in the table of `flesh_loop`, the first of
# its model and the one after its last; the engine's body, and where its position and velocity begin; the point of the
# part that holds, in its frame; from there to the body's origin, in the world; how the body is to be turned; its mass,
# moments of inertia and centre of mass in its frame; strength [N], 0 while it is not held and only not pushed away; the
# point before this step; the force without the thing's weight in the last step [N].
PART, FIRST, LAST, BODY, POSITION, VELOCITY = range(6)
POINT, OFFSET, TURN, MASS, MOMENTS, CENTRE, STRENGTH, BEFORE, FORCE = 6, 9, 12, 16, 17, 20, 23, 24, 27
WIDTH = 30
NOTHING_HELD = np.zeros((0, WIDTH))

RATE = 60.0
"""Natural frequency of a hold, which is damped critically [rad/s]: 3 mm of lag at 10 m/s²."""
LEVER = 0.04
"""A hold turns with as much as its strength at this lever [m]: half a hand's breadth."""


@kernel(inline="always")
def _turned(q: NDArray[np.float64], v: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Rotate a vector by a unit quaternion."""
    out[0], out[1], out[2] = rotate_vector((q[0], q[1], q[2], q[3]), (v[0], v[1], v[2]))


@kernel(inline="always")
def _limited(v: NDArray[np.float64], most: float) -> None:
    size = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    if size > most:
        for i in range(3):
            v[i] *= most / size


def _example() -> Iterable[tuple[Any, ...]]:
    turns = np.zeros((1, 4))
    turns[0, 0] = 1.0
    yield (np.zeros((1, WIDTH)), np.zeros((1, 3)), turns, np.zeros(7), np.zeros(6), np.zeros((1, 6)), 0.002)


@kernel(examples=_example, error_model="numpy")
def hold_on(
    holds: NDArray[np.float64], places: NDArray[np.float64], turns: NDArray[np.float64], qpos: NDArray[np.float64],
    qvel: NDArray[np.float64], applied: NDArray[np.float64], dt: float,
) -> None:  # fmt: skip
    """Pull what is held to where it is to be, for one step.

    Args:
        holds: (n, `WIDTH`); `BEFORE` and `FORCE` are written.
        places: (m, 3) of the led parts in the world [m].
        turns: (m, 4) likewise.
        qpos: Positions of the engine.
        qvel: Velocities.
        applied: (bodies, 6) forces and torques on the bodies' centres of mass, in the world; written.
        dt: Step [s].
    """
    vector, arm, turn, spin = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(holds.shape[0]):
        hold = holds[k]
        if hold[STRENGTH] == 0.0:
            continue
        part, body = int(hold[PART]), int(hold[BODY])
        position, velocity = int(hold[POSITION]), int(hold[VELOCITY])
        q = qpos[position + 3 : position + 7]
        _turned(turns[part], hold[POINT : POINT + 3], vector)
        for i in range(3):
            there = places[part, i] + vector[i] + hold[OFFSET + i]
            speed = (there - hold[BEFORE + i]) / dt
            hold[BEFORE + i] = there
            pull = RATE * RATE * (there - qpos[position + i]) + 2.0 * RATE * (speed - qvel[velocity + i])
            hold[FORCE + i] = hold[MASS] * pull
        _limited(hold[FORCE : FORCE + 3], hold[STRENGTH])
        # what is missing of the turn, in the body's frame: twice the imaginary part of conj(q) * wanted
        w, x, y, z = q[0], -q[1], -q[2], -q[3]
        a, b, c, d = hold[TURN], hold[TURN + 1], hold[TURN + 2], hold[TURN + 3]
        sign = 2.0 if w * a - x * b - y * c - z * d >= 0.0 else -2.0
        spin[0] = sign * (w * b + x * a + y * d - z * c)
        spin[1] = sign * (w * c - x * d + y * a + z * b)
        spin[2] = sign * (w * d + x * c - y * b + z * a)
        for i in range(3):
            spin[i] = hold[MOMENTS + i] * (RATE * RATE * spin[i] - 2.0 * RATE * qvel[velocity + 3 + i])
        _limited(spin, LEVER * hold[STRENGTH])
        _turned(q, spin, turn)
        _turned(q, hold[CENTRE : CENTRE + 3], arm)
        for i in range(3):
            applied[body, i] = hold[FORCE + i]
        applied[body, 2] += hold[MASS] * GRAVITY
        fx, fy, fz = hold[FORCE], hold[FORCE + 1], hold[FORCE + 2]
        applied[body, 3] = turn[0] - (arm[1] * fz - arm[2] * fy)
        applied[body, 4] = turn[1] - (arm[2] * fx - arm[0] * fz)
        applied[body, 5] = turn[2] - (arm[0] * fy - arm[1] * fx)


@kernel
def is_held(holds: NDArray[np.float64], part: int, body: int) -> bool:
    """Whether a led part belongs to who holds a body, or is about to: people do not push away what they grip."""
    found = False
    for k in range(holds.shape[0]):
        found = found or (int(holds[k, BODY]) == body and holds[k, FIRST] <= part < holds[k, LAST])
    return found
