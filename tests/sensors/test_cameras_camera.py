"""Cameras: depth as geometry says, through any lens, by either renderer; and what a chip makes of light."""

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from tests.sensors.camera_scenes import LENS, RENDERERS, ball, ball_depth, camera, simulate_camera, wall

from roboyard.description.sensors import DepthNoise, Exposure, Noise
from roboyard.errors import InputError
from roboyard.geometry import SE3, CameraModel
from roboyard.grids.depth_registration import make_organized_cloud, register_depth
from roboyard.sensors.cameras.camera import make_projection_matrix, make_reprojection_matrix
from roboyard.sensors.cameras.exposure import compute_luminance, render_infrared
from roboyard.simulation.faults import SensorFault
from roboyard.simulation.nodes.sensor_messages import encode_png
from roboyard.simulation.sensor_contract import check_sensor

DISTORTED_LENS = replace(LENS, distortion=(-0.25, 0.06, 0.002, -0.001, 0.0))
LENSES = {
    "straight": LENS,
    "off centre": CameraModel(160, 120, 150.0, 140.0, 60.0, 70.0),
    "bent": DISTORTED_LENS,
    "fisheye": CameraModel.from_field_of_view(160, 120, 3.0, "equidistant"),
}


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("name", LENSES)
def test_depth_of_wall_and_ball_agrees_with_geometry(renderer, name):
    lens = LENSES[name]
    sim, eye = simulate_camera(wall(3.0), ball(2.0, 0.4), renderer=renderer, sensor=camera(color=lens, depth=lens))
    depth = eye.read().depth
    sim.close()
    true = np.fmin(ball_depth(lens, 2.0, 0.4), 3.0)
    inside = np.isfinite(lens.pixel_rays()[..., 2]) & (lens.pixel_rays()[..., 2] > 0.2)
    off = np.abs(depth - true)[inside]
    assert np.median(off) < 1e-3
    assert np.percentile(off[np.abs(true[inside] - 3.0) > 0.01], 75) < 1e-3  # the ball is a polyhedron


@pytest.mark.parametrize("renderer", RENDERERS)
def test_colors_are_at_their_pixels(renderer):
    sim, eye = simulate_camera(wall(3.0, rgba=(0, 0, 1, 1)), ball(2.0, 0.3, 0.5, rgba=(1, 0, 0, 1)), renderer=renderer)
    image = eye.read().color.astype(int)
    sim.close()
    red = image[..., 0] > image[..., 2] + 20
    rows, columns = np.nonzero(red)
    u, v = LENS.project([-0.5, 0.0, 2.0])  # y to the left is −x of the optical frame
    assert (columns.mean(), rows.mean()) == pytest.approx((u, v), abs=1.0)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_camera_does_not_see_its_own_housing(renderer):
    sim, eye = simulate_camera(wall(3.0), renderer=renderer, housing=True, sensor=camera(near=0.01))
    assert np.allclose(eye.read().depth, 3.0, atol=1e-3)
    sim.close()


def test_depth_out_of_range_is_infinite_as_in_rep_118():
    sim, eye = simulate_camera(wall(3.0), ball(0.25, 0.05), sensor=camera(depth_far=2.0))
    depth = eye.read().depth
    sim.close()
    assert depth[60, 80] == -np.inf
    assert depth[5, 5] == np.inf


@pytest.mark.parametrize("renderer", RENDERERS)
def test_equal_seeds_give_equal_images_despite_other_readers(renderer):
    noisy = camera(noise=Noise(stddev=0.02), depth_noise=DepthNoise("khoshelham", baseline=0.075))
    found = []
    for n_extra_reads in (0, 3):
        sim, eye = simulate_camera(wall(3.0), ball(2.0, 0.4), renderer=renderer, sensor=noisy, seed=4)
        for _ in range(n_extra_reads):
            sim.step(2)
            eye.read()
        sim.step(10 - 2 * n_extra_reads)
        reading = eye.read()
        found.append((reading.color.tobytes(), reading.depth.tobytes()))
        sim.close()
    assert found[0] == found[1]
    sim, eye = simulate_camera(wall(3.0), ball(2.0, 0.4), renderer=renderer, sensor=noisy, seed=5)
    sim.step(10)
    assert eye.read().depth.tobytes() != found[0][1]
    sim.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["camera", "depth_camera", "rgbd_camera", "stereo_camera"])
