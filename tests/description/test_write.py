"""A model that is written and read again equals the original except for the stated losses."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.description.mjcf_samples import ALL_ELEMENTS, CART, SMALL_WORLD
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


def compute_inertia(inertial: Inertial) -> np.ndarray:
    """Compute the inertia matrix in the axes of the link."""
    ixx, iyy, izz, ixy, ixz, iyz = inertial.inertia
    R = inertial.T_link_com.rotation_matrix()
    return np.asarray(R @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ R.T)


def check_equal_shapes(original: Geometry, restored: Geometry) -> None:
    """Check that shapes are equal except for rounding; the normal of a plane may be part of its pose."""
    assert type(original) is type(restored)
    for name in ("size", "radius", "length", "radii"):
        if hasattr(original, name) and not isinstance(original, Plane):
            assert getattr(original, name) == pytest.approx(getattr(restored, name), rel=1e-9)


def check_equal_models(original: Model, restored: Model, losses: Sequence[str] = ()) -> None:
    """Check that links, joints, masses, inertia, poses, limits and shapes are equal except for the stated losses."""
    surfaces = not any("get the surface of the first" in loss for loss in losses)
    fixed_names = not any("names of fixed joints" in loss for loss in losses)
    is_origin_moved = any("origin moves" in loss for loss in losses)
    T_root, T_restored_root = (
        m.roots[0].T_model_link if is_origin_moved else SE3.identity() for m in (original, restored)
    )
    assert {link.name for link in original.links} == {link.name for link in restored.links}
    assert original.static == restored.static
    assert original.mass == pytest.approx(restored.mass, rel=1e-9)
    for link in original.links:
        restored_link = restored.link(link.name)
        assert (T_root.inverse() @ link.T_model_link).almost_equal(
            T_restored_root.inverse() @ restored_link.T_model_link, 1e-7
        )
        assert (link.gravity, link.self_collide) == (restored_link.gravity, restored_link.self_collide), link.name
        if not original.static:
            assert (link.inertial is None) == (restored_link.inertial is None), link.name
        if link.inertial is not None and restored_link.inertial is not None:
            assert link.inertial.mass == pytest.approx(restored_link.inertial.mass, rel=1e-9)
            assert np.allclose(
                link.inertial.T_link_com.translation, restored_link.inertial.T_link_com.translation, atol=1e-9
            )
            assert np.allclose(
                compute_inertia(link.inertial), compute_inertia(restored_link.inertial), rtol=1e-8, atol=1e-12
            )
        assert len(link.collisions) == len(restored_link.collisions)
        for collision, restored_collision in zip(link.collisions, restored_link.collisions, strict=True):
            check_equal_shapes(collision.geometry, restored_collision.geometry)
            assert not surfaces or collision.surface.friction == pytest.approx(
                restored_collision.surface.friction, abs=1e-9
            )
            if not isinstance(collision.geometry, Plane):
                assert collision.T_link_geom.almost_equal(restored_collision.T_link_geom, 1e-7)
        assert len(link.visuals) == len(restored_link.visuals)
    joints = {joint.child: joint for joint in restored.joints}
    assert len(original.joints) == len(restored.joints)
    for joint in original.joints:
        restored_joint = joints[joint.child]
        assert fixed_names is False or joint.name == restored_joint.name
        assert joint.parent == restored_joint.parent
        assert joint.T_parent_child.almost_equal(restored_joint.T_parent_child, 1e-7)
        is_unlimited = joint.axes and math.isinf(joint.axes[0].limits.lower) and math.isinf(joint.axes[0].limits.upper)
        kinds = {"revolute", "continuous"} if is_unlimited else {joint.type}
        assert restored_joint.type in kinds | {joint.type}
        for axis, restored_axis in zip(joint.axes, restored_joint.axes, strict=True):
            assert np.allclose(
                joint.T_child_joint.rotation_matrix() @ axis.xyz,
                restored_joint.T_child_joint.rotation_matrix() @ restored_axis.xyz,
                atol=1e-9,
            )
            assert (axis.limits.lower, axis.limits.upper) == pytest.approx(
                (restored_axis.limits.lower, restored_axis.limits.upper), rel=1e-9
            )
            assert axis.limits.effort == pytest.approx(restored_axis.limits.effort)
            assert axis.dynamics.damping == pytest.approx(restored_axis.dynamics.damping)
            assert axis.dynamics.friction == pytest.approx(restored_axis.dynamics.friction)
        assert (joint.mimic is None) == (restored_joint.mimic is None)
        if joint.mimic and restored_joint.mimic:
            assert joint.mimic.multiplier == pytest.approx(restored_joint.mimic.multiplier)


numbers = st.floats(-2.0, 2.0).map(lambda value: round(value, 6))
sizes = st.floats(0.01, 2.0).map(lambda value: round(value, 6))
triples = st.tuples(numbers, numbers, numbers)
poses = st.builds(SE3.from_xyz_rpy, triples, triples)


@st.composite
def shapes(draw: st.DrawFn) -> Geometry:
    """Return a shape that all three formats support."""
    a, b, c = draw(sizes), draw(sizes), draw(sizes)
    return draw(st.sampled_from([Box((a, b, c)), Sphere(a), Cylinder(a, b), Capsule(a, b)]))


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Return a tree of links with mass and revolute, continuous, prismatic and fixed joints."""
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


