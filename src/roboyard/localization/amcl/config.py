"""Configuration of Monte Carlo localization, under the names of Nav2's amcl."""

from __future__ import annotations

from typing import Annotated, Any

from roboyard.config import Config, RegisteredName, parameter
from roboyard.config.registry import Registry
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError

MOTION_MODELS: Registry[Any] = Registry("motion model", group="roboyard.amcl_motion_models")
"""Classes that derive from ``OdometryMotionModel`` in ``roboyard.localization.amcl.motion_models``, by name."""
MOTION_MODEL_ALIASES = {
    "diff-corrected": "differential",
    "nav2_amcl::DifferentialMotionModel": "differential",
    "omni-corrected": "omnidirectional",
    "nav2_amcl::OmniMotionModel": "omnidirectional",
}
"""Names of ROS 1 and Nav2 for registered motion models."""
LASER_MODELS: Registry[Any] = Registry("laser model", group="roboyard.amcl_laser_models")
"""Classes that derive from ``LaserModel`` in ``roboyard.localization.amcl.laser_model``, by name."""


class AmclConfig(Config):
    """Configuration of the particle filter; parameters of Nav2's amcl have its names and meanings.

    Raises:
        ConfigError: a value is out of range, or values contradict each other.
    """

    alpha1: float = parameter(
        0.05, low=0.0, high=100.0, aliases=("odom_alpha1",), doc="Noise of the rotation per rotation."
    )
    alpha2: float = parameter(
        0.05, low=0.0, high=100.0, aliases=("odom_alpha2",), doc="Noise of the rotation per translation."
    )
    alpha3: float = parameter(
        0.05, low=0.0, high=100.0, aliases=("odom_alpha3",), doc="Noise of the translation per translation."
    )
    alpha4: float = parameter(
        0.05, low=0.0, high=100.0, aliases=("odom_alpha4",), doc="Noise of the translation per rotation."
    )
    alpha5: float = parameter(
        0.05, low=0.0, high=100.0, aliases=("odom_alpha5",), doc="Noise of the sideways motion per translation (omni)."
    )
    robot_model_type: str = parameter(
        "",
        aliases=("odom_model_type",),
        doc="Motion model: differential or omnidirectional, with the names of Nav2 and ROS 1, or a registered one; "
        "empty: that of the robot's drive, differential where it is unknown.",
    )
    min_particles: int = parameter(500, low=1, high=10_000_000, doc="Smallest number of particles.")
    max_particles: int = parameter(2000, low=1, high=10_000_000, doc="Largest number of particles.")
    pf_err: float = parameter(
        0.05,
        low=1e-6,
        high=1e6,
        aliases=("kld_err",),
        doc="KLD sampling: largest error between the true and the estimated distribution.",
    )
    pf_z: float = parameter(
        0.99,
        low=0.0,
        high=6.0,
        aliases=("kld_z",),
        doc="KLD sampling: upper standard normal quantile of the probability that the error stays below `pf_err`.",
    )
    update_min_d: float = parameter(0.1, unit="m", low=0.0, high=1e6, doc="Distance driven before the next update.")
    update_min_a: float = parameter(0.1, unit="rad", low=0.0, high=1e6, doc="Rotation before the next update.")
    resample_interval: int = parameter(1, low=1, high=1000, doc="Updates between two resamplings.")
    selective_resampling: bool = parameter(
        True, doc="Resample only when the effective number of particles is below half."
    )
    laser_model_type: Annotated[str, RegisteredName(LASER_MODELS)] = parameter(
        "likelihood_field_prob", doc="Sensor model: likelihood_field, likelihood_field_prob, beam, or a registered one."
    )
    max_beams: int = parameter(60, low=1, high=100_000, aliases=("laser_max_beams",), doc="Beams used of each scan.")
    laser_min_range: float = parameter(
        -1.0, unit="m", doc="Shorter ranges are ignored; negative: the limit stated by the scan."
    )
    laser_max_range: float = parameter(
        100.0, unit="m", doc="Longer ranges are ignored; negative: the limit stated by the scan."
    )
    laser_likelihood_max_dist: float = parameter(
        2.0,
        unit="m",
        low=0.01,
        high=100.0,
        doc="Distance to a surface beyond which the likelihood of a point stays constant.",
    )
    z_hit: float = parameter(0.5, low=0.0, high=1.0, aliases=("laser_z_hit",), doc="Weight of the hit component.")
    z_short: float = parameter(
        0.05, low=0.0, high=1.0, aliases=("laser_z_short",), doc="Weight of the short-range component (beam model)."
    )
    z_max: float = parameter(
        0.05, low=0.0, high=1.0, aliases=("laser_z_max",), doc="Weight of the maximum-range component (beam model)."
    )
    z_rand: float = parameter(0.5, low=0.0, high=1.0, aliases=("laser_z_rand",), doc="Weight of the random component.")
    sigma_hit: float = parameter(
        0.2, unit="m", low=1e-3, high=10.0, aliases=("laser_sigma_hit",), doc="Standard deviation of the hit component."
    )
    lambda_short: float = parameter(
        0.1,
        unit="1/m",
        low=1e-6,
        high=100.0,
        aliases=("laser_lambda_short",),
        doc="Decay rate of the short-range component (beam model).",
    )
    do_beamskip: bool = parameter(False, doc="Ignore beams that most particles cannot explain (likelihood_field_prob).")
    beam_skip_distance: float = parameter(
        0.5, unit="m", low=0.0, high=100.0, doc="Distance to a surface beyond which a particle does not explain a beam."
    )
    beam_skip_threshold: float = parameter(
        0.3, low=0.0, high=1.0, doc="Fraction of particles that must explain a beam, or it is ignored."
    )
    beam_skip_error_threshold: float = parameter(
        0.9, low=0.0, high=1.0, doc="Fraction of ignored beams above which all beams are used."
    )
    recovery_alpha_slow: float = parameter(
        0.001, low=0.0, high=1.0, doc="Rate of the slow average of the weights; 0: no recovery."
    )
    recovery_alpha_fast: float = parameter(
        0.1, low=0.0, high=1.0, doc="Rate of the fast average of the weights; 0: no recovery."
    )
    beam_independence: float = parameter(
        0.5,
        low=1e-3,
        high=1.0,
        doc="Factor of each beam's log likelihood (likelihood_field_prob); below 1: errors of beams are correlated.",
    )
    dynamic_obstacle_distance: float = parameter(
        0.5,
        unit="m",
        low=0.0,
        high=100.0,
        doc="Beams that end this much before the mapped surface are ignored while the pose is known; 0: off.",
    )
    refine: bool = parameter(True, doc="Align the estimate to the map with many beams.")
    refine_beams: int = parameter(180, low=3, high=100_000, doc="Beams used by the alignment.")
    refine_sigma: float = parameter(
        0.1,
        unit="m",
        low=1e-3,
        high=10.0,
        doc="Standard deviation of one beam in the alignment; the errors of beams are correlated.",
    )
    search_poses_per_m2: float = parameter(
        900.0, unit="1/m²", low=1.0, high=1e6, doc="Poses per area of free space tried by global localization."
    )
    max_search_poses: int = parameter(
        200_000, low=1, high=10_000_000, doc="Largest number of poses tried by global localization."
    )
    lost_fraction: float = parameter(
        0.9,
        low=0.0,
        high=1.0,
        doc="Scan consistency below which the robot may be lost and the map is searched; 0: never.",
    )

    def validate(self) -> None:
        """Check the name of the motion model, the number of particles and the weights of the sensor model."""
        if self.motion_model_name not in MOTION_MODELS:
            names = {*MOTION_MODELS.names(), *MOTION_MODEL_ALIASES}
            raise ConfigError(
                f"robot_model_type is '{self.robot_model_type}'{did_you_mean(self.robot_model_type, names)}",
                location="amcl",
                valid=", ".join(sorted(names)),
            )
        if self.max_particles < self.min_particles:
            raise ConfigError(
                f"max_particles = {self.max_particles} is below min_particles = {self.min_particles}",
                location="amcl", valid="max_particles at least min_particles",
            )  # fmt: skip
        if self.z_hit + self.z_rand <= 0.0:
            raise ConfigError("z_hit and z_rand are both 0", location="amcl", valid="weights whose sum is above 0")

    @property
    def motion_model_name(self) -> str:
        """Name of the motion model in `MOTION_MODELS`."""
        if not self.robot_model_type:
            return "differential"
        return MOTION_MODEL_ALIASES.get(self.robot_model_type, self.robot_model_type)
