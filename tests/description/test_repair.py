"""Mending: what is refused without it loads with it into a sound model, and every change is listed with its place."""

import math
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
    estimate_inertia,
    inertia_matrix,
    nearest_physical_inertia,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

BASE = f'<link name="base">{INERTIAL}</link>'


def inertial(mass: float, xx: float, yy: float, zz: float) -> str:
    return f'<inertial><mass value="{mass}"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}"/></inertial>'


def joint(child: str, inside: str = "", kind: str = "continuous", parent: str = "base", name: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name or "to_" + child}" type="{kind}">{ends}{inside}</joint>'


def link(inside: str, name: str = "l") -> str:
    return f'<link name="{name}">{inside}</link>'


FAULTS = {
    "negative mass": (BASE + link(inertial(-2, 1, 1, 1)) + joint("l"), "link 'l' has mass -2 kg", "2 kg taken"),
    "no mass": (link(inertial(0, 0, 0, 0)), "mass 0 kg", "mere frame"),
    "mass missing": (
        BASE + link('<inertial><inertia ixx="1" iyy="1" izz="1"/></inertial>') + joint("l", kind="fixed"),
        "without <mass>",
        "mere frame",
    ),
    "inertia missing": (
        BASE + link('<inertial><mass value="1"/></inertial>') + joint("l"),
        "without <inertia>",
        "ball",
    ),
    "no inertia": (BASE + link(inertial(2, 0, 0, 0)) + joint("l"), "not positive definite", "of a ball"),
    "triangle": (BASE + link(inertial(2, 0.01, 0.01, 0.1)) + joint("l"), "that no body has", "raised to 0.05 and 0.05"),
    "massless": (BASE + link("") + joint("l"), "link 'l' moves but has no mass", "joint 'to_l' is fixed"),
    "limits": (
        BASE + link(INERTIAL) + joint("l", '<limit lower="2" upper="-1"/>', "revolute"),
        "lower limit 2",
        "places",
    ),
    "effort": (
        BASE + link(INERTIAL) + joint("l", '<limit lower="-1" upper="1" effort="-5"/>', "revolute"),
        "effort limit -5",
        "5 taken",
    ),
    "axis": (BASE + link(INERTIAL) + joint("l", '<axis xyz="0 0 0"/>'), "axis of joint 'to_l'", "x taken"),
    "mimic": (BASE + link(INERTIAL) + joint("l", '<mimic joint="nobody"/>'), "unknown joint 'nobody'", "by itself"),
    "parent": (BASE + joint("base", kind="fixed", parent="nowhere"), "unknown parent link 'nowhere'", "left out"),
    "mesh": (
        link(INERTIAL + '<collision><geometry><mesh filename="no.stl"/></geometry></collision>'),
        "collision mesh 'no.stl' of link 'l' is missing",
        "box of 0.775 × 0.775 × 0.775 m",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_urdf_faults_are_repaired(fault: str) -> None:
    text, what, done = FAULTS[fault]
    if fault not in ("massless", "mesh"):  # one can live with these: a finding, or a note of the engine
        with pytest.raises(DescriptionError) as refused:
            load_model(urdf(text))
        assert what in refused.value.message
        assert refused.value.location
    mended = load_model(urdf(text), repair=True)
    check_model(mended)
    (mending,) = mended.repairs
    assert what in mending.problem
    assert done in mending.action
    assert (mending.file, mending.line) == ("<text>", 1)
    assert mending.error_text.startswith("<text>:1: ")


def test_valid_file_is_not_repaired() -> None:
    text = urdf(BASE + link(INERTIAL) + joint("l"))
    assert load_model(text, repair=True) == load_model(text)


def test_every_fault_is_listed() -> None:
    text = BASE + "".join(
        link(inertial(1, 0.01, 0.01, 0.1), f"l{i}") + joint(f"l{i}", '<axis xyz="0 0 0"/>') for i in range(5)
    )
    assert len(load_model(urdf(text), repair=True).repairs) == 10


def test_repaired_inertia_is_that_of_the_shapes() -> None:
    """A link that says nothing of use gets what its shapes have, with its own mass."""
    shape = '<collision><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry></collision>'
    mended = load_model(urdf(link(inertial(6, 0, 0, 0) + shape)), repair=True).links[0].inertial
    assert mended is not None
    assert mended.mass == 6.0
    assert np.allclose(mended.inertia, (6.5, 5.0, 2.5, 0, 0, 0))  # m (b² + c²) / 12


def test_fixed_link_without_mass_becomes_a_frame() -> None:
    """As many files write their frames; but what moves needs mass."""
    nothing = link(inertial(0, 0, 0, 0))
    read = load_model(urdf(BASE + nothing + joint("l", kind="fixed")))
    assert read.link("l").inertial is None
    assert any("link 'l' has mass 0 kg: a mere frame" in finding.message for finding in read.warnings)
    with pytest.raises(DescriptionError, match="link 'l' has mass 0 kg"):
        load_model(urdf(BASE + nothing + joint("l")))
    (mending,) = load_model(urdf(BASE + nothing + joint("l")), repair=True).repairs
    assert "moves but has no mass" in mending.problem


def test_massless_link_with_shapes_gets_their_mass() -> None:
    shape = '<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
    mended = load_model(urdf(BASE + link(shape) + joint("l")), repair=True)
    assert mended.joints[0].type == "continuous"
    assert mended.link("l").inertial is not None
    assert mended.mass == pytest.approx(1.0 + 6.0)


def test_massless_cross_keeps_its_joints() -> None:
    text = BASE + link("", "cross") + link(INERTIAL, "tip") + joint("cross") + joint("tip", parent="cross")
    mended = load_model(urdf(text), repair=True)
    assert [one.type for one in mended.joints] == ["continuous", "continuous"]
    assert mended.mass == 2.0
    assert "lends" in mended.repairs[0].action


FAULTY = (
    '<link name="{}"><inertial><mass>heavy</mass></inertial></link>',
    '<link name="{}"><collision name="c"><geometry><sphere><radius>-1</radius></sphere></geometry></collision></link>',
    '<joint name="{}" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 up 1</xyz></axis></joint>',
)


@given(st.lists(st.sampled_from(FAULTY), min_size=1, max_size=5))
def test_all_faults_of_an_sdf_model_are_found(faults: list[str]) -> None:
    """Each where it is, as if it were alone; a joint to a link with a fault is no fault."""
    parts = [fault.format(f"p{index}") for index, fault in enumerate(faults)]
    lines = ['<link name="a"/><link name="b"/>', *parts]
    if parts[0].startswith("<link"):
        lines.append('<joint name="j" type="ball"><parent>a</parent><child>p0</child></joint>')
    found, mendings = diagnose_model(sdf_model("\n".join(lines)))
    assert not mendings
    assert lines_of(found) == list(range(2, 2 + len(parts)))
    with pytest.raises(DescriptionError):
        load_model(sdf_model("\n".join(lines)))


def lines_of(faults: Sequence[DescriptionError]) -> list[int]:
    return sorted(int(str(one.location).rpartition(":")[2].partition(",")[0]) for one in faults)


NESTED = (
    '<model name="{}"><link name="l"><inertial><mass>heavy</mass></inertial></link></model>',
    '<model name="{}"><link name="l"/><model name="in"><link name="l"><pose>1 2</pose></link></model></model>',
    '<model name="{}"><link name="l"/><joint name="j" type="x"><parent>world</parent><child>l</child></joint></model>',
    "<include><name>{}</name><uri>part.sdf</uri></include>",
    '<model name="{}"><link name="l"/></model><frame name="to_{}" attached_to="nothing"/>',
)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(NESTED), min_size=1, max_size=5), st.sampled_from(["model", "world"]))
def test_all_faults_of_nested_and_included_models_are_found(
    tmp_path_factory: pytest.TempPathFactory, faults: list[str], around: str
) -> None:
    """Each once, in the file where it is; what hangs on a model with a fault is no fault."""
    folder = tmp_path_factory.mktemp("nested")
    part = (
        '<sdf version="1.9">\n<model name="p"><link name="l"><inertial><mass>-x</mass></inertial></link></model></sdf>'
    )
    (folder / "part.sdf").write_text(part)
    parts = [fault.format(f"p{index}", f"p{index}") for index, fault in enumerate(faults)]
    joint = '<joint name="k" type="ball"><parent>b::l</parent><child>p0::l</child></joint>'
    hung = joint + '<frame name="f" attached_to="p0::l"/>'
    lines = ['<model name="b"><link name="l"/></model>', *parts, hung]
    file = folder / "whole.sdf"
    file.write_text(f'<sdf version="1.9"><{around} name="w">' + "\n".join(lines) + f"</{around}></sdf>")
    found, _ = (diagnose_model if around == "model" else diagnose_world)(file)
    own = [fault for fault in found if str(fault.location).startswith(str(file))]
    inside = {str(fault.location) for fault in found} - {str(fault.location) for fault in own}
    assert inside == ({f"{folder / 'part.sdf'}:2"} if NESTED[3] in faults else set())
    assert lines_of(own) == [line for line, fault in enumerate(faults, 2) if fault != NESTED[3]]


