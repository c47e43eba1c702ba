"""Whether a mesh file is what its name says, told from its first bytes and its size."""

from __future__ import annotations

import struct
from pathlib import Path

_STARTS: dict[str, tuple[bytes, ...]] = {
    ".dae": (b"<", b"\xef\xbb\xbf<"),
    ".gltf": (b"{",),
    ".glb": (b"glTF",),
}
_KNOWN = (".stl", ".obj", ".dae", ".gltf", ".glb")


def mesh_problem(path: Path) -> str:
    """Why the file, already known to be readable, is no mesh; empty when it looks like one.

    Raises:
        OSError: it cannot be read after all.
    """
    kind = path.suffix.lower()
    if kind not in _KNOWN:
        return f"'{kind}' is no mesh format that is read ({', '.join(_KNOWN)})"
    with path.open("rb") as stream:
        start = stream.read(84)
    if kind == ".stl":
        return _stl(start, path.stat().st_size)
    starts = _STARTS.get(kind)
    if starts and not start.lstrip().startswith(starts):
        return f"it is no {kind[1:]} file"
    if kind == ".obj" and b"\x00" in start:
        return "it is no obj file"
    return ""


def _stl(start: bytes, size: int) -> str:
    """Text starts with "solid"; binary has 80 bytes, the number of triangles, and 50 bytes for each."""
    if len(start) == 84:
        (triangles,) = struct.unpack("<I", start[80:])
        if triangles and size >= 84 + 50 * triangles:
            return ""
    if start.lstrip().startswith(b"solid"):
        return ""
    return "it is no STL file, or it is cut short"
