"""Damaged and hostile descriptions load as a consistent model or raise `DescriptionError`."""

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

FUZZ_URDF = f"""<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
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
FUZZ_SDF = """<sdf version="1.9"><model name="m"><static>false</static>
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
FUZZ_WORLD = """<sdf version="1.9"><world name="w"><gravity>0 0 -9.8</gravity><physics>
<max_step_size>0.001</max_step_size></physics>
<light name="l" type="point"><pose>0 0 1 0 0 0</pose><diffuse>1 1 1 1</diffuse></light><frame name="f">
<pose>1 0 0 0 0 0</pose>
</frame><model name="m"><pose relative_to="f">0 0 0 0 0 0</pose><static>1</static><link name="a"/></model>
<include><uri>https://fuel.gazebosim.org/1.0/O/models/Ground Plane</uri></include>
<actor name="p"><pose>1 0 1 0 0 0</pose><script><trajectory id="0" type="t"><waypoint><time>0</time>
<pose>1 2 1 0 0 0</pose></waypoint></trajectory></script></actor>
<joint name="h" type="fixed"><parent>world</parent><child>m::a</child></joint></world></sdf>"""
HOSTILE_VALUES = st.sampled_from(
    ["", " ", "0", "-1", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", "1 2 3", "0 0 0", "1 2 3 4 5 6", "a", "b",
     "j", "world", "__model__", "n::c", "::", "a::b", "true", "revolute", "../../..", "/etc/passwd", "model://m",
     "&amp;",
     "${h}", "${1/0}", "${", "$(arg side)", "$(find x)", "$(", "0x", "é", "x" * 300, "9" * 400, "1_0", "0 0 1e9 0 0 0"]
)  # fmt: skip
TOKEN = re.compile(r"<[^<>]*>|[^<>]+")
VALUE = re.compile(r'"[^"]*"')
CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 5), HOSTILE_VALUES), min_size=1, max_size=6)


def mutate(text: str, changes: list[tuple[int, int, str]]) -> str:
    """Return the text with some attribute values, texts and elements replaced, removed, duplicated or moved."""
    for position, operation, value in changes:
        values = [match for match in VALUE.finditer(text) if "http" not in match.group()]
        tokens = TOKEN.findall(text)
        if operation == 0 and values:
            match = values[position % len(values)]
            text = f'{text[: match.start()]}"{value}"{text[match.end() :]}'
        elif operation == 1:
            text_indices = [i for i, token in enumerate(tokens) if token[0] != "<" and token.strip()]
            if text_indices:
                tokens[text_indices[position % len(text_indices)]] = value
                text = "".join(tokens)
        else:
            elements = find_element_spans(tokens)
            if not elements:
                return text
            start, end = elements[position % len(elements)]
            part = tokens[start:end]
            remaining = tokens[:start] + tokens[end:]
            if operation == 2:
                text = "".join(remaining)
            elif operation == 3:
                text = "".join(tokens[:end] + part + tokens[end:])
            elif operation == 4:
                index = position % (len(remaining) + 1)
                text = "".join(remaining[:index] + part + remaining[index:])
            else:
                del tokens[position % len(tokens)]
                text = "".join(tokens)
    return text


def find_element_spans(tokens: list[str]) -> list[tuple[int, int]]:
    """Return the start and end of each element except the root."""
    result, starts = [], []
    for i, token in enumerate(tokens):
        if token.startswith("</"):
            if starts:
                result.append((starts.pop(), i + 1))
        elif token.startswith("<") and token.endswith("/>"):
            result.append((i, i + 1))
        elif token.startswith("<"):
            starts.append(i)
    return sorted(result)[1:]


def check_load_or_error(text: str) -> None:
    for repair in (False, True):
        with suppress(DescriptionError):
            model = load_model(text, repair=repair)
            check_model(model, atol=1e-3)  # large coordinates have few digits after the point
            assert len(model.warnings) < 6000
            assert repair or not model.repairs
        with suppress(DescriptionError):
            for placed in load_world(text, repair=repair).models:
                check_model(placed.model, atol=1e-3)


@pytest.mark.parametrize("text", [FUZZ_URDF, FUZZ_SDF, FUZZ_WORLD], ids=["urdf", "sdf", "world"])
def test_fuzz_seeds_load(text: str) -> None:
    if text == FUZZ_WORLD:
        assert len(load_world(text).models) == 3
    else:
        check_model(load_model(text))


