"""Each invalid description raises one `DescriptionError` that states reason, location and valid values."""

import pytest
from tests.harness.descriptions import ARM_URDF, INERTIAL, sdf, sdf_model, sdf_world, urdf

from roboyard.description import load_model, load_world
from roboyard.errors import DescriptionError

LINKS = f'<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link>'


def write_joint(content: str, type_: str = "revolute", ends: str = '<parent link="a"/><child link="b"/>') -> str:
    return urdf(f'{LINKS}\n<joint name="j" type="{type_}">{ends}{content}</joint>')


def write_body(mass: str, inertia: str = 'ixx="1" iyy="1" izz="1"') -> str:
    return urdf(f'<link name="a">\n<inertial><mass value="{mass}"/><inertia {inertia}/></inertial></link>')


INVALID_URDF = {
    "negative mass": (write_body("-2"), ["link 'a'", "mass -2 kg", ":2", "above 0"]),
    "zero mass": (write_body("0"), ["link 'a'", "mass 0 kg"]),
    "mass is text": (write_body("heavy"), ["mass of link 'a'", "'heavy'", ":2", "finite number"]),
    "mass is nan": (write_body("nan"), ["mass of link 'a'", "'nan'"]),
    "mass is infinite": (write_body("inf"), ["mass of link 'a'", "'inf'"]),
    "mass overflows": (write_body("1e999"), ["mass of link 'a'"]),
    "no mass": (urdf('<link name="a"><inertial><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'), ["<mass"]),
    "no inertia": (urdf('<link name="a"><inertial><mass value="1"/></inertial></link>'), ["without <inertia>"]),
    "inertia endless": (write_body("1", 'ixx="1e308" iyy="1" izz="1"'), ["link 'a'", "at most 1e+15"]),
    "inertia negative": (write_body("1", 'ixx="-1" iyy="1" izz="1"'), ["link 'a'", "not positive definite", "-1"]),
    "inertia zero": (write_body("1", 'ixx="0" iyy="0" izz="0"'), ["link 'a'", "not positive definite"]),
    "inertia indefinite": (write_body("1", 'ixx="1" iyy="1" izz="1" ixy="3"'), ["not positive definite"]),
    "triangle": (
        write_body("1", 'ixx="1" iyy="1" izz="5"'),
        ["link 'a'", "physically impossible inertia", "1, 1, 5", "sum of the others"],
    ),
    "two roots": (urdf(LINKS), ["robot 'r' has 2 root links", "'a'", "'b'", "line 1"]),
    "cycle": (
        urdf(
            LINKS + '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
            '<joint name="k" type="fixed"><parent link="b"/><child link="a"/></joint>'
        ),
        ["part of a cycle", "b → a → b"],
    ),
    "self": (write_joint("", "fixed", '<parent link="a"/><child link="a"/>'), ["joint 'j'", "to itself"]),
    "two parents": (
        urdf(
            LINKS + f'<link name="c">{INERTIAL}</link><joint name="j" type="fixed"><parent link="a"/><child link="c"/>'
            '</joint><joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint>'
        ),
        ["link 'c' is the child of joint 'k' and of joint 'j'", "one parent per link"],
    ),
    "unknown parent": (
        write_joint("", "fixed", '<parent link="x"/><child link="b"/>'),
        ["unknown parent link 'x'", ":2"],
    ),
    "unknown child": (
        write_joint("", "fixed", '<parent link="a"/><child link="bb"/>'),
        ["unknown child link 'bb'", "links: b"],
    ),
    "no child": (write_joint("", "fixed", '<parent link="a"/>'), ["joint 'j' has no child link"]),
    "duplicate link": (
        urdf(f'<link name="a"/>\n<link name="a">{INERTIAL}</link>'),
        ["link 'a' exists twice", ":2", ":1"],
    ),
    "duplicate joint": (
        urdf(
            LINKS + '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>\n'
            '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
        ),
        ["joint 'j' exists twice", ":2"],
    ),
    "unnamed link": (urdf("<link/>"), ["a link has no name"]),
    "joint type": (write_joint("", "hinge"), ["joint 'j' has the unknown type 'hinge'", "revolute"]),
    "zero axis": (write_joint('<axis xyz="0 0 0"/>'), ["axis of joint 'j'", "'0 0 0'", "vector with a length"]),
    "two numbers": (write_joint('<axis xyz="0 1"/>'), ["axis of joint 'j'", "3 numbers"]),
    "limits": (
        write_joint('<limit lower="2" upper="1" effort="1" velocity="1"/>'),
        ["joint 'j'", "lower limit 2 above", "≤"],
    ),
    "negative effort": (write_joint('<limit lower="0" upper="1" effort="-1" velocity="1"/>'), ["effort limit -1"]),
    "origin": (write_joint('<origin xyz="0 0 up"/>'), ["joint 'j'", "'up'"]),
    "far away": (write_joint('<origin xyz="1e300 0 0"/>'), ["coordinates below"]),
    "mimic nobody": (write_joint('<mimic joint="k"/>', "continuous"), ["joint 'j' mimics the unknown joint 'k'"]),
    "mimic itself": (write_joint('<mimic joint="j"/>', "continuous"), ["in a cycle"]),
    "box size": (
        urdf('<link name="a"><collision><geometry><box size="1 0 1"/></geometry></collision></link>'),
        ["size of box of link 'a'", "above 0"],
    ),
    "no shape": (urdf('<link name="a"><visual/></link>'), ["link 'a' has a <visual> without a shape", "cylinder"]),
    "odd shape": (
        urdf('<link name="a"><visual><geometry><torus/></geometry></visual></link>'),
        ["without a shape", "<torus>"],
    ),
    "mesh scale": (
        urdf('<link name="a"><visual><geometry><mesh filename="x.stl" scale="1 0 1"/></geometry></visual></link>'),
        ["scale of mesh of link 'a'"],
    ),
    "no link": (urdf(""), ["no link"]),
    "no name": ('<robot><link name="a"/></robot>', ["no name"]),
    "world without link": (
        urdf('<link name="a"/><joint name="j" type="fixed"><parent link="world"/><child link="a"/></joint>'),
        ["unknown parent link 'world'"],
    ),
}

