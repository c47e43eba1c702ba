"""Broken and hostile descriptions: they load into a consistent model, or end in DescriptionError; nothing else."""

import re
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.harness.descriptions import ARM_URDF, INERTIAL, check_model

from roboyard.description import load_model, load_world
from roboyard.errors import DescriptionError, RoboyardError

URDF = f"""<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="h" value="0.5"/><xacro:arg name="side" default="1"/><xacro:macro name="leg" params="n:=1 *o">
<link name="leg${{n}}">{INERTIAL}</link><joint name="j${{n}}" type="revolute"><parent link="a"/>
<child link="leg${{n}}"/><xacro:insert_block name="o"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="${{h + 1}}" effort="1" velocity="1"/>
<mimic joint="j"/></joint></xacro:macro>
<material name="red"><color rgba="1 0 0 1"/></material>
<link name="a">{INERTIAL}<visual><origin xyz="0 0 1" rpy="0 0 0"/><geometry><box size="1 1 1"/></geometry>
<material name="red"/></visual><collision><geometry><cylinder radius="1" length="2"/></geometry></collision></link>
<link name="b"><collision><geometry><mesh filename="package://x/y.stl" scale="1 1 1"/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/><dynamics damping="1"/>
</joint>
<xacro:leg n="2"><origin xyz="0 0 ${{h * 2}}"/></xacro:leg><xacro:if value="$(arg side)">
<xacro:leg n="3"><origin/></xacro:leg></xacro:if>
<gazebo reference="a"><mu1>0.5</mu1><material>Gazebo/Red</material><sensor name="s" type="ray">
<pose>0 0 1 0 0 0</pose>
<update_rate>10</update_rate><ray><scan><horizontal><samples>9</samples><min_angle>-1</min_angle>
<max_angle>1</max_angle>
</horizontal></scan><range><min>0.1</min><max>9</max></range><noise><type>gaussian</type><stddev>0.1</stddev>
</noise></ray>
</sensor></gazebo>
<ros2_control name="c" type="system"><joint name="j"><command_interface name="velocity"><param name="min">-1</param>
</command_interface><state_interface name="position"/></joint></ros2_control>
<transmission name="t"><joint name="j"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
</transmission>
<gazebo><joint name="loop" type="ball"><pose>0 0 1 0 0 0</pose><parent>a</parent><child>b</child></joint></gazebo>
</robot>"""
SDF = """<sdf version="1.9"><model name="m"><static>false</static>
<link name="a"><inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz><ixy>0.1</ixy></inertia>
</inertial>
<collision name="c"><geometry><sphere><radius>1</radius></sphere></geometry><surface><friction><ode><mu>1</mu>
<fdir1>1 0 0
</fdir1></ode></friction><contact><collide_bitmask>0x01</collide_bitmask></contact></surface></collision>
<visual name="v"><geometry><polyline><point>0 0</point><point>1 0</point><point>0 1</point><height>1</height>
</polyline>
</geometry><material><diffuse>1 0 0 1</diffuse></material></visual>
<sensor name="i" type="imu"><update_rate>9</update_rate><imu><angular_velocity><x><noise type="gaussian">
<mean>1</mean>
</noise></x></angular_velocity></imu></sensor></link>
<link name="b"><pose relative_to="f">1 0 0 0 0 1</pose><inertial auto="true"><density>5</density></inertial>
<collision name="c"><geometry><box><size>1 2 3</size></box></geometry></collision></link>
<frame name="f" attached_to="a"><pose degrees="true">0 0 1 0 0 90</pose></frame>
<model name="n"><link name="c"/><frame name="g" attached_to="c"/></model>
<include><uri>model://nowhere</uri><name>k</name><pose>0 0 1 0 0 0</pose></include>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz expressed_in="__model__">0 0 1</xyz>
<limit>
<lower>-1</lower><upper>1</upper></limit><mimic joint="q"><multiplier>2</multiplier></mimic></axis></joint>
<joint name="q" type="universal"><parent>f</parent><child>n::g</child><axis><xyz>1 0 0</xyz></axis><axis2/></joint>
<plugin name="p" filename="q"><x>1</x></plugin></model></sdf>"""
WORLD = """<sdf version="1.9"><world name="w"><gravity>0 0 -9.8</gravity><physics>
<max_step_size>0.001</max_step_size></physics>
<light name="l" type="point"><pose>0 0 1 0 0 0</pose><diffuse>1 1 1 1</diffuse></light><frame name="f">
<pose>1 0 0 0 0 0</pose>
</frame><model name="m"><pose relative_to="f">0 0 0 0 0 0</pose><static>1</static><link name="a"/></model>
<include><uri>https://fuel.gazebosim.org/1.0/O/models/Ground Plane</uri></include>
<actor name="p"><pose>1 0 1 0 0 0</pose><script><trajectory id="0" type="t"><waypoint><time>0</time>
<pose>1 2 1 0 0 0</pose></waypoint></trajectory></script></actor>
<joint name="h" type="fixed"><parent>world</parent><child>m::a</child></joint></world></sdf>"""
NASTY = st.sampled_from(
    ["", " ", "0", "-1", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", "1 2 3", "0 0 0", "1 2 3 4 5 6", "a", "b",
     "j", "world", "__model__", "n::c", "::", "a::b", "true", "revolute", "../../..", "/etc/passwd", "model://m",
     "&amp;",
     "${h}", "${1/0}", "${", "$(arg side)", "$(find x)", "$(", "0x", "é", "x" * 300, "9" * 400, "1_0", "0 0 1e9 0 0 0"]
)  # fmt: skip
TOKEN = re.compile(r"<[^<>]*>|[^<>]+")
VALUE = re.compile(r'"[^"]*"')
CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 5), NASTY), min_size=1, max_size=6)


