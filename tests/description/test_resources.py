"""URIs resolve to the files that ROS and Gazebo would find, and never to files outside the allowed folders."""

from pathlib import Path

import pytest
from tests.description.resource_folders import STL, make_model_folder, make_package
from tests.harness.descriptions import urdf

from roboyard.description import Mesh, Model, Resources, load_model

LINK = '<link name="a"><visual name="v"><geometry><mesh filename="{}"/></geometry></visual></link>'


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
    assert "found in the folder 'description'" in model.warnings[0].message


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
    assert "outside the allowed folders" in model.warnings[0].message
    model_with_search = load_with_uri(package_folder / "urdf" / "r.urdf", "../../secret.stl", search=[tmp_path])
    assert find_mesh(model_with_search).file == tmp_path / "secret.stl"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.stl", b"", "empty"),
        ("a.stl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS"),
        ("a.stl", b"\x00" * 80 + b"\xff\xff\xff\x00" + b"\x00" * 100, "truncated"),
        ("a.stl", b"nonsense", "not a valid STL"),
        ("a.dae", b"not xml", "not a valid dae"),
        ("a.glb", b"<xml/>", "not a valid glb"),
        ("a.step", b"ISO-10303", "unsupported mesh format"),
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
