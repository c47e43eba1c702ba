"""Links without mass: links that serve only as frames, and movable links that need a mass.

SDF gives every link without `<inertial>` a mass of 1 kg and 1 kg m². For a `base_footprint` or an `imu_link` this is
not intended: a TurtleBot3 of 1.1 kg would weigh 3.1 kg.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from roboyard.description.inertia import POSITIVE_MASS_HINT, fill_with_default_density
from roboyard.description.model import Joint, Link
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode


def drop_default_inertia(
    context: ReaderContext, links: Iterable[Link], joints: Iterable[Joint], nodes: Mapping[str, XmlNode]
) -> list[Link]:
    """Return the links without the default mass of SDF for links that serve only as frames, with a warning for each.

    Args:
        context: Receives the warnings.
        links: Links of one model.
        joints: Joints between them.
        nodes: Elements of the links that this file defines itself, by name.
    """
    links = list(links)
    group = {link.name: link.name for link in links}

    def find_root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for joint in joints:
        if joint.type == "fixed" and joint.parent in group and joint.child in group:
            group[find_root(joint.child)] = find_root(joint.parent)
    frame_links = {
        link.name
        for link in links
        if link.name in nodes
        and nodes[link.name].child("inertial") is None
        and not link.collisions
        and not link.visuals
    }
    groups_with_mass = {
        find_root(link.name) for link in links if link.name not in frame_links and link.inertial is not None
    }
    result = []
    for link in links:
        if link.name in frame_links and find_root(link.name) in groups_with_mass:
            context.warn(
                nodes[link.name], f"link '{link.name}' is a massless frame: SDF's default of 1 kg is not applied"
            )
            link = replace(link, inertial=None)
        result.append(link)
    return result


def check_massless_frames(
    context: ReaderContext, nodes: Mapping[str, XmlNode], links: Mapping[str, Link], joints: Mapping[str, Joint]
) -> None:
    """Treat links with a stated mass of 0 kg as massless frames if they are fixed to a link with mass, with a warning.

    Raises:
        DescriptionError: Such a link is not fixed to a link with mass; unless repaired.
    """
    inertial_nodes = {name: _inertial_with_mass(node) for name, node in nodes.items()}
    massless = {
        name: inertial_node
        for name, inertial_node in inertial_nodes.items()
        if inertial_node is not None and links[name].inertial is None
    }
    if not massless:
        return
    group = {name: name for name in nodes}

    def find_root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for joint in joints.values():
        if joint.type == "fixed" and joint.parent in group and joint.child in group:
            group[find_root(joint.child)] = find_root(joint.parent)
    groups_with_mass = {find_root(name) for name, link in links.items() if link.inertial is not None or name == "world"}
    moving_groups = {find_root(joint.child) for joint in joints.values() if joint.type != "fixed"}
    for name, node in massless.items():
        if find_root(name) in groups_with_mass:
            context.warn(node, f"link '{name}' has mass 0 kg: treated as a massless frame")
        elif not (context.repair and find_root(name) in moving_groups):  # movable links are repaired as such
            action = "treated as a massless frame"
            context.repair_or_raise(node, f"link '{name}' has mass 0 kg", POSITIVE_MASS_HINT, action)


def _inertial_with_mass(node: XmlNode) -> XmlNode | None:
    """Return the ``<inertial>`` of a link that states a mass."""
    inertial_node = node.child("inertial")
    return inertial_node if inertial_node is not None and inertial_node.child("mass") is not None else None


def repair_movable_massless_links(
    context: ReaderContext, nodes: Mapping[str, XmlNode], links: dict[str, Link], joints: dict[str, Joint]
) -> None:
    """Repair, if requested, every link that a joint moves and that neither has mass nor is fixed to a link with mass.

    With collision shapes it gets their mass; without, its joint becomes fixed.  A link is kept if its children have
    mass, if it connects two joints as a cross, or if joints of heavier links mimic its joint: engines lend it a part of
    their mass.

    Args:
        context: Receives the repairs.
        nodes: Elements of the links.
        links: Links by name; changed in place.
        joints: Joints by name; changed in place.
    """
    if not context.repair:
        return
    child_joints: dict[str, list[Joint]] = {}
    for joint in joints.values():
        child_joints.setdefault(joint.parent, []).append(joint)

    def descendants(name: str, *, rigid_only: bool) -> list[str]:
        names = [name]
        for one in names:
            names += [joint.child for joint in child_joints.get(one, []) if joint.type == "fixed" or not rigid_only]
        return names

    def mimic_children(leader: str) -> list[str]:
        return [one.child for one in joints.values() if one.mimic is not None and one.mimic.joint == leader]

    for joint in list(joints.values()):
        if joint.type == "fixed" or any(links[one].inertial for one in descendants(joint.child, rigid_only=True)):
            continue
        name = joint.child
        links_with_shapes = [
            one
            for one in descendants(name, rigid_only=True)
            if fill_with_default_density(links[one].collisions) is not None
        ]
        problem = f"link '{name}' moves but has no mass"
        if links_with_shapes:
            for one in links_with_shapes:
                links[one] = replace(links[one], inertial=fill_with_default_density(links[one].collisions))
            total = sum(inertial.mass for one in links_with_shapes if (inertial := links[one].inertial))
            context.repair_or_raise(
                nodes[name],
                problem,
                "an <inertial>",
                f"it gets {total:.3g} kg, its collision shapes filled with water",
                is_required=False,
            )
        elif not any(
            links[one].inertial for one in (*descendants(name, rigid_only=False), *mimic_children(joint.name))
        ):
            joints[joint.name] = replace(joint, type="fixed", axes=(), mimic=None)
            for other, follower in joints.items():
                if follower.mimic is not None and follower.mimic.joint == joint.name:
                    joints[other] = replace(follower, mimic=None)
            child_joints[joint.parent] = [joints.get(one.name, one) for one in child_joints[joint.parent]]
            context.repair_or_raise(
                nodes[name], problem, "an <inertial>", f"its joint '{joint.name}' becomes fixed", is_required=False
            )
        else:
            context.repair_or_raise(
                nodes[name],
                problem,
                "an <inertial>",
                "the engine gives it a millionth of the mass that it carries",
                is_required=False,
            )
