"""Uneven ground in a world: terrains as models, and what a scenario says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from roboyard.config import parameter
from roboyard.description import Box, Collision, Heightmap, Link, Material, Model, Plane, Visual, World
from roboyard.description.model import PlacedModel
from roboyard.description.shapes import InlineArray
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.grids.terrain import Terrain, generate_terrain

TERRAIN = "ground_terrain"
"""Name of its model."""
_THICK = 0.1
"""How far boxes reach below the lowest ground [m]."""
_WIDE = 50.0
"""Level ground round a terrain with holes [m]."""
_LOW, _HIGH = np.array([0.42, 0.45, 0.42]), np.array([0.86, 0.80, 0.70])
"""Colours of the lowest and highest boxes."""


@dataclass(frozen=True)
class TerrainEntry:
    """Uneven ground, made by its seed."""

    type: Literal["flat", "rough", "blocks", "stairs", "ditch", "wall", "stones", "slope"] = parameter(doc="what it is")
    origin: tuple[float, float] = parameter((0.6, -1.0), unit="m", doc="its corner of the least x and y")
    size: tuple[float, float] = parameter((2.0, 2.0), unit="m", doc="along x and y")
    cell_size: float = parameter(0.2, unit="m", low=0.01, high=10.0, doc="edge of its squares")
    height_range: float = parameter(0.1, unit="m", low=0.0, high=10.0, doc="how high or deep; of each step of stairs")
    fraction: float = parameter(0.2, low=0.0, high=1.0, doc="of stones; or of the length: ditch, wall, level top")
    seed: int | None = parameter(None, low=0, high=2**63 - 1, doc="default: the scenario's")

    def make(self, seed: int) -> Terrain:
        """The ground; ``seed`` where it says none itself. Raises InputError."""
        rng = np.random.default_rng([0x6E04, seed if self.seed is None else self.seed])
        return generate_terrain(
            self.type,
            self.size,
            rng,
            corner=self.origin,
            cell_size=self.cell_size,
            height_range=self.height_range,
            fraction=self.fraction,
        )


def terrain_model(terrain: Terrain) -> Model:
    """Uneven ground as a model."""
    return Model(TERRAIN, (_smooth(terrain) if terrain.smooth else _stepped(terrain),), static=True)


def with_terrain(world: World, terrain: Terrain) -> World:
    """The world with uneven ground in it, as a model named ``ground_terrain``.

    Level squares become boxes, exact to their edges; smooth ground a height field.  Where the ground goes below 0, the
    world's own level ground goes down with it, and slabs stand round the terrain in its place.

    Raises:
        InputError: the ground goes below 0, and the world has no level plane to go down.
    """
    model = terrain_model(terrain)
    depth = max(-float(terrain.heights.min()), 0.0)
    models = world.models
    if depth > 0.0:
        planes = {placed.name for placed in models if _is_plane(placed.model)}
        if not planes:
            raise InputError("a terrain below 0 in a world without a plane", location=world.name, valid="empty")
        down = SE3(translation=(0.0, 0.0, -depth))
        models = tuple(
            replace(placed, T_world_model=down @ placed.T_world_model) if placed.name in planes else placed
            for placed in models
        )
    return replace(world, models=(*models, PlacedModel(model.name, model, SE3.identity())))


def _is_plane(model: Model) -> bool:
    return any(isinstance(shape.geometry, Plane) for link in model.links for shape in link.collisions)


def _link(shapes: list[tuple[Box | Heightmap, SE3, Material]]) -> Link:
    collisions = tuple(Collision(f"c{k}", shape, place) for k, (shape, place, _) in enumerate(shapes))
    visuals = tuple(Visual(f"v{k}", shape, place, material) for k, (shape, place, material) in enumerate(shapes))
    return Link("link", SE3.identity(), collisions=collisions, visuals=visuals)


def _smooth(terrain: Terrain) -> Link:
    low, high = float(terrain.heights.min()), float(terrain.heights.max())
    span = max(high - low, 1e-9)
    values = ((terrain.heights - low) / span).astype(np.float32)
    x, y = terrain.size
    inline = InlineArray(values.tobytes(), b"", values.shape[1])
    field = Heightmap("", None, (x, y, span), inline=inline)
    place = SE3(translation=(terrain.corner[0] + 0.5 * x, terrain.corner[1] + 0.5 * y, low))
    return _link([(field, place, _colour(0.5))])


def _stepped(terrain: Terrain) -> Link:
    heights = terrain.heights
    low, high = float(heights.min()), float(heights.max())
    bottom = min(low, 0.0) - _THICK
    boxes = terrain.level_rectangles()
    if low < 0.0:
        boxes = np.concatenate([boxes[boxes[:, 4] > low], _level(terrain), _around(terrain)])
    return _link(
        [
            (
                Box((right - left, far - near, top - bottom)),
                SE3(translation=(0.5 * (left + right), 0.5 * (near + far), 0.5 * (top + bottom))),
                _colour((top - low) / max(high - low, 1e-9)),
            )
            for left, near, right, far, top in boxes.tolist()
        ]
    )


def _level(terrain: Terrain) -> np.ndarray:
    """Boxes of the squares at height 0, which stand where the ground round them went down."""
    lifted = replace(terrain, heights=np.where(terrain.heights == 0.0, 1.0, 0.0))
    found = lifted.level_rectangles()
    found[:, 4] = 0.0
    return found


def _around(terrain: Terrain) -> np.ndarray:
    """Four slabs at height 0 round a terrain."""
    (left, near), (x, y) = terrain.corner, terrain.size
    right, far = left + x, near + y
    return np.array(
        [
            [left - _WIDE, near - _WIDE, right + _WIDE, near, 0.0],
            [left - _WIDE, far, right + _WIDE, far + _WIDE, 0.0],
            [left - _WIDE, near, left, far, 0.0],
            [right, near, right + _WIDE, far, 0.0],
        ]
    )


def _colour(share: float) -> Material:
    r, g, b = (_LOW + share * (_HIGH - _LOW)).tolist()
    return Material(rgba=(r, g, b, 1.0))
