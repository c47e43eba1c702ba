"""Rendered images show each part of a visual mesh with its color and texture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.description.mesh_samples import write_textured_collada

from roboyard.description import World, load_model
from roboyard.description.model import PlacedModel
from roboyard.geometry import SE3
from roboyard.rendering.cameras import top_view
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.simulation import Simulation


def test_flat_parts_of_visual_meshes_are_drawn(tmp_path: Path) -> None:
    """A body of which one part is flat: rays scan it as a whole, pictures show its parts."""
    file = write_textured_collada(tmp_path)
    text = file.read_text().replace("3 -1 0 3 1 0</float", "3 -1 2 3 1 2</float")  # the red part stands up
    file.write_text(text)
    (tmp_path / "m.sdf").write_text(
        '<sdf version="1.9"><model name="m"><static>true</static><link name="l"><visual name="v"><geometry><mesh>'
        "<uri>thing.dae</uri></mesh></geometry></visual></link></model></sdf>"
    )
    model = load_model(tmp_path / "m.sdf")
    simulation = Simulation(World("w", models=(PlacedModel("m", model, SE3.identity()),)))
    assert simulation.visual_scene().model.ngeom == 2
    simulation.close()


def test_texture_lies_upright_on_its_surface(tmp_path: Path) -> None:
    """Seen from above, u grows with x and v with y: the picture's top left is at −x, +y."""
    write_textured_collada(tmp_path)
    text = (
        '<sdf version="1.9"><model name="m"><static>true</static><link name="l"><visual name="v"><geometry><mesh>'
        "<uri>thing.dae</uri></mesh></geometry></visual></link></model></sdf>"
    )
    (tmp_path / "m.sdf").write_text(text)
    model = load_model(tmp_path / "m.sdf")
    world = World("w", models=(PlacedModel("m", model, SE3.identity()),))
    simulation = Simulation(world)
    scene = simulation.visual_scene()
    low, high = np.array([-1.0, -1.0, 0.0]), np.array([3.0, 1.0, 0.01])
    with RayRenderer(scene.model, 160, 80, shadows=False) as renderer:
        image = renderer.render(scene.data, top_view(low, high, aspect=2.0)).astype(int)
    simulation.close()
    center_row, width = 40, 160

    def color_at(x: float, y: float) -> np.ndarray:
        scale = 78.0 / 2.0
        return image[int(center_row - y * scale), int(width / 2 + (x - 1.0) * scale)]

    green, blue, white, black, red = (
        color_at(*point) for point in ((-0.5, 0.5), (0.5, 0.5), (-0.5, -0.5), (0.5, -0.5), (2, 0))
    )
    assert green[1] > 2 * max(green[0], green[2])
    assert blue[2] > 2 * max(blue[0], blue[1])
    assert white.min() > 100
    assert black.max() < 80
    assert red[0] > 2 * max(red[1], red[2])
