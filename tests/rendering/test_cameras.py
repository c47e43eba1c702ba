"""Cameras: what they see is where it should be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.rendering import (
    ChaseCamera,
    RenderCamera,
    look_at,
    make_visibility_function,
    overview,
    top_view,
    world_bounds,
)

from .scenes import BALL_OVER_PLANE, compile_scene

coordinate_strategy = st.tuples(*[st.floats(-20, 20)] * 3).map(np.array)


def project_to_image(camera: RenderCamera, point, width: float, height: float) -> tuple[float, float, float]:
    x, y, z = camera.T_world_camera.inverse() @ np.asarray(point, float)
    focal = camera.focal_length(int(height))
    return width / 2 + focal * x / z, height / 2 + focal * y / z, z


@given(coordinate_strategy, coordinate_strategy)
def test_camera_centers_its_target_with_up_upwards(eye, target):
    if np.linalg.norm(target - eye) < 0.1:
        return
    camera = look_at(eye, target)
    column, row, depth = project_to_image(camera, target, 640, 360)
    assert (column, row) == pytest.approx((320, 180), abs=1e-3)
    assert depth == pytest.approx(np.linalg.norm(target - eye))
    rotation = camera.T_world_camera.rotation_matrix()
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert rotation[2, 1] <= 1e-6  # the picture's down never points up


@given(
    coordinate_strategy,
    st.tuples(*[st.floats(0.1, 30)] * 3).map(np.array),
    st.floats(-3.1, 3.1),
    st.floats(0.05, 1.5),
    st.floats(0.5, 2.5),
)
def test_overview_camera_fits_the_bounding_box(low, size, azimuth, elevation, aspect):
    camera = overview(low, low + size, aspect=aspect, azimuth=azimuth, elevation=elevation, margin=1.0)
    corners = [low + size * [i & 1, i >> 1 & 1, i >> 2] for i in range(8)]
    projected = np.array([project_to_image(camera, corner, 400 * aspect, 400) for corner in corners])
    assert (projected[:, 2] > 0).all()
    extent = np.abs(projected[:, :2] - [200 * aspect, 200]) / [200 * aspect, 200]
    assert extent.max() == pytest.approx(1.0, abs=0.01)  # rounding to whole pixels of height aside


def test_top_view_has_east_right_and_north_up():
    camera = top_view((-6, -4, 0), (6, 4, 1), aspect=1.5)
    center, east, north = (project_to_image(camera, p, 600, 400) for p in ((0, 0, 0), (1, 0, 0), (0, 1, 0)))
    assert east[0] > center[0] + 10
    assert east[1] == pytest.approx(center[1], abs=1e-6)
    assert north[1] < center[1] - 10
    assert north[0] == pytest.approx(center[0], abs=1e-6)


def test_scene_bounds_exclude_infinite_ground():
    low, high = world_bounds(*compile_scene(BALL_OVER_PLANE))
    assert np.allclose(low, [1.5, -1, 0], atol=1e-6)
    assert np.allclose(high, [5.1, 1, 2], atol=1e-6)


def test_chase_camera_settles_behind_the_robot_smoothly():
    chase_camera, pose = (
        ChaseCamera(distance=2.0, height=1.0, look_ahead=0.3, time_constant=0.4),
        SE3.from_xyz_rpy((1, 2, 0.1), (0, 0, 0.5)),
    )
    eyes = [chase_camera.update(SE3.identity(), 0.0).T_world_camera.translation]
    eyes += [chase_camera.update(pose, 0.05 * k).T_world_camera.translation for k in range(1, 200)]
    settled = np.array([1 - 2 * math.cos(0.5), 2 - 2 * math.sin(0.5), 1.1])
    assert np.allclose(eyes[-1], settled, atol=1e-6)
    assert np.linalg.norm(np.diff(eyes, axis=0), axis=1).max() < 0.12 * np.linalg.norm(settled - eyes[0])


def test_chase_camera_turns_along_the_shorter_arc():
    chase_camera = ChaseCamera(time_constant=0.3)
    chase_camera.update(SE3.from_xyz_rpy((0, 0, 0), (0, 0, 3.1)), 0.0)
    camera = chase_camera.update(SE3.from_xyz_rpy((0, 0, 0), (0, 0, -3.1)), 0.1)
    assert camera.T_world_camera.translation[0] > 2.0  # behind a robot that heads to -x


def test_chase_camera_stays_on_the_robot_side_of_walls():
    model, data = compile_scene(
        "<mujoco><worldbody><geom type='box' size='0.1 5 2' pos='-1 0 2'/>"
        "<body><freejoint/><geom size='0.2'/></body></worldbody></mujoco>"
    )
    find_visible_fraction = make_visibility_function(model, data)
    camera = ChaseCamera(distance=3.0, height=1.2).update(SE3.identity(), 0.0, find_visible_fraction)
    assert camera.T_world_camera.translation[0] > -0.9
    assert find_visible_fraction(np.array([0.0, 0, 0.5]), np.array([-4.0, 0, 0.5])) == pytest.approx(0.9 / 4.0)
    assert find_visible_fraction(np.array([0.0, 0, 0.5]), np.array([4.0, 0, 0.5])) == 1.0
    assert find_visible_fraction(np.array([0.0, 0, 0.0]), np.array([0.0, 0, 0.0])) == 1.0


@pytest.mark.parametrize("target", [(1.0, 2.0, 3.0), (math.nan, 0.0, 0.0), (math.inf, 0.0, 0.0)])
def test_camera_target_at_its_own_position_is_refused(target: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="two different points of finite coordinates"):
        look_at((1.0, 2.0, 3.0), target)
