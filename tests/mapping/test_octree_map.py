"""Octree maps: bit by bit the trees that OctoMap makes of the same beams, and nothing a file says can hurt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError, InputError
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, voxel_downsample
from roboyard.mapping.octree import OccupancySensorModel, OctreeMap, OctreeMapConfig, read_octree, write_octree
from roboyard.mapping.octree.cloud_filters import GroundFilter, segment_ground
from roboyard.mapping.octree.octomap_files import decode_octree
from roboyard.mapping.octree.octree_map import log_odds, project_to_plane
from roboyard.mapping.octree.voxel_blocks import (
    ORIGIN_KEY,
    VOXEL_OFFSETS,
    index_in_block,
    morton_decode,
    morton_encode,
    voxel_keys,
)

SEEDS = st.integers(0, 2**32 - 1)
LONG_RANGE = OccupancySensorModel(max_range=50.0)


def cloud(rng: np.random.Generator, count: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points about a sensor, its place, and colours; all of 32 bits."""
    origin = rng.uniform(-2.0, 2.0, 3).astype(np.float32).astype(float)
    points = origin + rng.normal(0.0, 1.0, (count, 3)) * (2.0, 2.0, 0.7)
    return points.astype(np.float32).astype(float), origin, rng.integers(0, 255, (count, 3)).astype(np.uint8)


def make_octree(seed: int, clouds: int = 3, *, color: bool = True, resolution: float = 0.1) -> OctreeMap:
    rng = np.random.default_rng(seed)
    octree = OctreeMap(OctreeMapConfig(resolution=resolution))
    for _ in range(clouds):
        points, origin, colors = cloud(rng)
        octree.insert(points, origin, colors if color else None)
    return octree


def test_octree_keys_codes_and_block_indices_are_inverses() -> None:
    keys = np.random.default_rng(0).integers(0, 65536, (500, 3))
    assert np.array_equal(morton_decode(morton_encode(keys)), keys)
    assert np.array_equal(VOXEL_OFFSETS[index_in_block(keys)], keys % 8)
    assert np.array_equal(morton_encode(keys) & np.uint64(511), index_in_block(keys).astype(np.uint64))


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([0.05, 0.1, 0.13, 0.5]))
def test_octree_equals_octomaps_tree_of_the_same_beams(seed: int, resolution: float) -> None:
    octomap = pytest.importorskip("pyoctomap")
    rng = np.random.default_rng(seed)
    octree = OctreeMap(OctreeMapConfig(resolution=resolution, sensor_model=LONG_RANGE))
    peer = octomap.OcTree(resolution)
    for _ in range(4):
        points, origin, _ = cloud(rng)
        octree.insert_rays(origin, points, voxel_keys(points, resolution), len(points))
        peer.insertPointCloud(points, origin, -1.0, False, False)
    tree = peer.write()
    assert octree.encode_full(color=False) == tree[tree.index(b"\ndata\n") + 6 :]
    probes = rng.uniform(-4.0, 4.0, (200, 3))
    labels = peer.getLabels(probes)
    assert np.array_equal(np.where(np.isnan(octree.log_odds(probes)), -1, octree.occupied(probes)), labels)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_octomap_roundtrip_keeps_octree_files(seed: int) -> None:
    octomap = pytest.importorskip("pyoctomap")
    import tempfile

    octree = make_octree(seed)
    with tempfile.TemporaryDirectory() as folder:
        full, plain, binary = (Path(folder) / name for name in ("a.ot", "b.ot", "c.bt"))
        write_octree(full, octree)
        write_octree(plain, octree, color=False)
        write_octree(binary, octree)
        assert octomap.ColorOcTree(str(full)).write() == full.read_bytes()
        assert octomap.OcTree(0.1).read(str(plain)).write() == plain.read_bytes()
        peer = octomap.OcTree(0.3)
        assert peer.readBinary(str(binary))
        assert peer.writeBinary() == binary.read_bytes()
        assert peer.getResolution() == pytest.approx(0.1)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(0, 3))
