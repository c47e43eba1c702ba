"""One picture of everything in a simulated world, into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.errors import InputError
from roboyard.simulation.render.camera import overview
from roboyard.simulation.render.opening import open_renderer
from roboyard.simulation.render.sight import world_bounds

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation

FORMATS = (".png", ".jpg", ".jpeg")


def check_picture(path: Path) -> None:
    """Raises InputError when no picture can be written to ``path``."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"a picture called {path.name!r}", valid=f"a name that ends in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for the picture", valid="a folder that exists")


def save_portrait(simulation: Simulation, path: Path, *, width: int = 960, height: int = 720) -> None:
    """Draw the world as it is now, seen from the side and above, and write it to a file.

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
    with open_renderer(scene.model, width, height) as renderer:
        pixels = renderer.render(scene.data, camera)
    Image.fromarray(pixels).save(path)