def test_joints_to_a_missing_model_are_omitted() -> None:
    text = """<sdf version="1.9"><world name="w">
      <include><uri>model://nowhere</uri><name>n</name><placement_frame>x</placement_frame></include>
      <model name="b"><pose relative_to="n::hand">0 0 1 0 0 0</pose><link name="l"/></model>
      <joint name="j" type="ball"><parent>n::hand</parent><child>b::l</child></joint>
      <frame name="f" attached_to="n::hand"/></world></sdf>"""
    world = load_world(text)
    assert [one.name for one in world.models] == ["n", "b"]
    assert world.models[1].T_world_model.z == 1.0
    assert not world.joints
    assert [finding.line for finding in world.warnings] == [2, 4]


MJCF = (
    '<geom size="0.1" siz="1"/>',
    '<geom name="{}" size="-1"/>',
    '<body><joint axis="0 0 0"/><geom size="0.1"/></body>',
    '<body name="{}"><joint/><geom size="0.1"/><body name="b{}"><joint/></body></body>',
    '<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/></body>',
    '<geom size="0.1" class="nothing"/>',
)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(MJCF), min_size=1, max_size=5))
def test_all_faults_of_an_mjcf_file_are_found(faults: list[str]) -> None:
    """Each where it is; a motor of what went with one, or the body that lost its only geom, is no fault."""
    parts = [fault.format(f"p{index}", f"p{index}") for index, fault in enumerate(faults)]
    rest = '<body name="last"><joint name="j" type="hing"/>\n<geom size="-1"/></body></worldbody>'
    text = "<mujoco><worldbody>\n" + "\n".join([*parts, rest]) + '<actuator><motor joint="j"/></actuator></mujoco>'
    for survey in (diagnose_model, diagnose_world):
        found, _ = survey(text)
        assert lines_of(found) == list(range(2, 4 + len(parts)))


