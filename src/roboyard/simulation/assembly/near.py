"""Files that a mesh names: its pictures and material libraries, never farther away than its own model's folder."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

_FOLDERS = (".", "textures", "../materials/textures", "../textures", "materials/textures")


def near(name: str, file: Path) -> Path | None:
    """The file that a mesh calls ``name``; None where there is none, or none that it may read.

    It is looked for where the name says, then by its last part beside the mesh and in the folders where Gazebo's models
    keep pictures.  Whatever the name says, it lies in the folder above the mesh's.
    """
    name = re.sub(r"^file:/*(?=[A-Za-z]:|\.|[^/])", "", name).replace("\\", "/")
    bare = PurePosixPath(name).name
    if not bare or "\x00" in name or len(name) > 1000:
        return None
    home = file.parent
    try:
        bound = home.resolve().parent
        for candidate in (home / name, *(home / folder / bare for folder in _FOLDERS)):
            if candidate.is_file() and candidate.resolve().is_relative_to(bound):
                return candidate
    except (OSError, ValueError, RuntimeError):
        return None
    return None
