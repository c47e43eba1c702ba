"""Terrains in worlds: rays from above meet the ground at the heights of the terrain."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from roboyard.bringup.catalog import WORLDS
from roboyard.config import json_schema, loads
from roboyard.description import World, load_world
from roboyard.errors import ConfigError, InputError
from roboyard.grids.terrain import TERRAINS, TerrainConfig
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.world.appearance import AppearanceConfig, render_floor_texture
from roboyard.scenarios.world.terrain import world_with_terrain
from roboyard.simulation import Simulation


@pytest.mark.parametrize("kind", TERRAINS.names())
def test_ground_has_the_heights_of_the_terrain(kind: str) -> None:
    ground = TerrainConfig(type=kind, fraction=0.5).generate(3)
    simulation = Simulation(world_with_terrain(load_world(WORLDS.resolve("empty")), ground))
    points = np.random.default_rng(0).uniform([0.0, -1.5], [3.0, 1.5], (200, 2))
    hit, down, groups = np.zeros(1, np.int32), np.array([0.0, 0.0, -1.0]), np.ones(6, np.uint8)
    for (x, y), height in zip(points, ground.height_at(points), strict=True):
        start = np.array([x, y, 2.0])
        distance = mujoco.mj_ray(simulation.world.model, simulation.world.data, start, down, groups, 1, -1, hit)
        assert 2.0 - distance == pytest.approx(height, abs=1e-6)


def test_terrain_is_drawn_by_the_seed() -> None:
    free, fixed = TerrainConfig(type="blocks"), TerrainConfig(type="blocks", seed=4)
    assert (free.generate(1).heights != free.generate(2).heights).any()
    assert (fixed.generate(1).heights == fixed.generate(2).heights).all()


def test_terrain_with_holes_needs_a_ground_plane() -> None:
    with pytest.raises(InputError, match="plane"):
        world_with_terrain(World("nothing"), TerrainConfig(type="ditch").generate(0))


def test_scenarios_name_terrains() -> None:
    spec = load_scenario("akrobat-stand-up", overrides=["terrain={type: stairs, height_range: 0.05}"])
    assert spec.config.terrain == TerrainConfig(type="stairs", height_range=0.05)


def test_terrain_and_floor_texture_of_another_package_are_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed packages register generators of terrain and renderers of floor textures."""
    info = tmp_path / "dunes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dunes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[roboyard.terrains]\ndunes = dunes:DUNES\nbroken = dunes:make_dunes\n"
        "[roboyard.floor_textures]\nsand = dunes:render_sand\n"
    )
    (tmp_path / "dunes.py").write_text(
        "import numpy as np\n"
        "from roboyard.grids.terrain import TerrainGenerator\n"
        "def make_dunes(rows, columns, height_range, fraction, rng):\n"
        "    return np.tile(height_range * np.sin(np.arange(columns + 1)), (rows + 1, 1))\n"
        "def render_sand(rng):\n"
        "    return np.full((8, 8, 3), 200.0)\n"
        "DUNES = TerrainGenerator(make_dunes, smooth=True)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = loads(TerrainConfig, "{type: dunes, size: [1, 0.4], cell_size: 0.2, height_range: 0.3}")
    np.testing.assert_allclose(config.generate(0).heights[1], 0.3 * np.sin(np.arange(6)))
    assert render_floor_texture("sand").shape == (8, 8, 3)
    assert loads(AppearanceConfig, "floor: [sand, wood]").floor == ("sand", "wood")
    with pytest.raises(ConfigError, match="'duens'; did you mean 'dunes'"):
        loads(TerrainConfig, "type: duens")
    with pytest.raises(ConfigError, match=r"must be one of: carpet, plain, sand, terrazzo, tiles, wood"):
        loads(AppearanceConfig, "floor: [sand, grass]")
    with pytest.raises(ConfigError, match="roboyard.terrains.*a TerrainGenerator"):
        loads(TerrainConfig, "type: broken").generate(0)
    assert "dunes" in json_schema(TerrainConfig)["properties"]["type"]["enum"]
