"""What makes a description physically impossible or inconsistent, each said with link or joint and place."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from roboyard.description.model import Collision, Inertial, Joint, Limits, Vec3
from roboyard.description.reading import Reading
from roboyard.description.remedies import Moments, lifted, matrix_of, plausible, rounded, straightened
from roboyard.description.values import fault, shown, unit_vector, vector
from roboyard.description.xml import Node
from roboyard.geometry import SE3

WEIGHTLESS = "a mass above 0; leave <inertial> out for a mere frame"
_HEAVIEST = 1e15  # beyond, digits are lost in every sum
_LOST_DIGITS = 1e-9  # relative depth below zero that sums and products of doubles explain
_ROUNDING = 1e-4  # relative breach of the triangle inequality that printed digits explain


def inertial(
    reading: Reading,
    node: Node,
    link: str,
    mass: float,
    T_link_com: SE3,
    moments: Moments,
    collisions: Sequence[Collision] = (),
) -> Inertial | None:
    """A checked inertial; None where mending has made the link a mere frame.

    Args:
        reading: Takes the finding when rounding is straightened, and mendings.
        node: Where it stands.
        link: The link's name.
        mass: [kg].
        T_link_com: Centre-of-mass frame.
        moments: ixx, iyy, izz, ixy, ixz, iyz about it [kg m²].
        collisions: The link's shapes, from which a faulty inertia is mended.

    Raises:
        DescriptionError: mass not above zero, inertia not positive definite, or principal moments that no body has
            (each must be at most the sum of the other two); unless mended.
    """
    if mass <= 0.0:
        done = f"{-mass:g} kg taken" if mass < 0.0 else "taken as a mere frame without mass"
        reading.mend(node, f"link '{link}' has mass {mass:g} kg", WEIGHTLESS, done)
        if mass == 0.0:
            return None
        mass = -mass
    largest = max(map(abs, moments), key=lambda moment: math.inf if math.isnan(moment) else moment)
    if not (mass <= _HEAVIEST and largest <= _HEAVIEST):  # NaN is above the bound too
        raise fault(
            f"link '{link}' has a mass of {mass:g} kg and moments up to {largest:g} kg m²",
            node,
            f"at most {_HEAVIEST:g}",
        )
    values = np.linalg.eigvalsh(matrix_of(moments))
    a, b, c = (float(value) for value in values)
    said = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m²"
    if a < 0.0 < b and -a < _LOST_DIGITS * c:
        reading.note(node, f"link '{link}': {said}: the first is below 0 by rounding; {_LOST_DIGITS * c:.3g} taken")
        moments, a = lifted(moments, _LOST_DIGITS * c), _LOST_DIGITS * c
        b = max(b, c - a)
    if not a > 0.0:
        what = f"link '{link}' has an inertia that is not positive definite: {said}"
        moments, whose = plausible(mass, T_link_com, collisions)
        reading.mend(node, what, "moments above 0", f"the inertia taken {whose}")
    elif a + b < c:
        if c - (a + b) > _ROUNDING * c:
            reading.mend(
                node,
                f"link '{link}' has an inertia that no body has: {said}",
                "the largest moment must not exceed the sum of the others",
                f"the smaller moments raised to {0.5 * (a + c - b):.6g} and {0.5 * (b + c - a):.6g} kg m²",
            )
            moments = straightened(moments)
        else:
            reading.note(node, f"link '{link}': {said} break the triangle inequality by rounding; straightened")
            moments = rounded(moments)
    return Inertial(mass, T_link_com, moments)


def limits(
    reading: Reading, node: Node, joint: str, lower: float, upper: float, velocity: float, effort: float
) -> Limits:
    """Checked limits of an axis.

    Raises:
        DescriptionError: lower exceeds upper, or a bound is negative; unless mended.
    """
    if lower > upper or lower == math.inf or upper == -math.inf:
        what = f"joint '{joint}' has lower limit {lower:g} above upper limit {upper:g}"
        reading.mend(node, what, "lower ≤ upper", "the two change places")
        lower, upper = min(lower, upper), max(lower, upper)
        if lower == math.inf or upper == -math.inf:
            lower, upper = -math.inf, math.inf
    for which, value in (("velocity", velocity), ("effort", effort)):
        if value < 0.0:
            reading.mend(node, f"joint '{joint}' has {which} limit {value:g}", "0 or more", f"{-value:g} taken")
    return Limits(lower, upper, abs(velocity), abs(effort))


def axis(reading: Reading, text: str, node: Node, joint: str, default: Vec3) -> Vec3:
    """The direction of a joint's axis, normalised. Raises DescriptionError when it has no length; unless mended."""
    if max(map(abs, vector(text, node, f"axis of joint '{joint}'"))) >= 1e-12:
        return unit_vector(text, node, f"axis of joint '{joint}'")
    letter = "xyz"[default.index(max(default))]
    reading.mend(node, f"axis of joint '{joint}' is {shown(text)}", "a vector with a length", f"{letter} taken")
    return default


