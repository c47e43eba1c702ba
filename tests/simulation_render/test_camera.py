"""Cameras: what they see is where it should be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.geometry import SE3
from roboyard.simulation.render import Camera, ChaseCamera, look_at, overview, sight_through, top_view, world_bounds

from .scenes import BALL_OVER_PLANE, compile_scene

coordinates = st.tuples(*[st.floats(-20, 20)] * 3).map(np.array)


def seen_at(camera: Camera, point, width: float, height: float) -> tuple[float, float, float]:
    x, y, z = camera.T_world_camera.inverse() @ np.asarray(point, float)
    focal = camera.focal(int(height))
    return width / 2 + focal * x / z, height / 2 + focal * y / z, z


@given(coordinates, coordinates)
def test_camera_centers_its_target_with_up_upwards(eye, target):
    if np.linalg.norm(target - eye) < 0.1:
        return
    camera = look_at(eye, target)
    column, row, depth = seen_at(camera, target, 640, 360)
    assert (column, row) == pytest.approx((320, 180), abs=1e-3)
    assert depth == pytest.approx(np.linalg.norm(target - eye))
    rotation = camera.T_world_camera.rotation_matrix()
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert rotation[2, 1] <= 1e-6  # the picture's down never points up


@given(
    coordinates,
    st.tuples(*[st.floats(0.1, 30)] * 3).map(np.array),
    st.floats(-3.1, 3.1),
    st.floats(0.05, 1.5),
    st.floats(0.5, 2.5),
)
def test_overview_camera_fits_the_bounding_box(low, size, azimuth, elevation, aspect):
    camera = overview(low, low + size, aspect=aspect, azimuth=azimuth, elevation=elevation, margin=1.0)
    corners = [low + size * [i & 1, i >> 1 & 1, i >> 2] for i in range(8)]
    seen = np.array([seen_at(camera, corner, 400 * aspect, 400) for corner in corners])
    assert (seen[:, 2] > 0).all()
    reach = np.abs(seen[:, :2] - [200 * aspect, 200]) / [200 * aspect, 200]
    assert reach.max() == pytest.approx(1.0, abs=0.01)  # rounding to whole pixels of height aside


def test_top_view_has_east_right_and_north_up():
    camera = top_view((-6, -4, 0), (6, 4, 1), aspect=1.5)
    middle, east, north = (seen_at(camera, p, 600, 400) for p in ((0, 0, 0), (1, 0, 0), (0, 1, 0)))
    assert east[0] > middle[0] + 10
    assert east[1] == pytest.approx(middle[1], abs=1e-6)
    assert north[1] < middle[1] - 10
    assert north[0] == pytest.approx(middle[0], abs=1e-6)


def test_scene_bounds_exclude_infinite_ground():
    low, high = world_bounds(*compile_scene(BALL_OVER_PLANE))
    assert np.allclose(low, [1.5, -1, 0], atol=1e-6)
    assert np.allclose(high, [5.1, 1, 2], atol=1e-6)


def test_chase_camera_settles_behind_the_robot_smoothly():
    chase, pose = ChaseCamera(distance=2.0, height=1.0, lead=0.3, lag=0.4), SE3.from_xyz_rpy((1, 2, 0.1), (0, 0, 0.5))
    eyes = [chase.update(SE3.identity(), 0.0).T_world_camera.translation]
    eyes += [chase.update(pose, 0.05 * k).T_world_camera.translation for k in range(1, 200)]
    settled = np.array([1 - 2 * math.cos(0.5), 2 - 2 * math.sin(0.5), 1.1])
    assert np.allclose(eyes[-1], settled, atol=1e-6)
    assert np.linalg.norm(np.diff(eyes, axis=0), axis=1).max() < 0.12 * np.linalg.norm(settled - eyes[0])


def test_chase_camera_turns_along_the_shorter_arc():
    chase = ChaseCamera(lag=0.3)
    chase.update(SE3.from_xyz_rpy((0, 0, 0), (0, 0, 3.1)), 0.0)
    camera = chase.update(SE3.from_xyz_rpy((0, 0, 0), (0, 0, -3.1)), 0.1)
    assert camera.T_world_camera.translation[0] > 2.0  # behind a robot that heads to -x


def test_chase_camera_stays_on_the_robot_side_of_walls():
    model, data = compile_scene(
        "<mujoco><worldbody><geom type='box' size='0.1 5 2' pos='-1 0 2'/>"
        "<body><freejoint/><geom size='0.2'/></body></worldbody></mujoco>"
    )
    sight = sight_through(model, data)
    camera = ChaseCamera(distance=3.0, height=1.2).update(SE3.identity(), 0.0, sight)
    assert camera.T_world_camera.translation[0] > -0.9
    assert sight(np.array([0.0, 0, 0.5]), np.array([-4.0, 0, 0.5])) == pytest.approx(0.9 / 4.0)
    assert sight(np.array([0.0, 0, 0.5]), np.array([4.0, 0, 0.5])) == 1.0
    assert sight(np.array([0.0, 0, 0.0]), np.array([0.0, 0, 0.0])) == 1.0
