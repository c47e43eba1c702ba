"""Reads `<robot>`: links, joints, `<gazebo>` and `<ros2_control>` blocks.

SDF joints in `<gazebo>` blocks (screws, loop joints) are read too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from roboyard.description import validation
from roboyard.description.inertia import replace_missing_collision_meshes
from roboyard.description.massless_links import check_massless_frames, repair_movable_massless_links
from roboyard.description.model import Joint, JointInterface, Link, Material, Model, Plugin, World
from roboyard.description.names import resolve_sensor_names
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sdf.joint import read_joint as read_sdf_joint
from roboyard.description.sdf.joint import read_joint_link
from roboyard.description.sdf.scope import MODEL, ScopeEntry, SdfScope
from roboyard.description.urdf.gazebo import apply_gazebo_blocks
from roboyard.description.urdf.joint import read_joint
from roboyard.description.urdf.link import read_link, read_materials
from roboyard.description.urdf.ros2_control import read_driver_encoders, read_joint_interfaces
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3


def read_extra_joints(
    context: ReaderContext, robot: str, blocks: Sequence[XmlNode], poses: Mapping[str, SE3], joints: Mapping[str, Joint]
) -> tuple[Joint, ...]:
    """Read the joints that ``<gazebo>`` blocks add; each closes a loop, because the tree contains every link already.

    Args:
        context: Receives warnings; a joint to an unknown link or with a used name is ignored with a warning.
        robot: Name of the robot.
        blocks: The ``<gazebo>`` elements.
        poses: T_model_link of each link.
        joints: Joints of the tree.
    """
    nodes = [
        node for block in blocks if not block.get("reference").strip() for node in block.children_with_tag("joint")
    ]
    if not nodes:
        return ()
    scope = SdfScope(f"robot '{robot}'", MODEL, requires_unique_names=False)
    for link, T_model_link in poses.items():
        w, x, y, z = T_model_link.quaternion
        text = " ".join(repr(float(value)) for value in (*T_model_link.xyz, x, y, z, w))
        pose_node = XmlNode("pose", {"rotation_format": "quat_xyzw"}, nodes[0].file, nodes[0].line, text)
        if link != "world":
            scope.declare(ScopeEntry(link, "link", nodes[0], pose_node, MODEL))
    scope.canonical_link = next(iter(poses))
    loop_joints: dict[str, Joint] = {}
    for node in nodes:
        name = node.get("name").strip()
        try:
            if name in joints or name in loop_joints:
                context.warn(node, f"<gazebo> adds a joint '{name}', but the name is already used: ignored")
                continue
            child = read_joint_link(node, "child")
            scope.declare(ScopeEntry(name, "joint", node, node.child("pose"), child, attached_to=child))
            loop_joints[name] = read_sdf_joint(context, node, scope, name, dict(poses), (1, 7))
        except DescriptionError as error:
            context.warn(node, f"<gazebo> adds an invalid joint: {error.message}: ignored")
    for joint in loop_joints.values():
        context.warn(nodes[0], f"joint '{joint.name}' closes a loop: a constraint, not part of the tree")
    return tuple(loop_joints.values())


_ROBOT_TAGS = {"link", "joint", "material", "gazebo", "transmission", "ros2_control"}


def read_model_document(context: ReaderContext, root: XmlNode, name: str | None = None) -> Model:
    """Read the model of a URDF document.

    Args:
        context: Receives warnings, resolves files.
        root: The ``<robot>`` element, after xacro expansion.
        name: Name that replaces the robot's name.

    Raises:
        DescriptionError: The robot is inconsistent or physically impossible: see `validation`.
    """
    context.warn_unknown_children(root, _ROBOT_TAGS, {"sensor", "property"})
    nodes = _read_named_elements(context, "link", root)
    if not nodes:
        raise error_at("the robot has no link", root, "at least one <link>")
    robot_name = name or root.get("name").strip()
    if not robot_name:
        raise error_at("the robot has no name", root, '<robot name="…">')
    drafts = _read_joints(context, root, nodes)
    ordered_joints = _check_tree(context, root, robot_name, nodes, drafts)
    joints = {joint.name: joint for joint, _ in drafts}
    links = _read_links(context, root, nodes)
    blocks = apply_gazebo_blocks(context, root.children_with_tag("gazebo"), links, joints)
    no_interfaces: tuple[tuple[JointInterface, ...], tuple[Plugin, ...]] = ((), ())
    interfaces, control_plugins = context.try_read(lambda: read_joint_interfaces(context, root, joints), no_interfaces)
    context.raise_collected_error()
    sensors = [*blocks.sensors, *read_driver_encoders(root, joints, blocks.sensors)]

    check_massless_frames(context, nodes, links, joints)
    repair_movable_massless_links(context, nodes, links, joints)
    canonical_link = next(iter(_root_links(nodes, ordered_joints)))
    poses = {canonical_link: SE3.identity()}
    for joint in ordered_joints:
        poses[joint.child] = poses[joint.parent] @ joint.T_parent_child
    loop_joints = read_extra_joints(context, robot_name, root.children_with_tag("gazebo"), poses, joints)
    links = {link: replace(record, T_model_link=poses[link]) for link, record in links.items()}
    if canonical_link == "world" and len(links) > 1:
        _remove_world_link(context, nodes["world"], links)
        canonical_link = ordered_joints[0].child
    return Model(
        name=robot_name,
        links=tuple(links.values()),
        joints=tuple(joints.values()),
        sensors=resolve_sensor_names(context, root, sensors, joints.values()),
        interfaces=interfaces,
        plugins=(*control_plugins, *blocks.plugins),
        static=blocks.static,
        canonical_link=canonical_link,
        loop_joints=loop_joints,
    )


def read_world_document(context: ReaderContext, root: XmlNode) -> World:
    """Reject the document: URDF does not describe worlds. Raises DescriptionError."""
    raise error_at("the file describes a robot, not a world", root, "load it as a model")


def _read_joints(context: ReaderContext, root: XmlNode, links: dict[str, XmlNode]) -> list[tuple[Joint, XmlNode]]:
    """Return joints between known links with valid mimics, and their elements."""
    maybe_joints = [(context.try_read(partial(read_joint, context, node), None), node)
            for node in _read_named_elements(context, "joint", root).values()]  # fmt: skip
    drafts = [(joint, node) for joint, node in maybe_joints if joint is not None]
    return context.try_read(
        lambda: validation.check_mimics(context, validation.drop_joints_of_unknown_links(context, links, drafts)), []
    )


def _check_tree(
    context: ReaderContext,
    root: XmlNode,
    name: str,
    links: dict[str, XmlNode],
    drafts: Sequence[tuple[Joint, XmlNode]],
) -> list[Joint]:
    """Return the joints from the root to the leaves; empty after an earlier error, from which others would follow.

    Raises:
        DescriptionError: Links and joints do not form a tree.
    """
    if context.errors:
        return []
    ordered_joints = validation.order_joints(drafts, links)
    context.try_read(lambda: _require_one_root(name, root, links, ordered_joints), None)
    return ordered_joints


def _read_links(context: ReaderContext, root: XmlNode, nodes: dict[str, XmlNode]) -> dict[str, Link]:
    materials = read_materials(context, root)
    links = {}
    for name, node in nodes.items():
        link = context.try_read(partial(_read_complete_link, context, node, materials), None)
        if link is not None:
            links[name] = link
    return links


def _read_named_elements(context: ReaderContext, kind: str, root: XmlNode) -> dict[str, XmlNode]:
    """Return links or joints by name; when errors are collected, the first of each name."""
    named = [(one.get("name").strip(), one) for one in root.children_with_tag(kind)]
    first_by_name = {name: one for name, one in reversed(named) if name}
    return context.try_read(lambda: validation.require_unique_names(kind, named), dict(reversed(first_by_name.items())))


def _read_complete_link(context: ReaderContext, node: XmlNode, materials: dict[str, Material]) -> Link:
    return replace_missing_collision_meshes(context, node, read_link(context, node, materials))


def _root_links(nodes: dict[str, XmlNode], ordered_joints: list[Joint]) -> list[str]:
    children = {joint.child for joint in ordered_joints}
    return [link for link in nodes if link not in children]


def _require_one_root(name: str, root: XmlNode, nodes: dict[str, XmlNode], ordered_joints: list[Joint]) -> None:
    roots = _root_links(nodes, ordered_joints)
    if "world" not in nodes and any(joint.parent == "world" for joint in ordered_joints):
        joint = next(joint for joint in ordered_joints if joint.parent == "world")
        raise error_at(f"joint '{joint.name}' has the unknown parent link 'world'", root, '<link name="world"/>')
    if len(roots) > 1:
        root_labels = ", ".join(f"'{link}' (line {nodes[link].line})" for link in roots[:8])
        raise error_at(
            f"robot '{name}' has {len(roots)} root links: {root_labels}", root, "one root; connect the others to it"
        )


def _remove_world_link(context: ReaderContext, node: XmlNode, links: dict[str, Link]) -> None:
    """Treat a root link named "world" as the world itself, as in Gazebo: its joints connect to the world."""
    if links["world"].collisions or links["world"].visuals or links["world"].inertial:
        context.warn(node, "the link 'world' is the world itself: its content is ignored")
    del links["world"]
