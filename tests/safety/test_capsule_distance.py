"""Capsules of robots and people: they hold the shapes, and the nearest are found with their speeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import Box, Capsule, Cone, Cylinder, Ellipsoid, Mesh, Plane, Sphere
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.kinematics.chain_kernels import compute_frame_twists, compute_frames
from roboyard.safety.collaborative.capsule_distance import closest_segment_parameters, compute_capsule_distances
from roboyard.safety.collaborative.capsules import LinkCapsules, PersonCapsules, fit_capsule, transform_ends

GROUPS = load_joint_groups("iisy")
CHAIN = GROUPS.chain("arm")
CAPSULES = LinkCapsules.from_model(GROUPS.model, CHAIN)
LENGTHS = st.floats(0.01, 2.0)
POINTS = st.lists(st.floats(-2.0, 2.0), min_size=12, max_size=12).map(lambda v: np.reshape(v, (4, 3)))


def distances_to_segment(points: np.ndarray, ends: np.ndarray) -> np.ndarray:
    along = ends[1] - ends[0]
    fraction = np.clip((points - ends[0]) @ along / max(along @ along, 1e-18), 0.0, 1.0)
    return np.linalg.norm(points - ends[0] - fraction[:, None] * along, axis=1)


def sample_surface(shape: object, rng: np.random.Generator) -> np.ndarray:
    """Points of a shape."""
    unit = rng.normal(size=(500, 3))
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    angle, height = rng.uniform(0.0, 2.0 * math.pi, 500), rng.uniform(-0.5, 0.5, 500)
    match shape:
        case Box(size):
            return rng.choice([-0.5, 0.5], (500, 3)) * size
        case Sphere(radius):
            return unit * radius
        case Ellipsoid(radii):
            return unit * radii
        case Cylinder(radius, length):
            return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), length * height])
        case Cone(radius, length):
            wide = radius * (0.5 - height)
            return np.column_stack([wide * np.cos(angle), wide * np.sin(angle), length * height])
        case Capsule(radius, length):
            return unit * radius + np.array([0.0, 0.0, 1.0]) * (length * height)[:, None]
    raise AssertionError(shape)


SHAPES = st.one_of(
    st.builds(lambda *s: Box(s), LENGTHS, LENGTHS, LENGTHS), st.builds(Sphere, LENGTHS),
    st.builds(lambda *s: Ellipsoid(s), LENGTHS, LENGTHS, LENGTHS), st.builds(Cylinder, LENGTHS, LENGTHS),
    st.builds(Cone, LENGTHS, LENGTHS), st.builds(Capsule, LENGTHS, LENGTHS),
)  # fmt: skip


@given(SHAPES)
def test_capsule_contains_its_shape(shape) -> None:
    ends, radius = fit_capsule(shape)
    assert distances_to_segment(sample_surface(shape, np.random.default_rng(0)), ends).max() <= radius + 1e-9


def test_capsules_contain_every_link_in_any_position() -> None:
    rng = np.random.default_rng(1)
    for q in CHAIN.sample_positions(rng, 5):
        poses, frames = CHAIN.link_poses(q), CHAIN.frames(q)
        for link in GROUPS.model.links:
            capsules = [i for i, name in enumerate(CAPSULES.links) if name == link.name]
            for collision in link.collisions:
                T = poses[link.name] @ collision.T_link_geom.matrix()
                points = sample_surface(collision.geometry, rng) @ T[:3, :3].T + T[:3, 3]
                is_inside = np.zeros(len(points), dtype=bool)
                for i in capsules:
                    F = frames[CAPSULES.frame_indices[i]]
                    ends = CAPSULES.ends[i] @ F[:3, :3].T + F[:3, 3]
                    is_inside |= distances_to_segment(points, ends) <= CAPSULES.radii[i] + 1e-9
                assert is_inside.all(), link.name


def test_planes_and_missing_meshes_have_no_capsule() -> None:
    with pytest.raises(DescriptionError, match="plane has no capsule"):
        fit_capsule(Plane())
    with pytest.raises(DescriptionError):
        fit_capsule(Mesh("gone.stl", None))


@given(POINTS)
@example(np.reshape([6e-8] + [0.0] * 11, (4, 3)))
def test_segment_distance_is_the_minimum(points) -> None:
    a, b, parameters = points[:2], points[2:], np.zeros(2)
    closest_segment_parameters(a, b, parameters)
    assert (parameters >= 0.0).all()
    assert (parameters <= 1.0).all()
    found = np.linalg.norm(a[0] + parameters[0] * (a[1] - a[0]) - b[0] - parameters[1] * (b[1] - b[0]))
    steps = np.linspace(0.0, 1.0, 201)
    sampled_distances = distances_to_segment(a[0] + steps[:, None] * (a[1] - a[0]), b)
    assert found <= sampled_distances.min() + 1e-9
    assert found >= sampled_distances.min() - np.linalg.norm(a[1] - a[0]) / 400.0 - 1e-9


@pytest.mark.parametrize("power", range(1, 16))
def test_crossing_segments_meet_at_any_angle(power: int) -> None:
    rng, parameters = np.random.default_rng(power), np.zeros(2)
    for _ in range(100):
        along, across, crossing = rng.normal(size=(3, 3))
        other = along + 10.0**-power * across
        a, b = crossing + np.outer((-0.3, 0.7), along), crossing + np.outer((-0.6, 0.2), other)
        closest_segment_parameters(a, b, parameters)
        assert np.linalg.norm(a[0] + parameters[0] * (a[1] - a[0]) - b[0] - parameters[1] * (b[1] - b[0])) < 1e-12


def test_frame_velocities_agree_with_finite_differences() -> None:
    rng, h = np.random.default_rng(2), 1e-6
    for q, rates in zip(CHAIN.sample_positions(rng, 10), rng.normal(size=(10, CHAIN.dof)), strict=True):
        frames, after, twists = (np.empty((7, 4, 4)), np.empty((7, 4, 4)), np.empty((7, 6)))
        compute_frames(CHAIN.arrays, q, frames)
        compute_frames(CHAIN.arrays, q + h * rates, after)
        compute_frame_twists(CHAIN.arrays, frames, rates, twists)
        assert twists[:, :3] == pytest.approx((after - frames)[:, :3, 3] / h, abs=1e-4)
        for T, T_after, twist in zip(frames, after, twists, strict=True):
            angular_velocity = (T_after[:3, :3] - T[:3, :3]) / h @ T[:3, :3].T
            assert twist[3:] == pytest.approx(
                [angular_velocity[2, 1], angular_velocity[0, 2], angular_velocity[1, 0]], abs=1e-4
            )


def test_gap_shrinks_at_most_at_the_directed_speed() -> None:
    rng, h = np.random.default_rng(3), 1e-6
    ends, moving = rng.normal(0.0, 0.8, (12, 2, 3)), rng.normal(size=(12, 2, 3))
    names = ("anna",) * 12
    for q, rates in zip(CHAIN.sample_positions(rng, 10), rng.normal(size=(10, CHAIN.dof)), strict=True):
        now = compute_capsule_distances(
            CHAIN, CAPSULES, q[None], rates[None], PersonCapsules(names, names, ends, np.full(12, 0.05), moving)
        )
        later = PersonCapsules(names, names, ends + h * moving, np.full(12, 0.05), moving)
        after = compute_capsule_distances(CHAIN, CAPSULES, (q + h * rates)[None], rates[None], later)
        closing = (now.distance - after.distance) / h
        assert (closing <= now.robot_approach_speed + now.person_approach_speed + 1e-3).all()
        assert (now.robot_approach_speed <= now.max_speed[:, :, None] + 1e-9).all()
        assert now.max_speed[0, CAPSULES.frame_indices == 0] == pytest.approx(0.0)


def test_several_people_are_one_list() -> None:
    one = PersonCapsules(("a",), ("head",), np.zeros((1, 2, 3)), np.ones(1), np.zeros((1, 2, 3)))
    both = PersonCapsules.concatenate([one, one])
    assert both.people == ("a", "a")
    assert both.ends.shape == (2, 2, 3)
    assert PersonCapsules.concatenate([]).parts == ()
    T = SE3.from_xyz_rpy((1.0, 2.0, 3.0), (0.0, 0.0, math.pi / 2.0))
    assert transform_ends(np.array([[1.0, 0.0, 0.0]]), T)[0] == pytest.approx([1.0, 3.0, 3.0])


def test_walking_feet_take_the_speed_of_the_pelvis() -> None:
    parts, names = ("pelvis", "left_foot", "right_hand", "left_foot"), ("anna", "anna", "anna", "ben")
    moving = np.arange(24.0).reshape(4, 2, 3)
    people = PersonCapsules(names, parts, np.zeros((4, 2, 3)), np.ones(4), moving)
    found = people.with_pelvis_velocity().velocities
    assert found[1] == pytest.approx(np.tile(moving[0].mean(axis=0), (2, 1)))
    assert found[[0, 2, 3]] == pytest.approx(moving[[0, 2, 3]]), "of ben no pelvis is known"