def test_octree_file_roundtrip_is_byte_identical(seed: int, clouds: int) -> None:
    import tempfile

    octree = make_octree(seed, clouds)
    with tempfile.TemporaryDirectory() as folder:
        for name, color in (("a.ot", True), ("b.ot", False), ("c.bt", False)):
            path = Path(folder) / name
            write_octree(path, octree, color=color)
            found = read_octree(path)
            assert found.tree_type == ("ColorOcTree" if color else "OcTree")
            assert found.binary == (name == "c.bt")
            restored = OctreeMap(octree.config)
            restored.set_leaves(found.leaves)
            other = path.with_stem("again")
            write_octree(other, restored, color=color)
            assert other.read_bytes() == path.read_bytes()
            leaves = octree.leaves()
            assert found.leaves.volume(occupied=True) == pytest.approx(leaves.volume(occupied=True))
            if not found.binary:
                assert np.array_equal(found.leaves.codes, leaves.codes)
                assert np.array_equal(found.leaves.values, leaves.values)
                assert found.leaves.n_nodes == leaves.n_nodes


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.booleans(), st.booleans(), st.integers(0, 2**20), st.integers(0, 255))
def test_damaged_octree_bytes_are_refused_or_read(
    seed: int, binary: bool, cut: bool, position: int, value: int
) -> None:
    octree = make_octree(seed % 7, 1)
    data = bytearray(octree.encode_binary() if binary else octree.encode_full())
    kind = "OcTree" if binary else "ColorOcTree"
    position %= len(data)
    if cut:
        del data[position:]
        if position:
            with pytest.raises(InputError, match="ends within a node|no number|below level|no.*child"):
                decode_octree(bytes(data), tree_type=kind, binary=binary, resolution=0.1)
        return
    data[position] = value
    try:
        leaves = decode_octree(bytes(data), tree_type=kind, binary=binary, resolution=0.1)
    except InputError:
        return
    assert np.all(np.diff(leaves.codes.astype(np.int64)) > 0)
    try:
        octree.set_leaves(leaves)
    except InputError as error:
        assert "at most" in str(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "first line"),
        (b"# Octomap OcTree file\nid OcTree\nsize 0\nres 0.1\n", "does not end"),
        (b"# Octomap OcTree file\nsize 0\nres 0.1\ndata\n", "'id'"),
        (b"# Octomap OcTree file\nid OcTree\nsize x\nres 0.1\ndata\n", "'size'"),
        (b"# Octomap OcTree file\nid OcTree\nsize 0\nres -1\ndata\n", "resolution"),
        (b"# Octomap OcTree file\nid OcTree\nsize 0\nres 1e999\ndata\n", "resolution"),
        (b"# Octomap OcTree file\nid OcTree\nsize 0\nres --\ndata\n", "resolution"),
        (b"# Octomap OcTree file\nid StampedTree\nsize 0\nres 0.1\ndata\n", "StampedTree"),
        (b"# Octomap OcTree file\nid OcTree\nsize 7\nres 0.1\ndata\n\0\0\0\0\0", "says 7 nodes"),
        (b"# Octomap OcTree file\nid OcTree\nsize 1\nres 0.1\ndata\n\0\0\0\0\0!", "left behind"),
        (b"# Octomap OcTree file\nid OcTree\nsize 1\nres 0.1\ndata\n\0\0\xc0\x7f\0", "no number"),
        (b"# Octomap OcTree binary file\nid OcTree\nsize 1\nres 0.1\ndata\n\0\0", "has none"),
        (b"# Octomap OcTree binary file\nid OcTree\nsize 1\nres 0.1\ndata\n" + b"\x03\0" * 17, "below level 16"),
    ],
)
def test_unknown_octree_file_types_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "map.ot"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_octree(path)
    assert str(path) in str(caught.value)


def test_invalid_octree_files_are_refused(tmp_path: Path) -> None:
    octree = make_octree(1)
    with pytest.raises(InputError, match="No such file"):
        read_octree(tmp_path / "none.bt")
    with pytest.raises(InputError, match=r"\*\.bt or \*\.ot"):
        write_octree(tmp_path / "map.pgm", octree)
    with pytest.raises(InputError, match="cannot be written"):
        write_octree(tmp_path / "no" / "map.bt", octree)
    huge = tmp_path / "huge.ot"
    huge.write_bytes(b"# Octomap OcTree file\nid OcTree\nsize 1\nres 0.1\ndata\n\0\0\0\0\0")
    leaves = read_octree(huge).leaves  # one leaf of 65536³ voxels
    assert leaves.sizes[0] == pytest.approx(6553.6)
    with pytest.raises(InputError, match="a tree of 281474976710656 voxels"):
        OctreeMap(OctreeMapConfig(resolution=0.1)).set_leaves(leaves)
    with pytest.raises(InputError, match="the map's resolution"):
        OctreeMap(OctreeMapConfig(resolution=0.2)).set_leaves(octree.leaves())


