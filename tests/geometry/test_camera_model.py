"""Camera models: projection is the inverse of the rays of pixels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.geometry import CameraModel
from roboyard.geometry.camera_model import PROJECTION_MODELS

small_coefficients = st.floats(-0.15, 0.15)
distortions = st.tuples(
    small_coefficients, st.floats(-0.03, 0.03), st.floats(-0.005, 0.005), st.floats(-0.005, 0.005), st.just(0.0)
)


def pixel_grid(camera: CameraModel) -> np.ndarray:
    u, v = np.meshgrid(np.linspace(0, camera.width - 1, 9), np.linspace(0, camera.height - 1, 7))
    return np.stack([u, v], axis=-1)


@given(distortions, st.floats(0.3, 1.4), st.floats(0.1, 50.0))
def test_points_on_a_pixels_ray_project_to_that_pixel(distortion, horizontal_fov, distance):
    camera = CameraModel.from_field_of_view(640, 480, horizontal_fov, distortion=distortion)
    if camera.find_distortion_fold() is not None:
        return
    pixels = pixel_grid(camera)
    assert np.allclose(camera.project(distance * camera.rays(pixels)), pixels, atol=1e-3)


@pytest.mark.parametrize("model", PROJECTION_MODELS)
def test_camera_model_has_the_requested_field_of_view(model):
    camera = CameraModel.from_field_of_view(640, 480, 1.2, model)
    assert camera.horizontal_fov == pytest.approx(1.2)
    left, right = camera.rays([[-0.5, camera.cy], [639.5, camera.cy]])
    assert math.acos(left @ right) == pytest.approx(1.2, abs=1e-6)
    pixels = pixel_grid(camera)
    assert np.allclose(camera.project(3.0 * camera.rays(pixels)), pixels, atol=1e-6)


def test_fisheye_model_projects_points_behind_the_camera():
    fisheye = CameraModel.from_field_of_view(400, 400, math.radians(220), "equidistant")
    point = [1.0, 0.0, -0.2]
    assert np.isfinite(fisheye.project(point)).all()
    assert np.isnan(CameraModel().project(point)).all()
    assert np.isnan(fisheye.rays([1e4, 0.0])).all()


def test_distortion_equals_the_definition_of_opencv():
    """x' = x (1 + k1 r² + k2 r⁴ + k3 r⁶) + 2 p1 x y + p2 (r² + 2 x²), calculated by hand for one point."""
    camera = CameraModel(640, 480, 500.0, 510.0, 310.0, 250.0, distortion=(-0.2, 0.05, 0.001, -0.002, 0.01))
    x, y = 0.3, -0.2
    r2 = x * x + y * y
    radial = 1 - 0.2 * r2 + 0.05 * r2**2 + 0.01 * r2**3
    u = 500 * (x * radial + 2 * 0.001 * x * y - 0.002 * (r2 + 2 * x * x)) + 310
    v = 510 * (y * radial + 0.001 * (r2 + 2 * y * y) - 2 * 0.002 * x * y) + 250
    assert camera.project([x, y, 1.0]) == pytest.approx([u, v])


def test_radius_at_which_distortion_folds_the_image_is_found():
    assert (
        CameraModel.from_field_of_view(640, 480, 1.5, distortion=(-0.8, 0.0, 0.0, 0.0, 0.0)).find_distortion_fold()
        is not None
    )
    assert (
        CameraModel.from_field_of_view(640, 480, 1.0, distortion=(-0.1, 0.01, 0.0, 0.0, 0.0)).find_distortion_fold()
        is None
    )
