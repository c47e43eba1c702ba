"""Physics step and lidar beside PyBullet, on one core, in one process.

Both engines hold the same shapes, masses and inertias: PyBullet's world is made from the compiled one.  Times are the
best of many short batches, so that what else the machine does is not measured.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import mujoco
import numpy as np

import roboyard
from roboyard.description import load_model, load_world
from roboyard.description.model import World
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.scenarios.execution import run_scenario
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.sensors.lidar import Lidar
from roboyard.simulation import Simulation

HERE = Path(roboyard.__file__).parent
WHEEL_SPEED = 5.0


def best(work: Callable[[], Any], repeat: int, per_call: int = 1) -> float:
    """Least time of one unit of ``work`` [µs]."""
    least = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
    return least / per_call * 1e6


def simulated(world: str) -> tuple[Simulation, Lidar]:
    """The rover in a world of the package, settled."""
    place: World = load_world(HERE / "worlds" / f"{world}.sdf")
    sim = Simulation(place)
    at = SE3.from_xyz_rpy((1.5, 0.0, 0.05)) if world == "corridor" else SE3.from_xyz_rpy((0.0, 0.0, 0.05))
    sim.add(load_model(HERE / "robots" / "rover" / "rover.urdf.xacro"), "rover", at)
    sim.step(200)
    lidar = next(sensor for sensor in sim.sensors("rover") if isinstance(sensor, Lidar))
    return sim, lidar


def command(sim: Simulation, left: float, right: float) -> None:
    hardware = sim.hardware("rover")
    speeds = [left if "left" in joint else right for joint in hardware.joint_names]
    hardware.write(JointCommand("velocity", hardware.joint_names, np.array(speeds)))


class Bullet:
    """The compiled world again, in PyBullet."""

    def __init__(self, sim: Simulation) -> None:
        import pybullet

        self.p = pybullet
        self.client = pybullet.connect(pybullet.DIRECT)
        pybullet.setTimeStep(sim.timestep_ns * 1e-9)
        pybullet.setGravity(*sim.world.model.opt.gravity)
        self.model, self.data = sim.world.model, sim.world.data
        self.robot = -1
        for body in range(sim.world.model.nbody):
            if sim.world.model.body_weldid[body] == 0:
                for geom in self._geoms(body):
                    pose = {
                        "basePosition": self.data.geom_xpos[geom],
                        "baseOrientation": self._turn(self.data.geom_xmat[geom]),
                    }
                    pybullet.createMultiBody(0, self._shape([geom]), **pose)
        self._robot(sim)

    def _geoms(self, body: int) -> list[int]:
        return [g for g in np.flatnonzero(self.model.geom_bodyid == body) if self.model.geom_conaffinity[g]]

    def _turn(self, matrix: Any) -> list[float]:
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.asarray(matrix, float))
        return [*quat[1:], quat[0]]

    def _shape(self, geoms: list[int], frame: SE3 | None = None) -> int:
        """One (compound) shape; poses relative to ``frame`` when given, else each geom is its own frame."""
        p, kinds = self.p, mujoco.mjtGeom
        if len(geoms) == 1 and self.model.geom_type[geoms[0]] == int(kinds.mjGEOM_ELLIPSOID):
            import trimesh

            ball = trimesh.creation.icosphere(subdivisions=2).vertices * self.model.geom_size[geoms[0]]
            return int(p.createCollisionShape(p.GEOM_MESH, vertices=ball.tolist()))
        arrays: dict[str, list[Any]] = {
            "shapeTypes": [], "halfExtents": [], "radii": [], "lengths": [], "planeNormals": [],
            "collisionFramePositions": [], "collisionFrameOrientations": [],
        }  # fmt: skip
        types = {
            int(kinds.mjGEOM_BOX): p.GEOM_BOX,
            int(kinds.mjGEOM_SPHERE): p.GEOM_SPHERE,
            int(kinds.mjGEOM_CYLINDER): p.GEOM_CYLINDER,
            int(kinds.mjGEOM_CAPSULE): p.GEOM_CAPSULE,
            int(kinds.mjGEOM_PLANE): p.GEOM_PLANE,
        }
        for geom in geoms:
            size = self.model.geom_size[geom]
            arrays["shapeTypes"].append(types[int(self.model.geom_type[geom])])
            arrays["halfExtents"].append(size.tolist())
            arrays["radii"].append(float(size[0]))
            arrays["lengths"].append(2.0 * float(size[1]))
            arrays["planeNormals"].append([0, 0, 1])
            place = SE3()
            if frame is not None:
                place = frame.inverse() @ SE3.from_rotation_matrix(
                    self.data.geom_xmat[geom].reshape(3, 3), self.data.geom_xpos[geom]
                )
            arrays["collisionFramePositions"].append(place.translation.tolist())
            arrays["collisionFrameOrientations"].append([*place.rotation[1:].tolist(), float(place.rotation[0])])
        if len(geoms) == 1 and frame is None:
            return int(
                p.createCollisionShape(
                    arrays["shapeTypes"][0],
                    radius=arrays["radii"][0] or 0.5,
                    halfExtents=arrays["halfExtents"][0],
                    height=arrays["lengths"][0] or 1.0,
                )
            )
        return int(p.createCollisionShapeArray(**arrays))

    def _robot(self, sim: Simulation) -> None:
        """The rover: everything that does not turn is the base, each wheel a link."""
        model, data, p = sim.world.model, sim.world.data, self.p
        placement = sim.world.addresses("rover")
        wheels = [int(model.jnt_bodyid[place.joint]) for place in placement.joints]
        rest = [body for body in placement.bodies if body not in wheels]
        heavy = max(rest, key=lambda body: model.body_mass[body])
        base = SE3.from_rotation_matrix(data.ximat[heavy].reshape(3, 3), data.xipos[heavy])
        links: dict[str, list[Any]] = {name: [] for name in ("m", "shape", "at", "turn", "axis")}
        for place, body in zip(placement.joints, wheels, strict=True):
            frame = SE3.from_rotation_matrix(data.xmat[body].reshape(3, 3), data.xpos[body])
            there = base.inverse() @ frame
            links["m"].append(float(model.body_mass[body]))
            links["shape"].append(self._shape(self._geoms(body), frame))
            links["at"].append(there.translation.tolist())
            links["turn"].append([*there.rotation[1:].tolist(), float(there.rotation[0])])
            links["axis"].append(model.jnt_axis[place.joint].tolist())
        n = len(wheels)
        still = [0.0, 0.0, 0.0, 1.0]
        self.robot = p.createMultiBody(
            float(sum(model.body_mass[body] for body in rest)),
            self._shape([geom for body in rest for geom in self._geoms(body)], base),
            -1,
            base.translation.tolist(),
            [*base.rotation[1:].tolist(), float(base.rotation[0])],
            linkMasses=links["m"],
            linkCollisionShapeIndices=links["shape"],
            linkVisualShapeIndices=[-1] * n,
            linkPositions=links["at"],
            linkOrientations=links["turn"],
            linkInertialFramePositions=[[0, 0, 0]] * n,
            linkInertialFrameOrientations=[still] * n,
            linkParentIndices=[0] * n,
            linkJointTypes=[p.JOINT_REVOLUTE] * n,
            linkJointAxis=links["axis"],
        )
        self.left = [i for i, place in enumerate(placement.joints) if "left" in place.name]
        self.effort = placement.joints[0].axis.limits.effort

    def command(self, left: float, right: float) -> None:
        p = self.p
        force = self.effort if math.isfinite(self.effort) else 10.0
        for joint in range(p.getNumJoints(self.robot)):
            speed = left if joint in self.left else right
            p.setJointMotorControl2(self.robot, joint, p.VELOCITY_CONTROL, targetVelocity=speed, force=force)

    def step(self, n: int) -> None:
        for _ in range(n):
            self.p.stepSimulation()

    def close(self) -> None:
        self.p.disconnect(self.client)


def steps(nightly: bool) -> list[dict[str, Any]]:
    """A physics step of the rover in the arena, straight and turning on the spot."""
    figures = []
    repeat, batch = (60, 100) if nightly else (25, 60)
    for label, left, right in (("driving", 0.3, 0.3), ("turning", -WHEEL_SPEED, WHEEL_SPEED)):
        sim, _ = simulated("arena")
        command(sim, left, right)
        sim.step(300)
        ours = best(lambda sim=sim: sim.step(batch), repeat, batch)
        name = f"physics step, rover in the arena, {label}"
        try:
            bullet = Bullet(simulated("arena")[0])
        except ImportError as error:
            figures.append(figure(name, ours, error, "stepSimulation", 3.0))
            continue
        bullet.command(left, right)
        bullet.step(300)
        theirs = best(lambda bullet=bullet: bullet.step(batch), repeat, batch)
        bullet.close()
        figures.append(figure(name, ours, theirs, "stepSimulation", 3.0))
    return figures


def beams(nightly: bool) -> list[dict[str, Any]]:
    """720 beams in the corridor."""
    sim, lidar = simulated("corridor")
    repeat = 400 if nightly else 150
    ours = best(lidar.cast, repeat)
    try:
        theirs: float | ImportError = _bullet_beams(sim, lidar, repeat // 5)
    except ImportError as error:
        theirs = error
    made = figure("720 lidar beams in the corridor", ours, theirs, "rayTestBatch, one thread", 6.0)
    made["limit"] = 300.0
    return [made]


def _bullet_beams(sim: Simulation, lidar: Lidar, repeat: int) -> float:
    bullet = Bullet(sim)
    origin = sim.world.data.site_xpos[lidar.site].copy()
    directions = lidar.beams.directions @ sim.world.data.site_xmat[lidar.site].reshape(3, 3).T
    start = [origin.tolist()] * len(directions)
    # Bullet has no "leave out this robot" for a ray: begin outside of the housing, as is usual.
    start = (origin + 0.15 * directions).tolist()
    end = (origin + lidar.spec.range_max * directions).tolist()
    bullet.p.removeBody(bullet.robot)
    least = best(lambda: bullet.p.rayTestBatch(start, end, numThreads=1), repeat)
    bullet.close()
    return least


def figure(name: str, ours: float, theirs: float | ImportError, peer: str, target: float) -> dict[str, Any]:
    """Our time beside the peer's, or beside the reason why there is none."""
    made = {"name": name, "value": round(ours, 2), "unit": "µs", "peer": f"PyBullet {peer}", "target": target}
    if isinstance(theirs, ImportError):
        return {**made, "missing": str(theirs)}
    return {**made, "peer_value": round(theirs, 2), "ratio": round(theirs / ours, 2)}