def test_camera_kinds_keep_the_sensor_contract(kind):
    small = CameraModel.from_field_of_view(16, 12, 1.0)
    spec = {"depth": small, "baseline": 0.1, "depth_noise": DepthNoise("stereo", disparity_stddev=0.2)}
    spec = spec if kind == "stereo_camera" else {"depth": small}
    sensor = camera(kind, **{**spec, "color": small, "noise": Noise(stddev=0.01)})
    if kind == "depth_camera":
        sensor = replace(sensor, spec=replace(sensor.spec, color=None))
    assert len(check_sensor(sensor)) == 5


def test_registered_depth_hides_points_occluded_from_color():
    """A post before a wall, the depth camera to the left: beside the post the wall is unknown, in front it is right."""
    lens, T = CameraModel.from_field_of_view(320, 240, 1.0), SE3(translation=(-0.1, 0.0, 0.0))
    separate_lenses = camera(color=lens, depth=lens, T_color_depth=T)
    sim, eye = simulate_camera(wall(3.0), ball(1.0, 0.2), sensor=separate_lenses)
    depth = eye.read().depth
    sim.close()
    registered = register_depth(depth, lens, lens, T)
    true = np.fmin(ball_depth(lens, 1.0, 0.2), 3.0)
    is_known = np.isfinite(registered)
    assert 0.85 < is_known.mean() < 0.99  # the shadow is unknown
    off = np.abs(registered - true)[is_known]
    assert np.median(off) < 1e-3
    assert (off < 0.02).mean() > 0.97  # the ball's outline is ragged
    # Nowhere does the wall shine through the ball.
    core = ball_depth(lens, 1.0, 0.17)
    assert np.nanmax(registered[np.isfinite(core)]) < 1.1


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize(("depth_far", "is_measured"), [(1000.0, True), (200.0, False)])
def test_camera_measures_farther_than_200_meters_up_to_its_range(renderer, depth_far, is_measured):
    sensor = camera(near=1.0, depth_far=depth_far)
    sim, eye = simulate_camera(wall(400.0, rgba=(0.9, 0.1, 0.1, 1.0)), sensor=sensor, renderer=renderer)
    reading = eye.read()
    sim.close()
    assert reading.depth[60, 80] == pytest.approx(400.0 if is_measured else np.inf, rel=1e-3)
    assert reading.color[60, 80, 0] > reading.color[60, 80, 2]


@pytest.mark.parametrize("kind", ["rgbd_camera", "stereo_camera"])
def test_depth_fault_removes_depth_and_disparity_and_keeps_images(kind):
    sim, eye = simulate_camera(wall(3.0), sensor=camera(kind, baseline=0.1 if kind == "stereo_camera" else 0.0))
    expected = eye.read()
    sim.faults.start("blind", SensorFault("post", "eye", "no_depth"))
    reading = sim.faults.read_through_faults(eye)
    sim.close()
    assert np.isfinite(expected.depth).any()
    assert np.isnan(reading.depth).all()
    assert np.array_equal(reading.color, expected.color)
    if kind == "stereo_camera":
        assert (expected.disparity > 0.0).any()
        assert (reading.disparity == -1.0).all()


def test_faults_of_depth_and_color_need_a_camera_that_has_them():
    for kind, mode in (("camera", "no_depth"), ("depth_camera", "dim")):
        sim, _ = simulate_camera(wall(3.0), sensor=camera(kind))
        with pytest.raises(InputError, match=r"measures no depth|sees no colou?rs"):
            sim.faults.start("fault", SensorFault("post", "eye", mode))
        sim.close()


def test_registration_onto_the_same_camera_is_identity():
    depth = np.full((120, 160), 2.0, np.float32)
    for lens in (LENS, DISTORTED_LENS):
        assert np.allclose(register_depth(depth, lens, lens, SE3.identity()), 2.0)


@pytest.mark.parametrize("lens", [LENS, DISTORTED_LENS], ids=["straight", "distorted"])
def test_point_cloud_lies_on_the_objects(lens):
    sim, eye = simulate_camera(wall(3.0), ball(2.0, 0.4), sensor=camera(color=lens, depth=lens))
    reading = eye.read()
    sim.close()
    cloud = make_organized_cloud(reading.depth, lens.ray_slopes(), reading.color)
    points = np.stack([cloud["x"], cloud["y"], cloud["z"]], axis=-1)
    on_ball = points[..., 2] < 2.9
    assert np.allclose(np.linalg.norm(points[on_ball] - [0, 0, 2.0], axis=1), 0.4, atol=3e-3)
    assert np.allclose(points[~on_ball, 2], 3.0, atol=1e-3)
    assert np.array_equal(cloud["rgb"] >> 16, reading.color[..., 0])
    pixels = lens.project(points[on_ball].astype(float))
    rows, columns = np.nonzero(on_ball)
    assert np.allclose(pixels, np.stack([columns, rows], axis=1), atol=1e-2)


