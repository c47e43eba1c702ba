"""The amcl node's parameters: Nav2's, those of ROS 1 under other names, and a few of ours."""

from __future__ import annotations

from typing import ClassVar

from roboyard.bus import param
from roboyard.localization.amcl.config import LASER_MODELS, MOTION_MODELS, AmclConfig
from roboyard.localization.nodes.from_ros import FromRosFile

_D = AmclConfig()


class AmclParameters(FromRosFile):
    """Base of the amcl node.  What the filter itself takes is explained at ``AmclConfig``."""

    ros_names: ClassVar[tuple[str, ...]] = ("amcl",)
    renamed: ClassVar[dict[str, str]] = {
        "odom_model_type": "robot_model_type", "laser_max_beams": "max_beams", "kld_err": "pf_err", "kld_z": "pf_z",
        **{f"odom_alpha{number}": f"alpha{number}" for number in range(1, 6)},
        **{f"laser_{name}": name for name in ("z_hit", "z_short", "z_max", "z_rand", "sigma_hit", "lambda_short")},
        "initial_pose_a": "initial_pose_yaw", "use_map_topic": "first_map_only_",
        "gui_publish_rate": "particle_cloud_rate",
    }  # fmt: skip
    needless: ClassVar[frozenset[str]] = FromRosFile.needless | {
        "initial_pose_z", "always_reset_initial_pose", "first_map_only_", "introspection_mode", "random_seed",
    }  # fmt: skip

    # frames, topics, transforms
    global_frame_id: str = param("map", fixed=True)
    odom_frame_id: str = param("odom", fixed=True)
    base_frame_id: str = param("base_link", fixed=True)
    map_topic: str = param("map", fixed=True)
    scan_topic: str = param("scan", fixed=True)
    more_scan_topics: tuple[str, ...] = param((), doc="of further lasers", fixed=True)
    tf_broadcast: bool = param(True, doc="whether map → odom is published", fixed=True)
    transform_tolerance: float = param(0.2, unit="s", low=0.0, high=60.0, doc="map → odom is stamped so much later")
    wait_for_transform: float = param(0.5, unit="s", low=0.0, high=10.0, doc="a scan waits so long for transforms")
    first_map_only: bool = param(False, fixed=True)
    # to begin with
    set_initial_pose: bool = param(False, doc="begin at initial_pose_…", fixed=True)
    initial_pose_x: float = param(0.0, unit="m", low=-1e6, high=1e6, fixed=True)
    initial_pose_y: float = param(0.0, unit="m", low=-1e6, high=1e6, fixed=True)
    initial_pose_yaw: float = param(0.0, unit="rad", low=-1e3, high=1e3, fixed=True)
    initial_cov_xx: float = param(0.25, unit="m²", low=0.0, high=1e6, fixed=True)
    initial_cov_yy: float = param(0.25, unit="m²", low=0.0, high=1e6, fixed=True)
    initial_cov_aa: float = param(0.0685, unit="rad²", low=0.0, high=100.0, fixed=True)
    start_anywhere: bool = param(False, doc="begin with a search of the whole map", fixed=True)
    # what is shown
    particle_cloud_rate: float = param(1.0, unit="Hz", low=0.0, high=100.0, doc="0: with every update", fixed=True)
    particle_cloud_limit: int = param(200, low=1, high=1_000_000, doc="particles shown at most", fixed=True)
    # the filter
    robot_model_type: str = param(_D.robot_model_type, choices=tuple(MOTION_MODELS), fixed=True)
    alpha1: float = param(_D.alpha1, low=0.0, high=100.0, doc="turning from turning", fixed=True)
    alpha2: float = param(_D.alpha2, low=0.0, high=100.0, doc="turning from driving", fixed=True)
    alpha3: float = param(_D.alpha3, low=0.0, high=100.0, doc="driving from driving", fixed=True)
    alpha4: float = param(_D.alpha4, low=0.0, high=100.0, doc="driving from turning", fixed=True)
    alpha5: float = param(_D.alpha5, low=0.0, high=100.0, doc="strafing from driving (omni)", fixed=True)
    min_particles: int = param(_D.min_particles, low=1, high=10_000_000, fixed=True)
    max_particles: int = param(_D.max_particles, low=1, high=10_000_000, fixed=True)
    pf_err: float = param(_D.pf_err, low=1e-6, high=1e6, fixed=True)
    pf_z: float = param(_D.pf_z, low=0.0, high=6.0, fixed=True)
    update_min_d: float = param(_D.update_min_d, unit="m", low=0.0, high=1e6, fixed=True)
    update_min_a: float = param(_D.update_min_a, unit="rad", low=0.0, high=1e6, fixed=True)
    resample_interval: int = param(_D.resample_interval, low=1, high=1000, fixed=True)
    selective_resampling: bool = param(_D.selective_resampling, fixed=True)
    laser_model_type: str = param(_D.laser_model_type, choices=LASER_MODELS, fixed=True)
    max_beams: int = param(_D.max_beams, low=1, high=100_000, fixed=True)
    laser_min_range: float = param(_D.laser_min_range, unit="m", doc="-1: the laser's own", fixed=True)
    laser_max_range: float = param(_D.laser_max_range, unit="m", doc="-1: the laser's own", fixed=True)
    laser_likelihood_max_dist: float = param(_D.laser_likelihood_max_dist, unit="m", low=0.01, high=100.0, fixed=True)
    z_hit: float = param(_D.z_hit, low=0.0, high=1.0, fixed=True)
    z_short: float = param(_D.z_short, low=0.0, high=1.0, fixed=True)
    z_max: float = param(_D.z_max, low=0.0, high=1.0, fixed=True)
    z_rand: float = param(_D.z_rand, low=0.0, high=1.0, fixed=True)
    sigma_hit: float = param(_D.sigma_hit, unit="m", low=1e-3, high=10.0, fixed=True)
    lambda_short: float = param(_D.lambda_short, unit="1/m", low=1e-6, high=100.0, fixed=True)
    do_beamskip: bool = param(_D.do_beamskip, fixed=True)
    beam_skip_distance: float = param(_D.beam_skip_distance, unit="m", low=0.0, high=100.0, fixed=True)
    beam_skip_threshold: float = param(_D.beam_skip_threshold, low=0.0, high=1.0, fixed=True)
    beam_skip_error_threshold: float = param(_D.beam_skip_error_threshold, low=0.0, high=1.0, fixed=True)
    recovery_alpha_slow: float = param(_D.recovery_alpha_slow, low=0.0, high=1.0, fixed=True)
    recovery_alpha_fast: float = param(_D.recovery_alpha_fast, low=0.0, high=1.0, fixed=True)
    beam_independence: float = param(_D.beam_independence, low=1e-3, high=1.0, fixed=True)
    distance_filter: float = param(_D.distance_filter, unit="m", low=0.0, high=100.0, doc="0: off", fixed=True)
    refine: bool = param(_D.refine, doc="align the estimate to the map with many beams", fixed=True)
    refine_beams: int = param(_D.refine_beams, low=3, high=100_000, fixed=True)
    refine_sigma: float = param(_D.refine_sigma, unit="m", low=1e-3, high=10.0, fixed=True)
    search_density: float = param(_D.search_density, unit="1/m²", low=1.0, high=1e6, fixed=True)
    search_limit: int = param(_D.search_limit, low=1, high=10_000_000, fixed=True)
    lost_share: float = param(_D.lost_share, low=0.0, high=1.0, fixed=True)
