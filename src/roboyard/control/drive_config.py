"""Configuration of a robot's drive: joints and geometry by type (`DriveConfig`), and what it can do (`DriveLimits`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from roboyard.config import Config, parameter, required_parameter
from roboyard.control.wheel_kinematics import AckermannDrive, DifferentialDrive, MecanumDrive
from roboyard.errors import ConfigError
from roboyard.hardware.interface import BaseMotion

_NODE_LIMITS = (
    "speed", "reverse_speed", "lateral_speed", "angular_speed", "acceleration", "deceleration", "angular_acceleration",
    "wheel_speed",
)  # fmt: skip
"""Limits that are defaults of the drive nodes' parameters of the same names."""


class DriveLimits(Config):
    """Speeds and accelerations that a robot's drive can reach; None where the robot's file states none."""

    speed: float | None = parameter(None, unit="m/s", low=0.0, doc="Largest speed forward.")
    reverse_speed: float | None = parameter(
        None, unit="m/s", low=0.0, doc="Largest speed backward; not stated: as speed."
    )
    lateral_speed: float | None = parameter(
        None, unit="m/s", low=0.0, doc="Largest speed sideways, of drives that move so; not stated: as speed."
    )
    angular_speed: float | None = parameter(
        None, unit="rad/s", low=0.0, doc="Largest angular speed about the vertical."
    )
    acceleration: float | None = parameter(None, unit="m/s^2", low=0.0, doc="Largest acceleration when speed grows.")
    deceleration: float | None = parameter(
        None, unit="m/s^2", low=0.0, doc="Largest deceleration when speed shrinks; not stated: as acceleration."
    )
    angular_acceleration: float | None = parameter(
        None, unit="rad/s^2", low=0.0, doc="Largest angular acceleration about the vertical."
    )
    wheel_speed: float | None = parameter(
        None, unit="rad/s", low=1e-3,
        doc="Largest speed of a wheel; the drive scales faster commands down, so that the path stays the same.",
    )  # fmt: skip
    min_speed: float = parameter(
        0.0, unit="m/s", low=0.0, doc="Smallest speed that the drive follows; planners command none below it but 0."
    )
    min_angular_speed: float = parameter(
        0.0, unit="rad/s", low=0.0, doc="Smallest angular speed that the drive follows when it turns on the spot."
    )

    def validate(self) -> None:
        """Check that the smallest speeds are not above the largest."""
        for min_name, max_name in (("min_speed", "speed"), ("min_angular_speed", "angular_speed")):
            low, high = getattr(self, min_name), getattr(self, max_name)
            if high is not None and low > high:
                raise ConfigError(
                    f"{min_name} of {low}", location=f"limits.{min_name}", valid=f"at most {max_name}, {high}"
                )

    def node_parameters(self, keys: Collection[str]) -> dict[str, float]:
        """Return the stated limits by parameter of a drive node, for those of its parameters that are in ``keys``."""
        limits = {name: getattr(self, name) for name in _NODE_LIMITS if name in keys}
        return {name: value for name, value in limits.items() if value is not None}


class DriveConfig(Config):
    """Base of the configurations of drives; a robot's file states one of them under ``drive``.

    The names of its keys are those of the parameters of drive and odometry nodes.
    """

    @property
    def wheel_joints(self) -> tuple[str, ...]:
        """Names of the joints that take velocities."""
        return ()

    @property
    def steering_joints(self) -> tuple[str, ...]:
        """Names of the joints that take positions."""
        return ()

    @property
    def base_motion(self) -> BaseMotion | None:
        """Which velocities the body itself takes; None where the wheels move it."""
        return None

    @property
    def min_turning_radius(self) -> float:
        """Radius of the tightest curve of the middle of the unsteered axle [m]; 0: the base rotates in place."""
        return 0.0

    def node_parameters(self, keys: Collection[str]) -> dict[str, Any]:
        """Return the values by parameter of a drive or odometry node, for those of its parameters in ``keys``."""
        return {key: value for key, value in self.values().items() if key in keys and key != "type"}


_TRACK_DOC = "Distance between the middles of left and right wheels."


class DifferentialDriveConfig(DifferentialDrive, DriveConfig):
    """Wheels on two driven sides: differential drive or skid steering."""

    type: Literal["differential"] = parameter(doc="Type of the drive.")
    left_joints: tuple[str, ...] = parameter(doc="Joints of the wheels on the left side.")
    right_joints: tuple[str, ...] = parameter(doc="Joints of the wheels on the right side.")
    wheel_radius: float = required_parameter(DifferentialDrive, "wheel_radius", doc="Nominal radius of the wheels.")
    track: float = required_parameter(DifferentialDrive, "track", doc=_TRACK_DOC)

    @property
    def wheel_joints(self) -> tuple[str, ...]:
        """Names of the wheels' joints, left ones first."""
        return (*self.left_joints, *self.right_joints)


