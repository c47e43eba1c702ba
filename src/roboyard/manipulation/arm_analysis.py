"""Analysis of an arm: joint groups, pairs of links that may touch, safe poses, accelerations, servo gains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from roboyard.description import World
from roboyard.description.model import PlacedModel
from roboyard.geometry import SE3
from roboyard.manipulation.collision.allowed_collisions import sample_allowed_pairs
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.semantics.planning_groups import SemanticDescription, guess_groups
from roboyard.physics.compiled_world import SCOPE_SEPARATOR
from roboyard.physics.servos import MAX_POSITION_ERROR, POSITION_INTEGRAL_TIME, VELOCITY_INTEGRAL_TIME
from roboyard.simulation import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from roboyard.description import Model

_N_CANDIDATES = 400
_MAX_DISTANCE = 0.15
"""Clearance above which a pose counts as equally safe [m]."""
_ACCELERATION_TIME = 0.5
"""Time in which a joint reaches its maximum speed, which gives its acceleration limit [s]."""
_N_INERTIA_SAMPLES = 200
"""Number of positions at which the inertia of each joint is computed."""
_BANDWIDTH = 150.0
"""Bandwidth of position loops [rad/s]: 0.3 rad per physics step of 2 ms."""
_COMMAND_PERIOD = 0.01
"""Period of set-points [s]."""
_VELOCITY_TIME_CONSTANT = 0.005
"""Time constant of velocity loops [s]."""


@dataclass(frozen=True)
class ArmAnalysis:
    """Result of the analysis of an arm.

    Attributes:
        semantics: Joint groups with pairs, poses, accelerations and gains.
        clearance: Smallest distance between links that must not touch, in the safe pose of each group [m].
    """

    semantics: SemanticDescription
    clearance: dict[str, float]


def analyze_arm(model: Model, rng: np.random.Generator, n_samples: int) -> ArmAnalysis:
    """Analyze a robot with arms.

    Args:
        model: The robot.
        rng: Generator of random positions.
        n_samples: Number of random positions of each group that are checked for links that always or never touch.
    """
    guessed = guess_groups(model)
    groups_with_pairs = replace(guessed, allowed_collisions=sample_allowed_pairs(guessed, rng, n_samples))
    analyzed_groups, clearance = dict(groups_with_pairs.groups), {}
    max_velocities: dict[str, float] = {}
    gains: dict[str, dict[str, float]] = {}
    for name, group in groups_with_pairs.groups.items():
        scene = PlanningScene.create(groups_with_pairs, name)
        poses = {pose: values for pose, values in group.poses.items() if scene.is_free(np.array(values))}
        q, clearance[name] = _find_safe_pose(scene, rng)
        if clearance[name] > 0.0:
            poses["safe"] = tuple(float(round(value, 4)) for value in q)
        analyzed_groups[name] = replace(group, poses=poses, default_pose="safe" if "safe" in poses else None)
        max_velocities |= dict(zip(scene.chain.joints, scene.chain.max_velocity.tolist(), strict=True))
        gains |= _compute_gains(scene, rng)
    accelerations = {
        joint: round(speed / _ACCELERATION_TIME, 6) for joint, speed in max_velocities.items() if 0.0 < speed < 1e3
    }
    return ArmAnalysis(
        replace(groups_with_pairs, groups=analyzed_groups, max_acceleration=accelerations, gains=gains), clearance
    )


def _find_safe_pose(scene: PlanningScene, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return positions away from the limits with the largest clearance of links, and this clearance [m]."""
    chain = scene.chain
    low = np.where(np.isfinite(chain.lower), chain.lower, -np.pi)
    high = np.where(np.isfinite(chain.upper), chain.upper, np.pi)
    center, half_range = 0.5 * (low + high), 0.5 * (high - low)
    offsets = rng.uniform(-0.7, 0.7, (_N_CANDIDATES, chain.dof))
    offsets[0] = 0.0
    candidates = np.round(center + offsets * half_range, 4)
    distances = np.array([scene.distance(q, _MAX_DISTANCE) for q in candidates])
    score = np.minimum(distances, _MAX_DISTANCE) / _MAX_DISTANCE - 0.5 * np.abs(offsets).max(axis=1)
    best = int(np.argmax(np.where(distances > 0.0, score, -np.inf)))
    return candidates[best], float(distances[best])


def _compute_gains(scene: PlanningScene, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Compute servo gains of a group's joints.

    Position loops are critically damped at the largest inertia of the joint. Their bandwidth is `_BANDWIDTH`, unless
    an error of `MAX_POSITION_ERROR` needs more than the maximum effort. They follow set-points with the period
    `_COMMAND_PERIOD`
    by feed-forward. Velocity loops have the time constant `_VELOCITY_TIME_CONSTANT`.
    """
    chain, found = scene.chain, {}
    inertia = np.max(
        [np.diag(scene.dynamics.mass_matrix(q)) for q in chain.sample_positions(rng, _N_INERTIA_SAMPLES)], axis=0
    )
    for name, joint_inertia, effort in zip(chain.joints, inertia.tolist(), chain.max_effort.tolist(), strict=True):
        p = min(joint_inertia * _BANDWIDTH**2, effort / MAX_POSITION_ERROR if effort > 0.0 else np.inf)
        d, v = 2.0 * float(np.sqrt(p * joint_inertia)), joint_inertia / _VELOCITY_TIME_CONSTANT
        values = {"pos_kp": p, "pos_ki": p / POSITION_INTEGRAL_TIME, "pos_kd": d, "pos_cycle": _COMMAND_PERIOD,
                  "vel_kp": v, "vel_ki": v / VELOCITY_INTEGRAL_TIME}  # fmt: skip
        found[name] = {key: float(f"{value:.4g}") for key, value in values.items()}
    return found


def draw_pose(file: Path, model: Model, positions: dict[str, float]) -> None:
    """Draw the robot with some joints at positions.

    Args:
        file: Image file to write.
        model: The robot.
        positions: Positions by joint [rad, m]; other joints are at 0.

    Raises:
        InputError: The file cannot be written.
        DescriptionError: The simulation rejects the model.
    """
    import mujoco

    from roboyard.simulation.overview_image import save_overview_image

    simulation = Simulation(World("arm", (PlacedModel("arm", model, SE3.identity()),)))
    try:
        for k in range(simulation.world.model.njnt):
            name = simulation.world.model.joint(k).name.split(SCOPE_SEPARATOR)[-1]
            if name in positions:
                simulation.world.data.qpos[int(simulation.world.model.jnt_qposadr[k])] = positions[name]
        mujoco.mj_forward(simulation.world.model, simulation.world.data)
        save_overview_image(simulation, file)
    finally:
        simulation.close()
