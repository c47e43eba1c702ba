"""Files behind URIs: found where ROS and Gazebo would find them, and never outside the folders that may be read."""

from pathlib import Path

import pytest
from tests.harness.descriptions import sdf_model, sdf_world, urdf

from roboyard.description import Mesh, Model, Resources, load_model, load_world
from roboyard.errors import DescriptionError

STL = b"solid x\nendsolid x\n"
LINK = '<link name="a"><visual name="v"><geometry><mesh filename="{}"/></geometry></visual></link>'


def package(folder: Path, name: str) -> Path:
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    (folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    (folder / "meshes" / "part.stl").write_bytes(STL)
    return folder


def database(folder: Path, name: str, content: str) -> Path:
    home = folder / name
    (home / "meshes").mkdir(parents=True)
    (home / "model.config").write_text(f'<model><name>{name}</name><sdf version="1.9">model.sdf</sdf></model>')
    (home / "model.sdf").write_text(content)
    (home / "meshes" / "part.stl").write_bytes(STL)
    return home


def mesh_of(loaded: Model) -> Mesh:
    mesh = loaded.links[0].visuals[0].geometry
    assert isinstance(mesh, Mesh)
    return mesh


def load(file: Path, uri: str, **options: object) -> Model:
    file.write_text(urdf(LINK.format(uri)))
    return load_model(file, **options)  # type: ignore[arg-type]


def test_own_package_files_are_found(tmp_path: Path) -> None:
    home = package(tmp_path / "folder", "arm_description")
    part = home / "meshes" / "part.stl"
    for uri in (
        "package://arm_description/meshes/part.stl",
        "package://folder/meshes/part.stl",
        "../meshes/part.stl",
        f"file://{part}",
        str(part),
    ):
        assert mesh_of(load(home / "urdf" / "r.urdf", uri)).file == part, uri


def test_packages_beside_and_in_search_folders_are_found(tmp_path: Path) -> None:
    home = package(tmp_path / "src" / "robot", "robot")
    beside = package(tmp_path / "src" / "gripper", "gripper")
    far = package(tmp_path / "elsewhere" / "deep" / "down" / "hand_files", "hand")
    file = home / "urdf" / "r.urdf"
    assert mesh_of(load(file, "package://gripper/meshes/part.stl")).file == beside / "meshes" / "part.stl"
    missing = load(file, "package://hand/meshes/part.stl")
    assert mesh_of(missing).file is None
    assert "search" in missing.warnings[0].message
    found = load(file, "package://hand/meshes/part.stl", search=[tmp_path / "elsewhere"])
    assert mesh_of(found).file == far / "meshes" / "part.stl"


def test_environment_variables_give_search_folders(tmp_path: Path) -> None:
    installed = package(tmp_path / "install" / "share" / "hand", "hand")
    table = database(tmp_path / "models", "table", "")
    for variables, uri, home in (
        ({"AMENT_PREFIX_PATH": f"/nowhere:{tmp_path / 'install'}"}, "package://hand/meshes/part.stl", installed),
        ({"ROS_PACKAGE_PATH": str(tmp_path)}, "package://hand/meshes/part.stl", installed),
        ({"GZ_SIM_RESOURCE_PATH": str(tmp_path / "models")}, "model://table/meshes/part.stl", table),
        ({"GAZEBO_MODEL_PATH": str(tmp_path / "models")}, "model://table/meshes/part.stl", table),
    ):
        assert Resources((), variables).resolve(uri).path == home / "meshes" / "part.stl"
        assert Resources((), {}).resolve(uri).path is None


def test_folders_omitted_in_uris_are_found(tmp_path: Path) -> None:
    """In the source a file may lie one folder deeper than where it is installed."""
    home = package(tmp_path / "robot", "robot")
    (home / "description" / "stl").mkdir(parents=True)
    (home / "description" / "stl" / "x.stl").write_bytes(STL)
    read = load(home / "urdf" / "r.urdf", "package://robot/stl/x.stl")
    assert mesh_of(read).file == home / "description" / "stl" / "x.stl"
    assert "taken from the folder 'description'" in read.warnings[0].message


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
    home = package(tmp_path / "robot", "robot")
    (home / "urdf" / "link.stl").symlink_to(tmp_path / "secret.stl")
    if uri and "\x00" not in uri:
        read = load(home / "urdf" / "r.urdf", uri)
        assert mesh_of(read).file is None
        assert len(read.warnings) == 1
    found = Resources((), {}).resolve(uri, home / "urdf" / "r.urdf")
    assert found.path is None
    assert found.problem


def test_resource_refusal_gives_its_reason(tmp_path: Path) -> None:
    (tmp_path / "secret.stl").write_bytes(STL)
    home = package(tmp_path / "robot", "robot")
    read = load(home / "urdf" / "r.urdf", "../../secret.stl")
    assert "outside the folders that may be read" in read.warnings[0].message
    trusted = load(home / "urdf" / "r.urdf", "../../secret.stl", search=[tmp_path])
    assert mesh_of(trusted).file == tmp_path / "secret.stl"


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
def test_unreadable_meshes_are_findings(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    read = load(tmp_path / "r.urdf", name)
    assert mesh_of(read).file is None
    assert reason in read.warnings[0].message
    assert str(read.warnings[0]).startswith(f"{tmp_path / 'r.urdf'}:1: mesh")


def test_readable_meshes_give_no_finding(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(b"\x00" * 80 + b"\x01\x00\x00\x00" + b"\x00" * 50)
    (tmp_path / "b.STL").write_bytes(b"solid\n")
    (tmp_path / "c.dae").write_bytes(b"\xef\xbb\xbf<?xml?>")
    (tmp_path / "d.obj").write_bytes(b"# obj")
    (tmp_path / "e.glb").write_bytes(b"glTF")
    for file in tmp_path.iterdir():
        if file.suffix != ".urdf":
            assert mesh_of(load(tmp_path / "r.urdf", file.name)).file == file


# -- includes ----------------------------------------------------------------------------------------------------------
TABLE = sdf_model(
    '<pose>0 0 9 0 0 0</pose><link name="top"><pose>0 0 1 0 0 0</pose></link><frame name="f" attached_to="top"/>'
)


def include(uri: str, more: str = "", attributes: str = "") -> str:
    return f"<include{attributes}><uri>{uri}</uri>{more}</include>"


def test_models_are_found_in_parent_folders(tmp_path: Path) -> None:
    """A world in ``worlds/`` finds ``models/`` beside that folder, by every way to write it."""
    database(tmp_path / "models", "table", TABLE)
    (tmp_path / "worlds").mkdir()
    file = tmp_path / "worlds" / "w.world"
    for uri in ("model://table", "table", "../models/table", "../models/table/model.sdf", "model://table/model.sdf"):
        file.write_text(sdf_world(include(uri)))
        read = load_world(file)
        assert [placed.name for placed in read.models] == ["m"], uri
        assert read.models[0].T_world_model.xyz[2] == 9.0
        assert read.models[0].model.source == tmp_path / "models" / "table" / "model.sdf"
        assert not read.warnings


def test_include_overrides_name_pose_and_static(tmp_path: Path) -> None:
    database(tmp_path, "table", TABLE)
    more = "<name>desk</name><pose>1 2 3 0 0 0</pose><static>true</static><plugin name='p' filename='q'/>"
    placed = load_world(sdf_world(include("model://table", more)), search=[tmp_path]).models[0]
    assert (placed.name, placed.model.name, placed.model.static) == ("desk", "desk", True)
    assert placed.T_world_model.xyz.tolist() == [1.0, 2.0, 3.0]
    assert [plugin.name for plugin in placed.model.plugins] == ["p"]


def test_placement_frame_places_the_model(tmp_path: Path) -> None:
    """The pose is that of the named frame: the model's origin lies below it."""
    database(tmp_path, "table", TABLE)
    for frame in ("f", "top"):
        more = f"<pose>0 0 5 0 0 0</pose><placement_frame>{frame}</placement_frame>"
        placed = load_world(sdf_world(include("model://table", more)), search=[tmp_path]).models[0]
        assert placed.T_world_model.xyz.tolist() == [0.0, 0.0, 4.0]
    with pytest.raises(DescriptionError, match="placement_frame 'x' is not in model 'm'"):
        load_world(sdf_world(include("model://table", "<placement_frame>x</placement_frame>")), search=[tmp_path])


def test_nested_includes_are_read(tmp_path: Path) -> None:
    database(tmp_path, "table", TABLE)
    lidar = sdf_model('<link name="l"><sensor name="s" type="ray"><topic>scan</topic></sensor></link>')
    database(tmp_path, "lidar", lidar)
    read = load_model(
        sdf_model(
            include("model://table", "<name>t</name><pose>1 0 0 0 0 0</pose>")
            + include("model://lidar", '<name>eye</name><pose relative_to="t::f">0 0 0.5 0 0 0</pose>')
            + '<joint name="j" type="fixed"><parent>t::f</parent><child>eye::l</child></joint>'
        ),
        search=[tmp_path],
    )
    assert [link.name for link in read.links] == ["t::top", "eye::l"]
    assert read.canonical_link == "t::top"
    assert read.link("eye::l").T_model_link.xyz.tolist() == [1.0, 0.0, 1.5]
    assert (read.joint("j").parent, read.joint("j").child) == ("t::top", "eye::l")
    assert [(one.name, one.link, one.topic, one.frame) for one in read.sensors] == [
        ("eye::s", "eye::l", "scan", "eye::l")
    ]
    assert {frame.name for frame in read.frames} == {"t::f", "t::__model__", "eye::__model__"}


def test_urdf_can_be_included_in_a_world(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(urdf('<link name="a"/>', name="rob"))
    placed = load_world(sdf_world(include("r.urdf", "<pose>1 0 0 0 0 0</pose>")), search=[tmp_path]).models[0]
    assert (placed.name, placed.T_world_model.x, [link.name for link in placed.model.links]) == ("rob", 1.0, ["a"])


def test_merged_include_joins_the_model(tmp_path: Path) -> None:
    """Merged parts lose no place: the same poses as nested, but under their own names."""
    inside = (
        '<link name="b"><pose>0 0 1 0 0 0</pose></link><link name="c"><pose relative_to="b">1 0 0 0 0 0</pose></link>'
        '<frame name="g"><pose>0 0 3 0 0 0</pose></frame>'
        '<joint name="k" type="fixed"><parent>b</parent><child>c</child></joint>'
    )
    database(tmp_path, "part", sdf_model(inside))
    more = "<pose>1 2 3 0 0 1</pose>"
    joint = '<link name="a"/><joint name="j" type="fixed"><parent>a</parent><child>{}</child></joint>'
    merged = load_model(
        sdf_model(include("model://part", more, ' merge="true"') + joint.format("b")), search=[tmp_path]
    )
    nested = load_model(sdf_model(include("model://part", more) + joint.format("m::b")), search=[tmp_path])
    assert {link.name for link in merged.links} == {"a", "b", "c"}
    for link in merged.links:
        other = nested.link(link.name if link.name == "a" else f"m::{link.name}")
        assert link.T_model_link.almost_equal(other.T_model_link, 1e-12)
    places = {frame.name: frame for frame in merged.frames}
    assert places["g"].T_link_frame.almost_equal(next(f for f in nested.frames if f.name == "m::g").T_link_frame, 1e-12)


def test_cyclic_includes_are_refused(tmp_path: Path) -> None:
    database(tmp_path, "one", sdf_model('<link name="l"/>' + include("model://two")))
    database(tmp_path, "two", sdf_model('<link name="l"/>' + include("model://one")))
    with pytest.raises(DescriptionError, match="include each other in a circle"):
        load_model(tmp_path / "one" / "model.sdf", search=[tmp_path])


@pytest.mark.slow
def test_number_of_includes_is_bounded(tmp_path: Path) -> None:
    """Ten includes in each of nine files would be a thousand million models."""
    for i in range(9):
        inside = "".join(include(f"model://m{i + 1}", f"<name>n{k}</name>") for k in range(10))
        database(tmp_path, f"m{i}", sdf_model('<link name="l"/>' + inside))
    database(tmp_path, "m9", sdf_model('<link name="l"/>'))
    with pytest.raises(DescriptionError, match="includes too much"):
        load_model(tmp_path / "m0" / "model.sdf", search=[tmp_path])


def test_missing_include_is_a_marked_placeholder() -> None:
    for uri in ("model://nowhere", "https://fuel.gazebosim.org/1.0/OpenRobotics/models/Drill", "nothing.sdf"):
        read = load_world(sdf_world(include(uri, "<pose>1 0 0 0 0 0</pose>")))
        (placed,) = read.models
        (link,) = placed.model.links
        assert link.name == link.visuals[0].material.name == "placeholder"
        assert link.collisions == ()
        assert placed.model.static
        assert placed.T_world_model.x == 1.0
        assert "a placeholder stands for it" in read.warnings[0].message


def test_missing_part_of_a_model_is_a_fixed_placeholder() -> None:
    joint = '<joint name="j" type="fixed"><parent>a</parent><child>arm::hand</child></joint>'
    read = load_model(sdf_model(f'<link name="a"/>{include("model://arm")}{joint}'))
    assert [link.name for link in read.links] == ["a", "arm::placeholder"]
    assert [(one.type, one.parent, one.child) for one in read.joints] == [("fixed", "a", "arm::placeholder")]
    assert read.mass == 1.0
    assert any("joint 'j' leads to a model that is not there" in finding.message for finding in read.warnings)


@pytest.mark.parametrize("server", ["https://fuel.gazebosim.org/1.0/OpenRobotics/models/", "model://"])
def test_sun_and_ground_are_built_in(server: str) -> None:
    space = " " if server.startswith("http") else "_"
    read = load_world(sdf_world(include(f"{server}Sun") + include(f"{server}Ground{space}Plane".lower())))
    assert [light.type for light in read.lights] == ["directional"]
    assert [placed.name for placed in read.models] == ["ground_plane"]
    assert read.models[0].model.static
    assert not read.warnings


def test_faulty_included_file_is_named(tmp_path: Path) -> None:
    home = database(tmp_path, "bad", sdf_model('<link name="l">\n<inertial><mass>-1</mass></inertial></link>'))
    with pytest.raises(DescriptionError) as caught:
        load_world(sdf_world(include("model://bad")), search=[tmp_path])
    assert str(caught.value).startswith(f"{home / 'model.sdf'}:2: link 'l'")


def test_packages_are_found_anywhere_in_the_workspace(tmp_path: Path) -> None:
    """An unbuilt workspace: the folders of several repositories under src, packages at any depth, none beyond."""
    home = package(tmp_path / "src" / "repo_a" / "robot_description", "robot_description")
    far = package(tmp_path / "src" / "repo_b" / "deep" / "grip_files", "gripper")
    package(tmp_path / "other" / "secret", "secret")
    file = home / "urdf" / "r.urdf"
    assert mesh_of(load(file, "package://gripper/meshes/part.stl")).file == far / "meshes" / "part.stl"
    assert mesh_of(load(file, "package://secret/meshes/part.stl")).file is None


def test_packages_installed_separately_are_found(tmp_path: Path) -> None:
    """``install/a/share/a`` finds ``install/b/share/b``, as colcon lays them."""
    home = package(tmp_path / "install" / "robot" / "share" / "robot", "robot")
    other = package(tmp_path / "install" / "hand" / "share" / "hand", "hand")
    found = load(home / "urdf" / "r.urdf", "package://hand/meshes/part.stl")
    assert mesh_of(found).file == other / "meshes" / "part.stl"


def test_too_long_file_name_is_not_found(tmp_path: Path) -> None:
    home = package(tmp_path / "src" / "robot", "robot")
    resources = Resources([tmp_path], {})
    assert resources.find_package("x" * 1000, home / "urdf" / "r.urdf") is None
    assert resources.resolve(f"package://{'x' * 1000}/a.stl", home / "urdf" / "r.urdf").path is None
