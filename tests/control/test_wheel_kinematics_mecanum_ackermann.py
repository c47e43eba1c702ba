"""Laws of the mecanum and Ackermann kinematics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import AckermannDrive, MecanumDrive, PlanarTwist
from roboyard.control.wheel_kinematics import AckermannWheelValues
from roboyard.errors import ConfigError

SPEED = st.floats(-3.0, 3.0)
LENGTH = st.floats(0.05, 3.0)
MECANUM = st.builds(MecanumDrive, wheel_radius=LENGTH, wheelbase=LENGTH, track=LENGTH, axle_x=st.floats(-1.0, 1.0))
CARS = st.builds(
    AckermannDrive,
    wheel_radius=LENGTH,
    wheelbase=LENGTH,
    track=LENGTH,
    kingpin_width=LENGTH,
    steering_limit=st.floats(0.1, 1.2),
)


@given(MECANUM, SPEED, SPEED, SPEED)
def test_mecanum_backward_undoes_forward(drive: MecanumDrive, vx: float, vy: float, wz: float) -> None:
    assert drive.body_twist(drive.wheel_speeds(PlanarTwist(vx, vy, wz))) == pytest.approx((vx, vy, wz), abs=1e-9)


@given(MECANUM, st.lists(SPEED, min_size=4, max_size=4))
def test_mecanum_backward_is_least_squares(drive: MecanumDrive, speeds: list[float]) -> None:
    """What is left over cannot be seen in the plane: forward of backward is numpy's projection."""
    wheels = np.array(speeds)
    columns = [drive.wheel_speeds(PlanarTwist(*axis)) for axis in np.eye(3)]
    fitted, *_ = np.linalg.lstsq(np.array(columns).T, wheels, rcond=None)
    assert drive.body_twist(wheels) == pytest.approx(fitted, abs=1e-9)


def test_mecanum_wheels_turn_as_their_rollers_allow() -> None:
    """Independent: along the roller's axle the contact point moves as the wheel turns."""
    drive = MecanumDrive(wheel_radius=0.3, wheelbase=1.5, track=1.2, axle_x=0.1)
    twist = PlanarTwist(0.4, -0.3, 0.7)
    wheel_positions = [(0.85, 0.6, 1), (0.85, -0.6, -1), (-0.65, 0.6, -1), (-0.65, -0.6, 1)]
    for speed, (x, y, handed) in zip(drive.wheel_speeds(twist), wheel_positions, strict=True):
        velocity = np.array([twist.vx - twist.wz * y, twist.vy + twist.wz * x])
        roller = np.array([1.0, -handed]) / math.sqrt(2.0)  # the roller's axle: along it the contact cannot slip
        assert roller @ velocity == pytest.approx(roller[0] * speed * 0.3)


@given(CARS, st.floats(-1.0, 1.0))
def test_ackermann_wheel_axes_meet_in_one_point(car: AckermannDrive, fraction: float) -> None:
    curvature = fraction * car.max_curvature
    left, right = car.steering(curvature)
    for angle, pin in ((left, 0.5), (right, -0.5)):
        # the centre (0, 1/κ) lies on the wheel's axis: seen from the kingpin it stands square to the wheel's heading
        along = car.wheelbase * math.cos(angle) * curvature
        across = (curvature * pin * car.kingpin_width - 1.0) * math.sin(angle)
        assert along + across == pytest.approx(0.0, abs=1e-9)


@given(CARS, st.floats(-1e3, 1e3), SPEED)
def test_ackermann_steering_keeps_its_limit(car: AckermannDrive, wz: float, vx: float) -> None:
    angles = car.steering(car.curvature(PlanarTwist(vx, 0.0, wz)))
    assert max(map(abs, angles)) <= car.steering_limit + 1e-9


@given(CARS, st.floats(-1.0, 1.0), SPEED)
def test_ackermann_backward_undoes_forward(car: AckermannDrive, fraction: float, speed: float) -> None:
    curvature = fraction * car.max_curvature
    assert car.curvature_from_steering(*car.steering(curvature)) == pytest.approx(curvature, abs=1e-9)
    wheel_speeds = car.wheel_speeds(speed, curvature)
    assert car.travel(wheel_speeds, curvature) == pytest.approx(speed, abs=1e-9)
    assert car.travel(AckermannWheelValues(math.nan, math.nan, *wheel_speeds[2:]), curvature) == pytest.approx(
        speed, abs=1e-6
    )


@given(CARS, st.floats(-0.9, 0.9), SPEED)
def test_steered_wheels_roll_as_fast_as_they_move(car: AckermannDrive, fraction: float, speed: float) -> None:
    curvature = fraction * car.max_curvature
    angular_velocity = speed * curvature
    wheel_speeds = car.wheel_speeds(speed, curvature)
    for angle, side, rolled in zip(car.steering(curvature), (1.0, -1.0), wheel_speeds[2:], strict=True):
        outside = 0.5 * (car.track - car.kingpin_width)
        x = car.wheelbase - side * outside * math.sin(angle)
        y = side * (0.5 * car.kingpin_width + outside * math.cos(angle))
        velocity = np.array([speed - angular_velocity * y, angular_velocity * x])
        heading = np.array([math.cos(angle), math.sin(angle)])
        assert heading @ velocity == pytest.approx(rolled * car.wheel_radius, abs=1e-9)
        assert heading[0] * velocity[1] - heading[1] * velocity[0] == pytest.approx(0.0, abs=1e-9)


def test_standing_ackermann_drive_steers_ready_to_turn() -> None:
    car = AckermannDrive(wheel_radius=0.3, wheelbase=1.0, track=1.2, kingpin_width=1.0)
    assert car.curvature(PlanarTwist(0.0, 0.0, -0.1)) == -car.max_curvature
    assert car.curvature(PlanarTwist()) == 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_invalid_drive_lengths_are_refused(bad: float) -> None:
    with pytest.raises(ConfigError):
        MecanumDrive(wheel_radius=bad, wheelbase=1.0, track=1.0)
    with pytest.raises(ConfigError):
        AckermannDrive(wheel_radius=0.3, wheelbase=1.0, track=bad, kingpin_width=1.0)
    with pytest.raises(ConfigError):
        AckermannDrive(wheel_radius=0.3, wheelbase=1.0, track=1.0, kingpin_width=1.0, steering_limit=2.0)
