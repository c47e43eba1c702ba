"""Laws of wheel kinematics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import DifferentialDrive, PlanarTwist, WheelKinematics, scale_to_wheel_limit
from roboyard.errors import ConfigError

speeds = st.floats(-5.0, 5.0)
drives = st.builds(
    DifferentialDrive,
    wheel_radius=st.floats(0.02, 0.5),
    track=st.floats(0.1, 2.0),
    slip_factor=st.floats(1.0, 3.0),
    left_radius_scale=st.floats(0.9, 1.1),
    right_radius_scale=st.floats(0.9, 1.1),
    axle_x=st.floats(-0.5, 0.5),
)


@given(drives, speeds, speeds)
def test_differential_forward_undoes_inverse(drive: DifferentialDrive, vx: float, wz: float) -> None:
    twist = drive.body_twist(drive.wheel_speeds(PlanarTwist(vx, 0.0, wz)))
    assert twist.vx == pytest.approx(vx, abs=1e-12)
    assert twist.wz == pytest.approx(wz, abs=1e-12)
    assert twist.vy == pytest.approx(-wz * drive.axle_x, abs=1e-12)


@given(drives, speeds, speeds)
def test_differential_inverse_undoes_forward(drive: DifferentialDrive, left: float, right: float) -> None:
    wheel_speeds = drive.wheel_speeds(drive.body_twist(np.array([left, right])))
    np.testing.assert_allclose(wheel_speeds, [left, right], atol=1e-12)


@given(drives, speeds, speeds)
def test_wheel_speeds_are_rigid_body_velocities(drive: DifferentialDrive, vx: float, wz: float) -> None:
    """Independent: each side's rim speed is the velocity of its (slip-widened) wheel point on the rotating body."""
    half = drive.slip_factor * drive.track / 2.0
    for y, speed, scale in zip(
        (half, -half),
        drive.wheel_speeds(PlanarTwist(vx, 0.0, wz)),
        (drive.left_radius_scale, drive.right_radius_scale),
        strict=True,
    ):
        velocity = np.array([vx, 0.0, 0.0]) + np.cross([0.0, 0.0, wz], [0.0, y, 0.0])
        assert speed * drive.wheel_radius * scale == pytest.approx(velocity[0], abs=1e-12)


def test_wheel_speeds_agree_with_the_thesis() -> None:
    """V_lin = v/r, V_rot = ω·k·c/(2r); k = 1.26402, the rover's numbers."""
    r, c, k, v, w = 0.1, 0.35, 1.26402, 0.7, -0.9
    left, right = DifferentialDrive(wheel_radius=r, track=c, slip_factor=k).wheel_speeds(PlanarTwist(v, 0.0, w))
    assert left == pytest.approx(v / r - w * k * c / (2 * r))
    assert right == pytest.approx(v / r + w * k * c / (2 * r))


@given(drives, speeds, speeds, st.floats(0.1, 50.0))
def test_wheel_speed_limit_keeps_the_arc(drive: DifferentialDrive, vx: float, wz: float, limit: float) -> None:
    unlimited = drive.wheel_speeds(PlanarTwist(vx, 0.0, wz))
    slowed = scale_to_wheel_limit(unlimited, limit)
    assert np.max(np.abs(slowed)) <= limit * (1 + 1e-12)
    before, after = drive.body_twist(unlimited), drive.body_twist(slowed)
    assert before.vx * after.wz == pytest.approx(after.vx * before.wz, abs=1e-9)
    assert before.vx * after.vx >= -1e-12


@pytest.mark.parametrize("bad", [0.0, -0.1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["wheel_radius", "track", "slip_factor", "left_radius_scale"])
def test_invalid_drive_parameters_are_refused(name: str, bad: float) -> None:
    with pytest.raises(ConfigError, match=name):
        DifferentialDrive(**({"wheel_radius": 0.1, "track": 0.35} | {name: bad}))


def test_differential_drive_fulfills_the_protocol() -> None:
    drive: WheelKinematics = DifferentialDrive(wheel_radius=0.1, track=0.35)
    assert len(drive.wheel_speeds(PlanarTwist())) == len(drive.wheels)
