"""Anisotropic friction: which surface's direction applies, in which frame, and that other contacts are unaffected."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.models import IDENTITY, free_box, ground_plane, make_pose, make_world

from roboyard.description import load_model
from roboyard.description.model import Collision, Frame, Model, PlacedModel, Surface
from roboyard.description.write import write_sdf, write_urdf
from roboyard.geometry import SE3
from roboyard.physics.compiled_world import FrictionPatch
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation import Simulation
from roboyard.simulation.faults import GroundFault
from roboyard.simulation.validation.friction import drive_mecanum_cart, make_mecanum_cart

SKATE_SURFACE = Surface(
    friction=1.0, friction2=0.0, friction_direction=(1.0, 0.0, 0.0)
)  # grips along its x, glides along its y


def with_surface(model: Model, surface: Surface, T: SE3 = IDENTITY) -> Model:
    """The model, its shapes with another surface, turned by T."""
    links = tuple(
        replace(
            link, collisions=tuple(Collision(c.name, c.geometry, c.T_link_geom @ T, surface) for c in link.collisions)
        )
        for link in model.links
    )
    return replace(model, links=links)


def velocity_after_push(
    model: Model, floor: PlacedModel, push: tuple[float, float], T: SE3 = make_pose(z=0.1)
) -> np.ndarray:
    """Velocity [m/s] of a box 0.1 s after it was pushed."""
    sim = Simulation(make_world(floor))
    sim.add(model, "crate", T)
    sim.step(100)
    sim.world.data.qvel[:2] = push
    sim.step(50)
    return sim.world.data.qvel[:2].copy()


def test_box_slides_along_one_axis_and_brakes_along_the_other() -> None:
    crate = with_surface(free_box(), SKATE_SURFACE)
    assert velocity_after_push(crate, ground_plane(0.5), (1.0, 1.0)) == pytest.approx(
        [1.0 - 0.5 * 9.8 * 0.1, 1.0], abs=0.015
    )  # a step late


@pytest.mark.parametrize("yaw", [0.4, -1.3, 2.5])
def test_friction_direction_turns_with_the_body(yaw: float) -> None:
    crate = with_surface(free_box(), SKATE_SURFACE)
    rotation = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    velocity = velocity_after_push(crate, ground_plane(), tuple(rotation @ (1.2, 1.0)), make_pose(z=0.1, yaw=yaw))
    np.testing.assert_allclose(rotation.T @ velocity, velocity_after_push(crate, ground_plane(), (1.2, 1.0)), atol=1e-3)


def test_friction_direction_is_in_the_collision_frame_by_default() -> None:
    cube = free_box(size=(0.2, 0.2, 0.2))
    quarter = make_pose(yaw=math.pi / 2)
    in_collision_frame = velocity_after_push(with_surface(cube, SKATE_SURFACE, quarter), ground_plane(), (1.2, 1.2))
    in_link_frame = velocity_after_push(
        with_surface(cube, replace(SKATE_SURFACE, friction_direction_frame="body"), quarter), ground_plane(), (1.2, 1.2)
    )
    unrotated = velocity_after_push(with_surface(cube, SKATE_SURFACE), ground_plane(), (1.2, 1.2))
    np.testing.assert_allclose(in_collision_frame, unrotated[::-1], atol=1e-3)
    np.testing.assert_allclose(in_link_frame, unrotated, atol=1e-3)


def test_friction_frames_are_found_and_unknown_ones_reported() -> None:
    frame = Frame("tilted", "body", make_pose(yaw=math.pi / 2))
    for name, first, notes in (("tilted", 1, 0), ("robot_1/body", 0, 0), ("nothing", 0, 1)):
        crate = replace(
            with_surface(free_box(), replace(SKATE_SURFACE, friction_direction_frame=name)), frames=(frame,)
        )
        sim = Simulation(make_world(ground_plane()))
        sim.add(crate, "crate", make_pose(z=0.1))
        assert len(sim.warnings) == notes
        assert all("'nothing'" in note and "'body'" in note for note in sim.warnings)
        geom = sim.world.contacts.geoms[-1]
        assert np.argmax(np.abs(sim.world.surfaces.anisotropy[geom, 5:8])) == first


def test_smaller_friction_holds_along_each_direction() -> None:
    """The plane's x is slick, the box's y: together both are; the plane, with less friction along its first, leads."""
    plane = ground_plane()
    link = plane.model.links[0]
    surface = Surface(friction=0.1, friction2=0.8, friction_direction=(1.0, 0.0, 0.0))
    collisions = tuple(replace(one, surface=surface) for one in link.collisions)
    plane = replace(plane, model=replace(plane.model, links=(replace(link, collisions=collisions),)))
    crate = with_surface(free_box(), Surface(friction=0.3, friction2=0.2, friction_direction=(1.0, 0.0, 0.0)))
    for push, friction in (((1.0, 0.0), (0.1, 0.0)), ((0.0, 1.0), (0.0, 0.2))):
        expected = np.array(push) - np.array(friction) * 9.8 * 0.1
        np.testing.assert_allclose(velocity_after_push(crate, plane, push), expected, atol=0.01)
    sim = Simulation(make_world(plane))
    sim.add(
        with_surface(free_box(), replace(crate.links[0].collisions[0].surface, friction=0.05)), "c", make_pose(z=0.1)
    )
    sim.step(50)
    assert sorted(np.asarray(sim.world.data.contact.friction)[0, :2]) == pytest.approx([0.05, 0.2])


def test_friction_patch_acts_under_rollers_too() -> None:
    crate = with_surface(free_box(), replace(SKATE_SURFACE, friction2=0.4))
    sim = Simulation(make_world(ground_plane()))
    sim.add(crate, "crate", make_pose(z=0.1))
    sim.faults.start("ice", GroundFault(FrictionPatch(0.0, 0.0, 0.0, 9.0, 9.0, 0.1)))
    sim.step(100)
    sim.world.data.qvel[:2] = 1.0, 0.0
    sim.step(50)
    assert sim.world.data.qvel[0] == pytest.approx(1.0 - 0.1 * 9.8 * 0.1, abs=0.005)
    sim.faults.end("ice")
    sim.step(50)
    assert sim.world.data.qvel[0] < 0.1


def test_anisotropic_friction_is_optional_and_repeats_exactly() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(), "crate", make_pose(z=0.1))
    assert sim.world.surfaces.anisotropy.shape[0] == 0
    first, second = (drive_mecanum_cart(PhysicsSettings(), (0.3, 0.2, 0.4)) for _ in range(2))
    assert first == second


def test_second_coefficient_without_direction_gives_a_warning() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(with_surface(free_box(), Surface(friction=1.0, friction2=0.25)), "crate", make_pose(z=0.1))
    assert any("<fdir1>" in note and "mean" in note for note in sim.warnings)
    assert sim.world.data.contact.friction[0][:2].tolist() == [0.5, 0.5]


def test_mecanum_cart_rolls_along_its_rollers() -> None:
    """Wheels let go: friction along each wheel's grip spins it up, and the cart rolls on nearly freely."""
    sim = Simulation(make_world(ground_plane()))
    sim.add(make_mecanum_cart(), "cart", make_pose(z=0.1))
    sim.step(100)
    sim.world.data.qvel[0] = 0.5
    sim.step(500)
    assert sim.world.data.qvel[0] == pytest.approx(
        0.5 / (1.0 + 4 * 0.4 * 0.5 / 10.0), abs=0.02
    )  # some of it spins the wheels
    assert abs(sim.world.data.qvel[1]) < 1e-3


@pytest.mark.parametrize("prefix", ["gz", "ignition"])
def test_friction_direction_frame_survives_writing(prefix: str) -> None:
    text = f"""<sdf version="1.9"><model name="m" xmlns:{prefix}="http://x"><link name="body"/><link name="wheel">
      <collision name="c"><geometry><sphere><radius>0.1</radius></sphere></geometry><surface><friction><ode><mu>1</mu>
      <mu2>0</mu2><fdir1 {prefix}:expressed_in="body">1 1 0</fdir1></ode></friction></surface></collision></link>
      <joint name="j" type="continuous"><parent>body</parent><child>wheel</child><axis><xyz>0 1 0</xyz></axis></joint>
      </model></sdf>"""
    model = load_model(text)
    surface = model.link("wheel").collisions[0].surface
    assert (surface.friction, surface.friction2, surface.friction_direction_frame) == (1.0, 0.0, "body")
    assert surface.friction_direction == pytest.approx((math.sqrt(0.5), math.sqrt(0.5), 0.0))
    for written in (write_sdf(model), write_urdf(model)):
        reloaded = load_model(written.text).link("wheel").collisions[0].surface
        assert (reloaded.friction, reloaded.friction2, reloaded.friction_direction_frame) == (1.0, 0.0, "body")
