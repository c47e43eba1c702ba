"""External robots and worlds are read as other tools read them, or refused with the reason of the fault."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.harness.descriptions import check_model
from tests.harness.profiles import sample_count

from roboyard.description import LidarSpec, Model, World, load_model, load_world
from roboyard.description.reader_context import ReaderContext
from roboyard.description.resources import Resources
from roboyard.description.xacro import expand
from roboyard.description.xml import XmlNode, parse_xml
from roboyard.errors import DescriptionError

FILES = (".urdf", ".xacro", ".sdf", ".world")


@pytest.fixture(scope="module")
def folder(external_data: Path) -> Path:
    """The folder of external robots and worlds."""
    descriptions = external_data / "descriptions"
    if not descriptions.is_dir():
        pytest.skip("ROBOYARD_DATA has no folder 'descriptions'")
    return descriptions


def find_burger(folder: Path) -> Path:
    return folder / "turtlebot3_burger"


# -- the TurtleBot3 ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["model.sdf", "model-1_4.sdf"])
def test_turtlebot_burger_is_read_from_sdf(folder: Path, name: str) -> None:
    model = load_model(find_burger(folder) / "turtlebot3_gazebo" / "models" / "turtlebot3_burger" / name)
    check_model(model)
    assert {link.name for link in model.links} >= {"base_footprint", "base_link", "wheel_left_link", "base_scan"}
    assert [root.name for root in model.roots] == ["base_footprint"]
    assert {joint.name: joint.type for joint in model.joints}["caster_back_joint"] == "ball"
    lidar = next(sensor for sensor in model.sensors if sensor.kind == "lidar")
    assert isinstance(lidar.spec, LidarSpec)
    assert (lidar.spec.samples, lidar.spec.range_max, lidar.topic, lidar.update_rate) == (360, 3.5, "scan", 5.0)
    assert any(sensor.kind == "imu" and sensor.update_rate == 200.0 for sensor in model.sensors)
    assert any("diff" in plugin.filename for plugin in model.plugins)
    for joint in ("wheel_left_joint", "wheel_right_joint"):
        T_child_joint = model.joint(joint).T_child_joint
        assert np.allclose(np.abs(T_child_joint.xyz), (0, 0.08, 0.023))


def test_turtlebot_burger_is_read_from_urdf(folder: Path) -> None:
    """The xacro document and the URDF that ROS expanded from it describe the same robot."""
    urdf = find_burger(folder) / "turtlebot3_description" / "urdf"
    model = load_model(urdf / "turtlebot3_burger.urdf")
    expanded_model = load_model(urdf / "turtlebot3_burger.expanded.urdf")
    check_model(model)
    assert model.mass == pytest.approx(expanded_model.mass) == pytest.approx(1.00173292)
    assert [link.name for link in model.links] == [link.name for link in expanded_model.links]
    for a, b in zip(model.links, expanded_model.links, strict=True):
        assert a.T_model_link.almost_equal(b.T_model_link, 1e-12)
        assert a.inertial is None or a.inertial.inertia == b.inertial.inertia  # type: ignore[union-attr]
    prefixed = load_model(urdf / "turtlebot3_burger.urdf", arguments={"namespace": "tb3_"})
    assert prefixed.roots[0].name == "tb3_base_footprint"


def test_turtlebot_world_is_read(folder: Path) -> None:
    path = folder / "turtlebot3_worlds_a" / "turtlebot3_gazebo" / "worlds" / "turtlebot3_world.world"
    world = load_world(path)
    assert [placed.name for placed in world.models] == ["ground_plane", "turtlebot3_world"]
    assert all(placed.model.static for placed in world.models)
    assert [light.name for light in world.lights] == ["sun"]
    assert world.physics.max_step_size == 0.001
    (link,) = world.models[1].model.links
    assert len(link.collisions) == 15
    assert sum(type(collision.geometry).__name__ == "Cylinder" for collision in link.collisions) == 9
    assert not any("placeholder" in warning.message for warning in world.warnings)


# -- comparison with other tools ---------------------------------------------------------------------------------------
XACRO_ARGUMENTS = {
    "a1/a1_description/xacro/robot": {"DEBUG": "false"},
    "franka/franka_description/robots/fr3/fr3": {"hand": "true"},
    "franka/franka_description/robots/panda/panda": {"hand": "true", "gazebo": "true"},
    "ur5e/ur_description/urdf/ur": {"name": "ur", "ur_type": "ur5e"},
    "ur5e/ur_description/urdf/ur_mocked": {"name": "ur", "ur_type": "ur5e"},
}


def find_expanded_documents(folder: Path) -> list[tuple[Path, Path]]:
    """Return pairs of a xacro document and the URDF that xacro of ROS expanded from it."""
    pairs = []
    for expanded in sorted(folder.rglob("*.expanded.urdf")):
        stem = expanded.name.removesuffix(".expanded.urdf")
        for name in (f"{stem}.urdf.xacro", f"{stem}.xacro", f"{stem}.urdf"):
            if (expanded.parent / name).is_file():
                pairs.append((expanded.parent / name, expanded))
                break
    return pairs


def find_differences(a: XmlNode, b: XmlNode) -> list[str]:
    """Return the differences of two documents; numbers are compared by value, packages by their last folders."""
    if a.tag != b.tag:
        return [f"{a.location}: <{a.tag}> is not <{b.tag}>"]
    result: list[str] = []
    result += [
        f"{a.location}: {key} {a.get(key)!r} is not {b.get(key)!r}"
        for key in sorted({*a.attributes, *b.attributes})
        if not key.startswith("xmlns") and not is_equal_text(a.get(key), b.get(key))
    ]
    if not is_equal_text(a.text, b.text):
        result.append(f"{a.location}: {a.text!r} is not {b.text!r}")
    if len(a.children) != len(b.children):
        return [*result, f"{a.location}: {len(a.children)} elements are not {len(b.children)}"]
    for x, y in zip(a.children, b.children, strict=True):
        result += find_differences(x, y)
    return result


def is_equal_text(a: str, b: str) -> bool:
    if a.split() == b.split():
        return True
    try:
        return np.allclose([float(word) for word in a.split()], [float(word) for word in b.split()], atol=1e-12)
    except ValueError:
        return a.split("/")[-2:] == b.split("/")[-2:]  # the folder of a package may differ


def test_xacro_agrees_with_ros(folder: Path) -> None:
    pairs = find_expanded_documents(folder)
    assert len(pairs) > 25
    all_differences = []
    for source, expanded in pairs:
        key = str(source.relative_to(folder)).removesuffix(".xacro").removesuffix(".urdf")
        root, _ = parse_xml(source.read_bytes(), str(source))
        expanded_root = expand(ReaderContext(Resources([folder])), root, XACRO_ARGUMENTS.get(key, {}), {})
        reference_root, _ = parse_xml(expanded.read_bytes(), str(expanded))
        all_differences += find_differences(expanded_root, reference_root)[:3]
    assert not all_differences


def test_masses_and_links_agree_with_the_reference(folder: Path) -> None:
    """Masses agree within 0.1 % with Debian's libraries; a link named "world" is the world, not a body."""
    reference = json.loads((folder / "urdf_reference.json").read_text())
    loaded, rejected = 0, {}
    for key, expected in reference.items():
        path = folder / key.removeprefix("dev/")
        try:
            model = load_model(path, search=[folder])
        except DescriptionError as error:
            rejected[path.name] = error.message
            continue
        loaded += 1
        check_model(model)
        if expected.get("urdf_mass") is not None:
            assert model.mass == pytest.approx(expected["urdf_mass"], rel=1e-3), path
            worlds = any(joint.parent == "world" for joint in model.joints)
            assert len(model.links) + worlds == expected["urdf_links"], path
    assert loaded >= 55
    reasons = ("inertia", "unknown parent link", "no link", "no robot", "unknown macro")
    assert not {name: message for name, message in rejected.items() if not any(reason in message for reason in reasons)}


