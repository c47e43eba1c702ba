"""``<include merge="true">``: the parts of the included model become the including one's own.

As libsdformat does it: a proxy frame ``_merged__NAME__model__`` takes the place of the included model's frame, and
whatever referred to that frame, by name or by default, refers to the proxy.
"""

from __future__ import annotations

from collections.abc import Iterator

from roboyard.description.fields import pose
from roboyard.description.reading import Reading
from roboyard.description.sdf.includes import Included, ReadModel, read_include
from roboyard.description.sdf.scope import MODEL, places
from roboyard.description.values import fault
from roboyard.description.xml import Node

PROXY = "__proxy__"
_PARTS = ("link", "joint", "frame", "model", "include", "plugin")
_REFERRING = ("relative_to", "attached_to", "expressed_in", "frame")


def merged(reading: Reading, node: Node, read_model: ReadModel) -> Iterator[Node]:
    """Children of a model, merge-includes replaced by what they bring. Raises DescriptionError."""
    for child in node.children:
        if child.tag != "include" or child.get("merge").strip() not in ("true", "1"):
            yield child
            continue
        found = read_include(reading, child, read_model, merge=True)
        if found.model is not None or found.node.tag != "model":
            reading.note(child, f"'{found.name}' cannot be merged: left out")
            continue
        with reading.inside(f"merge of {found.name}", child):
            proxy = f"_merged__{found.name}{MODEL}"
            parts = list(merged(reading, found.node, read_model))
            yield _proxy(reading, proxy, found, parts, read_model)
            for part in parts:
                if part.tag in (*_PARTS, PROXY):
                    yield _own(part, proxy)


def _proxy(reading: Reading, name: str, found: Included, parts: list[Node], read_model: ReadModel) -> Node:
    """A frame where the included model's frame would be."""
    T = pose(found.pose_node)
    if found.placed:
        place = places(read_model(reading, found.node, found.version)).get(found.placed)
        if place is None:
            raise fault(f"placement_frame '{found.placed}' is not in model '{found.name}'", found.node)
        T = T @ place[1].inverse()
    link = found.node.get("canonical_link") or next((part.get("name") for part in parts if part.tag == "link"), "")
    w, x, y, z = T.quaternion
    text = " ".join(repr(float(value)) for value in (*T.xyz, x, y, z, w))
    at = found.pose_node or found.node
    attributes = {"rotation_format": "quat_xyzw", "relative_to": at.get("relative_to") if found.pose_node else ""}
    where = Node("pose", attributes, at.file, at.line, text)
    return Node(PROXY, {"name": name, "attached_to": link}, found.node.file, found.node.line, "", [where])


def _own(part: Node, proxy: str) -> Node:
    """A copy of a merged part that starts at the proxy where it started at its model."""
    copy = _renamed(part, proxy)
    if copy.tag in ("link", "model", "include", PROXY):
        given = copy.child("pose")
        if given is None:
            copy.children.append(Node("pose", {"relative_to": proxy}, copy.file, copy.line))
        elif not (given.get("relative_to") or given.get("frame")):
            given.attributes["relative_to"] = proxy
    elif copy.tag == "frame" and not copy.get("attached_to"):
        copy.attributes["attached_to"] = proxy
    return copy


def _renamed(node: Node, proxy: str) -> Node:
    if node.tag == "plugin":
        return node
    attributes = {
        key: proxy if key in _REFERRING and value == MODEL else value for key, value in node.attributes.items()
    }
    text = proxy if node.tag in ("parent", "child") and node.text.strip() == MODEL else node.text
    return Node(node.tag, attributes, node.file, node.line, text, [_renamed(child, proxy) for child in node.children])
