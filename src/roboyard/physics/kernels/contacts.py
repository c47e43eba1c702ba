"""Kernels for contact points of a state and for contact episodes over steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.physics.mujoco_memory import (
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    DISTANCE,
    EFC_FORCES,
    FIRST_ROW,
    FRAME,
    GEOM1,
    GEOM2,
    NCON,
    POSITION,
    EngineAddresses,
    read_int32,
    read_int64,
    view_float64,
)

# Columns of the episode table.
START, END, MODEL, OTHER_MODEL, GEOM, OTHER_GEOM = range(6)
# Columns of the table of pairs of geoms: the two, and the last step in which they touched.
PAIR_GEOM, PAIR_OTHER_GEOM, PAIR_LAST_STEP = range(3)
_MAX_PROBES = 16


class ContactTables(NamedTuple):
    """What the contact episodes of a world are recorded with.

    Attributes:
        geom_models: (geoms,) model of each geom, -1 for none.
        ground: (geoms,) whether a geom is ground.
        off_ground: (geoms,) whether a geom must not touch the ground.
        monitored_rows: (models,) row of each model in ``latest``, -1 for models whose contacts are not recorded.
        latest: (monitored, models) row of the pair's newest episode, -1 for none.
        episodes: (room, 6) episodes; the number of rows in use is kept outside.
        pairs: (rows, 3) geoms that touched lately, see `record_pair`.
        max_gap: A pair that was apart for more steps than this begins a new episode.
    """

    geom_models: NDArray[np.int32]
    ground: NDArray[np.bool_]
    off_ground: NDArray[np.bool_]
    monitored_rows: NDArray[np.int32]
    latest: NDArray[np.int64]
    episodes: NDArray[np.int64]
    pairs: NDArray[np.int64]
    max_gap: int


def _example_contacts() -> Iterable[tuple[Any, ...]]:
    mask = np.zeros(1, bool)
    yield (0, np.zeros(1, np.int64), mask, mask, True)


@kernel(examples=_example_contacts)
def find_geom_contacts(
    data: int, layout: NDArray[np.int64], geoms: NDArray[np.bool_], ground: NDArray[np.bool_], with_ground: bool
) -> NDArray[np.int64]:
    """Find the numbers of the contacts with force in which one of ``geoms`` takes part.

    Args:
        data: Address of MuJoCo's data.
        layout: The offsets of `MujocoLayout`.
        geoms: Mask over all geoms.
        ground: Whether each geom is ground.
        with_ground: Whether contacts with the ground are found, too.
    """
    contacts = read_int64(data + layout[CONTACTS])
    found = np.empty(read_int32(data + layout[NCON]), np.int64)
    count = 0
    for k in range(len(found)):
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = read_int32(contact + layout[GEOM1]), read_int32(contact + layout[GEOM2])
        if (
            first < 0
            or second < 0
            or read_int32(contact + layout[FIRST_ROW]) < 0
            or not (geoms[first] or geoms[second])
        ):
            continue
        if with_ground or not (ground[first] or ground[second]):
            found[count] = k
            count += 1
    return found[:count]


def _example_contact_points() -> Iterable[tuple[Any, ...]]:
    mask = np.zeros(1, bool)
    yield (0, np.zeros(1, np.int64), np.zeros(1, np.int64), mask, np.zeros(3), np.eye(3))


@kernel(examples=_example_contact_points)
def contact_points_in_frame(
    data: int,
    layout: NDArray[np.int64],
    contact_ids: NDArray[np.int64],
    geoms: NDArray[np.bool_],
    origin: NDArray[np.float64],
    axes: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Express contacts in a frame; a contact between two of ``geoms`` counts twice, once from either side.

    Args:
        data: Address of MuJoCo's data, forces evaluated.
        layout: The offsets of `MujocoLayout`.
        contact_ids: (n,) of the contacts, from `find_geom_contacts`.
        geoms: Mask over all geoms.
        origin: (3,) of the frame in the world [m].
        axes: (3, 3) of the frame in the world, as columns.

    Returns:
        (k, 2) the own geom and the other one; (k, 10) position [m], normal towards the own geom, depth [m], force on it
        [N].
    """
    contacts, forces = read_int64(data + layout[CONTACTS]), read_int64(data + layout[EFC_FORCES])
    pairs, values, count = np.empty((2 * len(contact_ids), 2), np.int64), np.empty((2 * len(contact_ids), 10)), 0
    for k in contact_ids:
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = read_int32(contact + layout[GEOM1]), read_int32(contact + layout[GEOM2])
        contact_position = view_float64(contact + layout[POSITION], 3)
        frame = view_float64(contact + layout[FRAME], 9)  # its x axis points from the first geom to the second
        contact_force = view_float64(forces + 8 * read_int32(contact + layout[FIRST_ROW]), 3)
        n_force_rows = min(read_int32(contact + layout[DIM]), 3)
        for swapped in range(2):
            geom, other_geom = (first, second) if swapped else (second, first)
            sign = -1.0 if swapped else 1.0
            if not geoms[geom]:
                continue
            pairs[count, 0], pairs[count, 1] = geom, other_geom
            values[count] = 0.0
            values[count, 6] = max(-view_float64(contact + layout[DISTANCE], 1)[0], 0.0)
            for i in range(3):
                for j in range(3):
                    values[count, i] += (contact_position[j] - origin[j]) * axes[j, i]
                    values[count, 3 + i] += sign * frame[j] * axes[j, i]
                    for force_row in range(n_force_rows):
                        values[count, 7 + i] += sign * frame[3 * force_row + j] * contact_force[force_row] * axes[j, i]
            count += 1
    return pairs[:count], values[:count]


