"""What light beams do at mirrors and window panes; compiled.

A link whose visuals are all see-through (opacity below 0.6) is glass; a link with a visual of polished metal (PBR
metalness at least 0.9, roughness at most 0.1) is a mirror.  A mirror throws a beam on as a billiard ball: the lidar
reports the whole way, and draws the room again behind it.  Glass is seen only where the beam meets it squarely, and
passes it otherwise (P. Foster et al., "VisAGGE: Visible angle grid for glass environments", ICRA 2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.model import Link
from roboyard.simulation.assembly import Assembled
from roboyard.simulation.naming import COLLISION, SEEN_ONLY
from roboyard.simulation.sensors.base import Host

OPAQUE, GLASS, MIRROR = range(3)
SQUARE = math.cos(math.radians(8.0))
"""Cosine of the largest angle of incidence at which a pane is seen."""
HOPS = 6
"""Mirrors and panes that a beam is followed through."""
_NEAR = 1e-4  # [m]: before and behind a surface
GROUPS = np.array([group in (SEEN_ONLY, COLLISION) for group in range(6)], np.uint8)

_word = types.intp
_ray = types.ExternalFunction(
    "mj_ray", types.float64(_word, _word, _word, _word, _word, types.uint8, types.int32, _word, _word)
)


def optics_of(link: Link) -> int:
    """`OPAQUE`, `GLASS` or `MIRROR`."""
    looks = [visual.material for visual in link.visuals]
    if any(material.mirror for material in looks):
        return MIRROR
    return GLASS if looks and all(material.rgba[3] < 0.6 for material in looks) else OPAQUE


def optics_table(host: Host) -> NDArray[np.int8]:
    """Optics of every geom of the compiled world."""
    kinds: dict[tuple[int, str], int] = {}
    for name in host.models:
        placement = host.placement(name)
        for link in placement.entry.model.links:
            kinds[(placement.index, link.name)] = optics_of(link)
    watch = host.watch
    return np.array([kinds.get(watch.link_of(geom), OPAQUE) for geom in watch.geoms], np.int8)


def scene_optics(assembled: Assembled) -> NDArray[np.int8]:
    """The same of every geom of a compilation with looks."""
    kinds = {
        (placement.index, link.name): optics_of(link)
        for placement in assembled.placements.values()
        for link in placement.entry.model.links
    }
    tables = assembled.geoms
    owners = tables.model.tolist()
    return np.array(
        [kinds.get((owner, link), OPAQUE) for owner, link in zip(owners, tables.links, strict=True)], np.int8
    )


def _example() -> Iterable[tuple[Any, ...]]:
    yield (
        0,
        0,
        np.zeros(3),
        np.zeros((1, 3)),
        np.zeros(1),
        np.zeros(1, np.int64),
        np.zeros(1, np.int8),
        1.0,
        0,
        GROUPS,
    )


@kernel(examples=_example)
def follow(
    model: int,
    data: int,
    origin: NDArray[np.float64],
    world: NDArray[np.float64],
    distance: NDArray[np.float64],
    hit: NDArray[np.int64],
    optics: NDArray[np.int8],
    reach: float,
    body: int,
    groups: NDArray[np.uint8],
) -> None:
    """Send the beams that met a mirror or a pane on.

    Args:
        model: Address of the engine's model.
        data: Address of its data.
        origin: (3,) of all beams, in the world [m].
        world: (n, 3) unit directions in the world.
        distance: (n,) to what they met [m]; replaced by the whole way.
        hit: (n,) number of the shape met, -1 for none.
        optics: Of every shape.
        reach: Longer ways count as nothing [m].
        body: The engine's body that beams do not see.
        groups: (6,) groups of shapes that beams see.
    """
    start, way, normal, geom = np.empty(3), np.empty(3), np.empty(3), np.zeros(1, np.int32)
    for k in range(len(distance)):
        if hit[k] < 0 or optics[hit[k]] == OPAQUE:
            continue
        total = distance[k] - _NEAR
        for i in range(3):
            way[i] = world[k, i]
            start[i] = origin[i] + total * way[i]
        inside = -1  # the pane that the beam is in
        for _ in range(HOPS):
            found = _ray(
                model, data, start.ctypes.data, way.ctypes.data, groups.ctypes.data, 1, body,
                geom.ctypes.data, normal.ctypes.data,
            )  # fmt: skip
            if found < 0.0 or total + found > reach:
                total = np.inf
                break
            total += found
            kind = optics[geom[0]]
            facing = way[0] * normal[0] + way[1] * normal[1] + way[2] * normal[2]
            if kind == OPAQUE or (kind == GLASS and geom[0] != inside and -facing > SQUARE):
                break
            if kind == MIRROR:
                for i in range(3):
                    start[i] += found * way[i]
                    way[i] -= 2.0 * facing * normal[i]
                    start[i] += _NEAR * way[i]
            else:
                inside = -1 if geom[0] == inside else geom[0]
                for i in range(3):
                    start[i] += (found + _NEAR) * way[i]
            total += _NEAR
        distance[k] = total