def test_sdf_faults_are_repaired() -> None:
    wrong = "<inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>1</izz></inertia></inertial>"
    text = sdf_model(f'<link name="a">{wrong}</link>')
    with pytest.raises(DescriptionError, match="no body has"):
        load_model(text)
    mended = load_model(text, repair=True)
    check_model(mended)
    assert len(mended.repairs) == 1
    still = load_model(sdf_model(f'<static>1</static><link name="a">{wrong}</link>'), repair=True)
    assert not still.repairs, "of no matter, the model is static"
    inside = text.removeprefix('<sdf version="1.9">').removesuffix("</sdf>")
    assert len(load_world(f'<sdf version="1.9"><world name="w">{inside}</world></sdf>', repair=True).repairs) == 1
    shape = "<geometry><mesh><uri>no.stl</uri><scale>2</scale></mesh></geometry>"
    scaled = load_model(sdf_model(f'<link name="a"><visual name="v">{shape}</visual></link>'), repair=True)
    assert scaled.links[0].visuals[0].geometry.scale == (2.0, 2.0, 2.0)  # type: ignore[union-attr]
    assert len(scaled.repairs) == 1
    same = '<model name="n"><link name="l"/></model>'
    named = load_model(sdf_model('<link name="a"/>' + 3 * same), repair=True)
    assert [one.name for one in named.links] == ["a", "n::l", "n_1::l", "n_2::l"]
    world = load_world(f'<sdf version="1.9"><world name="w">{2 * same}</world></sdf>', repair=True)
    assert [one.name for one in world.models] == ["n", "n_1"]
    twice = sdf_model(
        '<link name="a"/><link name="b"/><joint name="j" type="fixed"><parent>a</parent><child>a</child></joint>'
    )
    with pytest.raises(DescriptionError, match="to itself"):
        load_model(twice)
    assert "left out" in load_model(twice, repair=True).repairs[0].action


