"""Sensor presets: named sensors with typical parameters, ``<sensor …><preset>sick_lms200</preset></sensor>``.

The parameters are those of a survey of sensors of small robots: data sheets for named products, else values typical of
the class.  A stated accuracy is taken as the bound of 95 of 100 readings: the standard deviation is half of it along
one axis (including rounding), and 0.41 of it in the plane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.description.sensors import (
    CameraSpec,
    DepthNoise,
    EncoderSpec,
    Exposure,
    GnssSpec,
    ImuSpec,
    LidarSpec,
    Noise,
    SensorSpec,
    SonarSpec,
    ThreeAxisSpec,
)
from roboyard.geometry import SE3, CameraModel


@dataclass(frozen=True, slots=True)
class SensorPreset:
    """Named sensor.

    Attributes:
        kind: Kind of the sensor.
        update_rate: Update rate [Hz].
        spec: Parameters.
        summary: Description in one line.
    """

    kind: str
    update_rate: float
    spec: SensorSpec
    summary: str


def _make_lidar(
    samples: int, half_angle: float, near: float, far: float, resolution: float, stddev: float
) -> LidarSpec:
    return LidarSpec(
        samples=samples, angle_min=-half_angle, angle_max=half_angle, range_min=near, range_max=far,
        resolution=resolution, noise=Noise(stddev=stddev),
    )  # fmt: skip


def _drifting_noise(
    stddev: float, bias_stddev: float, correlation_time: float, constant_bias_stddev: float = 0.0
) -> tuple[Noise, Noise, Noise]:
    """Return white noise with a drifting bias about a constant bias, which a calibration would find."""
    noise = Noise(
        stddev=stddev,
        bias_stddev=constant_bias_stddev,
        dynamic_bias_stddev=bias_stddev,
        dynamic_bias_correlation_time=correlation_time,
    )
    return noise, noise, noise


def _make_gnss(horizontal: float, vertical: float) -> GnssSpec:
    """Return GNSS errors, which drift over minutes more than they scatter."""

    def noise(stddev: float) -> Noise:
        return Noise(stddev=0.1 * stddev, dynamic_bias_stddev=stddev, dynamic_bias_correlation_time=120.0)

    return GnssSpec(noise(horizontal), noise(vertical), Noise(stddev=0.1), Noise(stddev=0.2))


def _make_pattern_camera(depth_view: float, near: float, far: float, spacing: float) -> CameraSpec:
    """Return a color camera and, `spacing` to its right [m], an infrared camera with its projector another 75 mm
    further.
    """
    color = CameraModel.from_field_of_view(640, 480, math.radians(62.0), distortion=(0.05, -0.1, 0.0, 0.0, 0.0))
    return CameraSpec(
        color=color,
        depth=CameraModel.from_field_of_view(640, 480, depth_view),
        near=0.05,
        far=50.0,
        depth_near=near,
        depth_far=far,
        T_color_depth=SE3(translation=(spacing, 0.0, 0.0)),
        exposure=Exposure(auto=True, vignetting=0.2, full_well=3000.0, read_noise=10.0),
        depth_noise=DepthNoise("khoshelham", baseline=0.075),
        infrared=True,
    )


_SMALL_CHIP_EXPOSURE = Exposure(auto=True, vignetting=0.2, full_well=5000.0, read_noise=8.0)
_STEREO_LENS = CameraModel.from_field_of_view(640, 480, math.radians(66.0))
_HALF_PI = math.pi / 2
PRESETS: dict[str, SensorPreset] = {
    "sick_lms200": SensorPreset(
        "lidar", 20.0, _make_lidar(720, _HALF_PI, 0.1, 80.0, 0.01, 0.004), "2D lidar, 180°, 720 beams in 0.05 s, 10 mm"
    ),
    "lidar_2d_coarse": SensorPreset(
        "lidar", 10.0, _make_lidar(361, _HALF_PI, 0.1, 30.0, 0.01, 0.004), "2D lidar, 180° in steps of 0.5°, 30 m"
    ),
    "lidar_2d_fine": SensorPreset(
        "lidar",
        75.0,
        _make_lidar(1029, _HALF_PI, 0.05, 80.0, 0.01, 0.004),
        "2D lidar, 180° in steps of 0.175°, 80 m, 75 Hz",
    ),
    "lidar_3d_16": SensorPreset(
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
    "polaroid_6500": SensorPreset(
        "sonar",
        10.0,
        SonarSpec(
            range_min=0.15,
            range_max=10.7,
            half_angle=0.13,
            noise=Noise(stddev=0.02),
            dropout_probability=0.01,
            frequency=49.4e3,
            burst_cycles=16,
            detection_threshold=0.2,
        ),
        "sonar, 16 cycles at 49.4 kHz, 0.15 to 10.7 m",
    ),
    "sonar_5m": SensorPreset(
        "sonar",
        30.0,
        SonarSpec(range_max=5.0, half_angle=0.26, noise=Noise(stddev=0.1), dropout_probability=0.02),
        "sonar, 5 m, 20 cm, at the rate at which echoes return from there",
    ),
    "sonar_ring": SensorPreset(
        "sonar",
        100.0,
        SonarSpec(
            range_max=1.7,
            half_angle=0.26,
            noise=Noise(stddev=0.1),
            false_echo_probability=0.01,
            dropout_probability=0.02,
        ),
        "sonar of a ring, 1.7 m, 20 cm, 100 Hz",
    ),
    "imu_consumer": SensorPreset(
        "imu",
        100.0,
        ImuSpec(_drifting_noise(0.005, 0.01, 300.0), _drifting_noise(0.05, 0.1, 300.0)),
        "IMU of a phone",
    ),
    "imu_industrial": SensorPreset(
        "imu",
        200.0,
        ImuSpec(_drifting_noise(0.0005, 0.0005, 1000.0), _drifting_noise(0.01, 0.01, 1000.0)),
        "calibrated IMU",
    ),
    "gyroscope_mems": SensorPreset(
        "gyroscope",
        100.0,
        ThreeAxisSpec(_drifting_noise(0.005, 0.003, 300.0, 0.02)),
        "vibrating gyroscope, not calibrated",
    ),
    "accelerometer_mems": SensorPreset(
        "accelerometer", 100.0, ThreeAxisSpec(_drifting_noise(0.05, 0.02, 300.0, 0.2)), "accelerometer, not calibrated"
    ),
    "gps_good": SensorPreset("navsat", 5.0, _make_gnss(2.0, 4.0), "GNSS position, 3 to 5 m"),
    "gps_poor": SensorPreset("navsat", 1.0, _make_gnss(20.0, 30.0), "GNSS position between buildings, up to 50 m"),
    "encoder_500": SensorPreset(
        "encoder", 50.0, EncoderSpec(resolution=2000), "incremental encoder, 500 lines read in quadrature"
    ),
    "encoder_absolute_12bit": SensorPreset(
        "encoder", 50.0, EncoderSpec(resolution=4096, absolute=True), "absolute encoder, 12 bits per revolution"
    ),
    "kinect_v1": SensorPreset(
        "rgbd_camera", 30.0, _make_pattern_camera(math.radians(58.0), 0.5, 5.0, 0.025), "Kinect of 2010, 0.5 to 5 m"
    ),
    "astra": SensorPreset(
        "rgbd_camera", 30.0, _make_pattern_camera(math.radians(60.0), 0.6, 8.0, -0.025), "Orbbec Astra, 0.6 to 8 m"
    ),
    "webcam": SensorPreset(
        "camera",
        30.0,
        CameraSpec(
            color=CameraModel.from_field_of_view(640, 480, math.radians(60.0), distortion=(0.1, -0.2, 0.0, 0.0, 0.05)),
            exposure=_SMALL_CHIP_EXPOSURE,
        ),
        "color camera with lens distortion and a small sensor",
    ),
    "stereo_12cm": SensorPreset(
        "stereo_camera",
        15.0,
        CameraSpec(
            color=_STEREO_LENS,
            depth=_STEREO_LENS,
            depth_near=0.5,
            depth_far=50.0,
            baseline=0.12,
            exposure=_SMALL_CHIP_EXPOSURE,
            depth_noise=DepthNoise("stereo", disparity_stddev=0.25),
        ),
        "stereo pair 12 cm apart, matched to a quarter of a pixel: 3 cm at 2.8 m, 10 cm at 5 m, no depth in the dark",
    ),
}