BOX = "<geometry><box><size>1 1 1</size></box></geometry>"
TWO_LINKS = '<link name="a"/><link name="b"/>'


def write_hinge(content: str, parent: str = "a", child: str = "b") -> str:
    return sdf_model(
        f'{TWO_LINKS}\n<joint name="j" type="revolute"><parent>{parent}</parent><child>{child}</child>{content}</joint>'
    )


INVALID_SDF = {
    "mass": (
        sdf_model('<link name="a">\n<inertial><mass>-1</mass></inertial></link>'),
        ["link 'a'", "mass -1 kg", ":2"],
    ),
    "inertia": (
        sdf_model('<link name="a"><inertial><inertia><izz>9</izz></inertia></inertial></link>'),
        ["link 'a'", "physically impossible inertia"],
    ),
    "pose words": (sdf_model('<link name="a"><pose>0 0 here 0 0 0</pose></link>'), ["<pose>", "'here'"]),
    "pose count": (sdf_model('<link name="a">\n<pose>0 0 0</pose></link>'), ["<pose>", "6 numbers", ":2"]),
    "quaternion": (
        sdf_model('<link name="a"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose></link>'),
        ["quaternion with a length"],
    ),
    "rotation format": (
        sdf_model('<link name="a"><pose rotation_format="axis">0 0 0 0 0 0</pose></link>'),
        ["euler_rpy"],
    ),
    "duplicate link": (
        sdf_model('<link name="a"/>\n<link name="a"/>'),
        ["link 'a' in model 'm' exists twice", ":2", ":1"],
    ),
    "same name": (sdf_model('<link name="a"/><frame name="a"/>'), ["the name 'a' in model 'm' exists twice"]),
    "duplicate collision": (
        sdf_model(f'<link name="a"><collision name="c">{BOX}</collision><collision name="c">{BOX}</collision></link>'),
        ["collision 'c' in link 'a' exists twice"],
    ),
    "reserved": (sdf_model('<link name="world"/>'), ["'world'", "reserved"]),
    "reserved underscores": (sdf_model('<link name="__a__"/>'), ["'__a__'", "reserved"]),
    "no link": (sdf_model('<frame name="f"/>'), ["model 'm' has no link"]),
    "unknown parent": (
        write_hinge("", parent="x"),
        ["parent of joint 'j': model 'm' has no 'x'", "names: __model__, a, b, j"],
    ),
    "unknown child": (write_hinge("", child="x"), ["child of joint 'j': model 'm' has no 'x'"]),
    "child world": (write_hinge("", child="world"), ["the child of joint 'j' must not be the world"]),
    "self": (write_hinge("", child="a"), ["connects link 'a' to itself"]),
    "named itself": (write_hinge("", parent="j"), ["joint 'j' names itself as its parent"]),
    "zero axis": (write_hinge("<axis><xyz>0 0 0</xyz></axis>"), ["axis of joint 'j'", "vector with a length"]),
    "limits": (
        write_hinge("<axis><limit><lower>1</lower><upper>0</upper></limit></axis>"),
        ["joint 'j'", "lower limit 1 above"],
    ),
    "expressed in": (
        write_hinge('<axis><xyz expressed_in="x">0 0 1</xyz></axis>'),
        ["expressed_in of joint 'j': model 'm' has no 'x'"],
    ),
    "no child": (
        sdf_model(f'{TWO_LINKS}<joint name="j" type="fixed"><parent>a</parent></joint>'),
        ["joint 'j' has no child"],
    ),
    "joint type": (
        sdf_model(f'{TWO_LINKS}<joint name="j" type="slidey"><parent>a</parent><child>b</child></joint>'),
        ["joint 'j' has the unknown type 'slidey'", "prismatic"],
    ),
    "relative to": (
        sdf_model('<link name="a"><pose relative_to="x"/></link>'),
        ["relative_to of link 'a': model 'm' has no 'x'"],
    ),
    "pose circle": (
        sdf_model('<link name="a"><pose relative_to="b"/></link><link name="b"><pose relative_to="a"/></link>'),
        ["cycle: a → b → a"],
    ),
    "attached circle": (
        sdf_model('<link name="a"/><frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'),
        ["cycle"],
    ),
    "canonical": (sdf_model('<link name="a"/>', attributes=' canonical_link="x"'), ["canonical_link 'x'"]),
    "no version": ('<sdf><model name="m"><link name="a"/></model></sdf>', ["no version"]),
    "odd version": (sdf('<model name="m"><link name="a"/></model>', version="new"), ["version 'new'"]),
    "sphere": (
        sdf_model(
            '<link name="a"><visual name="v"><geometry><sphere><radius>-1</radius></sphere></geometry></visual></link>'
        ),
        ["radius of sphere of visual 'v' of link 'a'", "above 0"],
    ),
    "sensor rate": (
        sdf_model('<link name="a"><sensor name="s" type="imu"><update_rate>-1</update_rate></sensor></link>'),
        ["<update_rate>", "at least 0"],
    ),
    "lidar ranges": (
        sdf_model(
            '<link name="a"><sensor name="s" type="ray">'
            "<ray><range><min>2</min><max>1</max></range></ray></sensor></link>"
        ),
        ["lidar 's': maximum range 1 m is not above minimum range 2 m"],
    ),
    "lidar angles": (
        sdf_model(
            '<link name="a"><sensor name="s" type="ray"><ray><scan><horizontal>'
            "<samples>9</samples><min_angle>1</min_angle><max_angle>0</max_angle></horizontal></scan></ray></sensor></link>"
        ),
        ["lidar 's' has 9 samples from 1 to 0 rad"],
    ),
    "lidar bomb": (
        sdf_model(
            '<link name="a"><sensor name="s" type="ray"><ray><scan>'
            "<horizontal><samples>900000000</samples></horizontal></scan></ray></sensor></link>"
        ),
        ["lidar 's' has 900000000"],
    ),
    "no sensor type": (sdf_model('<link name="a"><sensor name="s"/></link>'), ["sensor 's' has no type"]),
    "a world": (sdf_world(""), ["describes a world", "load it as a world"]),
    "nothing": (sdf(""), ["no model"]),
}


