"""The compiled model has the masses, names and joints of the description, and reports what it cannot represent."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from tests.harness.models import (
    IDENTITY,
    box_inertia,
    free_box,
    ground_plane,
    make_pose,
    make_world,
    room_walls,
    rover_model,
    static_box,
)

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Box,
    Collision,
    Cone,
    Cylinder,
    Ellipsoid,
    Inertial,
    Joint,
    Link,
    Material,
    Mesh,
    Mimic,
    Model,
    PlacedModel,
    Plane,
    Sphere,
    Surface,
    Visual,
)
from roboyard.errors import DescriptionError
from roboyard.physics.compiled_world import RENDERED_GROUPS, GeomGroup
from roboyard.physics.compiler.contact_properties import MAX_FRICTION, make_contact_properties
from roboyard.simulation import Simulation


def model_mass(sim: Simulation, name: str) -> float:
    return float(sum(sim.world.model.body_mass[body] for body in sim.world.addresses(name).bodies))


def test_compiled_masses_are_those_of_the_description() -> None:
    sim = Simulation(make_world(ground_plane(), *room_walls()))
    sim.add(rover_model(), "rover")
    assert model_mass(sim, "rover") == pytest.approx(rover_model().mass, rel=1e-12)
    assert sim.world.model.body_mass.sum() == pytest.approx(rover_model().mass, rel=1e-12)


def test_inertia_in_any_frame_keeps_principal_moments_and_axes() -> None:
    T_link_com = make_pose(0.1, -0.2, 0.3, 0.4, -0.5, 0.6)
    inertia = (0.05, 0.06, 0.07, 0.004, -0.003, 0.002)
    model = Model("m", (Link("l", IDENTITY, Inertial(2.0, T_link_com, inertia)),))
    sim = Simulation(make_world())
    sim.add(model, "m")
    body = sim.world.addresses("m").bodies[0]
    ixx, iyy, izz, ixy, ixz, iyz = inertia
    expected = T_link_com.rotation_matrix() @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    expected = expected @ T_link_com.rotation_matrix().T
    R_world_inertia = sim.world.data.ximat[body].reshape(3, 3)
    np.testing.assert_allclose(
        R_world_inertia @ np.diag(sim.world.model.body_inertia[body]) @ R_world_inertia.T, expected, atol=1e-9
    )
    np.testing.assert_allclose(sim.world.data.xipos[body], T_link_com.translation, atol=1e-12)


def massless_chain(leaf_mass: float | None) -> Model:
    inertial = Inertial(leaf_mass, IDENTITY, box_inertia(leaf_mass, (0.1, 0.1, 0.1))) if leaf_mass else None
    return Model(
        "m",
        (
            Link("base", IDENTITY, Inertial(1.0, IDENTITY, box_inertia(1.0, (0.2, 0.2, 0.2)))),
            Link("cross", make_pose(x=0.2)),
            Link("tip", make_pose(x=0.2), inertial),
        ),
        (
            Joint("one", "revolute", "base", "cross", make_pose(x=0.2), IDENTITY, (Axis((0, 1, 0)),)),
            Joint("two", "revolute", "cross", "tip", IDENTITY, IDENTITY, (Axis((0, 0, 1)),)),
        ),
    )


def test_massless_link_between_joints_borrows_mass_from_neighbors() -> None:
    sim = Simulation(make_world())
    sim.add(massless_chain(0.5), "m")
    assert model_mass(sim, "m") == pytest.approx(1.5, rel=1e-12)
    assert sim.hardware("m").joint_names == ("one", "two")
    sim.step(100)


def test_massless_end_links_are_fixed_with_a_finding() -> None:
    sim = Simulation(make_world())
    sim.add(massless_chain(None), "m")
    assert model_mass(sim, "m") == pytest.approx(1.0, rel=1e-12)
    assert sim.hardware("m").joint_names == ()
    assert any("cross" in note for note in sim.warnings)
    assert any("tip" in note for note in sim.warnings)


def test_compiled_links_keep_names_and_poses() -> None:
    sim = Simulation(make_world(ground_plane()))
    T = make_pose(1, 2, 3, 0.1, 0.2, 0.3)
    sim.add(rover_model(), "rover", T)
    for link in rover_model().links:
        body = sim.world.model.body(f"rover::{link.name}").id
        expected = T @ link.T_model_link
        np.testing.assert_allclose(sim.world.data.xpos[body], expected.translation, atol=1e-9)
    assert sim.ground_truth("rover").T_world_base.almost_equal(T, 1e-9)


def test_static_models_are_grouped_into_one_body_per_cell_and_keep_names() -> None:
    boxes = [static_box(f"box{i}", (0.2, 0.2, 0.2), make_pose(0.5 * i, 0, 0.1)) for i in range(40)]
    sim = Simulation(make_world(ground_plane(), *boxes))
    assert sim.world.model.nbody < 15
    assert sim.world.contacts.geom_name(sim.world.model.geom("box7::link::box").id) == "box7::link::box"
    assert sim.ground_truth("box7").T_world_base.x == pytest.approx(3.5)


def test_visual_and_collision_geoms_are_in_their_groups() -> None:
    visual_only = Model(
        "sign", (replace(static_box("s", (1, 1, 1), IDENTITY).model.links[0], collisions=()),), static=True
    )
    sim = Simulation(make_world(static_box("wall", (1, 1, 1), IDENTITY), PlacedModel("sign", visual_only, IDENTITY)))
    assert sim.world.model.ngeom == 2  # physics leaves out what is only drawn
    model = sim.visual_scene().model
    assert model.geom("wall::link::box").group == GeomGroup.COLLISION
    assert model.geom("wall::link::visual v").group == GeomGroup.VISUAL
    assert model.geom("sign::link::visual v").group == GeomGroup.VISUAL_AS_COLLISION
    assert model.geom("sign::link::visual v").conaffinity == 0


def test_contact_friction_is_that_of_the_more_slippery_surface() -> None:
    slippery, rough = (make_contact_properties(Surface(friction=mu), 0.005) for mu in (0.1, 0.9))
    assert slippery.priority > rough.priority
    assert make_contact_properties(Surface(friction=0.0), 0.005).condim == 1
    assert make_contact_properties(Surface(friction=1e5), 0.005).friction[0] == MAX_FRICTION


def test_links_of_one_model_collide_only_with_self_collide() -> None:
    def three_overlapping_links(collide: bool) -> Model:
        shape = (Collision("c", Box((0.4, 0.4, 0.4)), IDENTITY),)
        inertial = Inertial(1.0, IDENTITY, box_inertia(1.0, (0.4, 0.4, 0.4)))
        links = tuple(
            Link(name, T, inertial, shape, self_collide=collide)
            for name, T in (("a", IDENTITY), ("b", make_pose(x=0.1)), ("c", make_pose(x=0.2)))
        )
        joints = (
            Joint("ab", "revolute", "a", "b", make_pose(x=0.1), IDENTITY, (Axis((0, 0, 1)),)),
            Joint("bc", "revolute", "b", "c", make_pose(x=0.1), IDENTITY, (Axis((0, 0, 1)),)),
        )
        return Model("m", links, joints)

    for collide in (False, True):
        sim = Simulation(make_world(gravity=0.0))
        sim.add(three_overlapping_links(collide), "m")
        assert (sim.world.data.ncon > 0) is collide  # a and c; neighbours never


def test_joint_types_have_their_degrees_of_freedom() -> None:
    expected = {
        "fixed": 0,
        "revolute": 1,
        "continuous": 1,
        "prismatic": 1,
        "ball": 3,
        "universal": 2,
        "revolute2": 2,
        "planar": 3,
        "screw": 2,
        "floating": 6,
    }
    inertial = Inertial(1.0, IDENTITY, (0.1, 0.1, 0.1, 0, 0, 0))
    for kind, dof_count in expected.items():
        axes = (Axis((0, 0, 1)), Axis((0, 1, 0)))[: 2 if kind in ("universal", "revolute2") else 1]
        links = (Link("a", IDENTITY, inertial), Link("b", make_pose(x=0.3), inertial))
        joint = Joint("j", kind, "a", "b", make_pose(x=0.3), IDENTITY, axes, thread_pitch=0.1)  # type: ignore[arg-type]
        sim = Simulation(make_world())
        sim.add(Model("m", links, (joint,)), "m")
        assert sim.world.model.nv == 6 + dof_count, kind
        sim.step(5)


def test_joint_limits_and_mimics_hold() -> None:
    inertial = Inertial(1.0, make_pose(x=0.2), (0.01, 0.01, 0.01, 0, 0, 0))
    links = (Link("a", make_pose(x=0.1), inertial), Link("b", make_pose(x=0.1, y=1.0), inertial))
    joints = (
        Joint("leader", "revolute", "world", "a", IDENTITY, IDENTITY, (Axis((0, 1, 0), AxisLimits(-0.5, 0.5)),)),
        Joint(
            "follower",
            "revolute",
            "world",
            "b",
            make_pose(y=1.0),
            IDENTITY,
            (Axis((0, 1, 0)),),
            Mimic("leader", -1.0, 0.1),
        ),
    )
    sim = Simulation(make_world())
    sim.add(Model("m", links, joints), "m", make_pose(z=1.0))
    sim.step(2000)
    leader, follower = sim.hardware("m").read().position
    assert abs(leader) < 0.52
    assert follower == pytest.approx(0.1 - leader, abs=0.01)


def test_every_shape_compiles() -> None:
    shapes = (Box((1, 2, 3)), Cylinder(0.1, 0.2), Cone(0.2, 0.5), Ellipsoid((0.1, 0.2, 0.3)), Plane((0, 1, 1)))
    link = Link(
        "l",
        IDENTITY,
        collisions=tuple(Collision(str(i), shape, make_pose(x=3.0 * i)) for i, shape in enumerate(shapes)),
    )
    sim = Simulation(make_world(PlacedModel("m", Model("m", (link,), static=True), IDENTITY)))
    assert sim.world.model.ngeom == len(shapes)


def test_missing_mesh_becomes_a_marked_box_with_a_finding() -> None:
    link = Link("l", IDENTITY, collisions=(Collision("c", Mesh("model://lost/mesh.dae", None), IDENTITY),))
    sim = Simulation(make_world(PlacedModel("m", Model("m", (link,), static=True), IDENTITY)))
    assert any("model://lost/mesh.dae" in note for note in sim.warnings)
    assert sim.world.model.geom("m::l::c").type == int(mujoco.mjtGeom.mjGEOM_BOX)


@pytest.mark.parametrize("content", [None, b"solid of nothing"])
def test_unreadable_visual_mesh_is_drawn_as_the_collision_shapes(tmp_path: Path, content: bytes | None) -> None:
    file = None if content is None else tmp_path / "body.stl"
    if file is not None and content is not None:
        file.write_bytes(content)
    green, mesh = Material("green", (0.1, 0.8, 0.1, 1.0)), Mesh("model://lost/body.stl", file)
    link = Link(
        "l",
        IDENTITY,
        collisions=(
            Collision("box", Box((0.6, 0.4, 0.2)), make_pose(x=1.0)),
            Collision("ball", Sphere(0.3), make_pose(x=2.0)),
            Collision("unused", Sphere(0.7), IDENTITY, Surface(collide=False)),
        ),
        visuals=(Visual("hull", mesh, make_pose(z=5.0), green), Visual("lid", mesh, IDENTITY, green)),
    )
    sim = Simulation(make_world(PlacedModel("m", Model("m", (link,), static=True), IDENTITY)))
    scene = sim.visual_scene()
    warnings = [warning for warning in sim.warnings if "collision shapes are drawn in its place" in warning]
    assert [warning.partition(": ")[0] for warning in warnings] == ["m::l::visual hull", "m::l::visual lid"]
    assert all("body.stl" in warning for warning in warnings)
    model = scene.model
    geoms = [geom for geom in range(model.ngeom) if model.geom_group[geom] in RENDERED_GROUPS]
    geom_types = mujoco.mjtGeom
    assert model.geom_type[geoms].tolist() == [int(geom_types.mjGEOM_BOX), int(geom_types.mjGEOM_SPHERE)]
    np.testing.assert_allclose(model.geom_size[geoms[0]], (0.3, 0.2, 0.1))
    np.testing.assert_allclose(scene.data.geom_xpos[geoms], [(1.0, 0.0, 0.0), (2.0, 0.0, 0.0)], atol=1e-12)
    np.testing.assert_allclose(model.geom_rgba[geoms], [green.rgba, green.rgba], atol=1e-6)
    assert not model.geom_contype[geoms].any()


def test_missing_visual_mesh_of_a_link_without_collision_shapes_is_a_marked_box() -> None:
    mesh = Mesh("model://lost/sign.dae", None)
    link = Link("l", IDENTITY, visuals=(Visual("v", mesh, IDENTITY, Material("m")),))
    sim = Simulation(make_world(PlacedModel("m", Model("m", (link,), static=True), IDENTITY)))
    assert any("sign.dae" in warning and "a marked box replaces it" in warning for warning in sim.warnings)
    model = sim.visual_scene().model
    np.testing.assert_allclose(model.geom_rgba[model.geom("m::l::visual v").id], (1.0, 0.0, 1.0, 1.0))


def test_cycles_and_second_parents_are_refused() -> None:
    links = (Link("a", IDENTITY), Link("b", IDENTITY))
    forward_joint = Joint("j1", "revolute", "a", "b", IDENTITY, IDENTITY)
    backward_joint = Joint("j2", "revolute", "b", "a", IDENTITY, IDENTITY)
    second_parent_joint = Joint("j3", "revolute", "world", "b", IDENTITY, IDENTITY)
    for joints, expected_text in (
        ((forward_joint, backward_joint), "ring"),
        ((forward_joint, second_parent_joint), "two joints"),
    ):
        with pytest.raises(DescriptionError, match=expected_text):
            Simulation(make_world()).add(Model("m", links, joints), "m")


def test_gravity_can_be_disabled_for_a_link() -> None:
    model = free_box()
    floating = replace(model, links=(replace(model.links[0], gravity=False),))
    sim = Simulation(make_world())
    sim.add(floating, "crate", make_pose(z=1.0))
    sim.step(200)
    assert sim.ground_truth("crate").T_world_base.z == pytest.approx(1.0, abs=1e-9)


def test_visual_scene_has_the_poses_of_the_physics() -> None:
    sim = Simulation(make_world(ground_plane(), *room_walls()))
    sim.add(rover_model(), "rover", make_pose(1, 1, 0.5, 0.1, 0.2, 0.3))
    sim.step(50)
    scene = sim.visual_scene()
    assert scene.model.nbody != sim.world.model.nbody  # bodies that hold only looks
    for link in rover_model().links:
        body = scene.model.body(f"rover::{link.name}").id
        physics_body = sim.world.addresses("rover").links[link.name].body
        np.testing.assert_array_equal(scene.data.xpos[body], sim.world.data.xpos[physics_body])
    assert scene.model.nlight == 1
