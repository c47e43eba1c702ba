"""Ground is what carries the world's static bodies: names decide nothing, shapes and a declaration do."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.models import IDENTITY, free_box, ground_plane, make_pose, make_world, room_walls, static_box

from roboyard.description import load_world
from roboyard.description.model import (
    GROUND_PLUGIN,
    Collision,
    Heightmap,
    Joint,
    Link,
    Model,
    PlacedModel,
    World,
)
from roboyard.description.shapes import InlineArray
from roboyard.geometry import SE3
from roboyard.grids.terrain import Terrain
from roboyard.physics.compiled_world import ModelEntry
from roboyard.physics.compiler.world import compile_world
from roboyard.physics.settings import PhysicsSettings
from roboyard.scenarios.world.terrain import world_with_terrain
from roboyard.simulation import Simulation

SLAB = static_box("plate", (10, 10, 0.1), make_pose(z=-0.05))


def ground_models(world: World) -> set[str]:
    """Names of the models all of whose collision shapes are ground."""
    compiled = compile_world(
        world, [ModelEntry(item.name, item.model, item.T_world_model) for item in world.models], PhysicsSettings()
    )
    tables, names = compiled.geoms, list(compiled.addresses)
    return {name for index, name in enumerate(names) if tables.is_ground[tables.model_index == index].all()}


def test_floor_slab_is_ground_whatever_its_name_is() -> None:
    walls = room_walls(3.0)
    for name in ("plate", "ground", "hall"):
        assert ground_models(make_world(replace(SLAB, name=name), *walls)) == {name}


@pytest.mark.parametrize("name", ["ground_box", "floor", "box"])
def test_name_does_not_make_an_obstacle_ground(name: str) -> None:
    obstacle = static_box(name, (0.4, 0.4, 0.4), make_pose(1.0, z=0.2))
    assert ground_models(make_world(ground_plane(), obstacle)) == {"ground_plane"}
    assert ground_models(make_world(SLAB, obstacle)) == {"plate"}
    assert ground_models(make_world(obstacle)) == set()


def test_contact_with_a_box_named_ground_is_a_contact_episode() -> None:
    sim = Simulation(make_world(ground_plane(), static_box("ground_box", (0.4, 0.4, 0.4), make_pose(1.0, z=0.2))))
    sim.add(free_box("floor_cleaner", (0.2, 0.2, 0.2)), "floor_cleaner", make_pose(0.6, z=0.1))
    sim.world.data.qvel[0] = 3.0
    sim.step(200)
    (episode,) = sim.contact_episodes("floor_cleaner")
    assert episode.other_model == "ground_box"


def test_table_top_and_upper_storey_are_not_ground() -> None:
    table_top = static_box("board", (1.2, 0.8, 0.03), make_pose(1.0, z=0.7))
    leg = static_box("leg", (0.05, 0.05, 0.685), make_pose(1.0, z=0.3425))
    assert ground_models(make_world(SLAB, table_top, leg)) == {"plate"}
    assert ground_models(make_world(ground_plane(), table_top, leg)) == {"ground_plane"}


def test_thin_sheet_on_the_ground_is_ground_and_a_pallet_is_not() -> None:
    tiles = static_box("tiles", (4.0, 3.0, 0.02), make_pose(z=0.01))
    mat = static_box("mat", (1.0, 1.0, 0.01), make_pose(z=0.025))
    pallet = static_box("pallet", (1.2, 0.8, 0.144), make_pose(2.6, z=0.072))
    curb = static_box("curb", (4.0, 0.1, 0.04), make_pose(0.0, 2.0, z=0.02))
    for base in (ground_plane(), SLAB):
        assert ground_models(make_world(base, tiles, mat, pallet, curb)) == {base.name, "tiles", "mat"}


def test_sunken_slab_is_ground_by_the_height_that_it_rises() -> None:
    def slab(rise: float) -> PlacedModel:
        return static_box("slab", (4.0, 4.0, 0.6), make_pose(z=rise - 0.3))

    assert ground_models(make_world(ground_plane(), slab(0.03))) == {"ground_plane", "slab"}
    assert ground_models(make_world(ground_plane(), slab(0.3))) == {"ground_plane"}


def test_slope_is_ground_where_it_carries_the_world_and_not_where_it_lies_on_the_ground() -> None:
    slope = static_box("slope", (6.0, 6.0, 0.2), make_pose(pitch=0.4))
    assert ground_models(make_world(slope)) == {"slope"}
    ramp = static_box("ramp", (2.0, 1.0, 0.05), make_pose(z=0.2, pitch=0.2))
    assert ground_models(make_world(ground_plane(), ramp)) == {"ground_plane"}


def test_model_declares_itself_ground_only_if_it_is_static() -> None:
    ramp = static_box("ramp", (2.0, 1.0, 0.05), make_pose(z=0.2, pitch=0.2))
    declared = replace(ramp, model=replace(ramp.model, plugins=(GROUND_PLUGIN,)))
    assert ground_models(make_world(ground_plane(), declared)) == {"ground_plane", "ramp"}
    loose = replace(free_box("crate", (0.2, 0.2, 0.2)), plugins=(GROUND_PLUGIN,))
    placed = PlacedModel("crate", loose, make_pose(z=0.1))
    assert ground_models(make_world(ground_plane(), placed)) == {"ground_plane"}


def test_sdf_model_declares_itself_ground(tmp_path: Path) -> None:
    file = tmp_path / "world.sdf"
    file.write_text("""<sdf version="1.10"><world name="w"><model name="steps"><static>true</static>
      <link name="l"><collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision></link>
      <plugin filename="roboyard-ground" name="roboyard::Ground"/></model></world></sdf>""")
    world = load_world(file)
    assert world.warnings == ()
    assert ground_models(world) == {"steps"}


def test_height_field_is_ground_and_a_box_in_its_valley_is_not() -> None:
    heights = np.zeros((20, 20), np.float32)
    heights[:, :4] = 1.0
    inline = InlineArray(heights.tobytes(), b"", 20)
    hills = Collision("hills", Heightmap("", None, (4.0, 4.0, 1.0), inline=inline), IDENTITY)
    terrain = PlacedModel("hills", Model("hills", (Link("l", IDENTITY, collisions=(hills,)),), static=True), IDENTITY)
    step = static_box("step", (1.0, 1.0, 0.2), make_pose(1.0, z=0.1))
    assert ground_models(make_world(terrain, step)) == {"hills"}


@pytest.mark.parametrize("min_height", [0.0, -0.2])
def test_terrain_of_a_scenario_is_ground(min_height: float) -> None:
    heights = np.array([[0.0, 0.1, 0.3], [min_height, 0.0, 0.2]])
    terrain = Terrain(heights, 0.5, (1.0, -0.5))
    world = world_with_terrain(make_world(ground_plane()), terrain)
    assert ground_models(world) == {"ground_plane", "ground_terrain"}
    renamed = replace(world, models=tuple(replace(item, name=f"m{k}") for k, item in enumerate(world.models)))
    assert ground_models(renamed) == {"m0", "m1"}


def test_fixed_base_of_a_robot_is_not_ground() -> None:
    plate = static_box("base", (0.4, 0.4, 0.02), SE3.identity())
    mount = Joint("mount", "fixed", "world", "link", IDENTITY, IDENTITY)
    world = make_world(replace(plate, model=replace(plate.model, static=False, joints=(mount,))))
    assert ground_models(world) == set()
