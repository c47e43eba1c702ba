"""Lidar beams beside PyBullet's and ir-sim's, on one core, in one process: in the corridor, and among boxes and a mesh.

ir-sim is a plane: it gets the cut through the scene at the lidar's height, and the same beams.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import roboyard
from roboyard.description import load_model, load_world
from roboyard.description.model import Box, Collision, Inertial, Link, Mesh, Model, PlacedModel, World
from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.geometry import SE3
from roboyard.sensors.lidar import Lidar
from roboyard.simulation import Simulation

HERE = Path(roboyard.__file__).parent
IDENTITY = SE3.identity()
BOXES = 500


def best(work: Callable[[], Any], repeat: int) -> float:
    """Least time of one call [µs]."""
    least = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
    return least * 1e6


def rock(folder: Path) -> Path:
    """A closed, bumpy, concave surface of 81,920 triangles, 2 m across."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=6)
    x, y, _ = ball.vertices.T
    ball.vertices *= 1.0 + 0.1 * (np.sin(9.0 * x) * np.cos(7.0 * y))[:, None]
    path = folder / "rock.stl"
    ball.export(path)
    return path


def yard(folder: Path) -> World:
    """500 boxes of all sizes within 20 m, and the rock among them."""
    rng = np.random.default_rng(1)
    things = []
    for k in range(BOXES):
        way, bearing = rng.uniform(3.0, 20.0), rng.uniform(-math.pi, math.pi)
        size = (*rng.uniform(0.1, 0.6, 2), 2.0)
        pose = SE3.from_xyz_rpy((way * math.cos(bearing), way * math.sin(bearing), 0.0), (0.0, 0.0, bearing))
        things.append(still(f"box{k}", Box((float(size[0]), float(size[1]), size[2])), pose))
    things.append(still("rock", Mesh("rock.stl", rock(folder)), SE3.from_xyz_rpy((2.5, 1.0, 0.0))))
    return World("yard", tuple(things))


def still(name: str, shape: Any, pose: SE3) -> PlacedModel:
    link = Link("link", IDENTITY, collisions=(Collision("c", shape, IDENTITY),))
    return PlacedModel(name, Model(name, (link,), static=True), pose)


def post(world: World, spec: LidarSpec) -> tuple[Simulation, Lidar]:
    """The lidar in the middle of a world."""
    body = Link("body", IDENTITY, Inertial(1.0, IDENTITY, (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)), gravity=False)
    sensor = Sensor("lidar", "lidar", "body", IDENTITY, 10.0, "scan", "body", spec)
    sim = Simulation(world)
    sim.add(Model("post", (body,), sensors=(sensor,)), "post")
    return sim, next(s for s in sim.sensors("post") if isinstance(s, Lidar))


def around(**more: Any) -> LidarSpec:
    return LidarSpec(samples=720, angle_min=-math.pi, angle_max=math.pi * (1.0 - 2.0 / 720), range_max=30.0, **more)


def bullet_beams(sim: Simulation, lidar: Lidar, repeat: int) -> float:
    """The same beams against the same shapes in PyBullet [µs]; raises ImportError without it."""
    import pybullet as p

    client = p.connect(p.DIRECT)
    model, data, kinds = sim.world.model, sim.world.data, mujoco.mjtGeom
    for geom in lidar.beams.target_geoms:
        size = model.geom_size[geom]
        if model.geom_type[geom] == int(kinds.mjGEOM_BOX):
            shape = p.createCollisionShape(p.GEOM_BOX, halfExtents=size.tolist())
        elif model.geom_type[geom] == int(kinds.mjGEOM_MESH):
            shape = _trimesh(p, model, int(model.geom_dataid[geom]))
        elif model.geom_type[geom] == int(kinds.mjGEOM_CYLINDER):
            shape = p.createCollisionShape(p.GEOM_CYLINDER, radius=size[0], height=2.0 * size[1])
        elif model.geom_type[geom] == int(kinds.mjGEOM_SPHERE):
            shape = p.createCollisionShape(p.GEOM_SPHERE, radius=size[0])
        else:
            continue
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, data.geom_xmat[geom])
        p.createMultiBody(0, shape, -1, data.geom_xpos[geom].tolist(), [*quat[1:], quat[0]])
    origin = data.site_xpos[lidar.site].copy()
    directions = lidar.beams.directions @ data.site_xmat[lidar.site].reshape(3, 3).T
    start = [origin.tolist()] * len(directions)
    end = (origin + lidar.spec.range_max * directions).tolist()
    batch = 16_000  # more are refused in one call

    def cast() -> None:
        for first in range(0, len(start), batch):
            p.rayTestBatch(start[first : first + batch], end[first : first + batch], numThreads=1)

    least = best(cast, repeat)
    p.disconnect(client)
    return least


