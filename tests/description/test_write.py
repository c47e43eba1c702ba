"""Written and read again, a model is the same up to the losses that were stated."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.description.mjcf_samples import CART, RICH, YARD
from tests.harness.descriptions import ARM_URDF, INERTIAL

import roboyard
from roboyard.description import (
    AxisLimits,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Geometry,
    Inertial,
    Joint,
    Link,
    Model,
    Plane,
    Sphere,
    World,
    load_model,
    load_world,
)
from roboyard.description.model import Axis, JointDynamics
from roboyard.description.write import WrittenDescription, write_mjcf, write_sdf, write_urdf
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.simulation import Simulation

WRITERS: dict[str, Callable[..., WrittenDescription]] = {"urdf": write_urdf, "sdf": write_sdf, "mjcf": write_mjcf}
ROVER = Path(roboyard.__file__).parent / "robots" / "rover" / "rover.urdf.xacro"
ARENA = Path(roboyard.__file__).parent / "worlds" / "arena.sdf"


def tensor(inertial: Inertial) -> np.ndarray:
    """Inertia in link axes."""
    ixx, iyy, izz, ixy, ixz, iyz = inertial.inertia
    R = inertial.T_link_com.rotation_matrix()
    return np.asarray(R @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ R.T)


def check_same_shape(one: Geometry, other: Geometry) -> None:
    """Equal up to rounding; a plane's normal may have become part of its pose."""
    assert type(one) is type(other)
    for name in ("size", "radius", "length", "radii"):
        if hasattr(one, name) and not isinstance(one, Plane):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9)


def check_same(one: Model, other: Model, losses: Sequence[str] = ()) -> None:
    """The laws of converting: links, joints, masses, inertia, poses, limits, shapes; up to the stated losses."""
    surfaces = not any("one surface" in loss for loss in losses)
    fixed_names = not any("names of fixed joints" in loss for loss in losses)
    moved = any("origin moves" in loss for loss in losses)
    T_root, T_back_root = (m.roots[0].T_model_link if moved else SE3.identity() for m in (one, other))
    assert {link.name for link in one.links} == {link.name for link in other.links}
    assert one.static == other.static
    assert one.mass == pytest.approx(other.mass, rel=1e-9)
    for link in one.links:
        back = other.link(link.name)
        assert (T_root.inverse() @ link.T_model_link).almost_equal(T_back_root.inverse() @ back.T_model_link, 1e-7)
        assert (link.gravity, link.self_collide) == (back.gravity, back.self_collide), link.name
        if not one.static:
            assert (link.inertial is None) == (back.inertial is None), link.name
        if link.inertial is not None and back.inertial is not None:
            assert link.inertial.mass == pytest.approx(back.inertial.mass, rel=1e-9)
            assert np.allclose(link.inertial.T_link_com.translation, back.inertial.T_link_com.translation, atol=1e-9)
            assert np.allclose(tensor(link.inertial), tensor(back.inertial), rtol=1e-8, atol=1e-12)
        assert len(link.collisions) == len(back.collisions)
        for mine, theirs in zip(link.collisions, back.collisions, strict=True):
            check_same_shape(mine.geometry, theirs.geometry)
            assert not surfaces or mine.surface.friction == pytest.approx(theirs.surface.friction, abs=1e-9)
            if not isinstance(mine.geometry, Plane):
                assert mine.T_link_geom.almost_equal(theirs.T_link_geom, 1e-7)
        assert len(link.visuals) == len(back.visuals)
    joints = {joint.child: joint for joint in other.joints}
    assert len(one.joints) == len(other.joints)
    for joint in one.joints:
        back_joint = joints[joint.child]
        assert fixed_names is False or joint.name == back_joint.name
        assert joint.parent == back_joint.parent
        assert joint.T_parent_child.almost_equal(back_joint.T_parent_child, 1e-7)
        endless = joint.axes and math.isinf(joint.axes[0].limits.lower) and math.isinf(joint.axes[0].limits.upper)
        kinds = {"revolute", "continuous"} if endless else {joint.type}
        assert back_joint.type in kinds | {joint.type}
        for axis, back_axis in zip(joint.axes, back_joint.axes, strict=True):
            assert np.allclose(
                joint.T_child_joint.rotation_matrix() @ axis.xyz,
                back_joint.T_child_joint.rotation_matrix() @ back_axis.xyz,
                atol=1e-9,
            )
            assert (axis.limits.lower, axis.limits.upper) == pytest.approx(
                (back_axis.limits.lower, back_axis.limits.upper), rel=1e-9
            )
            assert axis.limits.effort == pytest.approx(back_axis.limits.effort)
            assert axis.dynamics.damping == pytest.approx(back_axis.dynamics.damping)
            assert axis.dynamics.friction == pytest.approx(back_axis.dynamics.friction)
        assert (joint.mimic is None) == (back_joint.mimic is None)
        if joint.mimic and back_joint.mimic:
            assert joint.mimic.multiplier == pytest.approx(back_joint.mimic.multiplier)


