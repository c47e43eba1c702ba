"""Terrains: heights agree with rectangles and triangles, types have their defined shape, equal seeds repeat."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.terrain import TERRAINS, Terrain, generate_terrain


def build_terrain(kind: str, seed: int = 0, **settings: float) -> Terrain:
    return generate_terrain(kind, (2.0, 1.0), np.random.default_rng(seed), corner=(0.5, -0.5), **settings)


@pytest.mark.parametrize("kind", TERRAINS.names())
def test_terrain_repeats_by_seed_and_stays_within_its_height_range(kind: str) -> None:
    first, second = build_terrain(kind, 3, height_range=0.2), build_terrain(kind, 3, height_range=0.2)
    assert (first.heights == second.heights).all()
    assert np.ptp(first.heights) <= (1.0 if kind == "stairs" else 0.2) + 1e-12
    assert first.size == pytest.approx((2.0, 1.0))
    assert first.height_at([[0.4, 0.0], [2.6, 0.0], [1.0, 0.6]]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("kind", [kind for kind in TERRAINS.names() if not TERRAINS[kind].smooth])
def test_level_rectangles_cover_terrain_once(kind: str) -> None:
    terrain = build_terrain(kind, 1, fraction=0.4)
    rng = np.random.default_rng(2)
    points = rng.uniform([0.5, -0.5], [2.5, 0.5], (400, 2))
    boxes = terrain.level_rectangles()
    inside = (points[:, None] >= boxes[None, :, :2]).all(axis=2) & (points[:, None] < boxes[None, :, 2:4]).all(axis=2)
    assert (inside.sum(axis=1) <= 1).all()
    np.testing.assert_allclose((inside * boxes[:, 4]).sum(axis=1), terrain.height_at(points))


def test_smooth_terrain_is_continuous_through_its_corners() -> None:
    terrain = build_terrain("rough", 5)
    rows, columns = np.indices(terrain.heights.shape)
    corners = np.stack([0.5 + 0.2 * columns, -0.5 + 0.2 * rows], axis=-1)
    np.testing.assert_allclose(terrain.height_at(corners.clip([0.5, -0.5], [2.5, 0.5])), terrain.heights, atol=1e-9)
    line = np.linspace([0.5, -0.4], [2.5, 0.37], 5000)
    assert np.abs(np.diff(terrain.height_at(line))).max() < 1e-3


def test_stairs_rise_and_ditches_fall_by_the_height_range() -> None:
    assert build_terrain("stairs", height_range=0.15).heights[0].max() == pytest.approx(0.15 * 4)
    assert set(np.diff(build_terrain("stairs", height_range=0.15).heights[0][:5]).round(9)) == {0.15, 0.0}
    assert set(build_terrain("ditch", height_range=0.3).heights.ravel()) == {0.0, -0.3}
    assert set(build_terrain("wall", height_range=0.3).heights.ravel()) == {0.0, 0.3}


def test_invalid_terrain_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="blocks"):
        build_terrain("block")
    with pytest.raises(InputError, match="fraction"):
        build_terrain("stones", fraction=1.5)
    with pytest.raises(InputError, match="250000"):
        generate_terrain("blocks", (1000.0, 1000.0), np.random.default_rng(0))
    with pytest.raises(InputError, match="heights"):
        Terrain(np.full((2, 2), np.nan), 0.1, (0.0, 0.0))
    with pytest.raises(InputError, match="boxes"):
        build_terrain("rough").level_rectangles()
