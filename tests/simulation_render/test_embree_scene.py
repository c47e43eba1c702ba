"""Embree's packets and instances against a ray-triangle test written out in numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.geometry import SE3
from roboyard.simulation.render.embree import NOTHING, Meshes


def by_hand(corners, origins, directions):
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


def rays(rng, count):
    origins = rng.uniform(-3, 3, (count, 3))
    directions = rng.normal(size=(count, 3))
    return origins, directions / np.linalg.norm(directions, axis=1, keepdims=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_embree_hits_agree_with_brute_force(seed, count):
    rng = np.random.default_rng(seed)
    pieces = [rng.uniform(-1, 1, (rng.integers(1, 6), 3, 3)) for _ in range(3)]
    poses = [SE3.from_xyz_rpy(rng.uniform(-1, 1, 3), rng.uniform(-3, 3, 3)) for _ in pieces]
    meshes = Meshes(pieces)
    meshes.place(np.array([p.rotation_matrix() for p in poses]), np.array([p.translation for p in poses]))
    placed = np.concatenate([T @ c for T, c in zip(poses, pieces, strict=True)])
    origins, directions = rays(rng, count)
    expected = by_hand(placed, origins, directions)
    hits, distances, inside = meshes.nearest(origins.astype(np.float32), directions.astype(np.float32))
    sure = np.abs(np.sort(expected, axis=1)[:, 0] - distances) < 1e-3  # a graze may go either way in single precision
    missed = np.isinf(expected.min(1))
    agree = np.where(missed, hits < 0, sure & (hits >= 0))
    assert agree.mean() > 0.94
    for i in np.flatnonzero(agree & ~missed):
        a, b, c = placed[hits[i]]
        point = a + inside[i, 0] * (b - a) + inside[i, 1] * (c - a)
        assert np.allclose(point, origins[i] + distances[i] * directions[i], atol=1e-3)
    meshes.close()


def test_embree_occlusion_means_a_hit_within_range():
    rng = np.random.default_rng(3)
    meshes = Meshes([rng.uniform(-1, 1, (30, 3, 3))])
    origins, directions = (a.astype(np.float32) for a in rays(rng, 500))
    hits, distances, _ = meshes.nearest(origins, directions)
    beyond = np.where(hits >= 0, distances * 1.01, 1.0).astype(np.float32)
    before = (distances * 0.99).astype(np.float32)
    assert (meshes.blocked(origins, directions, beyond) == (hits >= 0)).all()
    assert not meshes.blocked(origins, directions, before).any()
    assert (distances[hits < 0] == NOTHING).all()
    limited, reach, _ = meshes.nearest(origins, directions, before)
    assert (limited == -1).all()
    assert (reach == before).all()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33])
def test_embree_takes_any_number_of_rays_and_empty_scenes(count):
    origins, directions = np.zeros((count, 3), np.float32), np.tile(np.float32([0, 0, 1]), (count, 1))
    wall = np.array([[[-9.0, -9, 2], [9, -9, 2], [0, 9, 2]]])
    assert np.allclose(Meshes([wall]).nearest(origins, directions)[1], 2.0)
    empty = Meshes([])
    empty.place(np.zeros((0, 3, 3), np.float32), np.zeros((0, 3), np.float32))
    assert (empty.nearest(origins, directions)[0] == -1).all()


def test_embree_scene_can_be_closed_twice():
    meshes = Meshes([np.eye(3)[None]])
    meshes.close()
    meshes.close()