@pytest.mark.parametrize("format_name", WRITERS)
@settings(max_examples=20)
@given(model=models())
def test_arbitrary_models_survive_writing_and_reading(format_name: str, model: Model) -> None:
    written = WRITERS[format_name](model)
    restored = load_model(written.text)
    check_equal_models(model, restored, written.losses)


@pytest.mark.parametrize("format_name", WRITERS)
@pytest.mark.parametrize("source", [ARM_URDF, ROVER, CART], ids=["arm", "rover", "cart"])
def test_sample_robots_survive_writing_and_reading(format_name: str, source: str | Path) -> None:
    model = load_model(source)
    written = WRITERS[format_name](model)
    restored = load_model(written.text)
    check_equal_models(model, restored, written.losses)
    kinds = sorted(sensor.kind for sensor in restored.sensors)
    assert kinds == sorted(sensor.kind for sensor in model.sensors)
    if format_name == "mjcf":  # MJCF has topics, but not the complete records
        topics = {sensor.topic for sensor in model.sensors if sensor.kind != "encoder"}
        assert {sensor.topic for sensor in restored.sensors if sensor.kind != "encoder"} == topics
    else:
        assert sorted(restored.sensors, key=lambda item: item.name) == sorted(model.sensors, key=lambda item: item.name)
    if format_name == "urdf":
        assert {item.joint: item.commands for item in restored.interfaces} == {
            item.joint: item.commands for item in model.interfaces
        }


def test_robot_survives_conversion_through_all_formats() -> None:
    model = load_model(ARM_URDF)
    converted = load_model(write_mjcf(load_model(write_sdf(model).text)).text)
    check_equal_models(model, load_model(write_urdf(converted).text), ("names of fixed joints",))


def test_mjcf_survives_writing_and_reading() -> None:
    model = load_model(ALL_ELEMENTS)
    restored = load_model(write_mjcf(model).text)
    check_equal_models(model, restored, ())
    assert restored.disabled_collisions == model.disabled_collisions
    assert [joint.axes for joint in restored.joints] == [joint.axes for joint in model.joints]
    assert [(loop.name, loop.type) for loop in restored.loop_joints] == [
        (loop.name, loop.type) for loop in model.loop_joints
    ]
    assert {interface.joint: interface.initial for interface in restored.interfaces} == {
        interface.joint: interface.initial for interface in model.interfaces
    }


@pytest.mark.parametrize("format_name", ["sdf", "mjcf"])
@pytest.mark.parametrize("source", [ARENA, SMALL_WORLD], ids=["arena", "yard"])
def test_worlds_survive_writing_and_reading(format_name: str, source: str | Path) -> None:
    world = load_world(source)
    restored: World = load_world(WRITERS[format_name](world).text)
    assert restored.name == world.name
    assert restored.gravity == pytest.approx(world.gravity)
    assert [light.type for light in restored.lights] == [light.type for light in world.lights]
    assert [placed.name for placed in restored.models] == [placed.name for placed in world.models]
    for placed, restored_placed in zip(world.models, restored.models, strict=True):
        assert placed.model.static == restored_placed.model.static
        for link in placed.model.links:
            T_world_link = restored_placed.T_world_model @ restored_placed.model.link(link.name).T_model_link
            assert T_world_link.almost_equal(placed.T_world_model @ link.T_model_link, 1e-7)
            for collision, restored_collision in zip(
                link.collisions, restored_placed.model.link(link.name).collisions, strict=True
            ):
                check_equal_shapes(collision.geometry, restored_collision.geometry)


