"""Terrains in worlds: rays from above meet the ground at the heights of the terrain."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from roboyard.bringup.catalog import WORLDS
from roboyard.description import World, load_world
from roboyard.errors import InputError
from roboyard.grids.terrain import TERRAIN_TYPES, TerrainConfig
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.world.terrain import add_terrain
from roboyard.simulation import Simulation


@pytest.mark.parametrize("kind", TERRAIN_TYPES)
def test_ground_has_the_heights_of_the_terrain(kind: str) -> None:
    ground = TerrainConfig(type=kind, fraction=0.5).generate(3)  # type: ignore[arg-type]
    simulation = Simulation(add_terrain(load_world(WORLDS.resolve("empty")), ground))
    points = np.random.default_rng(0).uniform([0.0, -1.5], [3.0, 1.5], (200, 2))
    hit, down, groups = np.zeros(1, np.int32), np.array([0.0, 0.0, -1.0]), np.ones(6, np.uint8)
    for (x, y), height in zip(points, ground.height_at(points), strict=True):
        start = np.array([x, y, 2.0])
        away = mujoco.mj_ray(simulation.model, simulation.data, start, down, groups, 1, -1, hit)
        assert 2.0 - away == pytest.approx(height, abs=1e-6)


def test_terrain_is_drawn_by_the_seed() -> None:
    free, fixed = TerrainConfig(type="blocks"), TerrainConfig(type="blocks", seed=4)
    assert (free.generate(1).heights != free.generate(2).heights).any()
    assert (fixed.generate(1).heights == fixed.generate(2).heights).all()


def test_terrain_with_holes_needs_a_ground_plane() -> None:
    with pytest.raises(InputError, match="plane"):
        add_terrain(World("nothing"), TerrainConfig(type="ditch").generate(0))


def test_scenarios_name_terrains() -> None:
    spec = load_scenario("akrobat-stand-up", overrides=["terrain={type: stairs, height_range: 0.05}"])
    assert spec.config.terrain == TerrainConfig(type="stairs", height_range=0.05)
