"""Recorded motion as files have it: joints of any names and numbers, where they were in every frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roboyard.errors import DescriptionError
from roboyard.geometry.arrays import Array

MOST_JOINTS, MOST_FRAMES, MOST_BYTES = 512, 100_000, 64 * 2**20
"""Bounds of what is read."""


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """A recorded motion.

    Attributes:
        source: The file.
        names: (j) of its joints, parents first; ends of bones are called after their joint, with `END`.
        parents: (j) of the joints; -1 of a root.
        places: (n, j, 3) of the joints, in the file's own axes and unit.
        frame_time: From frame to frame [s].
    """

    source: str
    names: tuple[str, ...]
    parents: tuple[int, ...]
    places: Array
    frame_time: float


END = "*end"


def read_bytes(path: Path) -> bytes:
    """A file's bytes. Raises DescriptionError where it is not there, or too large."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise DescriptionError(f"the clip has {size} bytes", location=str(path), valid=f"at most {MOST_BYTES}")
        return path.read_bytes()
    except OSError as error:
        raise DescriptionError(f"the clip cannot be read: {error.strerror}", location=str(path)) from None


def check_motion(motion: Motion) -> Motion:
    """The motion, if all its numbers are some. Raises DescriptionError that names the frame and the joint."""
    bad = ~np.isfinite(motion.places).all(axis=2)
    if bad.any():
        frame, joint = np.argwhere(bad)[0]
        raise DescriptionError(
            f"frame {frame} has a number that is none, at or above joint {motion.names[joint]!r}",
            location=motion.source, valid="finite numbers",
        )  # fmt: skip
    return motion