def _trimesh(p: Any, model: Any, mesh: int) -> int:
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    start, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    return int(
        p.createCollisionShape(
            p.GEOM_MESH,
            vertices=model.mesh_vert[first : first + count].tolist(),
            indices=model.mesh_face[start : start + faces].ravel().tolist(),
        )
    )


def cut(sim: Simulation, lidar: Lidar) -> list[list[list[float]]]:
    """Outlines [m] of what lies at the lidar's height; raises ImportError without ir-sim's shapely."""
    import shapely
    import trimesh

    found: list[list[list[float]]] = []
    model, data, kinds = sim.world.model, sim.world.data, mujoco.mjtGeom
    for geom in lidar.beams.target_geoms:
        size, kind = model.geom_size[geom], model.geom_type[geom]
        if kind == int(kinds.mjGEOM_BOX):
            shape = trimesh.creation.box(2.0 * size)
        elif kind == int(kinds.mjGEOM_CYLINDER):
            shape = trimesh.creation.cylinder(float(size[0]), 2.0 * float(size[1]))
        elif kind == int(kinds.mjGEOM_SPHERE):
            shape = trimesh.creation.icosphere(subdivisions=3, radius=float(size[0]))
        elif kind == int(kinds.mjGEOM_MESH):
            mesh = int(model.geom_dataid[geom])
            first, start = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
            corners = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])]
            shape = trimesh.Trimesh(corners, model.mesh_face[start : start + int(model.mesh_facenum[mesh])])
        else:
            continue
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom]
        shape.apply_transform(pose)
        segments = trimesh.intersections.mesh_plane(shape, (0.0, 0.0, 1.0), data.site_xpos[lidar.site])
        lines = shapely.linestrings(np.round(segments[:, :, :2], 6)) if len(segments) else []
        parts = shapely.polygonize(lines).geoms if len(lines) else []
        found += [np.array(part.exterior.simplify(1e-5).coords)[:-1].tolist() for part in parts]
    return found