@given(st.sampled_from([FUZZ_URDF, FUZZ_SDF, FUZZ_WORLD]), CHANGES)
@settings(max_examples=300)
def test_changed_descriptions_load_or_are_refused(text: str, changes: list[tuple[int, int, str]]) -> None:
    check_load_or_error(mutate(text, changes))


@pytest.mark.slow
@given(st.sampled_from([FUZZ_URDF, FUZZ_SDF, FUZZ_WORLD]), CHANGES)
@settings(max_examples=3_000)
def test_changed_descriptions_load_or_are_refused_with_many_examples(
    text: str, changes: list[tuple[int, int, str]]
) -> None:
    check_load_or_error(mutate(text, changes))


@pytest.mark.slow
@given(st.sampled_from([FUZZ_URDF, FUZZ_SDF, FUZZ_WORLD]), CHANGES)
@settings(max_examples=600, deadline=None)
def test_changed_descriptions_simulate_or_are_refused(text: str, changes: list[tuple[int, int, str]]) -> None:
    """The simulation accepts or refuses every model that the readers accept."""
    from roboyard.simulation import Simulation

    text = mutate(text, changes)
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
    st.sampled_from([FUZZ_URDF, FUZZ_SDF, FUZZ_WORLD, ARM_URDF]),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4),
)
def test_changed_bytes_load_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(text.encode())
    for position, byte in changes:
        data[position % len(data)] = byte
    file = Path(tmp_path_factory.getbasetemp()) / "fuzz.xacro"
    file.write_bytes(data)
    with suppress(DescriptionError):
        load_model(file)
    with suppress(DescriptionError):
        load_world(file)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
@example("<")
@example("<robot")
@example("~user")
@example("\ufeff<robot/>")
@example("<sdf version='1.9'/>")
def test_arbitrary_text_loads_or_is_refused(text: str) -> None:
    for load in (load_model, load_world):
        with suppress(DescriptionError):
            load(text)
            load("<robot name='r'>" + text + "</robot>")


@pytest.mark.parametrize("is_reversed", [False, True])
def test_long_chains_load_without_recursion(is_reversed: bool) -> None:
    """The depth of a kinematic tree does not limit the call stack."""
    order = list(range(2000))[:: -1 if is_reversed else 1]
    chained_links = "".join(f'<link name="l{i + 1}"><pose relative_to="l{i}">1 0 0 0 0 0</pose></link>' for i in order)
    frames = "".join(f'<frame name="f{i + 1}" attached_to="f{i}"/>' for i in order)
    model = load_model(
        f'<sdf version="1.9"><model name="m"><link name="l0"/><link name="f0"/>{chained_links}{frames}</model></sdf>'
    )
    assert model.link("l2000").T_model_link.x == 2000.0
    assert {frame.link for frame in model.frames} == {"f0"}
    links = '<link name="l0"/>' + "".join(f'<link name="l{i + 1}"/>' for i in order)
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="1 0 0"/></joint>'
        for i in order
    )
    assert load_model(f'<robot name="r">{links}{joints}</robot>').link("l2000").T_model_link.x == 2000.0


def test_large_documents_are_read_in_linear_time() -> None:
    """Documents with many equal names, sensors, blocks and references into a large model are read."""
    count = 4000
    shapes = '<visual name="v"><geometry><sphere radius="1"/></geometry></visual>' * count
    blocks = '<gazebo reference="a"><mu1>1</mu1><material>Gazebo/Red</material></gazebo>' * count
    sensors = '<gazebo reference="a">' + '<sensor name="s" type="imu"/>' * count + "</gazebo>"
    check_model(load_model(f'<robot name="r"><link name="a">{shapes}</link>{blocks}{sensors}</robot>'))
    links = "".join(f'<link name="l{i}"/>' for i in range(count))
    models = "".join(
        f'<model name="m{i}"><pose relative_to="big::l{i}"/><link name="l"/></model>' for i in range(count)
    )
    world = f'<sdf version="1.9"><world name="w"><model name="big">{links}</model>{models}</world></sdf>'
    assert len(load_world(world).models) == count + 1


def test_joint_to_an_empty_model_is_refused() -> None:
    joint = '<joint name="j" type="fixed"><parent>a</parent><child>n{}</child></joint>'
    for end in ("", "::__model__"):
        text = f'<model name="m"><link name="a"/><model name="n"><static>1</static></model>{joint.format(end)}</model>'
        with pytest.raises(DescriptionError, match="which has no link"):
            load_model(f'<sdf version="1.9">{text}</sdf>')
