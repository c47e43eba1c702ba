"""Shapes that a link carries are refused where no load can be computed of them."""

import pytest

from roboyard.description import Capsule, Geometry, Sphere
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.collision.obstacles import AttachedBody


@pytest.mark.parametrize("shape", [Sphere(1e308), Sphere(1e100), Capsule(1e308, 1.0)])
def test_attached_body_with_too_large_shape_is_refused(shape: Geometry) -> None:
    with pytest.raises(InputError, match=r"^attached pan: the volume or inertia of .* \(smaller sizes \[m\]\)$"):
        AttachedBody("pan", "hand", shape, SE3.identity(), mass=1.0).to_payload()