JOINT_SDF = """<sdf version="1.9"><model name="m">{links}
  <joint name="j" type="{type}"><parent>a</parent><child>b</child><pose>0.1 0 0 0.3 0 0</pose>
  <axis><xyz>0 1 0</xyz></axis><axis2><xyz>1 0 0</xyz></axis2><screw_thread_pitch>0.02</screw_thread_pitch></joint>
</model></sdf>"""
SDF_LINKS = "".join(
    f'<link name="{name}"><pose>{x} 0 0 0 0 0</pose><inertial><mass>{m}</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy>'
    f"<izz>0.1</izz></inertia></inertial></link>"
    for name, x, m in (("a", 0.0, 5.0), ("b", 0.5, 1.0))
)


def simulate_centers_of_mass(model: Model, seconds: float) -> dict[str, np.ndarray]:
    """Return the centers of mass after a simulation of the model with its root fixed to the world."""
    root = model.roots[0].name if model.roots else ""
    if root:
        fixture = Joint("hook", "fixed", "world", root, model.link(root).T_model_link, SE3.identity())
        model = replace(model, joints=(fixture, *model.joints))
    model = replace(model, interfaces=tuple(replace(interface, commands=()) for interface in model.interfaces))
    simulation = Simulation(World("nowhere"))
    simulation.add(model, "m", SE3(translation=(0.0, 0.0, 10.0)))
    simulation.step(round(seconds / (simulation.timestep_ns * 1e-9)))
    centers = {}
    for link in model.links:
        link_addresses = simulation.world.addresses("m").links[link.name]
        if link.inertial is not None and link_addresses.body:
            centers[link.name] = np.array(simulation.world.data.xipos[link_addresses.body])
    simulation.close()
    return centers


@pytest.mark.slow  # compiles the engine's kernels
@pytest.mark.parametrize("format_name", WRITERS)
@settings(max_examples=4)
@given(model=models())
def test_converted_robots_have_equal_simulated_motion(format_name: str, model: Model) -> None:
    original, converted = (
        simulate_centers_of_mass(model, 0.3),
        simulate_centers_of_mass(load_model(WRITERS[format_name](model).text), 0.3),
    )
    assert original.keys() == converted.keys()
    for name, position in original.items():
        assert np.abs(position - converted[name]).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("format_name", WRITERS)
def test_converted_rover_comes_to_rest_at_the_same_position(format_name: str) -> None:
    positions = []
    for model in (load_model(ROVER), load_model(WRITERS[format_name](load_model(ROVER)).text)):
        model = replace(
            model, interfaces=()
        )  # SDF has none, and commanded wheels cause other contact forces than free ones
        simulation = Simulation(load_world(ARENA))
        simulation.add(model, "rover", SE3(translation=(0.0, 0.0, 0.02)))
        simulation.step(round(0.5 / (simulation.timestep_ns * 1e-9)))
        positions.append(np.array(simulation.ground_truth("rover").T_world_base.translation))
        simulation.close()
    assert np.abs(positions[0] - positions[1]).max() < 1e-6


@pytest.mark.parametrize("kind", ["universal", "revolute2", "screw", "ball", "gearbox"])
def test_urdf_writer_approximates_joints_that_urdf_lacks(kind: str) -> None:
    model = load_model(JOINT_SDF.format(links=SDF_LINKS, type=kind))
    written = write_urdf(model)
    restored = load_model(written.text)
    assert written.losses
    assert restored.mass == pytest.approx(model.mass)
    assert {"revolute", "continuous", "prismatic"} >= {joint.type for joint in restored.joints}
    for link in restored.links:
        if link.name in ("a", "b") and link.inertial:
            original_link = model.link(link.name)
            assert original_link.inertial is not None
            T_model_com = original_link.T_model_link @ original_link.inertial.T_link_com
            assert np.allclose(
                (link.T_model_link @ link.inertial.T_link_com).translation, T_model_com.translation, atol=1e-9
            )


def test_urdf_writer_refuses_two_root_links() -> None:
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
