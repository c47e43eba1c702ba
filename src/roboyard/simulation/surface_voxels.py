"""The true surfaces of a world as voxels: what maps of space that robots make are judged against."""

from __future__ import annotations

import math
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import ConfigError
from roboyard.geometry.arrays import Array
from roboyard.simulation.naming import SEPARATOR
from roboyard.simulation.render.bodies import geom_colours
from roboyard.simulation.render.ray_scene import SHOWN_GROUPS
from roboyard.simulation.render.triangles import geom_triangles

MOST_VOXELS: Final = 300_000_000
_OPAQUE: Final = 0.999
_ENDLESS: Final = 2000.0


def surface_voxels(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    low: Array,
    shape: tuple[int, int, int],
    resolution: float,
    *,
    tolerance: float,
    without: tuple[str, ...] = (),
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Voxels of a box that surfaces are in: exact geometry, no sensor involved.

    What counts is what cameras see: the opaque visuals, the ground included.

    Args:
        model: Compiled model of a `Simulation`.
        data: Its state (after ``mj_forward``).
        low: (3,) lowest corner of the box in the world [m].
        shape: Voxels of the box along x, y, z.
        resolution: Edge of a voxel [m].
        tolerance: So far from a voxel a surface touches it, and so deep it must go in to cross it [m].
        without: Models to leave out, by name.

    Returns:
        (nx, ny, nz) which voxels a surface touches, and which it crosses.

    Raises:
        ConfigError: a resolution or tolerance that is none, or too many voxels.
    """
    if not (math.isfinite(resolution) and resolution > 0.0):
        raise ConfigError(f"voxels of {resolution} m", valid="more than 0")
    if not 0.0 <= tolerance < 0.5 * resolution:
        raise ConfigError(f"a tolerance of {tolerance} m", valid=f"0 to below {0.5 * resolution:g} m, half a voxel")
    if min(shape) < 0 or math.prod(shape) > MOST_VOXELS:
        raise ConfigError(f"{shape[0]} × {shape[1]} × {shape[2]} voxels", valid=f"at most {MOST_VOXELS} in all")
    touched, crossed = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    opaque = geom_colours(model)[:, 3] >= _OPAQUE
    for geom in np.flatnonzero(opaque & np.isin(model.geom_group, SHOWN_GROUPS)).tolist():
        if model.geom(geom).name.split(SEPARATOR)[0] in without:
            continue
        triangles = geom_triangles(model, geom, plane_reach=_ENDLESS)
        placed = triangles.placed(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
        corners = (placed.corners - low) / resolution
        voxelise(corners, touched, tolerance / resolution)
        voxelise(corners, crossed, -tolerance / resolution)
    return touched, crossed


@kernel(examples=lambda: [(np.zeros((1, 3, 3)), np.zeros((1, 1, 1), np.bool_), 0.02)])
def voxelise(triangles: Array, voxels: NDArray[np.bool_], margin: float) -> None:
    """Mark the voxels that triangles reach, by separating axes (Akenine-Möller, Fast 3D Triangle-Box Overlap, 2001).

    Args:
        triangles: (n, 3, 3) corners [voxels from the grid's corner].
        voxels: (nx, ny, nz), written.
        margin: By how much the voxels are larger on each side than they are; negative: smaller.
    """
    half = 0.5 + margin
    first, last, shape = np.empty(3, np.int64), np.empty(3, np.int64), voxels.shape
    edges, v = np.empty((3, 3)), np.empty((3, 3))
    for t in range(len(triangles)):
        empty = False
        for axis in range(3):
            least = min(triangles[t, 0, axis], triangles[t, 1, axis], triangles[t, 2, axis])
            most = max(triangles[t, 0, axis], triangles[t, 1, axis], triangles[t, 2, axis])
            first[axis] = max(0, math.floor(max(least, -2.0) - margin))
            last[axis] = min(shape[axis], math.floor(min(most, shape[axis] + 2.0) + margin) + 1)
            empty = empty or first[axis] >= last[axis]
            for corner in range(3):
                edges[corner, axis] = triangles[t, (corner + 1) % 3, axis] - triangles[t, corner, axis]
        if empty:
            continue
        normal = np.cross(edges[0], edges[1])
        reach = half * (abs(normal[0]) + abs(normal[1]) + abs(normal[2]))
        for x in range(first[0], last[0]):
            for y in range(first[1], last[1]):
                for z in range(first[2], last[2]):
                    if voxels[x, y, z]:
                        continue
                    for corner in range(3):
                        v[corner, 0] = triangles[t, corner, 0] - x - 0.5
                        v[corner, 1] = triangles[t, corner, 1] - y - 0.5
                        v[corner, 2] = triangles[t, corner, 2] - z - 0.5
                    if abs(normal[0] * v[0, 0] + normal[1] * v[0, 1] + normal[2] * v[0, 2]) > reach:
                        continue
                    apart = False
                    for axis in range(3):
                        apart = apart or min(v[0, axis], v[1, axis], v[2, axis]) > half
                        apart = apart or max(v[0, axis], v[1, axis], v[2, axis]) < -half
                    for edge in range(3):
                        for axis in range(3):  # the edge crossed with the axis
                            i, j = (axis + 1) % 3, (axis + 2) % 3
                            a, b = -edges[edge, j], edges[edge, i]
                            p = a * v[0, i] + b * v[0, j]
                            q = a * v[1, i] + b * v[1, j]
                            r = a * v[2, i] + b * v[2, j]
                            radius = half * (abs(a) + abs(b))
                            apart = apart or min(p, q, r) > radius or max(p, q, r) < -radius
                    if not apart:
                        voxels[x, y, z] = True
