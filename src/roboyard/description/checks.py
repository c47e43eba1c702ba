"""What makes a description physically impossible or inconsistent, each said with link or joint and place."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from roboyard.description.model import Inertial, Joint, Limits
from roboyard.description.reading import Reading
from roboyard.description.values import fault
from roboyard.description.xml import Node
from roboyard.geometry import SE3

Moments = tuple[float, float, float, float, float, float]
_ROUNDING = 1e-4  # relative breach of the triangle inequality that printed digits explain


def inertial(reading: Reading, node: Node, link: str, mass: float, T_link_com: SE3, moments: Moments) -> Inertial:
    """A checked inertial.

    Args:
        reading: Takes the finding when rounding is straightened.
        node: Where it stands.
        link: The link's name.
        mass: [kg].
        T_link_com: Centre-of-mass frame.
        moments: ixx, iyy, izz, ixy, ixz, iyz about it [kg m²].

    Raises:
        DescriptionError: mass not above zero, inertia not positive definite, or principal moments that no body has
            (each must be at most the sum of the other two).
    """
    if mass <= 0.0:
        raise fault(
            f"link '{link}' has mass {mass:g} kg", node, "a mass above 0; leave <inertial> out for a mere frame"
        )
    ixx, iyy, izz, ixy, ixz, iyz = moments
    matrix = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    values, vectors = np.linalg.eigh(matrix)
    a, b, c = (float(value) for value in values)
    said = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m²"
    if not a > 0.0:
        raise fault(f"link '{link}' has an inertia that is not positive definite: {said}", node, "moments above 0")
    if a + b < c:
        if c - (a + b) > _ROUNDING * c:
            raise fault(
                f"link '{link}' has an inertia that no body has: {said}",
                node,
                "the largest moment must not exceed the sum of the others",
            )
        reading.note(node, f"link '{link}': {said} break the triangle inequality by rounding; straightened")
        values[2] = a + b
        fixed = vectors @ np.diag(values) @ vectors.T
        moments = (fixed[0, 0], fixed[1, 1], fixed[2, 2], fixed[0, 1], fixed[0, 2], fixed[1, 2])
        moments = tuple(float(value) for value in moments)  # type: ignore[assignment]
    return Inertial(mass, T_link_com, moments)


def limits(node: Node, joint: str, lower: float, upper: float, velocity: float, effort: float) -> Limits:
    """Checked limits of an axis. Raises DescriptionError when lower exceeds upper or a bound is negative."""
    if lower > upper or lower == math.inf or upper == -math.inf:
        raise fault(f"joint '{joint}' has lower limit {lower:g} above upper limit {upper:g}", node, "lower ≤ upper")
    if velocity < 0.0 or effort < 0.0:
        which, value = ("velocity", velocity) if velocity < 0.0 else ("effort", effort)
        raise fault(f"joint '{joint}' has {which} limit {value:g}", node, "0 or more")
    return Limits(lower, upper, velocity, effort)


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


def chain(links: Mapping[str, Node], joints: Sequence[tuple[Joint, Node]]) -> list[Joint]:
    """The joints ordered from the roots outwards (file order among siblings).

    Raises:
        DescriptionError: a joint names an unknown link, joins a link to itself, a link is the child of two joints, or
            joints form a cycle.
    """
    parent_of: dict[str, tuple[Joint, Node]] = {}
    below: dict[str, list[Joint]] = {}
    for joint, node in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links and not (link == "world" and role == "parent"):
                raise fault(f"joint '{joint.name}' has the unknown {role} link '{link}'", node, _near(link, links))
        if joint.parent == joint.child:
            raise fault(f"joint '{joint.name}' joins link '{joint.child}' to itself", node, "two different links")
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


def mimics(joints: Sequence[tuple[Joint, Node]]) -> None:
    """Mimic joints follow a known joint, and not in a circle. Raises DescriptionError."""
    leader = {joint.name: joint.mimic.joint for joint, _ in joints if joint.mimic}
    known = {joint.name for joint, _ in joints}
    for joint, node in joints:
        if joint.mimic is None:
            continue
        if joint.mimic.joint not in known:
            raise fault(f"joint '{joint.name}' mimics the unknown joint '{joint.mimic.joint}'", node)
        seen, at = {joint.name}, joint.mimic.joint
        while at in leader and at not in seen:
            seen.add(at)
            at = leader[at]
        if at == joint.name:
            raise fault(f"joint '{joint.name}' mimics itself in a circle", node)
