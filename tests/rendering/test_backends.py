"""Choosing a renderer: what a machine without OpenGL, with a broken one, or with a wish gets."""

import os
import subprocess
import sys
import threading
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from roboyard.errors import ConfigError, RunError
from roboyard.geometry import CameraModel
from roboyard.rendering import available_backend, look_at, open_renderer
from roboyard.rendering.ray_renderer import FastRayRenderer

from .scenes import MOVING, compile_scene

BACKENDS = ("rays", "gl") if available_backend() == "gl" else ("rays",)

BACKEND_SCRIPT = """
import os
from roboyard.geometry import CameraModel
from roboyard.rendering import available_backend
print(available_backend(), os.environ.get("MUJOCO_GL"))
"""


def choose_backend(**environment: str) -> list[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    result = subprocess.run(
        [sys.executable, "-c", BACKEND_SCRIPT], env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_opengl_can_be_disabled():
    assert choose_backend(MUJOCO_GL="off") == ["rays", "off"]


@pytest.mark.parametrize(
    "fault",
    ["raise ImportError('no GL here')", "raise AttributeError('NoneType')", "import os; os.abort()"],
    ids=["missing", "broken", "aborting"],
)
def test_broken_opengl_does_not_end_the_process(tmp_path, fault):
    package = tmp_path / "OpenGL"
    package.mkdir()
    (package / "__init__.py").write_text(fault + "\n")
    assert choose_backend(PYTHONPATH=str(tmp_path)) == ["rays", "None"]


@pytest.mark.parametrize(("width", "height"), [(0, 10), (10, -1), (10, 100_000)])
def test_invalid_image_sizes_are_refused(width, height):
    model, _ = compile_scene(MOVING)
    with pytest.raises(ConfigError, match="pixels"):
        open_renderer(model, width, height, "rays")


def test_unknown_renderer_is_refused_with_valid_names():
    model, _ = compile_scene(MOVING)
    with pytest.raises(ConfigError, match="rays"):
        open_renderer(model, 10, 10, "vulkan")  # type: ignore[arg-type]


def test_ray_renderer_is_always_available():
    model, data = compile_scene(MOVING)
    with open_renderer(model, 32, 18, "rays") as renderer:
        assert renderer.backend == "rays"
        assert renderer.render(data, look_at((-1, 0, 1), (1, 0, 0))).shape == (18, 32, 3)


@pytest.fixture
def gl():
    if available_backend() != "gl":
        pytest.skip("OpenGL does not work here: needs PyOpenGL and libegl1 or libosmesa6")


def test_missing_opengl_is_an_error_with_what_to_install():
    if available_backend() == "gl":
        pytest.skip("OpenGL works here")
    model, _ = compile_scene(MOVING)
    with pytest.raises(ConfigError, match="libegl1"):
        open_renderer(model, 10, 10, "gl")


@pytest.mark.usefixtures("gl")
@pytest.mark.parametrize(
    ("eye", "target"),
    [((-1, -0.5, 1.2), (1.5, 0, 0.2)), ((1, 0, 5), (1, 0, 0)), ((-1, 3, 0.4), (0, 0, 0.3))],
    ids=["oblique", "from_above", "from_the_side"],
)
def test_renderers_give_the_same_image(eye, target):
    model, data = compile_scene(MOVING)
    silhouettes, depths = [], []
    for backend in ("gl", "rays"):
        with open_renderer(model, 320, 180, backend) as renderer:
            data.qpos[:3] = 0.0, 0.0, 0.2
            mujoco.mj_forward(model, data)
            with_cart = renderer.render_rgbd(data, look_at(eye, target))[1]
            data.qpos[:3] = 0.0, 0.0, -50.0
            mujoco.mj_forward(model, data)
            without = renderer.render_rgbd(data, look_at(eye, target))[1]
        depths.append(with_cart)
        silhouettes.append(np.abs(with_cart - without) > 0.01)
    assert ((depths[0] > 0) == (depths[1] > 0)).mean() > 0.999
    both = (depths[0] > 0) & (depths[1] > 0)
    assert (np.abs(depths[0] - depths[1])[both] < 0.005 * depths[1][both]).mean() > 0.995
    assert silhouettes[0].sum() > 200
    assert (silhouettes[0] & silhouettes[1]).sum() / (silhouettes[0] | silhouettes[1]).sum() > 0.97


FAR_OBJECTS = """
<mujoco>
  <statistic extent="10"/>
  <worldbody>
    <light type="directional" dir="0.9 0 -0.4"/>
    <geom type="plane" size="0 0 1" rgba="0.2 0.8 0.2 1"/>
    <geom type="box" size="10 60 30" pos="610 0 30" rgba="0.9 0.1 0.1 1"/>
  </worldbody>
</mujoco>"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_objects_farther_than_200_meters_are_drawn(backend):
    model, data = compile_scene(FAR_OBJECTS)
    camera = replace(look_at((0, 0, 30), (10, 0, 30), fov_y=0.2), near=0.5)
    with open_renderer(model, 64, 64, backend) as renderer:
        color, depth = renderer.render_rgbd(data, camera)
    assert depth[32, 32] == pytest.approx(600.0, rel=1e-3)
    assert depth[2, 32] == 0.0  # the sky above the box
    if backend == "gl":  # the ray caster's haze hides its color in a world of this extent
        assert color[32, 32, 0] > 2 * color[32, 32, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_infinite_ground_continues_wherever_the_camera_is(backend):
    """From 100 m above, the ground along a ray of the slope −s lies at a depth of 100 m / s."""
    model, data = compile_scene(FAR_OBJECTS)
    with open_renderer(model, 64, 64, backend) as renderer:
        for x in (3000.0, -2000.0, 0.0):
            camera = replace(look_at((x, 0, 100), (x - 10, 0, 100), fov_y=1.0), near=0.5)
            depth = renderer.render_rgbd(data, camera)[1]
            rows = np.arange(45, 64)
            slopes = (rows + 0.5 - 32.0) / camera.focal_length(64)
            np.testing.assert_allclose(depth[rows, 32], 100.0 / slopes, rtol=1e-3)
            assert depth[45, 32] > 250.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_image_does_not_depend_on_the_image_before(backend):
    model, data = compile_scene(FAR_OBJECTS)
    camera = look_at((7, 3, 2), (17, 3, 1))
    with open_renderer(model, 64, 48, backend) as renderer:
        color, depth = renderer.render_rgbd(data, camera)
        renderer.render(data, look_at((1000, 0, 2), (0, 0, 0)))
        repeated_color, repeated_depth = renderer.render_rgbd(data, camera)
    np.testing.assert_array_equal(repeated_depth, depth)
    np.testing.assert_array_equal(repeated_color, color)


@pytest.mark.usefixtures("gl")
def test_depth_and_geom_images_agree_with_rays():
    glass = '<geom name="pane" type="box" size="0.01 2 1" pos="0.6 0 0.5" rgba="0.6 0.8 0.9 0.3"/></worldbody>'
    model, data = compile_scene(MOVING.replace("</worldbody>", glass))
    camera = look_at((-1, -0.5, 1.2), (1.5, 0, 0.2), fov_y=0.9)
    with open_renderer(model, 320, 180, "gl") as renderer:
        color, depth = renderer.render_rgbd(data, camera)
        depth_of_geom_pass, geoms = renderer.render_depth_and_geoms(data, camera)
        assert np.array_equal(depth, renderer.render_depth(data, camera))
        assert np.array_equal(renderer.render(data, camera), color)  # lamps are on again
    assert np.array_equal(depth_of_geom_pass, depth)
    assert np.array_equal(geoms >= 0, depth > 0.0)
    intrinsics = camera.compute_intrinsics(320, 180)
    camera_model = CameraModel(320, 180, intrinsics.fx, intrinsics.fy, intrinsics.cx - 0.5, intrinsics.cy - 0.5)
    rays = camera_model.pixel_rays().astype(np.float32)
    caster = FastRayRenderer(model)
    assert (caster.render(data, camera, rays, with_color=False)[2] == geoms).mean() > 0.98
    caster.close()
    assert len(np.unique(geoms)) > 5


@pytest.mark.usefixtures("gl")
@pytest.mark.parametrize("sun", [0.3, 0.9, 2.5])
def test_opengl_keeps_the_order_of_brightness_in_any_sun(sun):
    light_xml = (
        f"<light type='directional' dir='0.4 0.3 -0.85' diffuse='{sun} {sun} {sun}' ambient='0 0 0' specular='0 0 0'/>"
    )
    head = "<visual><headlight ambient='0.45 0.45 0.45' diffuse='0.2 0.2 0.2' specular='0 0 0'/></visual>"
    tiles = "".join(
        f"<geom type='box' size='0.5 0.5 0.1' pos='{i} 0 0' rgba='{v} {v} {v} 1'/>"
        for i, v in enumerate((0.8, 0.6, 0.3))
    )
    model, data = compile_scene(f"<mujoco>{head}<worldbody>{light_xml}{tiles}</worldbody></mujoco>")
    with open_renderer(model, 90, 30, "gl") as renderer:
        brightness = renderer.render(data, look_at((1, 0, 4), (1, 0, 0), up=(0, 1, 0)))[15, [36, 45, 54], 0]
    assert 255 > brightness[0] > brightness[1] > brightness[2] > 40
    assert brightness[0] > 120


@pytest.mark.usefixtures("gl")
def test_opengl_renderer_is_bound_to_its_thread():
    model, data = compile_scene(MOVING)
    renderer, caught = open_renderer(model, 32, 18, "gl"), []

    def render_in_thread():
        try:
            renderer.render(data, look_at((-1, 0, 1), (1, 0, 0)))
        except RunError as error:
            caught.append(error)

    thread = threading.Thread(target=render_in_thread)
    thread.start()
    thread.join()
    assert len(caught) == 1
    renderer.close()
    renderer.close()
    with pytest.raises(RunError, match="closed"):
        renderer.render(data, look_at((-1, 0, 1), (1, 0, 0)))
