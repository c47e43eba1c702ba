"""Images of animation clips: the body in several poses side by side, or in motion."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roboyard.config import atomic_path
from roboyard.description.model import Box, Light, Link, Material, Model, PlacedModel, Visual, World
from roboyard.errors import InputError
from roboyard.geometry import SE3, quaternions
from roboyard.people.body import PersonModel
from roboyard.people.clip import AnimationClip
from roboyard.rendering.cameras import RenderCamera, look_at
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.simulation.simulation import ModelOptions, Simulation

_POSE_SPACING = 1.0
"""Distance between two poses [m]."""
_VIEW_YAW = np.radians(-55.0)
"""Yaw of the body relative to the row [rad]; the image shows its front and its side."""


def render_clip_strip(
    clip: AnimationClip, body: PersonModel, *, poses: int = 6, width: int = 1200, height: int = 420
) -> NDArray[np.uint8]:
    """Return an image (height, width, 3) of the body in some poses of a clip, from left to right."""
    sim = Simulation(_make_floor_world(poses))
    phases = np.arange(poses) / (poses if clip.loop else max(poses - 1, 1))
    for k, phase in enumerate(phases):
        sim.add(body.model, f"pose{k}", options=ModelOptions(compliant_parts=body.compliant_parts))
        _set_body_pose(sim, f"pose{k}", body, clip, float(phase), (0.0, -_POSE_SPACING * (k - 0.5 * (poses - 1))))
    sim.step()
    half_width = 0.5 * _POSE_SPACING * poses
    fov = 2.0 * np.arctan(0.55 * body.skeleton.dimensions.height * 1.25 / 9.0)
    camera_distance = max(9.0, half_width / np.tan(0.5 * fov) * height / width * 1.04)
    return _render_image(
        sim,
        look_at(
            (-camera_distance, 0.0, 0.9 + 0.16 * camera_distance),
            (0.0, 0.0, 0.52 * body.skeleton.dimensions.height),
            fov_y=fov,
        ),
        width,
        height,
    )


def render_clip_frames(
    clip: AnimationClip, body: PersonModel, *, rate: float = 20.0, width: int = 480, height: int = 480
) -> Iterator[NDArray[np.uint8]]:
    """Return images (height, width, 3) of one period of the clip; the camera follows the body."""
    sim = Simulation(_make_floor_world(4))
    sim.add(body.model, "person", options=ModelOptions(compliant_parts=body.compliant_parts))
    stature = body.skeleton.dimensions.height
    for k in range(max(round(clip.period * rate), 2)):
        phase = k / (clip.period * rate)
        distance = clip.travel_per_period * stature * phase
        _set_body_pose(sim, "person", body, clip, phase, (distance, 0.0), clip.yaw_per_period * phase, view_yaw=0.0)
        sim.step()
        target = (distance, 0.0, 0.5 * stature)
        yield _render_image(sim, look_at((distance + 2.4, -3.2, 1.5), target, fov_y=0.55), width, height)


def _set_body_pose(
    sim: Simulation,
    name: str,
    body: PersonModel,
    clip: AnimationClip,
    phase: float,
    position: tuple[float, float],
    yaw: float = 0.0,
    view_yaw: float = _VIEW_YAW + np.pi,
) -> None:
    root, rotations = clip.pose_at(phase)
    yaw_rotation = quaternions.from_rpy([0.0, 0.0, yaw + view_yaw])
    rotations[0] = quaternions.multiply(yaw_rotation, rotations[0])
    root_position = quaternions.rotate(yaw_rotation, root * body.skeleton.dimensions.height) + np.array(
        [*position, 0.0]
    )
    sim.world.compliant_bodies.move_to(name, *body.skeleton.compute_part_poses(root_position, rotations), duration=1e-6)


def _make_floor_world(long: int) -> World:
    gray = Material("floor", (0.78, 0.79, 0.80, 1.0))
    floor = Link(
        "floor",
        SE3.identity(),
        visuals=(Visual("floor", Box((60.0, 60.0, 0.02)), SE3(translation=(0.0, 0.0, -0.011)), gray),),
    )
    lights = (Light("sun", T_world_light=SE3(translation=(0.0, 0.0, 6.0)), direction=(0.5, 0.35, -1.0)),)
    return World("stage", (PlacedModel("floor", Model("floor", (floor,), static=True), SE3.identity()),), lights=lights)


def _render_image(sim: Simulation, camera: RenderCamera, width: int, height: int) -> NDArray[np.uint8]:
    scene = sim.visual_scene()
    with RayRenderer(scene.model, width, height) as renderer:
        return np.asarray(renderer.render(scene.data, camera))


def save_clip_strip(clip: AnimationClip, body: PersonModel, path: Path) -> None:
    """Write the image of `render_clip_strip` to a file. Raises InputError."""
    from PIL import Image

    from roboyard.simulation.overview_image import check_image_path

    check_image_path(path)
    with atomic_path(path, has_target_suffix=True) as temporary:
        Image.fromarray(render_clip_strip(clip, body)).save(temporary)


def save_clip_animation(clip: AnimationClip, body: PersonModel, path: Path, *, rate: float = 20.0) -> None:
    """Write the images of `render_clip_frames` to a .gif file. Raises InputError."""
    from PIL import Image

    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for the image", valid="a folder that exists")
    first, *following = (Image.fromarray(image) for image in render_clip_frames(clip, body, rate=rate))
    with atomic_path(path, has_target_suffix=True) as temporary:
        first.save(temporary, save_all=True, append_images=following, duration=1000.0 / rate, loop=0)
