"""URIs resolve to the files that ROS and Gazebo would find, and never to files outside the allowed folders."""

from pathlib import Path

import pytest
from tests.harness.descriptions import sdf_model, sdf_world, urdf

from roboyard.description import Mesh, Model, Resources, load_model, load_world
from roboyard.errors import DescriptionError

STL = b"solid x\nendsolid x\n"
LINK = '<link name="a"><visual name="v"><geometry><mesh filename="{}"/></geometry></visual></link>'


def make_package(folder: Path, name: str) -> Path:
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    (folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    (folder / "meshes" / "part.stl").write_bytes(STL)
    return folder


def make_model_folder(folder: Path, name: str, content: str) -> Path:
    model_folder = folder / name
    (model_folder / "meshes").mkdir(parents=True)
    (model_folder / "model.config").write_text(f'<model><name>{name}</name><sdf version="1.9">model.sdf</sdf></model>')
    (model_folder / "model.sdf").write_text(content)
    (model_folder / "meshes" / "part.stl").write_bytes(STL)
    return model_folder


def find_mesh(model: Model) -> Mesh:
    mesh = model.links[0].visuals[0].geometry
    assert isinstance(mesh, Mesh)
    return mesh


def load_with_uri(file: Path, uri: str, **options: object) -> Model:
    file.write_text(urdf(LINK.format(uri)))
    return load_model(file, **options)  # type: ignore[arg-type]


def test_files_of_the_package_of_the_document_are_found(tmp_path: Path) -> None:
    package_folder = make_package(tmp_path / "folder", "arm_description")
    part = package_folder / "meshes" / "part.stl"
    for uri in (
        "package://arm_description/meshes/part.stl",
        "package://folder/meshes/part.stl",
        "../meshes/part.stl",
        f"file://{part}",
        str(part),
    ):
        assert find_mesh(load_with_uri(package_folder / "urdf" / "r.urdf", uri)).file == part, uri


def test_sibling_packages_and_search_folders_are_found(tmp_path: Path) -> None:
    package_folder = make_package(tmp_path / "src" / "robot", "robot")
    sibling = make_package(tmp_path / "src" / "gripper", "gripper")
    nested = make_package(tmp_path / "elsewhere" / "deep" / "down" / "hand_files", "hand")
    file = package_folder / "urdf" / "r.urdf"
    assert find_mesh(load_with_uri(file, "package://gripper/meshes/part.stl")).file == sibling / "meshes" / "part.stl"
    missing = load_with_uri(file, "package://hand/meshes/part.stl")
    assert find_mesh(missing).file is None
    assert "search" in missing.warnings[0].message
    model = load_with_uri(file, "package://hand/meshes/part.stl", search=[tmp_path / "elsewhere"])
    assert find_mesh(model).file == nested / "meshes" / "part.stl"


def test_environment_variables_give_search_folders(tmp_path: Path) -> None:
    installed = make_package(tmp_path / "install" / "share" / "hand", "hand")
    model_folder = make_model_folder(tmp_path / "models", "table", "")
    for variables, uri, resource_folder in (
        ({"AMENT_PREFIX_PATH": f"/nowhere:{tmp_path / 'install'}"}, "package://hand/meshes/part.stl", installed),
        ({"ROS_PACKAGE_PATH": str(tmp_path)}, "package://hand/meshes/part.stl", installed),
        ({"GZ_SIM_RESOURCE_PATH": str(tmp_path / "models")}, "model://table/meshes/part.stl", model_folder),
        ({"GAZEBO_MODEL_PATH": str(tmp_path / "models")}, "model://table/meshes/part.stl", model_folder),
    ):
        assert Resources((), variables).resolve(uri).path == resource_folder / "meshes" / "part.stl"
        assert Resources((), {}).resolve(uri).path is None


def test_folders_omitted_in_uris_are_found(tmp_path: Path) -> None:
    """In its source tree a file may be one folder deeper than in the installed package."""
    package_folder = make_package(tmp_path / "robot", "robot")
    (package_folder / "description" / "stl").mkdir(parents=True)
    (package_folder / "description" / "stl" / "x.stl").write_bytes(STL)
    model = load_with_uri(package_folder / "urdf" / "r.urdf", "package://robot/stl/x.stl")
    assert find_mesh(model).file == package_folder / "description" / "stl" / "x.stl"
    assert "taken from the folder 'description'" in model.warnings[0].message


@pytest.mark.parametrize(
    "uri",
    [
        "../../../../etc/passwd",
        "../../../../../../../../../../etc/passwd",
        "/etc/passwd",
        "file:///etc/passwd",
        "file:///etc/../etc/passwd",
        "package://robot/../../../../../../../../etc/passwd",
        "package://robot/meshes/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "model://robot/../secret.stl",
        "package://etc/passwd",
        "model://../etc/passwd",
        "package://../secret.stl",
        "../secret.stl",
        "../../secret.stl",
        "link.stl",
        "http://example.org/part.stl",
        "ftp://example.org/part.stl",
        "meshes/\x00",
        "",
    ],
)
def test_files_outside_the_folders_are_refused(tmp_path: Path, uri: str) -> None:
    (tmp_path / "secret.stl").write_bytes(STL)
    package_folder = make_package(tmp_path / "robot", "robot")
    (package_folder / "urdf" / "link.stl").symlink_to(tmp_path / "secret.stl")
    if uri and "\x00" not in uri:
        model = load_with_uri(package_folder / "urdf" / "r.urdf", uri)
        assert find_mesh(model).file is None
        assert len(model.warnings) == 1
    resource = Resources((), {}).resolve(uri, package_folder / "urdf" / "r.urdf")
    assert resource.path is None
    assert resource.problem


def test_warning_of_a_refused_resource_states_the_reason(tmp_path: Path) -> None:
    (tmp_path / "secret.stl").write_bytes(STL)
    package_folder = make_package(tmp_path / "robot", "robot")
    model = load_with_uri(package_folder / "urdf" / "r.urdf", "../../secret.stl")
    assert "outside the folders that may be read" in model.warnings[0].message
    model_with_search = load_with_uri(package_folder / "urdf" / "r.urdf", "../../secret.stl", search=[tmp_path])
    assert find_mesh(model_with_search).file == tmp_path / "secret.stl"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.stl", b"", "empty"),
        ("a.stl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS"),
        ("a.stl", b"\x00" * 80 + b"\xff\xff\xff\x00" + b"\x00" * 100, "cut short"),
        ("a.stl", b"nonsense", "no STL"),
        ("a.dae", b"not xml", "no dae"),
        ("a.glb", b"<xml/>", "no glb"),
        ("a.step", b"ISO-10303", "no mesh format"),
        ("folder.stl", None, "no such file"),
    ],
)
def test_unreadable_meshes_cause_warnings(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    model = load_with_uri(tmp_path / "r.urdf", name)
    assert find_mesh(model).file is None
    assert reason in model.warnings[0].message
    assert str(model.warnings[0]).startswith(f"{tmp_path / 'r.urdf'}:1: mesh")


def test_readable_meshes_cause_no_warning(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(b"\x00" * 80 + b"\x01\x00\x00\x00" + b"\x00" * 50)
    (tmp_path / "b.STL").write_bytes(b"solid\n")
    (tmp_path / "c.dae").write_bytes(b"\xef\xbb\xbf<?xml?>")
    (tmp_path / "d.obj").write_bytes(b"# obj")
    (tmp_path / "e.glb").write_bytes(b"glTF")
    for file in tmp_path.iterdir():
        if file.suffix != ".urdf":
            assert find_mesh(load_with_uri(tmp_path / "r.urdf", file.name)).file == file


# -- includes ----------------------------------------------------------------------------------------------------------
TABLE = sdf_model(
    '<pose>0 0 9 0 0 0</pose><link name="top"><pose>0 0 1 0 0 0</pose></link><frame name="f" attached_to="top"/>'
)


def write_include(uri: str, more: str = "", attributes: str = "") -> str:
    return f"<include{attributes}><uri>{uri}</uri>{more}</include>"


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
    more = "<name>desk</name><pose>1 2 3 0 0 0</pose><static>true</static><plugin name='p' filename='q'/>"
    placed = load_world(sdf_world(write_include("model://table", more)), search=[tmp_path]).models[0]
    assert (placed.name, placed.model.name, placed.model.static) == ("desk", "desk", True)
    assert placed.T_world_model.xyz.tolist() == [1.0, 2.0, 3.0]
    assert [plugin.name for plugin in placed.model.plugins] == ["p"]


def test_placement_frame_has_the_pose_of_the_include(tmp_path: Path) -> None:
    """The pose of the include is that of the named frame, so that the origin of the model is below it."""
    make_model_folder(tmp_path, "table", TABLE)
    for frame in ("f", "top"):
        more = f"<pose>0 0 5 0 0 0</pose><placement_frame>{frame}</placement_frame>"
        placed = load_world(sdf_world(write_include("model://table", more)), search=[tmp_path]).models[0]
        assert placed.T_world_model.xyz.tolist() == [0.0, 0.0, 4.0]
    with pytest.raises(DescriptionError, match="placement_frame 'x' is not in model 'm'"):
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
    inside = (
        '<link name="b"><pose>0 0 1 0 0 0</pose></link><link name="c"><pose relative_to="b">1 0 0 0 0 0</pose></link>'
        '<frame name="g"><pose>0 0 3 0 0 0</pose></frame>'
        '<joint name="k" type="fixed"><parent>b</parent><child>c</child></joint>'
    )
    make_model_folder(tmp_path, "part", sdf_model(inside))
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
    with pytest.raises(DescriptionError, match="include each other in a circle"):
        load_model(tmp_path / "one" / "model.sdf", search=[tmp_path])


@pytest.mark.slow
def test_number_of_includes_is_bounded(tmp_path: Path) -> None:
    """Ten includes in each of nine files would be 10⁹ models."""
    for i in range(9):
        includes = "".join(write_include(f"model://m{i + 1}", f"<name>n{k}</name>") for k in range(10))
        make_model_folder(tmp_path, f"m{i}", sdf_model('<link name="l"/>' + includes))
    make_model_folder(tmp_path, "m9", sdf_model('<link name="l"/>'))
    with pytest.raises(DescriptionError, match="includes too much"):
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
        assert "a placeholder stands for it" in world.warnings[0].message


def test_missing_part_of_a_model_is_a_fixed_placeholder() -> None:
    joint = '<joint name="j" type="fixed"><parent>a</parent><child>arm::hand</child></joint>'
    model = load_model(sdf_model(f'<link name="a"/>{write_include("model://arm")}{joint}'))
    assert [link.name for link in model.links] == ["a", "arm::placeholder"]
    assert [(joint_record.type, joint_record.parent, joint_record.child) for joint_record in model.joints] == [
        ("fixed", "a", "arm::placeholder")
    ]
    assert model.mass == 1.0
    assert any("joint 'j' leads to a model that is not there" in warning.message for warning in model.warnings)


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


def test_packages_at_any_depth_of_the_workspace_are_found(tmp_path: Path) -> None:
    """In a source workspace, packages are found at any depth below ``src``, but not outside it."""
    package_folder = make_package(tmp_path / "src" / "repo_a" / "robot_description", "robot_description")
    nested = make_package(tmp_path / "src" / "repo_b" / "deep" / "grip_files", "gripper")
    make_package(tmp_path / "other" / "secret", "secret")
    file = package_folder / "urdf" / "r.urdf"
    assert find_mesh(load_with_uri(file, "package://gripper/meshes/part.stl")).file == nested / "meshes" / "part.stl"
    assert find_mesh(load_with_uri(file, "package://secret/meshes/part.stl")).file is None


def test_packages_installed_separately_are_found(tmp_path: Path) -> None:
    """``install/a/share/a`` finds ``install/b/share/b``, the layout of colcon's isolated installation."""
    package_folder = make_package(tmp_path / "install" / "robot" / "share" / "robot", "robot")
    other = make_package(tmp_path / "install" / "hand" / "share" / "hand", "hand")
    model = load_with_uri(package_folder / "urdf" / "r.urdf", "package://hand/meshes/part.stl")
    assert find_mesh(model).file == other / "meshes" / "part.stl"


def test_too_long_file_name_is_not_found(tmp_path: Path) -> None:
    package_folder = make_package(tmp_path / "src" / "robot", "robot")
    resources = Resources([tmp_path], {})
    assert resources.find_package("x" * 1000, package_folder / "urdf" / "r.urdf") is None
    assert resources.resolve(f"package://{'x' * 1000}/a.stl", package_folder / "urdf" / "r.urdf").path is None