@given(st.tuples(*[st.floats(-1.0, 1.0)] * 3), st.tuples(*[st.floats(1e-3, 10.0)] * 3))
def test_repaired_moments_obey_the_triangle_inequality(
    rpy: tuple[float, float, float], values: tuple[float, float, float]
) -> None:
    """A possible inertia stays; of any other the axes and the largest moment stay, and it becomes possible."""
    turn = SE3.from_xyz_rpy((0, 0, 0), rpy).rotation_matrix()
    given = turn @ np.diag(values) @ turn.T
    a, b, c = sorted(values)
    moments = (given[0, 0], given[1, 1], given[2, 2], given[0, 1], given[0, 2], given[1, 2])
    found = inertia_matrix(nearest_physical_inertia(moments))
    low, middle, high = np.linalg.eigvalsh(found)
    assert high == pytest.approx(c, rel=1e-9)
    assert low + middle >= high * (1 - 1e-9)
    assert low >= a * (1 - 1e-9)
    if a + b >= c:
        assert np.allclose(found, given, atol=1e-9)
    assert np.allclose(found @ given, given @ found, atol=1e-7), "the same principal axes"
    again = (found[0, 0], found[1, 1], found[2, 2], found[0, 1], found[0, 2], found[1, 2])
    assert np.allclose(inertia_matrix(nearest_physical_inertia(again)), found, atol=1e-9)


@given(st.tuples(*[st.floats(0.01, 2.0)] * 3), st.floats(0.01, 100.0), st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_equivalent_box_has_mass_and_inertia(
    size: tuple[float, float, float], mass: float, rpy: tuple[float, float, float]
) -> None:
    """The box that an even box's inertia implies is that box, in some order of its edges."""
    at = SE3.from_xyz_rpy((0.1, 0.2, 0.3), rpy)
    box = f'<collision><origin xyz="0 0 0"/><geometry><box size="{" ".join(map(str, size))}"/></geometry></collision>'
    plain = load_model(urdf(link(inertial(mass, 0, 0, 0) + box)), repair=True).links[0].inertial
    assert plain is not None
    found = equivalent_inertia_box(type(plain)(mass, at, plain.inertia))
    assert found is not None
    assert isinstance(found[0], Box)
    assert sorted(found[0].size) == pytest.approx(sorted(size), rel=1e-6)
    R = (at.inverse() @ found[1]).rotation_matrix()
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_inertia_without_shapes_is_that_of_a_water_ball() -> None:
    moments, whose = estimate_inertia(1000.0 * 4.0 / 3.0 * math.pi * 0.1**3, SE3.identity(), ())
    assert "0.2 m" in whose
    assert moments[0] == pytest.approx(0.4 * 4.18879 * 0.01, rel=1e-5)


def test_external_robots_are_repaired(external_data: Path) -> None:
    """Those refused for their inertia or loose ends load mended; what others load unmended is mended in nothing."""
    folder = external_data / "descriptions"
    if not folder.is_dir():
        pytest.skip("ROBOYARD_DATA has no folder 'descriptions'")
    for name, mass in (
        ("pr2/pr2_description/robots/pr2_no_arms.expanded.urdf", 183.7153),
        ("baxter/baxter_description/urdf/baxter.expanded.urdf", 137.3326),
        ("gz_ros2_control_demos/gz_ros2_control_demos/urdf/test_ackermann_drive.xacro.expanded.urdf", 9.2),
    ):
        path = folder / name
        with pytest.raises(DescriptionError, match="link '.*' has an inertia"):
            load_model(path, search=[folder])
        mended: Model = load_model(path, search=[folder], repair=True)
        check_model(mended)
        assert mended.repairs
        assert mended.mass == pytest.approx(mass, rel=1e-3)


def test_reversed_lidar_angles_are_repaired() -> None:
    text = """<sdf version="1.6"><model name="m"><link name="l"><sensor name="s" type="ray"><ray><scan><vertical>
      <samples>16</samples><min_angle>-0.1</min_angle><max_angle>-0.35</max_angle></vertical></scan></ray></sensor>
      </link></model></sdf>"""
    with pytest.raises(DescriptionError, match="16 samples from -0.1 to -0.35 rad"):
        load_model(text)
    mended = load_model(text, repair=True)
    spec = mended.sensors[0].spec
    assert isinstance(spec, LidarSpec)
    assert (spec.vertical_angle_min, spec.vertical_angle_max) == (-0.35, -0.1)
    assert len(mended.repairs) == 1
    assert "change places" in str(mended.repairs[0])
