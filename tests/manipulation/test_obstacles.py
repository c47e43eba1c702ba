"""Shapes that a link carries are refused where no load can be computed of them."""

import pytest

from roboyard.description import Capsule, Geometry, Sphere
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.collision.obstacles import Attached


@pytest.mark.parametrize("shape", [Sphere(1e308), Sphere(1e100), Capsule(1e308, 1.0)])
def test_attached_shape_too_large_for_numbers_is_refused(shape: Geometry) -> None:
    with pytest.raises(InputError, match=r"^attached pan: the volume or inertia of .* \(smaller sizes \[m\]\)$"):
        Attached("pan", "hand", shape, SE3.identity(), mass=1.0).load()
