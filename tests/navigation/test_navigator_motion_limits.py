"""Limits and footprint of the navigator follow from the robot's file; what it does not state is assumed aloud."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

from roboyard.control.drive_config import DriveLimits
from roboyard.errors import ConfigError
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.footprint import DEFAULT_RADIUS
from roboyard.navigation.navigator import VelocityLimits, resolve_motion_limits
from roboyard.navigation.navigator.motion_limits import padded_footprint
from roboyard.navigation.nodes import NavigatorNode

STATED = DriveLimits(
    speed=2.0,
    reverse_speed=0.7,
    lateral_speed=0.5,
    angular_speed=1.2,
    acceleration=1.5,
    angular_acceleration=3.0,
    min_speed=0.05,
    min_angular_speed=0.4,
)
SPEEDS = st.none() | st.floats(0.01, 5.0)


def test_stated_limits_are_taken_without_assumptions() -> None:
    limits, assumed = resolve_motion_limits(STATED)
    assert limits == MotionLimits(2.0, 0.7, 0.5, 1.2, 1.5, 3.0, min_speed=0.05, min_angular_speed=0.4)
    assert assumed == ()


def test_missing_reverse_speed_is_the_speed_and_missing_lateral_speed_is_none() -> None:
    limits, assumed = resolve_motion_limits(
        DriveLimits(speed=1.0, angular_speed=1.0, acceleration=1.0, angular_acceleration=1.0)
    )
    assert (limits.max_backward_speed, limits.max_lateral_speed, assumed) == (1.0, 0.0, ())


@given(SPEEDS, SPEEDS, SPEEDS, SPEEDS)
def test_configured_limits_never_exceed_those_of_the_drive(forward, backward, lateral, angular) -> None:
    selected = VelocityLimits(forward=forward, backward=backward, lateral=lateral, angular=angular)
    limits, assumed = resolve_motion_limits(STATED, selected)
    pairs = [
        (limits.max_forward_speed, forward, 2.0), (limits.max_backward_speed, backward, 0.7),
        (limits.max_lateral_speed, lateral, 0.5), (limits.max_angular_speed, angular, 1.2),
    ]  # fmt: skip
    assert all(found == min(stated, stated if requested is None else requested) for found, requested, stated in pairs)
    assert assumed == ()


def test_unstated_limits_are_listed_with_their_assumed_values() -> None:
    limits, assumed = resolve_motion_limits(None, VelocityLimits(angular=1.0, backward=0.0, acceleration=2.0))
    assert assumed == ("speed = 0.5 m/s", "angular_acceleration = 3.2 rad/s^2")
    assert (limits.max_backward_speed, limits.max_angular_speed) == (0.0, 1.0)


def test_padding_adds_to_each_side_of_the_stated_footprint() -> None:
    corners = ((0.3, 0.2), (-0.3, 0.2), (-0.3, -0.2), (0.3, -0.2))
    assert np.allclose(padded_footprint(corners, 0.02).corners, np.array(corners) + np.sign(corners) * 0.02)
    assert padded_footprint(None, 0.0).circumscribed_radius == pytest.approx(DEFAULT_RADIUS, rel=0.05)
    with pytest.raises(ConfigError, match="footprint"):
        padded_footprint(corners[:2], 0.0)


@pytest.mark.parametrize("is_stated", [False, True])
def test_navigator_warns_of_what_the_robot_file_does_not_state(is_stated: bool) -> None:
    corners = ((0.3, 0.2), (-0.3, 0.2), (-0.3, -0.2), (0.3, -0.2))
    node = NavigatorNode(drive_limits=STATED, footprint=corners) if is_stated else NavigatorNode()
    with BusHarness((node, "navigator")) as harness:
        harness.run_until(0.2)
        warnings = [entry.msg for entry in harness.published("/rosout").messages if "assumed" in entry.msg]
    assert len(warnings) == (0 if is_stated else 2)
    assert is_stated or ("speed = 0.5 m/s" in warnings[0] and "radius of 0.25 m" in warnings[1])
