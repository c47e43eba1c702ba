"""MJCF documents: the reader and MuJoCo agree on masses, poses, shapes, joints, contacts, sensors and cameras."""

import math
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.description.mjcf_samples import ALL_ELEMENTS, CART, SMALL_WORLD, disable_mujoco_log

from roboyard.description import Box, Cylinder, LidarSpec, Mesh, Model, Plane, load_model, load_world
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3


@pytest.fixture(autouse=True, scope="module")
def _no_log_file() -> Iterator[None]:
    with disable_mujoco_log():
        yield


def check_agreement(model: Model, plain: mujoco.MjModel, names: dict[int, str] | None = None) -> None:
    """Check that masses, inertia and poses in the world frame, which is the model frame, equal those of MuJoCo."""
    data = mujoco.MjData(plain)
    mujoco.mj_kinematics(plain, data)
    assert model.mass == pytest.approx(float(plain.body_mass[1:].sum()), rel=1e-12)
    for body in range(1, plain.nbody):
        name = plain.body(body).name or (names or {}).get(body, f"body_{body}")
        link = model.link(name)
        T_world_body = SE3(data.xquat[body], data.xpos[body])
        assert link.T_model_link.almost_equal(T_world_body, 1e-9), name
        if link.inertial is None:
            assert plain.body_mass[body] == 0.0
            continue
        assert link.inertial.mass == pytest.approx(float(plain.body_mass[body]), rel=1e-12)
        assert np.allclose(link.inertial.inertia[:3], plain.body_inertia[body], rtol=1e-9)
        assert link.inertial.T_link_com.almost_equal(SE3(plain.body_iquat[body], plain.body_ipos[body]), 1e-9)


@pytest.mark.filterwarnings("ignore:compiler attribute")
def test_external_mjcf_files_agree_with_mujoco(external_data: Path) -> None:
    files = [
        file
        for file in sorted((external_data / "descriptions").rglob("*.xml"))
        if b"<mujoco" in file.read_bytes()[:4000]
    ]
    assert len(files) >= 15
    for file in files:
        check_agreement(load_model(file), mujoco.MjModel.from_xml_path(str(file)))
        world = load_world(file)
        assert sum(placed.model.mass for placed in world.models) == pytest.approx(load_model(file).mass, rel=1e-12)


@pytest.mark.parametrize("text", [CART, ALL_ELEMENTS.replace('<key name="home"', '<key name="else"')])
def test_sample_mjcf_documents_agree_with_mujoco(text: str) -> None:
    check_agreement(load_model(text), mujoco.MjModel.from_xml_string(text))


numbers = st.floats(-1.0, 1.0, allow_subnormal=False).map(lambda value: round(value, 6))
positions = st.tuples(numbers, numbers, numbers).map(lambda xyz: " ".join(map(repr, xyz)))
sizes = st.floats(0.01, 1.0).map(lambda value: round(value, 6))


@st.composite
def bodies(draw: st.DrawFn, depth: int = 0) -> str:
    """Return a random body with a geom, optional joints and child bodies, without names."""
    orientation = draw(st.sampled_from(['euler="{}"', 'axisangle="0 1 0 {}"', 'xyaxes="0 1 0 -1 0 0"', ""]))
    orientation = orientation.format(draw(positions) if "euler" in orientation else draw(numbers))
    joint = draw(st.sampled_from(["", '<joint axis="0 1 0"/>', '<joint type="slide"/><joint axis="1 1 0"/>']))
    kind = draw(st.sampled_from(["sphere", "capsule", "box", "ellipsoid", "cylinder"]))
    size = " ".join(repr(draw(sizes)) for _ in range(3))
    content = "".join(draw(st.lists(bodies(depth + 1), max_size=2))) if depth < 3 else ""
    frame = draw(st.sampled_from(["{}", '<frame pos="0.1 0.2 0.3" euler="10 0 0">{}</frame>']))
    geom = f'<geom type="{kind}" size="{size}" pos="{draw(positions)}"/>'
    return frame.format(f'<body pos="{draw(positions)}" {orientation}>{joint}{geom}{content}</body>')


@settings(max_examples=60)
@given(st.lists(bodies(), min_size=1, max_size=3), st.sampled_from(["degree", "radian"]), st.booleans())
def test_arbitrary_mjcf_trees_agree_with_mujoco(body_texts: list[str], angle: str, has_total_mass: bool) -> None:
    total = ' settotalmass="7"' if has_total_mass else ""
    content = "".join(body_texts)
    text = f'<mujoco><compiler angle="{angle}" eulerseq="zxy"{total}/><worldbody>{content}</worldbody></mujoco>'
    spec = mujoco.MjSpec.from_string(text)
    with pytest.warns() if has_total_mass else pytest.MonkeyPatch.context():
        plain = spec.compile()
    check_agreement(load_model(text), plain)


