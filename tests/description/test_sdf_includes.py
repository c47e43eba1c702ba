"""Included models are found, renamed, posed, merged or replaced by placeholders."""

from pathlib import Path

import pytest
from tests.description.resource_folders import make_model_folder
from tests.harness.descriptions import sdf_model, sdf_world, urdf

from roboyard.description import load_model, load_world
from roboyard.errors import DescriptionError

TABLE = sdf_model(
    '<pose>0 0 9 0 0 0</pose><link name="top"><pose>0 0 1 0 0 0</pose></link><frame name="f" attached_to="top"/>'
)


def write_include(uri: str, elements: str = "", attributes: str = "") -> str:
    return f"<include{attributes}><uri>{uri}</uri>{elements}</include>"


def test_models_are_found_in_parent_folders(tmp_path: Path) -> None:
    """A world in ``worlds/`` finds models in the sibling folder ``models/`` by each form of URI."""
    make_model_folder(tmp_path / "models", "table", TABLE)
    (tmp_path / "worlds").mkdir()
    file = tmp_path / "worlds" / "w.world"
    for uri in ("model://table", "table", "../models/table", "../models/table/model.sdf", "model://table/model.sdf"):
        file.write_text(sdf_world(write_include(uri)))
        world = load_world(file)
        assert [placed.name for placed in world.models] == ["m"], uri
        assert world.models[0].T_world_model.xyz[2] == 9.0
        assert world.models[0].model.source == tmp_path / "models" / "table" / "model.sdf"
        assert not world.warnings


def test_include_overrides_name_pose_and_static(tmp_path: Path) -> None:
    make_model_folder(tmp_path, "table", TABLE)
    elements = "<name>desk</name><pose>1 2 3 0 0 0</pose><static>true</static><plugin name='p' filename='q'/>"
    placed = load_world(sdf_world(write_include("model://table", elements)), search=[tmp_path]).models[0]
    assert (placed.name, placed.model.name, placed.model.static) == ("desk", "desk", True)
    assert placed.T_world_model.xyz.tolist() == [1.0, 2.0, 3.0]
    assert [plugin.name for plugin in placed.model.plugins] == ["p"]


def test_placement_frame_has_the_pose_of_the_include(tmp_path: Path) -> None:
    """The pose of the include is that of the named frame, so that the origin of the model is below it."""
    make_model_folder(tmp_path, "table", TABLE)
    for frame in ("f", "top"):
        elements = f"<pose>0 0 5 0 0 0</pose><placement_frame>{frame}</placement_frame>"
        placed = load_world(sdf_world(write_include("model://table", elements)), search=[tmp_path]).models[0]
        assert placed.T_world_model.xyz.tolist() == [0.0, 0.0, 4.0]
    with pytest.raises(DescriptionError, match="model 'm' has no placement_frame 'x'"):
        load_world(sdf_world(write_include("model://table", "<placement_frame>x</placement_frame>")), search=[tmp_path])


def test_nested_includes_are_read(tmp_path: Path) -> None:
    make_model_folder(tmp_path, "table", TABLE)
    lidar = sdf_model('<link name="l"><sensor name="s" type="ray"><topic>scan</topic></sensor></link>')
    make_model_folder(tmp_path, "lidar", lidar)
    model = load_model(
        sdf_model(
            write_include("model://table", "<name>t</name><pose>1 0 0 0 0 0</pose>")
            + write_include("model://lidar", '<name>eye</name><pose relative_to="t::f">0 0 0.5 0 0 0</pose>')
            + '<joint name="j" type="fixed"><parent>t::f</parent><child>eye::l</child></joint>'
        ),
        search=[tmp_path],
    )
    assert [link.name for link in model.links] == ["t::top", "eye::l"]
    assert model.canonical_link == "t::top"
    assert model.link("eye::l").T_model_link.xyz.tolist() == [1.0, 0.0, 1.5]
    assert (model.joint("j").parent, model.joint("j").child) == ("t::top", "eye::l")
    assert [(sensor.name, sensor.link, sensor.topic, sensor.frame) for sensor in model.sensors] == [
        ("eye::s", "eye::l", "scan", "eye::l")
    ]
    assert {frame.name for frame in model.frames} == {"t::f", "t::__model__", "eye::__model__"}