class MecanumDriveConfig(MecanumDrive, DriveConfig):
    """Four driven mecanum wheels."""

    type: Literal["mecanum"] = parameter(doc="Type of the drive.")
    joints: tuple[str, ...] = parameter(doc="Joints of the wheels: front left, front right, rear left, rear right.")
    wheel_radius: float = required_parameter(MecanumDrive, "wheel_radius", doc="Radius of the wheels.")
    wheelbase: float = required_parameter(MecanumDrive, "wheelbase")
    track: float = required_parameter(MecanumDrive, "track", doc=_TRACK_DOC)
    has_rollers: bool = parameter(
        True, doc="The description models the wheels' rollers; false: the body is moved in the plane beside the wheels."
    )

    def validate(self) -> None:
        """Check that there are four wheels."""
        if len(self.joints) != 4:
            raise ConfigError(f"{len(self.joints)} joints", location="joints", valid="four wheels")

    @property
    def wheel_joints(self) -> tuple[str, ...]:
        """Names of the wheels' joints."""
        return self.joints

    @property
    def base_motion(self) -> BaseMotion | None:
        """In the plane where the rollers are not modelled."""
        return None if self.has_rollers else "planar"


class AckermannDriveConfig(AckermannDrive, DriveConfig):
    """A car: steered wheels, whose axes meet with the unsteered axle in one point."""

    type: Literal["ackermann"] = parameter(doc="Type of the drive.")
    left_joints: tuple[str, ...] = parameter((), doc="Joints of driven left wheels that do not steer.")
    right_joints: tuple[str, ...] = parameter((), doc="Joints of driven right wheels that do not steer.")
    left_steered_joints: tuple[str, ...] = parameter((), doc="Joints of driven left wheels that steer.")
    right_steered_joints: tuple[str, ...] = parameter((), doc="Joints of driven right wheels that steer.")
    left_steering_joints: tuple[str, ...] = parameter(doc="Joints that steer wheels on the left side.")
    right_steering_joints: tuple[str, ...] = parameter(doc="Joints that steer wheels on the right side.")
    wheel_radius: float = required_parameter(AckermannDrive, "wheel_radius")
    wheelbase: float = required_parameter(
        AckermannDrive, "wheelbase", doc="Distance from the unsteered to the steered axle; negative: that is behind."
    )
    track: float = required_parameter(AckermannDrive, "track", doc=_TRACK_DOC)
    kingpin_width: float = required_parameter(
        AckermannDrive, "kingpin_width", doc="Distance between the axes about which the steered wheels turn."
    )
    steering_rate: float = parameter(
        2.0, unit="rad/s", low=1e-3, high=1e3,
        doc="Largest rate of the steering angle of a wheel midway between the two.",
    )  # fmt: skip
    axle_x: float = parameter(
        0.0, unit="m", low=-50.0, high=50.0, doc="Position of the unsteered axle ahead of the base frame."
    )

    @property
    def wheel_joints(self) -> tuple[str, ...]:
        """Names of the driven wheels' joints."""
        return (*self.left_joints, *self.right_joints, *self.left_steered_joints, *self.right_steered_joints)

    @property
    def min_turning_radius(self) -> float:
        """Radius of the curve at the steering limit [m]."""
        return 1.0 / self.max_curvature

    @property
    def steering_joints(self) -> tuple[str, ...]:
        """Names of the steering joints, left ones first."""
        return (*self.left_steering_joints, *self.right_steering_joints)


class PlanarBaseConfig(DriveConfig):
    """A body that takes velocities in the plane; for drives whose wheels are not simulated."""

    type: Literal["planar"] = parameter(doc="Type of the drive.")

    @property
    def base_motion(self) -> BaseMotion | None:
        """Always "planar"."""
        return "planar"


class FreeBaseConfig(DriveConfig):
    """A body that takes all six velocities, such as a drone."""

    type: Literal["free"] = parameter(doc="Type of the drive.")

    @property
    def base_motion(self) -> BaseMotion | None:
        """Always "free"."""
        return "free"


AnyDriveConfig = DifferentialDriveConfig | MecanumDriveConfig | AckermannDriveConfig | PlanarBaseConfig | FreeBaseConfig
"""What a robot's file may state under ``drive``; its ``type`` says which."""
