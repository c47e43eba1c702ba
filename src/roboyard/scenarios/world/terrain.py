"""Adds a terrain to a world: boxes for level squares, a height field for smooth ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roboyard.description import Box, Collision, Heightmap, Link, Material, Model, Plane, Visual, World
from roboyard.description.model import GROUND_PLUGIN, PlacedModel
from roboyard.description.shapes import InlineArray
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.grids.terrain import Terrain

TERRAIN_MODEL = "ground_terrain"
"""Name of the terrain's model."""
_BASE_THICKNESS = 0.1
"""Thickness of boxes below the lowest ground [m]."""
_SURROUNDING_WIDTH = 50.0
"""Width of the level ground around a terrain with holes [m]."""
_LOW_COLOR, _HIGH_COLOR = np.array([0.42, 0.45, 0.42]), np.array([0.86, 0.80, 0.70])
"""Colors of the lowest and highest boxes."""


def terrain_model(terrain: Terrain) -> Model:
    """Return uneven ground as a model."""
    link = _heightmap_link(terrain) if terrain.smooth else _box_link(terrain)
    return Model(TERRAIN_MODEL, (link,), static=True, plugins=(GROUND_PLUGIN,))


def world_with_terrain(world: World, terrain: Terrain) -> World:
    """Return the world with uneven ground in it, as a model named ``ground_terrain``.

    Level squares become boxes, exact to their edges; smooth ground becomes a height field.  Where the ground is below
    0, the world's own level ground is lowered, and slabs around the terrain replace it.

    Raises:
        InputError: The ground is below 0, and the world has no level plane that could be lowered.
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


def _make_link(shapes: list[tuple[Box | Heightmap, SE3, Material]]) -> Link:
    collisions = tuple(Collision(f"c{k}", shape, pose) for k, (shape, pose, _) in enumerate(shapes))
    visuals = tuple(Visual(f"v{k}", shape, pose, material) for k, (shape, pose, material) in enumerate(shapes))
    return Link("link", SE3.identity(), collisions=collisions, visuals=visuals)


def _heightmap_link(terrain: Terrain) -> Link:
    low, high = float(terrain.heights.min()), float(terrain.heights.max())
    span = max(high - low, 1e-9)
    values = ((terrain.heights - low) / span).astype(np.float32)
    x, y = terrain.size
    inline = InlineArray(values.tobytes(), b"", values.shape[1])
    heightmap = Heightmap("", None, (x, y, span), inline=inline)
    pose = SE3(translation=(terrain.corner[0] + 0.5 * x, terrain.corner[1] + 0.5 * y, low))
    return _make_link([(heightmap, pose, _terrain_material(0.5))])


def _box_link(terrain: Terrain) -> Link:
    heights = terrain.heights
    low, high = float(heights.min()), float(heights.max())
    bottom = min(low, 0.0) - _BASE_THICKNESS
    boxes = terrain.level_rectangles()
    if low < 0.0:
        boxes = np.concatenate([boxes[boxes[:, 4] > low], _zero_level_boxes(terrain), _surrounding_boxes(terrain)])
    return _make_link(
        [
            (
                Box((x_max - x_min, y_max - y_min, top - bottom)),
                SE3(translation=(0.5 * (x_min + x_max), 0.5 * (y_min + y_max), 0.5 * (top + bottom))),
                _terrain_material((top - low) / max(high - low, 1e-9)),
            )
            for x_min, y_min, x_max, y_max, top in boxes.tolist()
        ]
    )


def _zero_level_boxes(terrain: Terrain) -> np.ndarray:
    """Return boxes of the squares at height 0, which remain where the ground around them is lower."""
    inverted = replace(terrain, heights=np.where(terrain.heights == 0.0, 1.0, 0.0))
    boxes = inverted.level_rectangles()
    boxes[:, 4] = 0.0
    return boxes


def _surrounding_boxes(terrain: Terrain) -> np.ndarray:
    """Return four slabs at height 0 around a terrain."""
    (x_min, y_min), (x, y) = terrain.corner, terrain.size
    x_max, y_max = x_min + x, y_min + y
    return np.array(
        [
            [x_min - _SURROUNDING_WIDTH, y_min - _SURROUNDING_WIDTH, x_max + _SURROUNDING_WIDTH, y_min, 0.0],
            [x_min - _SURROUNDING_WIDTH, y_max, x_max + _SURROUNDING_WIDTH, y_max + _SURROUNDING_WIDTH, 0.0],
            [x_min - _SURROUNDING_WIDTH, y_min, x_min, y_max, 0.0],
            [x_max, y_min, x_max + _SURROUNDING_WIDTH, y_max, 0.0],
        ]
    )


def _terrain_material(relative_height: float) -> Material:
    r, g, b = (_LOW_COLOR + relative_height * (_HIGH_COLOR - _LOW_COLOR)).tolist()
    return Material(rgba=(r, g, b, 1.0))
