"""Clips by name or file: our own, and those that people bring."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from roboyard.errors import InputError, UnknownNameError
from roboyard.simulation.people.clip import Clip
from roboyard.simulation.people.gait import turn_clip, walk_clip

FOLDER = Path(__file__).with_name("clips")
SUFFIXES = (".yaml", ".yml", ".bvh", ".dae")
_MADE = {"walk": walk_clip, "turn": turn_clip}


def clip_names() -> tuple[str, ...]:
    """Names of our own clips."""
    return tuple(sorted([*_MADE, *(path.stem for path in FOLDER.glob("*.yaml"))]))


@cache
def own_clip(name: str) -> Clip:
    """One of our own. Raises UnknownNameError."""
    if name in _MADE:
        return _MADE[name]()
    if name not in clip_names():
        raise UnknownNameError(f"no clip {name!r}", valid=f"{', '.join(clip_names())}, or a file {'|'.join(SUFFIXES)}")
    return read_clip(FOLDER / f"{name}.yaml")


def read_clip(path: Path) -> Clip:
    """The clip of a file: key poses in YAML, BVH, or COLLADA; called as the file is.

    Raises:
        InputError and its kinds: the file is not there, of another kind, or broken.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"a clip in a file {path.name!r}", valid=f"a name that ends in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"there is no file {path}", valid="a clip's file")
    if suffix in (".yaml", ".yml"):
        from roboyard.simulation.people.key_poses import read_key_poses

        return read_key_poses(path, {name: made() for name, made in _MADE.items()})
    from roboyard.simulation.people.retarget import retarget

    if suffix == ".bvh":
        from roboyard.simulation.people.bvh import read_bvh

        return retarget(read_bvh(path), path.stem)
    from roboyard.simulation.people.collada_motion import read_collada_motion

    return retarget(read_collada_motion(path), path.stem)


def find_clip(name: str, base: Path | None = None) -> Clip:
    """A clip by name, or by the path of its file.

    Args:
        name: One of `clip_names`, or a path.
        base: Folder that relative paths are looked up in first.

    Raises:
        InputError and its kinds: there is none, or its file is broken.
    """
    if Path(name).suffix.lower() in SUFFIXES:
        local = (base or Path()) / name
        return read_clip(local if local.is_file() else Path(name))
    return own_clip(name)
