"""Motion models of Monte Carlo localization: how odometry moves particles, and with which noise.

`OdometryMotionModel` is the contract (``nav2_amcl::MotionModel``).  The models are those of ROS's amcl.  Each has
also the first, "uncorrected" form, which takes the variance of a noise for its standard deviation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from roboyard.errors import ConfigError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.localization.amcl.config import MOTION_MODELS, AmclConfig

_MIN_TRANSLATION = 0.01
"""A shorter translation has no direction [m]; the whole rotation then counts as the second one."""


class OdometryMotionModel(ABC):
    """Moves particles by a step of odometry, each with its own noise: the contract of motion models.

    A class of your own derives from it, implements ``sample``, and is registered under a name with an entry point of
    the group ``roboyard.amcl_motion_models``; ``robot_model_type`` then accepts the name.  ``check_motion_model`` in
    ``roboyard.localization.conformance`` tests the contract:

    - Without noise (all alphas 0) every particle moves exactly by the step, in its own axes.
    - The particles are not changed in place; headings of the result are in (-pi, pi].
    - The same generator state gives the same bits.
    - The noise does not depend on where the particles are: the model is the same in any map frame.

    Args:
        config: Configuration with the noise coefficients alpha1 to alpha5.
    """

    def __init__(self, config: AmclConfig) -> None:
        self.config = config

    @abstractmethod
    def sample(self, particles: Array, step: SE2, rng: np.random.Generator) -> Array:
        """Return particles (n, 3) after the base has moved by ``step`` in its own frame, each with its own noise."""


def make_motion_model(config: AmclConfig) -> OdometryMotionModel:
    """Return the motion model that ``robot_model_type`` names.

    Raises:
        ConfigError: The registered object is no motion model.
    """
    model = MOTION_MODELS[config.motion_model_name](config)
    if not isinstance(model, OdometryMotionModel):
        raise ConfigError(
            f"robot_model_type '{config.robot_model_type}' is no motion model",
            location="amcl",
            valid="a class that derives from OdometryMotionModel",
        )
    return model


def decompose_odometry(step: SE2) -> tuple[float, float, float]:
    """Return first rotation [rad], translation [m] and second rotation [rad] of a step in the base's frame."""
    translation = math.hypot(step.x, step.y)
    first_rotation = 0.0 if translation < _MIN_TRANSLATION else math.atan2(step.y, step.x)
    return first_rotation, translation, wrap_angle(step.theta - first_rotation)


class DifferentialMotionModel(OdometryMotionModel):
    """Motion model of differential drives: rotation, translation, rotation (Probabilistic Robotics, table 5.6).

    A first rotation near 180° counts as driving backward.  Probabilistic Robotics is S. Thrun, W. Burgard, D. Fox, MIT
    Press, 2005.
    """

    def noise_std(self, step: SE2) -> tuple[float, float, float]:
        """Return the standard deviations of first rotation [rad], translation [m] and second rotation [rad]."""
        return tuple(map(math.sqrt, self._variances(step)))  # type: ignore[return-value]

    def sample(self, particles: Array, step: SE2, rng: np.random.Generator) -> Array:
        """Return particles (n, 3) after the base has moved by ``step`` in its own frame, each with its own noise."""
        noise = rng.standard_normal((len(particles), 3)) * self.noise_std(step)
        samples = particles.copy()
        first_rotation, translation, second_rotation = decompose_odometry(step)
        heading = particles[:, 2] + first_rotation + noise[:, 0]
        distance = translation + noise[:, 1]
        samples[:, 0] += distance * np.cos(heading)
        samples[:, 1] += distance * np.sin(heading)
        samples[:, 2] = wrap_angle(heading + second_rotation + noise[:, 2])
        return samples

    def density(self, steps: Array, step: SE2) -> Array:
        """Return the density (n,) of true steps (n, 3), in the base's frame, if the odometry measured ``step``.

        The density is transformed from the model's three coordinates to x, y, theta; the determinant is the
        translation.
        """
        std = np.maximum(self.noise_std(step), 1e-12)
        first_rotation, translation, second_rotation = decompose_odometry(step)
        densities, distances = np.zeros(len(steps)), np.hypot(steps[:, 0], steps[:, 1])
        for sign in (1.0, -1.0):  # the translation may be negative: the first rotation is then the opposite one
            rotations = np.arctan2(sign * steps[:, 1], sign * steps[:, 0])
            errors = np.column_stack(
                [
                    wrap_angle(rotations - first_rotation),
                    sign * distances - translation,
                    wrap_angle(steps[:, 2] - rotations - second_rotation),
                ]
            )
            densities += _normal_density(errors, std)
        return np.asarray(densities / np.maximum(distances, 1e-12))

    def _variances(self, step: SE2) -> tuple[float, float, float]:
        c = self.config
        first_rotation, translation, second_rotation = decompose_odometry(step)
        first_squared, second_squared = (
            min(abs(rotation), abs(wrap_angle(rotation - math.pi))) ** 2
            for rotation in (first_rotation, second_rotation)
        )
        return (
            c.alpha1 * first_squared + c.alpha2 * translation**2,
            c.alpha3 * translation**2 + c.alpha4 * (first_squared + second_squared),
            c.alpha1 * second_squared + c.alpha2 * translation**2,
        )