# The check of libsdformat differs where its test expects more than the file states, or where the file itself is valid.
EXPLAINED_DIFFERENCES = {
    "sdf/material_normal_map_missing.sdf": "normal maps have no effect here",
    "sdf/joint_axis_invalid_expressed_in.sdf": "a wrong expressed_in is refused here",
    "sdf/root_multiple_models.sdf": "the first model is read, a warning names the others, as in Gazebo",
    "sdf/includes_missing_model.sdf": "a placeholder",
    "sdf/resolve_uris.sdf": "a placeholder",
    "sdf/world_include_with_interface_api.sdf": "a placeholder",
    "sdf/model_include_with_interface_api.sdf": "a placeholder",
    "sdf/merge_include_with_interface_api_reposture.sdf": "a placeholder",
    "sdf/model_link_joint_same_name.sdf": "names may be shared before SDF 1.7; a warning names them",
    "sdf/world_model_frame_same_name_1_6.sdf": "names may be shared before SDF 1.7; a warning names them",
    "sdf/world_joint_invalid_child_world.sdf": "joints of worlds are read here, and this one is invalid",
    "sdf/world_joint_invalid_resolved_parent_same_as_child.sdf": "joints of worlds are read here; it is invalid",
    "sdf/world_sibling_same_names.sdf": "names may be shared before SDF 1.7; no element refers to a light",
    "sdf/model_invalid_top_level_frame.sdf": "a warning names the element without effect",
    "sdf/joint_nested_parent_child.sdf": "SDF 1.8 allows references to M1::__model__",
    "integration/merge_include_model.sdf": "SDF 1.9 allows __model__ as the parent of a joint",
    "integration/fixed_joint_reduction_joint_frame_extension.urdf": "links joined at fixed joints keep their names",
    "integration/include_invalid_custom_model.sdf": "a warning names the unsupported element <experimental:params>",
}


def load_any(path: Path, search: Path) -> Model | World:
    try:
        return load_model(path, search=[search])
    except DescriptionError as error:
        if error.valid != "load it as a world":
            raise
        return load_world(path, search=[search])


def test_accepted_documents_agree_with_libsdformat(folder: Path) -> None:
    test_folder = folder / "sdformat_tests"
    references = json.loads((test_folder / "oracle_libsdformat12.json").read_text())
    differing = []
    for name, reference in references.items():
        try:
            load_any(test_folder / name, test_folder)
            result = "ok"
        except DescriptionError:
            result = "error"
        if result != reference["libsdformat12_check"]:
            differing.append(name)
    assert sorted(differing) == sorted(EXPLAINED_DIFFERENCES)


@pytest.mark.slow
def test_every_external_file_is_read_or_refused(folder: Path) -> None:
    """The reader raises no other error, and every model satisfies the invariants of models."""
    n_read = n_rejected = 0
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in FILES]
    count = sample_count(len(paths), 0.3)
    for path in np.random.default_rng(0).choice(np.array(paths), count, replace=False):
        try:
            loaded = load_any(path, folder / path.relative_to(folder).parts[0])
        except DescriptionError as error:
            n_rejected += 1
            assert error.location
            continue
        n_read += 1
        for model in [placed.model for placed in loaded.models] if isinstance(loaded, World) else [loaded]:
            check_model(model, atol=1e-6)
    assert n_read > 500 * count / len(paths)
    assert n_rejected < 250 * count / len(paths)  # most of them contain only macros for other files
