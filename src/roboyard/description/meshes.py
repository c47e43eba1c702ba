"""Whether a mesh file is what its name says, told from its first bytes and its size."""

from __future__ import annotations

import struct
from pathlib import Path

_SIGNATURES: dict[str, tuple[bytes, ...]] = {
    ".dae": (b"<", b"\xef\xbb\xbf<"),
    ".gltf": (b"{",),
    ".glb": (b"glTF",),
}
_MESH_SUFFIXES = (".stl", ".obj", ".dae", ".gltf", ".glb")


def mesh_problem(path: Path) -> str:
    """Why the file, already known to be readable, is no mesh; empty when it looks like one.

    Raises:
        OSError: it cannot be read after all.
    """
    suffix = path.suffix.lower()
    if suffix not in _MESH_SUFFIXES:
        return f"'{suffix}' is no mesh format that is read ({', '.join(_MESH_SUFFIXES)})"
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
