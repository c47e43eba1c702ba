"""Embree's packets and instances against a ray-triangle test written out in numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.geometry import SE3
from roboyard.rendering.embree import NO_HIT_DISTANCE, EmbreeScene


def intersect_by_hand(corners, origins, directions):
    """Möller and Trumbore: distance (rays, triangles), inf where they do not meet."""
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(directions[:, None], e2[None])
    determinant = (p * e1).sum(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = origins[:, None] - corners[None, :, 0]
        u = (s * p).sum(2) / determinant
        q = np.cross(s, np.broadcast_to(e1, s.shape))
        v = (directions[:, None] * q).sum(2) / determinant
        t = (q * e2).sum(2) / determinant
        met = (np.abs(determinant) > 1e-12) & (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
    return np.where(met, t, np.inf)


def random_rays(rng, count):
    origins = rng.uniform(-3, 3, (count, 3))
    directions = rng.normal(size=(count, 3))
    return origins, directions / np.linalg.norm(directions, axis=1, keepdims=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_embree_hits_agree_with_brute_force(seed, count):
    rng = np.random.default_rng(seed)
    pieces = [rng.uniform(-1, 1, (rng.integers(1, 6), 3, 3)) for _ in range(3)]
    poses = [SE3.from_xyz_rpy(rng.uniform(-1, 1, 3), rng.uniform(-3, 3, 3)) for _ in pieces]
    scene = EmbreeScene(pieces)
    scene.set_poses(np.array([p.rotation_matrix() for p in poses]), np.array([p.translation for p in poses]))
    world_triangles = np.concatenate([T @ c for T, c in zip(poses, pieces, strict=True)])
    origins, directions = random_rays(rng, count)
    expected = intersect_by_hand(world_triangles, origins, directions)
    hits, distances, barycentric = scene.cast_rays(origins.astype(np.float32), directions.astype(np.float32))
    is_unambiguous = (
        np.abs(np.sort(expected, axis=1)[:, 0] - distances) < 1e-3
    )  # a graze may go either way in single precision
    missed = np.isinf(expected.min(1))
    agree = np.where(missed, hits < 0, is_unambiguous & (hits >= 0))
    assert agree.mean() > 0.94
    for i in np.flatnonzero(agree & ~missed):
        a, b, c = world_triangles[hits[i]]
        point = a + barycentric[i, 0] * (b - a) + barycentric[i, 1] * (c - a)
        assert np.allclose(point, origins[i] + distances[i] * directions[i], atol=1e-3)
    scene.close()


def test_embree_occlusion_means_a_hit_within_range():
    rng = np.random.default_rng(3)
    scene = EmbreeScene([rng.uniform(-1, 1, (30, 3, 3))])
    origins, directions = (a.astype(np.float32) for a in random_rays(rng, 500))
    hits, distances, _ = scene.cast_rays(origins, directions)
    farther_distances = np.where(hits >= 0, distances * 1.01, 1.0).astype(np.float32)
    nearer_distances = (distances * 0.99).astype(np.float32)
    assert (scene.is_occluded(origins, directions, farther_distances) == (hits >= 0)).all()
    assert not scene.is_occluded(origins, directions, nearer_distances).any()
    assert (distances[hits < 0] == NO_HIT_DISTANCE).all()
    limited, reach, _ = scene.cast_rays(origins, directions, nearer_distances)
    assert (limited == -1).all()
    assert (reach == nearer_distances).all()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33])
def test_embree_takes_any_number_of_rays_and_empty_scenes(count):
    origins, directions = np.zeros((count, 3), np.float32), np.tile(np.float32([0, 0, 1]), (count, 1))
    wall = np.array([[[-9.0, -9, 2], [9, -9, 2], [0, 9, 2]]])
    assert np.allclose(EmbreeScene([wall]).cast_rays(origins, directions)[1], 2.0)
    empty = EmbreeScene([])
    empty.set_poses(np.zeros((0, 3, 3), np.float32), np.zeros((0, 3), np.float32))
    assert (empty.cast_rays(origins, directions)[0] == -1).all()


def test_embree_scene_can_be_closed_twice():
    scene = EmbreeScene([np.eye(3)[None]])
    scene.close()
    scene.close()
