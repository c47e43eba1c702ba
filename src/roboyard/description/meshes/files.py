"""Reads mesh files within size limits and writes binary STL; finds the files that a mesh refers to."""

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
from roboyard.description.meshes.collada import read_collada
from roboyard.description.meshes.mesh import TriangleMesh, merge_vertices
from roboyard.description.meshes.submesh import center_on_bounding_box, extract_submesh
from roboyard.description.model import Mesh
from roboyard.description.resources import MAX_MESH_BYTES
from roboyard.errors import DescriptionError, InputError

MeshArrays = tuple[NDArray[np.float64], NDArray[np.int64]]  # vertices (n, 3) [m], faces (m, 3)
DESCRIPTION_MESH_SUFFIXES = (".stl", ".obj", ".dae", ".gltf", ".glb")
"""Formats of the meshes of a description: those that ROS and Gazebo name there."""
TOOL_MESH_SUFFIXES = (".stl", ".obj", ".ply", ".off", ".glb", ".gltf")
"""Formats that mesh tools read by themselves: scans come as PLY and OFF; see `read_mesh` for further ones."""
MAX_WORLD_TRIANGLES = 500_000
"""A world simulates the mesh: one of a million takes a quarter of a minute and 2 GB."""
MAX_TOOL_TRIANGLES = 2_000_000
"""Mesh tools split and simplify: whole-robot exports have a million; more than two take minutes and gigabytes."""
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
    if suffix not in (*TOOL_MESH_SUFFIXES, *extra_readers):
        valid = ", ".join((*TOOL_MESH_SUFFIXES, *extra_readers))
        raise DescriptionError(f"{suffix or 'no suffix'} is no kind of mesh", location=str(file), valid=valid)
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
        raise DescriptionError("mesh holds no triangle with an area", location=str(file))
    return mesh


class SiblingFileResolver:
    """Gives the files that a glTF names, from its own folder or below and from nowhere else.

    These files hold the mesh's numbers, so that a missing one is an error.  For textures, which a mesh can do without
    and which models keep in other folders, too, see `find_referenced_file`.
    """

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
        if path.stat().st_size > MAX_MESH_BYTES:
            raise DescriptionError(f"{name[:100]!r} is too large", valid=f"at most {MAX_MESH_BYTES >> 20} MiB")
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
        _reject_too_many_triangles(count, file, MAX_TOOL_TRIANGLES, "split or reduce it")
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
    _reject_too_many_triangles(len(faces), file, MAX_TOOL_TRIANGLES, "split or reduce it")
    if not len(faces) or vertices.ndim != 2 or vertices.shape[1] != 3 or faces.shape[1] != 3:
        raise DescriptionError("mesh holds no triangles", location=str(file))
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise DescriptionError("a triangle names a vertex that is not there", location=str(file))
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > MAX_COORDINATE:
        raise DescriptionError(
            "mesh reaches too far", location=str(file), valid=f"coordinates below {MAX_COORDINATE:g} m"
        )


def _reject_too_many_triangles(triangles: int, file: Path, limit: int, remedy: str) -> None:
    if triangles > limit:
        raise DescriptionError(
            f"mesh has {triangles} triangles", location=str(file), valid=f"at most {limit}: {remedy}"
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
    """Why the file, already known to be readable, is no mesh; empty when it looks like one.

    Raises:
        OSError: it cannot be read after all.
    """
    suffix = path.suffix.lower()
    if suffix not in DESCRIPTION_MESH_SUFFIXES:
        return f"'{suffix}' is no mesh format that is read ({', '.join(DESCRIPTION_MESH_SUFFIXES)})"
    with path.open("rb") as stream:
        start = stream.read(84)
    if suffix == ".stl":
        return _stl_problem(start, path.stat().st_size)
    signatures = _SIGNATURES.get(suffix)
    if signatures and not start.lstrip().startswith(signatures):
        return f"it is no {suffix[1:]} file"
    if suffix == ".obj" and b"\x00" in start:
        return "it is no obj file"
    return ""


def _stl_problem(start: bytes, size: int) -> str:
    """Text starts with "solid"; binary has 80 bytes, the number of triangles, and 50 bytes for each."""
    if len(start) == 84:
        (triangles,) = struct.unpack("<I", start[80:])
        if triangles and size >= 84 + 50 * triangles:
            return ""
    if start.lstrip().startswith(b"solid"):
        return ""
    return "it is no STL file, or it is cut short"


_TEXTURE_FOLDERS = (".", "textures", "../materials/textures", "../textures", "materials/textures")


def find_referenced_file(name: str, mesh_file: Path) -> Path | None:
    """The file that a mesh calls ``name``; None where there is none, or none that it may read.

    It is looked for where the name says, then by its last part beside the mesh and in the folders where Gazebo's models
    keep pictures.  Whatever the name says, it lies in the folder above the mesh's.
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
    """Vertices and faces of a mesh file (STL, OBJ, DAE, glTF, PLY), or of one named part of it.

    ``modified_ns`` keys the cache.

    Raises:
        DescriptionError: the file cannot be read, has no such part, or holds no triangle, too many, or none with an
            area.
    """
    import trimesh

    _reject_too_many_triangles(_stl_triangle_count(file), file, MAX_WORLD_TRIANGLES, "simplify it")
    if file.suffix.lower() == ".dae":
        triangles = read_collada(file, MAX_WORLD_TRIANGLES, part)
        mesh = trimesh.Trimesh(**trimesh.triangles.to_kwargs(triangles))
    else:
        try:
            if part:  # an OBJ's parts are its objects and groups
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
        raise DescriptionError("mesh holds no triangles", location=str(file))
    _reject_too_many_triangles(len(mesh.faces), file, MAX_WORLD_TRIANGLES, "simplify it")
    mesh.merge_vertices()
    vertices = np.asarray(mesh.vertices, float)
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > MAX_COORDINATE:
        raise DescriptionError(
            "mesh reaches too far", location=str(file), valid=f"coordinates below {MAX_COORDINATE:g} m"
        )
    variances = np.linalg.svd(np.cov(vertices.T), compute_uv=False) if len(vertices) > 2 else np.zeros(3)
    if variances[1] <= 1e-12 * variances[0]:
        raise DescriptionError("mesh has no area: its points lie on a line", location=str(file))
    return vertices, np.asarray(mesh.faces, np.int64)


def _stl_triangle_count(file: Path) -> int:
    """What a binary STL says of itself; 0 for anything else."""
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
    """A description's mesh, read and scaled. Raises DescriptionError."""
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
    """When the mesh's file was written [ns]; 0 for one without. Raises DescriptionError."""
    if mesh.inline is not None:
        return 0
    if mesh.file is None:
        raise DescriptionError(f"mesh {mesh.uri} was not found", location=mesh.uri)
    try:
        return mesh.file.stat().st_mtime_ns
    except OSError as error:
        raise DescriptionError(f"mesh cannot be read: {error}", location=str(mesh.file)) from error
