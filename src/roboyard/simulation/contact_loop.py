"""The contact watch's part of a physics step, compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.native import (
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    DISTANCE,
    EFC_FORCES,
    FRAME,
    GEOM1,
    GEOM2,
    NCON,
    POSITION,
    ROW,
    float64s,
    int32,
    int64,
)

# Columns of the episode table.
START, END, ROBOT, OTHER, OWN_GEOM, OTHER_GEOM = range(6)
# Columns of the table of pairs of shapes: the two, and the last step in which they touched.
OWN, AGAINST, LAST = range(3)
_PROBES = 16


def _example_contacts() -> Iterable[tuple[Any, ...]]:
    mask = np.zeros(1, bool)
    yield (0, np.zeros(1, np.int64), mask, mask, True)


@kernel(examples=_example_contacts)
def contacts_with(
    data: int, layout: NDArray[np.int64], geoms: NDArray[np.bool_], ground: NDArray[np.bool_], with_ground: bool
) -> NDArray[np.int64]:
    """Numbers of the contacts with force in which one of ``geoms`` takes part.

    Args:
        data: Address of the engine's data.
        layout: The offsets of `Layout`.
        geoms: Mask over all geoms.
        ground: Whether each geom is ground.
        with_ground: Also contacts with the ground.
    """
    contacts = int64(data + layout[CONTACTS])
    found = np.empty(int32(data + layout[NCON]), np.int64)
    count = 0
    for k in range(len(found)):
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = int32(contact + layout[GEOM1]), int32(contact + layout[GEOM2])
        if first < 0 or second < 0 or int32(contact + layout[ROW]) < 0 or not (geoms[first] or geoms[second]):
            continue
        if with_ground or not (ground[first] or ground[second]):
            found[count] = k
            count += 1
    return found[:count]


def _example_touches() -> Iterable[tuple[Any, ...]]:
    mask = np.zeros(1, bool)
    yield (0, np.zeros(1, np.int64), np.zeros(1, np.int64), mask, np.zeros(3), np.eye(3))


@kernel(examples=_example_touches)
def touches_at(
    data: int,
    layout: NDArray[np.int64],
    numbers: NDArray[np.int64],
    geoms: NDArray[np.bool_],
    origin: NDArray[np.float64],
    axes: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What some contacts are like, seen from a frame; one between two of ``geoms`` counts twice, once from either side.

    Args:
        data: Address of the engine's data, forces evaluated.
        layout: The offsets of `Layout`.
        numbers: (n,) of the contacts, from `contacts_with`.
        geoms: Mask over all geoms.
        origin: (3,) of the frame in the world [m].
        axes: (3, 3) of the frame in the world, as columns.

    Returns:
        (k, 2) the own geom and the other one; (k, 10) position [m], normal towards the own geom, depth [m], force on it
        [N].
    """
    contacts, forces = int64(data + layout[CONTACTS]), int64(data + layout[EFC_FORCES])
    pairs, values, count = np.empty((2 * len(numbers), 2), np.int64), np.empty((2 * len(numbers), 10)), 0
    for k in numbers:
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = int32(contact + layout[GEOM1]), int32(contact + layout[GEOM2])
        place = float64s(contact + layout[POSITION], 3)
        frame = float64s(contact + layout[FRAME], 9)  # its x axis points from the first geom to the second
        inside = float64s(forces + 8 * int32(contact + layout[ROW]), 3)
        lines = min(int32(contact + layout[DIM]), 3)
        for swapped in range(2):
            own, other = (first, second) if swapped else (second, first)
            sign = -1.0 if swapped else 1.0
            if not geoms[own]:
                continue
            pairs[count, 0], pairs[count, 1] = own, other
            values[count] = 0.0
            values[count, 6] = max(-float64s(contact + layout[DISTANCE], 1)[0], 0.0)
            for i in range(3):
                for j in range(3):
                    values[count, i] += (place[j] - origin[j]) * axes[j, i]
                    values[count, 3 + i] += sign * frame[j] * axes[j, i]
                    for line in range(lines):
                        values[count, 7 + i] += sign * frame[3 * line + j] * inside[line] * axes[j, i]
            count += 1
    return pairs[:count], values[:count]


@kernel
def note_pair(pairs: NDArray[np.int64], own: int, against: int, step: int) -> None:
    """Note that two shapes touch in this step.

    A pair has its row where its numbers say, or within a few rows behind; where these are all taken it gets that of the
    pair among them that touched longest ago.

    Args:
        pairs: (rows, 3) of pairs, rows a power of two.
        own: Geom.
        against: Geom.
        step: Number of this step.
    """
    last = pairs.shape[0] - 1
    place = (own * 40503 + against * 2654435761) & last
    oldest = place
    for k in range(_PROBES):
        row = (place + k) & last
        if pairs[row, OWN] == own and pairs[row, AGAINST] == against:
            pairs[row, LAST] = step
            return
        if pairs[row, LAST] < pairs[oldest, LAST]:
            oldest = row
    pairs[oldest, OWN] = own
    pairs[oldest, AGAINST] = against
    pairs[oldest, LAST] = step


@kernel
def watch_contacts(
    data: int,
    layout: NDArray[np.int64],
    owner: NDArray[np.int32],
    ground: NDArray[np.bool_],
    aloft: NDArray[np.bool_],
    robots: NDArray[np.int32],
    latest: NDArray[np.int64],
    episodes: NDArray[np.int64],
    pairs: NDArray[np.int64],
    count: int,
    step: int,
    gap: int,
) -> int:
    """Note the contacts of this step in the episode table, and which shapes touch.

    Args:
        data: Address of the engine's data.
        layout: The offsets of `Layout`.
        owner: (geoms,) model of each geom, -1 none.
        ground: (geoms,) whether it is ground.
        aloft: (geoms,) whether it is not meant to touch that.
        robots: (models,) row of the model in ``latest``, -1: not watched.
        latest: (watched, models) row of the pair's newest episode, -1 none.
        episodes: (room, 6) table.
        pairs: See `note_pair`.
        count: Rows in use.
        step: Number of this step.
        gap: A pair apart for more steps than this begins a new episode.

    Returns:
        Rows in use afterwards.
    """
    contacts = int64(data + layout[CONTACTS])
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = int32(contact + layout[GEOM1]), int32(contact + layout[GEOM2])
        if first < 0 or second < 0 or int32(contact + layout[ROW]) < 0:
            continue  # not between geoms, or without force
        if owner[first] == owner[second]:
            continue
        if (ground[first] and not aloft[second]) or (ground[second] and not aloft[first]):
            continue
        for swapped in range(2):
            own, other = (second, first) if swapped else (first, second)
            if owner[own] < 0 or owner[other] < 0:
                continue
            row = robots[owner[own]]
            if row < 0:
                continue
            note_pair(pairs, own, other, step)
            last = latest[row, owner[other]]
            if last >= 0 and step - episodes[last, END] <= gap:
                episodes[last, END] = step
            elif count < episodes.shape[0]:
                episodes[count, START] = step
                episodes[count, END] = step
                episodes[count, ROBOT] = owner[own]
                episodes[count, OTHER] = owner[other]
                episodes[count, OWN_GEOM] = own
                episodes[count, OTHER_GEOM] = other
                latest[row, owner[other]] = count
                count += 1
    return count