def changed(text: str, changes: list[tuple[int, int, str]]) -> str:
    """The text with some attribute values, texts and elements replaced, dropped, doubled or moved."""
    for where, what, nasty in changes:
        values = [match for match in VALUE.finditer(text) if "http" not in match.group()]
        tokens = TOKEN.findall(text)
        if what == 0 and values:
            match = values[where % len(values)]
            text = f'{text[: match.start()]}"{nasty}"{text[match.end() :]}'
        elif what == 1:
            texts = [i for i, token in enumerate(tokens) if token[0] != "<" and token.strip()]
            if texts:
                tokens[texts[where % len(texts)]] = nasty
                text = "".join(tokens)
        else:
            elements = spans(tokens)
            if not elements:
                return text
            start, end = elements[where % len(elements)]
            part = tokens[start:end]
            rest = tokens[:start] + tokens[end:]
            if what == 2:
                text = "".join(rest)
            elif what == 3:
                text = "".join(tokens[:end] + part + tokens[end:])
            elif what == 4:
                at = where % (len(rest) + 1)
                text = "".join(rest[:at] + part + rest[at:])
            else:
                del tokens[where % len(tokens)]
                text = "".join(tokens)
    return text


def spans(tokens: list[str]) -> list[tuple[int, int]]:
    """Where elements start and end, the root left out."""
    found, opened = [], []
    for i, token in enumerate(tokens):
        if token.startswith("</"):
            if opened:
                found.append((opened.pop(), i + 1))
        elif token.startswith("<") and token.endswith("/>"):
            found.append((i, i + 1))
        elif token.startswith("<"):
            opened.append(i)
    return sorted(found)[1:]


def judge(text: str) -> None:
    for repair in (False, True):
        with suppress(DescriptionError):
            model = load_model(text, repair=repair)
            check_model(model, atol=1e-3)  # far away, digits are few
            assert len(model.warnings) < 6000
            assert repair or not model.repairs
        with suppress(DescriptionError):
            for placed in load_world(text, repair=repair).models:
                check_model(placed.model, atol=1e-3)


@pytest.mark.parametrize("text", [URDF, SDF, WORLD], ids=["urdf", "sdf", "world"])
def test_fuzz_seeds_load(text: str) -> None:
    if text == WORLD:
        assert len(load_world(text).models) == 3
    else:
        check_model(load_model(text))


@given(st.sampled_from([URDF, SDF, WORLD]), CHANGES)
@settings(max_examples=300)
def test_changed_descriptions_load_or_are_refused(text: str, changes: list[tuple[int, int, str]]) -> None:
    judge(changed(text, changes))


