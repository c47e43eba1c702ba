"""Ground-truth maps of a world: a floor plan (the world cut at one height) and the voxels that surfaces lie in.

Reports draw the floor plan below a robot's path; metrics compare the maps that robots make with both.
"""

from __future__ import annotations

import math
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.model import World
from roboyard.errors import ConfigError
from roboyard.geometry.arrays import Array
from roboyard.grids.floor_plan import FloorPlan
from roboyard.physics.compiled_world import RAY_VISIBLE_GROUPS, SCOPE_SEPARATOR
from roboyard.rendering.geom_triangles import VISIBLE_GROUPS, geom_colors, geom_triangles, moving_bodies

# An outline on the very border of two cells belongs to the one on the solid's side.
_INWARD_OFFSET = 1e-5
MAX_FLOOR_PLAN_CELLS = 100_000_000


def make_floor_plan(
    source: World | mujoco.MjModel,
    data: mujoco.MjData | None = None,
    *,
    height: float = 0.3,
    resolution: float = 0.05,
    margin: float = 0.5,
    bounds: tuple[float, float, float, float] | None = None,
    include_moving: bool = False,
    excluded_models: tuple[str, ...] = (),
) -> FloorPlan:
    """Cut the geometry of a world at ``height``.

    A cell is occupied if its center lies in a body or an outline crosses it.  Bodies are what lidars measure: collision
    shapes, and visuals of links without collision shapes; infinite planes do not count.

    Args:
        source: A world as described, or a compiled model that ``Simulation`` made of one.
        data: State of the compiled model (after ``mj_forward``); None: its initial state.
        height: Height of the cut above the world's origin [m].
        resolution: Edge length of a cell [m].
        margin: Free space around all bodies [m].
        bounds: Area (x_min, x_max, y_min, y_max) of the plan instead [m].
        include_moving: Also cut bodies that can move.
        excluded_models: Names of models to leave out.

    Raises:
        ConfigError: The resolution is not positive, or the plan would have more than a hundred million cells.
        DescriptionError: The world cannot be built.
    """
    if not resolution > 0.0:
        raise ConfigError(f"a floor plan of resolution {resolution} m", valid="more than 0")
    if isinstance(source, World):
        from roboyard.simulation.simulation import Simulation

        simulation = Simulation(source)
        model, data = simulation.world.model, simulation.world.data
    else:
        model = source
    if data is None:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
    outlines = [
        outline
        for geom in _solid_geoms(model, include_moving, excluded_models)
        if len(outline := _outline_at_height(model, data, geom, height))
    ]
    low, high = _plan_bounds(outlines, margin, bounds)
    shape = tuple(int(n) for n in np.maximum(np.ceil((high - low) / resolution - 1e-9), 1)[::-1])
    if shape[0] * shape[1] > MAX_FLOOR_PLAN_CELLS:
        raise ConfigError(f"a floor plan of {shape[0]} × {shape[1]} cells", valid="a coarser resolution")
    occupied = np.zeros(shape, np.bool_)
    for segments in outlines:
        _mark_outline(occupied, (segments - low) / resolution, resolution)
    return FloorPlan(occupied, (float(low[0]), float(low[1])), resolution, height)


