"""Inline meshes and height fields of MJCF and motors of fixed tendons agree with MuJoCo."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from roboyard.description import load_model, load_world
from roboyard.description.meshes.files import load_mesh
from roboyard.description.model import Heightmap, Mesh, Model
from roboyard.description.write import write_mjcf, write_sdf, write_urdf
from roboyard.description.write.conversion import DescriptionSource, convert_description

WEDGE = """<mujoco model="wedge"><asset>
 <mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1  .3 .2 0" scale="1 2 1"/></asset>
 <worldbody><body name="wedge" pos="0 0 1"><freejoint/><geom name="g" type="mesh" mesh="wedge" pos=".1 0 0"
  euler="10 20 30" density="500"/></body></worldbody></mujoco>"""

GRIPPER = """<mujoco model="gripper"><worldbody><body name="hand">
 <body name="left"><joint name="left" type="slide" axis="0 1 0" range="0 .04"/><geom size=".02" mass=".1"/></body>
 <body name="right"><joint name="right" type="slide" axis="0 -1 0" range="0 .04"/><geom size=".02" mass=".1"/></body>
 </body></worldbody>
 <tendon><fixed name="split"><joint joint="left" coef=".5"/><joint joint="right" coef=".5"/></fixed></tendon>
 <equality><joint joint1="right" joint2="left"/></equality>
 <actuator><general name="grip" tendon="split" biastype="affine" gainprm="4" biasprm="0 -100 -10"
  ctrlrange="0 1" forcerange="-50 50"/></actuator></mujoco>"""


def test_inline_points_form_the_mesh() -> None:
    model = load_model(WEDGE)
    shape = model.links[0].collisions[0].geometry
    assert isinstance(shape, Mesh)
    assert not model.warnings
    plain = mujoco.MjModel.from_xml_string(WEDGE)
    data = mujoco.MjData(plain)
    mujoco.mj_forward(plain, data)
    vertices, faces = load_mesh(shape)
    T = model.links[0].collisions[0].T_link_geom
    model_vertices = vertices @ T.rotation_matrix().T + T.translation
    mujoco_vertices = plain.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0] - data.xpos[1]
    assert np.allclose(model_vertices, mujoco_vertices, atol=1e-6)
    assert len(faces) == plain.nmeshface
    assert model.mass == pytest.approx(plain.body_mass.sum(), rel=1e-9)


def test_inline_points_survive_mjcf_and_are_files_in_other_formats(tmp_path: Path) -> None:
    model = load_model(WEDGE)
    read_back = load_model(write_mjcf(model).text)
    assert np.allclose(_find_corners(model), _find_corners(read_back), atol=2e-5)
    for written in (write_sdf(model), write_urdf(model)):
        assert any("is written as its box" in loss for loss in written.losses)
    (tmp_path / "wedge.xml").write_text(WEDGE)
    for format_name in ("sdf", "urdf"):
        source = DescriptionSource(load_model(tmp_path / "wedge.xml"), tmp_path / "wedge.xml")
        result = convert_description(source, format_name, tmp_path / f"wedge.{format_name}")  # type: ignore[arg-type]
        assert not [loss for loss in result.losses if "box" in loss]
        converted = load_model(result.out)
        assert np.allclose(_find_corners(converted), _find_corners(model), atol=2e-5)


def _find_corners(model: Model) -> np.ndarray:
    """Return the sorted vertices of the collision mesh in the link frame."""
    collision = model.links[-1].collisions[0]
    assert isinstance(collision.geometry, Mesh)
    T = collision.T_link_geom
    points = load_mesh(collision.geometry)[0] @ T.rotation_matrix().T + T.translation
    return np.unique(points.round(5) + 0.0, axis=0)


def test_inline_heights_form_the_terrain() -> None:
    text = """<mujoco><asset><hfield name="hills" nrow="2" ncol="3" size="3 1 .5 .1" elevation="0 1 2  3 4 4"/></asset>
     <worldbody><geom type="hfield" hfield="hills"/></worldbody></mujoco>"""
    world = load_world(text)
    shape = world.models[0].model.links[0].collisions[0].geometry
    assert isinstance(shape, Heightmap)
    assert shape.inline is not None
    assert shape.size == (6.0, 2.0, 0.5)
    heights = np.frombuffer(shape.inline.values, np.float32).reshape(-1, shape.inline.columns)
    plain = mujoco.MjModel.from_xml_string(text)
    assert np.array_equal(heights.ravel(), plain.hfield_data)
    read_back = load_world(write_mjcf(world).text).models[0].model.links[0].collisions[0].geometry
    assert isinstance(read_back, Heightmap)
    assert read_back.inline == shape.inline


def test_tendon_motor_drives_the_driving_joint() -> None:
    """The force on the driving joint equals that of MuJoCo along the coupled motion for each command and position."""
    model = load_model(GRIPPER)
    (interface_of_grip,) = [interface for interface in model.interfaces if interface.commands]
    gains = dict(interface_of_grip.parameters)
    kp, kd = float(gains["pos_kp"]), float(gains["pos_kd"])
    plain = mujoco.MjModel.from_xml_string(GRIPPER)
    data = mujoco.MjData(plain)
    for control, position, speed in ((0.3, 0.01, 0.0), (0.9, 0.02, 0.1), (0.1, 0.03, -0.2)):
        data.ctrl[0], data.qpos[:], data.qvel[:] = control, position, speed
        mujoco.mj_forward(plain, data)
        length_target = control * 4.0 / 100.0  # the tendon length at which the servo exerts no force
        assert kp * (length_target - position) - kd * speed == pytest.approx(float(data.qfrc_actuator.sum()), rel=1e-9)
    assert interface_of_grip.joint == "left"
    assert interface_of_grip.commands == (("position", 0.0, pytest.approx(0.04)),)


def test_elements_without_effect_cause_warnings() -> None:
    text = GRIPPER.replace('name="split"', 'name="split" stiffness="10"').replace(
        "</mujoco>", '<keyframe><key name="open" qpos=".04 .04"/></keyframe></mujoco>'
    )
    messages = [warning.message for warning in load_model(text).warnings]
    assert any("'split'" in message and "tendons" in message for message in messages)
    assert any("keyframe 'open'" in message for message in messages)


def test_fixed_point_mass_is_kept() -> None:
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/>
      <body name="knob" pos=".1 0 0"><inertial pos="0 0 0" mass="0.25" diaginertia="0 0 0"/></body></body>
      </worldbody></mujoco>"""
    model = load_model(text)
    assert model.mass == pytest.approx(mujoco.MjModel.from_xml_string(text).body_mass.sum(), rel=1e-12)
    assert any("point mass of 0.25 kg" in warning.message for warning in model.warnings)


def test_mesh_of_a_plugin_is_a_placeholder() -> None:
    text = """<mujoco><extension><plugin plugin="mujoco.sdf.torus"/></extension>
      <asset><mesh name="torus"><plugin plugin="mujoco.sdf.torus"/></mesh></asset>
      <worldbody><body name="a"><freejoint/><geom size=".1"/><geom type="mesh" mesh="torus" mass="0.1"/></body>
      </worldbody></mujoco>"""
    model = load_model(text)
    assert any("'torus' has no supported vertices" in warning.message for warning in model.warnings)
    assert len(model.links[0].collisions) == 2
