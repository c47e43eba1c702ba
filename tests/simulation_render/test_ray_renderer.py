"""The ray caster: depth against formulas and the engine's own rays, looks against common sense, bytes against bytes."""

import math

import mujoco
import numpy as np
import pytest

from roboyard.simulation.render import Camera, look_at
from roboyard.simulation.render.rays import RayRenderer
from roboyard.simulation.render.shading import (
    AIM,
    BLOCK,
    COLOUR,
    CUTOFF,
    FADE,
    LAMP_COLUMNS,
    PLACE,
    SHADOW,
    SUN,
    shade,
    shadow_rays,
)

from .scenes import BALL_OVER_PLANE, MOVING, compile_scene

WIDTH, HEIGHT = 160, 90


def directions_of(camera: Camera) -> np.ndarray:
    x, y = np.meshgrid(np.arange(WIDTH) + 0.5 - WIDTH / 2, np.arange(HEIGHT) + 0.5 - HEIGHT / 2)
    focal = camera.focal(HEIGHT)
    optical = np.stack([x / focal, y / focal, np.ones_like(x)], axis=2)
    return optical @ camera.T_world_camera.rotation_matrix().T  # one metre along the optical axis each


def test_ray_depth_of_a_plane_agrees_with_the_formula():
    model, data = compile_scene("<mujoco><worldbody><geom type='plane' size='0 0 1'/></worldbody></mujoco>")
    camera = look_at((0, 0, 2), (3, 0.5, 0))
    with RayRenderer(model, WIDTH, HEIGHT) as renderer:
        _, depth = renderer.rgbd(data, camera)
    down = -directions_of(camera)[..., 2]
    near = (down > 0.05) & (depth > 0)
    assert near.mean() > 0.5
    assert np.allclose(depth[near], 2 / down[near], rtol=1e-4)
    assert (depth[down <= 0] == 0).all()


def test_ray_depth_agrees_with_mujoco_rays():
    model, data = compile_scene(MOVING)
    data.qpos[:3] = 1.0, 0.1, 0.3
    data.qpos[7] = 0.7
    mujoco.mj_forward(model, data)
    camera = look_at((-1, -0.5, 1.2), (1.5, 0, 0.2))
    with RayRenderer(model, WIDTH, HEIGHT) as renderer:
        _, depth = renderer.rgbd(data, camera)
    ways = directions_of(camera)
    eye = np.asarray(camera.T_world_camera.translation)
    groups, geom = np.array([1, 1, 1, 0, 0, 0], np.uint8), np.zeros(1, np.int32)
    wrong = 0
    for row in range(0, HEIGHT, 5):
        for column in range(0, WIDTH, 5):
            way = ways[row, column]
            true = mujoco.mj_ray(model, data, eye, way, groups, 1, -1, geom, None)
            wrong += abs(depth[row, column] - max(true, 0.0)) > 2e-3 * max(true, 1.0)
    assert wrong <= 4  # outlines of round things, which are polygons here


def test_orthographic_image_has_its_depth_and_scale():
    model, data = compile_scene(BALL_OVER_PLANE)
    above = Camera(look_at((2, 0, 5), (2, 0, 0)).T_world_camera, span=2.0)
    with RayRenderer(model, 100, 100) as renderer:
        picture, depth = renderer.rgbd(data, above)
    assert depth[50, 50] == pytest.approx(4.0, abs=2e-3)
    ball = picture[..., 0] > 2 * picture[..., 1].astype(int)
    assert ball.sum() * 0.02**2 == pytest.approx(math.pi * 0.25, rel=0.03)


def test_objects_have_their_colors_and_hidden_groups_none():
    model, data = compile_scene(BALL_OVER_PLANE)
    with RayRenderer(model, WIDTH, HEIGHT) as renderer:
        picture = renderer.render(data, look_at((0, 0, 0.5), (2, 0, 0.5))).astype(int)
        assert picture[45, 80, 0] > 2 * picture[45, 80, 1]  # the ball
        assert picture[15, 80, 2] > picture[15, 80, 0] + 30  # the wall behind
        assert np.ptp(picture[85, 80]) < 25  # grey ground
        model.geom("ball").rgba[:3] = 0.1, 0.8, 0.1
        assert np.argmax(renderer.render(data, look_at((0, 0, 0.5), (2, 0, 0.5)))[45, 80]) == 1


def test_shadow_is_darker_than_the_ground_beside_it():
    model, data = compile_scene(
        "<mujoco><worldbody><light type='directional' dir='1 0 -1'/><geom type='plane' size='0 0 1'/>"
        "<geom type='sphere' size='0.3' pos='0 0 1'/></worldbody></mujoco>"
    )
    camera = Camera(look_at((0.5, 0, 6), (0.5, 0, 0)).T_world_camera, span=4.0)
    with RayRenderer(model, 100, 100) as renderer:
        picture = renderer.render(data, camera).astype(int).sum(2)
    row = picture[50]
    shadow, open_ground = row[int(50 + (1.0 - 0.5) * 25)], row[int(50 + (2.2 - 0.5) * 25)]
    assert shadow < 0.75 * open_ground


def test_corners_are_darker_than_open_ground():
    model, data = compile_scene(
        "<mujoco><worldbody><light type='directional' dir='0 0 -1' castshadow='false'/>"
        "<geom type='plane' size='5 5 1'/><geom type='box' size='2 0.1 1' pos='0 0.1 1'/></worldbody></mujoco>"
    )
    camera = Camera(look_at((0, -1, 6), (0, -1, 0)).T_world_camera, span=2.0)
    with RayRenderer(model, 100, 100) as renderer:
        picture = renderer.render(data, camera).astype(int).sum(2)
    foot, far = picture[2, 50], picture[98, 50]
    assert foot < 0.95 * far


