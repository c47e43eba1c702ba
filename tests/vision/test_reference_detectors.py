"""Circles by votes, as in the thesis's detector: rendered circles are detected only with their own polarity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.vision import ThesisCamera
from roboyard.vision.discs.disc_detector import DiscConfig, DiscPolarity
from roboyard.vision.discs.reference_detectors import imfindcircles


def draw_circles(circles: list[tuple[float, float, float]], inside: float, outside: float) -> np.ndarray:
    """A gray image (120, 160) with smooth edges."""
    rows, columns = np.indices((120, 160))
    image = np.full((120, 160), outside)
    for x, y, radius in circles:
        alpha = np.clip(radius + 0.5 - np.hypot(columns - x, rows - y), 0.0, 1.0)
        image = image + alpha * (inside - outside)
    return np.rint(image).astype(np.uint8)


@settings(max_examples=25, deadline=None)
@given(
    x=st.floats(25.0, 130.0), y=st.floats(25.0, 95.0), radius=st.floats(7.0, 17.0), is_white=st.booleans(),
    levels=st.tuples(st.floats(20.0, 110.0), st.floats(150.0, 250.0)),
)  # fmt: skip
def test_circle_is_found_with_its_polarity_only(
    x: float, y: float, radius: float, is_white: bool, levels: tuple[float, float]
) -> None:
    dark_level, light_level = levels
    image = draw_circles(
        [(x, y, radius)], light_level if is_white else dark_level, dark_level if is_white else light_level
    )
    polarity: DiscPolarity = "white" if is_white else "black"
    (found,) = imfindcircles(image, DiscConfig(polarity=polarity))
    assert np.hypot(found[0] - x, found[1] - y) < 0.5
    assert abs(found[2] - radius) <= 1.0
    other_polarity: DiscPolarity = "black" if is_white else "white"
    assert not len(imfindcircles(image, DiscConfig(polarity=other_polarity)))


@pytest.mark.parametrize("radius", [6.5, 7.0, 17.5])
def test_circles_at_both_ends_of_the_radius_range_are_found(radius: float) -> None:
    for k in range(40):
        x, y = 25.0 + 1.57 * k, 90.0 - 1.31 * k
        (found,) = imfindcircles(draw_circles([(x, y, radius)], 20.0, 150.0), DiscConfig(polarity="black"))
        assert np.hypot(found[0] - x, found[1] - y) < 0.5


def test_rotated_images_have_rotated_circles() -> None:
    image = draw_circles([(40.0, 50.0, 9.0), (100.3, 70.6, 12.0)], 220.0, 90.0)
    plain = imfindcircles(image, DiscConfig())
    rotated = imfindcircles(np.ascontiguousarray(image[::-1, ::-1]), DiscConfig())
    assert len(plain) == len(rotated) == 2
    flipped = np.column_stack([159.0 - rotated[:, 0], 119.0 - rotated[:, 1], rotated[:, 2]])
    np.testing.assert_allclose(plain[np.argsort(plain[:, 0])], flipped[np.argsort(flipped[:, 0])], atol=0.2)


def test_higher_sensitivity_finds_no_fewer_partial_circles() -> None:
    image = draw_circles([(60.0, 60.0, 11.0)], 220.0, 90.0)
    image[:58] = 90  # the upper half is hidden
    counts = [len(imfindcircles(image, DiscConfig(sensitivity=one))) for one in (0.3, 0.5, 0.7)]
    assert counts == sorted(counts)
    assert counts[0] == 0 < counts[-1]


@pytest.mark.parametrize("level", [0, 255])
def test_uniform_image_has_no_circles(level: int) -> None:
    assert imfindcircles(np.full((60, 80), level, dtype=np.uint8), DiscConfig()).shape == (0, 3)


def test_thesis_camera_follows_the_thesis_formulas() -> None:
    camera = ThesisCamera()
    for u, v, z in ((320.0, 240.0, 564.0), (100.0, 90.0, 530.0), (600.0, 400.0, 519.0)):
        scale = z / 530.0  # formulas 7.1, 7.2, 7.5, 7.6 and 7.10 to 7.13
        np.testing.assert_allclose(
            camera.locate_pixel(u, v, z), (-12 - (320 - u) * scale, 95 + (240 - v) * scale, 564 - z)
        )
        assert camera.depth_pixel(u, v) == (round(u + (u - 130) * 0.1), round(v + (v - 60) * 0.1))
