"""An overview image of a simulated world, written to a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco

from roboyard.config import atomic_path
from roboyard.description.sdf.scope import PLACEHOLDER
from roboyard.errors import InputError
from roboyard.physics.compiled_world import SCOPE_SEPARATOR
from roboyard.rendering.cameras import RenderCamera, overview, world_bounds
from roboyard.rendering.ray_renderer import RayRenderer

if TYPE_CHECKING:
    from roboyard.simulation.simulation import Simulation

MIN_PLACEHOLDER_SIZE = 9.0
"""Minimum size of the placeholder of a missing mesh in an image [pixels]."""
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")


def check_image_path(path: Path) -> None:
    """Check that an image can be written to ``path``. Raises InputError."""
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise InputError(
            f"an image file cannot be called {path.name!r}", valid=f"a name that ends in {', '.join(IMAGE_SUFFIXES)}"
        )
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for the image", valid="a folder that exists")


def save_overview_image(simulation: Simulation, path: Path, *, width: int = 960, height: int = 720) -> None:
    """Render the present world from the side and above, and write the image to a file.

    Placeholders of missing meshes are enlarged so that they are visible.

    Args:
        simulation: The simulation.
        path: File to write, ``.png`` or ``.jpg``.
        width: Width of the image [pixels].
        height: Height of the image [pixels].

    Raises:
        InputError: The file name has another ending, or the folder does not exist.
    """
    from PIL import Image

    check_image_path(path)
    scene = simulation.visual_scene()
    camera = overview(*world_bounds(scene.model, scene.data), aspect=width / height)
    # by rays on every machine: whatever is far away is seen too, and edges are smooth
    with (
        _enlarge_placeholders(scene.model, scene.data, camera, height),
        RayRenderer(scene.model, width, height) as renderer,
    ):
        pixels = renderer.render(scene.data, camera)
    with atomic_path(path, has_target_suffix=True) as temporary:
        Image.fromarray(pixels).save(temporary)


@contextmanager
def _enlarge_placeholders(
    model: mujoco.MjModel, data: mujoco.MjData, camera: RenderCamera, height: int
) -> Iterator[None]:
    """Enlarge placeholders to ``MIN_PLACEHOLDER_SIZE`` within a ``with`` block."""
    original_sizes = model.geom_size.copy()
    camera_positions = camera.T_world_camera.inverse() @ data.geom_xpos
    min_half_sizes = (
        0.5 * MIN_PLACEHOLDER_SIZE * camera_positions[:, 2] / camera.focal_length(height)
    )  # half a box's edge [m]
    for geom in range(model.ngeom):
        if SCOPE_SEPARATOR + PLACEHOLDER + SCOPE_SEPARATOR in model.geom(geom).name:
            model.geom_size[geom] *= max(1.0, float(min_half_sizes[geom] / model.geom_size[geom].max()))
    try:
        yield
    finally:
        model.geom_size[:] = original_sizes
