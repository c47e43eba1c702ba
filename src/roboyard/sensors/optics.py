"""Reflection and transmission of beams at mirrors and window panes; compiled.

A link whose visuals are all transparent (opacity below 0.6) is glass; a link with a visual of polished metal (PBR
metalness at least 0.9, roughness at most 0.1) is a mirror. A mirror reflects a beam: the lidar reports the whole
path length, so the reflected room appears behind the mirror. Glass returns a beam only near normal incidence, and
transmits it otherwise (P. Foster et al., "VisAGGE: Visible angle grid for glass environments", ICRA 2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.model import Link
from roboyard.physics.compiled_world import RAY_VISIBLE_GROUPS, CompiledWorld
from roboyard.sensors.ray_casting import BeamHits

OPAQUE, GLASS, MIRROR = range(3)
GLASS_RETURN_COSINE = math.cos(math.radians(8.0))
"""Cosine of the largest angle of incidence at which a pane returns a beam."""
MAX_REFLECTIONS = 6
"""Largest number of mirrors and panes on the path of a beam."""
_SURFACE_OFFSET = 1e-4  # a beam continues this far before or behind a surface [m]
OPTICAL_GEOM_GROUPS = np.array([group in RAY_VISIBLE_GROUPS for group in range(6)], np.uint8)

_word = types.intp
_mj_ray = types.ExternalFunction(
    "mj_ray", types.float64(_word, _word, _word, _word, _word, types.uint8, types.int32, _word, _word)
)


def classify_optics(link: Link) -> int:
    """Return `OPAQUE`, `GLASS` or `MIRROR` for a link, by the materials of its visuals."""
    materials = [visual.material for visual in link.visuals]
    if any(material.mirror for material in materials):
        return MIRROR
    return GLASS if materials and all(material.rgba[3] < 0.6 for material in materials) else OPAQUE


def make_optics_table(compiled: CompiledWorld) -> NDArray[np.int8]:
    """Return the optics (geoms,) of a compiled world."""
    optics_of_link = {
        (placement.index, link.name): classify_optics(link)
        for placement in compiled.addresses.values()
        for link in placement.entry.model.links
    }
    tables = compiled.geoms
    owners = tables.model_index.tolist()
    return np.array(
        [optics_of_link.get((owner, link), OPAQUE) for owner, link in zip(owners, tables.link_names, strict=True)],
        np.int8,
    )


class OpticalSurfaces(NamedTuple):
    """How beams see the shapes of a world.

    Attributes:
        kinds: (geoms,) `OPAQUE`, `GLASS` or `MIRROR`.
        groups: (6,) which geom groups beams see.
        ignored_body: MuJoCo's body that beams do not see, -1 for none.
    """

    kinds: NDArray[np.int8]
    groups: NDArray[np.uint8]
    ignored_body: int


def _example_trace_reflections() -> Iterable[tuple[Any, ...]]:
    hits = BeamHits(np.zeros(1), np.zeros(1, np.int64))
    yield 0, 0, np.zeros(3), np.zeros((1, 3)), hits, OpticalSurfaces(np.zeros(1, np.int8), OPTICAL_GEOM_GROUPS, 0), 1.0


@kernel(examples=_example_trace_reflections)
def trace_reflections(
    model: int,
    data: int,
    origin: NDArray[np.float64],
    directions: NDArray[np.float64],
    hits: BeamHits,
    surfaces: OpticalSurfaces,
    max_range: float,
) -> None:
    """Continue the beams that hit a mirror or a pane.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data.
        origin: (3,) of all beams, in the world [m].
        directions: (n, 3) unit directions in the world.
        hits: First surface of each beam; `trace_reflections` replaces the distances by those of the whole paths.
        surfaces: Optics of the shapes.
        max_range: A longer path returns nothing [m].
    """
    optics, groups, body = surfaces
    distance, hit_geoms = hits
    start, direction, normal, geom = np.empty(3), np.empty(3), np.empty(3), np.zeros(1, np.int32)
    for k in range(len(distance)):
        if hit_geoms[k] < 0 or optics[hit_geoms[k]] == OPAQUE:
            continue
        path_length = distance[k] - _SURFACE_OFFSET
        for i in range(3):
            direction[i] = directions[k, i]
            start[i] = origin[i] + path_length * direction[i]
        current_pane = -1  # the pane that the beam is inside of
        for _ in range(MAX_REFLECTIONS):
            leg_length = _mj_ray(
                model, data, start.ctypes.data, direction.ctypes.data, groups.ctypes.data, 1, body,
                geom.ctypes.data, normal.ctypes.data,
            )  # fmt: skip
            if leg_length < 0.0 or path_length + leg_length > max_range:
                path_length = np.inf
                break
            path_length += leg_length
            optic = optics[geom[0]]
            cosine = direction[0] * normal[0] + direction[1] * normal[1] + direction[2] * normal[2]
            if optic == OPAQUE or (optic == GLASS and geom[0] != current_pane and -cosine > GLASS_RETURN_COSINE):
                break
            if optic == MIRROR:
                for i in range(3):
                    start[i] += leg_length * direction[i]
                    direction[i] -= 2.0 * cosine * normal[i]
                    start[i] += _SURFACE_OFFSET * direction[i]
            else:
                current_pane = -1 if geom[0] == current_pane else geom[0]
                for i in range(3):
                    start[i] += (leg_length + _SURFACE_OFFSET) * direction[i]
            path_length += _SURFACE_OFFSET
        distance[k] = path_length
