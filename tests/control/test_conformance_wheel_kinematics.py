"""Laws of all wheel kinematics: forward kinematics undoes inverse kinematics, and every wheel rolls about the
instantaneous center of rotation.

The second law is an independent method: it uses the positions and directions of the wheels and rigid-body velocities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import AckermannDrive, DifferentialDrive, MecanumDrive, PlanarTwist, WheelKinematics
from roboyard.control.wheel_kinematics import AckermannWheelValues, ackermann_twist


class RollingWheel(NamedTuple):
    """A wheel in the base frame: position of its contact, rolling direction, free direction and rim speed.

    The ground may move the contact along the free direction only: sideways for skid steering, along the roller's axis
    for a mecanum wheel; None: not at all.
    """

    x: float
    y: float
    heading: float
    free_direction: float | None
    rim_speed: float

    def slip(self, twist: PlanarTwist) -> float:
        """Speed at which the contact slips over the ground [m/s], by rigid-body kinematics."""
        velocity = np.array([twist.vx - twist.wz * self.y, twist.vy + twist.wz * self.x])
        slip = velocity - self.rim_speed * np.array([math.cos(self.heading), math.sin(self.heading)])
        if self.free_direction is None:
            return float(np.linalg.norm(slip))
        across = np.array([-math.sin(self.free_direction), math.cos(self.free_direction)])
        return abs(float(across @ slip))


class DriveCase(NamedTuple):
    """A drive with its two directions of kinematics and its wheels."""

    possible: Callable[[PlanarTwist], PlanarTwist]
    forward_of_inverse: Callable[[PlanarTwist], PlanarTwist]
    wheels: Callable[[PlanarTwist], Iterator[RollingWheel]]


def differential(rng: np.random.Generator) -> DriveCase:
    drive = DifferentialDrive(
        wheel_radius=rng.uniform(0.05, 0.4), track=rng.uniform(0.2, 2.0), axle_x=rng.uniform(-1, 1)
    )

    def wheels(twist: PlanarTwist) -> Iterator[RollingWheel]:
        for side, speed in zip((1.0, -1.0), drive.wheel_speeds(twist).tolist(), strict=True):
            yield RollingWheel(drive.axle_x, side * drive.track / 2.0, 0.0, None, speed * drive.wheel_radius)

    def possible(twist: PlanarTwist) -> PlanarTwist:
        return PlanarTwist(twist.vx, -twist.wz * drive.axle_x, twist.wz)

    return DriveCase(possible, lambda twist: drive.body_twist(drive.wheel_speeds(twist)), wheels)


def mecanum(rng: np.random.Generator) -> DriveCase:
    drive = MecanumDrive(
        wheel_radius=rng.uniform(0.05, 0.4),
        wheelbase=rng.uniform(0.2, 2.0),
        track=rng.uniform(0.2, 2.0),
        axle_x=rng.uniform(-1, 1),
    )

    def wheels(twist: PlanarTwist) -> Iterator[RollingWheel]:
        corners = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
        for (front, left), speed in zip(corners, drive.wheel_speeds(twist).tolist(), strict=True):
            x, y = drive.axle_x + front * drive.wheelbase / 2.0, left * drive.track / 2.0
            # a roller on the ground rolls freely across its axis, which points towards the middle of the other axle
            roller_axis = -front * left * math.pi / 4.0
            yield RollingWheel(x, y, 0.0, roller_axis + math.pi / 2.0, speed * drive.wheel_radius)

    return DriveCase(lambda twist: twist, lambda twist: drive.body_twist(drive.wheel_speeds(twist)), wheels)


def ackermann(rng: np.random.Generator) -> DriveCase:
    track = rng.uniform(0.6, 2.0)
    car = AckermannDrive(
        wheel_radius=rng.uniform(0.05, 0.4),
        wheelbase=rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 3.0),
        track=track,
        kingpin_width=track * rng.uniform(0.5, 1.0),
        steering_limit=rng.uniform(0.2, 0.8),
    )

    def possible(twist: PlanarTwist) -> PlanarTwist:
        return ackermann_twist(twist.vx, car.curvature(twist), 0.0)

    def forward_of_inverse(twist: PlanarTwist) -> PlanarTwist:
        steering, curvature = car.steering(car.curvature(twist)), car.curvature(twist)
        measured = car.curvature_from_steering(*steering)
        speed = car.travel(AckermannWheelValues(*car.wheel_speeds(twist.vx, curvature)), measured)
        return ackermann_twist(speed, measured, 0.0)

    def wheels(twist: PlanarTwist) -> Iterator[RollingWheel]:
        curvature = car.curvature(twist)
        left, right, left_steered, right_steered = (
            speed * car.wheel_radius for speed in car.wheel_speeds(twist.vx, curvature)
        )
        yield RollingWheel(0.0, car.track / 2.0, 0.0, None, left)
        yield RollingWheel(0.0, -car.track / 2.0, 0.0, None, right)
        offset = (car.track - car.kingpin_width) / 2.0  # from the kingpin outwards along the wheel's axis
        for side, angle, speed in zip((1.0, -1.0), car.steering(curvature), (left_steered, right_steered), strict=True):
            assert abs(angle) <= car.steering_limit + 1e-9
            x = car.wheelbase - side * offset * math.sin(angle)
            y = side * car.kingpin_width / 2.0 + side * offset * math.cos(angle)
            yield RollingWheel(x, y, angle, None, speed)

    return DriveCase(possible, forward_of_inverse, wheels)


each_drive = pytest.mark.parametrize("make_drive", [differential, mecanum, ackermann])
seeds = st.integers(0, 2**32 - 1)


def drive_and_twist(make_drive: Callable[[np.random.Generator], DriveCase], seed: int) -> tuple[DriveCase, PlanarTwist]:
    rng = np.random.default_rng(seed)
    drive = make_drive(rng)
    return drive, PlanarTwist(*rng.uniform(-2.0, 2.0, 2), rng.uniform(-1.5, 1.5))


@each_drive
@given(seed=seeds)
def test_forward_kinematics_undoes_inverse_kinematics(make_drive, seed: int) -> None:
    drive, twist = drive_and_twist(make_drive, seed)
    assert drive.forward_of_inverse(twist) == pytest.approx(drive.possible(twist), abs=1e-9)


@each_drive
@given(seed=seeds)
def test_every_wheel_rolls_around_the_instantaneous_center_of_rotation(make_drive, seed: int) -> None:
    drive, twist = drive_and_twist(make_drive, seed)
    possible = drive.possible(twist)
    assert max(wheel.slip(possible) for wheel in drive.wheels(twist)) == pytest.approx(0.0, abs=1e-9)


@each_drive
@given(seed=seeds)
def test_standstill_maps_to_standstill(make_drive, seed: int) -> None:
    drive, _ = drive_and_twist(make_drive, seed)
    assert drive.forward_of_inverse(PlanarTwist()) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("drive", [DifferentialDrive(), MecanumDrive()], ids=lambda drive: type(drive).__name__)
@given(seed=seeds, factor=st.floats(-3.0, 3.0))
def test_linear_kinematics_fulfill_the_protocol(drive: WheelKinematics, seed: int, factor: float) -> None:
    speeds = np.random.default_rng(seed).uniform(-5.0, 5.0, len(drive.wheels))
    scaled = [factor * value for value in drive.body_twist(speeds)]
    assert drive.body_twist(factor * speeds) == pytest.approx(scaled, abs=1e-9)
    assert drive.wheel_speeds(drive.body_twist(speeds)).shape == speeds.shape
