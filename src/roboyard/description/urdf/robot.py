"""Reads `<robot>`: its links and joints as a tree, `<gazebo>` and `<ros2_control>` blocks, and SDF joints in `<gazebo>`
blocks (screws, loops).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

from roboyard.description import validation
from roboyard.description.gazebo_materials import gazebo_material
from roboyard.description.inertia import (
    check_inertia_plausibility,
    check_inertial,
    estimate_inertia,
    replace_missing_collision_meshes,
)
from roboyard.description.massless_links import check_massless_frames, repair_movable_massless_links
from roboyard.description.model import (
    MOMENT_NAMES,
    Axis,
    AxisLimits,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Geometry,
    Inertial,
    Joint,
    JointDynamics,
    JointInterface,
    JointType,
    Link,
    Material,
    Mesh,
    Mimic,
    Model,
    Plugin,
    SafetyController,
    Sphere,
    Visual,
    World,
)
from roboyard.description.names import make_unique_name, resolve_sensor_names
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sdf.joint import read_joint as read_sdf_joint
from roboyard.description.sdf.joint import read_joint_link
from roboyard.description.sdf.scope import MODEL, ScopeEntry, SdfScope
from roboyard.description.urdf.gazebo import apply_gazebo_blocks
from roboyard.description.urdf.ros2_control import read_driver_encoders, read_joint_interfaces
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import (
    error_at,
    parse_color,
    parse_number,
    parse_position,
    parse_positive,
    parse_positives,
    parse_vector,
    quote,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3


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


_JOINT_TYPES: dict[str, JointType] = {
    kind: kind
    for kind in get_args(JointType)
    if kind in ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
}
_JOINT_TAGS = {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller"}


def read_joint(context: ReaderContext, node: XmlNode) -> Joint:
    """Read a ``<joint>``; the existence of its links is checked later.

    Raises:
        DescriptionError: The type is unknown, a link is missing, the axis is zero, the lower limit exceeds the upper
            one, or a value is not a number.
    """
    name = node.get("name")
    context.warn_unknown_children(node, _JOINT_TAGS, {"hardwareInterface", "calibration"})
    type_name = node.get("type").strip()
    if type_name not in _JOINT_TYPES:
        raise error_at(f"joint '{name}' has the unknown type {quote(type_name)}", node, ", ".join(_JOINT_TYPES))
    kind = _JOINT_TYPES[type_name]
    link_nodes = [node.child(role) for role in ("parent", "child")]
    for role, link_node in zip(("parent", "child"), link_nodes, strict=True):
        if link_node is None or not link_node.get("link").strip():
            raise error_at(f"joint '{name}' has no {role} link", link_node or node, f'<{role} link="…"/>')
    parent, child = (link_node.get("link").strip() for link_node in link_nodes if link_node is not None)
    return Joint(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        T_parent_child=read_origin(node, f"joint '{name}'"),
        T_child_joint=SE3.identity(),
        axes=_read_axes(context, node, name, kind),
        mimic=_read_mimic(node, name),
        safety=_read_safety_controller(context, node, name, kind),
    )


def _read_axes(context: ReaderContext, node: XmlNode, name: str, kind: JointType) -> tuple[Axis, ...]:
    axis_node = node.child("axis")
    if kind in ("fixed", "floating"):
        return ()
    xyz = (1.0, 0.0, 0.0)
    if axis_node is not None:
        xyz = validation.check_axis(context, axis_node.get("xyz") or "1 0 0", axis_node, name, xyz)
    return (Axis(xyz, _read_limits(context, node, name, kind), _read_dynamics(node, name)),)


def _read_limits(context: ReaderContext, node: XmlNode, name: str, kind: JointType) -> AxisLimits:
    limit_node = node.child("limit")
    if limit_node is None:
        if kind in ("revolute", "prismatic"):
            context.warn(node, f"joint '{name}' is {kind} and has no <limit>: unlimited")
        return AxisLimits()
    label = f"of joint '{name}'"

    def read_value(key: str, default: float) -> float:
        text = limit_node.get(key)
        return parse_number(text, limit_node, f"{key} {label}", allow_infinite=True) if text.strip() else default

    lower, upper = -math.inf, math.inf
    if kind in ("revolute", "prismatic"):
        lower, upper = read_value("lower", 0.0), read_value("upper", 0.0)
        if lower == upper == 0.0:
            context.warn(limit_node, f"joint '{name}' is limited to 0 … 0: it cannot move")
    return validation.check_limits(
        context, limit_node, name, lower, upper, read_value("velocity", math.inf), read_value("effort", math.inf)
    )


def _read_dynamics(node: XmlNode, name: str) -> JointDynamics:
    dynamics_node = node.child("dynamics")
    if dynamics_node is None:
        return JointDynamics()
    damping, friction, armature = (
        parse_number(dynamics_node.get(key) or "0", dynamics_node, f"{key} of joint '{name}'")
        for key in ("damping", "friction", "armature")
    )
    if damping < 0.0 or friction < 0.0 or armature < 0.0:
        problem = f"joint '{name}' has damping {damping:g}, friction {friction:g} and armature {armature:g}"
        raise error_at(problem, dynamics_node, "0 or more")
    return JointDynamics(damping=damping, friction=friction, armature=armature)


def _read_mimic(node: XmlNode, name: str) -> Mimic | None:
    mimic_node = node.child("mimic")
    if mimic_node is None:
        return None
    multiplier, offset = (
        parse_number(mimic_node.get(key) or default, mimic_node, f"mimic {key} of joint '{name}'")
        for key, default in (("multiplier", "1"), ("offset", "0"))
    )
    return Mimic(mimic_node.get("joint").strip(), multiplier, offset)


def _read_safety_controller(
    context: ReaderContext, node: XmlNode, name: str, kind: JointType
) -> SafetyController | None:
    safety_node = node.child("safety_controller")
    if safety_node is None:
        return None
    lower, upper, k_position, k_velocity = (
        parse_number(safety_node.get(key) or "0", safety_node, f"{key} of joint '{name}'", allow_infinite=True)
        for key in ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")
    )
    if lower > upper:
        raise error_at(f"joint '{name}' has soft_lower_limit {lower:g} above soft_upper_limit {upper:g}", safety_node)
    for gain_name, gain in (("k_position", k_position), ("k_velocity", k_velocity)):
        if gain < 0.0:
            raise error_at(f"joint '{name}' has {gain_name} {gain:g}", safety_node, "0 or more")
    if kind in ("revolute", "prismatic") and (lower == upper) != (k_position == 0.0):
        reason = "k_position is 0" if k_position == 0.0 else f"they are both {lower:g}"
        context.warn(safety_node, f"the soft limits of joint '{name}' have no effect: {reason}")
    return SafetyController(lower, upper, k_position, k_velocity)


_LINK_TAGS = {"inertial", "visual", "collision"}
_SHAPE_TAGS = ("box", "cylinder", "sphere", "capsule", "mesh")


def read_origin(node: XmlNode, label: str) -> SE3:
    """Read the ``<origin xyz rpy>`` child; identity if it is missing. Raises DescriptionError."""
    child = node.child("origin")
    if child is None:
        return SE3.identity()
    xyz = parse_position(child.get("xyz") or "0 0 0", child, f"{label}: xyz")
    rpy = parse_vector(child.get("rpy") or "0 0 0", child, f"{label}: rpy")
    return SE3.from_xyz_rpy(xyz, rpy)


def read_materials(context: ReaderContext, root: XmlNode) -> dict[str, Material]:
    """Read the materials defined at the top level and inside visuals, by name. Raises DescriptionError."""
    defined: dict[str, Material] = {}
    visual_materials = (
        one
        for link in root.children_with_tag("link")
        for visual in link.children_with_tag("visual")
        for one in visual.children_with_tag("material")
    )
    for node in (*root.children_with_tag("material"), *visual_materials):
        if node.children and node.get("name") not in defined:
            defined[node.get("name")] = _read_material(context, node)
    return defined


def _read_material(context: ReaderContext, node: XmlNode) -> Material:
    name = node.get("name")
    context.warn_unknown_children(node, {"color", "texture"})
    color_node, texture_node = node.child("color"), node.child("texture")
    rgba = (
        parse_color(color_node.get("rgba"), color_node, f"color of material '{name}'")
        if color_node
        else Material().rgba
    )
    texture = context.find_file(texture_node.get("filename"), texture_node, "texture") if texture_node else None
    return Material(name, rgba, texture)


def read_link(context: ReaderContext, node: XmlNode, materials: dict[str, Material]) -> Link:
    """Read a ``<link>``; its pose is set later.

    Raises:
        DescriptionError: A mass, inertia, shape or number is wrong; the message names the link.
    """
    name = node.get("name")
    context.warn_unknown_children(node, _LINK_TAGS)
    collisions, visuals = [], []
    names: dict[str, int] = {}
    for index, child in enumerate(node.children_with_tag("collision")):
        context.warn_unknown_children(child, {"origin", "geometry"})
        unique_name = make_unique_name(child.get("name") or f"{name}_collision{f'_{index}' if index else ''}", names)
        collisions.append(
            Collision(unique_name, _read_geometry(context, child, name), read_origin(child, f"link '{name}'"))
        )
    for index, child in enumerate(node.children_with_tag("visual")):
        context.warn_unknown_children(child, {"origin", "geometry", "material"})
        unique_name = make_unique_name(child.get("name") or f"{name}_visual{f'_{index}' if index else ''}", names)
        shape = _read_geometry(context, child, name)
        visuals.append(
            Visual(
                unique_name,
                shape,
                read_origin(child, f"link '{name}'"),
                _read_visual_material(context, child.child("material"), materials),
            )
        )
    inertial = _read_inertial(context, node, name, collisions)
    link = Link(name, SE3.identity(), inertial, tuple(collisions), tuple(visuals))
    inertial_node = node.child("inertial")
    return check_inertia_plausibility(context, inertial_node, link) if inertial_node is not None else link


def _read_visual_material(context: ReaderContext, node: XmlNode | None, materials: dict[str, Material]) -> Material:
    if node is None:
        return Material(is_explicit=False)
    if node.children:
        return _read_material(context, node)
    name = node.get("name")
    if name in materials:
        return materials[name]
    builtin_material = gazebo_material(name)
    if builtin_material is None:
        context.warn(node, f"material {quote(name)} is not defined: gray is used")
        return Material(name)
    return builtin_material


def _read_inertial(context: ReaderContext, node: XmlNode, link: str, collisions: list[Collision]) -> Inertial | None:
    inertial_node = node.child("inertial")
    if inertial_node is None:
        return None
    context.warn_unknown_children(inertial_node, {"origin", "mass", "inertia"})
    mass_node, inertia_node = inertial_node.child("mass"), inertial_node.child("inertia")
    problem_start = f"link '{link}' has an <inertial> without"
    if mass_node is None:
        context.repair_or_raise(
            inertial_node,
            f"{problem_start} <mass>",
            "<mass …/>, or no <inertial>",
            "treated as a massless frame",
        )
        return None
    mass = parse_number(mass_node.get("value"), mass_node, f"mass of link '{link}'")
    if mass == 0.0:
        return None  # a massless frame, if it is fixed to a link with mass: see `massless_links`
    T_link_com = read_origin(inertial_node, f"link '{link}'")
    if inertia_node is None:
        moments, moments_source = estimate_inertia(abs(mass), T_link_com, collisions)
        context.repair_or_raise(
            inertial_node,
            f"{problem_start} <inertia>",
            "<inertia …/>, or no <inertial>",
            f"the inertia {moments_source} is used",
        )
    else:
        ixx, iyy, izz, ixy, ixz, iyz = (
            parse_number(inertia_node.get(key, "0"), inertia_node, f"{key} of link '{link}'") for key in MOMENT_NAMES
        )
        moments = ixx, iyy, izz, ixy, ixz, iyz
    return check_inertial(context, inertial_node, link, mass, T_link_com, moments, collisions)


def _read_geometry(context: ReaderContext, node: XmlNode, link: str) -> Geometry:
    geometry_node = node.child("geometry")
    shape = (
        next((child for child in geometry_node.children if child.tag in _SHAPE_TAGS), None) if geometry_node else None
    )
    if geometry_node is None or shape is None:
        found_tag = (
            f" (found <{geometry_node.children[0].tag[:40]}>)" if geometry_node and geometry_node.children else ""
        )
        raise error_at(
            f"link '{link}' has a <{node.tag}> without a shape{found_tag}",
            geometry_node or node,
            ", ".join(_SHAPE_TAGS),
        )
    context.warn_unknown_children(geometry_node, _SHAPE_TAGS)
    label = f"{shape.tag} of link '{link}'"
    if shape.tag == "box":
        x, y, z = parse_positives(shape.get("size"), 3, shape, f"size of {label}")
        return Box((x, y, z))
    if shape.tag == "mesh":
        return _read_mesh(context, shape, label)
    radius = parse_positive(shape.get("radius"), shape, f"radius of {label}")
    if shape.tag == "sphere":
        return Sphere(radius)
    length = parse_positive(shape.get("length"), shape, f"length of {label}")
    return Cylinder(radius, length) if shape.tag == "cylinder" else Capsule(radius, length)


def _read_mesh(context: ReaderContext, node: XmlNode, label: str) -> Mesh:
    uri = node.get("filename")
    if not uri.strip():
        raise error_at(f"{label} has no filename", node, 'filename="package://…"')
    scale: Vec3 = parse_vector(node.get("scale") or "1 1 1", node, f"scale of {label}")
    if 0.0 in scale:
        raise error_at(f"scale of {label} is {quote(node.get('scale'))}", node, "no zeros")
    return Mesh(uri, context.find_file(uri, node, "mesh"), scale)
