"""Mesh files that anybody sent: read within limits, written as binary STL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from roboyard.config import write_atomic
from roboyard.description.mesh_tools.surface import TriangleMesh, merge_vertices
from roboyard.errors import DescriptionError, InputError

MESH_SUFFIXES = (".stl", ".obj", ".ply", ".off", ".glb", ".gltf")
MAX_FILE_BYTES = 256 << 20
MAX_TRIANGLES = 2_000_000
"""Whole-robot exports have a million; more than two take minutes and gigabytes."""
MAX_COORDINATE = 1e6
"""Coordinates beyond are no robot's [m]."""
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254}


MeshReader = Callable[[Path, int], NDArray[np.float64]]
"""From a file and how many triangles are taken at most to their corners (n, 3, 3) [m]; raises DescriptionError."""


def read_mesh(file: Path, unit: str = "m", readers: Mapping[str, MeshReader] | None = None) -> TriangleMesh:
    """Triangles of a mesh file, vertices at one place merged.

    Args:
        file: STL, OBJ, PLY, OFF, GLB or glTF.
        unit: Of its numbers: a key of `UNITS`; STL does not say.
        readers: Of further kinds of files, by suffix: {".dae": …}.

    Raises:
        InputError: there is no such file or unit.
        DescriptionError: it is too large, cannot be read, or holds no triangle with an area.
    """
    if unit not in UNITS:
        raise InputError(f"unit {unit!r}", valid=", ".join(UNITS))
    if not file.is_file():
        raise InputError("there is no such file", location=str(file))
    suffix = file.suffix.lower()
    extra_readers = dict(readers or {})
    if suffix not in (*MESH_SUFFIXES, *extra_readers):
        valid = ", ".join((*MESH_SUFFIXES, *extra_readers))
        raise DescriptionError(f"{suffix or 'no suffix'} is no kind of mesh", location=str(file), valid=valid)
    file_bytes = file.stat().st_size
    if file_bytes > MAX_FILE_BYTES:
        raise DescriptionError(
            f"the file has {file_bytes >> 20} MiB", location=str(file), valid=f"at most {MAX_FILE_BYTES >> 20} MiB"
        )
    mesh = _read_binary_stl(file) if suffix == ".stl" else None
    if suffix in extra_readers:
        corners = extra_readers[suffix](file, MAX_TRIANGLES)
        mesh = TriangleMesh(corners.reshape(-1, 3).astype(float), np.arange(3 * len(corners)).reshape(-1, 3))
    if mesh is None:
        mesh = _read_with_trimesh(file)
    _check_mesh(mesh, file)
    mesh = merge_vertices(TriangleMesh(mesh.vertices * UNITS[unit], mesh.faces))
    if not len(mesh.faces) or mesh.area <= 0.0:
        raise DescriptionError("mesh holds no triangle with an area", location=str(file))
    return mesh


class SiblingFileResolver:
    """Gives the files that a glTF names, from its own folder or below and from nowhere else."""

    def __init__(self, file: Path) -> None:
        self._folder = file.resolve().parent

    def get(self, name: str) -> bytes:
        """Contents of a file.

        Raises:
            DescriptionError: it is not there, lies elsewhere, or is too large.
        """
        path = (self._folder / unquote(name)).resolve()
        if not path.is_relative_to(self._folder) or not path.is_file():
            raise DescriptionError(f"it needs {name[:100]!r}, which is not beside it")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise DescriptionError(f"{name[:100]!r} is too large", valid=f"at most {MAX_FILE_BYTES >> 20} MiB")
        return path.read_bytes()

    def __getitem__(self, name: str) -> bytes:
        return self.get(name)


def _read_binary_stl(file: Path) -> TriangleMesh | None:
    """A binary STL file's triangles; None if its size is not what its header says (a text, or no STL at all)."""
    with file.open("rb") as stream:
        head = stream.read(84)
        count = int.from_bytes(head[80:84], "little") if len(head) == 84 else 0
        if not count or file.stat().st_size < 84 + 50 * count or (head.startswith(b"solid") and b"facet" in head):
            return None
        _reject_too_many_triangles(count, file)
        record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
        rows = np.frombuffer(stream.read(50 * count), record)
    return TriangleMesh(rows["corners"].astype(float).reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def _read_with_trimesh(file: Path) -> TriangleMesh:
    import trimesh

    options: dict[str, Any] = {"skip_materials": True} if file.suffix.lower() == ".obj" else {}
    if file.suffix.lower() == ".gltf":
        options["resolver"] = SiblingFileResolver(file)
    try:
        with file.open("rb") as stream:  # a stream: no other file is looked for but by the resolver
            loaded = trimesh.load(stream, file_type=file.suffix.lower()[1:], force="mesh", process=False, **options)
        mesh = TriangleMesh(np.asarray(loaded.vertices, float), np.asarray(loaded.faces, np.int64))
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DescriptionError(f"mesh cannot be read: {reason}", location=str(file)) from error
    return mesh


def _check_mesh(mesh: TriangleMesh, file: Path) -> None:
    vertices, faces = mesh.vertices, mesh.faces
    _reject_too_many_triangles(len(faces), file)
    if not len(faces) or vertices.ndim != 2 or vertices.shape[1] != 3 or faces.shape[1] != 3:
        raise DescriptionError("mesh holds no triangles", location=str(file))
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise DescriptionError("a triangle names a vertex that is not there", location=str(file))
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > MAX_COORDINATE:
        raise DescriptionError(
            "mesh reaches too far", location=str(file), valid=f"coordinates below {MAX_COORDINATE:g} m"
        )


def _reject_too_many_triangles(triangles: int, file: Path) -> None:
    if triangles > MAX_TRIANGLES:
        raise DescriptionError(
            f"mesh has {triangles} triangles", location=str(file), valid=f"at most {MAX_TRIANGLES}: split or reduce it"
        )


def write_stl(file: Path, mesh: TriangleMesh) -> None:
    """Write a binary STL file [m]. Raises OSError."""
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
    rows = np.zeros(len(mesh.faces), record)
    lengths = np.linalg.norm(mesh.normals, axis=1, keepdims=True)
    rows["normal"] = mesh.normals / np.where(lengths > 0.0, lengths, 1.0)
    rows["corners"] = mesh.triangles
    header = b"binary STL, lengths in metres".ljust(80)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, header + len(rows).to_bytes(4, "little") + rows.tobytes())
