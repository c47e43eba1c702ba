"""SDF joints inside a URDF's ``<gazebo>`` blocks: what URDF has no words for, screws and joints that close loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roboyard.description.model import Joint
from roboyard.description.reading import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3


def read_extra_joints(
    context: ReaderContext, robot: str, blocks: Sequence[XmlNode], poses: Mapping[str, SE3], joints: Mapping[str, Joint]
) -> tuple[Joint, ...]:
    """The joints that ``<gazebo>`` blocks add; each closes a loop, since the tree has every link already.

    Args:
        context: Takes findings: a joint that leads nowhere or has a name that is taken is left out with one.
        robot: The robot's name.
        blocks: The ``<gazebo>`` elements.
        poses: T_model_link of each link.
        joints: Of the tree.
    """
    nodes = [
        node for block in blocks if not block.get("reference").strip() for node in block.children_with_tag("joint")
    ]
    if not nodes:
        return ()
    from roboyard.description.sdf.joint import read_joint, read_joint_link
    from roboyard.description.sdf.scope import MODEL, ScopeEntry, SdfScope

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
                context.warn(node, f"<gazebo> adds a joint '{name}', and there is one of this name: left out")
                continue
            child = read_joint_link(node, "child")
            scope.declare(ScopeEntry(name, "joint", node, node.child("pose"), child, attached_to=child))
            loop_joints[name] = read_joint(context, node, scope, name, dict(poses), (1, 7))
        except DescriptionError as error:
            context.warn(node, f"<gazebo> adds a joint that cannot be: {error.message}: left out")
    for joint in loop_joints.values():
        context.warn(nodes[0], f"joint '{joint.name}' closes a loop: a constraint, not part of the tree")
    return tuple(loop_joints.values())
