"""Prisms over outlines fill exactly what lies inside them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from tests.harness.models import IDENTITY, make_world

from roboyard.description.model import Collision, Link, Model, PlacedModel, Polyline
from roboyard.errors import DescriptionError
from roboyard.physics.compiler.geoms import MAX_OUTLINE_CORNERS, decompose_into_convex_prisms
from roboyard.simulation import Simulation

L_OUTLINE = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 3), (0, 3)]
STAR_OUTLINE = [(math.sin(4 * math.pi * i / 5), math.cos(4 * math.pi * i / 5)) for i in range(5)]
corner_strategy = st.tuples(st.integers(-8, 8), st.integers(-8, 8))
outline_strategy = st.lists(corner_strategy, min_size=3, max_size=9)


def volume(prisms: list[np.ndarray]) -> float:
    return float(sum(ConvexHull(one).volume for one in prisms))


def is_inside(point: np.ndarray, outlines: list[list[tuple[float, float]]]) -> bool:
    """By the number of edges to the right of the point."""
    crossings = 0
    for outline in outlines:
        for (x0, y0), (x1, y1) in zip(outline, [*outline[1:], outline[0]], strict=True):
            if (y0 > point[1]) != (y1 > point[1]):
                crossings += point[0] < x0 + (point[1] - y0) * (x1 - x0) / (y1 - y0)
    return crossings % 2 == 1


def count_containing(point: np.ndarray, prisms: list[np.ndarray]) -> int:
    count = 0
    for prism in prisms:
        faces = ConvexHull(prism[prism[:, 2] == 0.0][:, :2]).equations
        count += bool((faces[:, :2] @ point + faces[:, 2] <= 0.0).all())
    return count


def test_prisms_have_known_areas() -> None:
    assert volume(decompose_into_convex_prisms([L_OUTLINE], 2.0)) == pytest.approx(8.0)
    assert len(decompose_into_convex_prisms([L_OUTLINE], 2.0)) == 2
    assert len(decompose_into_convex_prisms([[(0, 0), (2, 0), (2, 2), (0, 2)]], 1.0)) == 1, "a convex one stays whole"
    square, hole = [(0, 0), (4, 0), (4, 4), (0, 4)], [(1, 1), (2, 1), (2, 3), (1, 3)]
    assert volume(decompose_into_convex_prisms([square, hole], 1.0)) == pytest.approx(14.0)


@given(
    st.lists(outline_strategy, min_size=1, max_size=3), st.lists(st.tuples(*[st.floats(-8.1, 8.1)] * 2), max_size=20)
)
def test_prisms_fill_the_even_odd_interior(
    outlines: list[list[tuple[float, float]]], points: list[tuple[float, float]]
) -> None:
    """Also of outlines that cross themselves and each other, and no place is filled twice."""
    try:
        prisms = decompose_into_convex_prisms(outlines, 1.0)
    except DescriptionError:
        prisms = []
    for x, y in points:
        point = np.array([x + 1e-3 * math.pi, y + 1e-3 * math.e])  # hardly ever on an edge
        if min(distance_to_outline(point, one) for one in outlines) > 1e-6:
            assert count_containing(point, prisms) == int(is_inside(point, outlines))


def distance_to_outline(point: np.ndarray, outline: list[tuple[float, float]]) -> float:
    min_distance = math.inf
    for start, end in zip(np.array(outline, float), np.roll(np.array(outline, float), -1, axis=0), strict=True):
        edge = end - start
        fraction = np.clip((point - start) @ edge / max(edge @ edge, 1e-12), 0.0, 1.0)
        min_distance = min(min_distance, float(np.linalg.norm(point - start - fraction * edge)))
    return min_distance


def test_prism_of_a_star_has_a_hollow_center() -> None:
    prisms = decompose_into_convex_prisms([STAR_OUTLINE], 1.0)
    assert count_containing(np.zeros(2), prisms) == 0
    assert count_containing(np.array([0.0, 0.7]), prisms) == 1


def test_too_many_and_too_few_outline_points_are_refused() -> None:
    circle = [(math.cos(i), math.sin(i)) for i in range(MAX_OUTLINE_CORNERS + 10)]
    with pytest.raises(DescriptionError, match="corners"):
        decompose_into_convex_prisms([circle], 1.0)
    with pytest.raises(DescriptionError, match="on a line"):
        decompose_into_convex_prisms([[(0, 0), (1, 1), (2, 2)]], 1.0)


def test_ball_falls_into_the_hollow_of_a_prism() -> None:
    """What was the convex hull before, and would have held it up."""
    from tests.harness.models import free_ball, make_pose

    shape = Polyline((tuple(L_OUTLINE),), 1.0)
    wall = Model("wall", (Link("l", IDENTITY, collisions=(Collision("c", shape, IDENTITY),)),), static=True)
    sim = Simulation(make_world(PlacedModel("wall", wall, IDENTITY)))
    sim.add(free_ball(radius=0.2), "in", make_pose(x=1.5, y=2.0, z=1.5))
    sim.add(free_ball(radius=0.2), "on", make_pose(x=0.5, y=2.0, z=1.5))
    sim.step(400)
    assert sim.ground_truth("in").T_world_base.z < 0.0
    assert sim.ground_truth("on").T_world_base.z == pytest.approx(1.2, abs=0.01)
