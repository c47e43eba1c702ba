"""Images of an arm's planned motion, and of its workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.config import atomic_path
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain

if TYPE_CHECKING:
    from roboyard.description import World
    from roboyard.manipulation.collision.planning_scene import PlanningScene
    from roboyard.manipulation.planning import MotionPlan


_WIDTH, _HEIGHT = 960, 720
_N_PREVIEWS = 9
_PIXEL_DIFFERENCE = 14
"""A pixel that differs by more from the picture without the arm belongs to it."""
_PREVIEW_ALPHA, _PATH_COLOR = 0.45, (208, 64, 43)


def draw_motion(file: Path, scene: PlanningScene, plan: MotionPlan, world: World | None) -> None:
    """Draw a planned motion, seen from the side and above.

    Raises:
        InputError: the file cannot be written.
        DescriptionError: robot or world cannot be drawn.
    """
    import mujoco
    import numpy as np
    from PIL import Image, ImageDraw

    from roboyard.description import World
    from roboyard.description.model import PlacedModel
    from roboyard.errors import InputError
    from roboyard.physics.compiled_world import SCOPE_SEPARATOR
    from roboyard.rendering.cameras import overview
    from roboyard.rendering.ray_renderer import RayRenderer
    from roboyard.simulation import Simulation

    model = scene.semantics.model
    placed = PlacedModel("arm", model, scene.T_world_robot)
    models = world.models if world is not None else ()
    lights = world.lights if world is not None else ()
    simulation = Simulation(World("motion", (*models, placed), lights=lights))
    render_scene = simulation.visual_scene()
    addresses = {
        joint: int(render_scene.model.jnt_qposadr[k])
        for k in range(render_scene.model.njnt)
        for joint in plan.path.joints
        if render_scene.model.joint(k).name.split(SCOPE_SEPARATOR)[-1] == joint
    }
    times = np.linspace(0.0, plan.trajectory.duration, _N_PREVIEWS)
    states = plan.trajectory.sample_at(times).position
    path_positions = plan.trajectory.sample_at(np.linspace(0.0, plan.trajectory.duration, 300)).position
    tool_positions = scene.T_world_base @ scene.chain.forward(path_positions)[:, :3, 3]
    extent_points = np.concatenate(
        [tool_positions, scene.T_world_base @ scene.chain.frames(states)[:, :, :3, 3].reshape(-1, 3)]
    )
    camera = overview(
        extent_points.min(axis=0) - 0.12,
        extent_points.max(axis=0) + 0.12,
        aspect=_WIDTH / _HEIGHT,
        azimuth=-2.3,
        elevation=0.45,
    )
    images = []
    with RayRenderer(render_scene.model, _WIDTH, _HEIGHT) as renderer:
        for q in states:
            for joint, value in zip(plan.path.joints, q, strict=True):
                render_scene.data.qpos[addresses[joint]] = value
            mujoco.mj_forward(render_scene.model, render_scene.data)
            images.append(renderer.render(render_scene.data, camera).astype(np.int16))
    simulation.close()
    empty_simulation = Simulation(World("motion", models, lights=lights))
    empty_scene = empty_simulation.visual_scene()
    with RayRenderer(empty_scene.model, _WIDTH, _HEIGHT) as renderer:
        background = renderer.render(empty_scene.data, camera).astype(np.int16)
    empty_simulation.close()
    blended = background.astype(np.float64)
    for k, pixels in enumerate(images):
        arm = np.abs(pixels - background).max(axis=2) > _PIXEL_DIFFERENCE
        alpha = 1.0 if k == len(images) - 1 else _PREVIEW_ALPHA
        blended[arm] = alpha * pixels[arm] + (1.0 - alpha) * blended[arm]
    image = Image.fromarray(blended.astype(np.uint8))
    ImageDraw.Draw(image).line(_project_points(camera, tool_positions), fill=_PATH_COLOR, width=3)
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            image.save(temporary)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(file)) from error


def _project_points(camera: Any, points: Any) -> list[tuple[float, float]]:
    """Project points of the world into the image [px]."""
    local, focal = camera.T_world_camera.inverse() @ points, camera.focal_length(_HEIGHT)
    return [(_WIDTH / 2 + focal * x / z, _HEIGHT / 2 + focal * y / z) for x, y, z in local.tolist() if z > 0.0]


_N_CELLS = 60
_BATCH_SIZE = 5000


@dataclass(frozen=True)
class Workspace:
    """Sampled positions of the tool in the chain's base.

    Attributes:
        points: (k, 3) [m].
        manipulability: (k,) manipulability at each.
        volume: Volume of the cells that contain a position [m³].
        cell: Edge length of a cell [m].
    """

    points: Array
    manipulability: Array
    volume: float
    cell: float


def sample_workspace(chain: Chain, rng: np.random.Generator, n_samples: int) -> Workspace:
    """Sample random joint positions. Raises InputError if a sliding joint has no limits."""
    points, manipulability = [], []
    for first in range(0, n_samples, _BATCH_SIZE):
        q = chain.sample_positions(rng, min(_BATCH_SIZE, n_samples - first))
        points.append(chain.forward(q)[:, :3, 3])
        manipulability.append(np.atleast_1d(chain.manipulability(q)))
    positions = np.concatenate(points)
    cell = max(float(np.ptp(positions, axis=0).max()) / _N_CELLS, 1e-9)
    cells = np.unique(np.floor(positions / cell).astype(np.int64), axis=0)
    return Workspace(positions, np.concatenate(manipulability), len(cells) * cell**3, cell)


def draw_workspace(file: Path, chain: Chain, workspace: Workspace) -> None:
    """Draw slices of the workspace from the side, the front and above, 2 cells thick: density of positions, and
    manipulability.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError

    figure = Figure(figsize=(14.0, 9.0), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, 3)
    low, high = workspace.points.min(axis=0), workspace.points.max(axis=0)
    median_height = float(np.median(workspace.points[:, 2]))
    views = (("x", "z", 0, 2, 1, 0.0, "side, y = 0"), ("y", "z", 1, 2, 0, 0.0, "front, x = 0"),
             ("x", "y", 0, 1, 2, median_height, f"above, z = {median_height:.2f} m"))  # fmt: skip
    for column, (across, up, i, j, k, level, title) in enumerate(views):
        in_slice = np.abs(workspace.points[:, k] - level) <= 2.0 * workspace.cell
        points, manipulability = workspace.points[in_slice], workspace.manipulability[in_slice]
        bins = [np.arange(low[n] - workspace.cell, high[n] + 2.0 * workspace.cell, workspace.cell) for n in (i, j)]
        counts, *_ = np.histogram2d(points[:, i], points[:, j], bins=bins)
        total, *_ = np.histogram2d(points[:, i], points[:, j], bins=bins, weights=manipulability)
        mean = np.divide(total, counts, out=np.full_like(total, np.nan), where=counts > 0)
        counts[counts == 0] = np.nan
        extent = (bins[0][0], bins[0][-1], bins[1][0], bins[1][-1])
        for row, (values, name) in enumerate(((counts, "positions a cell"), (mean, "manipulability"))):
            axes = grid[row, column]
            image = axes.imshow(values.T, origin="lower", extent=extent, cmap=("viridis", "magma")[row], aspect="equal")
            axes.plot(0.0, 0.0, "+", color="#d0402b", markersize=12)
            axes.set(title=f"{title}: {name}", xlabel=f"{across} [m]", ylabel=f"{up} [m]")
            figure.colorbar(image, ax=axes, shrink=0.8)
    figure.suptitle(f"{chain.robot}: where {chain.tip} gets to, in the frame of {chain.base} (+)")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=90)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be written: {error}", location=str(file)) from error
