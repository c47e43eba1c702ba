"""Reads `<model>` of SDF: links, joints, frames and nested models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from roboyard.description import validation
from roboyard.description.massless_links import drop_default_inertia
from roboyard.description.model import Frame, Joint, JointInterface, Link, Mimic, Model, Plugin
from roboyard.description.names import make_unique_name, rename_friction_frame, resolve_sensor_names, to_topic_name
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sdf import includes
from roboyard.description.sdf.includes import IncludedEntity, SdfVersion, read_include
from roboyard.description.sdf.joint import read_joint, read_joint_link
from roboyard.description.sdf.joint_graph import build_spanning_forest
from roboyard.description.sdf.link import LinkElements, read_link
from roboyard.description.sdf.scope import (
    MODEL,
    PLACEHOLDER,
    WORLD,
    ScopeEntry,
    SdfScope,
    is_placeholder,
    make_placeholder,
    named_poses,
)
from roboyard.description.sensor_reader import read_plugin, read_sensor
from roboyard.description.sensors import ContactSpec, EncoderSpec, ForceTorqueSpec, Sensor
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import child_boolean, child_text, error_at, read_pose
from roboyard.geometry import SE3


@dataclass(slots=True)
class ModelBuilder:
    """Parts of a model while it is read."""

    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    sensors: list[Sensor] = field(default_factory=list)
    plugins: list[Plugin] = field(default_factory=list)
    interfaces: list[JointInterface] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    loop_joints: list[Joint] = field(default_factory=list)

    def add_nested_model(self, name: str, model: Model, T_model_nested: SE3) -> None:
        """Add all parts of `model` with the scope `name`."""

        def add_scope(inner: str) -> str:
            return inner if inner == WORLD else f"{name}::{inner}"

        for link in model.links:
            collisions = tuple(rename_friction_frame(one, add_scope) for one in link.collisions)
            T_model_link = T_model_nested @ link.T_model_link
            self.links.append(
                replace(link, name=add_scope(link.name), T_model_link=T_model_link, collisions=collisions)
            )
        for joint in model.joints:
            self.joints.append(_scope_joint(joint, add_scope, T_model_nested))
        for joint in model.loop_joints:
            self.loop_joints.append(_scope_joint(joint, add_scope, T_model_nested))
        link_names = {link.name for link in model.links}
        moving_joints = tuple(joint.name for joint in model.joints if joint.axes)
        self.sensors += [
            _scope_sensor(sensor, name, sensor.frame in link_names, moving_joints) for sensor in model.sensors
        ]
        self.plugins += [
            replace(plugin, link=add_scope(plugin.link)) if plugin.link else plugin for plugin in model.plugins
        ]
        self.interfaces += [replace(one, joint=add_scope(one.joint)) for one in model.interfaces]
        self.frames += [replace(one, name=add_scope(one.name), link=add_scope(one.link)) for one in model.frames]
        canonical_link = next((link for link in model.links if link.name == model.canonical_link), None)
        if canonical_link is not None:
            self.frames.append(
                Frame(add_scope(MODEL), add_scope(canonical_link.name), canonical_link.T_model_link.inverse())
            )

    def fix_to_world(self, links: list[str]) -> None:
        """Fix those of `links` that no joint moves to the world: a static model inside a moving one."""
        child_links = {joint.child for joint in self.joints}
        for link in self.links:
            if link.name in links and link.name not in child_links:
                self.joints.append(
                    Joint(f"{link.name}_static", "fixed", WORLD, link.name, link.T_model_link, SE3.identity())
                )


def _scope_joint(joint: Joint, add_scope: Callable[[str], str], T_model_nested: SE3) -> Joint:
    mimic = joint.mimic and Mimic(add_scope(joint.mimic.joint), joint.mimic.multiplier, joint.mimic.offset)
    T_parent_child = joint.T_parent_child
    return replace(
        joint,
        name=add_scope(joint.name),
        parent=add_scope(joint.parent),
        child=add_scope(joint.child),
        T_parent_child=T_model_nested @ T_parent_child if joint.parent == WORLD else T_parent_child,
        mimic=mimic,
        gear_reference=joint.gear_reference and add_scope(joint.gear_reference),
    )


def _scope_sensor(sensor: Sensor, name: str, on_link: bool, moving_joints: tuple[str, ...]) -> Sensor:
    """Add the scope to names that the sensor itself defines; topics and frames from the file are kept.

    `moving_joints` are the joints of the sensor's model: an encoder of all joints remains one of these joints.
    """
    scoped_name = f"{name}::{sensor.name}"
    spec = sensor.spec
    if isinstance(spec, ContactSpec):
        spec = ContactSpec(tuple(one.removeprefix(f"{name}::") for one in spec.collisions))
    elif isinstance(spec, ForceTorqueSpec) and spec.joint:
        spec = replace(spec, joint=f"{name}::{spec.joint}")
    elif isinstance(spec, EncoderSpec):
        spec = replace(spec, joints=tuple(f"{name}::{one}" for one in spec.joints or moving_joints))
    return replace(
        sensor,
        name=scoped_name,
        link=f"{name}::{sensor.link}",
        topic=f"{name}/{sensor.topic}" if sensor.topic == to_topic_name(sensor.name) else sensor.topic,
        frame=f"{name}::{sensor.frame}" if on_link else (scoped_name if sensor.frame == sensor.name else sensor.frame),
        spec=spec,
    )


_MODEL_TAGS = {"pose", "static", "link", "joint", "frame", "model", "include", "plugin", "self_collide"}
_UNUSED_MODEL_TAGS = {"allow_auto_disable", "enable_wind", "gripper"}


def read_model(context: ReaderContext, node: XmlNode, version: SdfVersion, *, static: bool = False) -> Model:
    """Read a ``<model>`` in its own frame; the caller applies its ``<pose>``.

    Args:
        context: Receives warnings, resolves files.
        node: The ``<model>``.
        version: SDF version of its file.
        static: Whether the surrounding model is static.

    Raises:
        DescriptionError: The model is inconsistent or physically impossible.
    """
    name = node.get("name").strip()
    if not name:
        raise error_at("a model has no name", node, '<model name="…">')
    owner = f"model '{name}'"
    static = child_boolean(node, "static", False) or static
    n_errors_before = len(context.errors)
    with context.nested(owner, node):
        context.warn_unknown_children(node, _MODEL_TAGS, _UNUSED_MODEL_TAGS)
        scope = SdfScope(owner, MODEL, requires_unique_names=version >= (1, 7))
        children = list(includes.expand_merge_includes(context, node, read_model))
        _declare_children(context, scope, children, version, static)
        builder = ModelBuilder()
        _set_canonical_link(scope, node, static)
        _read_links(context, scope, builder, static)
        joint_nodes = _read_joints(context, scope, builder, version)
        _read_frames(context, scope, builder)
        context.raise_collected_error(n_errors_before)
        _order_joints(context, scope, builder, joint_nodes)
        link_nodes = {key: entry.node for key, entry in scope.entries("link")}
        builder.links = drop_default_inertia(context, builder.links, builder.joints, link_nodes)
        builder.plugins += [read_plugin(child) for child in children if child.tag == "plugin"]
        self_collide = child_boolean(node, "self_collide", False)
        return Model(
            name=name,
            links=tuple(replace(link, self_collide=link.self_collide or self_collide) for link in builder.links),
            joints=tuple(builder.joints),
            sensors=resolve_sensor_names(context, node, builder.sensors, (*builder.joints, *builder.loop_joints)),
            interfaces=tuple(builder.interfaces),
            plugins=tuple(builder.plugins),
            static=static,
            canonical_link=scope.canonical_link or None,
            frames=tuple(builder.frames),
            loop_joints=tuple(builder.loop_joints),
        )


def _read_frames(context: ReaderContext, scope: SdfScope, builder: ModelBuilder) -> None:
    poses = {link.name: link.T_model_link for link in builder.links}

    def read_frame(key: str, entry: ScopeEntry) -> Frame | None:
        link = scope.link_of(key, entry.node, f"frame '{entry.name}'")
        T_model_frame = scope.pose(key, entry.node, f"frame '{entry.name}'")
        return Frame(entry.name, link, poses[link].inverse() @ T_model_frame) if link in poses else None

    for key, entry in scope.entries("frame"):
        frame = context.try_read(partial(read_frame, key, entry), None)
        if frame is not None:
            builder.frames.append(frame)


def _declare_children(
    context: ReaderContext, scope: SdfScope, children: Iterable[XmlNode], version: SdfVersion, static: bool
) -> None:
    for child in children:
        entry = context.try_read(partial(_read_entry, context, child, version, static), None)
        if entry is not None:
            make_name_unique(context, scope, entry)
            if not context.try_read(partial(scope.declare, entry), True):
                context.warn(child, f"the {entry.kind} '{entry.name}' has the same name as another part")


def _read_entry(context: ReaderContext, child: XmlNode, version: SdfVersion, static: bool) -> ScopeEntry | None:
    """Read the entry that a child of the model defines; None for elements without an entry."""
    name = child.get("name").strip()
    pose_node = child.child("pose")
    match child.tag:
        case "link":
            return ScopeEntry(name, "link", child, pose_node, MODEL)
        case "joint":
            child_name = read_joint_link(child, "child")
            return ScopeEntry(name, "joint", child, pose_node, child_name, attached_to=child_name)
        case "frame":
            attached_to = child.get("attached_to").strip()
            return ScopeEntry(name, "frame", child, pose_node, attached_to or MODEL, attached_to=attached_to)
        case "model":
            return read_nested_entry(context, child, version, MODEL, static=static)
        case "include":
            entity = read_included_entity(context, child)
            if entity.model is not None:
                return make_model_entry(entity, MODEL)
            context.warn(child, f"the {entity.node.tag} '{entity.name}' inside a model is ignored")
        case includes.PROXY:
            return ScopeEntry(name, "frame", child, pose_node, MODEL, attached_to=child.get("attached_to"))
    return None


def read_nested_entry(
    context: ReaderContext, node: XmlNode, version: SdfVersion, default_frame: str, *, static: bool = False
) -> ScopeEntry:
    """Read the entry of a ``<model>`` in a model or world; when errors are collected, an invalid one becomes a
    placeholder.
    """
    name = node.get("name").strip()
    model = context.try_read(partial(read_model, context, node, version, static=static), make_placeholder(name))
    return make_model_entry(
        IncludedEntity(name, model, node, node.child("pose"), node.get("placement_frame").strip()), default_frame
    )


def read_included_entity(context: ReaderContext, node: XmlNode) -> IncludedEntity:
    """Read an ``<include>``; when errors are collected, an invalid one becomes a placeholder."""
    name = child_text(node, "name") or child_text(node, "uri").rstrip("/").rpartition("/")[2]
    fallback = IncludedEntity(name, make_placeholder(name), node, node.child("pose"))
    return context.try_read(partial(read_include, context, node, read_model), fallback)


def make_name_unique(context: ReaderContext, scope: SdfScope, entry: ScopeEntry) -> None:
    """Number a model with a duplicate name, if repair is requested; references to it are ambiguous and therefore not
    possible.
    """
    if context.repair and entry.kind == "model" and scope.kind(entry.name) == "model":
        name = make_unique_name(entry.name, {other_name: 0 for other_name, _ in scope.entries("model")})
        problem = f"model '{entry.name}' in {scope.owner} exists twice"
        context.repair_or_raise(entry.node, problem, "unique names", f"this one becomes '{name}'")
        entry.name = name


def make_model_entry(entity: IncludedEntity, default_frame: str) -> ScopeEntry:
    """Make the entry of a placed model. Raises DescriptionError for an unknown placement frame."""
    entry = ScopeEntry(entity.name, "model", entity.node, entity.pose_node, default_frame, model=entity.model)
    if entity.placement_frame and entity.model is not None and not is_placeholder(entity.model):
        placement = named_poses(entity.model).get(entity.placement_frame)
        if placement is None:
            raise error_at(f"model '{entity.name}' has no placement_frame '{entity.placement_frame}'", entity.node)
        entry.T_model_placement = placement[1]
    return entry


def _set_canonical_link(scope: SdfScope, node: XmlNode, static: bool) -> None:
    """Set the link that the model's frame moves with: the named one, else the first."""
    link_name = node.get("canonical_link").strip()
    links = [entry.name for _, entry in scope.entries("link")]
    nested = [(entry.name, entry.model) for _, entry in scope.entries("model")]
    if link_name:
        if not scope.resolves(link_name):
            raise error_at(f"{scope.owner} has no canonical_link '{link_name}'", node, ", ".join(links[:12]))
        scope.canonical_link = scope.link_of(link_name, node, "canonical_link")
    elif links:
        scope.canonical_link = links[0]
    else:
        nested_canonical_links = (
            f"{name}::{model.canonical_link}" for name, model in nested if model and model.canonical_link
        )
        scope.canonical_link = next(nested_canonical_links, "")
    if not (scope.canonical_link or static or nested):
        raise error_at(f"{scope.owner} has no link", node, "at least one <link>")