@kernel
def record_pair(pairs: NDArray[np.int64], geom: int, other_geom: int, step: int) -> None:
    """Record that two geoms touch in this step.

    The table is a hash table with linear probing over a few rows; where all of them are taken, the pair replaces the
    one that touched longest ago.

    Args:
        pairs: (rows, 3) of pairs, rows a power of two.
        geom: Geom.
        other_geom: Geom.
        step: Number of this step.
    """
    mask = pairs.shape[0] - 1
    slot = (geom * 40503 + other_geom * 2654435761) & mask
    oldest = slot
    for k in range(_MAX_PROBES):
        row = (slot + k) & mask
        if pairs[row, PAIR_GEOM] == geom and pairs[row, PAIR_OTHER_GEOM] == other_geom:
            pairs[row, PAIR_LAST_STEP] = step
            return
        if pairs[row, PAIR_LAST_STEP] < pairs[oldest, PAIR_LAST_STEP]:
            oldest = row
    pairs[oldest, PAIR_GEOM] = geom
    pairs[oldest, PAIR_OTHER_GEOM] = other_geom
    pairs[oldest, PAIR_LAST_STEP] = step


@kernel(no_refcount=False)
def update_contact_episodes(engine: EngineAddresses, tables: ContactTables, episode_count: int, step: int) -> int:
    """Record the contacts of this step as episodes, and which geoms touch.

    Args:
        engine: Addresses of the model and its data.
        tables: ``latest``, ``episodes`` and ``pairs`` are written.
        episode_count: Number of rows of ``episodes`` in use.
        step: Number of this step.

    Returns:
        Number of rows in use afterwards.
    """
    data, layout = engine.data, engine.layout
    geom_models, ground, off_ground = tables.geom_models, tables.ground, tables.off_ground
    latest, episodes = tables.latest, tables.episodes
    contacts = read_int64(data + layout[CONTACTS])
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = read_int32(contact + layout[GEOM1]), read_int32(contact + layout[GEOM2])
        if first < 0 or second < 0 or read_int32(contact + layout[FIRST_ROW]) < 0:
            continue  # not between geoms, or without force
        if geom_models[first] == geom_models[second]:
            continue
        if (ground[first] and not off_ground[second]) or (ground[second] and not off_ground[first]):
            continue
        for swapped in range(2):
            geom, other_geom = (second, first) if swapped else (first, second)
            if geom_models[geom] < 0 or geom_models[other_geom] < 0:
                continue
            row = tables.monitored_rows[geom_models[geom]]
            if row < 0:
                continue
            record_pair(tables.pairs, geom, other_geom, step)
            latest_episode = latest[row, geom_models[other_geom]]
            if latest_episode >= 0 and step - episodes[latest_episode, END] <= tables.max_gap:
                episodes[latest_episode, END] = step
            elif episode_count < episodes.shape[0]:
                episodes[episode_count, START] = step
                episodes[episode_count, END] = step
                episodes[episode_count, MODEL] = geom_models[geom]
                episodes[episode_count, OTHER_MODEL] = geom_models[other_geom]
                episodes[episode_count, GEOM] = geom
                episodes[episode_count, OTHER_GEOM] = other_geom
                latest[row, geom_models[other_geom]] = episode_count
                episode_count += 1
    return episode_count
