"""``<model>``: links, joints, frames and nested models, each with a pose that may refer to any other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from roboyard.description import checks
from roboyard.description.assembly import settle_sensors
from roboyard.description.fields import boolean_of, pose, text_of
from roboyard.description.model import Frame, Joint, Link, Model
from roboyard.description.naming import free_name
from roboyard.description.reading import Reading
from roboyard.description.sdf import merging
from roboyard.description.sdf.bare_links import weightless
from roboyard.description.sdf.includes import Included, Version, read_include
from roboyard.description.sdf.joint import end, read_joint
from roboyard.description.sdf.link import LinkParts, read_link
from roboyard.description.sdf.nesting import Parts
from roboyard.description.sdf.placeholders import PLACEHOLDER, is_placeholder, placeholder
from roboyard.description.sdf.scope import MODEL, Entry, Scope, places
from roboyard.description.sdf.tree import span
from roboyard.description.sensing import read_plugin, read_sensor
from roboyard.description.values import fault
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_KNOWN = {"pose", "static", "link", "joint", "frame", "model", "include", "plugin", "self_collide"}
_UNUSED = {"allow_auto_disable", "enable_wind", "gripper"}


def read_model(reading: Reading, node: Node, version: Version, *, static: bool = False) -> Model:
    """The model at ``node``, in its own frame; whoever places it reads its ``<pose>``.

    Args:
        reading: Takes findings, resolves files.
        node: The ``<model>``.
        version: Of its file.
        static: Whether a model around it is static.

    Raises:
        DescriptionError: anything that makes it inconsistent or physically impossible.
    """
    name = node.get("name").strip()
    if not name:
        raise fault("a model has no name", node, '<model name="…">')
    owner = f"model '{name}'"
    static = boolean_of(node, "static", False) or static
    known = len(reading.faults)
    with reading.inside(owner, node):
        reading.unknown(node, _KNOWN, _UNUSED)
        scope = Scope(owner, MODEL, strict=version >= (1, 7))
        children = list(merging.merged(reading, node, read_model))
        _declare(reading, scope, children, version, static)
        parts = Parts()
        _canonical(scope, node, static)
        _collect_links(reading, scope, parts, static)
        places = _collect_joints(reading, scope, parts, version)
        _collect_frames(reading, scope, parts)
        if reading.faults[known:]:  # what follows of them is none of its own
            raise reading.faults[known]
        _order_joints(reading, scope, parts, places)
        stated = {key: entry.node for key, entry in scope.entries("link")}
        parts.links = weightless(reading, parts.links, parts.joints, stated)
        parts.plugins += [read_plugin(child) for child in children if child.tag == "plugin"]
        collide = boolean_of(node, "self_collide", False)
        return Model(
            name=name,
            links=tuple(replace(link, self_collide=link.self_collide or collide) for link in parts.links),
            joints=tuple(parts.joints),
            sensors=settle_sensors(reading, node, parts.sensors, (*parts.joints, *parts.closures)),
            interfaces=tuple(parts.interfaces),
            plugins=tuple(parts.plugins),
            static=static,
            canonical_link=scope.canonical or None,
            frames=tuple(parts.frames),
            closures=tuple(parts.closures),
        )


def _collect_frames(reading: Reading, scope: Scope, parts: Parts) -> None:
    poses = {link.name: link.T_model_link for link in parts.links}

    def read(key: str, entry: Entry) -> Frame | None:
        link = scope.body(key, entry.node, f"frame '{entry.name}'")
        T_model_frame = scope.pose(key, entry.node, f"frame '{entry.name}'")
        return Frame(entry.name, link, poses[link].inverse() @ T_model_frame) if link in poses else None

    for key, entry in scope.entries("frame"):
        frame = reading.attempt(partial(read, key, entry), None)
        if frame is not None:
            parts.frames.append(frame)


def _declare(reading: Reading, scope: Scope, children: Iterable[Node], version: Version, static: bool) -> None:
    for child in children:
        entry = reading.attempt(partial(_entry, reading, child, version, static), None)
        if entry is not None:
            distinct(reading, scope, entry)
            if not reading.attempt(partial(scope.declare, entry), True):
                reading.note(child, f"the {entry.kind} '{entry.name}' shares its name with another part")


def _entry(reading: Reading, child: Node, version: Version, static: bool) -> Entry | None:
    """What a model's child declares; None for what has no place in it."""
    name = child.get("name").strip()
    where = child.child("pose")
    match child.tag:
        case "link":
            return Entry(name, "link", child, where, MODEL)
        case "joint":
            moved = end(child, "child")
            return Entry(name, "joint", child, where, moved, attached=moved)
        case "frame":
            attached = child.get("attached_to").strip()
            return Entry(name, "frame", child, where, attached or MODEL, attached=attached)
        case "model":
            return nested_entry(reading, child, version, MODEL, static=static)
        case "include":
            found = included(reading, child)
            if found.model is not None:
                return model_entry(found, MODEL)
            reading.note(child, f"the {found.node.tag} '{found.name}' inside a model is left out")
        case merging.PROXY:
            return Entry(name, "frame", child, where, MODEL, attached=child.get("attached_to"))
    return None


