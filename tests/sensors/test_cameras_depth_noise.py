"""Depth noise: spreads as published, shadows where the projector does not reach, losses where too little comes back."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sensors.camera_scenes import LENS, RENDERERS, camera, simulate_camera, wall

from roboyard.description.sensors import DepthNoise, Noise
from roboyard.geometry import CameraModel
from roboyard.sensors.cameras.depth_noise import SurfaceImages, depth_stddev, measure_depth

MODELS = {
    "khoshelham": DepthNoise("khoshelham", baseline=0.075),
    "nguyen": DepthNoise("nguyen", baseline=0.075),
    "handa": DepthNoise("handa", baseline=0.075),
    "stereo": DepthNoise("stereo", disparity_stddev=0.3),
    "gaussian": DepthNoise("gaussian", Noise(stddev=0.01)),
}
BASELINE = 0.12


def measure_wall(noise, z, size=LENS, **more):
    """What is measured of a wall met squarely."""
    depth = np.full((size.height, size.width), z, np.float32)
    options = {"near": 0.3, "far": 8.0, "baseline": BASELINE if noise.model == "stereo" else 0.0, **more}
    return measure_depth(depth, size, noise, np.random.default_rng(7), **options)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("distance", [0.8, 1.5, 2.5, 3.5, 5.0])
def test_depth_noise_agrees_with_publications_to_ten_percent(model, distance):
    noise = MODELS[model]
    # A wall that is hardly slanted, or whole steps of disparity would favour some distances.
    size = CameraModel.from_field_of_view(320, 240, 1.0)
    true = np.repeat(distance * (1.0 + 0.02 * np.linspace(-1.0, 1.0, 320))[None], 240, 0).astype(np.float32)
    found = measure_depth(true, size, noise, np.random.default_rng(7), near=0.3, far=12.0, baseline=BASELINE)
    off = ((found - true) / depth_stddev(noise, true.astype(float), size.fx, BASELINE))[np.isfinite(found)]
    assert np.sqrt(np.mean(off.astype(float) ** 2)) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("model", ["khoshelham", "handa"])
def test_depths_are_those_of_whole_disparity_steps(model):
    found = measure_wall(MODELS[model], 3.0)
    step = 2.85e-3 if model == "khoshelham" else 1 / 351.3
    steps = 1.0 / (found[np.isfinite(found)].astype(float) * step)
    assert np.allclose(steps, np.round(steps), atol=1e-3)


@pytest.mark.parametrize("side", [0.075, -0.075])
def test_depth_shadow_of_a_post_has_the_width_of_the_baseline(side):
    lens = CameraModel.from_field_of_view(320, 240, 1.0)
    depth = np.full((240, 320), 3.0, np.float32)
    depth[:, 140:180] = 1.0
    noise = DepthNoise("khoshelham", baseline=side)
    found = measure_depth(depth, lens, noise, np.random.default_rng(1), near=0.3, far=8.0)
    width = lens.fx * abs(side) * (1 / 1.0 - 1 / 3.0)
    lost = np.isnan(found)[100:140].mean(axis=0) > 0.95
    shadow_columns = lost[:138] if side > 0 else lost[182:]
    assert shadow_columns.sum() == pytest.approx(width, abs=3)
    assert not (lost[182:] if side > 0 else lost[:138]).any()


def test_mirrors_give_no_depth_and_dark_slanted_surfaces_little():
    noise, shape = DepthNoise("khoshelham"), (120, 160)
    assert np.isnan(measure_wall(noise, 2.0, surfaces=SurfaceImages(np.full(shape, -1.0, np.float32)))).all()
    images = [np.full(shape, lost_fractions, np.float32) for lost_fractions in (0.8, 0.05, 0.02)]
    lost_fractions = [
        np.isnan(measure_wall(noise, 3.5, surfaces=SurfaceImages(image), far=5.0)).mean() for image in images
    ]
    assert lost_fractions[0] < 0.02
    assert lost_fractions[0] < lost_fractions[1] < lost_fractions[2]
    # The ground seen from 0.4 m: far away it is met at a grazing angle.
    rows = (np.arange(120) - LENS.cy) / LENS.fy
    ground = np.where(rows > 0.05, 0.4 / np.maximum(rows, 0.05), 0.0).astype(np.float32)
    found = measure_depth(np.repeat(ground[:, None], 160, 1), LENS, noise, np.random.default_rng(3), near=0.3, far=8.0)
    lost = np.isnan(found).mean(axis=1)
    assert lost[119] < 0.1
    assert lost[rows > 0.05][0] > 0.9


def test_edges_lose_pixels_and_stereo_sees_nothing_in_the_dark():
    depth = np.full((120, 160), 3.0, np.float32)
    depth[:, 80:] = 1.0
    found = measure_depth(depth, LENS, MODELS["nguyen"], np.random.default_rng(2), near=0.3, far=8.0)
    assert np.isnan(found[:, 80:82]).mean() > 0.2
    assert np.isnan(found[:, 120:]).mean() < 0.01
    assert np.isnan(
        measure_wall(MODELS["stereo"], 2.0, surfaces=SurfaceImages(luminance=np.zeros((120, 160), np.float32)))
    ).all()


def test_projected_pattern_gives_no_depth_out_of_range():
    assert np.isnan(measure_wall(MODELS["khoshelham"], 0.2)).all()
    assert np.isnan(measure_wall(MODELS["khoshelham"], 9.0)).all()
    assert np.isposinf(measure_wall(MODELS["stereo"], 30.0)).mean() > 0.9


@pytest.mark.parametrize("renderer", RENDERERS)
def test_dark_wall_is_lost_at_shorter_range(renderer):
    lost = []
    for gray in (0.9, 0.05):
        noise = DepthNoise("khoshelham", baseline=0.075)
        sim, eye = simulate_camera(
            wall(4.0, rgba=(gray, gray, gray, 1)), sensor=camera(depth_noise=noise, depth_far=5.0), renderer=renderer
        )
        lost.append(np.isnan(eye.read().depth).mean())
        sim.close()
    assert lost[0] < 0.05
    assert lost[1] > 0.8


@pytest.mark.parametrize("model", ["khoshelham", "nguyen"])
def test_depth_noise_grows_below_minimum_pattern_range(model):
    noise = replace(MODELS[model], baseline=0.0, near_blur_distance=0.6)
    for distance in (0.42, 0.5, 0.58):
        true = np.repeat(distance * (1.0 + 0.02 * np.linspace(-1.0, 1.0, 320))[None], 240, 0).astype(np.float32)
        lens = CameraModel.from_field_of_view(320, 240, 1.0)
        found = measure_depth(true, lens, noise, np.random.default_rng(7), near=0.3, far=12.0)
        off = ((found - true) / depth_stddev(noise, true.astype(float)))[np.isfinite(found)]
        assert np.sqrt(np.mean(off.astype(float) ** 2)) == pytest.approx(1.0, rel=0.15)
        assert (depth_stddev(noise, true.astype(float)) > depth_stddev(MODELS[model], true.astype(float))).all()
