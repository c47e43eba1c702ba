"""Repair: an invalid description loads as a valid model, and each change is listed with its location."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.descriptions import INERTIAL, check_model, sdf_model, urdf

from roboyard.description import Box, LidarSpec, Model, diagnose_model, diagnose_world, load_model, load_world
from roboyard.description.inertia import (
    equivalent_inertia_box,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

BASE_LINK = f'<link name="base">{INERTIAL}</link>'


def write_inertial(mass: float, xx: float, yy: float, zz: float) -> str:
    return f'<inertial><mass value="{mass}"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}"/></inertial>'


def write_joint(child: str, content: str = "", kind: str = "continuous", parent: str = "base", name: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name or "to_" + child}" type="{kind}">{ends}{content}</joint>'


def write_link(content: str, name: str = "l") -> str:
    return f'<link name="{name}">{content}</link>'


FAULTS = {
    "negative mass": (
        BASE_LINK + write_link(write_inertial(-2, 1, 1, 1)) + write_joint("l"),
        "link 'l' has mass -2 kg",
        "2 kg is used",
    ),
    "no mass": (write_link(write_inertial(0, 0, 0, 0)), "mass 0 kg", "massless frame"),
    "mass missing": (
        BASE_LINK
        + write_link('<inertial><inertia ixx="1" iyy="1" izz="1"/></inertial>')
        + write_joint("l", kind="fixed"),
        "without <mass>",
        "massless frame",
    ),
    "inertia missing": (
        BASE_LINK + write_link('<inertial><mass value="1"/></inertial>') + write_joint("l"),
        "without <inertia>",
        "ball",
    ),
    "no inertia": (
        BASE_LINK + write_link(write_inertial(2, 0, 0, 0)) + write_joint("l"),
        "not positive definite",
        "of a ball",
    ),
    "triangle": (
        BASE_LINK + write_link(write_inertial(2, 0.01, 0.01, 0.1)) + write_joint("l"),
        "impossible",
        "raised to 0.05 and 0.05",
    ),
    "massless": (
        BASE_LINK + write_link("") + write_joint("l"),
        "link 'l' moves but has no mass",
        "joint 'to_l' becomes fixed",
    ),
    "limits": (
        BASE_LINK + write_link(INERTIAL) + write_joint("l", '<limit lower="2" upper="-1"/>', "revolute"),
        "lower limit 2",
        "swapped",
    ),
    "effort": (
        BASE_LINK + write_link(INERTIAL) + write_joint("l", '<limit lower="-1" upper="1" effort="-5"/>', "revolute"),
        "effort limit -5",
        "5 is used",
    ),
    "axis": (
        BASE_LINK + write_link(INERTIAL) + write_joint("l", '<axis xyz="0 0 0"/>'),
        "axis of joint 'to_l'",
        "x is used",
    ),
    "mimic": (
        BASE_LINK + write_link(INERTIAL) + write_joint("l", '<mimic joint="nobody"/>'),
        "unknown joint 'nobody'",
        "independent",
    ),
    "parent": (
        BASE_LINK + write_joint("base", kind="fixed", parent="nowhere"),
        "unknown parent link 'nowhere'",
        "removed",
    ),
    "mesh": (
        write_link(INERTIAL + '<collision><geometry><mesh filename="no.stl"/></geometry></collision>'),
        "collision mesh 'no.stl' of link 'l' is missing",
        "box of 0.775 × 0.775 × 0.775 m",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_urdf_faults_are_repaired(fault: str) -> None:
    text, problem, action = FAULTS[fault]
    if fault not in ("massless", "mesh"):  # these two cause a warning without repair
        with pytest.raises(DescriptionError) as caught:
            load_model(urdf(text))
        assert problem in caught.value.message
        assert caught.value.location
    repaired = load_model(urdf(text), repair=True)
    check_model(repaired)
    (repair_record,) = repaired.repairs
    assert problem in repair_record.problem
    assert action in repair_record.action
    assert (repair_record.file, repair_record.line) == ("<text>", 1)
    assert repair_record.error_text.startswith("<text>:1: ")


def test_valid_file_is_not_repaired() -> None:
    text = urdf(BASE_LINK + write_link(INERTIAL) + write_joint("l"))
    assert load_model(text, repair=True) == load_model(text)


def test_every_fault_is_listed() -> None:
    text = BASE_LINK + "".join(
        write_link(write_inertial(1, 0.01, 0.01, 0.1), f"l{i}") + write_joint(f"l{i}", '<axis xyz="0 0 0"/>')
        for i in range(5)
    )
    assert len(load_model(urdf(text), repair=True).repairs) == 10


def test_repaired_inertia_is_that_of_the_shapes() -> None:
    """A link with a mass but without a valid inertia gets the inertia of its shapes."""
    shape = '<collision><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry></collision>'
    repaired_inertial = load_model(urdf(write_link(write_inertial(6, 0, 0, 0) + shape)), repair=True).links[0].inertial
    assert repaired_inertial is not None
    assert repaired_inertial.mass == 6.0
    assert np.allclose(repaired_inertial.inertia, (6.5, 5.0, 2.5, 0, 0, 0))  # m (b² + c²) / 12


def test_fixed_link_without_mass_becomes_a_frame() -> None:
    """Many files describe frames as links with zero mass; a movable link requires a mass."""
    massless = write_link(write_inertial(0, 0, 0, 0))
    model = load_model(urdf(BASE_LINK + massless + write_joint("l", kind="fixed")))
    assert model.link("l").inertial is None
    assert any("link 'l' has mass 0 kg: treated as a massless frame" in warning.message for warning in model.warnings)
    with pytest.raises(DescriptionError, match="link 'l' has mass 0 kg"):
        load_model(urdf(BASE_LINK + massless + write_joint("l")))
    (repair_record,) = load_model(urdf(BASE_LINK + massless + write_joint("l")), repair=True).repairs
    assert "moves but has no mass" in repair_record.problem


def test_massless_link_with_shapes_gets_their_mass() -> None:
    shape = '<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
    repaired = load_model(urdf(BASE_LINK + write_link(shape) + write_joint("l")), repair=True)
    assert repaired.joints[0].type == "continuous"
    assert repaired.link("l").inertial is not None
    assert repaired.mass == pytest.approx(1.0 + 6.0)


def test_massless_link_between_two_joints_keeps_its_joints() -> None:
    text = (
        BASE_LINK
        + write_link("", "cross")
        + write_link(INERTIAL, "tip")
        + write_joint("cross")
        + write_joint("tip", parent="cross")
    )
    repaired = load_model(urdf(text), repair=True)
    assert [joint.type for joint in repaired.joints] == ["continuous", "continuous"]
    assert repaired.mass == 2.0
    assert "the engine gives it" in repaired.repairs[0].action


SDF_FAULTS = (
    '<link name="{}"><inertial><mass>heavy</mass></inertial></link>',
    '<link name="{}"><collision name="c"><geometry><sphere><radius>-1</radius></sphere></geometry></collision></link>',
    '<joint name="{}" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 up 1</xyz></axis></joint>',
)


@given(st.lists(st.sampled_from(SDF_FAULTS), min_size=1, max_size=5))
def test_all_faults_of_an_sdf_model_are_found(faults: list[str]) -> None:
    """Each fault is found at its line; a joint to a link with a fault is no fault."""
    parts = [fault.format(f"p{index}") for index, fault in enumerate(faults)]
    lines = ['<link name="a"/><link name="b"/>', *parts]
    if parts[0].startswith("<link"):
        lines.append('<joint name="j" type="ball"><parent>a</parent><child>p0</child></joint>')
    errors, repairs = diagnose_model(sdf_model("\n".join(lines)))
    assert not repairs
    assert find_lines(errors) == list(range(2, 2 + len(parts)))
    with pytest.raises(DescriptionError):
        load_model(sdf_model("\n".join(lines)))


def find_lines(faults: Sequence[DescriptionError]) -> list[int]:
    return sorted(int(str(fault.location).rpartition(":")[2].partition(",")[0]) for fault in faults)


NESTED_FAULTS = (
    '<model name="{}"><link name="l"><inertial><mass>heavy</mass></inertial></link></model>',
    '<model name="{}"><link name="l"/><model name="in"><link name="l"><pose>1 2</pose></link></model></model>',
    '<model name="{}"><link name="l"/><joint name="j" type="x"><parent>world</parent><child>l</child></joint></model>',
    "<include><name>{}</name><uri>part.sdf</uri></include>",
    '<model name="{}"><link name="l"/></model><frame name="to_{}" attached_to="nothing"/>',
)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(NESTED_FAULTS), min_size=1, max_size=5), st.sampled_from(["model", "world"]))
def test_all_faults_of_nested_and_included_models_are_found(
    tmp_path_factory: pytest.TempPathFactory, faults: list[str], root_tag: str
) -> None:
    """Each fault is found once, in its file; an element that refers to a model with a fault is no fault."""
    folder = tmp_path_factory.mktemp("nested")
    part = (
        '<sdf version="1.9">\n<model name="p"><link name="l"><inertial><mass>-x</mass></inertial></link></model></sdf>'
    )
    (folder / "part.sdf").write_text(part)
    parts = [fault.format(f"p{index}", f"p{index}") for index, fault in enumerate(faults)]
    joint = '<joint name="k" type="ball"><parent>b::l</parent><child>p0::l</child></joint>'
    dependent_elements = joint + '<frame name="f" attached_to="p0::l"/>'
    lines = ['<model name="b"><link name="l"/></model>', *parts, dependent_elements]
    file = folder / "whole.sdf"
    file.write_text(f'<sdf version="1.9"><{root_tag} name="w">' + "\n".join(lines) + f"</{root_tag}></sdf>")
    errors, _ = (diagnose_model if root_tag == "model" else diagnose_world)(file)
    outer_faults = [fault for fault in errors if str(fault.location).startswith(str(file))]
    inner_locations = {str(fault.location) for fault in errors} - {str(fault.location) for fault in outer_faults}
    assert inner_locations == ({f"{folder / 'part.sdf'}:2"} if NESTED_FAULTS[3] in faults else set())
    assert find_lines(outer_faults) == [line for line, fault in enumerate(faults, 2) if fault != NESTED_FAULTS[3]]


def test_joints_to_a_missing_model_are_omitted() -> None:
    text = """<sdf version="1.9"><world name="w">
      <include><uri>model://nowhere</uri><name>n</name><placement_frame>x</placement_frame></include>
      <model name="b"><pose relative_to="n::hand">0 0 1 0 0 0</pose><link name="l"/></model>
      <joint name="j" type="ball"><parent>n::hand</parent><child>b::l</child></joint>
      <frame name="f" attached_to="n::hand"/></world></sdf>"""
    world = load_world(text)
    assert [placed.name for placed in world.models] == ["n", "b"]
    assert world.models[1].T_world_model.z == 1.0
    assert not world.joints
    assert [warning.line for warning in world.warnings] == [2, 4]


MJCF_FAULTS = (
    '<geom size="0.1" siz="1"/>',
    '<geom name="{}" size="-1"/>',
    '<body><joint axis="0 0 0"/><geom size="0.1"/></body>',
    '<body name="{}"><joint/><geom size="0.1"/><body name="b{}"><joint/></body></body>',
    '<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/></body>',
    '<geom size="0.1" class="nothing"/>',
)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(MJCF_FAULTS), min_size=1, max_size=5))
def test_all_faults_of_an_mjcf_file_are_found(faults: list[str]) -> None:
    """Each fault is found at its line; a motor of a removed joint or a body without its removed geom is no fault."""
    parts = [fault.format(f"p{index}", f"p{index}") for index, fault in enumerate(faults)]
    last_body = '<body name="last"><joint name="j" type="hing"/>\n<geom size="-1"/></body></worldbody>'
    text = "<mujoco><worldbody>\n" + "\n".join([*parts, last_body]) + '<actuator><motor joint="j"/></actuator></mujoco>'
    for diagnose in (diagnose_model, diagnose_world):
        errors, _ = diagnose(text)
        assert find_lines(errors) == list(range(2, 4 + len(parts)))


def test_sdf_faults_are_repaired() -> None:
    invalid_inertial = "<inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>1</izz></inertia></inertial>"
    text = sdf_model(f'<link name="a">{invalid_inertial}</link>')
    with pytest.raises(DescriptionError, match="physically impossible inertia"):
        load_model(text)
    repaired = load_model(text, repair=True)
    check_model(repaired)
    assert len(repaired.repairs) == 1
    static = load_model(sdf_model(f'<static>1</static><link name="a">{invalid_inertial}</link>'), repair=True)
    assert not static.repairs, "inertia of a static model is not used"
    content = text.removeprefix('<sdf version="1.9">').removesuffix("</sdf>")
    assert len(load_world(f'<sdf version="1.9"><world name="w">{content}</world></sdf>', repair=True).repairs) == 1
    shape = "<geometry><mesh><uri>no.stl</uri><scale>2</scale></mesh></geometry>"
    scaled = load_model(sdf_model(f'<link name="a"><visual name="v">{shape}</visual></link>'), repair=True)
    assert scaled.links[0].visuals[0].geometry.scale == (2.0, 2.0, 2.0)  # type: ignore[union-attr]
    assert len(scaled.repairs) == 1
    repeated_model = '<model name="n"><link name="l"/></model>'
    renamed = load_model(sdf_model('<link name="a"/>' + 3 * repeated_model), repair=True)
    assert [item.name for item in renamed.links] == ["a", "n::l", "n_1::l", "n_2::l"]
    world = load_world(f'<sdf version="1.9"><world name="w">{2 * repeated_model}</world></sdf>', repair=True)
    assert [item.name for item in world.models] == ["n", "n_1"]
    self_joint = sdf_model(
        '<link name="a"/><link name="b"/><joint name="j" type="fixed"><parent>a</parent><child>a</child></joint>'
    )
    with pytest.raises(DescriptionError, match="to itself"):
        load_model(self_joint)
    assert "removed" in load_model(self_joint, repair=True).repairs[0].action


@given(st.tuples(*[st.floats(0.01, 2.0)] * 3), st.floats(0.01, 100.0), st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_equivalent_box_has_mass_and_inertia(
    size: tuple[float, float, float], mass: float, rpy: tuple[float, float, float]
) -> None:
    """The equivalent box of the inertia of a uniform box has the edges of that box in some order."""
    T_link_com = SE3.from_xyz_rpy((0.1, 0.2, 0.3), rpy)
    box = f'<collision><origin xyz="0 0 0"/><geometry><box size="{" ".join(map(str, size))}"/></geometry></collision>'
    box_inertial = load_model(urdf(write_link(write_inertial(mass, 0, 0, 0) + box)), repair=True).links[0].inertial
    assert box_inertial is not None
    equivalent = equivalent_inertia_box(type(box_inertial)(mass, T_link_com, box_inertial.inertia))
    assert equivalent is not None
    assert isinstance(equivalent[0], Box)
    assert sorted(equivalent[0].size) == pytest.approx(sorted(size), rel=1e-6)
    R = (T_link_com.inverse() @ equivalent[1]).rotation_matrix()
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_external_robots_are_repaired(external_data: Path) -> None:
    """External robots that are refused because of their inertia load with repair and keep their mass."""
    folder = external_data / "descriptions"
    if not folder.is_dir():
        pytest.skip("ROBOYARD_DATA has no folder 'descriptions'")
    for name, mass in (
        ("pr2/pr2_description/robots/pr2_no_arms.expanded.urdf", 183.7153),
        ("baxter/baxter_description/urdf/baxter.expanded.urdf", 137.3326),
        ("gz_ros2_control_demos/gz_ros2_control_demos/urdf/test_ackermann_drive.xacro.expanded.urdf", 9.2),
    ):
        path = folder / name
        with pytest.raises(DescriptionError, match="link '.*' has an? .*inertia"):
            load_model(path, search=[folder])
        repaired: Model = load_model(path, search=[folder], repair=True)
        check_model(repaired)
        assert repaired.repairs
        assert repaired.mass == pytest.approx(mass, rel=1e-3)


def test_reversed_lidar_angles_are_repaired() -> None:
    text = """<sdf version="1.6"><model name="m"><link name="l"><sensor name="s" type="ray"><ray><scan><vertical>
      <samples>16</samples><min_angle>-0.1</min_angle><max_angle>-0.35</max_angle></vertical></scan></ray></sensor>
      </link></model></sdf>"""
    with pytest.raises(DescriptionError, match="16 samples from -0.1 to -0.35 rad"):
        load_model(text)
    repaired = load_model(text, repair=True)
    spec = repaired.sensors[0].spec
    assert isinstance(spec, LidarSpec)
    assert (spec.vertical_angle_min, spec.vertical_angle_max) == (-0.35, -0.1)
    assert len(repaired.repairs) == 1
    assert "are swapped" in str(repaired.repairs[0])
