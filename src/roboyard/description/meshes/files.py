"""Reads mesh files within size limits, writes binary STL, and finds the files that a mesh refers to."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from roboyard.config import write_atomic
from roboyard.description.meshes.collada import read_collada_triangles
from roboyard.description.meshes.mesh import TriangleMesh, merge_vertices
from roboyard.description.meshes.submesh import center_on_bounding_box, extract_submesh
from roboyard.description.model import Mesh
from roboyard.description.resources import MAX_MESH_BYTES
from roboyard.errors import DescriptionError, InputError

MeshArrays = tuple[NDArray[np.float64], NDArray[np.int64]]  # vertices (n, 3) [m], faces (m, 3)
DESCRIPTION_MESH_SUFFIXES = (".stl", ".obj", ".dae", ".gltf", ".glb")
"""Mesh formats of descriptions, as in ROS and Gazebo."""
TOOL_MESH_SUFFIXES = (".stl", ".obj", ".ply", ".off", ".glb", ".gltf")
"""Mesh formats of mesh tools, including PLY and OFF for scans; see `read_mesh` for further ones."""
MAX_WORLD_TRIANGLES = 500_000
"""Maximum number of triangles of a mesh in a world: a mesh of a million takes a quarter of a minute and 2 GB."""
MAX_TOOL_TRIANGLES = 2_000_000
"""Maximum number of triangles for mesh tools: exports of complete robots have a million; more than two take minutes and
gigabytes.
"""
MAX_COORDINATE = 1e6
"""Maximum plausible coordinate [m]."""
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254}


MeshReader = Callable[[Path, int], NDArray[np.float64]]
"""Function from a file and a maximum number of triangles to their corners (n, 3, 3) [m]; raises DescriptionError."""


def read_mesh(file: Path, unit: str = "m", readers: Mapping[str, MeshReader] | None = None) -> TriangleMesh:
    """Read the triangles of a mesh file; vertices with equal positions are merged.

    Args:
        file: STL, OBJ, PLY, OFF, GLB or glTF.
        unit: Unit of its numbers: a key of `UNITS`; STL does not state it.
        readers: Readers of further formats, by suffix: {".dae": …}.

    Raises:
        InputError: The file does not exist, or the unit is unknown.
        DescriptionError: The file is too large, cannot be read, or has no triangle with an area.
    """
    if unit not in UNITS:
        raise InputError(f"unknown unit {unit!r}", valid=", ".join(UNITS))
    if not file.is_file():
        raise InputError("the file does not exist", location=str(file))
    suffix = file.suffix.lower()
    extra_readers = dict(readers or {})
    if suffix not in (*TOOL_MESH_SUFFIXES, *extra_readers):
        valid = ", ".join((*TOOL_MESH_SUFFIXES, *extra_readers))
        raise DescriptionError(f"unknown mesh format {suffix or '(no suffix)'}", location=str(file), valid=valid)
    file_bytes = file.stat().st_size
    if file_bytes > MAX_MESH_BYTES:
        raise DescriptionError(
            f"the file has {file_bytes >> 20} MiB", location=str(file), valid=f"at most {MAX_MESH_BYTES >> 20} MiB"
        )
    mesh = _read_binary_stl(file) if suffix == ".stl" else None
    if suffix in extra_readers:
        corners = extra_readers[suffix](file, MAX_TOOL_TRIANGLES)
        mesh = TriangleMesh(corners.reshape(-1, 3).astype(float), np.arange(3 * len(corners)).reshape(-1, 3))
    if mesh is None:
        mesh = _read_with_trimesh(file)
    _check_mesh(mesh, file)
    mesh = merge_vertices(TriangleMesh(mesh.vertices * UNITS[unit], mesh.faces))
    if not len(mesh.faces) or mesh.area <= 0.0:
        raise DescriptionError("mesh has no triangle with an area", location=str(file))
    return mesh


class SiblingFileResolver:
    """Opens files that a glTF refers to, only in its own folder or below.

    These files contain the mesh's numbers, so a missing one is an error.  For textures, which are optional and may be
    in other folders of a model, see `find_referenced_file`.
    """

    def __init__(self, file: Path) -> None:
        self._folder = file.resolve().parent

    def get(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            DescriptionError: The file does not exist, is outside the folder, or is too large.
        """
        path = (self._folder / unquote(name)).resolve()
        if not path.is_relative_to(self._folder) or not path.is_file():
            raise DescriptionError(f"the referenced file {name[:100]!r} is not in the folder of the mesh")
        if path.stat().st_size > MAX_MESH_BYTES:
            raise DescriptionError(f"{name[:100]!r} is too large", valid=f"at most {MAX_MESH_BYTES >> 20} MiB")
        return path.read_bytes()

    def __getitem__(self, name: str) -> bytes:
        return self.get(name)


