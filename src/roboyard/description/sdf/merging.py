"""``<include merge="true">``: the parts of the included model become the including one's own.

As libsdformat does it: a proxy frame ``_merged__NAME__model__`` takes the place of the included model's frame, and
whatever referred to that frame, by name or by default, refers to the proxy.
"""

from __future__ import annotations

from collections.abc import Iterator

from roboyard.description.fields import read_pose
from roboyard.description.reading import ReaderContext
from roboyard.description.sdf.includes import IncludedEntity, ReadModel, read_include
from roboyard.description.sdf.scope import MODEL, named_poses
from roboyard.description.values import error_at
from roboyard.description.xml import XmlNode

PROXY = "__proxy__"
_MERGED_TAGS = ("link", "joint", "frame", "model", "include", "plugin")
_FRAME_ATTRIBUTES = ("relative_to", "attached_to", "expressed_in", "frame")


def expand_merge_includes(context: ReaderContext, node: XmlNode, read_model: ReadModel) -> Iterator[XmlNode]:
    """Children of a model, merge-includes replaced by what they bring. Raises DescriptionError."""
    for child in node.children:
        if child.tag != "include" or child.get("merge").strip() not in ("true", "1"):
            yield child
            continue
        entity = read_include(context, child, read_model, merge=True)
        if entity.model is not None or entity.node.tag != "model":
            context.warn(child, f"'{entity.name}' cannot be merged: left out")
            continue
        with context.nested(f"merge of {entity.name}", child):
            proxy = f"_merged__{entity.name}{MODEL}"
            elements = list(expand_merge_includes(context, entity.node, read_model))
            yield _make_proxy_frame(context, proxy, entity, elements, read_model)
            for element in elements:
                if element.tag in (*_MERGED_TAGS, PROXY):
                    yield _rebase_on_proxy(element, proxy)


def _make_proxy_frame(
    context: ReaderContext, name: str, entity: IncludedEntity, elements: list[XmlNode], read_model: ReadModel
) -> XmlNode:
    """A frame where the included model's frame would be."""
    T = read_pose(entity.pose_node)
    if entity.placement_frame:
        placement = named_poses(read_model(context, entity.node, entity.version)).get(entity.placement_frame)
        if placement is None:
            raise error_at(f"placement_frame '{entity.placement_frame}' is not in model '{entity.name}'", entity.node)
        T = T @ placement[1].inverse()
    link = entity.node.get("canonical_link") or next(
        (element.get("name") for element in elements if element.tag == "link"), ""
    )
    w, x, y, z = T.quaternion
    text = " ".join(repr(float(value)) for value in (*T.xyz, x, y, z, w))
    pose_source = entity.pose_node or entity.node
    attributes = {
        "rotation_format": "quat_xyzw",
        "relative_to": pose_source.get("relative_to") if entity.pose_node else "",
    }
    pose_node = XmlNode("pose", attributes, pose_source.file, pose_source.line, text)
    return XmlNode(PROXY, {"name": name, "attached_to": link}, entity.node.file, entity.node.line, "", [pose_node])


def _rebase_on_proxy(element: XmlNode, proxy: str) -> XmlNode:
    """A copy of a merged part that starts at the proxy where it started at its model."""
    copy = _replace_model_frame(element, proxy)
    if copy.tag in ("link", "model", "include", PROXY):
        pose_node = copy.child("pose")
        if pose_node is None:
            copy.children.append(XmlNode("pose", {"relative_to": proxy}, copy.file, copy.line))
        elif not (pose_node.get("relative_to") or pose_node.get("frame")):
            pose_node.attributes["relative_to"] = proxy
    elif copy.tag == "frame" and not copy.get("attached_to"):
        copy.attributes["attached_to"] = proxy
    return copy


def _replace_model_frame(node: XmlNode, proxy: str) -> XmlNode:
    if node.tag == "plugin":
        return node
    attributes = {
        key: proxy if key in _FRAME_ATTRIBUTES and value == MODEL else value for key, value in node.attributes.items()
    }
    text = proxy if node.tag in ("parent", "child") and node.text.strip() == MODEL else node.text
    return XmlNode(
        node.tag,
        attributes,
        node.file,
        node.line,
        text,
        [_replace_model_frame(child, proxy) for child in node.children],
    )