def test_mjcf_meshes_have_the_poses_of_mujoco(tmp_path: Path) -> None:
    horn = trimesh.creation.cone(0.1, 0.3)
    horn.apply_translation((0.05, 0.02, 0.1))
    (tmp_path / "meshes").mkdir()
    horn.export(tmp_path / "meshes" / "horn.stl")
    text = """<mujoco><compiler meshdir="meshes"/><asset>
      <mesh file="horn.stl" scale="1 2 0.5" refpos="0.01 0.02 0.03"/>
      <mesh name="turned" file="horn.stl" refquat="1 1 0 0"/>
    </asset><worldbody>
      <body name="a" pos="0 0 1" euler="10 20 30"><freejoint/><geom type="mesh" mesh="horn" pos="1 0 0" euler="0 0 40"/>
      <geom type="mesh" mesh="turned"/><geom type="cylinder" mesh="turned" name="fitted"/></body>
    </worldbody></mujoco>"""
    file = tmp_path / "horn.xml"
    file.write_text(text)
    model, plain = load_model(file), mujoco.MjModel.from_xml_path(str(file))
    check_agreement(model, plain)
    for geom, collision in enumerate(model.link("a").collisions[:2]):
        assert isinstance(collision.geometry, Mesh)
        assert collision.geometry.file is not None
        vertices = trimesh.load(collision.geometry.file, force="mesh").vertices * np.array(collision.geometry.scale)
        model_vertices = collision.T_link_geom @ vertices
        mesh = plain.geom_dataid[geom]
        first, count = plain.mesh_vertadr[mesh], plain.mesh_vertnum[mesh]
        mujoco_vertices = SE3(plain.geom_quat[geom], plain.geom_pos[geom]) @ plain.mesh_vert[
            first : first + count
        ].astype(float)
        distances = np.linalg.norm(model_vertices[:, None] - mujoco_vertices[None], axis=2)
        assert distances.min(axis=1).max() < 1e-6
        assert distances.min(axis=0).max() < 1e-6
    fitted = model.link("a").collisions[2].geometry
    assert isinstance(fitted, Cylinder)
    assert fitted.radius == pytest.approx(float(plain.geom_size[2][0]))


def test_strippath_finds_files_by_their_last_part(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / "assets" / "box.stl")
    text = """<mujoco><compiler meshdir="assets" strippath="{}"/><asset><mesh file="C:\\robots/box.stl"/></asset>
    <worldbody><body name="a"><freejoint/><geom type="mesh" mesh="box"/></body></worldbody></mujoco>"""
    for strip, is_found in (("true", True), ("false", False)):
        (tmp_path / "r.xml").write_text(text.format(strip))
        shape = load_model(tmp_path / "r.xml").link("a").collisions[0].geometry
        assert isinstance(shape, Mesh)
        assert (shape.file is not None) is is_found


def test_mjcf_joints_limits_motors_and_couplings_are_read() -> None:
    model = load_model(ALL_ELEMENTS)
    shoulder, lift, slide = (model.joint(name).axes[0] for name in ("shoulder", "lift", "slide"))
    assert (shoulder.limits.lower, shoulder.limits.upper) == pytest.approx((-math.pi / 2, math.pi / 2))
    assert shoulder.limits.effort == pytest.approx(10.0)
    assert (shoulder.dynamics.damping, shoulder.dynamics.armature) == (0.5, 0.01)
    assert lift.limits.effort == 5.0
    assert (slide.limits.lower, slide.limits.upper) == pytest.approx((-0.01, 0.04))
    assert (slide.dynamics.stiffness, slide.dynamics.reference) == pytest.approx((3.0, 0.01))
    assert [model.joint(name).type for name in ("wrist", "hip0", "shoulder")] == ["ball", "continuous", "revolute"]
    mimic = model.joint("slide2").mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("slide", -1.0, 0.001)
    commands = {
        interface.joint: {mode: (low, high) for mode, low, high in interface.commands} for interface in model.interfaces
    }
    assert commands["shoulder"] == {"effort": (-10.0, 10.0)}
    assert commands["lift"] == {"position": (-30.0, 30.0)}
    assert list(commands["hip0"]) == ["velocity"]
    gains = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
    assert (gains["lift"]["pos_kp"], gains["lift"]["pos_kd"], gains["hip1"]["pos_kp"]) == ("20.0", "2.0", "7.0")
    assert model.loop_joints[0].name == "loop"
    starts = {interface.joint: dict(interface.initial).get("position") for interface in model.interfaces}
    assert (starts["shoulder"], starts["lift"]) == (0.3, 0.2)
    assert starts["slide"] == pytest.approx(0.01)
    assert model.link("base").T_model_link.z == pytest.approx(0.7)


