"""Terrains in worlds: rays from above meet the ground at the heights of the terrain."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from roboyard.description import World, load_world
from roboyard.errors import InputError
from roboyard.grids.terrain import TERRAIN_TYPES
from roboyard.scenarios.catalog import find
from roboyard.scenarios.ground import TerrainEntry, with_terrain
from roboyard.scenarios.spec import load_spec
from roboyard.simulation import Simulation


@pytest.mark.parametrize("kind", TERRAIN_TYPES)
def test_ground_has_the_heights_of_the_terrain(kind: str) -> None:
    ground = TerrainEntry(type=kind, fraction=0.5).make(3)  # type: ignore[arg-type]
    simulation = Simulation(with_terrain(load_world(find("world", "empty")), ground))
    points = np.random.default_rng(0).uniform([0.0, -1.5], [3.0, 1.5], (200, 2))
    hit, down, groups = np.zeros(1, np.int32), np.array([0.0, 0.0, -1.0]), np.ones(6, np.uint8)
    for (x, y), height in zip(points, ground.height_at(points), strict=True):
        start = np.array([x, y, 2.0])
        away = mujoco.mj_ray(simulation.model, simulation.data, start, down, groups, 1, -1, hit)
        assert 2.0 - away == pytest.approx(height, abs=1e-6)


def test_terrain_is_drawn_by_the_seed() -> None:
    free, fixed = TerrainEntry(type="blocks"), TerrainEntry(type="blocks", seed=4)
    assert (free.make(1).heights != free.make(2).heights).any()
    assert (fixed.make(1).heights == fixed.make(2).heights).all()


def test_terrain_with_holes_needs_a_ground_plane() -> None:
    with pytest.raises(InputError, match="plane"):
        with_terrain(World("nothing"), TerrainEntry(type="ditch").make(0))


def test_scenarios_name_terrains() -> None:
    spec = load_spec("akrobat-stand", overrides=["terrain={type: stairs, height_range: 0.05}"])
    assert spec.scenario.terrain == TerrainEntry(type="stairs", height_range=0.05)
