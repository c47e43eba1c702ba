"""A camera on a post before shapes whose depth is known, for the camera tests."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from roboyard.description.cameras import CameraSpec
from roboyard.description.model import Box, Collision, Inertial, Link, Material, Model, Placed, Sphere, Visual, World
from roboyard.description.sensors import Sensor
from roboyard.geometry import SE3, Lens
from roboyard.simulation import Simulation
from roboyard.simulation.render.opening import available_backend

I = SE3.identity()  # noqa: E741
LENS = Lens.of_view(160, 120, 1.0)
RENDERERS = ("rays", "gl") if available_backend() == "gl" else ("rays",)


def still(name, shape, place, rgba=(0.8, 0.8, 0.8, 1.0), material=None):
    visual = Visual("v", shape, I, material or Material("m", rgba=rgba))
    link = Link("link", I, collisions=(Collision("c", shape, I),), visuals=(visual,))
    return Placed(name, Model(name, (link,), static=True), SE3.from_xyz_rpy(place))


def wall(away=3.0, **looks):
    """A wall whose face is ``away`` metres before the camera."""
    return still("wall", Box((0.2, 40.0, 40.0)), (away + 0.1, 0.0, 0.0), **looks)


def ball(away=3.0, radius=0.5, y=0.0, **looks):
    return still("ball", Sphere(radius), (away, y, 0.0), **looks)


def camera(kind="rgbd_camera", **spec) -> Sensor:
    defaults = {"colour": LENS, "depth": LENS, "near": 0.05, "depth_near": 0.3, "depth_far": 8.0}
    if kind == "camera":
        defaults["depth"] = None
    if kind == "depth_camera":
        defaults["colour"] = None
    return Sensor("eye", kind, "body", I, 20.0, "eye", "body", CameraSpec(**{**defaults, **spec}), latency=0.03)


def look(*things, sensor=None, renderer="rays", seed=0, housing=False):
    """The simulation and its camera at the origin, looking along x."""
    body = Link("body", I, Inertial(1.0, I, (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)), gravity=False)
    if housing:
        body = replace(body, visuals=(Visual("v", Box((0.1, 0.1, 0.1)), I, Material("m")),))
    sim = Simulation(World("w", tuple(things)), seed=seed, renderer=renderer)
    sim.add(Model("post", (body,), sensors=(sensor or camera(),)), "post")
    return sim, sim.sensors("post")[0]


def rays_of(lens: Lens) -> np.ndarray:
    """(h, w, 2) slopes of the pixels' rays."""
    rays = lens.all_rays()
    return rays[..., :2] / rays[..., 2:]


def ball_depth(lens: Lens, away: float, radius: float, y: float = 0.0) -> np.ndarray:
    """Depth of a ball straight ahead, not a number beside it."""
    slope = rays_of(lens)
    direction = np.concatenate([slope, np.ones((*slope.shape[:2], 1))], axis=2)
    centre = np.array([-y, 0.0, away])
    a, b, c = (direction**2).sum(2), -2 * direction @ centre, centre @ centre - radius**2
    root = b * b - 4 * a * c
    return np.where(root > 0, (-b - np.sqrt(np.maximum(root, 0))) / (2 * a), math.nan)
