"""Emissive materials are visible without a light."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.description.model import Light, Link, Material, Model, PlacedModel, Sphere, Visual, World
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3
from roboyard.physics.compiler.assets import displayed_color, emission_fraction
from roboyard.rendering import look_at
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.simulation import Simulation

I = SE3.identity()  # noqa: E741
FAINT_LIGHT = Light("faint", diffuse=(0.05, 0.05, 0.05, 1.0), direction=(0.0, 0.0, -1.0))


def render_ball(material: Material) -> np.ndarray:
    """A ball from below, where no lamp shines on it."""
    ball = Link("ball", I, visuals=(Visual("v", Sphere(0.5), I, material),))
    world = World(
        "w",
        (PlacedModel("ball", Model("ball", (ball,), static=True), I),),
        (FAINT_LIGHT,),
        ambient=(0.0, 0.0, 0.0, 1.0),
    )
    simulation = Simulation(world)
    scene = simulation.visual_scene()
    scene.copy_poses(simulation.world.data)
    with RayRenderer(scene.model, 32, 32) as renderer:
        return renderer.render(scene.data, look_at((2.0, 0.0, -1.0), (0.0, 0.0, 0.0)))[16, 16].astype(int)


def test_stronger_emission_is_brighter() -> None:
    plain = Material("m", (1.0, 0.9, 0.8, 1.0))
    colors = [render_ball(replace(plain, emissive=(e, 0.9 * e, 0.8 * e))) for e in (0.0, 0.3, 1.0)]
    assert colors[0].sum() < colors[1].sum() < colors[2].sum()
    assert colors[2].min() > 180
    assert colors[0].max() < 150


def test_emission_shows_in_its_color() -> None:
    red = render_ball(Material("m", (0.1, 0.1, 0.1, 1.0), emissive=(1.0, 0.0, 0.0)))
    assert red[0] > 150
    assert red[1:].max() < 40


unit_strategy = st.floats(0.0, 1.0)
rgb_strategy = st.tuples(unit_strategy, unit_strategy, unit_strategy)


@given(rgb=rgb_strategy, emissive=rgb_strategy)
def test_emission_keeps_colors_within_range(rgb: Vec3, emissive: Vec3) -> None:
    material = Material("m", (*rgb, 0.5), emissive=emissive)
    assert all(0.0 <= part <= 1.0 for part in displayed_color(material))
    assert displayed_color(material)[3] == 0.5
    assert displayed_color(replace(material, emissive=(0.0, 0.0, 0.0))) == material.rgba
    # the channel that shines most gives off what the description says
    brightest_channel = emissive.index(max(emissive))
    if emissive[brightest_channel] == 1.0:
        assert emission_fraction(material) * displayed_color(material)[brightest_channel] == pytest.approx(1.0)
