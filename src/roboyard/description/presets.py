"""Sensors by name, with the figures of their class: ``<sensor …><preset>sick_lms200</preset></sensor>``.

The figures are those of a survey of what small robots carry: manufacturers' data sheets where a product is named, else
what is typical of the class.  Where it gives an accuracy, 95 of 100 readings are that good: the standard deviation is
half of it along one axis (rounding included), and 0.41 of it in the plane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.description.cameras import CameraSpec, DepthNoise, Exposure
from roboyard.description.sensors import (
    EncoderSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    SatelliteSpec,
    SensorSpec,
    SonarSpec,
    VectorSpec,
)
from roboyard.geometry import SE3, Lens


@dataclass(frozen=True, slots=True)
class Preset:
    """A sensor one can ask for by name.

    Attributes:
        kind: Of the sensor.
        rate: [Hz].
        spec: Its figures.
        about: One line.
    """

    kind: str
    rate: float
    spec: SensorSpec
    about: str


def _lidar(samples: int, half: float, near: float, far: float, resolution: float, spread: float) -> LidarSpec:
    return LidarSpec(
        samples=samples, angle_min=-half, angle_max=half, range_min=near, range_max=far, resolution=resolution,
        noise=Noise(stddev=spread),
    )  # fmt: skip


def _walk(spread: float, bias: float, seconds: float, constant: float = 0.0) -> tuple[Noise, Noise, Noise]:
    """White noise with a bias that wanders, about a constant one that calibration would find."""
    noise = Noise(stddev=spread, bias_stddev=constant, dynamic_bias_stddev=bias, dynamic_bias_correlation_time=seconds)
    return noise, noise, noise


def _satellite(along: float, up: float) -> SatelliteSpec:
    """Errors of satellite positions wander over minutes more than they scatter."""

    def noise(spread: float) -> Noise:
        return Noise(stddev=0.1 * spread, dynamic_bias_stddev=spread, dynamic_bias_correlation_time=120.0)

    return SatelliteSpec(noise(along), noise(up), Noise(stddev=0.1), Noise(stddev=0.2))


def _pattern_camera(depth_view: float, near: float, far: float, apart: float) -> CameraSpec:
    """A colour camera and, ``apart`` to its right [m], an infrared one with its projector another 75 mm further."""
    colour = Lens.of_view(640, 480, math.radians(62.0), distortion=(0.05, -0.1, 0.0, 0.0, 0.0))
    return CameraSpec(
        colour=colour,
        depth=Lens.of_view(640, 480, depth_view),
        near=0.05,
        far=50.0,
        depth_near=near,
        depth_far=far,
        T_colour_depth=SE3(translation=(apart, 0.0, 0.0)),
        exposure=Exposure(auto=True, vignetting=0.2, full_well=3000.0, read_noise=10.0),
        depth_noise=DepthNoise("khoshelham", baseline=0.075),
        infrared=True,
    )


_CHIP = Exposure(auto=True, vignetting=0.2, full_well=5000.0, read_noise=8.0)
_PAIR = Lens.of_view(640, 480, math.radians(66.0))
_HALF = math.pi / 2
PRESETS: dict[str, Preset] = {
    "sick_lms200": Preset(
        "lidar", 20.0, _lidar(720, _HALF, 0.1, 80.0, 0.01, 0.004), "2D lidar, 180°, 720 beams in 0.05 s, 10 mm"
    ),
    "lidar_2d_coarse": Preset(
        "lidar", 10.0, _lidar(361, _HALF, 0.1, 30.0, 0.01, 0.004), "2D lidar, 180° in steps of 0.5°, 30 m"
    ),
    "lidar_2d_fine": Preset(
        "lidar", 75.0, _lidar(1029, _HALF, 0.05, 80.0, 0.01, 0.004), "2D lidar, 180° in steps of 0.175°, 80 m, 75 Hz"
    ),
    "lidar_3d_16": Preset(
        "lidar",
        15.0,
        LidarSpec(
            samples=1800,
            angle_min=-math.pi,
            angle_max=math.pi * (1 - 2 / 1800),
            vertical_samples=16,
            vertical_angle_min=-math.radians(15),
            vertical_angle_max=math.radians(15),
            range_min=0.3,
            range_max=120.0,
            noise=Noise(stddev=0.025),
        ),
        "3D lidar, 16 layers of 1800 beams, 120 m, 5 cm, 15 Hz",
    ),
    "polaroid_6500": Preset(
        "sonar",
        10.0,
        SonarSpec(
            range_min=0.15,
            range_max=10.7,
            half_angle=0.13,
            noise=Noise(stddev=0.02),
            dropout=0.01,
            frequency=49.4e3,
            cycles=16,
            threshold=0.2,
        ),
        "sonar, 16 cycles at 49.4 kHz, 0.15 to 10.7 m",
    ),
    "sonar_5m": Preset(
        "sonar",
        30.0,
        SonarSpec(range_max=5.0, half_angle=0.26, noise=Noise(stddev=0.1), dropout=0.02),
        "sonar, 5 m, 20 cm, as often as sound comes back from there",
    ),
    "sonar_ring": Preset(
        "sonar",
        100.0,
        SonarSpec(range_max=1.7, half_angle=0.26, noise=Noise(stddev=0.1), phantom=0.01, dropout=0.02),
        "sonar of a ring, 1.7 m, 20 cm, 100 Hz",
    ),
    "imu_consumer": Preset(
        "imu", 100.0, ImuSpec(_walk(0.005, 0.01, 300.0), _walk(0.05, 0.1, 300.0)), "inertial unit of a telephone"
    ),
    "imu_industrial": Preset(
        "imu", 200.0, ImuSpec(_walk(0.0005, 0.0005, 1000.0), _walk(0.01, 0.01, 1000.0)), "calibrated inertial unit"
    ),
    "gyroscope_mems": Preset(
        "gyroscope", 100.0, VectorSpec(_walk(0.005, 0.003, 300.0, 0.02)), "vibrating gyroscope, not calibrated"
    ),
    "accelerometer_mems": Preset(
        "accelerometer", 100.0, VectorSpec(_walk(0.05, 0.02, 300.0, 0.2)), "accelerometer, not calibrated"
    ),
    "gps_good": Preset("navsat", 5.0, _satellite(2.0, 4.0), "satellite position, 3 to 5 m"),
    "gps_poor": Preset("navsat", 1.0, _satellite(20.0, 30.0), "satellite position between houses, up to 50 m"),
    "encoder_500": Preset(
        "encoder", 50.0, EncoderSpec(resolution=2000), "incremental encoder, 500 lines read in quadrature"
    ),
    "encoder_absolute_12bit": Preset(
        "encoder", 50.0, EncoderSpec(resolution=4096, absolute=True), "absolute encoder, 12 bits a turn"
    ),
    "kinect_v1": Preset(
        "rgbd_camera", 30.0, _pattern_camera(math.radians(58.0), 0.5, 5.0, 0.025), "Kinect of 2010, 0.5 to 5 m"
    ),
    "astra": Preset(
        "rgbd_camera", 30.0, _pattern_camera(math.radians(60.0), 0.6, 8.0, -0.025), "Orbbec Astra, 0.6 to 8 m"
    ),
    "webcam": Preset(
        "camera",
        30.0,
        CameraSpec(
            colour=Lens.of_view(640, 480, math.radians(60.0), distortion=(0.1, -0.2, 0.0, 0.0, 0.05)), exposure=_CHIP
        ),
        "colour camera with a bent lens and a small chip",
    ),
    "stereo_12cm": Preset(
        "stereo_camera",
        15.0,
        CameraSpec(
            colour=_PAIR,
            depth=_PAIR,
            depth_near=0.5,
            depth_far=50.0,
            baseline=0.12,
            exposure=_CHIP,
            depth_noise=DepthNoise("stereo", disparity=0.25),
        ),
        "stereo pair 12 cm apart, matched to a quarter of a pixel: 3 cm at 2.8 m, 10 cm at 5 m, nothing in the dark",
    ),
}
