"""Pictures of 640 × 480 pixels in the corridor beside PyBullet's TinyRenderer; depth against geometry; depth noise.

Times are the least of many, from the state caught to arrays of colour and depth, in the studio's thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import roboyard
from roboyard.description import load_world
from roboyard.description.model import Box, Inertial, Link, Material, Model, PlacedModel, Sphere, Visual, World
from roboyard.description.sensor_presets import PRESETS
from roboyard.description.sensors import CameraSpec, DepthNoise, Sensor
from roboyard.geometry import SE3, CameraModel
from roboyard.rendering.backends import available_backend
from roboyard.sensors.cameras.camera import CameraSensor, render_camera_reading
from roboyard.sensors.cameras.depth_noise import depth_stddev, measure_depth
from roboyard.simulation import Simulation

HERE = Path(roboyard.__file__).parent
IDENTITY = SE3.identity()
LENS = CameraModel.from_field_of_view(640, 480, 1.0)
RGBD = frozenset(("image", "depth"))
PLAIN = CameraSpec(color=LENS, depth=LENS, near=0.05, depth_near=0.05, depth_far=50.0)
PLACE = SE3.from_xyz_rpy((2.0, 0.0, 0.9), (0.0, 0.1, 0.05))


def best(work: Callable[[], Any], repeat: int) -> float:
    """Least time of one call [ms], after one that is not counted."""
    work()
    least = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
    return least * 1e3


def post(world: World, spec: CameraSpec, renderer: Any, place: SE3 = IDENTITY) -> tuple[Simulation, CameraSensor]:
    """A camera that hangs in a world."""
    body = Link("body", IDENTITY, Inertial(1.0, IDENTITY, (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)), gravity=False)
    sensor = Sensor("eye", "rgbd_camera", "body", IDENTITY, 10.0, "eye", "body", spec)
    sim = Simulation(world, renderer=renderer)
    sim.add(Model("post", (body,), sensors=(sensor,)), "post", place)
    return sim, next(s for s in sim.sensors("post") if isinstance(s, CameraSensor))


def frame_ms(spec: CameraSpec, renderer: str, repeat: int, wanted: frozenset[str] = RGBD) -> float:
    """One picture in the corridor [ms]."""
    sim, eye = post(load_world(HERE / "worlds" / "corridor.sdf"), spec, renderer, PLACE)
    shot = eye.capture()
    least = sim.render_thread.submit(
        lambda worker: best(lambda: render_camera_reading(worker, shot, spec, wanted), repeat)
    ).result()
    sim.close()
    return least


def bullet_ms(repeat: int) -> float:
    """The same picture by PyBullet's TinyRenderer [ms]; raises ImportError without it."""
    import pybullet as p

    sim, _ = post(load_world(HERE / "worlds" / "corridor.sdf"), PLAIN, "rays", PLACE)
    scene = sim.visual_scene()
    model, data, kinds = scene.model, scene.data, mujoco.mjtGeom
    client = p.connect(p.DIRECT)
    for geom in range(model.ngeom):
        size, kind, rgba = model.geom_size[geom], model.geom_type[geom], model.geom_rgba[geom].tolist()
        if model.geom_group[geom] > 2 or rgba[3] < 0.99:
            continue
        if kind == kinds.mjGEOM_BOX:
            shape = p.createVisualShape(p.GEOM_BOX, halfExtents=size.tolist(), rgbaColor=rgba)
        elif kind == kinds.mjGEOM_CYLINDER:
            shape = p.createVisualShape(p.GEOM_CYLINDER, radius=size[0], length=2.0 * size[1], rgbaColor=rgba)
        elif kind == kinds.mjGEOM_SPHERE:
            shape = p.createVisualShape(p.GEOM_SPHERE, radius=size[0], rgbaColor=rgba)
        else:
            continue  # a handful of meshes and an endless ground, in PyBullet's favour
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, data.geom_xmat[geom])
        p.createMultiBody(0, -1, shape, data.geom_xpos[geom].tolist(), [*quat[1:], quat[0]])
    eye, forward = PLACE.translation, PLACE.rotation_matrix()[:, 0]
    view = p.computeViewMatrix(eye.tolist(), (eye + forward).tolist(), [0, 0, 1])
    vertical = math.degrees(2.0 * math.atan(240.0 / LENS.fy))
    lens = p.computeProjectionMatrixFOV(vertical, 640 / 480, 0.05, 50.0)
    least = best(lambda: p.getCameraImage(640, 480, view, lens, renderer=p.ER_TINY_RENDERER), repeat)
    p.disconnect(client)
    sim.close()
    return least


