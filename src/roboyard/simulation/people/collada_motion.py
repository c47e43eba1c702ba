"""Motion from COLLADA files, as Gazebo's actors have it: a hierarchy of joints and curves that move them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roboyard.description.xml import XmlNode, decode_xml, parse_xml
from roboyard.errors import DescriptionError
from roboyard.geometry.arrays import Array
from roboyard.simulation.people.motion import MOST_FRAMES, MOST_JOINTS, Motion, check_motion, read_bytes

_MEMBERS = {"X": 0, "Y": 1, "Z": 2, "ANGLE": 3}
_TRANSFORMS = ("matrix", "translate", "rotate", "scale")
_SIZES = {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}


@dataclass(frozen=True, slots=True)
class _Curve:
    """(k) times [s] and (k, width) values."""

    times: Array
    values: Array

    def at(self, times: Array) -> Array:
        """(n, width) between the values, the first and the last beyond them."""
        return np.stack([np.interp(times, self.times, column) for column in self.values.T], axis=1)


def read_collada_motion(path: Path) -> Motion:
    """The motion of a COLLADA file's joints.

    Raises:
        DescriptionError: it is none, has no moving joints, or is broken; with file and line.
    """
    text, _ = decode_xml(read_bytes(path), str(path))
    root, _ = parse_xml(text, str(path))
    if _tag(root) != "COLLADA":
        raise DescriptionError(f"a root <{root.tag}>", location=root.location, valid="<COLLADA>")
    ids = {node.get("id"): node for node in root.walk() if node.get("id")}
    curves = _curves(root, ids)
    joints, parents = _joints(root)
    if not joints:
        raise DescriptionError("the file has no joints", location=str(path), valid='<node type="JOINT"> in its scene')
    moved = [node for node in joints if node.get("type") == "JOINT" and _keys(node) & {key[0] for key in curves}]
    if not moved:
        raise DescriptionError("no joint moves", location=str(path), valid="animations whose channels aim at joints")
    times = sorted({time for curve in curves.values() for time in curve.times.tolist()})
    step = _step(times, path)
    frames = np.arange(round((times[-1] - times[0]) / step) + 1)
    if len(frames) > MOST_FRAMES:
        raise DescriptionError(f"{len(frames)} frames", location=str(path), valid=f"at most {MOST_FRAMES}")
    places = _places(joints, parents, curves, times[0] + frames * step)
    chosen = [k for k, node in enumerate(joints) if node.get("type") == "JOINT"]
    number = {k: n for n, k in enumerate(chosen)}

    def above(k: int) -> int:
        while k >= 0 and k not in number:
            k = parents[k]
        return number.get(k, -1)

    names = tuple(joints[k].get("name") or joints[k].get("id") for k in chosen)
    bones = tuple(above(parents[k]) for k in chosen)
    return check_motion(Motion(str(path), names, bones, places[:, chosen], step))


def _tag(node: XmlNode) -> str:
    return node.tag.rpartition(":")[2]


def _keys(node: XmlNode) -> set[str]:
    return {key for key in (node.get("id"), node.get("sid"), node.get("name")) if key}


def _numbers(node: XmlNode, most: int = 20_000_000) -> Array:
    try:
        values = np.array(node.text.split(), float)
    except ValueError:
        raise DescriptionError(f"<{node.tag}> holds what is no number", location=node.location) from None
    if len(values) > most or not np.isfinite(values).all():
        raise DescriptionError(
            f"<{node.tag}> holds a number that is none", location=node.location, valid="finite numbers"
        )
    return values


def _source(node: XmlNode, semantic: str, ids: dict[str, XmlNode]) -> tuple[Array, int]:
    """Values of a sampler's input, and how many belong together."""
    for one in node.children:
        if _tag(one) == "input" and one.get("semantic") == semantic:
            source = ids.get(one.get("source").removeprefix("#"))
            array = next((c for c in source.children if _tag(c) == "float_array"), None) if source else None
            if source is None or array is None:
                break
            accessor = next((c for c in source.walk() if _tag(c) == "accessor"), None)
            stride = accessor.get("stride", "1") if accessor else "1"
            if not stride.isdigit() or not 1 <= int(stride) <= 16:
                raise DescriptionError(f"stride {stride!r}", location=source.location, valid="1 to 16")
            return _numbers(array), int(stride)
    raise DescriptionError(
        f"a sampler without {semantic}", location=node.location, valid="an <input> with its <source>"
    )


