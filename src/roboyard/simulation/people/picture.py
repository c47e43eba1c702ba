"""Pictures of clips: the body in some of its poses beside each other, or moving."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roboyard.config import atomic_path
from roboyard.description.model import Box, Light, Link, Material, Model, PlacedModel, Visual, World
from roboyard.errors import InputError
from roboyard.geometry import SE3, quaternions
from roboyard.simulation.engine import Simulation
from roboyard.simulation.people.body import Body
from roboyard.simulation.people.clip import Clip
from roboyard.simulation.render.camera import Camera, look_at
from roboyard.simulation.render.rays import RayRenderer

_APART = 1.0
"""From one pose to the next [m]."""
_SLANT = np.radians(-55.0)
"""How the body is turned against the row, so that it is seen from its front and its side."""


def clip_strip(clip: Clip, body: Body, *, poses: int = 6, width: int = 1200, height: int = 420) -> NDArray[np.uint8]:
    """(height, width, 3) the body in some poses of a clip, from left to right."""
    sim = Simulation(_stage(poses))
    phases = np.arange(poses) / (poses if clip.loop else max(poses - 1, 1))
    for k, phase in enumerate(phases):
        sim.add(body.model, f"pose{k}", flesh=body.flesh)
        _strike(sim, f"pose{k}", body, clip, float(phase), (0.0, -_APART * (k - 0.5 * (poses - 1))))
    sim.step()
    wide = 0.5 * _APART * poses
    fov = 2.0 * np.arctan(0.55 * body.skeleton.physique.height * 1.25 / 9.0)
    away = max(9.0, wide / np.tan(0.5 * fov) * height / width * 1.04)
    return _shot(
        sim,
        look_at((-away, 0.0, 0.9 + 0.16 * away), (0.0, 0.0, 0.52 * body.skeleton.physique.height), fov_y=fov),
        width,
        height,
    )


def clip_frames(
    clip: Clip, body: Body, *, rate: float = 20.0, width: int = 480, height: int = 480
) -> Iterator[NDArray[np.uint8]]:
    """(height, width, 3) pictures of a round of the clip, the camera going along with it."""
    sim = Simulation(_stage(4))
    sim.add(body.model, "person", flesh=body.flesh)
    tall = body.skeleton.physique.height
    for k in range(max(round(clip.period * rate), 2)):
        phase = k / (clip.period * rate)
        ahead = clip.travel * tall * phase
        _strike(sim, "person", body, clip, phase, (ahead, 0.0), clip.turning * phase, slant=0.0)
        sim.step()
        target = (ahead, 0.0, 0.5 * tall)
        yield _shot(sim, look_at((ahead + 2.4, -3.2, 1.5), target, fov_y=0.55), width, height)


def _strike(
    sim: Simulation, name: str, body: Body, clip: Clip, phase: float, at: tuple[float, float], yaw: float = 0.0,
    slant: float = _SLANT + np.pi,
) -> None:  # fmt: skip
    root, turns = clip.at(phase)
    turn = quaternions.from_rpy([0.0, 0.0, yaw + slant])
    turns[0] = quaternions.multiply(turn, turns[0])
    place = quaternions.rotate(turn, root * body.skeleton.physique.height) + np.array([*at, 0.0])
    sim.flesh.lead(name, *body.skeleton.forward(place, turns), seconds=1e-6)


def _stage(long: int) -> World:
    grey = Material("floor", (0.78, 0.79, 0.80, 1.0))
    floor = Link(
        "floor",
        SE3.identity(),
        visuals=(Visual("floor", Box((60.0, 60.0, 0.02)), SE3(translation=(0.0, 0.0, -0.011)), grey),),
    )
    lights = (Light("sun", T_world_light=SE3(translation=(0.0, 0.0, 6.0)), direction=(0.5, 0.35, -1.0)),)
    return World("stage", (PlacedModel("floor", Model("floor", (floor,), static=True), SE3.identity()),), lights=lights)


def _shot(sim: Simulation, camera: Camera, width: int, height: int) -> NDArray[np.uint8]:
    scene = sim.scene()
    with RayRenderer(scene.model, width, height) as renderer:
        return np.asarray(renderer.render(scene.data, camera))


def save_strip(clip: Clip, body: Body, path: Path) -> None:
    """Write `clip_strip` to a file. Raises InputError where it cannot be."""
    from PIL import Image

    from roboyard.simulation.render.portrait import check_picture

    check_picture(path)
    with atomic_path(path, has_target_suffix=True) as temporary:
        Image.fromarray(clip_strip(clip, body)).save(temporary)


def save_animation(clip: Clip, body: Body, path: Path, *, rate: float = 20.0) -> None:
    """Write `clip_frames` to a .gif file. Raises InputError where it cannot be."""
    from PIL import Image

    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for the picture", valid="a folder that exists")
    first, *others = (Image.fromarray(picture) for picture in clip_frames(clip, body, rate=rate))
    with atomic_path(path, has_target_suffix=True) as temporary:
        first.save(temporary, save_all=True, append_images=others, duration=1000.0 / rate, loop=0)