@pytest.mark.slow
@given(st.sampled_from([URDF, SDF, WORLD]), CHANGES)
@settings(max_examples=3_000)
def test_changed_descriptions_load_or_are_refused_often(text: str, changes: list[tuple[int, int, str]]) -> None:
    judge(changed(text, changes))


@pytest.mark.slow
@given(st.sampled_from([URDF, SDF, WORLD]), CHANGES)
@settings(max_examples=600, deadline=None)
def test_changed_descriptions_simulate_or_are_refused(text: str, changes: list[tuple[int, int, str]]) -> None:
    """Whatever the readers let through, physics takes or refuses."""
    from roboyard.simulation import Simulation

    text = changed(text, changes)
    with suppress(RoboyardError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load_model(text, repair=True)
        except DescriptionError:
            Simulation(load_world(text, repair=True)).step(2)
        else:
            sim = Simulation(load_world('<sdf version="1.9"><world name="w"/></sdf>'))
            sim.add(model, "m")
            sim.step(2)


@given(
    st.sampled_from([URDF, SDF, WORLD, ARM_URDF]),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4),
)
def test_changed_bytes_load_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(text.encode())
    for where, byte in changes:
        data[where % len(data)] = byte
    file = Path(tmp_path_factory.getbasetemp()) / "fuzz.xacro"
    file.write_bytes(data)
    with suppress(DescriptionError):
        load_model(file)
    with suppress(DescriptionError):
        load_world(file)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
@example("<")
@example("<robot")
@example("~nobody")
@example("\ufeff<robot/>")
@example("<sdf version='1.9'/>")
def test_arbitrary_text_loads_or_is_refused(text: str) -> None:
    for load in (load_model, load_world):
        with suppress(DescriptionError):
            load(text)
            load("<robot name='r'>" + text + "</robot>")


@pytest.mark.parametrize("backwards", [False, True])
def test_long_chains_load_without_recursion(backwards: bool) -> None:
    """Depth of a robot is not depth of the call stack."""
    order = list(range(2000))[:: -1 if backwards else 1]
    on = "".join(f'<link name="l{i + 1}"><pose relative_to="l{i}">1 0 0 0 0 0</pose></link>' for i in order)
    frames = "".join(f'<frame name="f{i + 1}" attached_to="f{i}"/>' for i in order)
    read = load_model(
        f'<sdf version="1.9"><model name="m"><link name="l0"/><link name="f0"/>{on}{frames}</model></sdf>'
    )
    assert read.link("l2000").T_model_link.x == 2000.0
    assert {frame.link for frame in read.frames} == {"f0"}
    links = '<link name="l0"/>' + "".join(f'<link name="l{i + 1}"/>' for i in order)
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="1 0 0"/></joint>'
        for i in order
    )
    assert load_model(f'<robot name="r">{links}{joints}</robot>').link("l2000").T_model_link.x == 2000.0


def test_reading_cost_grows_linearly() -> None:
    """Many of the same: names, sensors, blocks, references into a large model."""
    many = 4000
    shapes = '<visual name="v"><geometry><sphere radius="1"/></geometry></visual>' * many
    blocks = '<gazebo reference="a"><mu1>1</mu1><material>Gazebo/Red</material></gazebo>' * many
    sensors = '<gazebo reference="a">' + '<sensor name="s" type="imu"/>' * many + "</gazebo>"
    check_model(load_model(f'<robot name="r"><link name="a">{shapes}</link>{blocks}{sensors}</robot>'))
    links = "".join(f'<link name="l{i}"/>' for i in range(many))
    models = "".join(f'<model name="m{i}"><pose relative_to="big::l{i}"/><link name="l"/></model>' for i in range(many))
    world = f'<sdf version="1.9"><world name="w"><model name="big">{links}</model>{models}</world></sdf>'
    assert len(load_world(world).models) == many + 1


def test_joint_to_an_empty_model_is_refused() -> None:
    joint = '<joint name="j" type="fixed"><parent>a</parent><child>n{}</child></joint>'
    for end in ("", "::__model__"):
        text = f'<model name="m"><link name="a"/><model name="n"><static>1</static></model>{joint.format(end)}</model>'
        with pytest.raises(DescriptionError, match="which has no link"):
            load_model(f'<sdf version="1.9">{text}</sdf>')
