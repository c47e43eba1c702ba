"""Marked discs: found at their exact positions, without false detections, in rendered images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.profiles import sample_count

from roboyard.errors import InputError
from roboyard.geometry import SE3, CameraModel
from roboyard.grids.depth_registration import register_depth
from roboyard.vision import (
    DiscConfig,
    detect_discs,
    detect_discs_hough,
    detect_discs_thesis,
    draw_discs,
    find_consensus,
    find_disc_pairs,
    locate_disc,
    locate_discs,
    project_center,
)  # fmt: skip
from roboyard.vision.discs.disc_pose import fit_depth_plane
from roboyard.vision.discs.ellipse import compute_circle_poses, ellipse_conic, fit_ellipse, project_circle, viewing_cone
from roboyard.vision.synthetic.disc_scenes import CONDITIONS, DiscImage, plane_pose, project_radius, render_disc_image
from roboyard.vision.synthetic.rendering import disc_coverage, expose

CAMERA = CameraModel(640, 480, 530.0, 530.0)
SEEDS = range(40_000, 40_006)


def score(sample: DiscImage, sensitivity: float = 0.7) -> tuple[int, int, list[float]]:
    """Number of discs, number of false detections, errors of the centers [px]."""
    errors, false = [], 0
    for polarity in ("white", "black"):
        found = detect_discs(sample.image, DiscConfig(polarity=polarity, sensitivity=sensitivity))
        nearest = [
            min((float(np.linalg.norm(project_center(one, CAMERA) - disc.center)), k) for k, one in enumerate(found))
            for disc in sample.discs
            if disc.is_white == (polarity == "white") and found
        ]
        hit_errors = [distances for distances, _ in nearest if distances < 2.0]
        errors += hit_errors
        false += len(found) - len(hit_errors)
    return len(sample.discs), false, errors


def render_scene(
    discs: list[tuple[SE3, float, bool]],
    *,
    noise: float = 1.0,
    background_albedo: float = 0.35,
    camera_model: CameraModel = CAMERA,
    mark_ratio: float = 0.3,
) -> np.ndarray:
    """An image of discs: pose, radius [m], whether white."""
    albedo = np.full((camera_model.height, camera_model.width, 3), background_albedo, np.float32)
    for T, radius, is_white in discs:
        for fraction, is_light in ((1.0, is_white), (mark_ratio, not is_white)):
            patch = disc_coverage(camera_model, T, fraction * radius)
            assert patch is not None
            patch.paint(albedo, (0.85 if is_light else 0.04,) * 3)
    return expose(albedo, np.random.default_rng(1), blur=0.6, noise=noise)


@pytest.mark.parametrize("kind", [kind for kind in CONDITIONS if kind not in ("hidden", "cluttered", "mixed")])
def test_all_discs_are_found_without_false_detections(kind: str) -> None:
    total, false, errors = 0, 0, []
    for seed in SEEDS:
        count, wrong, distances = score(render_disc_image(CONDITIONS[kind], seed))
        total, false, errors = total + count, false + wrong, errors + distances
    assert false == 0
    assert len(errors) >= 0.96 * total
    assert np.median(errors) < 0.1
    assert np.percentile(errors, 95) < 0.3


@pytest.mark.parametrize("kind", ["cluttered", "mixed"])
def test_discs_are_found_in_clutter(kind: str) -> None:
    total, false, errors = 0, 0, []
    for seed in SEEDS:
        count, wrong, distances = score(render_disc_image(CONDITIONS[kind], seed))
        total, false, errors = total + count, false + wrong, errors + distances
    assert false <= 1
    assert len(errors) >= 0.93 * total
    assert np.median(errors) < 0.1


@pytest.mark.slow
def test_detection_rate_holds_over_many_images() -> None:
    total = false = frames = 0
    errors: list[float] = []
    for number, kind in enumerate(kind for kind in CONDITIONS if kind != "hidden"):
        for seed in range(sample_count(60, 0.35)):
            count, wrong, distances = score(render_disc_image(CONDITIONS[kind], 50_000 + 1000 * number + seed))
            total, false, frames, errors = total + count, false + wrong, frames + 1, errors + distances
    assert len(errors) >= 0.99 * total
    assert false <= 0.01 * frames
    assert np.median(errors) < 0.1


def test_detections_repeat_bit_for_bit() -> None:
    one, two = (detect_discs(render_disc_image(CONDITIONS["mixed"], 40_100).image) for _ in range(2))
    assert len(one) == len(two) > 0
    for a, b in zip(one, two, strict=True):
        assert a.ellipse.tobytes() == b.ellipse.tobytes()
        assert a.outline_points.tobytes() == b.outline_points.tobytes()


def test_black_discs_equal_white_discs_of_the_negative() -> None:
    image = render_scene([(plane_pose(np.array([0.02, 0.01, 0.45]), 0.4, 1.0), 0.01, True)])
    white = detect_discs(image, DiscConfig(polarity="white"))
    black = detect_discs(255 - image, DiscConfig(polarity="black"))
    assert len(white) == len(black) == 1
    assert not detect_discs(image, DiscConfig(polarity="black"))
    # only the fraction of the lighter level differs: it is measured from the other end of the scale
    assert white[0].center == pytest.approx(black[0].center, abs=1e-9)


def test_center_mark_is_required_or_optional() -> None:
    T = plane_pose(np.array([0.0, 0.0, 0.5]), 0.2, 0.0)
    bare = render_scene([(T, 0.01, True)], mark_ratio=1e-6)
    assert not detect_discs(bare)
    assert len(detect_discs(bare, DiscConfig(require_mark=False))) == 1
    assert not detect_discs(render_scene([(T, 0.01, True)]), DiscConfig(mark_contrast=0.95))


def test_discs_outside_the_radius_window_are_ignored() -> None:
    image = render_scene(
        [(plane_pose(np.array([x, 0.0, 0.5]), 0.0, 0.0), radius, True) for x, radius in ((-0.08, 0.008), (0.08, 0.014))]
    )
    radii = sorted(round(one.radius) for one in detect_discs(image))
    assert radii == [9, 15]
    assert [round(one.radius) for one in detect_discs(image, DiscConfig(radius_min=11.0))] == [15]
    assert [round(one.radius) for one in detect_discs(image, DiscConfig(radius_max=12.0))] == [9]


def test_higher_sensitivity_finds_more_discs() -> None:
    counts = []
    for sensitivity in (0.2, 0.5, 0.7, 1.0):
        found = [score(render_disc_image(CONDITIONS["hidden"], seed), sensitivity)[2] for seed in SEEDS]
        counts.append(sum(map(len, found)))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_invalid_images_and_options_are_refused() -> None:
    with pytest.raises(InputError, match="bytes"):
        detect_discs(np.zeros((48, 64, 3)))
    with pytest.raises(InputError, match="16 x 16"):
        detect_discs(np.zeros((8, 64), np.uint8))
    for name, value in (("polarity", "grey"), ("sensitivity", 2.0), ("radius_min", -1.0), ("diameter", 0.0)):
        with pytest.raises(InputError, match=name):
            DiscConfig(**{name: value})
    assert detect_discs(np.zeros((480, 640, 3), np.uint8)) == []
    assert detect_discs(np.full((480, 640), 255, np.uint8)) == []
    assert detect_discs(np.random.default_rng(0).integers(0, 256, (480, 640, 3)).astype(np.uint8)) == []


# -- geometry ----------------------------------------------------------------------------------------------------------
@given(st.floats(-0.3, 0.3), st.floats(-0.2, 0.2), st.floats(0.3, 2.0), st.floats(0.01, 1.0), st.floats(0.0, 6.28))
def test_circle_pose_is_recovered_from_its_ellipse(x: float, y: float, z: float, tilt: float, rotation: float) -> None:
    center = np.array([x, y, z])
    normal = plane_pose(center, tilt, rotation).rotation_matrix()[:, 2]
    poses = compute_circle_poses(viewing_cone(project_circle(center, normal, 0.02)))
    best = min(poses, key=lambda pose: float(np.linalg.norm(pose.normal - normal)))
    assert 0.02 * best.center == pytest.approx(center, abs=1e-6 * z)
    assert best.normal == pytest.approx(normal, abs=1e-4)


@given(st.floats(2.0, 40.0), st.floats(0.3, 1.0), st.floats(-1.5, 1.5), st.floats(-100, 700), st.floats(-100, 700))
def test_ellipse_fit_is_exact_without_noise(a: float, ratio: float, angle: float, x: float, y: float) -> None:
    t = np.linspace(0.0, 2.0 * math.pi, 25)[:-1]
    u, v = a * np.cos(t), ratio * a * np.sin(t)
    points = np.stack([x + math.cos(angle) * u - math.sin(angle) * v, y + math.sin(angle) * u + math.cos(angle) * v], 1)
    ellipse = np.zeros(5)
    assert fit_ellipse(points, np.ones(len(points)), ellipse)
    assert ellipse[:4] == pytest.approx([x, y, a, ratio * a], rel=1e-6, abs=1e-5)
    homogeneous = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    assert np.abs(np.einsum("ki,ij,kj->k", homogeneous, ellipse_conic(ellipse), homogeneous)).max() < 1e-5


def plane_depth(T: SE3, camera_model: CameraModel) -> np.ndarray:
    """Exact depth of a plane z = 0 of a pose."""
    normal, rays = T.rotation_matrix()[:, 2], camera_model.pixel_rays()
    return ((normal @ T.translation) / (rays @ normal) * rays[..., 2]).astype(np.float32)


@pytest.mark.parametrize("tilt", [0.0, 0.3, 0.65])
def test_depth_gives_position_and_diameter(tilt: float) -> None:
    for rotation in (0.3, 2.0, 4.5):
        T = plane_pose(np.array([0.06, -0.05, 0.42]), tilt, rotation)
        image, depth = render_scene([(T, 0.01, True)]), plane_depth(T, CAMERA)
        depth += np.random.default_rng(2).normal(0.0, 0.001, depth.shape).astype(np.float32)
        depth[::3] = np.nan
        (disc,) = detect_discs(image)
        located = locate_disc(disc, CAMERA, depth)
        assert located is not None
        assert located.has_depth
        assert np.linalg.norm(located.position - T.translation) < 0.6e-3
        assert abs(located.diameter - 0.02) < 0.6e-3
        angle_error = math.acos(min(1.0, float(located.normal @ T.rotation_matrix()[:, 2])))
        assert angle_error < math.radians(12.0 if tilt == 0.0 else 5.0)


def test_depth_with_a_step_gives_no_plane() -> None:
    camera_model = CameraModel(64, 48, 60.0, 60.0, 31.5, 23.5)
    depth = np.ones((48, 64), dtype=np.float32)
    ellipse = np.array([31.5, 23.5, 8.0, 8.0, 0.0])
    assert fit_depth_plane(depth, camera_model, ellipse) is not None
    depth[:, 32:] = 2.0
    assert fit_depth_plane(depth, camera_model, ellipse) is None


def test_assumed_diameter_gives_the_distance_without_depth() -> None:
    T = plane_pose(np.array([0.0, 0.03, 0.5]), 0.4, 1.0)
    (disc,) = detect_discs(render_scene([(T, 0.01, False)]), DiscConfig(polarity="black"))
    no_depth = np.full((480, 640), np.nan, np.float32)
    assert locate_disc(disc, CAMERA, no_depth) is None
    located = locate_disc(disc, CAMERA, no_depth, diameter=0.02)
    assert located is not None
    assert not located.has_depth
    assert np.linalg.norm(located.position - T.translation) < 0.03 * 0.5
    with pytest.raises(InputError, match="registered"):
        locate_disc(disc, CAMERA, no_depth[:100])


def test_discs_of_other_diameters_are_dropped() -> None:
    poses = [plane_pose(np.array([x, 0.0, 0.5]), 0.0, 0.0) for x in (-0.1, 0.0, 0.1)]
    image = render_scene(list(zip(poses, (0.010, 0.0135, 0.010), (True,) * 3, strict=True)))
    depth = np.full((480, 640), 0.5, np.float32)
    found = detect_discs(image)
    assert len(found) == 3
    located = locate_discs(found, CAMERA, depth, DiscConfig())
    assert sorted(round(float(one.position[0]), 2) for one in located) == [-0.1, 0.1]
    (large,) = locate_discs(found, CAMERA, depth, DiscConfig(diameter=0.027, diameter_tolerance=0.002))
    assert abs(large.position[0]) < 1e-3


def test_disc_center_differs_from_the_ellipse_center() -> None:
    T = plane_pose(np.array([0.15, 0.1, 0.35]), 0.6, 0.0)
    (disc,) = detect_discs(render_scene([(T, 0.011, True)], noise=0.5))
    truth = CAMERA.project(T.translation)
    assert np.linalg.norm(disc.center - truth) > 2.0 * np.linalg.norm(project_center(disc, CAMERA) - truth)


def test_disc_position_is_right_with_lens_distortion() -> None:
    distorted = CameraModel(640, 480, 530.0, 530.0, distortion=(-0.25, 0.08, 0.001, 0.0, 0.0))
    T = plane_pose(np.array([0.2, 0.15, 0.5]), 0.3, 2.0)
    (disc,) = detect_discs(render_scene([(T, 0.012, True)], camera_model=distorted))
    located = locate_disc(disc, distorted, diameter=0.024)
    assert located is not None
    assert np.linalg.norm(located.pixel - distorted.project(T.translation)) < 0.1
    assert np.linalg.norm(located.position - T.translation) < 0.02 * 0.5


def test_registered_depth_locates_discs_of_the_color_camera() -> None:
    color, infrared = CAMERA, CameraModel(640, 480, 575.0, 575.0)
    T_color_depth = SE3.from_xyz_rpy((-0.025, 0.0, 0.0), (0.0, 0.01, 0.0))
    T = plane_pose(np.array([0.03, 0.02, 0.55]), 0.35, 1.0)
    depth = register_depth(plane_depth(T_color_depth.inverse() @ T, infrared), infrared, color, T_color_depth)
    (disc,) = detect_discs(render_scene([(T, 0.01, True)]))
    located = locate_disc(disc, color, depth)
    assert located is not None
    assert np.linalg.norm(located.position - T.translation) < 0.5e-3


# -- pairs, consensus, annotation --------------------------------------------------------------------------------------
def pair_scene() -> np.ndarray:
    return render_scene([(plane_pose(np.array([x, 0.0, 0.5]), 0.0, 0.0), 0.01, False) for x in (-0.026, 0.026, 0.12)])


def test_disc_pairs_are_found_by_their_distance() -> None:
    config = DiscConfig(polarity="black", mode="pair")
    located = locate_discs(detect_discs(pair_scene(), config), CAMERA, np.full((480, 640), 0.5, np.float32), config)
    (pair,) = find_disc_pairs(located, config)
    assert pair.distance == pytest.approx(0.052, abs=3e-4)
    assert pair.position == pytest.approx([0.0, 0.0, 0.5], abs=5e-4)
    assert not find_disc_pairs(located, DiscConfig(pair_distance=0.06, pair_distance_tolerance=0.001))


def test_consensus_of_several_images_drops_outliers() -> None:
    rng = np.random.default_rng(3)
    true = np.array([[0.1, 0.0, 0.5], [0.2, 0.05, 0.5]])
    detections = [true + rng.normal(0.0, 2e-4, true.shape) for _ in range(5)]
    detections[1][0] += [0.004, 0.0, 0.0]  # within the association distance, farther than 1 mm from the median
    detections[3] = np.concatenate([detections[3], [[0.4, 0.4, 0.4]]])  # detected once
    found = find_consensus(detections)
    assert len(found) == 2
    for one in found:
        assert min(np.linalg.norm(true - one.mean, axis=1)) < 4e-4
    assert sorted(one.n_agreeing for one in found) == [4, 5]
    assert find_consensus([np.zeros((0, 3))] * 5) == []
    with pytest.raises(InputError, match="images must agree"):
        find_consensus(detections, min_agreeing=6)


def test_drawn_detections_change_few_pixels() -> None:
    image = pair_scene()
    config = DiscConfig(polarity="black", mode="pair")
    located = locate_discs(detect_discs(image, config), CAMERA, np.full((480, 640), 0.5, np.float32), config)
    annotated = draw_discs(image, located, find_disc_pairs(located, config))
    changed = (annotated != image).any(axis=2)
    assert 100 < changed.sum() < 0.05 * changed.size
    assert draw_discs(image[:, :, 0], []).shape == image.shape


# -- reference detectors -----------------------------------------------------------------------------------------------
def test_hough_detector_is_less_accurate() -> None:
    errors: dict[str, list[float]] = {"ours": [], "hough": []}
    for seed in SEEDS:
        sample = render_disc_image(CONDITIONS["plain"], seed)
        for name, detector in (("ours", detect_discs), ("hough", detect_discs_hough)):
            found = detector(sample.image, DiscConfig(polarity="white"))
            for disc in sample.discs:
                distances = [float(np.linalg.norm(one.center - disc.center)) for one in found]
                if disc.is_white and distances and min(distances) < 3.0:
                    errors[name].append(min(distances))
    assert errors["hough"]
    assert np.median(errors["hough"]) > 3.0 * np.median(errors["ours"])


def test_thesis_detector_follows_the_thesis_formulas() -> None:
    """A disc in the center of its view: X = -12 mm + (u - 320) FZ, Y = 95 mm, Z = 564 mm - Z0."""
    z = 0.53
    image = render_scene([(plane_pose(np.array([0.0, 0.0, z]), 0.0, 0.0), 0.01, True)])
    depth = np.full((480, 640), z, np.float32)
    (one,) = detect_discs_thesis(image, depth, DiscConfig())
    assert one.position == pytest.approx([-0.012, 0.095, 0.034], abs=1.5e-3)
    assert one.diameter == pytest.approx(0.02, abs=0.002)
    (pair,) = detect_discs_thesis(
        pair_scene(), np.full((480, 640), 0.5, np.float32), DiscConfig(polarity="black", mode="pair")
    )
    assert pair.distance == pytest.approx(0.054, abs=0.002)  # the code's 2 mm too much
    with pytest.raises(InputError, match="480"):
        detect_discs_thesis(image[:240], depth, DiscConfig())


def test_rendered_disc_size_equals_the_projection() -> None:
    T = plane_pose(np.array([0.1, 0.05, 0.5]), 0.5, 1.0)
    outline = [
        CAMERA.project(T @ np.array([0.01 * math.cos(t), 0.01 * math.sin(t), 0.0])) for t in np.linspace(0, 6.3, 200)
    ]
    distances = [np.linalg.norm(a - b) for a in outline for b in outline[::5]]
    assert project_radius(CAMERA, T, 0.01) == pytest.approx(0.5 * max(distances), rel=1e-3)
    patch = disc_coverage(CAMERA, T, 0.01)
    assert patch is not None
    ellipse = project_circle(T.translation, T.rotation_matrix()[:, 2], 0.01)
    assert patch.alpha.sum() == pytest.approx(math.pi * ellipse[2] * ellipse[3] * 530.0**2, rel=0.01)
