"""What ``roboyard arm setup`` finds out about a robot: its groups, which links may touch, safe poses, gains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from roboyard.description import World
from roboyard.description.model import PlacedModel
from roboyard.geometry import SE3
from roboyard.manipulation import Groups, guess_groups
from roboyard.manipulation.collision.sampling import found_pairs
from roboyard.manipulation.scene import PlanningScene
from roboyard.simulation import Simulation
from roboyard.simulation.naming import SEPARATOR
from roboyard.simulation.servos import GIVE, POSITION_RESET, VELOCITY_RESET

if TYPE_CHECKING:
    from pathlib import Path

    from roboyard.description import Model

_CANDIDATES = 400
_FAR = 0.15
"""Links that are farther apart than this make a pose no safer [m]."""
_START = 0.5
"""Within what time a joint shall reach its full speed, where nobody states accelerations [s]."""
_STATES = 200
"""At which the inertia that a joint feels is looked at."""
_BANDWIDTH = 150.0
"""Of position loops [rad/s]: in a physics step of 2 ms it turns by 0.3 rad."""
_CYCLE = 0.01
"""In which set-points come [s]."""
_DELAY = 0.005
"""Time constant of velocity loops [s]."""


@dataclass(frozen=True)
class Setup:
    """What was found.

    Attributes:
        groups: With pairs, poses, accelerations and gains.
        clearance: Of each group's safe pose: the least distance between links that must not touch [m].
    """

    groups: Groups
    clearance: dict[str, float]


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
    gains: dict[str, dict[str, float]] = {}
    for name, group in known.groups.items():
        scene = PlanningScene.of(known, name)
        poses = {pose: values for pose, values in group.poses.items() if scene.free(np.array(values))}
        q, clearance[name] = _safe(scene, rng)
        if clearance[name] > 0.0:
            poses["safe"] = tuple(float(round(value, 4)) for value in q)
        named[name] = replace(group, poses=poses, start="safe" if "safe" in poses else None)
        speeds |= dict(zip(scene.chain.joints, scene.chain.max_velocity.tolist(), strict=True))
        gains |= _gains(scene, rng)
    rates = {joint: round(speed / _START, 6) for joint, speed in speeds.items() if 0.0 < speed < 1e3}
    return Setup(replace(known, groups=named, acceleration=rates, gains=gains), clearance)


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


def _gains(scene: PlanningScene, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Gains of a group's joints: position loops critically damped on the greatest inertia that the joint feels.

    They are as quick as `_BANDWIDTH`, but no stiffer than that all effort is used at an error of `GIVE`, and follow
    set-points that come each `_CYCLE` with feed-forward; velocity loops have the time constant `_DELAY`.
    """
    chain, found = scene.chain, {}
    inertia = np.max([np.diag(scene.dynamics.mass_matrix(q)) for q in chain.sample_positions(rng, _STATES)], axis=0)
    for name, own, effort in zip(chain.joints, inertia.tolist(), chain.max_effort.tolist(), strict=True):
        p = min(own * _BANDWIDTH**2, effort / GIVE if effort > 0.0 else np.inf)
        d, v = 2.0 * float(np.sqrt(p * own)), own / _DELAY
        values = {"pos_kp": p, "pos_ki": p / POSITION_RESET, "pos_kd": d, "pos_cycle": _CYCLE,
                  "vel_kp": v, "vel_ki": v / VELOCITY_RESET}  # fmt: skip
        found[name] = {key: float(f"{value:.4g}") for key, value in values.items()}
    return found


def draw_pose(file: Path, model: Model, positions: dict[str, float]) -> None:
    """A picture of the robot with some joints at positions. Raises InputError, DescriptionError."""
    import mujoco

    from roboyard.simulation.render.portrait import save_portrait

    simulation = Simulation(World("arm", (PlacedModel("arm", model, SE3.identity()),)))
    try:
        for k in range(simulation.model.njnt):
            name = simulation.model.joint(k).name.split(SEPARATOR)[-1]
            if name in positions:
                simulation.data.qpos[int(simulation.model.jnt_qposadr[k])] = positions[name]
        mujoco.mj_forward(simulation.model, simulation.data)
        save_portrait(simulation, file)
    finally:
        simulation.close()
