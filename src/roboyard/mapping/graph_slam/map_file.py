"""A pose graph map in a file: nodes with their scans, edges and submaps, to be extended or to localize in.

The file is a numpy archive without pickled objects: arrays, and a header in JSON. The file may come from anywhere, so
the reader checks sizes before it unpacks anything, and every index before it uses it.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.config import atomic_path
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.mapping.graph_slam.submaps import Submap
from roboyard.mapping.pose_graph import PoseGraphEdge, PoseGraphNode
from roboyard.mapping.scan import PreprocessedScan

FORMAT, VERSION = "roboyard pose graph", 1
MAX_BYTES = 8 << 30
"""Of a file's arrays together."""
_VALID = "a pose graph map written by GraphSlam.save_map"
_ARRAY_SHAPES = {
    "times": (), "poses": (3,), "paths": (), "parts": (), "lasers": (), "origins": (2,), "point_counts": (),
    "points": (2,), "normals": (2,), "end_counts": (), "ends": (2,), "pairs": (2,), "measured": (3,),
    "information": (3, 3), "loops": (), "anchors": (), "submap_paths": (), "submap_parts": (), "member_counts": (),
    "members": (), "cell_counts": (), "cells": (5,),
}  # fmt: skip
_INTEGER_ARRAYS = {
    "times",
    "parts",
    "lasers",
    "point_counts",
    "end_counts",
    "pairs",
    "anchors",
    "submap_parts",
    "member_counts",
    "members",
    "cell_counts",
}


@dataclass(slots=True)
class PoseGraphMap:
    """A map of graph SLAM, complete: it can be extended and localized in.

    Attributes:
        nodes: Scans of the map and their poses.
        edges: Measured relative poses of the nodes.
        submaps: Submaps, all finished.
        no_return_counts: Readings of each laser without a return; see ``ScanPreprocessor.save_state``.
    """

    nodes: list[PoseGraphNode] = field(default_factory=list)
    edges: list[PoseGraphEdge] = field(default_factory=list)
    submaps: list[Submap] = field(default_factory=list)
    no_return_counts: dict[str, int] = field(default_factory=dict)


def save_pose_graph_map(path: str | Path, pose_graph_map: PoseGraphMap) -> Path:
    """Write a pose graph map; a file of that name is replaced.

    Raises:
        InputError: The file cannot be written.
    """
    nodes, edges, submaps = pose_graph_map.nodes, pose_graph_map.edges, pose_graph_map.submaps
    lasers = sorted({node.scan.laser_name for node in nodes})
    header = {"format": FORMAT, "version": VERSION, "lasers": lasers, "nothing": pose_graph_map.no_return_counts}
    poses = [(node.pose.x, node.pose.y, node.pose.theta) for node in nodes]
    measurements = [(edge.measurement.x, edge.measurement.y, edge.measurement.theta) for edge in edges]
    cells = [submap.surfels if submap.surfels is not None else np.zeros((0, 5)) for submap in submaps]
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
        "times": np.array([node.time_ns for node in nodes], dtype=np.int64),
        "poses": np.array(poses, dtype=np.float64).reshape(-1, 3),
        "paths": np.array([node.distance for node in nodes], dtype=np.float64),
        "parts": np.array([node.trajectory_id for node in nodes], dtype=np.int64),
        "lasers": np.array([lasers.index(node.scan.laser_name) for node in nodes], dtype=np.int64),
        "origins": np.array([node.scan.origin for node in nodes], dtype=np.float64).reshape(-1, 2),
        "point_counts": np.array([len(node.scan.points) for node in nodes], dtype=np.int64),
        "points": _concatenate([node.scan.points for node in nodes], 2, np.float64),
        "normals": _concatenate([node.scan.normals for node in nodes], 2, np.float64),
        "end_counts": np.array([len(node.scan.ends) for node in nodes], dtype=np.int64),
        "ends": _concatenate([node.scan.ends for node in nodes], 2, np.float32),
        "pairs": np.array([(edge.first, edge.second) for edge in edges], dtype=np.int64).reshape(-1, 2),
        "measured": np.array(measurements, dtype=np.float64).reshape(-1, 3),
        "information": np.array([edge.information for edge in edges], dtype=np.float64).reshape(-1, 3, 3),
        "loops": np.array([edge.is_loop for edge in edges], dtype=np.bool_),
        "anchors": np.array([submap.anchor for submap in submaps], dtype=np.int64),
        "submap_paths": np.array([submap.distance for submap in submaps], dtype=np.float64),
        "submap_parts": np.array([submap.trajectory_id for submap in submaps], dtype=np.int64),
        "member_counts": np.array([len(submap.nodes) for submap in submaps], dtype=np.int64),
        "members": np.array([node_index for submap in submaps for node_index in submap.nodes], dtype=np.int64),
        "cell_counts": np.array([len(submap_cells) for submap_cells in cells], dtype=np.int64),
        "cells": _concatenate(cells, 5, np.float64),
    }
    target = Path(path)
    try:
        with atomic_path(target) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(target)) from error
    return target


def _concatenate(parts: list[Any], width: int, dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros((0, width), dtype=dtype), *parts]).astype(dtype)


