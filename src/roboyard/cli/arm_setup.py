"""What ``roboyard arm setup`` finds out about a robot: its groups, which links may touch, safe poses, gains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from roboyard.description import World
from roboyard.description.model import Placed
from roboyard.geometry import SE3
from roboyard.manipulation import Groups, guess_groups
from roboyard.manipulation.collision.sampling import found_pairs
from roboyard.manipulation.scene import PlanningScene
from roboyard.simulation import Simulation
from roboyard.simulation.naming import SEPARATOR
from roboyard.simulation.servos import GIVE, POSITION_BANDWIDTH

if TYPE_CHECKING:
    from pathlib import Path

    from roboyard.description import Model

_CANDIDATES = 400
_FAR = 0.15
"""Links that are farther apart than this make a pose no safer [m]."""
_START = 0.5
"""Within what time a joint shall reach its full speed, where nobody states accelerations [s]."""


@dataclass(frozen=True)
class Setup:
    """What was found.

    Attributes:
        groups: With pairs, poses and accelerations.
        clearance: Of each group's safe pose: the least distance between links that must not touch [m].
        gains: For the joints' servos, as a robot's YAML takes them.
    """

    groups: Groups
    clearance: dict[str, float]
    gains: dict[str, dict[str, float]]


def set_up(model: Model, rng: np.random.Generator, states: int) -> Setup:
    """Look at a model.

    Args:
        model: The robot.
        rng: Draws states.
        states: How many of each group are looked at for links that touch always or never.
    """
    guessed = guess_groups(model)
    known = replace(guessed, allowed=found_pairs(guessed, rng, states))
    named, clearance = dict(known.groups), {}
    speeds: dict[str, float] = {}
    for name, group in known.groups.items():
        scene = PlanningScene.of(known, name)
        poses = {pose: values for pose, values in group.poses.items() if scene.free(np.array(values))}
        q, clearance[name] = _safe(scene, rng)
        if clearance[name] > 0.0:
            poses["safe"] = tuple(float(round(value, 4)) for value in q)
        named[name] = replace(group, poses=poses)
        speeds |= dict(zip(scene.chain.joints, scene.chain.velocity.tolist(), strict=True))
    rates = {joint: round(speed / _START, 6) for joint, speed in speeds.items() if 0.0 < speed < 1e3}
    return Setup(replace(known, groups=named, acceleration=rates), clearance, _gains(model, speeds))


def _safe(scene: PlanningScene, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Positions away from the limits at which links are farthest apart, and how far [m]."""
    chain = scene.chain
    low = np.where(np.isfinite(chain.lower), chain.lower, -np.pi)
    high = np.where(np.isfinite(chain.upper), chain.upper, np.pi)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    away = rng.uniform(-0.7, 0.7, (_CANDIDATES, chain.dof))
    away[0] = 0.0
    candidates = np.round(middle + away * half, 4)
    distances = np.array([scene.distance(q, _FAR) for q in candidates])
    score = np.minimum(distances, _FAR) / _FAR - 0.5 * np.abs(away).max(axis=1)
    best = int(np.argmax(np.where(distances > 0.0, score, -np.inf)))
    return candidates[best], float(distances[best])


def _gains(model: Model, joints: dict[str, float]) -> dict[str, dict[str, float]]:
    """Critically damped position loops on the joints' own inertia, no stiffer than their efforts allow."""
    limits = {joint.name: joint.axes[0].limits.effort for joint in model.joints if joint.axes}
    found = {}
    simulation = Simulation(World("arm", (Placed("arm", model, SE3.identity()),)))
    try:
        compiled = simulation.scene().model
        for k in range(compiled.njnt):
            name = compiled.joint(k).name.split(SEPARATOR)[-1]
            if name in joints:
                inertia = float(compiled.dof_M0[int(compiled.jnt_dofadr[k])])
                p = min(inertia * POSITION_BANDWIDTH**2, limits[name] / GIVE)
                d = 2.0 * float(np.sqrt(p * inertia))
                found[name] = {"pos_kp": round(p, 3), "pos_ki": 0.0, "pos_kd": round(d, 3)}
    finally:
        simulation.close()
    return found


def draw_pose(file: Path, model: Model, positions: dict[str, float]) -> None:
    """A picture of the robot with some joints at positions. Raises InputError, DescriptionError."""
    import mujoco

    from roboyard.simulation.render.portrait import save_portrait

    simulation = Simulation(World("arm", (Placed("arm", model, SE3.identity()),)))
    try:
        for k in range(simulation.model.njnt):
            name = simulation.model.joint(k).name.split(SEPARATOR)[-1]
            if name in positions:
                simulation.data.qpos[int(simulation.model.jnt_qposadr[k])] = positions[name]
        mujoco.mj_forward(simulation.model, simulation.data)
        save_portrait(simulation, file)
    finally:
        simulation.close()
