"""Rays through trees of triangles against every triangle tried by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.harness.models import IDENTITY, make_pose, make_world

from roboyard.description.model import Collision, Link, Mesh, Model, PlacedModel
from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.physics.compiled_world import GeomGroup
from roboyard.sensors.lidar import Lidar
from roboyard.sensors.mesh_bvh import MeshBvh, Ray, build_bvh, cast_ray, make_traversal_stack
from roboyard.simulation import Simulation

Array = NDArray[np.float64]


def cast_ray_by_hand(corners: Array, start: Array, direction: Array, reach: float) -> float:
    """Each triangle by itself: a + s (b - a) + t (c - a) = start + x way, solved by Cramer's rule."""
    a, b, c = np.moveaxis(corners, 1, 0)
    columns = b - a, c - a, np.broadcast_to(-direction, a.shape)

    def det(p: Array, q: Array, r: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", p, np.cross(q, r)))

    determinant, right = det(*columns), start - a
    with np.errstate(divide="ignore", invalid="ignore"):
        s = det(right, columns[1], columns[2]) / determinant
        t = det(columns[0], right, columns[2]) / determinant
        x = det(columns[0], columns[1], right) / determinant
    met = (np.abs(determinant) > 1e-12) & (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0) & (x >= 0.0) & (x <= reach)
    return float(np.min(x[met], initial=np.inf))


def make_bvh(corners: Array) -> MeshBvh:
    return MeshBvh(np.zeros(1, np.int64), *build_bvh(corners), make_traversal_stack())


@given(st.integers(1, 60), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 3.0, 100.0]))
@settings(max_examples=40, deadline=None)
def test_nearest_triangle_agrees_with_brute_force(count: int, seed: int, reach: float) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-2.0, 2.0, (count, 1, 3)) + rng.normal(0.0, 0.7, (count, 3, 3))
    bvh = make_bvh(corners)
    for _ in range(10):
        start, direction = rng.uniform(-3.0, 3.0, 3), rng.normal(0.0, 1.0, 3)
        if rng.random() < 0.3:
            direction[rng.integers(3)] = 0.0
        direction /= np.linalg.norm(direction)
        found = cast_ray(0, bvh, Ray(*start, *direction), reach)
        assert found == pytest.approx(cast_ray_by_hand(corners, start, direction, reach), abs=1e-9)


def test_no_beam_passes_between_triangles() -> None:
    """From inside of a closed mesh every beam meets something, also those that meet its edges and corners."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=3, radius=2.0)
    bvh = make_bvh(np.asarray(ball.triangles, float))
    edges = np.asarray(ball.vertices[ball.edges_unique], float)
    for direction in np.concatenate([ball.vertices, edges.mean(axis=1), 0.3 * edges[:, 0] + 0.7 * edges[:, 1]]):
        direction = direction / np.linalg.norm(direction)
        assert 1.9 < cast_ray(0, bvh, Ray(0.0, 0.0, 0.0, *direction), 10.0) < 2.0 + 1e-9


def test_lidar_sees_the_visual_mesh_not_its_collision_parts(tmp_path) -> None:
    """A bumpy ball: contacts have convex plates for its triangles, beams the triangles themselves."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=3)
    ball.vertices *= 1.0 + 0.1 * np.sin(9.0 * ball.vertices[:, :1]) * np.cos(7.0 * ball.vertices[:, 1:2])
    file = tmp_path / "ball.stl"
    ball.export(file)
    link = Link("link", IDENTITY, collisions=(Collision("c", Mesh(file.name, file), IDENTITY),))
    spec = LidarSpec(samples=31, angle_min=-0.35, angle_max=0.35, vertical_samples=3, vertical_angle_min=-0.2,
                     vertical_angle_max=0.2, range_max=10.0)  # fmt: skip
    sensor = Sensor("l", "lidar", "stand", IDENTITY, 10.0, "s", "stand", spec)
    stand = Model("post", (Link("stand", IDENTITY),), sensors=(sensor,), static=True)
    sim = Simulation(make_world(PlacedModel("ball", Model("ball", (link,), static=True), make_pose(3.0))))
    sim.add(stand, "post")
    lidar = sim.sensors("post")[0]
    assert isinstance(lidar, Lidar)
    found = lidar.cast()
    triangles = np.asarray(ball.triangles, float) + np.array((3.0, 0.0, 0.0))
    truth = [cast_ray_by_hand(triangles, np.zeros(3), direction, 10.0) for direction in lidar.beams.directions]
    np.testing.assert_allclose(found, truth, atol=1e-5)  # the file and the engine have single precision
    assert np.isfinite(found).sum() > 60
    assert (sim.world.model.geom_group == GeomGroup.INVISIBLE_COLLISION).sum() > 100