def _curves(root: XmlNode, ids: dict[str, XmlNode]) -> dict[tuple[str, str, str], _Curve]:
    """By joint, transform and member what moves it."""
    curves: dict[tuple[str, str, str], _Curve] = {}
    for node in root.walk():
        if _tag(node) != "channel":
            continue
        joint, _, rest = node.get("target").partition("/")
        transform, _, member = rest.partition(".")
        sampler = ids.get(node.get("source").removeprefix("#"))
        if not joint or not transform or sampler is None:
            raise DescriptionError(
                "a channel without sampler or target", location=node.location, valid="source and target"
            )
        times, _ = _source(sampler, "INPUT", ids)
        values, width = _source(sampler, "OUTPUT", ids)
        if len(times) < 1 or len(values) != len(times) * width or np.any(np.diff(times) <= 0.0):
            raise DescriptionError(
                f"{len(times)} times and {len(values)} values, {width} each", location=sampler.location,
                valid="rising times with their values",
            )  # fmt: skip
        curves[joint, transform, member] = _Curve(times, values.reshape(-1, width))
    return curves


def _joints(root: XmlNode) -> tuple[list[XmlNode], list[int]]:
    """All nodes of the scene, parents first, with their parents."""
    nodes: list[XmlNode] = []
    parents: list[int] = []
    scenes = [node for node in root.walk() if _tag(node) == "visual_scene"]
    stack = [(child, -1) for scene in scenes[:1] for child in reversed(scene.children) if _tag(child) == "node"]
    while stack:
        node, parent = stack.pop()
        if len(nodes) >= 4 * MOST_JOINTS:
            raise DescriptionError("too many nodes", location=node.location, valid=f"at most {4 * MOST_JOINTS}")
        nodes.append(node)
        parents.append(parent)
        stack += [(child, len(nodes) - 1) for child in reversed(node.children) if _tag(child) == "node"]
    return nodes, parents


def _step(times: list[float], path: Path) -> float:
    """From frame to frame [s]: the usual time between keys, within bounds."""
    if len(times) < 2 or not times[-1] - times[0] > 1e-3:
        raise DescriptionError("the motion has no duration", location=str(path), valid="keys at two times at least")
    return float(np.clip(np.median(np.diff(times)), 1.0 / 120.0, 0.1))


def _places(
    nodes: list[XmlNode], parents: list[int], curves: dict[tuple[str, str, str], _Curve], times: Array
) -> Array:
    """(n, nodes, 3) of all nodes."""
    n = len(times)
    poses = np.empty((n, len(nodes), 4, 4))
    for k, node in enumerate(nodes):
        local = np.broadcast_to(np.eye(4), (n, 4, 4))
        for child in node.children:
            if _tag(child) in _TRANSFORMS:
                local = local @ _transform(_tag(child), _moved(node, child, curves, times))
        poses[:, k] = local if parents[k] < 0 else poses[:, parents[k]] @ local
    return poses[:, :, :3, 3]


def _moved(node: XmlNode, transform: XmlNode, curves: dict[tuple[str, str, str], _Curve], times: Array) -> Array:
    """(n, width) of a transform's numbers in all frames."""
    kind = _tag(transform)
    at_rest = _numbers(transform, 16)
    if len(at_rest) != _SIZES[kind]:
        raise DescriptionError(
            f"<{kind}> with {len(at_rest)} numbers", location=transform.location, valid=f"{_SIZES[kind]} numbers"
        )
    values = np.tile(at_rest, (len(times), 1))
    for key in _keys(node):
        for (joint, sid, member), curve in curves.items():
            if joint != key or sid != transform.get("sid", kind):
                continue
            moved = curve.at(times)
            if not member and moved.shape[1] == values.shape[1]:
                values = moved
            elif member in _MEMBERS and moved.shape[1] == 1 and _MEMBERS[member] < values.shape[1]:
                values[:, _MEMBERS[member]] = moved[:, 0]
            else:
                raise DescriptionError(
                    f"a curve of {moved.shape[1]} numbers for <{kind}> of {joint}", location=transform.location,
                    valid=f"{values.shape[1]} numbers, or one for .X, .Y, .Z or .ANGLE",
                )  # fmt: skip
    return values


def _transform(kind: str, values: Array) -> Array:
    """(n, 4, 4) of a kind of transform."""
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
