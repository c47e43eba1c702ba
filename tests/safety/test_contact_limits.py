"""Limits of contact: the speed that keeps them does, and every region has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import UnknownNameError
from roboyard.people import PARTS, BodyDimensions, make_person_model
from roboyard.people.anthropometry import BODY_REGIONS
from roboyard.safety.collaborative.contact_limits import (
    CONTACT_LIMITS,
    contact_area,
    impact_speed,
    max_contact_speeds,
    region_limits,
)
from roboyard.simulation.validation.mechanics import simulate_impact

BODY = make_person_model(BodyDimensions.from_height(1.75, 75.0))


def test_every_region_of_a_body_has_limits() -> None:
    assert {region.name for sides in BODY_REGIONS.values() for region in sides} == set(CONTACT_LIMITS)
    for limits in CONTACT_LIMITS.values():
        assert limits.max_clamping_force <= limits.max_impact_force
    assert region_limits("left hand") == region_limits("hand") == CONTACT_LIMITS["hand"]
    with pytest.raises(UnknownNameError, match="skull, face"):
        region_limits("tail")
    with pytest.raises(UnknownNameError, match="tail"):
        max_contact_speeds(("tail",), [0.05], 5.0)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("front", [True, False])
def test_contact_at_allowed_speed_keeps_the_force_limit(part: str, front: bool) -> None:
    mass, radius = 8.0, 0.05
    speed = float(max_contact_speeds((part,), [radius], mass)[0, 0])
    hit = simulate_impact(BODY, part, front=front, mass=mass, speed=speed, timestep=0.001)
    limits = region_limits(hit.region)
    assert hit.measured_force <= 1.03 * limits.max_impact_force
    assert hit.measured_force / float(contact_area(radius)) <= 1.03 * limits.max_pressure


@given(st.floats(1.0, 500.0), st.floats(1e3, 2e5), st.floats(0.1, 50.0), st.floats(0.1, 80.0), st.floats(1.01, 3.0))
def test_allowed_speed_grows_with_softness_and_limits(force, stiffness, robot, person, more) -> None:
    speed = impact_speed(force, stiffness, robot, person)
    assert impact_speed(force * more, stiffness, robot, person) > speed
    assert impact_speed(force, stiffness * more, robot, person) < speed
    assert impact_speed(force, stiffness, robot * more, person) < speed
    # the energy of the meeting is what the spring holds
    reduced = robot * person / (robot + person)
    assert 0.5 * reduced * speed**2 == pytest.approx(0.5 * force**2 / stiffness)


def test_edges_must_be_slower_than_rounded_parts() -> None:
    speeds = max_contact_speeds(("left_hand", "head"), [0.002, 0.1], 8.0)
    assert (speeds[0] < speeds[1]).all()
    assert max_contact_speeds(("head",), [0.1], 8.0, limit_fraction=0.5)[0, 0] == pytest.approx(0.5 * speeds[1, 1])
