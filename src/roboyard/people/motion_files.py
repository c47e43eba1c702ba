"""Reads recorded motion: BVH of motion capture, and COLLADA as Gazebo's actors have it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from roboyard.description.xml import XmlNode, decode_xml, parse_xml
from roboyard.errors import DescriptionError
from roboyard.geometry.arrays import Array

MAX_JOINTS, MAX_FRAMES, MAX_FILE_SIZE = 512, 100_000, 64 * 2**20
"""Bounds of the files."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedMotion:
    """A recorded motion.

    Attributes:
        source: Path of the file.
        names: Names (j) of the joints, parents first; the end of a bone has its joint's name with `END_SUFFIX`.
        parents: Indices (j) of the parent joints; -1 for a root.
        positions: Positions (n, j, 3) of the joints, in the file's own axes and unit.
        frame_time: Time between frames [s].
    """

    source: str
    names: tuple[str, ...]
    parents: tuple[int, ...]
    positions: Array
    frame_time: float


END_SUFFIX = "*end"


def read_motion_file(path: Path) -> bytes:
    """Return the bytes of a file. Raises DescriptionError if it does not exist or is too large."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_SIZE:
            raise DescriptionError(f"the clip has {size} bytes", location=str(path), valid=f"at most {MAX_FILE_SIZE}")
        return path.read_bytes()
    except OSError as error:
        raise DescriptionError(f"the clip cannot be read: {error.strerror}", location=str(path)) from None


def check_motion(motion: RecordedMotion) -> RecordedMotion:
    """Return the motion if all its numbers are finite. Raises DescriptionError with the frame and the joint."""
    is_invalid = ~np.isfinite(motion.positions).all(axis=2)
    if is_invalid.any():
        frame, joint = np.argwhere(is_invalid)[0]
        raise DescriptionError(
            f"frame {frame} contains an invalid number, at or above joint {motion.names[joint]!r}",
            location=motion.source, valid="finite numbers",
        )  # fmt: skip
    return motion


_BVH_CHANNELS = {
    f"{axis}{quantity}": (quantity, k) for quantity in ("position", "rotation") for k, axis in enumerate("XYZ")
}


@dataclass(slots=True)
class _BvhJoint:
    name: str
    parent: int
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    channels: list[str] = field(default_factory=list)
    first_channel: int = 0


class _BvhTokens:
    """Tokens of the hierarchy with their lines."""

    def __init__(self, lines: list[str], source: str) -> None:
        self._tokens = [(keyword, number) for number, line in enumerate(lines, 1) for keyword in line.split()]
        self._next_index, self.source = 0, source

    def next_token(self) -> str:
        """Return the next token. Raises DescriptionError at the end."""
        if self._next_index >= len(self._tokens):
            raise DescriptionError("the file ends within its hierarchy", location=self.source, valid="MOTION after it")
        self._next_index += 1
        return self._tokens[self._next_index - 1][0]

    def next_number(self) -> float:
        """Return the next token as a number. Raises DescriptionError."""
        keyword = self.next_token()
        try:
            value = float(keyword)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.make_error(f"{keyword[:40]!r}", "a finite number")
        return value

    def expect(self, expected: str) -> None:
        """Consume the expected token. Raises DescriptionError if it is another one."""
        keyword = self.next_token()
        if keyword.upper() != expected:
            raise self.make_error(f"{keyword[:40]!r}", expected)

    def make_error(self, problem: str, valid: str) -> DescriptionError:
        """Return an error at the last token."""
        return DescriptionError(
            f"BVH: {problem}", location=f"{self.source}:{self._tokens[self._next_index - 1][1]}", valid=valid
        )


def read_bvh(path: Path) -> RecordedMotion:
    """Read the motion of a BVH file.

    Raises:
        DescriptionError: The file is not BVH, or is damaged; with file and line.
    """
    text = read_motion_file(path).decode("utf-8", errors="replace")
    lines = text.splitlines()
    location = str(path)
    motion_line = next((k for k, line in enumerate(lines) if line.strip().upper() == "MOTION"), None)
    if motion_line is None:
        raise DescriptionError(
            "BVH: no line MOTION", location=location, valid="a hierarchy, then MOTION and its frames"
        )
    joints = _read_bvh_hierarchy(_BvhTokens(lines[:motion_line], location))
    count, frame_time, first_frame_line = _read_bvh_header(lines, motion_line, location)
    num_channels = sum(len(joint.channels) for joint in joints)
    rows = [(k, line.split()) for k, line in enumerate(lines[first_frame_line:], first_frame_line + 1) if line.strip()]
    if len(rows) < count:
        raise DescriptionError(f"BVH: the file has {len(rows)} of {count} frames", location=f"{location}:{len(lines)}")
    table = np.empty((count, num_channels))
    for n, (line, words) in enumerate(rows[:count]):
        if len(words) != num_channels:
            raise DescriptionError(
                f"BVH: frame {n} has {len(words)} numbers",
                location=f"{location}:{line}",
                valid=f"{num_channels}, one per channel",
            )
        try:
            table[n] = [float(word) for word in words]
        except ValueError:
            raise DescriptionError(
                f"BVH: frame {n} contains a word that is not a number",
                location=f"{location}:{line}",
                valid=f"{num_channels} numbers",
            ) from None
        if not np.isfinite(table[n]).all():
            raise DescriptionError(
                f"BVH: frame {n} contains an invalid number", location=f"{location}:{line}", valid="finite numbers"
            )
    names, parents = tuple(joint.name for joint in joints), tuple(joint.parent for joint in joints)
    return check_motion(
        RecordedMotion(location, names, parents, _compute_bvh_joint_positions(joints, table), frame_time)
    )


def _read_bvh_hierarchy(tokens: _BvhTokens) -> list[_BvhJoint]:
    tokens.expect("HIERARCHY")
    tokens.expect("ROOT")
    joints: list[_BvhJoint] = [_BvhJoint(tokens.next_token(), -1)]
    tokens.expect("{")
    open_joints, num_channels = [0], 0
    while open_joints:
        joint = joints[open_joints[-1]]
        keyword = tokens.next_token().upper()
        if keyword == "OFFSET":
            joint.offset = (tokens.next_number(), tokens.next_number(), tokens.next_number())
        elif keyword == "CHANNELS":
            count = tokens.next_number()
            if not 0 <= count <= 6 or count != int(count):
                raise tokens.make_error(f"{count:g} channels", "0 to 6")
            joint.first_channel = num_channels
            for _ in range(int(count)):
                channel = tokens.next_token()
                if channel not in _BVH_CHANNELS or channel in joint.channels:
                    raise tokens.make_error(f"channel {channel[:40]!r}", ", ".join(_BVH_CHANNELS) + ", each once")
                joint.channels.append(channel)
            num_channels += int(count)
        elif keyword in ("JOINT", "END"):
            name = tokens.next_token()
            if len(joints) >= MAX_JOINTS:
                raise tokens.make_error("too many joints", f"at most {MAX_JOINTS}")
            joints.append(_BvhJoint(name if keyword == "JOINT" else joint.name + END_SUFFIX, open_joints[-1]))
            tokens.expect("{")
            open_joints.append(len(joints) - 1)
        elif keyword == "}":
            open_joints.pop()
        else:
            raise tokens.make_error(f"{keyword[:40]!r}", "OFFSET, CHANNELS, JOINT, End Site or }")
    names = [joint.name for joint in joints]
    duplicates = {name for name in names if names.count(name) > 1 and not name.endswith(END_SUFFIX)}
    if duplicates:
        raise tokens.make_error(f"two joints named {min(duplicates)!r}", "unique names")
    return joints


def _read_bvh_header(lines: list[str], motion_line: int, location: str) -> tuple[int, float, int]:
    """Return the number of frames, the time between them [s], and the line of the first."""
    values: dict[str, float] = {}
    line = motion_line + 1
    while line < len(lines) and len(values) < 2:
        key, colon, value = lines[line].partition(":")
        if colon and key.strip().lower() in ("frames", "frame time"):
            try:
                values[key.strip().lower()] = float(value)
            except ValueError:
                raise DescriptionError(
                    f"BVH: {lines[line].strip()[:60]!r}", location=f"{location}:{line + 1}"
                ) from None
        elif lines[line].strip():
            break
        line += 1
    count, frame_time = values.get("frames", math.nan), values.get("frame time", math.nan)
    if not 1 <= count <= MAX_FRAMES or count != int(count):
        raise DescriptionError(
            f"BVH: {count:g} frames", location=f"{location}:{motion_line + 2}", valid=f"1 to {MAX_FRAMES}"
        )
    if not 1e-4 <= frame_time <= 1.0:
        raise DescriptionError(
            f"BVH: frame time {frame_time:g} s", location=f"{location}:{motion_line + 2}", valid="0.0001 to 1 s"
        )
    return int(count), frame_time, line


def _compute_bvh_joint_positions(joints: list[_BvhJoint], table: Array) -> Array:
    """Return the positions (n, joints, 3) in all frames; rotations of channels are multiplied from left to right."""
    n = len(table)
    positions, orientations = np.empty((n, len(joints), 3)), np.empty((n, len(joints), 3, 3))
    for k, joint in enumerate(joints):
        rotation, translation = np.broadcast_to(np.eye(3), (n, 3, 3)), np.tile(joint.offset, (n, 1))
        for c, channel in enumerate(joint.channels):
            quantity, axis = _BVH_CHANNELS[channel]
            values = table[:, joint.first_channel + c]
            if quantity == "position":
                translation[:, axis] = values if joint.parent < 0 else translation[:, axis] + values
            else:
                rotation = rotation @ _axis_rotations(axis, np.radians(values))
        if joint.parent < 0:
            positions[:, k], orientations[:, k] = translation, rotation
        else:
            parent_orientation = orientations[:, joint.parent]
            positions[:, k] = positions[:, joint.parent] + np.einsum("nij,nj->ni", parent_orientation, translation)
            orientations[:, k] = parent_orientation @ rotation
    return positions


def _axis_rotations(axis: int, angles: Array) -> Array:
    """Return rotation matrices (n, 3, 3) about an axis."""
    c, s = np.cos(angles), np.sin(angles)
    R = np.zeros((len(angles), 3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[:, axis, axis] = 1.0
    R[:, i, i], R[:, i, j], R[:, j, i], R[:, j, j] = c, -s, s, c
    return R


_TRANSFORM_MEMBERS = {"X": 0, "Y": 1, "Z": 2, "ANGLE": 3}
_TRANSFORMS = ("matrix", "translate", "rotate", "scale")
_TRANSFORM_SIZES = {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}


@dataclass(frozen=True, slots=True)
class _AnimationCurve:
    """Animation curve of a transform: times (k) [s] and values (k, width)."""

    times: Array
    values: Array

    def values_at(self, times: Array) -> Array:
        """Return interpolated values (n, width); before the first and after the last time those values."""
        return np.stack([np.interp(times, self.times, column) for column in self.values.T], axis=1)


def read_collada_motion(path: Path) -> RecordedMotion:
    """Read the motion of the joints of a COLLADA file.

    The file is parsed by `roboyard.description.xml`, which refuses entities and gives lines for messages; meshes, which
    may be larger than its limits, are read by `roboyard.description.meshes.collada`.

    Raises:
        DescriptionError: The file is not COLLADA, has no moving joints, or is damaged; with file and line.
    """
    text, _ = decode_xml(read_motion_file(path), str(path))
    root, _ = parse_xml(text, str(path))
    if _local_tag(root) != "COLLADA":
        raise DescriptionError(f"the root element is <{root.tag}>", location=root.location, valid="<COLLADA>")
    ids = {node.get("id"): node for node in root.walk() if node.get("id")}
    curves = _read_curves(root, ids)
    joints, parents = _list_scene_nodes(root)
    if not joints:
        raise DescriptionError("the file has no joints", location=str(path), valid='<node type="JOINT"> in its scene')
    animated_joints = [
        node for node in joints if node.get("type") == "JOINT" and _node_names(node) & {key[0] for key in curves}
    ]
    if not animated_joints:
        raise DescriptionError(
            "no joint is animated", location=str(path), valid="animations whose channels have joints as targets"
        )
    times = sorted({time for curve in curves.values() for time in curve.times.tolist()})
    frame_time = _find_frame_time(times, path)
    frames = np.arange(round((times[-1] - times[0]) / frame_time) + 1)
    if len(frames) > MAX_FRAMES:
        raise DescriptionError(f"{len(frames)} frames", location=str(path), valid=f"at most {MAX_FRAMES}")
    positions = _compute_node_positions(joints, parents, curves, times[0] + frames * frame_time)
    joint_indices = [k for k, node in enumerate(joints) if node.get("type") == "JOINT"]
    new_index = {k: n for n, k in enumerate(joint_indices)}

    def find_parent_joint(k: int) -> int:
        while k >= 0 and k not in new_index:
            k = parents[k]
        return new_index.get(k, -1)

    names = tuple(joints[k].get("name") or joints[k].get("id") for k in joint_indices)
    joint_parents = tuple(find_parent_joint(parents[k]) for k in joint_indices)
    return check_motion(RecordedMotion(str(path), names, joint_parents, positions[:, joint_indices], frame_time))


def _local_tag(node: XmlNode) -> str:
    return node.tag.rpartition(":")[2]


def _node_names(node: XmlNode) -> set[str]:
    return {key for key in (node.get("id"), node.get("sid"), node.get("name")) if key}


def _read_numbers(node: XmlNode, max_count: int = 20_000_000) -> Array:
    try:
        values = np.array(node.text.split(), float)
    except ValueError:
        raise DescriptionError(f"<{node.tag}> contains a word that is not a number", location=node.location) from None
    if len(values) > max_count or not np.isfinite(values).all():
        raise DescriptionError(
            f"<{node.tag}> contains an invalid number", location=node.location, valid="finite numbers"
        )
    return values


def _read_source(node: XmlNode, semantic: str, ids: dict[str, XmlNode]) -> tuple[Array, int]:
    """Return the values of a sampler's input and their stride."""
    for child in node.children:
        if _local_tag(child) == "input" and child.get("semantic") == semantic:
            source = ids.get(child.get("source").removeprefix("#"))
            array = next((c for c in source.children if _local_tag(c) == "float_array"), None) if source else None
            if source is None or array is None:
                break
            accessor = next((c for c in source.walk() if _local_tag(c) == "accessor"), None)
            stride = accessor.get("stride", "1") if accessor else "1"
            if not stride.isdigit() or not 1 <= int(stride) <= 16:
                raise DescriptionError(f"stride {stride!r}", location=source.location, valid="1 to 16")
            return _read_numbers(array), int(stride)
    raise DescriptionError(
        f"a sampler without {semantic}", location=node.location, valid="an <input> with its <source>"
    )