def nested_entry(reading: Reading, node: Node, version: Version, default: str, *, static: bool = False) -> Entry:
    """The entry of a ``<model>`` in a model or world; a survey goes on with a placeholder where it is wrong."""
    name = node.get("name").strip()
    model = reading.attempt(partial(read_model, reading, node, version, static=static), placeholder(name))
    return model_entry(Included(name, model, node, node.child("pose"), node.get("placement_frame").strip()), default)


def included(reading: Reading, node: Node) -> Included:
    """What an ``<include>`` brings; a survey goes on with a placeholder where that is wrong."""
    name = text_of(node, "name") or text_of(node, "uri").rstrip("/").rpartition("/")[2]
    stand_in = Included(name, placeholder(name), node, node.child("pose"))
    return reading.attempt(partial(read_include, reading, node, read_model), stand_in)


def distinct(reading: Reading, scope: Scope, entry: Entry) -> None:
    """A model whose name another model has gets a number, if mending is asked for; nothing can refer to it then."""
    if reading.repair and entry.kind == "model" and scope.kind(entry.name) == "model":
        name = free_name(entry.name, {taken: 0 for taken, _ in scope.entries("model")})
        what = f"model '{entry.name}' in {scope.owner} exists twice"
        reading.mend(entry.node, what, "unique names", f"this one becomes '{name}'")
        entry.name = name


def model_entry(found: Included, default: str) -> Entry:
    """The entry of a placed model. Raises DescriptionError for an unknown placement frame."""
    entry = Entry(found.name, "model", found.node, found.pose_node, default, model=found.model)
    if found.placed and found.model is not None and not is_placeholder(found.model):
        place = places(found.model).get(found.placed)
        if place is None:
            raise fault(f"placement_frame '{found.placed}' is not in model '{found.name}'", found.node)
        entry.T_model_placed = place[1]
    return entry


def _canonical(scope: Scope, node: Node, static: bool) -> None:
    """The link that the model's frame moves with: as named, else the first."""
    given = node.get("canonical_link").strip()
    links = [entry.name for _, entry in scope.entries("link")]
    nested = [(entry.name, entry.model) for _, entry in scope.entries("model")]
    if given:
        if not scope.knows(given):
            raise fault(f"canonical_link '{given}' is not in {scope.owner}", node, ", ".join(links[:12]))
        scope.canonical = scope.body(given, node, "canonical_link")
    elif links:
        scope.canonical = links[0]
    else:
        held = (f"{name}::{model.canonical_link}" for name, model in nested if model and model.canonical_link)
        scope.canonical = next(held, "")
    if not (scope.canonical or static or nested):
        raise fault(f"{scope.owner} has no link", node, "at least one <link>")