def test_large_octree_leaves_are_inserted() -> None:
    octree = OctreeMap(OctreeMapConfig(resolution=0.1))
    edge = np.arange(40) * 0.1 + 0.05
    points = np.stack(np.meshgrid(edge, edge, edge), axis=-1).reshape(-1, 3)
    octree.insert_rays(np.array([-1.0, 0.0, 0.0]), points, voxel_keys(points, 0.1), len(points))
    leaves = octree.leaves()
    assert leaves.edge_voxels.max() == 32
    assert leaves.volume(occupied=True) == pytest.approx(4.0**3)
    assert len(leaves.occupied_keys()) == 40**3
    restored = OctreeMap(octree.config)
    restored.set_leaves(leaves)
    assert restored.encode_full() == octree.encode_full()


def test_octree_repeats_and_continues_bit_for_bit() -> None:
    rng = np.random.default_rng(3)
    clouds = [cloud(rng) for _ in range(6)]
    one, two, late = (OctreeMap(OctreeMapConfig(resolution=0.1)) for _ in range(3))
    for k, (points, origin, colors) in enumerate(clouds):
        one.insert(points, origin, colors)
        if k == 3:
            late.load_state(two.save_state())
        (late if k >= 3 else two).insert(points, origin, colors)
    assert late.encode_full() == one.encode_full()
    assert late.encode_binary() == one.encode_binary()
    assert make_octree(5).encode_full() == make_octree(5).encode_full()


def test_voxel_occupancy_is_clamped_and_reversible() -> None:
    octree = OctreeMap(OctreeMapConfig(resolution=0.1, sensor_model=LONG_RANGE))
    wall, behind, origin = np.array([[1.05, 0.05, 0.05]]), np.array([[2.05, 0.05, 0.05]]), np.array([0.05, 0.05, 0.05])
    octree.insert(wall, origin)
    assert octree.log_odds(wall)[0] == log_odds(0.7)
    assert octree.log_odds([[0.55, 0.05, 0.05]])[0] == log_odds(0.4)
    assert np.isnan(octree.log_odds(behind)[0])
    for _ in range(20):
        octree.insert(wall, origin)
    assert octree.log_odds(wall)[0] == log_odds(0.97)
    assert octree.log_odds([[0.55, 0.05, 0.05]])[0] == log_odds(0.12)
    count = 0
    while octree.occupied(wall)[0]:
        octree.insert(behind, origin)
        count += 1
    assert count == 9  # of log-odds 0.41 until 3.48 are gone
    assert octree.occupied(behind)[0]


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_downsampling_keeps_each_voxel_and_its_mean(seed: int) -> None:
    points, origin, colors = cloud(np.random.default_rng(seed), 500)
    thinned = voxel_downsample(points, colors, 0.2)
    keys = voxel_keys(points, 0.2) - ORIGIN_KEY
    assert np.array_equal(np.unique(thinned.keys, axis=0), np.unique(keys, axis=0))
    assert np.array_equal(voxel_keys(thinned.points, 0.2) - ORIGIN_KEY, thinned.keys)
    first = (keys == thinned.keys[0]).all(axis=1)
    assert np.allclose(thinned.points[0], points[first].mean(axis=0))
    assert thinned.colors is not None
    assert np.abs(thinned.colors[0] - colors[first].mean(axis=0)).max() <= 0.5
    octree = OctreeMap(OctreeMapConfig(resolution=0.2, sensor_model=LONG_RANGE))
    found = octree.insert(points, origin)
    assert octree.occupied(points).all()  # what one cloud sees both ways is occupied
    assert found.n_occupied_voxels == found.n_beams == len(thinned.keys)


def test_points_out_of_range_and_ground_points_only_clear() -> None:
    octree = OctreeMap(OctreeMapConfig(resolution=0.1, sensor_model=OccupancySensorModel(min_range=0.5, max_range=2.0)))
    points = np.array([[5.0, 0.05, 0.05], [0.05, 0.2, 0.05], [0.05, 0.05, -0.95], [np.nan, 0, 0], [np.inf, 0, 0]])
    found = octree.insert(points, [0.05, 0.05, 0.05], ground=[False, False, True, False, False])
    assert found.n_occupied_voxels == 0
    assert found.n_beams == found.n_points == 2
    assert octree.log_odds([[1.95, 0.05, 0.05]])[0] < 0
    assert octree.log_odds([[0.05, 0.05, -0.85]])[0] < 0
    assert np.isnan(octree.log_odds([[2.25, 0.05, 0.05], [0.05, 0.2, 0.05], [0.05, 0.05, -0.95]])).all()


def test_voxel_colors_are_averaged() -> None:
    octree = OctreeMap(OctreeMapConfig(resolution=0.1))
    point = np.array([[1.05, 0.05, 0.05]])
    octree.insert(point, np.zeros(3), np.array([[200, 100, 0]]))
    octree.insert(point, np.zeros(3), np.array([[100, 100, 50]]))
    leaves = octree.leaves()
    assert leaves.colors is not None
    assert leaves.colors[leaves.occupied].tolist() == [[150, 100, 25]]
    assert octree.to_octree().colors[-1].tolist() == [150, 100, 25]