def test_velocity_actuator_drives_a_wheel() -> None:
    text = CART.replace("<velocity kv", "<motor gear").replace('<velocity joint="left"', '<motor joint="left"')
    wheel = next(interface for interface in load_model(text).interfaces if interface.joint == "left")
    assert [mode for mode, _, _ in wheel.commands] == ["effort", "velocity"]


def test_link_contacts_agree_with_mujoco() -> None:
    """The model enables collisions for exactly those pairs of bodies for which MuJoCo does."""
    text = ALL_ELEMENTS.replace("<freejoint/>\n", '<freejoint/><geom size="3" pos="0 0 0" name="bubble" mass="0.1"/>\n')
    model, plain = load_model(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(plain)
    mujoco.mj_forward(plain, data)
    contacts = {frozenset(int(plain.geom_bodyid[g]) for g in contact.geom) for contact in data.contact}
    pairs = {frozenset(plain.body(body).name for body in pair) for pair in contacts if 0 not in pair and len(pair) == 2}
    joined = {frozenset((joint.parent, joint.child)) for joint in model.joints}
    excluded = {frozenset(pair) for pair in model.disabled_collisions} | joined
    colliding = [link.name for link in model.links if link.self_collide]
    assert pairs
    for pair in pairs - {frozenset(("base", "post"))}:
        assert pair <= set(colliding), pair
        assert pair not in excluded
    for first, second in (("base", "hand"), ("base", "arm"), ("base", "leg0"), ("arm", "hand")):
        assert frozenset((first, second)) in excluded or not {first, second} <= set(colliding)
        assert frozenset((first, second)) not in pairs


def test_rangefinders_form_a_lidar() -> None:
    cart = load_model(CART)
    kinds = {sensor.name: sensor.kind for sensor in cart.sensors}
    assert kinds == {"imu": "imu", "scan": "lidar", "encoders": "encoder"}
    scan = next(sensor for sensor in cart.sensors if sensor.kind == "lidar")
    assert isinstance(scan.spec, LidarSpec)
    assert (scan.spec.samples, scan.update_rate, scan.spec.range_max) == (180, 10.0, 12.0)
    assert scan.spec.angle_max - scan.spec.angle_min == pytest.approx(math.radians(358.0))
    assert {sensor.name for sensor in load_model(ALL_ELEMENTS).sensors} == {"palm", "feel", "far", "where", "encoders"}


@settings(max_examples=30)
@given(st.integers(2, 40), st.floats(-180.0, 180.0), st.floats(0.5, 8.0), positions)
def test_fan_of_rangefinders_is_one_lidar(count: int, start: float, step: float, xyz: str) -> None:
    fan = f'<replicate count="{count}" euler="0 0 {step!r}"><site name="s" zaxis="1 0 0"/></replicate>'
    text = f"""<mujoco><worldbody><body><geom size="1"/><frame pos="{xyz}" euler="0 0 {start!r}">{fan}</frame></body>
    </worldbody><sensor><rangefinder name="scan" site="s"/></sensor></mujoco>"""
    (sensor,) = load_model(text).sensors
    assert isinstance(sensor.spec, LidarSpec)
    assert sensor.spec.samples == count
    plain = mujoco.MjModel.from_xml_string(text)
    angles = np.linspace(sensor.spec.angle_min, sensor.spec.angle_max, count)
    rays = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(count)]) @ sensor.T_link_sensor.rotation_matrix().T
    mujoco_rays = np.array([SE3(quat).rotation_matrix()[:, 2] for quat in plain.site_quat])
    order = [int(np.argmin(np.linalg.norm(mujoco_rays - ray, axis=1))) for ray in rays]
    assert sorted(order) == list(range(count))
    assert np.abs(mujoco_rays[order] - rays).max() < 1e-6


def test_mjcf_world_has_static_and_free_models_and_lights() -> None:
    world = load_world(SMALL_WORLD)
    assert [(placed.name, placed.model.static) for placed in world.models] == [("scenery", True), ("crate", False)]
    assert world.models[1].T_world_model.almost_equal(SE3(translation=(3.0, 2.0, 0.3)))
    floor, wall = (link.collisions[0].geometry for link in world.models[0].model.links)
    assert (floor, wall) == (Plane(size=(40.0, 40.0)), Box((0.2, 6.0, 1.0)))
    assert world.lights[0].type == "directional"
    assert world.gravity == (0.0, 0.0, -9.81)