def _collect_links(reading: Reading, scope: Scope, parts: Parts, static: bool) -> None:
    for key, entry in scope.entries("link"):
        resolve = partial(scope.pose, key, entry.node, f"link '{entry.name}'")
        T_model_link = reading.attempt(resolve, SE3.identity())

        def place(part: Node, what: str, link: str = key, T_link_model: SE3 = T_model_link.inverse()) -> SE3:
            given = part.child("pose")
            if given is None or not (given.get("relative_to") or given.get("frame")):
                return pose(given)  # most parts; composing would only cost digits
            return T_link_model @ scope.relative(given, link, part, what)

        bare = LinkParts(Link(entry.name, T_model_link), (), ())
        found = reading.attempt(partial(read_link, reading, entry.node, T_model_link, place, static=static), bare)
        parts.links.append(found.link)
        parts.sensors += found.sensors
        parts.plugins += found.plugins
    for key, entry in scope.entries("model"):
        if entry.model is None:
            continue
        parts.nest(entry.name, entry.model, scope.pose(key, entry.node, f"model '{entry.name}'"))
        if not entry.model.static or static:
            continue
        stand_in = f"{entry.name}::{PLACEHOLDER}"
        if is_placeholder(entry.model) and stand_in != scope.canonical:
            _ride(parts, stand_in, scope.canonical)
        else:
            parts.weld([f"{entry.name}::{link.name}" for link in entry.model.links])


def _ride(parts: Parts, link: str, carrier: str) -> None:
    """Fix a placeholder, which has no mass, to the model around it."""
    poses = {one.name: one.T_model_link for one in parts.links}
    T_parent_child = poses[carrier].inverse() @ poses[link]
    parts.joints.append(Joint(f"{link}_stands_in", "fixed", carrier, link, T_parent_child, SE3.identity()))


def _collect_joints(reading: Reading, scope: Scope, parts: Parts, version: Version) -> dict[str, Node]:
    """Read the model's own joints, and say where each stands."""
    poses = {link.name: link.T_model_link for link in parts.links}
    missing = {entry.name for _, entry in scope.entries("model") if entry.model and is_placeholder(entry.model)}
    places: dict[str, Node] = {}
    for key, entry in scope.entries("joint"):
        joint = reading.attempt(partial(read_joint, reading, entry.node, scope, key, poses, version), None)
        if joint is None:
            continue
        if any(end(entry.node, role).partition("::")[0] in missing for role in ("parent", "child")):
            reading.note(entry.node, f"joint '{entry.name}' leads to a model that is not there: left out")
            continue
        if joint.parent == joint.child:
            what = f"joint '{joint.name}' joins link '{joint.child}' to itself"
            reading.mend(entry.node, what, "two different links", "left out")
            continue
        parts.joints.append(joint)
        places[joint.name] = entry.node
        for one in entry.node.all("sensor"):
            T_link_sensor = joint.T_child_joint @ pose(one.child("pose"))
            parts.sensors.append(read_sensor(reading, one, joint.child, T_link_sensor, joint.name))
    return places


def _order_joints(reading: Reading, scope: Scope, parts: Parts, places: dict[str, Node]) -> None:
    """Check the joints with those of nested models, and order all into a forest."""
    poses = {link.name: link.T_model_link for link in parts.links}
    nested = [(f"{entry.name}::", entry.node) for _, entry in scope.entries("model")]

    def place(name: str) -> Node:
        return places.get(name) or next(node for start, node in nested if name.startswith(start))

    known = [(joint, place(joint.name)) for joint in parts.joints]
    checks.unique("joint", ((joint.name, node) for joint, node in known), scope.owner)
    joints, closures = span(reading, poses, checks.mimics(reading, known))
    parts.joints, parts.closures = list(joints), [*parts.closures, *closures]
