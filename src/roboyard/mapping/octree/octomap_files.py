"""OctoMap's files: ``.bt`` with free and occupied leaves, and ``.ot`` with all probabilities and colors.

A header of a few lines of text, then the byte stream, see `roboyard.mapping.octree.octree`. octovis, octomap_server and
all other users of OctoMap read these files.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from roboyard.config import write_atomic
from roboyard.errors import InputError
from roboyard.mapping.octree.octree import MAX_TREE_BYTES, OctreeLeaves, decode
from roboyard.mapping.octree.octree_map import OctreeMap, OctreeMapConfig, log_odds

PLAIN_TREE, COLOR_TREE = "OcTree", "ColorOcTree"
"""OctoMap's names of the types of trees that can be read."""
_FIRST_LINES: Final = {".bt": b"# Octomap OcTree binary file", ".ot": b"# Octomap OcTree file"}
_HEADER_NOTE: Final = b"# (feel free to add / change comments, but leave the first line as it is!)\n#\n"
_MAX_HEADER_BYTES: Final = 65536


@dataclass(frozen=True, slots=True)
class OctreeFile:
    """Content of a file.

    Attributes:
        tree_type: ``OcTree`` or ``ColorOcTree``.
        binary: Whether it only knows free and occupied.
        leaves: Of the tree.
    """

    tree_type: str
    binary: bool
    leaves: OctreeLeaves


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
    suffix = _file_suffix(path)
    is_binary = suffix == ".bt"
    data = octree.encode_binary() if is_binary else octree.encode_full(color=color)
    write_tree_bytes(
        path, data, tree_type=COLOR_TREE if color and not is_binary else PLAIN_TREE, resolution=octree.config.resolution
    )


def write_tree_bytes(path: Path | str, data: bytes, *, tree_type: str, resolution: float) -> None:
    """Write a tree that is bytes already.

    Args:
        path: ``.bt`` for a binary tree, ``.ot`` for a full one.
        data: Without header.
        tree_type: ``OcTree`` or ``ColorOcTree``.
        resolution: [m].

    Raises:
        InputError: another kind of file, bytes that are no such tree, or it cannot be written.
    """
    path = Path(path)
    suffix = _file_suffix(path)
    n_nodes = decode_octree(data, tree_type=tree_type, binary=suffix == ".bt", resolution=resolution).n_nodes
    head = make_file_header(suffix, tree_type, n_nodes, resolution)
    try:
        write_atomic(path, head + data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=str(path)) from error


def make_file_header(suffix: str, tree_type: str, n_nodes: int, resolution: float) -> bytes:
    """Return the header of a file.

    Args:
        suffix: ``.bt`` or ``.ot``.
        tree_type: ``OcTree`` or ``ColorOcTree``.
        n_nodes: Of the tree.
        resolution: [m].
    """
    description = f"id {tree_type}\nsize {n_nodes}\nres {resolution!r}\ndata\n"
    return _FIRST_LINES[suffix] + b"\n" + _HEADER_NOTE + description.encode()


def read_octree(path: Path | str, config: OctreeMapConfig | None = None) -> OctreeFile:
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
        if size > MAX_TREE_BYTES:
            raise InputError(f"a file of {size} bytes", location=str(path), valid=f"at most {MAX_TREE_BYTES}")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", location=str(path), valid="a .bt or .ot file") from error
    try:
        is_binary, fields, data = _split(content)
        tree_type = fields["id"]
        leaves = decode_octree(
            data, tree_type=tree_type, binary=is_binary, resolution=float(fields["res"]), config=config
        )
        n_nodes = leaves.n_nodes
        if n_nodes != int(fields["size"]):
            raise InputError(f"its header says {fields['size']} nodes, the tree has {n_nodes}", valid="a whole tree")
    except InputError as error:
        raise InputError(error.message, location=str(path), valid=error.valid) from error
    return OctreeFile(tree_type, is_binary, leaves)


def decode_octree(
    data: bytes, *, tree_type: str, binary: bool, resolution: float, config: OctreeMapConfig | None = None
) -> OctreeLeaves:
    """Return the leaves of a tree from its bytes in a file or message, without the header.

    Raises:
        InputError: a kind of tree that is not known, or bytes that are no tree.
    """
    if tree_type not in (PLAIN_TREE, COLOR_TREE):
        raise InputError(f"a tree of kind {tree_type[:40]!r}", valid=f"{PLAIN_TREE} or {COLOR_TREE}")
    if not (math.isfinite(resolution) and 1e-6 <= resolution <= 1e6):
        raise InputError(f"a resolution of {resolution} m", valid="0.000001 to 1000000")
    config = config or OctreeMapConfig()
    return decode(
        data, binary=binary, color=tree_type == COLOR_TREE and not binary, resolution=resolution,
        threshold=float(log_odds(config.occupancy_threshold)), free_value=float(log_odds(config.sensor_model.min)),
        occupied_value=float(log_odds(config.sensor_model.max)),
    )  # fmt: skip


def _file_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _FIRST_LINES:
        raise InputError(f"a file named *{path.suffix}", location=str(path), valid="*.bt or *.ot")
    return suffix


def octree_from_msg(message: Any, config: OctreeMapConfig | None = None) -> OctreeLeaves:
    """Return the leaves of the tree in an octomap_msgs/Octomap.

    Raises:
        InputError: The message holds no complete tree of a known type.
    """
    data = np.asarray(message.data, dtype=np.int8).tobytes()
    return decode_octree(
        data,
        tree_type=str(message.id),
        binary=bool(message.binary),
        resolution=float(message.resolution),
        config=config,
    )


def _split(content: bytes) -> tuple[bool, dict[str, str], bytes]:
    """Return whether the tree is binary, the fields of the header, and the tree's bytes."""
    first = content[:80].split(b"\n", 1)[0].rstrip(b"\r")
    if first not in _FIRST_LINES.values():
        raise InputError(
            f"its first line is {first[:40].decode('ascii', 'replace')!r}",
            valid=" or ".join(repr(line.decode()) for line in _FIRST_LINES.values()),
        )
    match = re.search(rb"(?:^|\n)data\r?\n", content[:_MAX_HEADER_BYTES])
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
    return first == _FIRST_LINES[".bt"], fields, content[match.end() :]
