"""The true floor plan: a world cut at one height, as a grid of occupied cells.

Reports draw it below a robot's track; maps that a robot makes are judged against it.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import World
from roboyard.errors import ConfigError
from roboyard.geometry.arrays import Array
from roboyard.grids.floor_plan import FloorPlan
from roboyard.simulation.naming import COLLISION, SEEN_ONLY, SEPARATOR
from roboyard.simulation.render.bodies import moving_bodies
from roboyard.simulation.render.triangles import geom_triangles

# An outline on the very border of two cells belongs to the one on the solid's side.
_INWARD = 1e-5
MOST_CELLS = 100_000_000


def floor_plan(
    source: World | mujoco.MjModel,
    data: mujoco.MjData | None = None,
    *,
    height: float = 0.3,
    resolution: float = 0.05,
    margin: float = 0.5,
    bounds: tuple[float, float, float, float] | None = None,
    moving: bool = False,
    without: tuple[str, ...] = (),
) -> FloorPlan:
    """Cut a world at ``height``: exact geometry, no sensor involved.

    A cell is occupied if its middle lies in something solid or an outline runs through it.  What counts as solid is
    what lidars see: collision shapes, and visuals of links that have none; endless ground does not count.

    Args:
        source: A world as described, or a compiled model that ``Simulation`` made of one.
        data: State of the compiled model (after ``mj_forward``); None = its initial state.
        height: Of the cut above the world's origin [m].
        resolution: Edge of a cell [m].
        margin: Free space around everything [m].
        bounds: (x low, x high, y low, y high) to cover instead [m].
        moving: Also cut what can move.
        without: Models to leave out, by name.

    Raises:
        ConfigError: The resolution is not positive, or the plan would have more than a hundred million cells.
        DescriptionError: The world cannot be built.
    """
    if not resolution > 0.0:
        raise ConfigError(f"a floor plan of resolution {resolution} m", valid="more than 0")
    if isinstance(source, World):
        from roboyard.simulation.engine import Simulation

        simulation = Simulation(source)
        model, data = simulation.model, simulation.data
    else:
        model = source
    if data is None:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
    cuts = [cut for geom in _solid(model, moving, without) if len(cut := _section(model, data, geom, height))]
    low, high = _area(cuts, margin, bounds)
    shape = tuple(int(n) for n in np.maximum(np.ceil((high - low) / resolution - 1e-9), 1)[::-1])
    if shape[0] * shape[1] > MOST_CELLS:
        raise ConfigError(f"a floor plan of {shape[0]} × {shape[1]} cells", valid="a coarser resolution")
    occupied = np.zeros(shape, np.bool_)
    for segments in cuts:
        _mark(occupied, (segments - low) / resolution, resolution)
    return FloorPlan(occupied, (float(low[0]), float(low[1])), resolution, height)


def heights_of(model: mujoco.MjModel) -> Array:
    """(n, 2) lowest and highest point of each thing that stands still in a compiled world and may be cut [m]."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    found = []
    for geom in _solid(model, False, ()):
        triangles = geom_triangles(model, geom).placed(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
        z = triangles.corners[:, :, 2]
        found.append((float(z.min()), float(z.max())))
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _solid(model: mujoco.MjModel, moving: bool, without: tuple[str, ...]) -> list[int]:
    carrier = moving_bodies(model)
    chosen = []
    for geom in range(model.ngeom):
        still = carrier[model.geom_bodyid[geom]] == 0
        endless = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
        seen = int(model.geom_group[geom]) in (COLLISION, SEEN_ONLY)
        owner = model.geom(geom).name.split(SEPARATOR)[0]
        if seen and not endless and (still or moving) and owner not in without:
            chosen.append(geom)
    return chosen


def _section(model: mujoco.MjModel, data: mujoco.MjData, geom: int, height: float) -> Array:
    """Outline (n, 2, 2) of a geom at ``height``: segments with the solid on their left."""
    triangles = geom_triangles(model, geom).placed(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
    corners = triangles.corners
    above = corners[:, :, 2] >= height
    corners = corners[above.any(1) & ~above.all(1)]
    if not len(corners):
        return np.zeros((0, 2, 2))
    # Turn each triangle so that its first corner is alone on its side of the cut.
    above = corners[:, :, 2] >= height
    alone = np.where(above.sum(1) == 1, above.argmax(1), (~above).argmax(1))
    corners = corners[np.arange(len(corners))[:, None], (alone[:, None] + np.arange(3)) % 3]
    first = corners[:, :1]
    share = (height - first[..., 2]) / (corners[:, 1:, 2] - first[..., 2])
    points: Array = (first + share[..., None] * (corners[:, 1:] - first))[..., :2]
    # Counter-clockwise triangles seen from outside: the solid is on the left where the lone corner is above.
    below = ~(corners[:, 0, 2] >= height)
    points[below] = points[below, ::-1]
    return points


def _area(cuts: list[Array], margin: float, bounds: tuple[float, float, float, float] | None) -> tuple[Array, Array]:
    if bounds is not None:
        return np.array([bounds[0], bounds[2]]), np.array([bounds[1], bounds[3]])
    if not cuts:
        return np.array([-margin, -margin]), np.array([margin, margin])
    points = np.concatenate([cut.reshape(-1, 2) for cut in cuts])
    return points.min(0) - margin, points.max(0) + margin


def _mark(occupied: NDArray[np.bool_], segments: Array, resolution: float) -> None:
    """Mark one closed outline, given in cells; changes ``occupied``."""
    # Only the part of the plan about it is looked at; places keep their numbers, so that none is rounded otherwise.
    size = np.array(occupied.shape[::-1])
    left, bottom = np.clip(np.floor(segments.min((0, 1))).astype(int) - 1, 0, size)
    right, top = np.clip(np.ceil(segments.max((0, 1))).astype(int) + 1, 0, size)
    part = occupied[bottom:top, left:right]
    way = segments[:, 1] - segments[:, 0]
    length = np.linalg.norm(way, axis=1)
    inward = np.stack([-way[:, 1], way[:, 0]], axis=1) / np.maximum(length, 1e-12)[:, None] * (_INWARD / resolution)
    steps = np.maximum(2, np.ceil(4 * length).astype(int) + 1)
    which = np.repeat(np.arange(len(segments)), steps)
    share = (np.arange(len(which)) - np.repeat(np.cumsum(steps) - steps, steps)) / np.repeat(steps - 1, steps)
    # Ends are drawn in a little: a corner on a border of cells touches them from one side only.
    share = 0.5 + (share - 0.5) * (1 - 2e-6)
    cells = np.floor(segments[which, 0] + share[:, None] * way[which] + inward[which]).astype(int)
    inside = ((cells >= [left, bottom]) & (cells < [right, top])).all(1)
    part[cells[inside, 1] - bottom, cells[inside, 0] - left] = True
    # Even-odd filling: each row of cell middles crosses the outline an even number of times.  Two triangles say where
    # they meet with other last digits; rounded, neither counts a row there that the other counts, or leaves out, too.
    segments = segments.round(9)
    way = segments[:, 1] - segments[:, 0]
    low, high = segments[..., 1].min(1), segments[..., 1].max(1)
    first, stop = np.ceil(low - 0.5).astype(int), np.ceil(high - 0.5).astype(int)
    first, stop = np.clip(first, bottom, top), np.clip(stop, bottom, top)
    count = np.maximum(stop - first, 0)
    which = np.repeat(np.arange(len(segments)), count)
    row = np.repeat(first, count) + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    start, along = segments[which, 0], way[which]
    x = start[:, 0] + (row + 0.5 - start[:, 1]) / along[:, 1] * along[:, 0]
    column = np.clip(np.ceil(x - 0.5).astype(int), left, right)
    flips = np.zeros((top - bottom, right - left + 1), np.int32)
    np.add.at(flips, (row - bottom, column - left), 1)
    parity = np.cumsum(flips, axis=1) % 2
    closed = parity[:, -1] == 0  # an open mesh would smear over the rest of its row
    part |= (parity[:, :-1] == 1) & closed[:, None]