def _read_links(context: ReaderContext, scope: SdfScope, builder: ModelBuilder, static: bool) -> None:
    for key, entry in scope.entries("link"):
        resolve = partial(scope.pose, key, entry.node, f"link '{entry.name}'")
        T_model_link = context.try_read(resolve, SE3.identity())

        def resolve_pose(
            element: XmlNode, description: str, link: str = key, T_link_model: SE3 = T_model_link.inverse()
        ) -> SE3:
            pose_node = element.child("pose")
            if pose_node is None or not (pose_node.get("relative_to") or pose_node.get("frame")):
                return read_pose(pose_node)  # most parts; composing would only cost digits
            return T_link_model @ scope.resolve_pose(pose_node, link, element, description)

        empty_link = LinkElements(Link(entry.name, T_model_link), (), ())
        elements = context.try_read(
            partial(read_link, context, entry.node, T_model_link, resolve_pose, static=static), empty_link
        )
        builder.links.append(elements.link)
        builder.sensors += elements.sensors
        builder.plugins += elements.plugins
    for key, entry in scope.entries("model"):
        if entry.model is None:
            continue
        builder.add_nested_model(entry.name, entry.model, scope.pose(key, entry.node, f"model '{entry.name}'"))
        if not entry.model.static or static:
            continue
        placeholder_link = f"{entry.name}::{PLACEHOLDER}"
        if is_placeholder(entry.model) and placeholder_link != scope.canonical_link:
            _fix_to_carrier(builder, placeholder_link, scope.canonical_link)
        else:
            builder.fix_to_world([f"{entry.name}::{link.name}" for link in entry.model.links])