def test_mjcf_includes_are_read_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "leg.xml").write_text('<mujoco><body name="leg"><joint/><geom size="0.1"/></body></mujoco>')
    (tmp_path / "parts" / "both.xml").write_text('<mujoco><include file="leg.xml"/></mujoco>')
    file = tmp_path / "robot.xml"
    file.write_text('<mujoco model="r"><worldbody><include file="parts/both.xml"/></worldbody></mujoco>')
    assert [link.name for link in load_model(file).links] == ["leg"]


def test_warnings_name_omitted_elements_and_references_to_them() -> None:
    """Tracking cameras and flexible bodies with their constraints are omitted; plugin shapes keep their mass."""
    model = load_model("""<mujoco><worldbody>
      <body name="a"><freejoint/><geom type="sdf" mesh="m" mass="2" pos="0 0 1"/>
      <camera name="eye" mode="track"/></body>
      <flexcomp name="cloth" type="grid" count="3 3 1"/></worldbody>
      <asset><mesh name="m" builtin="sphere" params="1"/></asset>
      <equality><weld body1="cloth_0" body2="a"/><weld name="held" body1="a"/></equality>
      <contact><exclude body1="a" body2="cloth_1"/></contact></mujoco>""")
    messages = [warning.message for warning in model.warnings]
    assert model.mass == pytest.approx(2.0)
    for text in ("camera 'eye' has no effect", "a box of 0.1 m is used", "body 'cloth_0' is not created",
                 "body 'cloth_1' is not created"):  # fmt: skip
        assert any(text in message for message in messages), text


UNSUPPORTED_ELEMENTS = [
    ('<option><flag contact="disable"/></option>', "contact cannot be switched off"),
    ('<equality><joint joint1="k" joint2="l" polycoef="0 1 2 0 0"/></equality>', "coupled nonlinearly"),
    ('<equality><weld body1="b" body2="c" active="false" name="late"/></equality>', "'late' is inactive at the start"),
    ('<equality><connect site1="s" site2="t"/></equality>', "are 1 m apart"),
    ('<equality><tendon tendon1="cord"/></equality>', "unsupported type"),
    ('<actuator><muscle joint="k" lengthrange="0 1"/></actuator>', "neither a motor nor a position or velocity servo"),
    (
        '<actuator><damper joint="k" kv="2" ctrlrange="0 1"/></actuator>',
        "neither a motor nor a position or velocity servo",
    ),
    ('<actuator><motor joint="ball"/></actuator>', "does not drive a single hinge"),
    ('<actuator><motor site="s"/></actuator>', "does not drive a single hinge"),
    ('<actuator><dcmotor joint="k"/></actuator>', "unknown element <dcmotor>"),
    ('<actuator><position joint="k" kp="1" timeconst="0.1"/></actuator>', "activation dynamics"),
    ('<actuator><intvelocity joint="k" kp="1" actrange="-1 1"/></actuator>', "integrates its command"),
    ('<actuator><general joint="k" gainprm="1" biastype="affine" biasprm="0 1 0"/></actuator>', "the wrong sign"),
    ('<keyframe><key name="home" ctrl=""/></keyframe>', "ctrl of the keyframe 'home'"),
]


@pytest.mark.parametrize(("part", "expected"), UNSUPPORTED_ELEMENTS)
def test_warnings_of_unsupported_mjcf_elements_state_their_line(part: str, expected: str) -> None:
    model = load_model(
        f"""<mujoco><worldbody>
        <body name="b"><joint name="k"/><geom size="0.1"/><site name="s"/></body>
        <body name="c" pos="1 0 0"><joint name="l"/><geom size="0.1"/><site name="t"/></body>
        <body><joint name="ball" type="ball"/><geom size="0.1"/></body>
        <body><joint type="free" damping="1"/><geom size="0.1"/></body></worldbody>
        <tendon><fixed name="cord"><joint joint="k" coef="1"/></fixed></tendon>
        {part}</mujoco>"""
    )
    lines_by_message = {warning.message: warning.line for warning in model.warnings}
    assert [line for message, line in lines_by_message.items() if expected in message] == [7]
    assert [line for message, line in lines_by_message.items() if "free joint" in message] == [5]


