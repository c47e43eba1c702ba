"""Triangles of primitives against their formulas."""

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.rendering import geom_triangles as tri

size_strategy = st.floats(0.02, 3.0)


def volume(shape: tri.GeomTriangles) -> float:
    c = shape.corners
    return float(np.einsum("ij,ij->i", c[:, 0], np.cross(c[:, 1], c[:, 2])).sum() / 6)


def area(shape: tri.GeomTriangles) -> float:
    c = shape.corners
    return float(np.linalg.norm(np.cross(c[:, 1] - c[:, 0], c[:, 2] - c[:, 0]), axis=1).sum() / 2)


def edges_are_shared_in_pairs(shape: tri.GeomTriangles) -> bool:
    points = np.round(shape.corners / 1e-9).astype(np.int64)
    edges = {}
    for triangle in points.tolist():
        for k in range(3):
            edge = (tuple(triangle[k]), tuple(triangle[(k + 1) % 3]))
            edges[edge] = edges.get(edge, 0) + 1
    return all(count == 1 and edges.get((b, a)) == 1 for (a, b), count in edges.items())


@given(size_strategy, size_strategy, size_strategy)
def test_box_triangles_have_its_volume_and_area(x, y, z):
    shape = tri.box(np.array([x, y, z]))
    assert volume(shape) == pytest.approx(8 * x * y * z)
    assert area(shape) == pytest.approx(8 * (x * y + y * z + z * x))


@given(size_strategy, size_strategy)
def test_round_shapes_have_nearly_their_volume_and_never_more(radius, half):
    cases = [
        (tri.cylinder(radius, half), 2 * math.pi * radius**2 * half),
        (tri.capsule(radius, half), 2 * math.pi * radius**2 * half + 4 / 3 * math.pi * radius**3),
        (tri.ellipsoid(np.array([radius, half, radius])), 4 / 3 * math.pi * radius**2 * half),
    ]
    for shape, exact in cases:
        assert 0.9 * exact < volume(shape) < exact


@pytest.mark.parametrize(
    "shape",
    [tri.box(np.array([0.1, 0.2, 0.3])), tri.cylinder(0.3, 0.2), tri.capsule(0.1, 0.4), tri.ellipsoid(np.full(3, 0.5))],
    ids=["box", "cylinder", "capsule", "ellipsoid"],
)
def test_solids_are_closed_with_outward_normals(shape):
    assert edges_are_shared_in_pairs(shape)
    c = shape.corners
    faces = np.cross(c[:, 1] - c[:, 0], c[:, 2] - c[:, 0])
    assert (np.einsum("ij,ikj->ik", faces, shape.normals) > 0).all()
    assert np.allclose(np.linalg.norm(shape.normals, axis=2), 1.0)


@given(st.floats(1.0, 50.0), st.floats(1.0, 50.0))
def test_framed_ground_is_the_whole_rectangle(x, y):
    ground = tri.framed_rectangle(np.array([x, y]), np.array([-0.5, -0.4]), np.array([0.3, 0.6]))
    assert area(ground) == pytest.approx(4 * x * y)
    assert (ground.normals[..., 2] > 0.999).all()


def test_triangles_of_each_geom_lie_on_the_geom():
    model = mujoco.MjModel.from_xml_string("""
    <mujoco>
      <asset>
        <mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
        <hfield name="hill" nrow="3" ncol="4" size="1 2 0.5 0.1" elevation="0 0 0 0 0 1 1 0 0 0 0 0"/>
      </asset>
      <worldbody>
        <geom type="plane" size="2 3 1"/><geom type="box" size="1 2 3"/><geom type="sphere" size="1"/>
        <geom type="ellipsoid" size="1 2 3"/><geom type="cylinder" size="1 2"/><geom type="capsule" size="1 2"/>
        <geom type="mesh" mesh="tetra"/><geom type="hfield" hfield="hill"/>
      </worldbody>
    </mujoco>""")
    for geom in range(model.ngeom):
        shape = tri.geom_triangles(model, geom)
        low, high = shape.corners.min((0, 1)), shape.corners.max((0, 1))
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            assert np.allclose([low[:2], high[:2]], [[-2, -3], [2, 3]])
            continue
        center, half = np.split(model.geom_aabb[geom], 2)
        if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_HFIELD:  # whose box also holds the base below
            assert np.allclose(low, center - half, atol=0.05)
        assert np.allclose(high, center + half, atol=0.05)
