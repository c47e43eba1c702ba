"""The ray caster: depth against formulas and the engine's own rays, looks against common sense, bytes against bytes."""

import math

import mujoco
import numpy as np
import pytest

from roboyard.rendering import RenderCamera, look_at
from roboyard.rendering.lighting import (
    CASTS_SHADOW,
    COLOR,
    CUTOFF,
    DIRECTION,
    FADE_DISTANCE,
    IS_SUN,
    LIGHT_COLUMNS,
    POSITION,
)
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.rendering.shading import (
    BLOCK_SIZE,
    Lighting,
    MaterialTable,
    ShadowTable,
    SurfacePoints,
    make_shadow_rays,
    shade,
)

from .scenes import BALL_OVER_PLANE, MOVING, compile_scene

WIDTH, HEIGHT = 160, 90


def directions_of(camera: RenderCamera) -> np.ndarray:
    x, y = np.meshgrid(np.arange(WIDTH) + 0.5 - WIDTH / 2, np.arange(HEIGHT) + 0.5 - HEIGHT / 2)
    focal = camera.focal_length(HEIGHT)
    optical = np.stack([x / focal, y / focal, np.ones_like(x)], axis=2)
    return optical @ camera.T_world_camera.rotation_matrix().T  # one metre along the optical axis each


def test_ray_depth_of_a_plane_agrees_with_the_formula():
    model, data = compile_scene("<mujoco><worldbody><geom type='plane' size='0 0 1'/></worldbody></mujoco>")
    camera = look_at((0, 0, 2), (3, 0.5, 0))
    with RayRenderer(model, WIDTH, HEIGHT) as renderer:
        _, depth = renderer.render_rgbd(data, camera)
    down = -directions_of(camera)[..., 2]
    is_on_plane = (down > 0.05) & (depth > 0)
    assert is_on_plane.mean() > 0.5
    assert np.allclose(depth[is_on_plane], 2 / down[is_on_plane], rtol=1e-4)
    assert (depth[down <= 0] == 0).all()


def test_ray_depth_agrees_with_mujoco_rays():
    model, data = compile_scene(MOVING)
    data.qpos[:3] = 1.0, 0.1, 0.3
    data.qpos[7] = 0.7
    mujoco.mj_forward(model, data)
    camera = look_at((-1, -0.5, 1.2), (1.5, 0, 0.2))
    with RayRenderer(model, WIDTH, HEIGHT) as renderer:
        _, depth = renderer.render_rgbd(data, camera)
    directions = directions_of(camera)
    eye = np.asarray(camera.T_world_camera.translation)
    groups, geom = np.array([1, 1, 1, 0, 0, 0], np.uint8), np.zeros(1, np.int32)
    wrong = 0
    for row in range(0, HEIGHT, 5):
        for column in range(0, WIDTH, 5):
            direction = directions[row, column]
            true = mujoco.mj_ray(model, data, eye, direction, groups, 1, -1, geom, None)
            wrong += abs(depth[row, column] - max(true, 0.0)) > 2e-3 * max(true, 1.0)
    assert wrong <= 4  # outlines of round things, which are polygons here


def test_orthographic_image_has_its_depth_and_scale():
    model, data = compile_scene(BALL_OVER_PLANE)
    above = RenderCamera(look_at((2, 0, 5), (2, 0, 0)).T_world_camera, orthographic_height=2.0)
    with RayRenderer(model, 100, 100) as renderer:
        image, depth = renderer.render_rgbd(data, above)
    assert depth[50, 50] == pytest.approx(4.0, abs=2e-3)
    ball = image[..., 0] > 2 * image[..., 1].astype(int)
    assert ball.sum() * 0.02**2 == pytest.approx(math.pi * 0.25, rel=0.03)


def test_objects_have_their_colors_and_hidden_groups_none():
    model, data = compile_scene(BALL_OVER_PLANE)
    with RayRenderer(model, WIDTH, HEIGHT) as renderer:
        image = renderer.render(data, look_at((0, 0, 0.5), (2, 0, 0.5))).astype(int)
        assert image[45, 80, 0] > 2 * image[45, 80, 1]  # the ball
        assert image[15, 80, 2] > image[15, 80, 0] + 30  # the wall behind
        assert np.ptp(image[85, 80]) < 25  # grey ground
        model.geom("ball").rgba[:3] = 0.1, 0.8, 0.1
        assert np.argmax(renderer.render(data, look_at((0, 0, 0.5), (2, 0, 0.5)))[45, 80]) == 1


