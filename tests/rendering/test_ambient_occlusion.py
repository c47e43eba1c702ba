"""Openness of what stands still: dark in corners, open far off, and found in bounded time however rich a world."""

import numpy as np
import pytest
from tests.rendering.scenes import compile_scene

from roboyard.rendering import ambient_occlusion
from roboyard.rendering.ambient_occlusion import AmbientOcclusion, bake_ambient_occlusion
from roboyard.rendering.ray_scene import RayScene

CORNER = """<mujoco><worldbody>
  <geom name="ground" type="box" size="3 3 0.1" pos="0 0 -0.1"/>
  <geom name="wall" type="box" size="0.1 3 1" pos="-2 0 1"/>
  <geom name="ball" type="sphere" size="0.3" pos="1.5 0 0.29"/>
</worldbody></mujoco>"""


def visibility_of(shape: str, scene: RayScene, occlusion: AmbientOcclusion) -> np.ndarray:
    """Openness at the spots of a shape; all that have none are open."""
    geom = {"ground": 0, "wall": 1, "ball": 2}[shape]
    cells = (occlusion.cells + 1).prod(axis=1)
    samples = [
        occlusion.values[occlusion.value_indices[a : a + n]]
        for a, n, g in zip(occlusion.start, cells, scene.geoms, strict=True)
        if g == geom and a >= 0
    ]
    return np.concatenate(samples) if samples else np.ones(1)


def test_ambient_occlusion_darkens_corners() -> None:
    scene = RayScene(compile_scene(CORNER)[0])
    found = visibility_of("ground", scene, bake_ambient_occlusion(scene))
    assert found.max() == pytest.approx(1.0, abs=0.01)
    assert found.min() < 0.7


def test_more_small_faces_than_samples_terminate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faces that have one cell each need their spots, whatever the spacing."""
    monkeypatch.setattr(ambient_occlusion, "MAX_SAMPLES", 20)
    scene = RayScene(compile_scene(CORNER)[0])
    assert visibility_of("ball", scene, bake_ambient_occlusion(scene)).min() < 0.9


def test_shapes_with_too_many_faces_have_no_occlusion(monkeypatch: pytest.MonkeyPatch) -> None:
    """The richest go first; the others are as dark as ever."""
    scene = RayScene(compile_scene(CORNER)[0])
    before = bake_ambient_occlusion(scene)
    monkeypatch.setattr(ambient_occlusion, "MAX_TRIANGLES", 30)
    after = bake_ambient_occlusion(scene)
    assert visibility_of("ball", scene, before).min() < 0.9
    assert visibility_of("ball", scene, after).min() == 1.0
    assert visibility_of("ground", scene, after).min() == pytest.approx(
        visibility_of("ground", scene, before).min(), abs=0.05
    )