def _read_binary_stl(file: Path) -> TriangleMesh | None:
    """Read the triangles of a binary STL file; return None if its size does not match its header (text, or no STL)."""
    with file.open("rb") as stream:
        head = stream.read(84)
        count = int.from_bytes(head[80:84], "little") if len(head) == 84 else 0
        if not count or file.stat().st_size < 84 + 50 * count or (head.startswith(b"solid") and b"facet" in head):
            return None
        _reject_too_many_triangles(count, file, MAX_TOOL_TRIANGLES, "split or simplify it")
        record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
        rows = np.frombuffer(stream.read(50 * count), record)
    return TriangleMesh(rows["corners"].astype(float).reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def _read_with_trimesh(file: Path) -> TriangleMesh:
    import trimesh

    options: dict[str, Any] = {"skip_materials": True} if file.suffix.lower() == ".obj" else {}
    if file.suffix.lower() == ".gltf":
        options["resolver"] = SiblingFileResolver(file)
    try:
        with file.open("rb") as stream:  # a stream: only the resolver can open other files
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
    _reject_too_many_triangles(len(faces), file, MAX_TOOL_TRIANGLES, "split or simplify it")
    if not len(faces) or vertices.ndim != 2 or vertices.shape[1] != 3 or faces.shape[1] != 3:
        raise DescriptionError("mesh has no triangles", location=str(file))
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise DescriptionError("a triangle has a vertex index out of range", location=str(file))
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > MAX_COORDINATE:
        raise DescriptionError(
            "mesh coordinates are too large", location=str(file), valid=f"coordinates below {MAX_COORDINATE:g} m"
        )


def _reject_too_many_triangles(triangles: int, file: Path, limit: int, suggestion: str) -> None:
    if triangles > limit:
        raise DescriptionError(
            f"mesh has {triangles} triangles", location=str(file), valid=f"at most {limit}: {suggestion}"
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


_SIGNATURES: dict[str, tuple[bytes, ...]] = {
    ".dae": (b"<", b"\xef\xbb\xbf<"),
    ".gltf": (b"{",),
    ".glb": (b"glTF",),
}


def mesh_problem(path: Path) -> str:
    """Explain why a readable file is not a mesh; empty if it looks like one.

    Raises:
        OSError: The file cannot be read after all.
    """
    suffix = path.suffix.lower()
    if suffix not in DESCRIPTION_MESH_SUFFIXES:
        return f"unsupported mesh format '{suffix}' ({', '.join(DESCRIPTION_MESH_SUFFIXES)})"
    with path.open("rb") as stream:
        start = stream.read(84)
    if suffix == ".stl":
        return _stl_problem(start, path.stat().st_size)
    signatures = _SIGNATURES.get(suffix)
    if signatures and not start.lstrip().startswith(signatures):
        return f"it is not a valid {suffix[1:]} file"
    if suffix == ".obj" and b"\x00" in start:
        return "it is not a valid obj file"
    return ""


def _stl_problem(start: bytes, size: int) -> str:
    """Check an STL: text starts with "solid"; binary has 80 bytes, the number of triangles, and 50 bytes for each."""
    if len(start) == 84:
        (triangles,) = struct.unpack("<I", start[80:])
        if triangles and size >= 84 + 50 * triangles:
            return ""
    if start.lstrip().startswith(b"solid"):
        return ""
    return "it is not a valid STL file, or it is truncated"


_TEXTURE_FOLDERS = (".", "textures", "../materials/textures", "../textures", "materials/textures")


def find_referenced_file(name: str, mesh_file: Path) -> Path | None:
    """Find the file that a mesh calls `name`; None if it does not exist or may not be read.

    The search covers the stated path, then the file name in the folder of the mesh and in the folders where Gazebo's
    models keep images.  Files outside the parent folder of the mesh's folder are never used.
    """
    name = re.sub(r"^file:/*(?=[A-Za-z]:|\.|[^/])", "", name).replace("\\", "/")
    file_name = PurePosixPath(name).name
    if not file_name or "\x00" in name or len(name) > 1000:
        return None
    folder = mesh_file.parent
    try:
        root_folder = folder.resolve().parent
        for candidate in (folder / name, *(folder / subfolder / file_name for subfolder in _TEXTURE_FOLDERS)):
            if candidate.is_file() and candidate.resolve().is_relative_to(root_folder):
                return candidate
    except (OSError, ValueError, RuntimeError):
        return None
    return None


@lru_cache(maxsize=256)
def load_mesh_file(file: Path, modified_ns: int, part: str = "") -> MeshArrays:
    """Load vertices and faces of a mesh file (STL, OBJ, DAE, glTF, PLY), or of one named part of it.

    `modified_ns` is part of the cache key.

    Raises:
        DescriptionError: The file cannot be read, has no such part, or has no triangles, too many, or none with an
            area.
    """
    import trimesh

    _reject_too_many_triangles(_stl_triangle_count(file), file, MAX_WORLD_TRIANGLES, "simplify it")
    if file.suffix.lower() == ".dae":
        triangles = read_collada_triangles(file, MAX_WORLD_TRIANGLES, part)
        mesh = trimesh.Trimesh(**trimesh.triangles.to_kwargs(triangles))
    else:
        try:
            if part:  # the parts of an OBJ are its objects and groups
                options = (
                    {"split_objects": True, "split_groups": True, "group_material": False}
                    if file.suffix.lower() == ".obj"
                    else {}
                )
                mesh = extract_submesh(trimesh.load(str(file), force="scene", **options), part, file)
            else:
                mesh = trimesh.load(str(file), force="mesh")
        except DescriptionError:
            raise
        except Exception as error:
            reason = str(error).partition("\n")[0][:200] or type(error).__name__
            raise DescriptionError(f"mesh cannot be read: {reason}", location=str(file)) from error
    if not len(getattr(mesh, "faces", ())):
        raise DescriptionError("mesh has no triangles", location=str(file))
    _reject_too_many_triangles(len(mesh.faces), file, MAX_WORLD_TRIANGLES, "simplify it")
    mesh.merge_vertices()
    vertices = np.asarray(mesh.vertices, float)
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > MAX_COORDINATE:
        raise DescriptionError(
            "mesh coordinates are too large", location=str(file), valid=f"coordinates below {MAX_COORDINATE:g} m"
        )
    variances = np.linalg.svd(np.cov(vertices.T), compute_uv=False) if len(vertices) > 2 else np.zeros(3)
    if variances[1] <= 1e-12 * variances[0]:
        raise DescriptionError("mesh has no area: its points lie on a line", location=str(file))
    return vertices, np.asarray(mesh.faces, np.int64)


def _stl_triangle_count(file: Path) -> int:
    """Return the triangle count in the header of a binary STL; 0 for other files."""
    if file.suffix.lower() != ".stl":
        return 0
    try:
        with file.open("rb") as stream:
            header = stream.read(84)
            size = stream.seek(0, 2)
    except OSError as error:
        raise DescriptionError(f"mesh cannot be read: {error.strerror}", location=str(file)) from None
    count = int.from_bytes(header[80:84], "little")
    return count if size == 84 + 50 * count else 0


def load_mesh(mesh: Mesh) -> MeshArrays:
    """Load a description's mesh, scaled. Raises DescriptionError."""
    if mesh.inline is not None:
        points = np.frombuffer(mesh.inline.values, np.float32).reshape(-1, 3).astype(float)
        triangles = np.frombuffer(mesh.inline.faces, np.int32).reshape(-1, 3).astype(np.int64)
        return points * np.asarray(mesh.scale), triangles
    modified_ns = mesh_modified_ns(mesh)
    vertices, faces = load_mesh_file(Path(str(mesh.file)), modified_ns, mesh.submesh or "")
    if mesh.submesh and mesh.center_submesh:
        vertices = center_on_bounding_box(vertices)
    vertices = vertices * np.asarray(mesh.scale)
    return vertices, faces[:, ::-1] if np.prod(mesh.scale) < 0.0 else faces


def mesh_modified_ns(mesh: Mesh) -> int:
    """Return the modification time of the mesh's file [ns]; 0 without a file. Raises DescriptionError."""
    if mesh.inline is not None:
        return 0
    if mesh.file is None:
        raise DescriptionError(f"mesh {mesh.uri} not found", location=mesh.uri)
    try:
        return mesh.file.stat().st_mtime_ns
    except OSError as error:
        raise DescriptionError(f"mesh cannot be read: {error}", location=str(mesh.file)) from error
