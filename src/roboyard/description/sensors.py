"""Sensors as descriptions declare them: one frozen record a kind, named after what it measures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.geometry import SE3


@dataclass(frozen=True, slots=True)
class Noise:
    """Gaussian noise with a constant and a drifting bias; all zero = ideal.

    Attributes:
        mean: Added to every value [the value's unit].
        stddev: White noise per sample [the value's unit].
        bias_mean: Mean of the bias drawn once at start.
        bias_stddev: Spread of that bias (its sign is random, as in SDF).
        dynamic_bias_stddev: Stationary spread of a first-order Gauss-Markov bias.
        dynamic_bias_correlation_time: Its time constant [s].
        precision: Output is quantised to this step; 0 = not.
    """

    mean: float = 0.0
    stddev: float = 0.0
    bias_mean: float = 0.0
    bias_stddev: float = 0.0
    dynamic_bias_stddev: float = 0.0
    dynamic_bias_correlation_time: float = 0.0
    precision: float = 0.0


@dataclass(frozen=True, slots=True)
class LidarSpec:
    """Planar or spinning lidar; angles about the sensor's z (horizontal) and elevation (vertical)."""

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


@dataclass(frozen=True, slots=True)
class ImuSpec:
    """Inertial unit: noise per axis (x, y, z) of angular velocity [rad/s] and linear acceleration [m/s²]."""

    angular_velocity: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())
    linear_acceleration: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())
    orientation: bool = True


@dataclass(frozen=True, slots=True)
class ContactSpec:
    """Contact sensor on named collisions of its link (empty: all of them)."""

    collisions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """Joint encoders: steps per revolution (0 = continuous) and velocity noise; joints empty = all movable ones."""

    joints: tuple[str, ...] = ()
    resolution: int = 0
    noise: Noise = Noise()


@dataclass(frozen=True, slots=True)
class TruthSpec:
    """Ground truth of the link's pose and twist."""


@dataclass(frozen=True, slots=True)
class OtherSpec:
    """A kind no reader rule knows yet, kept as written so that nothing is lost."""

    parameters: tuple[tuple[str, str], ...] = ()


SensorSpec = LidarSpec | ImuSpec | ContactSpec | EncoderSpec | TruthSpec | OtherSpec


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor on a link.

    Attributes:
        kind: "lidar", "imu", "contact", "encoder", "truth", or the file's own word with an OtherSpec.
        topic: Name it publishes under, relative to the robot's namespace.
        frame: Frame id in its messages.
        update_rate: [Hz].
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
