"""Strategies draw what they promise."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.messages import all_wire_types, messages, planar_poses, poses, star_polygons

from roboyard.geometry import SE2, SE3, polygons
from roboyard.messages import deserialize, serialize


@given(st.sampled_from(all_wire_types()).flatmap(lambda name: messages(name).map(lambda m: (name, m))))
def test_messages_are_of_their_type_and_survive_the_wire(drawn: tuple[str, object]) -> None:
    name, message = drawn
    assert message.__msgtype__ == name  # type: ignore[attr-defined]
    assert serialize(deserialize(serialize(message), name)) == serialize(message)


@given(planar_poses(2.0), poses(2.0))
def test_poses_lie_within_their_limit(flat: SE2, pose: SE3) -> None:
    assert max(abs(flat.x), abs(flat.y), *np.abs(pose.translation)) <= 2.0
    assert abs(flat.theta) <= math.pi


@given(star_polygons(radius=(0.2, 1.0)))
def test_star_polygons_are_simple_and_hold_the_origin(corners: np.ndarray) -> None:
    assert polygons.is_simple(corners)
    assert polygons.signed_area(corners) > 0.0
    assert polygons.contains(corners, np.zeros((1, 2)))[0]
    assert np.hypot(*corners.T).max() <= 1.0 + 1e-9