numbers = st.floats(-2.0, 2.0).map(lambda value: round(value, 6))
sizes = st.floats(0.01, 2.0).map(lambda value: round(value, 6))
triples = st.tuples(numbers, numbers, numbers)
poses = st.builds(SE3.from_xyz_rpy, triples, triples)


@st.composite
def shapes(draw: st.DrawFn) -> Geometry:
    """A shape that all three formats know."""
    a, b, c = draw(sizes), draw(sizes), draw(sizes)
    return draw(st.sampled_from([Box((a, b, c)), Sphere(a), Cylinder(a, b), Capsule(a, b)]))


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A tree of links with mass, hinges, slides and fixed joints."""
    links: list[Link] = []
    joints: list[Joint] = []
    for index in range(draw(st.integers(1, 5))):
        a, b = draw(sizes), draw(sizes)
        inertial = Inertial(draw(sizes), draw(poses), (a, b, max(a, b), 0.0, 0.0, 0.0))
        shape = draw(shapes())
        T = SE3.identity()
        if index:
            parent = draw(st.integers(0, index - 1))
            kind = draw(st.sampled_from(["fixed", "revolute", "continuous", "prismatic"]))
            x, y, z = draw(triples.filter(lambda xyz: max(map(abs, xyz)) > 0.1))
            length = math.sqrt(x * x + y * y + z * z)
            limits = AxisLimits(-draw(sizes), draw(sizes), math.inf, draw(sizes))
            if kind == "continuous":
                limits = AxisLimits(effort=draw(sizes))
            dynamics = JointDynamics(draw(sizes), draw(sizes))
            axes = () if kind == "fixed" else (Axis((x / length, y / length, z / length), limits, dynamics),)
            T_parent_child = draw(poses)
            T = links[parent].T_model_link @ T_parent_child
            joint = Joint(f"j{index}", kind, f"l{parent}", f"l{index}", T_parent_child, SE3.identity(), axes)
            joints.append(joint)
        links.append(Link(f"l{index}", T, inertial, (Collision("c", shape, draw(poses)),)))
    return Model("m", tuple(links), tuple(joints), canonical_link="l0")


@pytest.mark.parametrize("to", WRITERS)
@settings(max_examples=20)
@given(model=models())
def test_arbitrary_models_survive_writing_and_reading(to: str, model: Model) -> None:
    written = WRITERS[to](model)
    back = load_model(written.text)
    check_same(model, back, written.losses)


@pytest.mark.parametrize("to", WRITERS)
@pytest.mark.parametrize("source", [ARM_URDF, ROVER, CART], ids=["arm", "rover", "cart"])
def test_own_robots_survive_writing_and_reading(to: str, source: str | Path) -> None:
    model = load_model(source)
    written = WRITERS[to](model)
    back = load_model(written.text)
    check_same(model, back, written.losses)
    kinds = sorted(sensor.kind for sensor in back.sensors)
    assert kinds == sorted(sensor.kind for sensor in model.sensors)
    if to == "mjcf":  # topics are what nodes ask for
        told = {sensor.topic for sensor in model.sensors if sensor.kind != "encoder"}
        assert {sensor.topic for sensor in back.sensors if sensor.kind != "encoder"} == told
    else:
        assert sorted(back.sensors, key=lambda one: one.name) == sorted(model.sensors, key=lambda one: one.name)
    if to == "urdf":
        assert {one.joint: one.commands for one in back.interfaces} == {
            one.joint: one.commands for one in model.interfaces
        }


def test_robot_survives_conversion_through_all_formats() -> None:
    model = load_model(ARM_URDF)
    there = load_model(write_mjcf(load_model(write_sdf(model).text)).text)
    check_same(model, load_model(write_urdf(there).text), ("names of fixed joints",))


def test_mjcf_survives_writing_and_reading() -> None:
    model = load_model(RICH)
    back = load_model(write_mjcf(model).text)
    check_same(model, back, ())
    assert back.disabled_collisions == model.disabled_collisions
    assert [joint.axes for joint in back.joints] == [joint.axes for joint in model.joints]
    assert [(loop.name, loop.type) for loop in back.loop_joints] == [
        (loop.name, loop.type) for loop in model.loop_joints
    ]
    assert {one.joint: one.initial for one in back.interfaces} == {one.joint: one.initial for one in model.interfaces}


@pytest.mark.parametrize("to", ["sdf", "mjcf"])
@pytest.mark.parametrize("source", [ARENA, YARD], ids=["arena", "yard"])
def test_worlds_survive_writing_and_reading(to: str, source: str | Path) -> None:
    world = load_world(source)
    back: World = load_world(WRITERS[to](world).text)
    assert back.name == world.name
    assert back.gravity == pytest.approx(world.gravity)
    assert [light.type for light in back.lights] == [light.type for light in world.lights]
    assert [placed.name for placed in back.models] == [placed.name for placed in world.models]
    for mine, theirs in zip(world.models, back.models, strict=True):
        assert mine.model.static == theirs.model.static
        for link in mine.model.links:
            there = theirs.T_world_model @ theirs.model.link(link.name).T_model_link
            assert there.almost_equal(mine.T_world_model @ link.T_model_link, 1e-7)
            for one, other in zip(link.collisions, theirs.model.link(link.name).collisions, strict=True):
                check_same_shape(one.geometry, other.geometry)


JOINTS = """<sdf version="1.9"><model name="m">{links}
  <joint name="j" type="{type}"><parent>a</parent><child>b</child><pose>0.1 0 0 0.3 0 0</pose>
  <axis><xyz>0 1 0</xyz></axis><axis2><xyz>1 0 0</xyz></axis2><screw_thread_pitch>0.02</screw_thread_pitch></joint>
