"""Bodies that are led and yield, as people's: what presses on them, and how far they give way; compiled.

Such a body has no degrees of freedom in the engine: it is where it was led to, plus how far it has given way, and that
is a mass on a spring of its own, moved by the contact forces of each step.  So people cost the solver nothing, and a
robot beside them is solved exactly as one alone.

A contact with one is the spring of ISO/TS 15066's model of impacts, ``f = k d``, whatever presses: the engine's own
contacts are springs per unit of the other body's mass.  Its row becomes that of a nearly massless plate::

    f = D (a_ref - J a)    with    D = `PLATE`,   a_ref = k d / D

so that ``f = k d`` but for the plate's own inertia.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.simulation.holds_loop import is_held
from roboyard.simulation.native import (
    AREF,
    CONTACT_SIZE,
    CONTACTS,
    DISTANCE,
    EFC_FORCES,
    FRAME,
    GEOM1,
    GEOM2,
    NCON,
    ROW,
    SOFTNESS,
    STIFFNESS,
    float64s,
    int32,
    int64,
)

PLATE = 1e-3
"""Mass that a contact with a yielding body adds to what presses [kg]."""
GIVE = 0.10
"""As far a body gives way softly [m]; beyond it hangs on its neighbours."""
FIRM = 30.0
"""Natural frequency of the spring that then acts [rad/s]."""

# Columns of the table of parts, one row for each yielding body: where it is led from and to, and how far it has come,
# how far a step brings it; its shift and the shift's velocity; mass [kg], stiffness [N/m] towards its front and
# elsewhere, natural frequency of its hold [rad/s]; the force on it in the last step, and the largest since somebody
# asked for it [N].
FROM, TO, FROM_TURN, TO_TURN, SHARE, RATE = 0, 3, 6, 10, 14, 15
SHIFT, DRIFT, MASS, FRONT, BEHIND, HOLD, FORCE, PEAK = 16, 19, 22, 23, 24, 25, 26, 29
WIDTH = 32


@kernel(inline="always")
def _part(contact: int, layout: NDArray[np.int64], part_of: NDArray[np.int32]) -> tuple[int, int, float]:
    """The part that takes part in a contact (-1: none), the geom that it meets, and the sign of the contact's normal
    that leads out of the part."""
    first, second = int32(contact + layout[GEOM1]), int32(contact + layout[GEOM2])
    if first < 0 or second < 0 or int32(contact + layout[ROW]) < 0:
        return -1, -1, 0.0
    if part_of[first] >= 0:
        return part_of[first], second, 1.0
    return part_of[second], first, -1.0


@kernel
def press(
    data: int, layout: NDArray[np.int64], part_of: NDArray[np.int32], parts: NDArray[np.float64],
    turns: NDArray[np.float64], body_of: NDArray[np.int32], holds: NDArray[np.float64],
) -> None:  # fmt: skip
    """Give contacts with yielding bodies their stiffness; contacts of one body with a part share it.

    Args:
        data: Address of the engine's data, constraints made.
        layout: The offsets of `Layout`.
        part_of: (geoms,) row of the part that each geom belongs to, -1 for none.
        parts: (n, `WIDTH`).
        turns: (n, 4) orientations of the parts in the world.
        body_of: (geoms,) the engine's body of each geom.
        holds: See `hold_on`.
    """
    contacts, references = int64(data + layout[CONTACTS]), int64(data + layout[AREF])
    stiffness, softness = int64(data + layout[STIFFNESS]), int64(data + layout[SOFTNESS])
    count = int32(data + layout[NCON])
    for k in range(count):
        contact = contacts + k * layout[CONTACT_SIZE]
        part, other, sign = _part(contact, layout, part_of)
        if part < 0:
            continue
        sharing = 0
        for j in range(count):
            same, against, _ = _part(contacts + j * layout[CONTACT_SIZE], layout, part_of)
            if same == part and body_of[against] == body_of[other]:
                sharing += 1
        normal, turn = float64s(contact + layout[FRAME], 3), turns[part]
        w, x, y, z = turn[0], turn[1], turn[2], turn[3]
        ahead = sign * (
            normal[0] * (1.0 - 2.0 * (y * y + z * z))
            + normal[1] * 2.0 * (x * y + w * z)
            + normal[2] * 2.0 * (x * z - w * y)
        )
        spring = parts[part, FRONT if ahead > 0.0 else BEHIND] / sharing
        if is_held(holds, part, body_of[other]):
            spring = 0.0
        row = 8 * int32(contact + layout[ROW])
        float64s(stiffness + row, 1)[0] = PLATE
        float64s(softness + row, 1)[0] = 1.0 / PLATE
        float64s(references + row, 1)[0] = -spring / PLATE * float64s(contact + layout[DISTANCE], 1)[0]


def _example() -> Iterable[tuple[Any, ...]]:
    table, turns = np.zeros((1, WIDTH)), np.zeros((1, 4))
    yield (0, np.zeros(1, np.int64), np.zeros(1, np.int32), table, np.zeros((1, 3)), turns, 0.002)


@kernel(examples=_example, error_model="numpy")
def give_way(
    data: int, layout: NDArray[np.int64], part_of: NDArray[np.int32], parts: NDArray[np.float64],
    places: NDArray[np.float64], turns: NDArray[np.float64], dt: float,
) -> None:  # fmt: skip
    """Move the parts by one step: on towards where they are led, and away from what presses.

    Args:
        data: Address of the engine's data, forces of the step just solved.
        layout: The offsets of `Layout`.
        part_of: See `press`; so is the next.
        parts: …
        places: (n, 3) where the engine has the parts; written.
        turns: (n, 4) likewise.
        dt: Step [s].
    """
    parts[:, FORCE : FORCE + 3] = 0.0
    contacts, forces = int64(data + layout[CONTACTS]), int64(data + layout[EFC_FORCES])
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        part, _, sign = _part(contact, layout, part_of)
        if part >= 0:
            force = float64s(forces + 8 * int32(contact + layout[ROW]), 1)[0]
            normal = float64s(contact + layout[FRAME], 3)
            for i in range(3):
                parts[part, FORCE + i] -= sign * force * normal[i]
    for p in range(parts.shape[0]):
        part = parts[p]
        far = math.sqrt(part[SHIFT] ** 2 + part[SHIFT + 1] ** 2 + part[SHIFT + 2] ** 2)
        size = part[FORCE] ** 2 + part[FORCE + 1] ** 2 + part[FORCE + 2] ** 2
        if size > part[PEAK] ** 2 + part[PEAK + 1] ** 2 + part[PEAK + 2] ** 2:
            assign(part[PEAK : PEAK + 3], part[FORCE : FORCE + 3])
        hold = part[HOLD]
        spring = hold * hold
        if far > GIVE:
            spring += FIRM * FIRM * (1.0 - GIVE / far)
        share = part[SHARE] = min(part[SHARE] + part[RATE] * dt, 1.0)
        for i in range(3):
            push = part[FORCE + i] / part[MASS] - spring * part[SHIFT + i]
            part[DRIFT + i] = (part[DRIFT + i] + dt * push) / (1.0 + 2.0 * hold * dt)
            part[SHIFT + i] += dt * part[DRIFT + i]
            places[p, i] = part[FROM + i] + share * (part[TO + i] - part[FROM + i]) + part[SHIFT + i]
        length = 0.0
        for i in range(4):
            turns[p, i] = part[FROM_TURN + i] + share * (part[TO_TURN + i] - part[FROM_TURN + i])
            length += turns[p, i] * turns[p, i]
        length = math.sqrt(length)
        for i in range(4):
            turns[p, i] /= length


def _example_lead() -> Iterable[tuple[Any, ...]]:
    table, turns = np.zeros((1, WIDTH)), np.zeros((1, 4))
    turns[0, 0] = 1.0
    yield (table, turns, np.zeros(1, np.int64), np.zeros((1, 3)), turns, 0.02)


@kernel(examples=_example_lead)
def lead_on(
    parts: NDArray[np.float64], now: NDArray[np.float64], rows: NDArray[np.int64], places: NDArray[np.float64],
    turns: NDArray[np.float64], seconds: float,
) -> None:  # fmt: skip
    """Have parts begin a new way from where they are.

    Args:
        parts: (n, `WIDTH`).
        now: (n, 4) how they are turned.
        rows: (k,) which of them.
        places: (k, 3) where they are to be [m].
        turns: (k, 4) how they are to be turned.
        seconds: When [s].
    """
    for k in range(len(rows)):
        part, turn = parts[rows[k]], now[rows[k]]
        share, sign = part[SHARE], 0.0
        for i in range(3):
            part[FROM + i] += share * (part[TO + i] - part[FROM + i])
            part[TO + i] = places[k, i]
        for i in range(4):
            sign += turn[i] * turns[k, i]
        for i in range(4):
            part[FROM_TURN + i] = turn[i]
            part[TO_TURN + i] = turns[k, i] if sign >= 0.0 else -turns[k, i]
        part[SHARE], part[RATE] = 0.0, 1.0 / seconds