def test_second_servo_of_a_joint_is_omitted() -> None:
    text = """<mujoco><worldbody><body name="b"><joint name="k"/><geom size="0.1"/></body></worldbody><actuator>
      <position joint="k" kp="3"/>
      <position joint="k" kp="5" name="p"/></actuator></mujoco>"""
    model = load_model(text)
    assert dict(model.interfaces[0].parameters)["pos_kp"] == "3.0"
    assert [warning.line for warning in model.warnings if "'p' is the second position servo" in warning.message] == [3]


def test_mjcf_world_without_gravity_is_read() -> None:
    content = '<worldbody><body name="b"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    assert load_world(f'<mujoco><option><flag gravity="disable"/></option>{content}').gravity == (0.0, 0.0, 0.0)


def test_body_fixed_to_the_world_stays_at_its_pose() -> None:
    """The anchor of a loop joint to the world is expressed in the frame of its model."""
    text = """<mujoco><worldbody><body name="b" pos="1 2 3" euler="0 0 90"><freejoint/><geom size="0.1"/></body>
      </worldbody><equality><connect body1="b" anchor="0.1 0 0"/></equality></mujoco>"""
    placed = load_world(text).models[0]
    loop = placed.model.loop_joints[0]
    joint = placed.T_world_model @ loop.T_parent_child @ loop.T_child_joint
    assert joint.xyz == pytest.approx((1.0, 2.1, 3.0))


@pytest.mark.parametrize(("count", "last"), [(360, 6.28), (4, 6.0), (8, 2.0 * math.pi - 0.3)])
def test_lidar_of_less_than_a_full_rotation_is_kept(count: int, last: float) -> None:
    """The gap between the first and the last beam differs from the spacing of beams."""
    step = last / (count - 1)
    beams = "".join(
        f'<site name="s{k}" zaxis="{math.cos(k * step)!r} {math.sin(k * step)!r} 0"/>' for k in range(count)
    )
    rangefinders = "".join(f'<rangefinder name="scan-{k}" site="s{k}" cutoff="3"/>' for k in range(count))
    model = load_model(
        f'<mujoco><worldbody><body><geom size="1"/>{beams}</body></worldbody><sensor>{rangefinders}</sensor></mujoco>'
    )
    (scan,) = model.sensors
    assert isinstance(scan.spec, LidarSpec)
    assert scan.spec.samples == count
    assert scan.spec.angle_max - scan.spec.angle_min == pytest.approx(last)


def test_fixed_cameras_have_the_poses_and_lenses_of_mujoco() -> None:
    """A MuJoCo camera views along −z with y up, a camera sensor along x with z up; the three axes coincide."""
    text = """<mujoco><worldbody><body name="b" pos="0 0 1"><freejoint/><geom size="0.1"/>
      <camera name="eye" fovy="50" resolution="320 240" pos="0.1 0.2 0.3" euler="20 -70 40"/>
      <camera name="wide" sensorsize="0.004 0.003" focal="0.002 0.0015" resolution="64 48" output="rgb depth"/>
      <camera/></body></worldbody></mujoco>"""
    model = load_model(text)
    plain = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(plain)
    mujoco.mj_kinematics(plain, data)
    mujoco.mj_camlight(plain, data)
    eye, wide, default_camera = model.sensors
    assert [sensor.kind for sensor in model.sensors] == ["camera", "rgbd_camera", "camera"]
    axes = data.cam_xmat[0].reshape(3, 3)
    rotation = eye.T_link_sensor.rotation_matrix()
    assert np.allclose(rotation[:, 0], -axes[:, 2])
    assert np.allclose(rotation[:, 1], -axes[:, 0])
    assert np.allclose(rotation[:, 2], axes[:, 1])
    assert np.allclose(eye.T_link_sensor.translation, (0.1, 0.2, 0.3))
    camera_model = eye.spec.color
    assert 2.0 * math.atan(0.5 * camera_model.height / camera_model.fy) == pytest.approx(math.radians(50.0))
    assert (wide.spec.color.fx, wide.spec.color.fy) == pytest.approx((32.0, 24.0))
    assert wide.spec.depth == wide.spec.color
    assert (default_camera.name, default_camera.spec.color.width) == ("camera", 640)
    assert any("no resolution" in warning.message for warning in model.warnings)


@pytest.mark.parametrize("size", ["0 48", "1000000 1000000", "-3 4"])
def test_cameras_without_size_are_refused(size: str) -> None:
    with pytest.raises(DescriptionError, match="camera|resolution|pixels"):
        load_model(f"""<mujoco><worldbody><body name="b"><geom size="0.1"/>
          <camera resolution="{size}"/></body></worldbody></mujoco>""")
