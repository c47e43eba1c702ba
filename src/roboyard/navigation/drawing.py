"""Drawing of a path over its costmap, or of the gap that is too narrow for the robot."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING

from roboyard.config import atomic_path

if TYPE_CHECKING:
    from roboyard.geometry import SE2
    from roboyard.navigation import Costmap, Path
    from roboyard.navigation.path import PathFailure


def draw_path(
    file: File, costmap: Costmap, start: SE2, goal: SE2, path: Path | None, explanation: PathFailure | None
) -> None:
    """Draw a path over its costmap: costs in gray, obstacles in black, unknown space in blue.

    Args:
        file: Image to write; its suffix selects the format.
        costmap: The costmap.
        start: Pose of the robot at the start.
        goal: Pose of the robot at the goal.
        path: The path; None if there is none.
        explanation: The gap and the obstacles beside it; None if there is a path.

    Raises:
        InputError: The file cannot be written.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.transforms import Affine2D

    from roboyard.errors import InputError
    from roboyard.navigation.costmap import INSCRIBED, LETHAL, UNKNOWN

    colors = np.empty((256, 3), dtype=np.uint8)
    colors[:] = (255 - np.arange(256) * 0.45).astype(np.uint8)[:, None]
    colors[INSCRIBED], colors[LETHAL], colors[UNKNOWN] = (150, 120, 120), (20, 20, 20), (200, 215, 235)
    width, height = costmap.geometry.extent
    scale = 9.0 / max(width, height)
    figure = Figure(figsize=(max(width * scale, 3.0) + 1.0, max(height * scale, 3.0) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    T = costmap.geometry.T_map_grid
    grid_transform = Affine2D().rotate(T.theta).translate(T.x, T.y) + axes.transData
    axes.imshow(colors[costmap.cells], origin="lower", extent=(0.0, width, 0.0, height), transform=grid_transform)
    corners = T @ np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    axes.set_xlim(corners[:, 0].min(), corners[:, 0].max())
    axes.set_ylim(corners[:, 1].min(), corners[:, 1].max())
    if path is not None:
        label = f"path of {path.length:.2f} m"
        axes.plot(path.poses[:, 0], path.poses[:, 1], color="#d0402b", linewidth=1.6, label=label)
    if explanation is not None:
        obstacles = costmap.geometry.cell_centers(explanation.cells)
        axes.scatter(obstacles[:, 0], obstacles[:, 1], s=14, color="#e08a00", zorder=3, label="obstacles")
        axes.scatter(
            [explanation.position[0]],
            [explanation.position[1]],
            s=160,
            facecolors="none",
            edgecolors="#d0402b",
            zorder=3,
            label="gap",
        )
    for pose, color, label in ((start, "#1c7c3c", "start"), (goal, "#1f4e9c", "goal")):
        axes.scatter(pose.x, pose.y, s=36, color=color, zorder=4, label=label)
        heading_tip = pose.xy + 0.03 * max(width, height) * np.array([np.cos(pose.theta), np.sin(pose.theta)])
        axes.plot([pose.x, heading_tip[0]], [pose.y, heading_tip[1]], color=color, linewidth=2.0, zorder=4)
    axes.set_aspect("equal")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)  # outside of the axes, which may be narrow
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=110)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(file)) from error
