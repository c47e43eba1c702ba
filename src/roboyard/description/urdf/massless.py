"""Links that move but have no mass: no engine can move them, so mending gives them mass or holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roboyard.description import checks
from roboyard.description.model import Joint, Link
from roboyard.description.reading import Reading
from roboyard.description.remedies import filled
from roboyard.description.xml import Node


def check_weightless(
    reading: Reading, nodes: Mapping[str, Node], links: Mapping[str, Link], joints: Mapping[str, Joint]
) -> None:
    """Links that state a mass of 0 kg are mere frames where they are fixed to something with mass, which is noted.

    Raises:
        DescriptionError: elsewhere; unless mended.
    """
    stated = {name: _stated(node) for name, node in nodes.items()}
    zero = {name: found for name, found in stated.items() if found is not None and links[name].inertial is None}
    if not zero:
        return
    group = {name: name for name in nodes}

    def head(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for joint in joints.values():
        if joint.type == "fixed" and joint.parent in group and joint.child in group:
            group[head(joint.child)] = head(joint.parent)
    carried = {head(name) for name, link in links.items() if link.inertial is not None or name == "world"}
    moved = {head(joint.child) for joint in joints.values() if joint.type != "fixed"}
    for name, node in zero.items():
        if head(name) in carried:
            reading.note(node, f"link '{name}' has mass 0 kg: a mere frame")
        elif not (reading.repair and head(name) in moved):  # what moves is mended as such
            done = "taken as a mere frame without mass"
            reading.mend(node, f"link '{name}' has mass 0 kg", checks.WEIGHTLESS, done)


def _stated(node: Node) -> Node | None:
    """The ``<inertial>`` of a link that states a mass."""
    given = node.child("inertial")
    return given if given is not None and given.child("mass") is not None else None


def mend_massless(
    reading: Reading, nodes: Mapping[str, Node], links: dict[str, Link], joints: dict[str, Joint]
) -> None:
    """Mend, if asked to, every link that a joint moves and that neither has mass nor is fixed to one that has.

    With collision shapes it gets the mass of these; without, its joint is fixed.  What is held by its children's mass,
    a cross between two joints or a joint that heavier ones mimic, stays: engines lend it a part of theirs.

    Args:
        reading: Takes the mendings.
        nodes: The elements of the links.
        links: By name; changed in place.
        joints: By name; changed in place.
    """
    if not reading.repair:
        return
    below: dict[str, list[Joint]] = {}
    for joint in joints.values():
        below.setdefault(joint.parent, []).append(joint)

    def hanging(name: str, *, rigid: bool) -> list[str]:
        names = [name]
        for one in names:
            names += [joint.child for joint in below.get(one, []) if joint.type == "fixed" or not rigid]
        return names

    def led(leader: str) -> list[str]:
        return [one.child for one in joints.values() if one.mimic is not None and one.mimic.joint == leader]

    for joint in list(joints.values()):
        if joint.type == "fixed" or any(links[one].inertial for one in hanging(joint.child, rigid=True)):
            continue
        name = joint.child
        shaped = [one for one in hanging(name, rigid=True) if filled(links[one].collisions) is not None]
        fault = f"link '{name}' moves but has no mass"
        if shaped:
            for one in shaped:
                links[one] = replace(links[one], inertial=filled(links[one].collisions))
            total = sum(inertial.mass for one in shaped if (inertial := links[one].inertial))
            reading.mend(
                nodes[name],
                fault,
                "an <inertial>",
                f"{total:.3g} kg, its collision shapes filled with water",
                needed=False,
            )
        elif not any(links[one].inertial for one in (*hanging(name, rigid=False), *led(joint.name))):
            joints[joint.name] = replace(joint, type="fixed", axes=(), mimic=None)
            for other, follower in joints.items():
                if follower.mimic is not None and follower.mimic.joint == joint.name:
                    joints[other] = replace(follower, mimic=None)
            below[joint.parent] = [joints.get(one.name, one) for one in below[joint.parent]]
            reading.mend(nodes[name], fault, "an <inertial>", f"its joint '{joint.name}' is fixed", needed=False)
        else:
            reading.mend(
                nodes[name], fault, "an <inertial>", "the engine lends it a millionth of what it carries", needed=False
            )
