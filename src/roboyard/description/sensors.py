"""Records of sensors: a specification per sensor kind, noise, and cameras with their topics and optical frames."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roboyard.errors import DescriptionError
from roboyard.geometry import SE3, CameraModel


@dataclass(frozen=True, slots=True)
class Noise:
    """Gaussian noise with a constant and a drifting bias; all zero = ideal.

    Attributes:
        mean: Added to every value [the value's unit].
        stddev: White noise per sample [the value's unit].
        bias_mean: Mean of the bias drawn once at start.
        bias_stddev: Standard deviation of that bias (its sign is random, as in SDF).
        dynamic_bias_stddev: Stationary standard deviation of a first-order Gauss-Markov bias.
        dynamic_bias_correlation_time: Time constant of that bias [s].
        precision: Quantization step of the output; 0 = none.
    """

    mean: float = 0.0
    stddev: float = 0.0
    bias_mean: float = 0.0
    bias_stddev: float = 0.0
    dynamic_bias_stddev: float = 0.0
    dynamic_bias_correlation_time: float = 0.0
    precision: float = 0.0


CAMERA_KINDS = ("camera", "depth_camera", "rgbd_camera", "stereo_camera")
DEFAULT_UPDATE_RATES = {
    "lidar": 10.0, "imu": 100.0, "contact": 50.0, "encoder": 50.0, "ground_truth": 50.0, "sonar": 10.0, "navsat": 5.0,
    "accelerometer": 100.0, "gyroscope": 100.0, "magnetometer": 50.0, "altimeter": 20.0, "air_pressure": 20.0,
    "force_torque": 100.0, **dict.fromkeys(CAMERA_KINDS, 30.0),
}  # fmt: skip
"""Default update rates by sensor kind [Hz]."""

T_SENSOR_OPTICAL = SE3.from_rotation_matrix(np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]))
"""Pose of an optical frame in its sensor: the sensor looks along its x with z up, the optical frame along its z with y
down (REP 103).
"""

DepthModel = Literal["ideal", "gaussian", "khoshelham", "nguyen", "handa", "stereo"]
DEPTH_MODELS: tuple[DepthModel, ...] = ("ideal", "gaussian", "khoshelham", "nguyen", "handa", "stereo")


@dataclass(frozen=True, slots=True)
class Exposure:
    """Exposure of a camera.

    Attributes:
        gain: Factor on the light.
        auto: Choose the gain of each image so that its mean is medium gray; multiplied by `gain`.
        vignetting: Fraction of the light that the corners lose.
        full_well: Number of electrons at white, which determines shot noise; 0: none.
        read_noise: Standard deviation of read noise, in electrons; requires `full_well`.
    """

    gain: float = 1.0
    auto: bool = False
    vignetting: float = 0.0
    full_well: float = 0.0
    read_noise: float = 0.0


@dataclass(frozen=True, slots=True)
class DepthNoise:
    """Depth noise; ``roboyard.sensors.cameras.depth_noise`` describes the models.

    Attributes:
        model: Name of the model.
        noise: Noise of the model ``gaussian`` [m].
        baseline: Distance from the depth camera to its pattern projector, along the rows to the right [m]; surfaces
            that the projector does not illuminate are not measured; 0: no shadow.
        disparity_stddev: Standard deviation of the disparity of the model ``stereo`` [px].
        near_blur_distance: Distance below which the standard deviation of a pattern's depth grows [m].
    """

    model: DepthModel = "ideal"
    noise: Noise = Noise()
    baseline: float = 0.0
    disparity_stddev: float = 0.0
    near_blur_distance: float = 0.0

    @property
    def uses_pattern(self) -> bool:
        """Whether the depth is measured with a projected pattern."""
        return self.model in ("khoshelham", "nguyen", "handa")


@dataclass(frozen=True, slots=True)
class CameraSpec:
    """Camera for color, depth, infrared, a stereo pair, or several of these in one housing.

    Attributes:
        color: Camera model of the color camera, or of the left camera of a pair; None: no color camera.
        depth: Camera model of the depth (and infrared) camera; None: no depth camera.
        near: Near clip distance [m].
        far: Far clip distance [m].
        depth_near: Minimum depth [m].
        depth_far: Maximum depth [m].
        T_color_depth: Pose of the depth camera's optical frame in the color camera's.
        baseline: Distance from the left to the right camera of a stereo pair [m]; 0: no pair.
        noise: Noise of colors, whose values are from 0 to 1.
        exposure: Exposure.
        depth_noise: Depth noise.
        infrared: Whether the depth camera's infrared image is published too.
        is_grayscale: Whether images are grayscale instead of color.
        depth_in_mm: Whether depth is published in whole millimeters instead of meters.
        optical_frame: Frame id of the images; empty: derived from the sensor's frame.
        topics: (output, topic) for topics that the description defines; see `camera_topics`.
    """

    color: CameraModel | None = None
    depth: CameraModel | None = None
    near: float = 0.1
    far: float = 100.0
    depth_near: float = 0.1
    depth_far: float = 10.0
    T_color_depth: SE3 = SE3.identity()
    baseline: float = 0.0
    noise: Noise = Noise()
    exposure: Exposure = Exposure()
    depth_noise: DepthNoise = DepthNoise()
    infrared: bool = False
    is_grayscale: bool = False
    depth_in_mm: bool = False
    optical_frame: str = ""
    topics: tuple[tuple[str, str], ...] = ()

    @property
    def has_color(self) -> bool:
        """Whether the camera makes color or grayscale images."""
        return self.color is not None

    @property
    def has_depth(self) -> bool:
        """Whether the camera measures depth."""
        return self.depth is not None

    @property
    def has_separate_depth_lens(self) -> bool:
        """Whether color and depth cameras have different poses or camera models."""
        if self.color is None or self.depth is None:
            return False
        return self.color != self.depth or not self.T_color_depth.almost_equal(SE3.identity(), 1e-9)


def camera_topics(sensor: Sensor, spec: CameraSpec) -> dict[str, str]:
    """Return the topic of each output of a camera, relative to its robot, without outputs that it does not have.

    The outputs: image, info, depth, depth_info, registered (depth in the view of the color camera), infrared,
    infrared_info, points, depth_points (in the view of the depth camera, without colors), right, right_info, disparity.
    A topic whose last part contains "image" is the topic of the image itself.
    """
    base, named_topics = sensor.topic or sensor.name, dict(spec.topics)
    parent, _, last = base.rpartition("/")
    is_image_topic = "image" in last and sensor.kind in ("camera", "depth_camera")
    if is_image_topic:
        base = parent

    def subtopic(name: str) -> str:
        return f"{base}/{name}" if base else name

    topics: dict[str, str] = {}
    if sensor.kind == "stereo_camera":
        topics = {"image": subtopic("left/image"), "info": subtopic("left/camera_info"),
                  "right": subtopic("right/image"), "right_info": subtopic("right/camera_info"),
                  "disparity": subtopic("disparity"), "depth": subtopic("depth/image"),
                  "points": subtopic("points")}  # fmt: skip
    elif spec.color is not None:
        topics = {"image": sensor.topic if is_image_topic else subtopic("image"), "info": subtopic("camera_info")}
    if spec.depth is not None and sensor.kind in ("depth_camera", "rgbd_camera"):
        is_depth_only = is_image_topic and spec.color is None
        topics["depth"] = sensor.topic if is_depth_only else subtopic("depth/image")
        topics["depth_info"] = subtopic("camera_info" if is_depth_only else "depth/camera_info")
        if spec.color is not None:
            topics["registered"] = subtopic("depth_registered/image")
        topics["points"] = subtopic("points")
        if spec.has_separate_depth_lens:
            topics["depth_points"] = subtopic("depth/points")
    if spec.depth is not None and spec.infrared:
        topics["infrared"], topics["infrared_info"] = subtopic("ir/image"), subtopic("ir/camera_info")
    return {output: named_topics.get(output, topic) for output, topic in topics.items()}


@dataclass(frozen=True, slots=True)
class CameraFrames:
    """Frame ids of a camera's images, without the robot's prefix."""

    color: str
    depth: str
    right: str


def camera_frames(sensor: Sensor, spec: CameraSpec) -> CameraFrames:
    """Return the optical frames: from the description, else ``camera_optical_frame`` for ``camera_link``."""
    base_name = spec.optical_frame or sensor.frame
    for suffix in ("_optical_frame", "_optical", "_link", "_frame"):
        base_name = base_name.removesuffix(suffix)
    optical = spec.optical_frame or f"{base_name}_optical_frame"
    used_frames = {sensor.frame}
    optical = optical if optical not in used_frames else f"{optical}_optical"
    depth = f"{base_name}_depth_optical_frame" if spec.has_separate_depth_lens else optical
    return CameraFrames(optical, depth, f"{base_name}_right_optical_frame")


def optical_poses(sensor: Sensor, spec: CameraSpec) -> list[tuple[SE3, str]]:
    """Return (T_link_frame, frame id) of each optical frame."""
    frames = camera_frames(sensor, spec)
    T_link_color = sensor.T_link_sensor @ T_SENSOR_OPTICAL
    poses = [(T_link_color, frames.color)]
    if spec.has_separate_depth_lens:
        poses.append((T_link_color @ spec.T_color_depth, frames.depth))
    if spec.baseline:
        poses.append((T_link_color @ SE3(translation=(spec.baseline, 0.0, 0.0)), frames.right))
    return poses


@dataclass(frozen=True, slots=True)
class LidarSpec:
    """Planar or spinning lidar; angles about the sensor's z (horizontal) and elevation (vertical).

    Attributes:
        false_echo_probability: Probability that a beam reports an echo in front of the surface.
        dropout_probability: Probability that a beam returns no echo.
    """

    samples: int = 720
    angle_min: float = -math.pi / 2
    angle_max: float = math.pi / 2
    vertical_samples: int = 1
    vertical_angle_min: float = 0.0
    vertical_angle_max: float = 0.0
    range_min: float = 0.1
    range_max: float = 30.0
    resolution: float = 0.0
    noise: Noise = Noise()
    false_echo_probability: float = 0.0
    dropout_probability: float = 0.0


@dataclass(frozen=True, slots=True)
class SonarSpec:
    """Ultrasonic ranger: the nearest echo within a cone about the sensor's x.

    Attributes:
        range_min: Distance below which all echoes give this range [m].
        range_max: Distance beyond which echoes are too weak [m].
        half_angle: Half angle of the cone [rad].
        max_incidence_angle: Surfaces at a larger angle of incidence reflect the echo away; edges still echo [rad].
        noise: Noise of the distance [m].
        false_echo_probability: Probability of a random false echo.  False echoes from other sonars and from earlier
            pulses are simulated in any case.
        dropout_probability: Probability that the echo is missed.
        frequency: Frequency of the sound [Hz]; sonars receive each other's echoes only if their pulses overlap in
            frequency.
        burst_cycles: Length of the pulse in periods of the sound.
        detection_threshold: Energy at which the receiver detects an echo, as a fraction of the energy that a whole
            pulse returns from a wall at the maximum range; 0: any energy is detected.
    """

    range_min: float = 0.02
    range_max: float = 5.0
    half_angle: float = 0.26
    max_incidence_angle: float = 0.6
    noise: Noise = Noise()
    false_echo_probability: float = 0.0
    dropout_probability: float = 0.0
    frequency: float = 40e3
    burst_cycles: int = 16
    detection_threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class ThreeAxisSpec:
    """Three axes with one noise each: accelerometer [m/s²], gyroscope [rad/s], magnetometer [T]."""

    axes: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())


@dataclass(frozen=True, slots=True)
class AltimeterSpec:
    """Height above the start [m] and vertical velocity [m/s]."""

    position: Noise = Noise()
    velocity: Noise = Noise()


@dataclass(frozen=True, slots=True)
class BarometerSpec:
    """Barometer: air pressure [Pa] of the standard atmosphere above a ground of ``reference_altitude`` [m]."""

    noise: Noise = Noise()
    reference_altitude: float = 0.0


@dataclass(frozen=True, slots=True)
class GnssSpec:
    """GNSS receiver (GPS): noise of the horizontal and vertical position [m], and of the velocities [m/s].

    It needs a free view of the sky: `min_sky_fraction` is the fraction of it that must be visible.
    """

    horizontal: Noise = Noise()
    vertical: Noise = Noise()
    horizontal_velocity: Noise = Noise()
    vertical_velocity: Noise = Noise()
    min_sky_fraction: float = 0.4


@dataclass(frozen=True, slots=True)
class ForceTorqueSpec:
    """Force and torque in a joint.

    Attributes:
        joint: Name of the joint.
        frame: Frame in whose axes the values are expressed.
        direction: Which body exerts the force on which.
        force: Noise per axis [N].
        torque: Noise per axis [N m].
    """

    joint: str = ""
    frame: Literal["child", "parent", "sensor"] = "child"
    direction: Literal["child_to_parent", "parent_to_child"] = "child_to_parent"
    force: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())
    torque: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())


@dataclass(frozen=True, slots=True)
class ImuSpec:
    """IMU: noise per axis (x, y, z) of angular velocity [rad/s] and linear acceleration [m/s²]."""

    angular_velocity: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())
    linear_acceleration: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())
    orientation: bool = True


@dataclass(frozen=True, slots=True)
class ContactSpec:
    """Contact sensor on named collisions of its link (empty: all of them)."""

    collisions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """Joint encoders.

    Attributes:
        joints: Names of the joints; empty: all movable joints.
        resolution: Steps per revolution; 0 = continuous.
        noise: Noise of the velocity [rad/s].
        absolute: Whether the angle is within one revolution; an incremental encoder counts on. Both start at the
            joint's zero.
        miscount_probability: Probability that a step is lost or counted twice.
    """

    joints: tuple[str, ...] = ()
    resolution: int = 0
    noise: Noise = Noise()
    absolute: bool = False
    miscount_probability: float = 0.0


@dataclass(frozen=True, slots=True)
class GroundTruthSpec:
    """Ground truth of the link's pose and twist."""


@dataclass(frozen=True, slots=True)
class CustomSensorSpec:
    """Sensor of a kind without a reader, kept as written.

    Attributes:
        parameters: (path/to/element below the ``<sensor>``, its text).
    """

    parameters: tuple[tuple[str, str], ...] = ()

    def get_number(self, path: str, default: float, *, minimum: float = -math.inf, maximum: float = math.inf) -> float:
        """Return the number at `path`; `default` if the file has none. Raises DescriptionError."""
        text = dict(self.parameters).get(path)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and minimum <= value <= maximum):
            raise DescriptionError(
                f"<{path}> is {text!r}", location="<sensor>", valid=f"a number from {minimum:g} to {maximum:g}"
            )
        return value


SensorSpec = (
    LidarSpec
    | SonarSpec
    | ImuSpec
    | ThreeAxisSpec
    | AltimeterSpec
    | BarometerSpec
    | GnssSpec
    | ForceTorqueSpec
    | ContactSpec
    | EncoderSpec
    | GroundTruthSpec
    | CameraSpec
    | CustomSensorSpec
)


@dataclass(frozen=True, slots=True)
class Outage:
    """Random intervals in which a sensor publishes no data.

    Attributes:
        mean_interval: Mean time from the end of one outage to the start of the next [s]; 0 = never.
        mean_duration: Mean duration of an outage [s].
    """

    mean_interval: float = 0.0
    mean_duration: float = 1.0


@dataclass(frozen=True, slots=True)
class Sensor:
    """Sensor on a link.

    Attributes:
        kind: "lidar", "imu", … (``roboyard.sensors.sensor_kinds``), or the type in the file for a
            `CustomSensorSpec`.
        topic: Topic, relative to the robot's namespace.
        frame: Frame id in its messages.
        update_rate: Update rate [Hz].
        latency: Delay from measurement to publication [s]; the stamp is the time of measurement.
        outage: Intervals without data.
        phase: Delay of its measurements relative to multiples of its period [s], so that sonars measure in turn.
    """

    name: str
    kind: str
    link: str
    T_link_sensor: SE3
    update_rate: float
    topic: str
    frame: str
    spec: SensorSpec
    always_on: bool = True
    latency: float = 0.0
    outage: Outage = Outage()
    phase: float = 0.0
