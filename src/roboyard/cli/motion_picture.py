"""A picture of an arm's motion: where it ends, where it was before as ghosts, and the way of its tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard.config import atomic_path

if TYPE_CHECKING:
    from roboyard.description import World
    from roboyard.manipulation.planning import Plan
    from roboyard.manipulation.scene import PlanningScene

_WIDTH, _HEIGHT = 960, 720
_GHOSTS = 9
_CHANGED = 14
"""A pixel that differs by more from the picture without the arm belongs to it."""
_GHOST, _LINE = 0.45, (208, 64, 43)


def draw_motion(file: Path, scene: PlanningScene, found: Plan, world: World | None) -> None:
    """Draw it, seen from the side and above.

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
    from roboyard.simulation import Simulation
    from roboyard.simulation.naming import SEPARATOR
    from roboyard.simulation.render.camera import overview
    from roboyard.simulation.render.rays import RayRenderer

    model = scene.groups.model
    placed = PlacedModel("arm", model, scene.T_world_robot)
    around = world.models if world is not None else ()
    lamps = world.lights if world is not None else ()
    simulation = Simulation(World("motion", (*around, placed), lights=lamps))
    drawn = simulation.scene()
    addresses = {
        joint: int(drawn.model.jnt_qposadr[k])
        for k in range(drawn.model.njnt)
        for joint in found.path.joints
        if drawn.model.joint(k).name.split(SEPARATOR)[-1] == joint
    }
    times = np.linspace(0.0, found.trajectory.duration, _GHOSTS)
    states = found.trajectory.at(times).position
    along = found.trajectory.at(np.linspace(0.0, found.trajectory.duration, 300)).position
    tips = scene.T_world_base @ scene.chain.forward(along)[:, :3, 3]
    reach = np.concatenate([tips, scene.T_world_base @ scene.chain.frames(states)[:, :, :3, 3].reshape(-1, 3)])
    camera = overview(
        reach.min(axis=0) - 0.12, reach.max(axis=0) + 0.12, aspect=_WIDTH / _HEIGHT, azimuth=-2.3, elevation=0.45
    )
    pictures = []
    with RayRenderer(drawn.model, _WIDTH, _HEIGHT) as renderer:
        for q in states:
            for joint, value in zip(found.path.joints, q, strict=True):
                drawn.data.qpos[addresses[joint]] = value
            mujoco.mj_forward(drawn.model, drawn.data)
            pictures.append(renderer.render(drawn.data, camera).astype(np.int16))
    simulation.close()
    bare = Simulation(World("motion", around, lights=lamps))
    empty = bare.scene()
    with RayRenderer(empty.model, _WIDTH, _HEIGHT) as renderer:
        usual = renderer.render(empty.data, camera).astype(np.int16)
    bare.close()
    whole = usual.astype(np.float64)
    for k, seen in enumerate(pictures):
        arm = np.abs(seen - usual).max(axis=2) > _CHANGED
        share = 1.0 if k == len(pictures) - 1 else _GHOST
        whole[arm] = share * seen[arm] + (1.0 - share) * whole[arm]
    image = Image.fromarray(whole.astype(np.uint8))
    ImageDraw.Draw(image).line(_seen(camera, tips), fill=_LINE, width=3)
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            image.save(temporary)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(file)) from error


def _seen(camera: Any, points: Any) -> list[tuple[float, float]]:
    """Points of the world in the picture [px]."""
    local, focal = camera.T_world_camera.inverse() @ points, camera.focal(_HEIGHT)
    return [(_WIDTH / 2 + focal * x / z, _HEIGHT / 2 + focal * y / z) for x, y, z in local.tolist() if z > 0.0]