def drive(record: bool) -> float:
    """Real-time factor of one headless rover-drive, kernels compiled, with or without its recording."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        outcome = run_scenario(
            load_scenario("rover-drive"), RunOptions(out=out, write_files=record, write_report=False, serve=False)
        )
    return float(outcome.metrics["real_time_factor"])


def whole_runs(nightly: bool) -> list[dict[str, Any]]:
    """rover-drive as a user runs it, and what recording takes of it: pairs in turn, medians."""
    drive(record=True)
    pairs = [(drive(record=True), drive(record=False)) for _ in range(15 if nightly else 5)]
    with_recording, without = (median(column) for column in zip(*pairs, strict=True))
    share = median(1.0 - kept / bare for kept, bare in pairs)
    return [
        {
            "name": "rover-drive with recording",
            "value": round(with_recording, 1),
            "unit": "× real time",
            "peer": "without recording",
            "peer_value": round(without, 1),
            "ratio": round(with_recording / without, 3),
            "target": ">= 30",
        },
        {"name": "recording's share of the run", "value": round(100.0 * share, 1), "unit": "%", "target": "<= 20"},
    ]


PARTS = (whole_runs, steps, beams)
"""Measured one after the other; each without what it misses."""


def run(nightly: bool = False) -> dict[str, Any]:
    """All figures; ``ratio`` is the peer's time over ours, ``target`` the least asked for."""
    return {"figures": [entry for part in PARTS for entry in part(nightly)]}


if __name__ == "__main__":
    for item in run()["figures"]:
        print(item)