def unique(kind: str, named: Iterable[tuple[str, Node]], owner: str = "") -> dict[str, Node]:
    """The names with their nodes. Raises DescriptionError for a missing name or one that occurs twice."""
    found: dict[str, Node] = {}
    within = f" in {owner}" if owner else ""
    for name, node in named:
        if not name.strip():
            raise fault(f"a {kind}{within} has no name", node, 'name="…"')
        if name in found:
            first = found[name].where
            raise fault(f"{kind} '{name}'{within} exists twice", node, f"unique names; the other is at {first}")
        found[name] = node
    return found


def known_ends(
    reading: Reading, links: Mapping[str, Node], joints: Sequence[tuple[Joint, Node]]
) -> list[tuple[Joint, Node]]:
    """The joints, all between known and different links.

    Raises:
        DescriptionError: a joint names an unknown link, or joins a link to itself; unless mended.
    """
    known = []
    for joint, node in joints:
        what, valid = "", "two different links"
        if joint.parent == joint.child:
            what = f"joint '{joint.name}' joins link '{joint.child}' to itself"
        for role, link in (("child", joint.child), ("parent", joint.parent)):
            if link not in links and not (link == "world" and role == "parent"):
                what, valid = f"joint '{joint.name}' has the unknown {role} link '{link}'", _near(link, links)
        if what:
            reading.mend(node, what, valid, "left out")
        else:
            known.append((joint, node))
    return known


def chain(joints: Sequence[tuple[Joint, Node]], links: Iterable[str]) -> list[Joint]:
    """The joints ordered from the roots outwards (file order among siblings).

    Raises:
        DescriptionError: a link is the child of two joints, or joints form a cycle.
    """
    parent_of: dict[str, tuple[Joint, Node]] = {}
    below: dict[str, list[Joint]] = {}
    for joint, node in joints:
        if joint.child in parent_of:
            other, place = parent_of[joint.child]
            raise fault(
                f"link '{joint.child}' is the child of joint '{joint.name}' and of joint '{other.name}'",
                node,
                f"one parent a link; the other joint is at {place.where}",
            )
        parent_of[joint.child] = (joint, node)
        below.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    waiting = ["world", *(name for name in links if name not in parent_of)]
    waiting.reverse()
    while waiting:
        joints_here = below.get(waiting.pop(), [])
        order += joints_here
        waiting += [joint.child for joint in reversed(joints_here)]
    if len(order) < len(parent_of):
        reached = {joint.name for joint in order}
        stuck, node = next((joint, node) for joint, node in parent_of.values() if joint.name not in reached)
        names = [stuck.child]
        while (above := parent_of[names[-1]][0].parent) not in names:
            names.append(above)
        loop = " → ".join([above, *reversed(names[names.index(above) :])])
        raise fault(f"joint '{stuck.name}' is part of a cycle: {loop}", node, "links joined as a tree")
    return order


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3) or names[:8]
    return f"links: {', '.join(near)}" if near else "no link exists"


def mimics(reading: Reading, joints: Sequence[tuple[Joint, Node]]) -> list[tuple[Joint, Node]]:
    """The joints, all mimics among them following a known joint, and not in a circle.

    Raises:
        DescriptionError: one follows an unknown joint or itself; unless mended.
    """
    leader = {joint.name: joint.mimic.joint for joint, _ in joints if joint.mimic}
    known = {joint.name for joint, _ in joints}
    checked = []
    for joint, node in joints:
        what = ""
        if joint.mimic is not None and joint.mimic.joint not in known:
            what = f"joint '{joint.name}' mimics the unknown joint '{joint.mimic.joint}'"
        elif joint.mimic is not None:
            seen, at = {joint.name}, joint.mimic.joint
            while at in leader and at not in seen:
                seen.add(at)
                at = leader[at]
            what = f"joint '{joint.name}' mimics itself in a circle" if at == joint.name else ""
        if what:
            reading.mend(node, what, "a joint that moves by itself", "it moves by itself")
            leader.pop(joint.name, None)
            joint = replace(joint, mimic=None)
        checked.append((joint, node))
    return checked