</model></sdf>"""
SDF_LINKS = "".join(
    f'<link name="{name}"><pose>{x} 0 0 0 0 0</pose><inertial><mass>{m}</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy>'
    f"<izz>0.1</izz></inertia></inertial></link>"
    for name, x, m in (("a", 0.0, 5.0), ("b", 0.5, 1.0))
)


def after(model: Model, seconds: float) -> dict[str, np.ndarray]:
    """Where the centres of mass are when the model, its root fixed, has swung for some time."""
    root = model.roots[0].name if model.roots else ""
    if root:
        hook = Joint("hook", "fixed", "world", root, model.link(root).T_model_link, SE3.identity())
        model = replace(model, joints=(hook, *model.joints))
    model = replace(model, interfaces=tuple(replace(one, commands=()) for one in model.interfaces))
    simulation = Simulation(World("nowhere"))
    simulation.add(model, "m", SE3(translation=(0.0, 0.0, 10.0)))
    simulation.step(round(seconds / (simulation.timestep_ns * 1e-9)))
    found = {}
    for link in model.links:
        place = simulation.placement("m").links[link.name]
        if link.inertial is not None and place.body:
            found[link.name] = np.array(simulation.data.xipos[place.body])
    simulation.close()
    return found


@pytest.mark.slow  # compiles the engine's kernels
@pytest.mark.parametrize("to", WRITERS)
@settings(max_examples=4)
@given(model=models())
def test_converted_robots_swing_equally(to: str, model: Model) -> None:
    before, then = after(model, 0.3), after(load_model(WRITERS[to](model).text), 0.3)
    assert before.keys() == then.keys()
    for name, place in before.items():
        assert np.abs(place - then[name]).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("to", WRITERS)
def test_converted_rover_falls_and_rests_equally(to: str) -> None:
    places = []
    for model in (load_model(ROVER), load_model(WRITERS[to](load_model(ROVER)).text)):
        model = replace(model, interfaces=())  # SDF has none, and held wheels press otherwise than free ones
        simulation = Simulation(load_world(ARENA))
        simulation.add(model, "rover", SE3(translation=(0.0, 0.0, 0.02)))
        simulation.step(round(0.5 / (simulation.timestep_ns * 1e-9)))
        places.append(np.array(simulation.truth("rover").T_world_base.translation))
        simulation.close()
    assert np.abs(places[0] - places[1]).max() < 1e-6


@pytest.mark.parametrize("kind", ["universal", "revolute2", "screw", "ball", "gearbox"])
def test_urdf_refuses_joints_of_two_axes(kind: str) -> None:
    model = load_model(JOINTS.format(links=SDF_LINKS, type=kind))
    written = write_urdf(model)
    back = load_model(written.text)
    assert written.losses
    assert back.mass == pytest.approx(model.mass)
    assert {"revolute", "continuous", "prismatic"} >= {joint.type for joint in back.joints}
    for link in back.links:
        if link.name in ("a", "b") and link.inertial:
            before = model.link(link.name)
            assert before.inertial is not None
            centre = before.T_model_link @ before.inertial.T_link_com
            assert np.allclose(
                (link.T_model_link @ link.inertial.T_link_com).translation, centre.translation, atol=1e-9
            )


def test_urdf_refuses_two_roots() -> None:
    links = (Link("a", SE3.identity()), Link("b", SE3.identity()))
    with pytest.raises(DescriptionError, match="2 roots"):
        write_urdf(Model("m", links))


def test_conversion_losses_are_listed() -> None:
    plane = Collision("ground", Plane(), SE3.identity())
    model = Model("m", (Link("a", SE3.identity(), None, (plane,)),), static=True)
    assert any("plane" in loss for loss in write_urdf(model).losses)
    robot = load_model(
        f'<robot name="r"><link name="a">{INERTIAL}</link><gazebo><plugin name="p" filename="q"/></gazebo></robot>'
    )
    assert any("plugins" in loss for loss in write_mjcf(robot).losses)
    assert not write_urdf(robot).losses
    assert load_model(write_urdf(robot).text).plugins[0].name == "p"
