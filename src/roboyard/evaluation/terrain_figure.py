"""Figure of a terrain: heights from above, and a profile through its center."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.config import atomic_path

if TYPE_CHECKING:
    from roboyard.grids.terrain import Terrain

_N_SAMPLES = 600
"""Samples along x; as fine along y."""


def draw_terrain(file: Path, terrain: Terrain, title: str) -> None:
    """Draw it. Raises InputError where the file cannot be written."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError

    (x_min, y_min), (width, depth) = terrain.corner, terrain.size
    edge = max(width, depth) / _N_SAMPLES
    x = np.arange(x_min - 0.1 * width, x_min + 1.1 * width, edge)
    y = np.arange(y_min - 0.1 * depth, y_min + 1.1 * depth, edge)
    heights = terrain.height_at(np.stack(np.meshgrid(x, y), axis=-1))
    figure = Figure(figsize=(9.0, 9.0), layout="constrained")
    FigureCanvasAgg(figure)
    top_view, profile_axes = figure.subplots(2, 1, height_ratios=(3, 1), sharex=True)
    image = top_view.imshow(heights, origin="lower", extent=(x[0], x[-1], y[0], y[-1]), cmap="gist_earth")
    figure.colorbar(image, ax=top_view, label="height [m]")
    top_view.set(ylabel="y [m]", title=title)
    center_profile = terrain.height_at(np.stack([x, np.full_like(x, y_min + 0.5 * depth)], axis=-1))
    profile_axes.fill_between(x, center_profile, min(float(heights.min()), 0.0) - 0.02, color="0.75")
    profile_axes.plot(x, center_profile, color="0.2", linewidth=0.8)
    profile_axes.set(xlabel="x [m]", ylabel="height at the middle [m]")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=100)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None