def speed(nightly: bool) -> dict[str, Any]:
    """How long a picture takes."""
    repeat = 60 if nightly else 20
    found: list[dict[str, Any]] = []
    theirs: dict[str, Any]
    try:
        peer = bullet_ms(repeat // 2)
        theirs = {"peer": "PyBullet, TinyRenderer", "peer_value": round(peer, 1)}
    except ImportError as error:
        peer, theirs = math.nan, {"peer": "PyBullet, TinyRenderer", "missing": str(error)}
    details = []
    for renderer, name, target in (("gl", "OpenGL", "<= 16, ratio >= 6"), ("rays", "rays", "<= 60")):
        if renderer == "gl" and available_backend() != "gl":
            details.append("OpenGL does not work on this machine: not measured")
            continue
        ours = frame_ms(PLAIN, renderer, repeat)
        figure = {"name": f"640 × 480 colour and depth, {name}", "value": round(ours, 1), "unit": "ms", **theirs}
        found.append({**figure, "target": target, "ratio": None if math.isnan(peer) else round(peer / ours, 1)})
        kinect = PRESETS["kinect_v1"].spec
        noisy = frame_ms(kinect, renderer, repeat) if isinstance(kinect, CameraSpec) else math.nan
        found.append({"name": f"kinect_v1 with all its noise, {name}", "value": round(noisy, 1), "unit": "ms"})
    return {"figures": found, "details": details}


def exactness(nightly: bool) -> list[dict[str, Any]]:
    """Depth without noise against geometry, at 3 m."""

    def still(name: str, shape: Any, x: float) -> PlacedModel:
        link = Link("link", IDENTITY, visuals=(Visual("v", shape, IDENTITY, Material("m", rgba=(0.8, 0.8, 0.8, 1))),))
        return PlacedModel(name, Model(name, (link,), static=True), SE3.from_xyz_rpy((x, 0.0, 0.0)))

    rays = LENS.pixel_rays()
    slope = rays[..., :2] / rays[..., 2:]
    direction = np.concatenate([slope, np.ones((480, 640, 1))], axis=2)
    a, b, c = (direction**2).sum(2), -2.0 * 3.5 * direction[..., 2], 3.5**2 - 0.25
    root = b * b - 4.0 * a * c
    ball = np.where(root > 0.0, (-b - np.sqrt(np.maximum(root, 0.0))) / (2.0 * a), np.nan)
    worlds = {
        "wall": (World("w", (still("wall", Box((0.2, 40.0, 40.0)), 3.1),)), np.full((480, 640), 3.0)),
        "ball of 0.5 m": (World("w", (still("ball", Sphere(0.5), 3.5),)), ball),
    }
    found = []
    for renderer in ("gl", "rays") if available_backend() == "gl" else ("rays",):
        for name, (world, true) in worlds.items():
            sim, eye = post(world, PLAIN, renderer)
            depth = eye.read().depth
            sim.close()
            known = np.isfinite(true) & np.isfinite(depth)
            off = float(np.median(np.abs(depth - true)[known])) * 1e3
            found.append(
                {"name": f"depth of a {name} at 3 m, {renderer}: median error", "value": round(off, 4), "unit": "mm",
                 "target": "<= 1"}
            )  # fmt: skip
    return found


def noise(nightly: bool) -> list[dict[str, Any]]:
    """Largest difference of measured σ(z) from the published curve, over 0.8 to 5 m."""
    found = []
    for model in ("khoshelham", "nguyen", "handa", "stereo"):
        kind = DepthNoise(model, baseline=0.075, disparity_stddev=0.25)
        worst = 0.0
        rng = np.random.default_rng(1)
        for z in np.arange(0.8, 5.01, 0.35 if not nightly else 0.1):
            # A wall that is hardly slanted, or whole steps of disparity would favour some distances.
            true = np.repeat(z * (1.0 + 0.02 * np.linspace(-1.0, 1.0, 640))[None], 480, 0).astype(np.float32)
            seen = measure_depth(true, LENS, kind, rng, near=0.3, far=20.0, baseline=0.12).astype(float)
            off = ((seen - true) / depth_stddev(kind, true.astype(float), LENS.fx, 0.12))[np.isfinite(seen)]
            worst = max(worst, abs(math.sqrt(float(np.mean(off * off))) - 1.0))
        found.append(
            {"name": f"σ(z) of {model} against its curve", "value": round(100.0 * worst, 1), "unit": "%",
             "target": "<= 10"}
        )  # fmt: skip
    return found


PARTS = (speed, exactness, noise)
"""Measured one after the other; each without what it misses."""