def test_shadow_is_darker_than_the_ground_around_it():
    model, data = compile_scene(
        "<mujoco><worldbody><light type='directional' dir='1 0 -1'/><geom type='plane' size='0 0 1'/>"
        "<geom type='sphere' size='0.3' pos='0 0 1'/></worldbody></mujoco>"
    )
    camera = RenderCamera(look_at((0.5, 0, 6), (0.5, 0, 0)).T_world_camera, orthographic_height=4.0)
    with RayRenderer(model, 100, 100) as renderer:
        image = renderer.render(data, camera).astype(int).sum(2)
    row = image[50]
    shadow, open_ground = row[int(50 + (1.0 - 0.5) * 25)], row[int(50 + (2.2 - 0.5) * 25)]
    assert shadow < 0.75 * open_ground


def test_corners_are_darker_than_open_ground():
    model, data = compile_scene(
        "<mujoco><worldbody><light type='directional' dir='0 0 -1' castshadow='false'/>"
        "<geom type='plane' size='5 5 1'/><geom type='box' size='2 0.1 1' pos='0 0.1 1'/></worldbody></mujoco>"
    )
    camera = RenderCamera(look_at((0, -1, 6), (0, -1, 0)).T_world_camera, orthographic_height=2.0)
    with RayRenderer(model, 100, 100) as renderer:
        image = renderer.render(data, camera).astype(int).sum(2)
    corner_brightness, ground_brightness = image[2, 50], image[98, 50]
    assert corner_brightness < 0.95 * ground_brightness


def test_glass_shows_objects_behind_it():
    text = (
        "<mujoco><worldbody><geom name='wall' type='box' size='0.1 2 2' pos='4 0 0' rgba='1 0 0 1'/>"
        "<geom type='box' size='0.01 2 2' pos='2 0 0' rgba='0 0 1 {alpha}'/></worldbody></mujoco>"
    )
    colors = []
    for alpha in (0.0, 0.5, 1.0):
        model, data = compile_scene(text.format(alpha=alpha))
        with RayRenderer(model, 32, 18) as renderer:
            colors.append(renderer.render(data, look_at((0, 0, 0), (1, 0, 0)))[9, 16].astype(int))
    assert colors[0][0] > 100
    assert colors[0][2] < 60
    assert colors[1][0] > 50
    assert colors[1][2] > 50
    assert colors[2][0] < 60
    assert colors[2][2] > 100


def test_images_repeat_with_any_number_of_threads():
    model, data = compile_scene(MOVING)
    camera, images = look_at((-1, -0.5, 1.2), (1.5, 0, 0.2)), []
    for threads in (1, 2, 3, 1):
        with RayRenderer(model, WIDTH, HEIGHT, threads=threads) as renderer:
            images.append(renderer.render(data, camera).tobytes())
            assert renderer.render(data, camera).tobytes() == images[-1]
    assert len({*images}) == 1


def test_body_is_drawn_at_its_present_pose():
    model, data = compile_scene(MOVING)
    camera = RenderCamera(look_at((1, 0, 8), (1, 0, 0)).T_world_camera, orthographic_height=4.0)
    with RayRenderer(model, 200, 200) as renderer:
        for x, y in ((0.3, 0.2), (1.4, -0.1)):
            data.qpos[:2] = x, y
            mujoco.mj_kinematics(model, data)
            image = renderer.render(data, camera).astype(int)
            rows, columns = np.nonzero((image[..., 0] > 150) & (image[..., 2] < 110) & (image[..., 1] < 190))
            is_chassis = np.hypot((columns - 100) / 50 + 1 - x, (100 - rows) / 50 - y) < 0.5
            assert ((columns[is_chassis] - 100) / 50 + 1).mean() == pytest.approx(x, abs=0.15)
            assert ((100 - rows[is_chassis]) / 50).mean() == pytest.approx(y, abs=0.1)