def test_stereo_matrices_q_and_p_agree_with_projection():
    lens, baseline = CameraModel(640, 480, 500.0, 480.0, 310.0, 245.0), 0.12
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(-1, 1, (50, 2)), rng.uniform(1, 9, 50)])
    homogeneous = np.column_stack([points, np.ones(50)])
    left, right = (homogeneous @ make_projection_matrix(lens, b).T for b in (0.0, baseline))
    left, right = left[:, :2] / left[:, 2:], right[:, :2] / right[:, 2:]
    d = left[:, 0] - right[:, 0]
    assert (d > 0).all()
    assert np.allclose(left[:, 1], right[:, 1])
    assert make_projection_matrix(lens, baseline)[0, 3] == -lens.fx * baseline  # ROS: Tx = −f B
    back = np.column_stack([left, d, np.ones(50)]) @ make_reprojection_matrix(lens, baseline).T
    assert np.allclose(back[:, :3] / back[:, 3:], points)


def test_stereo_images_are_shifted_by_the_disparity():
    lens, baseline = CameraModel.from_field_of_view(320, 240, 1.0), 0.2
    sensor = camera("stereo_camera", color=lens, depth=lens, baseline=baseline)
    sim, eye = simulate_camera(wall(4.0, rgba=(0, 0, 1, 1)), ball(2.0, 0.3, rgba=(1, 0, 0, 1)), sensor=sensor)
    reading = eye.read()
    sim.close()
    columns = [np.nonzero(p[..., 0].astype(int) > p[..., 2].astype(int) + 20)[1].mean() for p in
               (reading.color, reading.right)]  # fmt: skip
    assert columns[0] - columns[1] == pytest.approx(lens.fx * baseline / 1.97, rel=0.03)
    assert reading.disparity[120, 160] == pytest.approx(lens.fx * baseline / 1.7, abs=0.1)


def test_vignetting_and_shot_noise_follow_their_laws():
    plain = simulate_camera(wall(2.0))
    before = plain[1].read().color
    plain[0].close()
    sim, eye = simulate_camera(wall(2.0), sensor=camera(exposure=Exposure(vignetting=0.5)))
    after = eye.read().color
    sim.close()
    assert compute_luminance(after)[0, 0] / compute_luminance(before)[0, 0] == pytest.approx(0.5, abs=0.05)
    assert after[60, 80, 1] == pytest.approx(before[60, 80, 1], abs=1)
    spread = []
    for gain in (0.2, 0.8):
        sim, eye = simulate_camera(wall(2.0), sensor=camera(exposure=Exposure(gain=gain, full_well=2000.0)))
        light = compute_luminance(eye.read().color)[50:70, 70:90]
        sim.close()
        spread.append(light.std())
    assert spread[1] / spread[0] == pytest.approx(2.0, rel=0.25)


def test_automatic_exposure_gives_all_scenes_one_mean():
    means = []
    for gray in (0.5, 1.0):
        sim, eye = simulate_camera(wall(2.0, rgba=(gray, gray, gray, 1)), sensor=camera(exposure=Exposure(auto=True)))
        means.append(compute_luminance(eye.read().color).mean())
        sim.close()
    assert means[0] == pytest.approx(means[1], rel=0.1)
    assert means[0] == pytest.approx(0.18, rel=0.2)


def test_infrared_fades_with_the_square_of_distance():
    gray = np.full((4, 4, 3), 128, np.uint8)
    near, far = (render_infrared(gray, np.full((4, 4), z, np.float32))[0, 0] for z in (2.0, 4.0))
    assert near / far == pytest.approx(4.0, rel=0.1)


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(lambda shape: arrays(np.uint16, shape)),
)
def test_depth_images_are_readable_png_files(image):
    with Image.open(io.BytesIO(encode_png(image).tobytes())) as found:
        assert np.array_equal(np.asarray(found), image)
