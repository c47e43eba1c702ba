"""Reads `<include>`: finds the model's file, applies name, pose and static, and merges models with `merge="true"`.

As in libsdformat a proxy frame `_merged__NAME__model__` replaces the included model's frame; references to that frame
become references to the proxy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from roboyard.description.model import Collision as Shape
from roboyard.description.model import Link, Material, Model, Plane, Surface, Visual
from roboyard.description.reader_context import ReaderContext
from roboyard.description.resources import fuel_resource_name
from roboyard.description.sdf.scope import MODEL, PLACEHOLDER, make_placeholder, named_poses
from roboyard.description.sensor_reader import read_plugin
from roboyard.description.urdf import read_model_document as read_urdf
from roboyard.description.xml import XmlNode, parse_xml
from roboyard.description.xml_values import child_boolean, child_text, error_at, quote, read_pose
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_INCLUDE_TAGS = {"uri", "name", "pose", "static", "placement_frame", "plugin"}

SdfVersion = tuple[int, int]
ReadModel = Callable[[ReaderContext, XmlNode, SdfVersion], Model]


@dataclass(frozen=True, slots=True)
class IncludedEntity:
    """Result of an include.

    Attributes:
        name: Its name in the including scope.
        model: The included model; None for a light or actor.
        node: The model or light element with the values of the include.
        pose_node: The ``<pose>`` that places it.
        placement_frame: Frame of the model that the pose refers to; empty: its origin.
        version: SDF version of the included file.
    """

    name: str
    model: Model | None
    node: XmlNode
    pose_node: XmlNode | None
    placement_frame: str = ""
    version: SdfVersion = (1, 7)


def read_include(
    context: ReaderContext, node: XmlNode, read_model: ReadModel, *, merge: bool = False
) -> IncludedEntity:
    """Read an ``<include>``; a placeholder with a warning if the file is not available.

    Args:
        context: Receives warnings, resolves files.
        node: The ``<include>``.
        read_model: Reader of a ``<model>`` (an argument, because models include models).
        merge: Whether only the element is needed, to merge its content.

    Raises:
        DescriptionError: The included file is invalid, or files include each other in a cycle.
    """
    context.warn_unknown_children(node, _INCLUDE_TAGS)
    uri = child_text(node, "uri")
    if not uri:
        raise error_at("an <include> has no <uri>", node, "<uri>model://name</uri>")
    name_node = node.child("name")
    name = child_text(node, "name")
    if name_node is not None and not name:
        raise error_at("an <include> has an empty <name>", name_node, "a name, or no <name>")
    path, problem = find_model_file(context, uri, node)
    if path is None:
        return _replace_missing_include(context, node, uri, name, problem)
    root = _parse_included_file(context, path, node)
    with context.nested(str(path), node):
        if root.tag == "robot":
            if merge:
                raise error_at("a URDF cannot be merged", node, "an SDF model")
            model = replace(read_urdf(context, root, name or None), source=path)
            if child_boolean(node, "static", model.static) != model.static:
                model = replace(model, static=not model.static)
            model = replace(
                model, plugins=model.plugins + tuple(read_plugin(one) for one in node.children_with_tag("plugin"))
            )
            return IncludedEntity(model.name, model, root, node.child("pose"), child_text(node, "placement_frame"))
        version = read_sdf_version(context, root)
        content = _included_element(context, root, node)
        if content.tag == "include":
            inner = read_include(context, content, read_model, merge=merge)
            return replace(inner, name=name or inner.name, pose_node=node.child("pose") or inner.pose_node)
        element = _apply_include_overrides(content, node, name)
        if content.tag in ("light", "actor"):
            return IncludedEntity(element.get("name"), None, element, element.child("pose"), version=version)
        included_model = None if merge else replace(read_model(context, element, version), source=path)
        return IncludedEntity(
            element.get("name"),
            included_model,
            element,
            element.child("pose"),
            element.get("placement_frame").strip(),
            version,
        )


def read_sdf_version(context: ReaderContext, root: XmlNode) -> SdfVersion:
    """Return the version of an ``<sdf>`` document. Raises DescriptionError if it is missing or invalid."""
    text = root.get("version").strip()
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\d{1,3})?", text)
    if match is None:
        problem = f"<{root.tag}> has the invalid version {quote(text)}" if text else f"<{root.tag}> has no version"
        raise error_at(problem, root, 'version="1.4" … "1.12"')
    version = int(match.group(1)), int(match.group(2))
    if not (1, 4) <= version <= (1, 12):
        context.warn(root, f"SDF {text} is read as if it were {'1.4' if version < (1, 4) else '1.12'}")
    return version


def find_model_file(context: ReaderContext, uri: str, node: XmlNode) -> tuple[Path | None, str]:
    """Return the file of a model URI (a file, a folder with model.config, a model's name), or None and the reason."""
    if not fuel_resource_name(uri):
        resolved = context.resources.resolve(uri, node.file)
        if resolved.path is not None:
            return resolved.path, ""
    alternatives = () if "://" in uri or uri.startswith(("/", ".")) else (f"model://{uri}",)
    problem = ""
    for one in (uri, *alternatives):
        folder = context.resources.resolve(one, node.file, expect_folder=True)
        if folder.path is not None:
            return _newest_sdf_file(folder.path)
        problem = problem or folder.problem
    return None, problem


def _newest_sdf_file(folder: Path) -> tuple[Path | None, str]:
    """Return the newest SDF that model.config names; without one, model.sdf."""
    names: list[tuple[SdfVersion, str]] = []
    try:
        config, _ = parse_xml((folder / "model.config").read_bytes(), str(folder / "model.config"))
    except (OSError, DescriptionError):
        config = None
    for one in config.children if config else []:
        match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", one.get("version", "1.4").strip())
        if one.tag in ("sdf", "urdf") and match:
            names.append(((int(match.group(1)), int(match.group(2))), one.text.strip()))
    for _, name in sorted(names, key=lambda pair: pair[0], reverse=True):
        if Path(name).name == name and (folder / name).is_file():
            return folder / name, ""
    if (folder / "model.sdf").is_file():
        return folder / "model.sdf", ""
    return None, "its folder has neither a model.config that names a file nor a model.sdf"


def _parse_included_file(context: ReaderContext, path: Path, node: XmlNode) -> XmlNode:
    if str(path) in context.stack:
        raise error_at(f"files include each other in a cycle: {path}", node, "includes that end")
    root = context.parse_included_file(path, node, f"the included {path.name}")
    if root.tag not in ("sdf", "robot", "gazebo"):
        raise error_at(f"the included document is a <{root.tag[:60]}>", root, "<sdf> or <robot>")
    return root


def _included_element(context: ReaderContext, root: XmlNode, node: XmlNode) -> XmlNode:
    candidates = root.children_with_tag("model", "light", "include", "actor")
    if not candidates:
        raise error_at("the included file has no model", root, f"<model>; it is included at {node.location}")
    for extra in candidates[1:]:
        context.warn(extra, f"a second <{extra.tag}> in an included file is ignored")
    return candidates[0]


def _apply_include_overrides(content: XmlNode, include: XmlNode, name: str) -> XmlNode:
    """Return the included element with the include's name, pose, static, placement frame and plugins."""
    attributes = dict(content.attributes)
    if name:
        attributes["name"] = name
    placement_frame = child_text(include, "placement_frame")
    if placement_frame:
        attributes["placement_frame"] = placement_frame
    overridden_tags = {tag for tag in ("pose", "static") if include.child(tag) is not None}
    inherited_children = [child for child in content.children if child.tag not in overridden_tags]
    overriding_children = [child for child in include.children if child.tag in (*overridden_tags, "plugin")]
    return XmlNode(
        content.tag, attributes, content.file, content.line, content.text, inherited_children + overriding_children
    )


# -- placeholders
# ---------------------------------------------------------------------------------------------------------
def _replace_missing_include(
    context: ReaderContext, node: XmlNode, uri: str, name: str, problem: str
) -> IncludedEntity:
    model_name = (fuel_resource_name(uri) or uri.rstrip("/").rpartition("/")[2]).lower().replace(" ", "_")
    if model_name == "ground_plane":
        return IncludedEntity(
            name or "ground_plane", _gazebo_ground_plane(name or "ground_plane"), node, node.child("pose")
        )
    if model_name == "sun":
        return IncludedEntity(name or "sun", None, _gazebo_sun(node, name or "sun"), None)
    context.warn(node, f"include {quote(uri, 200)}: {problem}; a placeholder is used")
    placeholder_name = name or model_name or PLACEHOLDER
    return IncludedEntity(placeholder_name, make_placeholder(placeholder_name), node, node.child("pose"))


def _gazebo_ground_plane(name: str) -> Model:
    """Make Gazebo's "Ground Plane": infinite, drawn with 100 m."""
    identity, plane = SE3.identity(), Plane(size=(100.0, 100.0))
    link = Link(
        "link",
        identity,
        collisions=(Shape("collision", plane, identity, Surface(friction=100.0, friction2=50.0)),),
        visuals=(Visual("visual", plane, identity, Material("ground", (0.8, 0.8, 0.8, 1.0)), cast_shadows=False),),
    )
    return Model(name, (link,), static=True, canonical_link="link")


def _gazebo_sun(node: XmlNode, name: str) -> XmlNode:
    """Make Gazebo's "Sun": light from above, slightly from the front left."""

    def make_leaf(tag: str, text: str) -> XmlNode:
        return XmlNode(tag, {}, node.file, node.line, text)

    children = [
        make_leaf("pose", "0 0 10 0 0 0"),
        make_leaf("direction", "-0.5 0.1 -0.9"),
        make_leaf("cast_shadows", "true"),
    ]
    children += [make_leaf("diffuse", "0.8 0.8 0.8 1"), make_leaf("specular", "0.2 0.2 0.2 1")]
    return XmlNode("light", {"name": name, "type": "directional"}, node.file, node.line, "", children)


PROXY = "__proxy__"
_MERGED_TAGS = ("link", "joint", "frame", "model", "include", "plugin")
_FRAME_ATTRIBUTES = ("relative_to", "attached_to", "expressed_in", "frame")


def expand_merge_includes(context: ReaderContext, node: XmlNode, read_model: ReadModel) -> Iterator[XmlNode]:
    """Return the children of a model, with merge-includes replaced by their content. Raises DescriptionError."""
    for child in node.children:
        if child.tag != "include" or child.get("merge").strip() not in ("true", "1"):
            yield child
            continue
        entity = read_include(context, child, read_model, merge=True)
        if entity.model is not None or entity.node.tag != "model":
            context.warn(child, f"'{entity.name}' cannot be merged: ignored")
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
    """Make a frame at the pose of the included model's frame."""
    T = read_pose(entity.pose_node)
    if entity.placement_frame:
        placement = named_poses(read_model(context, entity.node, entity.version)).get(entity.placement_frame)
        if placement is None:
            raise error_at(f"model '{entity.name}' has no placement_frame '{entity.placement_frame}'", entity.node)
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
    """Return a copy of a merged part whose references to its model's frame refer to the proxy."""
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