def test_empty_world_shows_only_sky():
    model, data = compile_scene("<mujoco/>")
    with RayRenderer(model, 64, 36) as renderer:
        image, depth = renderer.render_rgbd(data, look_at((0, 0, 1), (1, 0, 1.5)))
    assert (depth == 0).all()
    assert (image[..., 2] > 150).all()
    assert image[0, 0, 0] < image[-1, 0, 0]  # bluer overhead


def test_light_at_a_point_is_independent_of_its_neighbors():
    # Points are shaded in blocks: whole ones, the rest of one, and single points must come out alike.
    random = np.random.default_rng(3)
    count = 2 * BLOCK_SIZE + 17
    points = random.uniform(-4, 4, (count, 3)).astype(np.float32)
    normals, directions = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in random.normal(size=(2, count, 3)))
    normals, directions = normals.astype(np.float32), directions.astype(np.float32)
    lights = np.zeros((4, LIGHT_COLUMNS), np.float32)
    lights[:, COLOR : COLOR + 3] = np.array([0.3, 4.0, 9.0, 1.0])[:, None] * random.uniform(0.9, 1.1, (4, 3))
    lights[:, POSITION : POSITION + 3] = (0, 0, 0), (2, 1, 0), (0, 0, 5), (1, 1, 1)
    lights[:, DIRECTION + 2], lights[:, CUTOFF], lights[:, CASTS_SHADOW] = -1.0, -1.0, 1.0
    lights[0, IS_SUN], lights[1:3, FADE_DISTANCE], lights[2, CUTOFF], lights[3, CASTS_SHADOW] = 1.0, 2.0, 0.3, 0.0
    hits = np.where(random.random(count) < 0.2, -1, random.integers(0, 3, count)).astype(np.int32)
    materials = random.uniform(0.1, 1.0, (3, 6)).astype(np.float32)
    geoms, environment_light = np.arange(3, dtype=np.int32), random.uniform(0, 1, (3, 3)).astype(np.float32)
    ambient_visibility, distances = random.uniform(0, 1, (2, count)).astype(np.float32)

    def shade_rows(rows: np.ndarray) -> tuple[np.ndarray, ...]:
        rows_with_shadow_ray, origins, light_directions, lengths, light_of_hit, shadow_fraction = make_shadow_rays(
            points[rows], normals[rows], hits[rows], lights
        )
        shadowed_light = (
            np.where(np.arange(len(rows)) % 2 == 0, light_of_hit, -1).astype(np.int32)
            if len(rows) > 1
            else light_of_hit
        )
        light = shade(
            SurfacePoints(points[rows], normals[rows], ambient_visibility[rows]),
            directions[rows],
            hits[rows],
            distances[rows],
            MaterialTable(geoms, materials, False),
            ShadowTable(shadowed_light, shadow_fraction),
            Lighting(lights, environment_light),
        )
        return light, light_of_hit, shadow_fraction, rows_with_shadow_ray, origins, light_directions, lengths

    light, light_of_hit, shadow_fraction, rows_with_shadow_ray, origins, light_directions, lengths = shade_rows(
        np.arange(count)
    )
    assert set(light_of_hit[hits < 0]) == {-1}
    assert {0, 1, 2} <= set(light_of_hit)  # each lamp that casts shadows matters most somewhere, and the other nowhere
    assert 3 not in set(light_of_hit)
    for row in range(0, count, 2):  # those in shadow above
        alone = shade_rows(np.array([row]))
        assert (alone[0][0] == light[row]).all()
        assert (alone[1][0], alone[2][0]) == (light_of_hit[row], shadow_fraction[row])
        for one, all_ in zip(alone[4:], (origins, light_directions, lengths), strict=True):
            assert (one == all_[rows_with_shadow_ray == row]).all()
    expected_lengths = np.where(
        light_of_hit[rows_with_shadow_ray] == 0,
        1e4,
        np.linalg.norm(lights[light_of_hit[rows_with_shadow_ray], 1:4] - points[rows_with_shadow_ray], axis=1),
    )
    assert lengths == pytest.approx(expected_lengths, rel=1e-6)