class UncorrectedDifferentialMotionModel(DifferentialMotionModel):
    """Motion model "diff" of ROS 1's first amcl: takes the variance of each noise for its standard deviation."""

    def noise_std(self, step: SE2) -> tuple[float, float, float]:
        """Return the standard deviations of first rotation [rad], translation [m] and second rotation [rad]."""
        return self._variances(step)


class OmniMotionModel(OdometryMotionModel):
    """Motion model of omnidirectional drives, as in ROS's amcl: noise along the step, across it and of the rotation."""

    def noise_std(self, step: SE2) -> tuple[float, float, float]:
        """Return the standard deviations along the translation [m], across it [m], and of the rotation [rad]."""
        return tuple(map(math.sqrt, self._variances(step)))  # type: ignore[return-value]

    def sample(self, particles: Array, step: SE2, rng: np.random.Generator) -> Array:
        """Return particles (n, 3) after the base has moved by ``step`` in its own frame, each with its own noise."""
        noise = rng.standard_normal((len(particles), 3)) * self.noise_std(step)
        samples = particles.copy()
        translation = math.hypot(step.x, step.y)
        heading = particles[:, 2] + math.atan2(step.y, step.x)
        along, across = translation + noise[:, 0], noise[:, 1]
        samples[:, 0] += along * np.cos(heading) - across * np.sin(heading)
        samples[:, 1] += along * np.sin(heading) + across * np.cos(heading)
        samples[:, 2] += step.theta + noise[:, 2]
        samples[:, 2] = wrap_angle(samples[:, 2])
        return samples

    def density(self, steps: Array, step: SE2) -> Array:
        """Return the density (n,) of true steps (n, 3), in the base's frame, if the odometry measured ``step``."""
        std = np.maximum(self.noise_std(step), 1e-12)
        direction, translation = math.atan2(step.y, step.x), math.hypot(step.x, step.y)
        c, s = math.cos(direction), math.sin(direction)
        along, across = c * steps[:, 0] + s * steps[:, 1], c * steps[:, 1] - s * steps[:, 0]
        return _normal_density(
            np.column_stack([along - translation, across, wrap_angle(steps[:, 2] - step.theta)]), std
        )

    def _variances(self, step: SE2) -> tuple[float, float, float]:
        c = self.config
        translation, rotation = math.hypot(step.x, step.y), step.theta**2
        return (
            c.alpha3 * translation**2 + c.alpha1 * rotation,
            c.alpha1 * rotation + c.alpha5 * translation**2,
            c.alpha4 * rotation + c.alpha2 * translation**2,
        )


class UncorrectedOmniMotionModel(OmniMotionModel):
    """Motion model "omni" of ROS 1's first amcl: takes the variance of each noise for its standard deviation."""

    def noise_std(self, step: SE2) -> tuple[float, float, float]:
        """Return the standard deviations along the translation [m], across it [m], and of the rotation [rad]."""
        return self._variances(step)


def _normal_density(errors: Array, std: Array) -> Array:
    return np.asarray(np.exp(-0.5 * ((errors / std) ** 2).sum(axis=1)) / np.prod(std * math.sqrt(math.tau)))