def load_pose_graph_map(path: str | Path) -> PoseGraphMap:
    """Read a pose graph map that ``save_pose_graph_map`` wrote.

    Raises:
        InputError: The file is missing, holds no pose graph map, is damaged, or is larger than ``MAX_BYTES``.
    """
    location = str(path)
    arrays = _read_arrays(Path(path), location)
    try:
        header = json.loads(bytes(arrays.pop("header", np.zeros(0, np.uint8)).astype(np.uint8)).decode())
        lasers = [str(name) for name in header["lasers"]]
        no_return_counts = {str(key): int(count) for key, count in header["nothing"].items()}
        is_supported = header["format"] == FORMAT and header["version"] == VERSION
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("its header is not readable", location=location, valid=_VALID) from error
    if not is_supported:
        raise InputError(
            f"holds {str(header['format'])[:40]!r}", location=location, valid=f"{FORMAT!r}, version {VERSION}"
        )
    _check_arrays(arrays, len(lasers), location)
    return PoseGraphMap(_unpack_nodes(arrays, lasers), _unpack_edges(arrays), _unpack_submaps(arrays), no_return_counts)


def _read_arrays(path: Path, location: str) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > MAX_BYTES:
                raise InputError(f"would unpack to {size} bytes", location=location, valid=f"at most {MAX_BYTES}")
            members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            array_names = [*_ARRAY_SHAPES, "header"]
            return {
                name: np.lib.format.read_array(io.BytesIO(archive.read(members[name])), allow_pickle=False)
                for name in array_names if name in members
            }  # fmt: skip
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", location=location, valid=_VALID) from error
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError("is damaged or no such file", location=location, valid=_VALID) from error


def _check_arrays(arrays: dict[str, NDArray[Any]], n_lasers: int, location: str) -> None:
    def reject(problem: str) -> None:
        raise InputError(problem, location=location, valid=_VALID)

    for name, row_shape in _ARRAY_SHAPES.items():
        array = arrays.get(name)
        if array is None or array.shape[1:] != row_shape or array.ndim != 1 + len(row_shape):
            reject(f"'{name}' is missing or of another shape")
        elif array.dtype.kind not in ("b" if name == "loops" else "iu" if name in _INTEGER_ARRAYS else "f"):
            reject(f"'{name}' holds {array.dtype}")
        elif array.dtype.kind == "f" and not np.isfinite(array).all():
            reject(f"'{name}' holds numbers that are not finite")
    n, m, k = (len(arrays[name]) for name in ("times", "pairs", "anchors"))
    for count, names in (
        (n, ("poses", "paths", "parts", "lasers", "origins", "point_counts", "end_counts")),
        (m, ("measured", "information", "loops")),
        (k, ("submap_paths", "submap_parts", "member_counts", "cell_counts")),
    ):
        for name in names:
            if len(arrays[name]) != count:
                reject(f"'{name}' has another length")
    for counts, name in (
        ("point_counts", "points"), ("point_counts", "normals"), ("end_counts", "ends"), ("member_counts", "members"),
        ("cell_counts", "cells"),
    ):  # fmt: skip
        if arrays[counts].min(initial=0) < 0 or int(arrays[counts].sum()) != len(arrays[name]):
            reject(f"'{counts}' does not fit")
    for name, limit in (("pairs", n), ("anchors", n), ("members", n), ("lasers", n_lasers)):
        if len(arrays[name]) and (arrays[name].min() < 0 or arrays[name].max() >= limit):
            reject(f"'{name}' points to what is not there")
    if len(arrays["cells"]) and arrays["cells"][:, 0].min() < 1.0:
        reject("'cells' holds cells without points")


def _unpack_nodes(arrays: dict[str, NDArray[Any]], lasers: list[str]) -> list[PoseGraphNode]:
    point_offsets, end_offsets = np.cumsum(arrays["point_counts"])[:-1], np.cumsum(arrays["end_counts"])[:-1]
    points, normals = np.split(arrays["points"], point_offsets), np.split(arrays["normals"], point_offsets)
    ends = np.split(arrays["ends"], end_offsets)
    return [
        PoseGraphNode(
            int(arrays["times"][k]), SE2(*arrays["poses"][k]),
            PreprocessedScan(
                np.ascontiguousarray(points[k], dtype=np.float64), np.ascontiguousarray(normals[k], dtype=np.float64),
                ends[k].astype(np.float32), arrays["origins"][k].astype(np.float64), lasers[int(arrays["lasers"][k])],
            ),
            float(arrays["paths"][k]), int(arrays["parts"][k]),
        )
        for k in range(len(arrays["times"]))
    ]  # fmt: skip


def _unpack_edges(arrays: dict[str, NDArray[Any]]) -> list[PoseGraphEdge]:
    return [
        PoseGraphEdge(int(i), int(j), SE2(*measurement), information.astype(np.float64), bool(is_loop))
        for (i, j), measurement, information, is_loop in zip(
            arrays["pairs"], arrays["measured"], arrays["information"], arrays["loops"], strict=True
        )
    ]


def _unpack_submaps(arrays: dict[str, NDArray[Any]]) -> list[Submap]:
    members = np.split(arrays["members"], np.cumsum(arrays["member_counts"])[:-1])
    cells = np.split(arrays["cells"], np.cumsum(arrays["cell_counts"])[:-1])
    submaps = []
    for k in range(len(arrays["anchors"])):
        submap = Submap(
            int(arrays["anchors"][k]), float(arrays["submap_paths"][k]), int(arrays["submap_parts"][k]),
            np.ascontiguousarray(cells[k], dtype=np.float64), [int(member) for member in members[k]],
        )  # fmt: skip
        submap.update_extent()
        submaps.append(submap)
    return submaps