def plane_beams(sim: Simulation, lidar: Lidar, repeat: int) -> tuple[float, float]:
    """ir-sim's time for the same beams [µs], and the share of them that it ends within 2 cm of ours.

    Raises ImportError without it.
    """
    import contextlib
    import io

    import yaml

    with contextlib.redirect_stdout(io.StringIO()):  # it says which window systems it misses
        import irsim
    turn = sim.world.data.site_xmat[lidar.site].reshape(3, 3)
    x, y = sim.world.data.site_xpos[lidar.site][:2].tolist()
    spec, heading = lidar.spec, math.atan2(turn[1, 0], turn[0, 0])
    middle, span = 0.5 * (spec.angle_max + spec.angle_min), spec.angle_max - spec.angle_min
    sensor = {"type": "lidar2d", "range_min": 0, "range_max": spec.range_max, "angle_range": span,
              "number": spec.samples}  # fmt: skip
    scene = {
        "world": {"height": 200, "width": 200, "offset": [-100, -100]},
        "robot": [
            {"kinematics": {"name": "diff"}, "shape": {"name": "circle", "radius": 0.001},
             "state": [x, y, heading + middle], "sensors": [sensor]}
        ],
        "obstacle": [
            {"shape": {"name": "polygon", "vertices": line}, "state": [0, 0, 0]} for line in cut(sim, lidar)
        ],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.yaml"
        path.write_text(yaml.safe_dump(scene))
        made = irsim.make(str(path), display=False, log_level="ERROR")
    try:
        theirs, state = made.robot.lidar, made.robot.state
        least = best(lambda: theirs.step(state), repeat)
        ours = np.minimum(lidar.cast(), spec.range_max)
        alike = float(np.mean(np.abs(ours - theirs.range_data) < 0.02))
    finally:
        made.end(ending_time=0.0)
    return least, alike


def in_the_plane(name: str, ours: float, sim: Simulation, lidar: Lidar, repeat: int) -> dict[str, Any]:
    """The figure beside ir-sim; without a target, which the figure beside PyBullet has."""
    made = {"name": f"{name}, beside a plane", "value": round(ours, 1), "unit": "µs", "peer": "ir-sim, the plane alone"}
    try:
        theirs, alike = plane_beams(sim, lidar, repeat)
    except ImportError as error:
        return {**made, "missing": str(error)}
    peer = f"ir-sim, the plane alone; {alike:.0%} of its beams end within 2 cm of ours"
    return {**made, "peer": peer, "peer_value": round(theirs, 1), "ratio": round(theirs / ours, 1)}


def figure(name: str, ours: float, target: str, sim: Simulation, lidar: Lidar, repeat: int) -> dict[str, Any]:
    made = {"name": name, "value": round(ours, 1), "unit": "µs", "target": target, "peer": "PyBullet, one thread"}
    try:
        theirs = bullet_beams(sim, lidar, repeat)
    except ImportError as error:
        return {**made, "missing": str(error)}
    return {**made, "peer_value": round(theirs, 1), "ratio": round(theirs / ours, 1)}


def corridor(nightly: bool) -> list[dict[str, Any]]:
    """The rover's 720 beams in the corridor."""
    sim = Simulation(load_world(HERE / "worlds" / "corridor.sdf"))
    sim.add(load_model(HERE / "robots" / "rover" / "rover.urdf.xacro"), "rover", SE3.from_xyz_rpy((1.5, 0.0, 0.05)))
    sim.step(200)
    lidar = next(s for s in sim.sensors("rover") if isinstance(s, Lidar))
    repeat, name = 600 if nightly else 200, "720 beams in the corridor"
    ours = best(lidar.cast, repeat)
    return [
        figure(name, ours, "<= 250", sim, lidar, repeat // 8),
        in_the_plane(name, ours, sim, lidar, repeat // 8),
    ]


def many(nightly: bool) -> list[dict[str, Any]]:
    """720 beams among 500 boxes and a mesh; 16 layers of 1800 there, as share of the time they come in."""
    repeat = 600 if nightly else 200
    with tempfile.TemporaryDirectory() as folder:
        world = yard(Path(folder))
        sim, lidar = post(world, around())
        name = f"720 beams, {BOXES} boxes and 81,920 triangles"
        ours = best(lidar.cast, repeat)
        found = [
            figure(name, ours, "<= 300", sim, lidar, repeat // 8),
            in_the_plane(name, ours, sim, lidar, repeat // 8),
        ]
        spec = LidarSpec(
            samples=1800, angle_min=-math.pi, angle_max=math.pi * (1.0 - 2.0 / 1800), vertical_samples=16,
            vertical_angle_min=-0.26, vertical_angle_max=0.26, range_max=100.0,
        )  # fmt: skip
        sim, lidar = post(world, spec)
        sweep = best(lidar.read if nightly else lidar.cast, 20)

        def tenth() -> None:
            sim.step(50)
            lidar.read()

        second = 10e-6 * best(tenth, 30)
        one = figure("16 × 1800 beams there, one sweep", sweep, "", sim, lidar, 3)
        found.append({**one, "target": None})
        found.append(
            {
                "name": "16 × 1800 beams at 10 Hz with physics", "value": round(1.0 / second, 1),
                "unit": "× real time", "target": ">= 5",
            }
        )  # fmt: skip
    return found


PARTS = (corridor, many)
"""Measured one after the other; each without what it misses."""