CASES = [
    pytest.param(text, parts, id=f"{kind} {name}")
    for kind, cases in (("urdf", INVALID_URDF), ("sdf", INVALID_SDF))
    for name, (text, parts) in cases.items()
]


@pytest.mark.parametrize(("text", "parts"), CASES)
def test_error_of_invalid_model_states_reason_and_location(text: str, parts: list[str]) -> None:
    with pytest.raises(DescriptionError) as caught:
        load_model(text)
    assert str(caught.value).startswith("<text>:")
    for part in parts:
        assert part in str(caught.value)


INVALID_WORLDS = {
    "robot": (ARM_URDF, "describes a robot, not a world"),
    "model": (sdf_model('<link name="a"/>'), "describes a model, not a world"),
    "no name": (sdf("<world/>"), "the world has no name"),
    "bad model": (
        sdf_world('<model name="m"><link name="l"><inertial><mass>0</mass></inertial></link></model>'),
        "link 'l' has mass 0 kg",
    ),
    "same name": (sdf_world('<frame name="m"/><model name="m"><link name="l"/></model>'), "exists twice"),
    "two models": (sdf_world('<model name="m"><link name="l"/></model>' * 2), "model 'm' in world 'w' exists twice"),
    "relative to": (
        sdf_world('<model name="m"><pose relative_to="x"/><link name="l"/></model>'),
        "relative_to of model 'm': world 'w' has no 'x'",
    ),
    "step": (sdf_world("<physics><max_step_size>0</max_step_size></physics>"), "<max_step_size> is '0'"),
    "gravity": (sdf_world("<gravity>0 0</gravity>"), "<gravity> is '0 0'"),
    "no uri": (sdf_world("<include/>"), "no <uri>"),
}


@pytest.mark.parametrize("name", INVALID_WORLDS)
def test_error_of_invalid_world_states_reason_and_location(name: str) -> None:
    text, part = INVALID_WORLDS[name]
    with pytest.raises(DescriptionError, match="<text>:1") as caught:
        load_world(text)
    assert part in str(caught.value)


def test_rounding_errors_are_corrected_with_a_warning() -> None:
    """The moments of a thin plate are written with limited precision: 0.1 + 0.2 < 0.30001."""
    model = load_model(write_body("1", 'ixx="0.1" iyy="0.2" izz="0.30001"'))
    inertial = model.links[0].inertial
    assert inertial is not None
    assert sorted(inertial.inertia[:3]) == pytest.approx([0.1, 0.2, 0.3])
    assert ["rounding" in warning.message for warning in model.warnings] == [True]
