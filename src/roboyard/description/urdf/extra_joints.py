"""SDF joints inside a URDF's ``<gazebo>`` blocks: what URDF has no words for, screws and joints that close loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roboyard.description.model import Joint
from roboyard.description.reading import Reading
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3


def read_extra_joints(
    reading: Reading, robot: str, blocks: Sequence[Node], poses: Mapping[str, SE3], joints: Mapping[str, Joint]
) -> tuple[Joint, ...]:
    """The joints that ``<gazebo>`` blocks add; each closes a loop, since the tree has every link already.

    Args:
        reading: Takes findings: a joint that leads nowhere or has a name that is taken is left out with one.
        robot: The robot's name.
        blocks: The ``<gazebo>`` elements.
        poses: T_model_link of each link.
        joints: Of the tree.
    """
    nodes = [node for block in blocks if not block.get("reference").strip() for node in block.all("joint")]
    if not nodes:
        return ()
    from roboyard.description.sdf.joint import end, read_joint
    from roboyard.description.sdf.scope import MODEL, Entry, Scope

    scope = Scope(f"robot '{robot}'", MODEL, strict=False)
    for link, T_model_link in poses.items():
        w, x, y, z = T_model_link.quaternion
        text = " ".join(repr(float(value)) for value in (*T_model_link.xyz, x, y, z, w))
        where = Node("pose", {"rotation_format": "quat_xyzw"}, nodes[0].file, nodes[0].line, text)
        if link != "world":
            scope.declare(Entry(link, "link", nodes[0], where, MODEL))
    scope.canonical = next(iter(poses))
    found: dict[str, Joint] = {}
    for node in nodes:
        name = node.get("name").strip()
        try:
            if name in joints or name in found:
                reading.note(node, f"<gazebo> adds a joint '{name}', and there is one of this name: left out")
                continue
            child = end(node, "child")
            scope.declare(Entry(name, "joint", node, node.child("pose"), child, attached=child))
            found[name] = read_joint(reading, node, scope, name, dict(poses), (1, 7))
        except DescriptionError as error:
            reading.note(node, f"<gazebo> adds a joint that cannot be: {error.what}: left out")
    for joint in found.values():
        reading.note(nodes[0], f"joint '{joint.name}' closes a loop: a constraint, not part of the tree")
    return tuple(found.values())
