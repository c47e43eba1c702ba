"""What gives off light is seen without a lamp."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.description.model import Light, Link, Material, Model, PlacedModel, Sphere, Visual, World
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3
from roboyard.simulation import Simulation
from roboyard.simulation.assembly.scenery import glow, seen_colour
from roboyard.simulation.render import look_at
from roboyard.simulation.render.rays import RayRenderer

I = SE3.identity()  # noqa: E741
FAINT = Light("faint", diffuse=(0.05, 0.05, 0.05, 1.0), direction=(0.0, 0.0, -1.0))


def picture(material: Material) -> np.ndarray:
    """A ball from below, where no lamp shines on it."""
    ball = Link("ball", I, visuals=(Visual("v", Sphere(0.5), I, material),))
    world = World(
        "w", (PlacedModel("ball", Model("ball", (ball,), static=True), I),), (FAINT,), ambient=(0.0, 0.0, 0.0, 1.0)
    )
    simulation = Simulation(world)
    scene = simulation.scene()
    scene.pose_like(simulation.data)
    with RayRenderer(scene.model, 32, 32) as renderer:
        return renderer.render(scene.data, look_at((2.0, 0.0, -1.0), (0.0, 0.0, 0.0)))[16, 16].astype(int)


def test_stronger_emission_is_brighter() -> None:
    plain = Material("m", (1.0, 0.9, 0.8, 1.0))
    seen = [picture(replace(plain, emissive=(e, 0.9 * e, 0.8 * e))) for e in (0.0, 0.3, 1.0)]
    assert seen[0].sum() < seen[1].sum() < seen[2].sum()
    assert seen[2].min() > 180
    assert seen[0].max() < 150


def test_emission_shows_in_its_color() -> None:
    red = picture(Material("m", (0.1, 0.1, 0.1, 1.0), emissive=(1.0, 0.0, 0.0)))
    assert red[0] > 150
    assert red[1:].max() < 40


unit = st.floats(0.0, 1.0)
colours = st.tuples(unit, unit, unit)


@given(rgb=colours, emissive=colours)
def test_emission_keeps_colors_within_range(rgb: Vec3, emissive: Vec3) -> None:
    material = Material("m", (*rgb, 0.5), emissive=emissive)
    assert all(0.0 <= part <= 1.0 for part in seen_colour(material))
    assert seen_colour(material)[3] == 0.5
    assert seen_colour(replace(material, emissive=(0.0, 0.0, 0.0))) == material.rgba
    # the channel that shines most gives off what the description says
    most = emissive.index(max(emissive))
    if emissive[most] == 1.0:
        assert glow(material) * seen_colour(material)[most] == pytest.approx(1.0)