def test_glass_shows_objects_behind_it():
    text = (
        "<mujoco><worldbody><geom name='wall' type='box' size='0.1 2 2' pos='4 0 0' rgba='1 0 0 1'/>"
        "<geom type='box' size='0.01 2 2' pos='2 0 0' rgba='0 0 1 {alpha}'/></worldbody></mujoco>"
    )
    seen = []
    for alpha in (0.0, 0.5, 1.0):
        model, data = compile_scene(text.format(alpha=alpha))
        with RayRenderer(model, 32, 18) as renderer:
            seen.append(renderer.render(data, look_at((0, 0, 0), (1, 0, 0)))[9, 16].astype(int))
    assert seen[0][0] > 100
    assert seen[0][2] < 60
    assert seen[1][0] > 50
    assert seen[1][2] > 50
    assert seen[2][0] < 60
    assert seen[2][2] > 100


def test_images_repeat_with_any_number_of_threads():
    model, data = compile_scene(MOVING)
    camera, pictures = look_at((-1, -0.5, 1.2), (1.5, 0, 0.2)), []
    for threads in (1, 2, 3, 1):
        with RayRenderer(model, WIDTH, HEIGHT, threads=threads) as renderer:
            pictures.append(renderer.render(data, camera).tobytes())
            assert renderer.render(data, camera).tobytes() == pictures[-1]
    assert len({*pictures}) == 1


def test_body_is_drawn_at_its_present_pose():
    model, data = compile_scene(MOVING)
    camera = Camera(look_at((1, 0, 8), (1, 0, 0)).T_world_camera, span=4.0)
    with RayRenderer(model, 200, 200) as renderer:
        for x, y in ((0.3, 0.2), (1.4, -0.1)):
            data.qpos[:2] = x, y
            mujoco.mj_kinematics(model, data)
            picture = renderer.render(data, camera).astype(int)
            rows, columns = np.nonzero((picture[..., 0] > 150) & (picture[..., 2] < 110) & (picture[..., 1] < 190))
            near = np.hypot((columns - 100) / 50 + 1 - x, (100 - rows) / 50 - y) < 0.5
            assert ((columns[near] - 100) / 50 + 1).mean() == pytest.approx(x, abs=0.15)
            assert ((100 - rows[near]) / 50).mean() == pytest.approx(y, abs=0.1)


def test_empty_world_shows_only_sky():
    model, data = compile_scene("<mujoco/>")
    with RayRenderer(model, 64, 36) as renderer:
        picture, depth = renderer.rgbd(data, look_at((0, 0, 1), (1, 0, 1.5)))
    assert (depth == 0).all()
    assert (picture[..., 2] > 150).all()
    assert picture[0, 0, 0] < picture[-1, 0, 0]  # bluer overhead


def test_light_at_a_point_is_independent_of_its_neighbors():
    # Points are shaded in blocks: whole ones, the rest of one, and single points must come out alike.
    random = np.random.default_rng(3)
    count = 2 * BLOCK + 17
    points = random.uniform(-4, 4, (count, 3)).astype(np.float32)
    normals, directions = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in random.normal(size=(2, count, 3)))
    normals, directions = normals.astype(np.float32), directions.astype(np.float32)
    lamps = np.zeros((4, LAMP_COLUMNS), np.float32)
    lamps[:, COLOUR : COLOUR + 3] = np.array([0.3, 4.0, 9.0, 1.0])[:, None] * random.uniform(0.9, 1.1, (4, 3))
    lamps[:, PLACE : PLACE + 3] = (0, 0, 0), (2, 1, 0), (0, 0, 5), (1, 1, 1)
    lamps[:, AIM + 2], lamps[:, CUTOFF], lamps[:, SHADOW] = -1.0, -1.0, 1.0
    lamps[0, SUN], lamps[1:3, FADE], lamps[2, CUTOFF], lamps[3, SHADOW] = 1.0, 2.0, 0.3, 0.0
    hits = np.where(random.random(count) < 0.2, -1, random.integers(0, 3, count)).astype(np.int32)
    looks = random.uniform(0.1, 1.0, (3, 6)).astype(np.float32)
    geoms, surround = np.arange(3, dtype=np.int32), random.uniform(0, 1, (3, 3)).astype(np.float32)
    openness, distances = random.uniform(0, 1, (2, count)).astype(np.float32)

    def lit(rows: np.ndarray) -> tuple[np.ndarray, ...]:
        chosen, starts, towards, lengths, key, share = shadow_rays(points[rows], normals[rows], hits[rows], lamps)
        dark = np.where(np.arange(len(rows)) % 2 == 0, key, -1).astype(np.int32) if len(rows) > 1 else key
        light = shade(
            points[rows], normals[rows], openness[rows], directions[rows], hits[rows], distances[rows],
            geoms, looks, dark, share, lamps, surround,
        )  # fmt: skip
        return light, key, share, chosen, starts, towards, lengths

    light, key, share, chosen, starts, towards, lengths = lit(np.arange(count))
    assert set(key[hits < 0]) == {-1}
    assert {0, 1, 2} <= set(key)  # each lamp that casts shadows matters most somewhere, and the other nowhere
    assert 3 not in set(key)
    for row in range(0, count, 2):  # those in shadow above
        alone = lit(np.array([row]))
        assert (alone[0][0] == light[row]).all()
        assert (alone[1][0], alone[2][0]) == (key[row], share[row])
        for one, all_ in zip(alone[4:], (starts, towards, lengths), strict=True):
            assert (one == all_[chosen == row]).all()
    lengths_wanted = np.where(key[chosen] == 0, 1e4, np.linalg.norm(lamps[key[chosen], 1:4] - points[chosen], axis=1))
    assert lengths == pytest.approx(lengths_wanted, rel=1e-6)
