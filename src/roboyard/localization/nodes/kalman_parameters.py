"""The fusion node's parameters: robot_localization's, by their own names."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from roboyard.bus import param
from roboyard.localization.kalman import FusionConfig
from roboyard.localization.nodes.from_ros import FromRosFile

KINDS = ("odom", "pose", "twist", "imu")
EACH = 4
"""Sources of each kind: odom0 to odom3, …"""
_D = FusionConfig()


def _of_source(kind: str, name: str) -> dict[str, Any]:
    """What a source is given, by parameter name."""
    said: dict[str, Any] = {
        name: param("", doc="topic; empty: no such source", fixed=True),
        f"{name}_config": param((False,) * 15, doc="x y z, roll pitch yaw, velocities, turn rates, accelerations",
                                fixed=True),
        f"{name}_queue_size": param(10, low=0, high=100_000, doc="ignored: nothing is lost here", fixed=True),
        f"{name}_nodelay": param(False, doc="ignored", fixed=True),
    }  # fmt: skip

    def threshold(part: str) -> Any:
        return param(math.inf, low=0.0, doc=f"largest Mahalanobis distance of a {part}", fixed=True)

    if kind != "twist":
        said[f"{name}_differential"] = param(False, doc="take changes between its poses, as velocities", fixed=True)
        said[f"{name}_relative"] = param(False, doc="count its poses from the first", fixed=True)
    if kind in ("odom", "imu"):
        said[f"{name}_pose_rejection_threshold"] = threshold("pose")
        said[f"{name}_twist_rejection_threshold"] = threshold("velocity")
    else:
        said[f"{name}_rejection_threshold"] = threshold(kind)
    if kind == "imu":
        said[f"{name}_linear_acceleration_rejection_threshold"] = threshold("acceleration")
        said[f"{name}_remove_gravitational_acceleration"] = param(
            False, doc="gravity is in its accelerations", fixed=True
        )
        said[f"{name}_bias_at_rest"] = param(False, doc="learn the gyroscope's bias while odometry stands", fixed=True)
    return said


_SOURCES = {
    key: value for kind in KINDS for number in range(EACH) for key, value in _of_source(kind, f"{kind}{number}").items()
}
_SourceParameters: Any = type("SourceParameters", (FromRosFile,), {"__doc__": "Sources.", **_SOURCES})


class KalmanParameters(_SourceParameters):  # type: ignore[misc]
    """Base of the fusion nodes."""

    ros_names: ClassVar[tuple[str, ...]] = (
        "ekf_filter_node", "ukf_filter_node", "ekf_node", "ukf_node", "ekf_localization", "ukf_localization",
        "ekf_localization_node", "ukf_localization_node", "ekf_se_odom", "ekf_se_map", "ukf_se", "ekf_se",
    )  # fmt: skip
    needless: ClassVar[frozenset[str]] = FromRosFile.needless | {"debug_out_file", "disabled_at_startup"}

    params_section: str = param("", doc="the node's name in params_file, if it is another", fixed=True)
    frequency: float = param(30.0, unit="Hz", low=0.1, high=1000.0, fixed=True)
    sensor_timeout: float = param(_D.sensor_timeout, unit="s", low=1e-3, high=1e3, fixed=True)
    two_d_mode: bool = param(False, fixed=True)
    transform_time_offset: float = param(
        0.0, unit="s", low=-10.0, high=10.0, doc="transforms are stamped later", fixed=True
    )
    transform_timeout: float = param(0.0, unit="s", low=0.0, high=10.0, doc="ignored: frames of sensors are static",
                                     fixed=True)  # fmt: skip
    map_frame: str = param("map", fixed=True)
    odom_frame: str = param("odom", fixed=True)
    base_link_frame: str = param("base_link", fixed=True)
    world_frame: str = param("odom", doc="odom_frame: publishes odom → base; map_frame: map → odom", fixed=True)
    publish_tf: bool = param(True, fixed=True)
    publish_acceleration: bool = param(False, doc="on accel/filtered", fixed=True)
    predict_to_current_time: bool = param(False, fixed=True)
    smooth_lagged_data: bool = param(False, fixed=True)
    history_length: float = param(_D.history_length, unit="s", low=0.0, high=1e3, fixed=True)
    reset_on_time_jump: bool = param(False, doc="start anew when stamps go back by more than a second", fixed=True)
    gravitational_acceleration: float = param(9.80665, unit="m/s²", low=0.0, high=100.0, fixed=True)
    use_control: bool = param(False, fixed=True)
    stamped_control: bool = param(False, doc="cmd_vel is a TwistStamped", fixed=True)
    control_timeout: float = param(0.2, unit="s", low=1e-3, high=100.0, fixed=True)
    control_config: tuple[bool, ...] = param((False,) * 6, fixed=True)
    acceleration_limits: tuple[float, ...] = param((1.0,) * 6, unit="m/s², rad/s²", low=0.0, fixed=True)
    deceleration_limits: tuple[float, ...] = param((1.0,) * 6, unit="m/s², rad/s²", low=0.0, fixed=True)
    acceleration_gains: tuple[float, ...] = param((1.0,) * 6, low=0.0, fixed=True)
    deceleration_gains: tuple[float, ...] = param((1.0,) * 6, low=0.0, fixed=True)
    process_noise_covariance: tuple[float, ...] = param(
        _D.process_noise_covariance, doc="15 or 225 numbers", fixed=True
    )
    dynamic_process_noise_covariance: bool = param(False, fixed=True)
    initial_state: tuple[float, ...] = param(_D.initial_state, fixed=True)
    initial_estimate_covariance: tuple[float, ...] = param(
        _D.initial_estimate_covariance, doc="15 or 225 numbers", fixed=True
    )
    alpha: float = param(_D.alpha, low=1e-6, high=10.0, doc="of the unscented filter", fixed=True)
    kappa: float = param(_D.kappa, low=-14.0, high=100.0, doc="of the unscented filter", fixed=True)
    beta: float = param(_D.beta, low=0.0, high=100.0, doc="of the unscented filter", fixed=True)

    def __init__(self, **given: Any) -> None:
        section = given.get("params_section")
        if isinstance(section, str) and section:
            self.ros_names = (section,)  # type: ignore[misc]
        super().__init__(**given)
