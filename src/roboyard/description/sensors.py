"""Sensors as descriptions declare them: one frozen record a kind, named after what it measures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from roboyard.description.cameras import CameraSpec
from roboyard.description.noise import Noise as Noise
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3


@dataclass(frozen=True, slots=True)
class LidarSpec:
    """Planar or spinning lidar; angles about the sensor's z (horizontal) and elevation (vertical).

    Attributes:
        false_echo_probability: Probability that a beam reports something in front of what is there.
        dropout_probability: Probability that a beam comes back with nothing.
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


SPEED_OF_SOUND = 343.0
"""In air at 20 °C [m/s]."""


@dataclass(frozen=True, slots=True)
class SonarSpec:
    """Ultrasonic ranger: the nearest echo within a cone about the sensor's x.

    Attributes:
        range_min: Nearer things are not told apart [m].
        range_max: Farther echoes are too weak [m].
        half_angle: Of the cone [rad].
        max_incidence_angle: Surfaces at a larger angle of incidence reflect the echo away; edges still echo [rad].
        noise: Of the distance [m].
        false_echo_probability: Probability of a random false echo.  False echoes from other sonars and from earlier
            pulses are simulated in any case.
        dropout_probability: Probability that the echo is missed.
        frequency: Of the sound [Hz]; sonars hear each other only where their pulses overlap in it.
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
    """Three axes with a noise each: accelerometer [m/s²], gyroscope [rad/s], magnetometer [T]."""

    axes: tuple[Noise, Noise, Noise] = (Noise(), Noise(), Noise())


@dataclass(frozen=True, slots=True)
class AltimeterSpec:
    """Height over where it started [m] and climbing speed [m/s]."""

    position: Noise = Noise()
    velocity: Noise = Noise()


@dataclass(frozen=True, slots=True)
class BarometerSpec:
    """Barometer: air pressure [Pa] of the standard atmosphere above a ground of ``reference_altitude`` [m]."""

    noise: Noise = Noise()
    reference_altitude: float = 0.0


@dataclass(frozen=True, slots=True)
class GnssSpec:
    """Satellite position (GPS): noise along the ground and upwards [m], and of the velocities [m/s].

    It needs a free view of the sky: ``min_sky_fraction`` is the share of it that must be open.
    """

    horizontal: Noise = Noise()
    vertical: Noise = Noise()
    horizontal_velocity: Noise = Noise()
    vertical_velocity: Noise = Noise()
    min_sky_fraction: float = 0.4


@dataclass(frozen=True, slots=True)
class ForceTorqueSpec:
    """Force and torque that a joint carries.

    Attributes:
        joint: Which.
        frame: Whose axes the values are in.
        direction: On whom they act.
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
    """Joint encoders.

    Attributes:
        joints: Empty: all that can move.
        resolution: Steps per revolution; 0 = continuous.
        noise: Of the velocity [rad/s].
        absolute: Shows the angle within one turn; an incremental one counts on. Both from the joint's own zero.
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
    """A kind no reader rule knows yet, kept as written so that nothing is lost.

    Attributes:
        parameters: (path/to/element below the ``<sensor>``, its text).
    """

    parameters: tuple[tuple[str, str], ...] = ()

    def get_number(self, path: str, default: float, *, minimum: float = -math.inf, maximum: float = math.inf) -> float:
        """The number at ``path``; ``default`` where the file has none. Raises DescriptionError."""
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
    """Times in which a sensor says nothing, at random.

    Attributes:
        mean_interval: Mean time from the end of one to the beginning of the next [s]; 0 = never.
        mean_duration: Mean length [s].
    """

    mean_interval: float = 0.0
    mean_duration: float = 1.0


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor on a link.

    Attributes:
        kind: "lidar", "imu", … (``roboyard.simulation.sensors.sensor_kinds``), or the file's own word with an
            CustomSensorSpec.
        topic: Name it publishes under, relative to the robot's namespace.
        frame: Frame id in its messages.
        update_rate: [Hz].
        latency: From measuring to publishing [s]; the stamp is that of the measurement.
        outage: Times in which it is silent.
        phase: By how much it measures later than at multiples of its period [s]: sonars take turns.
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
