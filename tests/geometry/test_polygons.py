"""Polygon functions satisfy geometric laws and agree with independent methods."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, QhullError

from roboyard.errors import InputError
from roboyard.geometry import SE2, polygons

SEEDS = st.integers(0, 2**32 - 1)


def random_star(seed, count=9):
    """Return a simple polygon, counterclockwise around the origin."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, 2 * math.pi, count))
    assume(np.max(np.diff([*angles, angles[0] + 2 * math.pi])) < 3.0 and np.min(np.diff(angles)) > 1e-3)
    return rng.uniform(0.5, 2.0, (count, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def random_hull(seed, count=12):
    return polygons.convex_hull(np.random.default_rng(seed).normal(size=(count, 2)))


@given(SEEDS, st.floats(-3.0, 3.0))
def test_polygon_measures_are_invariant_under_motion(seed, theta):
    polygon, motion = random_star(seed), SE2(3.0, -7.0, theta)
    transformed = motion @ polygon
    assert polygons.signed_area(polygon) > 0.0
    assert polygons.signed_area(transformed) == pytest.approx(polygons.signed_area(polygon), rel=1e-9)
    assert polygons.signed_area(polygon[::-1]) == pytest.approx(-polygons.signed_area(polygon))
    assert polygons.perimeter(transformed) == pytest.approx(polygons.perimeter(polygon))
    np.testing.assert_allclose(polygons.centroid(transformed), motion @ polygons.centroid(polygon), atol=1e-9)
    np.testing.assert_allclose(polygons.centroid(polygon[::-1]), polygons.centroid(polygon), atol=1e-12)


@given(SEEDS)
def test_polygon_area_agrees_with_counted_points(seed):
    polygon = random_star(seed)
    points = np.random.default_rng(seed).uniform(-2.0, 2.0, (4000, 2))
    inside = polygons.contains(polygon, points)
    assert 16.0 * inside.mean() == pytest.approx(polygons.signed_area(polygon), abs=0.6)
    np.testing.assert_allclose(points[inside].mean(axis=0), polygons.centroid(polygon), atol=0.35)


@given(SEEDS)
def test_polygon_contains_agrees_with_a_triangle_fan(seed):
    polygon = random_star(seed)
    points = np.random.default_rng(seed).uniform(-2.0, 2.0, (50, 2))
    fan = np.zeros(len(points), dtype=bool)
    for a, b in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        weights = np.linalg.solve(np.stack([a, b], axis=1), points.T)
        fan |= np.all(weights >= 0.0, axis=0) & (weights.sum(axis=0) < 1.0)
    assert np.array_equal(polygons.contains(polygon, points), fan)
    assert np.array_equal(polygons.contains(polygon[::-1], points), fan)
    assert polygons.contains(polygon, points.reshape(5, 10, 2)).shape == (5, 10)


@given(SEEDS)
def test_polygon_distance_agrees_with_dense_samples(seed):
    polygon = random_star(seed)
    points = np.random.default_rng(seed).uniform(-4.0, 4.0, (30, 2))
    dense = np.concatenate([a + np.linspace(0, 1, 400)[:, None] * (b - a)
                            for a, b in zip(polygon, np.roll(polygon, -1, axis=0), strict=True)])  # fmt: skip
    sampled = np.min(np.linalg.norm(points[:, None] - dense[None], axis=-1), axis=1)
    boundary_distances = polygons.boundary_distance(polygon, points)
    assert np.all(boundary_distances <= sampled + 1e-12)
    np.testing.assert_allclose(boundary_distances, sampled, atol=0.02)
    inside = polygons.contains(polygon, points)
    assert np.all(polygons.distance(polygon, points)[inside] == 0.0)
    np.testing.assert_array_equal(polygons.distance(polygon, points)[~inside], boundary_distances[~inside])
    np.testing.assert_allclose(
        polygons.boundary_distance(polygon, polygons.nearest_on_boundary(polygon, points)), 0, atol=1e-9
    )


@given(SEEDS, st.integers(1, 40))
def test_convex_hull_agrees_with_qhull(seed, count):
    points = (
        np.round(8.0 * np.random.default_rng(seed).normal(size=(count, 2))) / 8.0
    )  # rounded, so that many points are exactly collinear
    corners = polygons.convex_hull(points)
    assert np.array_equal(polygons.convex_hull(corners), corners)
    if len(corners) < 3:
        return
    try:
        expected = ConvexHull(points)
    except QhullError:
        return
    assert polygons.signed_area(corners) == pytest.approx(expected.volume)
    assert sorted(map(tuple, corners)) == sorted(map(tuple, np.unique(points[expected.vertices], axis=0)))
    assert polygons.is_convex(corners)
    assert np.all(polygons.distance(corners, points) < 1e-9)


def test_convex_hull_of_collinear_points_is_their_extreme_points():
    assert polygons.convex_hull([[1, 2]]).tolist() == [[1, 2]]
    assert polygons.convex_hull([[1, 2], [1, 2]]).tolist() == [[1, 2]]
    assert polygons.convex_hull([[0, 0], [2, 2], [1, 1]]).tolist() == [[0, 0], [2, 2]]


@given(SEEDS)
def test_simple_and_convex_polygons_are_recognized(seed):
    polygon = random_star(seed)
    assert polygons.is_simple(polygon)
    assert polygons.is_simple(polygon[::-1])
    assert polygons.is_convex(random_hull(seed))
    corners = random_hull(seed)
    self_intersecting = corners[[1, 0, *range(2, len(corners))]]
    if len(corners) > 3:
        assert not polygons.is_simple(self_intersecting)
        assert not polygons.is_convex(self_intersecting)


def test_degenerate_polygons_are_recognized():
    assert not polygons.is_simple([[0, 0], [1, 0], [1, 0], [1, 1]])  # repeated corner
    assert not polygons.is_simple([[0, 0], [2, 0], [1, 0], [1, 1]])  # overlapping edges
    assert not polygons.is_simple([[0, 0], [2, 0], [2, 2], [1, 0], [0, 2]])  # a corner on another edge
    assert not polygons.is_simple([[0, 0], [2, 2], [2, 0], [0, 2]])  # bow tie
    assert polygons.is_simple([[0, 0], [1, 0], [2, 0], [2, 1]])  # a straight corner
    assert polygons.is_convex([[0, 0], [1, 0], [2, 0], [2, 1]])
    assert not polygons.is_convex([[0, 0], [1, 0], [2, 0]])
    pentagram = polygons.regular_polygon(1.0, 5)[[0, 2, 4, 1, 3]]
    assert not polygons.is_convex(pentagram)  # turns left at each corner, but goes round twice
    assert polygons.centroid([[0, 0], [1, 0], [2, 0]]).tolist() == [1.0, 0.0]


@given(SEEDS)
def test_clipped_polygon_equals_the_intersection(seed):
    subject, window = random_star(seed), random_hull(seed + 1)
    part = polygons.clip(subject, window)
    points = np.random.default_rng(seed).uniform(-2.5, 2.5, (500, 2))
    in_both = polygons.contains(subject, points) & polygons.contains(window, points)
    assert np.array_equal(polygons.contains(part, points) if len(part) else np.zeros(500, bool), in_both)
    area = polygons.signed_area(part) if len(part) else 0.0
    assert -1e-9 <= area <= min(polygons.signed_area(subject), polygons.signed_area(window)) + 1e-9
    other = polygons.clip(window, polygons.convex_hull(subject))
    assert (polygons.signed_area(other) if len(other) else 0.0) >= area - 1e-9


@given(SEEDS)
def test_polygon_clipped_by_itself_or_an_enclosing_window_is_unchanged(seed):
    corners = random_hull(seed)
    assert polygons.signed_area(polygons.clip(corners, corners)) == pytest.approx(polygons.signed_area(corners))
    window = polygons.rectangle(100.0, 100.0)
    np.testing.assert_allclose(polygons.clip(corners, window), corners)
    assert len(polygons.clip(corners + 1000.0, window)) == 0


@given(SEEDS)
def test_clipped_segment_equals_its_part_inside_the_window(seed):
    window = random_hull(seed)
    a, b = np.random.default_rng(seed).uniform(-3.0, 3.0, (2, 2))
    samples = a + np.linspace(0.0, 1.0, 2001)[:, None] * (b - a)
    inside = polygons.contains(window, samples)
    part = polygons.clip_segment(a, b, window)
    if part is None:
        assert not inside.any()
        return
    length = np.linalg.norm(part[1] - part[0])
    assert length == pytest.approx(inside.mean() * np.linalg.norm(b - a), abs=0.02)
    assert np.all(polygons.distance(window, np.array(part)) < 1e-9)


@given(SEEDS, st.floats(0.01, 1.0))
def test_offset_and_inflation_follow_steiners_formula(seed, radius):
    corners = random_hull(seed)
    area, perimeter = polygons.signed_area(corners), polygons.perimeter(corners)
    offset, inflated = polygons.offset_convex_polygon(corners, radius), polygons.inflate_convex_polygon(corners, radius)
    expected_area = area + perimeter * radius + math.pi * radius**2  # Steiner's formula
    assert expected_area <= polygons.signed_area(inflated) <= area + perimeter * radius + 1.02 * math.pi * radius**2
    assert polygons.signed_area(offset) >= polygons.signed_area(inflated) - 1e-9
    directions = np.linspace(0.0, 2.0 * math.pi, 40)
    points_at_radius = corners[:, None] + radius * np.stack([np.cos(directions), np.sin(directions)], axis=-1)
    assert np.all(polygons.distance(inflated, points_at_radius) < 1e-9)
    assert np.all(polygons.distance(offset, points_at_radius) < 1e-9)
    assert polygons.signed_area(polygons.offset_convex_polygon(offset, -radius)) == pytest.approx(area, rel=1e-6)
    fine = polygons.inflate_convex_polygon(corners, radius, arc_step=0.01)
    assert polygons.signed_area(fine) == pytest.approx(expected_area, rel=1e-4)


def test_offset_to_an_empty_polygon_is_refused():
    assert polygons.signed_area(polygons.offset_convex_polygon(polygons.rectangle(2.0, 1.0), -0.25)) == pytest.approx(
        0.75
    )
    with pytest.raises(InputError, match="leaves no polygon"):
        polygons.offset_convex_polygon(polygons.rectangle(2.0, 1.0), -0.6)


@given(SEEDS)
def test_crossing_segments_have_an_intersection(seed):
    a, b, c, d = np.random.default_rng(seed).normal(size=(4, 5, 2))
    crossing = polygons.segments_intersect_pairwise(a, b, c, d)
    for i in range(5):
        for j in range(5):
            point = polygons.intersect_segments(a[i], b[i], c[j], d[j])
            assert (point is not None) == crossing[i, j]
            if point is not None:
                assert polygons.distance_to_nearest_segment(a[i], b[i], point) < 1e-9
                assert polygons.distance_to_nearest_segment(c[j], d[j], point) < 1e-9
    assert np.array_equal(polygons.segments_intersect_pairwise(c, d, b, a), crossing.T)


def test_touching_segments_count_as_crossing():
    along = polygons.segments_intersect_pairwise([0, 0], [2, 0], [[1, 0], [3, 0], [2, 0]], [[5, 0], [4, 0], [2, 1]])
    assert along.tolist() == [[True, False, True]]
    assert polygons.intersect_segments([0, 0], [2, 0], [1, 0], [3, 0]) is None


def test_regular_polygon_encloses_its_circle():
    for corners in (3, 4, 7, 16):
        polygon = polygons.regular_polygon(2.0, corners)
        assert polygons.boundary_distance(polygon, [0.0, 0.0]) == pytest.approx(2.0)
        assert polygons.signed_area(polygon) > math.pi * 4.0


@pytest.mark.parametrize(
    "compute",
    [
        lambda: polygons.signed_area([[0, 0], [1, 1]]),
        lambda: polygons.contains(np.zeros((3, 3)), [0, 0]),
        lambda: polygons.contains(polygons.rectangle(1, 1), [0, 0, 0]),
        lambda: polygons.convex_hull(np.zeros((0, 2))),
        lambda: polygons.rectangle(0.0, 1.0),
        lambda: polygons.regular_polygon(1.0, 2),
        lambda: polygons.offset_convex_polygon([[0, 0], [2, 0], [1, 0.1], [0, 2]], 0.1),
        lambda: polygons.inflate_convex_polygon(polygons.rectangle(1, 1), -0.1),
        lambda: polygons.clip(polygons.rectangle(1, 1), [[0, 0], [2, 0], [0.1, 0.1], [0, 2]]),
    ],
    ids=[
        "two_corners", "spatial_corners", "spatial_point", "no_points", "no_width", "two_sides", "concave_offset",
        "negative_inflation", "concave_window",
    ],
)  # fmt: skip
def test_invalid_polygons_are_refused(compute):
    with pytest.raises(InputError):
        compute()
