"""One picture of everything in a simulated world, into a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco

from roboyard.config import atomic_path
from roboyard.description.sdf.scope import PLACEHOLDER
from roboyard.errors import InputError
from roboyard.simulation.naming import SEPARATOR
from roboyard.simulation.render.camera import Camera, overview
from roboyard.simulation.render.rays import RayRenderer
from roboyard.simulation.render.sight import world_bounds

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation

MARK = 9.0
"""Least size of what stands for a missing model in a picture [pixels]."""
FORMATS = (".png", ".jpg", ".jpeg")


def check_picture(path: Path) -> None:
    """Raises InputError when no picture can be written to ``path``."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"a picture called {path.name!r}", valid=f"a name that ends in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for the picture", valid="a folder that exists")


def save_portrait(simulation: Simulation, path: Path, *, width: int = 960, height: int = 720) -> None:
    """Draw the world as it is now, seen from the side and above, and write it to a file.

    What stands for a model that is not there is drawn large enough to be seen.

    Args:
        simulation: What to draw.
        path: ``.png`` or ``.jpg``.
        width: [pixels].
        height: [pixels].

    Raises:
        InputError: the file's name or folder cannot be.
    """
    from PIL import Image

    check_picture(path)
    scene = simulation.scene()
    camera = overview(*world_bounds(scene.model, scene.data), aspect=width / height)
    # by rays on every machine: whatever is far away is seen too, and edges are smooth
    with _marks_seen(scene.model, scene.data, camera, height), RayRenderer(scene.model, width, height) as renderer:
        pixels = renderer.render(scene.data, camera)
    with atomic_path(path, has_target_suffix=True) as temporary:
        Image.fromarray(pixels).save(temporary)


@contextmanager
def _marks_seen(model: mujoco.MjModel, data: mujoco.MjData, camera: Camera, height: int) -> Iterator[None]:
    """While placeholders are at least ``MARK`` pixels large."""
    before = model.geom_size.copy()
    into = camera.T_world_camera.inverse() @ data.geom_xpos
    least = 0.5 * MARK * into[:, 2] / camera.focal(height)  # half a box's edge [m]
    for geom in range(model.ngeom):
        if SEPARATOR + PLACEHOLDER + SEPARATOR in model.geom(geom).name:
            model.geom_size[geom] *= max(1.0, float(least[geom] / model.geom_size[geom].max()))
    try:
        yield
    finally:
        model.geom_size[:] = before
