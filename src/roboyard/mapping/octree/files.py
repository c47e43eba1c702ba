"""Octree maps in OctoMap's files: ``.bt``, what is free and what occupied, and ``.ot``, all probabilities and colours.

A header of a few lines of text, then the tree, see `roboyard.mapping.octree.stream`.  octovis, octomap_server and
whatever else uses OctoMap reads them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roboyard.config import write_atomic
from roboyard.errors import InputError
from roboyard.mapping.octree.config import OctreeConfig, log_odds
from roboyard.mapping.octree.leaves import Leaves
from roboyard.mapping.octree.octree_map import OctreeMap
from roboyard.mapping.octree.stream import MOST_BYTES, decode

PLAIN, COLORED = "OcTree", "ColorOcTree"
"""What OctoMap calls the kinds of trees that are known here."""
_FIRST: Final = {".bt": b"# Octomap OcTree binary file", ".ot": b"# Octomap OcTree file"}
_NOTE: Final = b"# (feel free to add / change comments, but leave the first line as it is!)\n#\n"
_MOST_HEADER: Final = 65536


@dataclass(frozen=True, slots=True)
class OctreeFile:
    """What a file holds.

    Attributes:
        kind: ``OcTree`` or ``ColorOcTree``.
        binary: Whether it only knows free and occupied.
        leaves: Of the tree.
    """

    kind: str
    binary: bool
    leaves: Leaves


def write_octree(path: Path | str, octree: OctreeMap, *, color: bool = True) -> None:
    """Write a map.

    Args:
        path: ``.bt`` or ``.ot``.
        octree: The map.
        color: Whether an ``.ot`` file has colours.

    Raises:
        InputError: another kind of file, or it cannot be written.
    """
    path = Path(path)
    kind = _kind(path)
    binary = kind == ".bt"
    data = octree.binary() if binary else octree.full(color=color)
    write_tree(path, data, kind=COLORED if color and not binary else PLAIN, resolution=octree.config.resolution)


def write_tree(path: Path | str, data: bytes, *, kind: str, resolution: float) -> None:
    """Write a tree that is bytes already.

    Args:
        path: ``.bt`` for a binary tree, ``.ot`` for a full one.
        data: Without header.
        kind: ``OcTree`` or ``ColorOcTree``.
        resolution: [m].

    Raises:
        InputError: another kind of file, bytes that are no such tree, or it cannot be written.
    """
    path = Path(path)
    suffix = _kind(path)
    nodes = decode_octree(data, kind=kind, binary=suffix == ".bt", resolution=resolution).nodes
    head = header(suffix, kind, nodes, resolution)
    try:
        write_atomic(path, head + data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error


def header(suffix: str, kind: str, nodes: int, resolution: float) -> bytes:
    """Header of a file.

    Args:
        suffix: ``.bt`` or ``.ot``.
        kind: ``OcTree`` or ``ColorOcTree``.
        nodes: Of the tree.
        resolution: [m].
    """
    about = f"id {kind}\nsize {nodes}\nres {resolution!r}\ndata\n"
    return _FIRST[suffix] + b"\n" + _NOTE + about.encode()


def read_octree(path: Path | str, config: OctreeConfig | None = None) -> OctreeFile:
    """Read a file.

    Args:
        path: ``.bt`` or ``.ot``; which it is says its first line.
        config: Gives the threshold, and how sure ``.bt`` files are; its resolution counts for nothing.

    Raises:
        InputError: it cannot be read, is none, is cut short, or too large.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise InputError(f"a file of {size} bytes", location=str(path), valid=f"at most {MOST_BYTES}")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", location=str(path), valid="a .bt or .ot file") from error
    try:
        binary, fields, data = _split(content)
        kind = fields["id"]
        found = decode_octree(data, kind=kind, binary=binary, resolution=float(fields["res"]), config=config)
        nodes = found.nodes
        if nodes != int(fields["size"]):
            raise InputError(f"its header says {fields['size']} nodes, the tree has {nodes}", valid="a whole tree")
    except InputError as error:
        raise InputError(error.message, location=str(path), valid=error.valid) from error
    return OctreeFile(kind, binary, found)


def decode_octree(
    data: bytes, *, kind: str, binary: bool, resolution: float, config: OctreeConfig | None = None
) -> Leaves:
    """Leaves of a tree as files and messages have it, without header.

    Raises:
        InputError: a kind of tree that is not known, or bytes that are no tree.
    """
    if kind not in (PLAIN, COLORED):
        raise InputError(f"a tree of kind {kind[:40]!r}", valid=f"{PLAIN} or {COLORED}")
    if not (math.isfinite(resolution) and 1e-6 <= resolution <= 1e6):
        raise InputError(f"a resolution of {resolution} m", valid="0.000001 to 1000000")
    config = config or OctreeConfig()
    return decode(
        data, binary=binary, color=kind == COLORED and not binary, resolution=resolution,
        threshold=float(log_odds(config.occupied)), free=float(log_odds(config.sensor_model.min)),
        taken=float(log_odds(config.sensor_model.max)),
    )  # fmt: skip


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _FIRST:
        raise InputError(f"a file named *{path.suffix}", location=str(path), valid="*.bt or *.ot")
    return suffix


def _split(content: bytes) -> tuple[bool, dict[str, str], bytes]:
    """Whether the tree is binary, what the header says, and the tree's bytes."""
    first = content[:80].split(b"\n", 1)[0].rstrip(b"\r")
    if first not in _FIRST.values():
        raise InputError(
            f"its first line is {first[:40].decode('ascii', 'replace')!r}",
            valid=" or ".join(repr(line.decode()) for line in _FIRST.values()),
        )
    match = re.search(rb"(?:^|\n)data\r?\n", content[:_MOST_HEADER])
    if match is None:
        raise InputError("its header does not end", valid="a line 'data'")
    fields: dict[str, str] = {}
    for line in content[: match.start()].decode("latin-1").splitlines():
        words = line.split()
        if words and not line.startswith("#"):
            fields[words[0]] = words[1] if len(words) == 2 else ""
    for key, pattern in (("id", r"\w+"), ("size", r"\d{1,18}"), ("res", r"[0-9.eE+-]{1,40}")):
        if not re.fullmatch(pattern, fields.get(key, "")):
            raise InputError(f"its header has no right line {key!r}", valid="id, size and res, each with a value")
    try:
        float(fields["res"])
    except ValueError as error:
        raise InputError(f"a resolution of {fields['res']!r}", valid="a number") from error
    return first == _FIRST[".bt"], fields, content[match.end() :]
