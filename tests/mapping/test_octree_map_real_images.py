"""A real picture of an RGB-D camera, a table with things on it, as an octree map.

Pictures of a Kinect from PCL's data (segmentation/mOSD), in the folder that ROBOYARD_DATA names.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from roboyard.mapping.octree import OctreeMap, OctreeMapConfig, read_octree, write_octree
from roboyard.messages.convert import unpack_rgb

FRAMES = Path(os.environ.get("ROBOYARD_DATA", "")) / "rgbd"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (FRAMES / "learn0.pcd.gz").is_file(), reason="ROBOYARD_DATA names no RGB-D pictures"),
]


def unpacked(data: bytes, size: int) -> bytes:
    """LZF: runs of bytes as they are, and references back to what was written."""
    out, offset = bytearray(), 0
    while offset < len(data):
        control = data[offset]
        offset += 1
        if control < 32:
            out += data[offset : offset + control + 1]
            offset += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += data[offset]
            offset += 1
        start = len(out) - ((control & 31) << 8) - data[offset] - 1
        offset += 1
        for _ in range(length + 2):
            out.append(out[start])
            start += 1
    assert len(out) == size
    return bytes(out)


def frame(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) in the optical frame [m] and colours (n, 3)."""
    content = gzip.decompress((FRAMES / name).read_bytes())
    head, data = content.split(b"DATA binary_compressed\n", 1)
    fields = next(line.split()[1:] for line in head.decode().splitlines() if line.startswith("FIELDS"))
    packed, size = np.frombuffer(data[:8], np.uint32)
    columns = np.frombuffer(unpacked(data[8 : 8 + int(packed)], int(size)), np.float32).reshape(len(fields), -1)
    points = np.column_stack([columns[fields.index(axis)] for axis in "xyz"]).astype(np.float64)
    return points, unpack_rgb(columns[fields.index("rgba")])


@pytest.mark.parametrize("name", ["learn0.pcd.gz", "learn10.pcd.gz", "learn20.pcd.gz"])
def test_real_depth_image_is_mapped_and_read_by_octomap(tmp_path: Path, name: str) -> None:
    points, colors = frame(name)
    finite = np.isfinite(points).all(axis=1) & (points[:, 2] > 0.0)
    points[~finite] = np.nan
    assert finite.sum() > 100_000
    octree = OctreeMap(OctreeMapConfig(resolution=0.02))
    insertion = octree.insert(points, np.zeros(3), colors)
    assert insertion.n_points == finite.sum()
    assert insertion.n_beams < insertion.n_points / 5
    near_points = points[finite & (np.linalg.norm(points, axis=1) < 5.0)]
    assert octree.occupied(near_points).all()
    halfway = octree.log_odds(near_points[::97] * 0.5)
    assert (halfway < 0.0).mean() > 0.97  # what lies before is free
    leaves = octree.leaves()
    assert leaves.colors is not None
    spread = leaves.colors[leaves.occupied].astype(float).std(axis=0)
    assert (spread > 10.0).all()  # a coloured scene
    write_octree(tmp_path / "real.ot", octree)
    restored = OctreeMap(octree.config)
    restored.set_leaves(read_octree(tmp_path / "real.ot").leaves)
    assert restored.encode_full() == octree.encode_full()
    octomap = pytest.importorskip("pyoctomap")
    assert octomap.ColorOcTree(str(tmp_path / "real.ot")).size() == leaves.n_nodes
