"""SDF models and worlds are read by the rules of each SDF version, and agree with the same robot in URDF."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.descriptions import ARM_URDF, check_model, compute_link_poses, sdf_model, sdf_world

from roboyard.description import (
    Box,
    Capsule,
    Cone,
    ContactSpec,
    CustomSensorSpec,
    Cylinder,
    Ellipsoid,
    ImuSpec,
    Joint,
    LidarSpec,
    Plane,
    Polyline,
    Sphere,
    load_model,
    load_world,
)
from roboyard.description.sdf.joint_graph import reverse_joint
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

ARM_SDF = """<sdf version="1.9"><model name="arm">
  {links}
  <joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
    <axis><xyz>0 1 0</xyz>
      <limit><lower>-1</lower><upper>1</upper><velocity>2</velocity><effort>30</effort></limit></axis>
  </joint>
  <joint name="elbow" type="continuous"><parent>upper</parent><child>lower</child><axis><xyz>0 0 2</xyz></axis></joint>
</model></sdf>"""
INERTIAL = "<inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>"


@pytest.mark.parametrize("is_relative", [True, False])
@given(q=st.tuples(*[st.floats(-math.pi, math.pi)] * 2))
def test_equal_robots_in_urdf_and_sdf_have_equal_kinematics(is_relative: bool, q: tuple[float, float]) -> None:
    """Kinematics and mass agree with URDF for link poses relative to the parent or to the model frame."""
    urdf = load_model(ARM_URDF)
    poses = {"base": "0 0 0 0 0 0", "upper": "0 0 0.5 0.1 0.2 0.3", "lower": "0.4 0 0 0 0 1.0"}
    links = ""
    for name, parent in (("base", ""), ("upper", "base"), ("lower", "upper")):
        text, attribute = poses[name], f' relative_to="{parent}"' if parent else ""
        if not is_relative:
            T = urdf.link(name).T_model_link
            w, x, y, z = T.quaternion
            text = " ".join(map(repr, (*map(float, T.xyz), x, y, z, w)))
            attribute = ' rotation_format="quat_xyzw"'
        links += f'<link name="{name}"><pose{attribute}>{text}</pose>{INERTIAL}</link>'
    sdf = load_model(ARM_SDF.format(links=links))
    check_model(sdf)
    assert sdf.mass == urdf.mass
    positions = {"shoulder": q[0], "elbow": q[1]}
    a, b = compute_link_poses(urdf, positions), compute_link_poses(sdf, positions)
    for link in urdf.links:
        assert a[link.name].almost_equal(b[link.name], 1e-9)
    for joint in urdf.joints:
        assert sdf.joint(joint.name).axes[0].limits == joint.axes[0].limits
        assert sdf.joint(joint.name).type == joint.type


NUMBERS = st.floats(-2.0, 2.0).map(lambda value: round(value, 3))
POSE = st.tuples(*[NUMBERS] * 6)


@given(st.lists(POSE, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_frames_can_be_in_any_order(poses: list[tuple[float, ...]], order: object) -> None:
    """Poses of a chain of frames in any order of the document equal the composed poses."""
    T, parts, expected = SE3.identity(), ['<link name="l"/>'], {}
    for i, values in enumerate(poses):
        text = " ".join(map(str, values))
        attribute = f' relative_to="f{i - 1}"' if i else ""
        parts.append(f'<frame name="f{i}"><pose{attribute}>{text}</pose></frame>')
        T = T @ SE3.from_xyz_rpy(values[:3], values[3:])
        expected[f"f{i}"] = T
    order.shuffle(parts)  # type: ignore[attr-defined]
    model = load_model(sdf_model("".join(parts)))
    assert {frame.name: frame.link for frame in model.frames} == dict.fromkeys(expected, "l")
    for frame in model.frames:
        assert frame.T_link_frame.almost_equal(expected[frame.name], 1e-9)


def load_link_pose(text: str, name: str) -> SE3:
    return load_model(text).link(name).T_model_link


def test_link_pose_is_read_in_every_notation() -> None:
    expected = SE3.from_xyz_rpy((1, 2, 3), (0.1, 0.2, 0.3))
    degrees = " ".join(str(math.degrees(a)) for a in (0.1, 0.2, 0.3))
    w, x, y, z = expected.quaternion
    for pose in (
        "<pose>1 2 3 0.1 0.2 0.3</pose>",
        f'<pose degrees="true">1 2 3 {degrees}</pose>',
        f'<pose rotation_format="quat_xyzw">1 2 3 {x} {y} {z} {w}</pose>',
        f'<pose rotation_format="quat_xyzw">1 2 3 {2 * x} {2 * y} {2 * z} {2 * w}</pose>',
        '<pose relative_to="f">0 0 1 0 0 0</pose><!-- f is 1 m below -->',
        '<pose frame="f">0 0 1 0 0 0</pose>',
    ):
        frame = '<frame name="f"><pose relative_to="g">0 0 -1 0 0 0</pose></frame>'
        frame += '<frame name="g"><pose>1 2 3 0.1 0.2 0.3</pose></frame>'
        assert load_link_pose(sdf_model(f'{frame}<link name="l">{pose}</link>'), "l").almost_equal(expected, 1e-12)


def test_joint_frame_and_axis_are_read() -> None:
    """The joint frame is relative to its child by default; its axis is in the joint frame or in a named frame."""
    links = '<link name="a"/><link name="b"><pose>1 0 0 0 0 0</pose></link>'
    for version, axis, expected in (
        ("1.4", "<xyz>0 0 1</xyz>", (0, 1, 0)),  # in the model frame
        ("1.5", "<xyz>0 0 1</xyz>", (0, 0, 1)),
        ("1.6", "<xyz>0 0 1</xyz><use_parent_model_frame>1</use_parent_model_frame>", (0, 1, 0)),
        ("1.7", '<xyz expressed_in="__model__">0 0 1</xyz>', (0, 1, 0)),
        ("1.9", '<xyz expressed_in="b">0 0 3</xyz>', (0, 1, 0)),
        ("1.9", '<xyz expressed_in="j">0 0 1</xyz>', (0, 0, 1)),
    ):
        joint = f"""<joint name="j" type="revolute"><pose>0 0 0.5 {math.pi / 2} 0 0</pose>
            <parent>a</parent><child>b</child><axis>{axis}</axis></joint>"""
        model = load_model(sdf_model(links + joint, version=version))
        check_model(model)
        assert np.allclose(model.joints[0].axes[0].xyz, expected, atol=1e-12), version
        assert np.allclose(model.joints[0].T_child_joint.xyz, (0, 0, 0.5))
        assert np.allclose(model.joints[0].T_parent_child.xyz, (1, 0, 0))
        assert any("before SDF 1.5" in warning.message for warning in model.warnings) == (version == "1.4")


def test_joint_between_frames_connects_their_links() -> None:
    """A joint between frames connects the links of the frames; the joint frame is the child frame."""
    model = load_model(
        sdf_model("""<link name="a"/><link name="b"><pose>0 0 1 0 0 0</pose></link>
        <frame name="on_a" attached_to="a"/><frame name="on_b" attached_to="b"><pose>0 0 0.25 0 0 0</pose></frame>
        <joint name="j" type="revolute"><parent>on_a</parent><child>on_b</child>
          <axis><xyz>1 0 0</xyz></axis></joint>""")
    )
    check_model(model)
    (joint,) = model.joints
    assert (joint.parent, joint.child) == ("a", "b")
    assert np.allclose(joint.T_child_joint.xyz, (0, 0, 0.25))


def test_default_inertial_is_that_of_libsdformat() -> None:
    model = load_model(sdf_model('<link name="a"/>'))
    inertial = model.links[0].inertial
    assert inertial is not None
    assert (inertial.mass, inertial.inertia) == (1.0, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))


def test_static_models_need_no_valid_inertia() -> None:
    link = '<link name="a"><inertial><mass>-1</mass></inertial></link>'
    model = load_model(sdf_model(f"<static>true</static>{link}"))
    assert model.static
    assert model.links[0].inertial is None
    assert any("mass -1" in warning.message for warning in model.warnings)


def test_sdf_shapes_are_read() -> None:
    shapes = """<box><size>1 2 3</size></box>|<sphere><radius>2</radius></sphere>
        |<cylinder><radius>1</radius><length>2</length></cylinder>|<capsule><radius>1</radius><length>2</length></capsule>
        |<cone><radius>1</radius><length>2</length></cone>|<ellipsoid><radii>1 2 3</radii></ellipsoid>
        |<plane><normal>0 0 5</normal><size>3 4</size></plane>
        |<polyline><point>0 0</point><point>1 0</point><point>0 1</point><height>2</height></polyline>|<teapot/>"""
    visuals = "".join(
        f'<visual name="v{i}"><geometry>{shape}</geometry></visual>' for i, shape in enumerate(shapes.split("|"))
    )
    model = load_model(sdf_model(f'<link name="a">{visuals}</link>'))
    geometries = [visual.geometry for visual in model.links[0].visuals]
    assert geometries == [
        Box((1, 2, 3)),
        Sphere(2),
        Cylinder(1, 2),
        Capsule(1, 2),
        Cone(1, 2),
        Ellipsoid((1, 2, 3)),
        Plane((0, 0, 1), (3, 4)),
        Polyline((((0, 0), (1, 0), (0, 1)),), 2),
    ]
    assert any("<teapot>" in warning.message for warning in model.warnings)


def test_surface_material_and_flags_are_read() -> None:
    model = load_model(
        sdf_model("""<self_collide>true</self_collide><link name="a"><gravity>false</gravity>
        <collision name="c"><geometry><sphere/></geometry><surface><friction><ode><mu>0.5</mu><mu2>0.4</mu2>
          <fdir1>0 2 0</fdir1><slip1>0.1</slip1></ode><torsional><coefficient>0.7</coefficient></torsional></friction>
          <bounce><restitution_coefficient>0.6</restitution_coefficient></bounce>
          <contact><collide_bitmask>0x00</collide_bitmask><ode><kp>1e6</kp><kd>100</kd></ode></contact></surface></collision>
        <visual name="v"><transparency>0.25</transparency><geometry><sphere/></geometry>
          <material><ambient>1 0 0 1</ambient><diffuse>0 1 0 1</diffuse></material></visual>
        <visual name="w"><geometry><sphere/></geometry><material><script><name>Gazebo/Blue</name></script></material>
        </visual></link>""")
    )
    link = model.links[0]
    surface = link.collisions[0].surface
    assert (surface.friction, surface.friction2, surface.friction_direction) == (0.5, 0.4, (0.0, 1.0, 0.0))
    assert (surface.torsional, surface.restitution, surface.collide) == (0.7, 0.6, False)
    assert (surface.stiffness, surface.damping, surface.slip) == (1e6, 100.0, (0.1, 0.0))
    assert [visual.material.rgba for visual in link.visuals] == [(0, 1, 0, 0.75), (0, 0, 1, 1)]
    assert not link.gravity
    assert link.self_collide


def test_sdf_joint_types_are_read() -> None:
    kinds = {"universal": 2, "revolute2": 2, "gearbox": 2, "screw": 1, "prismatic": 1, "ball": 0, "fixed": 0}
    axis = "<xyz>0 0 1</xyz><limit><lower>-1e16</lower><upper>1e16</upper><effort>-1</effort></limit>"
    for kind, count in kinds.items():
        joint = f"""<joint name="j" type="{kind}"><parent>a</parent><child>b</child><axis>{axis}
            <dynamics><damping>1</damping><friction>2</friction><spring_stiffness>3</spring_stiffness>
            <spring_reference>4</spring_reference></dynamics></axis><axis2><xyz>0 1 0</xyz></axis2>
            <thread_pitch>-10</thread_pitch><gearbox_ratio>3</gearbox_ratio>
            <gearbox_reference_body>a</gearbox_reference_body></joint>"""
        loaded_joint = load_model(sdf_model(f'<link name="a"/><link name="b"/>{joint}')).joints[0]
        assert loaded_joint.type == kind
        assert len(loaded_joint.axes) == count
        if count:
            assert loaded_joint.axes[0].limits.lower == -math.inf
            assert loaded_joint.axes[0].limits.effort == math.inf
            assert (loaded_joint.axes[0].dynamics.stiffness, loaded_joint.axes[0].dynamics.reference) == (3.0, 4.0)
        if kind == "screw":
            # thread_pitch is right-handed: the deprecated element has the opposite sign
            assert loaded_joint.thread_pitch == pytest.approx(2 * math.pi / 10)
        if kind == "gearbox":
            assert (loaded_joint.gear_ratio, loaded_joint.gear_reference) == (3.0, "a")


def test_sdf_mimic_is_read() -> None:
    joints = """<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint>
      <joint name="k" type="revolute"><parent>a</parent><child>c</child><axis><xyz>0 0 1</xyz>
        <mimic joint="j"><multiplier>2</multiplier><offset>1</offset><reference>0.25</reference></mimic></axis>
      </joint>"""
    model = load_model(sdf_model(f'<link name="a"/><link name="b"/><link name="c"/>{joints}', version="1.11"))
    mimic = model.joint("k").mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("j", 2.0, 0.5)  # 2 (q - 0.25) + 1


# -- joint graphs with loops -------------------------------------------------------------------------------------------
def write_revolute_joint(name: str, parent: str, child: str) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}</child>'
        "<axis><xyz>0 0 1</xyz></axis></joint>"
    )


def test_loop_is_closed_by_a_constraint() -> None:
    names = "abcd"
    links = "".join(f'<link name="{name}"/>' for name in names)
    joints_in_a_loop = "".join(write_revolute_joint(f"{x}{y}", x, y) for x, y in pairwise([*names, "a"]))
    model = load_model(sdf_model(links + joints_in_a_loop))
    check_model(model)
    assert [joint.name for joint in model.joints] == ["ab", "bc", "cd"]
    assert [joint.name for joint in model.loop_joints] == ["da"]
    assert any("closes a loop" in warning.message for warning in model.warnings)


def test_joint_to_a_second_parent_without_a_loop_is_reversed() -> None:
    links = '<link name="a"/><link name="b"/><link name="c"><pose>1 0 0 0 0 0</pose></link>'
    model = load_model(sdf_model(links + write_revolute_joint("ac", "a", "c") + write_revolute_joint("bc", "b", "c")))
    check_model(model)
    assert (model.joint("bc").parent, model.joint("bc").child) == ("c", "b")
    assert model.joint("bc").axes[0].xyz == (0.0, 0.0, -1.0)
    assert not model.loop_joints


@given(st.floats(-3, 3), POSE, POSE)
def test_reversed_joint_has_the_inverse_motion(q: float, a: tuple[float, ...], b: tuple[float, ...]) -> None:
    """At each joint position the pose of the child in the parent is the inverse of that of the reversed joint."""
    joint = load_model(ARM_URDF).joint("shoulder")

    def compute_pose(j: Joint) -> SE3:
        rotation = SE3.exp(np.r_[0.0, 0.0, 0.0, q * np.array(j.axes[0].xyz)])
        return j.T_parent_child @ j.T_child_joint @ rotation @ j.T_child_joint.inverse()

    T_a, T_b = SE3.from_xyz_rpy(a[:3], a[3:]), SE3.from_xyz_rpy(b[:3], b[3:])
    joint = replace(joint, T_parent_child=T_a, T_child_joint=T_b)
    assert compute_pose(reverse_joint(joint)).almost_equal(compute_pose(joint).inverse(), 1e-9)
    reversed_twice = reverse_joint(reverse_joint(joint))
    assert reversed_twice.T_child_joint.almost_equal(joint.T_child_joint, 1e-9)
    assert reversed_twice.axes == joint.axes


def test_shared_name_in_old_sdf_refers_to_the_link() -> None:
    """Before SDF 1.7 a link and a joint could share a name; a reference by that name means the link."""
    text = '<link name="a"/><link name="b"/>' + write_revolute_joint("b", "a", "b")
    model = load_model(sdf_model(text, version="1.6"))
    check_model(model)
    assert [joint.name for joint in model.joints] == ["b"]
    assert any("has the same name as another part" in warning.message for warning in model.warnings)


# -- inertia from shapes -----------------------------------------------------------------------------------------------


SIZED_SHAPES = {
    "box": "<box><size>{0} 1 1</size></box>",
    "sphere": "<sphere><radius>{0}</radius></sphere>",
    "ellipsoid": "<ellipsoid><radii>1 {0} 1</radii></ellipsoid>",
    "cylinder_radius": "<cylinder><radius>{0}</radius><length>1</length></cylinder>",
    "cylinder_length": "<cylinder><radius>1</radius><length>{0}</length></cylinder>",
    "capsule_radius": "<capsule><radius>{0}</radius><length>1</length></capsule>",
    "capsule_length": "<capsule><radius>1</radius><length>{0}</length></capsule>",
    "cone_radius": "<cone><radius>{0}</radius><length>1</length></cone>",
    "cone_length": "<cone><radius>1</radius><length>{0}</length></cone>",
}


@pytest.mark.parametrize("repair", [False, True], ids=["as_written", "repaired"])
@pytest.mark.parametrize("shape", SIZED_SHAPES)
@pytest.mark.parametrize("size", ["1e30", "1e100", "1e155", "1e308", "inf", "-inf", "nan"])
def test_automatic_inertia_of_impossible_sizes_is_refused(shape: str, size: str, repair: bool) -> None:
    collision = f'<collision name="c"><geometry>{SIZED_SHAPES[shape].format(size)}</geometry></collision>'
    text = sdf_model(f'\n<link name="a">\n<inertial auto="true"/>{collision}</link>', version="1.11")
    message = r"too large for floating-point numbers \(smaller|at most 1e\+15|is '-?(inf|nan)' \(a finite number"
    with pytest.raises(DescriptionError, match=rf"^<text>:3: .*link 'a'.*({message})") as caught:
        load_model(text, repair=repair)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tag", ["mass", "density"])
@pytest.mark.parametrize("value", ["1e30", "1e308", "inf", "nan", "-1", "0"])
def test_automatic_inertia_of_impossible_masses_is_refused(tag: str, value: str) -> None:
    collision = f'<collision name="c"><geometry>{SIZED_SHAPES["sphere"].format(1)}</geometry></collision>'
    text = sdf_model(
        f'<link name="a"><inertial auto="true"><{tag}>{value}</{tag}></inertial>{collision}</link>', version="1.11"
    )
    with pytest.raises(DescriptionError, match=r"too large for|at most 1e\+15|a finite number|a number above 0"):
        load_model(text)


@pytest.mark.filterwarnings("error")
def test_automatic_inertia_of_too_small_shapes_is_refused() -> None:
    collision = f'<collision name="c"><geometry>{SIZED_SHAPES["box"].format("1e-320")}</geometry></collision>'
    text = sdf_model(
        f'<link name="a"><inertial auto="true"><mass>1</mass></inertial>{collision}</link>', version="1.11"
    )
    with pytest.raises(DescriptionError, match=r"link 'a': its .* too small for a mass of 1 kg \(larger shapes\)$"):
        load_model(text)


def test_huge_shape_with_a_stated_inertia_loads() -> None:
    """The plausibility check of inertia assumes a sphere if the shape is too large for floating-point numbers."""
    shape = SIZED_SHAPES["sphere"].format("1e308")
    inertial = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
    collision = f'<collision name="c"><geometry>{shape}</geometry></collision>'
    sdf_inertial = "<inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>"
    sphere = '<collision><geometry><sphere radius="1e308"/></geometry></collision>'
    for text in (
        sdf_model(f'<link name="a">{sdf_inertial}{collision}</link>'),
        f'<robot name="r"><link name="a">{inertial}{sphere}</link></robot>',
    ):
        model = load_model(text, repair=True)
        assert model.links[0].inertial is not None
        assert model.links[0].inertial.mass == 1.0


def test_automatic_inertia_of_two_halves_equals_that_of_the_full_box() -> None:
    """Two halves of a box have the mass and inertia of the full box."""
    half = (
        '<collision name="{n}"><pose>0 0 {z} 0 0 0</pose><geometry><box><size>1 2 1</size></box></geometry></collision>'
    )
    full_box = '<collision name="w"><geometry><box><size>1 2 2</size></box></geometry></collision>'
    auto = '<link name="a"><inertial auto="true"><density>10</density></inertial>{}</link>'
    two_halves = half.format(n="u", z=0.5) + half.format(n="d", z=-0.5)
    a, b = (
        load_model(sdf_model(auto.format(collisions), version="1.11")).links[0].inertial
        for collisions in (two_halves, full_box)
    )
    assert a is not None
    assert b is not None
    assert a.mass == b.mass == pytest.approx(40.0)
    assert np.allclose(a.inertia, b.inertia)
    assert np.allclose(b.inertia[:3], [40 * 8 / 12, 40 * 5 / 12, 40 * 5 / 12])


# -- sensors -----------------------------------------------------------------------------------------------------------
def test_sdf_sensors_are_read() -> None:
    model = load_model(
        sdf_model("""<link name="a">
        <sensor name="scan" type="ray"><pose>0 0 1 0 0 0</pose><update_rate>5</update_rate><topic>laser</topic><ray>
          <scan><horizontal><samples>100</samples><resolution>2</resolution><min_angle>-2</min_angle>
          <max_angle>2</max_angle></horizontal><vertical><samples>4</samples><min_angle>-0.1</min_angle>
          <max_angle>0.1</max_angle></vertical></scan><range><min>0.1</min><max>inf</max></range></ray></sensor>
        <sensor name="imu" type="imu"><imu><noise><type>gaussian</type><rate><stddev>0.1</stddev></rate>
          <accel><mean>0.2</mean></accel></noise></imu></sensor>
        <sensor name="touch" type="contact"><contact><collision>c</collision></contact></sensor>
        <sensor name="eye" type="thermal"><camera><image><width>64</width></image></camera></sensor></link>""")
    )
    check_model(model)
    scan, imu, touch, eye = model.sensors
    assert isinstance(scan.spec, LidarSpec)
    assert (scan.spec.samples, scan.spec.vertical_samples, scan.spec.range_max) == (200, 4, math.inf)
    assert (scan.topic, scan.frame) == ("laser", "scan")
    assert isinstance(imu.spec, ImuSpec)
    assert imu.spec.angular_velocity[1].stddev == 0.1
    assert imu.spec.linear_acceleration[2].mean == 0.2
    assert (imu.update_rate, imu.frame) == (100.0, "a")
    assert touch.spec == ContactSpec(("c",))
    assert isinstance(eye.spec, CustomSensorSpec)
    assert ("camera/image/width", "64") in eye.spec.parameters
    messages = [warning.message for warning in model.warnings]
    assert sum("no update rate" in message for message in messages) == 3
    assert any("'thermal'" in message for message in messages)


# -- worlds ------------------------------------------------------------------------------------------------------------
def test_sdf_world_is_read() -> None:
    world = load_world(
        sdf_world("""<gravity>0 0 -1.62</gravity>
        <physics name="p" type="ode"><max_step_size>0.004</max_step_size></physics>
        <scene><ambient>0.1 0.2 0.3 1</ambient><background>0 0 0 1</background><fog/></scene>
        <light name="sun" type="directional"><pose>0 0 5 0 0 0</pose><direction>0 0 -1</direction></light>
        <frame name="hall"><pose>10 0 0 0 0 1.5707963267948966</pose></frame>
        <model name="table"><pose relative_to="hall">1 0 0 0 0 0</pose><static>1</static><link name="top"/></model>
        <model name="cup"><pose relative_to="table::top">0 0 0.8 0 0 0</pose><link name="body"/></model>
        <plugin name="gz::sim::systems::Physics" filename="gz-sim-physics-system"/><actor name="walker"/><mystery/>""")
    )
    assert world.gravity == (0.0, 0.0, -1.62)
    assert world.physics.max_step_size == 0.004
    assert world.ambient == (0.1, 0.2, 0.3, 1.0)
    assert [light.name for light in world.lights] == ["sun"]
    assert np.allclose(world.lights[0].T_world_light.xyz, (0, 0, 5))
    table, cup, actor = world.models
    assert table.model.static
    assert actor.model.links[0].name == "figure"
    assert np.allclose(table.T_world_model.xyz, (10, 1, 0))
    assert np.allclose(cup.T_world_model.xyz, (10, 1, 0.8))
    assert [plugin.name for plugin in world.plugins] == ["gz::sim::systems::Physics"]
    messages = [warning.message for warning in world.warnings]
    assert actor.model.actor_script is not None
    assert any("actor 'walker'" in message and "no effect" in message for message in messages)
    assert any("unknown element <mystery>" in message for message in messages)
    assert any("<fog>" in message for message in messages)


def test_gravity_of_old_worlds_is_read() -> None:
    assert load_world(sdf_world("<physics><gravity>1 2 3</gravity></physics>", version="1.5")).gravity == (
        1.0,
        2.0,
        3.0,
    )
    assert load_world(sdf_world("")).gravity == (0.0, 0.0, -9.8)


def test_frame_link_has_no_mass_and_unconnected_link_has_default_mass() -> None:
    text = """<sdf version="1.10"><model name="m">
      <link name="foot"/>
      <link name="body"><inertial><mass>2</mass></inertial></link>
      <link name="loose"/>
      <joint name="j" type="fixed"><parent>foot</parent><child>body</child></joint>
      </model></sdf>"""
    model = load_model(text)
    masses = {link.name: link.inertial.mass if link.inertial else None for link in model.links}
    assert masses == {"foot": None, "body": 2.0, "loose": 1.0}
    assert any("link 'foot' is a massless frame" in str(warning) for warning in model.warnings)


def test_invalid_light_causes_a_warning() -> None:
    """Gazebo accepts such worlds; a light affects only the appearance."""
    text = """<sdf version="1.9"><world name="w"><light name="l" type="spot"><intensity>-1</intensity>
      <attenuation><range>-3</range><constant>-2</constant><linear>0.5</linear></attenuation>
      <spot><outer_angle>-1</outer_angle><falloff>-1</falloff></spot></light></world></sdf>"""
    world = load_world(text)
    (light,) = world.lights
    assert (light.attenuation, light.falloff) == ((0.0, 0.5, 0.0), 0.0)
    assert light.range > 0.0
    assert light.outer_angle > 0.0
    messages = " ".join(str(warning) for warning in world.warnings)
    assert all(f"<{tag}> of a light is -" in messages for tag in ("intensity", "range", "constant", "falloff"))
