"""Links that move but have no mass: no engine can move them, so mending gives them mass or holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roboyard.description.model import Joint, Link
from roboyard.description.reading import Reading
from roboyard.description.remedies import filled
from roboyard.description.xml import Node


def mend_massless(
    reading: Reading, nodes: Mapping[str, Node], links: dict[str, Link], joints: dict[str, Joint]
) -> None:
    """Mend, if asked to, every link that a joint moves and that neither has mass nor is fixed to one that has.

    With collision shapes it gets the mass of these; without, its joint is fixed.  What is held by its children's mass,
    a cross between two joints, stays: engines lend it a part of theirs.

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
            reading.mend(nodes[name], fault, "an <inertial>", f"{total:.3g} kg, its collision shapes filled with water")
        elif not any(links[one].inertial for one in hanging(name, rigid=False)):
            joints[joint.name] = replace(joint, type="fixed", axes=(), mimic=None)
            for other, follower in joints.items():
                if follower.mimic is not None and follower.mimic.joint == joint.name:
                    joints[other] = replace(follower, mimic=None)
            below[joint.parent] = [joints.get(one.name, one) for one in below[joint.parent]]
            reading.mend(nodes[name], fault, "an <inertial>", f"its joint '{joint.name}' is fixed")
        else:
            reading.mend(nodes[name], fault, "an <inertial>", "the engine lends it a millionth of what it carries")