def test_octree_clears_a_box_and_everything() -> None:
    octree = make_octree(2)
    leaves = octree.leaves()
    low, high = np.array([-1.0, -1.0, -1.0]), np.array([1.0, 1.0, 1.0])
    inside = octree.occupied(leaves.centers) & ((leaves.centers > low) & (leaves.centers < high)).all(axis=1)
    assert inside.any()
    assert octree.clear_box(low, high) >= inside.sum()
    assert not octree.occupied(leaves.centers[inside]).any()
    others = leaves.occupied & ((leaves.centers < low - 0.1) | (leaves.centers > high + 0.1)).any(axis=1)
    assert octree.occupied(leaves.centers[others]).all()
    with pytest.raises(InputError, match="finite"):
        octree.clear_box([np.nan, 0, 0], [1, 1, 1])
    octree.clear()
    assert len(octree.leaves()) == 0
    assert octree.encode_full() == octree.encode_binary() == b""


def test_invalid_octree_input_is_refused() -> None:
    octree = OctreeMap()
    with pytest.raises(InputError, match=r"\(n, 3\)"):
        octree.insert(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(InputError, match="colours"):
        octree.insert(np.zeros((3, 3)), np.zeros(3), np.zeros((2, 3)))
    with pytest.raises(InputError, match="ground"):
        octree.insert(np.zeros((3, 3)), np.zeros(3), ground=[True])
    for origin in ([np.nan, 0, 0], [1e5, 0, 0]):
        with pytest.raises(InputError, match="beyond the map's reach"):
            octree.insert(np.zeros((3, 3)), origin)
    fine = OctreeMap(OctreeMapConfig(resolution=0.01, sensor_model=OccupancySensorModel(max_range=1000.0)))
    with pytest.raises(InputError, match="coarser resolution"):
        fine.insert(np.array([[300.0, 300.0, 300.0]]), np.array([-300.0, -300.0, -300.0]))
    assert octree.insert(np.zeros((0, 3)), np.zeros(3)).n_beams == 0
    for wrong in ({"hit": 0.4}, {"miss": 0.6}, {"min_range": 6.0}, {"max_range": float("nan")}):
        with pytest.raises(ConfigError):
            OccupancySensorModel(**wrong)
    with pytest.raises(ConfigError, match="above min"):
        OctreeMapConfig(occupancy_threshold=0.05)


def test_projection_shows_voxels_within_the_height_band() -> None:
    octree = OctreeMap(OctreeMapConfig(resolution=0.1, sensor_model=LONG_RANGE))
    x, y = np.meshgrid(np.arange(10) * 0.1 + 1.05, np.arange(5) * 0.1 + 0.05)
    plate = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, 0.75)])
    octree.insert(plate, np.array([0.05, 0.05, 1.55]))
    for low, high, expected in ((0.7, 0.8, OCCUPIED), (0.0, 0.5, UNKNOWN), (0.85, 1.5, FREE)):
        grid = project_to_plane(octree.leaves(), low, high)
        cells = grid.geometry.cells_of_points(plate[:, :2])
        inside = grid.geometry.contains(cells)
        values = grid.cells[tuple(cells[inside].T)]
        if expected == OCCUPIED:
            assert inside.all()
            assert (values == OCCUPIED).all()
            assert np.count_nonzero(grid.cells == OCCUPIED) == 50
        elif expected == FREE:
            assert (values == FREE).any()
            assert not (grid.cells == OCCUPIED).any()
        else:
            assert not (values == OCCUPIED).any()
    assert project_to_plane(OctreeMap().leaves(), 0.0, 1.0).geometry.shape == (0, 0)


@pytest.mark.parametrize("tilt", [0.0, 0.08])
def test_tilted_ground_with_a_box_is_segmented(tilt: float) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.uniform(0.3, 3.0, 2000), rng.uniform(-1.0, 1.0, 2000)
    floor = np.column_stack([x, y, tilt * x + rng.normal(0.0, 0.01, 2000)])
    box = np.column_stack([np.full(500, 1.5), rng.uniform(-0.3, 0.3, 500), rng.uniform(0.25, 0.6, 500)])
    found = segment_ground(np.vstack([floor, box]), GroundFilter(), np.random.default_rng(0))
    assert found[:2000].mean() > 0.99
    assert not found[2000:].any()
    assert not segment_ground(box, GroundFilter(), np.random.default_rng(0)).any()