def _read_curves(root: XmlNode, ids: dict[str, XmlNode]) -> dict[tuple[str, str, str], _AnimationCurve]:
    """Return the animation curves by joint, transform and member."""
    curves: dict[tuple[str, str, str], _AnimationCurve] = {}
    for node in root.walk():
        if _local_tag(node) != "channel":
            continue
        joint, _, address = node.get("target").partition("/")
        transform, _, member = address.partition(".")
        sampler = ids.get(node.get("source").removeprefix("#"))
        if not joint or not transform or sampler is None:
            raise DescriptionError(
                "a channel without sampler or target", location=node.location, valid="source and target"
            )
        times, _ = _read_source(sampler, "INPUT", ids)
        values, width = _read_source(sampler, "OUTPUT", ids)
        if len(times) < 1 or len(values) != len(times) * width or np.any(np.diff(times) <= 0.0):
            raise DescriptionError(
                f"{len(times)} times and {len(values)} values of width {width}", location=sampler.location,
                valid="increasing times, each with its values",
            )  # fmt: skip
        curves[joint, transform, member] = _AnimationCurve(times, values.reshape(-1, width))
    return curves


def _list_scene_nodes(root: XmlNode) -> tuple[list[XmlNode], list[int]]:
    """Return all nodes of the scene, parents first, and the indices of their parents."""
    nodes: list[XmlNode] = []
    parents: list[int] = []
    scenes = [node for node in root.walk() if _local_tag(node) == "visual_scene"]
    stack = [(child, -1) for scene in scenes[:1] for child in reversed(scene.children) if _local_tag(child) == "node"]
    while stack:
        node, parent = stack.pop()
        if len(nodes) >= 4 * MAX_JOINTS:
            raise DescriptionError("too many nodes", location=node.location, valid=f"at most {4 * MAX_JOINTS}")
        nodes.append(node)
        parents.append(parent)
        stack += [(child, len(nodes) - 1) for child in reversed(node.children) if _local_tag(child) == "node"]
    return nodes, parents


