"""Things that are placed by the seed, light and floor."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.catalog import OBJECTS, WORLDS
from roboyard.config import load
from roboyard.description import load_world
from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.world.appearance import AppearanceConfig, render_floor_texture
from roboyard.scenarios.world.objects import AnnularSector, ObjectConfig, add_objects_and_appearance, sample_poses

STATION_WORLD = load_world(WORLDS.resolve("pick_place_station"))


@given(
    st.integers(0, 2**32), st.floats(0.1, 0.5), st.floats(0.05, 0.5), st.floats(-3.0, 0.0), st.floats(0.5, 3.0),
    st.integers(1, 6), st.floats(0.0, 0.05),
)  # fmt: skip
@settings(max_examples=50)
def test_sampled_objects_keep_their_sector_and_spacing(seed, low, wide, start_angle, span, count, min_spacing):
    sector = AnnularSector((1.0, -2.0), (low, low + wide), (start_angle, start_angle + span))
    try:
        found = sample_poses(np.random.default_rng(seed), sector, count, min_spacing)
    except InputError:
        assert 0.5 * span * ((low + wide) ** 2 - low**2) < count * math.pi * (2 * min_spacing) ** 2, (
            "there was room enough"
        )
        return
    assert len(found) == count
    for pose in found:
        x, y = pose.x - 1.0, pose.y + 2.0
        assert low - 1e-9 <= math.hypot(x, y) <= low + wide + 1e-9
        assert (math.atan2(y, x) - start_angle + 1e-9) % (2 * math.pi) <= span + 2e-9
    assert all(math.hypot(a.x - b.x, a.y - b.y) >= min_spacing for a, b in itertools.combinations(found, 2))


def test_scatter_fills_a_sector_evenly():
    sector = AnnularSector((0.0, 0.0), (1.0, 2.0))
    rng = np.random.default_rng(1)
    radii = np.array([math.hypot(*sector.sample(rng)) for _ in range(4000)])
    assert np.mean(radii**2) == pytest.approx(2.5, abs=0.05), "as much area within as without"


def entry(**fields) -> ObjectConfig:
    return load(ObjectConfig, {"model": "disc_cylinder", **fields})


def test_poses_of_objects_depend_only_on_the_seed():
    sector = {"radius": [0.1, 0.4]}
    some = {"object": entry(sector=sector, count=3)}
    more = {**some, "other": entry(sector=sector, count=2)}

    def sample_positions(seed, objects):
        world = add_objects_and_appearance(STATION_WORLD, objects, AppearanceConfig(), seed)
        return {placed.name: tuple(placed.T_world_model.xyz) for placed in world.models[len(STATION_WORLD.models) :]}

    assert sample_positions(1, some) == sample_positions(1, some) != sample_positions(2, some)
    assert sample_positions(1, more).items() >= sample_positions(1, some).items(), "what comes later moves nobody"
    assert list(sample_positions(1, more)) == ["object_1", "object_2", "object_3", "other_1", "other_2"]


@pytest.mark.parametrize(("fields", "message"), [
    ({"pose": [0, 0, 0], "sector": {"radius": [0.1, 0.2]}}, "one of them"),
    ({}, "one of them"),
    ({"pose": [0, 0, 0], "count": 2}, "a sector"),
    ({"sector": {"radius": [0.2, 0.1]}}, "the smaller one first"),
    ({"sector": {"radius": [0.1, 0.2]}, "count": 50}, "no space"),
    ({"model": "disc_cylinders", "pose": [0, 0, 0]}, "did you mean 'disc_cylinder'"),
])  # fmt: skip
def test_invalid_objects_are_refused(fields, message):
    with pytest.raises(RoboyardError, match=message):
        add_objects_and_appearance(STATION_WORLD, {"object": entry(**fields)}, AppearanceConfig(), 1)


def test_used_names_and_missing_floors_are_refused():
    with pytest.raises(ConfigError, match="already"):
        add_objects_and_appearance(STATION_WORLD, {"ground": entry(pose=[0, 0, 0])}, AppearanceConfig(), 1)
    with pytest.raises(ConfigError, match="no visual 'floor'"):
        add_objects_and_appearance(load_world(WORLDS.resolve("empty")), {}, AppearanceConfig(floor="wood"), 1)


def test_light_and_floor_are_drawn():
    dim = add_objects_and_appearance(STATION_WORLD, {}, AppearanceConfig(light_scale=0.5, floor="wood"), 1)
    assert [light.diffuse[0] for light in dim.lights] == pytest.approx(
        [0.5 * light.diffuse[0] for light in STATION_WORLD.lights]
    )
    textures = {
        visual.name: visual.material.texture
        for one in dim.models
        for link in one.model.links
        for visual in link.visuals
    }
    assert textures["ground"] is None
    assert textures["floor"].is_file()
    floors = ("plain", "wood", "terrazzo", "tiles", "carpet")
    sampled = {
        add_objects_and_appearance(STATION_WORLD, {}, AppearanceConfig(light_scale=(0.5, 1.5), floor=floors), seed)
        .lights[0]
        .diffuse[0]
        for seed in range(5)
    }
    assert len(sampled) == 5
    assert len({str(render_floor_texture(floor)) for floor in floors}) == 5


def test_resolved_scenario_keeps_its_objects(tmp_path: Path):
    model_file = tmp_path / "pin.sdf"
    model_file.write_text(OBJECTS["disc_cylinder"].path.read_text())
    (tmp_path / "lying.yaml").write_text(
        "world: pick_place_station\nduration: 1\nobjects:\n  pin: {model: pin.sdf, pose: [0.2, 0, 0]}\n"
        "  post: {model: disc_cylinder, count: 2, sector: {radius: [0.3, 0.4]}, surface_height: 5 mm}\n"
    )
    spec = load_scenario(tmp_path / "lying.yaml")
    repeated = tmp_path / "again" / "scenario.yaml"
    repeated.parent.mkdir()
    repeated.write_text(resolve_scenario(spec).to_yaml())
    poses = []
    for one in (spec, load_scenario(repeated)):
        with build_run(resolve_scenario(one), record=False) as run:
            run.run_for(0.1)
            poses.append(
                {name: run.simulation.ground_truth(name).T_world_base.xyz for name in ("pin", "post_1", "post_2")}
            )
    assert {name: tuple(xyz) for name, xyz in poses[0].items()} == {name: tuple(xyz) for name, xyz in poses[1].items()}
    assert poses[0]["post_1"][2] == pytest.approx(0.0, abs=5e-4), "it fell by 5 mm"
