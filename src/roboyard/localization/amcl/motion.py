"""How particles move when the odometry says that the base moved: samples and densities of two models."""

from __future__ import annotations

import math

import numpy as np

from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.localization.amcl.config import MOTION_MODELS, AmclConfig

_STILL = 0.01
"""A shorter way has no direction [m]; then all turning counts as the second turn."""


def turns_and_way(step: SE2) -> tuple[float, float, float]:
    """First turn [rad], way [m] and second turn [rad] of a step in the base's frame."""
    way = math.hypot(step.x, step.y)
    first = 0.0 if way < _STILL else math.atan2(step.y, step.x)
    return first, way, wrap_angle(step.theta - first)


def deviations(step: SE2, config: AmclConfig) -> tuple[float, float, float]:
    """Standard deviations of what a model's three noises are added to.

    Differential: first turn [rad], way [m], second turn [rad] (S. Thrun, W. Burgard, D. Fox, Probabilistic Robotics,
    table 5.6); a turn that is nearly a half one counts as driving backwards.  Omni: along the way [m], across it [m],
    turn [rad], as in ROS's amcl.  Models that are not "corrected" take the variance for the deviation, as ROS's first
    amcl did.
    """
    kind, corrected = MOTION_MODELS[config.robot_model_type]
    a1, a2, a3, a4, a5 = config.alpha1, config.alpha2, config.alpha3, config.alpha4, config.alpha5
    first, way, second = turns_and_way(step)
    if kind == "differential":
        one, two = (min(abs(turn), abs(wrap_angle(turn - math.pi))) ** 2 for turn in (first, second))
        squares = (a1 * one + a2 * way**2, a3 * way**2 + a4 * (one + two), a1 * two + a2 * way**2)
    else:
        turn = step.theta**2
        squares = (a3 * way**2 + a1 * turn, a1 * turn + a5 * way**2, a4 * turn + a2 * way**2)
    return tuple(map(math.sqrt, squares)) if corrected else squares  # type: ignore[return-value]


def moved(particles: Array, step: SE2, config: AmclConfig, rng: np.random.Generator) -> Array:
    """Particles (n, 3) after the base moved by ``step`` in its own frame, each with noise of its own."""
    kind, _ = MOTION_MODELS[config.robot_model_type]
    noise = rng.standard_normal((len(particles), 3)) * deviations(step, config)
    after = particles.copy()
    if kind == "differential":
        first, way, second = turns_and_way(step)
        heading = particles[:, 2] + first + noise[:, 0]
        length = way + noise[:, 1]
        after[:, 0] += length * np.cos(heading)
        after[:, 1] += length * np.sin(heading)
        after[:, 2] = heading + second + noise[:, 2]
    else:
        way = math.hypot(step.x, step.y)
        heading = particles[:, 2] + math.atan2(step.y, step.x)
        along, across = way + noise[:, 0], noise[:, 1]
        after[:, 0] += along * np.cos(heading) - across * np.sin(heading)
        after[:, 1] += along * np.sin(heading) + across * np.cos(heading)
        after[:, 2] += step.theta + noise[:, 2]
    after[:, 2] = wrap_angle(after[:, 2])
    return after


def density(steps: Array, step: SE2, config: AmclConfig) -> Array:
    """Density (n,) of true steps (n, 3), in the base's frame, when the odometry says ``step``.

    In the model's own three coordinates turned into x, y, theta: the differential model's has the way as determinant.
    """
    kind, _ = MOTION_MODELS[config.robot_model_type]
    spread = np.maximum(deviations(step, config), 1e-12)
    if kind == "differential":
        first, way, second = turns_and_way(step)
        found, total = np.zeros(len(steps)), np.hypot(steps[:, 0], steps[:, 1])
        for sign in (1.0, -1.0):  # the way may come out negative: then the first turn was the other way round
            turn = np.arctan2(sign * steps[:, 1], sign * steps[:, 0])
            errors = np.column_stack(
                [wrap_angle(turn - first), sign * total - way, wrap_angle(steps[:, 2] - turn - second)]
            )
            found += _normal(errors, spread)
        return np.asarray(found / np.maximum(total, 1e-12))
    direction, way = math.atan2(step.y, step.x), math.hypot(step.x, step.y)
    c, s = math.cos(direction), math.sin(direction)
    along, across = c * steps[:, 0] + s * steps[:, 1], c * steps[:, 1] - s * steps[:, 0]
    return _normal(np.column_stack([along - way, across, wrap_angle(steps[:, 2] - step.theta)]), spread)


def _normal(errors: Array, spread: Array) -> Array:
    return np.asarray(np.exp(-0.5 * ((errors / spread) ** 2).sum(axis=1)) / np.prod(spread * math.sqrt(math.tau)))
