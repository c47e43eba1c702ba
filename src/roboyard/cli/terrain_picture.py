"""A picture of uneven ground: heights from above, and a cut along its middle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.config import atomic_path

if TYPE_CHECKING:
    from roboyard.grids.terrain import Terrain

_ACROSS = 600
"""Samples along x; as fine along y."""


def draw_terrain(file: Path, terrain: Terrain, title: str) -> None:
    """Draw it. Raises InputError where the file cannot be written."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError

    (left, near), (wide, deep) = terrain.corner, terrain.size
    edge = max(wide, deep) / _ACROSS
    x = np.arange(left - 0.1 * wide, left + 1.1 * wide, edge)
    y = np.arange(near - 0.1 * deep, near + 1.1 * deep, edge)
    heights = terrain.height_at(np.stack(np.meshgrid(x, y), axis=-1))
    figure = Figure(figsize=(9.0, 9.0), layout="constrained")
    FigureCanvasAgg(figure)
    above, cut = figure.subplots(2, 1, height_ratios=(3, 1), sharex=True)
    picture = above.imshow(heights, origin="lower", extent=(x[0], x[-1], y[0], y[-1]), cmap="gist_earth")
    figure.colorbar(picture, ax=above, label="height [m]")
    above.set(ylabel="y [m]", title=title)
    middle = terrain.height_at(np.stack([x, np.full_like(x, near + 0.5 * deep)], axis=-1))
    cut.fill_between(x, middle, min(float(heights.min()), 0.0) - 0.02, color="0.75")
    cut.plot(x, middle, color="0.2", linewidth=0.8)
    cut.set(xlabel="x [m]", ylabel="height at the middle [m]")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=100)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None