def _fix_to_carrier(builder: ModelBuilder, link: str, carrier: str) -> None:
    """Fix a placeholder, which has no mass, to the surrounding model."""
    poses = {one.name: one.T_model_link for one in builder.links}
    T_parent_child = poses[carrier].inverse() @ poses[link]
    builder.joints.append(Joint(f"{link}_stands_in", "fixed", carrier, link, T_parent_child, SE3.identity()))


def _read_joints(
    context: ReaderContext, scope: SdfScope, builder: ModelBuilder, version: SdfVersion
) -> dict[str, XmlNode]:
    """Read the model's own joints; return their nodes by name."""
    poses = {link.name: link.T_model_link for link in builder.links}
    placeholder_models = {
        entry.name for _, entry in scope.entries("model") if entry.model and is_placeholder(entry.model)
    }
    joint_nodes: dict[str, XmlNode] = {}
    for key, entry in scope.entries("joint"):
        joint = context.try_read(partial(read_joint, context, entry.node, scope, key, poses, version), None)
        if joint is None:
            continue
        if any(
            read_joint_link(entry.node, role).partition("::")[0] in placeholder_models for role in ("parent", "child")
        ):
            context.warn(entry.node, f"joint '{entry.name}' refers to a missing model: ignored")
            continue
        if joint.parent == joint.child:
            problem = f"joint '{joint.name}' connects link '{joint.child}' to itself"
            context.repair_or_raise(entry.node, problem, "two different links", "the joint is removed")
            continue
        builder.joints.append(joint)
        joint_nodes[joint.name] = entry.node
        for one in entry.node.children_with_tag("sensor"):
            T_link_sensor = joint.T_child_joint @ read_pose(one.child("pose"))
            builder.sensors.append(read_sensor(context, one, joint.child, T_link_sensor, joint.name))
    return joint_nodes


def _order_joints(
    context: ReaderContext, scope: SdfScope, builder: ModelBuilder, joint_nodes: dict[str, XmlNode]
) -> None:
    """Check the joints including those of nested models, and order all into a forest."""
    poses = {link.name: link.T_model_link for link in builder.links}
    nested_prefixes = [(f"{entry.name}::", entry.node) for _, entry in scope.entries("model")]

    def find_node(name: str) -> XmlNode:
        return joint_nodes.get(name) or next(node for prefix, node in nested_prefixes if name.startswith(prefix))

    joints_with_nodes = [(joint, find_node(joint.name)) for joint in builder.joints]
    validation.require_unique_names("joint", ((joint.name, node) for joint, node in joints_with_nodes), scope.owner)
    joints, loop_joints = build_spanning_forest(context, poses, validation.check_mimics(context, joints_with_nodes))
    builder.joints, builder.loop_joints = list(joints), [*builder.loop_joints, *loop_joints]
