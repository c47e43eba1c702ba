"""``<include>``: find the model's file, read it, lay the include's own name, pose and static over it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from roboyard.description.fields import boolean_of, text_of
from roboyard.description.model import Collision as Shape
from roboyard.description.model import Link, Material, Model, Plane, Surface, Visual
from roboyard.description.reading import Reading
from roboyard.description.resources import fuel_name
from roboyard.description.sdf.placeholders import PLACEHOLDER, placeholder
from roboyard.description.sensing import read_plugin
from roboyard.description.urdf import read_robot
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node, parse
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_KNOWN = {"uri", "name", "pose", "static", "placement_frame", "plugin"}

Version = tuple[int, int]
ReadModel = Callable[[Reading, Node, Version], Model]


@dataclass(frozen=True, slots=True)
class Included:
    """What an include brings.

    Attributes:
        name: Its name in the including scope.
        model: The finished model; None for a lone lamp or actor.
        node: The model or light element, the include's values laid over it.
        pose_node: The ``<pose>`` that places it.
        placed: Frame of the model that this pose puts in place; empty: its origin.
        version: Of the included file.
    """

    name: str
    model: Model | None
    node: Node
    pose_node: Node | None
    placed: str = ""
    version: Version = (1, 7)


def read_include(reading: Reading, node: Node, read_model: ReadModel, *, merge: bool = False) -> Included:
    """What ``node`` includes; a placeholder with a finding where the file is not to be had.

    Args:
        reading: Takes findings, resolves files.
        node: The ``<include>``.
        read_model: Reader of a ``<model>`` (handed in, because models include models).
        merge: Whether the caller wants the element only, to merge its content.

    Raises:
        DescriptionError: the included file is wrong, or files include each other in a circle.
    """
    reading.unknown(node, _KNOWN)
    uri = text_of(node, "uri")
    if not uri:
        raise fault("an <include> has no <uri>", node, "<uri>model://name</uri>")
    given = node.child("name")
    name = text_of(node, "name")
    if given is not None and not name:
        raise fault("an <include> has an empty <name>", given, "a name, or no <name>")
    path, problem = find_model(reading, uri, node)
    if path is None:
        return _stand_in(reading, node, uri, name, problem)
    root = _parse(reading, path, node)
    with reading.inside(str(path), node):
        if root.tag == "robot":
            if merge:
                raise fault("a URDF cannot be merged", node, "an SDF model")
            model = replace(read_robot(reading, root, name or None), source=path)
            if boolean_of(node, "static", model.static) != model.static:
                model = replace(model, static=not model.static)
            model = replace(model, plugins=model.plugins + tuple(read_plugin(one) for one in node.all("plugin")))
            return Included(model.name, model, root, node.child("pose"), text_of(node, "placement_frame"))
        version = sdf_version(reading, root)
        content = _content(reading, root, node)
        if content.tag == "include":
            inner = read_include(reading, content, read_model, merge=merge)
            return replace(inner, name=name or inner.name, pose_node=node.child("pose") or inner.pose_node)
        laid = _overlaid(content, node, name)
        if content.tag in ("light", "actor"):
            return Included(laid.get("name"), None, laid, laid.child("pose"), version=version)
        read = None if merge else replace(read_model(reading, laid, version), source=path)
        return Included(laid.get("name"), read, laid, laid.child("pose"), laid.get("placement_frame").strip(), version)


def sdf_version(reading: Reading, root: Node) -> Version:
    """Version of an ``<sdf>`` document. Raises DescriptionError when it is missing or none."""
    text = root.get("version").strip()
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\d{1,3})?", text)
    if match is None:
        what = f"<{root.tag}> has the version {shown(text)}" if text else f"<{root.tag}> has no version"
        raise fault(what, root, 'version="1.4" … "1.12"')
    version = int(match.group(1)), int(match.group(2))
    if not (1, 4) <= version <= (1, 12):
        reading.note(root, f"SDF {text} is read as if it were {'1.4' if version < (1, 4) else '1.12'}")
    return version


def find_model(reading: Reading, uri: str, node: Node) -> tuple[Path | None, str]:
    """File behind a model URI (a file, a folder with model.config, a model's name), or None and why not."""
    if not fuel_name(uri):
        found = reading.resources.resolve(uri, node.file)
        if found.path is not None:
            return found.path, ""
    named = () if "://" in uri or uri.startswith(("/", ".")) else (f"model://{uri}",)
    problem = ""
    for one in (uri, *named):
        folder = reading.resources.resolve(one, node.file, folder=True)
        if folder.path is not None:
            return _best_file(folder.path)
        problem = problem or folder.problem
    return None, problem


def _best_file(folder: Path) -> tuple[Path | None, str]:
    """The newest SDF that model.config names; without one, model.sdf."""
    names: list[tuple[Version, str]] = []
    try:
        config, _ = parse((folder / "model.config").read_bytes(), str(folder / "model.config"))
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
    return None, "its folder holds no model.config that names a file, and no model.sdf"


def _parse(reading: Reading, path: Path, node: Node) -> Node:
    if str(path) in reading.stack:
        raise fault(f"files include each other in a circle: {path}", node, "includes that end")
    if path not in reading.parsed:
        problem = reading.resources.unreadable(path, 2**28)
        if problem:
            raise fault(f"the included {path.name}: {problem}", node)
        root, findings = parse(path.read_bytes(), str(path))
        if root.tag not in ("sdf", "robot", "gazebo"):
            raise fault(f"the included document is a <{root.tag[:60]}>", root, "<sdf> or <robot>")
        reading.parsed[path] = root, findings
    root, findings = reading.parsed[path]
    reading.add(findings)
    reading.count(node, sum(1 for _ in root.walk()))
    return root


def _content(reading: Reading, root: Node, node: Node) -> Node:
    found = root.all("model", "light", "include", "actor")
    if not found:
        raise fault("the included file has no model", root, f"<model>; it is included at {node.where}")
    for extra in found[1:]:
        reading.note(extra, f"a second <{extra.tag}> in an included file is left out")
    return found[0]


def _overlaid(content: Node, include: Node, name: str) -> Node:
    """The included element with the include's name, pose, static, placement frame and plugins."""
    attributes = dict(content.attributes)
    if name:
        attributes["name"] = name
    placed = text_of(include, "placement_frame")
    if placed:
        attributes["placement_frame"] = placed
    replaced = {tag for tag in ("pose", "static") if include.child(tag) is not None}
    kept = [child for child in content.children if child.tag not in replaced]
    added = [child for child in include.children if child.tag in (*replaced, "plugin")]
    return Node(content.tag, attributes, content.file, content.line, content.text, kept + added)


# -- stand-ins ---------------------------------------------------------------------------------------------------------
def _stand_in(reading: Reading, node: Node, uri: str, name: str, problem: str) -> Included:
    wanted = (fuel_name(uri) or uri.rstrip("/").rpartition("/")[2]).lower().replace(" ", "_")
    if wanted == "ground_plane":
        return Included(name or "ground_plane", _ground(name or "ground_plane"), node, node.child("pose"))
    if wanted == "sun":
        return Included(name or "sun", None, _sun(node, name or "sun"), None)
    reading.note(node, f"include {shown(uri, 200)}: {problem}; a placeholder stands for it")
    called = name or wanted or PLACEHOLDER
    return Included(called, placeholder(called), node, node.child("pose"))


def _ground(name: str) -> Model:
    """Gazebo's "Ground Plane": endless, 100 m of it shown."""
    here, plane = SE3.identity(), Plane(size=(100.0, 100.0))
    link = Link(
        "link",
        here,
        collisions=(Shape("collision", plane, here, Surface(friction=100.0, friction2=50.0)),),
        visuals=(Visual("visual", plane, here, Material("ground", (0.8, 0.8, 0.8, 1.0)), cast_shadows=False),),
    )
    return Model(name, (link,), static=True, canonical_link="link")


def _sun(node: Node, name: str) -> Node:
    """Gazebo's "Sun": light from above, slightly from the front left."""

    def leaf(tag: str, text: str) -> Node:
        return Node(tag, {}, node.file, node.line, text)

    parts = [leaf("pose", "0 0 10 0 0 0"), leaf("direction", "-0.5 0.1 -0.9"), leaf("cast_shadows", "true")]
    parts += [leaf("diffuse", "0.8 0.8 0.8 1"), leaf("specular", "0.2 0.2 0.2 1")]
    return Node("light", {"name": name, "type": "directional"}, node.file, node.line, "", parts)