def static_geom_heights(model: mujoco.MjModel) -> Array:
    """Return the minimum and maximum height (n, 2) of each static geom that a floor plan may cut [m]."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    heights = []
    for geom in _solid_geoms(model, False, ()):
        triangles = geom_triangles(model, geom).transformed(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
        z = triangles.corners[:, :, 2]
        heights.append((float(z.min()), float(z.max())))
    return np.array(heights, dtype=np.float64).reshape(-1, 2)


def _solid_geoms(model: mujoco.MjModel, include_moving: bool, excluded_models: tuple[str, ...]) -> list[int]:
    moving_body_of = moving_bodies(model)
    geoms = []
    for geom in range(model.ngeom):
        is_static = moving_body_of[model.geom_bodyid[geom]] == 0
        is_plane = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
        is_visible_to_lidars = int(model.geom_group[geom]) in RAY_VISIBLE_GROUPS
        owner = model.geom(geom).name.split(SCOPE_SEPARATOR)[0]
        if is_visible_to_lidars and not is_plane and (is_static or include_moving) and owner not in excluded_models:
            geoms.append(geom)
    return geoms


def _outline_at_height(model: mujoco.MjModel, data: mujoco.MjData, geom: int, height: float) -> Array:
    """Return the outline (n, 2, 2) of a geom at ``height``: segments with the body on their left."""
    triangles = geom_triangles(model, geom).transformed(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
    corners = triangles.corners
    is_above = corners[:, :, 2] >= height
    corners = corners[is_above.any(1) & ~is_above.all(1)]
    if not len(corners):
        return np.zeros((0, 2, 2))
    # Turn each triangle so that its first corner is alone on its side of the cut.
    is_above = corners[:, :, 2] >= height
    single_corner = np.where(is_above.sum(1) == 1, is_above.argmax(1), (~is_above).argmax(1))
    corners = corners[np.arange(len(corners))[:, None], (single_corner[:, None] + np.arange(3)) % 3]
    start_corner = corners[:, :1]
    fraction = (height - start_corner[..., 2]) / (corners[:, 1:, 2] - start_corner[..., 2])
    points: Array = (start_corner + fraction[..., None] * (corners[:, 1:] - start_corner))[..., :2]
    # Counter-clockwise triangles seen from outside: the solid is on the left where the lone corner is above.
    is_below = ~(corners[:, 0, 2] >= height)
    points[is_below] = points[is_below, ::-1]
    return points


def _plan_bounds(
    outlines: list[Array], margin: float, bounds: tuple[float, float, float, float] | None
) -> tuple[Array, Array]:
    if bounds is not None:
        return np.array([bounds[0], bounds[2]]), np.array([bounds[1], bounds[3]])
    if not outlines:
        return np.array([-margin, -margin]), np.array([margin, margin])
    points = np.concatenate([outline.reshape(-1, 2) for outline in outlines])
    return points.min(0) - margin, points.max(0) + margin


def _mark_outline(occupied: NDArray[np.bool_], segments: Array, resolution: float) -> None:
    """Mark one closed outline, whose unit is a cell; changes ``occupied``."""
    # Only the part of the plan about it is looked at; places keep their numbers, so that none is rounded otherwise.
    size = np.array(occupied.shape[::-1])
    left, bottom = np.clip(np.floor(segments.min((0, 1))).astype(int) - 1, 0, size)
    right, top = np.clip(np.ceil(segments.max((0, 1))).astype(int) + 1, 0, size)
    window = occupied[bottom:top, left:right]
    directions = segments[:, 1] - segments[:, 0]
    length = np.linalg.norm(directions, axis=1)
    inward = (
        np.stack([-directions[:, 1], directions[:, 0]], axis=1)
        / np.maximum(length, 1e-12)[:, None]
        * (_INWARD_OFFSET / resolution)
    )
    steps = np.maximum(2, np.ceil(4 * length).astype(int) + 1)
    segment_indices = np.repeat(np.arange(len(segments)), steps)
    fractions = (np.arange(len(segment_indices)) - np.repeat(np.cumsum(steps) - steps, steps)) / np.repeat(
        steps - 1, steps
    )
    # Ends are drawn in a little: a corner on a border of cells touches them from one side only.
    fractions = 0.5 + (fractions - 0.5) * (1 - 2e-6)
    cells = np.floor(
        segments[segment_indices, 0] + fractions[:, None] * directions[segment_indices] + inward[segment_indices]
    ).astype(int)
    is_inside = ((cells >= [left, bottom]) & (cells < [right, top])).all(1)
    window[cells[is_inside, 1] - bottom, cells[is_inside, 0] - left] = True
    # Even-odd filling: each row of cell middles crosses the outline an even number of times.  Two triangles say where
    # they meet with other last digits; rounded, neither counts a row there that the other counts, or leaves out, too.
    segments = segments.round(9)
    directions = segments[:, 1] - segments[:, 0]
    low, high = segments[..., 1].min(1), segments[..., 1].max(1)
    first, stop = np.ceil(low - 0.5).astype(int), np.ceil(high - 0.5).astype(int)
    first, stop = np.clip(first, bottom, top), np.clip(stop, bottom, top)
    row_counts = np.maximum(stop - first, 0)
    segment_indices = np.repeat(np.arange(len(segments)), row_counts)
    rows = (
        np.repeat(first, row_counts)
        + np.arange(len(segment_indices))
        - np.repeat(np.cumsum(row_counts) - row_counts, row_counts)
    )
    start, direction = segments[segment_indices, 0], directions[segment_indices]
    x = start[:, 0] + (rows + 0.5 - start[:, 1]) / direction[:, 1] * direction[:, 0]
    columns = np.clip(np.ceil(x - 0.5).astype(int), left, right)
    flips = np.zeros((top - bottom, right - left + 1), np.int32)
    np.add.at(flips, (rows - bottom, columns - left), 1)
    parity = np.cumsum(flips, axis=1) % 2
    is_closed_row = parity[:, -1] == 0  # an open mesh would smear over the rest of its row
    window |= (parity[:, :-1] == 1) & is_closed_row[:, None]


MAX_SURFACE_VOXELS: Final = 300_000_000
_MIN_OPAQUE_ALPHA: Final = 0.999
_PLANE_HALF_SIZE: Final = 2000.0


def voxelize_surfaces(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    low: Array,
    shape: tuple[int, int, int],
    resolution: float,
    *,
    tolerance: float,
    excluded_models: tuple[str, ...] = (),
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the voxels of a box that the surfaces of a world touch.

    Surfaces are what cameras see: the opaque visuals, those of the ground included.

    Args:
        model: Compiled model of a `Simulation`.
        data: State of the model (after ``mj_forward``).
        low: (3,) minimum corner of the box in the world [m].
        shape: Number of voxels of the box along x, y, z.
        resolution: Edge length of a voxel [m].
        tolerance: Distance within which a surface touches a voxel, and depth to which it must enter to cross it [m].
        excluded_models: Names of models to leave out.

    Returns:
        (nx, ny, nz) whether a surface touches each voxel, and whether a surface crosses it.

    Raises:
        ConfigError: The resolution or tolerance is invalid, or there are too many voxels.
    """
    if not (math.isfinite(resolution) and resolution > 0.0):
        raise ConfigError(f"voxels of {resolution} m", valid="more than 0")
    if not 0.0 <= tolerance < 0.5 * resolution:
        raise ConfigError(f"a tolerance of {tolerance} m", valid=f"0 to below {0.5 * resolution:g} m, half a voxel")
    if min(shape) < 0 or math.prod(shape) > MAX_SURFACE_VOXELS:
        raise ConfigError(f"{shape[0]} × {shape[1]} × {shape[2]} voxels", valid=f"at most {MAX_SURFACE_VOXELS} in all")
    touched, crossed = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    is_opaque = geom_colors(model)[:, 3] >= _MIN_OPAQUE_ALPHA
    for geom in np.flatnonzero(is_opaque & np.isin(model.geom_group, VISIBLE_GROUPS)).tolist():
        if model.geom(geom).name.split(SCOPE_SEPARATOR)[0] in excluded_models:
            continue
        triangles = geom_triangles(model, geom, infinite_plane_half_size=_PLANE_HALF_SIZE)
        world_triangles = triangles.transformed(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
        corners = (world_triangles.corners - low) / resolution
        mark_triangle_voxels(corners, touched, tolerance / resolution)
        mark_triangle_voxels(corners, crossed, -tolerance / resolution)
    return touched, crossed


@kernel(examples=lambda: [(np.zeros((1, 3, 3)), np.zeros((1, 1, 1), np.bool_), 0.02)])
def mark_triangle_voxels(triangles: Array, voxels: NDArray[np.bool_], margin: float) -> None:
    """Mark the voxels that triangles touch, by separating axes (Akenine-Möller, Fast 3D Triangle-Box Overlap, 2001).

    Args:
        triangles: (n, 3, 3) corners [voxels from the grid's corner].
        voxels: (nx, ny, nz), written.
        margin: Distance by which the voxels are enlarged on each side [voxels]; negative: reduced.
    """
    half = 0.5 + margin
    first_voxel, end_voxel, shape = np.empty(3, np.int64), np.empty(3, np.int64), voxels.shape
    edges, corners = np.empty((3, 3)), np.empty((3, 3))
    for t in range(len(triangles)):
        is_empty = False
        for axis in range(3):
            min_coordinate = min(triangles[t, 0, axis], triangles[t, 1, axis], triangles[t, 2, axis])
            max_coordinate = max(triangles[t, 0, axis], triangles[t, 1, axis], triangles[t, 2, axis])
            first_voxel[axis] = max(0, math.floor(max(min_coordinate, -2.0) - margin))
            end_voxel[axis] = min(shape[axis], math.floor(min(max_coordinate, shape[axis] + 2.0) + margin) + 1)
            is_empty = is_empty or first_voxel[axis] >= end_voxel[axis]
            for corner in range(3):
                edges[corner, axis] = triangles[t, (corner + 1) % 3, axis] - triangles[t, corner, axis]
        if is_empty:
            continue
        normal = np.cross(edges[0], edges[1])
        normal_extent = half * (abs(normal[0]) + abs(normal[1]) + abs(normal[2]))
        for x in range(first_voxel[0], end_voxel[0]):
            for y in range(first_voxel[1], end_voxel[1]):
                for z in range(first_voxel[2], end_voxel[2]):
                    if voxels[x, y, z]:
                        continue
                    for corner in range(3):
                        corners[corner, 0] = triangles[t, corner, 0] - x - 0.5
                        corners[corner, 1] = triangles[t, corner, 1] - y - 0.5
                        corners[corner, 2] = triangles[t, corner, 2] - z - 0.5
                    if (
                        abs(normal[0] * corners[0, 0] + normal[1] * corners[0, 1] + normal[2] * corners[0, 2])
                        > normal_extent
                    ):
                        continue
                    is_separated = False
                    for axis in range(3):
                        is_separated = is_separated or min(corners[0, axis], corners[1, axis], corners[2, axis]) > half
                        is_separated = is_separated or max(corners[0, axis], corners[1, axis], corners[2, axis]) < -half
                    for edge in range(3):
                        for axis in range(3):  # the edge crossed with the axis
                            i, j = (axis + 1) % 3, (axis + 2) % 3
                            a, b = -edges[edge, j], edges[edge, i]
                            p = a * corners[0, i] + b * corners[0, j]
                            q = a * corners[1, i] + b * corners[1, j]
                            r = a * corners[2, i] + b * corners[2, j]
                            radius = half * (abs(a) + abs(b))
                            is_separated = is_separated or min(p, q, r) > radius or max(p, q, r) < -radius
                    if not is_separated:
                        voxels[x, y, z] = True
