"""A camera on a post before shapes whose depth is known, for the camera tests."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from roboyard.description.model import (
    Box,
    Collision,
    Inertial,
    Link,
    Material,
    Model,
    PlacedModel,
    Sphere,
    Visual,
    World,
)
from roboyard.description.sensors import CameraSpec, Sensor
from roboyard.geometry import SE3, CameraModel
from roboyard.rendering.backends import available_backend
from roboyard.simulation import Simulation

IDENTITY = SE3.identity()
LENS = CameraModel.from_field_of_view(160, 120, 1.0)
RENDERERS = ("rays", "gl") if available_backend() == "gl" else ("rays",)


def static_object(name, shape, position, rgba=(0.8, 0.8, 0.8, 1.0), material=None):
    """A static model of one shape."""
    visual = Visual("v", shape, IDENTITY, material or Material("m", rgba=rgba))
    link = Link("link", IDENTITY, collisions=(Collision("c", shape, IDENTITY),), visuals=(visual,))
    return PlacedModel(name, Model(name, (link,), static=True), SE3.from_xyz_rpy(position))


def wall(distance=3.0, **appearance):
    """A wall whose face is ``distance`` in front of the camera [m]."""
    return static_object("wall", Box((0.2, 40.0, 40.0)), (distance + 0.1, 0.0, 0.0), **appearance)


def ball(distance=3.0, radius=0.5, y=0.0, **appearance):
    """A ball ``distance`` in front of the camera [m]."""
    return static_object("ball", Sphere(radius), (distance, y, 0.0), **appearance)


def camera(kind="rgbd_camera", **spec) -> Sensor:
    """A camera on the post; ``spec`` changes its defaults."""
    defaults = {"color": LENS, "depth": LENS, "near": 0.05, "depth_near": 0.3, "depth_far": 8.0}
    if kind == "camera":
        defaults["depth"] = None
    if kind == "depth_camera":
        defaults["color"] = None
    return Sensor("eye", kind, "body", IDENTITY, 20.0, "eye", "body", CameraSpec(**{**defaults, **spec}), latency=0.03)


def simulate_camera(*objects, sensor=None, renderer="rays", seed=0, housing=False):
    """The simulation and its camera at the origin, facing along x."""
    body = Link("body", IDENTITY, Inertial(1.0, IDENTITY, (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)), gravity=False)
    if housing:
        body = replace(body, visuals=(Visual("v", Box((0.1, 0.1, 0.1)), IDENTITY, Material("m")),))
    sim = Simulation(World("w", tuple(objects)), seed=seed, renderer=renderer)
    sim.add(Model("post", (body,), sensors=(sensor or camera(),)), "post")
    return sim, sim.sensors("post")[0]


def rays_of(lens: CameraModel) -> np.ndarray:
    """(h, w, 2) slopes of the pixels' rays."""
    rays = lens.pixel_rays()
    return rays[..., :2] / rays[..., 2:]


def ball_depth(lens: CameraModel, distance: float, radius: float, y: float = 0.0) -> np.ndarray:
    """Depth of a ball straight ahead, not a number beside it."""
    slope = rays_of(lens)
    direction = np.concatenate([slope, np.ones((*slope.shape[:2], 1))], axis=2)
    center = np.array([-y, 0.0, distance])
    a, b, c = (direction**2).sum(2), -2 * direction @ center, center @ center - radius**2
    root = b * b - 4 * a * c
    return np.where(root > 0, (-b - np.sqrt(np.maximum(root, 0))) / (2 * a), math.nan)