def test_urdf_can_be_included_in_a_world(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(urdf('<link name="a"/>', name="rob"))
    placed = load_world(sdf_world(write_include("r.urdf", "<pose>1 0 0 0 0 0</pose>")), search=[tmp_path]).models[0]
    assert (placed.name, placed.T_world_model.x, [link.name for link in placed.model.links]) == ("rob", 1.0, ["a"])


def test_merged_include_adds_its_links_to_the_model(tmp_path: Path) -> None:
    """Links of a merged model have the same poses as those of a nested one, without the prefix in their names."""
    content = (
        '<link name="b"><pose>0 0 1 0 0 0</pose></link><link name="c"><pose relative_to="b">1 0 0 0 0 0</pose></link>'
        '<frame name="g"><pose>0 0 3 0 0 0</pose></frame>'
        '<joint name="k" type="fixed"><parent>b</parent><child>c</child></joint>'
    )
    make_model_folder(tmp_path, "part", sdf_model(content))
    pose = "<pose>1 2 3 0 0 1</pose>"
    joint = '<link name="a"/><joint name="j" type="fixed"><parent>a</parent><child>{}</child></joint>'
    merged = load_model(
        sdf_model(write_include("model://part", pose, ' merge="true"') + joint.format("b")), search=[tmp_path]
    )
    nested = load_model(sdf_model(write_include("model://part", pose) + joint.format("m::b")), search=[tmp_path])
    assert {link.name for link in merged.links} == {"a", "b", "c"}
    for link in merged.links:
        nested_link = nested.link(link.name if link.name == "a" else f"m::{link.name}")
        assert link.T_model_link.almost_equal(nested_link.T_model_link, 1e-12)
    frames = {frame.name: frame for frame in merged.frames}
    assert frames["g"].T_link_frame.almost_equal(next(f for f in nested.frames if f.name == "m::g").T_link_frame, 1e-12)


def test_cyclic_includes_are_refused(tmp_path: Path) -> None:
    make_model_folder(tmp_path, "one", sdf_model('<link name="l"/>' + write_include("model://two")))
    make_model_folder(tmp_path, "two", sdf_model('<link name="l"/>' + write_include("model://one")))
    with pytest.raises(DescriptionError, match="include each other in a cycle"):
        load_model(tmp_path / "one" / "model.sdf", search=[tmp_path])


@pytest.mark.slow
def test_number_of_includes_is_bounded(tmp_path: Path) -> None:
    """Ten includes in each of nine files would be 10⁹ models."""
    for i in range(9):
        includes = "".join(write_include(f"model://m{i + 1}", f"<name>n{k}</name>") for k in range(10))
        make_model_folder(tmp_path, f"m{i}", sdf_model('<link name="l"/>' + includes))
    make_model_folder(tmp_path, "m9", sdf_model('<link name="l"/>'))
    with pytest.raises(DescriptionError, match="includes too many"):
        load_model(tmp_path / "m0" / "model.sdf", search=[tmp_path])


def test_missing_include_is_a_marked_placeholder() -> None:
    for uri in ("model://nowhere", "https://fuel.gazebosim.org/1.0/OpenRobotics/models/Drill", "nothing.sdf"):
        world = load_world(sdf_world(write_include(uri, "<pose>1 0 0 0 0 0</pose>")))
        (placed,) = world.models
        (link,) = placed.model.links
        assert link.name == link.visuals[0].material.name == "placeholder"
        assert link.collisions == ()
        assert placed.model.static
        assert placed.T_world_model.x == 1.0
        assert "a placeholder is used" in world.warnings[0].message


def test_missing_part_of_a_model_is_a_fixed_placeholder() -> None:
    joint = '<joint name="j" type="fixed"><parent>a</parent><child>arm::hand</child></joint>'
    model = load_model(sdf_model(f'<link name="a"/>{write_include("model://arm")}{joint}'))
    assert [link.name for link in model.links] == ["a", "arm::placeholder"]
    assert [(joint_record.type, joint_record.parent, joint_record.child) for joint_record in model.joints] == [
        ("fixed", "a", "arm::placeholder")
    ]
    assert model.mass == 1.0
    assert any("joint 'j' refers to a missing model" in warning.message for warning in model.warnings)


@pytest.mark.parametrize("server", ["https://fuel.gazebosim.org/1.0/OpenRobotics/models/", "model://"])
def test_sun_and_ground_are_built_in(server: str) -> None:
    separator = " " if server.startswith("http") else "_"
    world = load_world(
        sdf_world(write_include(f"{server}Sun") + write_include(f"{server}Ground{separator}Plane".lower()))
    )
    assert [light.type for light in world.lights] == ["directional"]
    assert [placed.name for placed in world.models] == ["ground_plane"]
    assert world.models[0].model.static
    assert not world.warnings


def test_error_in_an_included_model_names_its_file(tmp_path: Path) -> None:
    model_folder = make_model_folder(
        tmp_path, "bad", sdf_model('<link name="l">\n<inertial><mass>-1</mass></inertial></link>')
    )
    with pytest.raises(DescriptionError) as caught:
        load_world(sdf_world(write_include("model://bad")), search=[tmp_path])
    assert str(caught.value).startswith(f"{model_folder / 'model.sdf'}:2: link 'l'")
