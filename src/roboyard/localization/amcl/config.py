"""Settings of Monte-Carlo localisation, under the names that Nav2's amcl gives them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.errors import ConfigError

MOTION_MODELS = {
    "diff": ("differential", False),
    "diff-corrected": ("differential", True),
    "differential": ("differential", True),
    "nav2_amcl::DifferentialMotionModel": ("differential", True),
    "omni": ("omni", False),
    "omni-corrected": ("omni", True),
    "omnidirectional": ("omni", True),
    "nav2_amcl::OmniMotionModel": ("omni", True),
}
"""Names in use, each with the model and whether its noise is a variance (corrected) or taken for a deviation."""

LASER_MODELS = ("likelihood_field", "likelihood_field_prob", "beam")


@dataclass(frozen=True, slots=True)
class AmclConfig:
    """Settings; what Nav2's amcl has too means the same here.

    Attributes:
        alpha1: Noise of turning from turning.
        alpha2: Noise of turning from driving.
        alpha3: Noise of driving from driving.
        alpha4: Noise of driving from turning.
        alpha5: Noise of strafing from driving (omni).
        robot_model_type: One of ``MOTION_MODELS``.
        min_particles: Fewest particles.
        max_particles: Most particles.
        pf_err: KLD: largest error between the true distribution and the estimated one.
        pf_z: KLD: upper standard normal quantile for the chance of staying below ``pf_err``, as Nav2 takes it.
        update_min_d: Way before the next update [m].
        update_min_a: Turn before the next update [rad].
        resample_interval: Updates between resamplings.
        selective_resampling: Resample only when fewer than half of the particles count.
        laser_model_type: One of ``LASER_MODELS``.
        max_beams: Beams weighed of each scan.
        laser_min_range: Shorter ranges are left out [m]; negative: the scan's own limit.
        laser_max_range: Longer ranges are left out [m]; negative: the scan's own limit.
        laser_likelihood_max_dist: From here on it does not matter how far from a surface a point is [m].
        z_hit: Share of beams that hit what the map knows.
        z_short: Share of beams that hit something before it (beam model).
        z_max: Share of beams that come back with nothing (beam model).
        z_rand: Share of beams that say anything.
        sigma_hit: Standard deviation of hits [m].
        lambda_short: Decay of short hits [1/m].
        do_beamskip: Leave out beams that most particles cannot explain (likelihood_field_prob).
        beam_skip_distance: Farther from a surface a beam is not explained [m].
        beam_skip_threshold: With less than this share of particles explaining it, a beam is left out.
        beam_skip_error_threshold: When more than this share of beams would be left out, all are kept.
        recovery_alpha_slow: Of the slow average weight; 0: no recovery.
        recovery_alpha_fast: Of the fast average weight; 0: no recovery.
        beam_independence: Each beam's logarithm counts this much (likelihood_field_prob): beams share their errors.
        distance_filter: Beams that end so much before what the map has there are left out while the pose is known [m];
            0: none are.
        refine: Whether the estimate is aligned to the map with many beams.
        refine_beams: How many.
        refine_sigma: Standard deviation of what one of them says about the pose [m]; small since errors are shared.
        search_density: Poses tried for each square metre of free space when nothing is known.
        search_limit: Most poses tried.
        lost_share: Recovery looks elsewhere when scans leave less belief in the estimate than this; 0: never.

    Raises:
        ConfigError: a value is out of range.
    """

    alpha1: float = 0.05
    alpha2: float = 0.05
    alpha3: float = 0.05
    alpha4: float = 0.05
    alpha5: float = 0.05
    robot_model_type: str = "differential"
    min_particles: int = 500
    max_particles: int = 2000
    pf_err: float = 0.05
    pf_z: float = 0.99
    update_min_d: float = 0.1
    update_min_a: float = 0.1
    resample_interval: int = 1
    selective_resampling: bool = True
    laser_model_type: str = "likelihood_field_prob"
    max_beams: int = 60
    laser_min_range: float = -1.0
    laser_max_range: float = 100.0
    laser_likelihood_max_dist: float = 2.0
    z_hit: float = 0.5
    z_short: float = 0.05
    z_max: float = 0.05
    z_rand: float = 0.5
    sigma_hit: float = 0.2
    lambda_short: float = 0.1
    do_beamskip: bool = False
    beam_skip_distance: float = 0.5
    beam_skip_threshold: float = 0.3
    beam_skip_error_threshold: float = 0.9
    recovery_alpha_slow: float = 0.001
    recovery_alpha_fast: float = 0.1
    beam_independence: float = 0.5
    distance_filter: float = 0.5
    refine: bool = True
    refine_beams: int = 180
    refine_sigma: float = 0.1
    search_density: float = 900.0
    search_limit: int = 200_000
    lost_share: float = 0.9

    def __post_init__(self) -> None:
        def hold(name: str, low: float, high: float) -> None:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} = {value}", location="amcl", valid=f"from {low:g} to {high:g}")

        for name in ("alpha1", "alpha2", "alpha3", "alpha4", "alpha5"):
            hold(name, 0.0, 100.0)
        for name in ("z_hit", "z_short", "z_max", "z_rand", "recovery_alpha_slow", "recovery_alpha_fast", "lost_share",
                     "beam_skip_threshold", "beam_skip_error_threshold"):  # fmt: skip
            hold(name, 0.0, 1.0)
        for name in ("update_min_d", "update_min_a", "beam_skip_distance", "search_density", "distance_filter"):
            hold(name, 0.0, 1e6)
        for name in ("sigma_hit", "refine_sigma", "lambda_short", "laser_likelihood_max_dist", "pf_err"):
            hold(name, 1e-6, 1e6)
        hold("beam_independence", 1e-3, 1.0)
        hold("pf_z", 0.0, 6.0)
        for name in ("min_particles", "max_beams", "resample_interval", "refine_beams", "search_limit"):
            hold(name, 1, 10_000_000)
        hold("max_particles", self.min_particles, 10_000_000)
        if math.isnan(self.laser_min_range) or math.isnan(self.laser_max_range):
            raise ConfigError("a laser's limit is no number", location="amcl", valid="metres, or negative")
        if self.z_hit + self.z_rand <= 0.0:
            raise ConfigError("z_hit and z_rand are both 0", location="amcl", valid="shares that explain a beam")
        for name, known in (("robot_model_type", tuple(MOTION_MODELS)), ("laser_model_type", LASER_MODELS)):
            if getattr(self, name) not in known:
                raise ConfigError(f"{name} = {getattr(self, name)!r}", location="amcl", valid=", ".join(known))