def _find_frame_time(times: list[float], path: Path) -> float:
    """Return the time between frames [s]: the median time between keys, within bounds."""
    if len(times) < 2 or not times[-1] - times[0] > 1e-3:
        raise DescriptionError("the motion has no duration", location=str(path), valid="keys at two or more times")
    return float(np.clip(np.median(np.diff(times)), 1.0 / 120.0, 0.1))


def _compute_node_positions(
    nodes: list[XmlNode], parents: list[int], curves: dict[tuple[str, str, str], _AnimationCurve], times: Array
) -> Array:
    """Return the positions (n, nodes, 3) of all nodes."""
    n = len(times)
    poses = np.empty((n, len(nodes), 4, 4))
    for k, node in enumerate(nodes):
        local = np.broadcast_to(np.eye(4), (n, 4, 4))
        for child in node.children:
            if _local_tag(child) in _TRANSFORMS:
                local = local @ _transform_matrices(_local_tag(child), _animated_values(node, child, curves, times))
        poses[:, k] = local if parents[k] < 0 else poses[:, parents[k]] @ local
    return poses[:, :, :3, 3]


def _animated_values(
    node: XmlNode, transform: XmlNode, curves: dict[tuple[str, str, str], _AnimationCurve], times: Array
) -> Array:
    """Return the numbers (n, width) of a transform in all frames."""
    kind = _local_tag(transform)
    values_at_rest = _read_numbers(transform, 16)
    if len(values_at_rest) != _TRANSFORM_SIZES[kind]:
        raise DescriptionError(
            f"<{kind}> with {len(values_at_rest)} numbers",
            location=transform.location,
            valid=f"{_TRANSFORM_SIZES[kind]} numbers",
        )
    values = np.tile(values_at_rest, (len(times), 1))
    for key in _node_names(node):
        for (joint, sid, member), curve in curves.items():
            if joint != key or sid != transform.get("sid", kind):
                continue
            curve_values = curve.values_at(times)
            if not member and curve_values.shape[1] == values.shape[1]:
                values = curve_values
            elif (
                member in _TRANSFORM_MEMBERS
                and curve_values.shape[1] == 1
                and _TRANSFORM_MEMBERS[member] < values.shape[1]
            ):
                values[:, _TRANSFORM_MEMBERS[member]] = curve_values[:, 0]
            else:
                raise DescriptionError(
                    f"a curve of {curve_values.shape[1]} numbers for <{kind}> of {joint}", location=transform.location,
                    valid=f"{values.shape[1]} numbers, or one for .X, .Y, .Z or .ANGLE",
                )  # fmt: skip
    return values


def _transform_matrices(kind: str, values: Array) -> Array:
    """Return the matrices (n, 4, 4) of a kind of transform."""
    n = len(values)
    if kind == "matrix":
        return values.reshape(n, 4, 4)
    T = np.tile(np.eye(4), (n, 1, 1))
    if kind == "translate":
        T[:, :3, 3] = values
    elif kind == "scale":
        T[:, [0, 1, 2], [0, 1, 2]] = values
    else:
        axis = values[:, :3] / np.maximum(np.linalg.norm(values[:, :3], axis=1, keepdims=True), 1e-12)
        angle = np.radians(values[:, 3])
        K = np.zeros((n, 3, 3))
        K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
        K -= K.transpose(0, 2, 1)
        s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
        T[:, :3, :3] = np.eye(3) + s * K + (1.0 - c) * (K @ K)
    return T
