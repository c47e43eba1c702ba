"""Surface voxels of the ground truth agree with sampled triangles and with an octree map made from noiseless images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup import catalog
from roboyard.description import load_world
from roboyard.errors import ConfigError
from roboyard.mapping.evaluation.map_error import VoxelAgreement, compare_voxels
from roboyard.mapping.octree import OctreeMap, OctreeMapConfig
from roboyard.mapping.octree.octree import VOXEL_FREE, VOXEL_OCCUPIED, VOXEL_UNKNOWN, to_dense
from roboyard.mapping.octree.voxel_blocks import ORIGIN_KEY
from roboyard.rendering.cameras import look_at
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import mark_triangle_voxels, voxelize_surfaces

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_triangle_voxels_hold_all_its_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    triangle = rng.uniform(-2.0, 10.0, (1, 3, 3))
    larger, smaller = np.zeros((8, 8, 8), np.bool_), np.zeros((8, 8, 8), np.bool_)
    mark_triangle_voxels(triangle, larger, 1e-9)
    mark_triangle_voxels(triangle, smaller, -1e-9)
    assert not (smaller & ~larger).any()
    barycentric = rng.dirichlet((1.0, 1.0, 1.0), 20000)
    cells = np.floor(barycentric @ triangle[0]).astype(int)
    cells = np.unique(cells[((cells >= 0) & (cells < 8)).all(axis=1)], axis=0)
    hit = np.zeros_like(larger)
    hit[tuple(cells.T)] = True
    assert not (hit & ~larger).any()
    # a voxel without a sample is hardly touched: a voxel a tenth smaller is not
    inner = np.zeros_like(larger)
    mark_triangle_voxels(triangle, inner, -0.2)
    assert not (inner & ~hit).any()


def test_map_agreement_counts_known_voxels_only() -> None:
    state = np.array(
        [
            VOXEL_OCCUPIED,
            VOXEL_OCCUPIED,
            VOXEL_OCCUPIED,
            VOXEL_FREE,
            VOXEL_FREE,
            VOXEL_FREE,
            VOXEL_UNKNOWN,
            VOXEL_UNKNOWN,
        ],
        np.uint8,
    ).reshape(8, 1, 1)
    touched = np.array([1, 1, 0, 1, 1, 0, 1, 0], np.bool_).reshape(8, 1, 1)
    crossed = np.array([1, 0, 0, 1, 0, 0, 1, 0], np.bool_).reshape(8, 1, 1)
    found = compare_voxels(state, touched, crossed)
    assert found == VoxelAgreement(true_occupied=2, false_occupied=1, missed_occupied=1)
    assert (found.precision, found.recall, found.iou) == (2 / 3, 2 / 3, 0.5)
    empty = VoxelAgreement(0, 0, 0)
    assert empty.precision is empty.recall is empty.iou is None


class Corridor:
    """The corridor, and a depth camera that moves through it."""

    def __init__(self) -> None:
        self.simulation = Simulation(load_world(catalog.WORLDS.resolve("corridor")))
        scene = self.simulation.visual_scene()
        self.model, self.data = scene.model, scene.data
        self.renderer = RayRenderer(scene.model, 320, 240, antialias=False, shadows=False)

    def cloud(self, eye: Any, target: Any, noise: float, random: np.random.Generator) -> tuple[Any, Any]:
        camera = look_at(eye, target, fov_y=0.84)
        colors, depth = self.renderer.render_rgbd(self.data, camera)
        depth = depth + noise * random.standard_normal(depth.shape) * depth**2
        u, v = np.meshgrid(np.arange(320) + 0.5 - 160, np.arange(240) + 0.5 - 120)
        focal = camera.focal_length(240)
        points = np.stack([u / focal * depth, v / focal * depth, depth], axis=-1).reshape(-1, 3)
        points[depth.reshape(-1) <= 0.0] = np.nan
        return camera.T_world_camera @ points, colors.reshape(-1, 3)


@pytest.fixture(scope="module")
def corridor() -> Iterator[Corridor]:
    scene = Corridor()
    yield scene
    scene.renderer.close()
    scene.simulation.close()


@pytest.mark.parametrize(
    ("resolution", "noise", "shift", "min_iou"),
    [(0.05, 0.0, 0.0, 0.95), (0.1, 0.0, 0.0, 0.95), (0.05, 0.0, 0.02, 0.9), (0.05, 0.0019, 0.02, 0.6)],
)
def test_octree_of_exact_images_agrees_with_the_world(
    corridor: Corridor, resolution: float, noise: float, shift: float, min_iou: float
) -> None:
    random = np.random.default_rng(0)
    octree = OctreeMap(OctreeMapConfig(resolution=resolution))
    for k in range(4):
        eye = np.array([1.5 + 0.3 * k, 0.1, 0.75])
        points, colors = corridor.cloud(eye, (6.0, 0.0, 0.5), noise, random)
        octree.insert(points + shift, eye + shift, colors)  # walls not along the voxels' borders
    state, low = to_dense(octree.leaves())
    corner = (low - ORIGIN_KEY) * resolution - shift
    touched, crossed = voxelize_surfaces(
        corridor.model, corridor.data, corner, state.shape, resolution, tolerance=0.02 * resolution
    )
    found = compare_voxels(state, touched, crossed)
    assert found.true_occupied > 1000
    assert found.iou is not None
    assert found.iou >= min_iou
    displaced, _ = voxelize_surfaces(
        corridor.model, corridor.data, corner + 0.3, state.shape, resolution, tolerance=0.02 * resolution
    )
    wrong = compare_voxels(state, displaced, displaced)
    assert wrong.iou is not None
    assert wrong.iou < 0.5  # a map laid 0.3 m beside does not agree


def test_voxels_can_omit_models_and_refuse_invalid_input(corridor: Corridor) -> None:
    low, shape = np.array([1.0, -1.5, -0.1]), (20, 30, 10)
    all_models = voxelize_surfaces(corridor.model, corridor.data, low, shape, 0.1, tolerance=0.002)
    assert all_models[0].any()
    assert not (all_models[1] & ~all_models[0]).any()
    names = tuple({corridor.model.geom(g).name.split("::")[0] for g in range(corridor.model.ngeom)})
    no_models = voxelize_surfaces(
        corridor.model, corridor.data, low, shape, 0.1, tolerance=0.002, excluded_models=names
    )
    assert not no_models[0].any()
    for resolution, tolerance, cells in ((0.0, 0.0, shape), (0.1, 0.06, shape), (0.1, 0.0, (10**4,) * 3)):
        with pytest.raises(ConfigError):
            voxelize_surfaces(corridor.model, corridor.data, low, cells, resolution, tolerance=tolerance)
